package snap

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// checked returns an image of a world with every kind of rows, and gaps.
func checked(t *testing.T) *image.Image {
	type (
		Plain  struct{ N int64 }
		Text   struct{ S string }
		Tag    struct{}
		Placed int16
		Only   struct{ S string }
	)
	w := ecs.NewWorld(ecs.Options{})
	plain, text, tag := ecs.MustRegister[Plain](w), ecs.MustRegister[Text](w), ecs.MustRegister[Tag](w)
	placed := ecs.MustRegister(w, ecs.Component[Placed]{Kind: ecs.Indexed})
	ecs.Must(ecs.RegisterResource(w, Only{"one"}))
	for i := range 2*format.PageRows + 7 {
		e := w.Create()
		plain.Set(e, Plain{int64(i)})
		if i%3 > 0 {
			text.Set(e, Text{fmt.Sprint(i)})
			placed.Set(e, Placed(i))
		}
		if i%5 == 0 {
			tag.Set(e, Tag{})
		}
	}
	for i := range 100 {
		w.Destroy(w.Entities()[70*i])
	}
	im, err := saved(t, w).Load(t.Context(), nil, false)
	require.NoError(t, err)
	return im
}

// written returns a reader of a save of im. The save is written without checks.
func written(t *testing.T, im *image.Image) *Reader {
	files, err := disk.Open(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { files.Close() })
	_, err = SavedImage(im).Create(t.Context(), files, "save")
	require.NoError(t, err)
	r, err := Open(files, "save", nil)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

func TestCheck_ValidSave(t *testing.T) {
	require.NoError(t, written(t, checked(t)).Check(t.Context()))
	require.NoError(t, written(t, image.New(&format.Schema{})).Check(t.Context()))
}

// Like Load and Unsound, Check must reject a file with valid checksums and an impossible state.
func TestCheck_InvalidStateRefused(t *testing.T) {
	for name, fault := range map[string]struct {
		of  func(im *image.Image)
		say string
	}{
		"index twice": {func(im *image.Image) { im.Registry[5] = im.Registry[4] }, "out of range or there twice"},
		"dead entity": {func(im *image.Image) { im.Find("Plain").Entities[9] = im.Registry[len(im.Registry)-1] }, "not alive"},
		"two rows":    {func(im *image.Image) { im.Find("Plain").Entities[9] = im.Find("Plain").Entities[8] }, "has two rows"},
		"generation": {func(im *image.Image) {
			e := &im.Find("Tag").Entities[3]
			*e = ecs.NewEntity(e.Index(), e.Generation()+1)
		}, "not alive"},
		"row cut short": {func(im *image.Image) { r := im.Find("Text").Rows; r[7] = r[7][:len(r[7])-1] }, "Text"},
	} {
		im := checked(t)
		fault.of(im)
		err := written(t, im).Check(t.Context())
		require.ErrorContains(t, err, fault.say, name)
	}
	r := written(t, checked(t))
	r.Manifest.Digest++
	require.ErrorContains(t, r.Check(t.Context()), "recorded as")
	r = written(t, checked(t))
	r.Manifest.Alive--
	r.Manifest.Free++
	require.Error(t, r.Check(t.Context()))
}
