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

// A Storage holds the components of type T: a sparse set with one row for each
// entity that has one. [Register] makes it.
//
//	one entity      Get, Has, Set, Mut, Remove; Row
//	all rows        All, Entities, Values, MutValues, Len, Drain, Clear
//	many entities   SetAll, SetEach, MutEach, RemoveAll, Reserve; Later
//	order           SortFunc, SortEntities, SortLike
//	what changed    Since, SinceCommit; in queries Added, Changed, Removed
//	be told         OnAdd, OnSet, OnRemove, OnChange; RequiredBy
//	by name         GetAny, SetAny, GetJSON, SetJSON; World.Storage
//	what it is      Name, Kind, Mask; In another world; Raw
//
// A type of size 0 is a tag: membership is all there is, and rows take no
// memory.
type Storage[T any] struct {
	set
	data track.Column[T]
	spec
	face rowFace[T]
	raw  rawStorage

	onSet   []func(e Entity, old, now T)
	top     int // With pointers: rows at or past it are zero.
	patched []T // Room for the decoded rows of a patch, all zero.
}

// A spec is what is known of a component or resource, whatever its type.
type spec struct {
	name       string
	layout     *layout.Type // nil if values cannot be encoded.
	tag        bool         // Size 0.
	pointers   bool
	noRewind   bool
	noPersist  bool
	masked     bool
	unknown    bool // Loaded, but not registered by the program.
	kind       Kind
	refs       *references // Where values hold entities; found when first asked for.
	*evolution             // nil: it was never different.
}

// A typedSpec is what is known of a component or resource of type T.
type typedSpec[T any] struct {
	spec
	codec rowCodec[T]
	clone func(T) T
	gap   *T // What gaps of an Indexed storage hold; nil: the zero value.
}

// A rowCodec turns rows into their canonical bytes and back.
type rowCodec[T any] interface {
	append(dst []byte, rows []T) []byte
	appendRanges(dst []byte, rows []T, ranges []raw.Range) []byte
	decode(src []byte, rows []T) error
	adopt(src []byte, n int) (rows []T, ok bool) // Keeps src.
}

func newStorage[T any](w *World, s typedSpec[T]) *Storage[T] {
	st := &Storage[T]{spec: s.spec}
	st.face = rowFace[T]{&st.data, s.codec, s.gap}
	st.raw = rawStorage{st, &st.face}
	st.initLending()
	st.set.init(w, s.kind, s.noRewind)
	st.rows.Rewound = st.rewound
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

// Kind returns how rows are found, and how they are ordered.
func (s *spec) Kind() Kind { return s.kind }

// Len returns the number of entities that have the component.
func (s *set) Len() int { return s.rows.N - s.rows.Extra }

// Entities returns the entities that have the component, in dense order, with
// [Vacant] in the gaps of an [Indexed] storage. The slice is valid until the next
// change of the storage and must not be written. A loop over it that destroys or
// removes goes from the last to the first: see [World.Entities].
func (s *set) Entities() []Entity { return s.w.loan(&s.rows, &s.dense) }

// members is Entities for this package: the world's own memory, in a debug build too.
func (s *set) members() []Entity { return s.dense.Live[:s.rows.N:s.rows.N] }

// Values returns the components in dense order, beside [Storage.Entities], with
// the default in the gaps of an [Indexed] storage. The slice is valid until the
// next change of the storage and must not be written, nor what it leads to.
func (s *Storage[T]) Values() []T { return s.data.Live[:s.rows.N:s.rows.N] }

// MutValues returns the components in dense order for writing, beside
// [Storage.Entities]. All rows count as written. What is written to the gaps of an
// [Indexed] storage stays there until an entity comes.
//
// The slice is valid until the next change of the storage, Checkpoint, Commit,
// Restore, Release or Seek. It costs O(rows) once in a frame.
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

// All iterates over the entities and components in dense order; those of an
// [Ordered] storage in the order of indices. Components are copies, but for what their
// slices, maps and pointers lead to, as in [Storage.Get]; to write them, use a query.
//
// The world may change meanwhile by the rules of [Query1]: the entity being visited
// may be destroyed or lose the component, others may come, and to take the component
// from another one panics instead of skipping some.
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
					next = s.goOn(row+i, e, changes, group)
					break
				}
			}
			row = next
		}
	}
}

// inOrder is All in the order of indices.
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
				word = s.mask.word(b) &^ (1<<(i&63+1) - 1) // Those behind e.
			}
		}
	}
}

// Clear removes the component from all entities.
//
// It costs O(1): it lowers the count and leaves the rows, so that a restore only
// raises it again. Rows that hold pointers and that no frame protects are zeroed
// for the garbage collector, which is O(rows).
func (s *Storage[T]) Clear() {
	if debug {
		s.mustBeWritable("Clear", 0)
	}
	if s.observed && s.emptying(s) {
		return
	}
	s.discardAll()
}

