package ecs

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A chunk can store its rows as a list. After many updates, the list must have the same rows as a
// map with the same updates.
func TestChunk_ListOfRowsSameAsMap(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		rows, c := map[int]uint32{}, chunk{list: true, n: rng.IntN(chunkRows)}
		c.order = make([]uint32, listRoom(0))
		c.rows[1] = make([]uint32, listRoom(0))
		span := 1 + rng.IntN(chunkRows) // Number of positions that the test changes.
		for step := range 300 {
			i, found := rng.IntN(span), rng.IntN(3) > 0
			// Choose a position that is already in the list.
			if found && rng.IntN(2) == 0 && len(rows) > 0 {
				i = int(c.order[rng.IntN(c.many)])
			}
			at := []uint32{1: rng.Uint32()}
			_, there := rows[i]
			full := found && !there && len(rows) >= max(c.n, i+1)/listRatio
			if ok := c.updateList(i, found, at); ok == full {
				t.Fatalf("seed %d, step %d: updateList(%d, %v) = %v with %d of %d", seed, step, i, found, ok, len(rows), c.n)
			}
			if delete(rows, i); found && !full {
				rows[i] = at[1]
			}
			for p := rng.IntN(64); p <= chunkRows; p += 1 + rng.IntN(800) {
				before := 0
				for at := range rows {
					if at < p {
						before++
					}
				}
				if got := c.before(p); got != before {
					t.Fatalf("seed %d, step %d: before(%d) = %d, want %d", seed, step, p, got, before)
				}
			}
			checkList(t, &c, rows, seed)
		}
	}
}

// checkList fails the test unless c has exactly the given rows, in ascending order of positions.
func checkList(t *testing.T, c *chunk, rows map[int]uint32, seed uint64) {
	t.Helper()
	if c.many != len(rows) || !slices.IsSorted(c.order[:c.many]) {
		t.Fatalf("seed %d: the list has %v, want %v", seed, c.order[:c.many], rows)
	}
	for k, i := range c.order[:c.many] {
		if row, ok := rows[int(i)]; !ok || row != c.rows[1][k] {
			t.Fatalf("seed %d: position %d has row %d, want %d", seed, i, c.rows[1][k], row)
		}
	}
	if len(c.order) < c.many+64 || len(c.rows[1]) < c.many+64 {
		t.Fatalf("seed %d: a list of %d has capacity %d", seed, c.many, len(c.order))
	}
}
