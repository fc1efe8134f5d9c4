package persist_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// The types of the newest of three programs. The unit has the type olderUnit in the oldest program,
// newerUnit in the second program and newestUnit in this program. This program does not register
// the component pack.
type (
	newestUnit struct {
		Life float64 `stet:",was=Health"`
		Team int64
		Name string
	}
	newestVigour struct{ HP float64 }
	newestArmor  struct{ Points int64 }
	newestRules  struct{ Words [3]string }
)

type newestWorld struct {
	*ecs.World
	unit   *ecs.Storage[newestUnit]
	vigour *ecs.Storage[newestVigour]
	armor  *ecs.Storage[newestArmor]
	heat   *ecs.Storage[newerHeat]
	rules  *ecs.Resource[newestRules]
}

func newNewestWorld() *newestWorld {
	w := ecs.NewWorld(ecs.Options{History: 4})
	return &newestWorld{
		World: w,
		unit:  ecs.MustRegister(w, ecs.Component[newestUnit]{Name: "unit", Dropped: []string{"Mana", "Speed", "Level"}}),
		vigour: ecs.MustRegister(w, ecs.Component[newestVigour]{Name: "vigour", FormerNames: []string{"vitality", "health"}, Version: 1, Migrations: []ecs.Migration{
			ecs.Migrate(0, func(v layout.Value) newestVigour {
				hp, _ := v.Field("HP")
				return newestVigour{float64(hp.Int()) / 2}
			}),
		}}),
		armor: ecs.MustRegister(w, ecs.Component[newestArmor]{Name: "armor"}),
		heat:  ecs.MustRegister(w, ecs.Component[newerHeat]{Name: "heat"}),
		rules: ecs.Must(ecs.RegisterResource(w, newestRules{}, ecs.Component[newestRules]{Name: "rules", Version: 3, Migrations: []ecs.Migration{ecs.Migrate(2, func(r newerRules) newestRules { return newestRules{[3]string{r.Text, "", "!"}} })}})),
	}
}

// check requires that w has the same values as the parameter before, a world of the previous
// program. It compares only fields that both worlds have.
func (w *newestWorld) check(t *testing.T, before *newerWorld) {
	t.Helper()
	require.Equal(t, before.Entities(), w.Entities())
	for _, e := range w.Entities() {
		old, _ := before.unit.Get(e)
		u, _ := w.unit.Get(e)
		require.Equal(t, newestUnit{float64(old.Life), old.Team, ""}, u)
		hp, _ := before.vitality.Get(e)
		v, _ := w.vigour.Get(e)
		require.Equal(t, newestVigour{float64(hp.HP) / 2}, v)
		points, had := before.armor.Get(e)
		a, has := w.armor.Get(e)
		require.Equal(t, had, has)
		require.Equal(t, int64(points.Points), a.Points)
		degrees, had := before.heat.Get(e)
		h, has := w.heat.Get(e)
		require.Equal(t, had, has)
		require.Equal(t, degrees, h)
	}
	require.Equal(t, newestRules{[3]string{before.rules.Get().Text, "", "!"}}, w.rules.Get())
}

// An era is a part of a store's history under one set of types.
type era struct {
	layout  string // Layout of units.
	digests map[uint64]ecs.Digest
}

