package persist_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

func TestSaveSlot_InvalidNamesAndNotes(t *testing.T) {
	s := storetest.Open(t, t.TempDir()+"/store", storetest.New(0), persist.Options{})
	for _, bad := range []string{"", "12", "-1", " x", "a\nb", "\xff", strings.Repeat("x", 256)} {
		_, err := s.SaveSlot(storetest.Background, bad, "")
		require.ErrorIs(t, err, persist.ErrName, "%q", bad)
		require.ErrorIs(t, s.BeginSlot(bad, ""), persist.ErrName, "%q", bad)
		require.ErrorIs(t, s.LoadSlot(storetest.Background, bad), persist.ErrName, "%q", bad)
		require.ErrorIs(t, s.DeleteSlot(storetest.Background, bad), persist.ErrNotFound, "%q", bad)
	}
	for _, bad := range []string{"\xff", strings.Repeat("x", 4097)} {
		_, err := s.SaveSlot(storetest.Background, "quick", bad)
		require.ErrorIs(t, err, persist.ErrName)
		require.ErrorIs(t, s.BeginSlot("quick", bad), persist.ErrName)
	}
	require.Empty(t, s.Slots())
	note := strings.Repeat("日\n", 1024)
	_, err := s.SaveSlot(storetest.Background, "quick", note)
	require.NoError(t, err)
	require.Equal(t, note, s.Slots()[0].Note)
	storetest.CloseStore(t, s)
}

// A savedSlot is what a test expects of a slot.
type savedSlot struct {
	note   string
	tick   uint64
	digest ecs.Digest
}

// A slotModel has the slots that a store must have.
type slotModel struct {
	t     *testing.T
	slots map[string]savedSlot
	order []string // Names in the order in which they were last saved.
}

func (m *slotModel) save(name, note string, w *storetest.World) {
	m.remove(name)
	m.order = append(m.order, name)
	m.slots[name] = savedSlot{note, w.Tick(), storetest.Persistent(w.World)}
}

func (m *slotModel) remove(name string) {
	delete(m.slots, name)
	m.order = slices.DeleteFunc(m.order, func(o string) bool { return o == name })
}

// check compares the slots of s, and those that an inspector sees.
func (m *slotModel) check(s *persist.Store, mem *disktest.Mem) {
	got := s.Slots()
	slices.Reverse(got)
	var names []string
	for _, slot := range got {
		names = append(names, slot.Name)
		require.Equal(m.t, m.slots[slot.Name].note, slot.Note)
		require.Equal(m.t, m.slots[slot.Name].tick, slot.Tick)
		require.Positive(m.t, slot.Bytes)
	}
	require.Equal(m.t, strings.Join(m.order, ", "), strings.Join(names, ", "))
	v, err := inspect.OpenFS(storetest.Background, mem.Clone(), ".")
	require.NoError(m.t, err)
	defer v.Close()
	names = nil
	for _, sn := range v.Snapshots() {
		if sn.Label != "" {
			names = append(names, sn.Label)
		}
	}
	require.Equal(m.t, strings.Join(m.order, ", "), strings.Join(names, ", "))
	for name, slot := range m.slots {
		seq, err := v.Resolve("snap:" + name)
		require.NoError(m.t, err)
		im, err := v.At(storetest.Background, seq)
		require.NoError(m.t, err)
		require.Equal(m.t, slot.tick, im.Tick)
	}
}

