package persist_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/snap"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// An interleaving runs a world while its snapshots are copied one page group at a time. It records
// the expected content of each snapshot.
type interleaving struct {
	t       testing.TB
	rng     *rand.Rand
	world   *storetest.World
	store   *persist.Store
	dir     string
	digests map[journal.ID]ecs.Digest // Digest of the state after each record.

	mu      sync.Mutex
	results []persist.SnapshotResult
}

func newInterleaving(t testing.TB, seed uint64, entities, history, pace int) *interleaving {
	r := &interleaving{t: t, rng: rand.New(rand.NewPCG(seed, 11)), digests: map[journal.ID]ecs.Digest{}}
	r.dir = filepath.Join(t.TempDir(), "store")
	r.world = storetest.New(history)
	r.world.Fill(entities)
	r.store = storetest.Open(t, r.dir, r.world, persist.Options{
		Sync: journal.SyncNever, SnapshotBytes: 1, SnapshotPace: pace,
		OnSnapshot: func(s persist.SnapshotResult) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.results = append(r.results, s)
		},
	})
	r.note()
	return r
}

func (r *interleaving) note() {
	r.digests[r.store.IDs()[r.world.Raw().Seq()]] = storetest.Persistent(r.world.World)
}

func (r *interleaving) step() {
	// The speed of the disk must not affect the test.
	_, _ = r.store.Written(storetest.Background)
	switch k := r.rng.IntN(20); {
	case k < 15:
		r.world.Do(storetest.RandomActions(r.rng, 1+r.rng.IntN(6))...)
		require.NoError(r.t, r.store.Commit())
		r.note()
	case k < 17:
		_ = r.world.History().Rewind(1 + r.rng.IntN(5))
	case k < 18:
		_ = r.world.History().Seek(r.world.Tick() + uint64(r.rng.IntN(4)))
	case k < 19 && !r.world.Raw().Dirty():
		_, err := r.store.Snapshot(storetest.Background)
		require.NoError(r.t, err)
	default:
		r.store.Hand()
	}
}

// hasAbandoned reports whether a snapshot was abandoned.
func (r *interleaving) hasAbandoned() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.results, func(s persist.SnapshotResult) bool { return s.Err != nil })
}

// check reads every published snapshot.
func (r *interleaving) check() (published, shared, abandoned int) {
	r.world.ReleaseAll()
	storetest.CloseStore(r.t, r.store)
	files, err := disk.Open(r.dir)
	require.NoError(r.t, err)
	defer files.Close()
	for _, s := range r.results {
		if s.Err != nil {
			require.ErrorIs(r.t, s.Err, persist.ErrAbandoned)
			abandoned++
			continue
		}
		published, shared = published+1, shared+s.Shared
		f, err := snap.Open(files, s.Name, catalog.SnapshotName)
		require.NoError(r.t, err)
		im, err := f.Load(storetest.Background, nil, false)
		require.NoError(r.t, err)
		require.Equal(r.t, r.digests[f.Manifest.ID], im.Digest(), "%s of tick %d", s.Name, s.Tick)
		f.Close()
	}
	storetest.Verified(r.t, r.dir)
	return published, shared, abandoned
}

// Each published snapshot has the state of its tick, although the world commits and rewinds while
// the snapshot is copied.
func TestSnapshot_WorldChangesDuringCopy(t *testing.T) {
	t.Parallel()
	published, shared, abandoned := 0, 0, 0
	for seed := range uint64(8) {
		r := newInterleaving(t, seed, int(seed)*3, 4*int(seed%3), 1)
		for range 120 {
			r.step()
		}
		p, s, a := r.check()
		published, shared, abandoned = published+p, shared+s, abandoned+a
	}
	require.Greater(t, published, 25)
	require.Greater(t, shared, 60)
	require.Greater(t, abandoned, 3)
}

// With pages of 4096 rows, a snapshot has many pages. So it copies some pages of a column and
// shares the others.
func TestSnapshot_SharesSomeOfManyPages(t *testing.T) {
	t.Parallel()
	r := newInterleaving(t, 3, 12_000, 6, 300_000)
	for range 60 {
		r.step()
	}
	published, shared, _ := r.check()
	require.Greater(t, published, 3)
	require.Greater(t, shared, published)
}

