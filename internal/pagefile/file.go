package pagefile

import (
	"errors"
	"fmt"

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
		return nil, fmt.Errorf("pagefile: %w", err)
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
		return nil, 0, fmt.Errorf("pagefile: %w", err)
	}
	t, err := readTrailer(file, name, size)
	return t, size, err
}

// newFile returns a File that does not know its bucket yet.
func newFile(file disk.File, name string, t *trailer, size int64) *File {
	return &File{
		blocks:  blocks{r: file, name: name, length: t.length, table: t.table},
		file:    file,
		size:    size,
		trailer: t,
	}
}

// findBucket reads bbolt's meta pages and the leaf that names the bucket.
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
	return &DamageError{f.name, offset, length, reason, ErrCorrupt}
}

// Info describes the file. It reads nothing.
func (f *File) Info() Info { return f.trailer.info() }

// Close closes the file. Values that were read stay valid; what is being read
// at the same time fails with [os.ErrClosed].
func (f *File) Close() error { return f.file.Close() }
