package pagefile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stet-ecs/stet/disk"
)

// OpenRoot returns an empty directory. It is exported for the tests of package pagefile_test.
func OpenRoot(tb testing.TB) *os.Root {
	tb.Helper()
	root, err := os.OpenRoot(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { root.Close() })
	return root
}

// A write that fails after some transactions, as on a full disk, fails Create.
func TestCreate_FailedWrite(t *testing.T) {
	for _, after := range []int{0, 1, 13} {
		root := OpenRoot(t)
		_, err := Create(disk.Dir(root), "f", func(w *Writer) error {
			value := make([]byte, 4<<20)
			for i := range 20 {
				if i == after {
					w.tree.(*sequentialTree).file.Close()
				}
				if err := w.Put(Key{Page: uint32(i)}, value); err != nil {
					return err
				}
			}
			return nil
		})
		if !errors.Is(err, os.ErrClosed) || strings.Contains(err.Error(), ".tmp") {
			t.Errorf("Create with a file closed after %d values = %v, want %v", after, err, os.ErrClosed)
		}
		if entries, err := fs.ReadDir(root.FS(), "."); len(entries) > 0 || err != nil {
			t.Errorf("after a failed write there are %v (%v)", entries, err)
		}
	}
}

// failingReader fails with err from byte limit on.
type failingReader struct {
	io.ReaderAt
	limit int64
	err   error
}

func (r failingReader) ReadAt(buf []byte, off int64) (int, error) {
	if off+int64(len(buf)) > r.limit {
		return 0, r.err
	}
	return r.ReaderAt.ReadAt(buf, off)
}

// A failed read of the disk is not damage, but the error names the range.
func TestFile_FailedRead(t *testing.T) {
	root := OpenRoot(t)
	_, err := Create(disk.Dir(root), "f", func(w *Writer) error {
		for i := range uint32(20) {
			if err := w.Put(Key{Page: i}, make([]byte, 50_000)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(disk.Dir(root), "f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.r = failingReader{f.file, 10 * blockSize, syscall.EIO}
	checks := map[string]error{
		"Scan":   f.Scan(func(Key, []byte) error { return nil }),
		"Verify": f.Verify(t.Context()),
	}
	_, _, checks["Get"] = f.Get(Key{Page: 19})
	for name, err := range checks {
		var damage *disk.DamageError
		if !errors.Is(err, syscall.EIO) || errors.Is(err, disk.ErrCorrupt) || !errors.As(err, &damage) {
			t.Errorf("%s = %v, want a *disk.DamageError with EIO", name, err)
		} else if damage.Offset+damage.Length <= 10*blockSize {
			t.Errorf("%s = %v, want an offset at or after %d", name, err, 10*blockSize)
		}
	}
}

// Create does not publish a file if a bit flipped on the way to the disk.
func TestCreate_FlippedBitNotPublished(t *testing.T) {
	root := OpenRoot(t)
	_, err := Create(disk.Dir(root), "f", func(w *Writer) error {
		for i := range uint32(300) {
			if err := w.Put(Key{Page: i}, make([]byte, 64<<10)); err != nil {
				return err
			}
		}
		// Change a byte that the writer has already written.
		_, err := w.tree.(*sequentialTree).file.WriteAt([]byte{1}, 6<<20)
		return err
	})
	if !errors.Is(err, disk.ErrCorrupt) {
		t.Errorf("Create = %v, want %v", err, disk.ErrCorrupt)
	}
	if _, err := root.Lstat("f"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the damaged file got its name (%v)", err)
	}
}

func TestPut_LargeValue(t *testing.T) {
	if err := (&Writer{}).admit(Key{}, MaxValueSize); err != nil {
		t.Errorf("a value of %d bytes: %v", MaxValueSize, err)
	}
	if err := (&Writer{}).admit(Key{}, MaxValueSize+1); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a value of %d bytes: %v, want %v", MaxValueSize+1, err, ErrTooLarge)
	}
}
