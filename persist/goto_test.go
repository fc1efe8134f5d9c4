package persist_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/deep"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// A traveller moves between the states of a store, and records the expected state of each record.
type traveller struct {
	t     require.TestingT
	rng   *rand.Rand
	mem   *disktest.Mem
	w     *storetest.World
	s     *persist.Store
	at    uint64 // The record that the world is at.
	last  uint64 // The record that Open recovers if all ticks are durable.
	saves []save
	known map[uint64]ecs.Digest
	ticks map[uint64]uint64

	back   int // Number of ticks that the history held after an opening.
	closed int // Number of records that closings made.
}

// A save is a world as bytes.
type save struct {
	bytes  []byte
	digest ecs.Digest
	tick   uint64
}

func (r *traveller) open(at string) {
	plain := storetest.New(0)
	p, err := persist.Open(storetest.Background, ".", plain.World, persist.Options{Files: r.mem.Clone(), At: at})
	require.NoError(r.t, err)
	defer p.Close(storetest.Background)

	r.w = storetest.New(r.rng.IntN(3) * 4)
	options := persist.Options{Sync: journal.SyncNever, SnapshotBytes: []int64{-1, 3000}[r.rng.IntN(2)], SnapshotPace: 500, At: at, History: r.rng.IntN(8),
		Retain: persist.Retention{KeepAll: true}}
	s, err := persist.Open(storetest.Background, ".", r.w.World, storetest.In(r.mem, options))
	require.NoError(r.t, err)
	require.Empty(r.t, s.Report().Skipped)
	r.s, r.at = s, r.w.Raw().Seq()
	r.last = r.at
	require.Equal(r.t, plain.Digest(), r.w.Digest())
	require.Equal(r.t, exempt(plain), exempt(r.w))
	require.Equal(r.t, plain.Tick(), r.w.Tick())
	h := r.w.History()
	if ticks := slices.Collect(h.Ticks()); len(r.known) > 0 && len(ticks) > 1 && r.rng.IntN(2) == 0 {
		tick := r.w.Tick()
		for _, back := range ticks {
			require.NoError(r.t, h.Seek(back))
			r.at = r.w.Raw().Seq()
			r.check("reached back")
			r.back++
		}
		require.NoError(r.t, h.Seek(tick))
		r.at = r.last
		r.check("and forth")
	}
}

// note stores the world's present state as the state of a new record.
func (r *traveller) note() {
	r.at = r.w.Raw().Seq()
	r.last = r.at
	require.NotContains(r.t, r.known, r.at)
	r.known[r.at], r.ticks[r.at] = storetest.Persistent(r.w.World), r.w.Tick()
}

// check compares the world with the state of its record.
func (r *traveller) check(what string) {
	require.Equal(r.t, r.at, r.w.Raw().Seq(), what)
	require.Equal(r.t, r.known[r.at], storetest.Persistent(r.w.World), "%s record %d", what, r.at)
	require.Equal(r.t, r.ticks[r.at], r.w.Tick(), what)
}

// valuesOf returns the rows of s by entity.
func valuesOf[T any](s *ecs.Storage[T]) map[ecs.Entity]T {
	values := map[ecs.Entity]T{}
	for i, e := range s.Entities() {
		if e != ecs.Vacant {
			values[e] = s.Values()[i]
		}
	}
	return values
}

// exempt returns the NoRewind values of living entities as text.
func exempt(w *storetest.World) string {
	return fmt.Sprint(w.Heat.Entities(), w.Heat.Values(), w.Mood.Entities(), w.Mood.Values(), w.Clock.Get())
}

