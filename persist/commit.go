package persist

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
)

// A Commit is a tick in the journal.
type Commit struct {
	Seq, Parent uint64
	ID          journal.ID
	Tick        uint64
	Time        time.Time // When it was committed, by the clock of the writer.
	Bytes       int       // Of its payload.
	OnHead      bool      // It is the head or an ancestor of it; others were rewound.
	Rows        []RowChange
	Marks       []string // Names that the program gave it, see [Store.Mark].
	Inputs      []Input  // What the program journaled with it, in order.

	EntityBytes, OpBytes int // Of Bytes: those that say which entities are alive, and list the operations.

	ops    []byte
	schema *schema
}

// A RowChange says what a tick did to the rows of a component or resource.
type RowChange struct {
	Component     int // Its number, as in an [Op].
	Before, After int // How many rows there were.
	Written       int // Rows below After whose value the tick gives: added, set or moved.

	Entities, Values []ecs.Range // The rows below After whose entity the tick gives, and whose value.

	Bytes int // Of the tick's payload that say all this.
}

// Commits returns the ticks in the journal with seqs in [from, to], in the order
// in which they were committed. It stops at the first that cannot be read, and
// returns the error beside those before.
//
// The operations of all of them stay in memory; a caller that wants many asks for
// a few at a time. After the first call, which follows the head back, the cost is
// that of reading the ticks returned.
func (v *View) Commits(from, to uint64) ([]Commit, error) {
	entries := v.log.Entries
	first, _ := slices.BinarySearchFunc(entries, from, func(e journal.Entry, seq uint64) int {
		return cmp.Compare(e.ID.Seq, seq)
	})
	var commits []Commit
	for _, e := range entries[first:] {
		if e.ID.Seq > to {
			break
		}
		c, err := v.commit(e)
		if err != nil {
			return commits, err
		}
		commits = append(commits, c)
	}
	return commits, nil
}

func (v *View) commit(e journal.Entry) (Commit, error) {
	t, s, err := v.tick(e)
	if err != nil {
		return Commit{}, err
	}
	return *v.describe(e, t, s), nil
}

// describe returns what the payload of record e says.
func (v *View) describe(e journal.Entry, t *tick, s *schema) *Commit {
	if v.onHead == nil {
		v.onHead = v.ancestors(v.log.Head)
	}
	c := &Commit{
		Seq: e.ID.Seq, Parent: e.Parent, ID: e.ID, Tick: t.tick, Time: t.time, Bytes: int(e.Length),
		OnHead: v.onHead[e.ID.Seq], Marks: t.marks,
		EntityBytes: t.registrySize, OpBytes: t.opsSize, ops: append([]byte(nil), t.ops...), schema: s,
	}
	for _, in := range t.inputs {
		c.Inputs = append(c.Inputs, Input{in.Name, bytes.Clone(in.Data)})
	}
	for _, p := range t.storages {
		c.Rows = append(c.Rows, RowChange{p.number, p.before, p.after, countRows(p.valueRanges), p.entityRanges, p.valueRanges, p.size})
	}
	return c
}

// ancestors returns the seqs of a record, of its ancestors, and of what the
// oldest of these continues.
func (v *View) ancestors(seq uint64) map[uint64]bool {
	seqs := map[uint64]bool{seq: true}
	for e := range v.log.Ancestors(seq) {
		seqs[e.ID.Seq], seqs[e.Parent] = true, true
	}
	return seqs
}

// Ops returns the operations of a tick in the order of the calls.
func (c *Commit) Ops() ([]Op, error) { return decodeOps(c.ops) }

// Component returns the name of a component by the number that an [Op] has.
func (c *Commit) Component(number int) string {
	if number < 0 || number >= len(c.schema.components) {
		return ""
	}
	return c.schema.components[number].Name
}

// tick reads and decodes the payload of e.
func (v *View) tick(e journal.Entry) (*tick, *schema, error) {
	s, err := v.schemaAt(e)
	if err != nil {
		return nil, nil, v.journalError(err)
	}
	payload, err := v.log.Payload(e, nil)
	if err != nil {
		return nil, nil, v.journalError(err)
	}
	t, err := v.decode(e, payload)
	return t, s, err
}

// decode decodes the payload of e.
func (v *View) decode(e journal.Entry, payload []byte) (*tick, error) {
	t, err := decodeTick(payload)
	if err == nil && (t.tick != e.Tick || t.parent.Seq != e.Parent) {
		err = fmt.Errorf("tick %d with parent %d in the payload, %d and %d in the header", t.tick, t.parent.Seq, e.Tick, e.Parent)
	}
	if err == nil && (len(t.marks) > 0) != (e.Flags&flagMarks != 0) {
		err = fmt.Errorf("%d marks in the payload, flags %#x in the header", len(t.marks), e.Flags)
	}
	if err != nil {
		return nil, v.entryError(e, err)
	}
	return t, nil
}

// schemaAt returns the schema in force at e.
func (v *View) schemaAt(e journal.Entry) (*schema, error) {
	p, ok := v.log.PreambleAt(e)
	at := journalPreamble{p.Segment, p.Offset}
	if s := v.schemas[at]; ok && s != nil {
		return s, nil
	}
	encoded, err := v.log.Preamble(e)
	if err != nil {
		return nil, err
	}
	s, err := decodeSchema(encoded)
	if err != nil {
		return nil, v.entryError(p, err)
	}
	v.schemas[at] = s
	return s, nil
}
