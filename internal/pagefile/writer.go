package pagefile

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"time"

	"go.etcd.io/bbolt"

	"github.com/stet-ecs/stet/internal/disk"
)

const (
	// MaxValueSize is the longest value a page can have, in bytes.
	MaxValueSize = 1 << 30

	// A transaction holds its values twice, once here and once in bbolt, so
	// these limits are also the limits of memory.
	maxBatchBytes = 4 << 20
	maxBatchPages = 1 << 16
)

// A Writer takes the pages of a file that [Create] writes. It is valid until
// the function it was given to returns, and is not safe for concurrent use.
type Writer struct {
	db       *bbolt.DB
	boltFile *os.File  // What db writes to. db closes it.
	scratch  string    // Its path if it is not the file to be written but a stand-in, else "".
	flush    *flusher  // Syncs the file after each transaction.
	tx       *bbolt.Tx // Open transaction, or nil.
	bucket   *bbolt.Bucket
	arena    arena // Copied values of the open transaction.
	lent     lent  // The others.
	batch    int   // Pages of the open transaction.

	last    Key
	content content
	err     error // Sticky.
}

// content sums up pages in any order, to compare what was put with what the file
// says afterwards.
type content struct {
	pages uint64
	sum   uint64 // Of the checksums of all pages.
}

// add takes in one page by its checksum.
func (c *content) add(sum uint32) {
	c.sum += uint64(sum)
	c.pages++
}

// sumPage returns the checksum of a page.
func sumPage(k Key, value []byte) uint32 {
	var head [keySize + 8]byte
	key := k.encode()
	copy(head[:], key[:])
	binary.LittleEndian.PutUint64(head[keySize:], uint64(len(value)))
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, value)
}

// newWriter creates the database called name, which must not exist. It leaves
// no file behind if it fails.
func newWriter(dir disk.FS, name string) (*Writer, error) {
	w := &Writer{}
	var err error
	w.db, err = bbolt.Open(name, 0o600, &bbolt.Options{
		Timeout:         time.Second, // Nobody else knows the file.
		PageSize:        pageSize,
		InitialMmapSize: initialMap,
		NoSync:          true, // One sync at the end is enough: until the rename there is no file to lose.
		NoGrowSync:      true,
		NoFreelistSync:  true,
		NoStatistics:    true,
		FreelistType:    bbolt.FreelistArrayType, // The other type depends on the order of maps.
		OpenFile: func(name string, _ int, _ os.FileMode) (_ *os.File, err error) {
			w.boltFile, err = w.create(dir, name)
			return w.boltFile, err
		},
	})
	if err != nil && w.boltFile != nil {
		dir.Remove(name)
		_ = w.removeScratch()
	}
	return w, err
}

// Put adds a page. Keys must ascend. The value is copied. After an error every
// later Put returns it again, and so does [Create].
//
// The errors are [ErrOrder], [ErrTooLarge], and those of writing the file.
func (w *Writer) Put(k Key, value []byte) error {
	if w.err == nil {
		w.err = w.put(k, value, w.arena.copy)
	}
	return w.err
}

// Lend is [Writer.Put] without a copy: the value must not change until done is
// called, which is also called if the file is given up. It comes from the goroutine
// that calls the Writer.
func (w *Writer) Lend(k Key, value []byte, done func()) error {
	if w.err == nil {
		w.err = w.put(k, value, w.lent.take)
	}
	w.lent.done = append(w.lent.done, done) // After put, which may have given back those before.
	return w.err
}

func (w *Writer) put(k Key, value []byte, keep func([]byte) []byte) error {
	if err := w.admit(k, int64(len(value))); err != nil {
		return err
	}
	if w.batch == maxBatchPages || w.batch > 0 && w.arena.used()+w.lent.size+len(value) > maxBatchBytes {
		if err := w.commit(); err != nil {
			return err
		}
	}
	if err := w.begin(); err != nil {
		return err
	}
	key := k.encode()
	if err := w.bucket.Put(key[:], keep(value)); err != nil {
		return fmt.Errorf("pagefile: page %v: %w", k, err)
	}
	w.content.add(sumPage(k, value))
	w.batch++
	w.last = k
	return nil
}

