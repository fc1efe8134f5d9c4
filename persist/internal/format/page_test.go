package format_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/persist/internal/format"
)

func TestDecodeSparsePage_RunsOfRows(t *testing.T) {
	for n := 1; n < 40; n += 3 {
		rows := make([]uint32, format.PageRows)
		for i := range rows {
			rows[i] = format.NoRow
			if i >= format.PageRows-n || i%(n+1) != n {
				rows[i] = uint32(i + i/(n+1)*5)
			}
		}
		page, found := format.AppendSparsePage(nil, rows)
		require.True(t, found)
		next := 0
		require.NoError(t, format.DecodeSparsePage(page, func(i int, row uint32, n int) error {
			for ; next < i; next++ {
				require.Equal(t, format.NoRow, rows[next])
			}
			for k, have := range rows[i : i+n] {
				if have != row+uint32(k) {
					t.Fatalf("entry %d is %d, want %d", i+k, row+uint32(k), have)
				}
			}
			next += n
			return nil
		}))
		for ; next < format.PageRows; next++ {
			require.Equal(t, format.NoRow, rows[next])
		}
	}
	zeros := make([]byte, 2*format.PageRows)
	require.NoError(t, format.DecodeSparsePage(zeros, func(_ int, _ uint32, n int) error { require.Equal(t, format.PageRows, n); return nil }))
	require.Error(t, format.DecodeSparsePage(append(zeros, 0, 0), func(int, uint32, int) error { return nil }))
	stop := errors.New("stop")
	require.ErrorIs(t, format.DecodeSparsePage(zeros, func(int, uint32, int) error { return stop }), stop)
}

// DecodeSparseRows must return the same rows and errors as DecodeSparsePage. The pages have steps
// of every length, skipped entries and runs. Some pages are truncated.
func TestDecodeSparseRows_SameAsDecodeSparsePage(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 0x5a))
		limit, row := uint32(1)<<random.IntN(32), uint32(0)
		rows := make([]uint32, 1+random.IntN(format.PageRows))
		for i := range rows {
			switch random.IntN(8) {
			case 0:
				rows[i] = format.NoRow
			case 1, 2:
				row++
				rows[i] = row
			default:
				row = random.Uint32N(limit)
				rows[i] = row
			}
		}
		page, _ := format.AppendSparsePage(nil, rows)
		for range 40 {
			var want, got [format.PageRows]uint32
			for i := range want {
				want[i] = format.NoRow
			}
			wantErr := format.DecodeSparsePage(page, func(i int, row uint32, n int) error {
				for k := range n {
					want[i+k] = row + uint32(k)
				}
				return nil
			})
			require.Equal(t, wantErr, format.DecodeSparseRows(page, &got), "seed %d, %d bytes", seed, len(page))
			if wantErr == nil {
				require.Equal(t, want, got, "seed %d, %d bytes", seed, len(page))
			}
			page = page[:random.IntN(len(page)+1)]
		}
	}
}
