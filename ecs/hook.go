package ecs

import (
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/raw"
)

// A setHooks holds what the program wants to be told of the members of a set that
// come and go.
type setHooks struct {
	require     []func(e Entity) // Each gives another component to who came, ahead of add.
	add, remove []func(e Entity, row int)

	// Members whose hooks are being told that they go. Until that is done they
	// stay, whatever the hooks do.
	going []Entity
}

// worldHooks are the hooks of a world, and what it keeps for them.
type worldHooks struct {
	create    []func(e Entity)
	destroy   []func(e Entity)
	change    []func() // Each tells one OnChange hook.
	changing  bool     // They are being told.
	keepsTick bool     // The values at the last commit are kept, whatever the options.

	dying   []Entity // Entities whose hooks are being told that they go,
	told    []*set   // and of which sets they were told; a stack.
	members []Entity // Members that are removed one by one; a stack.
}

// tellChanges calls the OnChange hooks.
func (h *worldHooks) tellChanges() {
	if h.changing {
		panic("ecs: Commit in an OnChange hook; commit after the Commit that called it")
	}
	h.changing = true
	defer func() { h.changing = false }()
	for _, tell := range h.change {
		tell()
	}
}

// mustKeepTick makes the world keep what the rows of t hold at every commit from
// the last one on.
func (w *World) mustKeepTick(t *track.Tracker, verb, name string) {
	k := w.newestBoundary()
	switch {
	case t.Exempt:
		panic("ecs: " + verb + " of " + name + ", which is NoRewind: no tick keeps its values; use OnAdd and OnRemove, or leave NoRewind out")
	case w.options.History > 0 || w.hooks.keepsTick:
	case w.anyCheckpoint():
		panic("ecs: " + verb + " of " + name + " while a checkpoint is held; add it before, or set Options.History")
	case k >= 0 && w.frames[k].Bare && len(w.frames[k].Touched) > 0:
		panic("ecs: " + verb + " of " + name + " in the middle of a tick whose beginning is not kept; add it after Commit or Attach, or set Options.History")
	case k >= 0:
		w.frames[k].Bare = false
	default: // No frame is open, so nothing is written unseen.
		w.push(frame{tick: true})
	}
	w.hooks.keepsTick = true
}

// keepsTicks reports whether the end of a tick is a boundary.
func (w *World) keepsTicks() bool {
	return w.options.History > 0 || len(w.recorders) > 0 || w.hooks.keepsTick
}

// bareTicks reports whether such a boundary is only told to the recorder.
func (w *World) bareTicks() bool { return w.options.History == 0 && !w.hooks.keepsTick }

// hooked returns the hooks of s, which has some from now on.
func (s *set) hooked() *setHooks {
	if s.hooks == nil {
		s.hooks = new(setHooks)
		s.w.settleObserved()
	}
	return s.hooks
}

// tellAdded gives e the components that this one requires, and calls the OnAdd hooks, as
// long as it is a member.
func (s *set) tellAdded(e Entity) {
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

// tellGoing calls the OnRemove hooks for e, as long as it is a member. It returns
// the row from which e is to go: -1 if it is gone, or going already.
func (s *set) tellGoing(e Entity) int {
	if slices.Contains(s.hooks.going, e) {
		return -1
	}
	s.hooks.going = append(s.hooks.going, e)
	defer s.hooks.gone(e)
	s.tellRemoving(e)
	return s.row(e)
}

func (s *set) tellRemoving(e Entity) {
	for _, f := range s.hooks.remove {
		row := s.row(e)
		if row < 0 {
			return
		}
		f(e, row)
	}
}

func (h *setHooks) gone(e Entity) {
	k := slices.Index(h.going, e)
	h.going = slices.Delete(h.going, k, k+1)
}

// tellCreated calls the OnCreate hooks for e, as long as it is alive.
func (w *World) tellCreated(e Entity) {
	for _, f := range w.hooks.create {
		if !w.entities.alive(e) {
			return
		}
		f(e)
	}
}

// tellDying calls the OnDestroy hooks for e and the OnRemove hooks for all of its
// components, those that hooks give it meanwhile included. Then it sees to the sources that
// these hooks made of e, unless late is nil: the caller does so. It reports whether e is to
// be destroyed: not if it is being destroyed already.
func (w *World) tellDying(e Entity, late *severed) bool {
	h := &w.hooks
	if h.isDying(e) {
		return false
	}
	h.dying = append(h.dying, e)
	defer h.dead(len(h.told))
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
			if s.hooks != nil && s.row(e) >= 0 && !slices.Contains(s.hooks.going, e) {
				s.hooks.going, h.told = append(s.hooks.going, e), append(h.told, s)
				s.tellRemoving(e)
				more, told = true, told || len(s.hooks.remove) > 0
			}
		}
		if !more && told && late != nil && w.entities.alive(e) {
			*late, more = w.bonds.severLate(e, *late)
		}
	}
	return true
}

// isDying reports whether the hooks of e are being told that it is destroyed.
func (h *worldHooks) isDying(e Entity) bool { return slices.Contains(h.dying, e) }

