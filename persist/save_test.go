package persist_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

func saved(t testing.TB, w *ecs.World) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "save")
	require.NoError(t, persist.Save(storetest.Background, file, w))
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	return data
}

func TestSave_RandomWorlds(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "save")
	rapid.Check(t, func(t *rapid.T) {
		w := storetest.New(rapid.SampledFrom(storetest.Histories).Draw(t, "history"))
		for range rapid.IntRange(0, 4).Draw(t, "ticks") {
			w.Do(rapid.SliceOfN(storetest.AnyAction, 0, 40).Draw(t, "actions")...)
			w.Commit()
		}
		w.Do(rapid.SliceOfN(storetest.AnyAction, 0, 10).Draw(t, "uncommitted")...)
		require.NoError(t, persist.Save(storetest.Background, file, w.World))
		first, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, persist.Save(storetest.Background, file, w.World))
		second, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, first, second, "saving twice gives other bytes")

		loaded := storetest.New(3)
		loaded.Fill(3)
		loaded.Commit()
		require.NoError(t, persist.Load(storetest.Background, file, loaded.World))
		require.NoError(t, persist.Save(storetest.Background, file, loaded.World))
		third, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, first, third, "saving the loaded world gives other bytes")

		twin := w.Independent()
		require.Equal(t, twin.Digest(), loaded.Digest())
		require.Equal(t, twin.Heat.Entities(), loaded.Heat.Entities())
		require.Equal(t, fmt.Sprint(twin.Heat.Values()), fmt.Sprint(loaded.Heat.Values()))
		for range 3 { // Both worlds create the same IDs in the same order.
			more := rapid.SliceOfN(storetest.AnyAction, 0, 20).Draw(t, "more")
			loaded.Do(more...)
			twin.Do(more...)
			loaded.Commit()
			twin.Commit()
			require.Equal(t, twin.Digest(), loaded.Digest())
		}
	})
}

func TestSave_UnusualValues(t *testing.T) {
	t.Parallel()
	type odd struct {
		hidden  int32
		F       float64
		Text    string
		Pointer *int16
		Nested  map[string][]string
		Big     [300]byte
	}
	clone := func(o odd) odd { return o } // No test writes through the shared value.
	register := func(w *ecs.World) *ecs.Storage[odd] { return ecs.MustRegister(w, ecs.Component[odd]{Clone: clone}) }
	w := ecs.NewWorld(ecs.Options{})
	odds := register(w)
	nan := math.Float64frombits(0x7ff8_0000_dead_beef)
	n := int16(-3)
	values := []odd{
		{hidden: 7, F: nan, Text: strings.Repeat("long ", 1<<20)},
		{F: math.Inf(-1), Pointer: &n, Nested: map[string][]string{"": nil, "b": {}, "a": {"x", ""}}},
		{F: math.Copysign(0, -1), Text: "\xff\x00\xfe no UTF-8", Big: [300]byte{299: 1}},
		{},
	}
	for _, v := range values {
		odds.Set(w.Create(), v)
	}
	file := filepath.Join(t.TempDir(), "save")
	require.NoError(t, persist.Save(storetest.Background, file, w))
	again := ecs.NewWorld(ecs.Options{})
	loaded := register(again)
	require.NoError(t, persist.Load(storetest.Background, file, again))
	require.Equal(t, w.Digest(), again.Digest())
	for i, got := range loaded.Values() {
		want := values[i]
		require.Equal(t, math.Float64bits(want.F), math.Float64bits(got.F))
		got.F, want.F = 0, 0
		require.Equal(t, want, got)
	}
}

func TestSave_StaleHandlesStayStale(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	last := ecs.NewEntity(1, math.MaxUint32)
	state := &raw.State{Registry: raw.As[uint64]([]ecs.Entity{ecs.NewEntity(0, 1), last, ecs.NewEntity(2, 9)}), Alive: 2, Free: 3}
	require.NoError(t, w.Raw().Load(state))
	w.Destroy(last)
	stale := w.Entities()[0]
	w.Destroy(stale)
	file := filepath.Join(t.TempDir(), "save")
	require.NoError(t, persist.Save(storetest.Background, file, w))
	again := ecs.NewWorld(ecs.Options{})
	require.NoError(t, persist.Load(storetest.Background, file, again))
	for range 5 {
		e := again.Create()
		require.Equal(t, w.Create(), e)
		require.NotEqual(t, uint32(1), e.Index(), "a spent index was used again")
		require.False(t, again.Alive(stale))
		require.False(t, again.Alive(last))
	}
	require.Equal(t, w.Digest(), again.Digest())
	require.Equal(t, saved(t, w), saved(t, again))
}

func TestSave_EmptyAndLargeWorlds(t *testing.T) {
	t.Parallel()
	empty := ecs.NewWorld(ecs.Options{})
	require.Equal(t, saved(t, empty), saved(t, ecs.NewWorld(ecs.Options{})))
	file := filepath.Join(t.TempDir(), "save")
	require.NoError(t, persist.Save(storetest.Background, file, empty))
	full := storetest.New(0)
	full.Fill(10)
	require.NoError(t, persist.Load(storetest.Background, file, full.World))
	require.Zero(t, full.Len()+full.Position.Len()+full.Heat.Len())
	require.Equal(t, ecs.NewEntity(0, 1), full.Create())

	large := storetest.New(0)
	for range 100_000 {
		large.Create()
	}
	for i, e := range large.Entities() {
		large.Position.Set(e, storetest.Position{X: float32(i), Y: 2})
		if i%3 == 0 {
			large.Bag.Set(e, storetest.Bag{Name: "n"})
		}
	}
	for i := range 1000 {
		large.Destroy(large.Entities()[i*7])
	}
	require.NoError(t, persist.Save(storetest.Background, file, large.World))
	again := storetest.New(0)
	require.NoError(t, persist.Load(storetest.Background, file, again.World))
	require.Equal(t, large.Digest(), again.Digest())
	for range 1500 {
		require.Equal(t, large.Create(), again.Create())
	}
}

