package pagefile

import (
	"fmt"
	"math/bits"
	"slices"
)

// Scan calls visit for every page in ascending order. It stops at the first error of visit and
// returns that error. The caller owns the value.
//
// Scan stops at the first damage. The pages that were visited before are valid.
func (f *File) Scan(visit func(k Key, value []byte) error) error {
	return f.walk(f.bucket, f.readAt, func(k Key, off, size int64) error {
		value := make([]byte, size)
		if err := f.readAt(value, off); err != nil {
			return err
		}
		return visit(k, value)
	})
}

// Keys calls visit with every key and the size of its value, in ascending order. It stops at the
// first error of visit and returns that error. Keys reads only the blocks that contain keys.
func (f *File) Keys(visit func(k Key, size int64) error) error {
	return f.walk(f.bucket, f.readAt, func(k Key, _, size int64) error { return visit(k, size) })
}

// A walk visits all pages in order and checks the tree as a whole:
//
//   - Keys ascend.
//   - No page of the file belongs to two nodes.
//   - All leaves have the same depth.
//   - The trailer's page count is correct.
type walk struct {
	file  *File
	read  readFunc
	visit visitFunc

	// Set for a walk that reads only keys and sizes. Where possible, it computes a key from the key
	// before it. It verifies the checksums of no leaf except the first.
	sparing bool

	held   node  // First page of the current leaf.
	heldAt int64 // File offset of held.

	seen      bitmap // Pages of the file that belong to a node.
	pages     uint64 // Number of keys visited so far.
	last      Key    // The last visited key.
	leafDepth int    // Depth of all leaves. 0 before the first leaf.
}

// A visitFunc gets a key and the file offset and size of its value.
type visitFunc func(k Key, off, size int64) error

// walk walks the tree of b.
func (f *File) walk(b bucket, read readFunc, visit visitFunc) error {
	return f.newWalk(read, visit).all(b)
}

func (f *File) newWalk(read readFunc, visit visitFunc) *walk {
	return &walk{file: f, read: read, visit: visit, seen: newBitmap(f.limit())}
}

// all walks the tree of b and checks the trailer's page count.
func (w *walk) all(b bucket) error {
	var err error
	if b.root == 0 {
		err = w.inline(b)
	} else {
		err = w.node(b.root, 1, nil, nil)
	}
	if err != nil {
		return err
	}
	f := w.file
	if want := f.trailer.pages; w.pages != want {
		return f.malformed(f.length, f.size-f.length,
			fmt.Sprintf("the trailer counts %d pages, the tree has %d", want, w.pages))
	}
	return nil
}

// node walks the node at the page with number id. The parameter first is the first key of the node,
// as the branch above states it, or nil. The parameter next is the first key of the next node on
// the same level, or nil for the last node.
func (w *walk) node(id uint64, depth int, first, next *Key) error {
	if depth > maxDepth {
		return w.malformed(id, "the tree is too deep")
	}
	buf := nodeBuffers.Get().(*[]byte)
	defer nodeBuffers.Put(buf)
	n, read := node(*buf), w.read
	// A node at the depth of the first leaf is a leaf, unless the file is damaged. A sparing walk
	// does not verify such nodes.
	if w.sparing && depth == w.leafDepth {
		read = w.file.raw
	}
	if err := w.file.readNode(read, n, id); err != nil {
		return err
	}
	if !w.seen.add(id, n.pages()) {
		return w.malformed(id, fmt.Sprintf("page %d belongs to two nodes", id))
	}
	if n.isLeaf() {
		return w.leaf(n, id, depth, first, next)
	}
	return w.branch(n, id, depth, first, next)
}

// branch walks the children of a branch.
func (w *walk) branch(n node, id uint64, depth int, first, next *Key) error {
	keys := make([]Key, n.count())
	for i := range keys {
		keys[i] = n.branchKey(i)
	}
	if first != nil && keys[0] != *first {
		return w.malformed(id, fmt.Sprintf("page %d begins with key %v, want %v", id, keys[0], *first))
	}
	for i := range keys {
		behind := next
		if i+1 < len(keys) {
			behind = &keys[i+1]
		}
		if err := w.node(n.child(i), depth+1, &keys[i], behind); err != nil {
			return err
		}
	}
	return nil
}

