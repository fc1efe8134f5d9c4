package dump

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

func TestShow_DestroyedEntity(t *testing.T) {
	dir := t.TempDir()
	w := ecs.NewWorld(ecs.Options{})
	store, err := persist.Open(context.Background(), dir, w, persist.Options{Now: clock()})
	require.NoError(t, err)
	for range 3 {
		w.Create()
	}
	require.NoError(t, store.Commit()) // Tick 1 creates 0v1, 1v1 and 2v1.
	w.Destroy(ecs.NewEntity(1, 1))
	require.NoError(t, store.Commit()) // Tick 2 destroys 1v1.
	w.Clear()
	require.NoError(t, store.Commit()) // Tick 3 destroys 0v1 and 2v1.
	e := w.Create()
	w.Destroy(e)
	f := w.Create()
	// Tick 4 creates and destroys an entity, and creates its successor.
	require.NoError(t, store.Commit())
	w.Clear()
	w.Create()
	// Tick 5 destroys the successor and creates the next entity.
	require.NoError(t, store.Commit())
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
