package main

import (
	"iter"
	"maps"
	"slices"
	"testing"
)

// referenceStep is a direct implementation of the rule, for comparison with faster code. A living
// cell stays alive with two or three living neighbours. A dead cell becomes alive with three living
// neighbours. The keys of the map are the living cells.
func referenceStep(cells map[Cell]bool) map[Cell]bool {
	neighbours := make(map[Cell]uint8, 4*len(cells))
	for cell := range cells {
		for dy := int32(-1); dy <= 1; dy++ {
			for dx := int32(-1); dx <= 1; dx++ {
				if dx != 0 || dy != 0 {
					neighbours[Cell{X: cell.X + dx, Y: cell.Y + dy}]++
				}
			}
		}
	}
	next := make(map[Cell]bool, len(cells))
	for cell, n := range neighbours {
		if n == 3 || n == 2 && cells[cell] {
			next[cell] = true
		}
	}
	return next
}

// generations yields the generations of the pattern called name, from generation 0 on.
func generations(t *testing.T, name string) iter.Seq2[int, map[Cell]bool] {
	t.Helper()
	pattern, err := LoadPattern(name)
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(int, map[Cell]bool) bool) {
		cells := cellSet(pattern.Cells)
		for generation := 0; yield(generation, cells); generation++ {
			cells = referenceStep(cells)
		}
	}
}

func cellSet(cells []Cell) map[Cell]bool {
	set := make(map[Cell]bool, len(cells))
	for _, cell := range cells {
		set[cell] = true
	}
	return set
}

// withoutGliders returns the cells that are not part of a glider, as Gliders counts them.
func withoutGliders(cells map[Cell]bool) map[Cell]bool {
	rest := make(map[Cell]bool, len(cells))
	for object := range objects(maps.Keys(cells)) {
		if isGlider(object) {
			continue
		}
		for _, cell := range object {
			rest[cell] = true
		}
	}
	return rest
}

func TestReferenceStep_FollowsConwaysRule(t *testing.T) {
	tests := []struct {
		name       string
		body, next string
		nextAt     Cell
	}{
		{name: "nothing", body: "b!", next: "b!"},
		{name: "one cell dies", body: "o!", next: "b!"},
		{name: "two cells die", body: "2o!", next: "b!"},
		{name: "a blinker turns", body: "3o!", next: "o$o$o!", nextAt: Cell{X: 1, Y: -1}},
		{name: "three make a block", body: "2o$o!", next: "2o$2o!"},
		{name: "a block stays", body: "2o$2o!", next: "2o$2o!"},
		{name: "four neighbours kill", body: "obo$bo$obo!", next: "bo$obo$bo!"},
		{name: "a glider goes on", body: "bo$2bo$3o!", next: "obo$b2o$bo!", nextAt: Cell{X: 0, Y: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := make(map[Cell]bool)
			for _, cell := range mustParse(t, tt.next).Cells {
				want[Cell{X: cell.X + tt.nextAt.X, Y: cell.Y + tt.nextAt.Y}] = true
			}
			got := referenceStep(cellSet(mustParse(t, tt.body).Cells))
			if !maps.Equal(got, want) {
				t.Errorf("referenceStep(%s) = %v, want %v", tt.body, got, want)
			}
		})
	}
}

// TestMethuselahs_PublishedGenerations follows long-lived patterns to their end. A pattern has
// settled when its cells, except escaping gliders, repeat every second generation.
func TestMethuselahs_PublishedGenerations(t *testing.T) {
	const watched = 40 // The number of generations that are checked after settling.
	tests := []struct {
		pattern    string
		generation int
		population int
		gliders    int
	}{
		{pattern: "r-pentomino", generation: 1103, population: 116, gliders: 6},
		{pattern: "acorn", generation: 5206, population: 633, gliders: 13},
	}
	for _, tt := range tests {
		t.Run(tt.pattern, func(t *testing.T) {
			t.Parallel()
			rest := make(map[int]map[Cell]bool)
			for generation, cells := range generations(t, tt.pattern) {
				if generation < tt.generation-1 {
					continue
				}
				if generation > tt.generation+watched {
					break
				}
				rest[generation] = withoutGliders(cells)
				if generation < tt.generation {
					continue
				}
				if len(cells) != tt.population {
					t.Errorf("generation %d: population = %d, want %d", generation, len(cells), tt.population)
				}
				if got := Gliders(maps.Keys(cells)); got != tt.gliders {
					t.Errorf("generation %d: Gliders = %d, want %d", generation, got, tt.gliders)
				}
			}
			if maps.Equal(rest[tt.generation-1], rest[tt.generation+1]) {
				t.Errorf("settled before generation %d", tt.generation)
			}
			for g := tt.generation; g+2 <= tt.generation+watched; g++ {
				if !maps.Equal(rest[g], rest[g+2]) {
					t.Errorf("generations %d and %d differ in more than gliders", g, g+2)
				}
			}
		})
	}
}

// TestRPentomino_PublishedFinalObjects compares the populations of the final objects, except
// gliders, with the published list.
func TestRPentomino_PublishedFinalObjects(t *testing.T) {
	want := []int{
		3, 3, 3, 3, // Blinkers.
		4, 4, 4, 4, 4, 4, 4, 4, // Blocks.
		5,          // Boat.
		6, 6, 6, 6, // Beehives.
		6, // Ship.
		7, // Loaf.
	}
	for generation, cells := range generations(t, "r-pentomino") {
		if generation < 1103 {
			continue
		}
		var got []int
		for object := range objects(maps.Keys(withoutGliders(cells))) {
			got = append(got, len(object))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("populations of objects = %v, want %v", got, want)
		}
		return
	}
}

func TestGosperGun_RepeatsWithPeriod(t *testing.T) {
	const period, shots = 30, 20
	var gun map[Cell]bool
	for generation, cells := range generations(t, "gosper-gun") {
		if generation == 0 {
			gun = cells
		}
		if generation > shots*period {
			break
		}
		isGun := maps.Equal(withoutGliders(cells), gun)
		fired, phase := generation/period, generation%period
		if phase != 0 {
			if isGun {
				t.Errorf("generation %d: the gun repeats after less than %d generations", generation, period)
			}
			continue
		}
		if got, want := len(cells), 36+5*fired; got != want {
			t.Errorf("generation %d: population = %d, want %d", generation, got, want)
		}
		if got := Gliders(maps.Keys(cells)); got != fired {
			t.Errorf("generation %d: Gliders = %d, want %d", generation, got, fired)
		}
		if !isGun {
			t.Errorf("generation %d: the gun differs from generation 0", generation)
		}
	}
}
