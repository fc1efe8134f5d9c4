package persist_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

type (
	lossUnit   struct{ HP, Shield int32 }
	lossBare   struct{ HP int32 }
	lossHealth struct{ HP, Shield int32 }
)

// lossStore returns a store and a save of a program with units, and the contents of both.
func lossStore(t *testing.T) (dir, file string) {
	dir = filepath.Join(t.TempDir(), "store")
	file = filepath.Join(filepath.Dir(dir), "save")
	w := ecs.NewWorld(ecs.Options{})
	units := ecs.MustRegister(w, ecs.Component[lossUnit]{Name: "unit"})
	s, err := persist.Open(storetest.Background, dir, w, persist.Options{})
	require.NoError(t, err)
	for i := range 3 {
		units.Set(w.Create(), lossUnit{int32(i), 7})
		require.NoError(t, s.Commit())
	}
	require.NoError(t, persist.Save(storetest.Background, file, w))
	storetest.CloseStore(t, s)
	return dir, file
}

// Open and Load refuse a conversion that would lose values. Their errors have the same text. The
// store, the save and the world stay unchanged. A player still shows the state, and lists the
// values that it leaves out.
func TestConversion_LossRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refused, agreed program
		want            string
		said            string // Losses that a player of the store lists.
		units           int    // Number of units in the program's world.
	}{
		"a field": {
			component(ecs.Component[lossBare]{Name: "unit"}),
			component(ecs.Component[lossBare]{Name: "unit", Dropped: []string{"Shield"}}),
			`component unit: lossBare.Shield: dropped, was int32; to drop: ecs.Component[lossBare]{Name: "unit", Dropped: []string{"Shield"}}`,
			"unit: lossBare.Shield: dropped, was int32\n", 3,
		},
		"a component that was renamed": {
			component(ecs.Component[lossHealth]{}),
			component(ecs.Component[lossHealth]{FormerNames: []string{"unit"}}),
			`if it was renamed: ecs.Component[lossHealth]{FormerNames: []string{"unit"}}`,
			"unit: not registered, kept\nlossHealth: registered, nothing is stored\n", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, file := lossStore(t)
			before := storetest.ReadTree(t, filepath.Dir(dir))
			w := c.refused.world()
			_, opening := persist.Open(storetest.Background, dir, w, persist.Options{})
			require.ErrorIs(t, opening, persist.ErrSchema)
			require.ErrorIs(t, opening, raw.ErrDropped)
			require.ErrorContains(t, opening, c.want)
			require.EqualError(t, persist.Load(storetest.Background, file, w), opening.Error())
			require.Zero(t, w.Len())
			require.Nil(t, w.Raw().Converted())
			require.Equal(t, before, storetest.ReadTree(t, filepath.Dir(dir)))

			p := openPlayer(t, dir, w, inspect.PlayerOptions{})
			for range 3 {
				require.NoError(t, p.Step(storetest.Background))
			}
			require.Equal(t, 3, w.Len())
			require.Equal(t, c.said, told(w.Raw().Converted()))
			require.Len(t, w.Raw().Storages()[0].Entities(), c.units)

			// The second opening finds nothing to convert.
			for _, register := range []program{c.agreed, c.agreed} {
				w = register.world()
				require.NoError(t, persist.Load(storetest.Background, file, w))
				require.Len(t, w.Raw().Storages()[0].Entities(), 3)
				s, err := persist.Open(storetest.Background, dir, register.world(), persist.Options{})
				require.NoError(t, err)
				storetest.CloseStore(t, s)
			}
			s, err := persist.Open(storetest.Background, dir, c.refused.world(), persist.Options{})
			require.NoError(t, err, "dropped values are still stored")
			require.Empty(t, s.Report().Converted)
			storetest.CloseStore(t, s)
			storetest.Verified(t, dir)
		})
	}
}

