package persist

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/internal/disk"
	"github.com/stet-ecs/stet/internal/pagefile"
)

// bigWorld has several batches of pages, rows of every sort, and gaps in all arrays.
func bigWorld(t testing.TB) *testWorld {
	t.Helper()
	w := newTestWorld(0)
	w.fill(9_000)
	for i, e := range w.Entities() {
		if i%7 == 3 {
			w.Destroy(e)
		}
	}
	w.Commit()
	return w
}

func TestASaveHasThePagesOfASnapshot(t *testing.T) {
	for _, w := range []*testWorld{newTestWorld(0), hostileBase(t), bigWorld(t)} {
		file := filepath.Join(t.TempDir(), "save")
		require.NoError(t, Save(background, file, w.World))
		want, _ := savePages(w)
		root, err := disk.OpenDir(filepath.Dir(file))
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
		checkOrders(t, file)
	}
}

func TestASaveStopsWithTheContext(t *testing.T) {
	w := bigWorld(t)
	file := filepath.Join(t.TempDir(), "save")
	require.NoError(t, Save(background, file, hostileBase(t).World))
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(background)
	steps := 0
	ctx = WithProgress(ctx, func(p Progress) {
		require.Equal(t, PhaseWrite, p.Phase)
		if steps++; steps == 3 {
			cancel()
		}
	})
	require.ErrorIs(t, Save(ctx, file, w.World), context.Canceled)
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, before, after)
	names, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, names, 1)
}

// reported returns the steps that do reports, which must rise to their total.
func reported(t *testing.T, phase Phase, do func(context.Context) error) (steps int) {
	t.Helper()
	var last Progress
	err := do(WithProgress(background, func(p Progress) {
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

func TestSaveAndLoadTellHowFarTheyAre(t *testing.T) {
	w, file := bigWorld(t), filepath.Join(t.TempDir(), "save")
	saved := reported(t, PhaseWrite, func(ctx context.Context) error { return Save(ctx, file, w.World) })
	into := newTestWorld(0)
	loaded := reported(t, PhaseLoad, func(ctx context.Context) error { return Load(ctx, file, into.World) })
	require.Greater(t, saved, 10)
	require.Greater(t, loaded, 10)
	require.LessOrEqual(t, max(saved, loaded), progressSteps+3)
	require.Equal(t, persistent(w.World), persistent(into.World))
}

func TestALoadStopsWithTheContext(t *testing.T) {
	file := filepath.Join(t.TempDir(), "save")
	require.NoError(t, Save(background, file, bigWorld(t).World))
	into := hostileBase(t)
	before := into.Digest()
	ctx, cancel := context.WithCancel(background)
	ctx = WithProgress(ctx, func(p Progress) {
		if p.Done > p.Total/2 {
			cancel()
		}
	})
	require.ErrorIs(t, Load(ctx, file, into.World), context.Canceled)
	require.Equal(t, before, into.Digest())
}

func TestAFileWithNothingWrongIsLoadedAtOnce(t *testing.T) {
	for name, w := range map[string]*testWorld{"empty": newTestWorld(0), "small": hostileBase(t), "big": bigWorld(t)} {
		file := filepath.Join(t.TempDir(), "save")
		require.NoError(t, Save(background, file, w.World))
		r := openedSnapshot(t, file)
		for _, bare := range []bool{false, true} {
			_, err := r.loadAtOnce(background, nil, bare)
			require.NoError(t, err, name)
		}
	}
}

func openedSnapshot(t testing.TB, file string) *snapshotReader {
	t.Helper()
	root, err := disk.OpenDir(filepath.Dir(file))
	require.NoError(t, err)
	t.Cleanup(func() { root.Close() })
	r, err := openSnapshot(root, filepath.Base(file), snapshotName)
	require.NoError(t, err)
	t.Cleanup(r.close)
	return r
}

// A snapshot that shares pages with those before it is loaded at once as well.
func TestSharedPagesAreLoadedAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := bigWorld(t)
	s := open(t, dir, w, Options{})
	for range 2 {
		e := w.Entities()[0]
		w.position.Mut(e).X++
		require.NoError(t, s.Commit())
		_, err := s.Snapshot(background)
		require.NoError(t, err)
	}
	closeStore(t, s)
	v := verified(t, dir)
	shared := false
	for _, info := range v.Snapshots() {
		r, err := openSnapshot(v.files, info.Name, snapshotName)
		require.NoError(t, err)
		table := pageTable{}
		got, err := r.loadAtOnce(background, table, false)
		require.NoError(t, err)
		inOrder := pageTable{}
		want, err := r.loadInOrder(background, inOrder)
		require.NoError(t, err)
		require.True(t, maps.Equal(inOrder, table))
		requireSameImage(t, want, got, false)
		shared = shared || len(r.others) > 0
		r.close()
	}
	require.True(t, shared)
}

func TestRunsOfSparseEntriesAreDecoded(t *testing.T) {
	for n := 1; n < 40; n += 3 {
		rows := make([]uint32, pageRows)
		for i := range rows {
			rows[i] = noRow
			if i >= pageRows-n || i%(n+1) != n {
				rows[i] = uint32(i + i/(n+1)*5)
			}
		}
		page, found := appendSparsePage(nil, rows)
		require.True(t, found)
		next := 0
		require.NoError(t, decodeSparsePage(page, func(i int, row uint32, n int) error {
			for ; next < i; next++ {
				require.Equal(t, noRow, rows[next])
			}
			for k, have := range rows[i : i+n] {
				if have != row+uint32(k) {
					t.Fatalf("entry %d is %d, want %d", i+k, row+uint32(k), have)
				}
			}
			next += n
			return nil
		}))
		for ; next < pageRows; next++ {
			require.Equal(t, noRow, rows[next])
		}
	}
	zeros := make([]byte, 2*pageRows)
	require.NoError(t, decodeSparsePage(zeros, func(_ int, _ uint32, n int) error { require.Equal(t, pageRows, n); return nil }))
	require.Error(t, decodeSparsePage(append(zeros, 0, 0), func(int, uint32, int) error { return nil }))
	stop := errors.New("stop")
	require.ErrorIs(t, decodeSparsePage(zeros, func(int, uint32, int) error { return stop }), stop)
}
