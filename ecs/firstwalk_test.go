//go:build !race

package ecs

import "testing"

// The first loop over a query allocates memory for the query and its caches. For each chunk of
// rows, it allocates once if few rows match, and otherwise twice. With the race detector, the
// compiler allocates more on the heap.
func TestQuery_FirstLoopAllocations(t *testing.T) {
	// known is the number of allocations for the query and its caches, without those for chunks.
	const chunks, known = 3, 7
	for _, test := range []struct {
		name     string
		every    int // An entity has both components if its number is a multiple of every.
		perChunk float64
	}{{"few", 20, 1}, {"half", 2, 2}} {
		w, a, b, entities := members(chunks*chunkRows, Options{})
		b.Clear()
		for i, e := range w.CreateN(nil, len(entities)) {
			if i%test.every == 0 {
				e = entities[len(entities)-1-i]
			}
			b.Set(e, padded{})
		}
		got := testing.AllocsPerRun(5, func() { NewQuery2(Read(a), Read(b)).Count() })
		if want := known + float64(chunks*test.perChunk); got > want {
			t.Errorf("%s: the first loop makes %v allocations, want at most %v", test.name, got, want)
		}
	}
}
