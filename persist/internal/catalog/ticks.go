package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/stet-ecs/stet/internal/parallel"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/progress"
)

// A tick refers to components by number. A preamble before the tick, in the same segment, contains
// the schema of these numbers. Damage may hide preambles, so a tick is read in three steps:
//
//	Read          decodes the payload and compares it with its header
//	SchemaAt      finds the newest readable preamble; SchemaAfter also uses the state before
//	Described     checks whether the tick uses a component outside this schema
//
// Describe does all three for a [Record] that continues a state.

// Tick reads and decodes the payload of e. It returns the schema in force at e.
func (c *Catalog) Tick(e journal.Entry) (*format.Tick, *format.Schema, error) {
	r := c.Record(e)
	err := c.DescribeAt(r)
	return r.Decoded, r.Schema, err
}

// Read reads and decodes the payload of e. It needs no schema.
func (c *Catalog) Read(e journal.Entry) (*format.Tick, error) {
	r := c.Record(e)
	return r.Decoded, r.err
}

// Described returns an error if tick t of record e uses a component that schema s lacks. s is the
// newest readable schema before e. The error is the damage that may hide a newer schema. Described
// returns nil if no schema is hidden.
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

// decode decodes the payload of e and compares it with the record header. One checksum covers both,
// so a difference is an error of the writer.
func (c *Catalog) decode(e journal.Entry, payload []byte) (*format.Tick, error) {
	t, err := format.DecodeTick(payload)
	if err == nil && (t.Tick != e.Tick || t.Parent.Seq != e.Parent) {
		err = fmt.Errorf("tick %d with parent %d in the payload, %d and %d in the header", t.Tick, t.Parent.Seq, e.Tick, e.Parent)
	}
	if err == nil && (len(t.Marks) > 0) != (e.Flags&format.FlagMarks != 0) {
		err = fmt.Errorf("%d marks in the payload, flags %#x in the header", len(t.Marks), e.Flags)
	}
	if err == nil && e.Flags&format.FlagRepeats != 0 && t.Registry != nil {
		err = fmt.Errorf("a record that repeats tick %d changes entities", t.Tick)
	}
	if err != nil {
		return nil, c.EntryError(e, err)
	}
	return t, nil
}

