package pagefile

import (
	"context"
	"encoding/binary"
	"io"

	"github.com/stet-ecs/stet/disk"
)

// salvageFactor bounds how many times its own size is read of a file.
const salvageFactor = 4

// Salvage calls visit with every page that it finds in a file which may be damaged
// anywhere, in the order of the file. It looks at every place where a leaf can
// begin and believes no checksum, no page number and not that the file is whole. So
// a page can be found twice, if a transaction of bbolt left it somewhere, and a key
// or a value may be wrong: the caller must have checksums of its own. A value is
// valid until visit returns.
//
// Bytes that the disk does not give are skipped. An error is that of opening the
// file, of ctx, or one of a file whose leaves lie over each other.
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
		// A leaf knows its page. Nothing else is asked of it: what it says of keys and values is tried.
		if readFull(file, name, n, at) != nil || n.id() != uint64(at/pageSize) || n.flags() != flagLeaf {
			continue
		}
		if err := s.leaf(n, at); err != nil {
			return err
		}
	}
	return nil
}

// A salvage is a call of Salvage.
type salvage struct {
	r     io.ReaderAt
	name  string
	size  int64 // Of the file.
	left  int64 // Bytes that may still be read.
	visit func(Key, []byte)
	buf   []byte
}

// leaf visits the pages of the leaf that begins with n, at offset base.
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

// inline visits the pages of a bucket that the leaf n names, if it is written there.
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

// page visits the page that e describes, if the file has as many bytes.
func (s *salvage) page(e entry, base int64) error {
	at, size := base+e.keyAt, keySize+e.size
	if e.size > MaxValueSize || at+size > s.size {
		return nil
	}
	if s.left -= size; s.left < 0 { // Hostile leaves may all name the same gigabyte.
		return corrupt(s.name, base, pageSize, "its pages lie over each other")
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
