// Time shows what the calls of the chapter "Time" do: points move on a plane, and leave trails. The
// actions go back in time.
//
// Usage:
//
//	time [-ticks N] [-points N]
package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/schedule"
	"github.com/stet-ecs/stet/examples/guide/play"
	"github.com/stet-ecs/stet/persist"
)

const width, height = 40, 14

var points = 3

type (
	Position struct{ X, Y int }
	Velocity struct{ X, Y int }
	Trail    struct{ End uint64 } // The tick in which the dot disappears.
	tick     = schedule.Tick[play.Keys]
)

type plane struct {
	Position *ecs.Storage[Position]
	Velocity *ecs.Storage[Velocity]
	Trail    *ecs.Storage[Trail]

	NewPoint *ecs.Bundle2[Position, Velocity]
	NewDot   *ecs.Bundle2[Position, Trail]

	Points *ecs.Query2[Position, Velocity] `ecs:"write,write"`
	Drawn  *ecs.Query2[Position, Velocity] `ecs:"read,read"` // A loop over Points is a change.
	Dots   *ecs.Query2[Position, Trail]    `ecs:"read,read"`

	world   *ecs.World
	systems *schedule.Schedule[play.Keys]
	store   *persist.Store

	checkpoint ecs.Checkpoint
	markTick   uint64
	message    string // What the last action did.
}

// open returns a plane whose store is in memory.
func open() (*plane, error) {
	p := new(plane)
	if err := ecs.Bind(ecs.NewWorld(ecs.Options{History: 600}), p); err != nil {
		panic(err) // The declaration of plane is wrong.
	}
	var err error
	p.store, err = persist.Open(context.Background(), ".", p.world, persist.Options{Files: disk.Memory()})
	return p, err
}

// Build creates the list of systems. Bind calls it.
func (p *plane) Build(w *ecs.World) error {
	p.world, p.systems = w, schedule.New[play.Keys](w)
	p.systems.Startup("begin", p.NewPoint, p.begin)
	p.systems.Add("move", schedule.Uses(p.Points, p.NewDot), p.move)
	p.systems.Add("fade", schedule.Uses(p.Dots, schedule.Creates), p.fade)
	return nil
}

func (p *plane) begin(*tick) {
	for i := range points {
		p.NewPoint.Create(Position{7 * i % width, 5 * i % height}, Velocity{1 + i%2, 1 - 2*(i/2%2)})
	}
}

// move moves the points, which bounce off the edges.
func (p *plane) move(t *tick) {
	for _, point := range p.Points.All() {
		at, v := point.Get()
		if x := at.X + v.X; x < 0 || x >= width {
			v.X = -v.X
		}
		if y := at.Y + v.Y; y < 0 || y >= height {
			v.Y = -v.Y
		}
		from := *at
		at.X, at.Y = at.X+v.X, at.Y+v.Y
		p.NewDot.Create(from, Trail{t.Number + 12})
	}
}

// fade removes old dots.
func (p *plane) fade(t *tick) {
	for e, dot := range p.Dots.All() {
		if dot.B.End <= t.Number {
			p.world.Destroy(e)
		}
	}
}

func (p *plane) step(keys play.Keys) error {
	p.systems.Step(keys)
	return p.store.Commit()
}

// did keeps the message of an action that has succeeded.
func (p *plane) did(err error, message string) error {
	if err == nil {
		p.message = message
	}
	return err
}

// release releases the checkpoint, if it is valid. A move to an earlier tick makes it invalid.
func (p *plane) release() {
	if p.checkpoint.Valid() {
		p.world.Release(p.checkpoint)
	}
}

func (p *plane) takeCheckpoint() error {
	p.release()
	p.checkpoint = p.world.Checkpoint()
	return p.did(nil, "Restore goes back to here.")
}

func (p *plane) restore() error {
	if !p.checkpoint.Valid() {
		return errors.New("there is no checkpoint")
	}
	p.world.Restore(p.checkpoint)
	return p.did(nil, "Back at the checkpoint. It can be restored again.")
}

func (p *plane) rewind() error {
	return p.did(p.world.History().Rewind(30), "Back in the history. Seek can go forward again, until the next tick.")
}

func (p *plane) mark() error {
	err := p.store.MarkLast("here")
	if err == nil {
		p.markTick = p.world.Tick()
	}
	return p.did(err, "The store has a name for this tick.")
}

// gotoMark releases the checkpoint, because Goto needs a world without one.
func (p *plane) gotoMark() error {
	p.release()
	err := p.store.Goto(context.Background(), "mark:here")
	return p.did(err, "Back at the mark. The history begins again here.")
}

func (p *plane) close() error {
	p.release()
	return p.store.Close(context.Background())
}

func (p *plane) draw() string {
	screen := []byte(strings.Repeat(strings.Repeat(" ", width)+"|\n", height))
	for _, dot := range p.Dots.All() {
		screen[dot.A.Y*(width+2)+dot.A.X] = '.'
	}
	for _, point := range p.Drawn.All() {
		screen[point.A.Y*(width+2)+point.A.X] = 'O'
	}
	history := p.world.History()
	text := fmt.Sprintf("tick %d, history %d to %d", p.world.Tick(), history.Oldest(), history.Newest())
	if p.checkpoint.Valid() {
		text += fmt.Sprintf(", checkpoint %d", p.checkpoint.Tick())
	}
	if p.markTick > 0 {
		text += fmt.Sprintf(", mark %d", p.markTick)
	}
	return string(screen) + text + "\n" + p.message + "\n"
}

func main() {
	play.Run(play.Program{
		Title:  "Time",
		Rate:   12,
		Params: []play.Param{{Name: "points", Value: &points, Min: 1, Max: 20}},
		New: func() (play.Game, error) {
			p, err := open()
			return play.Game{
				World: p.world, Tick: p.step, Draw: p.draw, Close: p.close,
				Actions: []play.Action{
					{Name: "Checkpoint", Run: p.takeCheckpoint},
					{Name: "Restore", Run: p.restore},
					{Name: "Rewind 30", Run: p.rewind},
					{Name: "Mark", Run: p.mark},
					{Name: "Goto mark", Run: p.gotoMark},
				},
			}, err
		},
	})
}
