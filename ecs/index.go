package ecs

import (
	"cmp"
	"fmt"
	"iter"
	"math/bits"
	"reflect"
	"slices"
	"unsafe"

	"github.com/stet-ecs/stet/ecs/internal/roster"
	"github.com/stet-ecs/stet/ecs/internal/track"
)

// An Index finds the entities whose component has a given key, such as a grid cell, a team or a
// name. [NewIndex] creates an Index.
//
//	byCell := ecs.NewIndex(positions, func(p Position) Cell {
//		return Cell{int(p.X) / 16, int(p.Y) / 16}
//	})
//	for e := range byCell.Of(Cell{3, 4}) { … }
//
// Every look-up sees the current components, however they were written. A write does not update the
// index. The next look-up updates it, in O(rows written since the last look-up). Storages without
// an index have no extra cost. An index is not saved, because it can be derived from the state. A
// key that differs from itself (NaN) finds no entities.
//
// # Pointers
//
// A look-up may run in a loop over a query, in a hook, and between Mut and the write through its
// pointer. These pointers stay valid:
//
//   - the pointers and slices of the loop that is running
//   - the pointer of the last Mut
//   - the slice of MutValues
//
// A look-up invalidates all other pointers into the storage. A debug build (-tags stetdebug) finds
// writes through them. Inside [Query1.ParallelRuns], look-ups return the state at the start of the
// loop.
//
// # Unique keys
//
// For unique keys, such as names, write the components with [Index.Set] or [Index.Replace]. Set
// returns an error if another entity has the key. Replace removes the component from that entity.
// Other writes do not check for duplicates. Set and Replace panic if a hook that they call makes
// two keys equal.
type Index[T any, K comparable] struct {
	_ noCopy

	s   *Storage[T]
	key func(T) K
	pending

	// The entity of each row and the list of its key, as of the last look-up.
	rows  []entry
	lists roster.Lists[K, Entity]

	version uint64   // Incremented when a list changes.
	changed []uint32 // Buffer for the rows whose entity or key has changed.
	partial bool     // The last update is running or has panicked.
	closed  bool
	dynamic bool // K contains an interface, so a comparison of keys can panic.
}

// pending records which rows an index has not read yet. It has no type parameters, so that the
// compiler inlines stale() into the loops of programs.
type pending struct {
	news *track.DirtySet
	// Row that the program may write through a pointer from before the last look-up, or
	// track.NoRow.
	row uint32
	// The program may write every row through pointers from before the last look-up.
	allRows bool
}

// stale reports whether the index must be updated before the next look-up.
func (l *pending) stale() bool {
	return l.news.Any() || l.row != track.NoRow || l.allRows
}

// An entry is the entity of a row, and the number of the list that contains the entity.
type entry struct {
	e    Entity
	list uint32
}

const (
	// The row is in no list, because it is a gap or its key is NaN.
	unlisted = ^uint32(0)
	// The row was removed from its list, and is about to be added to another list.
	unassigned = unlisted - 1
)

// NewIndex returns an index of s by key. The key function must depend only on its argument, must
// not change anything, and must return the same key for equal components.
//
// An index costs O(rows) at the first look-up, and 16 bytes a row. So create it once and keep it.
// The storages of a clone have no indexes: see [Index.In].
//
// If s already has an index with the same function, NewIndex returns that index. A function literal
// that captures variables is a new function each time. So keep the index of such a function, or
// close it with [Index.Close]. NewIndex panics if a storage already has 64 indexes by one such
// literal.
func NewIndex[T any, K comparable](s *Storage[T], key func(T) K) *Index[T, K] {
	if key == nil {
		panic("ecs: NewIndex without a key function; pass a function that returns the key of a component")
	}
	if x := indexBy(mustNonNil(s), key); x != nil {
		return x
	}
	return newIndex(s, key)
}

// indexBy returns the index of s with the function key, or nil.
func indexBy[T any, K comparable](s *Storage[T], key func(T) K) *Index[T, K] {
	for _, x := range s.indexes {
		if x, ok := x.(*Index[T, K]); ok && closureOf(x.key) == closureOf(key) {
			return x
		}
	}
	return nil
}

