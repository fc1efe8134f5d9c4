package ecs

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/raw"
)

// Options configure a World. The zero Options mean no history.
type Options struct {
	// History is the number of committed ticks that the world retains. The default 0 means no
	// history, at no cost.
	//
	// A retained tick takes memory for the old values of the rows that the next tick overwrites.
	// For example, 4,800 positions of 16 bytes that change in each tick take 109 kB a tick.
	// [History.TickBytes] returns the size of a tick.
	History int

	// HistoryBytes limits the size of the saved rows in the history, in bytes. The history drops
	// its oldest ticks first. The default 0 means no limit.
	HistoryBytes int64

	// HistoryDense is the number of newest ticks that the history retains without gaps. When the
	// history is full, it thins out the older ticks: it drops a tick between two others and keeps
	// the oldest tick. So the history reaches further back. The default 0 means that the history
	// drops its oldest ticks.
	//
	// The distance between retained ticks grows with their age. With 256 ticks, about 25 are from
	// the last 50 ticks, and 25 from the 50 ticks before. Another 25 are from the 100 ticks before,
	// and so on. See [History.Ticks].
	//
	// A dropped tick is merged with the tick before it, so a commit costs up to O(rows in both
	// ticks). On average, it costs O(rows written) times the logarithm of the number of ticks so
	// far.
	HistoryDense int
}

// A World has entities, their components and resources. It can restore all of them to an earlier
// state. [NewWorld] creates a World.
//
// A World is not safe for concurrent use.
type World struct {
	_ noCopy

	options Options
	timeline
	loops
	observers

	entities   registry
	sets       []*set           // The sparse set of each storage, in the order of registration.
	storages   []AnyStorage     // The storages, in the same order as sets.
	candidates []pageCandidates // For each sparse page, the storages that have it.
	paged      uint64           // Number of changes that invalidate the field candidates.
	changes    uint64           // Number of structural changes so far.
	resources  []AnyStorage
	names      map[string]AnyStorage
	former     map[string]AnyStorage // Storages by former names.
	converted  []raw.Conversion      // The conversions of the last Load.
	groups     []*Group

	noRewind      []componentRows          // Storages of NoRewind components.
	ticking       []interface{ endTick() } // Resources whose values change at the end of a tick.
	identityPages []*track.Page            // The sparse pages of all Indexed storages.
	system        *string                  // Name of the running system, or nil.
	guards        guards                   //nolint:unused // Used only in a debug build.

	equal      [2][]byte   // Buffers for comparing rows.
	from, used []uint32    // Buffers for sorting.
	batch      []Entity    // Buffer for batches.
	finding    *listBuffer // Buffer for joins.
	spare      spareSets   // Pool of sets for relations and batches.
}

// NewWorld returns an empty world at tick 0.
func NewWorld(options Options) *World {
	w := &World{options: options, names: make(map[string]AnyStorage), former: make(map[string]AnyStorage)}
	w.clock.Span, w.clock.End = 1, w.dropForward
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
	r := &w.entities // The fast path makes no calls.
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

// createSlow is Create without the fast path.
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

// ErrTaken is the error of [Index.Set] if another entity has the key. It is the error of
// [World.CreateAt] if the index is in use, or was used by an entity with a higher generation.
var ErrTaken = errors.New("taken")

// CreateAt creates the given entity e, without components. Use it for entities from another world,
// from an editor or from a server. An error leaves the world unchanged. It wraps [ErrTaken]:
//
//   - if the index of e is in use
//   - if the last entity with this index had a higher generation than e
//
// CreateAt revives e if e was the last entity with its index. Generation 0 and the highest 32-bit
// index are errors too.
//
// Lower indices that were never used become free. So CreateAt with an index of a million allocates
// memory for a million entities.
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

// Alive reports whether e was created by w and has not been destroyed. e may be any value, even a
// stale entity or [None]. After a restore, the result may be wrong for an entity that the program
// stored outside the world; see [World.Restores].
func (w *World) Alive(e Entity) bool { return w.entities.alive(e) }

// Len returns the number of alive entities.
func (w *World) Len() int { return w.entities.rows.N }

// Entities returns the alive entities, in the order of the registry. The slice is read-only, and
// valid until the next change of the world.
//
// Destroy moves the last entity to the position of the destroyed entity. So a loop over the slice
// that destroys entities must go from the last to the first, as DestroyAll and Clear do. A forward
// loop would miss half of the entities:
//
//	for _, e := range slices.Backward(w.Entities()) {
//		if done(e) {
//			w.Destroy(e)
//		}
//	}
//
// A debug build panics if a loop reaches a position that now has another entity.
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

// Reserve allocates memory for a total of n entities. Up to that number, creating an entity
// allocates no memory. Reserve costs O(n) if the registry must grow.
//
// Reserve has no visible effect except on [World.MemoryUsage]. [World.Shrink] frees unused memory.
func (w *World) Reserve(n int) { w.entities.reserve(min(n, maxIndices)) }

// KeepOnly removes all components from e except those of keep, in the order of registration. It
// returns how many components of e it removed. If keep is empty, it removes all components.
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
	// Count before the removals: a hook may remove further components of e.
	for range others {
		n++
	}
	for i, row := range others {
		if row = w.sets[i].notifyRemoving(e, row); row >= 0 {
			w.sets[i].storage.discard(e, row)
		}
	}
	return n
}

