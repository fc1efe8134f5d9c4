package persist_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// conversionError stores and saves a world of one program. It returns the error of Open, Load and
// View.Fill for a world of another program. before: the first program, after: the other one.
func conversionError(t *testing.T, before, after program) error {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	file := filepath.Join(filepath.Dir(dir), "save")
	w := before.world()
	s, err := persist.Open(storetest.Background, dir, w, persist.Options{})
	require.NoError(t, err)
	w.Create()
	require.NoError(t, s.Commit())
	require.NoError(t, persist.Save(storetest.Background, file, w))
	storetest.CloseStore(t, s)
	tree := storetest.ReadTree(t, filepath.Dir(dir))

	_, opening := persist.Open(storetest.Background, dir, after.world(), persist.Options{})
	require.Error(t, opening)
	require.EqualError(t, persist.Load(storetest.Background, file, after.world()), opening.Error())
	require.Equal(t, tree, storetest.ReadTree(t, filepath.Dir(dir)))
	v, err := inspect.OpenReadOnly(storetest.Background, dir)
	require.NoError(t, err)
	defer v.Close()
	require.EqualError(t, v.Fill(storetest.Background, 1, after.world()), opening.Error())
	return opening
}

type (
	faultUnit struct {
		HP    int32
		Speed float64
		Owner string
	}
	faultUnitNow struct {
		Speed  float32
		Health int64
		Armor  int32
		Owner  []byte
	}
	faultBag     struct{ Items []struct{ Count, Worn int8 } }
	faultBagNow  struct{ Items []struct{ Count int8 } }
	faultRules   struct{ Level int64 }
	faultRulesAs struct {
		Level int32
		Name  string
	}
)

// One error lists all fields of all components that cannot be loaded, and what to do for each. The
// components have the order in which the program registers them. Resources come last.
func TestConversion_ErrorListsAllComponents(t *testing.T) {
	t.Parallel()
	before := func(w *ecs.World) {
		ecs.MustRegister(w, ecs.Component[faultBag]{Name: "bag"})
		ecs.MustRegister(w, ecs.Component[lossUnit]{Name: "fits"})
		ecs.Must(ecs.RegisterResource(w, faultRules{}, ecs.Component[faultRules]{Name: "rules"}))
		ecs.MustRegister(w, ecs.Component[faultUnit]{Name: "unit"})
	}
	after := func(w *ecs.World) {
		ecs.Must(ecs.RegisterResource(w, faultRulesAs{}, ecs.Component[faultRulesAs]{Name: "rules"}))
		ecs.MustRegister(w, ecs.Component[faultUnitNow]{Name: "unit"})
		ecs.MustRegister(w, ecs.Component[lossUnit]{Name: "fits"})
		ecs.MustRegister(w, ecs.Component[faultBagNow]{Name: "bag"})
	}
	err := conversionError(t, before, after)
	require.ErrorIs(t, err, persist.ErrSchema)
	require.ErrorIs(t, err, layout.ErrConversion)
	require.NotErrorIs(t, err, raw.ErrDropped, "more than values that are lost")
	require.Equal(t, `persist: schema does not fit: layout: rows cannot be converted:
component unit:
    faultUnitNow.Speed: stored float64, program has float32
    faultUnitNow.Owner: stored string, program has bytes
    faultUnitNow.HP: dropped, was int32; if it was renamed: Armor int32 `+"`stet:\",was=HP\"`, or Health int64 `stet:\",was=HP\"`"+`
    to drop: ecs.Component[faultUnitNow]{Name: "unit", Dropped: []string{"HP"}}; to convert: ecs.Component[faultUnitNow]{Name: "unit", Version: 1, Migrations: []ecs.Migration{ecs.Migrate(0, func(v oldFaultUnitNow) faultUnitNow { … })}}
component bag: faultBagNow.Items[].Worn: dropped, was int8; to drop: ecs.Component[faultBagNow]{Name: "bag", Dropped: []string{"Items[].Worn"}}; to convert: ecs.Component[faultBagNow]{Name: "bag", Version: 1, Migrations: []ecs.Migration{ecs.Migrate(0, func(v oldFaultBagNow) faultBagNow { … })}}
component rules: faultRulesAs.Level: stored int64, program has int32; to convert: ecs.Component[faultRulesAs]{Name: "rules", Version: 1, Migrations: []ecs.Migration{ecs.Migrate(0, func(v oldFaultRulesAs) faultRulesAs { … })}}`, err.Error())
}

