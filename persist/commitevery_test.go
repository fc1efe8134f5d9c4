package persist_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
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

// A sparseRun is a random program on a store that journals every n-th tick. It stores the digest of
// the world for each record.
type sparseRun struct {
	t     *testing.T
	rng   *rand.Rand
	mem   *disktest.Mem
	every int
	w     *storetest.World
	s     *persist.Store
	known map[uint64]ecs.Digest // By record.
	marks map[string]ecs.Digest // By the name of a mark.
	// The last state that had no record yet. A later Seek or Close may journal it.
	late ecs.Digest
}

func (r *sparseRun) open() {
	r.w = storetest.New([]int{0, 1, 4, 30}[r.rng.IntN(4)])
	s, err := persist.Open(storetest.Background, ".", r.w.World, persist.Options{
		Files: r.mem, CommitEvery: r.every, SnapshotBytes: 4096, SnapshotPace: 1024, History: r.rng.IntN(5), Retain: persist.Retention{KeepAll: true},
	})
	require.NoError(r.t, err)
	if r.s = s; len(r.known) > 0 {
		want, ok := r.known[r.w.Raw().Seq()]
		if !ok {
			want = r.late
		}
		require.Equal(r.t, want, storetest.Persistent(r.w.World), "record %d", r.w.Raw().Seq())
	}
	r.note()
}

// note stores the digest of the present state in r.known, if the state has a record.
func (r *sparseRun) note() {
	if !r.w.Raw().Deferred() {
		r.known[r.w.Raw().Seq()] = storetest.Persistent(r.w.World)
	}
}

// unnoted stores the present state in the field late if the state has no record yet. A later Seek
// or Close may journal it.
func (r *sparseRun) unnoted() {
	if r.w.Raw().Deferred() {
		r.late = storetest.Persistent(r.w.World)
	}
}

func (r *sparseRun) commit() {
	waiting := r.w.Raw().Deferred()
	seq := r.w.Raw().Seq()
	must := false
	switch r.rng.IntN(12) {
	case 0:
		must = true
		require.NoError(r.t, r.s.Mark(fmt.Sprint("mark ", r.w.Tick()+1)))
	case 1:
		must = true
		require.NoError(r.t, r.s.Input("key", []byte{1}))
	case 2:
		must = true
		require.NoError(r.t, r.s.BeginSlot("slot", ""))
	}
	r.change()
	require.NoError(r.t, r.s.Commit())
	if must || r.every < 2 {
		require.False(r.t, r.w.Raw().Deferred())
	}
	if !r.w.Raw().Deferred() {
		require.Greater(r.t, r.w.Raw().Seq(), seq)
	} else if waiting {
		require.Equal(r.t, seq, r.w.Raw().Seq())
	}
	r.note()
}

// change writes, adds and removes rows of all kinds.
func (r *sparseRun) change() {
	r.w.Fill(r.rng.IntN(6))
	for range r.rng.IntN(8) {
		if alive := r.w.Entities(); len(alive) > 0 {
			switch e := alive[r.rng.IntN(len(alive))]; r.rng.IntN(4) {
			case 0:
				r.w.Destroy(e)
			case 1:
				r.w.Position.Set(e, storetest.Position{X: r.rng.Float32()})
			case 2:
				r.w.Bag.Set(e, storetest.Bag{Name: fmt.Sprint(r.rng.Uint32())})
			default:
				r.w.Scroll.Set(e, storetest.Scroll{})
			}
		}
	}
}