// step does one random action of a program.
func (r *traveller) step() {
	switch k := r.rng.IntN(17); {
	case k == 16:
		name := fmt.Sprint("mark ", r.w.Raw().Seq())
		require.NoError(r.t, r.s.MarkLast(name))
		r.note()
	case k < 6:
		change(r.w, r.rng)
		require.NoError(r.t, r.s.Commit())
		r.note()
	case k < 9:
		seqs := make([]uint64, 0, len(r.known))
		for seq := range uint64(len(r.known)) { // All records from 0 on.
			seqs = append(seqs, seq)
		}
		r.at = seqs[r.rng.IntN(len(seqs))]
		clock := r.w.Clock.Get()
		require.NoError(r.t, r.s.Goto(storetest.Background, fmt.Sprint("record:", r.at)))
		r.check("goto")
		require.Equal(r.t, clock, r.w.Clock.Get())
		for _, e := range r.w.Heat.Entities() {
			require.True(r.t, r.w.Alive(e))
		}
	case k < 10:
		var b bytes.Buffer
		require.NoError(r.t, persist.SaveTo(storetest.Background, &b, r.w.World))
		r.saves = append(r.saves, save{b.Bytes(), storetest.Persistent(r.w.World), r.w.Tick()})
	case k < 12:
		if len(r.saves) == 0 {
			return
		}
		s := r.saves[r.rng.IntN(len(r.saves))]
		clock, heat, mood := r.w.Clock.Get(), valuesOf(r.w.Heat), valuesOf(r.w.Mood)
		require.NoError(r.t, r.s.LoadFrom(storetest.Background, bytes.NewReader(s.bytes)))
		require.Equal(r.t, s.digest, storetest.Persistent(r.w.World))
		require.Equal(r.t, clock, r.w.Clock.Get())
		dead := func(e ecs.Entity) bool { return !r.w.Alive(e) }
		maps.DeleteFunc(heat, func(e ecs.Entity, _ storetest.Heat) bool { return dead(e) })
		maps.DeleteFunc(mood, func(e ecs.Entity, _ storetest.Mood) bool { return dead(e) })
		require.Equal(r.t, heat, valuesOf(r.w.Heat))
		require.Equal(r.t, mood, valuesOf(r.w.Mood))
		require.Equal(r.t, s.tick, r.w.Tick())
		r.note()
	case k < 13:
		if r.w.History().Rewind(1+r.rng.IntN(3)) == nil {
			r.at = r.w.Raw().Seq()
			r.check("rewind")
		}
	case k < 14:
		_, err := r.s.Snapshot(storetest.Background)
		require.NoError(r.t, err)
	case k < 15:
		r.close()
		r.open("")
		require.Equal(r.t, r.last, r.at)
		r.check("close")
	default: // After a crash, Open recovers the newest durable state.
		require.NoError(r.t, r.s.Sync(storetest.Background))
		r.s.Settle()
		last := r.last
		r.mem = r.mem.Crash()
		storetest.CloseStore(r.t, r.s)
		r.open("")
		require.Equal(r.t, last, r.at)
		r.check("crash")
	}
}

// A program goes to any state of its store, loads saves, continues from there, rewinds, closes and
// crashes. Each state is the one that was committed.
func TestGoto_AnyState(t *testing.T) {
	t.Parallel()
	back, closed := 0, 0
	for seed := range uint64(deep.Or(8, 40)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := &traveller{t: t, rng: rand.New(rand.NewPCG(seed, 0x60)), mem: disktest.New(), known: map[uint64]ecs.Digest{}, ticks: map[uint64]uint64{}}
			r.open("")
			r.note()
			for range deep.Or(100, 250) {
				r.step()
			}
			r.finish()
			back, closed = back+r.back, closed+r.closed
		})
	}
	require.NotZero(t, back)
	require.NotZero(t, closed)
}

// close closes the store. Close may append a record for NoRewind values that changed since the last
// record. Such a record changes only these values, and the next opening starts at that record.
func (r *traveller) close() {
	state, tick, values := storetest.Persistent(r.w.World), r.w.Tick(), exempt(r.w)
	storetest.CloseStore(r.t, r.s)
	w := storetest.New(0)
	s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: r.mem.Clone()})
	require.NoError(r.t, err)
	require.Equal(r.t, values, exempt(w))
	r.last = w.Raw().Seq()
	if next := uint64(len(r.known)); r.last == next {
		r.known[next], r.ticks[next] = state, tick
		r.closed++
	} else {
		require.Equal(r.t, r.at, r.last)
	}
	storetest.CloseStore(r.t, s)
}

