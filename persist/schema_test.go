package persist_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// A program registers components in a world.
type program func(w *ecs.World)

func component[T any](c ...ecs.Component[T]) program {
	return func(w *ecs.World) { ecs.MustRegister(w, c...) }
}

func resource[T any](value T, c ...ecs.Component[T]) program {
	return func(w *ecs.World) { ecs.Must(ecs.RegisterResource(w, value, c...)) }
}

func (p program) world() *ecs.World {
	w := ecs.NewWorld(ecs.Options{})
	p(w)
	return w
}

type (
	unit       struct{ HP, Level int32 }
	unitNarrow struct {
		HP    int16
		Level int32
	}
	unitText struct {
		HP    int32
		Level string
	}
	unitAgain struct{ HP, Level int32 }
)

func TestSchema_MismatchNamesField(t *testing.T) {
	t.Parallel()
	dir, file := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "save")
	w := ecs.NewWorld(ecs.Options{})
	units := ecs.MustRegister[unit](w)
	ecs.Must(ecs.RegisterResource(w, storetest.Rules{Name: "one", Limit: 1}))
	units.Set(w.Create(), unit{30, 2})
	require.NoError(t, persist.Save(storetest.Background, file, w))
	s, err := persist.Open(storetest.Background, dir, w, persist.Options{})
	require.NoError(t, err)
	units.Set(w.Create(), unit{40, 3})
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)
	tree := storetest.ReadTree(t, dir)

	for _, c := range []struct {
		name    string
		program program
		names   string // Text in the error; "" means that the types fit.
	}{
		{name: "the same", program: component[unit]()},
		{name: "another Go type of the same fields", program: component(ecs.Component[unitAgain]{Name: "unit"})},
		{name: "field of a narrower type", program: component(ecs.Component[unitNarrow]{Name: "unit"}), names: "HP"},
		{name: "field of another kind", program: component(ecs.Component[unitText]{Name: "unit"}), names: "Level"},
		{name: "no field left", program: component(ecs.Component[storetest.Position]{Name: "unit"}), names: "unit"},
		{name: "no struct at all", program: component(ecs.Component[int32]{Name: "unit"}), names: "unit"},
		{name: "a resource", program: resource(unit{}), names: "component unit: one of stored and registered is a resource"},
		{name: "not persistent", program: component(ecs.Component[unit]{NoPersist: true}), names: "component unit: stored, but registered with NoPersist"},
		{name: "a component that was a resource", program: component[storetest.Rules](), names: "component rules: one of stored and registered is a resource"},
		{name: "more components", program: func(w *ecs.World) {
			component[storetest.Position]()(w)
			component[unit]()(w)
		}},
		{name: "none at all", program: func(*ecs.World) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := c.program.world()
			before := w.Digest()
			err := persist.Load(storetest.Background, file, w)
			if c.names == "" {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, persist.ErrSchema)
				require.ErrorContains(t, err, c.names)
				require.Equal(t, before, w.Digest())
			}

			dir := filepath.Join(t.TempDir(), "store")
			storetest.WriteTree(t, dir, tree)
			w = c.program.world()
			s, err := persist.Open(storetest.Background, dir, w, persist.Options{})
			if c.names == "" {
				require.NoError(t, err)
				require.Equal(t, 2, w.Len())
				storetest.CloseStore(t, s)
				return
			}
			require.ErrorIs(t, err, persist.ErrSchema)
			require.ErrorContains(t, err, c.names)
			require.Equal(t, before, w.Digest())
			require.Equal(t, tree, storetest.ReadTree(t, dir), "a refused Open changed the directory")
		})
	}
}

// known registers two components of the test world, so that all others are unknown.
func known(w *ecs.World) (*ecs.Storage[storetest.Position], *ecs.Storage[storetest.Frozen]) {
	return ecs.MustRegister[storetest.Position](w), ecs.MustRegister[storetest.Frozen](w)
}

