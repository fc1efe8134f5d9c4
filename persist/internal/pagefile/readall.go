package pagefile

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/stet-ecs/stet/disk"
)

const (
	// stripeSize is the number of bytes that one goroutine reads at a time. If a value crosses the
	// end of a stripe, the last blocks of the value are read twice.
	stripeSize = 32 * blockSize

	// windowSize is the number of bytes per read. It is small, so the bytes are still in the
	// processor's cache when they are verified, decoded and copied.
	windowSize = 4 * blockSize
)

// These functions read a whole file in the order of its bytes, not in the order of keys. First they
// read the nodes of the tree to find the places of the pages. Then several goroutines read stripes
// of the file. In a stripe, a window moves block by block. The checksum of each block is verified,
// and the pages in the window are visited. A place belongs to the stripe in which it begins.
//
// Nodes are read twice. The first read finds the places without verifying checksums. The second
// read verifies the nodes as parts of their blocks.

// ReadAll reads the whole file once and calls visit with every page. It calls visit from one
// goroutine per processor, in no particular order. The value is valid until visit returns.
//
// ReadAll verifies each block before it passes bytes of the block to visit. A later block may still
// be damaged: the whole file is verified once ReadAll has returned nil. If blocks are damaged,
// ReadAll returns the same error as [File.Verify]. It stops at the first error of visit, and when
// ctx ends.
//
// Memory: 24 bytes for each page. In addition, each goroutine takes 256 KiB or the size of the
// longest value.
func (f *File) ReadAll(ctx context.Context, visit func(k Key, value []byte) error) error {
	places, malformed := f.places(anyKey)
	if malformed != nil {
		// Damaged blocks may be the cause. Without places, readBlocks only verifies the blocks, so
		// it reports such damage first.
		places = nil
	}
	if err := f.readBlocks(ctx, places, visit); err != nil {
		return err
	}
	return malformed
}

func anyKey(Key) bool { return true }

// ReadSome is like [File.ReadAll], but reads only the pages for which want returns true. It reads
// the nodes of the tree and the blocks with those pages. It verifies the checksums of these blocks
// and stops at the first damage.
func (f *File) ReadSome(ctx context.Context, want func(Key) bool, visit func(k Key, value []byte) error) error {
	places, err := f.places(want)
	if err != nil {
		return err
	}
	return f.stripes(func() func(start, end int64) error {
		w := window{blocks: &f.blocks}
		return func(start, end int64) error { return w.visitStripe(ctx, start, end, within(places, start, end), visit) }
	})
}

// stripes calls a function for each stripe of the file, from one goroutine per processor. The
// function begin makes one such function per goroutine. stripes returns the first error. After an
// error, it starts no further calls.
func (f *File) stripes(begin func() func(start, end int64) error) error {
	var (
		wg     sync.WaitGroup
		next   atomic.Int64 // Offset of the next stripe.
		failed atomic.Bool
		once   sync.Once
		first  error
	)
	for range min(int64(runtime.GOMAXPROCS(0)), (f.length+stripeSize-1)/stripeSize) {
		wg.Go(func() {
			read := begin()
			for !failed.Load() {
				end := next.Add(stripeSize)
				start := end - stripeSize
				if start >= f.length {
					return
				}
				if err := read(start, min(end, f.length)); err != nil {
					once.Do(func() { first = err })
					failed.Store(true)
				}
			}
		})
	}
	wg.Wait()
	return first
}

// readBlocks reads and verifies all blocks and visits the places in them. It returns all damaged
// ranges, joined, in ascending order.
func (f *File) readBlocks(ctx context.Context, places []place, visit func(Key, []byte) error) error {
	var mu sync.Mutex
	var damaged []*disk.DamageError
	// Damage that a stripe has reported. If all checksums match afterwards, the file was changed
	// between two reads.
	var changed *disk.DamageError
	err := f.stripes(func() func(start, end int64) error {
		w := window{blocks: &f.blocks, all: true}
		return func(start, end int64) error {
			err := w.visitStripe(ctx, start, end, within(places, start, end), visit)
			var damage *disk.DamageError
			if !errors.As(err, &damage) {
				return err
			}
			// visitStripe stops at the first damaged block of the stripe. Find the other damaged
			// blocks.
			found := f.damagedBlocks(start, end)
			mu.Lock()
			defer mu.Unlock()
			damaged, changed = append(damaged, found...), damage
			return ctx.Err()
		}
	})
	switch {
	case err != nil:
		return err
	case len(damaged) > 0:
		slices.SortStableFunc(damaged, func(a, b *disk.DamageError) int { return cmp.Compare(a.Offset, b.Offset) })
		return join(damaged)
	case changed != nil:
		return changed
	}
	return nil
}

