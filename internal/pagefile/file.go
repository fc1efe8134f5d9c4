package pagefile

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/stet-ecs/stet/disk"
)

// Info describes a page file.
type Info struct {
	Size   int64  // Of the file, in bytes.
	Pages  uint64 // Keys in it.
	Blocks int64  // Checksummed blocks.
	CRC    uint32 // CRC-32C of the block table: another one means other content.
}

// A File is a page file open for reading. It is safe for concurrent use, takes
// no lock and writes nothing. Any number of Files can be open on one file.
type File struct {
	blocks
	file    disk.File
	size    int64
	trailer *trailer
	bucket  bucket
}

// Open opens the page file called name, a path inside dir. It checks the
// trailer, the file's length and where the tree of pages begins; [File.Get]
// and [File.Scan] check the rest on their way, and [File.Verify] all of it.
//
// The errors are [ErrForeign], [ErrNewer], a [*DamageError], and those of
// opening a file.
func Open(dir disk.FS, name string) (*File, error) {
	f, err := open(dir, name)
	if err != nil {
		return nil, err
	}
	if f.bucket, err = f.findBucket(f.readAt); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// open is Open up to the trailer.
func open(dir disk.FS, name string) (*File, error) {
	file, err := dir.Open(name)
	switch {
	case errors.Is(err, disk.ErrIrregular):
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	case err != nil:
		return nil, err
	}
	t, size, err := inspect(file, name)
	if err != nil {
		file.Close()
		return nil, err
	}
	return newFile(file, name, t, size), nil
}

// inspect returns the trailer and the size of a file that was just opened.
func inspect(file disk.File, name string) (*trailer, int64, error) {
	size, err := file.Size()
	if err != nil {
		return nil, 0, err
	}
	t, err := readTrailer(file, name, size)
	return t, size, err
}

// newFile returns a File that does not know its bucket yet: Check looks at all blocks first, of which one
// that is damaged may hide it.
func newFile(file disk.File, name string, t *trailer, size int64) *File {
	return &File{
		blocks:  blocks{r: file, name: name, length: t.length, table: t.table},
		file:    file,
		size:    size,
		trailer: t,
	}
}

// findBucket reads bbolt's meta pages and the leaf that names the bucket: three pages.
//
//	pages 0, 1      page root          page bucket.root
//	metas ──root──▶ leaf "pages" ────▶ topmost node of the tree
//	                      └ or the only leaf itself, if it is small
func (f *File) findBucket(read readFunc) (bucket, error) {
	metas := make([]byte, 2*pageSize)
	if err := read(metas, 0); err != nil {
		return bucket{}, err
	}
	root, reason := checkMetas(metas, f.limit())
	if reason != "" {
		return bucket{}, f.malformed(0, 2*pageSize, reason)
	}
	leaf := node(make([]byte, pageSize))
	at := int64(root) * pageSize
	if err := read(leaf, at); err != nil {
		return bucket{}, err
	}
	b, reason := decodeBucket(leaf, root, f.limit())
	if reason != "" {
		return bucket{}, f.malformed(at, pageSize, reason)
	}
	return b, nil
}

// limit returns how many pages bbolt's part of the file has.
func (f *File) limit() int64 { return f.length / pageSize }

// malformed reports bytes whose checksum may fit and whose meaning does not.
func (f *File) malformed(offset, length int64, reason string) error {
	return corrupt(f.name, offset, length, reason)
}

// Info describes the file. It reads nothing.
func (f *File) Info() Info { return f.trailer.info() }

// Close closes the file. Values that were read stay valid; what is being read
// at the same time fails with [os.ErrClosed].
func (f *File) Close() error { return f.file.Close() }

// maxDepth bounds the way down a tree. Two levels already hold 28,000 leaves,
// and five more than a disk.
const maxDepth = 12

// nodeBuffers holds buffers of one page.
var nodeBuffers = sync.Pool{New: func() any {
	b := make([]byte, pageSize)
	return &b
}}

// Get returns the value of page k and whether there is one. The value is the
// caller's. It reads one page of the file for each level of the tree (three for a
// file of 1 GB with values of 64 KiB) and the value, in whole blocks.
//
// A [*DamageError] names the first bytes on the way that are damaged.
func (f *File) Get(k Key) (value []byte, ok bool, err error) { return f.GetInto(nil, k) }

// GetInto is [File.Get] that may use the memory of dst for the value.
func (f *File) GetInto(dst []byte, k Key) (value []byte, ok bool, err error) {
	if f.bucket.root == 0 {
		return f.getInline(k)
	}
	buf := nodeBuffers.Get().(*[]byte)
	defer nodeBuffers.Put(buf)
	n, id := node(*buf), f.bucket.root
	for depth := 0; ; depth++ {
		if depth == maxDepth { // A branch of a hostile file may name itself.
			return nil, false, f.malformed(int64(id)*pageSize, pageSize, "the tree is too deep")
		}
		if err := f.readNode(f.readAt, n, id); err != nil {
			return nil, false, err
		}
		if n.isLeaf() {
			return f.getLeaf(n, id, k, dst)
		}
		i := n.search(k)
		if i < 0 { // It is below the first key that there is.
			return nil, false, nil
		}
		id = n.child(i)
	}
}

// readNode reads and checks the first page of the node id.
func (f *File) readNode(read readFunc, n node, id uint64) error {
	if err := read(n, int64(id)*pageSize); err != nil {
		return err
	}
	if reason := checkNode(n, id, f.limit()); reason != "" {
		return f.malformed(int64(id)*pageSize, pageSize, reason)
	}
	return nil
}

// search returns the child of a checked branch that k lies below, or -1 if it
// is smaller than all keys.
func (n node) search(k Key) int {
	low, high := 0, n.count() // Keys before low are <= k, those from high on are above.
	for low < high {
		middle := int(uint(low+high) / 2)
		if n.branchKey(middle).Compare(k) <= 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low - 1
}

// getLeaf looks for k in the leaf id. It reads no more keys than it needs: in a
// leaf of large values each lies in a block of its own.
func (f *File) getLeaf(n node, id uint64, k Key, dst []byte) ([]byte, bool, error) {
	base := int64(id) * pageSize
	for i := range n.count() {
		e := n.entry(i)
		key, err := f.readKey(f.readAt, n, base, e)
		if err != nil {
			return nil, false, err
		}
		switch key.Compare(k) {
		case 0:
			value := slices.Grow(dst[:0], int(e.size))[:e.size]
			if err := f.readAt(value, base+e.valueAt()); err != nil {
				return nil, false, err
			}
			return value, true, nil
		case 1:
			return nil, false, nil
		}
	}
	return nil, false, nil
}

// readFunc reads bytes before the trailer, with or without a look at their
// checksums.
type readFunc func(buf []byte, off int64) error

// readKey returns the key of an entry of the leaf at offset base. Behind a large value it lies beyond
// the first page of the leaf, which is all that n has.
func (f *File) readKey(read readFunc, n node, base int64, e entry) (Key, error) {
	if e.valueAt() <= int64(len(n)) {
		return decodeKey(n[e.keyAt:]), nil
	}
	var key [keySize]byte
	if err := read(key[:], base+e.keyAt); err != nil {
		return Key{}, err
	}
	return decodeKey(key[:]), nil
}

// getInline looks for k in a bucket that is written inline.
func (f *File) getInline(k Key) ([]byte, bool, error) {
	n := f.bucket.inline
	for i := range n.count() {
		if e := n.entry(i); decodeKey(n[e.keyAt:]) == k {
			return append([]byte{}, n[e.valueAt():e.valueAt()+e.size]...), true, nil
		}
	}
	return nil, false, nil
}
