package persist_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/internal/deep"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// A fare is a random program on a store whose disk sometimes fails. It counts the values that
// Metrics must return.
type fare struct {
	t     *testing.T
	rng   *rand.Rand
	mem   *disktest.Mem
	w     *storetest.World
	s     *persist.Store
	saved string

	last, durable     uint64 // Ticks of the newest record, and of the newest durable one.
	lag               uint64
	snapshots, failed int
	copying           bool
	err               bool // The journal has failed.
	tried             bool // A Resume has failed since the journal failed.
	// File sizes are unknown: a file could not be read, or a failed snapshot left a file behind.
	blind  bool
	before persist.Metrics // The metrics after the previous step of this opening.
}

// After each step, Metrics equal the counts of a model that is independent of the implementation.
func TestMetrics_SameAsModel(t *testing.T) {
	for seed := range deep.Or[uint64](30, 500) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			f := &fare{t: t, rng: rand.New(rand.NewPCG(seed, 0x3e)), mem: disktest.New(), saved: filepath.Join(t.TempDir(), "save")}
			f.open()
			f.look("open")
			for range 60 {
				f.look(f.step())
			}
			if f.err {
				f.resume(0)
			}
			f.clean()
			f.close()
			f.look("close")
		})
	}
}

func (f *fare) open() {
	f.t.Helper()
	f.w = storetest.New(6)
	fresh := f.s == nil
	s, err := persist.Open(storetest.Background, ".", f.w.World, persist.Options{Files: f.mem, Sync: journal.SyncNever, SnapshotBytes: -1, SnapshotPace: 1})
	require.NoError(f.t, err)
	*f = fare{t: f.t, rng: f.rng, mem: f.mem, w: f.w, s: s, saved: f.saved, last: f.w.Tick(), durable: f.w.Tick()}
	if fresh {
		f.snapshots = 1
		require.NoError(f.t, persist.Save(storetest.Background, f.saved, f.w.World))
	}
}

func (f *fare) close() {
	f.t.Helper()
	storetest.CloseStore(f.t, f.s)
	// After a rewind, Close may write a record with NoRewind values. That record has the present
	// tick.
	if f.s.Metrics().DurableTick == f.w.Tick() {
		f.last = f.w.Tick()
	}
	f.synced()
}

// synced updates the model for a sync.
func (f *fare) synced() { f.lag, f.durable = 0, f.last }

// settle finishes the snapshot under way, if any. The ticks up to it become durable.
func (f *fare) settle() {
	abandoned := f.s.Abandoned()
	f.s.Settle()
	f.finish(abandoned)
}

// finish counts the snapshot under way, if any, as finished or abandoned.
func (f *fare) finish(abandoned bool) {
	switch {
	case !f.copying:
	case abandoned:
		f.failed++
	default:
		f.snapshots++
		f.synced()
	}
	f.copying = false
}

func (f *fare) commit() {
	f.t.Helper()
	f.w.Seed.Set(storetest.Seed(f.rng.Uint32()))
	abandoned := f.s.Abandoned()
	err := f.s.Commit()
	require.Equal(f.t, f.err, err != nil, "%v", err)
	if f.err {
		return
	}
	f.last = f.w.Tick()
	f.lag++
	if abandoned {
		f.finish(true)
		// The commit completed the copy. Wait until the copy is written.
	} else if f.copying && !f.s.Copying() {
		f.settle()
		f.sync()
	}
}

func (f *fare) sync() {
	f.t.Helper()
	require.NoError(f.t, f.s.Sync(storetest.Background))
	f.synced()
}

// clean commits the present state if it has changes.
func (f *fare) clean() {
	f.t.Helper()
	if f.w.Raw().Dirty() {
		f.commit()
	}
	f.settle()
}

// resume resumes the store. The disk fails at the given call and works after it; 0 means that it
// does not fail.
func (f *fare) resume(fails int) {
	f.t.Helper()
	if f.w.Raw().Dirty() {
		f.commit()
	}
	if f.blind = fails > 0; f.blind {
		f.mem.Fail(f.mem.Calls()+fails, syscall.EIO)
	}
	err := f.s.Resume(storetest.Background)
	if fails == 0 {
		require.NoError(f.t, err)
	}
	if f.tried = true; err != nil {
		return
	}
	f.err, f.last = false, f.w.Tick() // Resume made the whole world a durable tick.
	r := f.s.Settle()
	if f.synced(); r.Err != nil {
		f.failed++
		return
	}
	f.snapshots++
}

