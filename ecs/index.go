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

// An Index finds the entities whose component has a key: those in a cell of a grid, of a
// team, with a name.
//
//	byCell := ecs.NewIndex(positions, func(p Position) Cell { return Cell{int(p.X) / 16, int(p.Y) / 16} })
//	for e := range byCell.Of(Cell{3, 4}) { … }
//
// It is right at every look-up, whatever wrote the components: Set, pointers, batches,
// sorts, Clear, a restore, a load. No write tells it; a look-up reads which rows were
// written since the last one, and looks at those again. So it costs O(rows written since),
// nothing where nothing was written, and a world whose storages have no index nothing at
// all. It is not saved, as it follows from the state; after Load or Open it is right like
// any other time.
//
// A look-up may come anywhere: in a loop over a query, in a hook, between Mut and the write
// through its pointer. Rows handed out and perhaps not written yet are looked at again by
// each look-up: the run that a loop is in, the row of the last Mut, all after MutValues.
// But it ends the validity of other pointers into the storage that were given out before;
// a debug build (-tags stetdebug) finds who writes through one. In [Query1.ParallelRuns]
// look-ups find what was there when the loop began.
//
// A key that differs from itself (NaN) finds nothing. [NewIndex] makes one.
//
// Where a key is to be that of one entity at most, as a name, write the components by
// [Index.Set], which refuses one that another entity has, or [Index.Replace], which takes it
// from that. Other ways to write do not ask. Both panic if a hook that they call makes two
// entities have one key.
type Index[T any, K comparable] struct {
	s   *Storage[T]
	key func(T) K
	lag

	rows  []entry // As they were when last looked at.
	lists roster.Lists[K, Entity]

	version uint64   // Rises when a list changes.
	moved   []uint32 // Scratch: rows that have another entity or key.
	partial bool     // A look-up is under way, or the key function panicked in one.
	closed  bool
	dynamic bool // Some values of K cannot be compared.
}

// A lag is what an index has not looked at yet. Each step of a loop asks for it, so it is no
// part of the generic code: of other packages a program inlines there only what ecs inlines
// somewhere itself.
type lag struct {
	news    *track.News
	late    uint32 // The row that was pointed to at the last look, and may have been written since,
	lateAll bool   // or all were.
}

// behind reports whether a row may differ from what the index knows of it.
func (l *lag) behind() bool {
	return l.news.Any() || l.late != track.NoRow || l.lateAll
}

// An entry is what an index knows of a row: its entity, and the number of its list.
type entry struct {
	e    Entity
	list uint32
}

const (
	unlisted = ^uint32(0)   // No list: of a gap, and of keys that differ from themselves.
	left     = unlisted - 1 // None yet: the row is among those to enter a list.
)

// NewIndex returns an index of s by key. It must return the same for equal components, look
// at nothing else and change nothing. Each index costs O(rows) at its first look-up and 16
// bytes a row, so a program makes it once and keeps it, as it does queries. The storages of a
// clone have none: see [Index.In].
//
// The same function finds the index that it made before. That holds for functions with a
// name and for literals that capture nothing. A literal that captures variables is another
// function each time, so its index is kept, or closed by [Index.Close]. NewIndex panics where
// a storage has 64 indexes by one such literal.
func NewIndex[T any, K comparable](s *Storage[T], key func(T) K) *Index[T, K] {
	if key == nil {
		panic("ecs: NewIndex without a key; give it a function from the component to what it is found by")
	}
	if x := indexBy(there(s), key); x != nil {
		return x
	}
	return newIndex(s, key)
}

// indexBy returns the index of s that key made, or nil.
func indexBy[T any, K comparable](s *Storage[T], key func(T) K) *Index[T, K] {
	for _, x := range s.indexes {
		if x, ok := x.(*Index[T, K]); ok && closureOf(x.key) == closureOf(key) {
			return x
		}
	}
	return nil
}

// closureOf returns where the code of f and the variables that it captures lie. It differs
// for two functions as long as both are held.
func closureOf[F any](f F) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&f)) }

// maxAlike is how many indexes of one storage the same literal may make.
const maxAlike = 64