func (r *sparseRun) step() {
	h := r.w.History()
	switch r.rng.IntN(17) {
	case 16:
		name, seq := fmt.Sprint("made ", len(r.marks)), r.w.Raw().Seq()
		require.NoError(r.t, r.s.MarkLast(name))
		require.Greater(r.t, r.w.Raw().Seq(), seq)
		require.False(r.t, r.w.Raw().Deferred())
		r.note()
		r.marks[name] = storetest.Persistent(r.w.World)
	case 0, 1:
		ticks := slices.Collect(h.Ticks())
		if len(ticks) > 0 {
			r.unnoted()
			require.NoError(r.t, h.Seek(ticks[r.rng.IntN(len(ticks))]))
		}
	case 2:
		require.NoError(r.t, r.s.Sync(storetest.Background))
		require.True(r.t, !r.w.Raw().Deferred() || h.Newest() > r.w.Tick())
		r.note()
	case 3:
		r.w.Fill(1)
		if waiting := r.w.Raw().Deferred() && r.w.Raw().Dirty(); waiting {
			require.ErrorIs(r.t, r.s.Sync(storetest.Background), persist.ErrUncommitted)
			require.ErrorIs(r.t, r.s.Goto(storetest.Background, "@latest"), persist.ErrUncommitted)
			require.True(r.t, r.w.Raw().Deferred())
		}
		r.commit()
	case 4:
		_, err := r.s.SaveSlot(storetest.Background, "quick", "")
		require.NoError(r.t, err)
		r.note()
	case 5:
		r.late = storetest.Persistent(r.w.World) // Close may record NoRewind values.
		require.NoError(r.t, storetest.Closed(r.s.Close(storetest.Background)))
		r.open()
	case 6:
		require.NoError(r.t, r.s.Sync(storetest.Background))
		r.note()
		r.mem = r.mem.Crash()
		r.open()
	case 7:
		require.NoError(r.t, r.s.Sync(storetest.Background))
		r.note()
		for seq, want := range r.known {
			require.NoError(r.t, r.s.Goto(storetest.Background, fmt.Sprint("record:", seq)))
			require.Equal(r.t, want, storetest.Persistent(r.w.World), "record %d", seq)
			break
		}
	default:
		r.commit()
	}
}

// A store that journals every n-th tick can restore each recorded state, whatever the program does
// between the records.
func TestCommitEvery_RandomPrograms(t *testing.T) {
	t.Parallel()
	for seed := range uint64(deep.Or(16, 400)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0xce))
			r := &sparseRun{t: t, rng: rng, mem: disktest.New(), every: []int{0, 2, 3, 8}[seed%4], known: map[uint64]ecs.Digest{}, marks: map[string]ecs.Digest{}}
			r.open()
			for range 150 {
				r.step()
			}
			r.late = storetest.Persistent(r.w.World)
			require.NoError(t, storetest.Closed(r.s.Close(storetest.Background)))
			r.open()
			for seq, want := range r.known {
				require.NoError(t, r.s.Goto(storetest.Background, fmt.Sprint("record:", seq)))
				require.Equal(t, want, storetest.Persistent(r.w.World), "record %d", seq)
			}
			for name, want := range r.marks {
				require.NoError(t, r.s.Goto(storetest.Background, "mark:"+name))
				require.Equal(t, want, storetest.Persistent(r.w.World), name)
			}
			require.NoError(t, storetest.Closed(r.s.Close(storetest.Background)))
		})
	}
}

// OnDurable reports each tick once, in order, when the record that contains it is durable. An
// undone tick is not reported.
func TestCommitEvery_OnDurable(t *testing.T) {
	w := storetest.New(8)
	var mu sync.Mutex
	var ends []uint64
	reported := func() []uint64 {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(ends)
	}
	s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{
		Files: disktest.New(), CommitEvery: 4, Sync: journal.SyncAlways, SnapshotBytes: -1,
		OnDurable: func(tick uint64) { mu.Lock(); ends = append(ends, tick); mu.Unlock() },
	})
	require.NoError(t, err)
	step := func(n int) {
		for range n {
			w.Fill(3)
			require.NoError(t, s.Commit())
		}
	}
	step(3)
	require.True(t, w.Raw().Deferred())
	require.Zero(t, w.Raw().Seq())
	require.Empty(t, reported())
	require.NoError(t, w.History().Rewind(1)) // Rewind first journals the waiting ticks.
	require.NoError(t, s.Sync(storetest.Background))
	require.Equal(t, []uint64{1, 2, 3}, reported())
	require.Zero(t, w.Raw().Seq(), "Sync makes no record for a tick that record 1 has")
	require.NoError(t, w.History().Seek(3))
	require.EqualValues(t, 1, w.Raw().Seq())
	step(3)
	require.True(t, w.Raw().Deferred())
	step(1)
	require.False(t, w.Raw().Deferred())
	require.NoError(t, s.Sync(storetest.Background))
	require.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 7}, reported())
	require.EqualValues(t, 2, w.Raw().Seq())
	step(1)
	w.Fill(1)
	err = s.Close(storetest.Background)
	require.ErrorIs(t, err, persist.ErrUncommitted)
	require.ErrorContains(t, err, "Options.CommitEvery")
	require.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 7}, reported())
}