// finish closes the store and visits all records once more.
func (r *traveller) finish() {
	r.close()
	require.NoError(r.t, simVerify(r.mem, r.w))
	r.open("")
	for seq := range r.known {
		r.at = seq
		require.NoError(r.t, r.s.Goto(storetest.Background, fmt.Sprint("record:", seq)))
		r.check("in the end")
	}
	require.NoError(r.t, storetest.Closed(r.s.Close(storetest.Background)))
}

// The program's entities, hooks, indexes, groups and queries stay valid after Goto.
func TestGoto_HandlesStayValid(t *testing.T) {
	type hp int
	type armor int
	w := ecs.NewWorld(ecs.Options{History: 4})
	hps, armors := ecs.MustRegister[hp](w), ecs.MustRegister[armor](w)
	heat := ecs.MustRegister(w, ecs.Component[storetest.Heat]{NoRewind: true})
	packed, err := w.NewGroup(hps, armors)
	require.NoError(t, err)
	byHP := ecs.NewIndex(hps, func(v hp) hp { return v })
	armed := ecs.NewQuery2(ecs.Read(hps), ecs.Read(armors))
	restored, destroyed := 0, 0
	w.OnRestore(func() { restored++ })
	w.OnDestroy(func(ecs.Entity) { destroyed++ })
	mem := disktest.New()
	s, err := persist.Open(storetest.Background, ".", w, persist.Options{Files: mem})
	require.NoError(t, err)
	a, b := w.Create(), w.Create()
	hps.Set(a, 1)
	hps.Set(b, 2)
	armors.Set(b, 20)
	heat.Set(a, storetest.Heat{Degrees: 5})
	require.NoError(t, s.Commit()) // Tick 1.
	var saved bytes.Buffer
	require.NoError(t, persist.SaveTo(storetest.Background, &saved, w))
	hps.Set(a, 3)
	armors.Set(a, 30)
	w.Destroy(b)
	c := w.Create()
	heat.Set(a, storetest.Heat{Degrees: 6})
	heat.Set(c, storetest.Heat{Degrees: 7})
	require.NoError(t, s.Commit()) // Tick 2.
	destroyed = 0

	check := func(heats ...storetest.Heat) {
		t.Helper()
		require.EqualValues(t, 1, w.Tick())
		require.True(t, w.Alive(a) && w.Alive(b))
		require.False(t, w.Alive(c))
		require.Equal(t, []ecs.Entity{b}, slices.Collect(byHP.Of(2)))
		require.Empty(t, slices.Collect(byHP.Of(3)))
		require.Equal(t, 1, packed.Len())
		n := 0
		for e := range armed.All() {
			require.Equal(t, b, e)
			n++
		}
		require.Equal(t, 1, n)
		require.Equal(t, heats, slices.Clone(heat.Values()))
		require.Zero(t, destroyed)
	}
	require.NoError(t, s.Goto(storetest.Background, "1"))
	require.Equal(t, 1, restored)
	check(storetest.Heat{Degrees: 6})
	require.NoError(t, s.Commit())
	require.NoError(t, s.Goto(storetest.Background, "tip:1"))
	require.True(t, w.Alive(c))
	require.Equal(t, []ecs.Entity{a}, slices.Collect(byHP.Of(3)))
	require.NoError(t, s.LoadFrom(storetest.Background, &saved))
	require.Equal(t, 3, restored)
	check(storetest.Heat{Degrees: 6})
	hps.Set(a, 9)
	require.NoError(t, s.Commit())
	require.NoError(t, w.History().Rewind(1))
	check(storetest.Heat{Degrees: 6})
	storetest.CloseStore(t, s)
}

