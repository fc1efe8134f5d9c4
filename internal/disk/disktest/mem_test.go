package disktest_test

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/stet-ecs/stet/internal/disk"
	"github.com/stet-ecs/stet/internal/disk/disktest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write makes a file with synced bytes, whose name is not.
func write(t *testing.T, m *disktest.Mem, name, text string) {
	t.Helper()
	f, err := m.Create(name)
	must(t, err)
	_, err = f.WriteAt([]byte(text), 0)
	must(t, err)
	must(t, f.Sync())
	must(t, f.Close())
}

func TestNamesAreDurableOnceTheirDirectoryIsSynced(t *testing.T) {
	m := disktest.New()
	must(t, m.Mkdir("a"))
	must(t, m.Mkdir("b"))
	must(t, m.SyncDir("."))
	write(t, m, "a/f", "1")
	write(t, m, "b/f", "2")
	must(t, m.SyncDir("a"))
	if got := m.Crash().Files(); !slices.Equal(got, []string{"a/f"}) {
		t.Errorf("after a crash there are %q", got)
	}
	must(t, m.Rename("a/f", "a/g"))
	must(t, m.Remove("b/f"))
	if got := m.Crash().Files(); !slices.Equal(got, []string{"a/f"}) {
		t.Errorf("after a crash there are %q", got)
	}
	must(t, m.SyncDir("a"))
	if got := string(m.Crash().Bytes("a/g")); got != "1" {
		t.Errorf("a/g holds %q after a crash", got)
	}
}

func TestWhatLiesInADirectoryIsLostWithIt(t *testing.T) {
	m := disktest.New()
	must(t, m.Mkdir("a"))
	write(t, m, "a/f", "1")
	must(t, m.SyncDir("a"))
	if got := m.Crash().Files(); len(got) > 0 {
		t.Errorf("after a crash there are %q", got)
	}
	if got := m.Clone().Crash().Files(); !slices.Equal(got, []string{"a/f"}) {
		t.Errorf("after the end of the process there are %q", got)
	}
}

func TestCopiesAreIndependent(t *testing.T) {
	m := disktest.New()
	m.Put("f", []byte("old"))
	crashed, clone := m.Crash(), m.Clone()
	for _, fs := range []*disktest.Mem{m, clone} {
		f, err := fs.OpenWrite("f")
		must(t, err)
		_, err = f.WriteAt([]byte("NEW and longer"), 0)
		must(t, err)
	}
	if got := string(crashed.Bytes("f")); got != "old" {
		t.Errorf("what the crash left holds %q", got)
	}
	if got := string(m.Crash().Bytes("f")); got != "old" {
		t.Errorf("without a sync, a crash leaves %q", got)
	}
}

func TestATreeAnswersLikeTheOperatingSystems(t *testing.T) {
	system, err := disk.OpenDir(t.TempDir())
	must(t, err)
	defer system.Close()
	for name, tree := range map[string]disk.FS{"memory": disktest.New(), "system": system} {
		must(t, tree.Mkdir("d"))
		f, err := tree.Create("d/f")
		must(t, err)
		must(t, f.Close())
		_, taken := tree.Create("d/f")
		_, lost := tree.Create("no/f")
		_, irregular := tree.Open("d")
		_, missing := tree.Open("d/g")
		_, list := tree.ReadDir("no")
		for _, e := range []struct{ err, want error }{
			{taken, fs.ErrExist}, {tree.Mkdir("d"), fs.ErrExist}, {lost, fs.ErrNotExist}, {irregular, disk.ErrIrregular},
			{missing, fs.ErrNotExist}, {list, fs.ErrNotExist}, {tree.Remove("d/g"), fs.ErrNotExist}, {tree.Rename("d/g", "d/h"), fs.ErrNotExist},
		} {
			if !errors.Is(e.err, e.want) {
				t.Errorf("%s: %v, want %v", name, e.err, e.want)
			}
		}
		entries, err := tree.ReadDir(".")
		if err != nil || len(entries) != 1 || entries[0].Name() != "d" || !entries[0].IsDir() {
			t.Errorf("%s: ReadDir = %v, %v", name, entries, err)
		}
		files, err := disk.Sub(tree, "d").List()
		if err != nil || len(files) != 1 || files[0] != (disk.FileInfo{Name: "f"}) {
			t.Errorf("%s: List = %v, %v", name, files, err)
		}
		must(t, tree.SyncDir("d"))
	}
}

func TestWhatLiesInADirectoryIsRenamedWithIt(t *testing.T) {
	m := disktest.New()
	must(t, m.Mkdir("a"))
	write(t, m, "a/f", "1")
	must(t, m.SyncDir("a"))
	must(t, m.SyncDir("."))
	must(t, m.Rename("a", "b"))
	if got := m.Files(); !slices.Equal(got, []string{"b/f"}) {
		t.Errorf("there are %q", got)
	}
	if got := m.Crash().Files(); !slices.Equal(got, []string{"a/f"}) {
		t.Errorf("after a crash there are %q", got)
	}
	must(t, m.SyncDir("."))
	if got := m.Crash().Files(); !slices.Equal(got, []string{"b/f"}) {
		t.Errorf("after a crash there are %q", got)
	}
}
