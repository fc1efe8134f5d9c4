package track

import "unsafe"

// Reserve extends Live to at least the given number of rows. New rows are zero.
func (c *Column[T]) Reserve(rows int) {
	if rows > len(c.Live) {
		c.resize(rows)
	}
}

// Move copies the rows to newly allocated memory.
func (c *Column[T]) Move() { c.resize(len(c.Live)) }

func (c *Column[T]) resize(rows int) {
	front := c.lead(rows)
	live := make([]T, front+rows)[front:]
	copy(live, c.Live)
	c.Live, c.front = live, front
}

// Take replaces the live rows by the given slice, without a copy.
func (c *Column[T]) Take(rows []T) { c.Live, c.front = rows, 0 }

// Bytes returns the memory size of the live rows. It includes the free rows in front of them and
// the spare capacity. Go's allocator gives sizes above 32 KiB in whole pages, so Bytes rounds them
// up.
func (c *Column[T]) Bytes() int64 {
	const small, page = 32 << 10, 8 << 10
	var zero T
	bytes := int64(c.front+cap(c.Live)) * int64(unsafe.Sizeof(zero))
	if bytes > small {
		bytes = (bytes + page - 1) / page * page
	}
	return bytes
}

const (
	// Columns of at least this many bytes have free rows in front.
	leadFrom  = 8 << 10
	leadLines = 3
)

// lead returns the number of rows to leave free in front of the live rows. The free rows make the
// columns of a storage start in the first, second or third cache line of a page.
//
// If all columns started at a page boundary, row 0 of every column would belong to the same set of
// the first-level cache. A set holds only eight to twelve lines. An entity with ten components
// needs more. If columns started in more than three different lines, destroying an entity would
// take up to twice as long in large worlds.
func (c *Column[T]) lead(rows int) int {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if rows*size < leadFrom {
		return 0
	}
	return min(c.Log.number/2%leadLines*max(cacheLine/size, 1), rows/8)
}

// Reserve allocates marks for the given number of rows in every column. Without Reserve, Reopen
// allocates the marks before the first save.
func (t *Tracker) Reserve(rows int) {
	if !t.Exempt {
		for _, c := range t.columns {
			c.reserve(rows)
		}
	}
}

// reserve does nothing, because the marks of entries are stored in their pages.
func (s *Sparse) reserve(int) {}
