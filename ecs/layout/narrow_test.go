package layout

import (
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNarrowInt_RowsOfFixedSize(t *testing.T) {
	type inner struct {
		_ int8
		U uint
	}
	type row struct {
		A int64
		B [2]struct{ N int }
		C inner
	}
	encode := func(r row) []byte { return Append(newCodec(t, reflect.TypeFor[row]()), nil, []row{r}) }
	for _, tt := range []struct {
		packed []byte
		want   string
	}{
		{encode(row{A: math.MinInt64, B: [2]struct{ N int }{{math.MaxInt32}, {math.MinInt32}}, C: inner{U: math.MaxUint32}}), ""},
		{unhex(t, "0000000000000000 0000000000000000 0000008000000000 0000000000000000"), ".B[1].N: 2147483648"},
		{unhex(t, "0000000000000000 ffffff7fffffffff 0000000000000000 0000000000000000"), ".B[0].N: -2147483649"},
		{unhex(t, "0000000000000000 0000000000000000 0000000000000000 0000000001000000"), ".C.U: 4294967296"},
	} {
		err := firstNarrow(reflect.TypeFor[row](), tt.packed, 32)
		if tt.want == "" {
			require.Nil(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrIntSize)
		require.NotErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, "does not fit into 32 bits: "+tt.want+";")
		require.Nil(t, firstNarrow(reflect.TypeFor[row](), tt.packed, 64))
	}
}

func TestNarrowInt_RowsOfVaryingSize(t *testing.T) {
	for _, tt := range []struct {
		encoded, want string
		signed        bool
		bits          int
		err           error
	}{
		{"cf 0000000080000000", "integer is not in its shortest form", true, 64, ErrInvalid},
		{"ce 80000000", "2147483648;", true, 64, ErrIntSize},
		{"ce 80000000", "2147483648 does not fit into 32 bits", true, 32, ErrInvalid},
		{"d3 ffffffff7fffffff", "-2147483649;", true, 64, ErrIntSize},
		{"cf 0000000100000000", "4294967296;", false, 64, ErrIntSize},
		{"cf 0000000100000000", "4294967296 does not fit into 32 bits", false, 32, ErrInvalid},
	} {
		r := &reader{src: unhex(t, tt.encoded)}
		var err *DataError
		if tt.signed {
			_, err = r.signed(tt.bits, 32)
		} else {
			_, err = r.unsigned(tt.bits, 32)
		}
		require.ErrorIs(t, err, tt.err)
		require.ErrorContains(t, err, tt.want)
	}
}

func TestReader_UnexpectedByteErrorText(t *testing.T) {
	for code := range 256 {
		require.NotContains(t, found(byte(code)), "0x", "code %#x", code)
		if code == 0xc0 {
			break
		}
	}
	require.EqualError(t, unexpected("an integer", 0xcb), "layout: invalid data: want an integer, found a float of 64 bits")
	require.Contains(t, found(0xc1), "0xc1")
}
