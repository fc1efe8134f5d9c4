package persist_test

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/deep"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// A run commits random ticks and records the digest of each.
type run struct {
	t     testing.TB
	dir   string
	rng   *rand.Rand
	world *storetest.World
	store *persist.Store
	// The number of each commit, by the digest of its state. It includes commits of abandoned
	// branches.
	digests map[ecs.Digest]int
	commits int
	last    int // Number of the commit in the newest record.
	synced  int // Number of the last durable commit.
	durable int // Length of the last segment when commit synced became durable.
}

func newRun(t testing.TB, seed uint64) *run {
	r := &run{t: t, rng: rand.New(rand.NewPCG(seed, 7)), digests: map[ecs.Digest]int{}}
	r.dir = filepath.Join(t.TempDir(), "store")
	r.open()
	r.digests[storetest.Persistent(r.world.World)] = 0
	r.sync()
	return r
}

func (r *run) open() {
	r.world = storetest.New(10)
	store, err := persist.Open(storetest.Background, r.dir, r.world.World, persist.Options{Sync: journal.SyncNever, SnapshotBytes: 6000})
	require.NoError(r.t, err)
	r.store = store
}

// sync makes all commits durable.
func (r *run) sync() {
	require.NoError(r.t, r.store.Sync(storetest.Background))
	r.synced, r.durable = r.last, len(r.lastSegment())
}

func (r *run) lastSegment() string {
	names := storetest.Segments(r.t, r.dir)
	data, err := os.ReadFile(filepath.Join(r.dir, names[len(names)-1]))
	require.NoError(r.t, err)
	return string(data)
}

func (r *run) tick() {
	r.world.Do(storetest.RandomActions(r.rng, 8)...)
	r.world.Seed.Set(storetest.Seed(r.rng.Uint64())) // No two ticks are equal.
	require.NoError(r.t, r.store.Commit())
	r.commits++
	r.last = r.commits
	r.digests[storetest.Persistent(r.world.World)] = r.commits
	if r.store.Snapshotting() { // A snapshot makes its state durable.
		require.NoError(r.t, r.store.Settle().Err)
		r.sync()
	}
}

// some does n random actions.
func (r *run) some(n int) {
	for range n {
		switch k := r.rng.IntN(12); {
		case k == 0:
			r.sync()
		case k == 1:
			_ = r.world.History().Rewind(1 + r.rng.IntN(4))
		case k == 2 && !r.world.Raw().Dirty():
			_, err := r.store.Snapshot(storetest.Background)
			require.NoError(r.t, err)
			r.sync()
		default:
			r.tick()
		}
	}
}

// crash simulates the end of the process and loses a part of the bytes that were not durable.
func (r *run) crash() {
	// After Sync, all bytes are in the file.
	require.NoError(r.t, r.store.Journal().Sync(storetest.Background))
	r.dir = storetest.CopyDir(r.t, r.dir)
	r.world.ReleaseAll()
	storetest.CloseStore(r.t, r.store)
	names, data := storetest.Segments(r.t, r.dir), r.lastSegment()
	kept := data[:r.durable+r.rng.IntN(len(data)-r.durable+1)]
	require.NoError(r.t, os.WriteFile(filepath.Join(r.dir, names[len(names)-1]), []byte(kept), 0o600))
}

// check checks that a recovered state is that of a commit, and returns the commit's number.
func (r *run) check(digest ecs.Digest) (commit int) {
	r.t.Helper()
	commit, ok := r.digests[digest]
	require.True(r.t, ok, "the state of no commit")
	require.GreaterOrEqual(r.t, commit, r.synced)
	return commit
}

func TestRecovery_CopyOfRunningStore(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		r := newRun(t, seed)
		for range 4 {
			r.some(6)
			w := storetest.New(0)
			s := storetest.Open(t, storetest.CopyDir(t, r.dir), w, persist.Options{})
			require.False(t, s.Report().Clean)
			r.check(storetest.Persistent(w.World))
		}
		r.world.ReleaseAll()
		storetest.CloseStore(t, r.store)
	}
}