// closureOf returns the address of the closure of f. Two functions with the same address are the
// same function, as long as both are reachable.
func closureOf[F any](f F) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&f)) }

// maxPerLiteral is the maximum number of indexes of one storage by the same function literal.
const maxPerLiteral = 64

// mustNotLeak panics if s already has maxPerLiteral indexes by the function literal of key.
func mustNotLeak[T any, K comparable](s *Storage[T], key func(T) K) {
	code, alike := reflect.ValueOf(key).Pointer(), 0
	for _, x := range s.indexes {
		if x, ok := x.(*Index[T, K]); ok && reflect.ValueOf(x.key).Pointer() == code {
			alike++
		}
	}
	if alike == maxPerLiteral {
		panic(fmt.Sprintf("ecs: NewIndex of %s: a function literal that captures variables has created %d indexes, which all stay in memory; create the index once and keep it, close it, or use a function that captures no variables", s.name, alike))
	}
}

func newIndex[T any, K comparable](s *Storage[T], key func(T) K) *Index[T, K] {
	mustNotLeak(s, key)
	x := &Index[T, K]{s: s, key: key, dynamic: holdsInterface(reflect.TypeFor[K]())}
	x.pending = pending{news: s.rows.Follow(&s.dense.Log, &s.data.Log), row: track.NoRow}
	s.indexes = append(s.indexes, x)
	return x
}

// holdsInterface reports whether t contains an interface. A comparison of its values can then
// panic.
func holdsInterface(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Array:
		return holdsInterface(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if holdsInterface(f.Type) {
				return true
			}
		}
	}
	return false
}

// In returns the index of the same storage in another world, such as a clone. It creates the
// index if necessary. It returns nil if that world has no such storage.
func (x *Index[T, K]) In(w *World) *Index[T, K] {
	s := x.s.In(w)
	if s == nil {
		return nil
	}
	return NewIndex(s, x.key)
}

// Close removes x from its storage and frees its memory. Later look-ups panic. Close is useful if
// the program creates many indexes by one function literal, for example for several cell sizes. It
// panics if a [Relation] uses the index; call [Relation.Close] instead. A second Close does
// nothing.
func (x *Index[T, K]) Close() {
	if x.closed {
		return
	}
	if x.s.w.relates(x) {
		panic("ecs: Close of an index of " + x.s.name + " that a Relation uses; close the relation")
	}
	x.s.indexes = slices.DeleteFunc(x.s.indexes, func(other follower) bool { return other == follower(x) })
	x.s.rows.Unfollow(x.news, &x.s.dense.Log, &x.s.data.Log)
	x.empty()
	x.rows, x.changed = nil, nil
	// allRows makes every look-up call update, which panics because x is closed.
	x.closed, x.allRows = true, true
	x.version++
}

// Of iterates over the entities that have the key, in the order of their indices. The loop may
// change the world. An entity that has lost the key before the loop reaches it is skipped. An
// entity that gains the key is visited if its index is above that of the current entity.
func (x *Index[T, K]) Of(key K) iter.Seq[Entity] {
	return func(yield func(Entity) bool) {
		l := x.find(key)
		if l == nil {
			return
		}
		version := x.version
		for i, at := 0, 0; i < l.Chunks(); i, at = i+1, 0 {
			for chunk := l.Chunk(i); at < len(chunk); at++ {
				e := chunk[at]
				if !yield(e) {
					return
				}
				if x.stale() {
					x.update()
				}
				if x.version == version {
					continue
				}
				if version = x.version; e.Index() == ^uint32(0) {
					return
				}
				if l = x.find(key); l == nil {
					return
				}
				if i, at = l.Seek(e.Index() + 1); i == l.Chunks() {
					return
				}
				chunk, at = l.Chunk(i), at-1
			}
		}
	}
}

// Len returns the number of entities that have the key. It costs one look-up.
func (x *Index[T, K]) Len(key K) int {
	if l := x.find(key); l != nil {
		return l.Len()
	}
	return 0
}

