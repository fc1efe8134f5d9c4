// Package control turns the input of a player into ticks of Asteroids: it plays, rewinds, seeks,
// saves, loads and replays. It does not depend on a screen, so tests can run it.
//
// Control.Frame gets the Input of a frame. It runs a tick, goes to another tick, or starts a job.
// Then the screen draws Control.View.
//
// A job is a goroutine that waits for the disk. While it runs, the game stands still, and the
// screen continues to draw the same View. Only a replay reads the store within a frame.
package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/stet-ecs/stet/examples/asteroids/game"
	"github.com/stet-ecs/stet/persist"
)

// An Input is what the player does in a frame.
type Input struct {
	Buttons game.Buttons
	Rewind  bool   // The key that rewinds is held.
	Seek    bool   // The player drags the time bar.
	Tick    uint64 // The tick under the pointer, if Seek is true.
	Visit   int    // The number of the branch to go to, counted from 1, or 0.
	Save    int    // The slot to save, or 0.
	Load    int    // The slot to load, or 0.
	Replay  bool   // Begin or end a replay.
	File    bool   // Save the run in a file.
	Link    bool   // Copy a link to this moment.
	Open    string // A link to go to, or "".
	Dropped []byte // The content of a file to load, or nil.
}

// A Control plays a game.
type Control struct {
	Game    *game.Game
	View    View
	Message string // What the last key did, for some seconds, or "".

	// KeepFile gives the player a file with the run. It is called in its own goroutine. If it is
	// nil, players cannot save the run.
	KeepFile func(name string, data []byte) (where string, err error)
	// KeepLink gives the player a link to the current moment, and returns a message. If it is nil,
	// players cannot make links.
	KeepLink func(link string) (message string)

	// Heard has the sounds of the last frame.
	Heard []game.Sound

	shown   int    // The number of frames for which Message is still shown.
	failing int    // The number of frames in which ticks could not be saved.
	held    int    // The number of frames for which the rewind key is held.
	waiting bool   // The game waits for a button, as after a jump to another tick.
	goal    uint64 // The tick that the player wants to see.
	seeking bool   // The game has not reached goal yet.
	job     *job   // The running job that uses the world, or nil.
	file    *job   // The running job that saves a file, or nil.
	dropped []byte // A dropped file that is not loaded yet.
	opened  string // A link that the game has not gone to yet.
	replay  *replay
	ghost
}

// New returns a Control of a game, which waits for the first button.
func New(g *game.Game) *Control {
	c := &Control{Game: g, waiting: true, goal: g.World.Tick(), ghost: newGhost()}
	c.look()
	return c
}

// At first, a rewind goes back by one tick per frame. After 7 × slower frames, it goes back by
// maxSpeed ticks per frame.
const (
	maxSpeed = 8
	slower   = 15 // The speed grows by one tick per frame after each 15 frames.

	messageTime = 180 // Frames.
	retryTime   = 300 // The number of frames until the store tries to save again.
)

// A job is a call that waits for the disk. When it has ended, its error is passed to the function
// end.
type job struct {
	done chan error
	end  func(error)
}

// begin starts a job.
func begin(run func() error, end func(error)) *job {
	j := &job{make(chan error, 1), end}
	go func() { j.done <- run() }()
	return j
}

// ended reports whether a job has ended, and calls its function end.
func (j *job) ended() bool {
	if j == nil {
		return false
	}
	select {
	case err := <-j.done:
		j.end(err)
		return true
	default:
		return false
	}
}

// Busy reports whether a job uses the world. Only Frame may be called until the job ends.
func (c *Control) Busy() bool { return c.job != nil }

// Frame runs one frame. If the store cannot save, the game continues in memory, and Message says
// so.
func (c *Control) Frame(ctx context.Context, in Input) error {
	c.Heard = c.Heard[:0]
	if c.shown--; c.shown <= 0 {
		c.Message = ""
	}
	if c.file.ended() {
		c.file = nil
	}
	ended := c.job.ended()
	if ended {
		c.job = nil
	}
	if c.aim(in); in.Dropped != nil {
		c.dropped = in.Dropped
	}
	if in.Open != "" {
		c.opened = in.Open
	}
	var err error
	switch {
	case c.job != nil: // Only the job may use the world.
		return nil
	// One frame shows the result of an Advance. The next frame begins another Advance.
	case c.Game.Watched != nil && !ended:
		c.start(func() error {
			_, err := c.Game.Watched.Advance(ctx)
			return err
		}, func(err error) { c.report(err, "", "the game cannot be watched") })
	case c.Game.Watched != nil:
	case c.replay != nil:
		err = c.watch(ctx, in)
	default:
		err = c.act(ctx, in)
	}
	if c.job == nil {
		c.look()
	}
	return err
}

// aim computes the tick that the player rewinds or seeks to.
func (c *Control) aim(in Input) {
	v := &c.View
	if c.held++; !in.Rewind {
		c.held = 0
	}
	switch {
	case in.Rewind:
		c.goal -= min(uint64(c.Speed()), c.goal)
	case in.Seek:
		c.goal = in.Tick
	default:
		return
	}
	c.goal = min(max(c.goal, v.Oldest), v.Newest)
	c.seeking, c.waiting, c.Message = true, true, ""
}

