package persist

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
)

// A program registers components in a world.
type program func(w *ecs.World)

func component[T any](options ...ecs.Option) program {
	return func(w *ecs.World) { ecs.MustRegister[T](w, options...) }
}

func resource[T any](value T, options ...ecs.Option) program {
	return func(w *ecs.World) { ecs.MustRegisterResource(w, value, options...) }
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

func TestTypesThatDoNotFitAreRefusedByTheFieldsName(t *testing.T) {
	dir, file := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "save")
	w := ecs.NewWorld(ecs.Options{})
	units := ecs.MustRegister[unit](w)
	ecs.MustRegisterResource(w, rules{"one", 1})
	units.Set(w.Create(), unit{30, 2})
	require.NoError(t, Save(background, file, w))
	s, err := Open(background, dir, w, Options{})
	require.NoError(t, err)
	units.Set(w.Create(), unit{40, 3})
	require.NoError(t, s.Commit())
	closeStore(t, s)
	tree := readTree(t, dir)

	for _, c := range []struct {
		name    string
		program program
		names   string // What the error names; "": it fits.
	}{
		{name: "the same", program: component[unit]()},
		{name: "another Go type of the same fields", program: component[unitAgain](ecs.Named("unit"))},
		{name: "field of a narrower type", program: component[unitNarrow](ecs.Named("unit")), names: "HP"},
		{name: "field of another kind", program: component[unitText](ecs.Named("unit")), names: "Level"},
		{name: "no field left", program: component[position](ecs.Named("unit")), names: "unit"},
		{name: "no struct at all", program: component[int32](ecs.Named("unit")), names: "unit"},
		{name: "a resource", program: resource(unit{}), names: "unit is a resource"},
		{name: "not persistent", program: component[unit](ecs.NoPersist()), names: "unit is stored"},
		{name: "a component that was a resource", program: component[rules](), names: "rules is a resource"},
		{name: "more components", program: func(w *ecs.World) {
			component[position]()(w)
			component[unit]()(w)
		}},
		{name: "none at all", program: func(*ecs.World) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := c.program.world()
			before := w.Digest()
			err := Load(background, file, w)
			if c.names == "" {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, ErrSchema)
				require.ErrorContains(t, err, c.names)
				require.Equal(t, before, w.Digest())
			}

			dir := filepath.Join(t.TempDir(), "store")
			writeTree(t, dir, tree)
			w = c.program.world()
			s, err := Open(background, dir, w, Options{})
			if c.names == "" {
				require.NoError(t, err)
				require.Equal(t, 2, w.Len())
				closeStore(t, s)
				return
			}
			require.ErrorIs(t, err, ErrSchema)
			require.ErrorContains(t, err, c.names)
			require.Equal(t, before, w.Digest())
			require.Equal(t, tree, readTree(t, dir), "a refused Open changed the directory")
		})
	}
}

// known registers a part of the test world, so that the rest is unknown.
func known(w *ecs.World) (*ecs.Storage[position], *ecs.Storage[frozen]) {
	return ecs.MustRegister[position](w), ecs.MustRegister[frozen](w)
}

func TestWhatTheProgramDoesNotKnowIsKept(t *testing.T) {
	dir, file := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "save")
	w := newTestWorld(0)
	twin := newTestWorld(0)
	s := open(t, dir, w, Options{SnapshotBytes: -1})
	for _, w := range []*testWorld{w, twin} {
		w.fill(20)
		w.clock.Set(77)
		w.rules.Set(rules{"kept", 5})
	}
	require.NoError(t, s.Commit())
	twin.Commit()
	closeStore(t, s)

	// Another program, which knows two of the components, goes on with it: it
	// destroys, clears, rewinds, snapshots and saves.
	for run := range 2 {
		little := ecs.NewWorld(ecs.Options{History: 5})
		positions, _ := known(little)
		s, err := Open(background, dir, little, Options{SnapshotBytes: -1})
		require.NoError(t, err)
		require.Equal(t, []string{"body", "bag", "chase", "heat", "armor", "trail", "mood", "crown", "rank", "rules", "seed", "clock"}, s.Report().Unknown)
		do := func(w *ecs.World, positions *ecs.Storage[position]) {
			w.Destroy(w.Entities()[3])
			w.Destroy(w.Entities()[0])
			positions.Remove(w.Entities()[1])
			positions.Set(w.Create(), position{5, 5})
			w.Commit()
		}
		do(little, positions)
		require.NoError(t, little.History().Rewind(1))
		do(little, positions)
		do(twin.World, twin.position)
		if run == 1 {
			_, err = s.Snapshot(background)
			require.NoError(t, err)
			do(little, positions)
			do(twin.World, twin.position)
			require.NoError(t, Save(background, file, little))
		}
		closeStore(t, s)
		verified(t, dir)
	}

	w = newTestWorld(0)
	s = open(t, dir, w, Options{})
	require.Empty(t, s.Report().Unknown)
	require.Empty(t, s.Report().Skipped)
	require.Equal(t, twin.Digest(), w.Digest())
	require.Equal(t, clock(77), w.clock.Get())
	require.Equal(t, twin.heat.Entities(), w.heat.Entities())
	closeStore(t, s)

	saved := newTestWorld(0)
	require.NoError(t, Load(background, file, saved.World))
	require.Equal(t, twin.Digest(), saved.Digest())

	// World.Clear takes away unknown components too; resources stay.
	little := ecs.NewWorld(ecs.Options{})
	known(little)
	s, err := Open(background, dir, little, Options{})
	require.NoError(t, err)
	little.Clear()
	require.NoError(t, s.Commit())
	closeStore(t, s)
	w = newTestWorld(0)
	s = open(t, dir, w, Options{})
	require.Zero(t, w.Len()+w.bag.Len()+w.heat.Len())
	require.Equal(t, rules{"kept", 5}, w.rules.Get())
	closeStore(t, s)
	verified(t, dir)
}

