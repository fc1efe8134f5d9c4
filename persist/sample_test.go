package persist

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stretchr/testify/require"
)

// A sample is a small store that was closed: two openings, a rewind, a full
// snapshot and one that refers to it.
type sample struct {
	dir    string
	tree   map[string]string
	digest ecs.Digest
	values string
}

func (s *sample) damaged(t testing.TB) *damaged {
	d := &damaged{s, t, filepath.Join(t.TempDir(), "damaged")}
	writeTree(t, d.dir, s.tree)
	return d
}

func newSample(t testing.TB) *sample {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(4)
	s := open(t, dir, w, Options{Sync: journal.SyncNever(), SnapshotBytes: -1})
	w.fill(6)
	require.NoError(t, s.Commit())
	_, err := s.Snapshot(background)
	require.NoError(t, err)
	for i := range 3 {
		w.position.Set(w.Entities()[i], position{9, 9})
		require.NoError(t, s.Commit())
	}
	require.NoError(t, w.History().Rewind(2))
	w.Destroy(w.Entities()[2])
	require.NoError(t, s.Commit())
	result, err := s.Snapshot(background)
	require.NoError(t, err)
	require.Positive(t, result.Shared)
	closeStore(t, s)

	w = newTestWorld(0)
	s = open(t, dir, w, Options{SnapshotBytes: -1})
	w.rules.Set(rules{"second", 2})
	require.NoError(t, s.Commit())
	closeStore(t, s)
	return &sample{dir, readTree(t, dir), persistent(w.World), w.values()}
}

// damaged is a directory with a copy of a sample, in which one file at a time is
// another.
type damaged struct {
	*sample
	t   testing.TB
	dir string
}

// with runs f while the named file holds data.
func (d *damaged) with(name, data string, f func()) {
	path := filepath.Join(d.dir, name)
	require.NoError(d.t, os.WriteFile(path, []byte(data), 0o600))
	f()
	require.NoError(d.t, os.WriteFile(path, []byte(d.tree[name]), 0o600))
}

// reported checks that reading says which file is damaged.
func (d *damaged) reported(name string, offset int) {
	v, err := OpenReadOnly(background, d.dir)
	require.NoError(d.t, err)
	defer v.Close()
	r, err := v.Verify(background)
	require.NoError(d.t, err)
	for _, p := range r.Problems {
		if strings.Contains(p.Error(), name) {
			return
		}
	}
	d.t.Fatalf("byte %d of %s: not among the problems %v", offset, name, r.Problems)
}

// opened opens the damaged store for writing: it recovers exactly, or refuses,
// names a file, and changes nothing on disk.
func (d *damaged) opened(tree map[string]string) (Report, error) {
	d.t.Helper()
	dir, err := os.MkdirTemp(d.t.TempDir(), "")
	require.NoError(d.t, err)
	defer os.RemoveAll(dir)
	writeTree(d.t, dir, tree)
	w := newTestWorld(0)
	before := w.Digest()
	s, err := Open(background, dir, w.World, Options{})
	if err != nil {
		require.Equal(d.t, tree, readTree(d.t, dir), "a refused Open changed the directory")
		require.Equal(d.t, before, w.Digest(), "a refused Open changed the world")
		return Report{}, err
	}
	require.Equal(d.t, d.digest, persistent(w.World), "%v", s.Report())
	require.Equal(d.t, d.values, w.values())
	closeStore(d.t, s)
	after := readTree(d.t, dir)
	for name, data := range tree {
		require.Equal(d.t, data, after[name], name)
	}
	return s.Report(), nil
}

func (d *damaged) checkOpen(tree map[string]string, name string, at int) {
	r, err := d.opened(tree)
	newest := name != "snapshots/00000001.snap" && name != "snapshots/00000002.snap" // Only what is named is read of older ones.
	switch {
	case err != nil:
		require.ErrorIs(d.t, err, ErrCorrupt)
		require.ErrorContains(d.t, err, name, "byte %d", at)
		require.ErrorContains(d.t, err, "offset")
	case newest:
		require.NotEmpty(d.t, r.Skipped, "byte %d of %s", at, name)
		require.ErrorContains(d.t, r.Skipped[0], name)
		require.ErrorContains(d.t, r.Skipped[0], "offset")
	}
}

func flip(data string, at int, bit int) string {
	b := []byte(data)
	b[at] ^= 1 << bit
	return string(b)
}

var stride = flag.Int("stride", 61, "the tests of damage flip a bit in every n-th byte of snapshots and saves, and in ten times as many of journals; 1: in every byte")

// values lists all that is persistent in w.
func (w *testWorld) values() string {
	var b strings.Builder
	for _, st := range w.Storages() {
		if st.Persistent() && st.Layout() != nil {
			b.WriteString(st.Name())
			for _, e := range st.Entities() {
				b.WriteString(" " + e.String())
			}
			b.Write(st.AppendRows(nil, 0, st.Rows()))
		}
	}
	return b.String()
}
