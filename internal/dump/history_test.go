package dump

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist/inspect"
)

// The removal of a component ends only its own series, even if the name of another component begins
// with the removed name.
func TestHistory_ComponentRemoved(t *testing.T) {
	typ, err := layout.Of(reflect.TypeFor[struct{ X int8 }]())
	require.NoError(t, err)
	value, err := typ.Value([]byte{7})
	require.NoError(t, err)
	c := seriesSet{historyCmd: new(historyCmd)}
	for _, name := range []string{"Bag", "Bagpipe"} {
		c.note(&inspect.TraceEvent{Kind: inspect.TraceAdded, Tick: 1, Component: name, New: value})
	}
	c.note(&inspect.TraceEvent{Kind: inspect.TraceRemoved, Tick: 2, Component: "Bag", Old: value})
	require.Len(t, c.list, 2)
	assert.Equal(t, "Bag.X", c.list[0].Field)
	assert.NotEqual(t, c.list[0].Sparkline(1, 4, 4), c.list[1].Sparkline(1, 4, 4), "the series of Bagpipe continues")
}
