package web

import (
	"cmp"
	"slices"
	"time"

	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/persist/inspect"
)

// This file answers requests for the changes of a tick, and for the differences of two states.
// The changes of a tick are in its record, so no state is loaded. If one state is the parent of
// the other, only the rows that the tick wrote are compared. Counts cover all rows. Rows are
// listed in sections, because a browser cannot show a million rows at once.

// tickDoc describes a tick from the journal, without a state.
type tickDoc struct {
	stateDoc
	// Parent is the seq of the parent record, or 0.
	Parent    uint64     `json:"parent"`
	Time      *time.Time `json:"time"`
	Bytes     int        `json:"bytes"`
	Rewound   bool       `json:"rewound"`
	Created   int        `json:"created"` // Number of created entities.
	Destroyed int        `json:"destroyed"`
	// Cleared is how often the tick cleared the whole world.
	Cleared    int        `json:"cleared"`
	Marks      []string   `json:"marks"`
	Inputs     []inputDoc `json:"inputs"`
	Components []patchDoc `json:"components"` // Components that changed.
	// Entities has the first created and destroyed entities, with the prefix + or -.
	Entities []string `json:"entities"`
}

// An inputDoc is an input of a tick.
type inputDoc struct {
	Name string `json:"name"`
	Text string `json:"text"` // Data as a Go string literal.
	Size int    `json:"size"`
}

// A patchDoc describes the changes of a tick to a component.
type patchDoc struct {
	Name  string `json:"name"`
	Added int    `json:"added"`
	// Removed includes rows of destroyed entities and cleared rows.
	Removed int `json:"removed"`
	Cleared int `json:"cleared"`
	// Before and After are the numbers of rows before and after the tick.
	Before  int `json:"before"`
	After   int `json:"after"`
	Written int `json:"written"` // Rows that were added, set or moved.
	Bytes   int `json:"bytes"`
}

const (
	maxInputs = 100
	maxListed = 200
)

// tick describes the tick of a record.
func (h *server) tick(a *params) (any, error) {
	seq := a.record("record")
	return answerAt(a, h.fast, seq, func() (*tickDoc, error) {
		commits, err := h.fast.view.Commits(seq, seq)
		if err != nil {
			return nil, err
		}
		if len(commits) == 0 {
			return nil, fail(codeNotFound, "the journal has no record %d: only a snapshot has its state", seq)
		}
		c := &commits[0]
		ops, err := c.Ops()
		if err != nil {
			return nil, err
		}
		doc := &tickDoc{
			stateDoc: describe.State(c.Tick, seq), Parent: c.Parent, Time: describe.Known(c.Time), Bytes: c.Bytes, Rewound: !h.fast.line.leadsToNewest(seq),
			Marks: append([]string{}, c.Marks...), Components: []patchDoc{}, Entities: []string{},
		}
		doc.Inputs = describe.Listed(c.Inputs[:min(len(c.Inputs), maxInputs)], func(in inspect.Input) inputDoc {
			return inputDoc{in.Name, quoted(in.Data), len(in.Data)}
		})
		doc.count(c, ops)
		return doc, nil
	})
}

// count fills in the counts by component. The components with the most written rows come first.
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

// name adds an entity to Entities, unless the list is full.
func (d *tickDoc) name(entity string) {
	if len(d.Entities) < maxListed {
		d.Entities = append(d.Entities, entity)
	}
}

// diffDoc describes the differences of two states.
type diffDoc struct {
	Old  stateDoc `json:"old"`
	New  stateDoc `json:"new"`
	Same bool     `json:"same"`
	// Builds names the two builds that wrote the states. It is empty if the builds or the states
	// are equal.
	Builds     string               `json:"builds,omitempty"`
	Schema     []schemaDiff         `json:"schema"`
	Created    int                  `json:"created"` // Number of created entities.
	Destroyed  int                  `json:"destroyed"`
	Moved      int                  `json:"moved"`
	Components []describe.RowCounts `json:"components"` // Components with differences.
	// Listed is the component whose rows are listed, or * for all components.
	Listed string `json:"listed,omitempty"`
	// Total is the number of rows of Listed in all sections.
	Total int `json:"total"`
	// Offset is the number of rows before the first listed one.
	Offset int         `json:"offset"`
	Rows   []differDoc `json:"rows"`
}

// A schemaDiff describes a type that differs. It has the fields of inspect.SchemaDiff.
type schemaDiff struct {
	Component string `json:"component"`
	Field     string `json:"field"`
	Old       string `json:"old"`
	New       string `json:"new"`
}

// A differDoc is a single difference.
type differDoc struct {
	Entity string `json:"entity,omitempty"` // Missing for a resource.
	// Component is missing if the entity itself was created or destroyed.
	Component string `json:"component,omitempty"`
	// Change is created, destroyed, added, removed or changed.
	Change string      `json:"change"`
	Old    string      `json:"old,omitempty"`
	New    string      `json:"new,omitempty"`
	Fields []changeDoc `json:"fields,omitempty"`
}

// Special values of the parameter "component". ofEntities selects the created and destroyed
// entities. ofAll selects all rows.
const (
	ofEntities = "(entities)"
	ofAll      = "*"
)

// diff describes the differences of the states after two records. If one record is the parent of
// the other, diff reads only the rows that the tick wrote.
func (h *server) diff(a *params) (any, error) {
	from := a.record("from")
	to := a.record("to")
	offset := a.count("offset", 0, 1<<31-1)
	limit := a.count("limit", 100, maxRows)
	component := a.text("component")
	return answerAt(a, h.slow, max(from, to), func() (doc *diffDoc, err error) {
		v := h.slow.view
		tell := func(d *inspect.Diff, _ *inspect.Commit) error {
			doc, err = diffDocOf(d, component, offset, limit)
			return err
		}
		// Changes reads only the rows that the tick wrote. Diff compares the two states. The
		// argument of tell() may be valid only until tell() returns, so doc contains texts and no
		// references to it.
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

// diffDocOf converts d. The document has the counts of all components, and lists rows of one
// component. The parameter component is the name of that component, ofEntities, ofAll, or "" for no
// rows.
func diffDocOf(d *inspect.Diff, component string, offset, limit int) (doc *diffDoc, err error) {
	doc = &diffDoc{
		Old: describe.State(d.OldTick, 0), New: describe.State(d.NewTick, 0), Same: d.Same(),
		Created: len(d.Registry.Created), Destroyed: len(d.Registry.Destroyed), Moved: len(d.Registry.Moved),
		Schema:     describe.Listed(d.Schema[:min(len(d.Schema), maxListed)], func(s inspect.SchemaDiff) schemaDiff { return schemaDiff(s) }),
		Components: describe.CountsOf(d), Listed: component, Offset: offset, Rows: []differDoc{},
	}
	if component == "" {
		return doc, nil
	}
	all := describe.Differences(d, false, func(of string) bool { return component == ofAll || component == cmp.Or(of, ofEntities) })
	doc.Total = len(all)
	doc.Rows, err = describe.TryListed(all[min(offset, len(all)):min(offset+limit, len(all))], differDocOf)
	return doc, err
}

// differDocOf converts one difference. A changed row has its changed fields. A created or destroyed
// entity has only its name.
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
