package repair

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// If a page of a sparse array is found twice, with different contents, the page counts as
// unknown. It is then also unknown which of its indices have no row.
func TestPieces_DuplicateSparsePage(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	s := ecs.MustRegister(w, ecs.Component[int32]{Name: "v", Kind: ecs.Indexed})
	for _, e := range w.CreateN(nil, 3) {
		s.Set(e, 1)
	}
	dir := t.TempDir()
	require.NoError(t, persist.Save(context.Background(), filepath.Join(dir, "a"), w))
	files, err := disk.Open(dir)
	require.NoError(t, err)
	defer files.Close()
	r, err := snap.Open(files, "a", catalog.SnapshotName)
	require.NoError(t, err)
	defer r.Close()
	a := r.Manifest.Array(0, format.SparseArray)
	k := a.Key(0)
	p := &pieces{manifest: r.Manifest, sparse: map[pagefile.Key][]byte{}}
	content, err := r.Page(a, 0)
	require.NoError(t, err)
	p.place(k, content)
	require.Len(t, p.sparse, 1)
	p.place(k, nil)
	require.Empty(t, p.sparse)
}
