package replica_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/replica"
)

// From here to the line "end", docs/REPLICATION.md has the same text.

// A machine has a copy of the store, and owns the store at times.
type machine struct {
	name  string
	log   replica.Log
	files disk.FS // This machine's directory.
	play  func(context.Context, *replica.Owner) error
}

// run follows and owns the store until ctx ends or an operator must act.
func (m *machine) run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := m.turn(ctx)
		if replica.ClassOf(err) == replica.Operator {
			return err
		}
		slog.Info("the store is followed again", "machine", m.name, "reason", err)
		pause(ctx, 100*time.Millisecond)
	}
	return nil
}

// turn follows the store, claims it when possible, and returns when this machine has lost it.
func (m *machine) turn(ctx context.Context) error {
	f, err := replica.Follow(ctx, m.log, m.files, replica.Options{Name: m.name})
	if err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	o, err := standBy(ctx, f)
	if err != nil {
		return errors.Join(fmt.Errorf("stand by: %w", err), f.Close())
	}
	return errors.Join(m.play(ctx, o), o.Close())
}

// standBy claims the store when it is offered here, or when an entry of its owner is overdue.
func standBy(ctx context.Context, f *replica.Follower) (*replica.Owner, error) {
	for {
		offered := false
		select {
		case <-f.Offered():
			offered = true
		case <-time.After(20 * time.Millisecond):
		}
		if err := errors.Join(ctx.Err(), f.Err()); err != nil {
			return nil, err
		}
		if !offered && f.Overdue() < 500*time.Millisecond {
			continue
		}
		o, err := f.Claim(ctx)
		if err == nil {
			return o, nil
		}
		if replica.ClassOf(err) == replica.Operator {
			return nil, err
		}
		pause(ctx, 100*time.Millisecond) // Another machine was faster, or no server answers.
	}
}

// playWorld opens the store and makes ticks until the store is lost or ctx ends.
func playWorld(ctx context.Context, o *replica.Owner, w *ecs.World, step func()) error {
	store, err := o.Open(ctx, w, persist.Options{})
	if err != nil {
		// For example, the component types do not fit: persist.ErrSchema.
		return fmt.Errorf("open: %w", err)
	}
	for ended := true; err == nil && ctx.Err() == nil; {
		if ended {
			step()
		}
		err = store.Commit()
		if ended = err == nil; errors.Is(err, persist.ErrBacklog) {
			slog.Warn("ticks wait for the log", "reason", err)
			err = o.Err() // The tick is not committed. The next Commit tries again.
		}
		pause(ctx, time.Second/60)
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(err, o.Err(), store.Close(ending))
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// end

// Two machines share a log. The second one continues the world of the first.
func Example() {
	log := &replica.Memory{}
	for _, name := range []string{"a", "b"} {
		ctx, cancel := context.WithCancel(context.Background())
		m := machine{name, log, disk.Memory(), func(ctx context.Context, o *replica.Owner) error {
			w := ecs.NewWorld(ecs.Options{})
			steps := ecs.Must(ecs.RegisterResource(w, 0, ecs.Component[int]{Name: "steps"}))
			return playWorld(ctx, o, w, func() {
				if steps.Set(steps.Get() + 1); steps.Get() == 5 {
					fmt.Println(name, "makes step 5")
				} else if steps.Get() == 10 {
					fmt.Println(name, "makes step 10")
					cancel()
				}
				if name == "a" && steps.Get() == 6 {
					cancel()
				}
			})
		}}
		if err := m.run(ctx); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// a makes step 5
	// b makes step 10
}

// An error of Open that a retry cannot resolve ends the program of the docs.
func TestExample_EndsAtOpenError(t *testing.T) {
	log := &replica.Memory{}
	ctx, cancel := context.WithTimeout(background, 20*time.Second)
	defer cancel()
	play := func(w *ecs.World, step func()) func(context.Context, *replica.Owner) error {
		return func(ctx context.Context, o *replica.Owner) error { return playWorld(ctx, o, w, step) }
	}
	first, stop := context.WithCancel(ctx)
	w := ecs.NewWorld(ecs.Options{})
	ecs.Must(ecs.RegisterResource(w, 0, ecs.Component[int]{Name: "steps"})).Set(1)
	a := machine{"a", log, disk.Memory(), play(w, stop)}
	require.NoError(t, a.run(first))
	other := ecs.NewWorld(ecs.Options{})
	ecs.Must(ecs.RegisterResource(other, "", ecs.Component[string]{Name: "steps"}))
	b := machine{"b", log, disk.Memory(), play(other, func() {})}
	require.ErrorIs(t, b.run(ctx), persist.ErrSchema)
}

// docs/REPLICATION.md shows the program above.
func TestExample_EqualsDocs(t *testing.T) {
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	_, program, _ := strings.Cut(string(source), "has the same text.\n\n")
	program, _, found := strings.Cut(program, "\n// end\n")
	require.True(t, found)
	docs, err := os.ReadFile("../../docs/REPLICATION.md")
	require.NoError(t, err)
	require.True(t, strings.Contains(string(docs), "```go\n"+program+"```\n"), "copy the program from example_test.go")
}
