package persist_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

func TestSpace_PrunableSegments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := ecs.NewWorld(ecs.Options{})
	ages := ecs.MustRegister(w, ecs.Component[int64]{Name: "Age"})
	e := w.Create()
	ctx := context.Background()
	store, err := persist.Open(ctx, dir, w, persist.Segmented(persist.Options{SnapshotBytes: -1}, 1000))
	require.NoError(t, err)
	tick := func(n int) {
		for range n {
			ages.Set(e, int64(w.Tick()))
			require.NoError(t, store.Commit())
		}
	}
	tick(40)
	base, err := store.Snapshot(ctx)
	require.NoError(t, err)
	tick(40)
	require.NoError(t, store.Close(ctx))

	v, err := inspect.OpenReadOnly(ctx, dir)
	require.NoError(t, err)
	defer v.Close()
	s, err := v.Space(ctx)
	require.NoError(t, err)
	newest := map[int]uint64{} // Newest record of each segment.
	for _, e := range v.Log().Entries {
		newest[e.Segment] = e.ID.Seq
	}
	snapshot := v.Snapshots()[len(v.Snapshots())-1].ID.Seq
	prunable := 0
	for i, seg := range s.Segments {
		assert.Equal(t, seg.Size, seg.Payloads+seg.Overhead, seg.Name)
		assert.Equal(t, newest[i] <= snapshot && i < len(s.Segments)-1, seg.Prunable, "%s, snapshot %v", seg.Name, base)
		if seg.Prunable {
			prunable++
		}
	}
	assert.Positive(t, prunable)
	assert.Less(t, prunable, len(s.Segments)-1)
}
