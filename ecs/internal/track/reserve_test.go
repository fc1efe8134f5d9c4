package track

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// Columns start in three different cache lines of a page. An entity with ten components uses thirty
// arrays. The first-level cache can hold only eight to twelve lines that have the same position in
// their pages.
func TestColumn_StartsAtThreeCacheLines(t *testing.T) {
	const columns, rows = 30, 10_000
	clock := new(Clock)
	lines := map[uintptr]int{}
	for k := range columns {
		c := new(Column[[2]uint64])
		c.Init(clock, false)
		c.Reserve(8)
		c.Live[7] = [2]uint64{uint64(k), 1}
		c.Reserve(rows)
		require.Len(t, c.Live, rows)
		require.Equal(t, rows, cap(c.Live))
		require.Equal(t, [2]uint64{uint64(k), 1}, c.Live[7], "reserving keeps rows")
		require.Zero(t, c.Live[rows-1])
		lines[uintptr(unsafe.Pointer(&c.Live[0]))%4096/64]++
	}
	require.Equal(t, map[uintptr]int{0: 10, 1: 10, 2: 10}, lines)

	tag := new(Column[struct{}])
	tag.Init(clock, false)
	tag.Reserve(1 << 20)
	require.Len(t, tag.Live, 1<<20)
}

// Small columns start at several line numbers, too. Their exact addresses also depend on the
// allocator.
func TestReserve_SmallColumnsStartApart(t *testing.T) {
	clock := new(Clock)
	columns, pages := map[uintptr]bool{}, map[uintptr]bool{}
	for k := range 16 {
		c := new(Column[uint64])
		c.Init(clock, false)
		c.Reserve(1024)
		columns[uintptr(unsafe.Pointer(&c.Live[0]))%4096/64] = true
		s := new(Sparse)
		s.Init(clock)
		p := s.Grow(uint32(k))
		require.Equal(t, NoRow, slices.Min(p.Rows[:]))
		require.Equal(t, NoRow, slices.Max(p.Rows[:]))
		require.Zero(t, p.marks)
		pages[uintptr(unsafe.Pointer(p))%4096/64] = true
	}
	require.GreaterOrEqual(t, len(columns), 3)
	require.GreaterOrEqual(t, len(pages), 4)
}

func TestColumn_BytesIncludeFrontRows(t *testing.T) {
	clock := new(Clock)
	for number := range 4 {
		c := new(Column[uint64])
		c.Init(clock, false)
		c.Reserve(1024)
		require.EqualValues(t, 8192+number/2*cacheLine, c.Bytes())
		c.Reserve(4096)
		require.EqualValues(t, 32768+number/2*8192, c.Bytes(), "a page of the allocator more")
		c.Take(make([]uint64, 5, 10))
		require.EqualValues(t, 80, c.Bytes())
	}
}
