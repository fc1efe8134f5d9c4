package persist

import (
	"errors"

	"github.com/stet-ecs/stet/persist/internal/format"
)

// Mark names the tick that the next Commit ends. From then on "mark:NAME" is a point in time, see
// inspect.View.Resolve. A tick may have 256 names. A name of several ticks means the newest one. A
// name has at most 255 bytes of visible characters; otherwise the error wraps [ErrName].
//
// Marks and inputs wait for the next Commit that ends the tick. They still wait after a Commit that
// returns [ErrBacklog], and after a checkpoint is restored. They are dropped if
// [ecs.History.Rewind] or Seek moves the world to another tick, and the next Commit continues that
// tick.
func (s *Store) Mark(name string) error {
	if err := format.CheckName("a mark's name", name); err != nil {
		return err
	}
	n, err := s.noting()
	if err != nil {
		return err
	}
	return n.AddMark(name)
}

// MarkLast names the tick at which the world is, also after a rewind or a load. It writes a small
// record of the same tick, which becomes durable as a tick does. If the tick itself still waits for
// a record, both share one record: see [Options.CommitEvery]. Like a Commit, MarkLast drops undone
// ticks from the history and invalidates pointers to values.
//
// MarkLast returns [ErrUncommitted] if the world has uncommitted changes. It returns [ErrBacklog]
// in the same cases as [Store.Commit]. Otherwise the errors are those of [Store.Mark]. Functions of
// [ecs.World.OnRestore] cannot call MarkLast, because the store is not at the new state yet.
func (s *Store) MarkLast(name string) error {
	if err := format.CheckName("a mark's name", name); err != nil {
		return err
	}
	if err := s.usable(); err != nil {
		return err
	}
	if s.moving {
		return errors.New("persist: MarkLast was called by a function of OnRestore; call it after the restore")
	}
	if s.world.Raw().Dirty() {
		return tooEarly(s.world.Raw(), "MarkLast")
	}
	if err := s.reserve(); err != nil {
		return err
	}
	if err := s.late.AddMark(name); err != nil {
		return err
	}
	if err := s.world.Raw().RecordLast(); err != nil {
		return err
	}
	return s.Err()
}

// Input adds a command or an input of the program to the tick that the next Commit ends. Inputs are
// what the program needs, in addition to the state, to compute the next tick again, as an
// inspect.Player does. They keep their order. Input copies data. In the steady state it allocates
// nothing.
//
// Names have the rules of [Store.Mark], and inputs are kept or dropped like marks. The inputs of a
// tick may have 256 MiB together; otherwise the error wraps [journal.ErrTooLong].
func (s *Store) Input(name string, data []byte) error {
	if err := format.CheckName("an input's name", name); err != nil {
		return err
	}
	n, err := s.noting()
	if err != nil {
		return err
	}
	return n.AddInput(name, data)
}

// noting returns the marks and inputs of the tick under way.
func (s *Store) noting() (*format.Notes, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	s.notes.About(s.present())
	return &s.notes, nil
}
