// Package control turns the input of a player into ticks of Asteroids: it plays, rewinds, seeks,
// saves and loads. It knows no screen, so tests run it without one.
package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-ecs/stet/examples/asteroids/game"
	"github.com/stet-ecs/stet/persist"
)

// An Input is what the player does in a frame.
type Input struct {
	Buttons game.Buttons
	Rewind  bool   // The key that rewinds is held.
	Seek    bool   // The player drags the time bar.
	Tick    uint64 // The tick under the pointer, if Seek is true.
	Save    int    // The slot to save, or 0.
	Load    int    // The slot to load, or 0.
}

// A Control plays a game.
type Control struct {
	Game    *game.Game
	Message string // What the last key did, or "".

	held    int  // The number of frames for which the rewind key is held.
	waiting bool // The game waits for a button. It does so after it went to another tick.
}

// New returns a Control of a game, which waits for the first button.
func New(g *game.Game) *Control { return &Control{Game: g, waiting: true} }

// A rewind goes back by one tick a frame at first, and by maxSpeed ticks after two seconds.
const (
	maxSpeed = 8
	slower   = 15 // The number of frames until the next speed.
)

// Frame runs one frame: it goes to another tick, waits, or runs a tick.
func (c *Control) Frame(ctx context.Context, in Input) error {
	if in.Save > 0 || in.Load > 0 || in.Rewind || in.Seek {
		c.Message = ""
	}
	switch {
	case in.Rewind:
		c.held, c.waiting = c.held+1, true
		return c.Game.Rewind(uint64(c.Speed()))
	case in.Seek:
		c.waiting = true
		h := c.Game.World.History()
		return h.Seek(min(max(in.Tick, h.Oldest(), 1), h.Newest()))
	}
	c.held = 0
	switch {
	case in.Save > 0:
		if err := c.Game.Save(ctx, in.Save); err != nil {
			return err
		}
		c.Message = fmt.Sprintf("saved slot %d", in.Save)
	case in.Load > 0:
		return c.load(ctx, in.Load)
	}
	if c.waiting && in.Buttons == 0 {
		return nil
	}
	if in.Buttons != 0 {
		c.waiting, c.Message = false, ""
	}
	return c.Game.Step(in.Buttons)
}

func (c *Control) load(ctx context.Context, slot int) error {
	err := c.Game.Load(ctx, slot)
	if errors.Is(err, persist.ErrNotFound) {
		c.Message = fmt.Sprintf("slot %d is empty", slot)
		return nil
	}
	c.Message, c.waiting = fmt.Sprintf("loaded slot %d", slot), true
	return err
}

// Speed returns how many ticks a frame goes back while the rewind key is held, or 0.
func (c *Control) Speed() int {
	if c.held == 0 {
		return 0
	}
	return min(1+(c.held-1)/slower, maxSpeed)
}

// Waiting reports whether the game waits for a button.
func (c *Control) Waiting() bool { return c.waiting }

// Bar returns the oldest tick that the player can go to, the present tick and the newest one.
func (c *Control) Bar() (oldest, now, newest uint64) {
	w := c.Game.World
	return max(w.History().Oldest(), min(1, w.Tick())), w.Tick(), w.History().Newest()
}