func TestSave_FailureKeepsOldFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "save")
	w := storetest.New(0)
	w.Fill(3)
	require.NoError(t, persist.Save(storetest.Background, file, w.World))
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	w.Fill(3)

	ctx, cancel := context.WithCancel(storetest.Background)
	cancel()
	require.ErrorIs(t, persist.Save(ctx, file, w.World), context.Canceled)
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, before, after)

	require.NoError(t, persist.Save(storetest.Background, file, w.World))
	again := storetest.New(0)
	require.NoError(t, persist.Load(storetest.Background, file, again.World))
	require.Equal(t, 6, again.Len())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)

	require.Error(t, persist.Save(storetest.Background, filepath.Join(dir, "no such directory", "save"), w.World))
	require.Error(t, persist.Save(storetest.Background, dir, w.World))
	require.ErrorIs(t, persist.Load(storetest.Background, filepath.Join(dir, "missing"), w.World), os.ErrNotExist)
}

func TestLoad_NonEmptyWorld(t *testing.T) {
	file := filepath.Join(t.TempDir(), "save")
	source := storetest.New(0)
	source.Fill(5)
	source.Commit()
	require.NoError(t, persist.Save(storetest.Background, file, source.World))

	w := storetest.New(5)
	w.Fill(2)
	w.Commit()
	cp := w.Checkpoint()
	w.Fill(1)
	before := w.Digest()
	require.ErrorIs(t, persist.Load(storetest.Background, file, w.World), raw.ErrCheckpointHeld)
	require.Equal(t, before, w.Digest())
	w.Restore(cp)
	require.Equal(t, 2, w.Len())
	w.Release(cp)
	require.NoError(t, persist.Load(storetest.Background, file, w.World))
	require.Equal(t, source.Digest(), w.Digest())
	require.ErrorIs(t, w.History().Rewind(1), ecs.ErrNotHeld)
	w.Fill(1)
	w.Commit()
	require.NoError(t, w.History().Rewind(1))
	require.Equal(t, source.Digest(), w.Digest())
}

// Load refuses the world of a store. Otherwise the next tick would continue a state that is not in
// the journal.
func TestLoad_IntoWorldOfStore(t *testing.T) {
	file, dir := filepath.Join(t.TempDir(), "save"), filepath.Join(t.TempDir(), "store")
	w := storetest.New(5)
	s := storetest.Open(t, dir, w, persist.Options{})
	w.Fill(4)
	require.NoError(t, s.Commit())
	require.NoError(t, persist.Save(storetest.Background, file, w.World), "saving such a world is fine")
	w.Fill(1)
	require.NoError(t, s.Commit())
	digest := w.Digest()
	require.ErrorIs(t, persist.Load(storetest.Background, file, w.World), raw.ErrAttached)
	require.Equal(t, digest, w.Digest())
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)
	storetest.Verified(t, dir)

	require.NoError(t, persist.Load(storetest.Background, file, w.World), "Load succeeds after the store is closed")
	require.Equal(t, 4, w.Len())
	v, err := inspect.OpenReadOnly(storetest.Background, file)
	require.NoError(t, err)
	defer v.Close()
	require.True(t, v.IsSave())
	r, err := v.Verify(storetest.Background)
	require.NoError(t, err)
	require.Empty(t, r.Problems)
	im, err := v.At(storetest.Background, v.Head())
	require.NoError(t, err)
	require.Equal(t, w.Digest(), im.Digest())
}

func TestOpen_NewStoreOfLoadedWorld(t *testing.T) {
	file, dir := filepath.Join(t.TempDir(), "save"), filepath.Join(t.TempDir(), "store")
	source := storetest.New(0)
	source.Fill(5)
	source.Commit()
	require.NoError(t, persist.Save(storetest.Background, file, source.World))
	w := storetest.New(3)
	require.NoError(t, persist.Load(storetest.Background, file, w.World))
	s := storetest.Open(t, dir, w, persist.Options{})
	require.True(t, s.Report().Fresh)
	require.Equal(t, uint64(1), s.Report().Tick)
	w.Fill(1)
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)
	again := storetest.New(0)
	s = storetest.Open(t, dir, again, persist.Options{})
	require.Equal(t, w.Digest(), again.Digest())
	storetest.CloseStore(t, s)
	_, err := persist.Open(storetest.Background, dir, source.World, persist.Options{})
	require.ErrorIs(t, err, persist.ErrNotEmpty)
}

// A store can be opened into a cleared world. If Open fails, the world is unchanged.
func TestOpen_IntoClearedWorld(t *testing.T) {
	mem := disktest.New()
	kept := storetest.New(0)
	s, err := persist.Open(storetest.Background, ".", kept.World, persist.Options{Files: mem})
	require.NoError(t, err)
	kept.Fill(20)
	require.NoError(t, s.Commit())
	require.NoError(t, s.Close(storetest.Background))

	opened := false
	for n := 1; !opened; n++ {
		w := storetest.New(3)
		w.Fill(30)
		w.Commit()
		w.World.Clear()
		before := w.Digest()
		files := mem.Clone()
		files.FailFrom(files.Calls()+n, syscall.EIO)
		s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: files, History: 2})
		if opened = err == nil; opened {
			require.Equal(t, storetest.Persistent(kept.World), storetest.Persistent(w.World))
			_ = s.Close(storetest.Background) // The disk still fails, so Close fails too.
			continue
		}
		require.Equal(t, before, w.Digest(), "call %d", n)
	}
}
