package persist_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/golden"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// Under testdata/evolution-1 are a store and a save with these types. They were written before
// types could change, see the README there. They are never rewritten.
const (
	olderStore = "testdata/evolution-1/store"
	olderSave  = "testdata/evolution-1/save"
)

// The types of the program that wrote the files.
type (
	olderUnit struct {
		HP    int16
		Level uint8
		Speed float32
		Old   uint16
		Team  int32
	}
	olderPack struct {
		Name  string
		Codes []uint8
		Stock map[int16]olderItem
		Slots [2]int32
		Best  *olderItem
	}
	olderItem struct {
		Count uint8
		Worn  bool
	}
	olderArmor  struct{ Points int16 }
	olderHealth struct{ HP int32 }
	olderHeat   struct{ Degrees int32 }
	olderRules  struct {
		Name  string
		Limit uint16
	}
)

// A shallow copy is enough, because the tests change no value in place.
func cloneOlderPack(p olderPack) olderPack { return p }

// olderWorld is a world of the older program.
type olderWorld struct {
	*ecs.World
	unit   *ecs.Storage[olderUnit]
	pack   *ecs.Storage[olderPack]
	armor  *ecs.Storage[olderArmor]
	health *ecs.Storage[olderHealth]
	heat   *ecs.Storage[olderHeat]
	rules  *ecs.Resource[olderRules]
}

func newOlderWorld() *olderWorld {
	w := ecs.NewWorld(ecs.Options{History: 4})
	return &olderWorld{
		World:  w,
		unit:   ecs.MustRegister(w, ecs.Component[olderUnit]{Name: "unit"}),
		pack:   ecs.MustRegister(w, ecs.Component[olderPack]{Name: "pack", Clone: cloneOlderPack}),
		armor:  ecs.MustRegister(w, ecs.Component[olderArmor]{Name: "armor", Kind: ecs.Indexed, Default: olderArmor{5}}),
		health: ecs.MustRegister(w, ecs.Component[olderHealth]{Name: "health"}),
		heat:   ecs.MustRegister(w, ecs.Component[olderHeat]{Name: "heat", NoRewind: true}),
		rules:  ecs.Must(ecs.RegisterResource(w, olderRules{"fair", 9}, ecs.Component[olderRules]{Name: "rules"})),
	}
}

// play creates five entities and destroys the second at the end.
func (w *olderWorld) play(commit func()) {
	var made []ecs.Entity
	for i := range 5 {
		e := w.Create()
		made = append(made, e)
		w.unit.Set(e, olderUnit{int16(-100 * i), uint8(250 + i), float32(i) / 2, uint16(i), int32(i)})
		w.health.Set(e, olderHealth{int32(10 * i)})
		if i%2 == 0 {
			w.armor.Set(e, olderArmor{int16(i)})
			w.heat.Set(e, olderHeat{int32(-i)})
		}
		commit()
	}
	w.pack.Set(made[2], olderPack{
		"sack", []uint8{0, 255}, map[int16]olderItem{-1: {1, true}, 300: {255, false}}, [2]int32{7, -8}, &olderItem{3, true},
	})
	w.pack.Set(made[4], olderPack{})
	*w.rules.Mut() = olderRules{"hard", 65535}
	commit()
	w.Destroy(made[1])
	commit()
}

func writeOlder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newOlderWorld()
	s, err := persist.Open(storetest.Background, dir, w.World, persist.Options{SnapshotBytes: -1})
	require.NoError(t, err)
	n := 0
	w.play(func() {
		require.NoError(t, s.Commit())
		if n++; n == 4 {
			_, err := s.Snapshot(storetest.Background)
			require.NoError(t, err)
		}
	})
	require.NoError(t, persist.Save(storetest.Background, olderSave, w.World))
	storetest.CloseStore(t, s)
	tree := storetest.ReadTree(t, dir)
	delete(tree, "LOCK")
	storetest.WriteTree(t, olderStore, tree)
}

// The types of the present program.
type (
	newerUnit struct {
		Team  int64
		Life  int32 `stet:",was=Health,was=HP"`
		Mana  int32
		Speed float64
		Rank  int16 `stet:"Level"`
	}
	newerPack struct {
		Name  string
		Codes []uint16
		Stock map[int32]newerItem
		Slots [3]int64
		Best  *newerItem
	}
	newerItem struct {
		Worn  bool
		Count uint16
	}
	newerArmor    struct{ Points int32 }
	newerVitality struct{ HP int64 }
	newerHeat     struct{ Degrees float64 }
	rulesOne      struct{ Name, Limit string }
	newerRules    struct{ Text string }
)

