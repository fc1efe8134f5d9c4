package ecs

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/raw"
)

// Options configure a World. The zero Options are useful: no history.
type Options struct {
	// History is the number of committed ticks that the world retains. Default 0: no history, and
	// no cost.
	//
	// The cost of a tick is the old values of the rows that the next tick overwrites. For
	// example, 4,800 positions of 16 bytes that change in each tick take 109 kB a tick. At 60
	// ticks a second, that is 392 MB for a minute. [History.TickBytes] returns the cost.
	History int

	// HistoryBytes limits the bytes of saved rows in the history. The oldest ticks are dropped
	// first. Default 0: no limit.
	HistoryBytes int64

	// HistoryDense makes the history reach further back within these limits. It is the number of
	// newest ticks that are all retained. At a limit, the history drops a tick between two older
	// ones instead of the oldest tick. So the distance between retained ticks grows with their
	// age. With 256 ticks, some 25 are from the last 50 and as many from the 50 before. The next
	// 25 are from the 100 before, and so on to the first tick. See [History.Ticks]. The oldest
	// tick is dropped only if no tick between others is left.
	//
	// A dropped tick is merged with the one before. A commit costs up to O(rows in both ticks).
	// On average, it costs O(rows written) times the logarithm of the number of ticks so far.
	// Default 0: the oldest ticks are dropped.
	HistoryDense int
}

// frameLists has the buffers of a removed frame. The next frame reuses them while they are in a
// processor cache.
type frameLists struct {
	touched []*track.Tracker
	ops     []raw.Op
}

// A World holds entities, their components and resources, and can restore all of them to an
// earlier state. [NewWorld] makes a World.
//
// A World is not safe for concurrent use.
type World struct {
	options Options

	entities     registry
	sets         []*set           // The sparse set of each storage, in the order of registration.
	storages     []AnyStorage     // The storages, in the same order.
	candidates   []pageCandidates // By sparse page, the storages that may have members there.
	paged        uint64           // Counts changes that invalidate candidates; never decreases.
	resources    []AnyStorage
	names        map[string]AnyStorage
	former       map[string]AnyStorage    // By former name.
	converted    []raw.Conversion         // The conversions of the last Load.
	hasObservers bool                     // A recorder or hooks observe created entities.
	hooked       bool                     // The world has hooks, or a storage has a group.
	watched      bool                     // hooked, or the world has relations.
	relations    relationHandler          // The relations; nil if there are none.
	released     bool                     // Relations have already permitted the next Destroy.
	system       *string                  // The name of the running system of a Stepper, or nil.
	noRewind     []noRewindStorage        // Storages of NoRewind components.
	ticking      []interface{ endTick() } // Resources whose values change at the end of a tick.
	groups       []*Group

	// The frames, oldest first. The last one is open. A world without history, checkpoints and
	// recorder has none.
	frames         []frame
	oldest         int // The position of the first frame that is not removed.
	removed        int // The number of removed frames.
	evictableTicks int // The number of boundaries that may be dropped.
	clock          track.Clock
	pins           []*rawPin
	ticks          int          // The number of frames that begin at the end of a tick.
	forward        []frame      // Frames undone by a seek; the next one to redo is last.
	lists          []frameLists // Buffers of removed frames.
	frameID        uint64       // The ID of the newest frame; never decreases.
	turn           uint64       // Counts starts and ends of frames; never decreases.
	tick           uint64

	thinning      thinning
	recorders     []raw.Recorder
	recording     bool // A tick is being recorded: the pins already have its rows.
	change        change
	ops           *[]raw.Op // The operations of the open frame; nil without a recorder.
	onRestore     []func()
	restores      uint64        // The number of calls of onRestore so far.
	identityPages []*track.Page // Shared by all Indexed storages.
	equal         equality
	hooks         worldHooks
	guards        guards //nolint:unused // Of a debug build.

	changes       uint64      // Counts structural changes; never decreases.
	activeCursors cursorStack // The running loops that write, innermost last.
	// A parallel loop is running: only the rows that it hands out may be written.
	parallel bool

	// The number of boundaries at which cursors were active, since the stack was empty or a tick
	// ended.
	loopBoundaries uint

	from, used []uint32    // Scratch of sorting.
	batch      []Entity    // Scratch of batches.
	finding    *listBuffer // Scratch of joins.
	spare      spareSets   // Pool of sets for traversals.
	drains     drainLoops
}

