package describe_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Each removed row counts once, after any kind of removal, and also in a storage with gaps.
func TestCountTick_Removals(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "D")
	w := ecs.NewWorld(ecs.Options{})
	packed := ecs.MustRegister(w, ecs.Component[int32]{Name: "Packed"})
	indexed := ecs.MustRegister(w, ecs.Component[int32]{Name: "Indexed", Kind: ecs.Indexed})
	store, err := persist.Open(t.Context(), dir, w, persist.Options{})
	require.NoError(t, err)
	var es []ecs.Entity
	give := func() {
		e := w.Create()
		packed.Set(e, 1)
		indexed.Set(e, 1)
		es = append(es, e)
	}
	destroy := func(i int) { w.Destroy(es[i]) }
	ticks := []struct {
		name           string
		do             func()
		added, removed int // Expected counts for both components.
		// Number of gaps in the Indexed storage that a clear removes. They count as removed rows.
		gaps int
	}{
		{"add", func() {
			for range 8 {
				give()
			}
		}, 8, 0, 0},
		{"destroy within", func() { destroy(2) }, 0, 1, 0},
		{"destroy and fill the gap", func() { destroy(4); give() }, 1, 1, 0},
		{"fill a gap", give, 1, 0, 0},
		{"remove", func() { packed.Remove(es[1]); indexed.Remove(es[1]) }, 0, 1, 0},
		{"destroy one without", func() { w.Destroy(es[1]) }, 0, 0, 0},
		{"destroy the last", func() { destroy(7) }, 0, 1, 0},
		{"clear", func() { packed.Clear(); indexed.Clear() }, 0, 6, 2},
		{"add and remove", func() {
			give()
			destroy(len(es) - 1)
		}, 1, 1, 0},
	}
	for _, tick := range ticks {
		tick.do()
		require.NoError(t, store.Commit())
	}
	require.NoError(t, store.Close(t.Context()))
	v, err := inspect.OpenReadOnly(t.Context(), dir)
	require.NoError(t, err)
	defer v.Close()
	commits, err := v.Commits(1, uint64(len(ticks)))
	require.NoError(t, err)
	require.Len(t, commits, len(ticks))
	for i := range commits {
		ops, err := commits[i].Ops()
		require.NoError(t, err)
		for _, c := range describe.CountTick(&commits[i], ops).Components {
			assert.Equal(t, ticks[i].added, c.Added, "%s: %s added", ticks[i].name, c.Name)
			removed := ticks[i].removed
			if c.Indexed {
				removed += ticks[i].gaps
			}
			assert.Equal(t, removed, c.Removed, "%s: %s removed", ticks[i].name, c.Name)
		}
	}
}
