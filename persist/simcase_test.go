package persist

import (
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/disk/disktest"
	"github.com/stet-ecs/stet/journal"
)

// memStore opens a store on mem for w.
func memStore(t testing.TB, mem *disktest.Mem, w *testWorld, options Options) *Store {
	t.Helper()
	s, err := OpenFiles(background, mem, w.World, options)
	require.NoError(t, err)
	return s
}

// inMemory lets the temporary files that package pagefile needs for a file system
// in memory lie in memory too, where the system has a place for that: a sync of
// them costs nothing there.
func inMemory(t *testing.T) {
	const place = "/dev/shm"
	if info, err := os.Stat(place); err == nil && info.IsDir() {
		t.Setenv("TMPDIR", place)
	}
}

// everyCrash runs scenario on mem and calls check with what a crash leaves before
// each call that can make a difference: synced bytes only, and twice some more.
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

func TestACreationThatFailedAtAnyCallCanBeTriedAgain(t *testing.T) {
	inMemory(t)
	base := newTestWorld(0)
	base.fill(5)
	digest := persistent(base.World)
	for n, failed := 1, true; failed; n++ {
		mem := disktest.New()
		for range 3 { // More than once.
			mem.Fail(mem.Calls()+n, syscall.EIO)
			s, err := OpenFiles(background, mem, base.World, Options{})
			if failed = err != nil; !failed {
				closeStore(t, s)
				break
			}
			require.ErrorIs(t, err, syscall.EIO)
			require.Equal(t, digest, persistent(base.World))
		}
		for _, left := range []*disktest.Mem{mem.Crash(), mem.CrashSeed(uint64(n)), mem.Clone()} {
			w := newTestWorld(0)
			w.seed.Set(1)
			s := memStore(t, left, w, Options{})
			require.True(t, s.Report().Fresh || persistent(w.World) == digest, "call %d: %v", n, left)
			closeStore(t, s)
		}
	}
}

func TestASnapshotWhoseTicksCannotBeMadeDurableNeverGetsItsName(t *testing.T) {
	mem := disktest.New()
	w := newTestWorld(0)
	s := memStore(t, mem, w, Options{Sync: journal.SyncNever(), SnapshotBytes: -1})
	mem.OnCall(func(n int, call string) {
		if strings.HasPrefix(call, "sync journal/") {
			mem.Fail(n, syscall.EIO)
		}
	})
	w.fill(4)
	require.NoError(t, s.Commit())
	_, err := s.Snapshot(background)
	require.ErrorIs(t, err, syscall.EIO)
	for range 3 {
		w.fill(1)
		require.ErrorIs(t, s.Commit(), syscall.EIO)
	}
	require.Error(t, s.Close(background))

	for i, left := range []*disktest.Mem{mem.Crash(), mem.CrashSeed(1), mem.CrashSeed(2)} {
		require.Empty(t, left.Bytes(snapshotName(2)))
		w := newTestWorld(0)
		s := memStore(t, left, w, Options{}) // The seq is given out again, for other ticks.
		for range 3 {
			w.fill(2 + i)
			require.NoError(t, s.Commit())
		}
		closeStore(t, s)
		require.NoError(t, simVerify(left, w))
	}
}

func TestASnapshotInTheBackgroundDoesNotOutliveItsTicks(t *testing.T) {
	inMemory(t)
	mem := disktest.New()
	w := newTestWorld(0)
	done := make(chan error, 1)
	s := memStore(t, mem, w, Options{Sync: journal.SyncNever(), SnapshotBytes: 1, SnapshotPace: -1, OnSnapshot: func(r SnapshotResult) { done <- r.Err }})
	require.NoError(t, <-done) // The base.
	before := persistent(w.World)
	everyCrash(mem, func() {
		w.fill(1)
		require.NoError(t, s.Commit())
		require.NoError(t, <-done)
	}, func(left *disktest.Mem) {
		got := newTestWorld(0)
		s := memStore(t, left, got, Options{})
		require.Contains(t, []ecs.Digest{before, persistent(w.World)}, persistent(got.World))
		require.Equal(t, left.Bytes(snapshotName(2)) != nil, s.Report().Snapshot == snapshotName(2))
		closeStore(t, s)
	})
	closeStore(t, s)
}

