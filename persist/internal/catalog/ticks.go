package catalog

import (
	"fmt"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// Tick reads and decodes the payload of e.
func (v *Catalog) Tick(e journal.Entry) (*format.Tick, *format.Schema, error) {
	s, err := v.SchemaAt(e)
	if err != nil {
		return nil, nil, v.JournalError(err)
	}
	payload, err := v.Log.Payload(e, nil)
	if err != nil {
		return nil, nil, v.JournalError(err)
	}
	t, err := v.Decode(e, payload)
	return t, s, err
}

// Decode decodes the payload of e.
func (v *Catalog) Decode(e journal.Entry, payload []byte) (*format.Tick, error) {
	t, err := format.DecodeTick(payload)
	if err == nil && (t.Tick != e.Tick || t.Parent.Seq != e.Parent) {
		err = fmt.Errorf("tick %d with parent %d in the payload, %d and %d in the header", t.Tick, t.Parent.Seq, e.Tick, e.Parent)
	}
	if err == nil && (len(t.Marks) > 0) != (e.Flags&format.FlagMarks != 0) {
		err = fmt.Errorf("%d marks in the payload, flags %#x in the header", len(t.Marks), e.Flags)
	}
	if err != nil {
		return nil, v.EntryError(e, err)
	}
	return t, nil
}

// SchemaAt returns the schema in force at e.
func (v *Catalog) SchemaAt(e journal.Entry) (*format.Schema, error) {
	p, ok := v.Log.PreambleAt(e)
	at := JournalPreamble{p.Segment, p.Offset}
	if s := v.Schemas[at]; ok && s != nil {
		return s, nil
	}
	encoded, err := v.Log.Preamble(e)
	if err != nil {
		return nil, err
	}
	s, err := format.DecodeSchema(encoded)
	if err != nil {
		return nil, v.EntryError(p, err)
	}
	v.Schemas[at] = s
	return s, nil
}

// Ancestors returns the seqs of a record, of its ancestors, and of what the
// oldest of these continues.
func (v *Catalog) Ancestors(seq uint64) map[uint64]bool {
	seqs := map[uint64]bool{seq: true}
	for e := range v.Log.Ancestors(seq) {
		seqs[e.ID.Seq], seqs[e.Parent] = true, true
	}
	return seqs
}

// IsOnHead reports whether record seq is on the way to the head, or what its oldest
// record continues.
func (v *Catalog) IsOnHead(seq uint64) bool {
	if v.onHead == nil {
		v.onHead = v.Ancestors(v.Log.Head)
	}
	return v.onHead[seq]
}

// Path returns the records that lead from the state after record from, which must
// be an ancestor of to, to that after record to, in this order.
func (v *Catalog) Path(from, to uint64) ([]journal.Entry, error) {
	path, err := v.Log.Path(from, to)
	if err != nil {
		return nil, v.JournalError(err)
	}
	return path, nil
}
