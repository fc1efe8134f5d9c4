// Mutants changes one place of the code at a time, and prints the changes (faults) that no test
// detects. Run it at the root of the module:
//
//	go run ./internal/mutants -n 200 -seed 1 ./ecs ./ecs/rollback
//	go run ./internal/mutants -all -only 'ecs/index.go' ./ecs
//
// All chosen faults are compiled into one test binary per package. An environment variable
// activates one of them. A first run records which tests reach each fault. Then only these tests
// run with the fault, the fastest first. A test that does not end detects the fault too.
//
//	generate.go       makes faults from the syntax of the packages
//	faults/hand.txt   has additional faults
//	faults/equal.txt  has faults that change no behaviour, with the reasons
//
// The exit status is 1 if a fault is not detected and is not in faults/equal.txt.
package main

import (
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

type options struct {
	n        int
	all      bool
	seed     int
	only     string
	lists    string
	packages []string
}

func main() {
	var o options
	flag.IntVar(&o.n, "n", 200, "number of generated faults")
	flag.BoolVar(&o.all, "all", false, "try every generated fault")
	flag.IntVar(&o.seed, "seed", 1, "chooses the generated faults")
	flag.StringVar(&o.only, "only", "", "try only faults whose description matches this regular expression")
	flag.StringVar(&o.lists, "lists", "internal/mutants/faults", "directory of hand.txt and equal.txt")
	flag.Parse()
	o.packages = flag.Args()
	if err := run(o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

var errSurvivors = errors.New("faults survived")

// run tries the faults that o chooses and reports on each.
func run(o options, out io.Writer) error {
	begin := time.Now()
	only, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	sources, err := load(o.packages)
	if err != nil {
		return err
	}
	generated := generate(sources)
	hand, err := readHand(filepath.Join(o.lists, "hand.txt"), sources)
	if err != nil {
		return err
	}
	equal, err := readEqual(filepath.Join(o.lists, "equal.txt"), sources, slices.Concat(generated, hand))
	if err != nil {
		return err
	}
	faults := slices.Concat(hand, choose(generated, o))
	faults = slices.DeleteFunc(faults, func(f *fault) bool { return !only.MatchString(f.String()) })
	fmt.Fprintf(out, "seed %d: %d faults, of %d generated and %d written by hand\n", o.seed, len(faults), len(generated), len(hand))

	temp, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	tests, err := build(temp, sources, faults)
	if err != nil {
		return err
	}
	if err := reach(temp, tests, faults, out); err != nil {
		return err
	}
	var survivors []*fault
	known := 0
	for _, f := range faults {
		verdict, killed := try(f)
		switch reason, listed := equal[f.key()]; {
		case killed && listed:
			verdict += ", although equal.txt lists it"
		case listed:
			verdict = "equal: " + reason
			known++
		case !killed:
			survivors = append(survivors, f)
		}
		fmt.Fprintf(out, "%v: %s\n", f, verdict)
	}
	fmt.Fprintf(out, "%d faults: %d killed, %d equal, %d survived, %.0f s\n",
		len(faults), len(faults)-known-len(survivors), known, len(survivors), time.Since(begin).Seconds())
	for _, f := range survivors {
		fmt.Fprintln(out, "survived:", f)
	}
	if len(survivors) > 0 {
		return errSurvivors
	}
	return nil
}

// choose returns o.n of the faults. The choice depends on the seed and on the text of each fault. A
// change of the source therefore affects the choice only a little.
func choose(faults []*fault, o options) []*fault {
	if o.all || o.n >= len(faults) {
		return faults
	}
	rank := func(f *fault) uint64 {
		h := fnv.New64a()
		fmt.Fprint(h, o.seed, " ", f.key())
		return h.Sum64() * 0x9e3779b97f4a7c15 >> 1
	}
	var ranks []uint64
	for _, f := range faults {
		ranks = append(ranks, rank(f))
	}
	slices.Sort(ranks)
	return slices.DeleteFunc(slices.Clone(faults), func(f *fault) bool { return rank(f) >= ranks[o.n] })
}
