// Package game has the rules of Asteroids, and keeps the game in a store. It has neither a screen
// nor a clock. A program calls Step for each tick, and draws the entities of the query Things.
package game

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/schedule"
	"github.com/stet-ecs/stet/persist"
)

// history is the number of ticks that a player can rewind: 20 seconds.
const history = 20 * 60

// These types are the components.

type (
	// A Position is a point of the world, which wraps around.
	Position struct{ X, Y float64 }
	// A Velocity is added to the position in each tick.
	Velocity struct{ X, Y float64 }
	// A Ship is what the player steers. Cooldown and Shield are numbers of ticks.
	Ship struct {
		Heading, Cooldown, Shield uint8
		Thrust                    bool
	}
	// A Rock splits when it is hit. A new rock has size 3.
	Rock struct{ Size uint8 }
	// A Bullet marks an entity that a ship has fired.
	Bullet struct{}
	// A Mite marks an entity of a swarm that chases the ship.
	Mite struct{}
	// A Life is the number of ticks after which the entity is destroyed. A mite with a Life burns.
	Life struct{ Ticks uint8 }
	// A Spark flies in a straight line from the tick Born until the tick End. The Position of the
	// entity is where it started. Each frame computes the current position from these values, so
	// flying sparks add nothing to the history and the journal.
	Spark struct {
		Velocity  Velocity
		Born, End uint32
	}
)

// A Sound is an event that players hear. A rewind plays no sound, because it runs no tick.
type Sound uint8

// These are the sounds.
const (
	Shot Sound = iota
	Burst
	Split
	Crash
	NextWave
)

// State is a resource. Wait is the number of ticks until a lost ship is replaced.
type State struct{ Score, Lives, Wave, Wait int32 }

// High is a resource with the highest score. It is not restored by a rewind or a loaded slot.
type High struct{ Score int32 }

// A Game has the handles of a world, and the systems that change it. The whole state of the game is
// in the world.
type Game struct {
	Position *ecs.Storage[Position]
	Velocity *ecs.Storage[Velocity]
	Ship     *ecs.Storage[Ship]
	Rock     *ecs.Storage[Rock]
	Bullet   *ecs.Storage[Bullet]
	Mite     *ecs.Storage[Mite]
	Life     *ecs.Storage[Life]
	Spark    *ecs.Storage[Spark]
	State    *ecs.Resource[State]
	High     *ecs.Resource[High]     `ecs:",norewind"`
	Branches *ecs.Resource[Branches] `ecs:",norewind"`
	Sounds   *ecs.Events[Sound]

	Moving  *ecs.Query2[Position, Velocity]       `ecs:"write,read"`
	Ships   *ecs.Query3[Position, Velocity, Ship] `ecs:"read,write,write"`
	Rocks   *ecs.Query3[Position, Velocity, Rock] `ecs:"read,read,read"`
	Bullets *ecs.Query2[Position, Bullet]         `ecs:"read,read"`
	Mites   *ecs.Query3[Position, Velocity, Mite] `ecs:"read,read,read"`
	Timed   *ecs.Query1[Life]                     `ecs:"write"`
	Sparks  *ecs.Query1[Spark]                    `ecs:"read"`

	// Things finds everything that is visible.
	Things *ecs.Query6[Position, Ship, Rock, Bullet, Mite, Spark] `ecs:"read,read?,read?,read?,read?,read?"`

	NewShip   *ecs.Bundle3[Position, Velocity, Ship]
	NewRock   *ecs.Bundle3[Position, Velocity, Rock]
	NewBullet *ecs.Bundle4[Position, Velocity, Bullet, Life]
	NewMite   *ecs.Bundle3[Position, Velocity, Mite]
	NewSpark  *ecs.Bundle2[Position, Spark]

	World   *ecs.World
	Store   *persist.Store    // Nil in a replay, and in a program that watches.
	Watched *persist.Follower // The game of another program that this program shows, or nil.
	Dir     string            // The directory of the store.
	Files   disk.FS           // The file system of Dir. Nil means the operating system's.
	Systems *schedule.Schedule[Buttons]

	Snapshots chan persist.SnapshotResult // Receives the results of BeginSave.

	grid grid
	line line
	left []Branch // New branches. The method fork moves them to the resource.
}

// A Thing is a row of the query Things.
type Thing = ecs.Row6[Position, Ship, Rock, Bullet, Mite, Spark]

// Place returns the current position of a thing.
func (g *Game) Place(thing Thing) Position {
	at, _, _, _, _, spark := thing.Get()
	if spark != nil {
		return at.plus(spark.Velocity, float64(uint32(g.World.Tick())-spark.Born))
	}
	return *at
}

// tick is the argument of a system.
type tick = schedule.Tick[Buttons]

