package snap

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
)

// A page that is found twice with different contents counts as missing. If it is a page of a sparse
// array, it is unknown which of the indices in its range have rows.
func TestSalvage_DuplicatePage(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	v := ecs.Must(ecs.Register(w, ecs.Component[int32]{Name: "v", Kind: ecs.Indexed}))
	for _, e := range w.CreateN(nil, 3) {
		v.Set(e, 1)
	}
	r := saved(t, w)
	f, err := newFilling(t.Context(), r.Name, r.Manifest, r.room(), false)
	require.NoError(t, err)
	s := &salvage{f, map[pagefile.Key]*part{}}
	for a := range r.Manifest.Arrays() {
		k, p := a.Key(0), s.parts[a.Key(0).Column]
		content, ref, err := r.Own(a, 0)
		require.NoError(t, err)
		s.take(p, k, content, ref)
		s.take(p, k, content, ref) // An equal copy.
		s.dropUnusable()
		require.True(t, p.met.has(0), "column %d", k.Column)
		ref.CRC++
		s.take(p, k, content, ref)
		s.dropUnusable()
		require.False(t, p.met.has(0), "column %d", k.Column)
		ref.CRC--
		s.take(p, k, content, ref)
		require.False(t, p.met.has(0), "column %d", k.Column)
		if a.Kind != format.SparseArray {
			require.NotContains(t, f.Known(a), true)
		}
	}
	require.Empty(t, f.SparsePages())
}

// A manifest that claims impossible rows must be refused before rows are allocated.
func TestSalvage_ImpossibleManifest(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	type (
		only  struct{ N int64 }
		plain struct{ N int32 }
	)
	ecs.Must(ecs.RegisterResource(w, only{7}))
	ecs.Must(ecs.Register[plain](w))
	r := saved(t, w)
	_, err := Salvage(t.Context(), r.files, r.Name, r.Manifest, nil)
	require.NoError(t, err)
	for rows, resource := range map[int]bool{2: true, 1 << 30: false} {
		m := *r.Manifest
		m.Components = append([]format.ComponentSize(nil), m.Components...)
		for n, c := range m.Schema.Components {
			if c.Resource == resource {
				m.Components[n].Rows = rows
			}
		}
		_, err := Salvage(t.Context(), r.files, r.Name, &m, nil)
		require.ErrorContains(t, err, "more rows than the file can hold")
	}
}
