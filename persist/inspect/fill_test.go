package inspect_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// Fill replaces any contents of a world by any state of the store. The world keeps the program's
// types.
func TestFill_AnyState(t *testing.T) {
	v := storetest.WildView(t, 11)
	w := storetest.New(2)
	w.Fill(5)
	for _, seq := range storetest.SeqsOf(v) {
		require.NoError(t, v.Fill(storetest.Background, seq, w.World))
		im := storetest.ImageAt(t, v, seq)
		require.Equal(t, im.Digest(), storetest.Persistent(w.World), "record %d", seq)
		if c := im.Find("chase"); c.Len() > 0 {
			e := c.Entities[0]
			got, ok := w.Chase.Get(e)
			require.True(t, ok, "%v must have its component", e)
			require.Contains(t, string(storetest.ValueOf(t, c, 0).AppendExact(nil)), got.Target.String())
		}
	}
}

// If types do not fit, Fill fails with the error of Load and leaves the world unchanged.
func TestFill_Errors(t *testing.T) {
	dir := t.TempDir()
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{})
	w.Fill(5)
	require.NoError(t, s.Commit())
	require.NoError(t, s.Sync(storetest.Background))
	v, err := inspect.OpenReadOnly(storetest.Background, dir)
	require.NoError(t, err)
	defer v.Close()
	seq, err := v.Resolve("@latest")
	require.NoError(t, err)

	type position struct{ X string }
	type body struct{ Mass float64 }
	for want, register := range map[error]func(*ecs.World){
		persist.ErrSchema: func(w *ecs.World) { ecs.MustRegister[position](w) },
		raw.ErrDropped:    func(w *ecs.World) { ecs.MustRegister[body](w) },
	} {
		other := ecs.NewWorld(ecs.Options{})
		register(other)
		other.Create()
		before := other.Digest()
		err := v.Fill(storetest.Background, seq, other)
		require.ErrorIs(t, err, want)
		require.Equal(t, before, other.Digest())
	}
	require.ErrorIs(t, v.Fill(storetest.Background, seq, w.World), raw.ErrAttached)
	require.ErrorIs(t, v.Fill(storetest.Background, seq+100, storetest.New(0).World), persist.ErrNotFound)
	bare := ecs.NewWorld(ecs.Options{})
	require.NoError(t, v.Fill(storetest.Background, seq, bare), "Fill must keep unregistered components")
	require.Equal(t, storetest.Persistent(w.World), storetest.Persistent(bare))
}
