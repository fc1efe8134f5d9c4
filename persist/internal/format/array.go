package format

import (
	"encoding/binary"
	"iter"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/pagefile"
)

// An Array is one array of a state as it lies in snapshot files: rows, cut into pages.
// Whoever writes pages or reads them goes by it: how long a page is, and whether there is one,
// follows from the sizes in the manifest and is nowhere else.
//
//	kind          rows of                    page
//	SparseArray   each index of an entity    4096 entries, as AppendSparsePage writes them
//	DenseArray    each row: its entity       4096 of 8 bytes
//	DataArray     each row: its value        as many as DataPageRows says when it is written
type Array struct {
	Component int // Its number; -1: the registry of entities.
	Kind      int // SparseArray, DenseArray or DataArray.
	Rows      int // Entries, if it is sparse.
	PageRows  int // In a page; the last one has the rest.
	Width     int // Bytes of a row; -1: they vary.
}

// Registry returns the array of all entities.
func (m *Manifest) Registry() Array { return Array{-1, DenseArray, m.Total, PageRows, 8} }

// Array returns an array of component number n. It has no rows if there is none: a
// resource has neither sparse nor dense, and rows of no bytes have no data.
func (m *Manifest) Array(n, kind int) Array {
	entry, size := &m.Schema.Components[n], m.Components[n]
	a := Array{n, kind, size.Rows, PageRows, 8}
	switch kind {
	case SparseArray:
		a.Rows, a.Width = m.Total, -1
	case DataArray:
		a.PageRows, a.Width = size.PageRows, entry.Layout.Width()
	}
	if size.Rows == 0 || entry.Resource && kind != DataArray || a.Width == 0 {
		a.Rows = 0
	}
	return a
}

// Arrays iterates over all arrays in the order of their columns.
func (m *Manifest) Arrays() iter.Seq[Array] {
	return func(yield func(Array) bool) {
		if !yield(m.Registry()) {
			return
		}
		for n := range m.Components {
			for kind := SparseArray; kind <= DataArray; kind++ {
				if !yield(m.Array(n, kind)) {
					return
				}
			}
		}
	}
}

// ArrayOf returns the array that the page k is of, if it is of one.
func (m *Manifest) ArrayOf(k pagefile.Key) (a Array, ok bool) {
	// A key comes from a file: any two numbers. In 64 bits no difference overflows.
	n, kind := (int64(k.Column)-FirstColumn)/4, (int64(k.Column)-FirstColumn)%4
	switch {
	case k.Column == RegistryColumn:
		a = m.Registry()
	case k.Column < FirstColumn || n >= int64(len(m.Components)) || kind > DataArray:
		return a, false
	default:
		a = m.Array(int(n), int(kind))
	}
	return a, int64(k.Page) < int64(a.Pages())
}

// Key returns the key of a page.
func (a *Array) Key(page int) pagefile.Key {
	if a.Component < 0 {
		return Key(RegistryColumn, page)
	}
	return Key(Column(a.Component, a.Kind), page)
}

// Pages returns how many pages there are.
func (a *Array) Pages() int { return (a.Rows + a.PageRows - 1) / a.PageRows }

// Span returns the rows [lo, hi) of a page.
func (a *Array) Span(page int) (lo, hi int) {
	return page * a.PageRows, min((page+1)*a.PageRows, a.Rows)
}

// EntityAt returns entity i of a page of entities.
func EntityAt(content []byte, i int) ecs.Entity {
	return ecs.Entity(binary.LittleEndian.Uint64(content[8*i:]))
}

// SparseOf returns the sparse array that belongs to entities, which lie in dense
// order: the row of each index, NoRow for those without. Vacant rows are nobody's.
func SparseOf(entities []ecs.Entity, indices int) []uint32 {
	sparse := make([]uint32, indices)
	for i := range sparse {
		sparse[i] = NoRow
	}
	for row, e := range entities {
		if e != ecs.Vacant {
			sparse[e.Index()] = uint32(row)
		}
	}
	return sparse
}

// CheckRegistry returns what is wrong with the sizes of the registry.
func (m *Manifest) CheckRegistry() error { return CheckSizes(m.Alive, m.Free, m.Total) }
