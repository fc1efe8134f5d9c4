package web

import (
	"cmp"
	"slices"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
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

// A patchDoc says what a tick did to a component. Those of a destroyed entity do not count as
// removed.
type patchDoc struct {
	Name    string `json:"name"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
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
			stateDoc: stateDoc{c.Tick, seq}, Parent: c.Parent, Time: known(c.Time), Bytes: c.Bytes, Rewound: !h.near.line.leadsOn(seq),
			Marks: append([]string{}, c.Marks...), Components: []patchDoc{}, Entities: []string{},
		}
		doc.Inputs = listed(c.Inputs[:min(len(c.Inputs), maxInputs)], func(in inspect.Input) inputDoc {
			return inputDoc{in.Name, quoted(in.Data), len(in.Data)}
		})
		doc.count(c, ops)
		return doc, nil
	})
}

// count counts what c did, by component.
func (d *tickDoc) count(c *inspect.Commit, ops []inspect.Op) {
	patches := map[int]*patchDoc{}
	at := func(n int) *patchDoc {
		if patches[n] == nil {
			patches[n] = &patchDoc{Name: c.Component(n)}
		}
		return patches[n]
	}
	for _, r := range c.Rows {
		p := at(r.Component)
		p.Before, p.After, p.Written, p.Bytes = r.Before, r.After, r.Written, r.Bytes
	}
	for _, op := range ops {
		switch {
		case op.Kind == raw.OpCreate:
			d.Created++
			d.name("+" + op.Entity.String())
		case op.Kind == raw.OpDestroy:
			d.Destroyed++
			d.name("-" + op.Entity.String())
		case op.Kind == raw.OpClear && op.Component < 0:
			d.Cleared++
		case op.Component < 0: // The format does not keep it out.
		case op.Kind == raw.OpClear:
			at(op.Component).Cleared++
		case op.Kind == raw.OpAdd:
			at(op.Component).Added++
		case op.Kind == raw.OpRemove:
			at(op.Component).Removed++
		}
	}
	for _, p := range patches {
		d.Components = append(d.Components, *p)
	}
	slices.SortFunc(d.Components, func(a, b patchDoc) int { return cmp.Or(cmp.Compare(b.Written, a.Written), cmp.Compare(a.Name, b.Name)) })
}

func (d *tickDoc) name(entity string) {
	if len(d.Entities) < maxListed {
		d.Entities = append(d.Entities, entity)
	}
}

// diffDoc says how two states differ.
type diffDoc struct {
	Old        stateDoc     `json:"old"`
	New        stateDoc     `json:"new"`
	Same       bool         `json:"same"`
	Schema     []schemaDiff `json:"schema"`
	Created    int          `json:"created"` // Entities.
	Destroyed  int          `json:"destroyed"`
	Moved      int          `json:"moved"`
	Components []countDoc   `json:"components"`       // Those with differences.
	Listed     string       `json:"listed,omitempty"` // The component whose rows follow; * those of all.
	Total      int          `json:"total"`            // Of them,
	Offset     int          `json:"offset"`           // and how many are left out before.
	Rows       []differDoc  `json:"rows"`
}

type schemaDiff struct {
	Component string `json:"component"`
	Field     string `json:"field"`
	Old       string `json:"old"`
	New       string `json:"new"`
}

// A countDoc says in how many rows of a component two states differ.
type countDoc struct {
	Name    string `json:"name"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Changed int    `json:"changed"`
	Moved   int    `json:"moved"`
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
		describe := func(d *inspect.Diff, _ *inspect.Commit) error {
			doc, err = diffDocOf(d, component, offset, limit)
			return err
		}
		// Changes leaves doc valid, though not what it is made from: texts are made at once.
		if e, ok := v.Log().Find(to); ok && e.Parent == from && from != to {
			err = v.Changes(a.ctx, from, to, describe)
		} else {
			var d *inspect.Diff
			if d, err = v.Diff(a.ctx, from, to); err == nil {
				err = describe(d, nil)
			}
		}
		if err != nil {
			return nil, err
		}
		doc.Old.Seq, doc.New.Seq = from, to
		return doc, nil
	})
}

func diffDocOf(d *inspect.Diff, component string, offset, limit int) (*diffDoc, error) {
	doc := &diffDoc{
		Old: stateDoc{d.OldTick, 0}, New: stateDoc{d.NewTick, 0}, Same: d.Same(),
		Created: len(d.Registry.Created), Destroyed: len(d.Registry.Destroyed), Moved: len(d.Registry.Moved),
		Schema:     listed(d.Schema[:min(len(d.Schema), maxListed)], func(s inspect.SchemaDiff) schemaDiff { return schemaDiff(s) }),
		Components: []countDoc{}, Listed: component, Offset: offset, Rows: []differDoc{},
	}
	for _, c := range d.Components {
		if len(c.Rows) > 0 {
			added, removed, changed, moved := c.Count()
			doc.Components = append(doc.Components, countDoc{c.Name, added, removed, changed, moved})
		}
	}
	if component == "" {
		return doc, nil
	}
	all := differences(d, component)
	doc.Total = len(all)
	for _, x := range all[min(offset, len(all)):min(offset+limit, len(all))] {
		row, err := x.doc()
		if err != nil {
			return nil, err
		}
		doc.Rows = append(doc.Rows, row)
	}
	return doc, nil
}

// A difference is one thing that differs: an entity, or its row of a component.
type difference struct {
	entity    ecs.Entity
	change    string
	component *inspect.ComponentDiff // nil: the entity itself.
	row       inspect.RowDiff
}

// differences returns what differs in a component, by entity. What only lies in another row is
// left out.
func differences(d *inspect.Diff, component string) (all []difference) {
	if component == ofEntities || component == ofAll {
		for _, e := range d.Registry.Destroyed {
			all = append(all, difference{entity: e, change: "destroyed"})
		}
		for _, e := range d.Registry.Created {
			all = append(all, difference{entity: e, change: "created"})
		}
	}
	for _, c := range d.Components {
		if component != c.Name && component != ofAll {
			continue
		}
		for _, r := range c.Rows {
			change := "changed"
			switch {
			case r.Added():
				change = "added"
			case r.Removed():
				change = "removed"
			case !r.Changed:
				continue
			}
			all = append(all, difference{r.Entity, change, c, r})
		}
	}
	slices.SortStableFunc(all, func(a, b difference) int {
		return cmp.Or(cmp.Compare(a.entity.Index(), b.entity.Index()), cmp.Compare(a.entity.Generation(), b.entity.Generation()))
	})
	return all
}

func (x difference) doc() (doc differDoc, err error) {
	doc = differDoc{Change: x.change}
	if x.component == nil {
		doc.Entity = x.entity.String()
		return doc, nil
	}
	if doc.Component = x.component.Name; !x.component.Resource {
		doc.Entity = x.entity.String()
	}
	var before, after layout.Value
	if !x.row.Added() {
		if before, err = x.component.Old.Value(x.component.OldRow(x.row)); err != nil {
			return doc, err
		}
	}
	if !x.row.Removed() {
		if after, err = x.component.New.Value(x.component.NewRow(x.row)); err != nil {
			return doc, err
		}
	}
	doc.Old, doc.New = versus(before, after)
	if x.change == "changed" {
		fields, err := x.component.Fields(x.row)
		if err != nil {
			return doc, err
		}
		doc.Fields = changes(fields)
	}
	return doc, nil
}
