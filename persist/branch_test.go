package persist_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// headOf returns the record and the digest of the state that Open recovers from dir.
func headOf(t testing.TB, dir string) (uint64, ecs.Digest) {
	t.Helper()
	v := storetest.Verified(t, dir)
	im, err := v.At(storetest.Background, v.Head())
	require.NoError(t, err)
	return v.Head(), im.Digest()
}

// Branching returns a closed store of ten ticks with a snapshot at the seventh tick, and the digest
// of each record.
func Branching(t testing.TB) (string, map[uint64]ecs.Digest) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1})
	digests := map[uint64]ecs.Digest{0: storetest.Persistent(w.World)}
	for i := range uint64(10) {
		w.Fill(2)
		require.NoError(t, s.Commit())
		digests[i+1] = storetest.Persistent(w.World)
		if i == 6 {
			s.ForgetPages() // The next snapshot is a full one.
			storetest.SnapshotOf(t, s)
		}
	}
	storetest.CloseStore(t, s)
	return dir, digests
}

func TestOpen_AtOlderTickBeginsBranch(t *testing.T) {
	dir, digests := Branching(t)
	w := storetest.New(5)
	s := storetest.Open(t, dir, w, persist.Options{At: "4"})
	require.Equal(t, digests[4], storetest.Persistent(w.World))
	require.Equal(t, uint64(4), s.Report().Tick)
	require.Equal(t, "snapshots/00000001.snap", s.Report().Snapshot)

	// Nothing was committed, so the newest state is unchanged.
	crashed := storetest.CopyDir(t, dir)
	head, digest := headOf(t, crashed)
	require.Equal(t, uint64(10), head)
	require.Equal(t, digests[10], digest)

	w.Fill(1)
	require.NoError(t, s.Commit())
	require.NoError(t, s.Sync(storetest.Background))
	crashed = storetest.CopyDir(t, dir) // Now the newest state is on the branch.
	head, digest = headOf(t, crashed)
	require.Equal(t, uint64(11), head)
	require.Equal(t, storetest.Persistent(w.World), digest)
	storetest.CloseStore(t, s)

	v := storetest.Verified(t, dir)
	commits, err := v.Commits(1, 11)
	require.NoError(t, err)
	require.Len(t, commits, 11)
	require.Equal(t, uint64(4), commits[10].Parent)
	require.Equal(t, uint64(5), commits[10].Tick)
	for i, c := range commits {
		require.Equal(t, i < 4 || i == 10, c.OnHead, c.Seq)
	}
	for seq, digest := range digests { // The abandoned branch can still be read.
		im, err := v.At(storetest.Background, seq)
		require.NoError(t, err)
		require.Equal(t, digest, im.Digest(), seq)
	}
	// The store can also go back to the abandoned branch.
	s = storetest.Open(t, dir, storetest.New(0), persist.Options{At: "record:9"})
	require.Equal(t, digests[9], storetest.Persistent(s.World()))
	storetest.CloseStore(t, s)
	head, digest = headOf(t, dir)
	require.Equal(t, uint64(9), head)
	require.Equal(t, digests[9], digest)
}

func TestClose_OlderTickBecomesHead(t *testing.T) {
	t.Parallel()
	for point, want := range map[string]uint64{"@latest~3": 7, "@first": 0, "snap:2": 7, "6": 6, "@latest": 10} {
		dir, digests := Branching(t)
		s := storetest.Open(t, dir, storetest.New(0), persist.Options{At: point})
		require.Equal(t, digests[want], storetest.Persistent(s.World()), point)
		storetest.CloseStore(t, s)
		head, digest := headOf(t, dir)
		require.Equal(t, want, head, point)
		require.Equal(t, digests[want], digest, point)
		w := storetest.New(0)
		s = storetest.Open(t, dir, w, persist.Options{})
		require.True(t, s.Report().Clean)
		require.Equal(t, digests[want], storetest.Persistent(w.World), point)
		storetest.CloseStore(t, s)
	}
}

func TestOpen_PointNotFound(t *testing.T) {
	dir, _ := Branching(t)
	before := storetest.ReadTree(t, dir)
	for point, want := range map[string]error{"99": persist.ErrNotFound, "record:11": persist.ErrNotFound, "noon": persist.ErrPoint, "snap:9": persist.ErrNotFound} {
		w := storetest.New(0)
		digest := w.Digest()
		_, err := persist.Open(storetest.Background, dir, w.World, persist.Options{At: point})
		require.ErrorIs(t, err, want, point)
		require.Equal(t, digest, w.Digest())
		require.Equal(t, before, storetest.ReadTree(t, dir))
	}
	fresh := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	w.Fill(2)
	_, err := persist.Open(storetest.Background, fresh, w.World, persist.Options{At: "3"})
	require.ErrorIs(t, err, persist.ErrNotFound)
	require.Empty(t, storetest.FilesOf(t, fresh, "*/*"))
	// After the failed Open, the directory still has no store.
	s := storetest.Open(t, fresh, w, persist.Options{})
	require.True(t, s.Report().Fresh)
	storetest.CloseStore(t, s)
}