func TestRecovery_RepeatedCrashes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		r := newRun(t, seed)
		for range 5 {
			r.some(8)
			r.crash()
			r.open()
			r.last = r.check(storetest.Persistent(r.world.World))
			require.False(t, r.store.Report().Clean)
			require.Empty(t, r.store.Report().Skipped)
			r.sync()
		}
		r.world.ReleaseAll()
		storetest.CloseStore(t, r.store)
		storetest.Verified(t, r.dir)
	}
}

func TestRecovery_JournalCutAnywhere(t *testing.T) {
	t.Parallel()
	r := newRun(t, 1)
	r.tick()
	r.sync()
	for range 3 {
		r.tick()
	}
	dir := storetest.CopyDir(t, r.dir)
	r.world.ReleaseAll()
	storetest.CloseStore(t, r.store)
	segment := filepath.Join(dir, storetest.Segments(t, dir)[0])
	running, err := os.ReadFile(segment)
	require.NoError(t, err)
	closed := r.lastSegment()
	for _, whole := range []string{string(running), closed} {
		last := r.synced
		step := deep.Or(4, 1)
		for size := r.durable; size <= len(whole); size += min(step, max(1, len(whole)-size)) {
			require.NoError(t, os.WriteFile(segment, []byte(whole[:size]), 0o600))
			digest, err := headDigest(dir)
			require.NoError(t, err)
			n := r.check(digest)
			require.GreaterOrEqual(t, n, last, "cut to %d bytes", size)
			last = n
		}
		require.True(t, whole != closed || last == r.commits)
	}
	// The cut removes durable ticks, so recovery finds an older state or returns an error.
	for size := 0; size < r.durable; size += 11 {
		require.NoError(t, os.WriteFile(segment, []byte(closed[:size]), 0o600))
		if digest, err := headDigest(dir); err == nil {
			_, ok := r.digests[digest]
			require.True(t, ok, "cut to %d bytes: the state of no commit", size)
		}
	}
}

// headDigest returns the digest of the state that Open recovers from dir.
func headDigest(dir string) (ecs.Digest, error) {
	v, err := inspect.OpenReadOnly(storetest.Background, dir)
	if err != nil {
		return 0, err
	}
	defer v.Close()
	im, err := v.At(storetest.Background, v.Head())
	if err != nil {
		return 0, err
	}
	return im.Digest(), nil
}

// lostTail returns the directory of a store that lost its last ticks in a crash and then committed
// other ticks. The parameter others is the number of these other ticks. A snapshot file of a lost
// tick is not in the directory: lostTail returns its name and its content.
func lostTail(t testing.TB, others int) (dir, name, snapshot string) {
	r := newRun(t, 3)
	r.tick()
	r.sync()
	lost := storetest.CopyDir(t, r.dir)
	r.tick()
	r.tick()
	result, err := r.store.Snapshot(storetest.Background)
	require.NoError(t, err)
	r.world.ReleaseAll()
	storetest.CloseStore(t, r.store)
	snapshot = storetest.ReadTree(t, r.dir)[result.Name]

	w := storetest.New(0)
	s := storetest.Open(t, lost, w, persist.Options{})
	for i := range others {
		w.Rules.Set(storetest.Rules{Name: "other", Limit: uint16(i)})
		require.NoError(t, s.Commit())
	}
	storetest.CloseStore(t, s)
	return lost, result.Name, snapshot
}

func TestRecovery_SnapshotOfLostTick(t *testing.T) {
	dir, name, snapshot := lostTail(t, 4)
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(snapshot), 0o600))
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{})
	require.Equal(t, storetest.Rules{Name: "other", Limit: 3}, w.Rules.Get())
	require.Len(t, s.Report().Skipped, 1)
	require.ErrorContains(t, s.Report().Skipped[0], name)
	require.ErrorIs(t, s.Report().Skipped[0], persist.ErrForeign)
	storetest.CloseStore(t, s)

	v, err := inspect.OpenReadOnly(storetest.Background, dir)
	require.NoError(t, err)
	defer v.Close()
	report, err := v.Verify(storetest.Background)
	require.NoError(t, err)
	require.Len(t, report.Problems, 1)
	require.ErrorContains(t, report.Problems[0], name)
}

