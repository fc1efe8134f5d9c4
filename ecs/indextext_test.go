package ecs

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIndex_KeyNotComparable(t *testing.T) {
	type tag struct {
		Text  string
		Parts []int
	}
	w := NewWorld(Options{})
	tags := MustRegister[tag](w)
	key := func(v tag) any {
		if v.Parts != nil {
			return v.Parts
		}
		return v.Text
	}
	byTag := NewIndex(tags, key)
	inArray := NewIndex(tags, func(v tag) [1]struct{ K any } { return [1]struct{ K any }{{key(v)}} })
	e := w.Create()
	tags.Set(e, tag{Text: "a"})
	require.Equal(t, 1, byTag.Len("a"))
	require.Equal(t, 1, inArray.Len([1]struct{ K any }{{"a"}}))
	tags.Set(e, tag{Parts: []int{1}})
	const want = "ecs: an index of tag: the key of 0v1 is [1], of a type that cannot be compared; return a comparable key"
	require.PanicsWithValue(t, want, func() { byTag.Len("a") })
	const inside = "ecs: an index of tag: the key of 0v1 is [{[1]}], of a type that cannot be compared; return a comparable key"
	require.PanicsWithValue(t, inside, func() { inArray.Len([1]struct{ K any }{{"a"}}) })

	// The next key is comparable, so the index works again.
	tags.Set(e, tag{Text: "b"})
	require.Equal(t, 1, byTag.Len("b"))
}
