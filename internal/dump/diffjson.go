package dump

import (
	"encoding/json"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist"
)

// diffDoc is what diff --json prints.
type diffDoc struct {
	*firstDoc                    // With --first; nothing else if no tick differs.
	Old         diffSideDoc      `json:"old"`
	New         diffSideDoc      `json:"new"`
	Same        bool             `json:"same"`
	Schema      []typeDifference `json:"schema"`
	Entities    entitiesDiffDoc  `json:"entities"`
	Components  []rowCounts      `json:"components"`  // Those with rows that differ.
	Total       int              `json:"total"`       // Differences that the filters leave.
	Differences []differenceDoc  `json:"differences"` // Resources, then by entity; as many as --limit allows, none with --stat.
}

// A diffSideDoc names one of the two states.
type diffSideDoc struct {
	Store string `json:"store"`
	stateDoc
}

// A typeDifference is something that the types of the two states say differently.
type typeDifference struct {
	Component string `json:"component"`
	Field     string `json:"field,omitempty"` // Path of the field that is meant, or "": the component.
	Old       string `json:"old,omitempty"`   // Missing where there is none.
	New       string `json:"new,omitempty"`
}

// An entitiesDiffDoc counts entities that differ.
type entitiesDiffDoc struct {
	Created   int `json:"created"`
	Destroyed int `json:"destroyed"`
	Moved     int `json:"moved"` // In another row among all entities.
	Free      int `json:"free"`  // Indices without an entity in either state, with another generation or order.
}

// A rowCounts counts rows that differ.
type rowCounts struct {
	Name    string `json:"name"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Changed int    `json:"changed"`
	Moved   int    `json:"moved"` // In another row; they may count as changed as well.
}

// A differenceDoc is an entity, a component of an entity, or a resource that
// differs.
type differenceDoc struct {
	Entity    string         `json:"entity,omitempty"`    // Missing for a resource.
	Component string         `json:"component,omitempty"` // Missing if the entity itself is meant.
	Change    string         `json:"change"`              // created, destroyed, added, removed, changed or moved.
	OldRow    *int           `json:"old_row,omitempty"`
	NewRow    *int           `json:"new_row,omitempty"`
	Old       any            `json:"old,omitempty"` // Value of a component that was removed or changed.
	New       any            `json:"new,omitempty"` // Value of a component that was added or changed.
	Fields    []fieldDiffDoc `json:"fields,omitempty"`
}

// A fieldDiffDoc is a part of a value that differs.
type fieldDiffDoc struct {
	Path string `json:"path"` // As in Go: X, Slots[1], Counts["gold"]; "": all of it.
	Old  any    `json:"old,omitempty"`
	New  any    `json:"new,omitempty"`
}

func (d *differ) json(a *app, sides [2]diffSide, diff *persist.Diff, first *firstDoc) error {
	doc := diffDoc{
		firstDoc: first,
		Old:      sides[0].doc(), New: sides[1].doc(), Same: diff.Same(),
		Schema: []typeDifference{}, Components: []rowCounts{}, Differences: []differenceDoc{},
		Entities: entitiesDiffDoc{len(diff.Registry.Created), len(diff.Registry.Destroyed), len(diff.Registry.Moved), diff.Registry.Free},
	}
	for _, s := range diff.Schema {
		doc.Schema = append(doc.Schema, typeDifference(s))
	}
	for _, c := range diff.Components {
		if len(c.Rows) > 0 {
			added, removed, changed, moved := c.Count()
			doc.Components = append(doc.Components, rowCounts{c.Name, added, removed, changed, moved})
		}
	}
	all := differences(diff, d.order)
	doc.Total = len(all)
	shown, _ := d.limit.of(len(all))
	if d.stat {
		shown = 0
	}
	for _, x := range all[:shown] {
		e, err := x.doc()
		if err != nil {
			return err
		}
		doc.Differences = append(doc.Differences, e)
	}
	return a.document(doc)
}

func (s diffSide) doc() diffSideDoc { return diffSideDoc{s.path, stateDoc{s.tick, s.seq}} }

func (x difference) doc() (doc differenceDoc, err error) {
	doc.Change = x.change
	if x.component == nil || !x.component.Resource {
		doc.Entity = x.entity.String()
	}
	if x.change == "created" || x.change == "destroyed" {
		return doc, nil
	}
	if x.row.OldRow >= 0 {
		doc.OldRow = &x.row.OldRow
	}
	if x.row.NewRow >= 0 {
		doc.NewRow = &x.row.NewRow
	}
	if x.component == nil {
		return doc, nil
	}
	doc.Component = x.component.Name
	if x.change == "moved" {
		return doc, nil
	}
	before, after, err := x.values()
	if err != nil {
		return doc, err
	}
	doc.Old, doc.New = versusJSON(before, after)
	fields, err := x.component.Fields(x.row)
	doc.Fields = fieldDiffDocs(fields)
	return doc, err
}

func fieldDiffDocs(fields []persist.FieldDiff) (docs []fieldDiffDoc) {
	for _, f := range fields {
		before, after := versusJSON(f.Old, f.New)
		docs = append(docs, fieldDiffDoc{f.Path, before, after})
	}
	return docs
}

// versusJSON returns two values as they are marshaled, or nil for one that is not
// there; exactly, if that would be the same.
func versusJSON(a, b layout.Value) (before, after any) {
	if a.Kind() == 0 || b.Kind() == 0 || string(marshaled(a)) != string(marshaled(b)) {
		return present(a), present(b)
	}
	return json.RawMessage(a.AppendExact(nil)), json.RawMessage(b.AppendExact(nil))
}

func marshaled(v layout.Value) []byte {
	// A value always marshals.
	b, _ := v.MarshalJSON()
	return b
}

func present(v layout.Value) any {
	if v.Kind() == 0 {
		return nil
	}
	return v
}
