package replica_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/replica"
	"github.com/stet-ecs/stet/persist/replica/replicatest"
)

var background = context.Background()

type score int64

// A game is a world with one number.
type game struct {
	*ecs.World
	score *ecs.Resource[score]
}

func newGame() *game {
	w := ecs.NewWorld(ecs.Options{History: 10})
	return &game{w, ecs.Must(ecs.RegisterResource(w, score(0), ecs.Component[score]{Name: "score"}))}
}

// play commits a tick.
func (g *game) play(t testing.TB, s *persist.Store) {
	t.Helper()
	g.score.Set(g.score.Get() + 1)
	require.NoError(t, s.Commit())
}

func follow(t testing.TB, log replica.Log, files disk.FS, o replica.Options) *replica.Follower {
	t.Helper()
	f, err := replica.Follow(background, log, files, o.Patient(50*time.Millisecond))
	require.NoError(t, err)
	return f
}

// own claims the log, and opens the owner's store with a new game.
func own(t testing.TB, f *replica.Follower) (*game, *replica.Owner, *persist.Store) {
	t.Helper()
	o, err := f.Claim(background)
	require.NoError(t, err)
	g := newGame()
	s, err := o.Open(background, g.World, persist.Options{Sync: journal.SyncAlways})
	require.NoError(t, err)
	return g, o, s
}

func TestMemory_KeepsLogPromises(t *testing.T) {
	replicatest.Run(t, func(*testing.T) replica.Log { return &replica.Memory{} })
}

func TestOwner_SuccessorHasConfirmedTicks(t *testing.T) {
	log := &replica.Memory{}
	a, b := follow(t, log, disktest.New(), replica.Options{Name: "a"}), follow(t, log, disk.Memory(), replica.Options{Name: "b"})
	g, first, store := own(t, a)
	for range 5 {
		g.play(t, store)
	}
	require.NoError(t, store.Sync(background))

	// Machine b assumes that the first owner is dead.
	require.NoError(t, b.Wait(background, first.Position()))
	h, second, next := own(t, b)
	assert.EqualValues(t, 5, h.Tick())
	assert.EqualValues(t, 5, h.score.Get())
	assert.Greater(t, second.Term(), first.Term())
	assert.GreaterOrEqual(t, second.Epoch(), uint64(1<<16))
	h.play(t, next)
	require.NoError(t, next.Sync(background))

	// The first owner is alive and continues. Its sync fails, and its unconfirmed ticks are
	// quarantined.
	_ = store.Commit()
	assert.ErrorIs(t, store.Sync(background), persist.ErrLost)
	assert.ErrorIs(t, first.Err(), persist.ErrLost)
	assert.ErrorIs(t, store.Close(background), persist.ErrLost)
	require.NoError(t, first.Close())
	assert.ErrorIs(t, first.Close(), persist.ErrClosed)
	require.NoError(t, next.Close(background))
	require.NoError(t, second.Close())
}

func TestQuarantine_UnconfirmedTicks(t *testing.T) {
	log := &replicatest.Log{}
	link, mem := log.Link(1), disktest.New()
	g, o, store := own(t, follow(t, link, mem, replica.Options{}))
	g.play(t, store)
	require.NoError(t, store.Sync(background))
	link.Cut(true)
	g.play(t, store)
	ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, store.Sync(ctx), context.DeadlineExceeded, "it waits for the log")
	ended := make(chan error, 1)
	go func() { ended <- store.Sync(background) }()
	require.NoError(t, o.Close(), "Close ends the waiting Sync")
	require.ErrorIs(t, <-ended, persist.ErrClosed)
	require.Error(t, store.Close(background))

	written := mem.Bytes("store/journal/00000001.seg")
	link.Cut(false)
	f := follow(t, link, mem, replica.Options{})
	defer f.Close()
	dir, bytes := f.Aside()
	assert.Equal(t, "aside/1", dir)
	assert.EqualValues(t, len(written)-len(mem.Bytes("store/journal/00000001.seg")), bytes)
	assert.Positive(t, bytes)
	kept := mem.Bytes("store/journal/00000001.seg")
	assert.Equal(t, written, append(kept, mem.Bytes(fmt.Sprintf("aside/1/journal/00000001.seg.from-%d", len(kept)))...))
	shown := newGame()
	p, err := persist.Follow(background, ".", shown.World, persist.FileOptions{Files: f.Files()})
	require.NoError(t, err)
	defer p.Close()
	assert.EqualValues(t, 1, shown.Tick())
}

