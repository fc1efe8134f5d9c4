package dump

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/inspect"
)

// The command stats prints what uses the bytes of a store, in three tables. Each table adds up to
// the whole:
//
//	the state at the end of the range   rows and their bytes, by component
//	the ticks of the range              bytes of payloads: components, entities, operations, other
//	the files                           the use of each page and segment; the range has no effect
//
// Damaged ticks are left out, and the damage is returned at the end.

// statsDoc is what stats --json prints.
type statsDoc struct {
	stateDoc     // The state at the end of the range.
	Ticks    int `json:"records"` // Number of records in the range.
	// Payload bytes of these records: the sum of the following byte counts.
	Bytes          int64 `json:"bytes"`
	EntityBytes    int64 `json:"entity_bytes"`    // Bytes of the lists of entities that are alive.
	OperationBytes int64 `json:"operation_bytes"` // Bytes of operations.
	// Bytes of time, parent, marks and inputs.
	OtherBytes int64           `json:"other_bytes"`
	Created    int             `json:"created"` // Number of created entities.
	Destroyed  int             `json:"destroyed"`
	Components []usageDoc      `json:"components"`
	Busiest    []recordDoc     `json:"busiest"` // The largest ticks, as log prints them.
	Snapshots  []spaceDoc      `json:"snapshots"`
	Segments   []segmentUseDoc `json:"segments"`
}

// A usageDoc is the space and the changes of a component or resource.
type usageDoc struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`        // Component, tag or resource.
	Rows     int    `json:"rows"`        // Number of rows at the end of the range.
	RowBytes int64  `json:"state_bytes"` // Bytes of the encoded rows.
	Added    int    `json:"added"`       // Number of rows added in the range.
	// Rows removed, including those of destroyed entities and clears.
	Removed int   `json:"removed"`
	Written int   `json:"written"`       // Number of rows added, set or moved.
	Bytes   int64 `json:"journal_bytes"` // Bytes in payloads.
	Ticks   int   `json:"ticks"`         // Number of ticks that changed the component.
}

// A spaceDoc divides the bytes of a snapshot file. All parts except shared add up to the file's
// size.
type spaceDoc struct {
	File       string          `json:"file"` // Path relative to STORE.
	Bytes      int64           `json:"bytes"`
	Error      string          `json:"error,omitempty"` // Why the other members are unknown.
	Manifest   int64           `json:"manifest"`
	Entities   int64           `json:"entities"` // Bytes of the entity list.
	Components []arrayBytesDoc `json:"components"`
	// Bytes of references to pages of other files and to equal pages of this file.
	References int64 `json:"references"`
	Tree       int64 `json:"tree"` // Bytes of keys, and of unused space between keys.
	Free       int64 `json:"free"` // Bytes of unreferenced pages.
	Checksums  int64 `json:"checksums"`
	Shared     int64 `json:"shared"` // Bytes of readable pages in other files.
}

// An arrayBytesDoc is the size of the arrays of a component in a snapshot file.
type arrayBytesDoc struct {
	Name   string `json:"name"`
	Sparse int64  `json:"sparse"`
	Dense  int64  `json:"dense"`
	Data   int64  `json:"data"`
}

// A segmentUseDoc divides the bytes of a journal file. Payloads, rewound and overhead add up to the
// file's size.
type segmentUseDoc struct {
	Name     string `json:"file"` // Path relative to STORE.
	Size     int64  `json:"bytes"`
	Records  int    `json:"records"`
	Payloads int64  `json:"payloads"` // Payload bytes of records on the path to the newest state.
	Rewound  int64  `json:"rewound"`  // Payload bytes of the other records.
	Overhead int64  `json:"overhead"` // Bytes of headers, schemas and an unfinished end.
	// True if the newest state does not need the file, because of a later snapshot.
	Prunable bool `json:"prunable"`
}

var statsCommand = command{
	use: "stats STORE [A..B]",
	doc: `Show what takes the bytes: components, ticks, files

Show what takes space: each component, in the state and in the ticks of a range; the
largest ticks; and the parts of each file.

