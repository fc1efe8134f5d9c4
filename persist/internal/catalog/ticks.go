package catalog

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// Tick reads and decodes the payload of e, which is described by the schema in force at it.
func (c *Catalog) Tick(e journal.Entry) (*format.Tick, *format.Schema, error) {
	s, err := c.SchemaAt(e)
	return c.tick(e, s, err)
}

// TickAfter is Tick of a record that the state of that ID leads to. The state's schema does
// where no other can be read.
func (c *Catalog) TickAfter(e journal.Entry, id journal.ID, stored func() *format.Schema) (*format.Tick, *format.Schema, error) {
	s, err := c.SchemaAfter(e, id, stored)
	return c.tick(e, s, err)
}

// tick reads the payload of e, of which s is the schema unless err says why it has none.
func (c *Catalog) tick(e journal.Entry, s *format.Schema, err error) (*format.Tick, *format.Schema, error) {
	if err != nil {
		return nil, nil, err
	}
	t, _, err := c.Read(e)
	if err == nil {
		err = c.Described(e, t, s)
	}
	return t, s, err
}

// Read reads and decodes the payload of e. What its numbers of components mean, the schema
// says; for all else of a tick none is needed.
func (c *Catalog) Read(e journal.Entry) (t *format.Tick, payload []byte, err error) {
	if payload, err = c.Log.Payload(e, nil); err != nil {
		return nil, nil, c.JournalError(err)
	}
	t, err = c.Decode(e, payload)
	return t, payload, err
}

// Described returns the damage that hides what t, the tick of e, names beyond s, the schema
// that was found for it; nil: s has all that it names, or nothing is hidden.
func (c *Catalog) Described(e journal.Entry, t *format.Tick, s *format.Schema) error {
	hidden := c.Log.Hidden(e)
	if hidden == nil {
		return nil
	}
	highest := format.NoComponent
	for i := range t.Storages {
		highest = max(highest, t.Storages[i].Number)
	}
	err := format.EachOp(t.Ops, func(op format.Op) { highest = max(highest, op.Component) })
	if err == nil && highest >= len(s.Components) {
		return hidden.In(JournalDir)
	}
	return nil
}

// Decode decodes the payload of e, and compares it with what the header says of it: both
// are under one sum, so a difference is an error of whoever wrote them.
func (c *Catalog) Decode(e journal.Entry, payload []byte) (*format.Tick, error) {
	t, err := format.DecodeTick(payload)
	if err == nil && (t.Tick != e.Tick || t.Parent.Seq != e.Parent) {
		err = fmt.Errorf("tick %d with parent %d in the payload, %d and %d in the header", t.Tick, t.Parent.Seq, e.Tick, e.Parent)
	}
	if err == nil && (len(t.Marks) > 0) != (e.Flags&format.FlagMarks != 0) {
		err = fmt.Errorf("%d marks in the payload, flags %#x in the header", len(t.Marks), e.Flags)
	}
	if err != nil {
		return nil, c.EntryError(e, err)
	}
	return t, nil
}

// SchemaAt returns the schema in force at e: the newest readable preamble of its segment before
// it. It is decoded once, so that two ticks have one schema if it is the same pointer.
//
// Damage before e may hide a newer one. Within a segment numbers are only added, and what is
// added is named by the very next tick: so the schema is the beginning of the one in force, and
// has all that a tick names which it fits, see [Catalog.Described]. Of a component that only
// ticks name which are lost, nothing is known, not even that there was one: it has no rows. If
// there is no readable preamble before e at all, the error is the damage.
func (c *Catalog) SchemaAt(e journal.Entry) (*format.Schema, error) {
	p, ok := c.Log.PreambleAt(e)
	if !ok {
		if hidden := c.Log.Hidden(e); hidden != nil {
			return nil, hidden.In(JournalDir)
		}
		return nil, c.EntryError(e, errors.New("no schema comes before it"))
	}
	at := JournalPreamble{p.Segment, p.Offset}
	if s := c.Schemas[at]; s != nil {
		return s, nil
	}
	encoded, err := c.Log.Payload(p, nil)
	if err != nil {
		return nil, c.JournalError(err)
	}
	s, err := format.DecodeSchema(encoded)
	if err != nil {
		return nil, c.EntryError(p, err)
	}
	c.Schemas[at] = s
	return s, nil
}

// SchemaAfter is SchemaAt of a record that the state of that ID leads to. If the preambles
// before it are lost, the schema that the state is stored under has as much as a record of the
// same segment that led to the state, unless the store was converted since.
func (c *Catalog) SchemaAfter(e journal.Entry, id journal.ID, stored func() *format.Schema) (*format.Schema, error) {
	s, err := c.SchemaAt(e)
	if err == nil {
		return s, nil
	}
	if last, ok := c.Log.Find(id.Seq); ok && last.ID == id && last.Segment == e.Segment && !c.converted() {
		isConverted := func(c format.Entry) bool { return len(c.Former) > 0 }
		if s := stored(); !slices.ContainsFunc(s.Components, isConverted) {
			return s, nil
		}
	}
	return nil, err
}

// Ancestors returns the seqs of a record, of its ancestors, and of what the
// oldest of these continues.
func (c *Catalog) Ancestors(seq uint64) map[uint64]bool {
	seqs := map[uint64]bool{seq: true}
	for e := range c.Log.Ancestors(seq) {
		seqs[e.ID.Seq], seqs[e.Parent] = true, true
	}
	return seqs
}

// IsOnHead reports whether record seq is on the way to the head, or what its oldest
// record continues.
func (c *Catalog) IsOnHead(seq uint64) bool {
	if c.onHead == nil {
		c.onHead = c.Ancestors(c.Log.Head)
	}
	return c.onHead[seq]
}

// Path returns the records that lead from the state after record from, which must
// be an ancestor of to, to that after record to, in this order.
func (c *Catalog) Path(from, to uint64) ([]journal.Entry, error) {
	path, err := c.Log.Path(from, to)
	if err != nil {
		return nil, c.JournalError(err)
	}
	return path, nil
}
