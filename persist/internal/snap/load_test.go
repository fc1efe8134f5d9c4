package snap

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// saved returns a reader of a save of w.
func saved(t *testing.T, w *ecs.World) *Reader {
	files, err := disk.Open(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { files.Close() })
	_, err = Saved(w).Create(t.Context(), files, "save")
	require.NoError(t, err)
	r, err := Open(files, "save", nil)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

// Loading a bare image also does checks that a world would do later. It leaves out indexed
// components and components with few entities. Loading an image for further ticks does none of
// these checks.
func TestLoad_SkipsChecksIfTicksFollow(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	all := ecs.MustRegister(w, ecs.Component[int64]{Name: "all"})
	half := ecs.MustRegister(w, ecs.Component[int32]{Name: "half"})
	few := ecs.MustRegister(w, ecs.Component[int16]{Name: "few"})
	at := ecs.MustRegister(w, ecs.Component[int8]{Name: "at", Kind: ecs.Indexed})
	n := 2*format.PageRows + 7
	for i := range n {
		e := w.Create()
		all.Set(e, int64(i))
		at.Set(e, int8(i))
		if i%2 == 0 {
			half.Set(e, int32(i))
		}
		if i%40 == 0 {
			few.Set(e, int16(i))
		}
	}
	r := saved(t, w)
	for _, bare := range []bool{true, false} {
		im, err := r.Load(t.Context(), nil, bare)
		require.NoError(t, err)
		require.Equal(t, bare, im.Checked != nil)
		for name, want := range map[string]bool{"all": bare, "half": bare, "few": false, "at": false} {
			require.Equal(t, want, im.Find(name).Checked != nil, name)
		}
		to, err := im.World(ecs.Options{})
		require.NoError(t, err)
		require.Equal(t, w.Digest(), to.Digest())
		to = ecs.NewWorld(ecs.Options{})
		require.NoError(t, image.Put(to, im.State(), "save"))
		require.Equal(t, w.Digest(), to.Digest())
	}
}

// The component "a" has the same entities as the registry, so its pages of entities are references
// to pages of the registry. A load copies these entities from the registry in memory. It does not
// copy from a registry page that is missing or has another checksum.
func TestLoad_CopiesRepeatedEntities(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	a := ecs.MustRegister(w, ecs.Component[int64]{Name: "a"})
	b := ecs.MustRegister(w, ecs.Component[int32]{Name: "b"})
	for i := range 2*format.PageRows + 7 {
		e := w.Create()
		a.Set(e, int64(i))
		b.Set(e, int32(i))
	}
	r := saved(t, w)
	require.True(t, r.Manifest.Repeats)
	l, err := newLoading(t.Context(), r, nil, true)
	require.NoError(t, err)
	require.NoError(t, r.File.ReadAll(t.Context(), l.visit))
	dense := l.parts[format.Column(0, format.DenseArray)]
	require.False(t, dense.met.has(0), "the column must have its own page")

	wrong, absent := format.Key(format.RegistryColumn, 0), format.Key(format.RegistryColumn, 1)
	l.crcs[wrong]++
	delete(l.crcs, absent)
	wanted := l.references[r.Manifest.Number]
	require.NoError(t, l.repeat(t.Context(), wanted))
	require.Contains(t, wanted, wrong)
	require.Contains(t, wanted, absent)
	require.NotContains(t, wanted, format.Key(format.RegistryColumn, 2))
	for page, want := range []bool{false, false, true} {
		require.Equal(t, want, dense.met.has(page), "page %d", page)
	}
	lo := 2 * format.PageRows
	require.Equal(t, l.Image.Registry[lo:], l.Image.Components[0].Entities[lo:])
}
