package inspect_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// referrersAt computes the expected result of Referrers from the whole state.
func referrersAt(t testing.TB, im *image.Image, e ecs.Entity) (list []inspect.Referrer) {
	t.Helper()
	for _, c := range im.Components {
		for row := range c.Len() {
			fields := inspect.AppendFieldsWith(nil, "", storetest.ValueOf(t, c, row), e)
			if len(fields) == 0 || !c.Resource && c.Entities[row] == ecs.Vacant {
				continue
			}
			r := inspect.Referrer{Component: c.Name, Resource: c.Resource, Row: row, Fields: fields}
			if !c.Resource {
				r.Entity = c.Entities[row]
			}
			list = append(list, r)
		}
	}
	return list
}

func TestReferrers_RandomWorlds(t *testing.T) {
	t.Parallel()
	found := 0
	for seed := range uint64(2) {
		v := storetest.WildView(t, 10+seed)
		entities := storetest.Lives(t, v)
		for _, seq := range storetest.SeqsOf(v) {
			im := storetest.ImageAt(t, v, seq)
			for _, e := range entities {
				want := referrersAt(t, im, e)
				got, total, err := v.Referrers(storetest.Background, e, seq, 1000)
				require.NoError(t, err)
				require.Equal(t, want, got, "seed %d, %v at record %d", seed, e, seq)
				require.Equal(t, len(want), total)
				found += total
			}
		}
	}
	require.Greater(t, found, 100)
}

// A patience is a context that ends after a given number of calls of Err, from any goroutine.
type patience struct {
	context.Context
	left atomic.Int64
}

func (p *patience) Err() error {
	if p.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// An interrupted call returns the error of the context, and reports no damage.
func TestReferrers_ContextEnds(t *testing.T) {
	v := storetest.WildView(t, 10)
	e := storetest.Lives(t, v)[0]
	interrupted := 0
	for _, seq := range storetest.SeqsOf(v) {
		for asked := 0; ; asked++ {
			ctx := &patience{Context: storetest.Background}
			ctx.left.Store(int64(asked))
			_, _, err := v.Referrers(ctx, e, seq, 10)
			if err == nil {
				break
			}
			require.ErrorIs(t, err, context.Canceled)
			require.NotErrorIs(t, err, persist.ErrCorrupt)
			interrupted++
		}
	}
	require.Greater(t, interrupted, 50)
}

// The types below are components of every layout that can contain an entity.
type (
	linked struct {
		Near  [2]ecs.Entity
		Inner struct{ To ecs.Entity }
	}
	crowd struct {
		Members []ecs.Entity
		Ranks   map[ecs.Entity]ecs.Entity
		Leader  *ecs.Entity
		Note    string
	}
	// leash is an indexed component with an entity in its default value, so gaps contain an entity.
	leash struct{ Holder ecs.Entity }
	// memory is a no-rewind component.
	memory   struct{ Last ecs.Entity }
	selected struct{ It ecs.Entity }
)

func TestReferrers_EveryLayout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := ecs.NewWorld(ecs.Options{})
	links := ecs.MustRegister[linked](w)
	crowds := ecs.MustRegister(w, ecs.Component[crowd]{Clone: func(c crowd) crowd { return c }})
	leashes := ecs.MustRegister(w, ecs.Component[leash]{Kind: ecs.Indexed, Default: leash{ecs.NewEntity(0, 1)}})
	memories := ecs.MustRegister(w, ecs.Component[memory]{NoRewind: true})
	pick := ecs.Must(ecs.RegisterResource(w, selected{}))
	s := storetest.Open(t, dir, &storetest.World{World: w}, persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1})
	e, o := w.Create(), w.Create()
	for range 3 {
		w.Create()
	}
	third := ecs.NewEntity(3, 1)
	links.Set(o, linked{Near: [2]ecs.Entity{o, e}})
	crowds.Set(o, crowd{Members: []ecs.Entity{o, e, e}, Ranks: map[ecs.Entity]ecs.Entity{e: o, third: e}, Leader: &e})
	leashes.Set(third, leash{e})
	memories.Set(third, memory{e})
	pick.Set(selected{e})
	require.NoError(t, s.Commit())
	storetest.SnapshotOf(t, s)
	var l linked
	l.Inner.To = e
	links.Set(third, l)
	links.Remove(o)
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)
	v := storetest.ViewOf(t, dir)

	want := []inspect.Referrer{
		{Entity: o, Component: name[linked](links), Resource: false, Row: 0, Fields: []string{"Near[1]"}},
		{Entity: o, Component: name[crowd](crowds), Resource: false, Row: 0, Fields: []string{"Members[1]", "Members[2]", "key of Ranks[0v1]", "Ranks[3v1]", "Leader"}},
		{Entity: third, Component: name[leash](leashes), Resource: false, Row: 3, Fields: []string{"Holder"}},
		{Entity: third, Component: name[memory](memories), Resource: false, Row: 0, Fields: []string{"Last"}},
		{Entity: 0, Component: "selected", Resource: true, Row: 0, Fields: []string{"It"}},
	}
	for seq := uint64(1); seq <= 2; seq++ {
		got, total, err := v.Referrers(storetest.Background, e, seq, 10)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, 5, total)
		got, total, err = v.Referrers(storetest.Background, e, seq, 2)
		require.NoError(t, err)
		require.Equal(t, want[:2], got)
		require.Equal(t, 5, total)
		want[0] = inspect.Referrer{Entity: third, Component: want[0].Component, Resource: false, Row: 0, Fields: []string{"Inner.To"}}
	}
	none, total, err := v.Referrers(storetest.Background, ecs.NewEntity(4, 1), 2, 10)
	require.NoError(t, err)
	require.Empty(t, none)
	require.Zero(t, total)
	_, _, err = v.Referrers(storetest.Background, e, 9, 10)
	require.ErrorIs(t, err, persist.ErrNotFound)

	save := filepath.Join(t.TempDir(), "save")
	require.NoError(t, persist.Save(storetest.Background, save, w))
	got, _, err := storetest.ViewOf(t, save).Referrers(storetest.Background, e, 0, 10)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(want), fmt.Sprint(got))
}

func name[T any](s *ecs.Storage[T]) string { return s.Name() }
