package pagefile

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"slices"

	"github.com/stet-ecs/stet/disk"
)

const (
	// MaxValueSize is the longest value a page can have, in bytes.
	MaxValueSize = 1 << 30

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

// A Writer takes the pages of a file that [Create] writes. It is valid until
// the function it was given to returns, and is not safe for concurrent use.
//
// It loads the tree from left to right. A node is written once it is full, so that
// children lie before their branch:
//
//	| metas | leaf | ... | leaf | branch | leaf | ... | branch | bucket |
//
// Block 0 is written last, so that what a crash cuts off does not begin like a page
// file. The device works all the while, and blocks are summed on their way to it.
//
// What is not written yet lies in buf, as it will lie in the file from at on:
//
//	buf | whole nodes | room | key value key value …
//	                  leaf   └ leafRoom behind it
//
// The leaf under way leaves room for its header and elements, since how many there are is known when it
// ends; then its keys and values move to where they belong.
type Writer struct {
	file disk.File
	name string // That the file gets.

	first []byte   // Block 0, or as much of it as there is.
	sums  []uint32 // Of the blocks before at.
	at    int64    // Offset of buf in the file.
	buf   []byte   // What is not written yet: whole nodes, and behind them the leaf under way.

	leaf   int       // Where the leaf under way begins in buf.
	sizes  []int     // Of its values.
	key    Key       // Its first one.
	levels [][]child // Children of the branches under way, those of leaves first.

	last  Key
	pages uint64
	err   error // Sticky.
}

// A child is an entry of a branch.
type child struct {
	key Key // The smallest below it.
	id  uint64
}

func newWriter(file disk.File, name string) *Writer {
	w := &Writer{file: file, name: name, buf: make([]byte, 2*pageSize, chunkSize+maxLeaf)}
	w.beginLeaf()
	return w
}

// Put adds a page. Keys must ascend. The value may come in parts, which are copied.
// After an error every later Put returns it again, and so does [Create].
//
// The errors are [ErrOrder], [ErrTooLarge], and those of writing the file.
func (w *Writer) Put(k Key, value ...[]byte) error {
	if w.err == nil {
		w.err = w.put(k, value)
	}
	return w.err
}

func (w *Writer) put(k Key, value [][]byte) error {
	size := 0
	for _, part := range value {
		size += len(part)
	}
	if err := w.admit(k, int64(size)); err != nil {
		return err
	}
	if !w.takes(size) {
		w.endLeaf() // And perhaps branches: all in buf is whole nodes.
		if len(w.buf) >= chunkSize {
			if err := w.write(len(w.buf) / blockSize * blockSize); err != nil {
				return err
			}
		}
		w.beginLeaf()
	}
	if len(w.sizes) == 0 {
		w.key = k
	}
	key := k.encode()
	w.buf = append(w.buf, key[:]...)
	for _, part := range value {
		w.buf = append(w.buf, part...)
	}
	w.sizes = append(w.sizes, size)
	w.last = k
	w.pages++
	return nil
}

// admit says whether a page with a value of size bytes may come next.
func (w *Writer) admit(k Key, size int64) error {
	switch {
	case w.pages > 0 && k.Compare(w.last) <= 0:
		return fmt.Errorf("%w: %v after %v", ErrOrder, k, w.last)
	case size > MaxValueSize:
		return fmt.Errorf("%w: %v has %d bytes", ErrTooLarge, k, size)
	}
	return nil
}

// leafSize returns the size of the leaf under way.
func (w *Writer) leafSize() int {
	return headerSize + len(w.sizes)*elementSize + len(w.buf) - w.leaf - leafRoom
}

// takes reports whether a value of size bytes belongs into the leaf under way. A leaf
// has the values that fit into a page, or a few large ones, which share what the last
// page leaves empty. The first value fits in any case, however large; one that would make a leaf of small
// ones longer than a page begins another.
func (w *Writer) takes(size int) bool {
	if len(w.sizes) == 0 {
		return true
	}
	before := w.leafSize()
	after := before + elementSize + keySize + size
	return after <= pageSize || before > pageSize && after <= maxLeaf && len(w.sizes) < maxLarge
}

// beginLeaf begins a leaf at the end of buf.
func (w *Writer) beginLeaf() {
	w.leaf, w.sizes = len(w.buf), w.sizes[:0]
	w.buf = append(w.buf, make([]byte, leafRoom)...)
}

// endLeaf completes the leaf under way, which is not empty, and names it to the level
// above.
func (w *Writer) endLeaf() {
	id := w.id(w.leaf)
	w.encodeLeaf(id)
	w.pad(w.leaf)
	w.addChild(0, child{w.key, id})
}

// encodeLeaf gives the leaf under way its header and elements.
func (w *Writer) encodeLeaf(id uint64) {
	place := headerSize + len(w.sizes)*elementSize // Of the next key in the leaf.
	data := w.buf[w.leaf+leafRoom:]                // It moves on, or back if there are fewer elements than maxLarge.
	w.buf = slices.Grow(w.buf, max(0, place-leafRoom))[:w.leaf+place+len(data)]
	copy(w.buf[w.leaf+place:], data)
	n := node(w.buf[w.leaf:])
	n.encode(id, flagLeaf, len(w.sizes))
	for i, size := range w.sizes {
		n.encodeEntry(i, 0, place, keySize, size)
		place += keySize + size
	}
}

// addChild adds c to the branch under way at a level, after writing that if it is
// full.
func (w *Writer) addChild(level int, c child) {
	if level == len(w.levels) {
		w.levels = append(w.levels, nil)
	}
	if len(w.levels[level]) == maxChildren {
		w.endBranch(level)
	}
	w.levels[level] = append(w.levels[level], c)
}

// endBranch completes the branch under way at a level and names it to the one above.
func (w *Writer) endBranch(level int) {
	children := w.levels[level]
	start := len(w.buf)
	id := w.id(start)
	w.buf = append(w.buf, make([]byte, pageSize)...)
	n := node(w.buf[start:])
	n.encode(id, flagBranch, len(children))
	place := headerSize + len(children)*elementSize
	for i, c := range children {
		n.encodeChild(i, place, c.id)
		key := c.key.encode()
		place += copy(n[place:], key[:])
	}
	w.levels[level] = children[:0]
	w.addChild(level+1, child{children[0].key, id})
}

// endTree completes all nodes and returns the page of the topmost.
func (w *Writer) endTree() uint64 {
	w.endLeaf()
	for level := 0; ; level++ { // Ending one may begin the level above.
		if c := w.levels[level]; level == len(w.levels)-1 && len(c) == 1 {
			return c[0].id
		}
		w.endBranch(level)
	}
}

// endBucket completes the tree and adds the leaf that names it, whose page it
// returns.
func (w *Writer) endBucket() uint64 {
	var inline []byte
	var top uint64
	if len(w.levels) == 0 && w.leafSize() <= maxInline {
		w.encodeLeaf(0)
		inline = slices.Clone(w.buf[w.leaf:])
		w.buf = w.buf[:w.leaf]
	} else {
		top = w.endTree()
	}
	start := len(w.buf)
	id := w.id(start)
	place := headerSize + elementSize
	w.buf = append(w.buf, make([]byte, place)...)
	n := node(w.buf[start:])
	n.encode(id, flagLeaf, 1)
	n.encodeEntry(0, flagBucket, place, len(bucketName), bucketHeader+len(inline))
	w.buf = append(w.buf, bucketName...)
	w.buf = binary.LittleEndian.AppendUint64(w.buf, top)
	w.buf = binary.LittleEndian.AppendUint64(w.buf, 0) // Sequence.
	w.buf = append(w.buf, inline...)
	w.pad(start)
	return id
}

// id returns the number of the page that begins at buf[i].
func (w *Writer) id(i int) uint64 { return uint64(w.at+int64(i)) / pageSize }

// pad fills the last page of the node that begins at buf[start], and says in it how
// many pages follow the first.
func (w *Writer) pad(start int) {
	size := len(w.buf) - start
	overflow := (size - 1) / pageSize
	w.buf = append(w.buf, make([]byte, (overflow+1)*pageSize-size)...)
	binary.LittleEndian.PutUint32(w.buf[start+12:], uint32(overflow))
}

// write writes the first n bytes of buf, which are whole blocks or all that there
// is, but for block 0.
func (w *Writer) write(n int) error {
	rest := w.buf[:n]
	if w.at == 0 { // Its sum is known when the metas are in it, see finish.
		w.first = slices.Clone(rest[:min(n, blockSize)])
		rest = rest[len(w.first):]
		w.at = int64(len(w.first))
		w.sums = append(w.sums, 0)
	}
	if len(rest) > 0 {
		if err := w.writeAt(rest, w.at); err != nil {
			return err
		}
		// Sync at the end has less to wait for, see disk.File.
		if f, ok := w.file.(interface{ WriteBack(offset, size int64) }); ok {
			f.WriteBack(w.at, int64(len(rest)))
		}
	}
	for block := range slices.Chunk(rest, blockSize) {
		w.sums = append(w.sums, crc32.Checksum(block, castagnoli))
	}
	w.at += int64(len(rest))
	left := w.buf[n:]
	if cap(w.buf) > 2*chunkSize { // It held a long value.
		w.buf = make([]byte, 0, chunkSize+maxLeaf)
	}
	w.buf = append(w.buf[:0], left...)
	return nil
}

// finish writes what is left, block 0 and the trailer, which it returns.
func (w *Writer) finish() (*trailer, error) {
	if w.err != nil {
		return nil, w.err
	}
	root := w.endBucket()
	if err := w.write(len(w.buf)); err != nil {
		return nil, err
	}
	encodeMetas(w.first, root, uint64(w.at)/pageSize)
	w.sums[0] = crc32.Checksum(w.first, castagnoli)
	t := &trailer{length: w.at, pages: w.pages, table: w.sums}
	if err := w.writeAt(t.encode(), t.length); err != nil {
		return nil, err
	}
	if err := w.writeAt(w.first, 0); err != nil {
		return nil, err
	}
	return t, nil
}

func (w *Writer) writeAt(b []byte, offset int64) error {
	if _, err := w.file.WriteAt(b, offset); err != nil {
		return fmt.Errorf("pagefile: write %s: %w", w.name, err)
	}
	return nil
}

// close makes every later Put fail.
func (w *Writer) close() {
	if w.err == nil {
		w.err = fmt.Errorf("pagefile: the writer is closed: %w", os.ErrClosed)
	}
}