// Clear destroys all entities and removes all components. Resources keep their values. It costs as
// much as [Storage.Clear] for each storage, for any number of entities.
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
	for _, s := range w.sets {
		if s.rows.N > 0 {
			s.storage.discardAll()
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

// Tick returns the number of the newest committed tick, on the branch of history that led to the
// current state.
func (w *World) Tick() uint64 { return w.tick }

// Raw returns an interface of the world for code without its types, such as package persist.
func (w *World) Raw() raw.World { return rawWorld{w} }

// OnCreate makes w call f after an entity was created. The entity has no components yet. In a
// batch, w calls f after it has created all entities. If a hook destroys the entity, later hooks
// are not called. See [Storage.OnAdd] for what f may do, and for changes that call no hooks.
func (w *World) OnCreate(f func(e Entity)) {
	w.hooks.create = append(w.hooks.create, f)
	w.updateObserved()
}

// OnDestroy makes w call f before an entity is destroyed, while it still has all its components.
// This includes batches and World.Clear, which then destroys the entities one by one. See
// [Storage.OnAdd] for what f may do.
func (w *World) OnDestroy(f func(e Entity)) {
	w.hooks.destroy = append(w.hooks.destroy, f)
	w.updateObserved()
}

// OnRestore makes w call f after the content of w was replaced: by Restore, a Try that fails,
// Rewind, Seek or Load. If persist.Open fails after it has filled the world, it empties the world
// again, and w calls f. f must not change the world.
//
// Use OnRestore to compute data outside the world again from the new content. After a restore, an
// Entity stored outside the world may identify another object; see [World.Restores].
func (w *World) OnRestore(f func()) { w.onRestore = append(w.onRestore, f) }

// Restores returns the number of times that the content of w was replaced: see [World.OnRestore].
// The number never decreases.
//
// After a restore, the world may create an equal Entity for another object. Then Alive returns true
// although the original entity no longer exists. To detect this, store Restores together with an
// Entity outside the world:
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
// If the number has changed, find the entity again by a property that is stored in the world.
func (w *World) Restores() uint64 { return w.restores }

// afterRewind runs after w was restored to an earlier or later state.
func (w *World) afterRewind() {
	w.dropDead()
	w.afterRestore()
}

// dropDead removes the rows of dead entities in NoRewind storages.
func (w *World) dropDead() {
	for _, s := range w.noRewind {
		s.dropDead()
	}
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

// Storage returns the storage or resource with the given name, for code that does not know its
// type. It also finds data that was loaded but not registered.
func (w *World) Storage(name string) (s AnyStorage, ok bool) {
	s, ok = w.names[name]
	return s, ok
}

// AliveBits returns the indices of the alive entities. The world does not store them as bits:
// reading 64 indices takes 64 look-ups. A [Mask] needs one. So combine AliveBits with other Bits,
// which exclude most indices.
func (w *World) AliveBits() Bits { return Bits{&w.entities} }

// NewMask returns an empty mask that belongs to the program. A restore of w also restores the mask.
// The mask is not journaled, saved or cloned, and not in the digest.
//
// Destroy, World.Clear and loads do not change the mask. If the program destroys an entity, it must
// remove its index from the mask, because a later entity may have the same index.
func (w *World) NewMask() *Mask { return newMask(w, false) }

// EntityAt returns the alive entity with the given index. It returns false if no such entity is
// alive.
func (w *World) EntityAt(index uint32) (Entity, bool) { return w.entities.at(index) }

// relationHandler is the interface to the relations of a world. The world calls it before it
// destroys an entity.
type relationHandler interface {
	// onDestroy applies the policies to the sources of e. It returns false if e must stay alive.
	onDestroy(e Entity) (destroyed, bool)
	// afterHooks applies the policies to sources that hooks have added to e, or to entities
	// destroyed with it. It returns false if hooks have added no sources.
	afterHooks(e Entity, s destroyed) (destroyed, bool)
	// onClear runs at the end of World.Clear, with the entities that Clear destroyed. Hooks may
	// have created sources of these entities: onClear applies the policies to the sources.
	onClear(cleared []Entity)
	// mayDestroy reports whether destroyTogether would destroy the entities.
	mayDestroy(entities []Entity) bool
	// destroyTogether destroys entities. If one of them must stay alive, all stay alive and the
	// result is false.
	destroyTogether(entities []Entity) bool
	// relates reports whether a relation uses the index x.
	relates(x follower) bool
}

// destroyed is the result of onDestroy.
type destroyed struct {
	// The parameter e of onDestroy, followed by the entities destroyed with it. It is nil if e had
	// no sources, or if the world has no hooks.
	entities []Entity
	version  uint64
}

func (w *World) mayDestroy(entities []Entity) bool {
	return w.relations == nil || w.relations.mayDestroy(entities)
}

func (w *World) relates(x follower) bool { return w.relations != nil && w.relations.relates(x) }

// saveActiveCursors runs after a checkpoint, the end of a tick, and other operations that begin a
// new span. A running loop may still write the rows that its body has received. So
// saveActiveCursors saves these rows again.
//
// At its 1st, 2nd, 4th, 8th … call in a tick, it first checks whether any loop is still running. If
// not, loops have panicked, and it drops their cursors.
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

// dropLongLogs drops the row moves that sets have logged for running loops. It does nothing if a
// loop is still running. Such a log is left over if the body of a loop panicked.
func (w *World) dropLongLogs() {
	if runningLoops() > 0 {
		return
	}
	w.longLogs = false
	for _, s := range w.sets {
		if s.log.loops > 0 {
			s.log.reset()
		}
	}
}

// mustBeBetween panics if a system or a body of ParallelRuns is running. The parameter op is the
// name of a method that the program may call only between systems.
func (w *World) mustBeBetween(op string) {
	switch {
	case w.parallel && !w.clock.Shared:
		panic("ecs: " + op + " in the body of ParallelRuns; call it after the loop")
	case w.system != nil:
		panic(fmt.Sprintf("ecs: %s in the system %s, whose tick has not ended; call it after Step", op, *w.system))
	}
}
