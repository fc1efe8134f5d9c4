package persist_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/snap"
	"github.com/stet-ecs/stet/persist/internal/storetest"
	"github.com/stet-ecs/stet/persist/repair"
)

var livings = flag.Int("livings", 60, "how often TestView_RunningStore reads")

func init() { children["churn"] = churn }

// churn commits, snapshots and removes old data as fast as it can. It prints "commit" with the
// digest of a tick before it commits the tick.
func churn(dir, _ string) error {
	w := storetest.New(5)
	s, err := persist.Open(storetest.Background, dir, w.World, persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1})
	if err != nil {
		return err
	}
	fmt.Printf("commit %v\n", storetest.Persistent(w.World))
	rng := rand.New(rand.NewPCG(1, 1))
	for i := 0; ; i++ {
		w.Do(storetest.RandomActions(rng, 20)...)
		w.ReleaseAll()
		w.Seed.Set(storetest.Seed(rng.Uint64()))
		next := w.Clone()
		next.Commit()
		fmt.Printf("commit %v\n", storetest.Persistent(next))
		if err := s.Commit(); err != nil {
			return err
		}
		if rng.IntN(9) == 0 {
			_ = w.History().Rewind(1)
		}
		if i%3 == 0 && !w.Raw().Dirty() {
			if _, err := s.Snapshot(storetest.Background); err != nil {
				return err
			}
			if err := thin(s, dir); err != nil {
				return err
			}
			fmt.Println("thinned .")
			if _, err := os.Stat(dir + ".stop"); err == nil {
				// Stop only right after thin, which clears the journal's note. Before, the note may
				// list removed files.
				fmt.Println("stopped .")
				time.Sleep(time.Hour)
			}
		}
	}
}

// thin removes all but the newest three snapshots and the files they need.
func thin(s *persist.Store, dir string) error {
	files, err := disk.Open(dir)
	if err != nil {
		return err
	}
	defer files.Close()
	numbers, _, err := catalog.New(files).SnapshotFiles()
	if err != nil {
		return err
	}
	needed, oldest := map[uint32]bool{}, uint64(1<<63)
	for i, n := range slices.Backward(numbers) {
		if i < len(numbers)-3 && !needed[n] {
			continue
		}
		r, err := snap.Open(files, catalog.SnapshotName(n), catalog.SnapshotName)
		if err != nil {
			return err
		}
		if i >= len(numbers)-3 {
			oldest = min(oldest, r.Manifest.ID.Seq)
		}
		needed[n] = true
		for _, f := range r.Manifest.Files {
			needed[f.Number] = true
		}
		r.Close()
	}
	// The journal's note lists snapshots that must exist. Clear that list, because the store does
	// not know that this function removes files.
	if err := s.Journal().KeepNote([]byte{0}); err != nil {
		return err
	}
	s.Unwatch(needed)
	// A file is removed before the files it refers to.
	for _, n := range slices.Backward(numbers) {
		if !needed[n] {
			if err := files.Remove(catalog.SnapshotName(n)); err != nil {
				return err
			}
		}
	}
	if err := s.Journal().Roll(storetest.Background); err != nil {
		return err
	}
	_, err = s.Journal().Prune(oldest + 1)
	return err
}

// stamps returns names, modes, sizes and modification times of everything in dir.
func stamps(t testing.TB, dir string) map[string]string {
	t.Helper()
	stamps := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		stamps[path] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime().UnixNano())
		return err
	}))
	return stamps
}

// readOnce reads a store like ecsdump and returns the digest of the newest state. It returns "" if
// the store removed that state during the read.
func readOnce(t testing.TB, dir string, verify bool) string {
	v, err := inspect.OpenReadOnly(storetest.Background, dir)
	require.NoError(t, err)
	defer v.Close()
	require.Empty(t, v.Damage())
	im, err := v.At(storetest.Background, v.Head())
	if errors.Is(err, persist.ErrNotFound) {
		return ""
	}
	require.NoError(t, err)
	if verify {
		r, err := v.Verify(storetest.Background)
		require.NoError(t, err)
		require.Empty(t, r.Problems)
		require.NotContains(t, strings.Join(r.Notes, "\n"), "torn")
	}
	return im.Digest().String()
}

func TestView_RunningStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	c := startChild(t, "churn", dir, "")
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	c.await(t, "thinned", 2)
	var seen []string
	for i := range *livings {
		if digest := readOnce(t, dir, i%4 == 0); digest != "" {
			seen = append(seen, digest)
		}
	}
	require.Greater(t, len(seen), *livings/2)
	require.Greater(t, len(slices.Compact(slices.Clone(seen))), 1, "the store made no progress")
	c.await(t, "thinned", 3) // The writer continues.
	require.NoError(t, os.WriteFile(dir+".stop", nil, 0o600))
	c.await(t, "stopped", 1)
	c.kill(t)
	require.Empty(t, c.said("failed"))
	committed := map[string]bool{}
	for _, digest := range c.said("commit") {
		committed[digest] = true
	}
	for _, digest := range seen {
		require.True(t, committed[digest], digest)
	}

	before := stamps(t, dir)
	require.True(t, committed[readOnce(t, dir, true)])
	require.True(t, maps.Equal(before, stamps(t, dir)), "reading changed the directory")
}

