package ecs

import (
	"fmt"
	"reflect"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
)

// A Storage has the components of type T. It is a sparse set with one row for each entity that has
// the component. [Register] creates a Storage.
//
//	one entity      Get, Has, Set, Mut, Remove; Row
//	all rows        All, Entities, Values, MutValues, Len, Drain, Clear
//	many entities   SetAll, SetEach, MutEach, RemoveAll, Reserve; Later
//	order           SortFunc, SortEntities, SortLike
//	changes         Since, SinceCommit; in queries Added, Changed, Removed
//	hooks           OnAdd, OnSet, OnRemove, OnChange; RequiredBy
//	by name         GetAny, SetAny, GetJSON, SetJSON; World.Storage
//	metadata        Name, Kind, Mask; In another world; Raw
//
// A type of size 0 is a tag. It has members but no values, and its rows take no memory for data.
type Storage[T any] struct {
	set
	data track.Column[T]
	spec
	adapter rowAdapter[T]
	raw     rawAdapter

	onSet []func(e Entity, old, now T)
	// Removed rows below top may still hold pointers. Rows from top on are zero. Used only for
	// types with pointers.
	top     int
	patched []T // Buffer for decoding patches. All rows are zero between two patches.
}

// A spec has the properties of a component or resource, without its Go type.
type spec struct {
	name       string
	layout     *layout.Type // Nil if values cannot be encoded.
	tag        bool         // The type has size 0.
	pointers   bool
	noRewind   bool
	noPersist  bool
	masked     bool
	unknown    bool // The component was loaded but not registered.
	kind       Kind
	refs       *references // The places of entities in values. Computed at the first use.
	*evolution             // Nil if there are no former versions.
}

// A typedSpec has the properties of a component or resource of type T.
type typedSpec[T any] struct {
	spec
	codec rowCodec[T]
	clone func(T) T
	gap   *T // The value of gaps in an Indexed storage. Nil means the zero value.
}

// A rowCodec encodes rows as canonical bytes and decodes them.
type rowCodec[T any] interface {
	append(dst []byte, rows []T) []byte
	appendRanges(dst []byte, rows []T, ranges []raw.Range) []byte
	decode(src []byte, rows []T) error
	// adopt returns src as rows that share its memory. It returns false if this is not possible.
	adopt(src []byte, n int) (rows []T, ok bool)
}

func newStorage[T any](w *World, s typedSpec[T]) *Storage[T] {
	st := &Storage[T]{spec: s.spec}
	st.adapter = rowAdapter[T]{&st.data, s.codec, s.gap}
	st.raw = rawAdapter{st, &st.adapter}
	st.initLending()
	st.set.init(w, st, s.kind, s.noRewind)
	st.rows.Rewound = st.afterRewind
	if s.masked {
		st.mask = newMask(w, s.noRewind)
		st.byIndex = s.kind == Ordered
	}
	st.heavy = s.kind == Indexed || s.masked || s.pointers || s.clone != nil
	st.data.Init(&w.clock, s.pointers)
	st.data.Clone, st.data.Log.Keeps = s.clone, s.keepsOld()
	if s.pointers {
		st.rows.Settle = st.settle
		st.data.Log.Moved = func(r track.Run) { st.top = max(st.top, int(r.Row+r.N)) }
	}
	if !s.tag {
		st.rows.Add(&st.data.Log)
	}
	return st
}

// Name returns the name under which values are saved.
func (s *spec) Name() string { return s.name }

// Kind returns the kind of the storage, which determines how rows are found and ordered.
func (s *spec) Kind() Kind { return s.kind }

// keepsOld reports whether even bare frames save the old values of rows.
func (s *spec) keepsOld() bool {
	return s.layout != nil && s.layout.Width() > raw.LargeRow && !s.noPersist
}

// Len returns the number of entities that have the component.
func (s *set) Len() int { return s.rows.N - s.rows.Extra }

// Entities returns the entities that have the component, in dense order. Gaps of an [Indexed]
// storage have the entry [Vacant]. The slice is valid until the next change of the storage, and
// is read-only. A loop that destroys entities, or removes components, must go from the last
// entity to the first: see [World.Entities].
func (s *set) Entities() []Entity {
	if debug {
		s.mustBeReadable("Entities")
	}
	return s.w.loan(&s.rows, &s.dense)
}

// members is Entities without the copy of a debug build.
func (s *set) members() []Entity { return s.dense.Live[:s.rows.N:s.rows.N] }

// Values returns the components in dense order, parallel to [Storage.Entities]. Gaps of an
// [Indexed] storage have the default value. The slice, and the memory that components point to, are
// read-only. The slice is valid until the next change of the storage.
func (s *Storage[T]) Values() []T {
	if debug {
		s.mustBeReadable("Values")
	}
	return s.data.Live[:s.rows.N:s.rows.N]
}

