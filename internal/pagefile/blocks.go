package pagefile

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
)

// slotCount is how many blocks are kept: 2 MiB at most.
const slotCount = 32

// blocks reads the part of a file before its trailer and compares the checksum
// of every byte it hands out. It is safe for concurrent use.
//
//	block    |   i   |  i+1  |  i+2  |
//	asked       └──────────────┘
//	           part    whole   part        parts come through slots, which keep their blocks
type blocks struct {
	r      io.ReaderAt
	name   string
	length int64
	table  []uint32

	// Block i is kept in slot i modulo slotCount, for the nodes and the ends
	// of values that share a block.
	slots [slotCount]slot
}

// A slot keeps the block read last into it.
type slot struct {
	mu     sync.Mutex
	loaded bool
	block  int64
	data   []byte
}

// bounds returns the first byte and the size of block i.
func (b *blocks) bounds(i int64) (start, size int64) {
	start = i * blockSize
	return start, min(blockSize, b.length-start)
}

// readAt fills buf with the bytes at off, which must lie before the trailer.
// Whole blocks are read straight into buf, parts of blocks through a slot.
func (b *blocks) readAt(buf []byte, off int64) error {
	for len(buf) > 0 {
		i := off / blockSize
		start, size := b.bounds(i)
		var n int64
		var err error
		if off == start && int64(len(buf)) >= size {
			n = max(size, int64(len(buf))/blockSize*blockSize) // All whole ones; the last of a file is shorter.
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

// readWhole fills buf with consecutive blocks and checks each.
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

// readPart copies from byte at of block i on. Whoever wants another block of the same slot waits
// while this one is read.
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

// load puts block i into s.
func (b *blocks) load(s *slot, i int64) error {
	s.loaded = false // What is in data is none until it was compared.
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

// check compares the checksum of block i, whose bytes are data.
func (b *blocks) check(i int64, data []byte) error {
	if crc32.Checksum(data, castagnoli) == b.table[i] {
		return nil
	}
	start, size := b.bounds(i)
	return corrupt(b.name, start, size, "checksum differs")
}

// raw fills buf without comparing checksums: where all blocks are compared before or after, or where
// a look at each leaf shall not cost reading the whole file.
func (b *blocks) raw(buf []byte, off int64) error {
	return readFull(b.r, b.name, buf, off)
}

// readFull fills buf with the bytes at off. That they are not there is damage;
// that the disk does not give them is an error of its own.
func readFull(r io.ReaderAt, name string, buf []byte, off int64) error {
	n, err := r.ReadAt(buf, off)
	if n == len(buf) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return corrupt(name, off, int64(len(buf)), fmt.Sprintf("the file ends after %d of them", n))
	}
	return &DamageError{File: name, Offset: off, Length: int64(len(buf)), Reason: "cannot be read", Err: err}
}
