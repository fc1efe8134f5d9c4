package pagefile

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
)

const (
	// stripeSize is how much of a file one goroutine takes at once. Where a value
	// reaches over the end of a stripe, its last blocks are read twice.
	stripeSize = 32 * blockSize

	// windowSize is how much is read at once: little enough that the bytes are
	// still in the processor's cache when they are summed, decoded and copied.
	windowSize = 4 * blockSize
)

// A file is read whole in the order of its bytes, not in that of keys:
//
//	nodes ──walk, raw──▶ places, sorted by offset
//	file  | stripe 0           | stripe 1           | …     one goroutine each
//	      | window ▶           | window ▶                   goes on block by block, compares
//	                                                        checksums, hands out what lies in it
//
// A place belongs to the stripe that it begins in. Nodes are read twice: at first without a look at
// their checksums, to know the places, and then as parts of blocks.

// ReadAll reads the whole file once, and calls visit with every page on the way, from
// as many goroutines as the program has processors and in no particular order. A value
// is valid until visit returns.
//
// Blocks are compared before their bytes are handed out, but only when ReadAll has
// returned nil are all of them known to be good. Else it returns what [File.Verify]
// would. It stops with the first error of visit, and with that of ctx.
//
// It takes 24 bytes for each page, and for each goroutine 256 KiB or the size of
// the longest value.
func (f *File) ReadAll(ctx context.Context, visit func(k Key, value []byte) error) error {
	places, malformed := f.places(anyKey)
	if malformed != nil {
		places = nil // Blocks that are damaged may be why, and come first.
	}
	if err := f.readBlocks(ctx, places, visit); err != nil {
		return err
	}
	return malformed
}

func anyKey(Key) bool { return true }

// ReadSome is [File.ReadAll] for the pages for which want returns true. It reads
// the nodes of the tree and the blocks that hold those pages, compares the checksums of
// the latter, and stops with the first damage.
func (f *File) ReadSome(ctx context.Context, want func(Key) bool, visit func(k Key, value []byte) error) error {
	places, err := f.places(want)
	if err != nil {
		return err
	}
	return f.stripes(func() func(start, end int64) error {
		w := window{blocks: &f.blocks}
		return func(start, end int64) error { return w.stripe(ctx, start, end, within(places, start, end), visit) }
	})
}

// stripes calls functions that start makes for the stripes of the file, several at the
// same time.
func (f *File) stripes(start func() func(start, end int64) error) error {
	return parallel((f.length+stripeSize-1)/stripeSize, runtime.GOMAXPROCS(0), func() func(int64) error {
		read := start()
		return func(i int64) error { return read(i*stripeSize, min((i+1)*stripeSize, f.length)) }
	})
}

// readBlocks reads all blocks and hands out the places among them. It returns all
// damaged ranges, joined, in ascending order.
func (f *File) readBlocks(ctx context.Context, places []place, visit func(Key, []byte) error) error {
	var mu sync.Mutex
	var damaged []*DamageError
	var changed *DamageError // It is none of a block: a key that was not there again.
	err := f.stripes(func() func(start, end int64) error {
		w := window{blocks: &f.blocks, all: true}
		return func(start, end int64) error {
			err := w.stripe(ctx, start, end, within(places, start, end), visit)
			var damage *DamageError
			if !errors.As(err, &damage) {
				return err
			}
			found := f.damagedBlocks(start, end) // The stripe ended at the first: look for the others.
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
		slices.SortFunc(damaged, func(a, b *DamageError) int { return cmp.Compare(a.Offset, b.Offset) })
		return join(damaged)
	case changed != nil:
		return changed
	}
	return nil
}

// damagedBlocks returns what is wrong with the blocks of [start, end).
func (f *File) damagedBlocks(start, end int64) (damaged []*DamageError) {
	buf := make([]byte, blockSize)
	for ; start < end; start += blockSize {
		if damage, ok := errors.AsType[*DamageError](f.readWhole(buf[:min(blockSize, end-start)], start)); ok {
			damaged = append(damaged, damage)
		}
	}
	return damaged
}

// A place says where the key and, right behind it, the value of a page lie.
type place struct {
	key       Key
	off, size int64
}

// places checks the tree of pages and returns where those wanted lie, in the order
// of the file. Its bytes are read without a look at their checksums.
func (f *File) places(want func(Key) bool) ([]place, error) {
	var places []place
	err := f.walk(f.bucket, f.raw, func(k Key, off, size int64) error {
		if !want(k) {
			return nil
		}
		places = append(places, place{k, off - keySize, keySize + size})
		return nil
	})
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.off, b.off) })
	return places, err
}

// CountSmall returns how many pages have values of at most limit bytes, as far as the tree
// can be read. It reads the nodes without a look at their checksums, and no values.
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

// A window goes through a file from block to block and holds the ones last read,
// whose checksums fit.
type window struct {
	*blocks
	all   bool   // Leave no block out.
	start int64  // Of buf in the file.
	buf   []byte // Whole blocks, but for where values kept their ends.
}

func (w *window) end() int64 { return w.start + int64(len(w.buf)) }

// stripe reads the blocks of [start, end) and hands out places, which begin there.
func (w *window) stripe(ctx context.Context, start, end int64, places []place, visit func(Key, []byte) error) error {
	w.start, w.buf = start, w.buf[:0]
	for _, p := range places {
		if !w.all && p.off >= w.end() { // Go on at its block: those between have nothing wanted.
			w.start, w.buf = p.off/blockSize*blockSize, w.buf[:0]
		}
		if err := w.reach(ctx, p.off, p.off+p.size); err != nil {
			return err
		}
		page := w.buf[p.off-w.start:][:p.size:p.size]
		if decodeKey(page) != p.key { // Read twice, and compared with its checksum here.
			return corrupt(w.name, p.off, keySize, "it changed while it was read")
		}
		if err := visit(p.key, page[keySize:]); err != nil {
			return err
		}
	}
	if !w.all {
		return nil
	}
	return w.reach(ctx, end, end)
}

// reach reads on until the window holds [off, end). It forgets what lies before.
func (w *window) reach(ctx context.Context, off, end int64) error {
	for w.end() < end {
		if err := ctx.Err(); err != nil {
			return err
		}
		drop := min(off, w.end()) - w.start // What is kept is the beginning of a value, if any.
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
