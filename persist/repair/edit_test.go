package repair_test

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
	"github.com/stet-ecs/stet/persist/repair"
)

func TestEdit_RowsReplaced(t *testing.T) {
	im := filled(t, 9)
	before := im.Digest()
	name := reflect.TypeFor[storetest.Position]().String()
	at := slices.IndexFunc(im.Components, func(c *inspect.Component) bool { return strings.HasSuffix(name, c.Layout.Name) && !c.Resource })
	c := im.Components[at]
	edited, err := repair.Edit(im, []repair.RowEdit{{Component: c, Row: 3, Value: c.Row(5)}})
	require.NoError(t, err)
	require.Equal(t, before, im.Digest(), "the given state must not change")
	require.NotEqual(t, before, edited.Digest())
	require.Equal(t, c.Row(5), edited.Components[at].Row(3))
	require.Equal(t, c.Row(4), edited.Components[at].Row(4))
	require.Equal(t, c.Entities(), edited.Components[at].Entities())
	file := filepath.Join(t.TempDir(), "save")
	require.NoError(t, repair.SaveImage(t.Context(), edited, file))
	require.Equal(t, edited.Digest(), storetest.Verified(t, file).Snapshots()[0].Digest)

	for text, e := range map[string]repair.RowEdit{
		"has no row 9: it has 9 rows":         {Component: c, Row: 9, Value: c.Row(0)},
		"has no row -1":                       {Component: c, Row: -1, Value: c.Row(0)},
		": row 2: ":                           {Component: c, Row: 2, Value: c.Row(0)[1:]},
		`row 2: the value has too many bytes`: {Component: c, Row: 2, Value: append(c.Row(0), 0)},
	} {
		_, err := repair.Edit(im, []repair.RowEdit{e})
		require.ErrorContains(t, err, text)
	}
}