// Random programs save, begin, load and delete slots between ticks and snapshots, and the store is
// closed or crashes. The store and an inspector always have the newest slot of each name, and
// retention removes the others.
func TestSlots_RandomPrograms(t *testing.T) {
	for seed := range uint64(25) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 46))
			mem, w, m := disktest.New(), storetest.New(0), &slotModel{t: t, slots: map[string]savedSlot{}}
			options := persist.Segmented(persist.Options{Files: mem, SnapshotBytes: -1, Retain: persist.Retention{Last: 2}}, 2000)
			s, err := persist.Open(storetest.Background, ".", w.World, options)
			require.NoError(t, err)
			begun := map[string]string{}
			commit := func() {
				w.Fill(1 + rng.IntN(20))
				require.NoError(t, s.Commit())
				for _, name := range slices.Sorted(maps.Keys(begun)) {
					m.save(name, begun[name], w)
				}
				clear(begun)
			}
			reopen := func(files *disktest.Mem) {
				mem, w = files, storetest.New(0)
				options.Files = mem
				s, err = persist.Open(storetest.Background, ".", w.World, options)
				require.NoError(t, err)
			}
			for step := range 60 {
				name, note := fmt.Sprint("slot ", string(rune('a'+rng.IntN(4)))), fmt.Sprint("step ", step)
				switch op := rng.IntN(12); op {
				case 0, 1, 2:
					commit()
				case 3, 4:
					_, err := s.SaveSlot(storetest.Background, name, note)
					require.NoError(t, err)
					m.save(name, note, w)
				case 5, 6:
					// At most one slot is begun in a tick, so the order of the slots is known.
					if len(begun) == 0 {
						require.NoError(t, s.BeginSlot(name, note))
						begun[name] = note
					}
					commit()
				case 7:
					err := s.DeleteSlot(storetest.Background, name)
					if _, exists := m.slots[name]; exists {
						require.NoError(t, err)
					} else {
						require.ErrorIs(t, err, persist.ErrNotFound)
					}
					m.remove(name)
				case 8:
					err := s.LoadSlot(storetest.Background, name)
					if slot, exists := m.slots[name]; exists {
						require.NoError(t, err)
						require.Equal(t, slot.tick, w.Tick())
						require.Equal(t, slot.digest, storetest.Persistent(w.World))
						commit()
					} else {
						require.ErrorIs(t, err, persist.ErrNotFound)
					}
				case 9:
					_, err := s.Snapshot(storetest.Background)
					require.NoError(t, err)
				case 10:
					require.NoError(t, s.Close(storetest.Background))
					reopen(mem.Clone())
				case 11: // The crash would lose a snapshot under way, so it is finished first.
					_, err := s.Snapshot(storetest.Background)
					require.NoError(t, err)
					require.NoError(t, s.Sync(storetest.Background))
					reopen(mem.CrashSeed(rng.Uint64()))
				}
				if !s.Snapshotting() {
					m.check(s, mem)
				}
			}
			require.NoError(t, s.Close(storetest.Background))
		})
	}
}

