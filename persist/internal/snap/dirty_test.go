package snap

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist/internal/format"
)

func TestDirty_MergeAddsPages(t *testing.T) {
	e := ecs.NewEntity(2*format.PageRows, 1)
	var a, b Dirty
	a.SetOp(raw.OpRemove, 0, e)
	b.SetOp(raw.OpRemove, 0, ecs.NewEntity(70*format.PageRows, 1))
	b.SetOp(raw.OpClear, 1, 0)
	b.SetOp(raw.OpDestroy, format.NoComponent, e)
	a.Merge(&b)
	require.True(t, a.component(0).sparse.has(2) && a.component(0).sparse.has(70) && !a.component(0).sparse.has(3))
	require.True(t, a.component(1).cleared && !a.component(0).cleared)
	require.True(t, a.destroyed.has(2))
	require.False(t, a.All)
	a.Merge(&Dirty{All: true})
	require.True(t, a.All)
}