// step does a random action and describes it.
func (f *fare) step() (what string) {
	f.t.Helper()
	ctx := storetest.Background
	switch k := f.rng.IntN(24); {
	case k < 8:
		f.commit()
		return "commit"
	case k < 11 && !f.err:
		f.sync()
		return "sync"
	case k < 13 && !f.err:
		f.clean()
		r, err := f.s.Snapshot(ctx)
		require.NoError(f.t, err)
		f.snapshots++
		f.synced()
		require.Equal(f.t, r, f.s.Metrics().LastSnapshot)
		return "snapshot"
	case k == 13 && !f.err:
		f.clean()
		require.NoError(f.t, f.s.Begin(f.s.Journal().Sync))
		f.copying = true
		return "begin a snapshot"
	case k < 16:
		h := f.w.History()
		require.NoError(f.t, h.Seek(h.Oldest()+f.rng.Uint64N(h.Newest()-h.Oldest()+1)))
		return "seek"
	case k == 16:
		cp := f.w.Checkpoint()
		f.w.Fill(3)
		if f.rng.IntN(2) == 0 {
			f.commit()
		}
		f.w.Restore(cp)
		f.w.Release(cp)
		return "restore"
	case k == 17 && !f.err:
		f.clean()
		require.NoError(f.t, f.s.Goto(ctx, "@first"))
		f.synced()
		return "go to"
	case k == 18 && !f.err:
		f.clean()
		require.NoError(f.t, f.s.Load(ctx, f.saved))
		f.last, f.copying = f.w.Tick(), true
		f.settle()
		return "load"
	case k == 19 && !f.err:
		f.clean()
		f.mem.FailFrom(f.mem.Calls()+1, syscall.EIO)
		require.Error(f.t, f.s.Sync(ctx))
		f.mem.FailFrom(0, nil)
		f.err, f.tried = true, false
		return "fail"
	case k == 20 && f.err:
		f.resume(1 + f.rng.IntN(60))
		return "try to resume"
	case k == 21 && f.err:
		f.resume(0)
		return "resume"
	case k == 22 && !f.err:
		f.clean()
		f.close()
		f.open()
		return "open again"
	}
	return "nothing"
}

func (f *fare) look(what string) {
	f.t.Helper()
	m := f.s.Metrics()
	require.Equal(f.t, f.w.Tick(), m.Tick, what)
	require.Equal(f.t, f.durable, m.DurableTick, what)
	require.Equal(f.t, f.durable, m.LocalTick, what)
	require.Equal(f.t, f.snapshots, m.Snapshots, what)
	require.Equal(f.t, f.failed, m.SnapshotsFailed, what)
	require.Equal(f.t, f.copying, m.Snapshotting, what)
	require.Equal(f.t, f.err, m.Err != nil, "%s: %v", what, m.Err)
	coherent(f.t, &m)
	grows(f.t, &f.before, &m)
	f.before = m
	if f.err && f.tried {
		return // A failed Resume may have left files that Metrics do not count.
	}
	require.Equal(f.t, f.lag, m.LagTicks, what)
	segments, snapshots := 0, int64(0)
	for _, name := range f.mem.Files() {
		switch {
		case strings.HasSuffix(name, ".seg"):
			segments++
		case strings.HasSuffix(name, ".snap"):
			snapshots += int64(len(f.mem.Bytes(name)))
		}
	}
	require.Equal(f.t, segments, m.JournalSegments, what)
	if !f.blind {
		require.Equal(f.t, snapshots, m.SnapshotBytes, what)
	}
}

// coherent checks that m is consistent in itself.
func coherent(t testing.TB, m *persist.Metrics) {
	t.Helper()
	require.LessOrEqual(t, m.SyncLast, m.SyncMax)
	require.LessOrEqual(t, m.SyncMax, m.SyncTotal)
	require.LessOrEqual(t, m.SyncTotal, m.SyncMax*time.Duration(m.Syncs))
	require.Equal(t, m.DiskBytes, m.JournalBytes+m.SnapshotBytes)
	require.Equal(t, m.DiskBytes, m.Kept.Bytes)
	require.Positive(t, m.JournalBytes)
	require.Positive(t, m.SnapshotBytes)
	require.Positive(t, m.JournalSegments)
	require.GreaterOrEqual(t, m.QueuedBytes, int64(0))
	require.Equal(t, m.Snapshots+m.SnapshotsFailed == 0, m.LastSnapshot.Name == "")
	if m.SnapshotsFailed == 0 {
		require.NoError(t, m.LastSnapshot.Err)
	}
}

// grows checks that no count in m is less than the same count in earlier metrics. before: the
// earlier metrics.
func grows(t testing.TB, before, m *persist.Metrics) {
	t.Helper()
	require.GreaterOrEqual(t, m.Syncs, before.Syncs)
	require.GreaterOrEqual(t, m.SyncMax, before.SyncMax)
	require.GreaterOrEqual(t, m.SyncTotal, before.SyncTotal)
	require.Equal(t, m.Syncs == before.Syncs, m.SyncTotal == before.SyncTotal)
	require.GreaterOrEqual(t, m.Snapshots, before.Snapshots)
	require.GreaterOrEqual(t, m.SnapshotsFailed, before.SnapshotsFailed)
	require.GreaterOrEqual(t, m.PrunedMarks, before.PrunedMarks)
	require.GreaterOrEqual(t, m.PrunedBranches, before.PrunedBranches)
	if m.Snapshots+m.SnapshotsFailed == before.Snapshots+before.SnapshotsFailed {
		require.Equal(t, before.LastSnapshot, m.LastSnapshot)
	}
}
