package dump

import (
	"context"
	"os"
	"path/filepath"

	"github.com/stet-ecs/stet/persist"
)

// keptStore is a store in the repository that is never rewritten. So its output changes
// only if the program changes.
const keptStore = "testdata/store-1"

// buildKept creates a closed store with every feature. Each column is a record with its tick, its
// mark and the number of its snapshot:
//
//	record     1       2   3   4          5   6      7    8
//	tick       1       2   3   4          5   4'     5'   6'
//	mark       start           lost way       boss
//	snapshot               2                         3
//
// Record 6 is a child of record 3, so records 4 and 5 were rewound. Snapshot 3 has the name
// "milestone".
func buildKept(dir string) error {
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
		s.destroy, store.Commit,
		func() error { _, err := store.Snapshot(ctx); return err },
		mark("lost way"), s.move, store.Commit,
		s.move, store.Commit,
		func() error { return s.world.History().Rewind(2) },
		mark("boss"), input("none", ""), s.recycle, store.Commit,
		s.move, store.Commit,
		func() error { _, err := store.SaveSlot(ctx, "milestone", ""); return err },
		s.relabel, store.Commit,
		func() error { return store.Close(ctx) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return os.Remove(filepath.Join(dir, "LOCK"))
}
