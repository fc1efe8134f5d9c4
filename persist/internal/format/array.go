package format

import (
	"encoding/binary"
	"iter"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
)

// An Array describes one array of a state in snapshot files: rows, split into pages. Readers and
// writers of pages use it. The manifest stores only the number of rows. An Array computes from it
// which pages exist, and how many rows each page has.
//
//	kind          row i contains               rows in a page
//	SparseArray   the row of entity index i    4096, encoded by AppendSparsePage
//	DenseArray    the entity of row i          4096, of 8 bytes each
//	DataArray     the value of row i           as many as DataPageRows gave the writer
type Array struct {
	Component int // Component number. -1 means the registry of entities.
	Kind      int // SparseArray, DenseArray or DataArray.
	Rows      int // Number of rows, or of entries in a sparse array.
	PageRows  int // Rows in a page. The last page may have fewer.
	Width     int // Bytes of a row. -1 means that the width varies.
}

// Registry returns the array of all entities.
func (m *Manifest) Registry() Array { return Array{-1, DenseArray, m.Total, PageRows, 8} }

// Array returns an array of component number n. A missing array has no rows. A resource has no
// sparse and dense arrays, and rows of zero bytes have no data array.
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

// Arrays iterates over all arrays, ordered by column.
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

// ArrayOf returns the array of page k, and whether k belongs to an array.
func (m *Manifest) ArrayOf(k pagefile.Key) (a Array, ok bool) {
	// k was read from a file, so the column may be any number. With 64 bits, the differences do not
	// overflow.
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

// Pages returns the number of pages.
func (a *Array) Pages() int { return (a.Rows + a.PageRows - 1) / a.PageRows }

// Span returns the rows [lo, hi) of a page.
func (a *Array) Span(page int) (lo, hi int) {
	return page * a.PageRows, min((page+1)*a.PageRows, a.Rows)
}

// EntityAt returns entity i in a page of entities.
func EntityAt(content []byte, i int) ecs.Entity {
	return ecs.Entity(binary.LittleEndian.Uint64(content[8*i:]))
}

// SparseOf returns the sparse array of a storage whose rows have these entities. The entry of an
// entity index is the row of that entity, or NoRow. A vacant row has no entity, so no entry refers
// to it.
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

// CheckRegistry returns an error if the sizes of the registry contradict each other.
func (m *Manifest) CheckRegistry() error { return CheckSizes(m.Alive, m.Free, m.Total) }
