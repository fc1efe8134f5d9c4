package pagefile

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"

	"github.com/stet-ecs/stet/disk"
)

// Info describes a page file.
type Info struct {
	Size   int64  // File size in bytes.
	Pages  uint64 // Number of keys.
	Blocks int64  // Number of checksummed blocks.
	CRC    uint32 // CRC-32C of the block table. A different value means different content.
}

// A File is a page file that is open for reading. It is safe for concurrent use, takes no lock and
// writes nothing. A file may be open as several Files.
type File struct {
	blocks
	file    disk.File
	size    int64
	trailer *trailer
	bucket  bucket
}

// Open opens a page file. name is its path inside dir. Open checks the trailer, the file's length
// and the start of the page tree. [File.Get] and [File.Scan] check the parts that they read;
// [File.Verify] checks everything.
//
// The errors are [disk.ErrForeign], [disk.ErrNewer], a [*disk.DamageError], and the errors of
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

// open opens the file and reads its trailer. These are the first steps of Open.
func open(dir disk.FS, name string) (*File, error) {
	file, err := dir.Open(name)
	switch {
	case errors.Is(err, disk.ErrIrregular):
		return nil, fmt.Errorf("%w: %w", disk.ErrForeign, err)
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

// newFile returns a File without its bucket. Open reads the bucket next. Check first verifies all
// blocks, because damage may prevent reading the bucket.
func newFile(file disk.File, name string, t *trailer, size int64) *File {
	return &File{
		blocks:  blocks{r: file, name: name, length: t.length, table: t.table},
		file:    file,
		size:    size,
		trailer: t,
	}
}

// findBucket reads three pages: bbolt's two meta pages, and the leaf that names the bucket. The
// meta pages have the page number of that leaf. The leaf has the page number of the tree's root
// node. If the tree is small, the leaf contains the whole tree instead.
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

// limit returns the number of pages in bbolt's part of the file.
func (f *File) limit() int64 { return f.length / pageSize }

// malformed returns the error for bytes with an invalid meaning. Their checksum may match.
func (f *File) malformed(offset, length int64, reason string) error {
	return corrupt(f.name, offset, length, reason)
}

// Info describes the file. It reads nothing.
func (f *File) Info() Info { return f.trailer.info() }

// Close closes the file. Values that were read stay valid. Concurrent reads fail with
// [os.ErrClosed].
func (f *File) Close() error { return f.file.Close() }

// maxDepth bounds the depth of the tree. Two levels already hold 28,000 leaves, and seven levels
// hold more than any disk.
const maxDepth = 12

// nodeBuffers holds buffers of one page.
var nodeBuffers = sync.Pool{New: func() any {
	b := make([]byte, pageSize)
	return &b
}}

// Get returns the value of page k, and whether the page exists. The caller owns the value. Get
// reads one page of the file for each level of the tree, and then the value, in whole blocks. A
// file of 1 GB with values of 64 KiB has three levels.
//
// A [*disk.DamageError] names the first damaged bytes on the path.
func (f *File) Get(k Key) (value []byte, ok bool, err error) { return f.GetInto(nil, k) }

// GetInto is [File.Get], but may use the memory of dst for the value.
func (f *File) GetInto(dst []byte, k Key) (value []byte, ok bool, err error) {
	if f.bucket.root == 0 {
		return f.getLeaf(f.bucket.inline, f.bucket.inlineAt, k, dst)
	}
	buf := nodeBuffers.Get().(*[]byte)
	defer nodeBuffers.Put(buf)
	n, id := node(*buf), f.bucket.root
	for depth := 0; ; depth++ {
		if depth == maxDepth { // A branch of a hostile file may refer to itself.
			return nil, false, f.malformed(int64(id)*pageSize, pageSize, "the tree is too deep")
		}
		if err := f.readNode(f.readAt, n, id); err != nil {
			return nil, false, err
		}
		if n.isLeaf() {
			return f.getLeaf(n, int64(id)*pageSize, k, dst)
		}
		i := n.search(k)
		if i < 0 { // k is less than the first key of the file.
			return nil, false, nil
		}
		id = n.child(i)
	}
}

// readNode reads and checks the first page of node id.
func (f *File) readNode(read readFunc, n node, id uint64) error {
	if err := read(n, int64(id)*pageSize); err != nil {
		return err
	}
	if reason := checkNode(n, id, f.limit()); reason != "" {
		return f.malformed(int64(id)*pageSize, pageSize, reason)
	}
	return nil
}

// search returns the index of the child that may contain k, or -1 if k is less than all keys. n is
// a checked branch.
func (n node) search(k Key) int {
	return sort.Search(n.count(), func(i int) bool { return n.branchKey(i).Compare(k) > 0 }) - 1
}

// getLeaf looks for k in the leaf that begins at offset base. n is the first page of the leaf.
// getLeaf compares the keys in order and stops as soon as possible. In a leaf of large values, each
// key is in another block.
func (f *File) getLeaf(n node, base int64, k Key, dst []byte) ([]byte, bool, error) {
	for i := range n.count() {
		e := n.entry(i)
		key, err := f.readKey(f.readAt, n, base, e)
		if err != nil {
			return nil, false, err
		}
		switch key.Compare(k) {
		case 0:
			value := slices.Grow(dst[:0], int(e.size))[:e.size]
			if end := e.valueAt() + e.size; end <= int64(len(n)) {
				copy(value, n[e.valueAt():end])
				return value, true, nil
			}
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

// A readFunc reads bytes before the trailer, with or without verifying their checksums.
type readFunc func(buf []byte, off int64) error

// readKey returns the key of entry e in a leaf. n is the first page of the leaf, and base is the
// offset of the leaf. A key after a large value is not in n, so readKey reads it from the file.
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
