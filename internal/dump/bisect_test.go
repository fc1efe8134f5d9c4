package dump

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// TestBisect_LastChange compares lastChange with a search that judges every state. Some states are
// skipped.
func TestBisect_LastChange(t *testing.T) {
	const ticks = 5 * backwardBlock
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "D")
	w := ecs.NewWorld(ecs.Options{})
	store, err := persist.Open(ctx, dir, w, persist.Options{})
	require.NoError(t, err)
	for range ticks {
		require.NoError(t, store.Commit())
	}
	require.NoError(t, store.Close(ctx))
	v, err := inspect.OpenReadOnly(ctx, dir)
	require.NoError(t, err)
	defer v.Close()
	b := &bisectCmd{doc: new(bisectDoc)}
	b.route, err = (&source{&call{ctx: ctx}, v, dir}).route("", "@latest")
	require.NoError(t, err)
	require.Len(t, b.states, ticks+1)

	random := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		verdicts := make([]string, len(b.states))
		v, changes := good, 1+random.IntN(3)
		for i := range verdicts {
			if random.IntN(ticks) < changes {
				v = map[string]string{good: bad, bad: good}[v]
			}
			// Skip random states, and also states near the block boundaries of lastChange.
			if verdicts[i] = v; random.IntN(4) == 0 || i%backwardBlock < 2 {
				verdicts[i] = skip
			}
		}
		times := map[uint64]int{} // By tick: how often the search judged the state.
		b.judge = func(im state, _ *inspect.Commit) (string, error) {
			times[im.Tick]++
			return verdicts[im.Tick], nil
		}
		b.verdicts = map[int]probeDoc{}
		var want *flipDoc
		require.NoError(t, b.changes(0, ticks, func(at flipDoc) error {
			want = &at
			return nil
		}))
		b.doc.Judged, b.verdicts = 0, map[int]probeDoc{}
		clear(times)
		got, err := b.lastChange(ticks)
		assert.Len(t, times, b.doc.Judged, "each judged state counts once")
		for tick, n := range times {
			assert.Equal(t, 1, n, "tick %d", tick)
		}
		if want == nil {
			assert.Error(t, err)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, *want, got)
		assert.LessOrEqual(t, b.doc.Judged, max(backwardBlock+1, 2*(ticks-int(want.Tick))+2*backwardBlock))
	}
}