func TestRecovery_SnapshotNewerThanJournal(t *testing.T) {
	dir, name, snapshot := lostTail(t, 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(snapshot), 0o600))
	_, err := persist.Open(storetest.Background, dir, storetest.New(0).World, persist.Options{})
	require.ErrorIs(t, err, persist.ErrCorrupt)
	require.ErrorContains(t, err, "ends at record 2")
	require.ErrorContains(t, err, name)
}

func TestCreate_RetryAfterFailure(t *testing.T) {
	mem := disktest.New()
	failCalls(mem, "create snapshots/00000001.snap")
	w := storetest.New(3)
	w.Fill(5)
	digest := w.Digest()
	_, err := persist.OpenFiles(storetest.Background, mem, w.World, persist.Options{})
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Equal(t, digest, w.Digest())
	mem.OnCall(nil)
	s := memStore(t, mem, w, persist.Options{})
	require.True(t, s.Report().Fresh)
	storetest.CloseStore(t, s)
	require.NoError(t, simVerify(mem, w))
}

// failCalls fails every disk call whose text has the prefix begin.
func failCalls(mem *disktest.Mem, begin string) {
	mem.OnCall(func(n int, call string) {
		if strings.HasPrefix(call, begin) {
			mem.Fail(n, syscall.ENOSPC)
		}
	})
}

func TestOpen_CannotWrite(t *testing.T) {
	mem := disktest.New()
	w := storetest.New(0)
	s := memStore(t, mem, w, persist.Options{})
	w.Fill(3)
	w.Rules.Set(storetest.Rules{Name: "stored", Limit: 1})
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)
	failCalls(mem, "create journal/00000002.seg")
	empty := storetest.New(0)
	empty.Rules.Set(storetest.Rules{Name: "mine", Limit: 7})
	digest := empty.Digest()
	_, err := persist.OpenFiles(storetest.Background, mem, empty.World, persist.Options{})
	require.ErrorContains(t, err, "00000002.seg")
	require.Equal(t, digest, empty.Digest())
	mem.OnCall(nil)
	s = memStore(t, mem, empty, persist.Options{})
	require.Equal(t, w.Values(), empty.Values())
	storetest.CloseStore(t, s)
}

func TestCreate_InterruptedThenOpened(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	w.Fill(5)
	s := storetest.Open(t, dir, w, persist.Options{})
	// The store was not closed, so there is no seal.
	unfinished := storetest.ReadTree(t, dir)
	storetest.CloseStore(t, s)
	const base = "snapshots/00000001.snap"
	unfinished[base+".tmp"] = unfinished[base][:5000]
	delete(unfinished, base)
	without := maps.Clone(unfinished)
	delete(without, "journal/00000001.seg")
	delete(without, "journal/00000001.ledger")
	unlisted := maps.Clone(unfinished)
	delete(unlisted, "journal/00000001.ledger")
	for _, tree := range []map[string]string{unfinished, unlisted, without, {"LOCK": "", "journal/": ""}, {"LOCK": ""}} {
		dir := filepath.Join(t.TempDir(), "store")
		storetest.WriteTree(t, dir, tree)
		w := storetest.New(0)
		w.Fill(7)
		s := storetest.Open(t, dir, w, persist.Options{})
		require.True(t, s.Report().Fresh)
		w.Create()
		require.NoError(t, s.Commit())
		storetest.CloseStore(t, s)
		storetest.Verified(t, dir)
		again := storetest.New(0)
		s = storetest.Open(t, dir, again, persist.Options{})
		require.Equal(t, 8, again.Len())
		storetest.CloseStore(t, s)
	}
}
