package pagefile

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"slices"

	"github.com/stet-ecs/stet/disk"
)

const (
	// chunkSize is the number of bytes per write. A write may be longer by up to one node.
	chunkSize = 16 * blockSize

	// maxLeaf is the maximum size of a leaf with more than one value and more than one page.
	maxLeaf = 4 * blockSize

	// leafRoom is the number of bytes before the keys and values of the open leaf. They are
	// reserved for its header and elements.
	leafRoom = headerSize + maxLarge*elementSize

	// maxChildren is the maximum number of children of a branch.
	maxChildren = (pageSize - headerSize) / (elementSize + keySize)

	// maxInline is the maximum size of an inline leaf.
	maxInline = pageSize / 4
)

// A sequentialTree writes the tree from left to right in one pass, each byte once, into any file. A
// node is written once it is full, so children precede their branch:
//
//	| metas | leaf | ... | leaf | branch | leaf | ... | branch | bucket |
//
// Block 0 is written last, so a file that a crash cut off does not look like a page file. The
// device begins to write early, while later pages are still being added. The checksums of blocks
// are computed before writing.
//
// The field buf holds the bytes that are not written yet, as they will be in the file. It has whole
// nodes, and then the open leaf. The field at is the file offset of buf.
//
// The open leaf is the leaf to which put adds pages. It begins with leafRoom reserved bytes,
// followed by keys and values. When the leaf ends, the number of its elements is known. Then the
// header and the elements go into the reserved bytes, and the keys and values move to their final
// position.
type sequentialTree struct {
	file disk.File
	name string // The final name of the file.

	first []byte   // Bytes of block 0, which is written last.
	sums  []uint32 // Checksums of the blocks before the offset at.
	at    int64    // File offset of buf.
	buf   []byte   // Whole nodes that are not written yet, followed by the open leaf.

	leaf   int       // Offset of the open leaf in buf.
	sizes  []int     // Sizes of the open leaf's values.
	key    Key       // First key of the open leaf.
	levels [][]child // Children of the open branches by level. Level 0 holds leaves.
}

// A child is an entry of a branch.
type child struct {
	key Key // The smallest key below the child.
	id  uint64
}

func newSequentialTree(file disk.File, name string) *sequentialTree {
	t := &sequentialTree{file: file, name: name, buf: make([]byte, 2*pageSize, chunkSize+maxLeaf)}
	t.beginLeaf()
	return t
}

func (t *sequentialTree) put(k Key, size int, value [][]byte) error {
	if !t.leafHasRoom(size) {
		t.endLeaf() // endLeaf may also end branches. After endLeaf, buf has only whole nodes.
		if len(t.buf) >= chunkSize {
			if err := t.write(len(t.buf) / blockSize * blockSize); err != nil {
				return err
			}
		}
		t.beginLeaf()
	}
	if len(t.sizes) == 0 {
		t.key = k
	}
	key := k.encode()
	t.buf = append(t.buf, key[:]...)
	for _, part := range value {
		t.buf = append(t.buf, part...)
	}
	t.sizes = append(t.sizes, size)
	return nil
}

// leafSize returns the size of the open leaf.
func (t *sequentialTree) leafSize() int {
	return headerSize + len(t.sizes)*elementSize + len(t.buf) - t.leaf - leafRoom
}

// leafHasRoom reports whether the open leaf accepts another value of this size. A leaf has one of
// two forms:
//
//   - several values that fit into one page together
//   - up to maxLarge large values, the first of which is longer than a page
//
// An empty leaf accepts any value.
func (t *sequentialTree) leafHasRoom(size int) bool {
	if len(t.sizes) == 0 {
		return true
	}
	before := t.leafSize()
	after := before + elementSize + keySize + size
	return after <= pageSize || before > pageSize && after <= maxLeaf && len(t.sizes) < maxLarge
}

// beginLeaf begins a leaf at the end of buf.
func (t *sequentialTree) beginLeaf() {
	t.leaf, t.sizes = len(t.buf), t.sizes[:0]
	t.buf = append(t.buf, make([]byte, leafRoom)...)
}

// endLeaf completes the open leaf, which is not empty, and adds it to the level above.
func (t *sequentialTree) endLeaf() {
	id := t.id(t.leaf)
	t.encodeLeaf(id)
	t.pad(t.leaf)
	t.addChild(0, child{t.key, id})
}

// encodeLeaf writes the header and elements of the open leaf.
func (t *sequentialTree) encodeLeaf(id uint64) {
	place := headerSize + len(t.sizes)*elementSize // Offset of the next key in the leaf.
	// The keys and values begin at offset leafRoom, which has room for maxLarge elements. Move them
	// to their place directly after the elements.
	data := t.buf[t.leaf+leafRoom:]
	t.buf = slices.Grow(t.buf, max(0, place-leafRoom))[:t.leaf+place+len(data)]
	copy(t.buf[t.leaf+place:], data)
	n := node(t.buf[t.leaf:])
	n.encode(id, flagLeaf, len(t.sizes))
	for i, size := range t.sizes {
		n.encodeEntry(i, 0, place, keySize, size)
		place += keySize + size
	}
}