// newerWorld is a world of the present program.
type newerWorld struct {
	*ecs.World
	unit     *ecs.Storage[newerUnit]
	pack     *ecs.Storage[newerPack]
	armor    *ecs.Storage[newerArmor]
	vitality *ecs.Storage[newerVitality]
	heat     *ecs.Storage[newerHeat]
	rules    *ecs.Resource[newerRules]
}

func newNewerWorld() *newerWorld {
	w := ecs.NewWorld(ecs.Options{History: 4})
	return &newerWorld{
		World:    w,
		unit:     ecs.MustRegister(w, ecs.Component[newerUnit]{Name: "unit", Dropped: []string{"Old"}}),
		pack:     ecs.MustRegister(w, ecs.Component[newerPack]{Name: "pack", Clone: func(p newerPack) newerPack { return p }}),
		armor:    ecs.MustRegister(w, ecs.Component[newerArmor]{Name: "armor", Kind: ecs.Indexed, Default: newerArmor{9}}),
		vitality: ecs.MustRegister(w, ecs.Component[newerVitality]{Name: "vitality", FormerNames: []string{"life", "health"}}),
		heat:     ecs.MustRegister(w, ecs.Component[newerHeat]{Name: "heat", Kind: ecs.Indexed}),
		rules: ecs.Must(ecs.RegisterResource(w, newerRules{"none"}, ecs.Component[newerRules]{Name: "rules", Version: 2, Migrations: []ecs.Migration{
			ecs.Migrate(0, func(r olderRules) rulesOne { return rulesOne{r.Name, strconv.Itoa(int(r.Limit))} }),
			ecs.Migrate(1, func(v layout.Value) newerRules {
				name, _ := v.Field("Name")
				limit, _ := v.Field("Limit")
				return newerRules{name.Text() + " " + limit.Text()}
			}),
		}})),
	}
}

// check compares w with the state that olderWorld.play left.
func (w *newerWorld) check(t *testing.T) {
	t.Helper()
	require.Equal(t, 4, w.Len())
	for _, e := range w.Entities() {
		i := int(e.Index())
		u, _ := w.unit.Get(e)
		require.Equal(t, newerUnit{int64(i), int32(-100 * i), 0, float64(i) / 2, int16(250 + i)}, u)
		v, _ := w.vitality.Get(e)
		require.Equal(t, newerVitality{int64(10 * i)}, v)
		a, _ := w.armor.Get(e)
		h, has := w.heat.Get(e)
		require.Equal(t, i%2 == 0, has)
		if has {
			require.Equal(t, newerArmor{int32(i)}, a)
			require.Equal(t, newerHeat{float64(-i)}, h)
		}
	}
	require.Equal(t, newerArmor{9}, w.armor.Values()[1], "a gap has the new default")
	require.Equal(t, []newerPack{
		{"sack", []uint16{0, 255}, map[int32]newerItem{-1: {true, 1}, 300: {false, 255}}, [3]int64{7, -8, 0}, &newerItem{true, 3}},
		{},
	}, w.pack.Values())
	require.Equal(t, newerRules{"hard 65535"}, w.rules.Get())
}

// converted is the expected text of the reported conversions.
const converted = `unit: newerUnit.Life: was HP
unit: newerUnit.Team: int32 became int64
unit: newerUnit.Life: int16 became int32
unit: newerUnit.Mana: added, zero
unit: newerUnit.Speed: float32 became float64
unit: newerUnit.Level: uint8 became int16
unit: newerUnit.Old: dropped, was uint16
unit: newerUnit: fields in another order
pack: newerPack.Codes: bytes became []uint16
pack: newerPack.Stock[key]: int16 became int32
pack: newerPack.Stock[value].Count: uint8 became uint16
pack: newerPack.Stock[value]: fields in another order
pack: newerPack.Slots: 2 elements became 3, the new ones zero
pack: newerPack.Slots[]: int32 became int64
pack: newerPack.Best.Count: uint8 became uint16
pack: newerPack.Best: fields in another order
armor: newerArmor.Points: int16 became int32
vitality: was health
vitality: newerVitality.HP: int32 became int64
heat: newerHeat.Degrees: int32 became float64
heat: became Indexed
rules: migrated from version 0 to 1
rules: migrated from version 1 to 2
`