// The store crashes or fails before every call of the disk while a slot is replaced and then
// deleted. A slot is the old one or the new one until its call returns.
func TestSlots_CrashAtEveryCall(t *testing.T) {
	build := func() (*disktest.Mem, *persist.Store, *storetest.World) {
		mem, w := disktest.New(), storetest.New(0)
		s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem, SnapshotBytes: -1})
		require.NoError(t, err)
		w.Fill(30)
		require.NoError(t, s.Commit())
		_, err = s.SaveSlot(storetest.Background, "quick", "old")
		require.NoError(t, err)
		w.Fill(30)
		require.NoError(t, s.Commit())
		return mem, s, w
	}
	// noteOf returns the note of the slot that a new process finds, or "none".
	noteOf := func(t *testing.T, files *disktest.Mem) string {
		w := storetest.New(0)
		s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: files})
		require.NoError(t, err, "%v", files)
		defer s.Close(storetest.Background)
		if len(s.Slots()) == 0 {
			require.ErrorIs(t, s.LoadSlot(storetest.Background, "quick"), persist.ErrNotFound)
			return "none"
		}
		require.NoError(t, s.LoadSlot(storetest.Background, "quick"))
		require.Equal(t, map[string]uint64{"old": 1, "new": 2}[s.Slots()[0].Note], w.Tick())
		return s.Slots()[0].Note
	}
	save := func(s *persist.Store) error {
		_, err := s.SaveSlot(storetest.Background, "quick", "new")
		return err
	}
	remove := func(s *persist.Store) error { return s.DeleteSlot(storetest.Background, "quick") }
	for _, test := range []struct {
		name          string
		do            func(*persist.Store) error
		before, after string
	}{{"save", save, "old", "new"}, {"delete", remove, "old", "none"}} {
		t.Run(test.name, func(t *testing.T) {
			mem, s, _ := build()
			var crashed []*disktest.Mem
			var mu sync.Mutex
			mem.OnCall(func(n int, _ string) {
				mu.Lock()
				defer mu.Unlock()
				crashed = append(crashed, mem.Crash(), mem.Clone(), mem.CrashSeed(uint64(n)))
			})
			require.NoError(t, test.do(s))
			mem.OnCall(nil)
			mu.Lock() // The journal's goroutine may still be in a call.
			all := append(slices.Clone(crashed), mem.Crash())
			mu.Unlock()
			seen := map[string]int{}
			for i, files := range all {
				note := noteOf(t, files)
				require.Contains(t, []string{test.before, test.after}, note, "crash %d", i)
				seen[note]++
				if i == len(all)-1 {
					require.Equal(t, test.after, note, "after the call returned")
				}
			}
			require.Positive(t, seen[test.before])
			require.NoError(t, s.Close(storetest.Background))

			for fault := 1; ; fault++ {
				mem, s, _ := build()
				calls := mem.Calls()
				mem.Fail(calls+fault, errors.New("a fault"))
				err := test.do(s)
				if done := mem.Calls() < calls+fault; done {
					require.NoError(t, err)
					// Remove the fault: only calls of test.do may fail.
					mem.Fail(calls+fault, nil)
					require.NoError(t, s.Close(storetest.Background))
					break
				}
				note := noteOf(t, mem.Crash())
				require.Contains(t, []string{test.before, test.after}, note, "fault %d", fault)
				if err == nil {
					require.Equal(t, test.after, note, "fault %d", fault)
				}
				// The failed call may leave files behind. After a deletion, these files must not
				// bring the slot back.
				if deleted := s.DeleteSlot(storetest.Background, "quick"); deleted == nil || errors.Is(deleted, persist.ErrNotFound) {
					require.Equal(t, "none", noteOf(t, mem.Crash()), "fault %d", fault)
				}
				_ = s.Close(storetest.Background)
			}
		})
	}
}

// BeginSlot saves the slot at the next Commit that ends a tick. This holds while a snapshot is
// under way, and after a Commit that was refused.
func TestBeginSlot_SavesTickOfNextCommit(t *testing.T) {
	w, mem := storetest.New(0), disktest.New()
	s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem, SnapshotBytes: -1, SnapshotPace: 1})
	require.NoError(t, err)
	w.Fill(3000)
	require.NoError(t, s.Commit())
	begun, err := s.BeginSnapshot()
	require.NoError(t, err)
	require.True(t, begun)
	require.NoError(t, s.BeginSlot("one", "first"))
	require.NoError(t, s.BeginSlot("two", "second"))
	require.Empty(t, s.Slots())
	w.Fill(10)
	require.NoError(t, s.Commit())
	want := storetest.Persistent(w.World)
	for s.Snapshotting() {
		w.Seed.Set(w.Seed.Get() + 1)
		require.NoError(t, s.Commit())
	}
	slots := s.Slots()
	require.Len(t, slots, 2)
	for i, name := range []string{"two", "one"} {
		require.Equal(t, name, slots[i].Name)
		require.EqualValues(t, 2, slots[i].Tick)
		require.NoError(t, s.LoadSlot(storetest.Background, name))
		require.Equal(t, want, storetest.Persistent(w.World))
	}
	require.NoError(t, s.Close(storetest.Background))
}

// Retention keeps a slot and removes the snapshot that it replaced.
func TestSlots_ReplacedSnapshotIsRemoved(t *testing.T) {
	w, mem := storetest.New(0), disktest.New()
	s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem, SnapshotBytes: -1, Retain: persist.Retention{Last: 1}})
	require.NoError(t, err)
	files := func() (n int) {
		for _, name := range mem.Files() {
			if strings.HasSuffix(name, ".snap") {
				n++
			}
		}
		return n
	}
	for i := range 12 {
		w.Fill(30)
		require.NoError(t, s.Commit())
		s.ForgetPages() // The next snapshot is a full one.
		_, err = s.SaveSlot(storetest.Background, "quick", fmt.Sprint(i))
		require.NoError(t, err)
		require.LessOrEqual(t, files(), 3)
	}
	require.NoError(t, s.DeleteSlot(storetest.Background, "quick"))
	for range 3 {
		w.Fill(30)
		require.NoError(t, s.Commit())
		s.ForgetPages()
		_, err = s.Snapshot(storetest.Background)
		require.NoError(t, err)
	}
	require.Equal(t, 2, files(), "the newest snapshot, and one that shares no file with it")
	require.NoError(t, s.Close(storetest.Background))
}

