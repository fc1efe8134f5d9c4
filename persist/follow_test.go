package persist

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
)

// followerIn returns what im has of e.
func followerIn(t testing.TB, im *Image, s *schema, e ecs.Entity) *Followed {
	t.Helper()
	return Follow(im, s, peekedAt(t, im, e))
}

func TestAnEntityMovedWithoutAValueTakesTheOneThatIsThere(t *testing.T) {
	w := hostileBase(t)
	im, s := imageOf(t, w), schemaOf(w.World)
	c := im.Find("position")
	a, b := c.Entities[0], c.Entities[1]
	f := followerIn(t, im, s, a)
	moved := &tick{tick: 1, storages: []storagePatch{{
		before: c.Len(), after: c.Len(), entityRanges: all(2), entities: entityBytes(b, a),
	}}}
	require.NoError(t, f.Apply(background, moved, journal.ID{Epoch: 1, Seq: 1}))
	require.NoError(t, im.apply(moved, journal.ID{Epoch: 1, Seq: 1}))
	row, value := f.Row(0)
	require.Equal(t, 1, row)
	require.Equal(t, c.Row(c.Find(a)), value)
}

// FuzzFollowedTick follows entities through a tick. If the tick leads to a state that
// holds together, they are what it has of them.
func FuzzFollowedTick(f *testing.F) {
	for _, payload := range payloads(f) {
		f.Add(payload)
	}
	f.Add((&tick{storages: []storagePatch{{before: 7, after: 7, entityRanges: all(2), entities: entityBytes(1, 2)}}}).payload())
	w := hostileBase(f)
	s := schemaOf(w.World)
	entities := append([]ecs.Entity{0, ecs.NewEntity(8, 1), ecs.NewEntity(99, 1)}, w.Entities()...)
	f.Fuzz(func(t *testing.T, payload []byte) {
		decoded, err := decodeTick(payload)
		if err != nil {
			return
		}
		var followers []*Followed
		for _, e := range entities {
			followers = append(followers, followerIn(t, imageOf(t, w), s, e))
		}
		decoded.parent = journal.ID{}
		after := journal.ID{Epoch: 1, Seq: 1}
		im := imageOf(t, w)
		whole := im.apply(decoded, after) == nil && im.fill(newTestWorld(0).World, "payload") == nil
		for _, f := range followers {
			boundedTightly(t, len(payload), func() { err = f.Apply(background, decoded, after) })
			if !whole {
				continue
			}
			require.NoError(t, err)
			got, err := f.State()
			require.NoError(t, err)
			require.Equal(t, peekedAt(t, im, f.Entity()), got)
		}
	})
}
