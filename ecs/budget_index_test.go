package ecs_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stet-ecs/stet/ecs"
)

// Entities move between the cells of a grid and are looked up by cell. Each cell has about sixteen
// entities.

type cell struct{ X, Y int32 }

func cellOf(p position) cell { return cell{int32(p.X) >> 4, int32(p.Y) >> 4} }

type grid struct {
	w        *ecs.World
	s, plain *ecs.Storage[position] // A storage with the index, and one without an index.
	x        *ecs.Index[position, cell]
	entities []ecs.Entity
	cells    []cell
	order    []int // A random order of the entities.
	found    int

	lists byHandIndex
}

// A byHandIndex is the hand-written alternative to an index: a map of lists, and the position of
// each entity in its list.
type byHandIndex struct {
	lists map[cell][]ecs.Entity
	at    []cell   // The cell of each entity, by index.
	place []uint32 // The position of each entity in its list, by index.
}

func (x *byHandIndex) add(e ecs.Entity, c cell) {
	l := x.lists[c]
	x.at[e.Index()], x.place[e.Index()] = c, uint32(len(l))
	x.lists[c] = append(l, e)
}

func (x *byHandIndex) move(e ecs.Entity, to cell) {
	from := x.at[e.Index()]
	if from == to {
		return
	}
	l, k := x.lists[from], x.place[e.Index()]
	last := l[len(l)-1]
	l[k], x.place[last.Index()] = last, k
	x.lists[from] = l[:len(l)-1]
	x.add(e, to)
}

func newGrid(n int) *grid {
	g := &grid{w: ecs.NewWorld(ecs.Options{}), order: permutation(n, 1)}
	g.s = ecs.MustRegister(g.w, ecs.Component[position]{Name: "indexed"})
	g.plain = ecs.MustRegister(g.w, ecs.Component[position]{Name: "plain"})
	g.lists = byHandIndex{make(map[cell][]ecs.Entity), make([]cell, n), make([]uint32, n)}
	g.entities = g.w.CreateN(nil, n)
	rng := rand.New(rand.NewPCG(1, 1))
	side := 1
	for side*side < n*256 {
		side *= 2
	}
	seen := make(map[cell]bool)
	for _, e := range g.entities {
		p := position{X: float64(rng.IntN(side / 4)), Y: float64(rng.IntN(side / 4))}
		g.s.Set(e, p)
		g.plain.Set(e, p)
		c := cellOf(p)
		g.lists.add(e, c)
		if !seen[c] {
			g.cells, seen[c] = append(g.cells, c), true
		}
	}
	g.x = ecs.NewIndex(g.s, cellOf)
	g.x.Len(cell{})
	return g
}

//go:noinline
func (g *grid) lookUp() {
	for _, c := range g.cells {
		g.found += g.x.Len(c)
	}
}

//go:noinline
func (g *grid) lookUpByHand() {
	for _, c := range g.cells {
		g.found += len(g.lists.lists[c])
	}
}

//go:noinline
func (g *grid) walk() {
	for _, c := range g.cells {
		for e := range g.x.Of(c) {
			g.found += int(e.Index())
		}
	}
}

// move flips a bit of every position. The bit decides whether the position moves within its cell or
// to the next cell.
//
//go:noinline
func (g *grid) move(s *ecs.Storage[position], bit int32) {
	for _, k := range g.order {
		e := g.entities[k]
		p, _ := s.Get(e)
		p.X = float64(int32(p.X) ^ bit)
		s.Set(e, p)
	}
}

// moveAndLook moves every entity of the indexed storage, and then looks up a cell.
func (g *grid) moveAndLook(bit int32) {
	g.move(g.s, bit)
	g.found += g.x.Len(cell{})
}

//go:noinline
func (g *grid) leapByHand() { g.moveByHand(16) }

//go:noinline
func (g *grid) moveByHand(bit int32) {
	for _, k := range g.order {
		e := g.entities[k]
		p, _ := g.plain.Get(e)
		p.X = float64(int32(p.X) ^ bit)
		g.plain.Set(e, p)
		g.lists.move(e, cellOf(p))
	}
}

