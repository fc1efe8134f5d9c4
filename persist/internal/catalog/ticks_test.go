package catalog_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/progress"
)

type text string

// recorded returns the catalog of a store with this many ticks, and the path from its first state
// to its last one. Some ticks are larger than a part.
func recorded(t *testing.T, ticks int, rng *rand.Rand) (dir string, c *catalog.Catalog, path []journal.Entry) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	w := ecs.NewWorld(ecs.Options{History: 1})
	texts := ecs.MustRegister[text](w)
	store, err := persist.Open(t.Context(), dir, w, persist.Options{Sync: journal.SyncNever})
	require.NoError(t, err)
	e := w.Create()
	for range ticks {
		size := rng.IntN(2000)
		if rng.IntN(50) == 0 {
			size = rng.IntN(600 << 10)
		}
		b := make([]byte, size)
		for i := range b {
			b[i] = 'a' + byte(rng.IntN(26))
		}
		texts.Set(e, text(b))
		w.Commit()
	}
	require.NoError(t, store.Close(t.Context()))
	c, err = catalog.Open(t.Context(), dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	path, err = c.Path(0, c.Head())
	require.NoError(t, err)
	require.Len(t, path, ticks)
	return dir, c, path
}

// Reading by several goroutines must return the same records as reading one record after the other.
func TestRecords_EqualsReadingOneByOne(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	dir, c, path := recorded(t, 400, rng)
	noSchema := func() *format.Schema { return nil }

	for _, part := range [][]journal.Entry{nil, path[:1], path[7:9], path[:64], path[:65], path} {
		var last progress.Progress
		ctx := progress.WithProgress(t.Context(), func(p progress.Progress) { last = p })
		n := 0
		require.NoError(t, c.Records(ctx, part, func(_ context.Context, r *catalog.Record) error {
			want := c.Record(part[n])
			require.NoError(t, c.Describe(r, path[0].ID, noSchema))
			require.NoError(t, c.Describe(want, path[0].ID, noSchema))
			require.Equal(t, want, r)
			n++
			return nil
		}))
		require.Len(t, part, n)
		require.Equal(t, progress.Progress{Phase: progress.PhaseReplay, Done: int64(n), Total: int64(n)}, last)
	}

	enough, at := errors.New("enough"), rng.IntN(len(path))
	others := errors.New("one behind it")
	read := make([]*catalog.Record, len(path))
	require.NoError(t, c.RecordsAtOnce(t.Context(), path, func(i int, r *catalog.Record) error {
		read[i] = r
		return c.DescribeAt(r)
	}))
	for i, r := range read {
		want := c.Record(path[i])
		require.NoError(t, c.DescribeAt(want))
		require.Equal(t, want, r)
	}
	require.ErrorIs(t, c.RecordsAtOnce(t.Context(), path, func(i int, r *catalog.Record) error {
		switch {
		case i == at:
			return enough
		case i > at:
			return others
		}
		return nil
	}), enough)
	require.NoError(t, c.RecordsAtOnce(t.Context(), nil, nil))

	n := 0
	err := c.Records(t.Context(), path, func(context.Context, *catalog.Record) error {
		if n++; n > at {
			return enough
		}
		return nil
	})
	require.ErrorIs(t, err, enough)
	require.Equal(t, at+1, n)

	ctx, cancel := context.WithCancel(t.Context())
	n = 0
	err = c.Records(ctx, path, func(context.Context, *catalog.Record) error {
		if n++; n > at {
			cancel()
		}
		return nil
	})
	require.True(t, err == nil && at == len(path)-1 || errors.Is(err, context.Canceled), "%v", err)
	require.Equal(t, at+1, n)

	// A caller gets all records before a damaged one.
	bad := path[at]
	f, err := os.OpenFile(filepath.Join(dir, "journal", c.Log.Segments[bad.Segment].Name), os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	b := make([]byte, 1)
	_, err = f.ReadAt(b, bad.Offset+50)
	require.NoError(t, err)
	b[0] ^= 1
	_, err = f.WriteAt(b, bad.Offset+50)
	require.NoError(t, err)
	n = 0
	err = c.Records(t.Context(), path, func(_ context.Context, r *catalog.Record) error {
		if err := c.Describe(r, path[0].ID, noSchema); err != nil {
			return err
		}
		require.Equal(t, path[n].ID, r.ID)
		n++
		return nil
	})
	require.ErrorIs(t, err, persist.ErrCorrupt)
	require.Equal(t, at, n)
}