// mustNotLeak panics if the literal of key made too many indexes of s.
func mustNotLeak[T any, K comparable](s *Storage[T], key func(T) K) {
	code, alike := reflect.ValueOf(key).Pointer(), 0
	for _, x := range s.indexes {
		if x, ok := x.(*Index[T, K]); ok && reflect.ValueOf(x.key).Pointer() == code {
			alike++
		}
	}
	if alike == maxAlike {
		panic(fmt.Sprintf("ecs: NewIndex of %s: one function literal that captures variables made %d indexes, and each stays; make the index once and keep it, close it, or give it a function that captures nothing", s.name, alike))
	}
}

func newIndex[T any, K comparable](s *Storage[T], key func(T) K) *Index[T, K] {
	mustNotLeak(s, key)
	x := &Index[T, K]{s: s, key: key, dynamic: holdsInterface(reflect.TypeFor[K]())}
	x.lag = lag{news: s.rows.Follow(&s.dense.Log, &s.data.Log), late: track.NoRow}
	s.indexes = append(s.indexes, x)
	return x
}

// holdsInterface reports whether t has an interface in it: what that holds may be of a type that cannot be compared.
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

// In returns the index of the same storage in another world, such as a clone, which is made
// if there is none yet. It returns nil if that world has no such storage.
func (x *Index[T, K]) In(w *World) *Index[T, K] {
	s := x.s.In(w)
	if s == nil {
		return nil
	}
	return NewIndex(s, x.key)
}

// Close gives x up: it takes neither memory nor time from then on, and a look-up panics. A
// program closes the indexes whose key functions it makes again and again, such as one for each cell size
// that a player chooses. The index of a [Relation] is closed by [Relation.Close], and panics
// here. To close it again does nothing.
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
	x.rows, x.moved = nil, nil
	x.closed, x.lateAll = true, true // A look-up asks no more than whether a row is late.
	x.version++
}

// Of iterates over the entities that have the key, in the order of their indices. The
// world may change meanwhile: who does not have the key any more when the loop comes there
// is not visited, and who came to have it behind the entity being visited is.
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
				if x.behind() {
					x.catchUp()
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

// Len returns how many entities have the key. It costs a look-up.
func (x *Index[T, K]) Len(key K) int {
	if l := x.find(key); l != nil {
		return l.Len()
	}
	return 0
}

// First returns the entity with the lowest index that has the key, and whether any has.
func (x *Index[T, K]) First(key K) (Entity, bool) {
	if l := x.find(key); l != nil {
		return l.Chunk(0)[0], true
	}
	return 0, false
}

// Keys iterates over the keys that entities have, in the order of the first entity of each,
// as they are when the loop begins. It costs O(keys · log keys).
func (x *Index[T, K]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		x.look()
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

// Set is [Storage.Set] for e, which must be alive, with a component whose key no other
// entity has: that is an error that wraps [ErrTaken]. After an error nothing has changed.
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

// mustBeUnique panics if hooks of a write of v to e made two entities have one key.
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
				panic(fmt.Sprintf("ecs: Index.%s of %s of %v: a hook changed a key, so that %v and %v have the same; let hooks leave keys alone, or change the component before %s",
					op, x.s.name, e, first, other, op))
			}
			first = other
		}
	}
}

// Replace is [Storage.Set] for e, which then is the only entity with the key of v: others
// that have it lose the component. It reports whether e is alive; if not, nothing changes.
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

// find returns the entities that have the key; nil: none has.
func (x *Index[T, K]) find(key K) *roster.List[Entity] {
	x.look()
	return x.lists.Of(key)
}

func (x *Index[T, K]) look() {
	if debug {
		x.s.mustNotFollow()
	}
	if x.behind() {
		x.catchUp()
	}
}