// Drain iterates over the entities and copies of their components, from the last row to the
// first, and takes each away before it is visited, until none is left: those that come
// meanwhile are visited too. So a storage is a queue of work, which is journaled and put back
// like all else. A loop that ends early leaves the others.
//
// The body may put the world back to a checkpoint that was made after the row was taken, as
// [World.Try] does. If it goes back further, so that rows that were taken are there again, the
// loop must end: it panics if it goes on, as it would take the same rows for ever. That does
// not concern a NoRewind component, which is not put back.
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
				v := s.face.copy(s.data.Live[row])
				if s.Remove(e); s.row(e) >= 0 { // That it goes is being told already.
					continue
				}
				s.mustBeTaken(loop) // A hook may have put the world back.
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

// openFrame returns the id of the open frame; 0: none is.
func (w *World) openFrame() uint64 {
	if w.clock.Frame == nil {
		return 0
	}
	return w.clock.Frame.ID
}

// mustBeTaken panics if the world was put back to before the loop over Drain took its last row.
func (s *Storage[T]) mustBeTaken(loop *drainLoop) {
	if loop.undone && !s.noRewind {
		panic(fmt.Sprintf("ecs: a loop over Drain of %s goes on after the world was put back to before %v was taken; end the loop where the world goes back so far, or make the checkpoint in the loop",
			s.name, loop.taken))
	}
}

// SetAll gives each of entities a copy of v, which stays the caller's, and returns how many of them are alive. It leaves the storage as a loop
// of [Storage.Set] does.
func (s *Storage[T]) SetAll(entities []Entity, v T) int {
	return s.setAll(entities, filling[T]{same: v, clone: s.data.Clone})
}

// SetEach gives each of entities the value at the same position of values, and
// returns how many of them are alive. It leaves the storage as a loop of
// [Storage.Set] does, and takes over what is in the values like it. It panics if there
// are not as many values as entities.
func (s *Storage[T]) SetEach(entities []Entity, values []T) int {
	if len(entities) != len(values) {
		panic("ecs: SetEach needs one value for each entity; slice the longer one to the length of the other")
	}
	return s.setAll(entities, filling[T]{each: values, differ: true})
}

// RemoveAll takes the component away from entities, from the last to the first,
// and returns how many of them had one when it was called. The slice may be that of
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
	if s.removesOneByOne() { // Hooks may remove some ahead of their turn.
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

// Reserve makes room for n components, those of now included, and for entities with the
// first n indices to have them: until there are more, to add one neither allocates nor
// moves the others. It costs O(n) if there was less room. The mask of a Masked or Ordered
// storage and the sparse array of a [Hashed] one still grow as entities come.
//
// It changes nothing that can be asked of s but [World.MemoryUsage]. Pointers and slices
// that were given out before are no longer valid. [World.Shrink] gives room back that is
// not used.
func (s *Storage[T]) Reserve(n int) {
	n = min(n, maxIndices)
	if n > len(s.dense.Live) {
		s.reserve(n)
		s.w.changes++ // Loops look for their rows anew.
		s.version = s.w.changes
		if debug {
			s.w.spoil()
		}
	}
	if s.special { // Its sparse array follows the indices that come.
		return
	}
	for first := 0; first < n; first += pageMask + 1 {
		s.page(uint32(first))
	}
}

// SortFunc puts the rows into ascending order, as cmp compares components. Rows
// that compare equal keep their order. cmp must not change the world.
//
// In a storage of a [Group], the members stay in front: they are sorted among
// themselves, and move in all storages of the group alike; the other rows are
// sorted behind them.
//
// Order is state: a restore puts it back and a journal records it. Only rows that
// move count as written, so to sort what is in order changes nothing. It costs
// O(n) comparisons then, otherwise O(n log n), and a write for each row that
// moves. Storages must not be sorted while a query iterates over them, and [Indexed] ones
// not at all. An [Ordered] storage keeps its order of iteration.
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

// SortEntities is [Storage.SortFunc] with entities to compare: by index, or by
// what they have in other storages.
func (s *Storage[T]) SortEntities(cmp func(a, b Entity) int) {
	rows := s.dense.Live
	s.arrange(s, func(from []uint32) {
		if !sorted(from, rows, cmp) {
			sortRows(&s.set, from, func(row uint32) Entity { return rows[row] }, cmp)
		}
	})
}

// SortLike puts the entities that other has too in front, in the order that they
// have in other.Entities; behind them the rest keep their order. A query over both then
// finds long runs, until entities come and go: what stays so is a [Group]. Of an
// [Ordered] storage that is the order in which its rows lie, not that of the indices,
// in which it is iterated.
//
// It costs O(rows of both), and a write for each row that moves. The rules are
// those of [Storage.SortFunc]. It panics if other is a resource or in another
// world.
func (s *Storage[T]) SortLike(other AnyStorage) {
	o := s.w.mustBeComponent("SortLike", other)
	s.arrange(s, func(from []uint32) { sortLike(from, &s.set, o) })
}

// Mask returns the indices of the entities that have the component, as they are at
// the time.
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

// Raw returns the storage as code sees it that does not know its type: rows as
// bytes, and what is known of them.
func (s *Storage[T]) Raw() raw.Storage { return &s.raw }

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

	// GetAny returns a copy of the component of e that shares nothing with the world, and
	// whether e has one. A resource has its value whatever e is, here and below.
	GetAny(e Entity) (v any, ok bool)

	// SetAny gives e the component v, which is of its type or a pointer to that, and is
	// copied. After an error nothing has changed.
	SetAny(e Entity, v any) error

	// GetJSON returns the component of e as JSON, and whether e has one that can be encoded.
	GetJSON(e Entity) (src []byte, ok bool)

	// SetJSON changes the fields of the component of e that src names; others stay, or
	// are zero if e has none. After an error, which names the field, nothing has changed.
	SetJSON(e Entity, src []byte) error

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
	prepare(s *storageState, pages []*track.Page, owned, regap bool) (put func(), err error)
	cloneInto(*World)
	blankInto(*World)
	pinPart() *pinPart
}