// leaf visits the pages of leaf n. The parameter first is its first key, and next is the first key
// of the next leaf; nil means unknown. Reading a key can mean reading a block, which a sparing walk
// avoids. For example, if a leaf of 4 entries begins with key 10, and the next leaf with key 14,
// the keys are 10 to 13. So it reads only the first key.
func (w *walk) leaf(n node, id uint64, depth int, first, next *Key) error {
	if w.leafDepth == 0 {
		w.leafDepth = depth
	}
	if depth != w.leafDepth {
		return w.malformed(id, fmt.Sprintf("leaf page %d at depth %d, others at %d", id, depth, w.leafDepth))
	}
	base := int64(id) * pageSize
	w.held, w.heldAt = n, base
	follow := w.sparing && first != nil && next != nil && next.number()-first.number() == uint64(n.count())
	for i := range n.count() {
		e := n.entry(i)
		k := w.last.next()
		if i == 0 || !follow {
			var err error
			if k, err = w.file.readKey(w.read, n, base, e); err != nil {
				return err
			}
		}
		if i == 0 && first != nil && k != *first {
			return w.malformed(id, fmt.Sprintf("page %d begins with key %v, want %v", id, k, *first))
		}
		if !w.ascends(k) {
			return w.malformed(id, fmt.Sprintf("page %d: key %v after %v", id, k, w.last))
		}
		if err := w.visit(k, base+e.valueAt(), e.size); err != nil {
			return err
		}
	}
	return nil
}

// inline walks an inline bucket. It passes the same arguments to visit as for other leaves.
func (w *walk) inline(b bucket) error {
	n, base := b.inline, b.inlineAt
	w.held, w.heldAt = n, base
	for i := range n.count() {
		e := n.entry(i)
		k := decodeKey(n[e.keyAt:])
		if !w.ascends(k) {
			return w.file.malformed(base, int64(len(n)), fmt.Sprintf("inline bucket: key %v after %v", k, w.last))
		}
		if err := w.visit(k, base+e.valueAt(), e.size); err != nil {
			return err
		}
	}
	return nil
}

// ascends counts key k and reports whether it is greater than the previous one.
func (w *walk) ascends(k Key) bool {
	if w.pages > 0 && k.Compare(w.last) <= 0 {
		return false
	}
	w.pages++
	w.last = k
	return true
}

func (w *walk) malformed(id uint64, reason string) error {
	return w.file.malformed(int64(id)*pageSize, pageSize, reason)
}

// A bitmap marks pages of a file.
type bitmap []uint64

func newBitmap(n int64) bitmap { return make(bitmap, (n+63)/64) }

// add marks the n pages from page id on. It returns false if a page was marked already.
func (b bitmap) add(id uint64, n int64) bool {
	for end := id + uint64(n); id < end; id++ {
		bit := uint64(1) << (id % 64)
		if b[id/64]&bit != 0 {
			return false
		}
		b[id/64] |= bit
	}
	return true
}

// count returns the number of marked pages.
func (b bitmap) count() (n int64) {
	for _, word := range b {
		n += int64(bits.OnesCount64(word))
	}
	return n
}

// A Usage breaks down the size of a page file.
type Usage struct {
	Values int64 // Bytes of values.
	Tree   int64 // Bytes of keys, nodes, and empty space in nodes.
	// Pages of bbolt that belong to no node, in bytes. Only files that bbolt wrote have such pages.
	Free      int64
	Checksums int64 // Bytes of the trailer.
}

// Usage calls visit like [File.Keys] and returns how the bytes of f are used. A value longer than
// the parameter small is passed to visit as nil. The value is valid until visit returns.
//
// Usage reads a few bytes of each leaf and does not verify the checksums of leaves, because that
// would take as long as [File.Verify]. It verifies the checksums of branches. It also checks that
// sizes and keys of leaves are consistent with their neighbours and the branches.
func (f *File) Usage(small int64, visit func(k Key, size int64, value []byte) error) (Usage, error) {
	u := Usage{Checksums: f.size - f.length}
	var buf []byte
	w := f.newWalk(f.readAt, nil)
	w.sparing = true
	w.visit = func(k Key, off, size int64) error {
		u.Values += size
		if size > small {
			return visit(k, size, nil)
		}
		if at := off - w.heldAt; at+size <= int64(len(w.held)) {
			return visit(k, size, w.held[at:at+size])
		}
		buf = slices.Grow(buf[:0], int(size))[:size]
		if err := f.raw(buf, off); err != nil {
			return err
		}
		return visit(k, size, buf)
	}
	if err := w.all(f.bucket); err != nil {
		return Usage{}, err
	}
	// nodes also counts the pages with values, because values are stored inside leaves.
	nodes := int64(minPages) + w.seen.count()
	u.Tree = nodes*pageSize - u.Values
	u.Free = f.length - nodes*pageSize
	return u, nil
}