func TestSnapshot_PublishedDespiteRewinds(t *testing.T) {
	r := newInterleaving(t, 1, 12_000, 8, 100)
	before := r.store.Newest()
	// How soon a snapshot is abandoned depends on the speed of the disk.
	for round := 0; round < 40 || round < 4000 && !r.hasAbandoned(); round++ {
		for range 3 {
			r.world.Seed.Set(storetest.Seed(r.rng.Uint64()))
			require.NoError(t, r.store.Commit())
			r.note()
		}
		require.NoError(t, r.world.History().Rewind(3))
	}
	published, _, abandoned := r.check()
	require.Greater(t, published, 1, "of %d", r.store.Newest()-before)
	require.Positive(t, abandoned)
}

func TestClose_FinishesSnapshot(t *testing.T) {
	r := newInterleaving(t, 1, 100, 0, 1)
	r.world.Fill(1)
	require.NoError(t, r.store.Commit())
	r.note()
	require.True(t, r.store.Snapshotting())
	require.NoError(t, r.store.Commit())
	published, _, _ := r.check()
	require.Equal(t, 2, published)
}

func TestSnapshot_NextWritesPagesOfFailedOne(t *testing.T) {
	t.Parallel()
	r := newInterleaving(t, 5, 9000, 0, -1)
	refused := errors.New("refused")
	for range 6 {
		r.world.Do(storetest.RandomActions(r.rng, 5)...)
		r.world.ReleaseAll()
		require.NoError(t, r.store.Commit())
		r.note()
		if r.store.Snapshotting() {
			r.store.Settle()
			continue
		}
	}
	r.world.Do(storetest.RandomActions(r.rng, 20)...)
	r.world.ReleaseAll()
	r.store.Hurry(-1)
	require.NoError(t, r.store.Commit())
	r.note()
	err := r.store.SnapshotBefore(storetest.Background, func(context.Context) error { return refused })
	require.ErrorIs(t, err, refused)
	r.mu.Lock()
	r.results = r.results[:len(r.results)-1]
	r.mu.Unlock()
	r.world.Seed.Set(7)
	require.NoError(t, r.store.Commit())
	r.note()
	s, err := r.store.Snapshot(storetest.Background)
	require.NoError(t, err)
	require.Greater(t, s.Written, 3, "the pages of the failed snapshot, and the registry's tick")
	r.check()
}

// A tick with a Clear has only the operation Clear, and does not list the removed entities. The
// next snapshot must nevertheless have the state of the world.
func TestSnapshot_AfterClear(t *testing.T) {
	t.Parallel()
	for _, empty := range []func(w *storetest.World){func(w *storetest.World) { w.Position.Clear() }, func(w *storetest.World) { w.Clear() }} {
		dir, w, s := bigStore(t, 3)
		first := w.Entities()[0]
		empty(w)
		if !w.Alive(first) {
			first = w.Create()
		}
		w.Position.Set(first, storetest.Position{X: 1, Y: 1})
		require.NoError(t, s.Commit())
		storetest.SnapshotOf(t, s)
		storetest.CloseStore(t, s)
		storetest.Verified(t, dir)
		require.Equal(t, w.Digest(), opened(t, dir).Digest())
	}
}

// A snapshot fails while it is written. Changes made in the meantime are part of the next snapshot.
func TestSnapshot_FailureKeepsLaterChanges(t *testing.T) {
	for name, change := range map[string]func(w *storetest.World){
		"values":    func(w *storetest.World) { w.Position.Mut(w.Entities()[5000]).X = 7 },
		"removed":   func(w *storetest.World) { w.Position.Remove(w.Entities()[5000]) },
		"destroyed": func(w *storetest.World) { w.Destroy(w.Entities()[5000]) },
		"cleared":   func(w *storetest.World) { w.Position.Clear(); w.Position.Set(w.Entities()[0], storetest.Position{}) },
		"created":   func(w *storetest.World) { w.Create() },
	} {
		dir, w, s := bigStore(t, 3)
		gate := make(chan error)
		require.NoError(t, s.Begin(func(context.Context) error { return <-gate }))
		s.Hand()
		change(w)
		require.NoError(t, s.Commit())
		gate <- os.ErrInvalid
		require.ErrorIs(t, s.Settle().Err, os.ErrInvalid)
		storetest.SnapshotOf(t, s)
		storetest.CloseStore(t, s)
		storetest.Verified(t, dir)
		require.Equal(t, w.Digest(), opened(t, dir).Digest(), name)
	}
}
