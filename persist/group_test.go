package persist

import (
	"cmp"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
)

// The journal records where rows lie, so recovery knows nothing of groups.
func TestGroupedAndSortedWorldsComeBackAtEveryRecord(t *testing.T) {
	root := t.TempDir()
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		history := rapid.SampledFrom(histories).Draw(rt, "history")
		s := newSessionOf(rt, fmt.Sprintf("%s/%d", root, runs), history, newGroupedWorld)
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			s.step(rt)
			if n := rapid.Uint32Range(0, 15).Draw(rt, "sort"); n < 4 {
				s.world.sort(n)
				s.twin.sort(n)
			}
		}
		s.finish()
	})
}

func TestAGroupIsThereWhenItsStoreIsOpened(t *testing.T) {
	dir, w := filepath.Join(t.TempDir(), "store"), newTestWorld(0)
	saved, _ := w.groups()
	s := open(t, dir, w, Options{Sync: journal.SyncNever()})
	w.fill(100)
	require.NoError(t, s.Commit())
	w.Destroy(saved.Entities()[3])
	w.position.SortEntities(func(a, b ecs.Entity) int { return cmp.Compare(b, a) })
	require.NoError(t, s.Commit())
	closeStore(t, s)

	again := newTestWorld(0)
	group, _ := again.groups()
	s = open(t, dir, again, Options{Sync: journal.SyncNever()})
	require.Equal(t, 24, group.Len())
	require.Equal(t, saved.Entities(), group.Entities())
	require.Equal(t, persistent(w.World), persistent(again.World))
	require.False(t, again.Dirty())
	for _, world := range []*testWorld{w, again} {
		world.body.Set(world.Entities()[50], body{Mass: 1})
		world.Destroy(world.Entities()[0])
	}
	require.NoError(t, s.Commit())
	require.Equal(t, saved.Entities(), group.Entities())
	closeStore(t, s)
	verified(t, dir)
}

// Rows that move before the journal listens would be missing in it, and the next
// record would patch a world that is not there.
func TestAGroupThatIsNewToAStoreIsPackedByTheFirstCommit(t *testing.T) {
	dir, w := filepath.Join(t.TempDir(), "store"), newTestWorld(0)
	s := open(t, dir, w, Options{Sync: journal.SyncNever()})
	w.fill(100)
	require.NoError(t, s.Commit())
	closeStore(t, s)

	grouped := newTestWorld(0)
	group, _ := grouped.groups()
	s = open(t, dir, grouped, Options{Sync: journal.SyncNever()})
	require.Equal(t, persistent(w.World), persistent(grouped.World))
	require.False(t, grouped.Dirty())
	require.Equal(t, 1, group.Len()) // By chance in the same row.
	grouped.body.Remove(grouped.Entities()[8])
	grouped.body.Set(grouped.Entities()[9], body{Mass: 3})
	require.NoError(t, s.Commit())
	require.Equal(t, 25, group.Len())
	packed, digest := group.Entities(), persistent(grouped.World)
	closeStore(t, s)

	for range 2 {
		v := verified(t, dir)
		im, err := v.At(background, v.Head())
		require.NoError(t, err)
		require.Equal(t, digest, im.Digest())
		next := newTestWorld(0)
		group, _ := next.groups()
		s = open(t, dir, next, Options{Sync: journal.SyncNever()})
		require.Equal(t, packed, group.Entities())
		require.Equal(t, digest, persistent(next.World))
		closeStore(t, s)
	}
}