func TestAComponentRegisteredWhileTheStoreIsOpenIsJournaledWithItsSchema(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := ecs.NewWorld(ecs.Options{History: 10})
	positions, _ := known(w)
	s, err := Open(background, dir, w, Options{Sync: journal.SyncNever()})
	require.NoError(t, err)
	e := w.Create()
	positions.Set(e, position{1, 1})
	require.NoError(t, s.Commit())

	bags := ecs.MustRegister[bag](w, ecs.CloneWith(cloneBag))
	seeds := ecs.MustRegisterResource(w, seed(41))
	clocks := ecs.MustRegisterResource(w, clock(5), ecs.NoRewind())
	_, err = s.Snapshot(background) // Nothing of them is committed.
	require.NoError(t, err)
	digests := map[uint64]ecs.Digest{}
	bags.Set(e, bag{Name: "late"})
	*seeds.Mut()++
	clocks.Set(6)
	commit := func() {
		require.NoError(t, s.Commit())
		digests[w.Mark()] = w.Digest()
	}
	commit()
	require.NoError(t, w.History().Rewind(1))
	require.Equal(t, seed(41), seeds.Get())
	positions.Set(e, position{2, 2})
	commit() // The resources are not part of what it continues.
	_, err = s.Snapshot(background)
	require.NoError(t, err)
	positions.Set(e, position{3, 3})
	commit()
	closeStore(t, s)

	v := verified(t, dir)
	for seq, digest := range digests {
		im, err := v.At(background, seq)
		require.NoError(t, err)
		require.Equal(t, digest, im.Digest(), "record %d", seq)
	}
	later := newTestWorld(0)
	later.seed.Set(99) // The stored value counts, not the program's.
	s = open(t, dir, later, Options{})
	require.Equal(t, seed(41), later.seed.Get())
	require.Equal(t, clock(6), later.clock.Get())
	closeStore(t, s)
}

func TestAComponentOfALaterProgramGetsAPlaceInTheStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := ecs.NewWorld(ecs.Options{})
	positions, _ := known(w)
	s, err := Open(background, dir, w, Options{})
	require.NoError(t, err)
	e := w.Create()
	positions.Set(e, position{1, 1})
	require.NoError(t, s.Commit())
	closeStore(t, s)

	more := newTestWorld(3)
	more.seed.Set(1234) // Say, from the time: another run would have another one.
	s = open(t, dir, more, Options{})
	require.Empty(t, s.Report().Unknown)
	more.bag.Set(e, bag{Name: "new"})
	require.NoError(t, s.Commit())
	digest := more.Digest()
	closeStore(t, s)
	verified(t, dir)

	again := newTestWorld(0)
	s = open(t, dir, again, Options{})
	require.Equal(t, digest, again.Digest())
	require.Equal(t, seed(1234), again.seed.Get())
	got, _ := again.bag.Get(e)
	require.Equal(t, bag{Name: "new"}, got)
	closeStore(t, s)
}

// A rewind brings back entities that have lost what does not rewind; replay must
// not have it either.
func TestWhatDoesNotRewindIsJournaledAsItIsAfterARewind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(10)
	s := open(t, dir, w, Options{})
	e, other := w.Create(), w.Create()
	w.heat.Set(e, heat{1})
	w.heat.Set(other, heat{2})
	require.NoError(t, s.Commit())
	w.Destroy(e)
	require.NoError(t, s.Commit())
	require.NoError(t, w.History().Rewind(1))
	require.False(t, w.heat.Has(e))
	w.Destroy(e) // It has nothing that could be removed.
	require.NoError(t, s.Commit())
	crashed := copyAfter(t, s, dir)
	closeStore(t, s)
	for _, dir := range []string{dir, crashed} {
		again := newTestWorld(0)
		s := open(t, dir, again, Options{})
		require.Equal(t, w.heat.Entities(), again.heat.Entities())
		require.Equal(t, w.Digest(), again.Digest())
		closeStore(t, s)
	}
}

// copyAfter returns a copy of the store as a crash after a Sync leaves it.
func copyAfter(t testing.TB, s *Store, dir string) string {
	t.Helper()
	require.NoError(t, s.Sync(background))
	return copyDir(t, dir)
}

func TestASnapshotTakenAfterARewindHasNothingOfEntitiesThatDieOnTheWayToTheHead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(10)
	s := open(t, dir, w, Options{})
	e := w.Create()
	keeper := w.Create()
	require.NoError(t, s.Commit())
	w.Destroy(e)
	require.NoError(t, s.Commit())
	require.NoError(t, w.History().Rewind(1))
	w.heat.Set(e, heat{1})
	w.heat.Set(keeper, heat{2})
	_, err := s.Snapshot(background)
	require.NoError(t, err)
	require.NoError(t, w.History().Seek(2))
	require.NoError(t, s.Sync(background))
	closeStore(t, s)
	again := newTestWorld(0)
	s = open(t, dir, again, Options{})
	require.Equal(t, []ecs.Entity{keeper}, again.heat.Entities())
	closeStore(t, s)
	_, err = os.Stat(filepath.Join(dir, "snapshots/00000002.snap"))
	require.NoError(t, err)
}