// A refused call leaves world and store unchanged.
func TestGoto_RefusedCallChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, other, torn := filepath.Join(dir, "save"), filepath.Join(dir, "other"), filepath.Join(dir, "torn")
	w := storetest.New(4)
	s := storetest.Open(t, filepath.Join(dir, "store"), w, persist.Options{})
	w.Fill(20)
	require.NoError(t, s.Commit())
	require.NoError(t, persist.Save(storetest.Background, file, w.World))
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	b[len(b)/2] ^= 1
	require.NoError(t, os.WriteFile(torn, b, 0o600))
	stranger := ecs.NewWorld(ecs.Options{})
	ecs.MustRegister(stranger, ecs.Component[string]{Name: "position"})
	require.NoError(t, persist.Save(storetest.Background, other, stranger))

	refused := func(want error, f func(ctx context.Context) error) {
		t.Helper()
		before, seq := w.Digest(), w.Raw().Seq()
		require.ErrorIs(t, f(storetest.Background), want)
		require.Equal(t, before, w.Digest())
		require.Equal(t, seq, w.Raw().Seq())
		require.NoError(t, s.Err())
	}
	gone := func(point string) func(context.Context) error {
		return func(ctx context.Context) error { return s.Goto(ctx, point) }
	}
	load := func(file string) func(context.Context) error {
		return func(ctx context.Context) error { return s.Load(ctx, file) }
	}
	refused(persist.ErrPoint, gone("nowhere"))
	refused(persist.ErrNotFound, gone("7"))
	refused(persist.ErrNotFound, gone("mark:none"))
	refused(os.ErrNotExist, load(filepath.Join(dir, "none")))
	refused(persist.ErrCorrupt, load(torn))
	refused(persist.ErrSchema, load(other))
	ended, cancel := context.WithCancel(storetest.Background)
	cancel()
	refused(context.Canceled, func(context.Context) error { return s.Goto(ended, "0") })
	refused(context.Canceled, func(context.Context) error { return s.Load(ended, file) })
	c := w.Checkpoint()
	refused(raw.ErrCheckpointHeld, gone("0"))
	refused(raw.ErrCheckpointHeld, load(file))
	w.Release(c)
	w.Create()
	refused(persist.ErrUncommitted, gone("0"))
	refused(persist.ErrUncommitted, load(file))
	require.NoError(t, s.Commit())
	require.NoError(t, s.Goto(storetest.Background, "1"))
	require.NoError(t, s.Load(storetest.Background, file))
	s.Fail(syscall.EIO)
	require.ErrorIs(t, s.Goto(storetest.Background, "0"), syscall.EIO)
	require.ErrorIs(t, s.Load(storetest.Background, file), syscall.EIO)
	require.NoError(t, s.Resume(storetest.Background))
	storetest.CloseStore(t, s)
	require.ErrorIs(t, s.Goto(storetest.Background, "0"), persist.ErrClosed)
	require.ErrorIs(t, s.Load(storetest.Background, file), persist.ErrClosed)
	storetest.Verified(t, filepath.Join(dir, "store"))
}

// verifiedIn returns a view of the store in the file system files. The store must pass a
// verification.
func verifiedIn(t *testing.T, files disk.FS) *inspect.View {
	t.Helper()
	v, err := inspect.OpenFS(storetest.Background, files, ".")
	require.NoError(t, err)
	t.Cleanup(func() { v.Close() })
	report, err := v.Verify(storetest.Background)
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	return v
}

