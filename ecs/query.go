package ecs

import "unsafe"

//go:generate go run ../internal/querygen

// Access says how a query uses a component: [Write], [Read], or either of them
// made [Optional].
type Access[T any] struct {
	s        *Storage[T]
	write    bool
	optional bool
}

// Write makes a query hand out components of s for writing. Every row it hands
// out counts as written.
func Write[T any](s *Storage[T]) Access[T] { return Access[T]{s: there(s), write: true} }

// Read makes a query hand out components of s for reading. Neither they nor what their
// slices, maps and pointers lead to must be written: what is written through a read
// access is neither restored nor journaled, and only a debug build finds it.
func Read[T any](s *Storage[T]) Access[T] { return Access[T]{s: there(s)} }

// Optional makes a query find entities whether they have the component or not:
//
//	NewQuery2(Write(positions), Optional(Read(velocities)))
//
// Where it is missing its pointer, or the slice of a run, is nil. An optional
// component never drives a query and never excludes an entity, and any entity
// may lose it while the query iterates. Rows are handed out by AllOptional, as
// the test that All would need costs as much as the rest of its loop.
func Optional[T any](a Access[T]) Access[T] {
	a.optional = true
	return a
}

// beside returns the row n rows behind p, which there is.
func beside[T any](p *T, n int) *T {
	return (*T)(unsafe.Add(unsafe.Pointer(p), uintptr(n)*unsafe.Sizeof(*p)))
}

func (a Access[T]) joined() joinedColumn {
	return joinedColumn{a.s.name, &a.s.set, &a.s.data, a.s.data.Raw(), a.write, a.optional}
}

// at returns the component in row, nil if it is missing.
func (a Access[T]) at(row uint32) *T {
	if row == missing {
		return nil
	}
	return &a.s.data.Live[row]
}

// rowsFrom returns n rows of live, the first of which is row, counted from base; nil if they
// are missing.
func rowsFrom[T any](live []T, base int, row uint32, n int) []T {
	if row == missing {
		return nil
	}
	at := base + int(row)
	return live[at : at+n : at+n]
}

// An AnyQuery is a query of any number of components: [Query1], [Query2] and so
// on.
type AnyQuery interface {
	// AppendEntities appends the entities found to dst, in the order of iteration.
	AppendEntities(dst []Entity) []Entity

	// Count returns the number of entities found.
	Count() int

	base() *join
}

// DestroyFound destroys the entities that q finds and returns how many of them are dead
// afterwards. It is DestroyAll of what [Query1.AppendEntities] returns.
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
	mustBeThere(what, f)
	s := f.sparseSet()
	if s == nil {
		panic(resourceFilter(f))
	}
	return s
}

func (j *join) with(filters []Filter) {
	for _, f := range filters {
		mustBeThere("With", f)
		f.narrow(j)
	}
}

func (j *join) exclude(filters []AnyStorage) {
	for _, f := range filters {
		j.without = append(j.without, j.here(filterSet("Without", f)))
	}
	j.unsettle()
}

func (j *join) either(filters []AnyStorage) {
	var sets []*set
	for _, f := range filters {
		sets = append(sets, j.here(filterSet("Or", f)))
	}
	j.any = append(j.any, sets)
	j.unsettle()
}

// passes reports whether e, which is in all sets of j, is in none that exclude
// it and in one of each Or.
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
