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
	// History is how many committed ticks can be gone back to. Default 0: none,
	// and no cost. A tick holds the rows that the next one wrote over, as they were: where
	// 4,800 positions of 16 bytes change in each of 60 ticks a second, 109 kB a tick,
	// 392 MB for a minute. [History.TickBytes] says how much it is.
	History int

	// HistoryBytes bounds what the history may hold, in bytes of saved rows; the
	// oldest ticks go first. Default 0: no bound.
	HistoryBytes int64

	// HistoryDense makes the history reach further back within these bounds: it is
	// how many of the newest ticks are held one by one. When a bound is reached, it is
	// not the oldest tick that goes but ticks between older ones, so that what is held
	// lies the further apart the older it is: with 256 ticks held, some 25 from the
	// last 50, as many from the 50 before, the 100 before, and so on to the first one.
	// See [History.Ticks]. Only when none is left to be given up between others, the
	// oldest goes.
	//
	// A tick that is given up is merged with the one before: a commit costs up to
	// O(rows that both hold), and O(rows written) times the logarithm of the ticks
	// gone by on average. Default 0: the oldest ticks go.
	HistoryDense int
}

// frameLists is the memory of the lists of a frame that is gone. The next frame takes it,
// while it is in a cache.
type frameLists struct {
	touched []*track.Tracker
	ops     []raw.Op
}

// A World holds entities, their components and resources, and can put all of
// that back to an earlier point. [NewWorld] makes one.
//
// A World is not safe for concurrent use.
type World struct {
	options Options

	entities   registry
	sets       []*set           // The sparse set of each storage, in the order of registration,
	storages   []AnyStorage     // and the storage itself.
	candidates []pageCandidates // By sparse page, those that may have members there.
	paged      uint64           // Counts what makes a page of candidates out of date; only rises.
	resources  []AnyStorage
	names      map[string]AnyStorage
	former     map[string]AnyStorage    // By former name.
	converted  []raw.Conversion         // By the last Load.
	heeded     bool                     // A recorder or hooks are to be told who is created.
	hooked     bool                     // There are hooks, or a storage has a group.
	watched    bool                     // So it has, or there are relations: to destroy is more than to remove rows.
	bonds      severing                 // The relations; nil: none.
	released   bool                     // What is destroyed next is, as far as relations go.
	system     *string                  // The name of the system of a Stepper that is under way; nil: none is.
	exempt     []exemptStorage          // NoRewind components.
	ticking    []interface{ endTick() } // The resources with values that change when a tick ends.
	groups     []*Group

	// Frames, oldest first; the last one is open. None is held by a world without
	// history, checkpoints and recorder.
	frames  []frame
	oldest  int // The position of the first frame that is not removed.
	removed int // How many frames are.
	loose   int // How many boundaries can be given up.
	clock   track.Clock
	pins    []*rawPin
	ticks   int          // How many frames begin with the end of a tick.
	forward []frame      // Undone by seek; the next one to redo is last.
	lists   []frameLists // Of frames that are gone.
	frameID uint64       // Of the newest frame; ids only rise.
	turn    uint64       // Counts what makes frames begin and end; only rises.
	tick    uint64

	thinning      thinning
	recorders     []raw.Recorder
	recording     bool // The recorder is told a tick: the pins have what it saved.
	change        change
	ops           *[]raw.Op // The open frame's operations, while there is a recorder.
	onRestore     []func()
	restores      uint64        // How often they were to be called.
	identityPages []*track.Page // Of all Indexed storages.
	equal         equality
	hooks         worldHooks
	guards        guards //nolint:unused // Of a debug build.

	changes  uint64    // Counts structural changes; only rises.
	hands    handStack // Of the loops under way, the innermost last.
	parallel bool      // A loop with several goroutines is: nothing may be written but what it hands out.

	handBoundaries uint // How many boundaries have saved hands since there were none, or a tick ended.

	from, used []uint32  // Scratch of sorting.
	batch      []Entity  // And that of batches,
	finding    *listing  // of joins,
	spare      spareSets // and of what visits each entity once.
	drains     drainLoops
}