func TestASnapshotThatFailsDoesNotFailTheStore(t *testing.T) {
	inMemory(t)
	for n := 1; ; n++ {
		mem := disktest.New()
		w := newTestWorld(0)
		s := memStore(t, mem, w, Options{Sync: journal.SyncNever(), SnapshotBytes: -1})
		w.fill(4)
		require.NoError(t, s.Commit())
		failing, seen := "", 0
		mem.OnCall(func(at int, call string) {
			if strings.Contains(call, snapshotDir) {
				if seen++; seen == n {
					failing = call
					mem.Fail(at, syscall.ENOSPC)
				}
			}
		})
		_, failure := s.Snapshot(background)
		mem.OnCall(nil)
		require.NoError(t, s.Err())
		w.fill(1)
		require.NoError(t, s.Commit(), failing)
		_, err := s.Snapshot(background)
		require.NoError(t, err, failing)
		closeStore(t, s)
		require.NoError(t, simVerify(mem.Crash(), w), failing)
		if failing == "" {
			require.NoError(t, failure)
			return
		}
	}
}

// bushy is a store that was rewound: on its way to the head and beside it lie
// snapshots, some of which share pages. It returns what is at the head.
func bushy(t *testing.T) (*disktest.Mem, *testWorld) {
	mem := disktest.New()
	w := newTestWorld(10)
	s := memStore(t, mem, w, Options{Sync: journal.SyncNever(), SnapshotBytes: -1})
	tick := func(n int) {
		w.rules.Set(rules{"tick", uint16(n)})
		w.clock.Set(clock(n))
		require.NoError(t, s.Commit())
	}
	snapshot := func() {
		_, err := s.Snapshot(background)
		require.NoError(t, err)
	}
	w.fill(40)
	tick(1)
	snapshot() // 2: on the way to all.
	tick(2)
	tick(3)
	snapshot() // 3: will be rewound.
	require.NoError(t, w.History().Rewind(2))
	tick(4)
	snapshot() // 4: on the way to the head.
	tick(5)
	snapshot() // 5: will be rewound.
	require.NoError(t, w.History().Rewind(1))
	tick(6)
	closeStore(t, s)
	return mem, w
}

// flipped returns what mem holds, with one bit changed.
func flipped(mem *disktest.Mem, name string, bit int) *disktest.Mem {
	damaged := mem.Clone()
	data := damaged.Bytes(name)
	data[bit/8] ^= 1 << (bit % 8)
	damaged.Put(name, data)
	return damaged
}

func TestAfterRewindsEveryGoodBaseLeadsToTheHead(t *testing.T) {
	mem, w := bushy(t)
	require.NoError(t, simVerify(mem, w))
	for _, hidden := range [][]uint32{{}, {4}, {5}, {4, 5}, {3, 4, 5}, {2, 3}, {2, 3, 4}} {
		damaged := mem.Clone()
		for _, number := range hidden {
			damaged = flipped(damaged, snapshotName(number), 8*5000)
		}
		got := newTestWorld(0)
		s, err := OpenFiles(background, damaged, got.World, Options{SnapshotBytes: -1})
		require.NoError(t, err, "without %v", hidden)
		require.Equal(t, persistent(w.World), persistent(got.World), "without %v", hidden)
		require.Equal(t, rules{"tick", 6}, got.rules.Get())
		closeStore(t, s)
	}
}

func TestADamagedPageThatSnapshotsShareIsNamedForEachOfThem(t *testing.T) {
	mem, _ := bushy(t)
	base := snapshotName(2)
	for number := uint32(3); number <= 5; number++ {
		v, err := OpenFS(background, mem)
		require.NoError(t, err)
		require.Positive(t, v.Snapshots()[number-1].Files, "snapshot %d refers to no other file", number)
	}
	for at := range len(mem.Bytes(base)) / 4096 {
		damaged := flipped(mem, base, 8*(4096*at+100)+3)
		v, err := OpenFS(background, damaged)
		require.NoError(t, err)
		report, err := v.Verify(background)
		require.NoError(t, err)
		named := false
		for _, p := range report.Problems {
			var damage *DamageError
			require.ErrorAs(t, p, &damage)
			require.ErrorIs(t, p, ErrCorrupt)
			named = named || damage.File == base && damage.Offset <= int64(4096*at+100) && int64(4096*at+100) < damage.Offset+damage.Length
		}
		require.True(t, named, "page %d: %v", at, report.Problems)

		w := newTestWorld(0)
		s, err := OpenFiles(background, damaged, w.World, Options{SnapshotBytes: -1})
		if err != nil { // The first base does not share pages with it, but no longer leads to the rest.
			require.ErrorIs(t, err, ErrCorrupt)
			require.ErrorContains(t, err, base)
			continue
		}
		require.Equal(t, rules{"tick", 6}, w.rules.Get())
		closeStore(t, s)
	}
}

