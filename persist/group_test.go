package persist_test

import (
	"cmp"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// The journal records the row of each entity. So a recovery restores the order of the rows, even if
// the groups are not registered.
func TestGroupedWorlds_RecoverEveryRecord(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		history := rapid.SampledFrom(storetest.Histories).Draw(rt, "history")
		s := storetest.NewSessionOf(rt, history, storetest.NewGroupedWorld)
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			s.Step(rt)
			if n := rapid.Uint32Range(0, 15).Draw(rt, "sort"); n < 5 {
				s.World.Sort(n)
				s.Twin.Sort(n)
			}
		}
		s.Finish()
	})
}

func TestGroup_MembersAfterOpen(t *testing.T) {
	dir, w := filepath.Join(t.TempDir(), "store"), storetest.New(0)
	saved, _ := w.Groups()
	s := storetest.Open(t, dir, w, persist.Options{Sync: journal.SyncNever})
	w.Fill(100)
	require.NoError(t, s.Commit())
	w.Destroy(saved.Entities()[3])
	w.Position.SortEntities(func(a, b ecs.Entity) int { return cmp.Compare(b, a) })
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)

	again := storetest.New(0)
	group, _ := again.Groups()
	s = storetest.Open(t, dir, again, persist.Options{Sync: journal.SyncNever})
	require.Equal(t, 24, group.Len())
	require.Equal(t, saved.Entities(), group.Entities())
	require.Equal(t, storetest.Persistent(w.World), storetest.Persistent(again.World))
	require.False(t, again.Raw().Dirty())
	for _, world := range []*storetest.World{w, again} {
		world.Body.Set(world.Entities()[50], storetest.Body{Mass: 1})
		world.Destroy(world.Entities()[0])
	}
	require.NoError(t, s.Commit())
	require.Equal(t, saved.Entities(), group.Entities())
	storetest.CloseStore(t, s)
	storetest.Verified(t, dir)
}

// A group moves rows. After Open, the first Commit moves them and journals the moves. If they moved
// before, the journal would lack the moves, and the next record would not fit.
func TestGroup_RowsMovedAtFirstCommit(t *testing.T) {
	dir, w := filepath.Join(t.TempDir(), "store"), storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{Sync: journal.SyncNever})
	w.Fill(100)
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)

	grouped := storetest.New(0)
	group, _ := grouped.Groups()
	s = storetest.Open(t, dir, grouped, persist.Options{Sync: journal.SyncNever})
	require.Equal(t, storetest.Persistent(w.World), storetest.Persistent(grouped.World))
	require.False(t, grouped.Raw().Dirty())
	require.Equal(t, 1, group.Len()) // One entity was in the right row before.
	grouped.Body.Remove(grouped.Entities()[8])
	grouped.Body.Set(grouped.Entities()[9], storetest.Body{Mass: 3})
	require.NoError(t, s.Commit())
	require.Equal(t, 25, group.Len())
	packed, digest := group.Entities(), storetest.Persistent(grouped.World)
	storetest.CloseStore(t, s)

	for range 2 {
		v := storetest.Verified(t, dir)
		im, err := v.At(storetest.Background, v.Head())
		require.NoError(t, err)
		require.Equal(t, digest, im.Digest())
		next := storetest.New(0)
		group, _ := next.Groups()
		s = storetest.Open(t, dir, next, persist.Options{Sync: journal.SyncNever})
		require.Equal(t, packed, group.Entities())
		require.Equal(t, digest, storetest.Persistent(next.World))
		storetest.CloseStore(t, s)
	}
}
