package ecs_test

import (
	"bytes"
	"testing"

	"github.com/stet-ecs/stet/ecs"
)

// The benchmarks of batches compare them with loops that have the same effect. Batch and loop run
// alternately. The metric x/limit is the time of the batch divided by the time of the loop. Run the
// benchmarks with:
//
//	go test -run '^$' -bench BenchmarkBatch -benchtime 1x ./ecs

const batchSize = 10_000

// visitors is a world whose entities are created and destroyed in batches. The methods create and
// destroy of benchWorld do the same in loops.
type visitors struct {
	*benchWorld
	values []position
}

func newVisitors() *visitors {
	c := &visitors{benchWorld: newBenchWorld(0), values: make([]position, batchSize)}
	e := c.w.Create() // One entity is never destroyed.
	c.positions.Set(e, position{})
	c.velocities.Set(e, velocity{})
	c.fill()
	return c
}

func (c *visitors) fill() {
	c.entities = c.w.CreateN(c.entities[:0], batchSize)
	c.positions.SetAll(c.entities, position{1, 2})
	c.velocities.SetAll(c.entities, velocity{3, 4})
}

func (c *visitors) leave() { c.w.DestroyAll(c.entities) }

func (c *visitors) stop() { c.velocities.RemoveAll(c.entities) }

func (c *visitors) stopOneByOne() {
	for _, e := range c.entities {
		c.velocities.Remove(e)
	}
}

func (c *visitors) start() { c.velocities.SetAll(c.entities, velocity{3, 4}) }

func (c *visitors) place() { c.positions.SetEach(c.entities, c.values) }

func (c *visitors) placeOneByOne() {
	for i, e := range c.entities {
		c.positions.Set(e, c.values[i])
	}
}

func (c *visitors) shuffle() {
	list := make([]ecs.Entity, 0, batchSize)
	for _, i := range permutation(batchSize, 3) {
		list = append(list, c.entities[i])
	}
	c.entities = list
}

func BenchmarkBatch(b *testing.B) {
	for _, m := range []struct {
		name                 string
		shuffled             bool
		prepare, batch, loop func(c *visitors)
	}{
		{"create2", false, (*visitors).leave, (*visitors).fill, (*visitors).create},
		{"destroy2", false, (*visitors).fill, (*visitors).leave, (*visitors).destroy},
		{"set", false, nil, (*visitors).place, (*visitors).placeOneByOne},
		{"set/shuffled", true, nil, (*visitors).place, (*visitors).placeOneByOne},
		{"remove", false, (*visitors).start, (*visitors).stop, (*visitors).stopOneByOne},
	} {
		for _, frame := range []string{"free", "held"} {
			b.Run(m.name+"/"+frame, func(b *testing.B) {
				sideOf := func(work func(*visitors)) side {
					c := newVisitors()
					if m.shuffled {
						c.shuffle()
					}
					if frame == "held" {
						c.w.Checkpoint()
					}
					s := side{work: func() { work(c) }}
					if m.prepare != nil {
						s.prepare = func() { m.prepare(c) }
					}
					return s
				}
				compare(b, batchSize, 1, sideOf(m.batch), sideOf(m.loop))
			})
		}
	}
}

// The world grows from zero entities. Most of the time is spent on memory that the operating system
// provides for the first time.
func BenchmarkBatchCreateFresh(b *testing.B) {
	const n = 1_000_000
	work := func() {
		p := newBenchWorld(0)
		entities := p.w.CreateN(nil, n)
		p.positions.SetAll(entities, position{1, 2})
		p.velocities.SetAll(entities, velocity{3, 4})
	}
	limit := func() {
		entities, sparse := make([]ecs.Entity, n), make([]uint32, n)
		for i := range entities {
			entities[i], sparse[i] = ecs.NewEntity(uint32(i), 1), uint32(i)
		}
		for range 2 {
			dense, sparse, data := make([]ecs.Entity, n), make([]uint32, n), make([]position, n)
			copy(dense, entities)
			for i := range data {
				data[i], sparse[i] = position{1, 2}, uint32(i)
			}
		}
	}
	compare(b, n, 2, side{work: work}, side{work: limit})
}

// BenchmarkBudgetLarge measures a tick with history. The tick changes one byte of a row of 64 KiB,
// one byte in each of 100 rows of 4 KiB, or all bytes. The hand-written code copies the rows before
// they are written, and compares them afterwards.
func BenchmarkBudgetLarge(b *testing.B) {
	type tiles struct{ Cells [1 << 16]byte }
	type chunk struct{ Cells [1 << 12]byte }
	w := ecs.NewWorld(ecs.Options{History: 60})
	land, chunks := ecs.Must(ecs.RegisterResource(w, tiles{})), ecs.MustRegister[chunk](w)
	for range 100 {
		chunks.Set(w.Create(), chunk{})
	}
	w.Commit()
	tick := byte(0)
	for _, c := range []struct {
		name   string
		size   int // Total bytes of the rows that the tick writes.
		budget float64
		write  func()
	}{
		{"byte-of-64K", 1 << 16, 1.5, func() { land.Mut().Cells[int(tick)*99]++ }},
		{"byte-of-each-100-of-4K", 100 << 12, 2, func() {
			for _, e := range w.Entities() {
				chunks.Mut(e).Cells[3]++
			}
		}},
		{"all-of-64K", 1 << 16, 2, func() { fillBytes(land.Mut().Cells[:], tick) }},
		{"all-of-100-of-4K", 100 << 12, 2, func() {
			for _, e := range w.Entities() {
				fillBytes(chunks.Mut(e).Cells[:], tick)
			}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			live, old := make([]byte, c.size), make([]byte, c.size)
			all := c.name[:3] == "all"
			kept := 0
			compare(b, 1, c.budget, side{work: func() {
				tick++
				c.write()
				w.Commit()
			}}, side{work: func() {
				tick++
				copy(old, live)
				if all {
					fillBytes(live, tick)
				} else {
					for i := 0; i < len(live); i += 1 << 12 {
						live[i] = tick
					}
				}
				for at := 0; at < len(live); at += 64 {
					if !bytes.Equal(old[at:at+64], live[at:at+64]) {
						kept++
					}
				}
			}})
			b.ReportMetric(float64(w.History().TickBytes(w.Tick()-1)), "bytes/tick")
			if kept == 0 {
				b.Error("nothing differed")
			}
		})
	}
}

func fillBytes(s []byte, with byte) {
	for i := range s {
		s[i] = with
	}
}

// The benchmarks below add and remove eight components of 16 bytes each by a bundle.

type part struct{ X, Y float64 }

var aPart = part{1, 2}

// An eightfold is a world with n entities of eight components each, together with hand-written
// sparse sets for the same entities. These sets have their full capacity from the start. One
// hand-written function writes all components of an entity.
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

// The budgets are multiples of the hand-written code's times. An archetype ECS is listed for
// comparison. Times are in ns per entity, for the three sizes:
//
//	                  create          destroy
//	hand-written      9.5, 9.5, 13    19, 20, 65
//	archetype ECS     23, 23, 35      33, 33, 56
var eightfoldSizes = []struct {
	n                        int
	create, createN, destroy float64
}{
	{1_000, 1.5, 1.75, 1.2},
	{16_000, 1.4, 1.4, 1.1},
	{256_000, 1.2, 1.25, 1.1},
}

// The benchmark creates entities in a world that was cleared. The world had the same number of
// entities before, so the memory is already allocated.
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
