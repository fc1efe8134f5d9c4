package ecs

import "slices"

// An oracleState is the whole content of a world, in slices that are copied completely. Every value
// is an int. An intStore converts ints to components.
type naiveState struct {
	tick                 uint64
	alive, free, retired []Entity
	stores               []naiveStore
	resources            []int
	groups               []naiveGroup
	events               naiveEvents
}

// oracleEvents are the events of a world, and the number of events that its reader has read.
type naiveEvents struct {
	sent, read int
	last, now  []int
}

// held returns the retained events.
func (e *naiveEvents) held() []int { return slices.Concat(e.last, e.now) }

// unread returns the retained events after the position of the reader, and how many the reader has
// missed.
func (e *naiveEvents) unread() (_ []int, missed int) {
	held := e.held()
	first := e.sent - len(held)
	return held[max(e.read-first, 0):], max(first-e.read, 0)
}

type naiveStore struct {
	entities []Entity
	values   []int
	// The row of an entity is its index. Other rows are Vacant and hold gap.
	indexed bool
	gap     int
}

// empty returns a store like s without rows.
func (s *naiveStore) empty() naiveStore { return naiveStore{indexed: s.indexed, gap: s.gap} }

// find returns the row of e, or -1.
func (s *naiveStore) find(e Entity) int {
	if e == Vacant {
		return -1
	}
	return slices.Index(s.entities, e)
}

func (s *naiveStore) add(e Entity, v int) {
	if !s.indexed {
		s.entities, s.values = append(s.entities, e), append(s.values, v)
		return
	}
	for len(s.entities) <= int(e.Index()) {
		s.entities, s.values = append(s.entities, Vacant), append(s.values, s.gap)
	}
	s.entities[e.Index()], s.values[e.Index()] = e, v
}

// members returns the number of rows with an entity.
func (s *naiveStore) members() (n int) {
	for _, e := range s.entities {
		if e != Vacant {
			n++
		}
	}
	return n
}

func (s *naiveState) clone() *naiveState {
	c := *s
	c.alive, c.free, c.retired = slices.Clone(s.alive), slices.Clone(s.free), slices.Clone(s.retired)
	c.stores = make([]naiveStore, len(s.stores))
	for i, st := range s.stores {
		c.stores[i] = st
		c.stores[i].entities, c.stores[i].values = slices.Clone(st.entities), slices.Clone(st.values)
	}
	c.resources = slices.Clone(s.resources)
	c.groups = slices.Clone(s.groups)
	c.events.last, c.events.now = slices.Clone(s.events.last), slices.Clone(s.events.now)
	return &c
}

// An oracleFrame is a boundary with a copy of the state at it.
type naiveFrame struct {
	cp         Checkpoint // Of the world under test; zero for a tick.
	tick, bare bool
	state      *naiveState
}

// An oracle does what the documentation of World says. It copies everything at every boundary.
type naiveWorld struct {
	*naiveState
	frames   []naiveFrame
	forward  []*naiveState // The last one is the next to go forward to.
	history  int
	dense    int
	recorded bool
	kept     bool        // The newest tick is kept without a history.
	over     func() bool // Reports whether the world under test is over its budget.

	replaced []naiveSet // The Sets of components that their entities had already.

	maxGeneration  uint32
	relations      []naiveRelation
	exempt         []bool // By store: NoRewind.
	exemptResource []bool
}

func (w *naiveWorld) start() {
	w.frames, w.forward = nil, nil
	if w.history > 0 || w.recorded || w.kept {
		w.frames = append(w.frames, naiveFrame{tick: true, bare: w.history == 0 && !w.kept, state: w.naiveState.clone()})
	}
}

func (w *naiveWorld) create() Entity {
	w.forward = nil
	for len(w.free) > 0 {
		e := w.free[0]
		if e.Generation() != w.maxGeneration {
			e = NewEntity(e.Index(), e.Generation()+1)
			w.free = w.free[1:]
			w.alive = append(w.alive, e)
			return e
		}
		last := len(w.free) - 1 // Spent: the last free entity takes its place.
		w.free[0] = w.free[last]
		w.free = w.free[:last]
		w.retired = slices.Insert(w.retired, 0, e)
	}
	e := NewEntity(uint32(len(w.alive)+len(w.retired)), 1)
	w.alive = append(w.alive, e)
	if len(w.retired) > 0 {
		w.retired = append(w.retired[1:], w.retired[0])
	}
	return e
}