// OnLocal reports ticks on the owner's machine, and OnDurable reports confirmed ticks.
func TestOwner_OnLocalAndOnDurable(t *testing.T) {
	log := &replicatest.Log{}
	link := log.Link(1)
	o, err := follow(t, link, disktest.New(), replica.Options{}).Claim(background)
	require.NoError(t, err)
	here, confirmed := make(chan uint64, 10), make(chan uint64, 10)
	options := persist.Options{Sync: journal.SyncAlways, OnLocal: func(tick uint64) { here <- tick }, OnDurable: func(tick uint64) { confirmed <- tick }}
	g := newGame()
	store, err := o.Open(background, g.World, options)
	require.NoError(t, err)
	g.play(t, store)
	require.NoError(t, store.Sync(background))
	require.EqualValues(t, 1, <-here)
	require.EqualValues(t, 1, <-confirmed)
	link.Cut(true)
	g.play(t, store)
	require.EqualValues(t, 2, <-here)
	m := store.Metrics()
	assert.EqualValues(t, 2, m.LocalTick)
	assert.EqualValues(t, 1, m.DurableTick)
	assert.EqualValues(t, 1, m.LagTicks)
	assert.Empty(t, confirmed)
	short, cancel := context.WithTimeout(background, 10*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, o.Offer(short, "b"), context.DeadlineExceeded, "the log does not answer")
	assert.ErrorIs(t, o.Rebase(short), context.DeadlineExceeded)
	link.Cut(false)
	require.NoError(t, store.Sync(background))
	require.EqualValues(t, 2, <-confirmed)
	assert.EqualValues(t, 2, store.Metrics().DurableTick)
	assert.Empty(t, here)
	require.NoError(t, store.Close(background))
	require.NoError(t, o.Close())
}

func TestStandby_OpensAfterClaim(t *testing.T) {
	log := &replica.Memory{}
	b := follow(t, log, disk.Memory(), replica.Options{Name: "b"})
	g, o, store := own(t, follow(t, log, disk.Memory(), replica.Options{Name: "a"}))
	g.play(t, store)
	require.NoError(t, store.Sync(background))
	require.NoError(t, b.Wait(background, o.Position()))
	h := newGame()
	standby, err := persist.Follow(background, ".", h.World, persist.FileOptions{Files: b.Files()})
	require.NoError(t, err)
	assert.EqualValues(t, 1, h.score.Get())
	_, err = standby.Open(background, persist.Options{})
	require.Error(t, err, "only the owner may write")

	g.play(t, store)
	require.NoError(t, store.Close(background))
	require.NoError(t, o.Offer(background, "b"))
	require.NoError(t, o.Close())
	<-b.Offered()
	taken, err := b.Claim(background)
	require.NoError(t, err)
	next, err := standby.Open(background, persist.Options{Epoch: taken.Epoch()})
	require.NoError(t, err)
	assert.EqualValues(t, 2, h.score.Get())
	assert.EqualValues(t, 2, h.World.History().Oldest()+1, "the history must be complete, oldest tick %d", h.World.History().Oldest())
	h.play(t, next)
	require.NoError(t, next.Sync(background))
	require.NoError(t, next.Close(background))
	require.NoError(t, taken.Close())
}

func TestClaim_SendsExistingStore(t *testing.T) {
	mem := disktest.New()
	require.NoError(t, mem.Mkdir("store"))
	g := newGame()
	var epoch uint64
	for range 3 { // Each opening starts an epoch.
		s, err := persist.Open(background, "store", g.World, persist.Options{Files: mem})
		require.NoError(t, err)
		g.play(t, s)
		require.NoError(t, s.Close(background))
		g = newGame()
		epoch++
	}
	log := &replica.Memory{}
	h, o, s := own(t, follow(t, log, mem, replica.Options{}))
	assert.EqualValues(t, 3, h.score.Get())
	assert.Greater(t, o.Epoch(), epoch)
	h.play(t, s)
	require.NoError(t, s.Close(background))

	other := disk.Memory()
	f := follow(t, log, other, replica.Options{})
	v, err := inspect.OpenFS(background, f.Files(), ".")
	require.NoError(t, err)
	assert.Len(t, v.Log().Entries, 4)
	require.NoError(t, v.Close())
	require.NoError(t, f.Close())
	require.NoError(t, o.Close())

	// Follow refuses a store that is not from the log, and keeps it.
	strange := disk.Memory()
	require.NoError(t, strange.Mkdir("store"))
	k := newGame()
	s, err = persist.Open(background, "store", k.World, persist.Options{Files: strange})
	require.NoError(t, err)
	require.NoError(t, s.Close(background))
	_, err = replica.Follow(background, log, strange, replica.Options{}.Patient(50*time.Millisecond))
	assert.ErrorIs(t, err, persist.ErrForeign)
}