// An unregistered component is kept as stored, so it must be the same in the save and in the store.
func TestStoreLoad_UnregisteredComponentDiffers(t *testing.T) {
	type mine struct{ A int }
	type theirs struct{ B string }
	mem := disktest.New()
	with := func(register func(w *ecs.World)) *ecs.World {
		w := ecs.NewWorld(ecs.Options{})
		register(w)
		return w
	}
	w := with(func(w *ecs.World) { ecs.MustRegister(w, ecs.Component[mine]{Name: "extra"}).Set(w.Create(), mine{1}) })
	s, err := persist.Open(storetest.Background, ".", w, persist.Options{Files: mem})
	require.NoError(t, err)
	require.NoError(t, s.Commit())
	require.NoError(t, s.Close(storetest.Background))
	var same, another bytes.Buffer
	require.NoError(t, persist.SaveTo(storetest.Background, &same, w))
	require.NoError(t, persist.SaveTo(storetest.Background, &another, with(func(w *ecs.World) {
		ecs.MustRegister(w, ecs.Component[theirs]{Name: "extra", Clone: func(v theirs) theirs { return v }}).Set(w.Create(), theirs{"b"})
	})))

	plain := ecs.NewWorld(ecs.Options{})
	s, err = persist.Open(storetest.Background, ".", plain, persist.Options{Files: mem})
	require.NoError(t, err)
	require.Equal(t, []string{"extra"}, s.Report().Unknown)
	require.ErrorContains(t, s.LoadFrom(storetest.Background, &another), "extra is not registered")
	require.NoError(t, s.Commit())
	require.NoError(t, s.LoadFrom(storetest.Background, &same))
	require.NoError(t, s.Commit())
	require.NoError(t, s.Close(storetest.Background))
	verifiedIn(t, mem)
}

// A store can go to states of older types, which it converts, and back.
func TestGoto_AcrossConversion(t *testing.T) {
	t.Parallel()
	dir, eras, second, mark := twiceConverted(t)
	for _, point := range []uint64{mark, mark - 1} {
		t.Run(fmt.Sprint("record ", point-mark), func(t *testing.T) {
			dir := storetest.CopyDir(t, dir)
			w, s := openNewest(t, dir, persist.Options{})
			head := w.Raw().Seq()
			require.NoError(t, s.Goto(storetest.Background, fmt.Sprint("record:", point)))
			if point == mark {
				w.check(t, second)
			}
			there := w.Digest()
			require.NoError(t, s.Sync(storetest.Background))
			// No tick continues the older state yet. So a recovery after a crash returns the newest
			// state of the journal.
			crashed := storetest.CopyDir(t, dir)
			w.change(t, s)
			changed, at := w.Digest(), w.Raw().Seq()
			require.NoError(t, s.Goto(storetest.Background, fmt.Sprint("record:", head)))
			require.Equal(t, eras[2].digests[head], w.Digest())
			w.change(t, s)
			require.NoError(t, s.Goto(storetest.Background, fmt.Sprint("record:", at)))
			require.Equal(t, changed, w.Digest())
			w.change(t, s)
			require.NoError(t, w.History().Rewind(1))
			require.Equal(t, changed, w.Digest())
			w.change(t, s)
			require.NoError(t, s.Goto(storetest.Background, fmt.Sprint("record:", point)))
			require.Equal(t, there, w.Digest())
			require.NoError(t, s.Goto(storetest.Background, "@latest"))
			want := w.Digest()
			storetest.CloseStore(t, s)
			storetest.Verified(t, dir)
			w, s = openNewest(t, dir, persist.Options{})
			require.Empty(t, s.Report().Converted)
			require.Equal(t, want, w.Digest())
			storetest.CloseStore(t, s)

			require.NoError(t, os.Remove(filepath.Join(crashed, "LOCK")))
			w, s = openNewest(t, crashed, persist.Options{})
			require.Equal(t, eras[2].digests[head], w.Digest())
			storetest.CloseStore(t, s)
			storetest.Verified(t, crashed)
		})
	}
}

