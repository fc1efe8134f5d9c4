package persist_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// memStore opens a store on mem for w.
func memStore(t testing.TB, mem *disktest.Mem, w *storetest.World, options persist.Options) *persist.Store {
	t.Helper()
	s, err := persist.OpenFiles(storetest.Background, mem, w.World, options)
	require.NoError(t, err)
	return s
}

// inMemory puts the temporary files of package pagefile into /dev/shm, if it exists. There a sync
// costs nothing.
func inMemory(t *testing.T) {
	const place = "/dev/shm"
	if info, err := os.Stat(place); err == nil && info.IsDir() {
		t.Setenv("TMPDIR", place)
	}
}

// everyCrash runs the function scenario on mem. It records what a crash before each call leaves,
// and then calls the function check with each of these file systems. One crash loses all unsynced
// bytes, and two keep some of them.
func everyCrash(mem *disktest.Mem, scenario func(), check func(left *disktest.Mem)) {
	changes := -1
	var images []*disktest.Mem
	var mu sync.Mutex
	crash := func(n int, _ string) {
		mu.Lock()
		defer mu.Unlock()
		if mem.Changes() != changes {
			changes = mem.Changes()
			images = append(images, mem.Crash(), mem.CrashSeed(uint64(2*n)), mem.CrashSeed(uint64(2*n+1)))
		}
	}
	mem.OnCall(crash)
	scenario()
	crash(mem.Calls()+1, "")
	mem.OnCall(nil)
	for _, left := range images {
		check(left)
	}
}

func TestCreate_RetryAfterAnyFailure(t *testing.T) {
	inMemory(t)
	base := storetest.New(0)
	base.Fill(5)
	digest := storetest.Persistent(base.World)
	for n, failed := 1, true; failed; n++ {
		mem := disktest.New()
		for range 3 { // Creation may fail more than once.
			mem.Fail(mem.Calls()+n, syscall.EIO)
			s, err := persist.OpenFiles(storetest.Background, mem, base.World, persist.Options{})
			if failed = err != nil; !failed {
				storetest.CloseStore(t, s)
				break
			}
			require.ErrorIs(t, err, syscall.EIO)
			require.Equal(t, digest, storetest.Persistent(base.World))
		}
		for _, left := range []*disktest.Mem{mem.Crash(), mem.CrashSeed(uint64(n)), mem.Clone()} {
			w := storetest.New(0)
			w.Seed.Set(1)
			s := memStore(t, left, w, persist.Options{})
			require.True(t, s.Report().Fresh || storetest.Persistent(w.World) == digest, "call %d: %v", n, left)
			storetest.CloseStore(t, s)
		}
	}
}

func TestSnapshot_TicksNotDurable(t *testing.T) {
	mem := disktest.New()
	w := storetest.New(0)
	s := memStore(t, mem, w, persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1})
	mem.OnCall(func(n int, call string) {
		if strings.HasPrefix(call, "sync journal/") {
			mem.Fail(n, syscall.EIO)
		}
	})
	w.Fill(4)
	require.NoError(t, s.Commit())
	_, err := s.Snapshot(storetest.Background)
	require.ErrorIs(t, err, syscall.EIO)
	for range 3 {
		w.Fill(1)
		require.ErrorIs(t, s.Commit(), syscall.EIO)
	}
	require.Error(t, s.Close(storetest.Background))

	for i, left := range []*disktest.Mem{mem.Crash(), mem.CrashSeed(1), mem.CrashSeed(2)} {
		require.Empty(t, left.Bytes(catalog.SnapshotName(2)))
		w := storetest.New(0)
		s := memStore(t, left, w, persist.Options{}) // New ticks reuse the seqs of the lost ticks.
		for range 3 {
			w.Fill(2 + i)
			require.NoError(t, s.Commit())
		}
		storetest.CloseStore(t, s)
		require.NoError(t, simVerify(left, w))
	}
}

func TestCrash_BackgroundSnapshot(t *testing.T) {
	inMemory(t)
	mem := disktest.New()
	w := storetest.New(0)
	done := make(chan error, 1)
	s := memStore(t, mem, w, persist.Options{Sync: journal.SyncNever, SnapshotBytes: 1, SnapshotPace: -1, OnSnapshot: func(r persist.SnapshotResult) { done <- r.Err }})
	require.NoError(t, <-done) // The snapshot of the new store.
	before := storetest.Persistent(w.World)
	everyCrash(mem, func() {
		w.Fill(1)
		require.NoError(t, s.Commit())
		require.NoError(t, <-done)
	}, func(left *disktest.Mem) {
		got := storetest.New(0)
		s := memStore(t, left, got, persist.Options{})
		require.Contains(t, []ecs.Digest{before, storetest.Persistent(w.World)}, storetest.Persistent(got.World))
		require.Equal(t, left.Bytes(catalog.SnapshotName(2)) != nil, s.Report().Snapshot == catalog.SnapshotName(2))
		storetest.CloseStore(t, s)
	})
	storetest.CloseStore(t, s)
}

