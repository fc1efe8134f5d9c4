package storetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// WildView returns a view of a store that a random program of this seed wrote. It has groups,
// sorts, clears, rewinds, components of all kinds, snapshots that share pages, and an opening at an
// older record.
func WildView(t testing.TB, seed uint64) *inspect.View {
	rng := rand.New(rand.NewPCG(seed, 61))
	dir := filepath.Join(t.TempDir(), "store")
	for round := range 2 {
		w := NewGroupedWorld(8)
		at := ""
		if round > 0 {
			at = fmt.Sprint("record:", 3+rng.IntN(3))
		}
		s := Open(t, dir, w, persist.Options{At: at, Sync: journal.SyncNever, SnapshotBytes: 4000})
		for n := range 14 {
			w.Do(RandomActions(rng, 6)...)
			w.Sort(rng.Uint32N(12))
			for range 3 {
				w.Chase.Set(w.pick(rng.Uint32()), Chase{w.pick(rng.Uint32()), 1})
			}
			w.ReleaseAll()
			require.NoError(t, s.Commit())
			if rng.IntN(4) == 0 {
				_ = w.History().Rewind(1 + rng.IntN(2))
			}
			if n == 6 {
				SnapshotOf(t, s)
			}
		}
		CloseStore(t, s)
	}
	return ViewOf(t, dir)
}

// ViewOf opens a store or a save until the test ends.
func ViewOf(t testing.TB, path string) *inspect.View {
	t.Helper()
	v, err := inspect.OpenReadOnly(Background, path)
	require.NoError(t, err)
	t.Cleanup(func() { v.Close() })
	return v
}

// SeqsOf returns 0 and the records of v.
func SeqsOf(v *inspect.View) []uint64 {
	seqs := []uint64{0}
	for _, e := range v.Log().Entries {
		seqs = append(seqs, e.ID.Seq)
	}
	return seqs
}

// Lives returns all entities that are alive in any state of v, some entities that never existed,
// and the entity that stands for the world.
func Lives(t testing.TB, v *inspect.View) []ecs.Entity {
	t.Helper()
	list := []ecs.Entity{0, ecs.NewEntity(0, 1000), ecs.NewEntity(1000, 1), ecs.Vacant}
	for _, seq := range SeqsOf(v) {
		list = append(list, ImageAt(t, v, seq).Registry...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// ImageAt returns the state after a record, with the fields that package image documents.
func ImageAt(t testing.TB, v *inspect.View, seq uint64) *image.Image {
	t.Helper()
	im, err := v.At(Background, seq)
	require.NoError(t, err)
	return im.Internal()
}

// PeekedAt returns the expected result of Peek, computed from the whole state.
func PeekedAt(t testing.TB, im *image.Image, e ecs.Entity) *inspect.EntityState {
	t.Helper()
	isWorld := e == ecs.None || e == ecs.Vacant
	if isWorld {
		e = ecs.None
	}
	s := &inspect.EntityState{
		Entity: e, Seq: im.ID.Seq, Tick: im.Tick, Alive: im.IsAlive(e), Row: -1,
		Living: im.Alive, Free: im.Free, Indices: len(im.Registry),
	}
	for row, holder := range im.Registry {
		if holder.Index() == e.Index() && !isWorld {
			s.Row, s.Holder = row, holder
		}
	}
	for _, c := range im.Components {
		p := inspect.EntityComponent{Name: c.Name, Layout: c.Layout, Resource: c.Resource, Row: -1}
		if row := slices.Index(c.Entities, e); row >= 0 && !isWorld {
			p.Row, p.Value = row, ValueOf(t, c, row)
		}
		if c.Resource && isWorld && c.Len() > 0 {
			p.Row, p.Value = 0, ValueOf(t, c, 0)
		}
		s.Components = append(s.Components, p)
	}
	return s
}

// ValueOf returns the value in a row.
func ValueOf(t testing.TB, c *image.Component, row int) layout.Value {
	t.Helper()
	v, err := c.Value(row)
	require.NoError(t, err)
	return v
}

// NewGroupedWorld returns a world with two groups. One of them has a component that is not saved.
func NewGroupedWorld(history int) *World {
	w := New(history)
	w.Groups()
	return w
}

// Groups returns the groups of w, and creates them first.
func (w *World) Groups() (saved, partly *ecs.Group) {
	return ecs.Must(w.NewGroup(w.Position, w.Body)), ecs.Must(w.NewGroup(w.Sprite, w.Bag, w.Frozen))
}

// Sort sorts one of the storages.
func (w *World) Sort(n uint32) {
	switch n % 5 {
	case 0:
		w.Position.SortFunc(func(a, b Position) int { return cmp.Compare(a.X, b.X) })
	case 1:
		w.Body.SortEntities(func(a, b ecs.Entity) int { return cmp.Compare(b.Index(), a.Index()) })
	case 2:
		w.Frozen.SortLike(w.Position)
	case 3:
		w.Heat.SortLike(w.Body)
	case 4:
		w.Align(w.Sprite, w.Body, w.Heat, w.Position)
	}
}