// SchemaAt returns the schema in force at e: the newest readable preamble before e in its segment.
// Each preamble is decoded once, so two ticks with the same schema have the same pointer.
//
// Damage before e may hide a newer preamble, which can only add components. The returned schema is
// enough for a tick that uses none of the added ones; see [Catalog.Described]. If no preamble
// before e is readable, the error is the damage.
func (c *Catalog) SchemaAt(e journal.Entry) (*format.Schema, error) {
	p, ok := c.Log.PreambleAt(e)
	if !ok {
		if hidden := c.Log.Hidden(e); hidden != nil {
			return nil, hidden.In(JournalDir)
		}
		return nil, c.EntryError(e, errors.New("no schema precedes it"))
	}
	c.mu.Lock() // Held during decoding, so that concurrent callers get the same pointer.
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

// SchemaAfter is like SchemaAt for a record e that continues state id. If damage hides all
// preambles before e, it returns stored(), the schema of that state. This works if the record of
// the state is in the same segment as e, and if nothing was converted.
func (c *Catalog) SchemaAfter(e journal.Entry, id journal.ID, stored func() *format.Schema) (*format.Schema, error) {
	s, err := c.SchemaAt(e)
	if err == nil {
		return s, nil
	}
	// Within a segment, each schema only adds components to the previous one. So the schema of the
	// state also has the right numbers for this record. A conversion would break this rule.
	if last, ok := c.Log.Find(id.Seq); ok && last.ID == id && last.Segment == e.Segment && !c.converted() {
		isConverted := func(c format.Entry) bool { return len(c.Former) > 0 }
		if s := stored(); !slices.ContainsFunc(s.Components, isConverted) {
			return s, nil
		}
	}
	return nil, err
}

// Ancestors returns the seqs of a record, of its ancestors, and of the parent of the oldest known
// ancestor.
func (c *Catalog) Ancestors(seq uint64) map[uint64]bool {
	seqs := map[uint64]bool{seq: true}
	for e := range c.Log.Ancestors(seq) {
		seqs[e.ID.Seq], seqs[e.Parent] = true, true
	}
	return seqs
}

// IsOnHead reports whether record seq is the head, an ancestor of the head, or the parent of the
// oldest known ancestor.
func (c *Catalog) IsOnHead(seq uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.onHead == nil { // Computed once in O(records). followHead keeps it up to date.
		c.onHead = c.Ancestors(c.Log.Head)
	}
	return c.onHead[seq]
}

// EntriesBetween returns the records with seqs from first to last.
func (c *Catalog) EntriesBetween(first, last uint64) []journal.Entry {
	all := c.Log.Entries
	from := sort.Search(len(all), func(i int) bool { return all[i].ID.Seq >= first })
	to := sort.Search(len(all), func(i int) bool { return all[i].ID.Seq > last })
	return all[from:max(from, to)]
}

// Path returns the records after record from, up to and including record to, oldest first. Record
// from must be an ancestor of record to.
func (c *Catalog) Path(from, to uint64) ([]journal.Entry, error) {
	path, err := c.Log.Path(from, to)
	if err != nil {
		return nil, c.JournalError(err)
	}
	return path, nil
}

// Records are applied to a state one after the other, but reading and decoding a record needs no
// state. So several goroutines read the records of a path, one part of the path each. They verify
// checksums and decode the ticks. Meanwhile the caller applies the records of earlier parts.

// A Record is a record of the journal that was read.
type Record struct {
	journal.Entry
	Payload []byte
	Decoded *format.Tick
	Schema  *format.Schema // The schema in force at the record. Set by Describe and DescribeAt.
	err     error          // The error of reading or decoding the payload, or nil.
}

// Record reads record e.
func (c *Catalog) Record(e journal.Entry) *Record {
	payload, err := c.Log.Payload(e, nil)
	return c.decoded(e, payload, err)
}

// decoded returns record e with its payload, or with the error of reading the payload.
func (c *Catalog) decoded(e journal.Entry, payload []byte, err error) *Record {
	r := &Record{Entry: e, Payload: payload, err: err}
	if err != nil {
		r.err = c.JournalError(err)
	} else {
		r.Decoded, r.err = c.decode(e, payload)
	}
	return r
}

// Describe sets the schema of record r, which continues the state with this ID; see
// [Catalog.SchemaAfter]. It also returns the error of reading r.
func (c *Catalog) Describe(r *Record, id journal.ID, stored func() *format.Schema) error {
	s, err := c.SchemaAfter(r.Entry, id, stored)
	return c.describe(r, s, err)
}

// DescribeAt finds the schema in force at r without a state.
func (c *Catalog) DescribeAt(r *Record) error {
	s, err := c.SchemaAt(r.Entry)
	return c.describe(r, s, err)
}

// describe sets the schema of r to s. If err is not nil, it returns err and leaves r unchanged.
func (c *Catalog) describe(r *Record, s *format.Schema, err error) error {
	if err != nil {
		return err
	}
	if r.Schema = s; r.err != nil {
		return r.err
	}
	return c.Described(r.Entry, r.Decoded, s)
}

// A part is a run of records that one goroutine reads at once. These are its limits.
const (
	partRecords = 64
	partBytes   = 256 << 10
)

// Records calls f with each record of path, in order. Other goroutines read the next records in the
// meantime. f calls Describe or DescribeAt if it needs the schema. Progress counts the records in
// the phase [progress.PhaseReplay]; the context of f reports no progress. Records stops at the
// first error of f, and when ctx ends.
//
// The goroutines read a few parts per processor in advance. A record larger than a part is read
// only when f needs it. So at most one record of this size is in memory.
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

// RecordsAtOnce reads entries and calls f with each record and its index. Several goroutines call
// f, in any order. RecordsAtOnce returns the error of the first entry for which f fails, or the
// error of ctx.
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

// partsOf splits path into parts.
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

// readPart reads the records of a part.
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