// NewWorld returns an empty world at tick 0.
func NewWorld(options Options) *World {
	w := &World{options: options, names: make(map[string]AnyStorage), former: make(map[string]AnyStorage)}
	w.clock.Span, w.clock.End = 1, w.dropForward
	w.change.init(w)
	w.entities.init(w)
	w.noteCreated()
	if options.History > 0 {
		w.push(frame{tick: true})
	}
	return w
}

// Create returns a new entity without components.
func (w *World) Create() Entity {
	if debug {
		w.mustBeWritable("World.Create")
	}
	r := &w.entities // As in Storage.Set, the common case makes no calls.
	n := r.rows.N
	if r.rows.Span != w.clock.Span || n >= r.rows.Extra || w.hasObservers || r.dense.Live[n].Generation() == r.maxGeneration {
		return w.createSlow()
	}
	if r.dense.Unsaved(n) {
		r.dense.Save(n)
	}
	e := r.dense.Live[n] + 1<<32
	r.dense.Live[n], r.rows.N = e, n+1
	return e
}

// createSlow is Create for all cases.
//
//go:noinline
func (w *World) createSlow() Entity {
	e := w.entities.create()
	if w.ops != nil {
		w.note(raw.OpCreate, nil, e)
	}
	if len(w.hooks.create) > 0 {
		w.runCreateHooks(e)
	}
	return e
}

// ErrTaken is returned by [Index.Set] if another entity has the key. [World.CreateAt] returns it
// if the index is in use, or was used by a later generation.
var ErrTaken = errors.New("taken")

// CreateAt creates the entity e itself, without components. Use it for entities named by another
// world, restored by an editor, or assigned by a server. The index of e must be free. Its
// generation must be at least that of the last entity with the index, which is revived if both
// are the same. Otherwise the error wraps [ErrTaken]. Generation 0, and the highest 32-bit index,
// are errors too. An error leaves the world unchanged.
//
// Lower indices that were never used become free, as if they had been used once. So CreateAt with
// an index of a million makes room for a million entities.
func (w *World) CreateAt(e Entity) error {
	if debug {
		w.mustBeWritable("World.CreateAt")
	}
	if err := w.entities.createAt(e); err != nil {
		return err
	}
	if w.ops != nil {
		w.note(raw.OpCreate, nil, e)
	}
	w.runCreateHooks(e)
	return nil
}

// Alive reports whether e was created by w and not destroyed since. e may be any value: stale,
// invented or zero. The result may be wrong for an entity that the program kept outside of the
// world during a restore; see [World.Restores].
func (w *World) Alive(e Entity) bool { return w.entities.alive(e) }

// Len returns the number of entities alive.
func (w *World) Len() int { return w.entities.rows.N }

// Entities returns the entities alive, in the order of the registry. The slice is read-only, and
// valid until the next change of the world.
//
// Destroy moves the last entity into the place of the destroyed one. A loop over the slice that
// destroys entities must therefore go from the last to the first, as DestroyAll and Clear do. A
// forward loop would miss half of them:
//
//	for _, e := range slices.Backward(w.Entities()) {
//		if done(e) {
//			w.Destroy(e)
//		}
//	}
//
// A debug build panics if a loop reaches a place that has another entity by then.
func (w *World) Entities() []Entity { return w.loan(&w.entities.rows, &w.entities.dense) }

// Destroy destroys e and removes its components. It returns false if e was not alive, or if a
// [Relation] refused.
func (w *World) Destroy(e Entity) bool {
	if w.watched {
		if may, ended := w.notifyDestroying(e); !may {
			return ended
		}
	}
	if debug {
		w.mustBeWritable("World.Destroy")
	}
	if !w.entities.destroy(e) {
		return false
	}
	if debug {
		w.spoil()
	}
	if w.ops != nil {
		w.note(raw.OpDestroy, nil, e)
	}
	w.discard(e)
	return true
}

