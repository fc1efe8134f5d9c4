package ecs

// A ChangeFilter keeps the entities for which something happened to a component
// since the last commit, or since an earlier tick: see [ChangeFilter.Since].
// [Storage.Added], [Storage.Changed] and [Storage.Removed] make one.
//
// It is a [Filter] of queries: NewQuery1(Read(health)).With(health.Changed()).
//
// It finds them when an iteration begins, in O(rows written since the commit), and of the
// others the iteration sees no more than a bit for 64 rows; once rows of the storage that it
// goes along have moved in the loop, it asks for each. What the loop changes does not count.
// Give each query a filter of its own.
type ChangeFilter struct {
	w     *World
	found []Entity
	find  func() ([]Entity, error)

	fixed bool // Compare with the end of tick, not with the last commit.
	tick  uint64

	// Entity index to position in found, once somebody is asked for. An entry without
	// one may hold rubbish, as found is asked back; so nothing is cleared when found anew.
	place  []uint32
	placed bool
}

func newChangeFilter[T any](s *Storage[T], verb string, pick func(*Delta[T]) []Entity) *ChangeFilter {
	s.w.mustKeepTick(&s.rows, verb, s.name)
	d := &Delta[T]{s: s}
	f := &ChangeFilter{w: s.w}
	f.find = func() ([]Entity, error) {
		if f.fixed {
			err := d.Since(f.tick)
			return pick(d), err
		}
		err := d.SinceCommit() // nil: that tick is kept.
		return pick(d), err
	}
	return f
}

// Since makes f compare with the end of tick from now on, instead of the last
// commit. An error wraps [ErrNotHeld]; f is then as it was. An iteration panics if
// the history does not hold the tick any more by then: call Since before it.
func (f *ChangeFilter) Since(tick uint64) error {
	fixed, was := f.fixed, f.tick
	f.fixed, f.tick = true, tick
	if _, err := f.find(); err != nil {
		f.fixed, f.tick = fixed, was
		return err
	}
	return nil
}

func (f *ChangeFilter) narrow(q narrowed) { q.filter(f) }

func (f *ChangeFilter) begin() {
	found, err := f.find()
	if err != nil {
		panic(err.Error() + "; ask ChangeFilter.Since before the iteration")
	}
	f.found, f.placed = found, false
}

func (f *ChangeFilter) kept() []Entity { return f.found }

func (f *ChangeFilter) keeps(e Entity) bool {
	if !f.placed {
		f.lay()
	}
	if uint(e.Index()) >= uint(len(f.place)) {
		return false
	}
	i := int(f.place[e.Index()])
	return i < len(f.found) && f.found[i] == e
}

// lay notes where each entity is in found.
func (f *ChangeFilter) lay() {
	f.placed = true
	for i, e := range f.found {
		p := int(e.Index())
		if p >= len(f.place) {
			f.place = longer(f.place, max(p+1, f.w.entities.rows.Total))
		}
		f.place[p] = uint32(i)
	}
}