// First returns the entity with the lowest index that has the key. The second result is false if no
// entity has the key.
func (x *Index[T, K]) First(key K) (Entity, bool) {
	if l := x.find(key); l != nil {
		return l.Chunk(0)[0], true
	}
	return 0, false
}

// Keys iterates over the keys that entities have at the start of the loop. It orders keys by the
// lowest entity index of each key. It costs O(keys · log keys).
func (x *Index[T, K]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		x.refresh()
		type found struct {
			first Entity
			key   K
		}
		all := make([]found, 0, x.lists.Len())
		x.lists.Each(func(key K, l *roster.List[Entity]) { all = append(all, found{l.Chunk(0)[0], key}) })
		slices.SortFunc(all, func(a, b found) int { return cmp.Compare(a.first.Index(), b.first.Index()) })
		for _, f := range all {
			if !yield(f.key) {
				return
			}
		}
	}
}

// Set is like [Storage.Set], but returns an error if another entity has the key of v, or if e is
// not alive. If the key is taken, the error wraps [ErrTaken]. An error leaves the world unchanged.
func (x *Index[T, K]) Set(e Entity, v T) error {
	if !x.s.w.Alive(e) {
		return fmt.Errorf("ecs: %s of %v: the entity is not alive", x.s.name, e)
	}
	for other := range x.Of(x.key(v)) {
		if other != e {
			return fmt.Errorf("ecs: %s of %v: the key is %w: %v has it", x.s.name, e, ErrTaken, other)
		}
	}
	x.s.Set(e, v)
	x.mustBeUnique("Set", e, v)
	return nil
}

// mustBeUnique panics if a hook has changed a key while v was written to e, so that two entities
// have the same key.
func (x *Index[T, K]) mustBeUnique(op string, e Entity, v T) {
	if x.s.hooks == nil && len(x.s.onSet) == 0 {
		return
	}
	keys := [2]K{x.key(v), x.key(v)}
	if now, ok := x.s.Get(e); ok {
		keys[1] = x.key(now)
	}
	for _, key := range keys {
		var first Entity
		for other := range x.Of(key) {
			if first != 0 {
				panic(fmt.Sprintf("ecs: Index.%s of %s of %v: a hook changed a key, so that %v and %v have the same key; do not change keys in hooks, or change the component before %s",
					op, x.s.name, e, first, other, op))
			}
			first = other
		}
	}
}

// Replace is like [Storage.Set], but first removes the component from other entities with the same
// key. It returns false and changes nothing if e is not alive.
func (x *Index[T, K]) Replace(e Entity, v T) bool {
	if !x.s.w.Alive(e) {
		return false
	}
	for other := range x.Of(x.key(v)) {
		if other != e {
			x.s.Remove(other)
		}
	}
	alive := x.s.Set(e, v)
	x.mustBeUnique("Replace", e, v)
	return alive
}

// find returns the list of entities that have the key, or nil.
func (x *Index[T, K]) find(key K) *roster.List[Entity] {
	x.refresh()
	return x.lists.Of(key)
}

func (x *Index[T, K]) refresh() {
	if debug {
		x.s.mustNotFollow()
		x.s.mustBeReadable("a look-up in an index")
	}
	if x.stale() {
		x.update()
	}
}

// update reads the rows that may have been written since the last look-up, and updates their
// entries.
func (x *Index[T, K]) update() {
	s, w := x.s, x.s.w
	if x.closed {
		panic("ecs: a look-up in an index of " + s.name + " that is closed; close it later, or create another")
	}
	if w.parallel {
		if w.clock.Shared && x.news.Any() {
			panic("ecs: a system writes " + s.name + " and looks up its index while other systems run; name the index in the access of the system")
		}
		return
	}
	if s.pointedAll {
		s.pointedAll = s.pointedIn == w.clock.Span && s.pointedAt == s.version
	}
	written := x.news.Any()
	if written && debug {
		w.verifyOf(&s.rows)
	}
	x.readRowsChecked()
	if x.row, x.allRows = s.pointed, s.pointedAll; !written {
		return
	}
	x.news.Clear()
	// Running loops then save later rows again, even if they were saved before the look-up.
	w.changes++
	if debug {
		w.rememberOf(&s.rows, s.pointed, s.pointedAll)
	}
	w.activeCursors.save()
}

