package main

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/ecs"
)

// newLife returns the built-in pattern called name at generation 0.
func newLife(t *testing.T, name string, history int) *Life {
	t.Helper()
	pattern, err := LoadPattern(name)
	if err != nil {
		t.Fatal(err)
	}
	life := NewLife(history)
	life.Place(pattern)
	return life
}

// runTo runs to the given generation in memory.
func runTo(t *testing.T, life *Life, generation uint64) {
	t.Helper()
	if err := life.RunTo(t.Context(), generation, life.Commit); err != nil {
		t.Fatal(err)
	}
}

// checkCells compares the living cells of a world with the cells of the reference, and checks the
// invariants of the world.
func checkCells(t *testing.T, life *Life, want map[Cell]bool) {
	t.Helper()
	got := make(map[Cell]bool)
	for e, cell := range life.cells.All() {
		if got[cell] {
			t.Fatalf("%v: two cells at %v", life, cell)
		}
		got[cell] = true
		age, ok := life.ages.Get(e)
		if !ok || uint64(age) > life.Generation() {
			t.Fatalf("%v: the cell at %v has age %d, %v", life, cell, age, ok)
		}
	}
	if !maps.Equal(got, want) {
		t.Fatalf("%v: cells %v, want %v", life, got, want)
	}
	if life.World.Len() != len(want) || life.ages.Len() != len(want) {
		t.Fatalf("%v: %d entities with %d ages, want %d", life, life.World.Len(), life.ages.Len(), len(want))
	}
}

func TestLife_EqualsReference(t *testing.T) {
	const closely = 200
	tests := []struct {
		pattern    string
		generation int
		population int
		gliders    int
	}{
		{pattern: "r-pentomino", generation: 1103, population: 116, gliders: 6},
		{pattern: "acorn", generation: 5206, population: 633, gliders: 13},
		{pattern: "gosper-gun", generation: 600, population: 36 + 5*20, gliders: 20},
	}
	for _, tt := range tests {
		t.Run(tt.pattern, func(t *testing.T) {
			t.Parallel()
			life := newLife(t, tt.pattern, 0)
			for generation, want := range generations(t, tt.pattern) {
				runTo(t, life, uint64(generation))
				if generation <= closely || generation == tt.generation {
					checkCells(t, life, want)
				}
				if generation == tt.generation {
					break
				}
			}
			if got := life.Population(); got != tt.population {
				t.Errorf("generation %d: Population() = %d, want %d", tt.generation, got, tt.population)
			}
			if got := life.Gliders(); got != tt.gliders {
				t.Errorf("generation %d: Gliders() = %d, want %d", tt.generation, got, tt.gliders)
			}
		})
	}
}

// TestLife_EqualRuns fails if the random order of a Go map affects the world.
func TestLife_EqualRuns(t *testing.T) {
	first, second := newLife(t, "r-pentomino", 0), newLife(t, "r-pentomino", 0)
	for generation := range uint64(300) {
		runTo(t, first, generation)
		runTo(t, second, generation)
		if first.World.Digest() != second.World.Digest() {
			t.Fatalf("%v, in another run %v", first, second)
		}
	}
}

func TestLife_RunAfterRewindIsEqual(t *testing.T) {
	life := newLife(t, "r-pentomino", 100)
	digests := []ecs.Digest{life.World.Digest()}
	for generation := uint64(1); generation <= 150; generation++ {
		runTo(t, life, generation)
		digests = append(digests, life.World.Digest())
	}
	for _, back := range []int{1, 7, 100} {
		if err := life.World.History().Rewind(back); err != nil {
			t.Fatal(err)
		}
		for generation := 150 - back; generation <= 150; generation++ {
			runTo(t, life, uint64(generation))
			if got, want := life.World.Digest(), digests[generation]; got != want {
				t.Fatalf("%d back, generation %d: digest %v, want %v", back, generation, got, want)
			}
		}
	}
}

func TestTally_BirthsMinusDeaths(t *testing.T) {
	life := newLife(t, "gosper-gun", 0)
	runTo(t, life, 120)
	tally := life.tally.Get()
	if got, want := 36+int(tally.Births)-int(tally.Deaths), life.Population(); got != want {
		t.Errorf("36 cells and %+v make %d, want the population of %d", tally, got, want)
	}
}

func TestAge_CellsOfBlinker(t *testing.T) {
	life := NewLife(0)
	// The pattern is a blinker, whose centre stays alive.
	life.Place(&Pattern{Cells: []Cell{{0, 1}, {1, 1}, {2, 1}}})
	runTo(t, life, 5)
	ages := slices.Sorted(slices.Values(life.ages.Values()))
	if want := []Age{0, 0, 5}; !slices.Equal(ages, want) {
		t.Errorf("ages of a blinker after 5 generations = %v, want %v", ages, want)
	}
}

func TestOrigin_DiffersByPattern(t *testing.T) {
	patterns := []*Pattern{
		{Name: "One", Rule: conwayRule},
		{Name: "One", Rule: conwayRule, Cells: []Cell{{0, 0}}},
		{Name: "One", Rule: conwayRule, Cells: []Cell{{0, 1}}},
		{Name: "Two", Rule: conwayRule, Cells: []Cell{{0, 1}}},
	}
	for i, first := range patterns {
		for k, second := range patterns {
			a, b := NewLife(0), NewLife(9)
			a.Place(first)
			b.Place(second)
			if same := a.origin.Get() == b.origin.Get(); same != (i == k) {
				t.Errorf("origins of %+v and %+v are the same: %v", first, second, same)
			}
		}
	}
}

// TestStep_GliderAtBorder runs a glider to each corner of the plane. The glider must not continue
// at the opposite border.
func TestStep_GliderAtBorder(t *testing.T) {
	for _, towards := range []Cell{{1, 1}, {1, -1}, {-1, 1}, {-1, -1}} {
		var pattern Pattern
		for _, cell := range glider(-1, -1) {
			pattern.Cells = append(pattern.Cells, Cell{
				X: towards.X * (math.MaxInt32 - 20 + cell.X),
				Y: towards.Y * (math.MaxInt32 - 20 + cell.Y),
			})
		}
		life := NewLife(0)
		life.Place(&pattern)
		err := life.RunTo(t.Context(), 200, life.Commit)
		if err == nil || !strings.Contains(err.Error(), "border of the plane") {
			t.Fatalf("a glider towards %v: RunTo = %v, want an error about the border", towards, err)
		}
		if got := life.Generation(); got < 60 || got > 90 {
			t.Errorf("a glider towards %v stopped at generation %d, want 60 to 90", towards, got)
		}
		if got := life.Gliders(); got != 1 {
			t.Errorf("a glider towards %v: Gliders() = %d at the border, want 1", towards, got)
		}
		before := life.World.Digest()
		if err := life.Step(); err == nil || life.World.Digest() != before {
			t.Errorf("a glider towards %v: Step at the border = %v and digest %v, want an error and %v", towards, err, life.World.Digest(), before)
		}
	}
}
