package pagefile

import (
	"encoding/binary"
	"fmt"
)

// A bbolt page is called a node here, because a page is what the caller stores. This file reads the
// nodes of bbolt's tree from untrusted bytes, and encodes the nodes of a Writer. It accepts only
// nodes that this package, or bbolt on its behalf, writes. These are fewer than bbolt's format
// allows:
//
//   - A branch has one page. A leaf of more than maxLarge entries has one page, too.
//   - Keys and values follow the elements without a gap, in the same order. They reach into the
//     last of the node's pages.
//   - Keys have keySize bytes.

const (
	// pageSize does not depend on the machine, so that the bytes of a file are the same everywhere.
	pageSize    = 4096
	headerSize  = 16
	elementSize = 16
	minPages    = 3 // Two meta pages and the leaf that names the bucket.

	// maxLarge is the maximum number of entries of a leaf that is longer than a page. bbolt does
	// not split a node of up to four entries, whatever its size.
	maxLarge = 4

	flagBranch = 1
	flagLeaf   = 2
	flagMeta   = 4
)

// MaxValueSize is the maximum length of a page's value, in bytes.
const MaxValueSize = 1 << 30

// A node is the first page of a branch or a leaf.
//
//	0    8       10      12         16
//	+----+-------+-------+----------+-----------+-- ... --+------+-- ... --+
//	| id | flags | count | overflow | element 0 |         | data |         |
//	+----+-------+-------+----------+-----------+-- ... --+------+-- ... --+
//
// The node continues for overflow more pages.
type node []byte

func (n node) id() uint64      { return binary.LittleEndian.Uint64(n) }
func (n node) flags() uint16   { return binary.LittleEndian.Uint16(n[8:]) }
func (n node) count() int      { return int(binary.LittleEndian.Uint16(n[10:])) }
func (n node) overflow() int64 { return int64(binary.LittleEndian.Uint32(n[12:])) }

// pages returns the number of pages of the node.
func (n node) pages() int64 { return n.overflow() + 1 }

// element returns the bytes of element i. place is the offset of the key from the start of the
// element. The fields, little-endian:
//
//	0         4         8         12           16
//	+---------+---------+---------+------------+
//	| flags   | place   | keySize | value size |      of a leaf
//	+---------+---------+---------+------------+
//	| place   | keySize | child, a page id     |      of a branch
//	+---------+---------+----------------------+
func (n node) element(i int) []byte {
	at := headerSize + i*elementSize
	return n[at : at+elementSize]
}

// encode sets the header of a node that has only one page.
func (n node) encode(id uint64, flags uint16, count int) {
	binary.LittleEndian.PutUint64(n, id)
	binary.LittleEndian.PutUint16(n[8:], flags)
	binary.LittleEndian.PutUint16(n[10:], uint16(count))
	binary.LittleEndian.PutUint32(n[12:], 0)
}

// encodeEntry sets element i of a leaf. The key begins at place.
func (n node) encodeEntry(i int, flags uint32, place, keySize, size int) {
	e := n.element(i)
	binary.LittleEndian.PutUint32(e, flags)
	binary.LittleEndian.PutUint32(e[4:], uint32(place-headerSize-i*elementSize))
	binary.LittleEndian.PutUint32(e[8:], uint32(keySize))
	binary.LittleEndian.PutUint32(e[12:], uint32(size))
}

// encodeChild sets element i of a branch. The key is at place.
func (n node) encodeChild(i, place int, id uint64) {
	e := n.element(i)
	binary.LittleEndian.PutUint32(e, uint32(place-headerSize-i*elementSize))
	binary.LittleEndian.PutUint32(e[4:], keySize)
	binary.LittleEndian.PutUint64(e[8:], id)
}

// isLeaf reports whether n is a leaf. A checked node that is not a leaf is a branch.
func (n node) isLeaf() bool { return n.flags() == flagLeaf }

// branchKey returns the smallest key below child i of a checked branch. The keys are adjacent,
// after the elements.
func (n node) branchKey(i int) Key {
	return decodeKey(n[headerSize+n.count()*elementSize+i*keySize:])
}

