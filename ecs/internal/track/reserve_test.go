package track

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// Ten components are thirty streams, and a line of the first-level cache has eight to
// twelve places.
func TestColumnsBeginInDifferentLines(t *testing.T) {
	const columns, rows = 30, 10_000
	clock := new(Clock)
	lines := map[uintptr]bool{}
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
		lines[uintptr(unsafe.Pointer(&c.Live[0]))%4096/64] = true
	}
	require.Len(t, lines, columns)

	tag := new(Column[struct{}])
	tag.Init(clock, false)
	tag.Reserve(1 << 20)
	require.Len(t, tag.Live, 1<<20)
}
