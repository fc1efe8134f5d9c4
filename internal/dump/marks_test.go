package dump

import (
	"context"
	"strings"

	"github.com/stet-ecs/stet/persist"
)

// noteSteps returns two functions. Their results add a mark or an input to the next tick of store.
func noteSteps(store *persist.Store) (mark func(name string) func() error, input func(name, data string) func() error) {
	mark = func(name string) func() error { return func() error { return store.Mark(name) } }
	input = func(name, data string) func() error {
		return func() error { return store.Input(name, []byte(data)) }
	}
	return mark, input
}

// buildMarked creates a closed store. Each column is a record with its tick and its mark:
//
//	record     1       2   3          4      5
//	tick       1       2   3          3'     4'
//	mark       start       lost way   boss
//
// Record 4 is a child of record 2, so record 3 was rewound.
func buildMarked(dir string) error {
	s := newSample()
	ctx := context.Background()
	store, err := persist.Open(ctx, dir, s.world, persist.Options{Now: clock(), SnapshotBytes: -1})
	if err != nil {
		return err
	}
	mark, input := noteSteps(store)
	for _, step := range []func() error{
		mark("start"), s.begin, store.Commit,
		input("say", "a \"word\"\n"), input("keys", "\x01\xff"), s.move, store.Commit,
		mark("lost way"), input("long", strings.Repeat("no", 50)), s.move, store.Commit,
		func() error { return s.world.History().Rewind(1) },
		mark("boss"), input("none", ""), s.destroy, store.Commit,
		func() error { _, err := store.SaveSlot(ctx, "milestone", ""); return err },
		s.move, store.Commit,
		func() error { return store.Close(ctx) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
