package main

import (
	"io"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/schedule"
)

// An Item is a kind of goods. A plant makes motors of iron and copper.
type Item uint8

const (
	None Item = iota
	Iron
	Copper
	Plate
	Wire
	Gear
	Motor
	items // The number of kinds.
)

func (i Item) String() string {
	return [items]string{"none", "iron", "copper", "plate", "wire", "gear", "motor"}[i]
}

// A recipe has the input of a machine and the number of products per run. Machines without input
// are miners. All other machines are assemblers.
type recipe struct {
	needs [items]int32
	yield int32
}

var recipes = [items]recipe{
	Iron:   {yield: 1},
	Copper: {yield: 1},
	Plate:  {[items]int32{Iron: 2}, 1},
	Wire:   {[items]int32{Copper: 1}, 2},
	Gear:   {[items]int32{Plate: 2}, 1},
	Motor:  {[items]int32{Gear: 2, Wire: 3}, 1},
}

const (
	limit   = 4  // The field Limit of a new machine.
	beltLen = 15 // The number of belts from one machine to the next.
)

// These types are the components. The file testdata/v1.save has earlier versions of them.
type (
	Plant  struct{ Name string }
	PartOf struct{ Plant ecs.Entity } // A part is destroyed with its plant.
	Feeds  struct{ To ecs.Entity }    // The receiver of the items of a belt or a machine.

	Belt struct {
		Item  Item
		Since uint64 `stet:",was=Arrived"` // The tick in which the item arrived.
	}
	Machine struct {
		Makes Item
		Limit int32 // The maximum stock of each item, in portions of the recipe.
		Stock [items]int32
	}
	Chest struct {
		Item  Item
		Count int64
	}
	Broken struct{ Until uint64 }
)

// These types are the events.
type (
	Produced struct {
		Machine ecs.Entity
		Item    Item
	}
	Break struct{ Machine ecs.Entity }
	Built struct{ Plant ecs.Entity }
)

// Totals is a resource that counts items since the start of the factory. Made minus Used, Shipped
// and Lost is the number of items on belts, in machines and in chests.
type Totals struct {
	Made, Used, Shipped, Lost [items]int64
	Recent                    [items]int64 // Made since the last report.
	Breaks, Built             int64
}

// A factory has the handles of a world, and the systems that change it. Its whole state is in the
// world. Bind fills the exported fields, and then calls Build.
type factory struct {
	Plant   *ecs.Storage[Plant]
	PartOf  *ecs.Storage[PartOf]
	Feeds   *ecs.Storage[Feeds]
	Belt    *ecs.Storage[Belt]
	Machine *ecs.Storage[Machine]
	Chest   *ecs.Storage[Chest]
	Broken  *ecs.Storage[Broken]
	Totals  *ecs.Resource[Totals]

	Produced *ecs.Events[Produced]
	Break    *ecs.Events[Break]
	Built    *ecs.Events[Built]

	NewBelt    *ecs.Bundle3[PartOf, Feeds, Belt]
	NewMachine *ecs.Bundle3[PartOf, Feeds, Machine]
	NewChest   *ecs.Bundle2[PartOf, Chest]
	Carrying   *ecs.Query2[Belt, Feeds]    `ecs:"read,read"`
	Unloading  *ecs.Query2[Machine, Feeds] `ecs:"read,read"`

	options  options
	world    *ecs.World
	parts    *ecs.Relation[PartOf]
	feeders  *ecs.Relation[Feeds]
	working  *ecs.Query1[Machine]
	produced *ecs.EventReader[Produced]
	breaks   *ecs.EventReader[Break]
	built    *ecs.EventReader[Built]
	systems  *schedule.Schedule[struct{}]
}

// newFactory returns a factory with an empty world. It registers two components before Bind,
// because struct tags cannot declare how they load old saves.
func newFactory(world ecs.Options, o options) *factory {
	w := ecs.NewWorld(world)
	f := &factory{world: w, options: o}
	f.Plant = ecs.MustRegister(w, ecs.Component[Plant]{Dropped: []string{"Owner"}})
	f.Machine = ecs.MustRegister(w, ecs.Component[Machine]{
		FormerNames: []string{"Assembler"},
		Version:     1, // In version 0, the limit was a constant.
		Migrations:  []ecs.Migration{ecs.Migrate(0, func(m Machine) Machine { m.Limit = limit; return m })},
	})
	if err := ecs.Bind(w, f); err != nil {
		panic(err) // The declaration of factory is wrong.
	}
	return f
}

// Build creates everything that needs the handles: relations, queries with filters, readers and the
// systems.
func (f *factory) Build(w *ecs.World) error {
	f.parts = ecs.NewRelation(f.PartOf, func(p PartOf) ecs.Entity { return p.Plant }, ecs.RelationOptions{Policy: ecs.Cascade})
	f.feeders = ecs.NewRelation(f.Feeds, func(f Feeds) ecs.Entity { return f.To }, ecs.RelationOptions{Policy: ecs.Detach, Tree: true})
	f.working = ecs.NewQuery1(ecs.Write(f.Machine)).Without(f.Broken)
	f.produced = ecs.Must(f.Produced.Reader("count"))
	f.breaks = ecs.Must(f.Break.Reader("count"))
	f.built = ecs.Must(f.Built.Reader("count"))

	uses, build := schedule.Uses, schedule.Uses(f.Plant, f.NewBelt, f.NewMachine, f.NewChest, f.Built)
	values := uses(ecs.Write(f.Belt), ecs.Write(f.Machine), ecs.Write(f.Chest))
	s := schedule.New[struct{}](w).Workers(f.options.workers)
	s.Startup("found", build, f.found)
	s.Add("produce", uses(f.working, f.Produced), f.produce)
	s.Add("ship", uses(ecs.Write(f.Chest), f.Totals), f.ship).Every(50)
	s.Add("carry", uses(f.Carrying, f.Unloading, values), f.carry)
	s.Add("wear", uses(ecs.Read(f.Machine), f.Broken, f.Break), f.wear).Every(10)
	s.Add("renew", uses(build, f.parts, values, f.Totals), f.renew).Every(100)
	s.Add("count", uses(f.produced, f.breaks, f.built, f.Totals), f.count)
	s.Add("report", uses(ecs.Read(f.Machine), f.feeders, f.Plant, f.Broken, f.Totals), f.report).Every(f.options.report)
	f.systems = s
	return nil
}

// tick is the argument of a system.
type tick = schedule.Tick[struct{}]

// options are the flags of the program.
type options struct {
	dir, load, save        string
	ticks, report          uint64
	plants, workers, every int
	explain                bool
	out                    io.Writer
}
