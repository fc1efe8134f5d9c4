package main

import (
	"iter"
	"math"
	"math/bits"
)

// objectReach is the greatest distance between cells of one object, in king's moves. Cells two
// moves apart share a neighbour, so they act on each other. Cells three moves apart, with a gap of
// two empty cells, do not yet.
const objectReach = 2

// gliderShapes holds the 16 shapes of a glider: four phases in each of four
// directions.
var gliderShapes = makeGliderShapes()

// Gliders counts the gliders that are alone: a gap of two empty cells separates them from every
// other living cell. Order does not matter, and a cell given twice counts once. It takes time and
// memory in proportion to the number of cells.
func Gliders(cells iter.Seq[Cell]) int {
	count := 0
	for object := range objects(cells) {
		if isGlider(object) {
			count++
		}
	}
	return count
}

// objects splits cells into groups that do not act on each other in the next generation. Groups and
// their cells are in no particular order. A group is valid until the next call of yield.
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

// takeObject moves the object that contains first from left to the end of object.
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

// square yields the cells up to reach king's moves away from center, itself
// included. It leaves out positions beyond the border of the plane.
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

// isOnBorder reports whether some neighbours of c are beyond the coordinates that an
// int32 can hold.
func (c Cell) isOnBorder() bool {
	return c.X == math.MinInt32 || c.X == math.MaxInt32 || c.Y == math.MinInt32 || c.Y == math.MaxInt32
}

// isGlider reports whether object is a glider.
func isGlider(object []Cell) bool {
	s, ok := shapeOf(object)
	return ok && gliderShapes[s]
}

// A shape is a set of cells in a box of 3 by 3, moved to its upper left corner.
// Bit 3*y+x stands for the cell (x, y).
type shape uint16

// shapeOf returns the shape of cells, wherever they are. It returns false if
// they do not fit into the box.
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

// moved returns s with every cell moved by to.
func (s shape) moved(to func(Cell) Cell) shape {
	cells := s.cells()
	for i, cell := range cells {
		cells[i] = to(cell)
	}
	result, _ := shapeOf(cells) // A mirrored box always fits into a box.
	return result
}

// makeGliderShapes mirrors two phases into all directions. The other two phases
// are mirror images of these.
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
