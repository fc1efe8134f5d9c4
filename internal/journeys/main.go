// Command journeys counts the functions and files that run in a common call. This is how much code
// a reader must read to follow the call. It must be built with coverage counters:
//
//	go run -cover -covermode atomic -coverpkg ./... ./internal/journeys [-functions JOURNEY]
//
// Functions of background goroutines count if they run before the journey ends.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/coverage"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/dump"
	"github.com/stet-ecs/stet/persist"
)

type (
	position struct{ X, Y float64 }
	velocity struct{ X, Y float64 }
)

// A journey is one operation of a program.
type journey struct {
	name string
	// start prepares the operation and returns it. Only the calls of run() are counted.
	start func(dir string) (run func() error, err error)
}

var journeys = []journey{
	{"Set with a first write", firstWrite},
	{"Checkpoint to Release", checkpointToRelease},
	{"Query again", queryAgain},
	{"Set, Commit, Sync", commitSync},
	{"Open, recover, Close", openRecoverClose},
	{"ecsdump show", show},
}

func main() {
	functions := flag.String("functions", "", "also print the functions of the `JOURNEY` of this name")
	flag.Parse()
	if err := run(*functions); err != nil {
		fmt.Fprintln(os.Stderr, "journeys:", err)
		os.Exit(1)
	}
}

func run(functions string) error {
	dir, err := os.MkdirTemp("", "journeys")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	fmt.Printf("%-24s %9s %5s\n", "journey", "functions", "files")
	for i, j := range journeys {
		entered, err := measure(j, filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			return fmt.Errorf("%s: %w", j.name, err)
		}
		files := map[string]bool{}
		for _, f := range entered {
			file, _, _ := strings.Cut(f, ":")
			files[file] = true
		}
		fmt.Printf("%-24s %9d %5d\n", j.name, len(entered), len(files))
		if j.name == functions {
			fmt.Println(strings.Join(entered, "\n"))
		}
	}
	return nil
}

// measure runs a journey and returns the functions that it entered, as "file.go:line: name".
func measure(j journey, dir string) (entered []string, err error) {
	counters := filepath.Join(dir, "counters")
	if err := os.MkdirAll(counters, 0o777); err != nil {
		return nil, err
	}
	run, err := j.start(filepath.Join(dir, "store"))
	if err != nil {
		return nil, err
	}
	if err := coverage.ClearCounters(); err != nil {
		return nil, err
	}
	if err := run(); err != nil {
		return nil, err
	}
	err = errors.Join(coverage.WriteMetaDir(counters), coverage.WriteCountersDir(counters))
	if err != nil {
		return nil, err
	}
	out, err := exec.Command("go", "tool", "covdata", "func", "-i", counters).Output()
	if err != nil {
		return nil, err
	}
	const self = "/internal/journeys/"
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		// file.go:line:	name	percent
		fields := strings.Fields(lines.Text())
		if len(fields) == 3 && fields[2] != "0.0%" && strings.Contains(fields[0], ".go:") && !strings.Contains(fields[0], self) {
			entered = append(entered, fields[0]+" "+fields[1])
		}
	}
	return entered, nil
}

// A game is a world of 1,000 entities with two components.
type game struct {
	*ecs.World
	positions  *ecs.Storage[position]
	velocities *ecs.Storage[velocity]
	entities   []ecs.Entity
}

// newGame registers the components. The entities are created by fill(), or loaded.
func newGame() *game {
	w := ecs.NewWorld(ecs.Options{History: 60})
	return &game{World: w, positions: ecs.MustRegister[position](w), velocities: ecs.MustRegister[velocity](w)}
}

func (g *game) fill() {
	for range 1000 {
		e := g.Create()
		g.positions.Set(e, position{})
		g.velocities.Set(e, velocity{X: 1})
		g.entities = append(g.entities, e)
	}
}

func firstWrite(string) (run func() error, err error) {
	g := newGame()
	g.fill()
	g.Commit()
	return func() error {
		g.positions.Set(g.entities[0], position{X: 1})
		return nil
	}, nil
}

func checkpointToRelease(string) (run func() error, err error) {
	g := newGame()
	g.fill()
	g.Commit()
	return func() error {
		c := g.Checkpoint()
		g.positions.Set(g.entities[0], position{X: 1})
		g.positions.Set(g.Create(), position{})
		g.velocities.Remove(g.entities[1])
		g.Restore(c)
		g.Release(c)
		return nil
	}, nil
}

func queryAgain(string) (run func() error, err error) {
	g := newGame()
	g.fill()
	g.Commit()
	q := ecs.NewQuery2(ecs.Write(g.positions), ecs.Read(g.velocities))
	move := func() error {
		for _, row := range q.All() {
			row.A.X += row.B.X
		}
		return nil
	}
	if err := move(); err != nil {
		return nil, err
	}
	// Change a storage of the query, so that the measured call must search the rows again.
	g.velocities.Remove(g.entities[0])
	return move, nil
}

func commitSync(dir string) (run func() error, err error) {
	g := newGame()
	store, err := persist.Open(context.Background(), dir, g.World, persist.Options{})
	if err != nil {
		return nil, err
	}
	g.fill()
	if err := errors.Join(store.Commit(), store.Sync(context.Background())); err != nil {
		return nil, err
	}
	return func() error {
		g.positions.Set(g.entities[0], position{X: 1})
		return errors.Join(store.Commit(), store.Sync(context.Background()))
	}, nil
}

// writeStore writes a store with one snapshot and some ticks after it. It returns an entity in the
// store.
func writeStore(dir string) (e ecs.Entity, err error) {
	g := newGame()
	store, err := persist.Open(context.Background(), dir, g.World, persist.Options{})
	if err != nil {
		return e, err
	}
	g.fill()
	if err := store.Commit(); err != nil {
		return e, err
	}
	if _, err := store.Snapshot(context.Background()); err != nil {
		return e, err
	}
	for i := range 10 {
		g.positions.Set(g.entities[i], position{X: 1})
		if err := store.Commit(); err != nil {
			return e, err
		}
	}
	return g.entities[0], store.Close(context.Background())
}

func openRecoverClose(dir string) (run func() error, err error) {
	if _, err := writeStore(dir); err != nil {
		return nil, err
	}
	g := newGame()
	return func() error {
		store, err := persist.Open(context.Background(), dir, g.World, persist.Options{})
		if err != nil {
			return err
		}
		return store.Close(context.Background())
	}, nil
}

func show(dir string) (run func() error, err error) {
	e, err := writeStore(dir)
	if err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	return func() error {
		args, stdout := os.Args, os.Stdout
		defer func() { os.Args, os.Stdout = args, stdout }()
		os.Args, os.Stdout = []string{"ecsdump", "show", dir, e.String()}, null
		if status := dump.Main(nil); status != 0 {
			return fmt.Errorf("exit status %d", status)
		}
		return nil
	}, nil
}
