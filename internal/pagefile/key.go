package pagefile

import (
	"cmp"
	"encoding/binary"
	"fmt"
)

// keySize is the size of an encoded key.
const keySize = 8

// A Key names one page: the column it belongs to and its number there. Keys are
// ordered by column, then by page.
type Key struct {
	Column, Page uint32
}

// Compare returns -1, 0 or +1 as k is below, equal to or above other.
func (k Key) Compare(other Key) int {
	return cmp.Compare(k.number(), other.number())
}

// String returns the key as "column/page".
func (k Key) String() string { return fmt.Sprintf("%d/%d", k.Column, k.Page) }

// number returns the key as one integer in the same order.
func (k Key) number() uint64 { return uint64(k.Column)<<32 | uint64(k.Page) }

// next returns the key behind k: there is none between them.
func (k Key) next() Key {
	n := k.number() + 1
	return Key{Column: uint32(n >> 32), Page: uint32(n)}
}

// encode returns the key big-endian, so that bytes sort as keys do.
func (k Key) encode() (b [keySize]byte) {
	binary.BigEndian.PutUint64(b[:], k.number())
	return b
}

// decodeKey is the inverse of encode. It needs keySize bytes.
func decodeKey(b []byte) Key {
	n := binary.BigEndian.Uint64(b)
	return Key{Column: uint32(n >> 32), Page: uint32(n)}
}
