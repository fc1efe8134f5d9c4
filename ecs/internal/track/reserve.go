package track

import "unsafe"

// Reserve makes Live at least so many rows long. Those that were not there are zero.
func (c *Column[T]) Reserve(rows int) {
	if rows > len(c.Live) {
		c.resize(rows)
	}
}

// Move puts the rows into other memory.
func (c *Column[T]) Move() { c.resize(len(c.Live)) }

func (c *Column[T]) resize(rows int) {
	front := c.lead(rows)
	live := make([]T, front+rows)[front:]
	copy(live, c.Live)
	c.Live, c.front = live, front
}

// Take makes rows the live ones. It keeps them.
func (c *Column[T]) Take(rows []T) { c.Live, c.front = rows, 0 }

// Bytes returns what the live rows take, with the room in front and for more. Of more than 32 KiB
// Go's allocator gives whole pages.
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
	leadFrom  = 8 << 10 // Of so many bytes and more.
	leadLines = 3
)

// lead returns how many rows to leave free in front of so many. Where all columns began at a
// page, their rows of one number would lie in places of the first-level cache that have room
// for eight to twelve lines: too few for an entity with ten components. So those of one
// storage begin in the first, second or third line of a page. Not further behind: the more
// lines they are spread over, the longer it takes to destroy an entity where columns do not
// fit the second-level cache, up to twice as long.
func (c *Column[T]) lead(rows int) int {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if rows*size < leadFrom {
		return 0
	}
	return min(c.Log.number/2%leadLines*max(cacheLine/size, 1), rows/8)
}

// Reserve makes marks for so many rows of every column, as Open would when it is the first
// to save some: in the step in which the rows are made, which costs more.
func (t *Tracker) Reserve(rows int) {
	if !t.Exempt {
		for _, c := range t.columns {
			c.reserve(rows)
		}
	}
}

func (l *Log) reserve(rows int) {
	if need := (rows + 63) / 64; need > len(l.marks) {
		marks := make([]mark, need)
		copy(marks, l.marks)
		l.marks = marks
	}
}

// reserve does nothing: marks of entries lie in their pages.
func (s *Sparse) reserve(int) {}