// MutValues returns the components in dense order for writing, parallel to [Storage.Entities]. All
// rows count as written. Writing to a gap of an [Indexed] storage is possible; the value stays
// there until an entity takes the row.
//
// The slice is valid until the next change of the storage, Checkpoint, Commit, Restore, Release or
// Seek. The first call in a frame costs O(rows).
func (s *Storage[T]) MutValues() []T {
	if debug {
		s.mustBeWritable("MutValues", 0)
		s.lend()
	}
	s.rows.Open()
	s.data.TouchRange(0, s.rows.N)
	s.pointToAll()
	return s.Values()
}

// Clear removes the component from all entities.
//
// It costs O(1): it sets the number of rows to 0 and leaves the rows in memory. For types with
// pointers, rows that no frame protects are set to zero, which costs O(rows).
func (s *Storage[T]) Clear() {
	if debug {
		s.mustBeWritable("Clear", 0)
	}
	if s.observed && s.notifyClearing() {
		return
	}
	s.discardAll()
}

// Reserve allocates memory for n components of entities with indices below n. Up to that number,
// adding a component neither allocates memory nor moves rows. Masks and the sparse array of a
// [Hashed] storage still grow. Reserve costs O(n) if the storage must grow.
//
// Earlier pointers and slices are no longer valid. Otherwise, Reserve only changes
// [World.MemoryUsage]. [World.Shrink] frees unused memory.
func (s *Storage[T]) Reserve(n int) {
	n = min(n, maxIndices)
	if n > len(s.dense.Live) {
		s.reserve(n)
		s.w.changes++ // Makes running loops compute the addresses of their rows again.
		s.version = s.w.changes
		if debug {
			s.w.spoil()
		}
	}
	if s.special { // Indexed and Hashed storages have no sparse pages to allocate.
		return
	}
	for first := 0; first < n; first += pageMask + 1 {
		s.page(uint32(first))
	}
}

// Mask returns the indices of the entities that have the component. It always shows the current
// state.
//
// It panics if the component was not registered as Masked.
func (s *set) Mask() Bits {
	if s.mask == nil {
		panic("ecs: the storage has no mask; register its component with Masked")
	}
	return s.mask.Bits
}

// In returns the storage of the same name and type in another world, or nil.
func (s *Storage[T]) In(w *World) *Storage[T] {
	other, _ := w.names[s.name].(*Storage[T])
	return other
}

// Raw returns the interface of the storage for code that does not know its type. It gives access to
// metadata and to rows as bytes.
func (s *Storage[T]) Raw() raw.Storage { return &s.raw }

// use returns a raw.Use of s.
func (s *Storage[T]) use(values, members raw.Mode) raw.Use {
	hooked := members == raw.Writes && s.hooks != nil || values == raw.Writes && len(s.onSet) > 0
	return raw.Use{Storage: &s.raw, Values: values, Members: members, Hooked: hooked}
}

// Uses says what adding, removing and setting components reads and writes, for package schedule. If
// s is in a group, this includes the other storages of the group, whose rows move.
func (s *Storage[T]) Uses() []raw.Use {
	uses := []raw.Use{s.use(raw.Writes, raw.Writes)}
	if s.group == nil {
		return uses
	}
	for _, other := range s.group.sets {
		if other != &s.set {
			uses = append(uses, raw.Use{Storage: other.storage.Raw(), Values: raw.Writes, Members: raw.Writes})
		}
	}
	return uses
}

// AnyStorage is a [Storage] or a [Resource] of any type. Only this package implements it.
type AnyStorage interface {
	Filter
	raw.User

	// Name returns the name under which values are saved.
	Name() string

	// Kind returns the kind, which determines how rows are found. A resource has the kind [Sparse].
	Kind() Kind

	// Len returns the number of entities that have the component. It is 1 for a resource.
	Len() int

	// Entities returns the entities that have the component, in dense order. Gaps of an [Indexed]
	// storage have the entry [Vacant]. The slice is valid until the next change of the storage,
	// and is read-only. It is nil for a resource.
	Entities() []Entity

	// GetAny returns a copy of the component of e that shares no memory with the world. It returns
	// false if e does not have the component. A resource ignores e, in this method and in those
	// below.
	GetAny(e Entity) (v any, ok bool)

	// SetAny gives e a copy of v, which must be a value of the component's type or a pointer to
	// one. An error leaves the world unchanged.
	SetAny(e Entity, v any) error

	// GetJSON returns the component of e as JSON. It returns false if e does not have the
	// component, or if the component cannot be encoded.
	GetJSON(e Entity) (src []byte, ok bool)

	// SetJSON changes the fields of the component of e that src contains. Other fields keep their
	// value. They are zero if e does not have the component. An error names the field, and leaves
	// the world unchanged.
	SetJSON(e Entity, src []byte) error

	// Raw returns the interface for code that does not know the type.
	Raw() raw.Storage

	about() *spec
	tracked() *track.Tracker
	sparseSet() *set // Returns nil for a resource.
	valuesWritten(ranges []raw.Range, k, limit int) (_ []raw.Range, sorted bool)
	cloneInto(*World)
	blankInto(*World)
	pinPart() *pinPart
}

