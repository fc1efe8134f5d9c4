package ecs

import (
	"fmt"
	"iter"
	"math/bits"
	"reflect"
	"slices"
	"unsafe"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
)

// A Storage holds the components of type T. It is a sparse set with one row for each entity that
// has the component. [Register] creates it.
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

	onSet   []func(e Entity, old, now T)
	top     int // For types with pointers: rows from top on are zero.
	patched []T // Buffer for the decoded rows of a patch; all zero between uses.
}

// A spec has the properties of a component or resource that do not depend on its Go type.
type spec struct {
	name       string
	layout     *layout.Type // nil if values cannot be encoded.
	tag        bool         // The type has size 0.
	pointers   bool
	noRewind   bool
	noPersist  bool
	masked     bool
	unknown    bool // Loaded, but not registered by the program.
	kind       Kind
	refs       *references // Where values hold entities; computed on first use.
	*evolution             // nil without versions and migrations.
}

// A typedSpec has the properties of a component or resource of type T.
type typedSpec[T any] struct {
	spec
	codec rowCodec[T]
	clone func(T) T
	gap   *T // The value of gaps in an Indexed storage; nil means the zero value.
}

// A rowCodec encodes rows as canonical bytes and decodes them.
type rowCodec[T any] interface {
	append(dst []byte, rows []T) []byte
	appendRanges(dst []byte, rows []T, ranges []raw.Range) []byte
	decode(src []byte, rows []T) error
	adopt(src []byte, n int) (rows []T, ok bool) // adopt takes ownership of src.
}

