package web

import (
	"github.com/stet-ecs/stet/ecs"

	"github.com/stet-ecs/stet/internal/describe"
)

// The arrays of a component as they lie in memory, for whoever wonders about rows and gaps: sparse
// leads from an index to a row, dense from a row back to its entity. A part of each is told; the
// two have starts of their own, since they are scrolled by themselves.
//
//	sparse   index: │ 2 │ - │ 0 │ … told from index on
//	dense    row:   │ 2v1 │ 5v3 │ 0v1 │ … told from row on, each with its value

// arraysDoc is a part of the arrays of a component, as they lie.
type arraysDoc struct {
	stateDoc
	Component string    `json:"component"`
	Kind      string    `json:"kind"`
	Width     int       `json:"width"` // Bytes of a row; -1: rows vary.
	Rows      int       `json:"rows"`
	Gaps      int       `json:"gaps"`    // Rows of no entity.
	Indices   int       `json:"indices"` // Length of the sparse array.
	Row       int       `json:"row"`     // The first of dense and data.
	Index     int       `json:"index"`   // The first of sparse.
	Dense     []laidDoc `json:"dense"`
	Sparse    []int     `json:"sparse"` // -1: no row.
}

// A laidDoc is a row: an entity and its value.
type laidDoc struct {
	Entity string `json:"entity"` // "": a gap, or a resource.
	Value  string `json:"value"`
}

// arrays tells how a component lies at a record.
func (h *shown) arrays(a *ask) (any, error) {
	seq := a.record("record")
	row := a.count("row", 0, 1<<31-1)
	index := a.count("index", 0, 1<<31-1)
	limit := a.count("limit", 64, maxRows)
	name := a.text("component")
	d := a.desk(h)
	return answer(a, d, func() (*arraysDoc, error) {
		im, err := d.state(a.ctx, seq)
		if err != nil {
			return nil, err
		}
		c := im.Find(name)
		if c == nil {
			return nil, fail(codeNotFound, "no component %q", name)
		}
		doc := &arraysDoc{
			stateDoc: stateDoc{im.Tick, seq}, Component: name, Kind: describe.Kind(c.Layout, c.Resource), Width: c.Width, Rows: c.Len(), Gaps: c.Gaps,
			Row: row, Index: index, Dense: []laidDoc{}, Sparse: []int{},
		}
		for i := row; i < min(row+limit, c.Len()); i++ { // None, if row is behind the end.
			v, err := c.Value(i)
			if err != nil {
				return nil, err
			}
			laid := laidDoc{Value: cut(v.String(), maxText)}
			if i < len(c.Entities) && c.Entities[i] != ecs.Vacant {
				laid.Entity = c.Entities[i].String()
			}
			doc.Dense = append(doc.Dense, laid)
		}
		if !c.Resource {
			sparse := c.Sparse()
			doc.Indices = len(sparse)
			doc.Sparse = append(doc.Sparse, sparse[min(index, len(sparse)):min(index+limit, len(sparse))]...)
		}
		return doc, nil
	})
}
