package main

import (
	"context"
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

// Age is the number of generations that a cell has survived.
type Age uint32

// Tally counts births and deaths since generation 0.
type Tally struct{ Births, Deaths uint64 }

// Origin describes the first state of a world.
type Origin struct {
	Pattern string
	Rule    string
	Digest  ecs.Digest // Digest of the world at generation 0, before Origin was set.
}

// A Life is a world in which every living cell is an entity, with a [Cell] and an [Age]. A
// generation is a tick.
//
// The world is the only state. Everything else is computed from it in each generation, so restore
// and recovery need only the world.
type Life struct {
	World  *ecs.World
	cells  *ecs.Storage[Cell]
	ages   *ecs.Storage[Age]
	tally  *ecs.Resource[Tally]
	origin *ecs.Resource[Origin]
	older  *ecs.Query1[Age]

	// Scratch memory: for each cell, the number of living cells in the square of 3 by 3 around it.
	crowd map[Cell]int8
	dead  []ecs.Entity // Scratch memory: cells that die.
	born  []Cell       // Scratch memory: cells that are born.
}

// NewLife returns an empty world with a history of up to the given number of generations. Fill it
// by [Life.Place] or by recovery.
func NewLife(history int) *Life {
	w := ecs.NewWorld(ecs.Options{History: history})
	l := &Life{
		World:  w,
		cells:  ecs.MustRegister[Cell](w),
		ages:   ecs.MustRegister[Age](w),
		tally:  ecs.Must(ecs.RegisterResource(w, Tally{})),
		origin: ecs.Must(ecs.RegisterResource(w, Origin{})),
		crowd:  make(map[Cell]int8),
	}
	l.older = ecs.NewQuery1(ecs.Write(l.ages))
	return l
}

// Place fills an empty world with the cells of a pattern, as generation 0.
func (l *Life) Place(pattern *Pattern) {
	for _, cell := range pattern.Cells {
		l.create(cell)
	}
	l.origin.Set(Origin{Pattern: pattern.Name, Rule: pattern.Rule, Digest: l.World.Digest()})
}

// Generation returns the number of the current generation.
func (l *Life) Generation() uint64 { return l.World.Tick() }

// Population returns the number of living cells.
func (l *Life) Population() int { return l.cells.Len() }

// Gliders returns the number of isolated gliders; see the function [Gliders].
func (l *Life) Gliders() int {
	return Gliders(func(yield func(Cell) bool) {
		for _, cell := range l.cells.All() {
			if !yield(cell) {
				return
			}
		}
	})
}

// Oldest returns the cell with the greatest age. It returns false if no cell is alive.
func (l *Life) Oldest() (e ecs.Entity, ok bool) {
	oldest := Age(0)
	for other, age := range l.ages.All() {
		if !ok || age > oldest {
			e, oldest, ok = other, age, true
		}
	}
	return e, ok
}

// String returns the generation, population and digest of the world.
func (l *Life) String() string {
	return fmt.Sprintf("generation %d: population %d, digest %v", l.Generation(), l.Population(), l.World.Digest())
}

// RunTo steps to the given generation. It calls commit() after each step. An error of commit() or
// the end of ctx ends the run.
func (l *Life) RunTo(ctx context.Context, generation uint64, commit func() error) error {
	for l.Generation() < generation {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("stopped at generation %d: %w", l.Generation(), context.Cause(ctx))
		}
		if err := l.Step(); err != nil {
			return fmt.Errorf("stopped at generation %d: %w", l.Generation(), err)
		}
		if err := commit(); err != nil {
			return fmt.Errorf("generation %d: %w", l.Generation(), err)
		}
	}
	return nil
}

// Commit ends a generation in memory, for a world without a journal.
func (l *Life) Commit() error {
	l.World.Commit()
	return nil
}

// Step changes the world into its next generation. The caller then calls commit.
//
// Conway's rule is computed with squares of 3 by 3 cells, in which a cell is the centre. A cell is
// alive in the next generation in two cases:
//   - Its square has three living cells.
//   - Its square has four living cells, and the cell is one of them.
//
// If a living cell is on the border of the plane, which is the limit of int32, Step returns an
// error and changes nothing.
func (l *Life) Step() error {
	for _, cell := range l.cells.Values() {
		if cell.isOnBorder() {
			return fmt.Errorf("the living cell at x = %d, y = %d has reached the border of the plane: coordinates have 32 bits", cell.X, cell.Y)
		}
	}
	l.count()
	l.judge()
	for _, e := range l.dead {
		l.World.Destroy(e)
	}
	for run := range l.older.Runs() {
		for i := range run.A {
			run.A[i]++
		}
	}
	for _, cell := range l.born {
		l.create(cell)
	}
	tally := l.tally.Mut()
	tally.Births += uint64(len(l.born))
	tally.Deaths += uint64(len(l.dead))
	return nil
}

// create creates a living cell.
func (l *Life) create(cell Cell) {
	e := l.World.Create()
	l.cells.Set(e, cell)
	l.ages.Set(e, 0)
}

// count counts, for every cell near a living cell, the living cells in its square.
func (l *Life) count() {
	clear(l.crowd)
	for _, cell := range l.cells.Values() {
		for near := range square(cell, 1) {
			l.crowd[near]++
		}
	}
}

// judge finds the cells that die and the cells that are born. It visits cells in the order of their
// rows in the storage. The order of a Go map is random, and would make equal worlds differ.
func (l *Life) judge() {
	l.dead, l.born = l.dead[:0], l.born[:0]
	for e, cell := range l.cells.All() {
		if n := l.crowd[cell]; n != 3 && n != 4 {
			l.dead = append(l.dead, e)
		}
		// Clear the count of the living cell, so that the next loop does not take the cell for a
		// birth.
		l.crowd[cell] = 0
	}
	for _, cell := range l.cells.Values() {
		for near := range square(cell, 1) {
			if l.crowd[near] == 3 {
				l.born = append(l.born, near)
				l.crowd[near] = 0
			}
		}
	}
}
