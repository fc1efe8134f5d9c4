// Rollback plays a game of two players over a bad network, as fighting games do. Each peer guesses
// the other player's buttons and continues immediately. If the real buttons differ, the peer goes
// back and runs the later ticks again. Both peers and the network are in this process.
//
// Usage:
//
//	rollback [-ticks N] [-loss PERCENT] [-delay TICKS] [-seed N] [-bug] [-fusible]
//	         [-digests] [-dir DIR]
//
// Some flags are:
//
//	-bug      use a counter outside of the world, so that the worlds of the peers soon differ
//	-dir      write stores with all ticks of both peers
//	-digests  print the digest of every tick at the end
//	-fusible  add a cloud that moves differently on some machines; see docs/MACHINES.md
//
// If the worlds differ, the program prints the first tick that differs. It saves both worlds for
// ecsdump diff, in DIR or in a new temporary directory.
//
// The same flags give the same output at any time. The exit code is 0, 1 if the peers differ or
// after a failure, and 2 for wrong flags.
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

// A config has the values of the flags.
type config struct {
	ticks, loss, delay int
	seed               uint64
	bug, fusible       bool
	digests            bool
	dir                string // If empty, a new temporary directory is used.
}

// run implements main.
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

// parseFlags parses the flags. Before it returns an error, it prints the reason. The error is
// [flag.ErrHelp] if help was requested.
func parseFlags(args []string, stderr io.Writer) (c config, err error) {
	flags := flag.NewFlagSet("rollback", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&c.ticks, "ticks", 10_000, "play `N` ticks")
	flags.IntVar(&c.loss, "loss", 15, "lose `PERCENT` of the messages, at most 90")
	flags.IntVar(&c.delay, "delay", 6, "let messages take up to `TICKS` ticks, at most 1000")
	flags.Uint64Var(&c.seed, "seed", 1, "draw buttons, rocks and losses from `N`")
	flags.BoolVar(&c.bug, "bug", false, "count shots outside of the world")
	flags.BoolVar(&c.fusible, "fusible", false, "let a cloud drift by a product that some processors fuse with a sum")
	flags.BoolVar(&c.digests, "digests", false, "print the digest of every tick at the end: it is the same on every machine")
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
