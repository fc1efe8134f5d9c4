package format

import (
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/journal"
)

// An Input is an input of the program in a tick: a command, the buttons of a player, a message. The
// store does not interpret the bytes.
type Input struct {
	Name string
	Data []byte
}

// Limits of the notes of one tick.
const (
	maxMarks = 256       // Maximum number of marks of a tick.
	maxNoted = 256 << 20 // Maximum size of all notes of a tick, in bytes.
)

// FlagMarks is set in the header of a record whose tick has marks. A search for marks reads no
// other records.
const FlagMarks uint32 = 1 << 0

// FlagSeveral is set in the header of a record that has the changes of several ticks. A replay of
// the record runs each of these ticks.
const FlagSeveral uint32 = 1 << 1

// FlagRepeats is set in the header of a record that only adds marks to the tick of its parent. It
// has the same tick number as its parent. The states differ only in values that do not rewind.
const FlagRepeats uint32 = 1 << 2

// A StateID identifies the state at the end of a tick. Seq is the record of the tick. If the tick
// has no record, Seq is the last record before it.
type StateID struct{ Seq, Tick uint64 }

// Notes are the marks and inputs for the tick that the next commit ends. The field parent is the
// state that this tick continues. If the world moves to another state before the commit, the next
// note or commit drops the notes.
type Notes struct {
	parent StateID // The state that the tick continues.
	marks  []string
	inputs *Encoder // Encoded inputs, in order. Nil means that no input was ever added.
	count  int      // Number of inputs.
	size   int      // Approximate size of all notes in bytes.
}

// AddMark adds a name of the tick, unless the tick has it already.
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

// AddInput adds an input and copies its data.
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

// About tells n which state the current tick continues: parent. If the notes belong to a tick that
// continues another state, About drops them.
func (n *Notes) About(parent StateID) {
	if n.parent != parent {
		n.Reset()
		n.parent = parent
	}
}

// Recorded tells n that the state with the ID was now has a record, and so another ID. seq is the
// number of the record. Notes that were added in that state remain valid.
func (n *Notes) Recorded(was StateID, seq uint64) {
	if n.parent == was {
		n.parent.Seq = seq
	}
}

// Reset drops all notes and keeps the buffers.
func (n *Notes) Reset() {
	clear(n.marks)
	n.marks, n.count, n.size = n.marks[:0], 0, 0
	if n.inputs != nil {
		n.inputs.Buf = n.inputs.Buf[:0]
	}
}

// grow adds the encoded size of a note to n.size. It returns an error if the notes of the tick are
// too long together. So the caller that adds the note gets the error, and not the commit.
func (n *Notes) grow(size int) error {
	const overhead = 1 + 3 + 5 // The heads of an array, a name and bytes.
	if size > maxNoted-overhead-n.size {
		return fmt.Errorf("%w: marks and inputs of one tick: %d bytes after %d, at most %d", journal.ErrTooLong, size, n.size, maxNoted)
	}
	n.size += overhead + size
	return nil
}

// None reports whether n is empty.
func (n *Notes) None() bool { return len(n.marks) == 0 && n.count == 0 }

// First describes a note of n for people. ok is false if n is empty.
func (n *Notes) First() (text string, ok bool) {
	switch {
	case len(n.marks) > 0:
		return fmt.Sprintf("the mark %q", n.marks[0]), true
	case n.count > 0:
		return "an input", true
	}
	return "", false
}

// Flags returns the flags of a record whose tick has these notes.
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

// name reads a name and checks it.
func (d *decoder) name(of string) string {
	name := d.str()
	if err := CheckName(of, name); d.err == nil && err != nil {
		d.fail("%w", err)
	}
	return name
}
