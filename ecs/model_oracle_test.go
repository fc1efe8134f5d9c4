package ecs

import "slices"

// An oracleState is the whole content of a world, in slices. A copy of the state copies all slices.
// Every value is an int. An intStore converts ints to components.
type oracleState struct {
	tick uint64
	// Set if the recorder has deferred the tick, and has not recorded it yet.
	deferred             bool
	alive, free, retired []Entity
	stores               []oracleStore
	resources            []int
	groups               []oracleGroup
	events               oracleEvents
}

// oracleEvents are the events of a world, and the number of events that the model's reader has
// read.
type oracleEvents struct {
	sent, read int
	last, now  []int
}

// held returns the retained events.
func (e *oracleEvents) held() []int { return slices.Concat(e.last, e.now) }

// unread returns the retained events after the position of the reader, and the number of events
// that the reader has missed.
func (e *oracleEvents) unread() (_ []int, missed int) {
	held := e.held()
	first := e.sent - len(held)
	return held[max(e.read-first, 0):], max(first-e.read, 0)
}

type oracleStore struct {
	entities []Entity
	values   []int
	// Set if the store is Indexed, so that the row of an entity is its index. A row without an
	// entity has the entity Vacant and the value in the field gap.
	indexed bool
	gap     int
}

// empty returns a store without rows that has the options of s.
func (s *oracleStore) empty() oracleStore { return oracleStore{indexed: s.indexed, gap: s.gap} }

// find returns the row of e, or -1.
func (s *oracleStore) find(e Entity) int {
	if e == Vacant {
		return -1
	}
	return slices.Index(s.entities, e)
}

