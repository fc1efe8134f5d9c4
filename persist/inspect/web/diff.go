package web

import (
	"cmp"
	"slices"
	"time"

	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Two questions about change. What a tick did is in its record, and told without a state. How two
// states differ is compared: by what the tick between them wrote, if one is the parent of the
// other, else row by row. The counts are always all of them; rows are listed for one component, a
// part at a time, since a page that shows a million differences shows nothing.

// tickDoc is what the journal says of a tick, without a state.
type tickDoc struct {
	stateDoc
	Parent     uint64     `json:"parent"` // Record; 0: none.
	Time       *time.Time `json:"time"`
	Bytes      int        `json:"bytes"`
	Rewound    bool       `json:"rewound"`
	Created    int        `json:"created"` // Entities.
	Destroyed  int        `json:"destroyed"`
	Cleared    int        `json:"cleared"` // How often all of the world was.
	Marks      []string   `json:"marks"`
	Inputs     []inputDoc `json:"inputs"`
	Components []patchDoc `json:"components"` // That changed.
	Entities   []string   `json:"entities"`   // Created and destroyed ones, the first, as + and - before them say.
}

// An inputDoc is what the program was told in the tick.
type inputDoc struct {
	Name string `json:"name"`
	Text string `json:"text"` // As a string in Go.
	Size int    `json:"size"`
}

// A patchDoc says what a tick did to a component.
type patchDoc struct {
	Name    string `json:"name"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"` // Also those of destroyed entities, and those that a clear took.
	Cleared int    `json:"cleared"`
	Before  int    `json:"before"` // Rows.
	After   int    `json:"after"`
	Written int    `json:"written"` // Rows that were added, set or moved.
	Bytes   int    `json:"bytes"`
}

const (
	maxInputs = 100
	maxListed = 200
)

// tick tells what a record says.
func (h *shown) tick(a *ask) (any, error) {
	seq := a.record("record")
	return answer(a, h.near, func() (*tickDoc, error) {
		commits, err := h.near.view.Commits(seq, seq)
		if err != nil {
			return nil, err
		}
		if len(commits) == 0 {
			return nil, fail(codeNotFound, "the journal has no record %d: it is the state of a snapshot", seq)
		}
		c := &commits[0]
		ops, err := c.Ops()
		if err != nil {
			return nil, err
		}
		doc := &tickDoc{
			stateDoc: stateDoc{c.Tick, seq}, Parent: c.Parent, Time: describe.Known(c.Time), Bytes: c.Bytes, Rewound: !h.near.line.leadsOn(seq),
			Marks: append([]string{}, c.Marks...), Components: []patchDoc{}, Entities: []string{},
		}
		doc.Inputs = describe.Listed(c.Inputs[:min(len(c.Inputs), maxInputs)], func(in inspect.Input) inputDoc {
			return inputDoc{in.Name, quoted(in.Data), len(in.Data)}
		})
		doc.count(c, ops)
		return doc, nil
	})
}

// count counts what c did, by component; those of which most was written come first.
func (d *tickDoc) count(c *inspect.Commit, ops []inspect.Op) {
	n := describe.CountTick(c, ops)
	d.Created, d.Destroyed, d.Cleared = n.Created, n.Destroyed, n.Cleared
	for _, op := range ops {
		switch op.Kind {
		case raw.OpCreate:
			d.name("+" + op.Entity.String())
		case raw.OpDestroy:
			d.name("-" + op.Entity.String())
		}
	}
	d.Components = describe.Listed(n.Components, func(c describe.ComponentCounts) patchDoc {
		return patchDoc{c.Name, c.Added, c.Removed, c.Cleared, c.Before, c.After, c.Written, c.Bytes}
	})
	slices.SortFunc(d.Components, func(a, b patchDoc) int { return cmp.Or(cmp.Compare(b.Written, a.Written), cmp.Compare(a.Name, b.Name)) })
}

// name lists an entity, if there is room.
func (d *tickDoc) name(entity string) {
	if len(d.Entities) < maxListed {
		d.Entities = append(d.Entities, entity)
	}
}

// diffDoc says how two states differ.
type diffDoc struct {
	Old        stateDoc             `json:"old"`
	New        stateDoc             `json:"new"`
	Same       bool                 `json:"same"`
	Builds     string               `json:"builds,omitempty"` // Which builds wrote the states, if these and the builds differ.
	Schema     []schemaDiff         `json:"schema"`
	Created    int                  `json:"created"` // Entities.
	Destroyed  int                  `json:"destroyed"`
	Moved      int                  `json:"moved"`
	Components []describe.RowCounts `json:"components"`       // Those with differences.
	Listed     string               `json:"listed,omitempty"` // The component whose rows follow; * those of all.
	Total      int                  `json:"total"`            // Of them,
	Offset     int                  `json:"offset"`           // and how many are left out before.
	Rows       []differDoc          `json:"rows"`
}

// A schemaDiff is a type that differs, as texts; see inspect.SchemaDiff, whose members it has.
type schemaDiff struct {
	Component string `json:"component"`
	Field     string `json:"field"`
	Old       string `json:"old"`
	New       string `json:"new"`
}

// A differDoc is one thing that differs.
type differDoc struct {
	Entity    string      `json:"entity,omitempty"`    // Missing for a resource.
	Component string      `json:"component,omitempty"` // Missing if the entity is meant.
	Change    string      `json:"change"`              // created, destroyed, added, removed or changed.
	Old       string      `json:"old,omitempty"`
	New       string      `json:"new,omitempty"`
	Fields    []changeDoc `json:"fields,omitempty"`
}

// ofEntities is what the rows about entities themselves are listed by; ofAll lists all rows.
const (
	ofEntities = "(entities)"
	ofAll      = "*"
)

// diff tells how the states after two records differ. If one is that before the other, as much is
// read as the tick wrote.
func (h *shown) diff(a *ask) (any, error) {
	from := a.record("from")
	to := a.record("to")
	offset := a.count("offset", 0, 1<<31-1)
	limit := a.count("limit", 100, maxRows)
	component := a.text("component")
	return answer(a, h.far, func() (doc *diffDoc, err error) {
		v := h.far.view
		if err := h.far.reach(a.ctx, max(from, to)); err != nil {
			return nil, err
		}
		tell := func(d *inspect.Diff, _ *inspect.Commit) error {
			doc, err = diffDocOf(d, component, offset, limit)
			return err
		}
		// Changes reads as much as the tick wrote; Diff reads both states, or where their files differ.
		// Changes leaves doc valid, though not what it is made from: texts are made at once.
		if e, ok := v.Log().Find(to); ok && e.Parent == from && from != to {
			err = v.Changes(a.ctx, from, to, tell)
		} else {
			var d *inspect.Diff
			if d, err = v.Diff(a.ctx, from, to); err == nil {
				err = tell(d, nil)
			}
		}
		if err != nil {
			return nil, err
		}
		if doc.Old.Seq, doc.New.Seq = from, to; !doc.Same {
			doc.Builds = describe.BuildsOf(v.Build(from), v.Build(to)).Line("A", "B")
		}
		return doc, nil
	})
}

// diffDocOf tells d: the counts of all components, and a part of the rows of one of them; component
// is a name, ofEntities, ofAll, or "" for no rows.
func diffDocOf(d *inspect.Diff, component string, offset, limit int) (*diffDoc, error) {
	doc := &diffDoc{
		Old: stateDoc{d.OldTick, 0}, New: stateDoc{d.NewTick, 0}, Same: d.Same(),
		Created: len(d.Registry.Created), Destroyed: len(d.Registry.Destroyed), Moved: len(d.Registry.Moved),
		Schema:     describe.Listed(d.Schema[:min(len(d.Schema), maxListed)], func(s inspect.SchemaDiff) schemaDiff { return schemaDiff(s) }),
		Components: describe.CountsOf(d), Listed: component, Offset: offset, Rows: []differDoc{},
	}
	if component == "" {
		return doc, nil
	}
	all := describe.Differences(d, false, func(of string) bool { return component == ofAll || component == cmp.Or(of, ofEntities) })
	doc.Total = len(all)
	for _, x := range all[min(offset, len(all)):min(offset+limit, len(all))] {
		row, err := differDocOf(x)
		if err != nil {
			return nil, err
		}
		doc.Rows = append(doc.Rows, row)
	}
	return doc, nil
}

// differDocOf tells one difference: of a row that changed, the fields as well; of an entity that was
// created or destroyed, that alone.
func differDocOf(x describe.Difference) (doc differDoc, err error) {
	doc.Change = x.Change
	if doc.Entity, doc.Component = x.Names(); x.Component == nil {
		return doc, nil
	}
	before, after, err := x.Values()
	if err != nil {
		return doc, err
	}
	doc.Old, doc.New = versus(before, after)
	if x.Change == "changed" {
		fields, err := x.Component.Fields(x.Row)
		if err != nil {
			return doc, err
		}
		doc.Fields = changes(fields)
	}
	return doc, nil
}