// Close closes the store, and then reports changes, marks, inputs and slots that no Commit
// followed.
func TestClose_ReportsUncommitted(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *persist.Store, w *storetest.World) error
		text   string // "" and "NoRewind" mean that nothing is lost.
	}{
		"nothing":         {func(*persist.Store, *storetest.World) error { return nil }, ""},
		"a value":         {func(_ *persist.Store, w *storetest.World) error { w.Seed.Set(9); return nil }, "the world was changed"},
		"a NoRewind one":  {func(_ *persist.Store, w *storetest.World) error { w.Clock.Set(9); return nil }, "NoRewind"},
		"an entity":       {func(_ *persist.Store, w *storetest.World) error { w.Create(); return nil }, "the world was changed"},
		"a mark":          {func(s *persist.Store, _ *storetest.World) error { return s.Mark("boss") }, `the mark "boss"`},
		"an input":        {func(s *persist.Store, _ *storetest.World) error { return s.Input("keys", nil) }, "an input"},
		"a slot":          {func(s *persist.Store, _ *storetest.World) error { return s.BeginSlot("quick", "") }, `the slot "quick"`},
		"a committed one": {func(s *persist.Store, w *storetest.World) error { w.Clock.Set(9); w.Seed.Set(9); return s.Commit() }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, mem := storetest.New(3), disktest.New()
			s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem})
			require.NoError(t, err)
			require.False(t, w.Dirty())
			w.Fill(20)
			require.True(t, w.Dirty())
			require.NoError(t, s.Commit())
			require.False(t, w.Dirty())
			require.NoError(t, s.Close(storetest.Background))

			w = storetest.New(3)
			s, err = persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem})
			require.NoError(t, err)
			require.False(t, w.Dirty(), "the values come from the store")
			require.NoError(t, test.change(s, w))
			require.Equal(t, test.text == "the world was changed" || test.text == "NoRewind", w.Dirty())
			clock := w.Clock.Get()
			err = s.Close(storetest.Background)
			if test.text == "" || test.text == "NoRewind" {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, persist.ErrUncommitted)
				require.ErrorContains(t, err, test.text)
			}
			require.ErrorIs(t, s.Close(storetest.Background), persist.ErrClosed)
			w = storetest.New(3)
			s, err = persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem})
			require.NoError(t, err)
			require.True(t, s.Report().Clean)
			require.Equal(t, clock, w.Clock.Get())
			require.NoError(t, s.Close(storetest.Background))
		})
	}
}

// A world tracks its changes only if it has a history or a recorder. Without both, Dirty always
// returns true.
func TestDirty_WorldWithoutHistory(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	w.Commit()
	require.True(t, w.Dirty())
	w = ecs.NewWorld(ecs.Options{History: 1})
	w.Commit()
	require.False(t, w.Dirty())
}

// Poll serves Do while the world makes no ticks. The changes belong to the next tick.
func TestPoll_ServesDoWithoutTick(t *testing.T) {
	w, mem := storetest.New(0), disktest.New()
	s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem})
	require.NoError(t, err)
	require.NoError(t, s.Poll())
	done := make(chan error)
	go func() {
		done <- s.Do(storetest.Background, func(w *ecs.World) { w.Create() })
	}()
	for {
		require.NoError(t, s.Poll())
		select {
		case err = <-done:
		default:
			continue
		}
		break
	}
	require.NoError(t, err)
	require.Zero(t, w.Tick())
	require.Equal(t, 1, w.Len())
	require.NoError(t, s.Commit())
	require.NoError(t, s.Close(storetest.Background))
	require.ErrorIs(t, s.Poll(), persist.ErrClosed)
}

