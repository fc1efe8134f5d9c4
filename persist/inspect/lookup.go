package inspect

import (
	"sync/atomic"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// An entity is looked up in two steps, each of which reads a page the first time:
//
//	index ──page of sparse──▶ row ──page of values──▶ the row, encoded

// Lookup returns a function that returns what an entity that is alive has of c, which is no
// resource: encoded, and whether it has it. Several goroutines may call it.
//
// It is for entities in any order, as those are that others refer to: a page is kept once it was
// read, so that it takes no more memory than the column at worst, and nothing for the others.
func (s *State) Lookup(c *Component) func(e ecs.Entity) (row []byte, has bool, err error) {
	col := s.column(c)
	if col.settled {
		return func(e ecs.Entity) ([]byte, bool, error) {
			row := c.Find(e)
			if row < 0 {
				return nil, false, nil
			}
			return c.Row(row), true, nil
		}
	}
	l := &lookup{
		stored: col,
		sparse: make([]atomic.Pointer[[]int32], col.sparse.Pages()),
		values: make([]atomic.Pointer[pageRows], col.data.Pages()),
	}
	return l.of
}

// A lookup has the pages of a column that were read so far. Two goroutines may read the same one
// for the first time: either may be kept.
type lookup struct {
	*stored
	sparse []atomic.Pointer[[]int32]
	values []atomic.Pointer[pageRows]
}

// of returns what e has, and whether it has it.
func (l *lookup) of(e ecs.Entity) (row []byte, has bool, err error) {
	n, err := l.find(e.Index())
	if err != nil || n < 0 || l.Width == 0 { // Of a tag: only whether it has it.
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

// find returns the row of an index, or -1. An entity that is alive is the one that the row belongs to:
// no other one with its index is, so dense need not be read.
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
