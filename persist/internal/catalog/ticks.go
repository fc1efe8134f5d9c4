package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/internal/parallel"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/progress"
)

// A tick names components by numbers, and what these mean stands in a preamble before it in its
// segment. Damage may hide preambles, so a tick is read in three steps:
//
//	Read          the payload, decoded and compared with its header
//	SchemaAt      the newest preamble that can be read; SchemaAfter: or that of a state before
//	Described     whether the tick names more than that, so that the damage hides what it means
//
// Describe does all three for a [Record], which goes on from a state.

// Tick reads and decodes the payload of e, which is described by the schema in force at it.
func (c *Catalog) Tick(e journal.Entry) (*format.Tick, *format.Schema, error) {
	r := c.Record(e)
	err := c.DescribeAt(r)
	return r.Says, r.Schema, err
}

// Read reads and decodes the payload of e. What its numbers of components mean, the schema
// says; for all else of a tick none is needed.
func (c *Catalog) Read(e journal.Entry) (*format.Tick, error) {
	r := c.Record(e)
	return r.Says, r.err
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

// decode decodes the payload of e, and compares it with what the header says of it: both
// are under one sum, so a difference is an error of whoever wrote them.
func (c *Catalog) decode(e journal.Entry, payload []byte) (*format.Tick, error) {
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
	c.mu.Lock() // Also while it is decoded: two who ask at the same time must get one pointer.
	defer c.mu.Unlock()
	at := JournalPreamble{p.Segment, p.Offset}
	if s := c.schemas[at]; s != nil {
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
	c.schemas[at] = s
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
	// Within a segment one schema continues the other. So the state must be one that a record of the
	// same segment led to, and neither the store nor anything in that schema was ever converted.
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
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.onHead == nil { // O(records), once; followHead keeps it up to date.
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

// A state goes forward by one record after the other, but to read and decode a record no state is
// needed. So several goroutines read ahead of the one that goes forward:
//
//	path     | part   | part   | part   | …
//	workers    read     read     read           bytes, sums, ticks
//	caller     f f f f  f f f f  …              what the state makes of them

// A Record is one of the journal that was read.
type Record struct {
	journal.Entry
	Payload []byte
	Says    *format.Tick
	Schema  *format.Schema // In force at it, once it was described.
	err     error          // Why the payload cannot be read, or says no tick.
}

// Record reads record e.
func (c *Catalog) Record(e journal.Entry) *Record {
	payload, err := c.Log.Payload(e, nil)
	return c.decoded(e, payload, err)
}

// decoded returns record e with its payload, or with why that cannot be read.
func (c *Catalog) decoded(e journal.Entry, payload []byte, err error) *Record {
	r := &Record{Entry: e, Payload: payload, err: err}
	if err != nil {
		r.err = c.JournalError(err)
	} else {
		r.Says, r.err = c.decode(e, payload)
	}
	return r
}

// Describe finds the schema of r, which the state of that ID leads to, see [Catalog.SchemaAfter]. Its
// error may be that r could not be read.
func (c *Catalog) Describe(r *Record, id journal.ID, stored func() *format.Schema) error {
	s, err := c.SchemaAfter(r.Entry, id, stored)
	return c.describe(r, s, err)
}

// DescribeAt finds the schema in force at r, whatever state it leads on from.
func (c *Catalog) DescribeAt(r *Record) error {
	s, err := c.SchemaAt(r.Entry)
	return c.describe(r, s, err)
}

// describe gives r its schema, unless err says why it has none.
func (c *Catalog) describe(r *Record, s *format.Schema, err error) error {
	if err != nil {
		return err
	}
	if r.Schema = s; r.err != nil {
		return r.err
	}
	return c.Described(r.Entry, r.Says, s)
}

// Limits of what a goroutine reads before it takes more.
const (
	partRecords = 64
	partBytes   = 256 << 10
)

// Records reads the records of path, some of them ahead, and calls f with each in turn, which describes
// it. They count as the phase [progress.PhaseReplay]; f has a context that has nobody to be told. It ends
// with the first error of f, or with that of ctx.
//
// Ahead are a few parts for each processor. A record larger than a part is read when its turn comes, so
// that no more than one of these is in memory.
func (c *Catalog) Records(ctx context.Context, path []journal.Entry, f func(ctx context.Context, r *Record) error) error {
	p, quiet := progress.Start(ctx, progress.PhaseReplay, int64(len(path))), progress.Quiet(ctx)
	parts := partsOf(path)
	read := func(_, i int) (records []*Record, _ error) {
		part := parts[i]
		if len(part) == 1 && part[0].Length > partBytes {
			return []*Record{nil}, nil
		}
		return c.readPart(part), nil
	}
	at := 0
	return parallel.InOrder(ctx, len(parts), read, func(records []*Record) error {
		for _, r := range records {
			if err := ctx.Err(); err != nil {
				return err
			}
			if r == nil {
				r = c.Record(path[at])
			}
			if err := f(quiet, r); err != nil {
				return err
			}
			at++
			p.Add(1)
		}
		return nil
	})
}

// RecordsAtOnce reads entries and calls f with each and its position, from several goroutines and in
// no order of the parts. It ends with the error of the first entry of which f returns one, or with that of
// ctx.
func (c *Catalog) RecordsAtOnce(ctx context.Context, entries []journal.Entry, f func(i int, r *Record) error) error {
	parts := partsOf(entries)
	first := make([]int, len(parts))
	for i := range parts[min(1, len(parts)):] {
		first[i+1] = first[i] + len(parts[i])
	}
	return parallel.Do(ctx, len(parts), func(part int) error {
		for i, r := range c.readPart(parts[part]) {
			if err := f(first[part]+i, r); err != nil {
				return err
			}
		}
		return nil
	})
}

// partsOf cuts path into parts.
func partsOf(path []journal.Entry) (parts [][]journal.Entry) {
	first, size := 0, 0
	for i, e := range path {
		if i > first && (i-first == partRecords || size+int(e.Length) > partBytes) {
			parts, first, size = append(parts, path[first:i]), i, 0
		}
		size += int(e.Length)
	}
	if first < len(path) {
		parts = append(parts, path[first:])
	}
	return parts
}

// readPart reads records.
func (c *Catalog) readPart(part []journal.Entry) []*Record {
	size := 0
	for _, e := range part {
		size += int(e.Length)
	}
	records, buf := make([]*Record, 0, len(part)), make([]byte, 0, size)
	c.Log.Payloads(part, func(e journal.Entry, payload []byte, err error) {
		at := len(buf)
		buf = append(buf, payload...)
		records = append(records, c.decoded(e, buf[at:len(buf):len(buf)], err))
	})
	return records
}
