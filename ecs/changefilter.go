package ecs

// A ChangeFilter keeps the entities for which something happened to a component
// since the last commit, or since an earlier tick: see [ChangeFilter.Since].
// [Added], [Changed] and [Removed] make one.
//
// It is a [Filter] of queries: NewQuery1(Read(health)).With(Changed(health)).
//
// It finds them when an iteration begins, in O(rows written since the commit);
// what the loop changes does not count. Give each query a filter of its own.
type ChangeFilter struct {
	w     *World
	found []Entity
	find  func() ([]Entity, error)

	fixed bool // Compare with the end of tick, not with the last commit.
	tick  uint64

	// Entity index to position in found. An entry without one may hold rubbish, as
	// found is asked back; so nothing is cleared when found anew.
	place []uint32
}

// Added returns a filter that keeps the entities that have the component and did
// not have it at the last commit.
//
// A world without a history keeps the values at its last commit from now on; see
// [Storage.OnChange] for what follows from that, and for when it panics.
func Added[T any](s *Storage[T]) *ChangeFilter {
	return newChangeFilter(s, "Added", func(d *Delta[T]) []Entity { return d.added.entities })
}

// Changed returns a filter that keeps the entities that had the component at the
// last commit and have another value of it now. [Delta] says which values are the
// same, [Added] what is asked of the world.
func Changed[T any](s *Storage[T]) *ChangeFilter {
	return newChangeFilter(s, "Changed", func(d *Delta[T]) []Entity { return d.changed.entities })
}

// Removed returns a filter that keeps the entities that had the component at the
// last commit and do not have it now. [Added] says what is asked of the world.
func Removed[T any](s *Storage[T]) *ChangeFilter {
	return newChangeFilter(s, "Removed", func(d *Delta[T]) []Entity { return d.removed.entities })
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

func (f *ChangeFilter) narrow(j *join) { j.filter(f) }

func (f *ChangeFilter) begin() {
	found, err := f.find()
	if err != nil {
		panic(err.Error() + "; ask ChangeFilter.Since before the iteration")
	}
	f.found = found
	if missing := f.w.entities.rows.Total - len(f.place); missing > 0 {
		f.place = append(f.place, make([]uint32, missing)...)
	}
	for i, e := range f.found {
		f.place[e.Index()] = uint32(i)
	}
}

func (f *ChangeFilter) keeps(e Entity) bool {
	if int(e.Index()) >= len(f.place) {
		return false
	}
	i := int(f.place[e.Index()])
	return i < len(f.found) && f.found[i] == e
}