// addChild adds c to the open branch of a level. If that branch is full, addChild ends it first.
func (t *sequentialTree) addChild(level int, c child) {
	if level == len(t.levels) {
		t.levels = append(t.levels, nil)
	}
	if len(t.levels[level]) == maxChildren {
		t.endBranch(level)
	}
	t.levels[level] = append(t.levels[level], c)
}

// endBranch completes the open branch of a level and adds it to the level above.
func (t *sequentialTree) endBranch(level int) {
	children := t.levels[level]
	start := len(t.buf)
	id := t.id(start)
	t.buf = append(t.buf, make([]byte, pageSize)...)
	n := node(t.buf[start:])
	n.encode(id, flagBranch, len(children))
	place := headerSize + len(children)*elementSize
	for i, c := range children {
		n.encodeChild(i, place, c.id)
		key := c.key.encode()
		place += copy(n[place:], key[:])
	}
	t.levels[level] = children[:0]
	t.addChild(level+1, child{children[0].key, id})
}

// endTree completes all nodes and returns the page of the root node.
func (t *sequentialTree) endTree() uint64 {
	t.endLeaf()
	for level := 0; ; level++ { // Ending a branch may create the level above.
		if c := t.levels[level]; level == len(t.levels)-1 && len(c) == 1 {
			return c[0].id
		}
		t.endBranch(level)
	}
}

// endBucket completes the tree and adds the leaf that names the bucket. It returns the page of this
// leaf.
func (t *sequentialTree) endBucket() uint64 {
	var inline []byte
	var top uint64
	if len(t.levels) == 0 && t.leafSize() <= maxInline {
		t.encodeLeaf(0)
		inline = slices.Clone(t.buf[t.leaf:])
		t.buf = t.buf[:t.leaf]
	} else {
		top = t.endTree()
	}
	start := len(t.buf)
	id := t.id(start)
	place := headerSize + elementSize
	t.buf = append(t.buf, make([]byte, place)...)
	n := node(t.buf[start:])
	n.encode(id, flagLeaf, 1)
	n.encodeEntry(0, flagBucket, place, len(bucketName), bucketHeader+len(inline))
	t.buf = append(t.buf, bucketName...)
	t.buf = binary.LittleEndian.AppendUint64(t.buf, top)
	t.buf = binary.LittleEndian.AppendUint64(t.buf, 0) // The sequence field of the bucket header.
	t.buf = append(t.buf, inline...)
	t.pad(start)
	return id
}

// id returns the number of the page that begins at buf[i].
func (t *sequentialTree) id(i int) uint64 { return uint64(t.at+int64(i)) / pageSize }

// pad fills the last page of the node at buf[start] with zeros and sets the node's overflow.
func (t *sequentialTree) pad(start int) {
	size := len(t.buf) - start
	overflow := (size - 1) / pageSize
	t.buf = append(t.buf, make([]byte, (overflow+1)*pageSize-size)...)
	binary.LittleEndian.PutUint32(t.buf[start+12:], uint32(overflow))
}

// write writes the first n bytes of buf, except block 0. The bytes are whole blocks, or reach to
// the end of the tree.
func (t *sequentialTree) write(n int) error {
	rest := t.buf[:n]
	if t.at == 0 { // finish writes the metas into block 0 and then computes its checksum.
		t.first = slices.Clone(rest[:min(n, blockSize)])
		rest = rest[len(t.first):]
		t.at = int64(len(t.first))
		t.sums = append(t.sums, 0)
	}
	if len(rest) > 0 {
		if err := t.writeAt(rest, t.at); err != nil {
			return err
		}
		startWriteBack(t.file, t.at, int64(len(rest)))
	}
	for block := range slices.Chunk(rest, blockSize) {
		t.sums = append(t.sums, crc32.Checksum(block, castagnoli))
	}
	t.at += int64(len(rest))
	left := t.buf[n:]
	if cap(t.buf) > 2*chunkSize { // A long value has enlarged buf, so allocate a new one.
		t.buf = make([]byte, 0, chunkSize+maxLeaf)
	}
	t.buf = append(t.buf[:0], left...)
	return nil
}

// finish writes the remaining bytes of the tree, the trailer and then block 0.
func (t *sequentialTree) finish(pages uint64) (*trailer, error) {
	root := t.endBucket()
	if err := t.write(len(t.buf)); err != nil {
		return nil, err
	}
	encodeMetas(t.first, root, uint64(t.at)/pageSize)
	t.sums[0] = crc32.Checksum(t.first, castagnoli)
	end := &trailer{length: t.at, pages: pages, table: t.sums}
	if err := t.writeAt(end.encode(), end.length); err != nil {
		return nil, err
	}
	if err := t.writeAt(t.first, 0); err != nil {
		return nil, err
	}
	return end, nil
}

func (t *sequentialTree) writeAt(b []byte, offset int64) error {
	return writeAt(t.file, t.name, b, offset)
}

// verify compares each block with its checksum, which was computed from the bytes in memory.
func (t *sequentialTree) verify(dir disk.FS, temp string) (Info, error) {
	return Check(context.Background(), dir, temp)
}

func (t *sequentialTree) close() {}
