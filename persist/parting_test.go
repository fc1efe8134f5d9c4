package persist_test

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// naiveDivergence compares the digests of all common ticks.
func naiveDivergence(t require.TestingT, v *inspect.View, a uint64, u *inspect.View, b uint64) (equal, first *inspect.CommonTick) {
	older, newer := naiveWay(t, v, a), naiveWay(t, u, b)
	for _, tick := range slices.Sorted(maps.Keys(older)) {
		o, n := older[tick], newer[tick]
		if n == nil {
			continue
		}
		c := &inspect.CommonTick{Tick: tick, Old: o.ID.Seq, New: n.ID.Seq}
		if o.Digest() != n.Digest() {
			return equal, c
		}
		equal = c
	}
	return equal, nil
}

// naiveWay returns the ancestors of a record, by their ticks. If several ancestors end the same
// tick, it returns the last of them.
func naiveWay(t require.TestingT, v *inspect.View, seq uint64) map[uint64]*image.Image {
	way := map[uint64]*image.Image{}
	for {
		im, err := v.Catalog().At(storetest.Background, seq)
		if err != nil {
			return way // Older ancestors are pruned.
		}
		if way[im.Tick] == nil {
			way[im.Tick] = im
		}
		e, ok := v.Log().Find(seq)
		if !ok {
			return way
		}
		seq = e.Parent
	}
}

func requireDivergence(t require.TestingT, v *inspect.View, a uint64, u *inspect.View, b uint64) *inspect.Divergence {
	d, err := v.FindDivergence(storetest.Background, a, u, b)
	require.NoError(t, err)
	equal, first := naiveDivergence(t, v, a, u, b)
	require.Equal(t, first, d.First)
	require.Equal(t, equal, d.Equal)
	return d
}

func TestFindDivergence_OfTwoBranches(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := storetest.NewSession(rt, 8)
		for range rapid.IntRange(1, 15).Draw(rt, "steps") {
			s.Step(rt)
		}
		v := s.View()
		defer v.Close()
		seqs := slices.Sorted(maps.Keys(s.States))
		requireDivergence(rt, v, rapid.SampledFrom(seqs).Draw(rt, "a"), v, rapid.SampledFrom(seqs).Draw(rt, "b"))
	})
}

// recorded creates a store of n ticks. For each tick it calls simulate with the tick's number.
func recorded(t *testing.T, n int, w *storetest.World, o persist.Options, simulate func(tick int)) *inspect.View {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	o.Sync = journal.SyncNever
	s := storetest.Open(t, dir, w, o)
	for tick := 1; tick <= n; tick++ {
		simulate(tick)
		require.NoError(t, s.Commit())
	}
	storetest.CloseStore(t, s)
	return storetest.Verified(t, dir)
}

func TestFindDivergence_OfTwoStores(t *testing.T) {
	t.Parallel()
	record := func(wrong int, o persist.Options) *inspect.View {
		w := storetest.New(0)
		return recorded(t, 12, w, o, func(tick int) {
			w.Fill(3)
			// Differences in NoRewind values do not count.
			w.Heat.Set(w.Entities()[0], storetest.Heat{Degrees: int32(wrong)})
			// This tick writes an equal value. The ticks differ, but the states are the same.
			if wrong > 0 && tick == 2 {
				w.Seed.Set(w.Seed.Get())
			}
			if tick == wrong || wrong > 0 && tick == wrong+1 {
				// Two ticks later, the value is correct again.
				w.Position.Mut(w.Entities()[1]).X++
			}
			if wrong > 0 && tick == wrong+2 {
				w.Position.Mut(w.Entities()[1]).X -= 2
			}
		})
	}
	right := record(0, persist.Options{})
	for _, wrong := range []int{1, 5, 12} {
		d := requireDivergence(t, right, right.Head(), record(wrong, persist.Options{SnapshotBytes: 500}), 12)
		require.Equal(t, uint64(wrong), d.First.Tick)
		require.Equal(t, 13, d.Compared)
	}
	d := requireDivergence(t, right, 12, record(0, persist.Options{SnapshotBytes: 500}), 7)
	require.Nil(t, d.First)
	require.Equal(t, uint64(7), d.Equal.Tick)
}

// MarkLast writes another record of the same tick. FindDivergence compares such a tick only once.
func TestFindDivergence_RepeatedTick(t *testing.T) {
	t.Parallel()
	record := func(marked bool) *inspect.View {
		w := storetest.New(0)
		dir := filepath.Join(t.TempDir(), "store")
		s := storetest.Open(t, dir, w, persist.Options{})
		for range 3 {
			w.Fill(1)
			require.NoError(t, s.Commit())
			if marked {
				require.NoError(t, s.MarkLast("here"))
			}
		}
		storetest.CloseStore(t, s)
		return storetest.Verified(t, dir)
	}
	plain, marked := record(false), record(true)
	require.Greater(t, marked.Head(), plain.Head())
	d := requireDivergence(t, plain, plain.Head(), marked, marked.Head())
	require.Nil(t, d.First)
	require.Equal(t, &inspect.CommonTick{Tick: 3, Old: plain.Head(), New: marked.Head()}, d.Equal)
	require.Equal(t, 4, d.Compared)
	d = requireDivergence(t, marked, marked.Head(), marked, marked.Head()-1)
	require.Equal(t, &inspect.CommonTick{Tick: 3, Old: marked.Head(), New: marked.Head() - 1}, d.Equal)
}

func TestFindDivergence_ComponentsDiffer(t *testing.T) {
	t.Parallel()
	record := func(order []string) *inspect.View {
		w := ecs.NewWorld(ecs.Options{})
		storages := map[string]*ecs.Storage[int64]{}
		for _, name := range order {
			storages[name] = ecs.MustRegister(w, ecs.Component[int64]{Name: name})
		}
		return recorded(t, 5, &storetest.World{World: w}, persist.Options{}, func(tick int) {
			e := w.Create()
			storages["A"].Set(e, int64(tick))
			storages["B"].Set(e, int64(tick/4))
		})
	}
	d := requireDivergence(t, record([]string{"A", "B"}), 5, record([]string{"B", "A"}), 5)
	require.Nil(t, d.First)
	other := ecs.NewWorld(ecs.Options{})
	a := ecs.MustRegister(other, ecs.Component[int64]{Name: "A"})
	c := ecs.MustRegister(other, ecs.Component[int64]{Name: "C"})
	d = requireDivergence(t, record([]string{"A", "B"}), 5, recorded(t, 5, &storetest.World{World: other}, persist.Options{}, func(tick int) {
		e := other.Create()
		a.Set(e, int64(tick))
		c.Set(e, int64(tick/4))
	}), 5)
	require.Equal(t, uint64(1), d.First.Tick)
}

func TestFindDivergence_NoCommonTick(t *testing.T) {
	t.Parallel()
	w := storetest.New(0)
	v := recorded(t, 3, w, persist.Options{}, func(int) { w.Fill(1) })
	u := storetest.New(0)
	for range 9 {
		u.Commit()
	}
	_, err := v.FindDivergence(storetest.Background, 3, recorded(t, 3, u, persist.Options{}, func(int) { u.Fill(1) }), 3)
	require.ErrorIs(t, err, persist.ErrNotFound)
}
