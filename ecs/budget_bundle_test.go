package ecs_test

import (
	"testing"

	"github.com/stet-ecs/stet/ecs"
)

// The benchmarks below add and remove eight components of 16 bytes each by a bundle.

type part struct{ X, Y float64 }

var aPart = part{1, 2}

// A eightfold is a world with n entities of eight components each. The limit is hand-written sparse
// sets for the same entities, allocated in full beforehand. In the limit, one function writes all
// components of an entity.
type eightfold struct {
	w        *ecs.World
	bundle   *ecs.Bundle8[part, part, part, part, part, part, part, part]
	entities []ecs.Entity

	limit   eightSets
	handles []limitEntity
}

func newEightfold(n int) *eightfold {
	t := &eightfold{w: ecs.NewWorld(ecs.Options{}), entities: make([]ecs.Entity, n), handles: make([]limitEntity, n)}
	var s [8]*ecs.Storage[part]
	for i := range s {
		s[i] = ecs.MustRegister(t.w, ecs.Component[part]{Name: string(rune('a' + i))})
	}
	t.bundle = ecs.NewBundle8(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7])
	t.limit = newEightSets(n)
	t.create()
	t.limitCreate()
	return t
}

func (t *eightfold) create() {
	for i := range t.entities {
		t.entities[i] = t.bundle.Create(aPart, aPart, aPart, aPart, aPart, aPart, aPart, aPart)
	}
}

func (t *eightfold) createN() {
	t.entities = t.bundle.CreateN(t.entities[:0], len(t.entities), aPart, aPart, aPart, aPart, aPart, aPart, aPart, aPart)
}

func (t *eightfold) destroy() {
	for _, e := range t.entities {
		t.w.Destroy(e)
	}
}

func (t *eightfold) limitCreate() {
	for i := range t.handles {
		t.handles[i] = t.limit.create(aPart)
	}
}

func (t *eightfold) limitCreateN() { t.limit.createN(t.handles, aPart) }

func (t *eightfold) limitDestroy() {
	for _, e := range t.handles {
		t.limit.destroy(e)
	}
}

func (t *eightfold) limitClear() { t.limit.clear() }

// eightSets is a hand-written world with fixed capacity.
type eightSets struct {
	generations []uint32
	free        []uint32
	sets        [8]partSet
}

type partSet struct {
	n      int
	sparse []uint32 // Maps an index to a row. An entry is valid if dense has the index in that row.
	dense  []limitEntity
	values []part
}

func newEightSets(n int) (w eightSets) {
	w.generations, w.free = make([]uint32, n), make([]uint32, 0, n)
	for i := range n {
		w.free = append(w.free, uint32(n-1-i))
	}
	for i := range w.sets {
		// The rows of different sets start at different offsets. Otherwise they would compete for
		// the same cache lines.
		at := 48 * i
		w.sets[i] = partSet{0, make([]uint32, n+at)[at:], make([]limitEntity, n+at+at/2)[at+at/2:], make([]part, n+at)[at:]}
	}
	return w
}

func (w *eightSets) next() limitEntity {
	last := len(w.free) - 1
	i := w.free[last]
	w.free = w.free[:last]
	return limitEntity{i, w.generations[i]}
}

func (s *partSet) put(e limitEntity, v part) {
	n := s.n
	s.sparse[e.index], s.dense[n], s.values[n] = uint32(n), e, v
	s.n = n + 1
}

func (s *partSet) get(e limitEntity) *part {
	if int(e.index) < len(s.sparse) {
		if r := int(s.sparse[e.index]); r < s.n && s.dense[r] == e {
			return &s.values[r]
		}
	}
	return nil
}

func (w *eightSets) create(v part) limitEntity {
	e := w.next()
	s := &w.sets
	s[0].put(e, v)
	s[1].put(e, v)
	s[2].put(e, v)
	s[3].put(e, v)
	s[4].put(e, v)
	s[5].put(e, v)
	s[6].put(e, v)
	s[7].put(e, v)
	return e
}

func (w *eightSets) createN(entities []limitEntity, v part) {
	for i := range entities {
		entities[i] = w.next()
	}
	for k := range w.sets {
		s := &w.sets[k]
		rows := s.values[s.n:][:len(entities)]
		copy(s.dense[s.n:], entities)
		for i, e := range entities {
			rows[i], s.sparse[e.index] = v, uint32(s.n+i)
		}
		s.n += len(entities)
	}
}

func (w *eightSets) destroy(e limitEntity) bool {
	if int(e.index) >= len(w.generations) || w.generations[e.index] != e.generation {
		return false
	}
	w.generations[e.index]++
	w.free = append(w.free, e.index)
	for k := range w.sets {
		s := &w.sets[k]
		r := s.sparse[e.index]
		if int(r) >= s.n || s.dense[r] != e {
			continue
		}
		s.n--
		moved := s.dense[s.n]
		s.dense[r], s.values[r] = moved, s.values[s.n]
		s.sparse[moved.index] = r
	}
	return true
}

func (w *eightSets) clear() {
	for _, e := range w.sets[0].dense[:w.sets[0].n] {
		w.generations[e.index]++
		w.free = append(w.free, e.index)
	}
	for k := range w.sets {
		w.sets[k].n = 0
	}
}

// The limit takes 9.5, 9.5 and 13 ns to create an entity in the three sizes. An archetype ECS that
// gets the values takes 23, 23 and 35 ns. The limit takes 19, 20 and 65 ns to destroy an entity,
// and the archetype ECS takes 33, 33 and 56 ns. The budgets are multiples of the limit.
var eightfoldSizes = []struct {
	n                        int
	create, createN, destroy float64
}{
	{1_000, 1.5, 1.75, 1.2},
	{16_000, 1.4, 1.4, 1.1},
	{256_000, 1.2, 1.25, 1.1},
}

// The world had the same number of entities before and was cleared. So its memory is already
// allocated.
func BenchmarkBudgetCreate8(b *testing.B) {
	for _, size := range eightfoldSizes {
		for _, form := range []struct {
			name         string
			budget       float64
			ours, limits func(t *eightfold)
		}{
			{"one by one", size.create, (*eightfold).create, (*eightfold).limitCreate},
			{"at once", size.createN, (*eightfold).createN, (*eightfold).limitCreateN},
		} {
			b.Run(sizeName(size.n)+"/"+form.name, func(b *testing.B) {
				t := newEightfold(size.n)
				compare(b, size.n, form.budget,
					side{t.w.Clear, func() { form.ours(t) }}, side{t.limitClear, func() { form.limits(t) }})
			})
		}
	}
}

// The entities are destroyed from the first to the last, so each call moves a different row.
func BenchmarkBudgetDestroy8(b *testing.B) {
	for _, size := range eightfoldSizes {
		b.Run(sizeName(size.n), func(b *testing.B) {
			t := newEightfold(size.n)
			t.destroy()
			t.limitDestroy()
			compare(b, size.n, size.destroy, side{t.create, t.destroy}, side{t.limitCreate, t.limitDestroy})
		})
	}
}
