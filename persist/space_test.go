package persist_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// spaceStore creates a store with resources and an abandoned tick. One of its snapshots shares
// pages with another snapshot.
func spaceStore(t *testing.T) string {
	t.Helper()
	type position struct{ X, Y float64 }
	dir := t.TempDir()
	w := ecs.NewWorld(ecs.Options{History: 5})
	positions := ecs.MustRegister(w, ecs.Component[position]{Name: "Position"})
	names := ecs.MustRegister(w, ecs.Component[string]{Name: "Name"})
	tags := ecs.MustRegister(w, ecs.Component[struct{}]{Name: "Tag"})
	score := ecs.Must(ecs.RegisterResource(w, 7, ecs.Component[int]{Name: "score"}))
	ctx := context.Background()
	store, err := persist.Open(ctx, dir, w, persist.Options{SnapshotBytes: -1})
	require.NoError(t, err)
	var entities []ecs.Entity
	for range 20_000 {
		entities = append(entities, w.Create())
	}
	for i, e := range entities { // The storages of the components have different orders.
		positions.Set(entities[i^1], position{float64(i), 1})
		switch i % 3 {
		case 0:
			names.Set(e, "n")
		case 1:
			tags.Set(e, struct{}{})
		}
	}
	commit := func() { require.NoError(t, store.Commit()) }
	snapshot := func() {
		_, err := store.Snapshot(ctx)
		require.NoError(t, err)
	}
	commit()
	snapshot()
	for i := range 3 {
		positions.Mut(entities[i]).X = -1
		names.Remove(entities[3*i])
		w.Destroy(entities[100+i])
		*score.Mut() += i
		require.NoError(t, store.Mark("m"+string(rune('0'+i))))
		commit()
	}
	require.NoError(t, w.History().Rewind(1))
	positions.Mut(entities[9]).X = -1
	commit()
	snapshot()
	require.NoError(t, store.Close(ctx))
	return dir
}

func view(t *testing.T, path string) *inspect.View {
	t.Helper()
	v, err := inspect.OpenReadOnly(context.Background(), path)
	require.NoError(t, err)
	t.Cleanup(func() { v.Close() })
	return v
}

func TestSpace_PartsAddUpToFileSize(t *testing.T) {
	t.Parallel()
	dir := spaceStore(t)
	s, err := view(t, dir).Space(context.Background())
	require.NoError(t, err)
	require.Len(t, s.Snapshots, 3)
	for _, sn := range s.Snapshots {
		require.NoError(t, sn.Err)
		sum := sn.Manifest + sn.Entities + sn.References + sn.Tree + sn.Free + sn.Checksums
		for _, c := range sn.Components {
			sum += c.Sparse + c.Dense + c.Data
		}
		info, err := os.Stat(filepath.Join(dir, sn.Name))
		require.NoError(t, err)
		assert.Equal(t, info.Size(), sn.Size)
		assert.Equal(t, sn.Size, sum, sn.Name)
		assert.Positive(t, sn.Tree)
		assert.GreaterOrEqual(t, sn.Free, int64(0))
	}
	require.Len(t, s.Segments, 1)
	seg := s.Segments[0]
	assert.Equal(t, seg.Size, seg.Payloads+seg.Rewound+seg.Overhead)
	assert.Less(t, seg.Overhead, int64(2000))
	assert.Equal(t, 5, seg.Records)
	assert.False(t, seg.Prunable)
}

func TestSpace_ComponentsOfSnapshot(t *testing.T) {
	s, err := view(t, spaceStore(t)).Space(context.Background())
	require.NoError(t, err)
	full, sharing := s.Snapshots[1], s.Snapshots[2]
	const dataPages = 5 // Pages of 4096 rows.
	position := full.Components[0]
	assert.Equal(t, "Position", position.Name)
	assert.InDelta(t, 20_000*16, position.Data, dataPages*12)
	assert.InDelta(t, 20_000*8, position.Dense, dataPages*12)
	assert.InDelta(t, 20_000*2, position.Sparse, dataPages*12)
	tag := slices.IndexFunc(full.Components, func(c inspect.ComponentSpace) bool { return c.Name == "Tag" })
	assert.Zero(t, full.Components[tag].Data, "a tag has no data")
	assert.Positive(t, full.Components[tag].Dense)
	assert.InDelta(t, 25, full.References+full.Shared, 10, "the page of the resource is shared with the first snapshot")

	// The first page of Position changed. The last page changed too, because its rows moved to the
	// places of destroyed ones.
	assert.Positive(t, sharing.References)
	inFirst := position.Data - sharing.Components[0].Data
	assert.InDelta(t, 3*4096*16, inFirst, 100)
	assert.Greater(t, sharing.Shared, inFirst)
	assert.Less(t, sharing.Shared, full.Size)
}

