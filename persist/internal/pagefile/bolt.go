//go:build !wasm

package pagefile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/stet-ecs/stet/disk"
)

const (
	// boltRuns says whether bbolt can write on this platform. bbolt maps the whole file, so it
	// needs 64 bits of address space.
	boltRuns = strconv.IntSize == 64

	// maxTransaction bounds the memory of one transaction, in bytes of values. The values are in
	// memory twice: in boltTree and in the nodes of bbolt.
	maxTransaction = 2 << 20

	// entryMemory is the approximate memory of an entry without its value.
	entryMemory = 128
)

// A boltTree writes the tree with transactions of bbolt:
//
//	put      Bucket.Put, and a commit for each 2 MiB of values; nothing is synced
//	finish   the last commit and Close, then the second meta page, the length and the trailer
//	verify   reads all pages and compares their sum with the sum of the put pages
//
// bbolt maps the file into memory and reads its committed pages from the mapping. If the device
// cannot read these bytes, the processor faults, and guard() turns the fault into an error. After
// that, bbolt cannot be closed, because it still holds its locks. So the file is truncated to zero
// bytes, which frees its disk space. The mapping stays until the process ends.
//
// A failed transaction is rolled back. For the rollback, bbolt needs the free list in the file. If
// the file has no free list, bbolt searches the pages in its own goroutine, where a fault would end
// the process. So every commit except the last one writes the free list. The last commit needs
// none, because no transaction follows it.
type boltTree struct {
	temp *disk.Temp
	file disk.File // The file of temp. Used to write the bytes after the tree.
	name string    // The final name of the file.

	bolt   *os.File // The file of temp, opened a second time. bbolt closes it.
	db     *bbolt.DB
	tx     *bbolt.Tx // The open transaction, or nil.
	bucket *bbolt.Bucket
	broken bool // A call of bbolt has panicked.

	values []byte // Copies of the values in the open transaction.
	memory int    // Memory of the open transaction, in bytes.
	begun  int64  // Write-back was started for the bytes before this offset.
	sum    contentSum
}

// newBoltTree returns a tree that bbolt writes to file. file is the file of temp, opened a second
// time.
func newBoltTree(temp *disk.Temp, name string, file *os.File) (tree, error) {
	t := &boltTree{temp: temp, file: temp.File, name: name, bolt: file}
	temp.Unlock() // bbolt locks the file itself.
	err := t.guard(func() (err error) {
		t.db, err = bbolt.Open(file.Name(), 0, &bbolt.Options{
			OpenFile: func(string, int, os.FileMode) (*os.File, error) { return file, nil },
			// In addition to bbolt, only disk.RemoveTemps locks the file, and only briefly.
			Timeout:         time.Second,
			PageSize:        pageSize,
			InitialMmapSize: initialMapSize(),
			// One sync at the end is enough: until then the file has only its temporary name.
			NoSync:       true,
			NoGrowSync:   true,
			NoStatistics: true,
			// With the map type, page numbers would depend on the iteration order of maps.
			FreelistType: bbolt.FreelistArrayType,
		})
		return err
	})
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// initialMapSize returns the initial size of bbolt's mapping. bbolt copies the open transaction
// each time the file outgrows the mapping. On Windows, the mapping also extends the file to this
// size.
func initialMapSize() int {
	if runtime.GOOS == "windows" {
		return 0
	}
	return 1 << 30
}

// guard runs f, which calls bbolt, and returns a panic as an error. There are two kinds of panics.
// The system cannot read a page of the mapped file, or bbolt finds wrong data in the file.
func (t *boltTree) guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			t.broken = true
			err = fmt.Errorf("write %s: bbolt could not read its own pages: %v", t.name, p)
		}
	}()
	if err = f(); err != nil {
		err = fmt.Errorf("write %s: bbolt: %w", t.name, err)
	}
	return err
}

func (t *boltTree) put(k Key, size int, value [][]byte) error {
	// End a full transaction only after an even number of pages. A leaf has two large values, and
	// each transaction writes the last leaf of the previous one again. If that leaf has two values,
	// the transaction frees enough pages for a new leaf.
	if t.memory > 0 && t.memory+size > maxTransaction && t.sum.pages%2 == 0 {
		if err := t.commit(); err != nil {
			return err
		}
	}
	if err := t.begin(); err != nil {
		return err
	}
	key, copied := k.encode(), t.copy(size, value)
	t.sum.add(pageSum(k, copied))
	t.memory += size + entryMemory
	return t.guard(func() error { return t.bucket.Put(key[:], copied) })
}

// copy returns the joined parts of a value. The result is valid until the transaction ends.
func (t *boltTree) copy(size int, value [][]byte) []byte {
	if size > cap(t.values)-len(t.values) {
		// Do not move the earlier values: the open transaction refers to them.
		t.values = make([]byte, 0, max(size, maxTransaction))
	}
	start := len(t.values)
	for _, part := range value {
		t.values = append(t.values, part...)
	}
	return t.values[start:len(t.values):len(t.values)]
}

// begin opens a transaction unless one is open.
func (t *boltTree) begin() error {
	if t.tx != nil {
		return nil
	}
	return t.guard(func() (err error) {
		if t.tx, err = t.db.Begin(true); err != nil {
			return err
		}
		written := t.tx.Size() // Size of the file after the previous transactions.
		startWriteBack(t.file, t.begun, written-t.begun)
		t.begun = written
		if t.bucket, err = t.tx.CreateBucketIfNotExists(bucketName); err != nil {
			return err
		}
		t.bucket.FillPercent = 1 // Fill nodes completely: keys ascend, so no entry is added later.
		return nil
	})
}

