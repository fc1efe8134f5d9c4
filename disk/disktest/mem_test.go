package disktest_test

import (
	"slices"
	"testing"

	"github.com/stet-ecs/stet/disk/disktest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write creates a file with synced bytes and an unsynced name.
func write(t *testing.T, m *disktest.Mem, name, text string) {
	t.Helper()
	f, err := m.Create(name)
	must(t, err)
	_, err = f.WriteAt([]byte(text), 0)
	must(t, err)
	must(t, f.Sync())
	must(t, f.Close())
}

func TestSyncDir_MakesNamesDurable(t *testing.T) {
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

func TestCrash_LosesUnsyncedDirectory(t *testing.T) {
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

func TestClone_IndependentOfOriginal(t *testing.T) {
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
		t.Errorf("the tree after the crash has %q", got)
	}
	if got := string(m.Crash().Bytes("f")); got != "old" {
		t.Errorf("after a crash without a sync, the tree has %q", got)
	}
}

func TestRename_DirectoryWithContents(t *testing.T) {
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
