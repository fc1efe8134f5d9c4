package web

import (
	"github.com/stet-ecs/stet/ecs"

	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/persist/inspect"
)

// This file shows the arrays of a component as a storage holds them. The sparse array maps an index
// to a row, and the dense array maps a row to its entity. A request returns a section of each
// array. The section of sparse starts at Index. The section of dense starts at Row, and has the
// value of each row. The page scrolls the two sections separately.

// arraysDoc is a section of the arrays of a component.
type arraysDoc struct {
	stateDoc
	Component string        `json:"component"`
	Kind      string        `json:"kind"`
	Width     int           `json:"width"` // Bytes of a row, or -1 if rows vary in size.
	Rows      int           `json:"rows"`
	Gaps      int           `json:"gaps"`    // Number of rows without an entity.
	Indices   int           `json:"indices"` // Length of the sparse array.
	Row       int           `json:"row"`     // The first row of Dense.
	Index     int           `json:"index"`   // The first index of Sparse.
	Dense     []denseRowDoc `json:"dense"`
	Sparse    []int         `json:"sparse"` // -1 for an index without a row.
}

// A denseRowDoc is a row: an entity and its value.
type denseRowDoc struct {
	Entity string `json:"entity"` // "" for a gap or a resource.
	Value  string `json:"value"`
}

// arrays returns a section of the arrays of a component, in the state after a record.
func (h *server) arrays(a *params) (any, error) {
	seq := a.record("record")
	row := a.count("row", 0, 1<<31-1)
	index := a.count("index", 0, 1<<31-1)
	limit := a.count("limit", 64, maxRows)
	name := a.text("component")
	return answerState(a, a.session(h), seq, func(st *inspect.State) (*arraysDoc, error) {
		c := st.Outline().Find(name)
		if c == nil {
			return nil, fail(codeNotFound, "no component %q", name)
		}
		doc := &arraysDoc{
			stateDoc: describe.State(st.Outline().Tick, seq), Component: name, Kind: describe.Kind(c.Layout, c.Resource), Width: c.Layout.Width(), Rows: c.Len(),
			Row: row, Index: index, Dense: []denseRowDoc{}, Sparse: []int{},
		}
		return doc, doc.fill(st, c, limit)
	})
}

// fill adds a section of rows and a section of indices of c, each of at most the given length. The
// sections start at d.Row and d.Index.
func (d *arraysDoc) fill(st *inspect.State, c *inspect.Component, limit int) (err error) {
	for i := d.Row; i < min(d.Row+limit, c.Len()); i++ {
		v, err := st.Value(c, i)
		if err != nil {
			return err
		}
		laid := denseRowDoc{Value: cut(v.String(), maxText)}
		if !c.Resource {
			e, err := st.Holder(c, i)
			if err != nil {
				return err
			}
			if e != ecs.Vacant {
				laid.Entity = e.String()
			}
		}
		d.Dense = append(d.Dense, laid)
	}
	if c.Resource {
		return nil
	}
	if d.Gaps, err = st.Gaps(c); err != nil {
		return err
	}
	if d.Indices, err = st.Span(c); err != nil {
		return err
	}
	sparse, err := st.Sparse(c, min(d.Index, d.Indices), min(d.Index+limit, d.Indices))
	d.Sparse = append(d.Sparse, sparse...)
	return err
}