// CreateN creates n entities without components and appends them to dst, which may be nil. They
// are the entities that n calls of [World.Create] would return, in the same order. The world does
// not keep the slice.
func (w *World) CreateN(dst []Entity, n int) []Entity {
	if n <= 0 {
		return dst
	}
	if debug {
		w.mustBeWritable("World.CreateN")
	}
	from := len(dst)
	dst = w.entities.createN(dst, n)
	w.noteAll(raw.OpCreate, nil, dst[from:])
	if len(w.hooks.create) > 0 {
		for _, e := range dst[from:] {
			w.runCreateHooks(e)
		}
	}
	return dst
}

// Reserve makes room for a total of n entities. Up to that number, creating an entity allocates
// no memory. It costs O(n) if the room was smaller before.
//
// Reserve has no visible effect except on [World.MemoryUsage]. [World.Shrink] frees room that is
// not used.
func (w *World) Reserve(n int) { w.entities.reserve(min(n, maxIndices)) }

// DestroyAll destroys entities, from the last to the first. It returns the number of them that
// were alive before and are dead afterwards. Entities that a [Relation] or a hook destroyed first
// count as well. The slice may be one returned by w or a storage.
func (w *World) DestroyAll(entities []Entity) int {
	// A copy, because entities may be a view of rows that move.
	return w.destroyBatch(append(w.batch[:0], entities...))
}

// KeepOnly removes all components from e except those of keep, in the order of registration. It
// returns the number of removed components that e had before the call. With no keep, it removes
// all components.
func (w *World) KeepOnly(e Entity, keep ...AnyStorage) (n int) {
	for _, s := range keep {
		w.mustBeComponent("KeepOnly", s)
	}
	if debug {
		w.mustBeWritable("World.KeepOnly")
	}
	others := func(yield func(i, row int) bool) {
		for i, s := range w.storages {
			if row := w.sets[i].row(e); row >= 0 && !slices.Contains(keep, s) && !yield(i, row) {
				return
			}
		}
	}
	for range others { // Counted first, because hooks may remove some of them.
		n++
	}
	for i, row := range others {
		if row = w.sets[i].notifyRemoving(w.storages[i], e, row); row >= 0 {
			w.storages[i].discard(e, row)
		}
	}
	return n
}

// Clear destroys all entities and removes all components. Resources stay. It costs as much as
// [Storage.Clear] for each storage, independent of the number of entities.
func (w *World) Clear() {
	if w.hooked && w.destroyEach() {
		return
	}
	if debug {
		w.mustBeWritable("World.Clear")
	}
	if w.ops != nil {
		w.note(raw.OpClear, nil, 0)
	}
	for _, g := range w.groups {
		g.beforeClear()
	}
	w.entities.clear()
	for i, s := range w.sets {
		if s.rows.N > 0 {
			w.storages[i].discardAll()
		}
	}
	if debug {
		w.spoil()
	}
}

// Storages returns the storages of w in the order of registration, followed by the resources.
func (w *World) Storages() []AnyStorage {
	return append(append(make([]AnyStorage, 0, len(w.storages)+len(w.resources)), w.storages...), w.resources...)
}

// Tick returns the number of the newest committed tick. It is the number of Commits on the branch
// of history that led to the present state.
func (w *World) Tick() uint64 { return w.tick }

// Raw returns the interface of the world for code that stores it without knowing its types, such
// as package persist.
func (w *World) Raw() raw.World { return rawWorld{w} }

// OnCreate makes w call f after an entity was created, by itself or in a batch. The entity has no
// components yet. In a batch, f is called after all entities are created. See [Storage.OnAdd] for
// what f may do, and for changes that call no hooks. If a hook destroys the entity, later hooks
// are not called.
func (w *World) OnCreate(f func(e Entity)) {
	w.hooks.create = append(w.hooks.create, f)
	w.updateObserved()
}

// OnDestroy makes w call f before an entity is destroyed, while it has all its components. This
// includes batches and World.Clear, which then destroys the entities one by one. See
// [Storage.OnAdd] for what f may do.
func (w *World) OnDestroy(f func(e Entity)) {
	w.hooks.destroy = append(w.hooks.destroy, f)
	w.updateObserved()
}

