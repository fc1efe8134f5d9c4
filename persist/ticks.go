package persist

import (
	"fmt"

	"github.com/stet-ecs/stet/journal"
)

// tick reads and decodes the payload of e.
func (v *catalog) tick(e journal.Entry) (*tick, *schema, error) {
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
func (v *catalog) decode(e journal.Entry, payload []byte) (*tick, error) {
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
func (v *catalog) schemaAt(e journal.Entry) (*schema, error) {
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

// ancestors returns the seqs of a record, of its ancestors, and of what the
// oldest of these continues.
func (v *catalog) ancestors(seq uint64) map[uint64]bool {
	seqs := map[uint64]bool{seq: true}
	for e := range v.log.Ancestors(seq) {
		seqs[e.ID.Seq], seqs[e.Parent] = true, true
	}
	return seqs
}

// isOnHead reports whether record seq is on the way to the head, or what its oldest
// record continues.
func (v *catalog) isOnHead(seq uint64) bool {
	if v.onHead == nil {
		v.onHead = v.ancestors(v.log.Head)
	}
	return v.onHead[seq]
}

// Path returns the records that lead from the state after record from, which must
// be an ancestor of to, to that after record to, in this order.
func (v *catalog) Path(from, to uint64) ([]journal.Entry, error) {
	path, err := v.log.Path(from, to)
	if err != nil {
		return nil, v.journalError(err)
	}
	return path, nil
}
