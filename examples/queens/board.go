package main

import (
	"strings"

	"github.com/stet-ecs/stet/ecs"
)

// A Square is a square on the board. Rows and columns are counted from 0.
type Square struct{ Row, Column int8 }

// attacks reports whether s and t are equal, or whether a queen on s attacks t.
func (s Square) attacks(t Square) bool {
	rows, columns := s.Row-t.Row, s.Column-t.Column
	return rows == 0 || columns == 0 || rows == columns || rows == -columns
}

// A board is a world in which each square is an entity. A placed queen destroys the squares that it
// attacks. At the end of a search, only squares with queens are left.
type board struct {
	size    int
	world   *ecs.World
	squares *ecs.Storage[Square]
	each    *ecs.Query1[Square]
}

// newBoard returns a board without queens.
func newBoard(size int) *board {
	b := &board{size: size, world: ecs.NewWorld(ecs.Options{})}
	b.squares = ecs.MustRegister[Square](b.world)
	b.each = ecs.NewQuery1(ecs.Read(b.squares))
	for row := range size {
		for column := range size {
			b.squares.Set(b.world.Create(), Square{Row: int8(row), Column: int8(column)})
		}
	}
	return b
}

// solve places all queens in every possible way. It calls the function found for each way, while
// the queens are on the board. After solve, the board is unchanged.
func (b *board) solve(found func()) { b.solveFrom(0, found) }

// solveFrom places the queens of the given row and of all later rows.
func (b *board) solveFrom(row int, found func()) {
	if row == b.size {
		found()
		return
	}
	before := b.world.Checkpoint()
	for i := 0; i < b.squares.Len(); i++ {
		if square := b.squares.Values()[i]; int(square.Row) == row {
			b.place(square)
			b.solveFrom(row+1, found)
			// Restore also restores the order of the rows, so i is still the same square.
			b.world.Restore(before)
		}
	}
	b.world.Release(before)
}

// place puts a queen on a square that no other queen attacks.
func (b *board) place(square Square) {
	for e, other := range b.each.All() {
		if square.attacks(*other) && square != *other {
			b.world.Destroy(e)
		}
	}
}

// String draws the remaining squares. After all queens are placed, these are the squares of the
// queens.
func (b *board) String() string {
	line := strings.Repeat(".", b.size) + "\n"
	drawing := []byte(strings.Repeat(line, b.size))
	for _, square := range b.squares.All() {
		drawing[int(square.Row)*len(line)+int(square.Column)] = 'Q'
	}
	return string(drawing)
}
