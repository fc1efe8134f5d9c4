package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/disk/flat"
)

// trees returns an empty tree of every kind.
func trees(t testing.TB) map[string]disk.FS {
	all := map[string]disk.FS{}
	for _, below := range []string{"", "below "} {
		system, err := disk.Open(t.TempDir())
		must(t, err)
		t.Cleanup(func() { system.Close() })
		for name, tree := range map[string]disk.FS{"system": system, "memory": disk.Memory(), "simulated": disktest.New(), "flat": newFlat(t)} {
			if below != "" {
				must(t, tree.Mkdir("d"))
				tree = disk.Sub(tree, "d")
			}
			all[below+name] = tree
		}
	}
	return all
}

// newFlat returns an empty tree of package flat, on a device in memory.
func newFlat(t testing.TB) disk.FS {
	tree, err := flat.Open(disktest.Numbered(disk.Memory()))
	must(t, err)
	return tree
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// each runs a test in every kind of tree.
func each(t *testing.T, test func(t *testing.T, tree disk.FS)) {
	for name, tree := range trees(t) {
		t.Run(name, func(t *testing.T) { test(t, tree) })
	}
}

// create creates a file that contains text and returns the open file.
func create(t testing.TB, tree disk.FS, name, text string) disk.File {
	t.Helper()
	f, err := tree.Create(name)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	_, err = f.WriteAt([]byte(text), 0)
	must(t, err)
	return f
}

// content returns the contents of the named file.
func content(t testing.TB, tree disk.FS, name string) string {
	t.Helper()
	f, err := tree.Open(name)
	must(t, err)
	defer f.Close()
	size, err := f.Size()
	must(t, err)
	b, err := io.ReadAll(io.NewSectionReader(f, 0, size))
	must(t, err)
	return string(b)
}

func TestFS_Errors(t *testing.T) {
	each(t, func(t *testing.T, tree disk.FS) {
		must(t, tree.Mkdir("d"))
		create(t, tree, "d/f", "")
		_, taken := tree.Create("d/f")
		_, lost := tree.Create("no/f")
		_, irregular := tree.Open("d")
		_, missing := tree.Open("d/g")
		_, missingToo := tree.OpenWrite("d/g")
		_, list := tree.ReadDir("no")
		_, lock := tree.Lock("d")
		for i, e := range []struct{ err, want error }{
			{taken, fs.ErrExist}, {tree.Mkdir("d"), fs.ErrExist}, {lost, fs.ErrNotExist}, {irregular, disk.ErrIrregular},
			{missing, fs.ErrNotExist}, {missingToo, fs.ErrNotExist}, {list, fs.ErrNotExist}, {tree.Remove("d/g"), fs.ErrNotExist},
			{tree.Rename("d/g", "d/h"), fs.ErrNotExist}, {tree.Publish("d/g", "d/h"), fs.ErrNotExist}, {lock, disk.ErrIrregular},
		} {
			if !errors.Is(e.err, e.want) {
				t.Errorf("%d: %v, want %v", i, e.err, e.want)
			}
		}
		entries, err := tree.ReadDir(".")
		if err != nil || len(entries) != 1 || entries[0].Name() != "d" || !entries[0].IsDir() {
			t.Errorf("ReadDir = %v, %v", entries, err)
		}
		must(t, tree.SyncDir("d"))
	})
}

func TestPublish_NameExists(t *testing.T) {
	each(t, func(t *testing.T, tree disk.FS) {
		create(t, tree, "mine", "mine")
		create(t, tree, "theirs", "theirs")
		must(t, tree.Mkdir("draft"))
		create(t, tree, "draft/f", "draft")
		must(t, tree.Mkdir("empty"))
		for _, names := range [][2]string{{"mine", "theirs"}, {"mine", "empty"}, {"draft", "theirs"}, {"draft", "empty"}} {
			if err := tree.Publish(names[0], names[1]); !errors.Is(err, fs.ErrExist) {
				t.Errorf("Publish%q = %v, want %v", names, err, fs.ErrExist)
			}
		}
		if got := content(t, tree, "mine") + content(t, tree, "theirs") + content(t, tree, "draft/f"); got != "minetheirsdraft" {
			t.Errorf("the files hold %q", got)
		}
		must(t, tree.Publish("mine", "empty/mine"))
		must(t, tree.Publish("draft", "published"))
		must(t, tree.SyncDir("."))
		if got := content(t, tree, "empty/mine") + content(t, tree, "published/f"); got != "minedraft" {
			t.Errorf("the files hold %q", got)
		}
		for _, name := range []string{"mine", "draft/f"} {
			if _, err := tree.Open(name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Open(%q) = %v", name, err)
			}
		}
	})
}

// The errors of a renamed file do not contain its old name, such as the temporary name of a
// segment.
func TestFile_ErrorHasNameAfterRename(t *testing.T) {
	each(t, func(t *testing.T, tree disk.FS) {
		f := create(t, tree, "a.tmp", "text")
		must(t, tree.Publish("a.tmp", "a"))
		must(t, f.Close())
		_, err := f.WriteAt([]byte("more"), 0)
		for _, err := range []error{err, f.Sync(), f.Close()} {
			// Calls on a closed file of package disktest return no error.
			if strings.HasSuffix(t.Name(), "simulated") {
				continue
			}
			if !errors.Is(err, fs.ErrClosed) || strings.Contains(err.Error(), ".tmp") {
				t.Errorf("reading a closed file = %v", err)
			}
		}
	})
}

func TestFileNamed_AfterRenameAndRemove(t *testing.T) {
	each(t, func(t *testing.T, tree disk.FS) {
		f := create(t, tree, "a", "first")
		named := func(name string, want bool) {
			t.Helper()
			if got, err := f.Named(name); got != want || err != nil {
				t.Errorf("Named(%q) = %v, %v, want %v", name, got, err, want)
			}
		}
		named("a", true)
		named("b", false)
		must(t, tree.Rename("a", "b"))
		named("a", false)
		named("b", true)
		create(t, tree, "c", "second")
		must(t, tree.Rename("c", "b"))
		named("b", false)
		must(t, tree.Remove("b"))
		named("b", false)
		if b := make([]byte, 5); true {
			if _, err := f.ReadAt(b, 0); err != nil || string(b) != "first" {
				t.Errorf("a file without a name holds %q, %v", b, err)
			}
		}
	})
}

func TestLock_ExcludesSecondHolder(t *testing.T) {
	each(t, func(t *testing.T, tree disk.FS) {
		locked := func(want bool) {
			t.Helper()
			if got, err := tree.Locked("LOCK"); got != want || err != nil {
				t.Errorf("Locked = %v, %v, want %v", got, err, want)
			}
		}
		held := func(l disk.Lock, want bool) {
			t.Helper()
			if got, err := l.Held(); got != want || err != nil {
				t.Errorf("Held = %v, %v, want %v", got, err, want)
			}
		}
		locked(false)
		if entries, err := tree.ReadDir("."); err != nil || len(entries) > 0 {
			t.Errorf("Locked left the entries %v, %v", entries, err)
		}
		l, err := tree.Lock("LOCK")
		must(t, err)
		locked(true)
		held(l, true)
		must(t, l.Sign("a long name"))
		must(t, l.Sign("me"))
		if got := content(t, tree, "LOCK"); got != "me" {
			t.Errorf("the lock file has the text %q", got)
		}
		if _, err := tree.Lock("LOCK"); !errors.Is(err, disk.ErrLocked) {
			t.Errorf("a second Lock = %v", err)
		}
		held(l, true)
		must(t, l.Close())
		held(l, false)
		locked(false)

		old, err := tree.Lock("LOCK")
		must(t, err)
		must(t, tree.Remove("LOCK"))
		held(old, false)
		l, err = tree.Lock("LOCK")
		must(t, err)
		held(old, false)
		held(l, true)
		must(t, old.Close())
		held(l, true)
		locked(true)
		must(t, l.Close())
	})
}

// A lock is no longer held after another file has replaced the locked file.
func TestLock_FileReplaced(t *testing.T) {
	each(t, func(t *testing.T, tree disk.FS) {
		l, err := tree.Lock("LOCK")
		must(t, err)
		defer l.Close()
		create(t, tree, "other", "")
		must(t, tree.Rename("other", "LOCK"))
		if held, err := l.Held(); held || err != nil {
			t.Errorf("Held = %v, %v", held, err)
		}
	})
}

func TestLock_RefusesSymbolicLink(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "precious"), []byte("precious"), 0o600))
	must(t, os.Symlink("precious", filepath.Join(dir, "LOCK")))
	tree, err := disk.Open(dir)
	must(t, err)
	defer tree.Close()
	if _, err := tree.Lock("LOCK"); !errors.Is(err, disk.ErrIrregular) {
		t.Errorf("Lock = %v", err)
	}
	if _, err := tree.Locked("LOCK"); !errors.Is(err, disk.ErrIrregular) {
		t.Errorf("Locked = %v", err)
	}
}

