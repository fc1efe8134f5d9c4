package inspect_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// followerIn returns a follower of e in the state im.
func followerIn(t testing.TB, im *image.Image, s *format.Schema, e ecs.Entity) *inspect.Followed {
	t.Helper()
	return inspect.Follow(im, s, storetest.PeekedAt(t, im, e))
}

func TestFollower_NewRowWithoutValueInTick(t *testing.T) {
	w := storetest.HostileBase(t)
	im, s := storetest.ImageOf(t, w), format.SchemaOf(w.World)
	c := im.Find("position")
	a, b := c.Entities[0], c.Entities[1]
	f := followerIn(t, im, s, a)
	moved := &format.Tick{Tick: 1, Storages: []format.StoragePatch{{
		Before: c.Len(), After: c.Len(), EntityRanges: storetest.All(2), Entities: storetest.EntityBytes(b, a),
	}}}
	require.NoError(t, f.Apply(storetest.Background, moved, journal.ID{Epoch: 1, Seq: 1}))
	require.NoError(t, im.Apply(moved, journal.ID{Epoch: 1, Seq: 1}))
	row, value := f.Row(0)
	require.Equal(t, 1, row)
	require.Equal(t, c.Row(c.Find(a)), value)
}

// FuzzFollowedTick applies a tick to followers. If the tick leads to a valid state, the followers
// must have the values of that state.
func FuzzFollowedTick(f *testing.F) {
	for _, payload := range storetest.Payloads(f) {
		f.Add(payload)
	}
	f.Add(storetest.Payload((&format.Tick{Storages: []format.StoragePatch{{Before: 7, After: 7, EntityRanges: storetest.All(2), Entities: storetest.EntityBytes(1, 2)}}})))
	w := storetest.HostileBase(f)
	s := format.SchemaOf(w.World)
	entities := append([]ecs.Entity{0, ecs.NewEntity(8, 1), ecs.NewEntity(99, 1)}, w.Entities()...)
	f.Fuzz(func(t *testing.T, payload []byte) {
		decoded, err := format.DecodeTick(payload)
		if err != nil {
			return
		}
		var followers []*inspect.Followed
		for _, e := range entities {
			followers = append(followers, followerIn(t, storetest.ImageOf(t, w), s, e))
		}
		decoded.Parent = journal.ID{}
		after := journal.ID{Epoch: 1, Seq: 1}
		im := storetest.ImageOf(t, w)
		whole := im.Apply(decoded, after) == nil && im.Fill(storetest.New(0).World, "payload") == nil
		for _, f := range followers {
			storetest.BoundedTightly(t, len(payload), func() { err = f.Apply(storetest.Background, decoded, after) })
			if !whole {
				continue
			}
			require.NoError(t, err)
			got, err := f.State()
			require.NoError(t, err)
			require.Equal(t, storetest.PeekedAt(t, im, f.Entity()), got)
		}
	})
}