// A world may change while SaveBehind writes it. The last of several saves to one file remains.
func TestSaveBehind_LastCallRemains(t *testing.T) {
	w, mem := storetest.New(0), disktest.New()
	w.Fill(200)
	w.Commit()
	options := persist.FileOptions{Files: mem}
	var first sync.Once
	block := make(chan struct{})
	mem.OnCall(func(_ int, call string) {
		first.Do(func() { <-block }) // The first save waits, while the other ones are called.
	})
	var results []<-chan error
	var want ecs.Digest
	for range 5 {
		want = storetest.Persistent(w.World)
		results = append(results, persist.SaveBehind(storetest.Background, "slot", w.World, options))
		w.Fill(50)
		w.Commit()
	}
	close(block)
	for _, result := range results {
		require.NoError(t, <-result)
	}
	loaded := storetest.New(0)
	require.NoError(t, persist.Load(storetest.Background, "slot", loaded.World, options))
	require.Equal(t, want, storetest.Persistent(loaded.World))

	mem.FailFrom(mem.Calls()+1, errors.New("a full disk"))
	require.ErrorContains(t, <-persist.SaveBehind(storetest.Background, "slot", w.World, options), "a full disk")
	require.Zero(t, persist.SavesBehind(), "no file is remembered")
}

// A deleted slot does not come back if the program is killed while retention removes its file.
func TestDeleteSlot_StaysDeletedWhileRemoved(t *testing.T) {
	w, mem := storetest.New(0), disktest.New()
	s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem, SnapshotBytes: -1, Retain: persist.Retention{Last: 1}})
	require.NoError(t, err)
	step := func(save func() error) {
		w.Fill(30)
		require.NoError(t, s.Commit())
		s.ForgetPages()
		require.NoError(t, save())
	}
	step(func() error { _, err := s.SaveSlot(storetest.Background, "quick", ""); return err })
	require.NoError(t, s.DeleteSlot(storetest.Background, "quick"))
	var crashed []*disktest.Mem
	var mu sync.Mutex
	mem.OnCall(func(n int, _ string) {
		mu.Lock()
		defer mu.Unlock()
		crashed = append(crashed, mem.Crash(), mem.Clone(), mem.CrashSeed(uint64(n)))
	})
	for range 3 {
		step(func() error { _, err := s.Snapshot(storetest.Background); return err })
	}
	mem.OnCall(nil)
	mu.Lock() // The journal's goroutine may still be in a call.
	all := slices.Clone(crashed)
	mu.Unlock()
	require.Greater(t, len(all), 50)
	for i, files := range all {
		again, err := persist.Open(storetest.Background, ".", storetest.New(0).World, persist.Options{Files: files})
		require.NoError(t, err, "crash %d", i)
		require.Empty(t, again.Slots(), "crash %d", i)
		require.NoError(t, again.Close(storetest.Background))
	}
	require.NoError(t, s.Close(storetest.Background))
}

// A rewind drops a slot that waits for its Commit. The result of a snapshot has the slot's name.
func TestBeginSlot_DroppedByRewind(t *testing.T) {
	w, mem := storetest.New(4), disktest.New()
	var results []string
	s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{
		Files: mem, SnapshotBytes: -1, SnapshotPace: -1,
		OnSnapshot: func(r persist.SnapshotResult) { results = append(results, fmt.Sprint(r.Slot, " ", r.Tick)) },
	})
	require.NoError(t, err)
	for range 3 {
		w.Fill(5)
		require.NoError(t, s.Commit())
	}
	require.NoError(t, s.BeginSlot("quick", ""))
	require.NoError(t, w.History().Rewind(1))
	require.NoError(t, s.BeginSlot("other", ""))
	w.Fill(5)
	require.NoError(t, s.Commit())
	require.NoError(t, storetest.Closed(s.Close(storetest.Background)))
	require.Equal(t, []string{"other 3"}, results[len(results)-1:])
	require.NotContains(t, results, "quick 3")
}

