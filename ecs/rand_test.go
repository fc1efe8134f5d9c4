package ecs

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

func TestRand_SameAsPCG(t *testing.T) {
	for _, seeds := range [][2]uint64{{0, 0}, {1, 2}, {math.MaxUint64, math.MaxUint64}, {1 << 63, 12345}} {
		ours, theirs := Must(RegisterRand(NewWorld(Options{}), seeds[0], seeds[1])), rand.NewPCG(seeds[0], seeds[1])
		for i := range 1000 {
			if got, want := ours.Uint64(), theirs.Uint64(); got != want {
				t.Fatalf("number %d of seeds %d is %x, want %x", i, seeds, got, want)
			}
		}
	}
}

// The numbers are part of saves and replays, so they must never change.
func TestRand_NumbersNeverChange(t *testing.T) {
	r := Must(RegisterRand(NewWorld(Options{}), 1, 2))
	var ints [8]int
	for i := range ints {
		ints[i] = r.IntN(100)
	}
	if want := [8]int{76, 61, 78, 79, 23, 4, 49, 44}; ints != want {
		t.Errorf("IntN(100) gives %v, want %v", ints, want)
	}
	if got, want := r.Uint64N(1<<63+1), uint64(1224857707741206220); got != want {
		t.Errorf("Uint64N(1<<63+1) = %d, want %d", got, want)
	}
	if got, want := r.Float64(), 0.18373117632694602; got != want {
		t.Errorf("Float64() = %v, want %v", got, want)
	}
	order := [6]int{0, 1, 2, 3, 4, 5}
	r.Shuffle(6, func(i, j int) { order[i], order[j] = order[j], order[i] })
	if want := [6]int{1, 4, 0, 5, 2, 3}; order != want {
		t.Errorf("Shuffle gives %v, want %v", order, want)
	}
}

func TestRand_Distribution(t *testing.T) {
	r := Must(RegisterRand(NewWorld(Options{}), 7, 9))
	for _, n := range []int{1, 2, 3, 7, 64} {
		counts := make([]int, n)
		const draws = 10_000
		for range draws {
			counts[r.IntN(n)]++
		}
		for i, count := range counts {
			mean, spread := draws/float64(n), float64(5*math.Sqrt(draws/float64(n)))
			if math.Abs(float64(count)-mean) > spread {
				t.Errorf("IntN(%d) gave %d %d times of %d", n, i, count, draws)
			}
		}
	}
	// For this n, a third of all draws must be repeated to get a result below n.
	const n = math.MaxUint64/3*2 + 1
	low := 0
	for range 3000 {
		if v := r.Uint64N(n); v >= n {
			t.Fatalf("Uint64N(%d) = %d", uint64(n), v)
		} else if v < n/2 {
			low++
		}
		if f := r.Float64(); f < 0 || f >= 1 {
			t.Fatalf("Float64() = %v", f)
		}
	}
	if low < 1350 || low > 1650 {
		t.Errorf("%d of 3000 numbers are in the lower half", low)
	}
	mustPanic(t, "ecs: Rand.Uint64N(0)", func() { r.Uint64N(0) })
	mustPanic(t, "ecs: Rand.IntN of a number that is not positive", func() { r.IntN(0) })
	mustPanic(t, "ecs: Rand.IntN of a number that is not positive", func() { r.IntN(-3) })
}

func TestRand_RestoreRepeatsNumbers(t *testing.T) {
	w := NewWorld(Options{History: 3})
	checkAtEnd(t, w)
	r := Must(RegisterRand(w, 1, 2))
	loot := Must(RegisterRand(w, 1, 2, Component[Rand]{Name: "Loot"}))
	kept := rand.New(r)
	w.Commit()
	draw := func() (numbers [5]uint64) {
		for i := range numbers {
			switch i % 2 {
			case 0:
				numbers[i] = r.Uint64()
			case 1:
				numbers[i] = kept.Uint64()
			}
		}
		return numbers
	}
	first, digest := draw(), w.Digest()
	w.Commit()
	second := draw()
	if first == second || loot.Uint64() != first[0] {
		t.Error("the numbers repeat, or two sources share their state")
	}
	if err := w.History().Seek(1); err != nil {
		t.Fatal(err)
	}
	cp := w.Checkpoint()
	for range 2 {
		if got := draw(); got != first || w.Digest() != digest {
			t.Errorf("after going back: %x, want %x", got, first)
		}
		w.Restore(cp)
	}
	clone := w.Clone()
	if other := r.In(clone); other.Uint64() != first[0] || other.Uint64() != first[1] {
		t.Error("a clone draws other numbers")
	}
	if r.In(NewWorld(Options{})) != nil {
		t.Error("In finds a Rand in a world that has none")
	}
	if got := draw(); got != first {
		t.Error("a clone drew from its original")
	}
	r.Seed(1, 2)
	if got := draw(); got != first {
		t.Error("Seed does not begin anew")
	}
	if _, err := RegisterRand(w, 1, 2); err == nil {
		t.Error("a second Rand of the same name was registered")
	}
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, errName) {
			t.Errorf("Must panics with %v", err)
		}
	}()
	Must(RegisterRand(w, 1, 2))
}

func TestRand_Allocations(t *testing.T) {
	w := NewWorld(Options{History: 2})
	r := Must(RegisterRand(w, 1, 2))
	if n := allocations(t, 100, func() { r.IntN(6); r.Float64(); w.Commit() }); n > 0 {
		t.Errorf("%v allocations for two numbers and a commit", n)
	}
}

// The benchmark compares Rand with the PCG of the standard library.
func BenchmarkRand(b *testing.B) {
	w := NewWorld(Options{History: 2})
	r, pcg := Must(RegisterRand(w, 1, 2)), rand.NewPCG(1, 2)
	b.Run("world", func(b *testing.B) {
		for b.Loop() {
			r.Uint64()
		}
	})
	b.Run("pcg", func(b *testing.B) {
		for b.Loop() {
			pcg.Uint64()
		}
	})
}
