package layout

import (
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCodec_MergesNeighbouringMoves(t *testing.T) {
	defer func(was bool) { littleEndian = was }(littleEndian)
	littleEndian = true
	tests := []struct {
		value any
		want  int
	}{
		{nothing{}, 0},
		{position{}, 2},
		{[4]float64{}, 4},
		{[5]float64{}, 1},
		{struct {
			A [7]uint8
			B [2]uint8
			C uint8
		}{}, 2},
		{padded{}, 6},
		{[2]padded{}, 12},
		{[100]padded{}, 1},
		{[100]nothing{}, 0},
	}
	for _, tt := range tests {
		got := compileMoves(reflect.TypeOf(tt.value), false)
		require.Len(t, got, tt.want, "%T", tt.value)
	}
}

// On 32-bit machines, an int has 4 bytes in memory and 8 packed bytes. The test uses int32 and
// uint32 fields instead of ints, so it runs on all machines.
func TestNarrowInt_ConvertedToInt64(t *testing.T) {
	type row struct {
		I int32
		U uint32
	}
	moves := []move{{op: opWiden, size: 8}, {op: opWidenUn, mem: 4, pack: 8, size: 8}}
	rows := []row{{-1, math.MaxUint32}, {math.MinInt32, 0}, {math.MaxInt32, 1}}
	packed := make([]byte, 16*len(rows))
	packRows(moves, &span{base(rows), 8, packed, 16, len(rows)})
	require.Equal(t, unhex(t, "ffffffffffffffff ffffffff00000000 00000080ffffffff 0000000000000000 ffffff7f00000000 0100000000000000"), packed)

	decoded := make([]row, len(rows))
	require.Equal(t, -1, unpackRows(moves, &span{base(decoded), 8, packed, 16, len(rows)}))
	require.Equal(t, rows, decoded)

	packed[16+12] = 1
	require.Equal(t, 1, unpackRows(moves, &span{base(decoded), 8, packed, 16, len(rows)}))
	packed[32+7] = 1
	require.Equal(t, 2, unpackRows(moves, &span{base(decoded), 8, packed, 16, len(rows)}))
}
