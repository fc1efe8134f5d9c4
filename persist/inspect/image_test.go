package inspect_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// An Image shows the registry and the rows of the state that it is made from.
func TestImage_SameAsState(t *testing.T) {
	v := forked(t)
	for _, seq := range storetest.SeqsOf(v) {
		im, err := v.At(storetest.Background, seq)
		require.NoError(t, err)
		want := storetest.ImageAt(t, v, seq)
		require.Equal(t, []any{want.Tick, want.ID.Seq, want.Alive, want.Free, len(want.Registry)}, []any{im.Tick, im.Seq, im.Living, im.Free, im.Indices})
		require.Equal(t, want.Registry[:want.Alive], im.Entities())
		require.Equal(t, want.Digest(), im.Digest())
		for _, e := range storetest.Lives(t, v) {
			require.Equal(t, want.IsAlive(e), im.IsAlive(e), "%v", e)
			at, alive := im.EntityAt(e.Index())
			row := slices.IndexFunc(want.Registry, func(e2 ecs.Entity) bool { return e2.Index() == e.Index() })
			require.Equal(t, row >= 0 && row < want.Alive, alive, "%v", e)
			if row >= 0 {
				require.Equal(t, want.Registry[row], at)
			}
		}
		require.Len(t, im.Components, len(want.Components))
		require.Nil(t, im.Find("nothing"))
		for n, c := range want.Components {
			got := im.Components[n]
			require.Same(t, got, im.Find(c.Name))
			require.Equal(t, []any{c.Name, n, c.Resource, c.Rewinds, c.Indexed, c.N}, []any{got.Name, got.Number, got.Resource, got.Rewinds, got.Indexed, got.Len()})
			require.Equal(t, c.Entities, got.Entities())
			require.Equal(t, c.Layout.Fields, got.Fields())
			for row := range c.N {
				require.Equal(t, c.Row(row), got.Row(row))
				value, err := got.Value(row)
				require.NoError(t, err)
				require.True(t, storetest.ValueOf(t, c, row).Equal(value))
				if !c.Resource {
					require.Equal(t, c.Find(c.Entities[row]), got.Find(c.Entities[row]))
				}
			}
		}
	}
}

// Walk must pass the same image and components in each call, advanced by a tick.
func TestWalk_PassesSameImageEachTime(t *testing.T) {
	v := forked(t)
	var first *inspect.Image
	var components []*inspect.Component
	calls := 0
	require.NoError(t, v.Walk(storetest.Background, 0, v.Head(), func(im *inspect.Image, c *inspect.Commit) error {
		if first == nil {
			first, components = im, slices.Clone(im.Components)
		}
		require.Same(t, first, im)
		require.Equal(t, c == nil, calls == 0, "only the first state has no tick")
		calls++
		for n, c := range components {
			require.Same(t, c, im.Components[n])
			require.Equal(t, storetest.ImageAt(t, v, im.Seq).Components[n].Entities, c.Entities())
		}
		return nil
	}))
	require.NotNil(t, first)
}
