package persist_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/storetest"
	"github.com/stet-ecs/stet/persist/repair"
)

// requirePieces requires that all contents of the image got are also in the image want. It counts
// what is missing in got: rows by component or resource, and live entities.
func requirePieces(t testing.TB, want, got *image.Image) (rows map[string]int, entities int) {
	t.Helper()
	rows = map[string]int{}
	for _, c := range want.Components {
		g := got.Find(c.Name)
		if rows[c.Name] = c.Members() - g.Members(); rows[c.Name] == 0 {
			delete(rows, c.Name)
		}
		if c.Resource {
			if g.Len() > 0 {
				require.Equal(t, c.Row(0), g.Row(0), c.Name)
			}
			continue
		}
		for row, e := range g.Entities {
			if e != ecs.Vacant {
				require.True(t, want.IsAlive(e) || !c.Rewinds)
				at := c.Find(e)
				require.GreaterOrEqual(t, at, 0, "%s of %v", c.Name, e)
				require.Equal(t, c.Row(at), g.Row(row), "%s of %v", c.Name, e)
			}
		}
	}
	for _, e := range got.Registry[:got.Alive] {
		require.True(t, want.IsAlive(e), "%v", e)
	}
	require.Len(t, got.Registry, len(want.Registry))
	return rows, want.Alive - got.Alive
}

// requireMissing compares the losses in a report with the actual losses.
func requireMissing(t testing.TB, want, got *image.Image, r repair.RecoverReport) {
	t.Helper()
	rows, entities := requirePieces(t, want, got)
	said := map[string]int{}
	for _, m := range r.Missing {
		said[m.Component] = m.Rows
		if got.Find(m.Component).Indexed {
			require.GreaterOrEqual(t, m.Rows, rows[m.Component])
			rows[m.Component] = m.Rows
		}
		require.LessOrEqual(t, m.Rows, m.Of)
	}
	require.Equal(t, rows, said)
	require.Equal(t, entities, r.Entities)
}

// manyPages returns a world whose arrays have several pages each.
func manyPages(t testing.TB) *storetest.World {
	w := storetest.New(0)
	rng := rand.New(rand.NewPCG(1, 2))
	w.Fill(3 * format.PageRows)
	// This creates gaps, dead entities, and another order.
	for _, i := range rng.Perm(w.Len())[:format.PageRows] {
		w.Destroy(w.Entities()[i%w.Len()])
	}
	w.Fill(format.PageRows / 2)
	return w
}

// spoil overwrites n bytes of a file with other bytes.
func spoil(t testing.TB, file string, at, n int64) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	rubbish := make([]byte, n)
	for i := range rubbish {
		rubbish[i] = byte(at) + byte(i)*7 | 1
	}
	_, err = f.WriteAt(rubbish, at)
	require.NoError(t, err)
}

func TestRecoverPartial_OfSave(t *testing.T) {
	t.Parallel()
	w := manyPages(t)
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole")
	require.NoError(t, persist.Save(storetest.Background, whole, w.World))
	v := storetest.ViewOf(t, whole)
	want, err := v.Catalog().At(storetest.Background, 0)
	require.NoError(t, err)
	data, err := os.ReadFile(whole)
	require.NoError(t, err)
	size := int64(len(data))
	exact, partial, none := 0, 0, 0
	for at := int64(0); at < size; at += size / 8 {
		file := filepath.Join(dir, "spoiled")
		require.NoError(t, os.WriteFile(file, data, 0o600))
		spoil(t, file, at, min(5000, size-at))
		out := filepath.Join(t.TempDir(), "out")
		r, err := repair.Recover(storetest.Background, file, out, repair.RecoverOptions{Partial: true})
		if err != nil {
			require.ErrorIs(t, err, persist.ErrCorrupt)
			none++
			continue
		}
		saved := storetest.ViewOf(t, out)
		got, err := saved.Catalog().At(storetest.Background, 0)
		require.NoError(t, err)
		report, err := saved.Verify(storetest.Background)
		require.NoError(t, err)
		require.Empty(t, report.Problems)
		require.NoError(t, persist.Load(storetest.Background, out, storetest.New(0).World))
		if !r.Partial {
			require.Equal(t, want.Digest(), got.Digest(), "at %d", at)
			exact++
			continue
		}
		partial++
		requireMissing(t, want, got, r)
	}
	t.Logf("%d exact, %d in part, %d not", exact, partial, none)
	require.Positive(t, exact)
	require.Greater(t, partial, none)
}