func TestSchema_UnknownComponentsKept(t *testing.T) {
	t.Parallel()
	dir, file := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "save")
	w := storetest.New(0)
	twin := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1})
	for _, w := range []*storetest.World{w, twin} {
		w.Fill(20)
		w.Clock.Set(77)
		w.Rules.Set(storetest.Rules{Name: "kept", Limit: 5})
	}
	require.NoError(t, s.Commit())
	twin.Commit()
	storetest.CloseStore(t, s)

	// Another program, which registers two of the components, continues the store: it destroys,
	// clears, rewinds, snapshots and saves.
	for run := range 2 {
		little := ecs.NewWorld(ecs.Options{History: 5})
		positions, _ := known(little)
		s, err := persist.Open(storetest.Background, dir, little, persist.Options{SnapshotBytes: -1})
		require.NoError(t, err)
		require.Equal(t, []string{"body", "bag", "chase", "heat", "armor", "trail", "mood", "crown", "rank", "chunk", "scroll", "rules", "seed", "clock", "land"}, s.Report().Unknown)
		do := func(w *ecs.World, positions *ecs.Storage[storetest.Position]) {
			w.Destroy(w.Entities()[3])
			w.Destroy(w.Entities()[0])
			positions.Remove(w.Entities()[1])
			positions.Set(w.Create(), storetest.Position{X: 5, Y: 5})
			w.Commit()
		}
		do(little, positions)
		require.NoError(t, little.History().Rewind(1))
		do(little, positions)
		do(twin.World, twin.Position)
		if run == 1 {
			_, err = s.Snapshot(storetest.Background)
			require.NoError(t, err)
			do(little, positions)
			do(twin.World, twin.Position)
			require.NoError(t, persist.Save(storetest.Background, file, little))
		}
		storetest.CloseStore(t, s)
		storetest.Verified(t, dir)
	}

	w = storetest.New(0)
	s = storetest.Open(t, dir, w, persist.Options{})
	require.Empty(t, s.Report().Unknown)
	require.Empty(t, s.Report().Skipped)
	require.Equal(t, twin.Digest(), w.Digest())
	require.Equal(t, storetest.Clock(77), w.Clock.Get())
	require.Equal(t, twin.Heat.Entities(), w.Heat.Entities())
	storetest.CloseStore(t, s)

	saved := storetest.New(0)
	require.NoError(t, persist.Load(storetest.Background, file, saved.World))
	require.Equal(t, twin.Digest(), saved.Digest())

	// World.Clear also removes unknown components; resources stay.
	little := ecs.NewWorld(ecs.Options{})
	known(little)
	s, err := persist.Open(storetest.Background, dir, little, persist.Options{})
	require.NoError(t, err)
	little.Clear()
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)
	w = storetest.New(0)
	s = storetest.Open(t, dir, w, persist.Options{})
	require.Zero(t, w.Len()+w.Bag.Len()+w.Heat.Len())
	require.Equal(t, storetest.Rules{Name: "kept", Limit: 5}, w.Rules.Get())
	storetest.CloseStore(t, s)
	storetest.Verified(t, dir)
}

func TestSchema_ComponentRegisteredLate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := ecs.NewWorld(ecs.Options{History: 10})
	positions, _ := known(w)
	s, err := persist.Open(storetest.Background, dir, w, persist.Options{Sync: journal.SyncNever})
	require.NoError(t, err)
	e := w.Create()
	positions.Set(e, storetest.Position{X: 1, Y: 1})
	require.NoError(t, s.Commit())

	bags := ecs.MustRegister(w, ecs.Component[storetest.Bag]{Clone: storetest.CloneBag})
	seeds := ecs.Must(ecs.RegisterResource(w, storetest.Seed(41)))
	clocks := ecs.Must(ecs.RegisterResource(w, storetest.Clock(5), ecs.Component[storetest.Clock]{NoRewind: true}))
	// The late components are not committed yet, so the snapshot must omit them.
	_, err = s.Snapshot(storetest.Background)
	require.NoError(t, err)
	digests := map[uint64]ecs.Digest{}
	bags.Set(e, storetest.Bag{Name: "late"})
	*seeds.Mut()++
	clocks.Set(6)
	commit := func() {
		require.NoError(t, s.Commit())
		digests[w.Raw().Seq()] = w.Digest()
	}
	commit()
	require.NoError(t, w.History().Rewind(1))
	require.Equal(t, storetest.Seed(41), seeds.Get())
	positions.Set(e, storetest.Position{X: 2, Y: 2})
	commit() // This tick continues a state that has no resources.
	_, err = s.Snapshot(storetest.Background)
	require.NoError(t, err)
	positions.Set(e, storetest.Position{X: 3, Y: 3})
	commit()
	storetest.CloseStore(t, s)

	v := storetest.Verified(t, dir)
	for seq, digest := range digests {
		im, err := v.At(storetest.Background, seq)
		require.NoError(t, err)
		require.Equal(t, digest, im.Digest(), "record %d", seq)
	}
	later := storetest.New(0)
	later.Seed.Set(99) // The program's value must not replace the stored one.
	s = storetest.Open(t, dir, later, persist.Options{})
	require.Equal(t, storetest.Seed(41), later.Seed.Get())
	require.Equal(t, storetest.Clock(6), later.Clock.Get())
	storetest.CloseStore(t, s)
}