func newStorage[T any](w *World, s typedSpec[T]) *Storage[T] {
	st := &Storage[T]{spec: s.spec}
	st.adapter = rowAdapter[T]{&st.data, s.codec, s.gap}
	st.raw = rawAdapter{st, &st.adapter}
	st.initLending()
	st.set.init(w, s.kind, s.noRewind)
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

// Kind returns the kind of the storage. It determines how rows are found and ordered.
func (s *spec) Kind() Kind { return s.kind }

// Len returns the number of entities that have the component.
func (s *set) Len() int { return s.rows.N - s.rows.Extra }

// Entities returns the entities that have the component, in dense order. Gaps of an [Indexed]
// storage have the entry [Vacant]. The slice is valid until the next change of the storage, and
// is read-only. A loop that destroys entities, or removes components, must go from the last
// entity to the first: see [World.Entities].
func (s *set) Entities() []Entity { return s.w.loan(&s.rows, &s.dense) }

// members is Entities without the copy of a debug build. It returns the world's own memory.
func (s *set) members() []Entity { return s.dense.Live[:s.rows.N:s.rows.N] }

// Values returns the components in dense order, parallel to [Storage.Entities]. Gaps of an
// [Indexed] storage have the default. The slice and what it points to are read-only. The slice is
// valid until the next change of the storage.
func (s *Storage[T]) Values() []T { return s.data.Live[:s.rows.N:s.rows.N] }

// MutValues returns the components in dense order for writing, parallel to [Storage.Entities].
// All rows count as written. A value written to a gap of an [Indexed] storage stays there until
// an entity takes the row.
//
// The slice is valid until the next change of the storage, Checkpoint, Commit, Restore, Release
// or Seek. It costs O(rows) once in a frame.
func (s *Storage[T]) MutValues() []T {
	if debug {
		s.mustBeWritable("MutValues", 0)
		s.lend()
	}
	if s.rows.Span != s.w.clock.Span {
		s.rows.Open()
	}
	s.data.TouchRange(0, s.rows.N)
	s.pointToAll()
	return s.Values()
}

// All iterates over the entities and components in dense order. An [Ordered] storage is iterated
// in the order of entity indices. Components are copies. What their slices, maps and pointers
// lead to is not copied, as in [Storage.Get]. To write components, use a query.
//
// The loop may change the world by the rules of [Query1]. It may destroy the current entity or
// remove its component, and add components to others. Removing the component of another entity
// would skip rows, so All panics then.
func (s *Storage[T]) All() iter.Seq2[Entity, T] {
	return func(yield func(Entity, T) bool) {
		if s.byIndex {
			s.inOrder(yield)
			return
		}
		w := s.w
		for row := 0; row < s.rows.N; {
			entities, values := s.dense.Live[row:s.rows.N], s.data.Live[row:s.rows.N]
			changes, group := w.changes, s.group.cursor()
			next := s.rows.N
			for i, e := range entities {
				if e == Vacant {
					continue
				}
				if !yield(e, values[i]) {
					return
				}
				if w.changes != changes {
					next = s.nextRow(row+i, e, changes, group)
					break
				}
			}
			row = next
		}
	}
}

// inOrder is All in the order of entity indices.
func (s *Storage[T]) inOrder(yield func(Entity, T) bool) {
	changes := s.w.changes
	for b, word := scan(s.mask, 0); b >= 0; b, word = scan(s.mask, b+1) {
		for word != 0 {
			i := uint32(b<<6 + bits.TrailingZeros64(word))
			word &= word - 1
			r := s.sparse.Page(i).Rows[i&pageMask]
			e := s.dense.Live[r]
			if !yield(e, s.data.Live[r]) {
				return
			}
			if s.w.changes != changes {
				s.mustStay(e, changes, false)
				changes = s.w.changes
				word = s.mask.word(b) &^ (1<<(i&63+1) - 1) // The bits after e.
			}
		}
	}
}

// Clear removes the component from all entities.
//
// It costs O(1): it sets the count to 0 and keeps the rows, so that a restore only raises the
// count again. Rows with pointers that no frame protects are set to zero for the garbage
// collector, which costs O(rows).
func (s *Storage[T]) Clear() {
	if debug {
		s.mustBeWritable("Clear", 0)
	}
	if s.observed && s.notifyClearing(s) {
		return
	}
	s.discardAll()
}

// Drain iterates over the entities and copies of their components, from the last row to the
// first. It removes each component before it visits the entity. It continues until the storage is
// empty, so it also visits entities that are added meanwhile. A storage can thus serve as a queue
// of work that is journaled and restored like all other state. A loop that ends early leaves the
// remaining components.
//
// The body may restore a checkpoint that was made after the current row was removed, as
// [World.Try] does. A restore of an older checkpoint brings removed rows back, and the loop would
// remove the same rows forever. So Drain panics if the loop continues after such a restore. This
// does not apply to NoRewind components, which are not restored.
func (s *Storage[T]) Drain() iter.Seq2[Entity, T] {
	return func(yield func(Entity, T) bool) {
		loop := s.w.drains.begin()
		defer loop.end()
		for visited := true; visited; {
			visited = false
			for row := s.rows.N - 1; row >= 0; row = min(row, s.rows.N) - 1 {
				e := s.dense.Live[row]
				if e == Vacant {
					continue
				}
				v := s.adapter.copy(s.data.Live[row])
				// An enclosing call already runs the removal hooks of e.
				if s.Remove(e); s.row(e) >= 0 {
					continue
				}
				s.mustBeTaken(loop) // A hook may have restored the world.
				loop.take(e, s.w.openFrame())
				if visited = true; !yield(e, v) {
					return
				}
				s.mustBeTaken(loop)
				if s.set.kind != Indexed {
					row = s.rows.N
				}
			}
		}
	}
}

// openFrame returns the ID of the open frame, or 0.
func (w *World) openFrame() uint64 {
	if w.clock.Frame == nil {
		return 0
	}
	return w.clock.Frame.ID
}

// mustBeTaken panics if a restore has brought back the row that the loop over Drain removed last.
func (s *Storage[T]) mustBeTaken(loop *drainLoop) {
	if loop.undone && !s.noRewind {
		panic(fmt.Sprintf("ecs: a loop over Drain of %s goes on after the world was put back to before %v was taken; end the loop where the world goes back so far, or make the checkpoint in the loop",
			s.name, loop.taken))
	}
}

// SetAll gives each of entities a copy of v, and returns the number of them that are alive. v
// stays the caller's. The result is the same as that of a loop of [Storage.Set].
func (s *Storage[T]) SetAll(entities []Entity, v T) int {
	return s.setAll(entities, batchValues[T]{same: v, clone: s.data.Clone})
}

// SetEach gives each of entities the value at the same position of values. It returns the number
// of entities that are alive. The result is the same as that of a loop of [Storage.Set]. The
// world takes ownership of the memory that values point to. SetEach panics if the slices have
// different lengths.
func (s *Storage[T]) SetEach(entities []Entity, values []T) int {
	if len(entities) != len(values) {
		panic("ecs: SetEach needs one value for each entity; slice the longer one to the length of the other")
	}
	return s.setAll(entities, batchValues[T]{each: values, differ: true})
}

// RemoveAll removes the component from entities, from the last to the first. It returns the
// number of entities that had the component before the call. The slice may be that of
// [Storage.Entities].
func (s *Storage[T]) RemoveAll(entities []Entity) (n int) {
	if debug {
		s.mustBeWritable("RemoveAll", 0)
	}
	if !s.observed {
		before := s.Len()
		s.discardEach(entities)
		return before - s.Len()
	}
	if s.group != nil || s.hooks != nil { // They may move any row.
		entities = slices.Clone(entities)
	}
	if s.removesOneByOne() { // Hooks may remove the component from later entities.
		n = s.w.countDistinct(entities, s.Has)
		for _, e := range slices.Backward(entities) {
			s.Remove(e)
		}
		return n
	}
	for _, e := range slices.Backward(entities) {
		if s.Remove(e) {
			n++
		}
	}
	return n
}

// Reserve makes room for a total of n components, on entities with indices below n. Up to that
// number, adding a component neither allocates memory nor moves other rows. The mask of a Masked
// or Ordered storage, and the sparse array of a [Hashed] one, still grow. It costs O(n) if the
// room was smaller before.
//
// Reserve has no visible effect except on [World.MemoryUsage]. Pointers and slices that were
// handed out before are no longer valid. [World.Shrink] frees room that is not used.
func (s *Storage[T]) Reserve(n int) {
	n = min(n, maxIndices)
	if n > len(s.dense.Live) {
		s.reserve(n)
		s.w.changes++ // Makes running loops locate their rows again.
		s.version = s.w.changes
		if debug {
			s.w.spoil()
		}
	}
	if s.special { // Its sparse array depends on the indices in use.
		return
	}
	for first := 0; first < n; first += pageMask + 1 {
		s.page(uint32(first))
	}
}

// SortFunc sorts the rows in ascending order, as defined by cmp. Rows that compare equal keep
// their order. cmp must not change the world.
//
// In a storage of a [Group], the members stay in front. They are sorted among themselves, and
// move in all storages of the group. The other rows are sorted after them.
//
// Order is state: a restore brings it back, and a journal records it. Only rows that move count
// as written, so sorting a sorted storage changes nothing and costs O(n) comparisons. Otherwise
// it costs O(n log n) comparisons, and a write for each row that moves. A storage must not be
// sorted inside a loop over it. SortFunc panics for an [Indexed] storage. An [Ordered] storage
// keeps its order of iteration.
func (s *Storage[T]) SortFunc(cmp func(a, b T) int) {
	rows := s.data.Live
	s.arrange(s, func(from []uint32) {
		switch {
		case sorted(from, rows, cmp):
		case unsafe.Sizeof(*new(T)) > maxRanked:
			sortRows(&s.set, from, func(row uint32) *T { return &rows[row] }, func(a, b *T) int { return cmp(*a, *b) })
		default:
			sortRows(&s.set, from, func(row uint32) T { return rows[row] }, cmp)
		}
	})
}

// SortEntities is [Storage.SortFunc] for a comparison of entities: by index, or by their
// components in other storages.
func (s *Storage[T]) SortEntities(cmp func(a, b Entity) int) {
	rows := s.dense.Live
	s.arrange(s, func(from []uint32) {
		if !sorted(from, rows, cmp) {
			sortRows(&s.set, from, func(row uint32) Entity { return rows[row] }, cmp)
		}
	})
}

// SortLike moves the entities that other has too to the front, in the order of other.Entities.
// The remaining entities keep their order after them. A query over both storages then finds long
// runs, until entities are added or removed. A [Group] keeps this order permanently. In an
// [Ordered] storage, SortLike changes the order of the rows in memory, not that of iteration.
//
// It costs O(rows of both), and a write for each row that moves. The rules are those of
// [Storage.SortFunc]. SortLike panics if other is a resource or belongs to another world.
func (s *Storage[T]) SortLike(other AnyStorage) {
	o := s.w.mustBeComponent("SortLike", other)
	s.arrange(s, func(from []uint32) { sortLike(from, &s.set, o) })
}

// Mask returns the indices of the entities that have the component. It always reflects the
// present state.
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

// Raw returns the interface of the storage for code that does not know its type. It has rows as
// bytes, and metadata.
func (s *Storage[T]) Raw() raw.Storage { return &s.raw }

// AnyStorage is a [Storage] or a [Resource] of any type. Only this package implements it.
type AnyStorage interface {
	Filter

	// Name returns the name under which values are saved.
	Name() string

	// Kind returns how rows are found. A resource has the kind [Sparse].
	Kind() Kind

	// Len returns the number of entities that have the component. It is 1 for a resource.
	Len() int

	// Entities returns the entities that have the component, in dense order. Gaps of an [Indexed]
	// storage have the entry [Vacant]. The slice is valid until the next change of the storage,
	// and is read-only. It is nil for a resource.
	Entities() []Entity

	// GetAny returns a copy of the component of e that shares no memory with the world. The
	// result ok is false if e does not have the component. A resource ignores e, here and in the
	// methods below.
	GetAny(e Entity) (v any, ok bool)

	// SetAny gives e a copy of v, which must be of the component's type or a pointer to one. An
	// error leaves the world unchanged.
	SetAny(e Entity, v any) error

	// GetJSON returns the component of e as JSON. The result ok is false if e does not have the
	// component, or if it cannot be encoded.
	GetJSON(e Entity) (src []byte, ok bool)

	// SetJSON changes those fields of the component of e that src names. Other fields keep their
	// value, or are zero if e does not have the component. An error names the field, and leaves
	// the world unchanged.
	SetJSON(e Entity, src []byte) error

	// Raw returns the interface for code that does not know the type.
	Raw() raw.Storage

	about() *spec
	tracked() *track.Tracker
	sparseSet() *set // Returns nil for a resource.
	// Removes row without recording an operation.
	discard(e Entity, row int)
	discardAll()
	swapRows(i, j int)
	permute(lo int, from []uint32)
	valuesWritten(ranges []raw.Range, k, limit int) (_ []raw.Range, sorted bool)
	prepare(s *storageState, pages []*track.Page, owned, regap bool) (put func(), err error)
	cloneInto(*World)
	blankInto(*World)
	pinPart() *pinPart
}

type noRewindStorage interface{ dropDead() }

// mustNonNil returns s. It panics if s is nil.
func mustNonNil[T any](s *Storage[T]) *Storage[T] {
	if s == nil {
		panic(fmt.Sprintf("ecs: a nil storage of %v; %s", reflect.TypeFor[T](), howToGet))
	}
	return s
}

// howToGet says how to get a storage, for error texts.
const howToGet = "Register returns it, and Storage.In returns nil for a world that has none"

// mustNonNilFilter panics if a storage or filter is nil. what says where it was given.
func mustNonNilFilter(what string, s Filter) {
	if isNil(s) {
		panic("ecs: " + what + " with a nil storage; " + howToGet)
	}
}

// mustBeComponent returns the set of s. It panics if s is nil, a resource or in another world.
// what says where s was given.
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

// A narrowed is a query that filters can be added to.
type narrowed interface {
	include(s *set)     // include keeps only members of s.
	filter(p predicate) // filter keeps only entities that p keeps.
}

// A predicate is a filter that is evaluated for each entity in each iteration. A query applies it
// to the cached matches of its storages.
type predicate interface {
	// begin is called at the start of an iteration, and by Has and Get. It fixes the state that
	// keeps and kept refer to. Another iteration may be running.
	begin()

	// keeps reports whether a query keeps e, if e is in all its storages.
	keeps(e Entity) bool

	// kept returns all entities that a query may keep. Some of them may not be in its storages.
	kept() []Entity
}

func (s *set) narrow(q narrowed) { q.include(s) }

func (s *spec) about() *spec { return s }

func (s *Storage[T]) tracked() *track.Tracker { return &s.rows }

func (s *Storage[T]) sparseSet() *set { return &s.set }

func (s *Storage[T]) rawRows() (track.RawRows, *track.Log) { return s.data.Raw(), &s.data.Log }

func (s *Storage[T]) valuesWritten(ranges []raw.Range, k, limit int) ([]raw.Range, bool) {
	return written(&s.data.Log, ranges, k, limit)
}

// minRows is the smallest capacity of a storage with any rows.
const minRows = 8

// grow makes room for at least the given number of rows. It doubles the capacity. append would
// add a quarter, and copy twice as many rows in total.
//
//go:noinline
func (s *Storage[T]) grow(rows int) {
	if rows > len(s.dense.Live) {
		s.reserve(max(rows, 2*len(s.dense.Live), minRows))
	}
}

// reserve makes room for rows rows and for their undo marks. Without the marks, the first change
// under a later checkpoint would be slow.
func (s *Storage[T]) reserve(rows int) {
	if debug {
		s.outgrow()
	}
	s.dense.Reserve(rows)
	s.data.Reserve(rows)
	s.rows.Reserve(rows)
}

// markVacated records that removed rows below top may hold pointers.
func (s *Storage[T]) markVacated(top int) {
	s.top = max(s.top, top)
	s.settle()
}

// settle sets rows with pointers to zero if no restore can bring them back.
func (s *Storage[T]) settle() {
	if !s.pointers || s.w.clock.Undone {
		return
	}
	if lo := max(s.rows.N, s.rows.Prot); lo < s.top {
		clear(s.data.Live[lo:s.top])
		s.top = lo
	}
}

// settle calls settle of all storages after a forward branch was dropped. While a forward branch
// exists, it may bring any row back.
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

// dropDead removes the rows of entities that are not alive. A restore leaves such rows in the
// storage of a NoRewind component, if it undoes the creation of their entities.
func (s *Storage[T]) dropDead() {
	for r := s.rows.N - 1; r >= 0; r-- {
		if e := s.dense.Live[r]; e != Vacant && !s.w.entities.alive(e) {
			s.discard(e, r)
		}
	}
}