// A faultNumbers has 15 fields.
type (
	faultNumbers struct {
		A, B, C, D, E, F, G, H, I, J, K, L, M, N, O [2]int16
	}
	faultNumbersNow struct {
		A, B, C, D, E, F, G, H, I, J, K, L, M, N, O [2]int8
	}
)

// An error lists 20 faults, and then the number of further faults.
func TestConversion_ErrorIsBounded(t *testing.T) {
	t.Parallel()
	err := conversionError(t,
		func(w *ecs.World) {
			for i := range 3 {
				ecs.MustRegister(w, ecs.Component[faultNumbers]{Name: fmt.Sprint("n", i)})
			}
		}, func(w *ecs.World) {
			for i := range 3 {
				ecs.MustRegister(w, ecs.Component[faultNumbersNow]{Name: fmt.Sprint("n", i)})
			}
		})
	require.Equal(t, 20, strings.Count(err.Error(), "stored int16, program has int8"))
	require.True(t, strings.HasSuffix(err.Error(), "\nand 25 more"), err)
	require.NotContains(t, err.Error(), "n2")
}

// One error lists a lost field together with faults of whole components: one is NoPersist, one was
// renamed, and one has become a resource.
func TestConversion_ErrorListsWholeComponents(t *testing.T) {
	t.Parallel()
	before := func(w *ecs.World) {
		ecs.MustRegister(w, ecs.Component[lossUnit]{Name: "unit"})
		ecs.MustRegister(w, ecs.Component[faultBag]{Name: "bag"})
		ecs.MustRegister(w, ecs.Component[faultRules]{Name: "rules"})
		ecs.MustRegister(w, ecs.Component[faultUnit]{Name: "foe"})
	}
	after := func(w *ecs.World) {
		ecs.MustRegister(w, ecs.Component[lossBare]{Name: "unit"})
		ecs.MustRegister(w, ecs.Component[faultBag]{Name: "bag", NoPersist: true})
		ecs.MustRegister(w, ecs.Component[faultUnit]{Name: "enemy"})
		ecs.Must(ecs.RegisterResource(w, faultRules{}, ecs.Component[faultRules]{Name: "rules"}))
	}
	err := conversionError(t, before, after)
	require.ErrorIs(t, err, persist.ErrSchema)
	require.NotErrorIs(t, err, raw.ErrDropped)
	require.Equal(t, `persist: schema does not fit: layout: rows cannot be converted:
component unit: lossBare.Shield: dropped, was int32; to drop: ecs.Component[lossBare]{Name: "unit", Dropped: []string{"Shield"}}; to convert: ecs.Component[lossBare]{Name: "unit", Version: 1, Migrations: []ecs.Migration{ecs.Migrate(0, func(v oldLossBare) lossBare { … })}}
component bag: stored, but registered with NoPersist; register it without, or under another name
component enemy: nothing is stored of it, but foe, which is not registered, has its fields; if it was renamed: ecs.Component[faultUnit]{Name: "enemy", FormerNames: []string{"foe"}}; if not: ecs.Component[faultUnit]{Name: "enemy", FormerNames: []string{}}
component rules: one of stored and registered is a resource, the other a component; register it under another name`, err.Error())
}

// If several registered types are older than the stored ones, ErrNewer names all of them. It does
// not name other faults, because the program is outdated.
func TestConversion_ErrorListsNewerComponents(t *testing.T) {
	t.Parallel()
	err := conversionError(t, func(w *ecs.World) {
		ecs.MustRegister(w, ecs.Component[lossUnit]{Name: "unit", Version: 2})
		ecs.MustRegister(w, ecs.Component[faultRules]{Name: "rules"})
		ecs.MustRegister(w, ecs.Component[faultBag]{Name: "bag", Version: 1})
	}, func(w *ecs.World) {
		ecs.MustRegister(w, ecs.Component[faultBag]{Name: "bag"})
		ecs.MustRegister(w, ecs.Component[faultRulesAs]{Name: "rules"})
		ecs.MustRegister(w, ecs.Component[lossUnit]{Name: "unit"})
	})
	require.ErrorIs(t, err, persist.ErrNewer)
	require.NotErrorIs(t, err, persist.ErrSchema)
	require.True(t, strings.HasSuffix(err.Error(), ": bag has version 1, the program version 0\nunit has version 2, the program version 0"), err)
}
