package persist_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/schedule"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

type (
	heat  struct{ V [40]int64 } // Large rows.
	light struct{ V, N int64 }
)

// newLamps returns a world whose two systems run at the same time and write two storages.
func newLamps(workers int) (*ecs.World, *schedule.Schedule[int64]) {
	w := ecs.NewWorld(ecs.Options{History: 10})
	heats, lights := ecs.MustRegister[heat](w), ecs.MustRegister[light](w)
	sum := ecs.Must(ecs.RegisterResource(w, int64(0), ecs.Component[int64]{Name: "sum"}))
	s := schedule.New[int64](w).Workers(workers)
	s.Startup("begin", schedule.Uses(heats, lights, schedule.Creates), func(t *schedule.Tick[int64]) {
		for i, e := range w.CreateN(nil, 5000) {
			heats.Set(e, heat{[40]int64{int64(i)}})
			lights.Set(e, light{int64(i), 1})
		}
	})
	warm, shine := ecs.NewQuery1(ecs.Write(heats)), ecs.NewQuery1(ecs.Write(lights))
	s.Add("warm", warm, func(t *schedule.Tick[int64]) {
		for e, v := range warm.All() {
			v.V[int(e.Index()+uint32(t.Number))%40] += t.Input
		}
	})
	s.Add("shine", schedule.Uses(shine, sum), func(t *schedule.Tick[int64]) {
		for _, v := range shine.All() {
			v.V = v.V*31 + t.Input
			*sum.Mut() += v.V
		}
	})
	return w, s
}

// Systems run at the same time while the store journals each tick and copies snapshots. The store
// has the ticks of a world whose systems run one after another.
func TestStore_SystemsRunTogether(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	plain, one := newLamps(1)
	w, two := newLamps(2)
	options := persist.Options{Sync: journal.SyncNever, SnapshotBytes: 1, SnapshotPace: 700}
	store, err := persist.Open(storetest.Background, dir, w, options)
	require.NoError(t, err)
	for i := range int64(60) {
		one.Step(i)
		plain.Commit()
		two.Step(i)
		require.NoError(t, store.Commit())
		require.Equal(t, plain.Digest(), w.Digest(), "tick %d", w.Tick())
	}
	require.NoError(t, store.Close(storetest.Background))

	again, _ := newLamps(2)
	store, err = persist.Open(storetest.Background, dir, again, options)
	require.NoError(t, err)
	require.Equal(t, plain.Digest(), again.Digest())
	require.NoError(t, store.Close(storetest.Background))
	storetest.Verified(t, dir)
}

// In a system, these calls fail: moving the world to another state, saving, and marking the last
// tick.
func TestStore_CallsInSystemRefused(t *testing.T) {
	dir := t.TempDir()
	save := filepath.Join(dir, "save")
	w, s := newLamps(1)
	store, err := persist.Open(storetest.Background, filepath.Join(dir, "store"), w, persist.Options{})
	require.NoError(t, err)
	commit := func() {
		s.Step(1)
		require.NoError(t, store.Commit())
	}
	commit()
	commit()
	require.NoError(t, persist.Save(storetest.Background, save, w))
	calls := map[string]func() error{
		"Goto":     func() error { return store.Goto(storetest.Background, "1") },
		"Load":     func() error { return store.Load(storetest.Background, save) },
		"MarkLast": func() error { return store.MarkLast("boss") },
		"SaveSlot": func() error {
			_, err := store.SaveSlot(storetest.Background, "quick", "")
			return err
		},
	}
	other := schedule.New[int64](w)
	other.Add("calls", nil, func(*schedule.Tick[int64]) {
		for name, call := range calls {
			require.ErrorIs(t, call(), persist.ErrUncommitted, name)
		}
		require.False(t, w.Dirty())
		require.PanicsWithValue(t, "ecs: a load in the system calls, whose tick has not ended; call it after Step", func() {
			_ = persist.Load(storetest.Background, save, w)
		})
	})
	before := w.Digest()
	other.Step(0)
	require.Equal(t, before, w.Digest())
	require.EqualValues(t, 2, w.Tick())
	for name, call := range calls {
		require.NoError(t, call(), name)
	}
	require.NoError(t, store.Close(storetest.Background))
}