// child returns the page id of child i of a checked branch.
func (n node) child(i int) uint64 { return binary.LittleEndian.Uint64(n.element(i)[8:]) }

// An entry is an entry of a checked leaf. Its key begins keyAt bytes after the start of the node,
// and its value follows the key.
type entry struct {
	keyAt int64
	size  int64 // Size of the value.
}

// valueAt returns the offset of the value in the node.
func (e entry) valueAt() int64 { return e.keyAt + keySize }

// entry returns entry i of a checked leaf.
func (n node) entry(i int) entry {
	e := n.element(i)
	return entry{
		keyAt: int64(headerSize+i*elementSize) + int64(binary.LittleEndian.Uint32(e[4:])),
		size:  int64(binary.LittleEndian.Uint32(e[12:])),
	}
}

// checkNode checks the header and the elements of a node. The node was read from page id of a file
// that has limit pages. checkNode returns the text of the first error, or "".
func checkNode(n node, id uint64, limit int64) string {
	switch {
	case n.id() != id:
		return fmt.Sprintf("page %d has the number of page %d", id, n.id())
	case n.count() == 0:
		return fmt.Sprintf("page %d is empty", id)
	case int64(id)+n.pages() > limit:
		return fmt.Sprintf("page %d extends over %d pages, the file has %d", id, n.pages(), limit)
	}
	var reason string
	switch n.flags() {
	case flagBranch:
		reason = checkBranch(n, limit)
	case flagLeaf:
		reason = checkLeaf(n)
	default:
		reason = fmt.Sprintf("type %#x", n.flags())
	}
	if reason != "" {
		return fmt.Sprintf("page %d: %s", id, reason)
	}
	return ""
}

// checkBranch checks the elements of a branch: the keys are in place and ascend, and the children
// are inside the file.
func checkBranch(n node, limit int64) string {
	count := n.count()
	if n.overflow() != 0 || headerSize+count*(elementSize+keySize) > len(n) {
		return fmt.Sprintf("a branch of %d children and %d pages", count, n.pages())
	}
	for i := range count {
		e := n.element(i)
		place := (count-i)*elementSize + i*keySize // Distance from element i to its key.
		if binary.LittleEndian.Uint32(e) != uint32(place) || binary.LittleEndian.Uint32(e[4:]) != keySize {
			return fmt.Sprintf("key %d is out of place", i)
		}
		if i > 0 && n.branchKey(i-1).Compare(n.branchKey(i)) >= 0 {
			return fmt.Sprintf("key %d does not ascend", i)
		}
		if child := n.child(i); child < 2 || child >= uint64(limit) {
			return fmt.Sprintf("child %d is page %d of %d", i, child, limit)
		}
	}
	return ""
}

// checkLeaf checks that the keys and values of a leaf are adjacent and in order. They must end in
// the last page of the leaf.
func checkLeaf(n node) string {
	count := n.count()
	if headerSize+count*elementSize > len(n) || n.overflow() > 0 && count > maxLarge {
		return fmt.Sprintf("a leaf of %d entries and %d pages", count, n.pages())
	}
	end := int64(headerSize + count*elementSize)
	for i := range count {
		e := n.element(i)
		if binary.LittleEndian.Uint32(e) != 0 {
			return fmt.Sprintf("entry %d is not a plain one", i)
		}
		entry := n.entry(i)
		if entry.keyAt != end || binary.LittleEndian.Uint32(e[8:]) != keySize {
			return fmt.Sprintf("key %d is out of place", i)
		}
		if entry.size > MaxValueSize {
			return fmt.Sprintf("value %d has %d bytes", i, entry.size)
		}
		end = entry.valueAt() + entry.size
	}
	// The entries must end in the last page of the leaf, so overflow is neither too high nor too
	// low.
	if last := (end - 1) / pageSize; last != n.overflow() {
		return fmt.Sprintf("%d bytes of entries in %d pages", end, n.pages())
	}
	return ""
}