func TestSnapshot_FailureKeepsStore(t *testing.T) {
	inMemory(t)
	for n := 1; ; n++ {
		mem := disktest.New()
		w := storetest.New(0)
		s := memStore(t, mem, w, persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1})
		w.Fill(4)
		require.NoError(t, s.Commit())
		failing, seen := "", 0
		mem.OnCall(func(at int, call string) {
			if strings.Contains(call, catalog.SnapshotDir) {
				if seen++; seen == n {
					failing = call
					mem.Fail(at, syscall.ENOSPC)
				}
			}
		})
		_, failure := s.Snapshot(storetest.Background)
		mem.OnCall(nil)
		require.NoError(t, s.Err())
		w.Fill(1)
		require.NoError(t, s.Commit(), failing)
		_, err := s.Snapshot(storetest.Background)
		require.NoError(t, err, failing)
		storetest.CloseStore(t, s)
		require.NoError(t, simVerify(mem.Crash(), w), failing)
		if failing == "" {
			require.NoError(t, failure)
			return
		}
	}
}

// bushy returns a store that was rewound, and its world. It has snapshots on the path to the head
// and on abandoned branches, some of which share pages.
func bushy(t *testing.T) (*disktest.Mem, *storetest.World) {
	mem := disktest.New()
	w := storetest.New(10)
	s := memStore(t, mem, w, persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1})
	tick := func(n int) {
		w.Rules.Set(storetest.Rules{Name: "tick", Limit: uint16(n)})
		w.Clock.Set(storetest.Clock(n))
		require.NoError(t, s.Commit())
	}
	snapshot := func() {
		_, err := s.Snapshot(storetest.Background)
		require.NoError(t, err)
	}
	w.Fill(40)
	tick(1)
	snapshot() // Snapshot 2: an ancestor of all others.
	tick(2)
	tick(3)
	snapshot() // Snapshot 3: will be abandoned by a rewind.
	require.NoError(t, w.History().Rewind(2))
	tick(4)
	snapshot() // Snapshot 4: an ancestor of the head.
	tick(5)
	snapshot() // Snapshot 5: will be abandoned by a rewind.
	require.NoError(t, w.History().Rewind(1))
	tick(6)
	storetest.CloseStore(t, s)
	return mem, w
}

// flipped returns a copy of mem with one bit changed.
func flipped(mem *disktest.Mem, name string, bit int) *disktest.Mem {
	damaged := mem.Clone()
	data := damaged.Bytes(name)
	data[bit/8] ^= 1 << (bit % 8)
	damaged.Put(name, data)
	return damaged
}

func TestRecovery_DamagedBasesAfterRewinds(t *testing.T) {
	mem, w := bushy(t)
	require.NoError(t, simVerify(mem, w))
	for _, hidden := range [][]uint32{{}, {4}, {5}, {4, 5}, {3, 4, 5}, {2, 3}, {2, 3, 4}} {
		damaged := mem.Clone()
		for _, number := range hidden {
			damaged = flipped(damaged, catalog.SnapshotName(number), 8*5000)
		}
		got := storetest.New(0)
		s, err := persist.OpenFiles(storetest.Background, damaged, got.World, persist.Options{SnapshotBytes: -1})
		require.NoError(t, err, "without %v", hidden)
		require.Equal(t, storetest.Persistent(w.World), storetest.Persistent(got.World), "without %v", hidden)
		require.Equal(t, storetest.Rules{Name: "tick", Limit: 6}, got.Rules.Get())
		storetest.CloseStore(t, s)
	}
}

func TestPageSharing_DamagedPage(t *testing.T) {
	mem, _ := bushy(t)
	base := catalog.SnapshotName(2)
	for number := uint32(3); number <= 5; number++ {
		v, err := inspect.OpenFS(storetest.Background, mem, ".")
		require.NoError(t, err)
		require.NotEmpty(t, v.Snapshots()[number-1].Files, "snapshot %d refers to no other file", number)
	}
	for at := range len(mem.Bytes(base)) / 4096 {
		damaged := flipped(mem, base, 8*(4096*at+100)+3)
		v, err := inspect.OpenFS(storetest.Background, damaged, ".")
		require.NoError(t, err)
		report, err := v.Verify(storetest.Background)
		require.NoError(t, err)
		named := false
		for _, p := range report.Problems {
			var damage *persist.DamageError
			require.ErrorAs(t, p, &damage)
			require.ErrorIs(t, p, persist.ErrCorrupt)
			named = named || damage.File == base && damage.Offset <= int64(4096*at+100) && int64(4096*at+100) < damage.Offset+damage.Length
		}
		require.True(t, named, "page %d: %v", at, report.Problems)

		w := storetest.New(0)
		s, err := persist.OpenFiles(storetest.Background, damaged, w.World, persist.Options{SnapshotBytes: -1})
		// Open either recovers the newest state or names the damaged file.
		if err != nil {
			require.ErrorIs(t, err, persist.ErrCorrupt)
			require.ErrorContains(t, err, base)
			continue
		}
		require.Equal(t, storetest.Rules{Name: "tick", Limit: 6}, w.Rules.Get())
		storetest.CloseStore(t, s)
	}
}

