package control

import (
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/examples/asteroids/game"
)

// A View is what the screen shows. It is a copy, so the screen can draw it while a job has the
// world.
type View struct {
	Oldest, Now, Newest uint64 // Ticks of the line, see game.Line.
	Branches            []game.Branch
	State               game.State
	High                int32
	Playing             bool // Ticks run.
	Replaying           bool
	Watching            bool // Another program plays the game.
	Sprites             []Sprite
	Ghost               *Pose  // Where the ship was at this tick, before the player went back.
	Future              []Pose // The next positions of the ship, if the player is in the past.
}

// A Sprite is something to draw.
type Sprite struct {
	Kind     Kind
	Place    game.Position
	Velocity game.Velocity // The movement per tick.
	Index    uint32        // The index of the entity.
	Size     float64       // The radius of a rock.
	Ship     game.Ship     // Of a ship.
	Burning  bool          // Of a mite.
}

// A Kind is what a sprite shows.
type Kind uint8

// These are the kinds.
const (
	Spark Kind = iota
	Mite
	Bullet
	Rock
	Ship
)

// look fills the view from the game or the replay.
func (c *Control) look() {
	g, v := c.Game, &c.View
	if v.Replaying = c.replay != nil; v.Replaying {
		g = c.replay.game
	}
	v.Watching = g.Watched != nil
	v.Now = g.World.Tick()
	v.Oldest, v.Newest = c.Game.Line()
	v.Branches = c.Game.OtherLines()
	v.State, v.High = g.State.Get(), c.Game.High.Get().Score
	v.Playing = v.Replaying || !c.waiting
	v.Sprites = v.Sprites[:0]
	for e, row := range g.Things.AllOptional() {
		v.Sprites = append(v.Sprites, sprite(g, e, row))
	}
	c.followShip(v)
}

func sprite(g *game.Game, e ecs.Entity, row game.Thing) Sprite {
	_, ship, rock, bullet, mite, spark := row.Get()
	s := Sprite{Place: g.Place(row), Index: e.Index()}
	switch {
	case spark != nil:
		s.Velocity = spark.Velocity
		return s
	case ship != nil:
		s.Kind, s.Ship = Ship, *ship
	case rock != nil:
		s.Kind, s.Size = Rock, rock.Radius()
	case bullet != nil:
		s.Kind = Bullet
	case mite != nil:
		s.Kind, s.Burning = Mite, g.Life.Has(e)
	}
	s.Velocity, _ = g.Velocity.Get(e)
	return s
}

// A Pose is a ship at a tick.
type Pose struct {
	Place   game.Position
	Heading uint8
}

// A ghost has the former positions of the ship, by tick. Only the screen uses them: they are not
// part of the game, and are not saved.
type ghost struct {
	line map[uint64]Pose // Poses on the current line, by tick.
	left map[uint64]Pose // Poses on the branch that the player left last, by tick.
}

const (
	maxPoses  = 20 * 60 * 60 // The poses of 20 minutes.
	pathTicks = 120          // View.Future covers this number of ticks.
)

func newGhost() ghost { return ghost{map[uint64]Pose{}, map[uint64]Pose{}} }

// forget removes all poses, because the player is on another line.
func (h *ghost) forget() { *h = newGhost() }

// leave is called before a tick. If the player went back, the tick begins a new branch. Then leave
// moves the poses of the later ticks from the line to the branch that the player leaves.
func (c *Control) leave() {
	now, newest := c.View.Now, c.View.Newest
	if now >= newest {
		return
	}
	clear(c.left)
	for tick, pose := range c.line {
		if tick > now {
			c.left[tick] = pose
			delete(c.line, tick)
		}
	}
}

// followShip records the pose of the ship, and sets Ghost or Future of the view.
func (c *Control) followShip(v *View) {
	if !v.Replaying && !v.Watching {
		delete(c.line, v.Now)
		for _, s := range v.Sprites {
			if s.Kind == Ship {
				c.line[v.Now] = Pose{s.Place, s.Ship.Heading}
			}
		}
		delete(c.line, v.Now-maxPoses)
		delete(c.left, v.Now-maxPoses)
	}
	v.Ghost, v.Future = nil, v.Future[:0]
	if v.Now < v.Newest {
		for tick := v.Now + 3; tick <= min(v.Newest, v.Now+pathTicks); tick += 3 {
			if pose, ok := c.line[tick]; ok {
				v.Future = append(v.Future, pose)
			}
		}
	} else if pose, ok := c.left[v.Now]; ok {
		v.Ghost = &pose
	}
}