// On two branches, the same component number belongs to different components. Goto can go from each
// branch to the other branch.
func TestGoto_BranchWithOtherComponents(t *testing.T) {
	mem := disktest.New()
	w := ecs.NewWorld(ecs.Options{})
	p, _ := known(w)
	s, err := persist.Open(storetest.Background, ".", w, persist.Options{Files: mem})
	require.NoError(t, err)
	e := w.Create()
	p.Set(e, storetest.Position{X: 1, Y: 1})
	require.NoError(t, s.Commit()) // Record 1.
	late := ecs.MustRegister(w, ecs.Component[storetest.Bag]{Clone: storetest.CloneBag})
	late.Set(e, storetest.Bag{Name: "late"})
	require.NoError(t, s.Commit()) // Record 2.
	require.NoError(t, s.Close(storetest.Background))
	states := map[uint64]ecs.Digest{2: w.Digest()}

	w = ecs.NewWorld(ecs.Options{})
	known(w)
	rank := ecs.MustRegister[storetest.Rank](w)
	s, err = persist.Open(storetest.Background, ".", w, persist.Options{Files: mem, At: "record:1"})
	require.NoError(t, err)
	commit := func(place uint8) {
		rank.Set(e, storetest.Rank{Place: place})
		require.NoError(t, s.Commit())
		states[w.Raw().Seq()] = w.Digest()
	}
	commit(3) // Record 3 continues record 1.
	for i := range 3 {
		for _, seq := range slices.Sorted(maps.Keys(states)) {
			require.NoError(t, s.Goto(storetest.Background, fmt.Sprint("record:", seq)))
			require.Equal(t, states[seq], w.Digest(), "record %d", seq)
			if i == 1 && seq < 5 {
				commit(uint8(10 * seq))
			}
			if i == 2 {
				s.Fail(syscall.EIO)
				require.NoError(t, s.Resume(storetest.Background))
				states[w.Raw().Seq()] = w.Digest()
			}
		}
	}
	require.NoError(t, s.Close(storetest.Background))
	v := verifiedIn(t, mem)
	for seq, want := range states {
		im, err := v.At(storetest.Background, seq)
		require.NoError(t, err)
		require.Equal(t, want, im.Digest(), "record %d", seq)
	}
}

// A store goes to an older state. Until a tick continues that state, a recovery after a crash
// returns the newest state of the journal. This is also true if data was pruned in the meantime.
func TestGoto_RecoveryBeforeNextTick(t *testing.T) {
	for _, reopen := range []bool{false, true} {
		mem := disktest.New()
		w := storetest.New(0)
		options := persist.Options{SnapshotBytes: -1, Retain: persist.Retention{Last: 1}}
		segments := persist.Segmented(options, 1000)
		s, err := persist.Open(storetest.Background, ".", w.World, storetest.In(mem, segments))
		require.NoError(t, err)
		rng := rand.New(rand.NewPCG(1, 0x61))
		commit := func(n int) {
			for range n {
				change(w, rng)
				require.NoError(t, s.Commit())
			}
		}
		snapshot := func() {
			w.Fill(200) // Add entities, so that files share few pages.
			require.NoError(t, s.Commit())
			s.ForgetPages()
			_, err := s.Snapshot(storetest.Background)
			require.NoError(t, err)
		}
		commit(2)
		fork := w.Raw().Seq()
		commit(20)
		tip := w.Raw().Seq()
		require.NoError(t, s.Goto(storetest.Background, fmt.Sprint("record:", fork)))
		commit(20)
		newest, digest := w.Raw().Seq(), storetest.Persistent(w.World)
		require.NoError(t, s.Sync(storetest.Background))

		at := fmt.Sprint("record:", tip)
		if reopen {
			require.NoError(t, s.Close(storetest.Background))
			w = storetest.New(0)
			segments.At = at
			s, err = persist.Open(storetest.Background, ".", w.World, storetest.In(mem, segments))
			require.NoError(t, err)
		} else {
			require.NoError(t, s.Goto(storetest.Background, at))
		}
		for range 3 {
			s.ForgetPages()
			_, err := s.Snapshot(storetest.Background)
			require.NoError(t, err)
		}
		again := storetest.New(0)
		crashed, err := persist.Open(storetest.Background, ".", again.World, persist.Options{Files: mem.Crash()})
		require.NoError(t, err)
		require.Equal(t, newest, again.Raw().Seq())
		require.Equal(t, digest, storetest.Persistent(again.World))
		require.NoError(t, crashed.Close(storetest.Background))

		// Each call of snapshot commits a tick that continues the older state. So retention can
		// remove the old head.
		for range 3 {
			snapshot()
		}
		require.ErrorIs(t, s.Goto(storetest.Background, fmt.Sprint("record:", newest)), persist.ErrNotFound)
		require.NoError(t, s.Close(storetest.Background))
		require.NoError(t, simVerify(mem, w))
	}
}

