package storetest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// A Sample is a small closed store: two openings, a rewind, a full snapshot, and a snapshot that
// refers to the full one.
type Sample struct {
	Dir    string
	Tree   map[string]string
	Digest ecs.Digest
	Values string
}

// Damaged copies the sample to a directory in which a test damages files.
func (s *Sample) Damaged(t testing.TB) *Damaged {
	d := &Damaged{s, t, filepath.Join(t.TempDir(), "damaged")}
	WriteTree(t, d.Dir, s.Tree)
	return d
}

// NewSample creates the store.
func NewSample(t testing.TB) *Sample {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	w := New(4)
	s := Open(t, dir, w, persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1})
	w.Fill(6)
	require.NoError(t, s.Commit())
	_, err := s.Snapshot(Background)
	require.NoError(t, err)
	for i := range 3 {
		w.Position.Set(w.Entities()[i], Position{9, 9})
		require.NoError(t, s.Commit())
	}
	require.NoError(t, w.History().Rewind(2))
	w.Destroy(w.Entities()[2])
	require.NoError(t, s.Commit())
	result, err := s.Snapshot(Background)
	require.NoError(t, err)
	require.Positive(t, result.Shared)
	CloseStore(t, s)

	w = New(0)
	s = Open(t, dir, w, persist.Options{SnapshotBytes: -1})
	w.Rules.Set(Rules{"second", 2})
	require.NoError(t, s.Commit())
	CloseStore(t, s)
	return &Sample{dir, ReadTree(t, dir), Persistent(w.World), w.Values()}
}

// Damaged is a directory with a copy of a sample. Tests damage one file of it at a time.
type Damaged struct {
	*Sample
	T   testing.TB
	Dir string
}

// With writes data to the named file, runs f, and restores the file.
func (d *Damaged) With(name, data string, f func()) {
	path := filepath.Join(d.Dir, name)
	require.NoError(d.T, os.WriteFile(path, []byte(data), 0o600))
	f()
	require.NoError(d.T, os.WriteFile(path, []byte(d.Tree[name]), 0o600))
}

// Reported checks that verifying the store reports the damaged file.
func (d *Damaged) Reported(name string, offset int) {
	v, err := inspect.OpenReadOnly(Background, d.Dir)
	require.NoError(d.T, err)
	defer v.Close()
	r, err := v.Verify(Background)
	require.NoError(d.T, err)
	for _, p := range r.Problems {
		if strings.Contains(p.Error(), name) {
			return
		}
	}
	d.T.Fatalf("byte %d of %s: not among the problems %v", offset, name, r.Problems)
}

// Opened opens the damaged store for writing. Open must recover the exact state, or refuse, name a
// file, and change only the ledger.
func (d *Damaged) Opened(tree map[string]string) (persist.Report, error) {
	d.T.Helper()
	dir, err := os.MkdirTemp(d.T.TempDir(), "")
	require.NoError(d.T, err)
	defer os.RemoveAll(dir)
	WriteTree(d.T, dir, tree)
	w := New(0)
	before := w.Digest()
	s, err := persist.Open(Background, dir, w.World, persist.Options{})
	if err != nil {
		require.Equal(d.T, tree, ReadTree(d.T, dir), "a refused Open changed the directory")
		require.Equal(d.T, before, w.Digest(), "a refused Open changed the world")
		return persist.Report{}, err
	}
	require.Equal(d.T, d.Digest, Persistent(w.World), "%v", s.Report())
	require.Equal(d.T, d.Values, w.Values())
	CloseStore(d.T, s)
	after := ReadTree(d.T, dir)
	for name, data := range tree {
		if !strings.HasSuffix(name, ".ledger") { // Every opening writes its own ledger.
			require.Equal(d.T, data, after[name], name)
		}
	}
	return s.Report(), nil
}

// CheckOpen opens tree, in which a file is damaged at an offset. The damage must be reported or
// must not matter.
func (d *Damaged) CheckOpen(tree map[string]string, name string, at int) {
	r, err := d.Opened(tree)
	// Opening reads only the names of the two older snapshots, so it need not report damage in
	// them.
	newest := name != "snapshots/00000001.snap" && name != "snapshots/00000002.snap"
	switch {
	case err != nil:
		require.ErrorIs(d.T, err, persist.ErrCorrupt)
		require.ErrorContains(d.T, err, name, "byte %d", at)
		require.ErrorContains(d.T, err, "offset")
	case newest:
		require.NotEmpty(d.T, r.Skipped, "byte %d of %s", at, name)
		require.ErrorContains(d.T, r.Skipped[0], name)
		require.ErrorContains(d.T, r.Skipped[0], "offset")
	}
}

// Flip returns data with a bit flipped.
func Flip(data string, at int, bit int) string {
	b := []byte(data)
	b[at] ^= 1 << bit
	return string(b)
}

// Stride is the distance between the bits that tests of damage flip.
var Stride = flag.Int("stride", 61, "the tests of damage flip a bit in every n-th byte of snapshots and saves, and in ten times as many of journals; 1: in every byte")

// Values lists all persistent values of w.
func (w *World) Values() string {
	var b strings.Builder
	for _, st := range w.Raw().Storages() {
		if st.Persistent() && st.Layout() != nil {
			b.WriteString(st.Name())
			for _, e := range st.Entities() {
				b.WriteString(" " + ecs.Entity(e).String())
			}
			b.Write(st.AppendRows(nil, 0, st.Rows()))
		}
	}
	return b.String()
}
