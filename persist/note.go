package persist

import (
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/journal"
)

// An Input is what a program was told in a tick, in its own words: a command, the
// buttons of a player, a message. The bytes mean nothing to the store.
type Input struct {
	Name string
	Data []byte
}

const (
	maxMarks = 256       // Of a tick.
	maxNoted = 256 << 20 // Bytes that a program may note of a tick.
)

// flagMarks is set in the header of a record whose tick has marks: who looks for
// one reads no others.
const flagMarks uint32 = 1 << 0

// Mark gives a name to the tick that the next Commit ends: "mark:NAME" is a point
// in time from then on, see [View.Resolve]. A tick may have 256 names. Several
// ticks may have the same one; the newest counts. A name has at most 255 bytes, all
// of which can be seen; an error wraps [ErrName].
//
// What is noted of a tick, its marks and inputs, stays for the next Commit if one
// returns [ErrBacklog], and if a checkpoint is restored. It is about a tick that
// continues the present one, though: if the next Commit continues another, as the
// world went there by [ecs.History.Rewind] or Seek, it is dropped, as the changes
// were.
func (s *Store) Mark(name string) error {
	if err := checkName("a mark's name", name); err != nil {
		return err
	}
	n, err := s.noting()
	if err != nil || slices.Contains(n.marks, name) {
		return err
	}
	if len(n.marks) == maxMarks {
		return fmt.Errorf("%w: %q: a tick has at most %d marks", ErrName, name, maxMarks)
	}
	if err := n.grow(len(name)); err != nil {
		return err
	}
	n.marks = append(n.marks, name)
	return nil
}

// Input journals a command or an input of the program with the tick that the next
// Commit ends, behind those before: what the program needs, beside the state, to
// get from one tick to the next again; see [Player]. It copies data. In the steady
// state nothing is allocated.
//
// A name is one as for [Store.Mark], where it is said too what becomes of it if the
// world goes back before. The inputs of a tick may have 256 MiB together; an error
// wraps [journal.ErrTooLong].
func (s *Store) Input(name string, data []byte) error {
	if err := checkName("an input's name", name); err != nil {
		return err
	}
	n, err := s.noting()
	if err != nil {
		return err
	}
	if err := n.grow(len(name) + len(data)); err != nil {
		return err
	}
	n.inputs.array(2)
	n.inputs.string(name)
	n.inputs.bin(data)
	n.count++
	return nil
}

// noting returns the notes of the tick under way.
func (s *Store) noting() (*notes, error) {
	if s.closed {
		return nil, ErrClosed
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	if s.notes.inputs == nil {
		s.notes.inputs = newEncoder()
	}
	s.notes.about(s.world.Mark())
	return &s.notes, nil
}

// notes are what a program says of the tick that its next commit ends.
type notes struct {
	parent uint64 // The state that the tick continues.
	marks  []string
	inputs *encoder // Encoded, one behind the other; nil: there never were any.
	count  int      // Of inputs.
	size   int      // Bytes of it all, about.
}

// about drops what was noted of another tick than the one that continues parent.
func (n *notes) about(parent uint64) {
	if n.parent != parent {
		n.reset()
		n.parent = parent
	}
}

// reset forgets everything but the buffers.
func (n *notes) reset() {
	clear(n.marks)
	n.marks, n.count, n.size = n.marks[:0], 0, 0
	if n.inputs != nil {
		n.inputs.buf = n.inputs.buf[:0]
	}
}

// grow makes room for a note of some bytes, and what its encoding adds.
func (n *notes) grow(size int) error {
	const overhead = 1 + 3 + 5
	if size > maxNoted-overhead-n.size {
		return fmt.Errorf("%w: marks and inputs of one tick: %d bytes after %d, at most %d", journal.ErrTooLong, size, n.size, maxNoted)
	}
	n.size += overhead + size
	return nil
}

// none reports whether nothing was noted.
func (n *notes) none() bool { return n == nil || len(n.marks) == 0 && n.count == 0 }

// format returns the format of a tick with these notes.
func (n *notes) format() uint64 {
	if n.none() {
		return tickFormat
	}
	return notedTick
}

// flags returns those of a record whose tick has these notes.
func (n *notes) flags() uint32 {
	if len(n.marks) > 0 {
		return flagMarks
	}
	return 0
}

// encode appends the marks and the inputs.
func (n *notes) encode(e *encoder) {
	e.array(len(n.marks))
	for _, name := range n.marks {
		e.string(name)
	}
	e.array(n.count)
	if n.inputs != nil {
		e.buf = append(e.buf, n.inputs.buf...)
	}
}

// notes reads the marks and inputs of a tick. Inputs share memory with the source.
func (d *decoder) notes() (marks []string, inputs []Input) {
	for range d.arrayLen() {
		marks = append(marks, d.name("mark"))
		if d.err != nil {
			return nil, nil
		}
	}
	if len(marks) > maxMarks {
		d.fail("%d marks, at most %d", len(marks), maxMarks)
	}
	for range d.arrayLen() {
		d.array(2)
		in := Input{d.name("input"), d.bin()}
		if d.err != nil {
			return nil, nil
		}
		inputs = append(inputs, in)
	}
	if d.err == nil && len(marks)+len(inputs) == 0 {
		d.fail("neither marks nor inputs")
	}
	return marks, inputs
}

// name reads the name of something.
func (d *decoder) name(of string) string {
	name := d.string()
	if err := checkName(of, name); d.err == nil && err != nil {
		d.fail("%w", err)
	}
	return name
}
