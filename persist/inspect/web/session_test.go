package web

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// A crash loses records that were already shown, and the next program reuses their seqs. As soon
// as one session has noticed the crash, the other one must not answer with the old records. A
// browser would cache that answer for the new records.
func TestSession_RecordsLostInCrash(t *testing.T) {
	ctx := context.Background()
	play := func(files *disktest.Mem, health Health, ticks int) *sample {
		s := beginIn(t, func(w *ecs.World, o persist.Options) (*persist.Store, error) {
			return persist.Open(ctx, ".", w, storetest.In(files, o))
		})
		for range ticks {
			s.healths.Set(s.world.Entities()[0], health)
			s.commit(t)
		}
		return s
	}
	for _, first := range []string{"near", "far"} {
		t.Run(first, func(t *testing.T) {
			files := disktest.New()
			dying := play(files, 11, 2)
			require.NoError(t, dying.store.Sync(ctx))
			left := files.Crash()
			dying.healths.Set(dying.world.Entities()[0], 22)
			for range 3 {
				dying.commit(t)
			}
			// The requested records must be in the file.
			require.NoError(t, dying.store.Sync(ctx))
			h, err := New(ctx, func(ctx context.Context) (*inspect.View, error) { return inspect.OpenFS(ctx, files, ".") }, Options{Token: "secret", Interval: time.Hour})
			require.NoError(t, err)
			c := served(t, h)
			defer func() {
				c.Close()
				require.NoError(t, h.Close())
			}()
			ask := func(beside string) (health any, tag string) {
				status, _, head := c.send(c.request(apiPath + "map?record=5&x=Health&y=Health&where=index%3D%3D0" + beside))
				require.Equal(t, 200, status)
				return at(c.ask("map?record=5&x=Health&y=Health&where=index%3D%3D0"+beside), "x", 0), head.Get("ETag")
			}
			near, before := ask("")
			far, _ := ask("&beside=1")
			require.Equal(t, []any{22.0, 22.0}, []any{near, far})

			next := play(left, 33, 4)
			require.NoError(t, next.store.Close(ctx))
			for _, name := range files.Files() {
				if left.Bytes(name) == nil {
					require.NoError(t, files.Remove(name))
				}
			}
			for _, name := range left.Files() {
				files.Put(name, left.Bytes(name))
			}
			desk := map[string]*session{"near": h.fast, "far": h.slow}[first]
			require.NoError(t, desk.with(ctx, func() error { return desk.refresh(ctx) }))
			for _, beside := range []string{"", "&beside=1"} {
				health, tag := ask(beside)
				require.Equal(t, 33.0, health, "beside: %q", beside)
				require.NotEqual(t, before, tag)
			}
		})
	}
}