func BenchmarkBudgetIndex(b *testing.B) {
	for _, n := range []int{16_000, 256_000} {
		g := newGrid(n)
		b.Run("look-up/"+sizeName(n), func(b *testing.B) {
			compare(b, len(g.cells), 2, side{work: g.lookUp}, side{work: g.lookUpByHand})
		})
		b.Run("walk/"+sizeName(n), func(b *testing.B) {
			compareMore(b, n, 3, side{work: g.walk}, side{work: g.lookUp})
		})
		b.Run("stay/"+sizeName(n), func(b *testing.B) {
			compareMore(b, n, 15, side{work: func() { g.moveAndLook(1) }}, side{work: func() { g.move(g.plain, 1) }})
		})
		b.Run("stay-by-hand/"+sizeName(n), func(b *testing.B) {
			compare(b, n, 2, side{work: func() { g.moveAndLook(1) }}, side{work: func() { g.moveByHand(1) }})
		})
		b.Run("leave/"+sizeName(n), func(b *testing.B) {
			compare(b, n, 2, side{work: func() { g.moveAndLook(16) }}, side{work: g.leapByHand})
		})
	}
}

// Entities are looked up by name. Each name has one entity.
type named struct{ Name string }

type people struct {
	x      *ecs.Index[named, string]
	byName map[string][]ecs.Entity
	names  []string // In random order.
	found  int
}

func newPeople(n int) *people {
	p := &people{byName: make(map[string][]ecs.Entity)}
	w := ecs.NewWorld(ecs.Options{})
	s := ecs.MustRegister[named](w)
	for _, k := range permutation(n, 1) {
		p.names = append(p.names, fmt.Sprintf("person %d", k))
	}
	for _, k := range permutation(n, 2) {
		e := w.Create()
		s.Set(e, named{p.names[k]})
		p.byName[p.names[k]] = []ecs.Entity{e}
	}
	p.x = ecs.NewIndex(s, func(c named) string { return c.Name })
	p.x.Len("")
	return p
}

//go:noinline
func (p *people) lookUp() {
	for _, name := range p.names {
		p.found += p.x.Len(name)
	}
}

//go:noinline
func (p *people) lookUpByHand() {
	for _, name := range p.names {
		p.found += len(p.byName[name])
	}
}

func BenchmarkBudgetIndexOfNames(b *testing.B) {
	for _, n := range []int{1_000, 16_000, 256_000} {
		p := newPeople(n)
		b.Run(sizeName(n), func(b *testing.B) {
			compare(b, n, 2, side{work: p.lookUp}, side{work: p.lookUpByHand})
		})
	}
}

type below struct{ Parent ecs.Entity }

// A nest is a world with a parent and its n children. A nest without the relation has the same
// components.
type nest struct {
	w      *ecs.World
	s      *ecs.Storage[below]
	all    []ecs.Entity
	parent ecs.Entity
	cp     ecs.Checkpoint
}

func newNest(n int, related bool) *nest {
	k := &nest{w: ecs.NewWorld(ecs.Options{})}
	k.s = ecs.MustRegister[below](k.w)
	if related {
		r := ecs.NewRelation(k.s, func(b below) ecs.Entity { return b.Parent }, ecs.RelationOptions{Tree: true})
		r.Len(0)
	}
	k.parent = k.w.Create()
	k.all = k.w.CreateN(nil, n)
	k.s.SetAll(k.all, below{k.parent})
	k.cp = k.w.Checkpoint()
	return k
}

// A target is destroyed together with its sources. The limit is a loop that destroys the same
// number of entities in a world without the relation.
func BenchmarkBudgetCascade(b *testing.B) {
	for _, n := range []int{16_000, 256_000} {
		related, plain := newNest(n, true), newNest(n, false)
		b.Run(sizeName(n), func(b *testing.B) {
			compare(b, n, 3,
				side{func() { related.w.Restore(related.cp) }, func() { related.w.Destroy(related.parent) }},
				side{func() { plain.w.Restore(plain.cp) }, func() {
					for i := len(plain.all) - 1; i >= 0; i-- {
						plain.w.Destroy(plain.all[i])
					}
				}})
		})
	}
}