// What a newer program makes of an older one's store is as durable as the rest:
// a component is registered, given to entities, and must come back.
func TestAnUpgradeSurvivesEveryCrash(t *testing.T) {
	inMemory(t)
	mem := disktest.New()
	w := newTestWorld(0)
	s := memStore(t, mem, w, Options{})
	w.fill(3)
	require.NoError(t, s.Commit())
	closeStore(t, s)
	old := persistent(w.World)
	var next *upgraded
	everyCrash(mem, func() {
		next = newUpgraded()
		s := memStore(t, mem, next.testWorld, Options{Sync: journal.SyncAlways()})
		next.added.Set(next.Entities()[1], addedComponent{7})
		require.NoError(t, s.Commit())
		closeStore(t, s)
	}, func(left *disktest.Mem) {
		w := newUpgraded()
		s := memStore(t, left, w.testWorld, Options{})
		switch w.added.Len() {
		case 0:
			plain := newTestWorld(0)
			closeStore(t, s)
			s = memStore(t, left, plain, Options{})
			require.Equal(t, old, persistent(plain.World))
		case 1:
			require.Equal(t, persistent(next.World), persistent(w.World))
		default:
			require.Fail(t, fmt.Sprint(w.added.Len()))
		}
		closeStore(t, s)
	})
}

// A file goes before those that it refers to, and each removal is durable before
// the next.
func TestRemovingSnapshotsSurvivesEveryCrash(t *testing.T) {
	mem := disktest.New()
	w := newTestWorld(0)
	s := memStore(t, mem, w, Options{Sync: journal.SyncNever(), SnapshotBytes: -1})
	for i := range 3 {
		w.fill(2)
		require.NoError(t, s.Commit())
		if i == 2 {
			s.ForgetPages() // In full; the other two share pages with the base.
		}
		snapshotOf(t, s)
	}
	closeStore(t, s)
	w = newTestWorld(0)
	s = memStore(t, mem, w, Options{SnapshotBytes: -1, Retain: Retention{Last: 1}})
	w.fill(2)
	require.NoError(t, s.Commit())
	s.ForgetPages()
	want := persistent(w.World)
	everyCrash(mem, func() {
		require.NoError(t, s.Sync(background))
		require.Equal(t, []string{snapshotName(3), snapshotName(2), snapshotName(1)}, snapshotOf(t, s).Removed[:3])
	}, func(left *disktest.Mem) {
		got := newTestWorld(0)
		s := memStore(t, left, got, Options{SnapshotBytes: -1})
		require.Empty(t, s.Report().Skipped, "%v", left)
		require.Contains(t, []uint64{3, 4}, got.Tick())
		require.True(t, got.Tick() == 3 || persistent(got.World) == want)
		closeStore(t, s)
		require.NoError(t, simVerify(left, got), "%v", left)
	})
	closeStore(t, s)
}

// A crash while a backup is made leaves nothing that is taken for a store, or all of
// it; once Backup has returned, all.
func TestABackupSurvivesEveryCrashOrIsNotTakenForAStore(t *testing.T) {
	from, _ := bushy(t)
	w := newTestWorld(0)
	s := memStore(t, from, w, Options{SnapshotBytes: -1}) // A second segment.
	w.fill(1)
	require.NoError(t, s.Commit())
	closeStore(t, s)
	to := disktest.New()
	var err error
	whole, refused := 0, 0
	check := func(left *disktest.Mem) {
		if len(left.Files()) == 0 || half(left) != nil {
			refused++
			return
		}
		got := newTestWorld(0)
		s, err := OpenFiles(background, left, got.World, Options{})
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			refused++
			return
		}
		closeStore(t, s)
		require.Equal(t, persistent(w.World), persistent(got.World), "%v", left)
		require.NoError(t, simVerify(left, got))
		whole++
	}
	everyCrash(to, func() {
		err = copyStore(background, from, to, func() uint64 { return math.MaxUint64 })
	}, check)
	require.NoError(t, err)
	require.Greater(t, refused, 20)
	for _, left := range []*disktest.Mem{to.Crash(), to.CrashSeed(1), to.CrashSeed(2)} {
		whole = 0
		check(left)
		require.Equal(t, 1, whole, "%v", left)
	}
}

// upgraded is the world of a later program, with a component more.
type upgraded struct {
	*testWorld
	added *ecs.Storage[addedComponent]
}

type addedComponent struct{ N int32 }

func newUpgraded() *upgraded {
	w := newTestWorld(0)
	return &upgraded{w, ecs.MustRegister[addedComponent](w.World)}
}