// A record has several ticks, and a player runs each of them again. If one gives another result,
// the player reports the last tick of the record.
func TestCommitEvery_PlayerRunsEachTick(t *testing.T) {
	newCounter := func() (*ecs.World, *ecs.Resource[uint64]) {
		w := ecs.NewWorld(ecs.Options{})
		return w, ecs.Must(ecs.RegisterResource(w, uint64(1), ecs.Component[uint64]{Name: "sum"}))
	}
	step := func(sum *ecs.Resource[uint64], tick uint64, inputs int) { sum.Set(sum.Get()*3 + tick + uint64(inputs)) }
	dir := filepath.Join(t.TempDir(), "store")
	w, sum := newCounter()
	s, err := persist.Open(storetest.Background, dir, w, persist.Options{CommitEvery: 4})
	require.NoError(t, err)
	for tick := uint64(1); tick <= 22; tick++ {
		if tick%7 == 0 {
			require.NoError(t, s.Input("key", nil))
			step(sum, tick, 1)
		} else {
			step(sum, tick, 0)
		}
		require.NoError(t, s.Commit())
	}
	require.NoError(t, s.Close(storetest.Background))
	for _, wrong := range []uint64{0, 13} { // Ticks 8 to 14 are in two records, of ticks 11 and 14.
		w, sum := newCounter()
		runs := uint64(0)
		p, err := inspect.OpenPlayer(storetest.Background, dir, w, inspect.PlayerOptions{
			Step: func(_ *ecs.World, tick uint64, inputs []inspect.Input) error {
				runs++
				step(sum, tick, len(inputs))
				if tick == wrong {
					sum.Set(0)
				}
				return nil
			},
		})
		require.NoError(t, err)
		require.Zero(t, p.First())
		require.Zero(t, p.Tick())
		for err == nil {
			err = p.Step(storetest.Background)
		}
		require.ErrorIs(t, err, io.EOF)
		require.EqualValues(t, 22, runs)
		tick, _, differs := p.Diverged()
		require.Equal(t, wrong != 0, differs)
		if differs {
			require.EqualValues(t, 14, tick)
		}
		require.NoError(t, p.Close())
	}
}

// A Sync after each tick gives each tick its own record, although CommitEvery allows 50 ticks in a
// record. Snapshots begin when they are due.
func TestCommitEvery_SnapshotsBegin(t *testing.T) {
	w := storetest.New(0)
	s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: disktest.New(), CommitEvery: 50, SnapshotBytes: 4096, SnapshotPace: -1})
	require.NoError(t, err)
	for range 60 {
		w.Fill(20)
		require.NoError(t, s.Commit())
		require.NoError(t, s.Sync(storetest.Background))
		s.Settle() // The next snapshot begins only after this one is written.
	}
	require.Greater(t, s.Metrics().Snapshots, 3)
	require.NoError(t, s.Close(storetest.Background))
}

// CommitEvery does not shorten the history of the world. The history has at most one tick more than
// without it.
func TestCommitEvery_KeepsHistory(t *testing.T) {
	for _, history := range []int{1, 3, 8} {
		w := storetest.New(history)
		s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: disktest.New(), CommitEvery: 10})
		require.NoError(t, err)
		for tick := 1; tick <= 37; tick++ {
			w.Fill(3)
			require.NoError(t, s.Commit())
			ticks := slices.Collect(w.History().Ticks())
			for back := range min(history, tick) + 1 {
				require.Contains(t, ticks, w.Tick()-uint64(back), "history %d, tick %d", history, tick)
			}
			require.LessOrEqual(t, len(ticks), history+2)
		}
		require.NoError(t, s.Close(storetest.Background))
	}
}

// Two stores record one world. A mark of the first store stays in the first store.
func TestCommitEvery_TwoStoresOnOneWorld(t *testing.T) {
	w, mem := storetest.New(4), disktest.New()
	s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem, CommitEvery: 4})
	require.NoError(t, err)
	w.Fill(3)
	require.NoError(t, s.Commit())
	require.NoError(t, s.Mark("second tick"))
	other, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: disktest.New()})
	require.NoError(t, err)
	w.Fill(3)
	require.NoError(t, s.Commit())
	require.False(t, w.Raw().Deferred(), "two recorders receive each tick")
	require.NoError(t, other.Close(storetest.Background))
	require.NoError(t, s.Goto(storetest.Background, "mark:second tick"))
	require.EqualValues(t, 2, w.Tick())
	require.NoError(t, s.Close(storetest.Background))
}