func TestFollow_LogHasLostEntries(t *testing.T) {
	log, mem := &replica.Memory{}, disktest.New()
	var reports []*replica.ShorterError
	g, o, store := own(t, follow(t, log, mem, replica.Options{OnShorter: func(e *replica.ShorterError) { reports = append(reports, e) }}))
	other := disktest.New()
	f := follow(t, log, other, replica.Options{})
	g.play(t, store)
	require.NoError(t, store.Sync(background))
	known := o.Position()
	require.NoError(t, f.Wait(background, known))
	require.NoError(t, f.Close())

	// The first owner appends the lost entries again.
	log.Forget(2)
	g.play(t, store)
	require.NoError(t, store.Sync(background))
	require.Len(t, reports, 1)
	assert.Equal(t, replica.ShorterError{Known: known, Last: known - 2}, *reports[0])
	assert.ErrorContains(t, reports[0], "lost entries that it had acknowledged")
	f = follow(t, log, other, replica.Options{})
	require.NoError(t, f.Close())

	// Without an owner, a machine with lost entries can neither follow nor claim.
	require.NoError(t, store.Close(background))
	require.NoError(t, o.Close())
	f = follow(t, log, other, replica.Options{})
	known = f.Position()
	log.Forget(1)
	_, err := f.Claim(background)
	assert.ErrorIs(t, err, replica.ErrLogShorter)
	require.NoError(t, f.Close())
	_, err = replica.Follow(background, log, other, replica.Options{}.Patient(50*time.Millisecond))
	var short *replica.ShorterError
	require.ErrorAs(t, err, &short)
	assert.Equal(t, replica.ShorterError{Known: known, Last: known - 1}, *short)

	// Another machine appends to the shorter log. Followers notice the loss, however long the log
	// becomes.
	late := follow(t, log, disktest.New(), replica.Options{})
	h, p, next := own(t, late)
	h.play(t, next)
	require.NoError(t, next.Close(background))
	require.NoError(t, p.Close())
	_, err = replica.Follow(background, log, other, replica.Options{}.Patient(50*time.Millisecond))
	require.ErrorIs(t, err, replica.ErrLogShorter)
	f = follow(t, log, other, replica.Options{Forget: true})
	defer f.Close()
	assert.NoError(t, f.Wait(background, known))
	dir, _ := f.Aside()
	assert.NotEmpty(t, dir, "bytes that the log lost must be quarantined")
}

func TestFollow_TrimmedLog(t *testing.T) {
	log := &replica.Memory{}
	behind, mem := disktest.New(), disktest.New()
	require.NoError(t, follow(t, log, behind, replica.Options{}).Close())
	g, o, store := own(t, follow(t, log, mem, replica.Options{}))
	live := disktest.New()
	f := follow(t, log, live, replica.Options{})
	for range 30 {
		g.play(t, store)
		require.NoError(t, store.Sync(background))
	}
	require.NoError(t, f.Wait(background, o.Position()))
	require.NoError(t, o.Rebase(background))
	first, _, err := log.Bounds(background)
	require.NoError(t, err)
	assert.Greater(t, first, replica.Position(20))
	g.play(t, store)
	require.NoError(t, store.Close(background))
	for _, files := range []*disktest.Mem{behind, disktest.New(), live} {
		g := f
		if files != live {
			g = follow(t, log, files, replica.Options{})
		}
		require.NoError(t, g.Wait(background, o.Position()))
		assert.NoError(t, same(mem, files))
		require.NoError(t, g.Close())
	}
	require.NoError(t, o.Close())
}

// Ticks write to a file while Rebase sends it. No write may be sent between the last part of the
// file and its name, because a new follower would miss such a write.
func TestRebase_DuringTicks(t *testing.T) {
	log := &replica.Memory{}
	g, o, store := own(t, follow(t, log, disktest.New(), replica.Options{}))
	var ended atomic.Bool
	played := make(chan struct{})
	go func() {
		defer close(played)
		for !ended.Load() {
			g.score.Set(g.score.Get() + 1)
			if !assert.NoError(t, store.Commit()) || !assert.NoError(t, store.Sync(background)) {
				return
			}
		}
	}()
	for range 50 {
		require.NoError(t, o.Rebase(background))
		f := follow(t, log, disktest.New(), replica.Options{})
		require.NoError(t, f.Wait(background, o.Position()))
		require.NoError(t, f.Close())
	}
	ended.Store(true)
	<-played
	require.NoError(t, store.Close(background))
	require.NoError(t, o.Close())
}