// OnRestore makes w call f after other content has replaced that of w: after Restore, a Try that
// fails, Rewind, Seek and Load. persist.Load, persist.Open and a Player use Load. If persist.Open
// fails after it has filled the world, it empties the world again, and calls f for that too. f
// must not change the world.
//
// Use OnRestore for data outside of the world that follows the world: rebuild it from the new
// content. An Entity kept outside of the world may belong to another entity from then on; see
// [World.Restores].
func (w *World) OnRestore(f func()) { w.onRestore = append(w.onRestore, f) }

// Restores returns the number of times that other content has replaced that of w. These are the
// events that call the functions of [World.OnRestore]. The number never decreases.
//
// Use it for entities that are kept outside of the world. After a restore, the world may give the
// same Entity to another entity. Then Alive returns true although the original entity no longer
// exists. A program can store Restores next to the Entity to detect this. While the number is the
// same, Alive is right about that Entity:
//
//	type handle struct {
//		entity   ecs.Entity
//		restores uint64
//	}
//
//	func (h handle) alive(w *ecs.World) bool {
//		return h.restores == w.Restores() && w.Alive(h.entity)
//	}
//
// If the number has changed, find the entity again by a property that the world holds.
func (w *World) Restores() uint64 { return w.restores }

// afterRewind runs after a restore to an earlier or later state.
func (w *World) afterRewind() {
	for _, s := range w.noRewind {
		s.dropDead()
	}
	w.afterRestore()
}

// afterRestore runs after the content of the world was replaced.
func (w *World) afterRestore() {
	if debug {
		w.spoil()
		w.remember()
	}
	w.restores++
	for _, r := range w.recorders {
		if f, ok := r.(raw.Follower); ok {
			f.Restored(w.tick)
		}
	}
	for _, f := range w.onRestore {
		f()
	}
}

// Storage returns the storage or resource with the name. This includes loaded ones that the
// program has not registered. It is for code that does not know the type.
func (w *World) Storage(name string) (s AnyStorage, ok bool) {
	s, ok = w.names[name]
	return s, ok
}

// AliveBits returns the indices of the entities alive. Reading 64 indices costs 64 look-ups,
// where a [Mask] needs one. So use it in combinations rather than to iterate over it alone.
func (w *World) AliveBits() Bits { return Bits{&w.entities} }

// NewMask returns an empty mask that belongs to the program. A restore of w restores it too.
//
// The mask is not part of the content of w in other respects. It is not journaled, saved or
// cloned, and not in the digest. Destroy, World.Clear and loads do not change it. An index does
// not identify a generation: a program that keeps entity indices in a mask must remove those of
// destroyed entities.
func (w *World) NewMask() *Mask { return newMask(w, false) }

// NewGroup makes a group of two or more storages of w. It packs the entities that have all of
// these components, in the order of the storage with the fewest rows, the first of equals. This
// counts as a change of the world like any other. Use a group of exactly the components of a
// query to make the query one run.
//
// A storage may belong to one group only, and must not be NoRewind or [Indexed]. Otherwise
// NewGroup returns an error. If w has a group of the same storages in the same order, as a clone
// has, NewGroup returns that group.
//
// After a rewind to a state before NewGroup, or a Load of data saved without the group, members
// may be scattered. New members are packed at once. The others are packed by the next Commit, or
// by [Group.Pack].
func (w *World) NewGroup(storages ...AnyStorage) (*Group, error) {
	for _, g := range w.groups {
		if slices.Equal(g.storages, storages) {
			return g, nil
		}
	}
	if err := w.checkGroup(storages); err != nil {
		return nil, fmt.Errorf("ecs: bad group: %w", err)
	}
	return w.group(storages), nil
}

// MustNewGroup is [World.NewGroup], but panics on an error.
func (w *World) MustNewGroup(storages ...AnyStorage) *Group { return must(w.NewGroup(storages...)) }

