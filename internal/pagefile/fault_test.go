package pagefile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/stet-ecs/stet/internal/disk"
)

func testRoot(t *testing.T) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// A write that fails after some transactions, as on a full disk, fails Create.
func TestFailedWriteFailsCreate(t *testing.T) {
	for _, after := range []int{0, 1, 13} {
		root := testRoot(t)
		_, err := Create(disk.Dir(root), "f", func(w *Writer) error {
			value := make([]byte, 4<<20)
			for i := range 20 {
				if i == after {
					w.boltFile.Close()
				}
				if err := w.Put(Key{Page: uint32(i)}, value); err != nil {
					return err
				}
			}
			return nil
		})
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("Create with a file closed after %d values = %v, want %v", after, err, os.ErrClosed)
		}
		for _, name := range []string{"f", "f" + TempSuffix} {
			if _, err := root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is there after a failed write (%v)", name, err)
			}
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

// A disk that does not answer is not damage, but has its place in the file.
func TestFailedReadIsNotCorruption(t *testing.T) {
	root := testRoot(t)
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
		var damage *DamageError
		if !errors.Is(err, syscall.EIO) || errors.Is(err, ErrCorrupt) || !errors.As(err, &damage) {
			t.Errorf("%s = %v, want a *DamageError with EIO", name, err)
		} else if damage.Offset+damage.Length <= 10*blockSize {
			t.Errorf("%s = %v, want an offset at or after %d", name, err, 10*blockSize)
		}
	}
}

// What is in the file is compared with what was put, not just with itself.
func TestReadingBackFindsAnyDifference(t *testing.T) {
	root := testRoot(t)
	var put content
	_, err := Create(disk.Dir(root), "f", func(w *Writer) error {
		for i := range uint32(20) {
			w.Put(Key{Page: i}, []byte{byte(i)})
		}
		put = w.content
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
	if err := compare(f.file, "f", f.trailer, put); err != nil {
		t.Errorf("compare with what was put: %v", err)
	}
	for _, other := range []content{{}, {put.pages, put.sum + 1}, {put.pages + 1, put.sum}} {
		if err := compare(f.file, "f", f.trailer, other); !errors.Is(err, ErrCorrupt) {
			t.Errorf("compare with something else = %v, want %v", err, ErrCorrupt)
		}
	}
}

// A bit that flips on the way to the disk keeps the file from its name.
func TestCreateReadsBack(t *testing.T) {
	root := testRoot(t)
	_, err := Create(disk.Dir(root), "f", func(w *Writer) error {
		for i := range uint32(300) {
			if err := w.Put(Key{Page: i}, make([]byte, 64<<10)); err != nil {
				return err
			}
		}
		_, err := w.boltFile.WriteAt([]byte{1}, 6<<20) // In a value of the first transaction.
		return err
	})
	if !errors.Is(err, ErrCorrupt) {
		t.Errorf("Create = %v, want %v", err, ErrCorrupt)
	}
	if _, err := root.Lstat("f"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the damaged file got its name (%v)", err)
	}
}

func TestPutRefusesLargeValues(t *testing.T) {
	var w Writer
	if err := w.admit(Key{}, MaxValueSize); err != nil {
		t.Errorf("a value of %d bytes: %v", MaxValueSize, err)
	}
	if err := w.admit(Key{}, MaxValueSize+1); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a value of %d bytes: %v, want %v", MaxValueSize+1, err, ErrTooLarge)
	}
}

func TestArenaKeepsCopiesApart(t *testing.T) {
	var a arena
	for range 3 {
		var copies [][]byte
		total := 0
		for size := 1; total < maxBatchBytes; size = size*3/2 + 1 {
			value := make([]byte, size)
			for i := range value {
				value[i] = byte(size)
			}
			copies = append(copies, a.copy(value))
			total += size
			if a.used() != total {
				t.Fatalf("used() = %d after %d bytes", a.used(), total)
			}
		}
		for _, c := range copies {
			if c[0] != byte(len(c)) || c[len(c)-1] != byte(len(c)) {
				t.Fatalf("the copy of %d bytes was written over", len(c))
			}
		}
		a.reset()
		if a.used() != 0 || cap(a.buf) > maxBatchBytes {
			t.Fatalf("after reset: used() = %d, %d bytes kept", a.used(), cap(a.buf))
		}
	}
}

func TestMapSizeFitsTheMachine(t *testing.T) {
	tests := []struct {
		goos string
		bits int
		want int
	}{
		{"linux", 64, 1 << 30},
		{"windows", 64, 64 << 20},
		{"linux", 32, 64 << 20},
	}
	for _, tt := range tests {
		if got := mapSize(tt.goos, tt.bits); got != tt.want {
			t.Errorf("mapSize(%s, %d) = %d, want %d", tt.goos, tt.bits, got, tt.want)
		}
	}
}