// catchUp makes x know what is there.
func (x *Index[T, K]) catchUp() {
	s, w := x.s, x.s.w
	if x.closed {
		panic("ecs: a look-up in an index of " + s.name + " that is closed; close it later, or make another")
	}
	if w.parallel {
		return
	}
	if s.pointedAll {
		s.pointedAll = s.pointedIn == w.clock.Span && s.pointedAt == s.version
	}
	written := x.news.Any()
	if written && debug {
		w.verifyOf(&s.rows)
	}
	x.followChecked()
	if x.late, x.lateAll = s.pointed, s.pointedAll; !written {
		return
	}
	x.news.Looked()
	w.changes++ // What loops are about to hand out is reported anew.
	if debug {
		w.rememberOf(&s.rows, s.pointed, s.pointedAll)
	}
	w.hands.save()
}

// followChecked is follow, in which a debug build watches what the key function does.
func (x *Index[T, K]) followChecked() {
	if debug {
		defer x.s.following()()
	}
	x.follow()
}

// follow makes x know rows again that may have been written.
func (x *Index[T, K]) follow() {
	n := x.s.rows.N
	if n == 0 || x.news.All() || x.partial {
		x.empty()
	}
	x.partial = true
	x.moved = x.moved[:0]
	if x.lateAll {
		x.leaveAll(0, n)
	} else {
		x.news.Order()
		for i := range x.news.Len() {
			x.leave(x.news.Word(i))
		}
		x.leaveAll(int(x.late), int(x.late)+1)
	}
	if n < len(x.rows) {
		x.leaveAll(n, len(x.rows))
		x.rows = x.rows[:n]
	}
	for _, row := range x.moved {
		if int(row) < n {
			x.enter(int(row))
		}
	}
	x.rows = slices.Grow(x.rows, n-len(x.rows))
	for row := len(x.rows); row < n; row++ {
		x.rows = append(x.rows, entry{})
		x.enter(row)
	}
	if cap(x.moved) > 4096 && cap(x.moved) > n {
		x.moved = nil
	}
	x.partial = false
}

// leaveAll is leave for rows [lo, hi).
func (x *Index[T, K]) leaveAll(lo, hi int) {
	for hi = min(hi, len(x.rows)); lo < hi; lo = lo&^63 + 64 {
		x.leave(lo&^63, ^uint64(0)<<(lo&63)&firstBits(hi-lo&^63))
	}
}

// leave takes those of the rows from first on whose bits are set, as far as x knows them,
// out of their lists that have another entity or key now.
func (x *Index[T, K]) leave(first int, written uint64) {
	s := x.s
	known := x.rows[min(first, len(x.rows)):min(first+64, len(x.rows))]
	dense, data := s.dense.Live[:s.rows.N], s.data.Live[:s.rows.N]
	for written &= firstBits(len(known)); written != 0; written &= written - 1 {
		i := bits.TrailingZeros64(written)
		was, row := known[i&63], first+i
		if was.list == left || row < len(dense) && dense[row] == was.e && (was.e == Vacant || was.list != unlisted && x.lists.Is(was.list, x.key(data[row]))) {
			continue
		}
		x.moved = append(x.moved, uint32(row))
		known[i&63].list = left
		if was.list != unlisted {
			x.lists.Remove(was.list, was.e)
			x.version++
		}
	}
}

// enter puts the entity of row, which is in no list, into that of its key.
func (x *Index[T, K]) enter(row int) {
	e := x.s.dense.Live[row]
	x.rows[row] = entry{e, unlisted}
	if e == Vacant {
		return
	}
	key := x.key(x.s.data.Live[row])
	if x.dynamic && !reflect.ValueOf(&key).Elem().Comparable() {
		panic(fmt.Sprintf("ecs: an index of %s: the key of %v is %v, of a type that cannot be compared; let the key function return another one", x.s.name, e, key))
	}
	if key != key { // Some do.
		return
	}
	x.rows[row].list = x.lists.Insert(key, e)
	x.version++
}

// empty makes x one that knows no row.
func (x *Index[T, K]) empty() {
	if x.lists.Len() > 0 {
		x.lists.Clear()
		x.version++
	}
	x.rows = x.rows[:0]
}

// bytes returns how much memory x takes, but for what keys lead to.
func (x *Index[T, K]) bytes() int64 {
	return x.news.Bytes() + x.lists.Bytes() + room(x.rows) + room(x.moved)
}
