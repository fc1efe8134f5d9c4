package pagefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/stet-ecs/stet/disk"
)

// fillBolt puts n values of 64 KiB and calls hook before each of them.
func fillBolt(n int, hook func(i int, t *boltTree)) func(*Writer) error {
	return func(w *Writer) error {
		for i := range n {
			hook(i, w.tree.(*boltTree))
			value := make([]byte, 64<<10)
			value[0] = byte(i)
			if err := w.Put(Key{Page: uint32(i)}, value); err != nil {
				return err
			}
		}
		return nil
	}
}

// checkFailedBolt checks an error of CreateWith, and that no file is left.
func checkFailedBolt(t *testing.T, root *os.Root, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("CreateWith = %v, want an error with %q", err, want)
	}
	if entries, _ := fs.ReadDir(root.FS(), "."); len(entries) != 0 {
		t.Errorf("CreateWith failed and left %v", entries)
	}
}

// If the device cannot read a mapped page, CreateWith returns an error. The test truncates the file
// below its mapping, which causes the same page fault.
func TestBolt_MappedPageUnreadable(t *testing.T) {
	// A transaction takes 32 values, so the pages become unreadable in the second, the third and
	// the last transaction.
	for _, at := range []int{40, 70, 99} {
		root := OpenRoot(t)
		_, err := CreateWith(disk.Dir(root), "f", Options{Bolt: true}, fillBolt(100, func(i int, tree *boltTree) {
			if i == at {
				if err := tree.bolt.Truncate(0); err != nil {
					t.Fatal(err)
				}
			}
		}))
		checkFailedBolt(t, root, err, "write f: bbolt could not read its own pages")
	}
}

// CreateWith does not publish a file if a value changed on its way to the device.
func TestBolt_ChangedByteNotPublished(t *testing.T) {
	root := OpenRoot(t)
	_, err := CreateWith(disk.Dir(root), "f", Options{Bolt: true}, fillBolt(100, func(i int, tree *boltTree) {
		if i != 99 {
			return
		}
		// Change a byte in a value of the first transaction.
		if _, err := tree.bolt.WriteAt([]byte{1}, 1<<20); err != nil {
			t.Fatal(err)
		}
	}))
	if !errors.Is(err, disk.ErrCorrupt) {
		t.Errorf("CreateWith = %v, want %v", err, disk.ErrCorrupt)
	}
	checkFailedBolt(t, root, err, "f contains 100 pages with sum")
}

// Each write of bbolt and of the trailer fails once, in a real file. The kernel refuses bytes after
// a limit. The limit applies to the whole process, so a child process runs the test.
func TestBolt_WriteRefused(t *testing.T) {
	if os.Getenv("STET_LIMIT_WRITES") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestBolt_WriteRefused$", "-test.v")
		cmd.Env = append(os.Environ(), "STET_LIMIT_WRITES=1", "TMPDIR="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	var unlimited syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &unlimited); err != nil {
		t.Fatal(err)
	}
	for limit, refused := int64(0), true; refused; limit += 24 << 10 {
		root := OpenRoot(t)
		limited := unlimited
		limited.Cur = uint64(limit)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limited); err != nil {
			t.Fatal(err)
		}
		_, err := CreateWith(disk.Dir(root), "f", Options{Bolt: true}, fillBolt(80, func(int, *boltTree) {}))
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &unlimited); err != nil {
			t.Fatal(err)
		}
		if refused = err != nil; refused {
			if !errors.Is(err, syscall.EFBIG) {
				t.Errorf("at a limit of %d bytes: CreateWith = %v, want %v", limit, err, syscall.EFBIG)
			}
			checkFailedBolt(t, root, err, "write f: ")
		} else if _, err := Check(t.Context(), disk.Dir(root), "f"); err != nil {
			t.Errorf("at a limit of %d bytes: %v", limit, err)
		}
	}
}

// The disk becomes full at each possible moment. Then the error is ENOSPC, the old file stays, and
// no other file is left. The test also covers a fault in a mapped page: tmpfs has no memory for the
// page, so even reading it fails.
func TestBolt_DiskFull(t *testing.T) {
	dir := t.TempDir()
	for size := 64 << 10; ; size += 96 << 10 {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
			t.Skipf("mounting a file system takes root: %v", err)
		}
		full := fillFullDisk(t, dir)
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Fatal(err)
		}
		if !full {
			return
		}
	}
}

// fillFullDisk replaces a small file in dir by one of 5 MB, and reports whether the disk was full.
func fillFullDisk(t *testing.T, dir string) bool {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	old, err := CreateWith(disk.Dir(root), "f", Options{}, func(w *Writer) error { return w.Put(Key{}, []byte("old")) })
	if err != nil {
		t.Fatal(err)
	}
	_, err = CreateWith(disk.Dir(root), "f", Options{Bolt: true}, fillBolt(80, func(int, *boltTree) {}))
	if err == nil {
		return false
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("CreateWith = %v, want %v", err, syscall.ENOSPC)
	}
	if info, err := Check(t.Context(), disk.Dir(root), "f"); err != nil || info != old {
		t.Errorf("after a full disk: %+v, %v, want the old file, %+v", info, err, old)
	}
	if entries, _ := fs.ReadDir(root.FS(), "."); len(entries) != 1 {
		t.Errorf("CreateWith failed and left %v", entries)
	}
	return true
}