// mustNonNil returns s. It panics if s is nil.
func mustNonNil[T any](s *Storage[T]) *Storage[T] {
	if s == nil {
		panic(fmt.Sprintf("ecs: a nil storage of %v; %s", reflect.TypeFor[T](), howToGet))
	}
	return s
}

// howToGet says, in errors, how to get a storage.
const howToGet = "Register returns it, and Storage.In returns nil for a world that has none"

// mustNonNilFilter panics if s is nil. The parameter what names the calling method.
func mustNonNilFilter(what string, s Filter) {
	if isNil(s) {
		panic("ecs: " + what + " with a nil storage; " + howToGet)
	}
}

// mustBeComponent returns the set of s. It panics if s is nil, a resource or in another world. The
// parameter what names the calling method.
func (w *World) mustBeComponent(what string, s AnyStorage) *set {
	mustNonNilFilter(what, s)
	set := s.sparseSet()
	if set == nil || set.w != w {
		panic("ecs: " + what + " with " + s.Name() + ", which is no component of this world; give it another storage of it")
	}
	return set
}

// isNil reports whether s is nil, or a nil pointer of some type.
func isNil(s Filter) bool {
	v := reflect.ValueOf(s)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// A Filter selects the entities of a query. A storage is a filter that selects the entities with
// its component.
type Filter interface {
	// narrow adds the filter to a query.
	narrow(q narrowed)
}

// A narrowed is a query to which filters can be added.
type narrowed interface {
	include(s *set)     // Keeps only members of s.
	filter(p predicate) // Keeps only entities that the predicate p keeps.
}

// A predicate is a filter that a query evaluates for each entity in each iteration.
type predicate interface {
	// begin computes the state that keeps() and kept() use. It runs at the start of an iteration,
	// and in Has and Get. An earlier iteration may still be running, if loops are nested.
	begin()

	// keeps reports whether the predicate keeps e. e must be in all storages of the query.
	keeps(e Entity) bool

	// kept returns all entities that the predicate keeps. The query may reject some of them.
	kept() []Entity

	// uses returns what begin(), keeps() and kept() read and write.
	uses() []raw.Use
}

func (s *set) narrow(q narrowed) { q.include(s) }

func (s *spec) about() *spec { return s }

func (s *Storage[T]) tracked() *track.Tracker { return &s.rows }

func (s *Storage[T]) sparseSet() *set { return &s.set }

func (s *Storage[T]) rawRows() (track.RawRows, *track.Log) { return s.data.Raw(), &s.data.Log }

func (s *Storage[T]) valuesWritten(ranges []raw.Range, k, limit int) ([]raw.Range, bool) {
	return written(&s.data.Log, ranges, k, limit)
}

// minRows is the minimum capacity of a storage that has rows.
const minRows = 8

// grow gives the columns room for at least the given number of rows. It doubles the capacity.
//
//go:noinline
func (s *Storage[T]) grow(rows int) {
	if rows > len(s.dense.Live) {
		s.reserve(max(rows, 2*len(s.dense.Live), minRows))
	}
}

// reserve gives the columns and their undo marks room for the given number of rows.
func (s *Storage[T]) reserve(rows int) {
	if debug {
		s.outgrow()
	}
	s.dense.Reserve(rows)
	s.data.Reserve(rows)
	s.rows.Reserve(rows)
}

// markVacated runs after rows below top were removed. It records that they may still hold pointers,
// and calls settle.
func (s *Storage[T]) markVacated(top int) {
	s.top = max(s.top, top)
	s.settle()
}

// settle sets removed rows with pointers to zero, unless a restore could make them live again.
func (s *Storage[T]) settle() {
	if !s.pointers || s.w.clock.Undone {
		return
	}
	if lo := max(s.rows.N, s.rows.Prot); lo < s.top {
		clear(s.data.Live[lo:s.top])
		s.top = lo
	}
}

// settle calls the Settle function of each storage. It runs when undone ticks are dropped.
// Afterwards, no redo can make removed rows live again.
func (w *World) settle() {
	for _, s := range w.storages {
		if settle := s.tracked().Settle; settle != nil {
			settle()
		}
	}
}

func (s *Storage[T]) afterRewind(before track.Lengths) {
	s.set.afterRewind(before)
	s.top = max(s.top, before.N)
}

func (s *Storage[T]) discardAll() {
	if s.rows.N > 0 {
		n := s.rows.N
		s.clear()
		s.markVacated(n)
	}
}

// dropDead removes the rows of entities that are not alive. A NoRewind storage has such rows after
// a restore that undid the creation of their entities.
func (s *Storage[T]) dropDead() {
	for r := s.rows.N - 1; r >= 0; r-- {
		if e := s.dense.Live[r]; e != Vacant && !s.w.entities.alive(e) {
			s.discard(e, r)
		}
	}
}
