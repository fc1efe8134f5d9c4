package dump

import (
	"context"
	"errors"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// buildDiverged makes a store of nine ticks. One that is wrong moves 3v1 less far in
// tick 6, and writes what was there anyway in tick 4.
func buildDiverged(dir string, wrong bool) error {
	s := newSample()
	ctx := context.Background()
	store, err := persist.Open(ctx, dir, s.world, persist.Options{Now: clock(), SnapshotBytes: -1})
	if err != nil {
		return err
	}
	err = s.begin()
	for tick := 1; tick <= 9 && err == nil; tick++ {
		for _, e := range s.position.Entities() {
			p := s.position.Mut(e)
			p.X++
			if wrong && tick == 6 && e == ecs.NewEntity(3, 1) {
				p.X -= 0.25
			}
		}
		if wrong && tick == 4 {
			s.health.Set(ecs.NewEntity(2, 1), 20)
		}
		err = store.Commit()
	}
	return errors.Join(err, store.Close(ctx))
}
