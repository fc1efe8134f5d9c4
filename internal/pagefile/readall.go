package pagefile

import (
	"cmp"
	"context"
	"runtime"
	"slices"
)

const (
	// stripeSize is how much of a file one goroutine takes at once. Where a value
	// reaches over the end of a stripe, its last blocks are read twice.
	stripeSize = 32 * blockSize

	// windowSize is how much is read at once: little enough that the bytes are
	// still in the processor's cache when they are summed, decoded and copied.
	windowSize = 4 * blockSize
)

// ReadAll reads the whole file once, compares what [File.Verify] compares, and
// calls visit with every page on the way, from as many goroutines as the program
// has processors and in no particular order. A value is valid until visit
// returns.
//
// Blocks are compared before their bytes are handed out, but only when ReadAll has
// returned nil are all of them known to be good. It stops with the first error that
// any of the goroutines meets; to learn of all damage, call [File.Verify]. It also
// stops with the error of ctx.
//
// It takes 24 bytes for each page, and for each goroutine 256 KiB or the size of
// the longest value.
func (f *File) ReadAll(ctx context.Context, visit func(k Key, value []byte) error) error {
	return f.read(ctx, true, anyKey, visit)
}

func anyKey(Key) bool { return true }

// ReadSome is [File.ReadAll] for the pages for which want returns true. It reads
// the nodes of the tree and the blocks that hold those pages, and compares the
// checksums of the latter.
func (f *File) ReadSome(ctx context.Context, want func(Key) bool, visit func(k Key, value []byte) error) error {
	return f.read(ctx, false, want, visit)
}

// read reads all blocks of a file, or those of pages that are wanted.
func (f *File) read(ctx context.Context, all bool, want func(Key) bool, visit func(Key, []byte) error) error {
	places, err := f.places(want)
	if err != nil {
		return err
	}
	stripes := (f.length + stripeSize - 1) / stripeSize
	return parallel(stripes, runtime.GOMAXPROCS(0), func() func(int64) error {
		w := window{blocks: &f.blocks, all: all}
		return func(i int64) error {
			start := i * stripeSize
			end := min(start+stripeSize, f.length)
			return w.stripe(ctx, start, end, within(places, start, end), visit)
		}
	})
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
		if !w.all && p.off >= w.end() {
			w.start, w.buf = p.off/blockSize*blockSize, w.buf[:0]
		}
		if err := w.reach(ctx, p.off, p.off+p.size); err != nil {
			return err
		}
		page := w.buf[p.off-w.start:][:p.size:p.size]
		if decodeKey(page) != p.key { // Read twice, and compared with its checksum here.
			return &DamageError{w.name, p.off, keySize, "it changed while it was read", ErrCorrupt}
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