func TestView_UnfinishedWriteIsNotTorn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{Sync: journal.SyncNever})
	w.Fill(3)
	require.NoError(t, s.Commit())
	require.NoError(t, s.Journal().Sync(storetest.Background))
	segment := filepath.Join(dir, storetest.Segments(t, dir)[0])
	f, err := os.OpenFile(segment, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = f.Write([]byte("half a record, as a write that is under way leaves it"))
	require.NoError(t, err)
	require.NoError(t, f.Close())

	v := storetest.Verified(t, dir)
	require.True(t, v.InUse())
	r, err := v.Verify(storetest.Background)
	require.NoError(t, err)
	require.Len(t, r.Notes, 1)
	require.Contains(t, r.Notes[0], "being written")

	v = storetest.Verified(t, storetest.CopyDir(t, dir)) // The copy has no writer.
	require.False(t, v.InUse())
	r, err = v.Verify(storetest.Background)
	require.NoError(t, err)
	require.Len(t, r.Notes, 1)
	require.Contains(t, r.Notes[0], "torn tail")
	// An empty file, which no store writes, replaces the segment.
	require.NoError(t, os.WriteFile(segment, nil, 0o600))
	_ = s.Journal().Close(storetest.Background, s.World().Raw().Seq())
}

// A view can read a state after its nearest snapshot was removed. A state that no longer can be
// read is reported as not found, not as damaged.
func TestView_NearestSnapshotRemoved(t *testing.T) {
	dir, digests := Branching(t)
	v := storetest.Verified(t, dir)
	require.NoError(t, os.Remove(filepath.Join(dir, "snapshots/00000002.snap")))
	im, err := v.At(storetest.Background, 9)
	require.NoError(t, err)
	require.Equal(t, digests[9], im.Digest())
	r, err := v.Verify(storetest.Background)
	require.NoError(t, err)
	require.Empty(t, r.Problems)

	dir, digests = Branching(t)
	v = storetest.Verified(t, dir)
	require.NoError(t, os.Remove(filepath.Join(dir, "snapshots/00000001.snap")))
	_, err = v.At(storetest.Background, 5)
	require.ErrorIs(t, err, persist.ErrNotFound)
	im, err = v.At(storetest.Background, 8)
	require.NoError(t, err)
	require.Equal(t, digests[8], im.Digest())

	// This view has opened no segment yet.
	v, err = inspect.OpenReadOnly(storetest.Background, dir)
	require.NoError(t, err)
	defer v.Close()
	require.NoError(t, os.Remove(filepath.Join(dir, "journal/00000001.seg")))
	_, err = v.At(storetest.Background, 9)
	require.ErrorIs(t, err, persist.ErrNotFound)
	require.NotErrorIs(t, err, persist.ErrCorrupt)
	_, err = v.Resolve("@-1h")
	require.ErrorIs(t, err, persist.ErrNotFound)
}

func TestVerify_FilesRemoved(t *testing.T) {
	dir, _ := Branching(t)
	v, err := inspect.OpenReadOnly(storetest.Background, dir)
	require.NoError(t, err)
	defer v.Close()
	require.NoError(t, os.Remove(filepath.Join(dir, "snapshots/00000001.snap")))
	r, err := v.Verify(storetest.Background)
	require.NoError(t, err)
	require.Empty(t, r.Problems)
	require.Equal(t, []string{"snapshots/00000001.snap was removed meanwhile"}, r.Notes)
	require.Equal(t, 3, r.Replayed)

	v, err = inspect.OpenReadOnly(storetest.Background, dir)
	require.NoError(t, err)
	defer v.Close()
	require.NoError(t, os.Remove(filepath.Join(dir, "journal/00000001.seg")))
	r, err = v.Verify(storetest.Background)
	require.NoError(t, err)
	require.Contains(t, r.Notes, "journal/00000001.seg was removed meanwhile")
}

