package pagefile

import (
	"fmt"
	"math/bits"
	"slices"
)

// Scan calls visit for every page in ascending order until it returns an
// error, and returns that error. The value is the caller's to keep.
//
// It stops at the first damage it meets; the pages visited until then are good.
func (f *File) Scan(visit func(k Key, value []byte) error) error {
	return f.walk(f.bucket, f.readAt, func(k Key, off, size int64) error {
		value := make([]byte, size)
		if err := f.readAt(value, off); err != nil {
			return err
		}
		return visit(k, value)
	})
}

// Keys calls visit with every key and the size of its value in ascending order
// until it returns an error, and returns that error. It reads the blocks that
// hold keys, not the rest of the values.
func (f *File) Keys(visit func(k Key, size int64) error) error {
	return f.walk(f.bucket, f.readAt, func(k Key, _, size int64) error { return visit(k, size) })
}

// A walk goes through all pages in order and checks the tree as a whole: that
// keys ascend, that no page of the file belongs to two nodes, that all leaves
// are equally deep, and that the trailer's count is right.
type walk struct {
	file  *File
	read  readFunc
	visit visitFunc

	// sparing leaves out what is not needed to know keys and sizes: the checksums of leaves
	// behind the first one, and keys that follow from those around them.
	sparing bool

	held   node  // The beginning of the leaf that is gone through,
	heldAt int64 // and where that is in the file.

	seen      bitmap // Pages of the file that belong to a node.
	pages     uint64 // Keys met so far.
	last      Key    // The last of them.
	leafDepth int    // 0 until the first leaf.
}

// visitFunc gets a key and where its value is in the file.
type visitFunc func(k Key, off, size int64) error

// walk walks through the tree of b.
func (f *File) walk(b bucket, read readFunc, visit visitFunc) error {
	return f.newWalk(read, visit).all(b)
}

func (f *File) newWalk(read readFunc, visit visitFunc) *walk {
	return &walk{file: f, read: read, visit: visit, seen: newBitmap(f.limit())}
}

// all goes through the tree of b.
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

// node goes through the node id, whose first key the branch above says is
// first, if there is one, as next is that of the node behind it: the least key that is above all of
// its own; nil for the last node of a level.
func (w *walk) node(id uint64, depth int, first, next *Key) error {
	if depth > maxDepth {
		return w.malformed(id, "the tree is too deep")
	}
	buf := nodeBuffers.Get().(*[]byte)
	defer nodeBuffers.Put(buf)
	n, read := node(*buf), w.read
	if w.sparing && depth == w.leafDepth { // All leaves are as deep as the first, else it is damage.
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

// branch goes through the children of a branch.
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

// leaf visits the pages of a leaf. With values that are large, each key costs reading a block: a sparing
// walk reads none where there are as many keys as there are numbers from first to next.
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

// inline goes through a bucket that is written inline. Its bytes are read
// again, so that one visit serves all.
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

// ascends counts key k and reports whether it is above the one before it.
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

// add marks n pages from id on and reports whether none was marked before.
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

// count returns how many pages are marked.
func (b bitmap) count() (n int64) {
	for _, word := range b {
		n += int64(bits.OnesCount64(word))
	}
	return n
}

// A Usage says what the bytes of a page file are for. They add up to its size.
type Usage struct {
	Values    int64 // Of pages.
	Tree      int64 // Keys, nodes, and what is left empty in them.
	Free      int64 // Pages of bbolt that belong to no node. Files that bbolt wrote have some.
	Checksums int64 // The trailer.
}

// Usage calls visit like [File.Keys] and returns what the bytes of f are for. Values of at
// most small bytes come along; they are valid until visit returns.
//
// It reads a few bytes of each leaf and compares no checksums of them: that takes the time of the
// whole file, and is what [File.Verify] is for. Sizes and keys must fit those beside them and in the
// branches, whose checksums are compared.
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
	nodes := int64(minPages) + w.seen.count() // Values lie in the pages of leaves.
	u.Tree = nodes*pageSize - u.Values
	u.Free = f.length - nodes*pageSize
	return u, nil
}
