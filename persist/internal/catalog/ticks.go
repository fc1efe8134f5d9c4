package catalog

import (
	"fmt"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// Tick reads and decodes the payload of e.
func (c *Catalog) Tick(e journal.Entry) (*format.Tick, *format.Schema, error) {
	s, err := c.SchemaAt(e)
	if err != nil {
		return nil, nil, c.JournalError(err)
	}
	payload, err := c.Log.Payload(e, nil)
	if err != nil {
		return nil, nil, c.JournalError(err)
	}
	t, err := c.Decode(e, payload)
	return t, s, err
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

// SchemaAt returns the schema in force at e: the newest preamble of its segment before it.
// It is decoded once, so that two ticks have one schema if it is the same pointer.
func (c *Catalog) SchemaAt(e journal.Entry) (*format.Schema, error) {
	p, ok := c.Log.PreambleAt(e)
	at := JournalPreamble{p.Segment, p.Offset}
	if s := c.Schemas[at]; ok && s != nil {
		return s, nil
	}
	encoded, err := c.Log.Preamble(e)
	if err != nil {
		return nil, err
	}
	s, err := format.DecodeSchema(encoded)
	if err != nil {
		return nil, c.EntryError(p, err)
	}
	c.Schemas[at] = s
	return s, nil
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
