//go:build !race

package ecs

import "testing"

// The first walk of a query allocates the query, its caches, and once or twice for each chunk. With
// the race detector, the compiler moves more to the heap.
func TestQuery_FirstWalkAllocations(t *testing.T) {
	// known counts the query, its columns and sets, the cache by driver, the list of handled notes,
	// a cursor, and the chunks.
	const chunks, known = 3, 7
	for _, test := range []struct {
		name     string
		every    int // One in so many entities has both components.
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
			t.Errorf("%s: the first walk makes %v allocations, want at most %v", test.name, got, want)
		}
	}
}
