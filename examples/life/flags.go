package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/stet-ecs/stet/journal"
)

// rPentomino is the default pattern. Its published results are the generation in which it settles,
// and the population and number of gliders of this generation.
const (
	rPentomino           = "r-pentomino"
	rPentominoSettles    = 1103
	rPentominoPopulation = 116
	rPentominoGliders    = 6
)

// A config has the values of the flags.
type config struct {
	patternFile string // The path of a file, or the name of a built-in pattern.
	generations uint64
	dir         string // If empty, a new temporary directory is used.
	sync        time.Duration
	acks        bool // Print each generation that becomes durable.
	population  bool // Print only the population at the end.
	digests     bool // Print the digest of each generation of a run in memory.
	pace        time.Duration

	isTour    bool // Neither -pattern nor -generations is set.
	journaled bool // At least one of the set flags needs a journal.
	anyOrigin bool // Without -pattern, a run in dir continues with any pattern.
}

// parseFlags parses the flags. Before it returns an error, it prints the reason. The error is
// [flag.ErrHelp] if help was requested.
func parseFlags(args []string, stderr io.Writer) (config, error) {
	var c config
	flags := flag.NewFlagSet("life", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&c.patternFile, "pattern", rPentomino, "run the pattern in `FILE` (RLE), or a built-in one: "+builtIn())
	flags.Uint64Var(&c.generations, "generations", rPentominoSettles, "run to generation `N`")
	flags.StringVar(&c.dir, "dir", "", "write the journal to `DIR`, and continue an earlier run there")
	flags.Func("sync", "make generations durable: always, never, or every `DURATION` (default 100ms)", c.setSync)
	flags.BoolVar(&c.acks, "acks", false, `print "durable G" for every generation G that has become durable`)
	flags.BoolVar(&c.population, "population", false, "print only the population in the end")
	flags.BoolVar(&c.digests, "digests", false, "print the digest of each generation that is run in memory: it is the same on every machine")
	flags.DurationVar(&c.pace, "pace", 0, "wait `DURATION` after every generation")
	if err := flags.Parse(args); err != nil {
		return config{}, err
	}
	if flags.NArg() > 0 {
		err := fmt.Errorf("unexpected argument %q", flags.Arg(0))
		fmt.Fprintln(stderr, "life:", err)
		flags.Usage()
		return config{}, err
	}
	given := make(map[string]bool)
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	c.isTour = !given["pattern"] && !given["generations"]
	c.journaled = given["dir"] || given["sync"] || c.acks
	c.anyOrigin = !given["pattern"]
	return c, nil
}

// builtIn lists the built-in patterns.
func builtIn() string {
	names, err := PatternNames()
	if err != nil {
		return err.Error()
	}
	return strings.Join(names, ", ")
}

// setSync parses a sync policy.
func (c *config) setSync(value string) error {
	switch value {
	case "always":
		c.sync = journal.SyncAlways
		return nil
	case "never":
		c.sync = journal.SyncNever
		return nil
	}
	every, err := time.ParseDuration(value)
	if err != nil || every <= 0 {
		return fmt.Errorf("neither always nor never nor a duration like 50ms")
	}
	c.sync = every
	return nil
}

// paced returns a function that calls commit() and then waits for the time set by -pace.
func (c *config) paced(ctx context.Context, commit func() error) func() error {
	if c.pace <= 0 {
		return commit
	}
	return func() error {
		if err := commit(); err != nil {
			return err
		}
		select {
		// Return nil. RunTo then returns the error of ctx.
		case <-ctx.Done():
		case <-time.After(c.pace):
		}
		return nil
	}
}
