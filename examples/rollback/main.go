// Rollback plays a game of two players over a bad network, as fighting games do: each side goes on
// at once with a guess of what the other presses, and when the buttons arrive and were others, it
// goes back and makes the ticks since again. Both sides are in this process, and so is the network.
//
// Usage:
//
//	rollback [-ticks N] [-loss PERCENT] [-delay TICKS] [-seed N] [-bug] [-fusible] [-digests] [-dir DIR]
//
// The two sides exchange digests of their worlds. With -bug the game keeps something outside of its
// world, where going back does not reach: the sides disagree soon, and the command says from which
// tick on, and saves both worlds in DIR, or a new temporary directory, for ecsdump diff. In DIR all
// ticks of both are kept too, in stores.
//
// With -digests it prints the digest of every tick in the end, which is the same on every machine.
// With -fusible a cloud drifts by x + v*dt, and it is not: see docs/MACHINES.md.
//
// Nothing depends on the time: the same flags give the same output. It exits with 0, or with 1 if
// the sides disagree or it failed, and 2 if it was called wrongly.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// A config is what the flags say.
type config struct {
	ticks, loss, delay int
	seed               uint64
	bug, fusible       bool
	digests            bool
	dir                string // Empty: a new temporary directory.
}

// run is main without the process around it.
func run(args []string, stdout, stderr io.Writer) (code int) {
	c, err := parseFlags(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	m, err := newMatch(c)
	if err == nil {
		err = m.run(context.Background(), stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "rollback:", err)
		return 1
	}
	return 0
}

// parseFlags reads the flags. It has printed what is wrong with them when it
// returns an error; [flag.ErrHelp] says that help was asked for.
func parseFlags(args []string, stderr io.Writer) (c config, err error) {
	flags := flag.NewFlagSet("rollback", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&c.ticks, "ticks", 10_000, "play `N` ticks")
	flags.IntVar(&c.loss, "loss", 15, "lose `PERCENT` of the messages, at most 90")
	flags.IntVar(&c.delay, "delay", 6, "let messages take up to so many `TICKS`, at most 1000")
	flags.Uint64Var(&c.seed, "seed", 1, "draw buttons, rocks and losses from `N`")
	flags.BoolVar(&c.bug, "bug", false, "keep something outside of the world")
	flags.BoolVar(&c.fusible, "fusible", false, "let a cloud drift by a product that some processors fuse with a sum")
	flags.BoolVar(&c.digests, "digests", false, "print the digest of every tick in the end: it is the same on every machine")
	flags.StringVar(&c.dir, "dir", "", "keep all ticks of both worlds in `DIR`, and save those that differ")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case c.ticks < 1 || c.ticks > 10_000_000:
		err = errors.New("-ticks is from 1 to 10000000")
	case c.loss < 0 || c.loss > 90:
		err = errors.New("-loss is from 0 to 90")
	case c.delay < 1 || c.delay > 1000:
		err = errors.New("-delay is from 1 to 1000")
	}
	if err != nil {
		fmt.Fprintln(stderr, "rollback:", err)
		flags.Usage()
	}
	return c, err
}