// A trimming is a log that is trimmed right after the first call of Bounds.
type trimming struct {
	replica.Log
	once sync.Once
	trim func()
}

func (l *trimming) Bounds(ctx context.Context) (first, last replica.Position, err error) {
	first, last, err = l.Log.Bounds(ctx)
	l.once.Do(l.trim)
	return first, last, err
}

func TestFollow_LogTrimmedDuringFollow(t *testing.T) {
	log := &replica.Memory{}
	behind, mem := disktest.New(), disktest.New()
	g, o, store := own(t, follow(t, log, mem, replica.Options{}))
	g.play(t, store)
	require.NoError(t, store.Sync(background))
	require.NoError(t, follow(t, log, behind, replica.Options{}).Close())
	for _, rebase := range []func(){
		func() { require.NoError(t, o.Rebase(background)) },
		// The log still has the entry after the follower's last entry.
		func() { require.NoError(t, log.Trim(background, o.Position())) },
	} {
		g.play(t, store)
		require.NoError(t, store.Sync(background))
		f := follow(t, &trimming{Log: log, trim: rebase}, behind, replica.Options{})
		require.NoError(t, f.Wait(background, o.Position()))
		require.NoError(t, f.Close())
	}
	require.NoError(t, store.Close(background))
	f := follow(t, log, behind, replica.Options{})
	require.NoError(t, f.Wait(background, o.Position()))
	assert.NoError(t, same(mem, behind))
	require.NoError(t, f.Close())
	require.NoError(t, o.Close())
}

// While a machine sends its store, no other machine can claim.
func TestClaim_UnfinishedStore(t *testing.T) {
	log := &replicatest.Log{}
	mem := disktest.New()
	require.NoError(t, mem.Mkdir("store"))
	g := newGame()
	s, err := persist.Open(background, "store", g.World, persist.Options{Files: mem})
	require.NoError(t, err)
	g.play(t, s)
	require.NoError(t, s.Close(background))

	link := log.Link(3)
	f := follow(t, link, mem, replica.Options{})
	ctx, cancel := context.WithTimeout(background, 30*time.Millisecond)
	defer cancel()
	link.CutAfter(3)
	_, err = f.Claim(ctx)
	require.Error(t, err)
	require.NoError(t, f.Close())
	other := follow(t, log, disk.Memory(), replica.Options{})
	assert.False(t, other.Ready())
	_, err = other.Claim(background)
	require.ErrorIs(t, err, replica.ErrUnfinished)

	link.Cut(false)
	h, o, s := own(t, follow(t, link, mem, replica.Options{}))
	assert.EqualValues(t, 1, h.score.Get())
	require.NoError(t, s.Close(background))
	require.NoError(t, o.Close())
	require.NoError(t, other.Wait(background, o.Position()))
	assert.True(t, other.Ready())
	require.NoError(t, other.Close())
}

func TestFollow_DirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	files, err := disk.Open(dir)
	require.NoError(t, err)
	defer files.Close()
	log := &replica.Memory{}
	f := follow(t, log, files, replica.Options{})
	_, err = replica.Follow(background, log, files, replica.Options{}.Patient(50*time.Millisecond))
	require.ErrorIs(t, err, persist.ErrLocked)
	g, o, s := own(t, f)
	g.play(t, s)
	require.NoError(t, s.Close(background))
	assert.Error(t, o.Offer(background, " "))
	assert.Error(t, o.Offer(background, strings.Repeat("x", 256)))
	require.NoError(t, o.Close())
	v, err := inspect.OpenReadOnly(background, filepath.Join(dir, "store"))
	require.NoError(t, err)
	assert.Len(t, v.Log().Entries, 1)
	require.NoError(t, v.Close())
}

func TestFollow_InvalidEntry(t *testing.T) {
	log := &replica.Memory{}
	_, err := log.Append(background, 0, []byte("hello"))
	require.NoError(t, err)
	_, err = replica.Follow(background, log, disk.Memory(), replica.Options{}.Patient(time.Millisecond))
	assert.ErrorContains(t, err, "an entry of the log is damaged, or was written by another program: at 1")
	assert.Equal(t, replica.Operator, replica.ClassOf(err))
	_, err = log.Append(background, 1, make([]byte, replica.MaxEntry+1))
	assert.ErrorContains(t, err, "more than 524288")
	_, err = log.Append(background, math.MaxUint64, nil)
	assert.True(t, errors.Is(err, replica.ErrTaken))
}

