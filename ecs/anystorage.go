package ecs

import (
	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/layout"
)

// AnyStorage is the face of a [Storage] or a [Resource] towards code that does
// not know its type: persistence, digests, tools. Only this package implements
// it.
type AnyStorage interface {
	Filter

	Filter

	// Name returns the name under which it is saved.
	Name() string

	// Layout describes a row, or is nil if rows cannot be encoded.
	Layout() *layout.Type

	// Version returns the number given with [Version], under which it is saved.
	Version() uint32

	// StoredAs returns the name under which something that has the names for which
	// has returns true holds it: its own, or the first of its former ones.
	StoredAs(has func(name string) bool) (name string, ok bool)

	// Persistent reports whether it belongs into journals, snapshots and saves.
	Persistent() bool

	// Rewinds reports whether it is put back with the world: not NoRewind.
	Rewinds() bool

	// IsResource reports whether it is a [Resource].
	IsResource() bool

	// Unknown reports whether it was loaded without being registered. Its rows are
	// kept and saved as they are.
	Unknown() bool

	// Kind returns how rows are found. That of a resource is [Sparse].
	Kind() Kind

	// Len returns the number of entities that have the component; 1 for a resource.
	Len() int

	// Rows returns the number of rows: Len, and the gaps of an [Indexed] storage.
	Rows() int

	// Entities returns the entities of the rows, [Vacant] for gaps; nil for a
	// resource.
	Entities() []Entity

	// AppendRows appends the canonical encoding of rows [lo, hi) to dst, in the
	// format of package layout.
	AppendRows(dst []byte, lo, hi int) []byte

	// AppendRanges appends the canonical encoding of ranges of rows to dst.
	AppendRanges(dst []byte, ranges []Range) []byte

	// AppendDefault appends the canonical encoding of what gaps hold to dst, if it
	// is not the zero value.
	AppendDefault(dst []byte) []byte

	discard(e Entity, row int) // Remove, without a note among the operations.
	discardAll()
	swapRows(i, j int)
	permute(lo int, from []uint32)
	tracked() *track.Tracker
	sparseSet() *set // nil for a resource
	valuesWritten(ranges []Range, k, limit int) (_ []Range, sorted bool)
	prepare(s *StorageState, owned bool) (apply func(), err error)
	past() *evolution
	cloneInto(*World)
	pinPart() *pinPart
}

type exemptStorage interface{ dropDead() }

// Name returns the name under which values are saved.
func (s *spec[T]) Name() string { return s.name }

// Layout describes a row, or is nil if rows cannot be encoded.
func (s *spec[T]) Layout() *layout.Type { return s.layout }

// Persistent reports whether values belong into journals, snapshots and saves.
func (s *spec[T]) Persistent() bool { return !s.noPersist }

// Unknown reports whether it was loaded without being registered.
func (s *spec[T]) Unknown() bool { return s.unknown }

// Kind returns how rows are found, and how they are ordered.
func (s *spec[T]) Kind() Kind { return s.kind }

// IsResource reports whether it is a [Resource].
func (s *Storage[T]) IsResource() bool { return false }

// IsResource reports whether it is a [Resource].
func (r *Resource[T]) IsResource() bool { return true }

// Rewinds reports whether it is put back with the world.
func (s *Storage[T]) Rewinds() bool { return !s.rows.Exempt }

// Rewinds reports whether it is put back with the world.
func (r *Resource[T]) Rewinds() bool { return !r.rows.Exempt }

// AppendRows appends the canonical encoding of rows [lo, hi) to dst.
func (s *Storage[T]) AppendRows(dst []byte, lo, hi int) []byte {
	return s.codec.append(dst, s.data.Live[lo:hi])
}

// AppendRows appends the canonical encoding of the value to dst if [lo, hi) is
// [0, 1).
func (r *Resource[T]) AppendRows(dst []byte, lo, hi int) []byte {
	return r.codec.append(dst, r.data.Live[lo:hi])
}

// AppendRanges appends the canonical encoding of ranges of rows to dst.
func (s *Storage[T]) AppendRanges(dst []byte, ranges []Range) []byte {
	return s.codec.appendRanges(dst, s.data.Live, ranges)
}

// AppendRanges appends the canonical encoding of the value to dst if ranges has
// row 0.
func (r *Resource[T]) AppendRanges(dst []byte, ranges []Range) []byte {
	return r.codec.appendRanges(dst, r.data.Live, ranges)
}

// AppendDefault appends the canonical encoding of what gaps hold to dst, if it is
// not the zero value.
func (s *spec[T]) AppendDefault(dst []byte) []byte {
	if s.gap == nil {
		return dst
	}
	return s.codec.append(dst, []T{*s.gap})
}

func (s *Storage[T]) tracked() *track.Tracker  { return &s.rows }
func (r *Resource[T]) tracked() *track.Tracker { return &r.rows }

func (s *Storage[T]) sparseSet() *set  { return &s.set }
func (r *Resource[T]) sparseSet() *set { return nil }

func (s *Storage[T]) valuesWritten(ranges []Range, k, limit int) ([]Range, bool) {
	return written(&s.data, ranges, k, limit)
}

func (r *Resource[T]) valuesWritten(ranges []Range, k, limit int) ([]Range, bool) {
	return written(&r.data, ranges, k, limit)
}