func TestDir_ErrorTextHasOperation(t *testing.T) {
	tree, err := disk.Open(t.TempDir())
	must(t, err)
	defer tree.Close()
	_, created := tree.Create("d/f")
	_, opened := tree.Open("f")
	_, written := tree.OpenWrite("f")
	_, read := tree.ReadDir("d")
	for _, tt := range []struct {
		want string
		err  error
	}{
		{"create", created}, {"open", opened}, {"open", written}, {"read directory", read}, {"remove", tree.Remove("f")},
		{"rename", tree.Rename("f", "g")}, {"create directory", tree.Mkdir("d/e")}, {"sync directory", tree.SyncDir("d")},
	} {
		if runtime.GOOS == "windows" && tt.want == "sync directory" {
			continue // Windows syncs no directory.
		}
		if !errors.Is(tt.err, fs.ErrNotExist) || !strings.HasPrefix(tt.err.Error(), tt.want+" ") {
			t.Errorf("%s: %v", tt.want, tt.err)
		}
	}
}

func TestMemory_MisuseReturnsError(t *testing.T) {
	tree := disk.Memory()
	f := create(t, tree, "f", "text")
	must(t, tree.Mkdir("d"))
	create(t, tree, "d/g", "")
	readOnly, err := tree.Open("f")
	must(t, err)
	_, writing := readOnly.WriteAt([]byte("x"), 0)
	must(t, f.Close())
	_, closed := f.ReadAt(make([]byte, 1), 0)
	_, outside := tree.Create("../f")
	for i, e := range []struct{ err, want error }{
		{writing, fs.ErrPermission}, {closed, fs.ErrClosed}, {f.Close(), fs.ErrClosed}, {outside, fs.ErrInvalid}, {tree.Rename("d", "d/e"), fs.ErrInvalid},
	} {
		if !errors.Is(e.err, e.want) {
			t.Errorf("%d: %v, want %v", i, e.err, e.want)
		}
	}
	if tree.Remove("d") == nil || tree.Remove(".") == nil || tree.Rename("f", "d") == nil {
		t.Error("a directory with a file in it was removed")
	}
}

