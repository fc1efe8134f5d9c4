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
	MaxNoted = 256 << 20 // Bytes that a program may note of a tick.
)

// FlagMarks is set in the header of a record whose tick has marks: who looks for
// one reads no others.
const FlagMarks uint32 = 1 << 0

// Notes are what a program says of the tick that its next commit ends.
type Notes struct {
	parent uint64 // The state that the tick continues.
	Marks  []string
	Inputs *Encoder // Encoded, one behind the other; nil: there never were any.
	Count  int      // Of inputs.
	Size   int      // Bytes of it all, about.
}

// AddMark adds a name of the tick, unless it is there.
func (n *Notes) AddMark(name string) error {
	if slices.Contains(n.Marks, name) {
		return nil
	}
	if len(n.Marks) == maxMarks {
		return fmt.Errorf("%w: %q: a tick has at most %d marks", ErrName, name, maxMarks)
	}
	if err := n.grow(len(name)); err != nil {
		return err
	}
	n.Marks = append(n.Marks, name)
	return nil
}

// AddInput adds an input, whose data it copies.
func (n *Notes) AddInput(name string, data []byte) error {
	if err := n.grow(len(name) + len(data)); err != nil {
		return err
	}
	if n.Inputs == nil {
		n.Inputs = NewEncoder()
	}
	n.Inputs.Array(2)
	n.Inputs.Str(name)
	n.Inputs.Bin(data)
	n.Count++
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
	clear(n.Marks)
	n.Marks, n.Count, n.Size = n.Marks[:0], 0, 0
	if n.Inputs != nil {
		n.Inputs.Buf = n.Inputs.Buf[:0]
	}
}

// grow makes room for a note of some bytes, and what its encoding adds.
func (n *Notes) grow(size int) error {
	const overhead = 1 + 3 + 5
	if size > MaxNoted-overhead-n.Size {
		return fmt.Errorf("%w: marks and inputs of one tick: %d bytes after %d, at most %d", journal.ErrTooLong, size, n.Size, MaxNoted)
	}
	n.Size += overhead + size
	return nil
}

// None reports whether nothing was noted.
func (n *Notes) None() bool { return len(n.Marks) == 0 && n.Count == 0 }

// Flags returns those of a record whose tick has these notes.
func (n *Notes) Flags() uint32 {
	if len(n.Marks) > 0 {
		return FlagMarks
	}
	return 0
}

// Encode appends the marks and the inputs.
func (n *Notes) Encode(e *Encoder) {
	e.Array(len(n.Marks))
	for _, name := range n.Marks {
		e.Str(name)
	}
	e.Array(n.Count)
	if n.Inputs != nil {
		e.Buf = append(e.Buf, n.Inputs.Buf...)
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
	name := d.Str()
	if err := CheckName(of, name); d.err == nil && err != nil {
		d.fail("%w", err)
	}
	return name
}
