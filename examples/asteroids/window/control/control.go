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
	Message string // What the last key did, for two seconds, or "".

	shown   int  // The number of frames for which Message is still shown.
	failing int  // The number of frames in which ticks could not be saved.
	held    int  // The number of frames for which the rewind key is held.
	waiting bool // The game waits for a button. It does so after it went to another tick.
}

// New returns a Control of a game, which waits for the first button.
func New(g *game.Game) *Control { return &Control{Game: g, waiting: true} }

// A rewind goes back by one tick a frame at first, and by maxSpeed ticks after two seconds.
const (
	maxSpeed = 8
	slower   = 15 // The number of frames until the next speed.

	messageTime = 120 // Frames.
	retryTime   = 300 // The number of frames until the store tries to save again.
)

// Frame runs one frame: it goes to another tick, waits, or runs a tick. If the store cannot save,
// the game continues in memory, and Message says so.
func (c *Control) Frame(ctx context.Context, in Input) error {
	if c.shown--; c.shown <= 0 {
		c.Message = ""
	}
	switch {
	case in.Rewind:
		c.held, c.waiting, c.Message = c.held+1, true, ""
		return c.Game.Rewind(uint64(c.Speed()))
	case in.Seek:
		c.waiting, c.Message = true, ""
		h := c.Game.World.History()
		return h.Seek(min(max(in.Tick, h.Oldest(), 1), h.Newest()))
	}
	c.held = 0
	switch {
	case in.Save > 0:
		if err := c.Game.Save(ctx, in.Save); err != nil {
			c.say("not saved: %v", err)
		} else {
			c.say("saved slot %d", in.Save)
		}
	case in.Load > 0:
		c.load(ctx, in.Load)
		return nil
	}
	if c.waiting && in.Buttons == 0 {
		return nil
	}
	c.waiting = false
	if err := c.Game.Step(in.Buttons); err != nil {
		c.say("not saved: %v", err)
		if c.failing++; c.failing%retryTime == 0 {
			_ = c.Game.Store.Resume(ctx) // The next Step returns an error if it did not help.
		}
	}
	return nil
}

func (c *Control) say(format string, args ...any) {
	c.Message, c.shown = fmt.Sprintf(format, args...), messageTime
}

func (c *Control) load(ctx context.Context, slot int) {
	switch err := c.Game.Load(ctx, slot); {
	case errors.Is(err, persist.ErrNotFound):
		c.say("slot %d is empty", slot)
	case err != nil:
		c.say("not loaded: %v", err)
	default:
		c.say("loaded slot %d", slot)
		c.waiting = true
	}
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
