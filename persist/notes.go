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

// notes are what a program says of the tick that its next commit ends.
type notes struct {
	parent uint64 // The state that the tick continues.
	marks  []string
	inputs *encoder // Encoded, one behind the other; nil: there never were any.
	count  int      // Of inputs.
	size   int      // Bytes of it all, about.
}

// addMark adds a name of the tick, unless it is there.
func (n *notes) addMark(name string) error {
	if slices.Contains(n.marks, name) {
		return nil
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

// addInput adds an input, whose data it copies.
func (n *notes) addInput(name string, data []byte) error {
	if err := n.grow(len(name) + len(data)); err != nil {
		return err
	}
	if n.inputs == nil {
		n.inputs = newEncoder()
	}
	n.inputs.array(2)
	n.inputs.string(name)
	n.inputs.bin(data)
	n.count++
	return nil
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
func (n *notes) none() bool { return len(n.marks) == 0 && n.count == 0 }

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