// A store can go to a named snapshot when the ticks around it are pruned, and continues from there.
func TestGoto_NamedSnapshotAfterPruning(t *testing.T) {
	mem := disktest.New()
	w := storetest.New(0)
	options := persist.Segmented(persist.Options{SnapshotBytes: -1, Retain: persist.Retention{Last: 1}}, 1000)
	s, err := persist.Open(storetest.Background, ".", w.World, storetest.In(mem, options))
	require.NoError(t, err)
	w.Fill(50)
	require.NoError(t, s.Commit())
	named, seq := storetest.Persistent(w.World), w.Raw().Seq()
	_, err = s.SaveSlot(storetest.Background, "quick 1", "")
	require.NoError(t, err)
	play := func() {
		for range 4 {
			w.Fill(200)
			require.NoError(t, s.Commit())
			s.ForgetPages()
			_, err := s.Snapshot(storetest.Background)
			require.NoError(t, err)
		}
	}
	play()
	newest := storetest.Persistent(w.World)
	require.ErrorIs(t, s.Goto(storetest.Background, fmt.Sprint("record:", seq+1)), persist.ErrNotFound)
	require.NoError(t, s.Goto(storetest.Background, "snap:quick 1"))
	require.Equal(t, named, storetest.Persistent(w.World))
	crashed := storetest.New(0)
	again, err := persist.Open(storetest.Background, ".", crashed.World, persist.Options{Files: mem.Crash()})
	require.NoError(t, err)
	require.Equal(t, newest, storetest.Persistent(crashed.World))
	require.NoError(t, again.Close(storetest.Background))
	play()
	require.NoError(t, s.Goto(storetest.Background, "snap:quick 1"))
	require.Equal(t, named, storetest.Persistent(w.World))
	play()
	require.NoError(t, s.Close(storetest.Background))
	require.NoError(t, simVerify(mem, w))
}

