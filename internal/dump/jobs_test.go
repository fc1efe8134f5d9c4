//go:build !wasm

package dump

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// A stage is a number type with named values. The layout contains the names.
type stage uint8

// String implements [fmt.Stringer].
func (s stage) String() string {
	if names := []string{"Idle", "Running", "Done"}; int(s) < len(names) {
		return names[s]
	}
	return "stage " + strconv.Itoa(int(s))
}

// A job is work that one entity does for another.
type job struct {
	Stage stage
	Wait  time.Duration
	For   ecs.Entity
	Past  [2]stage
}

// jobsCommand is "jobs DIR": it creates a closed store of entities with jobs.
func jobsCommand(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: jobs DIR")
	}
	ts.Check(buildJobs(ts.MkAbs(args[0])))
	rememberCommand(ts, false, args)
}

// buildJobs creates a store of 8 ticks and 6 entities. Tick 4 destroys the last entity, but a job
// for that entity remains.
func buildJobs(dir string) error {
	w := ecs.NewWorld(ecs.Options{})
	jobs := ecs.MustRegister(w, ecs.Component[job]{Name: "Job"})
	health := ecs.MustRegister(w, ecs.Component[Health]{Name: "Health"})
	boss := ecs.Must(ecs.RegisterResource(w, ecs.Entity(0), ecs.Component[ecs.Entity]{Name: "boss"}))
	store, err := persist.Open(context.Background(), dir, w, persist.Options{Now: clock()})
	if err != nil {
		return err
	}
	var people []ecs.Entity
	for range 6 {
		people = append(people, w.Create())
	}
	*boss.Mut() = people[2]
	for tick := range 8 {
		for i, e := range people {
			if !w.Alive(e) {
				continue
			}
			if i != 3 {
				health.Set(e, Health(10*i-5*tick))
			}
			if i < 5 {
				now := stage((i + tick/3) % 4)
				jobs.Set(e, job{now, time.Duration(i) * 700 * time.Millisecond, people[i+1], [2]stage{0, now}})
			}
		}
		if tick == 3 {
			w.Destroy(people[5])
		}
		if err := store.Commit(); err != nil {
			return errors.Join(err, store.Close(context.Background()))
		}
	}
	return store.Close(context.Background())
}
