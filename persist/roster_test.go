package persist_test

import (
	"cmp"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

func TestARosterIsTheBeginningOfTheEntitiesAliveByIndex(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	w := ecs.NewWorld(ecs.Options{})
	for range 3*format.PageRows + 5 {
		w.Create()
	}
	for range 2 * format.PageRows {
		w.Destroy(w.Entities()[rng.IntN(w.Len())])
	}
	want := slices.Clone(w.Entities())
	slices.SortFunc(want, func(a, b ecs.Entity) int { return cmp.Compare(a.Index(), b.Index()) })
	file := filepath.Join(t.TempDir(), "w.save")
	require.NoError(t, persist.Save(storetest.Background, file, w))
	v, err := inspect.OpenReadOnly(storetest.Background, file)
	require.NoError(t, err)
	defer v.Close()
	for _, part := range [][2]int{{0, 0}, {0, 1}, {0, 20}, {7, 13}, {100, 1}, {len(want) - 3, 9}, {len(want) + 5, 2}, {0, len(want)}} {
		skip, n := part[0], part[1]
		_, alive, entities, err := v.Roster(storetest.Background, v.Head(), skip, n)
		require.NoError(t, err)
		require.Equal(t, len(want), alive)
		require.ElementsMatch(t, want[min(skip, len(want)):min(skip+n, len(want))], entities)
		require.True(t, slices.IsSortedFunc(entities, func(a, b ecs.Entity) int { return cmp.Compare(a.Index(), b.Index()) }))
	}
}

func TestARosterIsOfStatesInSnapshotsOnly(t *testing.T) {
	dir, _ := Branching(t) // A snapshot at 0 and 7.
	v := storetest.Verified(t, dir)
	for seq := range uint64(11) {
		tick, _, entities, err := v.Roster(storetest.Background, seq, 0, 1000)
		if seq != 0 && seq != 7 {
			require.ErrorContains(t, err, "no snapshot holds the state")
			continue
		}
		require.NoError(t, err)
		im, err := v.At(storetest.Background, seq)
		require.NoError(t, err)
		require.Equal(t, im.Tick, tick)
		require.Len(t, entities, im.Alive)
	}
}
