package dump

import (
	"cmp"
	"math"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/query"
)

// A command may print values of very many entities, in any order, without loading the state. It
// prints them in batches. Entities that are printed one after the other may have rows that are far
// apart. So one pass over the state, in index order, reads the values of a whole batch.
//
// The first pass reads all pages. So damage is found before anything is printed. The pass of a
// later batch reads only from the lowest to the highest index in the batch.

// batchCells is the number of values in a batch. It is a variable so that tests can change it.
var batchCells = 1 << 19

// A batch is a group of entities, with the values of their columns.
type batch struct {
	exprs []*query.Swept
	cells []query.Answer
	slots []slot // Sorted by index.
	// Bit i is set if the entity with index base+i is in the batch.
	has  []uint64
	base int // Lowest index of an entity in the batch.
	end  int // Highest index of an entity in the batch, plus 1.
}

// A slot maps the index of an entity to its position in the batch.
type slot struct{ index, place uint32 }

// batches returns a walk that visits the values of exprs for each entity. The method w.compile must
// have compiled exprs. batches fills the first batch before it returns.
func (w *sweeper) batches(exprs []*query.Swept, entities []ecs.Entity) (walk[[]query.Answer], error) {
	size := max(1, batchCells/max(1, len(exprs)))
	made, begins := newBatch(exprs, entities[:min(size, len(entities))]), []int{0}
	err := w.fill(made, true, func(next int) error {
		begins = append(begins, next)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return func(visit func([]query.Answer) error) error {
		for first := 0; first < len(entities); first += size {
			part := entities[first:min(first+size, len(entities))]
			if first > 0 {
				made = newBatch(exprs, part)
				span, found := slices.BinarySearch(begins, made.base)
				if !found {
					span--
				}
				w.Begin = begins[span]
				err := w.fill(made, false, func(next int) error {
					if next >= made.end {
						return errEnough
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			for i := range part {
				if err := visit(made.of(i)); err != nil {
					return err
				}
			}
		}
		return nil
	}, nil
}

// newBatch returns the batch of these entities, without values.
func newBatch(exprs []*query.Swept, entities []ecs.Entity) *batch {
	b := &batch{exprs: exprs, cells: make([]query.Answer, len(entities)*len(exprs)), slots: make([]slot, len(entities)), base: math.MaxInt}
	for i, e := range entities {
		b.slots[i] = slot{e.Index(), uint32(i)}
		b.base, b.end = min(b.base, int(e.Index())), max(b.end, int(e.Index())+1)
	}
	slices.SortFunc(b.slots, func(x, y slot) int { return cmp.Compare(x.index, y.index) })
	b.has = make([]uint64, (max(0, b.end-b.base)+63)/64)
	for _, s := range b.slots {
		i := int(s.index) - b.base
		b.has[i/64] |= 1 << (i % 64)
	}
	return b
}

// of returns the values of the entity at a position in the batch.
func (b *batch) of(place int) []query.Answer {
	return b.cells[place*len(b.exprs) : (place+1)*len(b.exprs)]
}

// find returns the position of the entity with this index, or false if the batch lacks the entity.
func (b *batch) find(index uint32) (place int, ok bool) {
	i := int(index) - b.base
	if i < 0 || i >= b.end-b.base || b.has[i/64]>>(i%64)&1 == 0 {
		return 0, false
	}
	n, _ := slices.BinarySearchFunc(b.slots, index, func(s slot, index uint32) int { return cmp.Compare(s.index, index) })
	return int(b.slots[n].place), true
}

// fill evaluates the expressions for the entities of b in one pass over the state. The pass reads
// spans of indices, and calls take(next) after each span. The argument next is the start of the
// next span. If the argument all is true, fill also evaluates the entities outside of b, to find
// damaged pages.
func (w *sweeper) fill(b *batch, all bool, take func(next int) error) error {
	// Spans are evaluated in parallel. Each span writes only the cells of its own entities.
	return ignoreEnough(query.Sweep(w.ctx, &w.Sweeper, func(at query.SweptEntity, _ *struct{}) error {
		place, ok := b.find(at.Entity().Index())
		if !ok && !all {
			return nil
		}
		for i, x := range b.exprs {
			v, err := x.At(at)
			switch {
			case err != nil && (ok || damaged(err)):
				return err
			case ok:
				b.of(place)[i] = v
			}
		}
		return nil
	}, func(_ struct{}, next int) error { return take(next) }))
}