// The world keeps its NoRewind values when it goes to another state. The journal has older values
// for that state, so Close saves the present ones. Reading an index of a NoRewind component is no
// change.
func TestClose_SavesNoRewindValues(t *testing.T) {
	type profile struct{ Wins int32 }
	open := func(t *testing.T, mem *disktest.Mem) (*ecs.World, *persist.Store, *ecs.Resource[profile], *ecs.Storage[profile]) {
		w := ecs.NewWorld(ecs.Options{History: 8})
		wins := ecs.Must(ecs.RegisterResource(w, profile{}, ecs.Component[profile]{Name: "wins", NoRewind: true}))
		marks := ecs.MustRegister(w, ecs.Component[profile]{Name: "marks", NoRewind: true})
		s, err := persist.Open(storetest.Background, ".", w, persist.Options{Files: mem, History: 8})
		require.NoError(t, err)
		return w, s, wins, marks
	}
	for name, move := range map[string]func(*ecs.World, *persist.Store) error{
		"LoadSlot": func(_ *ecs.World, s *persist.Store) error { return s.LoadSlot(storetest.Background, "quick") },
		"Goto":     func(_ *ecs.World, s *persist.Store) error { return s.Goto(storetest.Background, "1") },
		"Seek":     func(w *ecs.World, _ *persist.Store) error { return w.History().Seek(1) },
	} {
		t.Run(name, func(t *testing.T) {
			mem := disktest.New()
			w, s, wins, _ := open(t, mem)
			wins.Set(profile{1})
			require.NoError(t, s.Commit())
			_, err := s.SaveSlot(storetest.Background, "quick", "")
			require.NoError(t, err)
			for range 2 {
				w.Create()
				require.NoError(t, s.Commit())
			}
			wins.Set(profile{2})
			require.NoError(t, move(w, s))
			require.Equal(t, profile{2}, wins.Get())
			tick := w.Tick()
			require.NoError(t, s.Close(storetest.Background))

			w, s, wins, _ = open(t, mem)
			require.Equal(t, profile{2}, wins.Get())
			require.Equal(t, tick, w.Tick(), "the record of the values is no tick")
			wins.Set(profile{3})
			require.NoError(t, move(w, s))
			require.NoError(t, s.Commit())
			require.False(t, w.Dirty())
			require.NoError(t, s.Close(storetest.Background))
			w, s, wins, _ = open(t, mem)
			require.Equal(t, profile{3}, wins.Get())
			require.NoError(t, move(w, s))
			require.NoError(t, s.Commit())
			require.NoError(t, s.Close(storetest.Background))
			w, s, wins, _ = open(t, mem)
			require.Equal(t, profile{3}, wins.Get(), "kept by the tick after the move")
			require.NoError(t, move(w, s))
			wins.Set(profile{4})
			w.Create()
			require.ErrorIs(t, s.Close(storetest.Background), persist.ErrUncommitted)
			_, s, wins, _ = open(t, mem)
			require.NotEqual(t, profile{4}, wins.Get(), "not saved, because the world had other changes")
			require.NoError(t, s.Close(storetest.Background))
		})
	}
	t.Run("the same values", func(t *testing.T) {
		mem := disktest.New()
		w, s, wins, marks := open(t, mem)
		wins.Set(profile{1})
		marks.Set(w.Create(), profile{2})
		require.NoError(t, s.Commit())
		_, err := s.SaveSlot(storetest.Background, "quick", "")
		require.NoError(t, err)
		w.Create()
		require.NoError(t, s.Commit())
		require.NoError(t, s.LoadSlot(storetest.Background, "quick"))
		require.NoError(t, s.Close(storetest.Background))

		_, s, _, _ = open(t, mem)
		require.NoError(t, s.Close(storetest.Background), "with a history that was read")
	})
	w, s, _, marks := open(t, disktest.New())
	byWins := ecs.NewIndex(marks, func(p profile) int32 { return p.Wins })
	marks.Set(w.Create(), profile{4})
	require.NoError(t, s.Commit())
	require.Len(t, slices.Collect(byWins.Of(4)), 1)
	require.False(t, w.Dirty())
	require.NoError(t, s.Commit())
	require.Len(t, slices.Collect(byWins.Of(4)), 1)
	require.NoError(t, s.Close(storetest.Background))
}

