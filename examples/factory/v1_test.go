package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/golden"
	"github.com/stet-ecs/stet/persist"
)

// v1File has a small factory with the components of version 1 of the program.
const v1File = "testdata/v1.save"

// These types are the components of version 1 that have changed since then.
type (
	plantV1 struct{ Name, Owner string } // The field Owner does not exist any more.
	beltV1  struct {
		Item    Item
		Arrived uint64 // Now named Since.
	}
	assemblerV1 struct { // Now named Machine, with an additional field Limit.
		Makes Item
		Stock [items]int32
	}
	chestV1 struct {
		Item  Item
		Count int32 // Now an int64.
	}
)

// A factoryV1 has the handles of version 1.
type factoryV1 struct {
	world     *ecs.World
	Plant     *ecs.Storage[plantV1]     `ecs:"Plant"`
	Belt      *ecs.Storage[beltV1]      `ecs:"Belt"`
	Assembler *ecs.Storage[assemblerV1] `ecs:"Assembler"`
	Chest     *ecs.Storage[chestV1]     `ecs:"Chest"`
	PartOf    *ecs.Storage[PartOf]
	Feeds     *ecs.Storage[Feeds]
	Broken    *ecs.Storage[Broken]
	Totals    *ecs.Resource[Totals]
}

func newFactoryV1(t *testing.T) *factoryV1 {
	t.Helper()
	f := &factoryV1{world: ecs.NewWorld(ecs.Options{})}
	require.NoError(t, ecs.Bind(f.world, f))
	return f
}

// With -update, the test writes the file: it runs today's factory, and copies each component into a
// world of version 1. Otherwise it checks that the file has everything that the other tests use.
func TestV1File_HasUsedValues(t *testing.T) {
	if *golden.Update {
		writeV1(t)
	}
	v1 := loadV1(t)
	require.Empty(t, v1.world.Raw().Converted(), "the file has the types of version 1")
	require.Equal(t, 3*98, v1.world.Len())
	counts := int32(0)
	for _, c := range v1.Chest.All() {
		counts += c.Count
	}
	require.Positive(t, counts)
	require.Positive(t, v1.Broken.Len())
	owners := map[string]bool{}
	for _, p := range v1.Plant.All() {
		owners[p.Owner] = true
	}
	require.Len(t, owners, 3)
}

func writeV1(t *testing.T) {
	t.Helper()
	o := testOptions()
	o.plants = 3
	f, v1 := newFactory(ecs.Options{}, o), newFactoryV1(t)
	f.ticks(142)
	for f.Broken.Len() == 0 || f.Chest.Values()[0].Count == 0 {
		f.ticks(1)
	}
	for _, e := range f.world.Entities() {
		require.NoError(t, v1.world.CreateAt(e))
	}
	for e, p := range f.Plant.All() {
		v1.Plant.Set(e, plantV1{p.Name, "owner of " + p.Name})
	}
	for e, b := range f.Belt.All() {
		v1.Belt.Set(e, beltV1{b.Item, b.Since})
	}
	for e, m := range f.Machine.All() {
		require.EqualValues(t, limit, m.Limit)
		v1.Assembler.Set(e, assemblerV1{m.Makes, m.Stock})
	}
	for e, c := range f.Chest.All() {
		v1.Chest.Set(e, chestV1{c.Item, int32(c.Count)})
	}
	for e, p := range f.PartOf.All() {
		v1.PartOf.Set(e, p)
	}
	for e, to := range f.Feeds.All() {
		v1.Feeds.Set(e, to)
	}
	for e, b := range f.Broken.All() {
		v1.Broken.Set(e, b)
	}
	v1.Totals.Set(f.Totals.Get())
	for v1.world.Tick() < f.world.Tick() {
		v1.world.Commit()
	}
	require.NoError(t, persist.Save(t.Context(), v1File, v1.world, persist.FileOptions{Compress: true}))
}

func loadV1(t *testing.T) *factoryV1 {
	t.Helper()
	v1 := newFactoryV1(t)
	require.NoError(t, persist.Load(t.Context(), v1File, v1.world))
	return v1
}

func TestLoad_ValuesOfVersion1(t *testing.T) {
	v1, f := loadV1(t), newFactory(ecs.Options{}, testOptions())
	require.NoError(t, persist.Load(t.Context(), v1File, f.world))
	require.Equal(t, v1.world.Tick(), f.world.Tick())
	require.Equal(t, v1.world.Entities(), f.world.Entities())

	require.Equal(t, v1.Plant.Entities(), f.Plant.Entities())
	for e, p := range v1.Plant.All() {
		got, _ := f.Plant.Get(e)
		require.Equal(t, Plant{p.Name}, got)
	}
	require.Equal(t, v1.Belt.Entities(), f.Belt.Entities())
	for e, b := range v1.Belt.All() {
		got, _ := f.Belt.Get(e)
		require.Equal(t, Belt{Item: b.Item, Since: b.Arrived}, got)
	}
	require.Equal(t, v1.Assembler.Entities(), f.Machine.Entities())
	for e, a := range v1.Assembler.All() {
		got, _ := f.Machine.Get(e)
		require.Equal(t, Machine{Makes: a.Makes, Limit: 4, Stock: a.Stock}, got)
	}
	require.Equal(t, v1.Chest.Entities(), f.Chest.Entities())
	for e, c := range v1.Chest.All() {
		got, _ := f.Chest.Get(e)
		require.Equal(t, Chest{Item: c.Item, Count: int64(c.Count)}, got)
	}
	require.Equal(t, v1.PartOf.Entities(), f.PartOf.Entities())
	require.Equal(t, v1.PartOf.Values(), f.PartOf.Values())
	require.Equal(t, v1.Feeds.Entities(), f.Feeds.Entities())
	require.Equal(t, v1.Feeds.Values(), f.Feeds.Values())
	require.Equal(t, v1.Broken.Entities(), f.Broken.Entities())
	require.Equal(t, v1.Broken.Values(), f.Broken.Values())
	require.Equal(t, v1.Totals.Get(), f.Totals.Get())

	dropped := ""
	for _, c := range f.world.Raw().Converted() {
		if c.Dropped() {
			dropped += c.Name
		}
	}
	require.Equal(t, "Plant", dropped, "only the owners are lost")
}

// A loaded factory of version 1 runs, and keeps its items.
func TestLoad_RunsVersion1(t *testing.T) {
	f := newFactory(ecs.Options{}, testOptions())
	require.NoError(t, persist.Load(t.Context(), v1File, f.world))
	f.requireBalance(t)
	made := f.Totals.Get().Made
	for range 300 {
		f.ticks(1)
		f.requireBalance(t)
	}
	require.Greater(t, f.Totals.Get().Made[Motor], made[Motor])
	require.Equal(t, 3*98, f.world.Len())

	o := testOptions()
	o.load, o.ticks = v1File, f.world.Tick()
	require.Equal(t, f.world.Digest().String(), lastDigest(t, output(t, o)))
}
