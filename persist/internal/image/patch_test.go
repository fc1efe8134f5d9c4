package image_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

func TestSetValues_ChecksScatteredRows(t *testing.T) {
	type lamp struct{ On, Bright bool }
	w := ecs.NewWorld(ecs.Options{})
	s := ecs.MustRegister[lamp](w)
	for range 10 {
		s.Set(w.Create(), lamp{})
	}
	ranges := []raw.Range{{First: 1, N: 1}, {First: 5, N: 2}}
	for _, tt := range []struct {
		src  []byte
		want string
	}{
		{[]byte{1, 1, 1, 0, 0, 1}, ""},
		{[]byte{1, 1, 1, 0, 0, 7}, "rows from 5: layout: invalid data: row 1: lamp.Bright: bool is 7"},
		{[]byte{1, 1, 1, 0, 0}, "rows from 5: value cut short"},
		{[]byte{1, 1, 1, 0, 0, 1, 1}, image.ErrRanges.Error()},
	} {
		c := storetest.ImageOf(t, &storetest.World{World: w}).Find("lamp")
		err := c.SetValues(ranges, tt.src)
		if tt.want != "" {
			require.EqualError(t, err, tt.want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, []byte{0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, c.AppendRows(nil, 0, 10))
	}
}