func TestRecovery_SnapshotOfPresentBranch(t *testing.T) {
	t.Parallel()
	dir, digests := Branching(t)
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{At: "@latest~6", SnapshotBytes: -1})
	// File 3 is the newest snapshot file, but it has the state of record 4. File 2 has that of
	// record 7.
	storetest.SnapshotOf(t, s)
	w.Fill(1)
	require.NoError(t, s.Commit())
	want := storetest.Persistent(w.World)
	storetest.CloseStore(t, s)
	again := storetest.New(0)
	s = storetest.Open(t, dir, again, persist.Options{})
	require.Equal(t, want, storetest.Persistent(again.World))
	require.Equal(t, "snapshots/00000003.snap", s.Report().Snapshot)
	storetest.CloseStore(t, s)
	v := storetest.Verified(t, dir)
	im, err := v.At(storetest.Background, 10)
	require.NoError(t, err)
	require.Equal(t, digests[10], im.Digest())
}

// Retention requires two snapshots of the current branch. A snapshot of an abandoned branch does
// not count, because no tick of the current branch continues it.
func TestRetention_RemovesAbandonedSnapshot(t *testing.T) {
	dir, _ := Branching(t)
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{At: "4", SnapshotBytes: -1, Retain: persist.Retention{Last: 1}})
	w.Fill(1)
	require.NoError(t, s.Commit())
	s.ForgetPages() // The next snapshot is a full one.
	require.Equal(t, []string{"snapshots/00000002.snap"}, storetest.SnapshotOf(t, s).Removed)
	storetest.CloseStore(t, s)
	require.NoError(t, flipAt(filepath.Join(dir, "snapshots/00000003.snap"), 9000))
	require.Equal(t, storetest.Persistent(w.World), storetest.Persistent(opened(t, dir).World))
}

// A component is registered after the tick at which a branch begins. So the component does not
// exist on the branch. There, another component may get the same number.
func TestBranch_ComponentRegisteredAfterPoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := ecs.NewWorld(ecs.Options{})
	p, _ := known(w)
	s, err := persist.Open(storetest.Background, dir, w, persist.Options{})
	require.NoError(t, err)
	e := w.Create()
	p.Set(e, storetest.Position{X: 1, Y: 1})
	require.NoError(t, s.Commit())
	late := ecs.MustRegister(w, ecs.Component[storetest.Bag]{Clone: storetest.CloneBag})
	late.Set(e, storetest.Bag{Name: "late"})
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)

	w = ecs.NewWorld(ecs.Options{})
	known(w)
	other := ecs.MustRegister[storetest.Rank](w)
	s, err = persist.Open(storetest.Background, dir, w, persist.Options{At: "1"})
	require.NoError(t, err)
	require.Empty(t, s.Report().Unknown)
	other.Set(e, storetest.Rank{Place: 3})
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)
	v := storetest.Verified(t, dir)
	im, err := v.At(storetest.Background, 2)
	require.NoError(t, err)
	require.NotNil(t, im.Find("bag"))
	im, err = v.At(storetest.Background, 3)
	require.NoError(t, err)
	require.Nil(t, im.Find("bag"))
	require.Equal(t, w.Digest(), im.Digest())
}

// Random programs commit, rewind, close, and open at any record. Each opened state has the digest
// that was noted for its record.
func TestBranch_RandomPrograms(t *testing.T) {
	t.Parallel()
	for i := range uint64(6) {
		rng := rand.New(rand.NewPCG(i, 17))
		dir := filepath.Join(t.TempDir(), "store")
		digests := map[ecs.Digest]bool{}
		bySeq := map[uint64]ecs.Digest{}
		head, at := uint64(0), ""
		for round := range 6 {
			w := storetest.New(8)
			s := storetest.Open(t, dir, w, persist.Options{At: at, Sync: journal.SyncNever, SnapshotBytes: 6000})
			if round == 0 {
				bySeq[0] = storetest.Persistent(w.World)
			}
			require.Equal(t, bySeq[head], storetest.Persistent(w.World), "seed %d, round %d, at %q", i, round, at)
			for range rng.IntN(8) {
				w.Do(storetest.RandomActions(rng, 8)...)
				w.Seed.Set(storetest.Seed(rng.Uint64()))
				w.ReleaseAll()
				head = s.Journal().Next()
				require.NoError(t, s.Commit())
				bySeq[head] = storetest.Persistent(w.World)
				if rng.IntN(4) == 0 && w.History().Rewind(1) == nil {
					head = w.Raw().Seq()
				}
			}
			digests[bySeq[head]] = true
			storetest.CloseStore(t, s)
			storetest.Verified(t, dir)
			at = ""
			if seqs := slices.Sorted(maps.Keys(bySeq)); rng.IntN(3) > 0 {
				head = seqs[rng.IntN(len(seqs))]
				at = fmt.Sprint("record:", head)
			}
		}
	}
}

