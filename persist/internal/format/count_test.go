package format

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// For a valid count that does not fit into an int, the decoder must return ErrTooLarge. It must
// neither report damage nor return a negative number.
func TestDecoder_CountTooLarge(t *testing.T) {
	for _, v := range []uint64{0, math.MaxInt32, math.MaxInt32 + 1, math.MaxUint32} {
		e := NewEncoder()
		e.Uint(v)
		d := decoder{src: e.Buf}
		got := d.count("rows", maxRows)
		if v > math.MaxInt {
			require.ErrorIs(t, d.err, ErrTooLarge)
			require.ErrorContains(t, d.err, "rows is ")
			require.Zero(t, got)
			continue
		}
		require.NoError(t, d.err)
		require.Equal(t, v, uint64(got))

		d = decoder{src: e.Buf}
		require.Equal(t, v, uint64(d.uint32("crc")))
	}
	for _, read := range []func(*decoder){
		func(d *decoder) { d.count("rows", maxRows) },
		func(d *decoder) { d.uint32("crc") },
	} {
		e := NewEncoder()
		e.Uint(math.MaxUint32 + 1)
		d := decoder{src: e.Buf}
		read(&d)
		require.ErrorContains(t, d.err, "is 4294967296, at most 4294967295")
		require.False(t, errors.Is(d.err, ErrTooLarge))
	}
	for _, length := range []string{"\x7f\xff\xff\xff", "\x80\x00\x00\x00", "\xff\xff\xff\xff"} {
		d := decoder{src: []byte("\xdd" + length)}
		require.Zero(t, d.arrayLen())
		require.Error(t, d.err)
		for _, code := range []string{"\xc6", "\xdb"} {
			d := decoder{src: []byte(code + length)}
			if code == "\xc6" {
				require.Empty(t, d.bin())
			} else {
				require.Empty(t, d.str())
			}
			require.ErrorIs(t, d.err, ErrShort)
		}
	}
}
