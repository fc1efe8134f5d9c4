package dump

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist/inspect"
)

// A bag has one field for each kind of path step.
type bag struct {
	Slots  [2]int32
	Items  []struct{ Name string }
	Counts map[string]int32
	Owners map[ecs.Entity]int8
	Best   *struct{ N int16 }
	None   *struct{ N int16 }
}

// bagOf returns the components of an entity with two bags. The name of one component is a prefix of
// the other name.
func bagOf(t *testing.T) []inspect.EntityComponent {
	t.Helper()
	w := ecs.NewWorld(ecs.Options{})
	s := ecs.MustRegister(w, ecs.Component[bag]{Name: "Bag", Clone: func(b bag) bag { return b }})
	e := w.Create()
	b := bag{
		Slots: [2]int32{3, 4}, Counts: map[string]int32{"a]\"b": 5, "gold": 6},
		Owners: map[ecs.Entity]int8{e: 7}, Best: &struct{ N int16 }{8},
	}
	b.Items = append(b.Items, struct{ Name string }{"rope"})
	s.Set(e, b)
	v, err := s.Raw().Layout().Value(s.Raw().AppendRows(nil, 0, 1))
	require.NoError(t, err)
	point, err := layout.Parse(s.Raw().Layout().Append(nil))
	require.NoError(t, err)
	return []inspect.EntityComponent{
		{Name: "Bag", Layout: s.Raw().Layout(), Value: v}, {Name: "Bag.Slots", Layout: point, Value: v},
		{Name: "rules", Layout: point, Resource: true},
	}
}

func TestSubject_ValueAtFieldPath(t *testing.T) {
	components := bagOf(t)
	for text, want := range map[string]string{
		"Bag.Items[0].Name":   `"rope"`,
		"Bag.Items[1].Name":   "",
		"Bag.Counts[gold]":    "6",
		`Bag.Counts["gold"]`:  "6",
		`Bag.Counts["a]\"b"]`: "5",
		"Bag.Counts[lead]":    "",
		"Bag.Owners[0v1]":     "7",
		"Bag.Best.N":          "8",
		"Bag.None.N":          "",
		"Bag.Slots.Slots[1]":  "4", // The component is Bag.Slots.
		"Bag.Best":            "&{N:8}",
	} {
		var sub subject
		require.NoError(t, sub.parseComponent(&source{path: "D"}, text, components), text)
		v, ok := sub.valueIn(components[sub.number].Value)
		assert.Equal(t, want != "", ok, text)
		if ok {
			assert.Equal(t, want, v.String(), text)
		}
	}
}

func TestFieldPath_NotFound(t *testing.T) {
	components := bagOf(t)
	for text, want := range map[string]string{
		"Bags":               `no component "Bags"; did you mean Bag?`,
		"rules":              "rules is a resource",
		"Bag.":               "a name is missing after a dot",
		"Bag..N":             "a name is missing after a dot",
		"Bag[0]":             "no element [0] in struct",
		"Bag.Items[]":        `"[]" is not an element`,
		"Bag.Items[0":        `"[0" is not an element`,
		"Bag.Items[0]x":      `"x" is not an element`,
		`Bag.Items["a`:       "is not an element",
		"Bag.Items[-1]":      "no element [-1] in []struct",
		"Bag.Slots.Slots[2]": "no element [2] in [2]int32",
		"Bag.Best.M":         `no field "M"; there are N`,
		"Bag.Items.Name":     `no field "Name" in slice`,
	} {
		var sub subject
		err := sub.parseComponent(&source{path: "D"}, text, components)
		require.Error(t, err, text)
		assert.Contains(t, err.Error(), want, text)
	}
}
