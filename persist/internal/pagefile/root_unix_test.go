//go:build unix

package pagefile_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
)

func TestCreate_RefusesNamesOutsideRoot(t *testing.T) {
	outside := t.TempDir()
	create(t, mustRoot(t, outside), numbered(3, 10))
	root := pagefile.OpenRoot(t)
	if err := os.Symlink(filepath.Join(outside, "f"), filepath.Join(root.Name(), "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(root.Name(), "dir")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "dir/f", "../f", filepath.Join(outside, "f")} {
		if f, err := pagefile.Open(disk.Dir(root), name); err == nil {
			f.Close()
			t.Errorf("Open(%q) left the root", name)
		}
	}
	for _, name := range []string{"dir/g", "../g", filepath.Join(outside, "g")} {
		if _, err := pagefile.Create(disk.Dir(root), name, put(nil)); err == nil {
			t.Errorf("Create(%q) left the root", name)
		}
	}
	// The link g.tmp leads to a file outside the root. Create of g neither replaces nor follows it.
	if err := os.Symlink(filepath.Join(outside, "f"), filepath.Join(root.Name(), "g.tmp")); err != nil {
		t.Fatal(err)
	}
	if _, err := pagefile.Create(disk.Dir(root), "g", put(nil)); err != nil {
		t.Error(err)
	}
	checkContent(t, mustRoot(t, outside), numbered(3, 10))
	checkNames(t, mustRoot(t, outside), "f")
}

func mustRoot(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// Opening a pipe would block, so Open must refuse a pipe without opening it.
func TestOpen_IrregularFile(t *testing.T) {
	root := pagefile.OpenRoot(t)
	if err := root.Mkdir("dir", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(root.Name(), "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dir", "pipe"} {
		if _, err := pagefile.Open(disk.Dir(root), name); !errors.Is(err, disk.ErrForeign) {
			t.Errorf("Open(%q) = %v, want %v", name, err, disk.ErrForeign)
		}
	}
}