func TestSchema_NewerProgramAddsComponents(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := ecs.NewWorld(ecs.Options{})
	positions, _ := known(w)
	s, err := persist.Open(storetest.Background, dir, w, persist.Options{})
	require.NoError(t, err)
	e := w.Create()
	positions.Set(e, storetest.Position{X: 1, Y: 1})
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)

	more := storetest.New(3)
	more.Seed.Set(1234) // A program may use another seed in every run.
	s = storetest.Open(t, dir, more, persist.Options{})
	require.Empty(t, s.Report().Unknown)
	more.Bag.Set(e, storetest.Bag{Name: "new"})
	require.NoError(t, s.Commit())
	digest := more.Digest()
	storetest.CloseStore(t, s)
	storetest.Verified(t, dir)

	again := storetest.New(0)
	s = storetest.Open(t, dir, again, persist.Options{})
	require.Equal(t, digest, again.Digest())
	require.Equal(t, storetest.Seed(1234), again.Seed.Get())
	got, _ := again.Bag.Get(e)
	require.Equal(t, storetest.Bag{Name: "new"}, got)
	storetest.CloseStore(t, s)
}

// Destroying an entity removes its NoRewind values. A rewind restores the entity, but not these
// values. After a replay, the entity must lack them, too.
func TestNoRewind_JournaledAfterRewind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(10)
	s := storetest.Open(t, dir, w, persist.Options{})
	e, other := w.Create(), w.Create()
	w.Heat.Set(e, storetest.Heat{Degrees: 1})
	w.Heat.Set(other, storetest.Heat{Degrees: 2})
	require.NoError(t, s.Commit())
	w.Destroy(e)
	require.NoError(t, s.Commit())
	require.NoError(t, w.History().Rewind(1))
	require.False(t, w.Heat.Has(e))
	w.Destroy(e) // No component is left to be removed with the entity.
	require.NoError(t, s.Commit())
	crashed := copyAfter(t, s, dir)
	storetest.CloseStore(t, s)
	for _, dir := range []string{dir, crashed} {
		again := storetest.New(0)
		s := storetest.Open(t, dir, again, persist.Options{})
		require.Equal(t, w.Heat.Entities(), again.Heat.Entities())
		require.Equal(t, w.Digest(), again.Digest())
		storetest.CloseStore(t, s)
	}
}

// copyAfter syncs the store and returns a copy of its directory. The store stays open, so the copy
// is like the directory after a crash.
func copyAfter(t testing.TB, s *persist.Store, dir string) string {
	t.Helper()
	require.NoError(t, s.Sync(storetest.Background))
	return storetest.CopyDir(t, dir)
}

func TestNoRewind_SnapshotAfterRewind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(10)
	s := storetest.Open(t, dir, w, persist.Options{})
	e := w.Create()
	keeper := w.Create()
	require.NoError(t, s.Commit())
	w.Destroy(e)
	require.NoError(t, s.Commit())
	require.NoError(t, w.History().Rewind(1))
	w.Heat.Set(e, storetest.Heat{Degrees: 1})
	w.Heat.Set(keeper, storetest.Heat{Degrees: 2})
	_, err := s.Snapshot(storetest.Background)
	require.NoError(t, err)
	require.NoError(t, w.History().Seek(2))
	require.NoError(t, s.Sync(storetest.Background))
	storetest.CloseStore(t, s)
	again := storetest.New(0)
	s = storetest.Open(t, dir, again, persist.Options{})
	require.Equal(t, []ecs.Entity{keeper}, again.Heat.Entities())
	storetest.CloseStore(t, s)
	_, err = os.Stat(filepath.Join(dir, "snapshots/00000002.snap"))
	require.NoError(t, err)
}
