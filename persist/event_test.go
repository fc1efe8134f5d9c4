package persist_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

type (
	hit   struct{ Damage int }
	flash struct{ Colour string }
)

// A ring is a world with events.
type ring struct {
	*ecs.World
	hits    *ecs.Events[hit]
	flashes *ecs.Events[flash]
	sounds  *ecs.EventReader[hit]
}

func newRing(t *testing.T) *ring {
	w := ecs.NewWorld(ecs.Options{History: 8})
	r := &ring{World: w, hits: ecs.Must(ecs.RegisterEvent[hit](w)), flashes: ecs.Must(ecs.RegisterEvent(w, ecs.Component[flash]{NoPersist: true}))}
	var err error
	r.sounds, err = r.hits.Reader("sounds")
	require.NoError(t, err)
	return r
}

// Events of a committed tick still exist in the next tick, also after a save or an opening of the
// store in between. Events of a NoPersist type end with their tick in every case.
func TestEvents_AcrossStoreAndSave(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "store")
	r := newRing(t)
	s, err := persist.Open(ctx, dir, r.World, persist.Options{})
	require.NoError(t, err)
	r.hits.Send(hit{1})
	require.NoError(t, s.Commit())
	r.hits.Send(hit{2})
	r.hits.Send(hit{3})
	r.flashes.Send(flash{"red"})
	for range r.sounds.All() {
		break // This reader has read the first event.
	}
	require.Equal(t, 1, r.flashes.Len())
	require.NoError(t, s.Commit())
	require.Zero(t, r.flashes.Len())

	save := filepath.Join(t.TempDir(), "save")
	require.NoError(t, persist.Save(ctx, save, r.World))
	storetest.CloseStore(t, s)
	for _, load := range []func(w *ecs.World) error{
		func(w *ecs.World) error { return persist.Load(ctx, save, w) },
		func(w *ecs.World) error {
			again, err := persist.Open(ctx, dir, w, persist.Options{})
			t.Cleanup(func() { storetest.CloseStore(t, again) })
			return err
		},
	} {
		again := newRing(t)
		require.NoError(t, load(again.World))
		require.Equal(t, storetest.Persistent(r.World), storetest.Persistent(again.World))
		require.Equal(t, []hit{{2}, {3}}, slices.Collect(again.hits.All()))
		require.Zero(t, again.flashes.Len())
		require.Equal(t, []hit{{2}, {3}}, slices.Collect(again.sounds.All()))
		again.Commit()
		require.Zero(t, again.hits.Len())
	}

	// A renamed event type is found by its former name, and its readers keep their positions.
	renamed := ecs.NewWorld(ecs.Options{})
	blows := ecs.Must(ecs.RegisterEvent(renamed, ecs.Component[hit]{Name: "blow", FormerNames: []string{"hit"}}))
	heard, err := blows.Reader("sounds")
	require.NoError(t, err)
	require.NoError(t, persist.Load(ctx, save, renamed))
	require.Equal(t, []hit{{2}, {3}}, slices.Collect(blows.All()))
	require.Equal(t, 2, heard.Len())
	renamed.Commit()
	require.Equal(t, uint64(2), heard.Missed())

	im := storetest.ImageAt(t, storetest.ViewOf(t, dir), 2)
	k := slices.IndexFunc(im.Components, func(c *image.Component) bool { return c.Name == "hit" })
	require.True(t, im.Components[k].Resource)
	require.Equal(t, `{Sent:3 Last:[{Damage:2} {Damage:3}] Now:[]}`, storetest.ValueOf(t, im.Components[k], 0).String())
}
