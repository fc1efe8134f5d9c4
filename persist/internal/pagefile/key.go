package pagefile

import (
	"cmp"
	"encoding/binary"
	"fmt"
)

// keySize is the size of an encoded key.
const keySize = 8

// A Key identifies a page: its column and its number in the column. Keys are ordered by column,
// then by page.
type Key struct {
	Column, Page uint32
}

// Compare returns -1, 0 or +1 if k is less than, equal to or greater than the other key.
func (k Key) Compare(other Key) int {
	return cmp.Compare(k.number(), other.number())
}

// String returns the key as "column/page".
func (k Key) String() string { return fmt.Sprintf("%d/%d", k.Column, k.Page) }

// number returns the key as one integer with the same order.
func (k Key) number() uint64 { return uint64(k.Column)<<32 | uint64(k.Page) }

// next returns the smallest key greater than k.
func (k Key) next() Key {
	n := k.number() + 1
	return Key{Column: uint32(n >> 32), Page: uint32(n)}
}

// encode returns the key in big-endian order, so that bytes sort like keys.
func (k Key) encode() (b [keySize]byte) {
	binary.BigEndian.PutUint64(b[:], k.number())
	return b
}

// decodeKey is the inverse of encode(). b has at least keySize bytes.
func decodeKey(b []byte) Key {
	n := binary.BigEndian.Uint64(b)
	return Key{Column: uint32(n >> 32), Page: uint32(n)}
}