// damagedBlocks returns the damage of the blocks in [start, end).
func (f *File) damagedBlocks(start, end int64) (damaged []*disk.DamageError) {
	buf := make([]byte, blockSize)
	for ; start < end; start += blockSize {
		if damage, ok := errors.AsType[*disk.DamageError](f.readWhole(buf[:min(blockSize, end-start)], start)); ok {
			damaged = append(damaged, damage)
		}
	}
	return damaged
}

// A place is the position of a page: its key, and the value directly after the key.
type place struct {
	key       Key
	off, size int64
}

// places checks the tree of pages and returns the positions of the wanted pages, ordered by offset.
// It reads the nodes without verifying checksums.
func (f *File) places(want func(Key) bool) ([]place, error) {
	var places []place
	err := f.walk(f.bucket, f.raw, func(k Key, off, size int64) error {
		if !want(k) {
			return nil
		}
		places = append(places, place{k, off - keySize, keySize + size})
		return nil
	})
	sort.Slice(places, func(i, j int) bool { return places[i].off < places[j].off })
	return places, err
}

// CountSmall returns how many pages have values of at most the given size, as far as the tree can
// be read. It reads the nodes without verifying checksums, and reads no values.
func (f *File) CountSmall(limit int64) (n int64) {
	_ = f.walk(f.bucket, f.raw, func(_ Key, _, size int64) error {
		if size <= limit {
			n++
		}
		return nil
	})
	return n
}

// within returns the sorted places that begin in [start, end).
func within(places []place, start, end int64) []place {
	at := func(off int64) int {
		i, _ := slices.BinarySearchFunc(places, off, func(p place, off int64) int { return cmp.Compare(p.off, off) })
		return i
	}
	return places[at(start):at(end)]
}

// A window moves through a file block by block. It holds the blocks that were read last, all
// verified.
type window struct {
	*blocks
	all   bool   // Read all blocks, not only those with places.
	start int64  // File offset of buf.
	buf   []byte // Whole blocks. Bytes before the current page may be dropped.
}

func (w *window) end() int64 { return w.start + int64(len(w.buf)) }

// visitStripe reads the blocks of [start, end) and visits places, which begin in that range.
func (w *window) visitStripe(ctx context.Context, start, end int64, places []place, visit func(Key, []byte) error) error {
	w.start, w.buf = start, w.buf[:0]
	for _, p := range places {
		// Jump to the block of p: the blocks in between contain no wanted page.
		if !w.all && p.off >= w.end() {
			w.start, w.buf = p.off/blockSize*blockSize, w.buf[:0]
		}
		if err := w.readTo(ctx, p.off, p.off+p.size); err != nil {
			return err
		}
		page := w.buf[p.off-w.start:][:p.size:p.size]
		// places() has read this key without verifying its block. The block is now verified, so
		// compare the key again.
		if decodeKey(page) != p.key {
			return corrupt(w.name, p.off, keySize, "it changed while it was read")
		}
		if err := visit(p.key, page[keySize:]); err != nil {
			return err
		}
	}
	if !w.all {
		return nil
	}
	return w.readTo(ctx, end, end)
}

// readTo reads blocks until the window holds [off, end). It drops the bytes before off.
func (w *window) readTo(ctx context.Context, off, end int64) error {
	for w.end() < end {
		if err := ctx.Err(); err != nil {
			return err
		}
		// Keep the bytes after off, if any. They are the beginning of a value.
		drop := min(off, w.end()) - w.start
		kept := copy(w.buf, w.buf[drop:])
		w.start += drop
		from := w.start + int64(kept)
		more := (end - from + blockSize - 1) / blockSize * blockSize
		if w.all {
			more = max(more, windowSize)
		}
		more = min(more, w.length-from)
		w.buf = slices.Grow(w.buf[:kept], int(more))[:kept+int(more)]
		if err := w.readWhole(w.buf[kept:], from); err != nil {
			w.buf = w.buf[:kept]
			return err
		}
	}
	return nil
}
