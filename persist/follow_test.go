package persist

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
)

// followerIn returns what im has of e.
func followerIn(t testing.TB, im *Image, s *schema, e ecs.Entity) *follower {
	t.Helper()
	at := peekedAt(t, im, e)
	f := &follower{
		entity: e, id: im.ID, tick: im.Tick, schema: s, row: at.Row, holder: at.Holder,
		alive: im.Alive, free: im.Free, total: len(im.Registry),
		whole: func(context.Context, uint64) (*Image, error) { return im, nil },
	}
	for n, c := range im.Components {
		r := followedRow{n: c.Len(), row: at.Components[n].Row}
		if r.row >= 0 {
			r.value = c.Row(r.row)
		}
		f.rows = append(f.rows, r)
	}
	return f
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
	require.NoError(t, f.apply(background, moved, journal.ID{Epoch: 1, Seq: 1}))
	require.NoError(t, im.apply(moved, journal.ID{Epoch: 1, Seq: 1}))
	require.Equal(t, 1, f.has(0))
	require.Equal(t, c.Row(c.Find(a)), f.rows[0].value)
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
		var followers []*follower
		for _, e := range entities {
			followers = append(followers, followerIn(t, imageOf(t, w), s, e))
		}
		decoded.parent = journal.ID{}
		after := journal.ID{Epoch: 1, Seq: 1}
		im := imageOf(t, w)
		whole := im.apply(decoded, after) == nil && im.fill(newTestWorld(0).World, "payload") == nil
		for _, f := range followers {
			boundedTightly(t, len(payload), func() { err = f.apply(background, decoded, after) })
			if !whole {
				continue
			}
			require.NoError(t, err)
			got, err := f.state()
			require.NoError(t, err)
			require.Equal(t, peekedAt(t, im, f.entity), got)
		}
	})
}