func TestRecoverPartial_TicksAfterSnapshot(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	w := manyPages(t)
	s := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1})
	for i := range 6 {
		for k := range 500 {
			w.Position.Set(w.Entities()[(i*997+k*13)%w.Len()], storetest.Position{X: float32(i), Y: 7})
		}
		w.Destroy(w.Entities()[i*31])
		w.Fill(3)
		require.NoError(t, s.Commit())
	}
	digest := storetest.Persistent(w.World)
	storetest.CloseStore(t, s)
	v := storetest.Verified(t, dir)
	want, err := v.Catalog().At(storetest.Background, v.Head())
	require.NoError(t, err)
	require.Equal(t, digest, want.Digest())
	name := filepath.Join(dir, "snapshots/00000001.snap")
	info, err := os.Stat(name)
	require.NoError(t, err)
	for _, part := range []int64{4, 6} {
		damaged := storetest.CopyDir(t, dir)
		spoil(t, filepath.Join(damaged, "snapshots/00000001.snap"), info.Size()*part/8, 70<<10)
		out := filepath.Join(t.TempDir(), "out")
		_, err := repair.Recover(storetest.Background, damaged, out, repair.RecoverOptions{})
		require.ErrorIs(t, err, persist.ErrCorrupt)
		r, err := repair.Recover(storetest.Background, damaged, out, repair.RecoverOptions{Partial: true})
		require.NoError(t, err)
		require.True(t, r.Partial)
		require.False(t, r.Complete())
		require.Equal(t, 6, r.Replayed)
		require.Equal(t, v.Head(), r.Seq)
		saved := storetest.Verified(t, out)
		got, err := saved.Catalog().At(storetest.Background, saved.Head())
		require.NoError(t, err)
		requireMissing(t, want, got, r)
		require.NotEqual(t, v.Log().World, saved.Log().World)
		again := storetest.New(0)
		store := storetest.Open(t, out, again, persist.Options{})
		again.Fill(1) // New entities get no IDs that may have been in use.
		for _, e := range again.Entities() {
			require.True(t, got.IsAlive(e) || e.Index() >= uint32(len(want.Registry)) || e.Generation() > 1)
		}
		require.NoError(t, store.Commit())
		storetest.CloseStore(t, store)
	}
}

func TestRecoverPartial_EveryFlippedBit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "save")
	w := storetest.New(0)
	w.Fill(40)
	require.NoError(t, persist.Save(storetest.Background, file, w.World))
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	want, err := storetest.ViewOf(t, file).Catalog().At(storetest.Background, 0)
	require.NoError(t, err)
	step := 1
	if *storetest.Stride > 1 {
		step = len(data)**storetest.Stride/4000 + 1
	}
	rng := rand.New(rand.NewPCG(rand.Uint64(), 0))
	exact, partial, none := 0, 0, 0
	for at := rng.IntN(step); at < len(data); at += step {
		require.NoError(t, os.WriteFile(file, []byte(storetest.Flip(string(data), at, rng.IntN(8))), 0o600))
		out := filepath.Join(dir, "out")
		r, err := repair.Recover(storetest.Background, file, out, repair.RecoverOptions{Partial: true})
		if err != nil {
			require.ErrorIs(t, err, persist.ErrCorrupt, "byte %d", at)
			none++
			continue
		}
		got, err := storetest.ViewOf(t, out).Catalog().At(storetest.Background, 0)
		require.NoError(t, err)
		if r.Partial {
			requireMissing(t, want, got, r)
			partial++
		} else {
			require.Equal(t, want.Digest(), got.Digest(), "byte %d", at)
			exact++
		}
		require.NoError(t, os.Remove(out))
	}
	t.Logf("%d exact, %d in part, %d not", exact, partial, none)
	require.Positive(t, exact)
}
