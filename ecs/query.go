package ecs

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
func Write[T any](s *Storage[T]) Access[T] { return Access[T]{s: s, write: true} }

// Read makes a query hand out components of s for reading. They must not be
// written: what is written through a read access is neither restored nor
// journaled.
func Read[T any](s *Storage[T]) Access[T] { return Access[T]{s: s} }

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

func (a Access[T]) joined() joinedColumn {
	return joinedColumn{&a.s.set, &a.s.data, a.write, a.optional}
}

// at returns the component in row, nil if it is missing.
func (a Access[T]) at(row uint32) *T {
	if row == missing {
		return nil
	}
	return &a.s.data.Live[row]
}

// rows returns the components of n rows, nil if they are missing.
func (a Access[T]) rows(row, n uint32) []T {
	if row == missing {
		return nil
	}
	return a.s.data.Live[row:][:n]
}