// createAt makes e alive, if that is allowed.
func (w *naiveWorld) createAt(e Entity) bool {
	at := func(list []Entity) int {
		return slices.IndexFunc(list, func(other Entity) bool { return other.Index() == e.Index() })
	}
	if e.Generation() == 0 || at(w.alive) >= 0 {
		return false
	}
	for _, list := range [][]Entity{w.free, w.retired} {
		if k := at(list); k >= 0 && list[k].Generation() > e.Generation() {
			return false
		}
	}
	w.forward = nil
	for total := len(w.alive) + len(w.free) + len(w.retired); total <= int(e.Index()); total++ {
		w.free = append(w.free, NewEntity(uint32(total), 1))
		if len(w.retired) > 0 {
			w.retired = append(w.retired[1:], w.retired[0])
		}
	}
	if k := at(w.retired); k >= 0 {
		w.free = append(w.free, w.retired[k])
		w.retired[k] = w.retired[0]
		w.retired = w.retired[1:]
	}
	w.free[at(w.free)] = w.free[0]
	w.free = w.free[1:]
	w.alive = append(w.alive, e)
	return true
}

func (w *naiveWorld) destroy(e Entity) bool {
	if !slices.Contains(w.alive, e) || !w.sever(e) {
		return false
	}
	w.end(e)
	return true
}

// end destroys an entity that is alive, after its relations are resolved.
func (w *naiveWorld) end(e Entity) {
	k := slices.Index(w.alive, e)
	w.forward = nil
	last := len(w.alive) - 1
	w.alive[k] = w.alive[last]
	w.alive = w.alive[:last]
	w.free = slices.Insert(w.free, 0, e)
	for i := range w.groups {
		w.ungroup(&w.groups[i], e)
	}
	for i := range w.stores {
		w.stores[i].remove(e)
	}
}

func (w *naiveWorld) clearAll() {
	w.forward = nil
	w.free = append(slices.Clone(w.alive), w.free...)
	w.alive = nil
	for i := range w.stores {
		w.stores[i] = w.stores[i].empty()
		w.emptied(i)
	}
}

// wrote records that store i changed.
func (w *naiveWorld) wrote(i int) {
	if !w.exempt[i] {
		w.forward = nil
	}
}

func (w *naiveWorld) set(i int, e Entity, v int) bool {
	if !slices.Contains(w.alive, e) {
		return false
	}
	w.wrote(i)
	s := &w.stores[i]
	if k := s.find(e); k >= 0 {
		w.replaced = append(w.replaced, naiveSet{i, naiveEdit{e, s.values[k], v}})
		s.values[k] = v
		return true
	}
	s.add(e, v)
	w.regroup(e)
	return true
}

func (w *naiveWorld) increase(i int, e Entity, by int) bool {
	k := w.stores[i].find(e)
	if k < 0 {
		return false
	}
	w.wrote(i)
	w.stores[i].values[k] += by
	return true
}

func (w *naiveWorld) remove(i int, e Entity) bool {
	if w.stores[i].find(e) < 0 {
		return false
	}
	w.wrote(i)
	if g := w.groupOf(i); g != nil {
		w.ungroup(g, e)
	}
	return w.stores[i].remove(e)
}

func (s *naiveStore) remove(e Entity) bool {
	k := s.find(e)
	if k < 0 {
		return false
	}
	if s.indexed {
		s.entities[k], s.values[k] = Vacant, s.gap
		return true
	}
	last := len(s.entities) - 1
	s.entities[k], s.values[k] = s.entities[last], s.values[last]
	s.entities, s.values = s.entities[:last], s.values[:last]
	return true
}

func (w *naiveWorld) clearStore(i int) {
	if len(w.stores[i].entities) > 0 {
		w.wrote(i)
		w.stores[i] = w.stores[i].empty()
		w.emptied(i)
	}
}

func (w *naiveWorld) setResource(i, v int) {
	if !w.exemptResource[i] {
		w.forward = nil
	}
	w.resources[i] = v
}

func (w *naiveWorld) checkpoint(cp Checkpoint) {
	w.frames = append(w.frames, naiveFrame{cp: cp, state: w.naiveState.clone()})
}

// put replaces the state by s, except for data that do not rewind.
func (w *naiveWorld) put(s *naiveState) {
	before := w.naiveState
	w.naiveState = s.clone()
	for i, exempt := range w.exemptResource {
		if exempt {
			w.resources[i] = before.resources[i]
		}
	}
	for i, exempt := range w.exempt {
		if !exempt {
			continue
		}
		st := before.stores[i]
		for k := len(st.entities) - 1; k >= 0; k-- {
			if st.entities[k] != Vacant && !slices.Contains(w.alive, st.entities[k]) {
				st.remove(st.entities[k])
			}
		}
		w.stores[i] = st
	}
}