// New returns a game without a store, for replays and tests.
func New() *Game {
	g := new(Game)
	if err := ecs.Bind(ecs.NewWorld(ecs.Options{History: history}), g); err != nil {
		panic(err) // The declaration of Game is wrong.
	}
	return g
}

// Open continues the game in dir, or begins a new one. Ticks of an earlier run can be rewound too.
// If files is nil, dir is a directory of the operating system.
func Open(ctx context.Context, dir string, files disk.FS) (g *Game, err error) {
	g = New()
	g.Dir, g.Files = dir, files
	results := make(chan persist.SnapshotResult, 16)
	g.Store, err = persist.Open(ctx, dir, g.World, persist.Options{
		History: history, Files: files, Retain: persist.Retention{Bytes: 256 << 20},
		OnSnapshot: func(r persist.SnapshotResult) {
			if r.Slot != "" {
				select {
				case results <- r:
				default: // Drop the result if the channel is full.
				}
			}
		},
	})
	g.Snapshots, g.line = results, line{g.World.Tick(), g.World.Raw().Seq(), g.Branches.Get().Start}
	return g, err
}

// Watch shows the game that another program plays in dir. Watched.Advance brings it to the newest
// tick.
func Watch(ctx context.Context, dir string, files disk.FS) (g *Game, err error) {
	g = New()
	g.Watched, err = persist.Follow(ctx, dir, g.World, persist.FileOptions{Files: files})
	return g, err
}

// Build creates the list of systems. Bind calls it.
func (g *Game) Build(w *ecs.World) error {
	g.World, g.Systems = w, schedule.New[Buttons](w)
	uses := schedule.Uses
	all := uses(g.NewShip, g.NewRock, g.NewBullet, g.NewMite, g.NewSpark, g.Life, g.State, g.Sounds)
	g.Systems.Startup("begin", all, g.begin)
	g.Systems.Add("restart", all, g.begin).If(g.wantsRestart)
	g.Systems.Add("steer", uses(g.Ships, g.NewSpark), g.steer)
	g.Systems.Add("fire", uses(g.Ships, g.NewBullet, g.Sounds, schedule.Reads(g.State)), g.fire)
	g.Systems.Add("chase", uses(g.Mites, schedule.Reads(g.Ships), ecs.Write(g.Velocity)), g.chase)
	g.Systems.Add("move", g.Moving, g.move)
	g.Systems.Add("fade", uses(g.Sparks, schedule.Creates), g.fade)
	g.Systems.Add("expire", all, g.expire)
	g.Systems.Add("hit", all, g.hit)
	g.Systems.Add("crash", all, g.crash)
	g.Systems.Add("launch", all, g.launch)
	g.Systems.Add("wave", all, g.wave)
	g.Systems.Add("record", uses(schedule.Reads(g.State), g.High), g.record)
	return nil
}

// Step runs a tick. It records the buttons, so that a replay can run the same tick again. If the
// store fails, the tick runs in memory, and Step returns the error.
func (g *Game) Step(b Buttons) error {
	err := g.Store.Input("buttons", []byte{byte(b)})
	g.fork()
	g.Systems.Step(b)
	err = errors.Join(err, g.Store.Commit())
	g.line.newest, g.line.record = g.World.Tick(), g.World.Raw().Seq()
	return err
}

// Resume saves the present state after a failure of the store, and waits for the disk.
func (g *Game) Resume(ctx context.Context) error {
	err := g.Store.Resume(ctx)
	g.line.record = g.World.Raw().Seq()
	return err
}

// Close closes the store. If the player quits after a rewind or Load, Close also saves the high
// score and the branches.
func (g *Game) Close(ctx context.Context) error {
	if g.Watched != nil {
		return g.Watched.Close()
	}
	g.fork()
	return g.Store.Close(ctx)
}

// Rewind goes back by up to n ticks, but not before the first tick. The next Step continues from
// there, on a new branch.
func (g *Game) Rewind(n uint64) error {
	now, history := g.World.Tick(), g.World.History()
	return history.Seek(max(now-min(n, now), history.Oldest(), min(now, 1)))
}

// Save saves the game in a slot, and waits for the disk. The note describes the game in the list of
// slots.
func (g *Game) Save(ctx context.Context, slot int) error {
	_, err := g.Store.SaveSlot(ctx, slotName(slot), g.note())
	return err
}

// BeginSave saves the next tick in a slot, and does not wait. Snapshots receives the result.
func (g *Game) BeginSave(slot int) error { return g.Store.BeginSlot(slotName(slot), g.note()) }

func (g *Game) note() string {
	s := g.State.Get()
	return fmt.Sprintf("score %d, wave %d", s.Score, s.Wave)
}

// Load goes to the game in a slot.
func (g *Game) Load(ctx context.Context, slot int) error {
	return g.leave(func() error { return g.Store.LoadSlot(ctx, slotName(slot)) })
}

func slotName(slot int) string { return fmt.Sprintf("slot %d", slot) }