// NewWorld returns an empty world at tick 0.
func NewWorld(options Options) *World {
	w := &World{options: options, names: make(map[string]AnyStorage), former: make(map[string]AnyStorage)}
	w.clock.Span, w.clock.End = 1, w.dropForward
	w.change.init(w)
	w.entities.init(w)
	w.begun()
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
	r := &w.entities // As in Storage.Set, the usual case calls nothing.
	n := r.rows.N
	if r.rows.Span != w.clock.Span || n >= r.rows.Extra || w.heeded || r.dense.Live[n].Generation() == r.maxGeneration {
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
		w.tellCreated(e)
	}
	return e
}

// ErrTaken says that another entity has the key that [Index.Set] was given, or has or had
// the index that [World.CreateAt] was.
var ErrTaken = errors.New("taken")

// CreateAt creates e itself, without components: an entity that another world named, that
// an editor brings back, that a server gives out. Its index must be free, and its generation
// at least that of the last entity there, which lives again if it is the same; else the error
// wraps [ErrTaken]. An entity that no world can have, of generation 0 or of the last index that
// 32 bits can name, is an error too. After an error nothing has changed.
//
// Indices below that were never given out become free, as if they had been used once: an
// index of a million makes room for as many entities.
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
	w.tellCreated(e)
	return nil
}

// Alive reports whether e was created by w and not destroyed since. Any e may be
// asked: stale, made up, zero. Of one that was kept outside of the world while that went
// back it can be wrong; see [World.Restores].
func (w *World) Alive(e Entity) bool { return w.entities.alive(e) }

// Len returns the number of entities alive.
func (w *World) Len() int { return w.entities.rows.N }

// Entities returns the entities alive, in the order of the registry. The slice
// is valid until the next change of the world and must not be written.
//
// Destroy moves the last entity into the place of the one that goes. So a loop over
// the slice that destroys goes from the last to the first, as do DestroyAll and Clear;
// another would miss half of them:
//
//	for _, e := range slices.Backward(w.Entities()) {
//		if done(e) {
//			w.Destroy(e)
//		}
//	}
//
// A debug build panics where a loop comes to a place that has another entity by now.
func (w *World) Entities() []Entity { return w.loan(&w.entities.rows, &w.entities.dense) }

// Destroy ends the life of e and removes its components. It reports whether e
// was alive, and no [Relation] refused it.
func (w *World) Destroy(e Entity) bool {
	if w.watched {
		if may, ended := w.leaving(e); !may {
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

// CreateN creates n entities without components and appends them to dst, which
// may be nil: those that n calls of [World.Create] return, in their order. The
// world keeps nothing of the slice.
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
			w.tellCreated(e)
		}
	}
	return dst
}

// Reserve makes room for n entities, those of now included: until there are more, to
// create one allocates nothing. It costs O(n) if there was less room.
//
// It changes nothing that can be asked of w but [World.MemoryUsage]. [World.Shrink] gives
// room back that is not used.
func (w *World) Reserve(n int) { w.entities.reserve(min(n, maxIndices)) }

// DestroyAll destroys entities, from the last to the first, and returns how many
// of them were alive before and are dead afterwards. It does not matter whether they went in
// their turn or before, by a [Relation] or a hook. The slice may be one that w or a storage
// gave out.
func (w *World) DestroyAll(entities []Entity) int {
	// A copy, as the rows that entities may be a view of move.
	return w.destroyBatch(append(w.batch[:0], entities...))
}

// KeepOnly takes all components away from e but those of keep, in the order of
// registration, and returns how many of these e had when it was called: with no keep it
// strips e of all.
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
	for range others { // First, as hooks may remove some ahead of their turn.
		n++
	}
	for i, row := range others {
		if row = w.sets[i].leaving(w.storages[i], e, row); row >= 0 {
			w.storages[i].discard(e, row)
		}
	}
	return n
}

// Clear destroys all entities and removes all components. Resources stay. Its
// cost is that of [Storage.Clear] for each storage; it does not depend on the
// number of entities.
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
		g.leaveAll()
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

// Storages returns the storages of w in the order of registration, and behind
// them the resources.
func (w *World) Storages() []AnyStorage {
	return append(append(make([]AnyStorage, 0, len(w.storages)+len(w.resources)), w.storages...), w.resources...)
}

