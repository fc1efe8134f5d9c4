package ecs

import (
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/raw"
)

// A setHooks has the hooks that run when an entity is added to a set or removed from it.
type setHooks struct {
	// Each function adds a required component to the new member, before the add hooks run.
	require     []func(e Entity)
	add, remove []func(e Entity, row int)

	// Members whose OnRemove hooks are running. They stay members until the hooks have run.
	removing []Entity
}

// worldHooks are the hooks of a world, and the state of the hooks that run.
type worldHooks struct {
	create    []func(e Entity)
	destroy   []func(e Entity)
	change    []func() // Each function runs one OnChange hook.
	changing  bool     // The change hooks are running.
	keepsTick bool     // The world retains the values at the last commit, even without a history.

	destroying []Entity // Stack of the entities whose destroy hooks are running.
	// Stack of sets: each has an entity of destroying in its list removing.
	notifiedSets []*set
	members      []Entity // Stack of the members that are being removed one by one.
}

// observers has the recorders, hooks and relations of a world.
type observers struct {
	hasObservers bool // A recorder or hooks observe created entities.
	hooked       bool // The world or its storages have hooks or groups.
	watched      bool // The world or its storages have hooks, groups or relations.
	hooks        worldHooks
	relations    relationHandler // Nil if there are no relations.
	// The next Destroy must not apply the relation policies, because the caller has already applied
	// them.
	released bool

	recorders []raw.Recorder
	recording bool // The recorders are running.
	change    change
	ops       *[]raw.Op // The operations of the open frame, or nil without a recorder.

	onRestore []func()
	restores  uint64 // The number of restores and loads so far.
}

// runChangeHooks calls the OnChange hooks.
func (h *worldHooks) runChangeHooks() {
	if h.changing {
		panic("ecs: Commit in an OnChange hook; commit after the Commit that called it")
	}
	h.changing = true
	defer func() { h.changing = false }()
	for _, tell := range h.change {
		tell()
	}
}

// mustKeepTick makes the world save the old value of each row that a tick writes. The world then
// knows the changes since the last commit. mustKeepTick panics:
//
//   - if a row of the present tick was written without being saved
//   - if t is NoRewind
//   - if the program holds a checkpoint and the world saves no ticks yet
func (w *World) mustKeepTick(t *track.Tracker, verb, name string) {
	k := w.newestBoundary()
	switch {
	case t.Exempt:
		panic("ecs: " + verb + " of " + name + ", which is NoRewind: the history has no values of it; use OnAdd and OnRemove, or omit NoRewind")
	case w.options.History > 0 || w.hooks.keepsTick:
	case w.anyCheckpoint():
		panic("ecs: " + verb + " of " + name + " while a checkpoint is held; add it before, or set Options.History")
	case k >= 0 && w.frames[k].Bare && len(w.frames[k].Touched) > 0:
		panic("ecs: " + verb + " of " + name + " after writes in a tick whose start is not saved; add it after Commit or Attach, or set Options.History")
	case k >= 0:
		w.frames[k].Bare = false
	default:
		w.push(frame{tick: true})
	}
	w.hooks.keepsTick = true
}

// keepsTicks reports whether Commit creates a boundary.
func (w *World) keepsTicks() bool {
	return w.options.History > 0 || len(w.recorders) > 0 || w.hooks.keepsTick
}

// bareTicks reports whether Commit creates boundaries without saved rows, for recorders only.
func (w *World) bareTicks() bool {
	return w.options.History == 0 && !w.hooks.keepsTick && !w.deferring()
}

// deferring reports whether the recorder may defer ticks. If so, frames save old values even in a
// world without a history.
func (w *World) deferring() bool {
	if len(w.recorders) != 1 {
		return false
	}
	d, ok := w.recorders[0].(raw.Deferrer)
	return ok && d.Defers()
}

// ensureHooks returns the hooks of s, and creates them if s has none.
func (s *set) ensureHooks() *setHooks {
	if s.hooks == nil {
		s.hooks = new(setHooks)
		s.w.updateObserved()
	}
	return s.hooks
}

// runAddHooks adds the required components to e and calls the OnAdd hooks. It stops when e is no
// longer a member.
func (s *set) runAddHooks(e Entity) {
	for _, f := range s.hooks.require {
		if s.row(e) < 0 {
			return
		}
		f(e)
	}
	for _, f := range s.hooks.add {
		row := s.row(e)
		if row < 0 {
			return
		}
		f(e, row)
	}
}

