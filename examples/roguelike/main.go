// Roguelike is a dungeon with a bag, a fire and a thief, in which every turn can be undone. It
// shows how to model possession with relations, an index of places, and events.
//
// The hero owns things, and a bag contains things. The fire burns a bag with everything in it. The
// thief takes things from the hero, even out of a bag.
//
// Usage:
//
//	roguelike [-seed N] [-play N]
//
// The program reads lines of keys from its input, and draws the dungeon after each line. The keys
// are:
//
//	h j k l  walk
//	g        grab the things at the hero's place
//	p        put a thing into a bag
//	t        take a thing out of a bag
//	d        drop a thing
//	.        wait
//	u        undo a turn
//	q        quit
//
// With -play, the program makes N random turns, undoes all of them, and prints whether the dungeon
// is unchanged. The exit code is 0, 1 after a failure, and 2 for wrong flags.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
)

// maxTurns is the number of turns that can be undone.
const maxTurns = 100_000

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run implements main.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	flags := flag.NewFlagSet("roguelike", flag.ContinueOnError)
	flags.SetOutput(stderr)
	seed := flags.Uint64("seed", 1, "throw the dice of `N`")
	turns := flags.Int("play", 0, fmt.Sprintf("make `N` turns, at most %d, and undo them", maxTurns))
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if flags.NArg() > 0 || *turns < 0 || *turns > maxTurns {
		fmt.Fprintf(stderr, "roguelike: wants -play from 0 to %d, and no arguments\n", maxTurns)
		return 2
	}
	g, err := newGame(*seed, maxTurns)
	out := bufio.NewWriter(stdout) // out records the first error, which Flush returns.
	switch {
	case err != nil:
	case *turns > 0:
		err = g.playItself(out, *seed, *turns)
	default:
		err = g.play(stdin, out)
	}
	if err = errors.Join(err, out.Flush()); err != nil {
		fmt.Fprintln(stderr, "roguelike:", err)
		return 1
	}
	return 0
}

// play executes the keys that it reads.
func (g *game) play(in io.Reader, out *bufio.Writer) error {
	fmt.Fprintln(out, g)
	lines := bufio.NewScanner(in)
	for out.Flush() == nil && lines.Scan() {
		for _, key := range []byte(lines.Text()) {
			switch {
			case key == 'q':
				return nil
			case key == 'u':
				if err := g.undo(1); err != nil {
					fmt.Fprintln(out, err)
				}
			case strings.IndexByte(commands, key) >= 0:
				g.turn(key)
			default:
				fmt.Fprintf(out, "no such key: %q; the keys are %su and q\n", key, commands)
			}
		}
		fmt.Fprintln(out, g)
	}
	return lines.Err()
}

// player returns a function that returns the keys of a random player. The player walks some steps
// at a time and often grabs.
func player(seed uint64) func() byte {
	draw := rand.New(rand.NewPCG(seed, 1))
	direction, steps := byte('l'), 0
	return func() byte {
		switch key := "gggggggpptd."[draw.IntN(12)]; {
		case draw.IntN(3) == 0:
			return key
		case steps == 0:
			direction, steps = "hjkl"[draw.IntN(4)], 1+draw.IntN(width/2)
		}
		steps--
		return direction
	}
}

// playItself takes n random turns, and undoes them one by one.
func (g *game) playItself(out io.Writer, seed uint64, n int) error {
	key := player(seed)
	before, start := g.world.Digest(), g.String()
	for range n {
		g.turn(key())
	}
	fmt.Fprintln(out, g)
	for range n {
		if err := g.undo(1); err != nil {
			return err
		}
	}
	if g.world.Digest() != before || g.String() != start {
		return fmt.Errorf("after undoing %d turns the dungeon has changed", n)
	}
	fmt.Fprintf(out, "undid all %d turns: the dungeon is unchanged.\n\n%v", n, g)
	return nil
}