// commit commits the open transaction.
func (t *boltTree) commit() error {
	if err := t.guard(t.tx.Commit); err != nil {
		return err
	}
	t.tx, t.bucket, t.memory = nil, nil, 0
	if t.values = t.values[:0]; cap(t.values) > maxTransaction {
		t.values = nil
	}
	return nil
}

func (t *boltTree) finish(pages uint64) (*trailer, error) {
	if err := t.begin(); err != nil { // Create the bucket even in a file without pages.
		return nil, err
	}
	t.db.NoFreelistSync = true // Write no free list: no transaction follows.
	if err := t.commit(); err != nil {
		return nil, err
	}
	length, err := t.closeBolt()
	if err != nil {
		return nil, err
	}
	if err := t.mirrorMeta(); err != nil {
		return nil, err
	}
	end := &trailer{length: length, pages: pages}
	if end.table, err = t.sumBlocks(length); err != nil {
		return nil, err
	}
	return end, writeAt(t.file, t.name, end.encode(), length)
}

// closeBolt closes the database, and gives the file the length of its pages. Before that, the file
// can be too long, because bbolt extends it on some systems. It can also be too short, because
// bbolt does not write pages that it has freed.
func (t *boltTree) closeBolt() (length int64, err error) {
	own, err := disk.Reopen(t.file)
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", t.name, err)
	}
	defer own.Close()
	err = t.guard(func() error {
		err := t.db.View(func(tx *bbolt.Tx) error {
			length = tx.Size()
			return nil
		})
		if err != nil {
			return err
		}
		db := t.db
		t.db = nil
		return db.Close()
	})
	if err == nil {
		if err = t.temp.Lock(); err != nil {
			err = fmt.Errorf("write %s: %w", t.name, err)
		}
	}
	if err == nil {
		if err = own.Truncate(length); err != nil {
			err = fmt.Errorf("write %s: %w", t.name, err)
		}
	}
	return length, err
}

// mirrorMeta overwrites the older meta page with the contents of the newer one, except page number
// and transaction. So both describe the same tree. If the newer one is damaged, bbolt uses the
// older one.
func (t *boltTree) mirrorMeta() error {
	pages := make([]byte, 2*pageSize)
	if err := readFull(t.file, t.name, pages, 0); err != nil {
		return err
	}
	metas := [2][]byte{pages[headerSize:pageSize], pages[pageSize+headerSize:]}
	transaction := func(i int) uint64 { return binary.LittleEndian.Uint64(metas[i][metaTransaction:]) }
	older, newer := 0, 1
	if transaction(older) > transaction(newer) {
		older, newer = newer, older
	}
	id := transaction(newer) - 1
	copy(metas[older], metas[newer])
	binary.LittleEndian.PutUint64(metas[older][metaTransaction:], id)
	binary.LittleEndian.PutUint64(metas[older][metaChecked:], sumMeta(metas[older]))
	start := older * pageSize
	return writeAt(t.file, t.name, pages[start:start+pageSize], int64(start))
}

// sumBlocks reads the first length bytes of the file, which bbolt has written. It returns the
// checksums of their blocks. These bytes may be wrong: verify() compares them with the pages of
// put() later.
func (t *boltTree) sumBlocks(length int64) (sums []uint32, err error) {
	buf := make([]byte, windowSize)
	for at := int64(0); at < length; at += windowSize {
		n := min(windowSize, length-at)
		if err := readFull(t.file, t.name, buf[:n], at); err != nil {
			return nil, err
		}
		for start := int64(0); start < n; start += blockSize {
			sums = append(sums, crc32.Checksum(buf[start:min(start+blockSize, n)], castagnoli))
		}
	}
	return sums, nil
}

// verify reads all pages through File and compares them with the pages of put(). The checksums of
// the blocks alone prove nothing, because they were computed from the file.
func (t *boltTree) verify(dir disk.FS, temp string) (Info, error) {
	f, err := Open(dir, temp)
	if err != nil {
		return Info{}, err
	}
	defer f.Close()
	var mu sync.Mutex
	var got contentSum
	err = f.ReadAll(context.Background(), func(k Key, value []byte) error {
		sum := pageSum(k, value)
		mu.Lock()
		defer mu.Unlock()
		got.add(sum)
		return nil
	})
	if err == nil && got != t.sum {
		err = fmt.Errorf("%w: %s contains %d pages with sum %x, but %d with sum %x were put",
			disk.ErrCorrupt, t.name, got.pages, got.sum, t.sum.pages, t.sum.sum)
	}
	return f.Info(), err
}

// close rolls the open transaction back and closes the database, unless finish() has closed it.
func (t *boltTree) close() {
	if t.db != nil && !t.broken {
		_ = t.guard(func() error {
			if t.tx != nil {
				// A failed commit has already rolled the transaction back.
				if err := t.tx.Rollback(); err != nil && !errors.Is(err, bolterrors.ErrTxClosed) {
					return err
				}
			}
			db := t.db
			t.db = nil
			return db.Close()
		})
	}
	if t.broken {
		// The memory mapping keeps the removed file alive, so free its disk space.
		_ = t.bolt.Truncate(0)
		_ = t.bolt.Close()
	}
}

// A contentSum is a checksum of pages that does not depend on their order.
type contentSum struct {
	pages uint64
	sum   uint64 // Sum of the checksums of all pages.
}

// add adds a page. sum is its [pageSum].
func (c *contentSum) add(sum uint32) {
	c.sum += uint64(sum)
	c.pages++
}

// pageSum returns the checksum of a page's key, size and value.
func pageSum(k Key, value []byte) uint32 {
	var head [keySize + 8]byte
	key := k.encode()
	copy(head[:], key[:])
	binary.LittleEndian.PutUint64(head[keySize:], uint64(len(value)))
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, value)
}
