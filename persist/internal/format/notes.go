package format

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

// The most that may be noted of a tick.
const (
	maxMarks = 256       // Of a tick.
	maxNoted = 256 << 20 // Bytes that a program may note of a tick.
)

// FlagMarks is set in the header of a record whose tick has marks: who looks for
// one reads no others.
const FlagMarks uint32 = 1 << 0

// Notes are what a program says of the tick that its next commit ends. They know which state that
// tick continues: if the world goes to another one before, the next note or commit drops them.
type Notes struct {
	parent uint64 // The state that the tick continues.
	marks  []string
	inputs *Encoder // Encoded, one behind the other; nil: there never were any.
	count  int      // Of inputs.
	size   int      // Bytes of it all, about.
}

// AddMark adds a name of the tick, unless it is there.
func (n *Notes) AddMark(name string) error {
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

// AddInput adds an input, whose data it copies.
func (n *Notes) AddInput(name string, data []byte) error {
	if err := n.grow(len(name) + len(data)); err != nil {
		return err
	}
	if n.inputs == nil {
		n.inputs = NewEncoder()
	}
	n.inputs.array(2)
	n.inputs.str(name)
	n.inputs.bin(data)
	n.count++
	return nil
}

// About drops what was noted of another tick than the one that continues parent.
func (n *Notes) About(parent uint64) {
	if n.parent != parent {
		n.Reset()
		n.parent = parent
	}
}

// Reset forgets everything but the buffers.
func (n *Notes) Reset() {
	clear(n.marks)
	n.marks, n.count, n.size = n.marks[:0], 0, 0
	if n.inputs != nil {
		n.inputs.Buf = n.inputs.Buf[:0]
	}
}

// grow counts a note of some bytes, and what its encoding adds at most. A note that is too
// long is refused here, to whoever makes it, and not the tick when it is committed.
func (n *Notes) grow(size int) error {
	const overhead = 1 + 3 + 5 // The heads of an array, a name and bytes.
	if size > maxNoted-overhead-n.size {
		return fmt.Errorf("%w: marks and inputs of one tick: %d bytes after %d, at most %d", journal.ErrTooLong, size, n.size, maxNoted)
	}
	n.size += overhead + size
	return nil
}

// None reports whether nothing was noted.
func (n *Notes) None() bool { return len(n.marks) == 0 && n.count == 0 }

// Flags returns those of a record whose tick has these notes.
func (n *Notes) Flags() uint32 {
	if len(n.marks) > 0 {
		return FlagMarks
	}
	return 0
}

// encode appends the marks and the inputs: [name, …] and [[name, data], …].
func (n *Notes) encode(e *Encoder) {
	e.array(len(n.marks))
	for _, name := range n.marks {
		e.str(name)
	}
	e.array(n.count)
	if n.inputs != nil {
		e.Buf = append(e.Buf, n.inputs.Buf...)
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
	return marks, inputs
}

// name reads the name of something.
func (d *decoder) name(of string) string {
	name := d.str()
	if err := CheckName(of, name); d.err == nil && err != nil {
		d.fail("%w", err)
	}
	return name
}