// The report names stored components that are not registered, and registered ones that are not
// stored. The store is not converted.
func TestReport_UnknownAndUnstoredComponents(t *testing.T) {
	dir, _ := lossStore(t)
	before := storetest.Snapshots(t, dir)
	other := func(w *ecs.World) {
		ecs.MustRegister(w, ecs.Component[lossHealth]{FormerNames: []string{}})
		ecs.MustRegister(w, ecs.Component[lossBare]{NoPersist: true})
		ecs.Must(ecs.RegisterResource(w, lossBare{5}, ecs.Component[lossBare]{Name: "rules"}))
	}
	s, err := persist.Open(storetest.Background, dir, program(other).world(), persist.Options{})
	require.NoError(t, err)
	r := s.Report()
	require.Equal(t, []string{"unit"}, r.Unknown)
	require.Equal(t, []string{"lossHealth", "rules"}, r.Unstored)
	require.Empty(t, r.Converted)
	require.Contains(t, r.String(), "\nnot registered, kept: unit\nregistered, without stored data: lossHealth, rules")
	require.Equal(t, before, storetest.Snapshots(t, dir))
	storetest.CloseStore(t, s)
}

type (
	lossSuit   uint8
	lossSorted uint8
	lossCard   struct{ Suit lossSuit }
	lossDeck   struct{ Suit lossSorted }
)

func (s lossSuit) String() string   { return []string{"Clubs", "Hearts"}[s] }
func (s lossSorted) String() string { return []string{"Hearts", "Clubs"}[s] }

// The program changes the order of its named constants. Load and the first Open report it. That
// Open stores the new order, so the second Open reports nothing.
func TestReport_ConstantsReordered(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	file := filepath.Join(filepath.Dir(dir), "save")
	const line = "card: lossDeck.Suit: stored numbers mean other constants: Clubs was 0, is 1, Hearts was 1, is 0\n"
	w := ecs.NewWorld(ecs.Options{})
	cards := ecs.MustRegister(w, ecs.Component[lossCard]{Name: "card"})
	s, err := persist.Open(storetest.Background, dir, w, persist.Options{})
	require.NoError(t, err)
	cards.Set(w.Create(), lossCard{1})
	require.NoError(t, s.Commit())
	require.NoError(t, persist.Save(storetest.Background, file, w))
	storetest.CloseStore(t, s)

	w = ecs.NewWorld(ecs.Options{})
	deck := ecs.MustRegister(w, ecs.Component[lossDeck]{Name: "card"})
	require.NoError(t, persist.Load(storetest.Background, file, w))
	require.Equal(t, []lossDeck{{1}}, deck.Values())
	require.Equal(t, line, told(w.Raw().Converted()))
	for _, want := range []string{line, ""} {
		w = ecs.NewWorld(ecs.Options{})
		deck = ecs.MustRegister(w, ecs.Component[lossDeck]{Name: "card"})
		s, err = persist.Open(storetest.Background, dir, w, persist.Options{})
		require.NoError(t, err)
		require.Equal(t, want, told(s.Report().Converted))
		deck.Mut(w.Entities()[0])
		require.NoError(t, s.Commit())
		_, err = s.Snapshot(storetest.Background)
		require.NoError(t, err)
		storetest.CloseStore(t, s)
		storetest.Verified(t, dir)
	}
	s, err = persist.Open(storetest.Background, dir, component(ecs.Component[lossCard]{Name: "card"}).world(), persist.Options{})
	require.NoError(t, err, "no values were lost, so an older program can still open the store")
	require.Contains(t, told(s.Report().Converted), "Hearts was 0, is 1")
	storetest.CloseStore(t, s)
	storetest.Verified(t, dir)
}

// The report also has a line for an array that became longer.
func TestReport_LongerArray(t *testing.T) {
	type two struct{ At [2]int8 }
	type three struct{ At [3]int8 }
	dir := filepath.Join(t.TempDir(), "store")
	s, err := persist.Open(storetest.Background, dir, component(ecs.Component[two]{Name: "it"}).world(), persist.Options{})
	require.NoError(t, err)
	storetest.CloseStore(t, s)
	s, err = persist.Open(storetest.Background, dir, component(ecs.Component[three]{Name: "it"}).world(), persist.Options{})
	require.NoError(t, err)
	require.Equal(t, "it: three.At: 2 elements became 3, the new ones zero\n", told(s.Report().Converted))
	storetest.CloseStore(t, s)
}
