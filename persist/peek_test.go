package persist_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

func TestPeek_SameAsWholeState(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		v := storetest.WildView(t, seed)
		require.GreaterOrEqual(t, len(v.Snapshots()), 3)
		entities := storetest.Lives(t, v)
		for _, seq := range storetest.SeqsOf(v) {
			im := storetest.ImageAt(t, v, seq)
			for _, e := range entities {
				s, err := v.Peek(storetest.Background, e, seq)
				require.NoError(t, err)
				require.Equal(t, storetest.PeekedAt(t, im, e), s, "seed %d, %v at record %d", seed, e, seq)
			}
		}
	}
}

// Peek reads only a few blocks of a save. If any block is damaged, Peek returns the correct values
// or an error.
func TestPeek_OtherBlocksDamaged(t *testing.T) {
	t.Parallel()
	const block = 64 << 10
	file := filepath.Join(t.TempDir(), "save")
	w := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[storetest.Position](w)
	for i := range 60_000 {
		positions.Set(w.Create(), storetest.Position{X: float32(i), Y: 1})
	}
	require.NoError(t, persist.Save(storetest.Background, file, w))
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	e := ecs.NewEntity(40_002, 1)
	want := storetest.PeekedAt(t, storetest.ImageAt(t, storetest.ViewOf(t, file), 0), e)
	right, refused := 0, 0
	for at := block / 2; at < len(good); at += block {
		bad := slices.Clone(good)
		bad[at] ^= 1
		require.NoError(t, os.WriteFile(file, bad, 0o600))
		v, err := inspect.OpenReadOnly(storetest.Background, file)
		if err != nil {
			require.ErrorIs(t, err, persist.ErrCorrupt)
			continue
		}
		if got, err := v.Peek(storetest.Background, e, 0); err != nil {
			require.ErrorIs(t, err, persist.ErrCorrupt)
			refused++
		} else {
			require.Equal(t, want, got)
			right++
		}
		require.NoError(t, v.Close())
	}
	require.Positive(t, refused)
	require.Greater(t, right, refused)
}

func TestPeek_SnapshotDamaged(t *testing.T) {
	mem, _ := bushy(t)
	v, err := inspect.OpenFS(storetest.Background, mem, ".")
	require.NoError(t, err)
	im := storetest.ImageAt(t, v, v.Head())
	e := im.Registry[7]
	want := storetest.PeekedAt(t, im, e)
	for at := 0; at+100 < len(mem.Bytes(catalog.SnapshotName(4))); at += 4096 {
		v, err := inspect.OpenFS(storetest.Background, flipped(mem, catalog.SnapshotName(4), 8*at+8*100), ".")
		require.NoError(t, err)
		got, err := v.Peek(storetest.Background, e, v.Head())
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err = v.Peek(storetest.Background, e, 99)
	require.ErrorIs(t, err, persist.ErrNotFound)
}

// None and Vacant are not entities. For both, Peek and Trace return the resources of the world. The
// entity in their results is None.
func TestPeek_NoneReadsResources(t *testing.T) {
	t.Parallel()
	v := storetest.WildView(t, 1)
	want, err := v.Peek(storetest.Background, ecs.Vacant, v.Head())
	require.NoError(t, err)
	got, err := v.Peek(storetest.Background, ecs.None, v.Head())
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, ecs.None, got.Entity)
	require.True(t, slices.ContainsFunc(got.Components, func(c inspect.EntityComponent) bool { return c.Resource && c.Row == 0 }))
	traced := func(e ecs.Entity) (texts []string) {
		require.NoError(t, v.Trace(storetest.Background, e, 0, v.Head(), func(e *inspect.TraceEvent) error {
			texts = append(texts, fmt.Sprint(e.Seq, e.Kind, e.Component, e.New))
			return nil
		}))
		require.NoError(t, v.TraceBack(storetest.Background, e, v.Head(), func(s *inspect.Stretch) bool {
			require.Equal(t, ecs.None, s.Last.Entity)
			texts = append(texts, fmt.Sprint(len(s.Events)))
			return true
		}))
		return texts
	}
	require.Greater(t, len(traced(ecs.None)), 2)
	require.Equal(t, traced(ecs.Vacant), traced(ecs.None))
}

// Tracing an entity that never existed is an error. Tracing an entity that was destroyed before the
// traced records succeeds.
func TestTrace_EntityNeverExisted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1})
	gone := w.Create()
	require.NoError(t, s.Commit())
	w.Destroy(gone)
	require.NoError(t, s.Commit())
	w.Create()
	w.Create()
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)
	v := storetest.ViewOf(t, dir)
	trace := func(e ecs.Entity, from, to uint64) error {
		return v.Trace(storetest.Background, e, from, to, func(*inspect.TraceEvent) error { return nil })
	}
	for _, e := range []ecs.Entity{ecs.NewEntity(0, 3), ecs.NewEntity(7, 1), ecs.NewEntity(1, 0), ecs.NewEntity(1, 2)} {
		err := trace(e, 0, v.Head())
		require.ErrorIs(t, err, persist.ErrNotFound, e)
		require.ErrorContains(t, err, e.String())
	}
	require.ErrorIs(t, trace(ecs.NewEntity(0, 2), 0, v.Head()-1), persist.ErrNotFound, "it is created by a later record")
	require.NoError(t, trace(ecs.NewEntity(0, 2), 0, v.Head()))
	require.NoError(t, trace(gone, v.Head()-1, v.Head()), "it was destroyed before")
}
