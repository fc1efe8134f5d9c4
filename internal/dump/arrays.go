package dump

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
)

// arraysDoc is what arrays --json prints: sparse leads from the index of an
// entity to its row, dense and data go by row. All three begin with --from.
type arraysDoc struct {
	stateDoc
	Component string         `json:"component"`
	Kind      string         `json:"kind"`           // component, tag or resource.
	Rows      int            `json:"rows"`           // In dense and data, all in all.
	Indices   int            `json:"indices"`        // In sparse, all in all.
	From      int            `json:"from,omitempty"` // The first row, and index, that is here.
	Sparse    []int          `json:"sparse"`         // -1: no row. Up to the highest index that has one, or --limit.
	Dense     []string       `json:"dense"`          // Entities. At most --limit; empty for a resource.
	Data      []layout.Value `json:"data"`           // At most --limit.
}

func newArrays(a *app) *cobra.Command {
	var at point
	var w window
	var text string
	cmd := &cobra.Command{
		Use:   "arrays STORE COMPONENT",
		Short: "Show the sparse, dense and data arrays of a component as they lie",
		Long: `Show the sparse, dense and data arrays of a component as they lie. Sparse leads from
the index of an entity to its row, dense says which entity has the row, and data is
what the entity has.

With --entity, show how one is looked up: it has the component if sparse[index] is
a row, and dense[row] is the entity itself. One that had the index before it, in
another generation, does not pass.`,
		Example: `  ecsdump arrays D Position
  ecsdump arrays D Position --at 1200 --from 4000 --limit 20
  ecsdump arrays D Position --entity 12v3`,
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
				if text != "" {
					return a.lookUp(s, im, c, text)
				}
				return a.arrays(s, im, c, w)
			})
		},
	}
	at.flag(cmd)
	cmd.Flags().UintVar(&w.from, "from", 0, "begin with this row, and sparse entry")
	w.limit.flag(cmd, 0, "rows, and sparse entries")
	cmd.Flags().StringVar(&text, "entity", "", "show how this entity is looked up")
	cmd.MarkFlagsMutuallyExclusive("entity", "from")
	cmd.MarkFlagsMutuallyExclusive("entity", "limit")
	return cmd
}

// A window is the part of a list to print.
type window struct {
	from  uint
	limit limit
}

// of returns the part of n things.
func (w window) of(n int) (first, end int) {
	first = int(min(uint64(w.from), uint64(n)))
	shown, _ := w.limit.of(n - first)
	return first, first + shown
}

// outside says what of n things is not in the window.
func (a *app) outside(first, end, n int, one, many string) {
	switch {
	case first > 0:
		a.Line("%d before and %d behind, of %s", first, n-end, term.Count(n, one, many))
	case end < n:
		a.Line("%d more of %s; --limit 0 prints all", n-end, term.Count(n, one, many))
	}
}

// arrays prints a window of the arrays of c.
func (a *app) arrays(s *source, im state, c *persist.Component, w window) error {
	sparse := c.Sparse()
	if n := max(c.Len(), len(sparse)); w.from > 0 && uint64(w.from) >= uint64(n) {
		err := fmt.Errorf("%s: %s has no row %d; there are %d", s.path, c.Name, w.from, c.Len())
		return &failure{exitNotFound, err, command("arrays", s.path, c.Name)}
	}
	if a.json {
		return a.arraysJSON(im, c, sparse, w)
	}
	a.Line("%s %s at %v: %s", kind(c), c.Name, im, term.Count(c.Len(), "row", "rows"))
	a.Line("")
	if err := a.denseAndData(c, w); err != nil || c.Resource {
		return err
	}
	a.Line("")
	return a.sparse(sparse, w)
}

func (a *app) arraysJSON(im state, c *persist.Component, sparse []int, w window) error {
	doc := arraysDoc{
		stateDoc: im.doc(), Component: c.Name, Kind: kind(c), Rows: c.Len(), Indices: len(sparse),
		From: int(w.from), Dense: []string{}, Data: []layout.Value{},
	}
	first, end := w.of(len(sparse))
	doc.Sparse = append([]int{}, sparse[first:end]...)
	first, end = w.of(c.Len())
	for row := first; row < end; row++ {
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

func (a *app) denseAndData(c *persist.Component, w window) error {
	g := a.Grid(">ROW", "DENSE", "DATA")
	first, end := w.of(c.Len())
	for row := first; row < end; row++ {
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
		g.Row(row, entity, data)
	}
	g.Flush()
	a.outside(first, end, c.Len(), "row", "rows")
	return nil
}

// entityOrGap returns e as text, or "-" for a row without an entity.
func entityOrGap(e ecs.Entity) string {
	if e == ecs.Vacant {
		return "-"
	}
	return e.String()
}

func (a *app) sparse(sparse []int, w window) error {
	g := a.Grid(">INDEX", ">SPARSE")
	first, end := w.of(len(sparse))
	for index := first; index < end; index++ {
		if row := sparse[index]; row < 0 {
			g.Row(index, "-")
		} else {
			g.Row(index, row)
		}
	}
	g.Flush()
	a.outside(first, end, len(sparse), "index", "indices")
	return nil
}