// twiceConverted returns a store whose types were converted twice, so it has three eras. second is
// the last world of the second era, and mark is the record of its state.
func twiceConverted(t *testing.T) (dir string, eras []era, second *newerWorld, mark uint64) {
	dir = olderCopy(t)
	eras = []era{{"olderUnit", nil}, {"newerUnit", map[uint64]ecs.Digest{}}, {"newestUnit", map[uint64]ecs.Digest{}}}
	second, s := openNewer(t, dir)
	for i, e := range second.Entities() {
		second.unit.Set(e, newerUnit{Team: 1 << 40, Life: int32(i - 2), Mana: 7, Speed: 0.1})
		second.vitality.Set(e, newerVitality{int64(2*i + 1)})
		require.NoError(t, s.Commit())
		eras[1].digests[second.Raw().Seq()] = second.Digest()
		if i == 1 {
			_, err := s.Snapshot(storetest.Background)
			require.NoError(t, err)
		}
	}
	mark = second.Raw().Seq()
	storetest.CloseStore(t, s)

	w, s := openNewest(t, dir, persist.Options{})
	w.check(t, second)
	require.Contains(t, told(s.Report().Converted), "vigour: was vitality\nvigour: migrated from version 0 to 1\n")
	require.Contains(t, told(s.Report().Converted), "armor: is no longer Indexed\n")
	require.Equal(t, []string{"pack"}, s.Report().Unknown)
	require.Equal(t, mark, w.Raw().Seq())
	for range 3 {
		w.change(t, s)
		eras[2].digests[w.Raw().Seq()] = w.Digest()
	}
	storetest.CloseStore(t, s)
	return dir, eras, second, mark
}

func openNewest(t *testing.T, dir string, options persist.Options) (*newestWorld, *persist.Store) {
	t.Helper()
	w := newNewestWorld()
	options.SnapshotBytes = -1
	s, err := persist.Open(storetest.Background, dir, w.World, options)
	require.NoError(t, err)
	return w, s
}

// change commits a tick with a state unlike all earlier ones.
func (w *newestWorld) change(t *testing.T, s *persist.Store) {
	t.Helper()
	for _, e := range w.Entities() {
		w.unit.Mut(e).Life += float64(w.Tick()) + 0.5
	}
	require.NoError(t, s.Commit())
}

// renew fills the world so that it shares no page with the state before.
func (w *newestWorld) renew() {
	w.DestroyAll(slices.Clone(w.Entities()))
	for i := range 2 + w.Tick()%5 {
		e := w.Create()
		w.unit.Set(e, newestUnit{Team: int64(i)})
		w.vigour.Set(e, newestVigour{float64(w.Tick())})
		w.armor.Set(e, newestArmor{int64(w.Tick())})
	}
	w.rules.Mut().Words[1] += "."
}

func TestConversion_StoreConvertedTwice(t *testing.T) {
	t.Parallel()
	dir, eras, _, mark := twiceConverted(t)
	v := storetest.Verified(t, dir)
	for _, era := range eras {
		for seq, want := range era.digests {
			if seq == mark && era.layout == "newerUnit" {
				// The second program's state of this record was converted. So it now has a newer
				// type, and another digest.
				want = 0
			}
			im, err := v.At(storetest.Background, seq)
			require.NoError(t, err)
			if want != 0 {
				require.Equal(t, want, im.Digest(), "record %d", seq)
				require.Equal(t, era.layout, im.Find("unit").Layout.Name, "record %d", seq)
			}
		}
	}
	im, err := v.At(storetest.Background, 3)
	require.NoError(t, err)
	require.Equal(t, "olderUnit", im.Find("unit").Layout.Name)

	for _, former := range []*ecs.World{newOlderWorld().World, newNewerWorld().World} {
		_, err := persist.Open(storetest.Background, dir, former, persist.Options{})
		require.ErrorIs(t, err, persist.ErrNewer)
	}
	again := newNewestWorld()
	w, s := openNewest(t, dir, persist.Options{})
	require.Empty(t, s.Report().Converted)
	require.Equal(t, eras[2].digests[w.Raw().Seq()], w.Digest())
	file := t.TempDir() + "/save"
	require.NoError(t, persist.Save(storetest.Background, file, w.World))
	require.NoError(t, persist.Load(storetest.Background, file, again.World))
	require.Equal(t, w.Digest(), again.Digest())
	storetest.CloseStore(t, s)
}

