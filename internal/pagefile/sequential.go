package pagefile

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"slices"

	"github.com/stet-ecs/stet/disk"
)

const (
	// chunkSize is how much is written at once, or a node more.
	chunkSize = 16 * blockSize

	// maxLeaf is how long a leaf can grow that has more than one value and more
	// than one page.
	maxLeaf = 4 * blockSize

	// leafRoom is what a leaf under way leaves free for its header and elements.
	leafRoom = headerSize + maxLarge*elementSize

	// maxChildren is how many children fit into a branch.
	maxChildren = (pageSize - headerSize) / (elementSize + keySize)

	// maxInline is the size up to which the only leaf is written into the bucket.
	maxInline = pageSize / 4
)

// A sequentialTree writes the tree from left to right in one pass, each byte once, into any file.
// A node is written once it is full, so children lie before their branch:
//
//	| metas | leaf | ... | leaf | branch | leaf | ... | branch | bucket |
//
// Block 0 is written last, so a file that a crash cut off does not begin like a page
// file. The device works all the while. Blocks are summed on their way to it.
//
// Bytes that are not written yet are in buf, as they will be in the file from at on:
//
//	buf | whole nodes | room | key value key value …
//	                  leaf   └ leafRoom behind it
//
// The open leaf leaves room for its header and elements, because their number is known when it
// ends. Then its keys and values move to their final place.
type sequentialTree struct {
	file disk.File
	name string // The name that the file gets.

	first []byte   // Block 0, or as much of it as is complete.
	sums  []uint32 // Checksums of the blocks before at.
	at    int64    // Offset of buf in the file.
	buf   []byte   // Whole nodes that are not written yet, and behind them the open leaf.

	leaf   int       // Offset of the open leaf in buf.
	sizes  []int     // Sizes of its values.
	key    Key       // Its first key.
	levels [][]child // Children of the open branches, those of leaves first.
}

// A child is an entry of a branch.
type child struct {
	key Key // The smallest key below it.
	id  uint64
}

func newSequentialTree(file disk.File, name string) *sequentialTree {
	t := &sequentialTree{file: file, name: name, buf: make([]byte, 2*pageSize, chunkSize+maxLeaf)}
	t.beginLeaf()
	return t
}

func (t *sequentialTree) put(k Key, size int, value [][]byte) error {
	if !t.takes(size) {
		t.endLeaf() // It may end branches too: buf then holds whole nodes only.
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

// leafSize returns the size of the leaf under way.
func (t *sequentialTree) leafSize() int {
	return headerSize + len(t.sizes)*elementSize + len(t.buf) - t.leaf - leafRoom
}

// takes reports whether a value of size bytes belongs into the leaf under way. A leaf
// has the values that fit into a page, or a few large ones, which share what the last
// page leaves empty. The first value fits in any case, however large; one that would make a leaf of small
// ones longer than a page begins another.
func (t *sequentialTree) takes(size int) bool {
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

// endLeaf completes the leaf under way, which is not empty, and names it to the level
// above.
func (t *sequentialTree) endLeaf() {
	id := t.id(t.leaf)
	t.encodeLeaf(id)
	t.pad(t.leaf)
	t.addChild(0, child{t.key, id})
}

// encodeLeaf gives the leaf under way its header and elements.
func (t *sequentialTree) encodeLeaf(id uint64) {
	place := headerSize + len(t.sizes)*elementSize // Of the next key in the leaf.
	data := t.buf[t.leaf+leafRoom:]                // It moves on, or back if there are fewer elements than maxLarge.
	t.buf = slices.Grow(t.buf, max(0, place-leafRoom))[:t.leaf+place+len(data)]
	copy(t.buf[t.leaf+place:], data)
	n := node(t.buf[t.leaf:])
	n.encode(id, flagLeaf, len(t.sizes))
	for i, size := range t.sizes {
		n.encodeEntry(i, 0, place, keySize, size)
		place += keySize + size
	}
}

// addChild adds c to the branch under way at a level, after writing that if it is
// full.
func (t *sequentialTree) addChild(level int, c child) {
	if level == len(t.levels) {
		t.levels = append(t.levels, nil)
	}
	if len(t.levels[level]) == maxChildren {
		t.endBranch(level)
	}
	t.levels[level] = append(t.levels[level], c)
}

// endBranch completes the branch under way at a level and names it to the one above.
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

// endTree completes all nodes and returns the page of the topmost.
func (t *sequentialTree) endTree() uint64 {
	t.endLeaf()
	for level := 0; ; level++ { // Ending one may begin the level above.
		if c := t.levels[level]; level == len(t.levels)-1 && len(c) == 1 {
			return c[0].id
		}
		t.endBranch(level)
	}
}

// endBucket completes the tree and adds the leaf that names it, whose page it
// returns.
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
	t.buf = binary.LittleEndian.AppendUint64(t.buf, 0) // Sequence.
	t.buf = append(t.buf, inline...)
	t.pad(start)
	return id
}

// id returns the number of the page that begins at buf[i].
func (t *sequentialTree) id(i int) uint64 { return uint64(t.at+int64(i)) / pageSize }

// pad fills the last page of the node that begins at buf[start], and says in it how
// many pages follow the first.
func (t *sequentialTree) pad(start int) {
	size := len(t.buf) - start
	overflow := (size - 1) / pageSize
	t.buf = append(t.buf, make([]byte, (overflow+1)*pageSize-size)...)
	binary.LittleEndian.PutUint32(t.buf[start+12:], uint32(overflow))
}

// write writes the first n bytes of buf, which are whole blocks or all that there
// is, but for block 0.
func (t *sequentialTree) write(n int) error {
	rest := t.buf[:n]
	if t.at == 0 { // Its sum is known when the metas are in it, see finish.
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
	if cap(t.buf) > 2*chunkSize { // It held a long value.
		t.buf = make([]byte, 0, chunkSize+maxLeaf)
	}
	t.buf = append(t.buf[:0], left...)
	return nil
}

// finish writes the rest, the trailer and then block 0.
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
