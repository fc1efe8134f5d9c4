package describe

import (
	"cmp"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist/inspect"
)

// RowCounts has the numbers of differing rows of a component.
type RowCounts struct {
	Name    string `json:"name"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Changed int    `json:"changed"`
	// Number of rows with another row number. A moved row with another value also counts as
	// changed.
	Moved int `json:"moved"`
}

// CountsOf returns the counts of all components that differ.
func CountsOf(diff *inspect.Diff) []RowCounts {
	counts := []RowCounts{}
	for _, c := range diff.Components {
		if len(c.Rows) > 0 {
			added, removed, changed, moved := c.Count()
			counts = append(counts, RowCounts{c.Name, added, removed, changed, moved})
		}
	}
	return counts
}

// A Difference is an entity that differs, or its row of a component.
type Difference struct {
	Entity    ecs.Entity
	Change    string                 // created, destroyed, added, removed, changed or moved.
	Component *inspect.ComponentDiff // nil if the entity itself differs.
	Row       inspect.RowDiff
}

// Differences returns the differences of two states, ordered by entity. The differences of
// resources come first. For each entity, the difference of the entity itself comes before those of
// its components.
//
// The parameter of is a filter. If of(name) is true, Differences includes the rows of this
// component. If of("") is true, it includes created, destroyed and moved entities. A nil filter
// includes everything.
//
// If the argument moved is false, Differences omits rows and entities that only have another row
// number.
func Differences(diff *inspect.Diff, moved bool, of func(component string) bool) (all []Difference) {
	if of == nil {
		of = func(string) bool { return true }
	}
	if of("") {
		for _, e := range diff.Registry.Destroyed {
			all = append(all, Difference{Entity: e, Change: "destroyed"})
		}
		for _, e := range diff.Registry.Created {
			all = append(all, Difference{Entity: e, Change: "created"})
		}
		for i := 0; moved && i < len(diff.Registry.Moved); i++ {
			m := diff.Registry.Moved[i]
			all = append(all, Difference{Entity: m.Entity, Change: "moved", Row: inspect.RowDiff{OldRow: m.OldRow, NewRow: m.NewRow}})
		}
	}
	for _, c := range diff.Components {
		for i := 0; of(c.Name) && i < len(c.Rows); i++ {
			if change := changeOf(c.Rows[i]); moved || change != "moved" {
				all = append(all, Difference{c.Rows[i].Entity, change, c, c.Rows[i]})
			}
		}
	}
	// Order the differences by entity. The sort is stable, so the components of an entity keep
	// their order. Resources have entity 0 and come first.
	slices.SortStableFunc(all, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Entity.Index(), b.Entity.Index()), cmp.Compare(a.Entity.Generation(), b.Entity.Generation()))
	})
	return all
}

// changeOf returns the kind of change of a row. A row that changed and moved counts as changed.
func changeOf(r inspect.RowDiff) string {
	switch {
	case r.Added():
		return "added"
	case r.Removed():
		return "removed"
	case r.Changed:
		return "changed"
	}
	return "moved"
}

// Names returns the entity and the component that differ. A resource has no entity. If the entity
// itself differs, component is "".
func (x Difference) Names() (entity, component string) {
	if x.Component == nil {
		return x.Entity.String(), ""
	}
	return Holder(x.Entity, x.Component.Resource), x.Component.Name
}

// Values returns the old and the new row of x. For a missing row it returns the zero Value.
func (x Difference) Values() (before, after layout.Value, err error) {
	if !x.Row.Added() {
		if before, err = x.Component.Old.Value(x.Component.OldRow(x.Row)); err != nil {
			return before, after, err
		}
	}
	if !x.Row.Removed() {
		after, err = x.Component.New.Value(x.Component.NewRow(x.Row))
	}
	return before, after, err
}
