package ecs

import (
	"unsafe"

	"github.com/stet-ecs/stet/ecs/raw"
)

//go:generate go run ../internal/querygen

// An Access tells a query how it uses a component: [Write] or [Read], optionally wrapped in
// [Optional].
type Access[T any] struct {
	s        *Storage[T]
	write    bool
	optional bool
}

// Write makes a query return components of s for writing. The world records every row that the
// query returns as written, whether or not the loop changes the row.
func Write[T any](s *Storage[T]) Access[T] { return Access[T]{s: mustNonNil(s), write: true} }

// Read makes a query return components of s for reading. The components are read-only, and so is
// the memory of their slices, maps and pointers. A write to them is neither restored nor journaled.
// Only a debug build finds such a write.
func Read[T any](s *Storage[T]) Access[T] { return Access[T]{s: mustNonNil(s)} }

// Optional makes a query include entities with and without the component:
//
//	NewQuery2(Write(positions), Optional(Read(velocities)))
//
// A row without the component has a nil pointer for it, and a run has a nil slice. Use AllOptional
// for such a query: All does not test for missing components. An optional component never excludes
// an entity. The loop may remove it from any entity.
func Optional[T any](a Access[T]) Access[T] {
	a.optional = true
	return a
}

// rowAfter returns a pointer to the element n elements after p. That element must exist.
func rowAfter[T any](p *T, n int) *T {
	return (*T)(unsafe.Add(unsafe.Pointer(p), uintptr(n)*unsafe.Sizeof(*p)))
}

func (a Access[T]) joined() joinedColumn {
	return joinedColumn{a.s.name, &a.s.set, &a.s.data, a.s.data.Raw(), a.write, a.optional}
}

// at returns the component in the given row, or nil if the row equals the constant missing.
func (a Access[T]) at(row uint32) *T {
	if row == missing {
		return nil
	}
	return &a.s.data.Live[row]
}

// rowsFrom returns n rows of the slice live, starting at base+row. It returns nil if row equals the
// constant missing.
func rowsFrom[T any](live []T, base int, row uint32, n int) []T {
	if row == missing {
		return nil
	}
	at := base + int(row)
	return live[at : at+n : at+n]
}

// An AnyQuery is a query of any number of components: [Query1], [Query2] and so on.
type AnyQuery interface {
	// AppendEntities appends the entities that the query finds to dst, in the order of iteration.
	AppendEntities(dst []Entity) []Entity

	// Count returns the number of entities that the query finds.
	Count() int

	base() *join

	raw.User
}

// DestroyFound destroys the entities that q finds. It returns how many of these entities are dead
// afterwards.
func (w *World) DestroyFound(q AnyQuery) int {
	if q.base().w != w {
		panic("ecs: DestroyFound with a query of another world; make the query from storages of this one")
	}
	return w.destroyBatch(q.base().appendEntities(w.batch[:0]))
}

// appendEntities appends the entities of the join to dst.
func (j *join) appendEntities(dst []Entity) []Entity {
	c := j.walk(nil)
	for run := c.nextRun(); run != nil; run = c.nextRun() {
		dst = append(dst, c.entitiesOf(run)...)
	}
	return dst
}

func filterSet(what string, f AnyStorage) *set {
	mustNonNilFilter(what, f)
	s := f.sparseSet()
	if s == nil {
		panic(resourceFilter(f))
	}
	return s
}

func (j *join) with(filters []Filter) {
	for _, f := range filters {
		mustNonNilFilter("With", f)
		f.narrow(j)
	}
}

func (j *join) exclude(filters []AnyStorage) {
	for _, f := range filters {
		j.without = append(j.without, j.use(filterSet("Without", f)))
	}
	j.invalidate()
}

func (j *join) either(filters []AnyStorage) {
	var sets []*set
	for _, f := range filters {
		sets = append(sets, j.use(filterSet("Or", f)))
	}
	j.any = append(j.any, sets)
	j.invalidate()
}

// passes reports whether e is in no excluded set and in at least one set of each Or. The caller has
// checked the required sets.
func (j *join) passes(e Entity) bool {
	for _, s := range j.without {
		if s.row(e) >= 0 {
			return false
		}
	}
	for _, sets := range j.any {
		if !anyHas(sets, e) {
			return false
		}
	}
	return true
}

func anyHas(sets []*set, e Entity) bool {
	for _, s := range sets {
		if s.row(e) >= 0 {
			return true
		}
	}
	return false
}

// mustRequire panics if every component of j is optional.
func (j *join) mustRequire() {
	if j.optional == 1<<len(j.sets)-1 {
		panic("ecs: every component of a query is Optional, so it selects no entities; require one component, or add a storage with With")
	}
}