// Align moves the entities that all of storages have to the front of each storage, in their order
// in the first one:
//
//	positions     | x | a | b | y | c |         | a | b | c | y | x |
//	velocities    | c | w | b | a |        →    | a | b | c | w |
//
// A query over these components, or over some of them and others, then finds consecutive rows, as
// in a [Group]. It walks them at the speed of slices. Unlike a group, the order is not
// maintained: later changes scatter rows again, at the usual cost. Call Align when there is time,
// after many changes: behind a loading screen, or once a second.
//
// It costs O(rows of all storages), some look-ups for each row, and a write for each row that
// moves. Rows that are already in place are not written, so aligning aligned storages changes
// nothing. Name the storage whose order should stay first. The fewest rows move if all its
// entities are in the other storages. Rows of other entities in front swap places with the rows
// that move there. A storage may be in several calls; the last one determines its order.
//
// Order is state, as with [Storage.SortFunc]. A restore brings it back, and a journal records it.
// Peers that must stay equal must make the same call in the same tick. A loop over one of the
// storages panics if its rows move.
//
// In a storage of a group, the group's members stay in front. They are aligned among themselves,
// and the other rows after them. A query over storages of several groups still finds some runs.
// An [Ordered] storage keeps its order of iteration. A NoRewind storage is not restored together
// with the others.
//
// Align panics, and moves nothing, if one of storages is [Indexed], is a resource, or belongs to
// another world. The rows of an Indexed storage cannot move.
func (w *World) Align(storages ...AnyStorage) {
	w.mustAlign(storages)
	w.align(storages)
}

// EntityAt returns the entity alive with the index. The second result is false if no entity is.
func (w *World) EntityAt(index uint32) (Entity, bool) { return w.entities.at(index) }

// relationHandler is the interface to the relations of a world. It is called before an entity is
// destroyed.
type relationHandler interface {
	// onDestroy applies the policies to the sources of e. It returns false if e must stay alive.
	onDestroy(e Entity) (destroyed, bool)
	// afterHooks does the same after the hooks of e. It returns false if hooks made no sources.
	afterHooks(e Entity, s destroyed) (destroyed, bool)
	// onClear does the same after the hooks of World.Clear.
	onClear(cleared []Entity)
	// mayDestroy reports whether entities may be destroyed together.
	mayDestroy(entities []Entity) bool
	// destroyTogether destroys entities. If one must stay alive, it returns false and destroys
	// none.
	destroyTogether(entities []Entity) bool
	// relates reports whether a relation uses the index x.
	relates(x follower) bool
}

// destroyed has the results of onDestroy for an entity that is being destroyed. It lists the
// entities destroyed with it, and has the version of the relations after that.
type destroyed struct {
	entities []Entity // The entity comes first; nil if it had no sources.
	version  uint64
}

// mayDestroy reports whether distinct entities may be destroyed together. It returns false if a
// relation refuses.
func (w *World) mayDestroy(entities []Entity) bool {
	return w.relations == nil || w.relations.mayDestroy(entities)
}

// relates reports whether a relation uses the index x.
func (w *World) relates(x follower) bool { return w.relations != nil && w.relations.relates(x) }

// destroyTogether destroys distinct entities. It returns false and destroys none if a relation
// refuses.
func (w *World) destroyTogether(entities []Entity) bool {
	if w.relations != nil {
		return w.relations.destroyTogether(entities)
	}
	w.DestroyAll(entities)
	return true
}

// saveActiveCursors runs after a boundary. It saves the rows that running loops have handed out
// again. After 1, 2, 4, … boundaries it first checks whether any loop is still running.
func (w *World) saveActiveCursors() {
	if len(w.activeCursors) == 0 {
		w.loopBoundaries = 0
		return
	}
	if w.loopBoundaries++; w.loopBoundaries&(w.loopBoundaries-1) == 0 && runningLoops() == 0 {
		w.activeCursors.drop(0)
		return
	}
	w.activeCursors.save()
}

// mustBeBetween panics if a system or a body of ParallelRuns is running. The operation op ends the
// tick or goes to another tick, which is possible only between systems.
func (w *World) mustBeBetween(op string) {
	switch {
	case w.parallel:
		panic("ecs: " + op + " in the body of ParallelRuns; call it after the loop")
	case w.system != nil:
		panic(fmt.Sprintf("ecs: %s in the system %q, whose tick has not ended; call it after Run, or leave it to Step, which commits behind the last system", op, *w.system))
	}
}