// beginRemoval calls the OnRemove hooks for e, and returns the row of e afterwards. It returns -1
// if a hook removed e, or if the hooks for e are already running.
func (s *set) beginRemoval(e Entity) int {
	if slices.Contains(s.hooks.removing, e) {
		return -1
	}
	s.hooks.removing = append(s.hooks.removing, e)
	defer s.hooks.endRemoval(e)
	s.runRemoveHooks(e)
	return s.row(e)
}

func (s *set) runRemoveHooks(e Entity) {
	for _, f := range s.hooks.remove {
		row := s.row(e)
		if row < 0 {
			return
		}
		f(e, row)
	}
}

func (h *setHooks) endRemoval(e Entity) {
	k := slices.Index(h.removing, e)
	h.removing = slices.Delete(h.removing, k, k+1)
}

// runCreateHooks calls the OnCreate hooks for e as long as e is alive.
func (w *World) runCreateHooks(e Entity) {
	for _, f := range w.hooks.create {
		if !w.entities.alive(e) {
			return
		}
		f(e)
	}
}

// runDestroyHooks calls the OnDestroy hooks for e, then the OnRemove hooks for its components. It
// returns false if the destroy hooks for e are already running.
//
// A hook may create a source of a relation whose target is e. If late is not nil, runDestroyHooks
// then applies the relation policies to this source. late is the result of onDestroy for e, which
// it updates.
func (w *World) runDestroyHooks(e Entity, late *destroyed) bool {
	h := &w.hooks
	if h.isDestroying(e) {
		return false
	}
	h.destroying = append(h.destroying, e)
	defer h.endDestroy(len(h.notifiedSets))
	told := len(h.destroy) > 0
	for _, f := range h.destroy {
		if !w.entities.alive(e) {
			break
		}
		f(e)
	}
	for more := true; more; {
		more = false
		for _, s := range w.sets {
			if s.hooks != nil && s.row(e) >= 0 && !slices.Contains(s.hooks.removing, e) {
				s.hooks.removing, h.notifiedSets = append(s.hooks.removing, e), append(h.notifiedSets, s)
				s.runRemoveHooks(e)
				more, told = true, told || len(s.hooks.remove) > 0
			}
		}
		if !more && told && late != nil && w.entities.alive(e) {
			*late, more = w.relations.afterHooks(e, *late)
		}
	}
	return true
}

// isDestroying reports whether the destroy hooks of e are running.
func (h *worldHooks) isDestroying(e Entity) bool { return slices.Contains(h.destroying, e) }

// endDestroy ends the destroy hooks of the last entity in h.destroying, and removes the entity from
// the stack. The parameter told is the length that h.notifiedSets had before these hooks.
func (h *worldHooks) endDestroy(told int) {
	last := len(h.destroying) - 1
	for _, s := range h.notifiedSets[told:] {
		s.hooks.endRemoval(h.destroying[last])
	}
	h.destroying, h.notifiedSets = h.destroying[:last], h.notifiedSets[:told]
}

// hasDestroyHooks reports whether destroying an entity may call hooks.
func (w *World) hasDestroyHooks() bool {
	return len(w.hooks.destroy) > 0 || slices.ContainsFunc(w.sets, (*set).removesOneByOne)
}

// removesOneByOne reports whether Clear must remove members one by one, to call OnRemove hooks.
func (s *set) removesOneByOne() bool { return s.hooks != nil && len(s.hooks.remove) > 0 }

// removeEach removes the members of s one by one.
func (s *set) removeEach() {
	s.w.hooks.each(s.members(), func(e Entity) {
		if row := s.row(e); row >= 0 {
			if row = s.notifyRemoving(e, row); row >= 0 {
				s.storage.discard(e, row)
			}
		}
	}, nil)
}

// destroyEach does the work of World.Clear if a hook must be called, and returns true. It destroys
// the entities one by one. Then it applies the relation policies to sources that the hooks created.
// If there is no such hook, it does nothing and returns false.
func (w *World) destroyEach() bool {
	told := len(w.hooks.destroy) > 0 && w.Len() > 0
	for _, s := range w.sets {
		told = told || s.rows.N > 0 && s.removesOneByOne()
	}
	if told {
		w.hooks.each(w.Entities(), func(e Entity) { w.destroyReleased(e) }, func(entities []Entity) {
			if w.relations != nil {
				w.relations.onClear(entities)
			}
		})
	}
	return told
}