// NoRewind values of deferred ticks are journaled, even if Close follows a rewind.
func TestCommitEvery_NoRewindValues(t *testing.T) {
	w, mem := storetest.New(4), disktest.New()
	s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem, CommitEvery: 4})
	require.NoError(t, err)
	w.Clock.Set(7)
	require.NoError(t, s.Commit())
	require.NoError(t, w.History().Rewind(1))
	require.NoError(t, s.Close(storetest.Background))

	w = storetest.New(4)
	s, err = persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem, CommitEvery: 4})
	require.NoError(t, err)
	require.EqualValues(t, 7, w.Clock.Get())
	e := w.Create()
	require.NoError(t, s.Commit())
	w.Heat.Set(e, storetest.Heat{Degrees: 3})
	require.NoError(t, s.Sync(storetest.Background))
	require.NoError(t, s.Commit())
	require.NoError(t, s.Close(storetest.Background))
	w = storetest.New(4)
	s, err = persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem})
	require.NoError(t, err)
	got, _ := w.Heat.Get(e)
	require.Equal(t, storetest.Heat{Degrees: 3}, got)
	require.NoError(t, s.Close(storetest.Background))
}

// A rewind goes back over a tick that has no record yet, so the tick is journaled first. The record
// must not have NoRewind values of an entity that was created after that tick.
func TestCommitEvery_RewindDiscardsNewEntity(t *testing.T) {
	w, mem := storetest.New(4), disktest.New()
	s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem, CommitEvery: 4})
	require.NoError(t, err)
	kept := w.Create()
	w.Heat.Set(kept, storetest.Heat{Degrees: 1})
	require.NoError(t, s.Commit())
	w.Fill(1)
	require.NoError(t, s.Commit())
	require.True(t, w.Raw().Deferred())
	w.Heat.Set(w.Create(), storetest.Heat{Degrees: 2})
	require.NoError(t, w.History().Rewind(1))
	require.NoError(t, s.Sync(storetest.Background))
	crashed := mem.Crash()
	require.NoError(t, s.Close(storetest.Background))

	w = storetest.New(4)
	s, err = persist.Open(storetest.Background, ".", w.World, persist.Options{Files: crashed})
	require.NoError(t, err)
	require.Equal(t, []ecs.Entity{kept}, w.Heat.Entities())
	require.NoError(t, s.Close(storetest.Background))
}

// After a follower takes over the store, CommitEvery defers its ticks, with and without a history.
func TestCommitEvery_AfterTakeover(t *testing.T) {
	for _, history := range []int{0, 6} {
		mem := disktest.New()
		owner := storetest.New(0)
		s, err := persist.Open(storetest.Background, ".", owner.World, persist.Options{Files: mem})
		require.NoError(t, err)
		w := storetest.New(history)
		f, err := persist.Follow(storetest.Background, ".", w.World, persist.FileOptions{Files: mem})
		require.NoError(t, err)
		for range 5 {
			owner.Fill(2)
			require.NoError(t, s.Commit())
			require.NoError(t, s.Sync(storetest.Background))
			_, err = f.Advance(storetest.Background)
			require.NoError(t, err)
		}
		storetest.CloseStore(t, s)
		s, err = f.Open(storetest.Background, persist.Options{Files: mem, CommitEvery: 4})
		require.NoError(t, err)
		for range 6 {
			w.Fill(2)
			w.Destroy(w.Entities()[0])
			require.NoError(t, s.Commit())
		}
		require.True(t, w.Raw().Deferred())
		if history > 0 {
			require.NoError(t, w.History().Rewind(1))
		}
		want := storetest.Persistent(w.World)
		storetest.CloseStore(t, s)
		again := storetest.New(0)
		s, err = persist.Open(storetest.Background, ".", again.World, persist.Options{Files: mem})
		require.NoError(t, err)
		require.Equal(t, w.Tick(), again.Tick())
		require.Equal(t, want, storetest.Persistent(again.World))
		storetest.CloseStore(t, s)
	}
}
