package control

import (
	"context"
	"errors"
	"io"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/examples/asteroids/game"
	"github.com/stet-ecs/stet/persist/inspect"
)

// A replay shows the current line from its oldest to its newest tick. It runs the systems again
// with the recorded buttons, in a second world. After each tick, it compares the digest with the
// record.
type replay struct {
	game   *game.Game
	player *inspect.Player
}

// beginReplay opens a replay in a job, because that reads the store.
func (c *Control) beginReplay(ctx context.Context) error {
	r := &replay{game: game.New()}
	from, to := c.Game.Ends()
	c.start(func() (err error) {
		if err := c.Game.Store.Sync(ctx); err != nil {
			return err
		}
		r.player, err = inspect.OpenPlayer(ctx, c.Game.Dir, r.game.World, inspect.PlayerOptions{
			Files: c.Game.Files, From: from, To: to,
			Step: func(_ *ecs.World, _ uint64, inputs []inspect.Input) error {
				r.game.Systems.Step(buttons(inputs))
				return nil
			},
		})
		return err
	}, func(err error) {
		if c.report(err, "replay", "no replay"); err == nil {
			c.replay, c.goal = r, r.game.World.Tick()
		}
	})
	return nil
}

func buttons(inputs []inspect.Input) (all game.Buttons) {
	for _, in := range inputs {
		all |= game.Buttons(in.Data[0])
	}
	return all
}

// watch shows the next tick of the replay, or the tick under the pointer. A button ends the replay.
func (c *Control) watch(ctx context.Context, in Input) error {
	p := c.replay.player
	var err error
	switch {
	case in.Replay || in.Buttons != 0:
		return c.endReplay()
	case c.seeking:
		c.seeking = false
		err = p.Seek(ctx, min(max(c.goal, p.First()), p.End()))
	default:
		err = p.Step(ctx)
		c.goal = p.Tick()
		for sound := range c.replay.game.Sounds.Last() {
			c.Heard = append(c.Heard, sound)
		}
	}
	tick, storage, differs := p.Diverged()
	if err != nil {
		failure := c.endReplay()
		if !errors.Is(err, io.EOF) {
			failure = err
		}
		c.report(failure, "the replay has ended", "the replay failed")
	}
	if differs {
		c.say("tick %d differs from the record in %s", tick, storage)
	}
	return nil
}

// endReplay goes back to the game.
func (c *Control) endReplay() error {
	if c.replay == nil {
		return nil
	}
	p := c.replay.player
	c.replay, c.waiting, c.goal = nil, true, c.Game.World.Tick()
	return p.Close()
}