// destroyReleased is Destroy for an entity to which the relation policies were already applied.
func (w *World) destroyReleased(e Entity) {
	w.released = true
	// A call of Destroy clears the flag only if the world has hooks, groups or relations.
	defer func() { w.released = false }()
	w.Destroy(e)
}

// each calls f for each element of a copy of entities, from the last to the first. Then it calls
// the function end with the copy, unless the function is nil.
func (h *worldHooks) each(entities []Entity, f func(e Entity), end func(entities []Entity)) {
	lo := len(h.members)
	h.members = append(h.members, entities...)
	defer func() { h.members = h.members[:lo] }()
	for i := len(h.members) - 1; i >= lo; i-- {
		f(h.members[i])
	}
	if end != nil {
		end(h.members[lo:])
	}
}

// The functions below notify the observers of a set when the program adds or removes members. The
// observers are the mask, the recorder, the group and the hooks. A restore does not notify them.
//
// The mask comes first, so that it is correct in hooks. Hooks may change the world: they run last
// when a member is added, and first when a member is removed.

// updateObserved updates the flags of the world and of its sets that report observers.
func (w *World) updateObserved() {
	w.hasObservers = len(w.recorders) > 0 || len(w.hooks.create) > 0
	w.hooked = len(w.hooks.create)+len(w.hooks.destroy) > 0
	for _, s := range w.sets {
		w.hooked = s.updateObserved() || w.hooked
	}
	w.watched = w.hooked || w.relations != nil
}

// note adds an operation to the operations of the open frame. s is nil for operations on no
// storage.
func (w *World) note(kind raw.OpKind, s raw.Storage, e Entity) {
	*w.ops = append(*w.ops, raw.Op{Kind: kind, Entity: uint64(e), Storage: s})
}

// updateObserved updates the flags of s. It returns true if s has a group or hooks.
func (s *set) updateObserved() (told bool) {
	told = s.group != nil || s.hooks != nil
	s.observed = told || s.mask != nil || len(s.w.recorders) > 0
	s.slow = s.observed || s.special
	return told
}

// notifyAdded notifies the observers that e has become a member.
//
//go:noinline
func (s *set) notifyAdded(e Entity) {
	if s.mask != nil {
		s.mask.Add(e.Index())
	}
	if s.w.ops != nil {
		s.w.note(raw.OpAdd, s.storage.Raw(), e)
	}
	if s.group != nil {
		s.group.packEntity(e)
	}
	if s.hooks != nil {
		s.runAddHooks(e)
	}
}

// notifyRemoving notifies the observers before e is removed. The parameter row is the row of e. The
// result is the row of e afterwards, or -1 if a hook removed e.
//
//go:noinline
func (s *set) notifyRemoving(e Entity, row int) int {
	if s.hooks != nil {
		if row = s.beginRemoval(e); row < 0 {
			return row
		}
	}
	if s.group != nil {
		s.group.beforeRemove(e)
		row = s.row(e)
	}
	if s.w.ops != nil {
		s.w.note(raw.OpRemove, s.storage.Raw(), e)
	}
	return row
}

// notifyClearing notifies the observers before s is cleared. If s has OnRemove hooks,
// notifyClearing removes the members of s itself and returns true.
func (s *set) notifyClearing() (done bool) {
	if s.removesOneByOne() {
		s.removeEach()
		return true
	}
	if s.rows.N > 0 && s.group != nil {
		s.group.beforeClear()
	}
	if s.rows.N > 0 && s.w.ops != nil {
		s.w.note(raw.OpClear, s.storage.Raw(), 0)
	}
	return false
}

// notifyDestroying notifies the observers before e is destroyed. If may is true, the caller must
// destroy e now. If ended is true, a hook has already destroyed e. If both are false, e stays alive
// or was dead before.
func (w *World) notifyDestroying(e Entity) (may, ended bool) {
	released := w.released
	if w.released = false; !w.entities.alive(e) {
		return false, false
	}
	var late *destroyed
	if w.relations != nil && !released {
		s, free := w.relations.onDestroy(e)
		if !free {
			return false, false
		}
		late = &s
	}
	if w.hooked && !w.runDestroyHooks(e, late) {
		return false, false
	}
	if !w.entities.alive(e) {
		return false, true
	}
	for _, g := range w.groups {
		g.beforeRemove(e)
	}
	return true, false
}
