package persist

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/journal"
	"github.com/stretchr/testify/require"
)

// wildView is a view of a store that a random program of this seed left: with
// groups, sorts, clears, rewinds, components of all kinds, snapshots that share
// pages, and an opening at an older record.
func wildView(t testing.TB, seed uint64) *View {
	rng := rand.New(rand.NewPCG(seed, 61))
	dir := filepath.Join(t.TempDir(), "store")
	for round := range 2 {
		w := newGroupedWorld(8)
		at := ""
		if round > 0 {
			at = fmt.Sprint("seq:", 3+rng.IntN(3))
		}
		s := open(t, dir, w, Options{At: at, Sync: journal.SyncNever(), SnapshotBytes: 4000})
		for n := range 14 {
			w.do(randomActions(rng, 6)...)
			w.sort(rng.Uint32N(12))
			for range 3 {
				w.chase.Set(w.pick(rng.Uint32()), chase{w.pick(rng.Uint32()), 1})
			}
			w.releaseAll()
			require.NoError(t, s.Commit())
			if rng.IntN(4) == 0 {
				_ = w.History().Rewind(1 + rng.IntN(2))
			}
			if n == 6 {
				snapshotOf(t, s)
			}
		}
		closeStore(t, s)
	}
	return viewOf(t, dir)
}

func viewOf(t testing.TB, path string) *View {
	t.Helper()
	v, err := OpenReadOnly(background, path)
	require.NoError(t, err)
	t.Cleanup(func() { v.Close() })
	return v
}

// seqsOf returns 0 and the records of v.
func seqsOf(v *View) []uint64 {
	seqs := []uint64{0}
	for _, e := range v.Log().Entries {
		seqs = append(seqs, e.ID.Seq)
	}
	return seqs
}

// lives returns all entities that are alive in any state of v, and some that never
// were.
func lives(t testing.TB, v *View) []ecs.Entity {
	t.Helper()
	list := []ecs.Entity{0, ecs.NewEntity(0, 1000), ecs.NewEntity(1000, 1), ecs.Vacant}
	for _, seq := range seqsOf(v) {
		list = append(list, imageAt(t, v, seq).Registry...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func imageAt(t testing.TB, v *View, seq uint64) *Image {
	t.Helper()
	im, err := v.At(background, seq)
	require.NoError(t, err)
	return im
}

// peekedAt is what Peek is to return, worked out from the whole state.
func peekedAt(t testing.TB, im *Image, e ecs.Entity) *EntityState {
	t.Helper()
	s := &EntityState{
		Entity: e, Seq: im.ID.Seq, Tick: im.Tick, Alive: im.IsAlive(e), Row: -1,
		Living: im.Alive, Free: im.Free, Indices: len(im.Registry),
	}
	for row, holder := range im.Registry {
		if holder.Index() == e.Index() {
			s.Row, s.Holder = row, holder
		}
	}
	for _, c := range im.Components {
		p := EntityComponent{Name: c.Name, Layout: c.Layout, Resource: c.Resource, Row: -1}
		if row := slices.Index(c.Entities, e); row >= 0 && e != ecs.Vacant {
			p.Row, p.Value = row, valueOf(t, c, row)
		}
		s.Components = append(s.Components, p)
	}
	return s
}

func valueOf(t testing.TB, c *Component, row int) layout.Value {
	t.Helper()
	v, err := c.Value(row)
	require.NoError(t, err)
	return v
}

// newGroupedWorld returns a world whose components are in two groups, one of
// them with a component that is not saved.
func newGroupedWorld(history int) *testWorld {
	w := newTestWorld(history)
	w.groups()
	return w
}

func (w *testWorld) groups() (saved, partly *ecs.Group) {
	return ecs.MustNewGroup(w.position, w.body), ecs.MustNewGroup(w.sprite, w.bag, w.frozen)
}

// sort puts one of the storages in order.
func (w *testWorld) sort(n uint32) {
	switch n % 4 {
	case 0:
		w.position.SortFunc(func(a, b position) int { return cmp.Compare(a.X, b.X) })
	case 1:
		w.body.SortEntities(func(a, b ecs.Entity) int { return cmp.Compare(b.Index(), a.Index()) })
	case 2:
		w.frozen.SortLike(w.position)
	case 3:
		w.heat.SortLike(w.body)
	}
}

// openedReadOnly is OpenReadOnly of something that the test expects to be there.
func openedReadOnly(t testing.TB, path string) *View {
	t.Helper()
	v, err := OpenReadOnly(background, path)
	require.NoError(t, err)
	t.Cleanup(func() { v.Close() })
	return v
}
