package inspect

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// A Commit is a record in the journal, which is a tick unless Repeats is set. It says which rows
// the tick wrote, but not their values: see [View.Changes].
type Commit struct {
	Seq, Parent uint64
	ID          journal.ID
	Tick        uint64
	Time        time.Time // Commit time by the clock of the writer.
	Bytes       int       // Size of the payload in bytes.
	// True if the tick is the head or one of its ancestors, false on rewound branches.
	OnHead bool
	// True if the record adds to the tick of its parent: marks of [persist.Store.MarkLast], or the
	// NoRewind values that [persist.Store.Close] saves. Both records have the same number of tick.
	Repeats bool
	Rows    []RowChange
	Marks   []string // Names that the program gave the tick, see [persist.Store.Mark].
	Inputs  []Input  // Inputs that the program journaled with the tick, in order.

	// EntityBytes is the part of Bytes that encodes changes of the entity registry. OpBytes is the
	// part that encodes the operations.
	EntityBytes, OpBytes int

	// ops holds the encoded operations. Ops decodes them on demand, since most callers do not
	// need them.
	ops    []byte
	schema *format.Schema // Schema in force at the tick.
}

// A RowChange says what a tick did to the rows of a component or resource. If After is less than
// Before, the tick removed all rows at or above After. A row that moved counts as written in its
// new place.
type RowChange struct {
	Component     int // Number of the component, as in an [Op].
	Before, After int // Row counts before and after the tick.
	// Number of rows below After whose value the tick writes: added, set or moved rows.
	Written int

	// Entities are the rows to which the tick assigns an entity. Values are the rows whose value
	// the tick writes. All of these rows are below After.
	Entities, Values []raw.Range

	Indexed bool // The row of an entity is its index. A row without an entity is a gap.
	// Vacated lists the rows that lose their entity, if Indexed is true. The tick turns them into
	// gaps, or removes them at the end.
	Vacated []raw.Range

	Bytes int // Bytes of the tick's payload that encode this change.
}

// describeTick describes the tick of record e, whose decoded payload is t. It copies the data it
// needs, because t refers to a buffer that is reused.
func describeTick(v *catalog.Catalog, e journal.Entry, t *format.Tick, s *format.Schema) *Commit {
	c := &Commit{
		Seq: e.ID.Seq, Parent: e.Parent, ID: e.ID, Tick: t.Tick, Time: t.Time, Bytes: int(e.Length),
		OnHead: v.IsOnHead(e.ID.Seq), Repeats: e.Flags&format.FlagRepeats != 0, Marks: t.Marks,
		EntityBytes: t.RegistrySize, OpBytes: t.OpsSize, ops: append([]byte(nil), t.Ops...), schema: s,
	}
	for _, in := range t.Inputs {
		c.Inputs = append(c.Inputs, Input{Name: in.Name, Data: bytes.Clone(in.Data)})
	}
	c.Rows = make([]RowChange, 0, len(t.Storages))
	for _, p := range t.Storages {
		// Include rows that the tick writes in whole and rows that it edits.
		written := p.Written()
		r := RowChange{
			Component: p.Number, Before: p.Before, After: p.After, Written: format.CountRows(written),
			Entities: p.EntityRanges, Values: written, Bytes: p.Size,
		}
		if r.Indexed = p.Number < len(s.Components) && s.Components[p.Number].Indexed; r.Indexed {
			r.Vacated = vacated(&p)
		}
		c.Rows = append(c.Rows, r)
	}
	return c
}

// vacated returns the rows that p turns into gaps or removes at the end. The component must be
// Indexed.
func vacated(p *format.StoragePatch) (rows []raw.Range) {
	at := 0
	for _, r := range p.EntityRanges {
		for row := r.First; row < r.First+r.N && at+8 <= len(p.Entities); row++ {
			if binary.LittleEndian.Uint64(p.Entities[at:]) == raw.Vacant {
				rows = append(rows, raw.Range{First: row, N: 1})
			}
			at += 8
		}
	}
	if p.After < p.Before {
		rows = append(rows, raw.Range{First: p.After, N: p.Before - p.After})
	}
	return rows
}

// Ops returns the operations of the tick, in the order in which the program called them.
func (c *Commit) Ops() ([]Op, error) { return opsOf(c.ops) }

// Component returns the name of the component with the given number, as in an [Op]. It returns ""
// if no component has that number.
func (c *Commit) Component(number int) string {
	if number < 0 || number >= len(c.schema.Components) {
		return ""
	}
	return c.schema.Components[number].Name
}