// Open loads a history back to where the world cannot go further: a conversion, a loaded save or
// unreadable ticks. A new component does not end the history.
func TestLoadedHistory_EndsAtConversionOrSave(t *testing.T) {
	t.Parallel()
	oldest := func(w *ecs.World) uint64 { return w.Tick() - w.History().Oldest() }
	t.Run("conversion", func(t *testing.T) {
		dir, _, _, mark := twiceConverted(t)
		w, s := openNewest(t, dir, persist.Options{History: 100})
		require.Equal(t, w.Raw().Seq()-mark, oldest(w.World))
		storetest.CloseStore(t, s)
	})
	open := func(t *testing.T, files *disktest.Mem, w *ecs.World) *persist.Store {
		t.Helper()
		s, err := persist.Open(storetest.Background, ".", w, persist.Options{Files: files, History: 100, SnapshotBytes: -1})
		require.NoError(t, err)
		return s
	}
	t.Run("component", func(t *testing.T) {
		mem := disktest.New()
		w := ecs.NewWorld(ecs.Options{})
		p, _ := known(w)
		s := open(t, mem, w)
		e := w.Create()
		p.Set(e, storetest.Position{X: 1})
		require.NoError(t, s.Commit())
		late := ecs.MustRegister[storetest.Rank](w)
		for i := range 3 {
			late.Set(e, storetest.Rank{Place: uint8(i)})
			require.NoError(t, s.Commit())
		}
		require.NoError(t, s.Close(storetest.Background))

		for _, register := range []bool{false, true} {
			w = ecs.NewWorld(ecs.Options{History: 10})
			known(w)
			if register {
				ecs.MustRegister[storetest.Rank](w)
			}
			s = open(t, mem, w)
			require.EqualValues(t, 4, oldest(w))
			require.NoError(t, w.History().Rewind(3))
			// A tick from before the component was registered.
			require.NoError(t, s.Commit())
			require.NoError(t, s.Goto(storetest.Background, "tip:1"))
			require.NoError(t, s.Close(storetest.Background))
		}
	})
	t.Run("save", func(t *testing.T) {
		mem := disktest.New()
		w := storetest.New(10)
		s := open(t, mem, w.World)
		tick := func(n int) {
			for range n {
				w.Fill(1)
				require.NoError(t, s.Commit())
			}
		}
		tick(5)
		var b bytes.Buffer
		require.NoError(t, persist.SaveTo(storetest.Background, &b, w.World))
		tick(3)
		require.NoError(t, s.LoadFrom(storetest.Background, &b))
		tick(2)
		require.NoError(t, s.Close(storetest.Background))
		w = storetest.New(10)
		s = open(t, mem, w.World)
		require.EqualValues(t, 2, oldest(w.World))
		require.NoError(t, s.Close(storetest.Background))
	})
	t.Run("damage", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "store")
		w := storetest.New(10)
		s := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1})
		for range 6 {
			w.Fill(3)
			require.NoError(t, s.Commit())
		}
		_, err := s.Snapshot(storetest.Background)
		require.NoError(t, err)
		digest := storetest.Persistent(w.World)
		storetest.CloseStore(t, s)
		tree := storetest.ReadTree(t, dir)
		v := storetest.Verified(t, dir)
		e, _ := v.Log().Find(3)
		segment := v.Log().Segments[e.Segment].Name
		require.NoError(t, v.Close())
		tree["journal/"+segment] = storetest.Flip(tree["journal/"+segment], int(e.Offset)+100, 1)
		dir = filepath.Join(t.TempDir(), "damaged")
		storetest.WriteTree(t, dir, tree)
		w = storetest.New(10)
		s = storetest.Open(t, dir, w, persist.Options{History: 5, SnapshotBytes: -1})
		require.NotEmpty(t, s.Report().Skipped)
		require.Equal(t, digest, storetest.Persistent(w.World))
		require.LessOrEqual(t, oldest(w.World), uint64(3))
		w.Fill(1)
		require.NoError(t, s.Commit())
		storetest.CloseStore(t, s)
	})
}

// NoRewind values stay when the world goes to another state. The next tick writes them to the
// journal, so another opening finds them. This is also true if the loaded history begins after that
// tick.
func TestGoto_NoRewindValuesJournaled(t *testing.T) {
	mem := disktest.New()
	var w *storetest.World
	var s *persist.Store
	open := func() {
		w = storetest.New(10)
		var err error
		s, err = persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem, History: 2, SnapshotBytes: -1})
		require.NoError(t, err)
	}
	reopen := func() {
		require.NoError(t, s.Close(storetest.Background))
		require.NoError(t, simVerify(mem, w))
		open()
	}
	open()
	e := w.Create()
	tick := func(heat int) {
		if heat > 0 {
			w.Heat.Set(e, storetest.Heat{Degrees: int32(heat)})
			w.Clock.Set(storetest.Clock(heat))
		}
		w.Seed.Set(storetest.Seed(w.Raw().Seq() + 1))
		require.NoError(t, s.Commit())
	}
	check := func(heat int) {
		t.Helper()
		h, _ := w.Heat.Get(e)
		require.EqualValues(t, heat, h.Degrees)
		require.EqualValues(t, heat, w.Clock.Get())
	}
	for heat := range 4 {
		tick(heat + 1)
	}
	require.NoError(t, s.Goto(storetest.Background, "1"))
	check(4)
	tick(0)
	reopen()
	check(4)
	tick(7)
	tick(8)
	reopen()
	require.NoError(t, w.History().Rewind(1))
	check(8)
	tick(0)
	reopen()
	check(8)
	require.NoError(t, w.History().Seek(w.History().Oldest()))
	require.NotZero(t, w.Raw().Seq())
	w.Fill(2)
	require.NoError(t, s.Commit())
	reopen()
	require.NoError(t, s.Close(storetest.Background))
}
