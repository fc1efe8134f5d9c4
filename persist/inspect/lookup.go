package inspect

import (
	"sync/atomic"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// To look up an entity takes two steps. A page of the sparse array gives the row of the entity's
// index. A page of values then has the encoded row. Each page is read on first use.

// Lookup returns a function that looks up the encoded value of c for a live entity. The function
// also reports whether the entity has c. c must not be a resource. Several goroutines may call
// the function.
//
// The function is meant for entities in random order, such as the targets of references. It
// caches every page that it reads, so at worst it needs as much memory as the column.
func (s *State) Lookup(c *Component) func(e ecs.Entity) (row []byte, has bool, err error) {
	col := s.column(c.rows)
	if col.inMemory {
		return func(e ecs.Entity) ([]byte, bool, error) {
			row := col.Find(e)
			if row < 0 {
				return nil, false, nil
			}
			return col.Component.Row(row), true, nil
		}
	}
	l := &lookup{
		stateColumn: col,
		sparse:      make([]atomic.Pointer[[]int32], col.sparse.Pages()),
		values:      make([]atomic.Pointer[pageRows], col.data.Pages()),
	}
	return l.of
}

// A lookup caches the pages of a column that it has read. Two goroutines may read the same page
// at the same time; one of the two copies stays in the cache.
type lookup struct {
	*stateColumn
	sparse []atomic.Pointer[[]int32]
	values []atomic.Pointer[pageRows]
}

// of returns the value of e, and whether e has the component.
func (l *lookup) of(e ecs.Entity) (row []byte, has bool, err error) {
	n, err := l.find(e.Index())
	// A tag has no value.
	if err != nil || n < 0 || l.Width == 0 {
		return nil, n >= 0 && err == nil, err
	}
	page := n / l.data.PageRows
	values := l.values[page].Load()
	if values == nil {
		read, err := l.page(page)
		if err != nil {
			return nil, false, err
		}
		values = &read
		l.values[page].Store(values)
	}
	return values.row(n % l.data.PageRows), true, nil
}

// find returns the row of a live entity's index, or -1. Only one live entity has the index, so find
// need not compare the entity with the dense array.
func (l *lookup) find(index uint32) (row int, err error) {
	page := int(index / format.PageRows)
	if page >= len(l.sparse) {
		return -1, nil
	}
	rows := l.sparse[page].Load()
	if rows == nil {
		read, err := l.readSparse(page, nil)
		if err != nil {
			return -1, err
		}
		rows = &read
		l.sparse[page].Store(rows)
	}
	if len(*rows) == 0 {
		return -1, nil
	}
	return int((*rows)[index%format.PageRows]), nil
}
