// Queens counts the ways to place n queens on a board of n by n squares so that no queen attacks
// another. The search is backtracking with checkpoints. A restore removes a queen before the next
// square is tried:
//
//	checkpoint ──▶ place a queen ──▶ continue in the next row
//	     ▲                                    │
//	     └────────────── restore ◀────────────┘
//
// Usage:
//
//	queens [-n N] [-show]
//
// The program prints the number of ways. With -show, it first prints the boards. The exit code is
// 0, 1 if writing failed, and 2 for wrong arguments.
//
// To record the search, use a store instead: Commit each step, and go back by History.Rewind. The
// journal then has every branch, and package inspect can read it.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// maxSize is the maximum size of the board. Counting takes too long even for smaller boards: every
// additional row multiplies the time by about five.
const maxSize = 32

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run implements main.
func run(args []string, stdout, stderr io.Writer) (code int) {
	flags := flag.NewFlagSet("queens", flag.ContinueOnError)
	flags.SetOutput(stderr)
	size := flags.Int("n", 8, fmt.Sprintf("place `N` queens, at most %d", maxSize))
	show := flags.Bool("show", false, "print every board found")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if flags.NArg() > 0 || *size < 0 || *size > maxSize {
		fmt.Fprintf(stderr, "queens: wants -n from 0 to %d, and no arguments\n", maxSize)
		return 2
	}
	if err := printWays(stdout, *size, *show); err != nil {
		fmt.Fprintln(stderr, "queens:", err)
		return 1
	}
	return 0
}

// printWays prints the number of ways to place size queens, and with the argument show also the
// boards.
func printWays(w io.Writer, size int, show bool) error {
	out := bufio.NewWriter(w) // out records the first error, which Flush returns.
	b := newBoard(size)
	ways := 0
	b.solve(func() {
		ways++
		if show {
			fmt.Fprintln(out, b)
		}
	})
	fmt.Fprintln(out, ways)
	return out.Flush()
}