// A view is open while all snapshots and ticks that lead to a state are removed. If a newer
// snapshot has the state, the view reads it from there. If that snapshot is removed too, the view
// does not report damage.
func TestView_ReadsFromNewerSnapshot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1})
	view := func() *inspect.View {
		w.Fill(3)
		require.NoError(t, s.Commit())
		require.NoError(t, s.Journal().Sync(storetest.Background))
		v, err := inspect.OpenReadOnly(storetest.Background, dir)
		require.NoError(t, err)
		t.Cleanup(func() { v.Close() })
		return v
	}
	prune := func() {
		require.NoError(t, s.Journal().Roll(storetest.Background))
		_, err := s.Journal().Prune(w.Raw().Seq() + 1)
		require.NoError(t, err)
	}
	// replace removes all snapshots and old segments. Only a new full snapshot has the newest state
	// then.
	replace := func() {
		old, err := filepath.Glob(filepath.Join(dir, "snapshots", "*"))
		require.NoError(t, err)
		for _, name := range old {
			require.NoError(t, os.Remove(name))
		}
		_, err = s.Snapshot(storetest.Background)
		require.NoError(t, err)
		prune()
	}
	verify := func(v *inspect.View) inspect.VerifyReport {
		r, err := v.Verify(storetest.Background)
		require.NoError(t, err)
		require.Empty(t, r.Problems)
		return r
	}
	// The snapshot that this view reads stays, but the segments after it are pruned.
	pruned := view()
	_, err := s.Snapshot(storetest.Background)
	require.NoError(t, err)
	prune()
	verify(pruned)

	shown, verified := view(), view()
	replace()
	im, err := shown.At(storetest.Background, verified.Head())
	require.ErrorIs(t, err, persist.ErrNotFound, "a state newer than the view")
	require.Nil(t, im)
	im, err = verified.At(storetest.Background, verified.Head())
	require.NoError(t, err)
	require.Equal(t, storetest.Persistent(w.World), im.Digest())
	verify(verified)

	late := view()
	replace()
	w.Fill(3)
	require.NoError(t, s.Commit())
	replace()
	require.Contains(t, strings.Join(verify(late).Notes, "\n"), "the records that lead to the head were removed meanwhile")
}

// The ledger of a journal describes its old segments. Opening a view reads the ledger instead of
// these segments. The view shows the same as if all segments had been read. Damage in a segment is
// found when the segment is read.
func TestView_TrustsLedger(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	options := persist.Segmented(persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1}, 2000)
	for range 2 {
		w := storetest.New(8)
		s := storetest.Open(t, dir, w, options)
		for i := range 20 {
			w.Fill(3)
			require.NoError(t, s.Commit())
			if i == 10 {
				require.NoError(t, w.History().Rewind(3))
			}
		}
		storetest.SnapshotOf(t, s)
		storetest.CloseStore(t, s)
	}
	whole := storetest.Verified(t, dir)
	t.Cleanup(func(n int64) func() { return func() { catalog.JournalRead = n } }(catalog.JournalRead))
	catalog.JournalRead = 1
	open := func(dir string) *inspect.View {
		v, err := inspect.OpenReadOnly(storetest.Background, dir)
		require.NoError(t, err)
		t.Cleanup(func() { v.Close() })
		require.Greater(t, v.Log().Believed, 3)
		require.Empty(t, v.Damage())
		return v
	}
	v := open(dir)
	require.Equal(t, whole.Log().Entries, v.Log().Entries)
	for _, e := range whole.Log().Entries {
		want, err := whole.At(storetest.Background, e.ID.Seq)
		require.NoError(t, err)
		got, err := v.At(storetest.Background, e.ID.Seq)
		require.NoError(t, err)
		require.Equal(t, want.Digest(), got.Digest())
	}
	r, err := v.Verify(storetest.Background)
	require.NoError(t, err)
	require.Empty(t, r.Problems)
	require.Zero(t, v.Log().Believed)

	damaged := storetest.CopyDir(t, dir)
	name := storetest.Segments(t, damaged)[0]
	e, ok := whole.Log().Find(1)
	require.True(t, ok)
	require.NoError(t, flipAt(filepath.Join(damaged, name), int(e.Offset)+60))
	checksums, err := open(damaged).VerifyChecksums(storetest.Background)
	require.NoError(t, err)
	require.ErrorContains(t, errors.Join(checksums.Problems...), name)
	v = open(damaged)
	_, err = v.At(storetest.Background, 1)
	require.ErrorIs(t, err, persist.ErrCorrupt)
	r, err = v.Verify(storetest.Background)
	require.NoError(t, err)
	require.ErrorContains(t, errors.Join(r.Problems...), name)
	report, err := repair.Recover(storetest.Background, damaged, filepath.Join(t.TempDir(), "out"), repair.RecoverOptions{})
	require.ErrorContains(t, errors.Join(report.Problems...), name, "%v", err)

	// Record 10 was abandoned by a rewind. So Recover succeeds although the record is damaged.
	rewound := storetest.CopyDir(t, dir)
	e, ok = whole.Log().Find(10)
	require.True(t, ok)
	require.NoError(t, flipAt(filepath.Join(rewound, "journal", whole.Log().Segments[e.Segment].Name), int(e.Offset)+60))
	report, err = repair.Recover(storetest.Background, rewound, filepath.Join(t.TempDir(), "out"), repair.RecoverOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, errors.Join(report.Problems...), whole.Log().Segments[e.Segment].Name)

	w := storetest.New(0) // The newest state does not need the damaged record.
	s := storetest.Open(t, damaged, w, options)
	im, err := whole.At(storetest.Background, whole.Head())
	require.NoError(t, err)
	require.Equal(t, im.Digest(), storetest.Persistent(w.World))
	storetest.CloseStore(t, s)
}