// dead ends the telling that began when told had so many sets.
func (h *worldHooks) dead(told int) {
	last := len(h.dying) - 1
	for _, s := range h.told[told:] {
		s.hooks.gone(h.dying[last])
	}
	h.dying, h.told = h.dying[:last], h.told[:told]
}

// tellsEnds reports whether there are hooks that are called where entities are destroyed.
func (w *World) tellsEnds() bool {
	return len(w.hooks.destroy) > 0 || slices.ContainsFunc(w.sets, (*set).removesOneByOne)
}

// removesOneByOne reports whether Clear has to call hooks.
func (s *set) removesOneByOne() bool { return s.hooks != nil && len(s.hooks.remove) > 0 }

// removeEach removes the members of s one by one.
func (s *set) removeEach(as AnyStorage) {
	s.w.hooks.each(s.members(), func(e Entity) {
		if row := s.row(e); row >= 0 {
			if row = s.leaving(as, e, row); row >= 0 {
				as.discard(e, row)
			}
		}
	}, nil)
}

// destroyEach destroys the entities of w one by one if a hook is to be called, and what its
// hooks attached to them. It reports whether it did.
func (w *World) destroyEach() bool {
	told := len(w.hooks.destroy) > 0 && w.Len() > 0
	for _, s := range w.sets {
		told = told || s.rows.N > 0 && s.removesOneByOne()
	}
	if told {
		w.hooks.each(w.Entities(), func(e Entity) { w.destroyReleased(e) }, func(entities []Entity) {
			if w.bonds != nil {
				w.bonds.severAll(entities)
			}
		})
	}
	return told
}

// destroyReleased is Destroy for an entity whose sources were seen to.
func (w *World) destroyReleased(e Entity) {
	w.released = true
	defer func() { w.released = false }() // Also if nothing asked, or a hook panicked.
	w.Destroy(e)
}

// each calls f for a copy of entities, from the last to the first, and then end, which may
// be nil, for the copy.
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

// What wants to know which members of a set come and go, by the call of a
// program: its mask, the recorder, its group, and hooks. None of them is told of
// members that a restore brings back or takes away.
//
// The order is fixed. The mask comes first, so that it is right when hooks look,
// and stays so where one of them panics. Hooks may change the world: they are
// called last for a member that came, and first for one that goes.

// settleObserved says for the world and every set whether somebody is to be told of changes.
func (w *World) settleObserved() {
	w.heeded = len(w.recorders) > 0 || len(w.hooks.create) > 0
	w.hooked = len(w.hooks.create)+len(w.hooks.destroy) > 0
	for _, s := range w.sets {
		w.hooked = s.settleObserved() || w.hooked
	}
	w.watched = w.hooked || w.bonds != nil
}

// settleObserved does that for s, and returns whether a group or hooks are told.
func (s *set) settleObserved() (told bool) {
	told = s.group != nil || s.hooks != nil
	s.observed = told || s.mask != nil || len(s.w.recorders) > 0
	s.slow = s.observed || s.special
	return told
}

// joined tells that e has just become a member.
//
//go:noinline
func (s *set) joined(as AnyStorage, e Entity) {
	if s.mask != nil {
		s.mask.Add(e.Index())
	}
	if s.w.ops != nil {
		s.w.note(raw.OpAdd, as.Raw(), e)
	}
	if s.group != nil {
		s.group.enter(e)
	}
	if s.hooks != nil {
		s.tellAdded(e)
	}
}

// leaving tells that e is about to leave row. It returns the row of e, which may
// have moved; -1 if a hook removed it.
//
//go:noinline
func (s *set) leaving(as AnyStorage, e Entity, row int) int {
	if s.hooks != nil {
		if row = s.tellGoing(e); row < 0 {
			return row
		}
	}
	if s.group != nil {
		s.group.leave(e)
		row = s.row(e)
	}
	if s.w.ops != nil {
		s.w.note(raw.OpRemove, as.Raw(), e)
	}
	return row
}

// emptying tells that s is about to be cleared. It reports whether that is done,
// member by member, for the sake of hooks.
func (s *set) emptying(as AnyStorage) (done bool) {
	if s.removesOneByOne() {
		s.removeEach(as)
		return true
	}
	if s.rows.N > 0 && s.group != nil {
		s.group.leaveAll()
	}
	if s.rows.N > 0 && s.w.ops != nil {
		s.w.note(raw.OpClear, as.Raw(), 0)
	}
	return false
}

// leaving tells that e is about to be destroyed, and reports whether it is alive and may
// be. If not, ended says whether hooks ended its life meanwhile.
func (w *World) leaving(e Entity) (may, ended bool) {
	released := w.released
	if w.released = false; !w.entities.alive(e) {
		return false, false
	}
	var late *severed
	if w.bonds != nil && !released {
		s, free := w.bonds.sever(e)
		if !free {
			return false, false
		}
		late = &s
	}
	if w.hooked && !w.tellDying(e, late) {
		return false, false
	}
	if !w.entities.alive(e) {
		return false, true
	}
	for _, g := range w.groups {
		g.leave(e)
	}
	return true, false
}
