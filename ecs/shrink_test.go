package ecs

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func memoryOf(w *World) int64 {
	m := w.MemoryUsage()
	return m.Total()
}

func TestShrink_ReleasesMemory(t *testing.T) {
	type wide struct {
		A [4]int64
		S []int
	}
	for _, kind := range []Kind{Sparse, Indexed, Hashed, Ordered} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			w := NewWorld(Options{History: 4})
			s := MustRegister(w, Component[wide]{Kind: kind, Masked: true})
			es := w.CreateN(nil, 100_000)
			s.SetAll(es, wide{S: []int{1}})
			w.Commit()
			cp := w.Checkpoint()
			for i, values := 0, s.MutValues(); i < len(values); i++ {
				values[i].A[0]++
			}
			s.RemoveAll(es[500:])
			w.DestroyAll(es[600:])
			full, after := memoryOf(w), w.Digest()
			w.Shrink() // Shrink must keep the rows that the checkpoint needs.
			require.Equal(t, after, w.Digest())
			w.Restore(cp)
			require.Equal(t, 100_000, s.Len())
			w.Shrink()
			s.RemoveAll(es[500:])
			w.DestroyAll(es[600:])
			w.Release(cp)
			for range 6 {
				s.Mut(es[3]).A[1]++
				w.Commit()
			}
			after, ticks := w.Digest(), slices.Collect(w.History().Ticks())
			w.Shrink()
			small := memoryOf(w)
			t.Logf("%d bytes with 100,000 rows saved, %d for 500 rows after Shrink", full, small)
			// In an Indexed storage, the rows extend to the highest used index. So Shrink frees
			// less memory.
			if kind != Indexed {
				full = full * 2 / 5
			}
			require.Less(t, small, full/2)
			require.Equal(t, after, w.Digest())
			require.Equal(t, ticks, slices.Collect(w.History().Ticks()))
			require.NoError(t, w.History().Rewind(3))
			w.Shrink() // Shrink must keep the undone ticks.
			require.NoError(t, w.History().Seek(7))
			require.Equal(t, after, w.Digest())
			require.NoError(t, w.check())
			for _, e := range w.CreateN(nil, 5000) {
				s.Set(e, wide{})
			}
			require.Equal(t, 5500, s.Len())
			require.NoError(t, w.check())
		})
	}
}

func TestShrink_SameAsModel(t *testing.T) {
	t.Parallel()
	shrink := operation{"shrink", func(p *model) bool { p.w.Shrink(); return true }}
	for _, k := range []kind{listKind, gapKind, hashedKind, orderedKind} {
		s := modelOptions{kinds: []kind{k}, entities: 2, members: 2, history: 2, record: true}
		explore(t, s, operations(shrink, destroys(1), removes(0, 1), adds(0, 2), writes(0, 1), ticks(), checkpoints(1)), *depth)
	}
}

// After a rewind, the rows of the undone ticks are in memory after the rows in use. They are in no
// log. Shrink must keep them, because Seek needs them.
func TestShrink_KeepsUndoneTicks(t *testing.T) {
	for kind := range Ordered + 1 {
		if kind == Tag {
			continue
		}
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			w := NewWorld(Options{History: 4})
			s := MustRegister(w, Component[uint64]{Name: "n", Kind: kind})
			w.Commit()
			for i, e := range w.CreateN(nil, 1000) {
				s.Set(e, uint64(i))
			}
			w.Commit()
			after := w.Digest()
			require.NoError(t, w.History().Rewind(1))
			w.Shrink()
			require.NoError(t, w.check())
			require.NoError(t, w.History().Seek(2))
			require.Equal(t, after, w.Digest())
			require.NoError(t, w.check())
		})
	}
}