// Tick returns the number of the newest committed tick: how many times Commit
// was called on the branch of history that led here.
func (w *World) Tick() uint64 { return w.tick }

// Raw returns the world as code sees it that keeps it without knowing its types:
// package persist, or another way to store it.
func (w *World) Raw() raw.World { return rawWorld{w} }

// OnCreate makes w call f when an entity was created, one by one or in a batch: before it
// gets any component, of a batch after all are there. See [Storage.OnAdd] for what f may do
// and what calls no hooks; a hook that destroys the entity ends the telling.
func (w *World) OnCreate(f func(e Entity)) {
	w.hooks.create = append(w.hooks.create, f)
	w.settleObserved()
}

// OnDestroy makes w call f before an entity is destroyed, while it has all of its
// components: in Destroy, in batches, and in World.Clear, which then destroys the entities
// one by one. See [Storage.OnAdd] for what f may do.
func (w *World) OnDestroy(f func(e Entity)) {
	w.hooks.destroy = append(w.hooks.destroy, f)
	w.settleObserved()
}

// OnRestore makes w call f after everything that puts other content in place of
// what w holds, once the world is whole again: Restore, a Try that fails, Rewind,
// Seek, and Load, which is how persist.Load, persist.Open and a Player fill a world.
// An Open that fails after it filled the world empties it again, and calls f for
// that too. f must not change the world.
//
// Use it for what lives outside of the world and follows it: make that anew, from
// what the world holds. An entity that was kept outside may be another one from now on;
// see [World.Restores].
func (w *World) OnRestore(f func()) { w.onRestore = append(w.onRestore, f) }

// Restores returns how many times other content took the place of what w holds, by
// what calls the functions of [World.OnRestore]. It only rises.
//
// It is for entities that are kept outside of the world. A world that went back gives
// out the same entities again, to others: then Alive says that one lives, and it is
// another. Whoever notes Restores beside an entity can tell: as long as it is the same,
// Alive is right about that entity.
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
// Where it is not the same, look the entity up anew, by something that the world
// holds.
func (w *World) Restores() uint64 { return w.restores }

// restored comes after the world went back or forth.
func (w *World) restored() {
	for _, s := range w.exempt {
		s.dropDead()
	}
	w.tellRestored()
}