// act executes the input of a frame. No job may use the world.
func (c *Control) act(ctx context.Context, in Input) error {
	select {
	case r := <-c.Game.Snapshots:
		c.report(r.Err, "saved "+r.Slot, "not saved")
	default:
	}
	switch {
	case c.seeking && c.Game.Near(c.goal):
		c.seeking = false
		return c.Game.GoTo(ctx, c.goal)
	case c.seeking:
		c.seeking = false
		goal := c.goal
		c.start(func() error { return c.Game.GoTo(ctx, goal) }, func(err error) { c.report(err, "", "this moment cannot be read") })
	case in.Rewind: // The rewind has reached the oldest tick.
	case in.Visit > 0:
		if all := c.Game.OtherLines(); in.Visit <= len(all) {
			c.visit(ctx, fmt.Sprintf("record:%d", all[in.Visit-1].Record), "this is the end of another future")
		}
	case in.Load > 0:
		c.move(func() error { return c.Game.Load(ctx, in.Load) }, fmt.Sprintf("loaded slot %d", in.Load), fmt.Sprintf("slot %d is empty", in.Load))
	case c.dropped != nil:
		file := c.dropped
		c.dropped = nil
		c.move(func() error { return c.Game.LoadFile(ctx, file) }, "loaded the last moment of the file", "the file has no game")
	case c.opened != "":
		link := c.opened
		c.opened = ""
		c.Visit(ctx, link)
	case in.Replay:
		return c.beginReplay(ctx)
	case in.Link && c.KeepLink != nil:
		// The game must wait, because the next tick would remove the link from the address bar.
		c.waiting = true
		c.say("%s", c.KeepLink(c.link()))
	default:
		c.save(ctx, in)
		return c.step(ctx, in)
	}
	return nil
}

// start begins a job that uses the world.
func (c *Control) start(run func() error, end func(error)) { c.job = begin(run, end) }

// move begins a job that goes to another state.
func (c *Control) move(run func() error, done, missing string) {
	c.waiting = true
	c.start(run, func(err error) {
		if errors.Is(err, persist.ErrNotFound) {
			c.say("%s", missing)
			return
		}
		if err == nil {
			c.forget()
		}
		c.report(err, done, "not loaded")
		c.goal, c.seeking = c.Game.World.Tick(), false
	})
}

// visit goes to a point of the store.
func (c *Control) visit(ctx context.Context, point, done string) {
	c.move(func() error { return c.Game.Visit(ctx, point) }, done, "this moment is no longer there")
}

// link returns a link to the present state: its record, and the beginning of its digest.
func (c *Control) link() string {
	return c.Game.Point() + "," + c.Game.World.Digest().String()[:8]
}

// Visit goes to the moment of a link, or to a point of the store.
func (c *Control) Visit(ctx context.Context, link string) {
	point, digest, _ := strings.Cut(link, ",")
	c.visit(ctx, point, "this is the moment of the link")
	visited := c.job.end
	c.job.end = func(err error) {
		if visited(err); err == nil && !strings.HasPrefix(c.Game.World.Digest().String(), digest) {
			c.say("the link is from another game")
		}
	}
}

// save saves a slot or a file. A running game saves its next tick, and does not wait.
func (c *Control) save(ctx context.Context, in Input) {
	if in.File && c.KeepFile != nil && c.file == nil {
		name := fmt.Sprintf("asteroids-%d.zip", c.Game.World.Tick())
		c.say("saving the run")
		c.file = begin(func() error {
			run, err := c.Game.Run(ctx)
			if err == nil {
				name, err = c.KeepFile(name, run)
			}
			return err
		}, func(err error) { c.report(err, "saved "+name, "not saved") })
	}
	switch {
	case in.Save == 0:
	case c.waiting && in.Buttons == 0:
		c.start(func() error { return c.Game.Save(ctx, in.Save) },
			func(err error) { c.report(err, fmt.Sprintf("saved slot %d", in.Save), "not saved") })
	default:
		if err := c.Game.BeginSave(in.Save); err != nil {
			c.report(err, "", "not saved")
		}
	}
}

// step runs a tick, unless the game waits for a button.
func (c *Control) step(ctx context.Context, in Input) error {
	if c.job != nil || c.waiting && in.Buttons == 0 {
		return nil
	}
	// The game is over. Further ticks would only make the recorded run longer.
	if c.View.Now > 0 && c.Game.Over() && in.Buttons&game.Fire == 0 {
		c.waiting = true
		return nil
	}
	if c.waiting {
		c.waiting, c.Message = false, ""
	}
	c.leave()
	err := c.Game.Step(in.Buttons)
	if c.goal = c.Game.World.Tick(); c.goal > c.View.Now {
		for sound := range c.Game.Sounds.Last() {
			c.Heard = append(c.Heard, sound)
		}
	}
	if err == nil {
		return nil
	}
	c.report(err, "", "not saved")
	if c.failing++; c.failing%retryTime == 0 {
		// Ignore the error of Resume. If Resume fails, the next Step also fails.
		c.start(func() error { return c.Game.Resume(ctx) }, func(error) {})
	}
	return nil
}

func (c *Control) say(format string, args ...any) {
	c.Message, c.shown = fmt.Sprintf(format, args...), messageTime
}

// report tells the player how a call ended.
func (c *Control) report(err error, done, failed string) {
	if err != nil {
		c.say("%s: %s", failed, explain(err))
	} else if done != "" {
		c.say("%s", done)
	}
}

// explain describes an error for a player.
func explain(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return "no space is left"
	case errors.Is(err, persist.ErrLost):
		return "another program has taken the game over"
	case errors.Is(err, persist.ErrCorrupt), errors.Is(err, persist.ErrForeign):
		return "the file is damaged, or no game"
	}
	return err.Error()
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

// Close ends the replay and the job under way, and closes the game.
func (c *Control) Close(ctx context.Context) error {
	for _, j := range []*job{c.job, c.file} {
		if j != nil {
			j.end(<-j.done)
		}
	}
	c.job, c.file = nil, nil
	return errors.Join(c.endReplay(), c.Game.Close(ctx))
}
