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

// A Commit is a tick in the journal. It says which rows the tick wrote, not what is in them: for that
// there is [View.Changes].
type Commit struct {
	Seq, Parent uint64
	ID          journal.ID
	Tick        uint64
	Time        time.Time // When it was committed, by the clock of the writer.
	Bytes       int       // Of its payload.
	OnHead      bool      // It is the head or an ancestor of it; others were rewound.
	Rows        []RowChange
	Marks       []string // Names that the program gave it, see [persist.Store.Mark].
	Inputs      []Input  // What the program journaled with it, in order.

	EntityBytes, OpBytes int // Of Bytes: those that say which entities are alive, and list the operations.

	ops    []byte         // Encoded: most who ask for a tick do not ask for them, see Ops.
	schema *format.Schema // In force at the tick.
}

// A RowChange says what a tick did to the rows of a component or resource. Rows from After on are gone;
// of a row that moved, its new place counts as written.
type RowChange struct {
	Component     int // Its number, as in an [Op].
	Before, After int // How many rows there were.
	Written       int // Rows below After whose value the tick gives: added, set or moved.

	Entities, Values []raw.Range // The rows below After whose entity the tick gives, and whose value.

	Indexed bool        // The row of an entity is its index, so that rows may be gaps.
	Vacated []raw.Range // Rows of an Indexed storage that the tick gives without an entity, or drops.

	Bytes int // Of the tick's payload that say all this.
}

// describeTick returns what the payload of record e says. What it keeps of the payload is copied:
// t is valid only while its buffer is.
func describeTick(v *catalog.Catalog, e journal.Entry, t *format.Tick, s *format.Schema) *Commit {
	c := &Commit{
		Seq: e.ID.Seq, Parent: e.Parent, ID: e.ID, Tick: t.Tick, Time: t.Time, Bytes: int(e.Length),
		OnHead: v.IsOnHead(e.ID.Seq), Marks: t.Marks,
		EntityBytes: t.RegistrySize, OpBytes: t.OpsSize, ops: append([]byte(nil), t.Ops...), schema: s,
	}
	for _, in := range t.Inputs {
		c.Inputs = append(c.Inputs, Input{Name: in.Name, Data: bytes.Clone(in.Data)})
	}
	c.Rows = make([]RowChange, 0, len(t.Storages))
	for _, p := range t.Storages {
		written := p.Written() // Rows given and rows edited.
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

// vacated returns the rows of an Indexed storage that p gives without an entity, or drops.
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

// Ops returns the operations of a tick in the order of the calls.
func (c *Commit) Ops() ([]Op, error) { return format.DecodeOps(c.ops) }

// Component returns the name of a component by the number that an [Op] has.
func (c *Commit) Component(number int) string {
	if number < 0 || number >= len(c.schema.Components) {
		return ""
	}
	return c.schema.Components[number].Name
}
