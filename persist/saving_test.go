package persist_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
	"github.com/stet-ecs/stet/persist/internal/progress"
	"github.com/stet-ecs/stet/persist/internal/snap"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// bigWorld returns a world with several batches of pages, rows of every sort, and gaps in all
// arrays.
func bigWorld(t testing.TB) *storetest.World {
	t.Helper()
	w := storetest.New(0)
	w.Fill(9_000)
	for i, e := range w.Entities() {
		if i%7 == 3 {
			w.Destroy(e)
		}
	}
	w.Commit()
	return w
}

func TestSave_SamePagesAsSnapshot(t *testing.T) {
	for _, w := range []*storetest.World{storetest.New(0), storetest.HostileBase(t), bigWorld(t)} {
		file := filepath.Join(t.TempDir(), "save")
		require.NoError(t, persist.Save(storetest.Background, file, w.World))
		want, _ := savePages(w)
		root, err := disk.Open(filepath.Dir(file))
		require.NoError(t, err)
		defer root.Close()
		f, err := pagefile.Open(root, "save")
		require.NoError(t, err)
		defer f.Close()
		require.Equal(t, len(want), int(f.Info().Pages))
		require.NoError(t, f.Scan(func(k pagefile.Key, value []byte) error {
			require.Equal(t, want[k], value, "page %v", k)
			return nil
		}))
		checkPages(t, file)
	}
}

func TestSave_ContextEnds(t *testing.T) {
	w := bigWorld(t)
	file := filepath.Join(t.TempDir(), "save")
	require.NoError(t, persist.Save(storetest.Background, file, storetest.HostileBase(t).World))
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(storetest.Background)
	steps := 0
	ctx = persist.WithProgress(ctx, func(p persist.Progress) {
		require.Equal(t, progress.PhaseWrite, p.Phase)
		if steps++; steps == 3 {
			cancel()
		}
	})
	require.ErrorIs(t, persist.Save(ctx, file, w.World), context.Canceled)
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, before, after)
	names, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, names, 1)
}

// reported returns how often do reported progress. The progress must rise to the total.
func reported(t *testing.T, phase string, do func(context.Context) error) (steps int) {
	t.Helper()
	var last persist.Progress
	err := do(persist.WithProgress(storetest.Background, func(p persist.Progress) {
		steps++
		require.Equal(t, phase, p.Phase)
		require.GreaterOrEqual(t, p.Done, last.Done)
		require.LessOrEqual(t, p.Done, p.Total)
		last = p
	}))
	require.NoError(t, err)
	require.Equal(t, last.Total, last.Done)
	return steps
}

func TestProgress_PhasesOfSaveAndLoad(t *testing.T) {
	w, file := bigWorld(t), filepath.Join(t.TempDir(), "save")
	saved := reported(t, progress.PhaseWrite, func(ctx context.Context) error { return persist.Save(ctx, file, w.World) })
	into := storetest.New(0)
	loaded := reported(t, progress.PhaseLoad, func(ctx context.Context) error { return persist.Load(ctx, file, into.World) })
	require.Greater(t, saved, 10)
	require.Greater(t, loaded, 10)
	require.LessOrEqual(t, max(saved, loaded), progress.Steps+3)
	require.Equal(t, storetest.Persistent(w.World), storetest.Persistent(into.World))
}

func TestLoad_ContextEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "save")
	require.NoError(t, persist.Save(storetest.Background, file, bigWorld(t).World))
	into := storetest.HostileBase(t)
	before := into.Digest()
	ctx, cancel := context.WithCancel(storetest.Background)
	ctx = persist.WithProgress(ctx, func(p persist.Progress) {
		if p.Done > p.Total/2 {
			cancel()
		}
	})
	require.ErrorIs(t, persist.Load(ctx, file, into.World), context.Canceled)
	require.Equal(t, before, into.Digest())
}

func TestLoad_ContentOfEveryPage(t *testing.T) {
	for name, w := range map[string]*storetest.World{"empty": storetest.New(0), "small": storetest.HostileBase(t), "big": bigWorld(t)} {
		file := filepath.Join(t.TempDir(), "save")
		require.NoError(t, persist.Save(storetest.Background, file, w.World))
		r := openedSnapshot(t, file)
		for _, bare := range []bool{false, true} {
			table := snap.PageTable{}
			im, err := r.Load(storetest.Background, table, bare)
			require.NoError(t, err, name)
			requirePages(t, r, im, table, bare)
		}
	}
}

func openedSnapshot(t testing.TB, file string) *snap.Reader {
	t.Helper()
	root, err := disk.Open(filepath.Dir(file))
	require.NoError(t, err)
	t.Cleanup(func() { root.Close() })
	r, err := snap.Open(root, filepath.Base(file), catalog.SnapshotName)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

// Load also reads a snapshot that shares pages with older ones.
func TestLoad_SharedPages(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	w := bigWorld(t)
	s := storetest.Open(t, dir, w, persist.Options{})
	for range 2 {
		e := w.Entities()[0]
		w.Position.Mut(e).X++
		require.NoError(t, s.Commit())
		_, err := s.Snapshot(storetest.Background)
		require.NoError(t, err)
	}
	storetest.CloseStore(t, s)
	v := storetest.Verified(t, dir)
	shared := false
	files, err := disk.Open(dir)
	require.NoError(t, err)
	defer files.Close()
	for _, info := range v.Snapshots() {
		r, err := snap.Open(files, info.Name, catalog.SnapshotName)
		require.NoError(t, err)
		table := snap.PageTable{}
		got, err := r.Load(storetest.Background, table, false)
		require.NoError(t, err)
		requirePages(t, r, got, table, false)
		shared = shared || len(r.Manifest.Files) > 0
		r.Close()
	}
	require.True(t, shared)
}