// A newer program registers a component in an older store and gives it to entities. These changes
// are as durable as other ticks.
func TestCrash_DuringUpgrade(t *testing.T) {
	inMemory(t)
	mem := disktest.New()
	w := storetest.New(0)
	s := memStore(t, mem, w, persist.Options{})
	w.Fill(3)
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)
	old := storetest.Persistent(w.World)
	var next *upgraded
	everyCrash(mem, func() {
		next = newUpgraded()
		s := memStore(t, mem, next.World, persist.Options{Sync: journal.SyncAlways})
		next.added.Set(next.Entities()[1], addedComponent{7})
		require.NoError(t, s.Commit())
		storetest.CloseStore(t, s)
	}, func(left *disktest.Mem) {
		w := newUpgraded()
		s := memStore(t, left, w.World, persist.Options{})
		switch w.added.Len() {
		case 0:
			plain := storetest.New(0)
			storetest.CloseStore(t, s)
			s = memStore(t, left, plain, persist.Options{})
			require.Equal(t, old, storetest.Persistent(plain.World))
		case 1:
			require.Equal(t, storetest.Persistent(next.World.World), storetest.Persistent(w.World.World))
		default:
			require.Fail(t, fmt.Sprint(w.added.Len()))
		}
		storetest.CloseStore(t, s)
	})
}

// A file is removed before the files that it refers to. Each removal is durable before the next
// one.
func TestCrash_DuringPrune(t *testing.T) {
	mem := disktest.New()
	w := storetest.New(0)
	s := memStore(t, mem, w, persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1})
	for i := range 3 {
		w.Fill(2)
		require.NoError(t, s.Commit())
		if i == 2 {
			// The last snapshot is full. The other two share pages with the first snapshot of the
			// store.
			s.ForgetPages()
		}
		storetest.SnapshotOf(t, s)
	}
	storetest.CloseStore(t, s)
	w = storetest.New(0)
	s = memStore(t, mem, w, persist.Options{SnapshotBytes: -1, Retain: persist.Retention{Last: 1}})
	w.Fill(2)
	require.NoError(t, s.Commit())
	s.ForgetPages()
	want := storetest.Persistent(w.World)
	everyCrash(mem, func() {
		require.NoError(t, s.Sync(storetest.Background))
		require.Equal(t, []string{catalog.SnapshotName(3), catalog.SnapshotName(2), catalog.SnapshotName(1)}, storetest.SnapshotOf(t, s).Removed[:3])
	}, func(left *disktest.Mem) {
		got := storetest.New(0)
		s := memStore(t, left, got, persist.Options{SnapshotBytes: -1})
		require.Empty(t, s.Report().Skipped, "%v", left)
		require.Contains(t, []uint64{3, 4}, got.Tick())
		require.True(t, got.Tick() == 3 || storetest.Persistent(got.World) == want)
		storetest.CloseStore(t, s)
		require.NoError(t, simVerify(left, got), "%v", left)
	})
	storetest.CloseStore(t, s)
}

// A crash during a backup leaves either no store or a complete one. A crash after Backup has
// returned leaves a complete one.
func TestCrash_DuringBackup(t *testing.T) {
	from, _ := bushy(t)
	w := storetest.New(0)
	// Another opening begins a second segment.
	s := memStore(t, from, w, persist.Options{SnapshotBytes: -1})
	w.Fill(1)
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)
	to := disktest.New()
	var err error
	whole, refused := 0, 0
	check := func(left *disktest.Mem) {
		if len(left.Files()) == 0 {
			refused++
			return
		}
		if _, err := inspect.OpenFS(storetest.Background, left, "."); err != nil && strings.Contains(err.Error(), "unfinished backup") {
			refused++
			return
		}
		got := storetest.New(0)
		s, err := persist.OpenFiles(storetest.Background, left, got.World, persist.Options{})
		if err != nil {
			if journal := slices.ContainsFunc(left.Files(), func(name string) bool { return strings.HasPrefix(name, "journal") }); journal || !errors.Is(err, persist.ErrForeign) {
				require.ErrorIs(t, err, persist.ErrCorrupt, "%v", left)
			} // Without a journal, the only file is an incomplete snapshot.
			refused++
			return
		}
		storetest.CloseStore(t, s)
		require.Equal(t, storetest.Persistent(w.World), storetest.Persistent(got.World), "%v", left)
		require.NoError(t, simVerify(left, got))
		whole++
	}
	everyCrash(to, func() {
		err = catalog.CopyStore(storetest.Background, from, to, func() uint64 { return math.MaxUint64 })
	}, check)
	require.NoError(t, err)
	require.Greater(t, refused, 20)
	for _, left := range []*disktest.Mem{to.Crash(), to.CrashSeed(1), to.CrashSeed(2)} {
		whole = 0
		check(left)
		require.Equal(t, 1, whole, "%v", left)
	}
}

// upgraded is the world of a later program with one more component.
type upgraded struct {
	*storetest.World
	added *ecs.Storage[addedComponent]
}

type addedComponent struct{ N int32 }

func newUpgraded() *upgraded {
	w := storetest.New(0)
	return &upgraded{w, ecs.MustRegister[addedComponent](w.World)}
}