// A backup has the slot that is saved while the backup begins.
func TestBackup_SlotSavedMeanwhile(t *testing.T) {
	w, mem := storetest.New(0), disktest.New()
	s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem, SnapshotBytes: -1})
	require.NoError(t, err)
	w.Fill(20)
	require.NoError(t, s.Commit())
	_, err = s.SaveSlot(storetest.Background, "quick", "old")
	require.NoError(t, err)
	saved := false
	mem.OnCall(func(_ int, call string) {
		if call == "list snapshots" && !saved {
			saved = true // By now, the backup knows its newest tick.
			w.Fill(20)
			require.NoError(t, s.Commit())
			_, err = s.SaveSlot(storetest.Background, "quick", "new")
			require.NoError(t, err)
		}
	})
	dir := t.TempDir() + "/copy"
	require.NoError(t, s.Backup(storetest.Background, dir))
	mem.OnCall(nil)
	require.Equal(t, "new", s.Slots()[0].Note)
	require.NoError(t, s.Close(storetest.Background))
	copied := storetest.Open(t, dir, storetest.New(0), persist.Options{})
	require.Len(t, copied.Slots(), 1)
	require.Equal(t, "new", copied.Slots()[0].Note)
	storetest.CloseStore(t, copied)
}

// A journal of the first version cannot record that a slot is deleted. DeleteSlot returns an error
// that says so.
func TestDeleteSlot_JournalOfFirstVersion(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	storetest.WriteTree(t, dir, storetest.ReadTree(t, keptStore))
	s := storetest.Open(t, dir, storetest.New(0), persist.Options{})
	_, err := s.SaveSlot(storetest.Background, "quick", "old")
	require.NoError(t, err)
	require.ErrorContains(t, s.DeleteSlot(storetest.Background, "quick"), "journal of version 1")
	require.Len(t, s.Slots(), 1)
	storetest.CloseStore(t, s)
	s = storetest.Open(t, dir, storetest.New(0), persist.Options{})
	require.Equal(t, "old", s.Slots()[0].Note)
	storetest.CloseStore(t, s)
}

// Close reports that the slot of the last Commit was not saved.
func TestClose_ReportsFailedSlot(t *testing.T) {
	for _, fails := range []bool{false, true} {
		w, mem := storetest.New(0), disktest.New()
		s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem, SnapshotBytes: -1})
		require.NoError(t, err)
		require.NoError(t, s.BeginSlot("quick", ""))
		w.Fill(20)
		require.NoError(t, s.Commit())
		full := errors.New("the disk is full")
		mem.OnCall(func(n int, call string) {
			if fails && strings.HasPrefix(call, "write snapshots/") {
				mem.Fail(n, full)
			}
		})
		if err := s.Close(storetest.Background); fails {
			require.ErrorIs(t, err, full)
		} else {
			require.NoError(t, err)
		}
		again, err := persist.Open(storetest.Background, ".", storetest.New(0).World, persist.Options{Files: mem.Crash()})
		require.NoError(t, err)
		require.Equal(t, !fails, len(again.Slots()) == 1)
		require.NoError(t, again.Close(storetest.Background))
	}
}

// A catalog has read the store, and then the slot is saved again. Catalog.Relist skips the new
// snapshot, because it is newer than the state of the catalog. So the old snapshot is still the
// slot.
func TestRelist_SkipsNewerSnapshotOfSlot(t *testing.T) {
	w, mem := storetest.New(0), disktest.New()
	s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem, SnapshotBytes: -1})
	require.NoError(t, err)
	save := func(note string) {
		w.Fill(20)
		require.NoError(t, s.Commit())
		_, err := s.SaveSlot(storetest.Background, "quick", note)
		require.NoError(t, err)
	}
	save("old")
	c := catalog.New(mem)
	require.NoError(t, c.Scan(storetest.Background))
	save("new")
	_, err = c.Relist(storetest.Background)
	require.NoError(t, err)
	var notes []string
	for _, snapshot := range c.Snapshots {
		if snapshot.Label == "quick" {
			notes = append(notes, snapshot.Note)
		}
	}
	require.Equal(t, []string{"old"}, notes)
	require.NoError(t, c.Log.Close())
	require.NoError(t, s.Close(storetest.Background))
}