// readRowsChecked calls readRows. In a debug build, it panics if the key function writes the world.
func (x *Index[T, K]) readRowsChecked() {
	if debug {
		defer x.s.following()()
	}
	x.readRows()
}

// readRows updates the entries of the rows that may have been written since the last look-up.
func (x *Index[T, K]) readRows() {
	n := x.s.rows.N
	if n == 0 || x.news.All() || x.partial {
		x.empty()
	}
	x.partial = true
	x.changed = x.changed[:0]
	if x.allRows {
		x.unlistAll(0, n)
	} else {
		x.news.Order()
		for i := range x.news.Len() {
			x.unlist(x.news.Word(i))
		}
		x.unlistAll(int(x.row), int(x.row)+1)
	}
	if n < len(x.rows) {
		x.unlistAll(n, len(x.rows))
		x.rows = x.rows[:n]
	}
	for _, row := range x.changed {
		if int(row) < n {
			x.list(int(row))
		}
	}
	x.rows = slices.Grow(x.rows, n-len(x.rows))
	for row := len(x.rows); row < n; row++ {
		x.rows = append(x.rows, entry{})
		x.list(row)
	}
	if cap(x.changed) > 4096 && cap(x.changed) > n {
		x.changed = nil
	}
	x.partial = false
}

// unlistAll calls unlist for rows lo to hi-1.
func (x *Index[T, K]) unlistAll(lo, hi int) {
	for hi = min(hi, len(x.rows)); lo < hi; lo = lo&^63 + 64 {
		x.unlist(lo&^63, ^uint64(0)<<(lo&63)&firstBits(hi-lo&^63))
	}
}

// unlist looks at the rows whose bits are set in written: bit i stands for row first+i. If the
// entity or the key of a row has changed, unlist removes the row from its list. It skips rows that
// were added since the last look-up.
func (x *Index[T, K]) unlist(first int, written uint64) {
	s := x.s
	known := x.rows[min(first, len(x.rows)):min(first+64, len(x.rows))]
	dense, data := s.dense.Live[:s.rows.N], s.data.Live[:s.rows.N]
	for written &= firstBits(len(known)); written != 0; written &= written - 1 {
		i := bits.TrailingZeros64(written)
		was, row := known[i&63], first+i
		if was.list == unassigned || row < len(dense) && dense[row] == was.e && (was.e == Vacant || was.list != unlisted && x.lists.Is(was.list, x.key(data[row]))) {
			continue
		}
		x.changed = append(x.changed, uint32(row))
		known[i&63].list = unassigned
		if was.list != unlisted {
			x.lists.Remove(was.list, was.e)
			x.version++
		}
	}
}

// list adds the entity of the given row to the list of its key. The row must be in no list.
func (x *Index[T, K]) list(row int) {
	e := x.s.dense.Live[row]
	x.rows[row] = entry{e, unlisted}
	if e == Vacant {
		return
	}
	key := x.key(x.s.data.Live[row])
	if x.dynamic && !reflect.ValueOf(&key).Elem().Comparable() {
		panic(fmt.Sprintf("ecs: an index of %s: the key of %v is %v, of a type that cannot be compared; return a comparable key", x.s.name, e, key))
	}
	if key != key {
		return
	}
	x.rows[row].list = x.lists.Insert(key, e)
	x.version++
}

// empty removes all lists and entries of x.
func (x *Index[T, K]) empty() {
	if x.lists.Len() > 0 {
		x.lists.Clear()
		x.version++
	}
	x.rows = x.rows[:0]
}

// bytes returns the size of the index without the memory that its keys point to.
func (x *Index[T, K]) bytes() int64 {
	return x.news.Bytes() + x.lists.Bytes() + room(x.rows) + room(x.changed)
}
