package near

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDistance_BetweenWords(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"same", "same", 0}, {"sl", "ls", 1}, {"lss", "log", 2}, {"Heatlh", "Health", 1}} {
		assert.Equal(t, test.want, distance(test.a, test.b), "distance(%q, %q)", test.a, test.b)
	}
}

func TestNames_OrderOfSuggestions(t *testing.T) {
	names := []string{"boss", "boss 2", "start", "level"}
	assert.Equal(t, []string{"boss", "boss 2"}, Names("bos", names))
	assert.Equal(t, []string{"start"}, Names("STAR", names))
	assert.Empty(t, Names("unlike", names))
	assert.Equal(t, []string{"ls"}, Names("lss", []string{"log", "ls", "tail"}), "two letters of three are not near")
	assert.Empty(t, Names("", nil))
}

func TestNames_SuggestsSimilarNames(t *testing.T) {
	names := []string{"Position", "Velocity", "Health", "HealthBar", "Frozen", "é"}
	for _, test := range []struct {
		name string
		want []string
	}{
		{"position", []string{"Position"}},
		{"Positon", []string{"Position"}},
		{"health", []string{"Health", "HealthBar"}},
		{"Heatlh", []string{"Health"}},
		{"Unlike", nil},
		{"", []string{}},
	} {
		assert.ElementsMatch(t, test.want, Names(test.name, names), "Names(%q)", test.name)
	}
	assert.Equal(t, []string{"Health", "HealthBar"}, Names("health", names), "the best comes first")
}
