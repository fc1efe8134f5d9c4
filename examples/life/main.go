// Life plays Conway's Game of Life on a plane of 2^32 by 2^32 cells. Every living cell is an entity
// and every generation is a journaled tick. A run that reaches the border of the plane stops with
// an error.
//
// Usage:
//
//	life [-dir DIR] [-sync POLICY] [-acks] [-population]
//	life -pattern FILE | -generations N [-dir DIR] [-sync POLICY] [-acks] [-population]
//	     [-digests] [-pace DURATION]
//
// Without -pattern and -generations, the program shows the features of a journaled world. It
// rewinds, is killed, recovers, and ends in the same state as an uninterrupted run.
//
// With either flag, the program runs a pattern to a generation, in memory unless -dir, -sync or
// -acks needs a journal. The journal is in DIR or in a new temporary directory, which is not
// removed. If DIR has an earlier run, the program continues that run.
//
// The exit code is 0, 1 after a failure, and 2 for wrong flags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run implements main.
func run(args []string, stdout, stderr io.Writer) (code int) {
	config, err := parseFlags(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := play(ctx, config, stdout); err != nil {
		fmt.Fprintln(stderr, "life:", err)
		return 1
	}
	return 0
}

// A program is one call of the command.
type program struct {
	config
	pattern *Pattern
	stdout  io.Writer
	story   io.Writer // Receives the report of the run.
}

// play runs the program with the given flags.
func play(ctx context.Context, config config, stdout io.Writer) error {
	pattern, err := openPattern(config.patternFile)
	if err != nil {
		return err
	}
	out := &output{w: stdout}
	p := &program{config: config, pattern: pattern, stdout: out, story: out}
	if p.population {
		p.story = io.Discard
	}
	life, err := p.live(ctx)
	if err != nil {
		return err
	}
	if p.population {
		fmt.Fprintln(out, life.Population())
	}
	return out.firstError()
}

// live returns the world at the end of the run.
func (p *program) live(ctx context.Context) (*Life, error) {
	switch {
	case p.isTour:
		return p.tour(ctx)
	case p.journaled:
		return p.runJournaled(ctx)
	default:
		return p.runInMemory(ctx)
	}
}

// runInMemory runs the pattern without a journal.
func (p *program) runInMemory(ctx context.Context) (*Life, error) {
	life := NewLife(0)
	life.Place(p.pattern)
	p.say("%s\n  %v", p.pattern.Name, life)
	commit := life.Commit
	if p.digests {
		commit = func() error {
			err := life.Commit()
			p.say("%d %v", life.Generation(), life.World.Digest())
			return err
		}
	}
	if err := life.RunTo(ctx, p.generations, p.paced(ctx, commit)); err != nil {
		return nil, err
	}
	p.say("  %v", life)
	return life, nil
}

// runJournaled runs the pattern, or continues the run of the directory.
func (p *program) runJournaled(ctx context.Context) (*Life, error) {
	game, err := p.open(0)
	if err != nil {
		return nil, err
	}
	return p.finish(ctx, game)
}

// finish runs game to the end and closes it.
func (p *program) finish(ctx context.Context, game *game) (*Life, error) {
	defer game.close()
	p.say("%s in %s\n%s\n  %v", game.origin.Get().Pattern, game.dir, indent(game.found()), game)
	if at := game.Generation(); at > p.generations {
		return nil, fmt.Errorf("%s holds generation %d, which is past %d", game.dir, at, p.generations)
	}
	found := game.Generation()
	if err := game.RunTo(ctx, p.generations, p.paced(ctx, game.commit)); err != nil {
		return nil, err
	}
	if err := game.close(); err != nil {
		return nil, err
	}
	if game.Generation() != found {
		p.say("  %v", game)
	}
	p.sayDumps(game)
	return game.Life, nil
}

// say prints a line about the run, unless -population is set.
func (p *program) say(format string, args ...any) { fmt.Fprintf(p.story, format+"\n", args...) }

// sayDumps prints commands that inspect the directory.
func (p *program) sayDumps(game *game) {
	const tool = "  go run ./cmd/ecsdump"
	p.say("The directory remains. To inspect it:")
	p.say(tool+" info %s", game.dir)
	p.say(tool+" ls %s --limit 5", game.dir)
	if oldest, ok := game.Oldest(); ok {
		p.say(tool+" show %s %v", game.dir, oldest)
	}
	p.say(tool+" schema %s", game.dir)
	p.say(tool+" log %s --limit 10", game.dir)
	p.say(tool+" arrays %s Cell", game.dir)
	p.say(tool+" verify %s", game.dir)
}