// The dense and sparse pages of a component store its row order. A component with the row order of
// the registry or of another component refers to existing pages instead.
func TestSpaceUsage_ComponentsWithSameRowOrder(t *testing.T) {
	const n = 20_000
	w := ecs.NewWorld(ecs.Options{})
	a, b, c := ecs.MustRegister(w, ecs.Component[int64]{Name: "A"}), ecs.MustRegister(w, ecs.Component[int32]{Name: "B"}), ecs.MustRegister(w, ecs.Component[int16]{Name: "C"})
	for i := range n {
		e := w.Create()
		a.Set(e, int64(i))
		if i%2 == 0 {
			b.Set(e, int32(i))
			c.Set(e, int16(i))
		}
	}
	file := filepath.Join(t.TempDir(), "save")
	require.NoError(t, persist.Save(context.Background(), file, w))
	s, err := view(t, file).Space(context.Background())
	require.NoError(t, err)
	save := s.Snapshots[0]
	assert.InDelta(t, 8*n, save.Entities, 100)
	ofA, ofB, ofC := save.Components[0], save.Components[1], save.Components[2]
	assert.Zero(t, ofA.Dense, "the order of the registry")
	assert.InDelta(t, 2*n, ofA.Sparse, 100)
	assert.InDelta(t, 8*n/2, ofB.Dense, 100)
	assert.Positive(t, ofB.Sparse)
	assert.Zero(t, ofC.Dense+ofC.Sparse, "the order of B")
	assert.InDelta(t, 8*n+4*n/2+2*n/2, ofA.Data+ofB.Data+ofC.Data, 200)
	// Repeated pages: five dense ones of A, and three dense and five sparse ones of C.
	assert.InDelta(t, 13*15, save.References, 13*5)
	assert.Zero(t, save.Shared)
}

func TestSpace_PayloadsOfTicks(t *testing.T) {
	t.Parallel()
	v := view(t, spaceStore(t))
	s, err := v.Space(context.Background())
	require.NoError(t, err)
	commits, err := v.Commits(0, 1<<62)
	require.NoError(t, err)
	require.Len(t, commits, 5)
	var payloads, rewound int64
	for _, c := range commits {
		rest := c.Bytes - c.EntityBytes - c.OpBytes
		for _, r := range c.Rows {
			assert.Greater(t, r.Bytes, 8)
			rest -= r.Bytes
		}
		assert.Greater(t, rest, 10, "parent, tick and time")
		assert.Less(t, rest, 60)
		if c.OnHead {
			payloads += int64(c.Bytes)
		} else {
			rewound += int64(c.Bytes)
		}
	}
	assert.Equal(t, payloads, s.Segments[0].Payloads)
	assert.Equal(t, rewound, s.Segments[0].Rewound)
	assert.InDelta(t, 20_000*8, commits[0].EntityBytes, 40)
	assert.InDelta(t, 20_000*24, commits[0].Rows[0].Bytes, 40)
}

func TestSpace_DamagedSnapshot(t *testing.T) {
	dir := spaceStore(t)
	file := filepath.Join(dir, "snapshots", "00000002.snap")
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	content[len(content)-10] ^= 1
	require.NoError(t, os.WriteFile(file, content, 0o600))
	s, err := view(t, dir).Space(context.Background())
	require.NoError(t, err)
	assert.ErrorIs(t, s.Snapshots[1].Err, persist.ErrCorrupt)
	assert.Equal(t, "snapshots/00000002.snap", s.Snapshots[1].Name)
	assert.NoError(t, s.Snapshots[2].Err)
	assert.Zero(t, s.Snapshots[2].Shared, "nobody knows how long the pages are")
}
