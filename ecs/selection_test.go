package ecs

import (
	"math/rand/v2"
	"testing"
)

func TestSelection_SameAsMap(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var s selection
		// The selection grows and shrinks between rounds. clear must remove all positions of the
		// round before.
		for range 4 {
			n := rng.IntN([]int{1, 70, 5000, 300_000}[rng.IntN(4)]) + 1
			s.clear(n)
			want := map[int]bool{}
			for range rng.IntN(1 + min(n, 200)) {
				p := rng.IntN(n)
				s.add(p)
				want[p] = true
			}
			for range 300 {
				p := rng.IntN(n)
				if s.has(p) != want[p] {
					t.Fatalf("seed %d: has(%d) of %d is %v", seed, p, n, s.has(p))
				}
				word := uint64(0)
				for i := range 64 {
					if want[p+i] {
						word |= 1 << i
					}
				}
				if got := s.from(p); got != word {
					t.Fatalf("seed %d: from(%d) of %d is %x, want %x", seed, p, n, got, word)
				}
				next := -1
				for q := range want {
					if w := q >> 6; w >= p>>6 && (next < 0 || w < next) {
						next = w
					}
				}
				if got := s.nextWord(p >> 6); got != next {
					t.Fatalf("seed %d: nextWord(%d) of %d is %d, want %d", seed, p>>6, n, got, next)
				}
			}
			if got := s.from(n + 5000); got != 0 || s.nextWord(n>>6+1) != -1 {
				t.Fatalf("seed %d: positions after %d are selected", seed, n)
			}
		}
	}
}