// The terms of a new log are above all epochs in the journal of an existing store. So the epochs of
// new ticks differ from the epochs of all earlier owners.
func TestClaim_FirstTermAboveEpochs(t *testing.T) {
	mem := disktest.New()
	require.NoError(t, mem.Mkdir("store"))
	g := newGame()
	s, err := persist.Open(background, "store", g.World, persist.Options{Files: mem, Epoch: 7<<16 + 3})
	require.NoError(t, err)
	g.play(t, s)
	require.NoError(t, s.Close(background))
	o, err := follow(t, &replica.Memory{}, mem, replica.Options{}).Claim(background)
	require.NoError(t, err)
	require.EqualValues(t, 8, o.Term())
	require.Greater(t, o.Epoch(), uint64(7<<16+3))
	require.NoError(t, o.Close())
}

// A follower does not wait for entries of an empty log. A machine that has all entries can claim
// the log, and then sends its store to the other machines.
func TestFollow_EmptiedLog(t *testing.T) {
	// Whether one of the machines has all entries.
	for _, everybody := range []bool{true, false} {
		log := &replica.Memory{}
		behind, upToDate := disktest.New(), disktest.New()
		g, o, store := own(t, follow(t, log, disktest.New(), replica.Options{}))
		for _, files := range []*disktest.Mem{behind, upToDate} {
			g.play(t, store)
			require.NoError(t, store.Sync(background))
			require.NoError(t, follow(t, log, files, replica.Options{}).Close())
		}
		_, last, err := log.Bounds(background)
		require.NoError(t, err)
		require.NoError(t, log.Trim(background, last+1))
		ctx, cancel := context.WithTimeout(background, time.Minute)
		defer cancel()
		for _, files := range []*disktest.Mem{behind, disktest.New()} {
			_, err := replica.Follow(ctx, log, files, replica.Options{}.Patient(50*time.Millisecond))
			require.ErrorIs(t, err, replica.ErrLogShorter)
			require.ErrorContains(t, err, "does not have all of its entries")
		}
		from, ticks, options := upToDate, 2, replica.Options{}
		if !everybody {
			from, ticks, options = behind, 1, replica.Options{Forget: true}
		}
		f, err := replica.Follow(ctx, log, from, options)
		require.NoError(t, err)
		h, next, kept := own(t, f)
		assert.EqualValues(t, ticks, h.score.Get())
		h.play(t, kept)
		require.NoError(t, next.Rebase(ctx))
		require.NoError(t, kept.Close(ctx))
		for _, files := range []*disktest.Mem{behind, disktest.New()} {
			if files == from {
				continue
			}
			f, err := replica.Follow(ctx, log, files, replica.Options{}.Patient(50*time.Millisecond))
			require.NoError(t, err)
			require.NoError(t, f.Wait(ctx, next.Position()))
			require.NoError(t, same(from, files))
			require.NoError(t, f.Close())
		}
		require.NoError(t, next.Close())

		// The previous owner notices that it lost the log, even if the claim is trimmed.
		_, last, err = log.Bounds(background)
		require.NoError(t, err)
		require.NoError(t, log.Trim(background, last+1))
		_ = store.Commit() // Commit may already return the error.
		require.ErrorIs(t, store.Sync(ctx), persist.ErrLost)
		require.Error(t, store.Close(ctx))
		require.NoError(t, o.Close())
	}
}

// A follower with a full disk reports the error, and continues when there is space.
func TestFollower_FullDisk(t *testing.T) {
	log := &replica.Memory{}
	g, o, store := own(t, follow(t, log, disktest.New(), replica.Options{}))
	g.play(t, store)
	require.NoError(t, store.Sync(background))
	mem := disktest.New()
	f := follow(t, log, mem, replica.Options{})
	require.NoError(t, f.Wait(background, o.Position()))
	require.NoError(t, f.Err())
	full := errors.New("no space left on device")
	mem.FailFrom(1, full)
	g.play(t, store)
	require.NoError(t, store.Sync(background))
	require.Eventually(t, func() bool { return errors.Is(f.Err(), full) }, time.Minute, time.Millisecond)
	ctx, cancel := context.WithTimeout(background, 50*time.Millisecond)
	defer cancel()
	err := f.Wait(ctx, o.Position())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, full)
	mem.FailFrom(0, nil)
	require.NoError(t, f.Wait(background, o.Position()))
	require.NoError(t, f.Err())
	require.NoError(t, f.Close())
	require.NoError(t, store.Close(background))
	require.NoError(t, o.Close())
}
