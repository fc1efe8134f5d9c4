package disk_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/disk"
)

// The error describes the irregular name in words and says what to do.
func TestIrregular_ErrorText(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(at("file"), nil, 0o600), os.Mkdir(at("dir"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink("file", at("link")), os.Symlink("dir", at("dirlink"))); err != nil {
		t.Skip("cannot create symbolic links: ", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][2]string{ // The texts for a file and for a directory.
		"file":    {"", "it is a file, no directory; move it away"},
		"dir":     {"it is a directory, no file; move it away", ""},
		"link":    {"it is a symbolic link, no file; replace it by the file that it leads to", "it is a symbolic link, no directory; replace it by the directory that it leads to"},
		"dirlink": {"it is a symbolic link, no file; replace it by the file that it leads to", "it is a symbolic link, no directory; replace it by the directory that it leads to"},
	}
	for _, e := range entries {
		for i, text := range want[e.Name()] {
			d := disk.Irregular(e.Name(), e.Type(), i == 1)
			switch {
			case text == "" && d != nil, text != "" && d == nil:
				t.Errorf("%s, %d: %v", e.Name(), i, d)
			case d != nil && (!errors.Is(d, disk.ErrForeign) || !strings.HasSuffix(d.Error(), e.Name()+": "+text)):
				t.Errorf("%s, %d: %v, want %s", e.Name(), i, d, text)
			}
		}
	}
}

// Remove of a symbolic link removes only the link, and leaves its target unchanged.
func TestRemove_LinkKeepsTarget(t *testing.T) {
	dir, precious := t.TempDir(), filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(precious, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := disk.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	if err := os.Symlink(precious, filepath.Join(dir, "link")); err != nil {
		t.Skip("cannot create symbolic links: ", err)
	}
	if err := files.Remove("link"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "link")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the link still exists: %v", err)
	}
	if b, err := os.ReadFile(precious); err != nil || string(b) != "precious" {
		t.Errorf("%q, %v", b, err)
	}
}
