package pagefile

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/stet-ecs/stet/disk"
)

// slotCount is the number of cached blocks. The cache takes at most 2 MiB.
const slotCount = 32

// blocks reads the part of a file before its trailer. It verifies the checksum of every byte that
// it returns. It is safe for concurrent use.
//
// A request can begin and end inside a block. The slots cache blocks of which a request needs only
// a part. Blocks that a request needs as a whole are read directly into its buffer.
type blocks struct {
	r      io.ReaderAt
	name   string
	length int64
	table  []uint32

	// Block i is cached in slot i modulo slotCount. Nodes and the ends of values share blocks, so
	// the same block is often read again.
	slots [slotCount]slot
}

// A slot caches the last block that was read into it.
type slot struct {
	mu     sync.Mutex
	loaded bool
	block  int64
	data   []byte
}

// bounds returns the offset and the size of block i.
func (b *blocks) bounds(i int64) (start, size int64) {
	start = i * blockSize
	return start, min(blockSize, b.length-start)
}

// readAt fills buf with the bytes at off, which must be before the trailer. It reads whole blocks
// directly into buf, and parts of blocks through a slot.
func (b *blocks) readAt(buf []byte, off int64) error {
	for len(buf) > 0 {
		i := off / blockSize
		start, size := b.bounds(i)
		var n int64
		var err error
		if off == start && int64(len(buf)) >= size {
			// Read all whole blocks at once. The last block of a file is shorter.
			n = max(size, int64(len(buf))/blockSize*blockSize)
			err = b.readWhole(buf[:n], off)
		} else {
			n = min(int64(len(buf)), start+size-off)
			err = b.readPart(buf[:n], i, off-start)
		}
		if err != nil {
			return err
		}
		buf, off = buf[n:], off+n
	}
	return nil
}

// readWhole fills buf with consecutive blocks and verifies each of them.
func (b *blocks) readWhole(buf []byte, off int64) error {
	if err := readFull(b.r, b.name, buf, off); err != nil {
		return err
	}
	for len(buf) > 0 {
		i := off / blockSize
		_, size := b.bounds(i)
		if err := b.check(i, buf[:size]); err != nil {
			return err
		}
		buf, off = buf[size:], off+size
	}
	return nil
}

// readPart copies bytes of block i. at: the offset of the first byte in the block. Meanwhile other
// readers of the same slot wait.
func (b *blocks) readPart(buf []byte, i, at int64) error {
	s := &b.slots[i%slotCount]
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.loaded || s.block != i {
		if err := b.load(s, i); err != nil {
			return err
		}
	}
	copy(buf, s.data[at:])
	return nil
}

// load reads block i into s.
func (b *blocks) load(s *slot, i int64) error {
	s.loaded = false // data is invalid until its checksum was verified.
	start, size := b.bounds(i)
	if int64(cap(s.data)) < size {
		s.data = make([]byte, size)
	}
	s.data = s.data[:size]
	if err := b.readWhole(s.data, start); err != nil {
		return err
	}
	s.loaded, s.block = true, i
	return nil
}

// check verifies the checksum of block i, whose bytes are data.
func (b *blocks) check(i int64, data []byte) error {
	if crc32.Checksum(data, castagnoli) == b.table[i] {
		return nil
	}
	start, size := b.bounds(i)
	return corrupt(b.name, start, size, "checksum differs")
}

// raw fills buf without verifying checksums. Some callers verify all blocks before or after the
// call. Others read only a few bytes of each leaf. They would have to read the whole file to verify
// these bytes.
func (b *blocks) raw(buf []byte, off int64) error {
	return readFull(b.r, b.name, buf, off)
}

// readFull fills buf with the bytes at off. If the file is too short, the error wraps
// disk.ErrCorrupt. If the disk fails, the error wraps the disk's error.
func readFull(r io.ReaderAt, name string, buf []byte, off int64) error {
	n, err := r.ReadAt(buf, off)
	if n == len(buf) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return corrupt(name, off, int64(len(buf)), fmt.Sprintf("the file ends after %d of them", n))
	}
	return &disk.DamageError{File: name, Offset: off, Length: int64(len(buf)), Reason: "cannot be read", Err: err}
}
