package pagefile

import (
	"context"
	"encoding/binary"
	"io"

	"github.com/stet-ecs/stet/disk"
)

// salvageFactor bounds the bytes that Salvage reads, as a multiple of the file's size.
const salvageFactor = 4

// Salvage calls visit with every page that it finds in a damaged file, in the order of the file. It
// checks every offset at which a leaf can begin. It does not rely on checksums, references or the
// trailer. So a page can be found twice, if a transaction of bbolt left an old copy. A key or a
// value may be wrong, so the caller must have checksums of its own. The value is valid until visit
// returns.
//
// Salvage skips bytes that the disk cannot read. It returns an error if the file cannot be opened,
// if ctx ends, or if the file's leaves overlap.
func Salvage(ctx context.Context, dir disk.FS, name string, visit func(k Key, value []byte)) error {
	file, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		return err
	}
	s := salvage{r: file, name: name, size: size, left: salvageFactor * size, visit: visit}
	n := node(make([]byte, pageSize))
	for at := int64(0); at+pageSize <= size; at += pageSize {
		if err := ctx.Err(); err != nil {
			return err
		}
		// The header of a leaf has the number of its page, and a flag. If both match, leaf() tries
		// the keys and values without further checks.
		if readFull(file, name, n, at) != nil || n.id() != uint64(at/pageSize) || n.flags() != flagLeaf {
			continue
		}
		if err := s.leaf(n, at); err != nil {
			return err
		}
	}
	return nil
}

// A salvage is the state of one call of Salvage.
type salvage struct {
	r     io.ReaderAt
	name  string
	size  int64 // File size in bytes.
	left  int64 // Number of bytes that may still be read.
	visit func(Key, []byte)
	buf   []byte
}

// leaf visits the pages of the leaf n. base: the offset of the leaf.
func (s *salvage) leaf(n node, base int64) error {
	for i := range min(n.count(), (len(n)-headerSize)/elementSize) {
		e := n.element(i)
		if at := binary.LittleEndian.Uint32(e); at == flagBucket && n.count() == 1 {
			return s.inline(n, base)
		} else if at != 0 || binary.LittleEndian.Uint32(e[8:]) != keySize {
			continue
		}
		if err := s.page(n.entry(i), base); err != nil {
			return err
		}
	}
	return nil
}

// inline visits the pages of an inline bucket in leaf n, if n contains one.
func (s *salvage) inline(n node, base int64) error {
	at := headerSize + elementSize + len(bucketName) + bucketHeader
	if inline := n[at:]; binary.LittleEndian.Uint64(n[at-bucketHeader:]) == 0 && inline.flags() == flagLeaf {
		for i := range min(inline.count(), (len(inline)-headerSize)/elementSize) {
			if err := s.page(inline.entry(i), base+int64(at)); err != nil {
				return err
			}
		}
	}
	return nil
}

// page visits the page that e describes, if the file is long enough.
func (s *salvage) page(e entry, base int64) error {
	at, size := base+e.keyAt, keySize+e.size
	if e.size > MaxValueSize || at+size > s.size {
		return nil
	}
	if s.left -= size; s.left < 0 { // In a hostile file, many leaves share bytes.
		return corrupt(s.name, base, pageSize, "its leaves overlap")
	}
	if int64(cap(s.buf)) < size {
		s.buf = make([]byte, size)
	}
	buf := s.buf[:size]
	if readFull(s.r, s.name, buf, at) == nil {
		s.visit(decodeKey(buf), buf[keySize:])
	}
	return nil
}