func told(conversions []raw.Conversion) string {
	text := ""
	for _, c := range conversions {
		text += c.String() + "\n"
	}
	return text
}

func olderCopy(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "store")
	storetest.WriteTree(t, dir, storetest.ReadTree(t, olderStore))
	return dir
}

func openNewer(t *testing.T, dir string) (*newerWorld, *persist.Store) {
	t.Helper()
	w := newNewerWorld()
	s, err := persist.Open(storetest.Background, dir, w.World, persist.Options{SnapshotBytes: -1})
	require.NoError(t, err)
	return w, s
}

func TestOpen_StoreOfOlderTypes(t *testing.T) {
	if _, err := os.Stat(olderStore); *golden.Update && os.IsNotExist(err) {
		require.NoError(t, os.MkdirAll(filepath.Dir(olderStore), 0o700))
		writeOlder(t)
	}
	// Two directories, two snapshots, a segment.
	require.Len(t, storetest.ReadTree(t, olderStore), 5)
}

func TestConversion_LoadOlderSave(t *testing.T) {
	w := newNewerWorld()
	require.NoError(t, persist.Load(storetest.Background, olderSave, w.World))
	w.check(t)
	require.Equal(t, converted, told(w.Raw().Converted()))
	require.True(t, w.Raw().Converted()[0].Dropped())
	require.False(t, w.Raw().Converted()[1].Dropped())

	file := filepath.Join(t.TempDir(), "save")
	require.NoError(t, persist.Save(storetest.Background, file, w.World))
	again := newNewerWorld()
	require.NoError(t, persist.Load(storetest.Background, file, again.World))
	again.check(t)
	require.Nil(t, again.Raw().Converted())
	require.Equal(t, w.Digest(), again.Digest())

	older := newOlderWorld()
	err := persist.Load(storetest.Background, file, older.World)
	require.ErrorIs(t, err, persist.ErrNewer)
	require.ErrorContains(t, err, "rules has version 2")

	unknown := ecs.NewWorld(ecs.Options{}) // An unregistered component keeps its version.
	require.NoError(t, persist.Load(storetest.Background, file, unknown))
	require.NoError(t, persist.Save(storetest.Background, file, unknown))
	again = newNewerWorld()
	require.NoError(t, persist.Load(storetest.Background, file, again.World))
	again.check(t)
}

func TestConversion_StoreConvertedOnce(t *testing.T) {
	dir := olderCopy(t)
	before := storetest.ReadTree(t, dir)
	w, s := openNewer(t, dir)
	w.check(t)
	want := strings.Replace(converted, "became Indexed\n", "became Indexed\nheat: rewinds now\n", 1)
	require.Equal(t, want, told(s.Report().Converted))
	require.Contains(t, s.Report().String(), "converted: unit: newerUnit.Old: dropped")
	head := w.Raw().Seq()
	crashed := storetest.CopyDir(t, dir) // A copy from before the first commit.
	digest := w.Digest()
	e := w.Entities()[0]
	w.unit.Set(e, newerUnit{Team: 77})
	require.NoError(t, s.Commit())
	after := w.Digest()
	_, err := s.Snapshot(storetest.Background)
	require.NoError(t, err)
	w.heat.Set(e, newerHeat{0.5})
	require.NoError(t, s.Commit())
	last := w.Digest()
	storetest.CloseStore(t, s)
	tree := storetest.ReadTree(t, dir)
	for name, content := range before {
		require.Equal(t, content, tree[name], "%s was changed", name)
	}

	w, s = openNewer(t, crashed)
	w.check(t)
	require.Nil(t, s.Report().Converted)
	require.Equal(t, digest, w.Digest())
	storetest.CloseStore(t, s)
	storetest.Verified(t, crashed)

	v := storetest.Verified(t, dir)
	for seq, want := range map[uint64]ecs.Digest{head: digest, head + 1: after, head + 2: last} {
		im, err := v.At(storetest.Background, seq)
		require.NoError(t, err)
		require.Equal(t, want, im.Digest(), "record %d", seq)
	}
	im, err := v.At(storetest.Background, head-1) // The state in the types it was stored with.
	require.NoError(t, err)
	require.Equal(t, "olderUnit", im.Find("unit").Layout.Name)
	require.Nil(t, im.Find("vitality"))

	w, s = openNewer(t, dir)
	require.Nil(t, s.Report().Converted)
	require.Equal(t, last, w.Digest())
	storetest.CloseStore(t, s)
	storetest.Verified(t, dir)
}