func (w *naiveWorld) restore(k int) {
	for _, f := range w.frames[k:] {
		if f.tick {
			w.forward = nil
		}
	}
	w.put(w.frames[k].state)
	w.frames = w.frames[:k+1]
}

func (w *naiveWorld) release(k int) {
	w.frames = slices.Delete(w.frames, k, k+1)
	w.evict()
}

func (w *naiveWorld) commit() {
	w.pack()
	w.events.last, w.events.now = w.events.now, nil
	w.forward = nil
	w.tick++
	if w.history > 0 || w.recorded || w.kept {
		bare := w.history == 0 && !w.kept && !slices.ContainsFunc(w.frames, func(f naiveFrame) bool { return !f.tick })
		w.frames = append(w.frames, naiveFrame{tick: true, bare: bare, state: w.naiveState.clone()})
		w.evict()
	}
}

// evict removes ticks until the history is within its limits. It removes the oldest tick or, in a
// thinned history, the tick that thinnable returns. It keeps ticks that a checkpoint follows, and
// the newest tick.
func (w *naiveWorld) evict() {
	for {
		ticks := 0
		for i := range w.frames {
			if w.frames[i].tick {
				ticks++
			}
		}
		k := w.thinnable()
		if k < 0 {
			k = slices.IndexFunc(w.evictable(), func(can bool) bool { return can })
		}
		if k < 0 || ticks-1 <= w.history && !w.over() {
			return
		}
		w.frames = slices.Delete(w.frames, k, k+1)
	}
}

// evictable tells for each frame whether it is a tick that another tick follows.
func (w *naiveWorld) evictable() []bool {
	can := make([]bool, len(w.frames))
	for i := range w.frames {
		can[i] = w.frames[i].tick && i+1 < len(w.frames) && w.frames[i+1].tick
	}
	return can
}

// thinnable returns the position of the tick that a thinned history evicts next, or -1. For each
// power of two, it counts the ticks that are divisible by this power and not by the next one. It
// counts from the oldest tick that may be evicted to the newest.
func (w *naiveWorld) thinnable() int {
	best, most := -1, 0
	for power := uint64(1); w.dense > 0 && power <= w.tick; power *= 2 {
		oldest, n := -1, 0
		divides := func(tick uint64) bool { return tick%power == 0 && tick%(2*power) != 0 }
		for i, can := range w.evictable() {
			if tick := w.frames[i].state.tick; can && i > 0 && oldest < 0 && divides(tick) && tick+uint64(w.dense) < w.tick {
				oldest = i
			}
		}
		if oldest < 0 {
			continue
		}
		for tick := w.frames[oldest].state.tick; tick+uint64(w.dense) < w.tick; tick++ {
			if divides(tick) {
				n++
			}
		}
		if n > most {
			best, most = oldest, n
		}
	}
	return best
}

// seek goes to the end of tick, and reports whether the tick is retained.
func (w *naiveWorld) seek(tick uint64) bool {
	if f := slices.IndexFunc(w.forward, func(s *naiveState) bool { return s.tick == tick }); f >= 0 {
		w.frames = w.frames[:w.newestTick()+1]
		for i := len(w.forward) - 1; i >= f; i-- {
			w.frames = append(w.frames, naiveFrame{tick: true, state: w.forward[i]})
		}
		w.put(w.forward[f])
		w.forward = w.forward[:f]
		return true
	}
	k := slices.IndexFunc(w.frames, func(f naiveFrame) bool { return f.tick && !f.bare && f.state.tick == tick })
	if k < 0 {
		return false
	}
	for i := len(w.frames) - 1; i > k; i-- {
		if w.frames[i].tick {
			w.forward = append(w.forward, w.frames[i].state)
		}
	}
	w.put(w.frames[k].state)
	w.frames = w.frames[:k+1]
	return true
}

func (w *naiveWorld) newestTick() int {
	k := len(w.frames) - 1
	for k >= 0 && !w.frames[k].tick {
		k--
	}
	return k
}

func (w *naiveWorld) oldest() uint64 {
	for _, f := range w.frames {
		if f.tick && !f.bare {
			return f.state.tick
		}
	}
	return w.tick
}

func (w *naiveWorld) newest() uint64 {
	if len(w.forward) > 0 {
		return w.forward[0].tick
	}
	return w.tick
}

// ticks returns the retained ticks.
func (w *naiveWorld) ticks() (ticks []uint64) {
	for _, f := range w.frames {
		if f.tick && !f.bare {
			ticks = append(ticks, f.state.tick)
		}
	}
	for i := len(w.forward) - 1; i >= 0; i-- {
		ticks = append(ticks, w.forward[i].tick)
	}
	return ticks
}
