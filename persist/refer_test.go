package persist

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
)

// referrersAt is what Referrers is to return, worked out from the whole state.
func referrersAt(t testing.TB, im *Image, e ecs.Entity) (list []Referrer) {
	t.Helper()
	for _, c := range im.Components {
		for row := range c.Len() {
			fields := AppendFieldsWith(nil, "", valueOf(t, c, row), e)
			if len(fields) == 0 || !c.Resource && c.Entities[row] == ecs.Vacant {
				continue
			}
			r := Referrer{Component: c.Name, Resource: c.Resource, Row: row, Fields: fields}
			if !c.Resource {
				r.Entity = c.Entities[row]
			}
			list = append(list, r)
		}
	}
	return list
}

func TestReferrersAreThoseOfTheWholeState(t *testing.T) {
	found := 0
	for seed := range uint64(2) {
		v := wildView(t, 10+seed)
		entities := lives(t, v)
		for _, seq := range seqsOf(v) {
			im := imageAt(t, v, seq)
			for _, e := range entities {
				want := referrersAt(t, im, e)
				got, total, err := v.Referrers(background, e, seq, 1000)
				require.NoError(t, err)
				require.Equal(t, want, got, "seed %d, %v at record %d", seed, e, seq)
				require.Equal(t, len(want), total)
				found += total
			}
		}
	}
	require.Greater(t, found, 100)
}

// Components of every layout that can hold an entity.
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
	leash    struct{ Holder ecs.Entity } // Indexed; its gaps hold an entity.
	memory   struct{ Last ecs.Entity }   // NoRewind.
	selected struct{ It ecs.Entity }
)

func TestEntitiesAreFoundInValuesOfEveryLayout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := ecs.NewWorld(ecs.Options{})
	links := ecs.MustRegister[linked](w)
	crowds := ecs.MustRegister[crowd](w, ecs.CloneWith(func(c crowd) crowd { return c }))
	leashes := ecs.MustRegister[leash](w, ecs.Stored(ecs.Indexed), ecs.Default(leash{ecs.NewEntity(0, 1)}))
	memories := ecs.MustRegister[memory](w, ecs.NoRewind())
	pick := ecs.MustRegisterResource(w, selected{})
	s := open(t, dir, &testWorld{World: w}, Options{Sync: journal.SyncNever(), SnapshotBytes: -1})
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
	snapshotOf(t, s)
	var l linked
	l.Inner.To = e
	links.Set(third, l)
	links.Remove(o)
	require.NoError(t, s.Commit())
	closeStore(t, s)
	v := viewOf(t, dir)

	want := []Referrer{
		{o, name[linked](links), false, 0, []string{"Near[1]"}},
		{o, name[crowd](crowds), false, 0, []string{"Members[1]", "Members[2]", "key of Ranks[0v1]", "Ranks[3v1]", "Leader"}},
		{third, name[leash](leashes), false, 3, []string{"Holder"}},
		{third, name[memory](memories), false, 0, []string{"Last"}},
		{0, "selected", true, 0, []string{"It"}},
	}
	for seq := uint64(1); seq <= 2; seq++ {
		got, total, err := v.Referrers(background, e, seq, 10)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, 5, total)
		got, total, err = v.Referrers(background, e, seq, 2)
		require.NoError(t, err)
		require.Equal(t, want[:2], got)
		require.Equal(t, 5, total)
		want[0] = Referrer{third, want[0].Component, false, 0, []string{"Inner.To"}}
	}
	none, total, err := v.Referrers(background, ecs.NewEntity(4, 1), 2, 10)
	require.NoError(t, err)
	require.Empty(t, none)
	require.Zero(t, total)
	_, _, err = v.Referrers(background, e, 9, 10)
	require.ErrorIs(t, err, ErrNotFound)

	save := filepath.Join(t.TempDir(), "save")
	require.NoError(t, Save(background, save, w))
	got, _, err := viewOf(t, save).Referrers(background, e, 0, 10)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(want), fmt.Sprint(got))
}

func name[T any](s *ecs.Storage[T]) string { return s.Name() }