// If durable ticks cannot be read, the program can continue from an older state.
func TestOpen_AtTickBeforeDamage(t *testing.T) {
	t.Parallel()
	dir, digests := Branching(t)
	v := storetest.Verified(t, dir)
	e, _ := v.Log().Find(9)
	segment := filepath.Join(dir, storetest.Segments(t, dir)[0])
	data, err := os.ReadFile(segment)
	require.NoError(t, err)
	data[e.Offset+60] ^= 1
	require.NoError(t, os.WriteFile(segment, data, 0o600))
	_, err = persist.Open(storetest.Background, dir, storetest.New(0).World, persist.Options{})
	require.ErrorIs(t, err, persist.ErrCorrupt)

	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{At: "record:8"})
	require.Equal(t, digests[8], storetest.Persistent(w.World))
	require.Len(t, s.Report().Skipped, 1)
	require.ErrorIs(t, s.Report().Skipped[0], persist.ErrCorrupt)
	crashed := storetest.CopyDir(t, dir)
	_, err = persist.Open(storetest.Background, crashed, storetest.New(0).World, persist.Options{})
	// No tick was committed, so the damaged state is still the newest one.
	require.ErrorIs(t, err, persist.ErrCorrupt)
	elsewhere := storetest.New(0)
	// Opening at an older state works although the store was not closed.
	storetest.CloseStore(t, storetest.Open(t, crashed, elsewhere, persist.Options{At: "record:8"}))
	require.Equal(t, digests[8], storetest.Persistent(elsewhere.World))
	w.Fill(1)
	require.NoError(t, s.Commit())
	require.NoError(t, s.Sync(storetest.Background))
	crashed = storetest.CopyDir(t, dir)
	storetest.CloseStore(t, s)
	for _, dir := range []string{crashed, dir} {
		again := storetest.New(0)
		s = storetest.Open(t, dir, again, persist.Options{})
		require.Equal(t, w.Digest(), again.Digest())
		storetest.CloseStore(t, s)
	}
}

// Damage to ticks that were abandoned long ago does not affect the head.
func TestOpen_AbandonedTicksDamaged(t *testing.T) {
	dir, _ := Branching(t)
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{At: "4"})
	w.Fill(1)
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)
	v := storetest.Verified(t, dir)
	e, _ := v.Log().Find(9)
	segment := filepath.Join(dir, storetest.Segments(t, dir)[0])
	data, err := os.ReadFile(segment)
	require.NoError(t, err)
	data[e.Offset+60] ^= 1
	require.NoError(t, os.WriteFile(segment, data, 0o600))
	again := storetest.New(0)
	s = storetest.Open(t, dir, again, persist.Options{})
	require.Equal(t, w.Digest(), again.Digest())
	require.Len(t, s.Report().Skipped, 1)
	storetest.CloseStore(t, s)
}

// The record of a tick is damaged, but a snapshot has the state after that tick. The store can
// continue from this state.
func TestBranch_SnapshotOfDamagedRecord(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1})
	for range 2 {
		w.Fill(2)
		require.NoError(t, s.Commit())
	}
	storetest.SnapshotOf(t, s)
	storetest.CloseStore(t, s)
	v := storetest.Verified(t, dir)
	e, _ := v.Log().Find(2)
	require.NoError(t, flipAt(filepath.Join(dir, storetest.Segments(t, dir)[0]), int(e.Offset)+8))
	for range 3 {
		again := storetest.New(0)
		s := storetest.Open(t, dir, again, persist.Options{SnapshotBytes: -1})
		require.Equal(t, storetest.Persistent(w.World), storetest.Persistent(again.World))
		require.NotEmpty(t, s.Report().Skipped)
		w = again
		w.Fill(1)
		require.NoError(t, s.Commit())
		storetest.CloseStore(t, s)
	}
}
