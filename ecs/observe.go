package ecs

// An observer is told of the members of a set that come and go: a mask, a hook.
// It is not told of those that a restore brings back or takes away. The group of
// the set learns before the observers who came, and after them who goes.
type observer interface {
	// added is called once e is a member, in row: the last one, unless an observer
	// told before moved it.
	added(e Entity, row int)

	// removing is called while e is still a member, in row. It may move rows.
	removing(e Entity, row int)

	// clearing is called while all members are still there.
	clearing()

	// replaced is called once other rows were loaded.
	replaced()
}

// observe makes o an observer of s. Observers are told in the order in which
// they came.
func (s *set) observe(o observer) {
	s.observers = append(s.observers, o)
	s.w.settleObservers()
}

// settleObservers says for every set whether somebody is to be told of changes.
func (w *World) settleObservers() {
	w.watched = false
	for _, s := range w.sets {
		s.observed = len(s.observers) > 0 || s.group != nil || w.recorder != nil
		w.watched = w.watched || len(s.observers) > 0 || s.group != nil
	}
}

// joined tells that e has just become a member.
//
//go:noinline
func (s *set) joined(as AnyStorage, e Entity) {
	if s.w.ops != nil {
		s.w.note(OpAdd, as, e)
	}
	if s.group != nil {
		s.group.enter(e)
	}
	for _, o := range s.observers {
		row := s.row(e)
		if row < 0 {
			return // An observer removed it.
		}
		o.added(e, row)
	}
}

// leaving tells that e is about to leave row. It returns the row of e, which
// observers may have moved; -1 if one of them removed it.
//
//go:noinline
func (s *set) leaving(as AnyStorage, e Entity, row int) int {
	row = s.tellLeaving(e, row)
	if row >= 0 && s.group != nil { // Last: an observer may have made e a member again.
		s.group.leave(e)
		row = s.row(e)
	}
	if row >= 0 && s.w.ops != nil {
		s.w.note(OpRemove, as, e)
	}
	return row
}

func (s *set) tellLeaving(e Entity, row int) int {
	if len(s.observers) == 0 {
		return row
	}
	for _, o := range s.observers {
		if row = s.row(e); row < 0 {
			return row
		}
		o.removing(e, row)
	}
	return s.row(e)
}

// emptying tells that s is about to be cleared.
func (s *set) emptying(as AnyStorage) {
	s.tellEmptying()
	if s.n > 0 && s.group != nil {
		s.group.leaveAll()
	}
	if s.n > 0 && s.w.ops != nil {
		s.w.note(OpClear, as, 0)
	}
}

func (s *set) tellEmptying() {
	if s.n > 0 {
		for _, o := range s.observers {
			o.clearing()
		}
	}
}

// leaving tells that e is about to be destroyed, and reports whether it is
// alive.
func (w *World) leaving(e Entity) bool {
	for _, s := range w.sets {
		if row := s.row(e); row >= 0 {
			s.tellLeaving(e, row)
		}
	}
	if !w.entities.alive(e) {
		return false
	}
	for _, g := range w.groups {
		g.leave(e)
	}
	return true
}
