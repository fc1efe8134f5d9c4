package main

import (
	"maps"
	"math"
	"slices"
	"testing"
)

// glider returns the cells of a glider with its upper left corner at (x, y).
func glider(x, y int32) []Cell {
	return []Cell{{x + 1, y}, {x + 2, y + 1}, {x, y + 2}, {x + 1, y + 2}, {x + 2, y + 2}}
}

// flies reports whether cells have moved by one cell along a diagonal after four generations. Of
// all shapes in a box of 3 by 3, only gliders do that.
func flies(cells []Cell) bool {
	later := cellSet(cells)
	for range 4 {
		later = referenceStep(later)
	}
	for _, move := range []Cell{{-1, -1}, {-1, 1}, {1, -1}, {1, 1}} {
		moved := make(map[Cell]bool)
		for _, cell := range cells {
			moved[Cell{cell.X + move.X, cell.Y + move.Y}] = true
		}
		if maps.Equal(later, moved) {
			return true
		}
	}
	return false
}

func TestIsGlider_AllShapes(t *testing.T) {
	gliders := 0
	for s := shape(1); s < 1<<9; s++ {
		cells := s.cells()
		want := flies(cells)
		if want {
			gliders++
		}
		if got := isGlider(cells); got != want {
			t.Errorf("isGlider(%v) = %v, want %v", cells, got, want)
		}
	}
	if gliders != 16 || len(gliderShapes) != 16 {
		t.Errorf("%d shapes fly and %d are listed, want 16 of both", gliders, len(gliderShapes))
	}
}

// TestGliders_CellNearGlider puts one cell at each position around a glider.
func TestGliders_CellNearGlider(t *testing.T) {
	for y := int32(-6); y <= 8; y++ {
		for x := int32(-6); x <= 8; x++ {
			other := Cell{x, y}
			nearest := int32(math.MaxInt32)
			for _, cell := range glider(0, 0) {
				nearest = min(nearest, max(abs(cell.X-x), abs(cell.Y-y)))
			}
			want := 0
			// At distance 0, the cell is one of the glider's cells.
			if nearest == 0 || nearest > 2 {
				want = 1
			}
			cells := append(glider(0, 0), other)
			if got := Gliders(slices.Values(cells)); got != want {
				t.Errorf("with a cell at %v: Gliders = %d, want %d", other, got, want)
			}
		}
	}
}

func abs(n int32) int32 { return max(n, -n) }

func TestGliders_CountedInPattern(t *testing.T) {
	tests := []struct {
		name  string
		cells []Cell
		want  int
	}{
		{name: "nothing", want: 0},
		{name: "one glider", cells: glider(0, 0), want: 1},
		{name: "negative positions", cells: glider(-1000, -2), want: 1},
		{name: "every cell twice", cells: append(glider(0, 0), glider(0, 0)...), want: 1},
		{name: "two with a gap of two", cells: append(glider(0, 0), glider(5, 0)...), want: 2},
		{name: "two with a gap of one", cells: append(glider(0, 0), glider(4, 0)...), want: 0},
		{name: "in the last corner", cells: glider(math.MaxInt32-2, math.MaxInt32-2), want: 1},
		{name: "in the first corner", cells: glider(math.MinInt32, math.MinInt32), want: 1},
		{name: "torn by the border", cells: glider(math.MaxInt32-1, 0), want: 0},
		{name: "on two borders", cells: append(glider(math.MaxInt32-2, 0), glider(math.MinInt32, 0)...), want: 2},
		{name: "a block and a glider", cells: append(glider(0, 0), Cell{9, 0}, Cell{10, 0}, Cell{9, 1}, Cell{10, 1}), want: 1},
		{name: "a boat", cells: mustParse(t, "2o$obo$bo!").Cells, want: 0},
		{name: "an r-pentomino", cells: mustParse(t, "b2o$2o$bo!").Cells, want: 0},
		{name: "a lightweight spaceship", cells: mustParse(t, "o2bo$4bo$o3bo$b4o!").Cells, want: 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Gliders(slices.Values(tt.cells)); got != tt.want {
				t.Errorf("Gliders(%v) = %d, want %d", tt.cells, got, tt.want)
			}
		})
	}
}

func TestObjects_EachCellOnce(t *testing.T) {
	cells := slices.Concat(glider(0, 0), glider(20, 0), glider(0, 20), []Cell{{7, 7}})
	var got []Cell
	count := 0
	for object := range objects(slices.Values(cells)) {
		got = append(got, object...)
		count++
	}
	byPlace := func(a, b Cell) int { return int(a.Y-b.Y)*1000 + int(a.X-b.X) }
	slices.SortFunc(got, byPlace)
	slices.SortFunc(cells, byPlace)
	if count != 4 || !slices.Equal(got, cells) {
		t.Errorf("%d objects with the cells %v, want 4 with %v", count, got, cells)
	}
}