// Memory and package flat return the same results as the operating system, for random sequences of
// calls.
func TestMemory_EqualsDir(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		must(t, err)
		system, err := disk.Open(dir)
		must(t, err)
		defer system.Close()
		memory, onDevice := disk.Memory(), newFlat(t)
		names := rapid.SampledFrom([]string{"a", "./a", "b", "d", "d/a", "d/b", "e", "e/a"})
		for range rapid.IntRange(1, 40).Draw(rt, "calls") {
			call, from, to := rapid.IntRange(0, 5).Draw(rt, "call"), names.Draw(rt, "from"), names.Draw(rt, "to")
			text, at := rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(rt, "text"), rapid.Int64Range(0, 9).Draw(rt, "at")
			want, listed := do(system, call, from, to, text, at), list(t, system, ".")
			for _, tree := range []disk.FS{memory, onDevice} {
				got := do(tree, call, from, to, text, at)
				if (want == nil) != (got == nil) {
					rt.Fatalf("call %d of %s, %s: %T says %v, the system %v", call, from, to, tree, got, want)
				}
				if got := list(t, tree, "."); listed != got {
					rt.Fatalf("after call %d of %s, %s of %T there is\n%s, want\n%s", call, from, to, tree, got, listed)
				}
			}
		}
	})
}

// do makes one call. It skips calls whose result differs between systems: replacing a directory by
// a file or a directory.
func do(tree disk.FS, call int, from, to string, text []byte, at int64) error {
	switch call {
	case 0:
		return tree.Mkdir(from)
	case 1:
		return tree.Remove(from)
	case 2:
		if _, err := tree.ReadDir(to); err == nil || strings.HasPrefix(path.Clean(to), path.Clean(from)) {
			return nil
		}
		if _, err := tree.ReadDir(from); err == nil {
			if _, err := tree.Open(to); err == nil {
				return nil
			}
		}
		return tree.Rename(from, to)
	case 3:
		if strings.HasPrefix(path.Clean(to), path.Clean(from)) {
			return nil
		}
		return tree.Publish(from, to)
	case 4:
		f, err := tree.Create(from)
		return write(f, err, text, at)
	default:
		f, err := tree.OpenWrite(from)
		return write(f, err, text, at)
	}
}

func write(f disk.File, err error, text []byte, at int64) error {
	if err != nil {
		return err
	}
	_, err = f.WriteAt(text, at)
	return errors.Join(err, f.Sync(), f.Close())
}

// list returns the entries of a directory.
func list(t testing.TB, tree disk.FS, dir string) string {
	var b bytes.Buffer
	entries, err := tree.ReadDir(dir)
	must(t, err)
	if !slices.IsSortedFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) }) {
		t.Errorf("ReadDir(%q) is not in order", dir)
	}
	for _, e := range entries {
		name := strings.TrimPrefix(dir+"/"+e.Name(), "./")
		if e.IsDir() {
			fmt.Fprintf(&b, "%s/\n%s", name, list(t, tree, name))
			continue
		}
		info, err := e.Info()
		must(t, err)
		fmt.Fprintf(&b, "%s %d %q %v\n", name, info.Size(), content(t, tree, name), info.Mode())
	}
	return b.String()
}
