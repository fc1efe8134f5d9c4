package format

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
)

// An Encoder writes the bytes of the msgpack library, which takes the shortest form as well.
func TestEncoder_SameBytesAsLibrary(t *testing.T) {
	var library bytes.Buffer
	want := msgpack.NewEncoder(&library)
	same := func(write func(*Encoder), err error) {
		t.Helper()
		require.NoError(t, err)
		e := NewEncoder()
		write(e)
		require.Equal(t, library.Bytes(), e.Buf)
		library.Reset()
	}
	for shift := range 64 {
		for _, more := range []int64{-2, -1, 0, 1, 31, 32, 33} {
			v := int64(1)<<shift + more
			same(func(e *Encoder) { e.Uint(uint64(v)) }, want.EncodeUint(uint64(v)))
			same(func(e *Encoder) { e.int(v) }, want.EncodeInt(v))
			same(func(e *Encoder) { e.int(-v) }, want.EncodeInt(-v))
		}
	}
	for _, n := range []int{0, 1, 15, 16, 31, 32, 255, 256, math.MaxUint16, math.MaxUint16 + 1, math.MaxInt32} {
		same(func(e *Encoder) { e.array(n) }, want.EncodeArrayLen(n))
		same(func(e *Encoder) { e.binLen(n) }, want.EncodeBytesLen(n))
		if text := strings.Repeat("x", min(n, 1<<17)); len(text) == n {
			same(func(e *Encoder) { e.str(text) }, want.EncodeString(text))
			same(func(e *Encoder) { e.bin([]byte(text)) }, want.EncodeBytes([]byte(text)))
		}
	}
	same((*Encoder).nil, want.EncodeNil())
	for _, v := range []bool{false, true} {
		same(func(e *Encoder) { e.bool(v) }, want.EncodeBool(v))
	}
}