// tellRestored comes after the world got other content, and is whole.
func (w *World) tellRestored() {
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

// Storage returns the storage or resource of that name, also one that was loaded and is not
// registered, for code that does not know its type.
func (w *World) Storage(name string) (s AnyStorage, ok bool) {
	s, ok = w.names[name]
	return s, ok
}

// AliveBits returns the indices of the entities alive. Every 64 of them cost as
// many look-ups, where a [Mask] costs one: combine it rather than iterate it.
func (w *World) AliveBits() Bits { return Bits{&w.entities} }

// NewMask returns an empty mask of the program's own, which is put back with w.
//
// It is not part of what w holds otherwise: not journaled, not saved, not in the
// digest and not in a clone; Destroy, World.Clear and loading leave it as it
// is. An index says nothing about generations: who keeps indices of entities
// removes those that are destroyed.
func (w *World) NewMask() *Mask { return newMask(w, false) }

// NewGroup makes a group of two or more storages of w. Entities that have all of the
// components are packed, in the order of the storage with the fewest rows, the
// first of equals: a change of the world like any other. A group that is as large as its
// query is what makes that one run: of three storages for a query over three components.
//
// A storage belongs to one group at most, and must not be NoRewind or [Indexed]: an
// error says what does not fit. The group that w has of the same storages in the same order,
// as a clone has, is returned.
//
// After a rewind to before NewGroup, or a Load of what was saved without the
// group, members may lie scattered. Those that come from then on are packed; the
// others are by the next Commit, or by [Group.Pack].
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

// MustNewGroup is [World.NewGroup] for programs whose storages are known to be fit:
// it panics on an error.
func (w *World) MustNewGroup(storages ...AnyStorage) *Group { return must(w.NewGroup(storages...)) }

// Align puts the entities that are in all of storages in front of each of them, in the
// order that they have in the first:
//
//	positions     | x | a | b | y | c |         | a | b | c | y | x |
//	velocities    | c | w | b | a |        →    | a | b | c | w |
//
// A query over these components, or some of them and others, then finds its rows side by
// side and walks them at the speed of slices, as in a [Group], but nothing is kept: what
// comes and goes afterwards scatters rows again, and costs what it always does.
// Call it where time can be spared, and each time the world has churned: behind a loading
// screen, or once a second.
//
// It costs O(rows of all storages), some look-ups for each, and a write for each row that
// moves; rows in their place are not written, so to align what is aligned changes nothing.
// Name first the storage with the order that is to stay; fewest rows move if all of its
// entities are in the others. Rows of other entities that were in front go where one came
// from. A storage may be in several calls; the last one decides.
//
// Order is state, as with [Storage.SortFunc]: a restore puts it back, a journal records it,
// and peers that are to stay equal make the same call in the same tick. A loop that
// iterates over one of the storages panics if rows of it move. In a storage of a group, its members stay in
// front: they are aligned among themselves, and the others behind them, so a query over
// storages of several groups still finds some runs. An [Ordered] storage
// keeps its order of iteration, and one that is NoRewind does not follow when the others
// are put back. It panics if one of storages is [Indexed], as its rows cannot move, a
// resource, or of another world; then nothing has moved.
func (w *World) Align(storages ...AnyStorage) {
	w.mustAlign(storages)
	w.align(storages)
}

// EntityAt returns the entity alive that has the index, and whether there is one.
func (w *World) EntityAt(index uint32) (Entity, bool) { return w.entities.at(index) }

// severing is the relations of a world, which are asked before an entity is destroyed.
type severing interface {
	sever(e Entity) (severed, bool)                // Does with its sources what is to be done; false: e must live.
	severLate(e Entity, s severed) (severed, bool) // The same again after the hooks of e; false: hooks made no sources.
	severAll(cleared []Entity)                     // The same after the hooks of World.Clear.
	mayEnd(entities []Entity) bool                 // Whether they may be destroyed together.
	destroyTogether(entities []Entity) bool        // False: one must live, so none was destroyed.
	relates(x follower) bool                       // Whether a relation uses the index x.
}

// severed is what is known of an entity that is being destroyed: what was destroyed for it,
// and which version of the relations has no sources of that.
type severed struct {
	doomed  []Entity // The entity first; nil: it had no sources.
	version uint64
}

// mayEnd reports whether entities, no two the same, may be destroyed together: not if a
// relation keeps one alive for the sake of others.
func (w *World) mayEnd(entities []Entity) bool { return w.bonds == nil || w.bonds.mayEnd(entities) }

// relates reports whether a relation uses the index x.
func (w *World) relates(x follower) bool { return w.bonds != nil && w.bonds.relates(x) }

// destroyTogether destroys entities, no two the same, if they may be, and reports whether it
// did.
func (w *World) destroyTogether(entities []Entity) bool {
	if w.bonds != nil {
		return w.bonds.destroyTogether(entities)
	}
	w.DestroyAll(entities)
	return true
}

// settleHands comes after a boundary: it saves the rows again that loops have handed out. The first time,
// and then each time that twice as many boundaries have gone by, it first finds out whether
// any loop is left.
func (w *World) settleHands() {
	if len(w.hands) == 0 {
		w.handBoundaries = 0
		return
	}
	if w.handBoundaries++; w.handBoundaries&(w.handBoundaries-1) == 0 && loopsUnderWay() == 0 {
		w.hands.drop(0)
		return
	}
	w.hands.save()
}

// mustBeBetween panics if a system or a body of ParallelRuns is under way, in the middle of
// which op would end the tick or go to another one.
func (w *World) mustBeBetween(op string) {
	switch {
	case w.parallel:
		panic("ecs: " + op + " in the body of ParallelRuns; call it after the loop")
	case w.system != nil:
		panic(fmt.Sprintf("ecs: %s in the system %q, whose tick has not ended; call it after Run, or leave it to Step, which commits behind the last system", op, *w.system))
	}
}