func (s *oracleStore) add(e Entity, v int) {
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
func (s *oracleStore) members() (n int) {
	for _, e := range s.entities {
		if e != Vacant {
			n++
		}
	}
	return n
}

func (s *oracleState) clone() *oracleState {
	c := *s
	c.alive, c.free, c.retired = slices.Clone(s.alive), slices.Clone(s.free), slices.Clone(s.retired)
	c.stores = make([]oracleStore, len(s.stores))
	for i, st := range s.stores {
		c.stores[i] = st
		c.stores[i].entities, c.stores[i].values = slices.Clone(st.entities), slices.Clone(st.values)
	}
	c.resources = slices.Clone(s.resources)
	c.groups = slices.Clone(s.groups)
	c.events.last, c.events.now = slices.Clone(s.events.last), slices.Clone(s.events.now)
	return &c
}

// An oracleFrame is a boundary with a copy of the state at the boundary.
type oracleFrame struct {
	cp         Checkpoint // The checkpoint in the world under test, or zero for a tick.
	tick, bare bool
	state      *oracleState
}

// An oracle implements the documentation of World in the simplest way. It copies the whole state at
// every boundary.
type oracle struct {
	*oracleState
	frames   []oracleFrame
	forward  []*oracleState // Undone states. A redo starts with the last state.
	history  int
	dense    int
	recorded bool
	defers   bool // The recorder may defer ticks.
	// Set if the world has no history, but retains its newest tick because a change filter needs
	// it.
	keepTick   bool
	overBudget func() bool // Reports whether the world under test exceeds its byte limit.

	replaced []oracleSet // The calls of Set that replaced a component.

	maxGeneration  uint32
	relations      []oracleRelation
	exempt         []bool // For each store, whether it is NoRewind.
	exemptResource []bool
}

func (w *oracle) start() {
	w.frames, w.forward = nil, nil
	if w.history > 0 || w.recorded || w.keepTick {
		w.frames = append(w.frames, oracleFrame{tick: true, bare: w.history == 0 && !w.keepTick && !w.defers, state: w.oracleState.clone()})
	}
}

func (w *oracle) create() Entity {
	w.forward = nil
	for len(w.free) > 0 {
		e := w.free[0]
		if e.Generation() != w.maxGeneration {
			e = NewEntity(e.Index(), e.Generation()+1)
			w.free = w.free[1:]
			w.alive = append(w.alive, e)
			return e
		}
		// No generation is left for the index of e, so e is retired. The last free entity gets its
		// place in the list.
		last := len(w.free) - 1
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

// createAt makes e alive. It returns false if World.CreateAt must return an error.
func (w *oracle) createAt(e Entity) bool {
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

func (w *oracle) destroy(e Entity) bool {
	if !slices.Contains(w.alive, e) || !w.resolveRelations(e) {
		return false
	}
	w.end(e)
	return true
}

// end destroys the alive entity e. The caller has applied the policies of the relations before.
func (w *oracle) end(e Entity) {
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

func (w *oracle) clearAll() {
	w.forward = nil
	w.free = append(slices.Clone(w.alive), w.free...)
	w.alive = nil
	for i := range w.stores {
		w.stores[i] = w.stores[i].empty()
		w.resetGroup(i)
	}
}

// markWritten records that store i changed in the open tick.
func (w *oracle) markWritten(i int) {
	if !w.exempt[i] {
		w.forward = nil
	}
}

func (w *oracle) set(i int, e Entity, v int) bool {
	if !slices.Contains(w.alive, e) {
		return false
	}
	w.markWritten(i)
	s := &w.stores[i]
	if k := s.find(e); k >= 0 {
		w.replaced = append(w.replaced, oracleSet{i, oracleEdit{e, s.values[k], v}})
		s.values[k] = v
		return true
	}
	s.add(e, v)
	w.regroup(e)
	return true
}

func (w *oracle) increase(i int, e Entity, by int) bool {
	k := w.stores[i].find(e)
	if k < 0 {
		return false
	}
	w.markWritten(i)
	w.stores[i].values[k] += by
	return true
}

func (w *oracle) remove(i int, e Entity) bool {
	if w.stores[i].find(e) < 0 {
		return false
	}
	w.markWritten(i)
	if g := w.groupOf(i); g != nil {
		w.ungroup(g, e)
	}
	return w.stores[i].remove(e)
}

func (s *oracleStore) remove(e Entity) bool {
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

func (w *oracle) clearStore(i int) {
	if len(w.stores[i].entities) > 0 {
		w.markWritten(i)
		w.stores[i] = w.stores[i].empty()
		w.resetGroup(i)
	}
}

func (w *oracle) setResource(i, v int) {
	if !w.exemptResource[i] {
		w.forward = nil
	}
	w.resources[i] = v
}

func (w *oracle) checkpoint(cp Checkpoint) {
	w.frames = append(w.frames, oracleFrame{cp: cp, state: w.oracleState.clone()})
}

// setState replaces the state by s. Data that does not rewind keeps its values.
func (w *oracle) setState(s *oracleState) {
	before := w.oracleState
	w.oracleState = s.clone()
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

func (w *oracle) restore(k int) {
	for _, f := range w.frames[k:] {
		if f.tick {
			w.forward = nil
		}
	}
	w.setState(w.frames[k].state)
	w.frames = w.frames[:k+1]
}

func (w *oracle) release(k int) {
	w.frames = slices.Delete(w.frames, k, k+1)
	w.evict()
}

func (w *oracle) commit() {
	w.pack()
	w.events.last, w.events.now = w.events.now, nil
	w.forward = nil
	w.tick++
	if w.history > 0 || w.recorded || w.keepTick {
		bare := w.history == 0 && !w.keepTick && !w.defers && !slices.ContainsFunc(w.frames, func(f oracleFrame) bool { return !f.tick })
		w.frames = append(w.frames, oracleFrame{tick: true, bare: bare, state: w.oracleState.clone()})
		w.evict()
	}
}

// evict removes ticks until the history is within its limits. It removes the oldest tick or, in a
// thinned history, the tick that thinnable() returns. It never removes these ticks:
//
//   - the newest tick
//   - a tick that is followed by a checkpoint
//   - a recorded tick directly before a deferred tick, because the next record continues from it
func (w *oracle) evict() {
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
		pinned := 0
		if len(w.frames) > 1 && w.frames[0].tick && !w.frames[0].state.deferred && w.frames[1].tick && w.frames[1].state.deferred {
			// The next record continues from this tick. So the tick stays, and the limit does not
			// count it.
			pinned = 1
		}
		if k < 0 || ticks-1-pinned <= w.history && !w.overBudget() {
			return
		}
		w.frames = slices.Delete(w.frames, k, k+1)
	}
}

// evictable reports for each frame whether it is a tick that evict() may remove.
func (w *oracle) evictable() []bool {
	can := make([]bool, len(w.frames))
	for i := range w.frames {
		can[i] = w.frames[i].tick && i+1 < len(w.frames) && w.frames[i+1].tick && (w.frames[i].state.deferred || !w.frames[i+1].state.deferred)
	}
	return can
}

// thinnable returns the position of the tick that a thinned history evicts next, or -1. It groups
// ticks by the highest power of two that divides them. For example, 4, 12 and 20 are in one group.
// For each group, it counts the ticks from the oldest evictable one to the newest. It returns the
// oldest evictable tick of the group with the highest count.
func (w *oracle) thinnable() int {
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

// seek goes to the end of tick. It returns false if the tick is not retained.
func (w *oracle) seek(tick uint64) bool {
	if f := slices.IndexFunc(w.forward, func(s *oracleState) bool { return s.tick == tick }); f >= 0 {
		w.frames = w.frames[:w.newestTick()+1]
		for i := len(w.forward) - 1; i >= f; i-- {
			w.frames = append(w.frames, oracleFrame{tick: true, state: w.forward[i]})
		}
		w.setState(w.forward[f])
		w.forward = w.forward[:f]
		return true
	}
	k := slices.IndexFunc(w.frames, func(f oracleFrame) bool { return f.tick && !f.bare && f.state.tick == tick })
	if k < 0 {
		return false
	}
	if newest := w.newestTick(); k < newest && len(w.forward) == 0 {
		// Before a seek, the world makes the recorder record the deferred ticks.
		w.frames[newest].state.deferred = false
	}
	for i := len(w.frames) - 1; i > k; i-- {
		if w.frames[i].tick {
			w.forward = append(w.forward, w.frames[i].state)
		}
	}
	w.setState(w.frames[k].state)
	w.frames = w.frames[:k+1]
	return true
}

func (w *oracle) newestTick() int {
	k := len(w.frames) - 1
	for k >= 0 && !w.frames[k].tick {
		k--
	}
	return k
}

func (w *oracle) oldest() uint64 {
	for _, f := range w.frames {
		if f.tick && !f.bare {
			return f.state.tick
		}
	}
	return w.tick
}

func (w *oracle) newest() uint64 {
	if len(w.forward) > 0 {
		return w.forward[0].tick
	}
	return w.tick
}

// ticks returns the retained ticks.
func (w *oracle) ticks() (ticks []uint64) {
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
