package persist

import "github.com/stet-ecs/stet/persist/internal/format"

// Mark gives a name to the tick that the next Commit ends: "mark:NAME" is a point
// in time from then on, see inspect.View.Resolve. A tick may have 256 names. Several
// ticks may have the same one; the newest counts. A name has at most 255 bytes, all
// of which can be seen; an error wraps [ErrName].
//
// What is noted of a tick, its marks and inputs, stays for the next Commit if one
// returns [ErrBacklog], and if a checkpoint is restored. It is about a tick that
// continues the present one, though: if the next Commit continues another, as the
// world went there by [ecs.History.Rewind] or Seek, it is dropped, as the changes
// were.
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

// Input journals a command or an input of the program with the tick that the next
// Commit ends, behind those before: what the program needs, beside the state, to
// get from one tick to the next again, as an inspect.Player does. It copies data. In the
// steady state nothing is allocated.
//
// A name is one as for [Store.Mark], where it is said too what becomes of it if the
// world goes back before. The inputs of a tick may have 256 MiB together; an error
// wraps [journal.ErrTooLong].
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

// noting returns the notes of the tick under way.
func (s *Store) noting() (*format.Notes, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	s.notes.About(s.seq())
	return &s.notes, nil
}