type exemptStorage interface{ dropDead() }

// there returns s, which must not be nil.
func there[T any](s *Storage[T]) *Storage[T] {
	if s == nil {
		panic(fmt.Sprintf("ecs: a nil storage of %v; %s", reflect.TypeFor[T](), howToGet))
	}
	return s
}

// howToGet says where storages come from.
const howToGet = "Register returns it, and Storage.In returns nil for a world that has none"

// mustBeThere panics if a storage or filter is nil. what says where it was given.
func mustBeThere(what string, s Filter) {
	if isNil(s) {
		panic("ecs: " + what + " with a nil storage; " + howToGet)
	}
}

// mustBeComponent returns the set of s. It panics if s is nil, a resource or in another world.
// what says where it was given.
func (w *World) mustBeComponent(what string, s AnyStorage) *set {
	mustBeThere(what, s)
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

// A Filter says which entities a query keeps. A storage is one: it keeps those
// that have its component.
type Filter interface {
	// narrow adds the filter to a query.
	narrow(q narrowed)
}

// A narrowed is a query that filters are added to.
type narrowed interface {
	include(s *set)     // Keep what is in s.
	filter(p predicate) // Keep what p keeps.
}

// A predicate is a filter that decides for each entity anew. Queries that have
// one cut what they remember of their storages by it.
type predicate interface {
	// begin is called when an iteration starts, and by Has and Get: what keeps and kept
	// go by is the world as it is then. Another iteration may be under way.
	begin()

	// keeps reports whether a query keeps e, if that is in all its storages.
	keeps(e Entity) bool

	// kept returns all whom a query may keep, and maybe some that are not in its storages.
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

// leastRows is how many rows there is room for when there is for any.
const leastRows = 8

// grow makes room for at least so many rows. What there is doubles: append, which adds a
// quarter, copies twice as many rows on the way.
//
//go:noinline
func (s *Storage[T]) grow(rows int) {
	if rows > len(s.dense.Live) {
		s.reserve(max(rows, 2*len(s.dense.Live), leastRows))
	}
}

// reserve makes room for so many rows, and marks for them: not to have these would make
// the first change under a checkpoint slow, some time later.
func (s *Storage[T]) reserve(rows int) {
	if debug {
		s.outgrow()
	}
	s.dense.Reserve(rows)
	s.data.Reserve(rows)
	s.rows.Reserve(rows)
}

// vacate notes that rows below top, past the present ones, may hold pointers.
func (s *Storage[T]) vacate(top int) {
	s.top = max(s.top, top)
	s.settle()
}

// settle zeroes the rows that nothing can bring back, if they may hold pointers.
func (s *Storage[T]) settle() {
	if !s.pointers || s.w.clock.Undone {
		return
	}
	if lo := max(s.rows.N, s.rows.Prot); lo < s.top {
		clear(s.data.Live[lo:s.top])
		s.top = lo
	}
}

// settle zeroes the rows of all storages that nothing can bring back, when a forward branch has
// ended: while it is held none of them does.
func (w *World) settle() {
	for _, s := range w.storages {
		if settle := s.tracked().Settle; settle != nil {
			settle()
		}
	}
}

func (s *Storage[T]) rewound(before track.Lengths) {
	s.set.rewound(before)
	s.top = max(s.top, before.N)
}

func (s *Storage[T]) discardAll() {
	if s.rows.N > 0 {
		n := s.rows.N
		s.clear()
		s.vacate(n)
	}
}

// dropDead removes the rows of entities that are not alive: those of a NoRewind
// component whose entities were undone.
func (s *Storage[T]) dropDead() {
	for r := s.rows.N - 1; r >= 0; r-- {
		if e := s.dense.Live[r]; e != Vacant && !s.w.entities.alive(e) {
			s.discard(e, r)
		}
	}
}
