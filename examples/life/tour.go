package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/stet-ecs/stet/ecs"
)

// These constants are the stations of the tour.
const (
	tourTurn = 600 // The generation at which the tour rewinds.
	tourBack = 300 // The number of generations that the tour rewinds.
	tourKill = 700 // The tour kills the child once this generation is durable.
)

// A tour shows the features of a journaled world with one pattern.
type tour struct {
	*program
	game        *game
	undisturbed *Life // Runs in memory, without interruption, in parallel with the journaled world.
}

// tour runs the tour. If the directory has a world already, tour runs that world to the end
// instead.
func (p *program) tour(ctx context.Context) (*Life, error) {
	game, err := p.open(tourBack)
	if err != nil {
		return nil, err
	}
	if !game.isNew() {
		return p.finish(ctx, game)
	}
	t := &tour{program: p, game: game, undisturbed: NewLife(0)}
	t.undisturbed.Place(p.pattern)
	defer func() { t.game.close() }()

	t.say("%s in %s\n  %v", p.pattern.Name, t.game.dir, t.game)
	for _, station := range []func(context.Context) error{t.turn, t.kill, t.end} {
		if err := station(ctx); err != nil {
			return nil, err
		}
	}
	t.sayDumps(t.game)
	return t.game.Life, nil
}

// turn runs to a generation, rewinds, and runs to the same generation again.
func (t *tour) turn(ctx context.Context) error {
	t.say("Run to generation %d", tourTurn)
	if err := t.game.RunTo(ctx, tourTurn, t.paced(ctx, t.game.commit)); err != nil {
		return err
	}
	t.say("  %v", t.game)
	if err := t.check(ctx); err != nil {
		return err
	}
	t.say("Rewind %d generations", tourBack)
	if err := t.game.World.History().Rewind(tourBack); err != nil {
		return err
	}
	t.say("  %v", t.game)
	t.say("Run to generation %d again: the journal has two branches now", tourTurn)
	if err := t.game.RunTo(ctx, tourTurn, t.paced(ctx, t.game.commit)); err != nil {
		return err
	}
	t.say("  %v", t.game)
	return t.check(ctx)
}

// kill starts a child process that continues in the directory, kills it, and recovers the store.
func (t *tour) kill(ctx context.Context) error {
	if runtime.GOOS == "windows" {
		t.say("Windows has no SIGKILL: no child process is killed here")
		return nil
	}
	t.say("A child process continues; kill it (SIGKILL) once generation %d is durable", tourKill)
	if err := t.game.close(); err != nil {
		return err
	}
	durable, err := t.killChild(ctx)
	if err != nil {
		return fmt.Errorf("child process: %w", err)
	}
	t.say("  the last line of the child: durable %d", durable)
	t.say("Recover")
	if t.game, err = t.open(0); err != nil {
		return err
	}
	t.say("%s\n  %v", indent(t.game.found()), t.game)
	if at := t.game.Generation(); at < durable {
		return fmt.Errorf("generation %d was durable, but only %d was recovered", durable, at)
	}
	return t.check(ctx)
}

// end runs to the end and compares the result with the published result.
func (t *tour) end(ctx context.Context) error {
	t.say("Run to generation %d", rPentominoSettles)
	if err := t.game.RunTo(ctx, rPentominoSettles, t.paced(ctx, t.game.commit)); err != nil {
		return err
	}
	if err := t.game.close(); err != nil {
		return err
	}
	t.say("  %v", t.game)
	population, gliders := t.game.Population(), t.game.Gliders()
	if population != rPentominoPopulation || gliders != rPentominoGliders {
		return fmt.Errorf("generation %d: population %d and %d gliders, but %d and %d are published",
			t.game.Generation(), population, gliders, rPentominoPopulation, rPentominoGliders)
	}
	t.say("  population %d, of which %d gliders have escaped: as published", population, gliders)
	return t.check(ctx)
}

// check compares the world with the run in memory.
func (t *tour) check(ctx context.Context) error {
	want, err := t.digestAt(ctx, t.game.Generation())
	if err != nil {
		return err
	}
	if got := t.game.World.Digest(); got != want {
		return fmt.Errorf("%v, but a run in memory has digest %v", t.game, want)
	}
	t.say("  equal to an uninterrupted run in memory")
	return nil
}

// digestAt returns the digest of the undisturbed run at a generation. The generations of successive
// calls must not decrease.
func (t *tour) digestAt(ctx context.Context, generation uint64) (ecs.Digest, error) {
	if err := t.undisturbed.RunTo(ctx, generation, t.undisturbed.Commit); err != nil {
		return 0, err
	}
	return t.undisturbed.World.Digest(), nil
}
