package ecs

import (
	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
)

// AnyStorage is a [Storage] or a [Resource] of whatever type. Only this package
// implements it.
type AnyStorage interface {
	Filter

	// Name returns the name under which it is saved.
	Name() string

	// Kind returns how rows are found. That of a resource is [Sparse].
	Kind() Kind

	// Len returns the number of entities that have the component; 1 for a resource.
	Len() int

	// Entities returns the entities that have the component, in dense order, with
	// [Vacant] in the gaps of an [Indexed] storage; nil for a resource. The slice is
	// valid until the next change of the storage and must not be written.
	Entities() []Entity

	// Raw returns it as code sees it that does not know its type.
	Raw() raw.Storage

	about() *spec
	tracked() *track.Tracker
	sparseSet() *set           // nil for a resource
	discard(e Entity, row int) // Remove, without a note among the operations.
	discardAll()
	swapRows(i, j int)
	permute(lo int, from []uint32)
	valuesWritten(ranges []raw.Range, k, limit int) (_ []raw.Range, sorted bool)
	prepare(s *storageState, owned bool) (apply func(), err error)
	cloneInto(*World)
	pinPart() *pinPart
}

type exemptStorage interface{ dropDead() }

// Name returns the name under which values are saved.
func (s *spec) Name() string { return s.name }

// Kind returns how rows are found, and how they are ordered.
func (s *spec) Kind() Kind { return s.kind }

func (s *spec) about() *spec { return s }

// Raw returns the storage as code sees it that does not know its type: rows as
// bytes, and what is known of them.
func (s *Storage[T]) Raw() raw.Storage { return &s.face }

// Raw returns the resource as code sees it that does not know its type.
func (r *Resource[T]) Raw() raw.Storage { return &r.face }

func (s *Storage[T]) tracked() *track.Tracker  { return &s.rows }
func (r *Resource[T]) tracked() *track.Tracker { return &r.rows }

func (s *Storage[T]) sparseSet() *set  { return &s.set }
func (r *Resource[T]) sparseSet() *set { return nil }

func (s *Storage[T]) valuesWritten(ranges []raw.Range, k, limit int) ([]raw.Range, bool) {
	return written(&s.data, ranges, k, limit)
}

func (r *Resource[T]) valuesWritten(ranges []raw.Range, k, limit int) ([]raw.Range, bool) {
	return written(&r.data, ranges, k, limit)
}

// Raw returns the world as code sees it that keeps it without knowing its types:
// package persist, or another way to store it.
func (w *World) Raw() raw.World { return rawWorld{w} }

// rawWorld is a World behind [raw.World]. Its methods lie where what they do is
// explained: records, pins, loading.
type rawWorld struct{ *World }

// Registry returns the registry as it lies.
func (w rawWorld) Registry() (rows []uint64, alive, free int) {
	r := &w.entities
	return raw.As[uint64](r.dense.Live[:r.rows.Total]), r.rows.N, r.rows.Extra
}

// Storages returns the storages and behind them the resources.
func (w rawWorld) Storages() []raw.Storage {
	all := make([]raw.Storage, 0, len(w.storages)+len(w.resources))
	for _, list := range [2][]AnyStorage{w.storages, w.resources} {
		for _, s := range list {
			all = append(all, s.Raw())
		}
	}
	return all
}

// A rawStorage is a storage or resource behind [raw.Storage].
type rawStorage[T any] struct {
	AnyStorage
	data  *track.Column[T]
	codec rowCodec[T]
	gap   *T
}

func (f *rawStorage[T]) Layout() *layout.Type { return f.about().layout }
func (f *rawStorage[T]) Version() uint32      { return f.about().past().version }
func (f *rawStorage[T]) Persistent() bool     { return !f.about().noPersist }
func (f *rawStorage[T]) Rewinds() bool        { return !f.about().noRewind }
func (f *rawStorage[T]) Unknown() bool        { return f.about().unknown }
func (f *rawStorage[T]) IsResource() bool     { return f.sparseSet() == nil }
func (f *rawStorage[T]) IsIndexed() bool      { return f.about().kind == Indexed }
func (f *rawStorage[T]) Rows() int            { return f.tracked().N }
func (f *rawStorage[T]) Entities() []uint64   { return raw.As[uint64](f.AnyStorage.Entities()) }

func (f *rawStorage[T]) StoredAs(has func(name string) bool) (name string, ok bool) {
	return f.about().storedAs(has)
}

func (f *rawStorage[T]) AppendRows(dst []byte, lo, hi int) []byte {
	return f.codec.append(dst, f.data.Live[lo:hi])
}

func (f *rawStorage[T]) AppendRanges(dst []byte, ranges []raw.Range) []byte {
	return f.codec.appendRanges(dst, f.data.Live, ranges)
}

func (f *rawStorage[T]) AppendDefault(dst []byte) []byte {
	if f.gap == nil {
		return dst
	}
	return f.codec.append(dst, []T{*f.gap})
}
