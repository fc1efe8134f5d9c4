package ecs

// What wants to know which members of a set come and go, by the call of a
// program: its mask, the recorder, its group, and hooks. None of them is told of
// members that a restore brings back or takes away.
//
// The order is fixed. The mask comes first, so that it is right when hooks look,
// and stays so where one of them panics. Hooks may change the world: they are
// called last for a member that came, and first for one that goes.

// settleObserved says for every set whether somebody is to be told of changes.
func (w *World) settleObserved() {
	w.watched = false
	for _, s := range w.sets {
		told := s.group != nil || s.hooks != nil
		s.observed = told || s.mask != nil || w.recorder != nil
		s.slow = s.observed || s.special
		w.watched = w.watched || told
	}
}

// joined tells that e has just become a member.
//
//go:noinline
func (s *set) joined(as AnyStorage, e Entity) {
	if s.mask != nil {
		s.mask.include(e.Index())
	}
	if s.w.ops != nil {
		s.w.note(OpAdd, as, e)
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
		s.w.note(OpRemove, as, e)
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
		s.w.note(OpClear, as, 0)
	}
	return false
}

// leaving tells that e is about to be destroyed, and reports whether it is
// alive.
func (w *World) leaving(e Entity) bool {
	if !w.tellDying(e) || !w.entities.alive(e) {
		return false
	}
	for _, g := range w.groups {
		g.leave(e)
	}
	return true
}
