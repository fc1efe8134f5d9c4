package pagefile

import (
	"encoding/binary"
	"fmt"
)

// What bbolt calls a page is called a node here, because a page is what the
// caller stores. This file reads the nodes of bbolt's tree from bytes that
// may be anything, and sets what a Writer makes of them. It accepts what this package
// writes, or bbolt once wrote for it, which is less than the format of bbolt allows:
//
//   - a branch is one page long, and so is a leaf of more than maxLarge entries;
//   - keys and values follow the elements without a gap, in their order, and
//     fill the last of the node's pages at least in part;
//   - keys are keySize bytes.

const (
	pageSize    = 4096 // Fixed, not the machine's, for the same bytes everywhere.
	headerSize  = 16
	elementSize = 16
	minPages    = 3 // Two meta pages and the leaf that names the bucket.

	// maxLarge is how many entries a leaf can have that is longer than a page:
	// bbolt does not split a node of at most twice its minimum of two.
	maxLarge = 4

	flagBranch = 1
	flagLeaf   = 2
	flagMeta   = 4
)

// A node is the first page of a branch or a leaf.
//
//	0    8       10      12         16
//	+----+-------+-------+----------+-----------+-- ... --+------+-- ... --+
//	| id | flags | count | overflow | element 0 |         | data |         |
//	+----+-------+-------+----------+-----------+-- ... --+------+-- ... --+
//
// The node goes on for overflow more pages.
type node []byte

func (n node) id() uint64      { return binary.LittleEndian.Uint64(n) }
func (n node) flags() uint16   { return binary.LittleEndian.Uint16(n[8:]) }
func (n node) count() int      { return int(binary.LittleEndian.Uint16(n[10:])) }
func (n node) overflow() int64 { return int64(binary.LittleEndian.Uint32(n[12:])) }

// pages returns how many pages of the file the node takes.
func (n node) pages() int64 { return n.overflow() + 1 }

// element returns the bytes of element i: where its data is, counted from the element on, and of what
// size, little-endian.
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

// encode sets the header of a node that has no page but its first.
func (n node) encode(id uint64, flags uint16, count int) {
	binary.LittleEndian.PutUint64(n, id)
	binary.LittleEndian.PutUint16(n[8:], flags)
	binary.LittleEndian.PutUint16(n[10:], uint16(count))
	binary.LittleEndian.PutUint32(n[12:], 0)
}

// encodeEntry sets element i of a leaf, whose key begins at place.
func (n node) encodeEntry(i int, flags uint32, place, keySize, size int) {
	e := n.element(i)
	binary.LittleEndian.PutUint32(e, flags)
	binary.LittleEndian.PutUint32(e[4:], uint32(place-headerSize-i*elementSize))
	binary.LittleEndian.PutUint32(e[8:], uint32(keySize))
	binary.LittleEndian.PutUint32(e[12:], uint32(size))
}

// encodeChild sets element i of a branch, whose key is at place.
func (n node) encodeChild(i, place int, id uint64) {
	e := n.element(i)
	binary.LittleEndian.PutUint32(e, uint32(place-headerSize-i*elementSize))
	binary.LittleEndian.PutUint32(e[4:], keySize)
	binary.LittleEndian.PutUint64(e[8:], id)
}

// isLeaf reports whether n is a leaf; after a check it is a branch otherwise.
func (n node) isLeaf() bool { return n.flags() == flagLeaf }

// branchKey returns the smallest key below child i of a checked branch, whose keys lie side by side
// behind the elements.
func (n node) branchKey(i int) Key {
	return decodeKey(n[headerSize+n.count()*elementSize+i*keySize:])
}

// child returns the page id of child i of a checked branch.
func (n node) child(i int) uint64 { return binary.LittleEndian.Uint64(n.element(i)[8:]) }

// A leaf entry in a checked leaf: its key is at, and its value right after,
// keyAt bytes from the start of the node.
type entry struct {
	keyAt int64
	size  int64 // Of the value.
}

// valueAt returns where the value begins.
func (e entry) valueAt() int64 { return e.keyAt + keySize }

// entry returns entry i of a checked leaf.
func (n node) entry(i int) entry {
	e := n.element(i)
	return entry{
		keyAt: int64(headerSize+i*elementSize) + int64(binary.LittleEndian.Uint32(e[4:])),
		size:  int64(binary.LittleEndian.Uint32(e[12:])),
	}
}

// checkNode checks the header and the elements of the node that was read as
// page id of a file of limit pages. It returns what is wrong, or "".
func checkNode(n node, id uint64, limit int64) string {
	switch {
	case n.id() != id:
		return fmt.Sprintf("page %d says it is page %d", id, n.id())
	case n.count() == 0:
		return fmt.Sprintf("page %d is empty", id)
	case int64(id)+n.pages() > limit:
		return fmt.Sprintf("page %d goes on for %d pages, %d are in the file", id, n.pages(), limit)
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

// checkBranch checks the elements of a branch: in place, keys ascending,
// children inside the file.
func checkBranch(n node, limit int64) string {
	count := n.count()
	if n.overflow() != 0 || headerSize+count*(elementSize+keySize) > len(n) {
		return fmt.Sprintf("a branch of %d children and %d pages", count, n.pages())
	}
	for i := range count {
		e := n.element(i)
		place := (count-i)*elementSize + i*keySize // From element i to its key.
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

// checkLeaf checks the elements of a leaf: keys and values in place, inside the
// pages of the leaf, and reaching into the last of them.
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
	// The last page has a byte of them: overflow says what they take, neither less nor more.
	if last := (end - 1) / pageSize; last != n.overflow() {
		return fmt.Sprintf("%d bytes of entries in %d pages", end, n.pages())
	}
	return ""
}
