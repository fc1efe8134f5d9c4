package dump

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

func TestShowFindsTheTickThatEndedAnEntity(t *testing.T) {
	dir := t.TempDir()
	w := ecs.NewWorld(ecs.Options{})
	store, err := persist.Open(context.Background(), dir, w, persist.Options{Now: clock()})
	require.NoError(t, err)
	for range 3 {
		w.Create()
	}
	require.NoError(t, store.Commit()) // 1: 0v1, 1v1 and 2v1 begin.
	w.Destroy(ecs.NewEntity(1, 1))
	require.NoError(t, store.Commit()) // 2: 1v1 ends.
	w.Clear()
	require.NoError(t, store.Commit()) // 3: 0v1 and 2v1 end.
	e := w.Create()
	w.Destroy(e)
	f := w.Create()
	require.NoError(t, store.Commit()) // 4: one begins and ends, its successor begins.
	w.Clear()
	w.Create()
	require.NoError(t, store.Commit()) // 5: the successor ends, the next begins.
	require.NoError(t, store.Close(context.Background()))
	for _, test := range []struct {
		entity ecs.Entity
		want   string
	}{
		{ecs.NewEntity(0, 1), " was destroyed in tick 3 (record 3); "},
		{ecs.NewEntity(1, 1), " was destroyed in tick 2 (record 2); "},
		{ecs.NewEntity(2, 1), " was destroyed in tick 3 (record 3); "},
		{e, " was destroyed in tick 4 (record 4); "},
		{f, " was destroyed in tick 5 (record 5); "},
	} {
		code, _, stderr := ecsdump("show", dir, test.entity.String())
		assert.Equal(t, exitNotFound, code, stderr)
		assert.Contains(t, stderr, test.want, "show %v", test.entity)
	}
}