// admit says whether a page with a value of size bytes may come next.
func (w *Writer) admit(k Key, size int64) error {
	switch {
	case w.content.pages > 0 && k.Compare(w.last) <= 0:
		return fmt.Errorf("%w: %v after %v", ErrOrder, k, w.last)
	case size > MaxValueSize:
		return fmt.Errorf("%w: %v has %d bytes", ErrTooLarge, k, size)
	}
	return nil
}

// begin opens a transaction unless one is open.
func (w *Writer) begin() (err error) {
	if w.tx != nil {
		return nil
	}
	if w.tx, err = w.db.Begin(true); err != nil {
		return fmt.Errorf("pagefile: %w", err)
	}
	if w.bucket, err = w.tx.CreateBucketIfNotExists(bucketName); err != nil {
		return fmt.Errorf("pagefile: %w", err)
	}
	w.bucket.FillPercent = 1
	return nil
}

// commit writes the open transaction.
func (w *Writer) commit() error {
	tx := w.tx
	w.tx, w.bucket = nil, nil
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("pagefile: %w", err)
	}
	if w.scratch == "" {
		w.flush.kick()
	}
	w.arena.reset()
	w.lent.giveBack()
	w.batch = 0
	return nil
}

// finish commits what is left, closes the database and returns how many bytes
// of the file bbolt uses.
func (w *Writer) finish() (length int64, err error) {
	if w.err != nil {
		return 0, w.err
	}
	if err := w.begin(); err != nil { // For a file without pages: it has the bucket.
		return 0, err
	}
	if err := w.commit(); err != nil {
		return 0, err
	}
	// A transaction writes one of the two meta pages. After an empty one both
	// describe the same tree.
	err = w.db.Update(func(tx *bbolt.Tx) error {
		length = tx.Size()
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("pagefile: %w", err)
	}
	if err := w.db.Close(); err != nil {
		return 0, fmt.Errorf("pagefile: %w", err)
	}
	return length, nil
}

// close gives up the open transaction, if any, and closes the database. It may
// be called again.
func (w *Writer) close() error {
	if w.err == nil {
		w.err = fmt.Errorf("pagefile: the writer is closed: %w", os.ErrClosed)
	}
	if w.tx != nil {
		w.tx.Rollback()
		w.tx, w.bucket = nil, nil
	}
	w.lent.giveBack()
	err := w.db.Close()
	if e := w.removeScratch(); err == nil {
		err = e
	}
	return err
}

// lent notes values that bbolt refers to until its transaction ends.
type lent struct {
	done []func()
	size int // Bytes.
}

func (l *lent) take(value []byte) []byte {
	l.size += len(value)
	return value
}

func (l *lent) giveBack() {
	for _, done := range l.done {
		done()
	}
	clear(l.done)
	l.done, l.size = l.done[:0], 0
}

// An arena copies values that bbolt refers to until its transaction ends.
type arena struct {
	buf  []byte
	full int // Bytes in earlier buffers of the same transaction.
}

// used returns how many bytes were copied since the last reset.
func (a *arena) used() int { return a.full + len(a.buf) }

// copy returns a copy of value that is valid until reset.
func (a *arena) copy(value []byte) []byte {
	if len(value) > cap(a.buf)-len(a.buf) {
		a.full += len(a.buf)
		grown := min(max(2*cap(a.buf), 64<<10), maxBatchBytes)
		a.buf = make([]byte, 0, max(grown, len(value)))
	}
	start := len(a.buf)
	a.buf = append(a.buf, value...)
	return a.buf[start:len(a.buf):len(a.buf)]
}

// reset forgets the copies and keeps a buffer of at most maxBatchBytes.
func (a *arena) reset() {
	a.full = 0
	if a.buf = a.buf[:0]; cap(a.buf) > maxBatchBytes {
		a.buf = nil
	}
}
