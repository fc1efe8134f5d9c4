package dump

import (
	"context"
	"errors"
	"time"

	"github.com/stet-ecs/stet/persist"
)

// buildPruned creates a closed store whose journal begins before its oldest state. A program opened
// it six times, and retention removed the files of the first runs. Of the 61 ticks, tick 60 has two
// records. The second one adds the mark "late".
func buildPruned(dir string) error {
	now := clock()
	for run := range 6 {
		mark := ""
		if run == 5 {
			mark = "late"
		}
		if err := runPruned(dir, now, mark); err != nil {
			return err
		}
	}
	return nil
}

// runPruned is one run of the program of buildPruned: ten ticks, and snapshots after the seventh.
// Retention removes older files after each snapshot. If mark is not "", the program adds it to the
// ninth tick after the commit.
func runPruned(dir string, now func() time.Time, mark string) error {
	s := newSample()
	ctx := context.Background()
	store, err := persist.Open(ctx, dir, s.world, persist.Options{Now: now, SnapshotBytes: -1, Retain: persist.Retention{Bytes: 1}})
	if err != nil {
		return err
	}
	if s.world.Len() == 0 {
		err = errors.Join(s.begin(), store.Commit())
	}
	for i := 0; i < 10 && err == nil; i++ {
		err = errors.Join(s.move(), store.Commit())
		for n := 0; n < 3 && i == 6 && err == nil; n++ {
			_, err = store.Snapshot(ctx)
		}
		if i == 8 && mark != "" && err == nil {
			err = store.MarkLast(mark)
		}
	}
	return errors.Join(err, store.Close(ctx))
}
