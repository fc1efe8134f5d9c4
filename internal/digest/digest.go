// Package digest defines the hash of a world, which shows whether two worlds are equal. The same
// code hashes a world in memory and a world that is read from a store without its Go types. So any
// reader can verify a stored digest.
//
// The digest is computed from three kinds of sums:
//
//	sum of      covers
//	the world   tick, sum of the registry, and name and sum of each storage, ordered by name
//	a storage   number of rows, and the sum of each page of 4096 rows
//	a page      entities, then values, in their canonical encoding
//
// A sum is the xxh3 hash of these bytes, with 64 bits. Integers are little-endian.
package digest

import (
	"cmp"
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/zeebo/xxh3"
)

// PageRows is the number of rows in a page.
const PageRows = 4096

// A Part is the sum of one storage or resource.
type Part struct {
	Name string
	Sum  uint64
}

// A Hasher has buffers for reuse. The zero Hasher is ready to use.
type Hasher struct {
	Page []byte
	sums []uint64
}

// Rows returns the sum of n rows. It calls page() for each page. page() must append the bytes of
// rows [lo, hi) to [Hasher.Page], which is empty at each call.
func (h *Hasher) Rows(n int, page func(lo, hi int)) uint64 {
	h.sums = h.sums[:0]
	for lo := 0; lo < n; lo += PageRows {
		h.Page = h.Page[:0]
		page(lo, min(lo+PageRows, n))
		h.sums = append(h.sums, Page(h.Page))
	}
	return Storage(n, h.sums)
}

// Page returns the sum of one page.
func Page(bytes []byte) uint64 { return xxh3.Hash(bytes) }

// Storage returns the sum of n rows from the sums of their pages.
func Storage(n int, pages []uint64) uint64 {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 8+8*len(pages)), uint64(n))
	for _, sum := range pages {
		b = binary.LittleEndian.AppendUint64(b, sum)
	}
	return xxh3.Hash(b)
}

// littleEndian reports whether entities have the stored byte order in memory.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// AppendEntities appends the stored form of entities to dst.
func AppendEntities[E ~uint64](dst []byte, entities []E) []byte {
	return append(dst, EntityBytes(entities)...)
}

// EntityBytes returns the stored form of entities. On a little-endian machine it shares the memory
// of entities. Otherwise it is a copy.
func EntityBytes[E ~uint64](entities []E) []byte {
	if littleEndian {
		return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(entities))), 8*len(entities))
	}
	bytes := make([]byte, 8*len(entities))
	for i, e := range entities {
		binary.LittleEndian.PutUint64(bytes[8*i:], uint64(e))
	}
	return bytes
}

// Registry returns the sum of the entity registry.
func Registry[E ~uint64](h *Hasher, rows []E, alive, free int) uint64 {
	rowSum := h.Rows(len(rows), func(lo, hi int) { h.Page = AppendEntities(h.Page, rows[lo:hi]) })
	return RegistryOf(rowSum, alive, free)
}

// RegistryOf returns the sum of the entity registry from the sum of its rows.
func RegistryOf(rowSum uint64, alive, free int) uint64 {
	b := binary.LittleEndian.AppendUint64(nil, rowSum)
	b = binary.LittleEndian.AppendUint64(b, uint64(alive))
	return xxh3.Hash(binary.LittleEndian.AppendUint64(b, uint64(free)))
}

// World returns the sum of a world. It sorts parts.
func World(tick, registry uint64, parts []Part) uint64 {
	slices.SortFunc(parts, func(a, b Part) int { return cmp.Compare(a.Name, b.Name) })
	b := binary.LittleEndian.AppendUint64(nil, tick)
	b = binary.LittleEndian.AppendUint64(b, registry)
	for _, p := range parts {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(p.Name)))
		b = append(b, p.Name...)
		b = binary.LittleEndian.AppendUint64(b, p.Sum)
	}
	return xxh3.Hash(b)
}
