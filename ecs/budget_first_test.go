package ecs_test

// The limit for the first writes in a frame is a hand-written sparse set with undo logs. It saves
// the same data as the package. One mark covers a row and its value. A sparse entry is saved when
// its entity is added. For an entity, the generation and the position in the free list are saved.
// Each log is one slice that grows by append.

// A framedSet is a sparse set with one open frame. Its capacity is fixed.
type framedSet[T any] struct {
	// Maps an index to a row. A stale entry may refer to the row of another entity.
	sparse     []uint32
	dense      []uint32
	values     []T
	n, prot    uint32
	rowSaved   []uint64 // One bit per row.
	entrySaved []uint64 // One bit per sparse entry.
	rows       []framedRow[T]
	entries    []framedEntry
}

type framedRow[T any] struct {
	row, dense uint32
	value      T
}

type framedEntry struct{ at, was uint32 }

func newFramedSet[T any](n int) framedSet[T] {
	return framedSet[T]{
		sparse: make([]uint32, n), dense: make([]uint32, n), values: make([]T, n),
		rowSaved: make([]uint64, n/64+1), entrySaved: make([]uint64, n/64+1),
	}
}

// open begins a frame, in which the first n rows are protected.
func (s *framedSet[T]) open() {
	s.prot = s.n
	clear(s.rowSaved)
	clear(s.entrySaved)
	s.rows, s.entries = s.rows[:0], s.entries[:0]
}

func (s *framedSet[T]) row(i uint32) (uint32, bool) {
	r := s.sparse[i]
	return r, r < s.n && s.dense[r] == i
}

func (s *framedSet[T]) saveRow(r uint32) {
	if m := &s.rowSaved[r>>6]; r < s.prot && *m>>(r&63)&1 == 0 {
		*m |= 1 << (r & 63)
		s.rows = append(s.rows, framedRow[T]{r, s.dense[r], s.values[r]})
	}
}

func (s *framedSet[T]) saveEntry(i uint32) {
	if m := &s.entrySaved[i>>6]; s.sparse[i] < s.prot && *m>>(i&63)&1 == 0 {
		*m |= 1 << (i & 63)
		s.entries = append(s.entries, framedEntry{i, s.sparse[i]})
	}
}

func (s *framedSet[T]) set(i uint32, v T) {
	if r, ok := s.row(i); ok {
		s.saveRow(r)
		s.values[r] = v
		return
	}
	s.saveRow(s.n)
	s.saveEntry(i)
	s.dense[s.n], s.values[s.n], s.sparse[i] = i, v, s.n
	s.n++
}

func (s *framedSet[T]) remove(i uint32) bool {
	r, ok := s.row(i)
	if !ok {
		return false
	}
	if s.n--; r != s.n {
		moved := s.dense[s.n]
		s.saveRow(r)
		s.saveEntry(moved)
		s.dense[r], s.values[r], s.sparse[moved] = moved, s.values[s.n], r
	}
	return true
}

// A framedWorld has entities and two components, all with undo logs.
type framedWorld struct {
	generations framedSlots
	free        framedSlots
	alive       int
	positions   framedSet[position]
	velocities  framedSet[velocity]
	handles     []limitEntity
}

// framedSlots are numbers with an undo log for one open frame.
type framedSlots struct {
	now   []uint32
	saved []uint64
	log   []framedEntry
}

func (s *framedSlots) put(i, v uint32) {
	if m := &s.saved[i>>6]; *m>>(i&63)&1 == 0 {
		*m |= 1 << (i & 63)
		s.log = append(s.log, framedEntry{i, s.now[i]})
	}
	s.now[i] = v
}

func (s *framedSlots) open() {
	clear(s.saved)
	s.log = s.log[:0]
}

func newFramedWorld(n int) *framedWorld {
	w := &framedWorld{
		generations: framedSlots{now: make([]uint32, n), saved: make([]uint64, n/64+1)},
		free:        framedSlots{now: make([]uint32, n), saved: make([]uint64, n/64+1)},
		positions:   newFramedSet[position](n), velocities: newFramedSet[velocity](n),
		handles: make([]limitEntity, n),
	}
	for i := range w.free.now {
		w.free.now[i] = uint32(n - 1 - i)
	}
	w.create()
	return w
}

func (w *framedWorld) open() {
	w.generations.open()
	w.free.open()
	w.positions.open()
	w.velocities.open()
}

func (w *framedWorld) has(e limitEntity) bool { return w.generations.now[e.index] == e.generation }

//go:noinline
func (w *framedWorld) setPosition(e limitEntity, v position) {
	if w.has(e) {
		w.positions.set(e.index, v)
	}
}

//go:noinline
func (w *framedWorld) setVelocity(e limitEntity, v velocity) {
	if w.has(e) {
		w.velocities.set(e.index, v)
	}
}

//go:noinline
func (w *framedWorld) removeVelocity(e limitEntity) bool {
	return w.has(e) && w.velocities.remove(e.index)
}

//go:noinline
func (w *framedWorld) destroyOne(e limitEntity) bool {
	if !w.has(e) {
		return false
	}
	w.positions.remove(e.index)
	w.velocities.remove(e.index)
	w.generations.put(e.index, e.generation+1)
	w.alive--
	w.free.put(uint32(len(w.handles)-1-w.alive), e.index)
	return true
}

func (w *framedWorld) create() {
	for k := range w.handles {
		i := w.free.now[len(w.handles)-1-w.alive]
		w.alive++
		e := limitEntity{i, w.generations.now[i]}
		w.setPosition(e, position{1, 2})
		w.setVelocity(e, velocity{3, 4})
		w.handles[k] = e
	}
}

func (w *framedWorld) destroy() {
	for _, e := range w.handles {
		w.destroyOne(e)
	}
}

func (w *framedWorld) removeAdd() {
	for _, e := range w.handles {
		w.removeVelocity(e)
	}
	w.set()
}

func (w *framedWorld) set() {
	for _, e := range w.handles {
		w.setVelocity(e, velocity{3, 4})
	}
}

// framedChanges maps the name of a change to the limit's implementation of the change and its
// inverse. It has only some of the changes.
var framedChanges = map[string]struct{ undo, work func(w *framedWorld) }{
	"destroy":    {(*framedWorld).create, (*framedWorld).destroy},
	"remove+add": {nil, (*framedWorld).removeAdd},
	"set":        {nil, (*framedWorld).set},
}

// framedSides returns two sides for a change of n entities in the limit. The first side is the
// first run in a frame, and the second side is a later run. It returns nil if the limit does not
// implement the change.
func framedSides(name string, n int) (sides []side) {
	c, ok := framedChanges[name]
	if !ok {
		return nil
	}
	for _, first := range []bool{true, false} {
		w := newFramedWorld(n)
		w.open()
		if c.undo != nil {
			w.destroy()
		}
		sides = append(sides, side{
			prepare: func() {
				if c.undo != nil {
					c.undo(w)
				}
				if first {
					w.open()
				}
			},
			work: func() { c.work(w) },
		})
	}
	return sides
}