STATE and JOURNAL are bytes. Columns of bytes add up: the bytes of components, entities,
operations and other data add up to the bytes of the ticks in the journal, and the parts
of a file add up to its size. Stats reads the sizes of the pages of a snapshot file, but
not the pages; use verify to check them.`,
	example: `  ecsdump stats D
  ecsdump stats D 100..200 --limit 20`,
	complete: []completer{(*completion).ranges},
	run: func(f flags) action {
		var at string
		var busiest limit
		f.point(&at)
		f.limit(&busiest, "of the busiest ticks")
		return func(c *call) error {
			if err := c.atOrRange(1); err != nil {
				return err
			}
			return c.read(c.args[0], func(s *source) error {
				doc, err := s.stats(at, c.args[1:], busiest)
				if doc == nil {
					return err
				}
				return cmp.Or(s.printReport(doc), err)
			})
		}
	},
}

// stats computes the document. Without a range, it covers all records up to --at. The state is that
// of the last record. After damage, the document lacks the damaged ticks.
func (s *source) stats(at string, args []string, busiest limit) (*statsDoc, error) {
	entries, err := s.recordsIn(args)
	if err != nil {
		return nil, err
	}
	if len(args) > 0 {
		// Name the last record by its number, because it may be on a rewound branch.
		at = fmt.Sprintf("record:%d", entries[len(entries)-1].ID.Seq)
	}
	d := &statsDoc{Busiest: []recordDoc{}}
	err = s.readState(at, func(st *inspect.State) (err error) {
		d.stateDoc, d.Components = outline(st).doc(), []usageDoc{}
		for _, c := range st.Outline().Components {
			u := usageDoc{Name: c.Name, Kind: describe.Kind(c.Layout, c.Resource), Rows: c.Len()}
			if u.RowBytes, err = st.RowBytes(c); err != nil {
				return err
			}
			d.Components = append(d.Components, u)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(args) == 0 {
		// Remove the records after the point. Clone the list, because it belongs to the log.
		entries = slices.DeleteFunc(slices.Clone(entries), func(e journal.Entry) bool { return e.ID.Seq > d.Seq })
	}
	in := s.standing()
	var unread error
	for _, e := range entries {
		if err := d.tick(s, e, in, busiest); damaged(err) {
			unread = cmp.Or(unread, err)
		} else if err != nil {
			return nil, err
		}
	}
	d.trimBusiest(busiest)
	space, err := s.Space(s.ctx)
	if err != nil {
		return nil, err
	}
	d.Snapshots = describe.Listed(space.Snapshots, spaceDocOf)
	d.Segments = describe.Listed(space.Segments, func(s inspect.SegmentSpace) segmentUseDoc { return segmentUseDoc(s) })
	return d, unread
}

// tick adds the counts of record e. OtherBytes counts the bytes that belong to no component, entity
// or operation.
func (d *statsDoc) tick(s *source, e journal.Entry, in standing, busiest limit) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	c, _, doc, err := s.commit(e.ID.Seq, in)
	if err != nil || c == nil {
		return err
	}
	d.addBusiest(doc, busiest)
	d.Ticks++
	d.Created += doc.Created
	d.Destroyed += doc.Destroyed
	d.Bytes += int64(c.Bytes)
	d.EntityBytes += int64(c.EntityBytes)
	d.OperationBytes += int64(c.OpBytes)
	d.OtherBytes += int64(c.Bytes - c.EntityBytes - c.OpBytes)
	for _, r := range c.Rows {
		u := d.usage(c.Component(r.Component))
		u.Bytes += int64(r.Bytes)
		d.OtherBytes -= int64(r.Bytes)
	}
	for _, change := range doc.Components {
		u := d.usage(change.Name)
		u.Added += change.Added
		u.Removed += change.Removed
		u.Written += change.Written
		u.Ticks++
	}
	return nil
}

// usage returns the counts of a component. It adds a component that the printed state lacks. Such a
// component exists only on another branch.
func (d *statsDoc) usage(name string) *usageDoc {
	for i := range d.Components {
		if d.Components[i].Name == name {
			return &d.Components[i]
		}
	}
	d.Components = append(d.Components, usageDoc{Name: name, Kind: "component"})
	return &d.Components[len(d.Components)-1]
}

// addBusiest adds a tick to the list of the busiest ticks. Now and then it trims the list, so that
// the list does not grow with the journal.
func (d *statsDoc) addBusiest(doc recordDoc, l limit) {
	d.Busiest = append(d.Busiest, doc)
	if n, _ := l.of(len(d.Busiest)); len(d.Busiest) > 2*n+64 {
		d.trimBusiest(l)
	}
}

// trimBusiest sorts the ticks by size and removes the ticks beyond the limit. Of two ticks of equal
// size, the older tick comes first.
func (d *statsDoc) trimBusiest(l limit) {
	slices.SortStableFunc(d.Busiest, func(a, b recordDoc) int { return cmp.Compare(b.Bytes, a.Bytes) })
	n, _ := l.of(len(d.Busiest))
	d.Busiest = d.Busiest[:n]
}

func spaceDocOf(s inspect.SnapshotSpace) spaceDoc {
	return spaceDoc{
		s.Name, s.Size, describe.Unprefixed(s.Err), s.Manifest, s.Entities,
		describe.Listed(s.Components, func(c inspect.ComponentSpace) arrayBytesDoc { return arrayBytesDoc(c) }),
		s.References, s.Tree, s.Free, s.Checksums, s.Shared,
	}
}

// print prints components, then ticks, then files.
func (d *statsDoc) print(a *app) {
	d.components(a)
	if len(d.Busiest) > 0 {
		a.Line("")
		term.Table(a.Out, d.Busiest, func(c recordDoc) []any {
			return []any{c.Tick, c.Seq, c.Bytes, c.note(), c.changes()}
		}, ">TICK", ">RECORD", ">BYTES", "NOTE", "~CHANGES")
		a.printMore(d.Ticks-len(d.Busiest), d.Ticks, "record", "records")
	}
	d.snapshots(a)
	if len(d.Segments) > 0 {
		a.Line("")
		term.Table(a.Out, d.Segments, func(s segmentUseDoc) []any {
			note := ""
			if s.Prunable {
				note = "prunable"
			}
			return []any{s.Name, s.Size, s.Records, nonZero(s.Payloads), nonZero(s.Rewound), s.Overhead, note}
		}, "FILE", ">BYTES", ">RECORDS", ">PAYLOADS", ">REWOUND", ">OVERHEAD", "NOTE")
	}
}

// components prints the size of each component, and the sum.
func (d *statsDoc) components(a *app) {
	a.Line("%s; %s of %s", d.Place(), term.Count(d.Ticks, "record", "records"), term.Size(d.Bytes))
	a.Line("")
	g := a.Grid("COMPONENT", ">ROWS", ">STATE", ">TICKS", ">ADDED", ">REMOVED", ">WRITTEN", ">JOURNAL", ">SHARE")
	for _, u := range d.Components {
		g.Row(u.Name, u.Rows, u.RowBytes, nonZero(u.Ticks), nonZero(u.Added), nonZero(u.Removed), nonZero(u.Written), nonZero(u.Bytes), share(u.Bytes, d.Bytes))
	}
	if d.Bytes > 0 {
		g.Row("(entities)", "", "", "", nonZero(d.Created), nonZero(d.Destroyed), "", nonZero(d.EntityBytes), share(d.EntityBytes, d.Bytes))
		g.Row("(operations)", "", "", "", "", "", "", nonZero(d.OperationBytes), share(d.OperationBytes, d.Bytes))
		g.Row("(other)", "", "", "", "", "", "", nonZero(d.OtherBytes), share(d.OtherBytes, d.Bytes))
	}
	g.Flush()
}

// nonZero returns n, or "" for 0. The table omits a column without text.
func nonZero[N int | int64](n N) any {
	if n == 0 {
		return ""
	}
	return n
}

// share returns the quotient part / whole in percent.
func share(part, whole int64) string {
	if part == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

// snapshots prints how the bytes of snapshot files are used. A second table has the sums over all
// files, by component.
func (d *statsDoc) snapshots(a *app) {
	a.Line("")
	var sums []arrayBytesDoc // One sum for each component.
	term.Table(a.Out, d.Snapshots, func(s spaceDoc) []any {
		var all int64
		for _, c := range s.Components {
			i := slices.IndexFunc(sums, func(sum arrayBytesDoc) bool { return sum.Name == c.Name })
			if i < 0 {
				i, sums = len(sums), append(sums, arrayBytesDoc{Name: c.Name})
			}
			sum := &sums[i]
			sum.Sparse, sum.Dense, sum.Data = sum.Sparse+c.Sparse, sum.Dense+c.Dense, sum.Data+c.Data
			all += c.Sparse + c.Dense + c.Data
		}
		return []any{s.File, s.Bytes, nonZero(all), nonZero(s.Entities), nonZero(s.Manifest), nonZero(s.References), nonZero(s.Tree), nonZero(s.Free), nonZero(s.Checksums), nonZero(s.Shared), s.Error}
	}, "FILE", ">BYTES", ">COMPONENTS", ">ENTITIES", ">MANIFEST", ">REFERENCES", ">TREE", ">FREE", ">CHECKSUMS", ">SHARED", "~NOTE")
	a.Line("")
	term.Table(a.Out, sums, func(c arrayBytesDoc) []any {
		return []any{c.Name, nonZero(c.Sparse), nonZero(c.Dense), nonZero(c.Data), nonZero(c.Sparse + c.Dense + c.Data)}
	}, "COMPONENT", ">SPARSE", ">DENSE", ">DATA", ">BYTES")
}