func TestConversion_OpenAtOlderTick(t *testing.T) {
	t.Parallel()
	dir, eras, second, mark := twiceConverted(t)
	for name, point := range map[string]string{"the state that was converted": fmt.Sprint("record:", mark), "one before": fmt.Sprint("record:", mark-1)} {
		t.Run(name, func(t *testing.T) {
			dir := storetest.CopyDir(t, dir)
			w, s := openNewest(t, dir, persist.Options{At: point})
			if point == fmt.Sprint("record:", mark) {
				w.check(t, second)
			} else {
				require.NotEmpty(t, s.Report().Converted)
			}
			// No tick continues the older state yet. So a recovery after a crash returns the newest
			// state of the journal.
			crashed := storetest.CopyDir(t, dir)
			w.change(t, s)
			w.change(t, s)
			want := w.Digest()
			storetest.CloseStore(t, s)
			v := storetest.Verified(t, dir)
			im, err := v.At(storetest.Background, mark+3) // A state of the abandoned branch.
			require.NoError(t, err)
			require.Equal(t, eras[2].digests[mark+3], im.Digest())
			w, s = openNewest(t, dir, persist.Options{})
			require.Empty(t, s.Report().Converted)
			require.Equal(t, want, w.Digest())
			storetest.CloseStore(t, s)

			w, s = openNewest(t, crashed, persist.Options{})
			require.Equal(t, eras[2].digests[mark+3], w.Digest())
			storetest.CloseStore(t, s)
			storetest.Verified(t, crashed)
		})
	}

	// A program with the second types opens a state that was saved with them, so nothing is
	// converted.
	w := newNewerWorld()
	s, err := persist.Open(storetest.Background, dir, w.World, persist.Options{At: fmt.Sprint("record:", mark-1), SnapshotBytes: -1})
	require.NoError(t, err)
	require.Empty(t, s.Report().Converted)
	require.Equal(t, eras[1].digests[mark-1], w.Digest())
	w.unit.Set(w.Entities()[0], newerUnit{Life: 99})
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)
	storetest.Verified(t, dir)
	later, s := openNewest(t, dir, persist.Options{})
	require.NotEmpty(t, s.Report().Converted)
	later.check(t, w)
	storetest.CloseStore(t, s)
	storetest.Verified(t, dir)
}

func TestConversion_OlderSnapshotsPruned(t *testing.T) {
	t.Parallel()
	dir, eras, _, mark := twiceConverted(t)
	w, s := openNewest(t, dir, persist.Options{Retain: persist.Retention{Last: 1}})
	before := storetest.Snapshots(t, dir)
	// Retention keeps two snapshots that share no file. Once both have the present types, it can
	// remove the older snapshots.
	for i := range 2 {
		w.renew()
		w.change(t, s)
		eras[2].digests[w.Raw().Seq()] = w.Digest()
		r, err := s.Snapshot(storetest.Background)
		require.NoError(t, err)
		require.NoError(t, r.RemoveErr)
		require.Zero(t, r.Shared)
		if i == 0 {
			require.Subset(t, storetest.Snapshots(t, dir), before[len(before)-1:])
		}
	}
	w.change(t, s)
	eras[2].digests[w.Raw().Seq()] = w.Digest()
	last := w.Raw().Seq()
	storetest.CloseStore(t, s)
	// The last snapshot has the present types, and later ticks continue it.
	for _, name := range before[:len(before)-1] {
		require.NotContains(t, storetest.Snapshots(t, dir), name)
	}

	v := storetest.Verified(t, dir)
	im, err := v.At(storetest.Background, last)
	require.NoError(t, err)
	require.Equal(t, w.Digest(), im.Digest())
	_, err = v.At(storetest.Background, mark-1)
	require.ErrorIs(t, err, persist.ErrNotFound)
	_, err = persist.Open(storetest.Background, dir, newNewerWorld().World, persist.Options{})
	require.ErrorIs(t, err, persist.ErrNewer, "the program of the former types is still refused")
	again, s := openNewest(t, dir, persist.Options{At: "@latest~1", Retain: persist.Retention{Last: 1}})
	require.Empty(t, s.Report().Converted)
	require.Equal(t, eras[2].digests[again.Raw().Seq()], again.Digest())
	require.Equal(t, last-1, again.Raw().Seq())
	again.change(t, s)
	_, err = s.Snapshot(storetest.Background)
	require.NoError(t, err)
	storetest.CloseStore(t, s)
	storetest.Verified(t, dir)
}
