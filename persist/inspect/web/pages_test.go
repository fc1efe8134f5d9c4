package web

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// The test compares a list that is read from pages of a save with a list of the loaded state.
func TestList_PagesEqualWholeState(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	w := ecs.NewWorld(ecs.Options{})
	positions, healths := ecs.MustRegister[Position](w), ecs.MustRegister[Health](w)
	var entities []ecs.Entity
	for i := range 20_000 {
		e := w.Create()
		entities = append(entities, e)
		if i%3 > 0 {
			positions.Set(e, Position{float64(rng.IntN(100)), float64(i)})
		}
		if rng.IntN(2) > 0 {
			healths.Set(e, Health(rng.IntN(100)))
		}
	}
	for range 3000 {
		if e := entities[rng.IntN(len(entities))]; w.Alive(e) {
			w.Destroy(e)
		}
	}
	// Reuse the indices of destroyed entities, so these indices have a higher generation.
	for range 1500 {
		healths.Set(w.Create(), Health(rng.IntN(100)))
	}
	file := filepath.Join(t.TempDir(), "save")
	require.NoError(t, persist.Save(t.Context(), file, w))
	view, err := inspect.OpenReadOnly(t.Context(), file)
	require.NoError(t, err)
	defer view.Close()

	paged, whole := newSession(view, fastRoom), newSession(view, fastRoom)
	_, err = whole.state(t.Context(), 0)
	require.NoError(t, err)
	list := func(d *session, s listQuery, offset, limit int) (doc *entitiesDoc, err error) {
		err = d.read(t.Context(), 0, func(st *inspect.State) (err error) {
			doc, err = d.list(t.Context(), st, s, nil, offset, limit)
			return err
		})
		return doc, err
	}
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	for range 60 {
		s := listQuery{
			where: one("", "Health < 50", "Position.X > 90 && Health > 5", "not has(Health)", "generation > 1", "Health < -1"),
			with:  one("", "", "Health", "Position"), sort: one("", "", "Health", "Position.X"), desc: rng.IntN(2) == 0,
		}
		if rng.IntN(2) == 0 {
			s.columns = []string{"Position.Y", `exists("77v1")`, "Health"}
		}
		offset, limit := rng.IntN(3)*rng.IntN(9000), 1+rng.IntN(50)
		name := fmt.Sprintf("seed %d: %+v, from %d", seed, s, offset)
		var got, want *entitiesDoc
		for got == nil || !got.Done {
			asked := limit
			if got != nil {
				// Ask for no rows: such a request only continues to count.
				asked = 0
			}
			got, err = list(paged, s, offset, asked)
			require.NoError(t, err, name)
			if got.Done && asked == 0 {
				got, err = list(paged, s, offset, limit)
				require.NoError(t, err, name)
			}
		}
		for want == nil || !want.Done {
			want, err = list(whole, s, offset, limit)
			require.NoError(t, err, name)
		}
		require.Equal(t, want, got, name)
	}
	require.Nil(t, paged.cursor, "the state must not be loaded")
	_, err = list(paged, listQuery{where: "Health <"}, 0, 5)
	require.Error(t, err)
	require.NoError(t, whole.read(t.Context(), 0, func(st *inspect.State) error {
		require.True(t, st.Whole(), "the loaded state must be used")
		return nil
	}))
}

// A selection stores few of the found entities. It evaluates all other entities again when the page
// scrolls to them.
func TestSelection_StoresFewEntities(t *testing.T) {
	defer func(first, window int) { firstRows, windowRows = first, window }(firstRows, windowRows)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	w := ecs.NewWorld(ecs.Options{})
	positions, healths := ecs.MustRegister[Position](w), ecs.MustRegister[Health](w)
	for i := range 40_000 {
		e := w.Create()
		positions.Set(e, Position{float64(rng.IntN(900)), float64(i)})
		if i < 9000 || i%7 == 0 {
			healths.Set(e, Health(i%100))
		}
	}
	file := filepath.Join(t.TempDir(), "save")
	require.NoError(t, persist.Save(t.Context(), file, w))
	view, err := inspect.OpenReadOnly(t.Context(), file)
	require.NoError(t, err)
	defer view.Close()
	ask := func(d *session, s listQuery, offset, limit int) *entitiesDoc {
		for range 10_000 {
			var doc *entitiesDoc
			s.since = time.Now()
			require.NoError(t, d.read(t.Context(), 0, func(st *inspect.State) (err error) {
				doc, err = d.list(t.Context(), st, s, nil, offset, limit)
				return err
			}))
			if doc.Done {
				return doc
			}
		}
		t.Fatalf("seed %d: %+v from %d is never done", seed, s, offset)
		return nil
	}
	for _, s := range []listQuery{{where: "Position.Y >= 0"}, {where: "Health >= 0"}, {sort: "Position.X"}, {sort: "Position.X", desc: true, where: "Health < 50"}} {
		firstRows, windowRows = 1<<30, 1<<30
		all := newSession(view, fastRoom)
		ask(all, s, 0, 1)
		firstRows, windowRows = 100, 1000
		few := newSession(view, fastRoom)
		for _, offset := range []int{0, 90, 980, 1000, 5990, 5000, 39_990, rng.IntN(40_000), 12, 60_000} {
			want := ask(all, s, offset, 50)
			got := ask(few, s, offset, 50)
			require.Equal(t, want, got, "seed %d: %+v from %d", seed, s, offset)
			require.LessOrEqual(t, len(few.selection.first), firstRows)
			require.LessOrEqual(t, len(few.selection.sorted), windowRows+maxRows)
			require.Nil(t, few.selection.best)
		}
	}
}
