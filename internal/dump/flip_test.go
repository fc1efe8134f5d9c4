package dump

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/internal/deep"
)

var every = flag.Int64("every", 0, "flip a bit in every byte of this number; 0: in enough of them")

// ecsdump calls run and returns its output as strings.
func ecsdump(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = runArgs(args, &out, &err)
	return code, out.String(), err.String()
}

// runArgs calls run() with a background context and no openers.
func runArgs(args []string, stdout, stderr io.Writer) (code int) {
	return run(context.Background(), func() {}, nil, args, stdout, stderr)
}

// flipBits flips single bits of the files under dir, one at a time, and calls f after each flip. It
// checks that f changes no file. The bits are apart * flipDistance() bytes from each other.
func flipBits(t *testing.T, dir string, apart int64, f func(name string, at int64)) {
	t.Helper()
	n := 0
	for path := range mustTree(t, dir) {
		good, err := os.ReadFile(path)
		if err != nil {
			continue // The entry is a directory.
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			t.Fatal(err)
		}
		for at := int64(0); at < int64(len(good)); at += apart * flipDistance(len(good)) {
			bad := bytes.Clone(good)
			bad[at] ^= 1 << (at % 8)
			write(t, path, bad)
			before := mustTree(t, dir)
			f(filepath.ToSlash(name), at)
			if diff := before.diff(mustTree(t, dir)); diff != "" {
				t.Fatalf("reading changed the store: %s", diff)
			}
			n++
		}
		write(t, path, good)
	}
	if n < 40 {
		t.Errorf("only %d bits were flipped", n)
	}
}

// flipDistance returns the distance in bytes between two flipped bits in a file of n bytes. The bit
// of byte i is bit i%8. The default distances are odd, so that all eight bits are tested.
func flipDistance(n int) int64 {
	switch {
	case *every > 0:
		return *every
	case n < 1024:
		return deep.Or[int64](3, 1)
	case n < 16<<10:
		return deep.Or[int64](21, 7)
	}
	return 401
}

// A tree maps the path of each file to a description of the file.
type tree map[string]string

func treeOf(root string) (tree, error) {
	t := tree{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(b)
		}
		t[path] = fmt.Sprint(info.Mode(), info.ModTime().UnixNano(), content)
		return nil
	})
	return t, err
}

func (t tree) diff(u tree) string {
	if maps.Equal(t, u) {
		return ""
	}
	for path := range t {
		if _, ok := u[path]; !ok {
			return path + " is gone"
		}
	}
	for path := range u {
		if _, ok := t[path]; !ok {
			return path + " is new"
		}
		if t[path] != u[path] {
			return path + " differs"
		}
	}
	return ""
}

func mustTree(t *testing.T, path string) tree {
	t.Helper()
	files, err := treeOf(path)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestVerify_FlippedBitsOfStore(t *testing.T) {
	dir := t.TempDir()
	if err := buildStore(dir); err != nil {
		t.Fatal(err)
	}
	flipBits(t, dir, 1, func(name string, at int64) {
		code, stdout, stderr := ecsdump("verify", dir)
		if code != exitCorrupt || !strings.Contains(stdout, name) {
			t.Errorf("byte %d of %s flipped: verify exits %d, want 4 and the name of the file:\n%s%s", at, name, code, stdout, stderr)
		}
	})
}

func TestVerify_FlippedBitsOfSave(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "game.save")
	if err := buildSave(file); err != nil {
		t.Fatal(err)
	}
	flipBits(t, dir, 1, func(name string, at int64) {
		code, stdout, stderr := ecsdump("verify", file)
		if code != exitCorrupt || !strings.Contains(stdout, name) {
			t.Errorf("byte %d flipped: verify exits %d, want 4 and the name of the file:\n%s%s", at, code, stdout, stderr)
		}
	})
}

func TestCommands_FlippedBitsOfStore(t *testing.T) {
	dir := t.TempDir()
	if err := buildStore(dir); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"ls", dir, "--limit", "0"}, {"log", dir, "--verbose"}, {"info", dir}} {
		_, want, _ := ecsdump(args...)
		flipBits(t, dir, 5, func(name string, at int64) {
			code, got, stderr := ecsdump(args...)
			if code != exitCorrupt && (code != exitOK || got != want) {
				t.Errorf("byte %d of %s flipped: %s exits %d and prints\n%s%s", at, name, args[0], code, got, stderr)
			}
		})
	}
}
