package persist

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
)

func TestValuesOfScatteredRowsAreCheckedAndNamed(t *testing.T) {
	type lamp struct{ On, Bright bool }
	w := ecs.NewWorld(ecs.Options{})
	s := ecs.MustRegister[lamp](w)
	for range 10 {
		s.Set(w.Create(), lamp{})
	}
	ranges := []ecs.Range{{First: 1, N: 1}, {First: 5, N: 2}}
	for _, tt := range []struct {
		src  []byte
		want string
	}{
		{[]byte{1, 1, 1, 0, 0, 1}, ""},
		{[]byte{1, 1, 1, 0, 0, 7}, "rows from 5: layout: invalid data: row 1: lamp.Bright: bool is 7"},
		{[]byte{1, 1, 1, 0, 0}, "rows from 5: value cut short"},
		{[]byte{1, 1, 1, 0, 0, 1, 1}, errRanges.Error()},
	} {
		c := imageOf(t, &testWorld{World: w}).Find("lamp")
		err := c.setValues(ranges, tt.src)
		if tt.want != "" {
			require.EqualError(t, err, tt.want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, []byte{0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, c.appendRows(nil, 0, 10))
	}
}
