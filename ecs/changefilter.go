package ecs

import "github.com/stet-ecs/stet/ecs/raw"

// A ChangeFilter is a [Filter] of queries. It keeps the entities whose component was added, changed
// or removed since the last commit:
//
//	NewQuery1(Read(health)).With(health.Changed())
//
// [Storage.Added], [Storage.Changed] and [Storage.Removed] create a ChangeFilter.
// [ChangeFilter.Since] sets an earlier tick to compare with.
//
// The filter finds its entities when an iteration begins, in O(rows written since the commit).
// Changes that the loop makes do not count. Use each filter in one query only.
type ChangeFilter struct {
	_ noCopy

	w     *World
	found []Entity
	find  func() ([]Entity, error)
	of    raw.Use // The filter reads the storage: for package schedule.

	fixed bool // The filter compares with tick instead of the last commit.
	tick  uint64

	// place maps an entity index to a position in found. Entries may be stale, so keeps() compares
	// the entity at that position.
	place  []uint32
	placed bool
}

func newChangeFilter[T any](s *Storage[T], verb string, pick func(*Delta[T]) []Entity) *ChangeFilter {
	s.w.mustKeepTick(&s.rows, verb, s.name)
	d := &Delta[T]{s: s}
	f := &ChangeFilter{w: s.w, of: s.use(raw.Reads, raw.Reads)}
	f.find = func() ([]Entity, error) {
		if f.fixed {
			err := d.Since(f.tick)
			return pick(d), err
		}
		err := d.SinceCommit() // The error is nil, because the world keeps the last commit.
		return pick(d), err
	}
	return f
}

// Since makes later iterations compare with the end of the given tick. An error wraps [ErrNotHeld]
// and leaves f unchanged. An iteration panics if the history no longer holds the tick. So call
// Since again before the history drops the tick.
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
		panic(err.Error() + "; call ChangeFilter.Since before the iteration")
	}
	f.found, f.placed = found, false
}

func (f *ChangeFilter) kept() []Entity { return f.found }

func (f *ChangeFilter) uses() []raw.Use { return []raw.Use{f.of} }

func (f *ChangeFilter) keeps(e Entity) bool {
	if !f.placed {
		f.indexFound()
	}
	if uint(e.Index()) >= uint(len(f.place)) {
		return false
	}
	i := int(f.place[e.Index()])
	return i < len(f.found) && f.found[i] == e
}

// indexFound fills place with the positions of the entities in found.
func (f *ChangeFilter) indexFound() {
	f.placed = true
	for i, e := range f.found {
		p := int(e.Index())
		if p >= len(f.place) {
			f.place = longer(f.place, max(p+1, f.w.entities.rows.Total))
		}
		f.place[p] = uint32(i)
	}
}
