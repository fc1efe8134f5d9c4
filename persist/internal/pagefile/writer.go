package pagefile

import (
	"errors"
	"fmt"
	"os"

	"github.com/stet-ecs/stet/disk"
)

// valueLimit is MaxValueSize, or less in tests.
var valueLimit = MaxValueSize

// ValueLimit returns the maximum length of a value that a [Writer] accepts, in bytes.
func ValueLimit() int { return valueLimit }

// LimitValues sets the maximum length of a value and returns a function that restores the old one.
// It is for tests, because a value at the real limit has 1 GiB.
func LimitValues(n int) (restore func()) {
	former := valueLimit
	valueLimit = n
	return func() { valueLimit = former }
}

// A Writer receives the pages of a file that [Create] writes. It is valid until the fill function
// returns, and is not safe for concurrent use.
type Writer struct {
	tree  tree
	last  Key
	pages uint64
	err   error // The first error. Every later Put returns it.
}

// A tree writes bbolt's part of a file: the nodes with the pages, and the meta pages. Both
// implementations produce the same content for a reader of bbolt files:
//
//	[sequentialTree]   any file: in memory, of a stream, under WebAssembly
//	[boltTree]         bbolt itself, which needs a file of the operating system
type tree interface {
	// put adds a page. Its key is greater than the keys of all earlier pages. The value is the
	// concatenation of the parts, of size bytes. put copies the parts.
	put(k Key, size int, value [][]byte) error

	// finish completes the tree, which has this number of pages. It writes and returns the trailer.
	finish(pages uint64) (*trailer, error)

	// verify reads the finished file. temp is its name until it is published.
	verify(dir disk.FS, temp string) (Info, error)

	// close releases the resources of the tree. It is called once, after finish() or instead of
	// finish().
	close()
}

// newTree chooses the writer of a file's tree.
func newTree(temp *disk.Temp, name string, opts Options) (tree, error) {
	if opts.Bolt && boltRuns {
		file, err := disk.Reopen(temp.File)
		if err == nil {
			return newBoltTree(temp, name, file)
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return nil, fmt.Errorf("opening %s for bbolt: %w", name, err)
		}
	}
	return newSequentialTree(temp.File, name), nil
}

// Put adds a page. Keys must ascend. The value may consist of several parts, which Put copies.
// After an error, every later Put returns the same error, and so does [Create].
//
// The errors are [ErrOrder], [ErrTooLarge], and the errors of writing the file.
func (w *Writer) Put(k Key, value ...[]byte) error {
	if w.err == nil {
		w.err = w.put(k, value)
	}
	return w.err
}

func (w *Writer) put(k Key, value [][]byte) error {
	size := 0
	for _, part := range value {
		size += len(part)
	}
	if err := w.admit(k, size); err != nil {
		return err
	}
	if err := w.tree.put(k, size, value); err != nil {
		return err
	}
	w.last = k
	w.pages++
	return nil
}

// admit returns an error if a page with this key and a value of size bytes cannot be the next one.
func (w *Writer) admit(k Key, size int) error {
	switch {
	case w.pages > 0 && k.Compare(w.last) <= 0:
		return fmt.Errorf("%w: %v after %v", ErrOrder, k, w.last)
	case size > valueLimit:
		return fmt.Errorf("%w: %v has %d bytes, the limit is %d", ErrTooLarge, k, size, valueLimit)
	}
	return nil
}

// finish completes the file and returns its trailer.
func (w *Writer) finish() (*trailer, error) {
	if w.err != nil {
		return nil, w.err
	}
	return w.tree.finish(w.pages)
}

// close releases the tree and makes every later Put fail.
func (w *Writer) close() {
	w.tree.close()
	if w.err == nil {
		w.err = fmt.Errorf("the writer is closed: %w", os.ErrClosed)
	}
}

// writeAt writes b to a file. name is the final name of the file, for errors.
func writeAt(f disk.File, name string, b []byte, offset int64) error {
	if _, err := f.WriteAt(b, offset); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// startWriteBack makes the system start writing bytes to the device, if f supports it. Then the
// sync at the end takes less time.
func startWriteBack(f disk.File, offset, size int64) {
	if f, ok := f.(interface{ WriteBack(offset, size int64) }); ok {
		f.WriteBack(offset, size)
	}
}
