package main

import (
	"github.com/spf13/cobra"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist"
)

// arraysDoc is what arrays --json prints: sparse leads from the index of an
// entity to its row, dense and data go by row.
type arraysDoc struct {
	stateDoc
	Component string         `json:"component"`
	Kind      string         `json:"kind"`    // component, tag or resource.
	Rows      int            `json:"rows"`    // In dense and data.
	Indices   int            `json:"indices"` // In sparse.
	Sparse    []int          `json:"sparse"`  // -1: no row. Up to the highest index that has one, or --limit.
	Dense     []string       `json:"dense"`   // Entities. At most --limit; empty for a resource.
	Data      []layout.Value `json:"data"`    // At most --limit.
}

func newArrays(a *app) *cobra.Command {
	var at point
	var l limit
	cmd := &cobra.Command{
		Use:   "arrays STORE COMPONENT",
		Short: "Show the sparse, dense and data arrays of a component as they lie",
		Example: `  ecsdump arrays D Position
  ecsdump arrays D Position --at 1200 --limit 20`,
		Args: positional(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.read(cmd.Context(), args[0], func(s *source) error {
				im, err := s.state(cmd.Context(), at)
				if err != nil {
					return err
				}
				c, err := s.component(im, args[1])
				if err != nil {
					return err
				}
				if a.json {
					return a.arraysJSON(im, c, l)
				}
				return a.arrays(im, c, l)
			})
		},
	}
	at.flag(cmd)
	l.flag(cmd, 0, "rows, and sparse entries")
	return cmd
}

func (a *app) arraysJSON(im state, c *persist.Component, l limit) error {
	sparse := c.Sparse()
	doc := arraysDoc{
		stateDoc: im.doc(), Component: c.Name, Kind: kind(c), Rows: c.Len(), Indices: len(sparse),
		Dense: []string{}, Data: []layout.Value{},
	}
	entries, _ := l.of(len(sparse))
	doc.Sparse = append([]int{}, sparse[:entries]...)
	rows, _ := l.of(c.Len())
	for row := range rows {
		v, err := c.Value(row)
		if err != nil {
			return err
		}
		doc.Data = append(doc.Data, v)
		if !c.Resource {
			doc.Dense = append(doc.Dense, entityOrGap(c.Entities[row]))
		}
	}
	return a.document(doc)
}

func (a *app) arrays(im state, c *persist.Component, l limit) error {
	a.line("%s %s at %v: %s", kind(c), c.Name, im, count(c.Len(), "row", "rows"))
	a.line("")
	if err := a.denseAndData(c, l); err != nil || c.Resource {
		return err
	}
	a.line("")
	return a.sparse(c, l)
}

func (a *app) denseAndData(c *persist.Component, l limit) error {
	g := a.grid(">ROW", "DENSE", "DATA")
	rows, more := l.of(c.Len())
	for row := range rows {
		v, err := c.Value(row)
		if err != nil {
			return err
		}
		entity, data := "", v.String()
		if !c.Resource {
			entity = entityOrGap(c.Entities[row])
		}
		if c.Layout.Width() == 0 {
			data = ""
		}
		g.row(row, entity, data)
	}
	if err := g.end(); err != nil {
		return err
	}
	if more > 0 {
		a.line("%d more of %s; --limit 0 prints all", more, count(c.Len(), "row", "rows"))
	}
	return nil
}

// entityOrGap returns e as text, or "-" for a row without an entity.
func entityOrGap(e ecs.Entity) string {
	if e == ecs.Vacant {
		return "-"
	}
	return e.String()
}

func (a *app) sparse(c *persist.Component, l limit) error {
	sparse := c.Sparse()
	g := a.grid(">INDEX", ">SPARSE")
	entries, more := l.of(len(sparse))
	for index, row := range sparse[:entries] {
		if row < 0 {
			g.row(index, "-")
		} else {
			g.row(index, row)
		}
	}
	if err := g.end(); err != nil {
		return err
	}
	if more > 0 {
		a.line("%d more of %s; --limit 0 prints all", more, count(len(sparse), "index", "indices"))
	}
	return nil
}
