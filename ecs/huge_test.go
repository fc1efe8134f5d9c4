package ecs

import (
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

// hugeWorld creates n entities like CreateN, but without the slice that CreateN returns. A hundred
// million entities take 1.2 GB.
func hugeWorld(n int) *World {
	w := NewWorld(Options{})
	w.entities.rows.Open()
	w.entities.extend(n)
	return w
}

// hugeMembers returns indices below n for the test. Some are next to a border of a word, a page or
// a larger region. A hundred indices are in one or two pages. A hundred other indices have the same
// position in different pages.
func hugeMembers(n int) (indices []uint32) {
	for _, border := range []int{0, 64, track.PageSize, 1 << 18, 1 << 24, 1 << 26, n} {
		for i := max(0, border-2); i < min(n, border+2); i++ {
			indices = append(indices, uint32(i))
		}
	}
	for i := range 100 {
		indices = append(indices, uint32(n/2+3*i), uint32(n-track.PageSize*(50+3*i)))
	}
	slices.Sort(indices)
	return slices.Compact(indices)
}

// This test is not parallel, because it needs much memory.
func TestWorld_HundredMillionIndices(t *testing.T) {
	if testing.Short() || debug {
		t.Skip("it takes 1.3 GB, and a debug build copies all of that")
	}
	const n = 100_000_000
	defer runtime.GC() // Frees the memory before later tests allocate theirs.
	w := hugeWorld(n)
	var storages []*Storage[plain]
	for _, k := range []Kind{Sparse, Hashed, Ordered} {
		storages = append(storages, MustRegister(w, Component[plain]{Kind: k, Name: k.String()}))
	}
	own := w.NewMask()
	indices := hugeMembers(n)
	for k, i := range indices {
		e, alive := w.EntityAt(i)
		require.True(t, alive)
		for _, s := range storages {
			s.Set(e, plain{int32(k), int32(i)})
		}
		own.Add(i)
	}
	check := func() {
		t.Helper()
		require.Equal(t, indices, slices.Collect(own.Indices()))
		require.Equal(t, indices, slices.Collect(own.And(storages[2].Mask(), w.AliveBits()).Indices()))
		for _, s := range storages {
			require.Equal(t, len(indices), s.Len())
			for k, i := range indices {
				e, _ := w.EntityAt(i)
				v, ok := s.Get(e)
				require.True(t, ok)
				require.Equal(t, plain{int32(k), int32(i)}, v)
			}
		}
		all := NewQuery3(Read(storages[0]), Read(storages[1]), Read(storages[2]))
		require.Equal(t, len(indices), all.Count())
	}
	check()

	cp := w.Checkpoint()
	for k, i := range indices {
		e, _ := w.EntityAt(i)
		if k%2 == 0 {
			w.Destroy(e)
			own.Remove(i)
			e = w.Create()
		}
		for _, s := range storages {
			s.Set(e, plain{-1, -1})
		}
	}
	require.Equal(t, uint32(2), w.Entities()[n-1].Generation())
	storages[0].Clear()
	own.Clear()
	w.Restore(cp)
	check()
	require.Equal(t, n, w.Len())

	m := w.MemoryUsage()
	t.Logf("%d MB; storages: %+v", m.Total()>>20, m.Storages)
	require.Less(t, m.Storages[1].Sparse, int64(4<<20))
	require.Less(t, m.Total(), int64(2<<30))
}