func TestConversion_OlderProgramRefused(t *testing.T) {
	type (
		one   struct{ A, B int32 }
		two   struct{ A int32 }
		three struct{ A, B int32 }
		text  struct{ Of string }
	)
	dir := filepath.Join(t.TempDir(), "store")
	try := func(p program) (*persist.Store, error) {
		return persist.Open(storetest.Background, dir, p.world(), persist.Options{})
	}
	must := func(p program) *persist.Store {
		s, err := try(p)
		require.NoError(t, err)
		storetest.CloseStore(t, s)
		return s
	}
	must(component(ecs.Component[one]{Name: "it"}))
	require.Len(t, must(component(ecs.Component[two]{Name: "it", Dropped: []string{"B"}})).Report().Converted, 1)
	_, err := try(component(ecs.Component[one]{Name: "it"}))
	require.ErrorIs(t, err, persist.ErrNewer)
	require.ErrorContains(t, err, "B: stored none, program has int32")
	require.ErrorContains(t, err, "give it the version 1")
	require.Len(t, must(component(ecs.Component[three]{Name: "it", Version: 1})).Report().Converted, 1)
	require.Empty(t, must(component(ecs.Component[one]{Name: "it", Version: 1})).Report().Converted)
	_, err = try(component(ecs.Component[two]{Name: "it"}))
	require.ErrorIs(t, err, persist.ErrNewer)
	must(component(ecs.Component[one]{Name: "that", FormerNames: []string{"it"}, Version: 1}))
	_, err = try(component(ecs.Component[one]{Name: "it", Version: 1}))
	require.ErrorIs(t, err, persist.ErrNewer)
	require.ErrorContains(t, err, "it became that")
	must(func(w *ecs.World) { // The former name can be used again.
		component(ecs.Component[one]{Name: "that", Version: 1})(w)
		component(ecs.Component[text]{Name: "it"})(w)
	})
	storetest.Verified(t, dir)
}

// The process crashes after the conversion has created the new journal segment, but before the
// converted snapshot gets its name. Both the old and the new program can then open the store.
func TestConversion_InterruptedByCrash(t *testing.T) {
	const snapshot = "snapshots/00000003.snap"
	dir := olderCopy(t)
	w, s := openNewer(t, dir)
	cut := storetest.CopyDir(t, dir)
	require.NoError(t, os.Remove(filepath.Join(cut, snapshot)))
	w.unit.Set(w.Entities()[0], newerUnit{})
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)

	other := storetest.CopyDir(t, cut)
	older := newOlderWorld()
	s, err := persist.Open(storetest.Background, other, older.World, persist.Options{})
	require.NoError(t, err)
	older.unit.Set(older.Entities()[0], olderUnit{HP: 1})
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)
	storetest.Verified(t, other)
	w, s = openNewer(t, other) // Open converts the state of the last commit.
	require.NotEmpty(t, s.Report().Converted)
	u, _ := w.unit.Get(w.Entities()[0])
	require.Equal(t, newerUnit{Life: 1}, u)
	storetest.CloseStore(t, s)
	storetest.Verified(t, other)

	w, s = openNewer(t, cut)
	require.NotEmpty(t, s.Report().Converted)
	w.check(t)
	storetest.CloseStore(t, s)
	storetest.Verified(t, cut)

	// Ticks of the new types never continue the old state, even if the converted snapshot is lost.
	require.NoError(t, os.WriteFile(filepath.Join(dir, snapshot), []byte("lost"), 0o600))
	_, err = persist.Open(storetest.Background, dir, newNewerWorld().World, persist.Options{})
	require.ErrorIs(t, err, persist.ErrCorrupt)
	require.ErrorContains(t, err, snapshot)
	require.NoError(t, os.Remove(filepath.Join(dir, snapshot)))
	_, err = persist.Open(storetest.Background, dir, newNewerWorld().World, persist.Options{})
	require.Error(t, err)
}
