package roster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

type named struct {
	A int8
	_ int8
}

type wrapped struct {
	At [2]int16
	On bool
	B  [3]uint8
}

func TestWhichKeysAreWords(t *testing.T) {
	t.Parallel()
	words := func(words bool) { t.Helper(); assert.True(t, words) }
	others := func(words bool) { t.Helper(); assert.False(t, words) }
	words(NewKeys[int8]().words != nil)
	words(NewKeys[[2]int32]().words != nil)
	words(NewKeys[wrapped]().words != nil)
	words(NewKeys[struct{}]().words != nil)
	others(NewKeys[float64]().words != nil) // 0 is -0.
	others(NewKeys[[3]int32]().words != nil)
	others(NewKeys[struct {
		A int8
		B int32
	}]().words != nil) // Between them is what is not compared.
	others(NewKeys[struct {
		B int32
		A int8
	}]().words != nil)
	others(NewKeys[named]().words != nil)
	others(NewKeys[*int]().words != nil) // The collector must see it.
	others(NewKeys[string]().words != nil)
	others(NewKeys[any]().words != nil)
}

func sameAsAMap[K comparable](t *testing.T, key func(int) K) {
	rapid.Check(t, func(t *rapid.T) {
		keys, want := NewKeys[K](), make(map[K]uint32)
		for i := range rapid.IntRange(0, 200).Draw(t, "steps") {
			k := key(rapid.IntRange(-20, 20).Draw(t, "key"))
			switch rapid.IntRange(0, 30).Draw(t, "step") {
			case 0:
				keys.Clear()
				clear(want)
			case 1, 2, 3, 4, 5, 6:
				keys.Delete(k)
				delete(want, k)
			default:
				keys.Set(k, uint32(i))
				want[k] = uint32(i)
			}
			got, ok := keys.Get(k)
			held, has := want[k]
			assert.Equal(t, has, ok)
			assert.Equal(t, held, got)
			assert.Equal(t, len(want), keys.Len())
		}
		var numbers, all []uint32
		keys.Numbers(func(i uint32) { numbers = append(numbers, i) })
		for _, i := range want {
			all = append(all, i)
		}
		assert.ElementsMatch(t, all, numbers)
	})
}

func TestKeysAreAMap(t *testing.T) {
	t.Parallel()
	t.Run("word", func(t *testing.T) {
		sameAsAMap(t, func(i int) wrapped { return wrapped{At: [2]int16{int16(i), 3}, On: i&1 == 0} })
	})
	t.Run("int", func(t *testing.T) { sameAsAMap(t, func(i int) int64 { return int64(i) << 40 }) })
	t.Run("other", func(t *testing.T) { sameAsAMap(t, func(i int) float64 { return float64(i) / 2 }) })
}
