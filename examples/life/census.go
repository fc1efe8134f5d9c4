package main

import (
	"iter"
	"math"
	"math/bits"
)

// objectReach is the greatest distance between neighbouring cells of an object, in king's moves.
// Cells two moves apart have a common neighbour, so they affect the same cell. Cells three moves
// apart do not.
const objectReach = 2

// gliderShapes has the 16 shapes of a glider: four phases in each of four directions.
var gliderShapes = makeGliderShapes()

// Gliders counts the isolated gliders. A glider is isolated if at least two empty cells separate it
// from every other living cell. The order of cells does not matter, and a duplicate cell counts
// once. Time and memory are proportional to the number of cells.
func Gliders(cells iter.Seq[Cell]) int {
	count := 0
	for object := range objects(cells) {
		if isGlider(object) {
			count++
		}
	}
	return count
}

// objects splits cells into groups. Cells of two groups have no common neighbour, so no group
// affects another in the next generation. Groups and their cells have no particular order. The
// function yield() must copy a group to keep it.
func objects(cells iter.Seq[Cell]) iter.Seq[[]Cell] {
	return func(yield func([]Cell) bool) {
		left := make(map[Cell]bool)
		for cell := range cells {
			left[cell] = true
		}
		var object []Cell
		for cell := range left {
			object = takeObject(object[:0], left, cell)
			if !yield(object) {
				return
			}
		}
	}
}

// takeObject returns an object: the cell first, and all other cells of the same object. It appends
// them to the argument object. It removes them from left, the set of cells that belong to no object
// yet.
func takeObject(object []Cell, left map[Cell]bool, first Cell) []Cell {
	object = append(object, first)
	delete(left, first)
	for next := 0; next < len(object); next++ {
		for near := range square(object[next], objectReach) {
			if left[near] {
				object = append(object, near)
				delete(left, near)
			}
		}
	}
	return object
}

// square yields the cells up to reach king's moves away from center, and center itself. It excludes
// positions outside of the plane.
func square(center Cell, reach int32) iter.Seq[Cell] {
	return func(yield func(Cell) bool) {
		for dy := -reach; dy <= reach; dy++ {
			for dx := -reach; dx <= reach; dx++ {
				near := Cell{X: center.X + dx, Y: center.Y + dy}
				if wraps := near.X < center.X != (dx < 0) || near.Y < center.Y != (dy < 0); !wraps && !yield(near) {
					return
				}
			}
		}
	}
}

// isOnBorder reports whether some neighbours of c are outside of the plane, whose coordinates are
// of type int32.
func (c Cell) isOnBorder() bool {
	return c.X == math.MinInt32 || c.X == math.MaxInt32 || c.Y == math.MinInt32 || c.Y == math.MaxInt32
}

// isGlider reports whether the cells of object form a glider.
func isGlider(object []Cell) bool {
	s, ok := shapeOf(object)
	return ok && gliderShapes[s]
}

// A shape is a set of cells in a box of 3 by 3, moved to the box's upper left corner. Bit 3*y+x
// stands for the cell (x, y).
type shape uint16

// shapeOf returns the shape of cells at any position. It returns false if the cells do not fit into
// the box.
func shapeOf(cells []Cell) (shape, bool) {
	left, top := cells[0].X, cells[0].Y
	for _, cell := range cells {
		left, top = min(left, cell.X), min(top, cell.Y)
	}
	var s shape
	for _, cell := range cells {
		x, y := cell.X-left, cell.Y-top
		if x > 2 || y > 2 {
			return 0, false
		}
		s |= 1 << (3*y + x)
	}
	return s, true
}

// cells returns the cells of s.
func (s shape) cells() []Cell {
	cells := make([]Cell, 0, bits.OnesCount16(uint16(s)))
	for i := range int32(9) {
		if s&(1<<i) != 0 {
			cells = append(cells, Cell{X: i % 3, Y: i / 3})
		}
	}
	return cells
}

// moved applies the given function to each cell of s, and returns the shape of the results.
func (s shape) moved(to func(Cell) Cell) shape {
	cells := s.cells()
	for i, cell := range cells {
		cells[i] = to(cell)
	}
	result, _ := shapeOf(cells) // A rotated or mirrored box fits into a box of the same size.
	return result
}

// makeGliderShapes returns two phases of a glider, rotated and mirrored into all directions. The
// other two phases are mirror images of these two.
func makeGliderShapes() map[shape]bool {
	const (
		arrow = 0b111_100_010 // .o.  ..o  ooo
		hook  = 0b010_110_101 // o.o  .oo  .o.
	)
	shapes := make(map[shape]bool)
	for _, s := range []shape{arrow, hook} {
		for range 4 {
			shapes[s] = true
			shapes[s.moved(func(c Cell) Cell { return Cell{X: -c.X, Y: c.Y} })] = true
			s = s.moved(func(c Cell) Cell { return Cell{X: -c.Y, Y: c.X} }) // A quarter turn.
		}
	}
	return shapes
}
