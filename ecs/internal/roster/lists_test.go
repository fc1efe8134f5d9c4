package roster

import (
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type gap struct {
	A int8
	_ int8
}

type wrapped struct {
	At [2]int16
	On bool
	B  [3]uint8
}

func TestIsWord_KeyTypes(t *testing.T) {
	t.Parallel()
	for _, key := range []any{
		int8(0), uint64(0), true, [2]int32{}, [8]uint8{}, wrapped{}, struct{}{}, struct{ X, Y int32 }{},
	} {
		assert.True(t, isWord(reflect.TypeOf(key)), "%T", key)
	}
	for _, key := range []any{
		// 0 and -0 are equal but have different bytes.
		float64(0),
		struct {
			A int8
			B int32
			// A comparison ignores the bytes of the padding between the fields.
		}{},
		struct {
			B int32
			A int8
		}{},
		gap{},
		// A pointer to a stack variable changes if the stack moves.
		new(int),
		"", [1]any{}, complex64(0),
	} {
		assert.False(t, isWord(reflect.TypeOf(key)), "%T", key)
	}
	assert.True(t, newHasher[[2]int32]().words)
	assert.False(t, newHasher[[3]int32]().words, "no room in a word")
}

// The word of a key contains every byte of the key.
func TestHashWord_DependsOnEveryByte(t *testing.T) {
	t.Parallel()
	differ(t, 8, func(i int, v uint8) (key [8]uint8) { key[i] = v; return key })
	differ(t, 3, func(i int, v uint8) (key [3]uint8) { key[i] = v; return key })
}

func differ[K comparable](t *testing.T, bytes int, with func(i int, v uint8) K) {
	keys := make(map[uint64]K)
	for i := range bytes {
		for v := range 256 {
			key := with(i, uint8(v))
			if was, ok := keys[word(key)]; ok {
				assert.Equal(t, was, key)
			}
			keys[word(key)] = key
		}
	}
	assert.Len(t, keys, bytes*255+1)
}

// sameAsAMap compares Lists with a map of slices.
func sameAsAMap[K comparable](t *testing.T, key func(int) K) {
	rapid.Check(t, func(t *rapid.T) {
		var m Lists[K, uint64]
		want := make(map[K][]uint64)
		number := make(map[K]uint32)
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			i := rapid.IntRange(-20, 20).Draw(t, "key")
			k := key(i)
			switch rapid.IntRange(0, 30).Draw(t, "step") {
			case 0:
				m.Clear()
				clear(want)
			case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10:
				if l := want[k]; len(l) > 0 {
					at := rapid.IntRange(0, len(l)-1).Draw(t, "which")
					m.Remove(number[k], l[at])
					if want[k] = slices.Delete(l, at, at+1); len(l) == 1 {
						delete(want, k)
					}
				}
			default:
				e := rapid.Uint64Range(0, 400).Draw(t, "entity")
				at, ok := slices.BinarySearch(want[k], e)
				if ok {
					continue
				}
				i := m.Insert(k, e)
				if len(want[k]) > 0 {
					require.Equal(t, number[k], i)
				}
				number[k], want[k] = i, slices.Insert(want[k], at, e)
			}
			require.Equal(t, len(want), m.Len())
			for i := range 41 {
				k := key(i - 20)
				l := m.Of(k)
				if want[k] == nil {
					require.Nil(t, l)
					continue
				}
				require.NotNil(t, l)
				require.Equal(t, want[k], all(l))
				require.True(t, m.Is(number[k], k))
				require.False(t, m.Is(number[k], key(i-19)))
			}
		}
		got := make(map[K][]uint64)
		m.Each(func(k K, l *List[uint64]) { got[k] = all(l) })
		require.Equal(t, want, got)
		require.LessOrEqual(t, 2*m.Len(), len(m.slots))
		require.LessOrEqual(t, len(m.lists), 41, "lists are used again")
	})
}

func TestLists_SameAsMap(t *testing.T) {
	t.Parallel()
	t.Run("word", func(t *testing.T) {
		sameAsAMap(t, func(i int) wrapped { return wrapped{At: [2]int16{int16(i), 3}, On: i&1 == 0} })
	})
	t.Run("int", func(t *testing.T) { sameAsAMap(t, func(i int) int64 { return int64(i) << 40 }) })
	t.Run("string", func(t *testing.T) { sameAsAMap(t, strconv.Itoa) })
	t.Run("other", func(t *testing.T) { sameAsAMap(t, func(i int) float64 { return float64(i) / 2 }) })
}

// A hash has 32 bits. Among 400,000 keys, some nearly always have the same hash.
func TestLists_KeysWithEqualHashes(t *testing.T) {
	t.Parallel()
	same := 0
	for try := 0; same == 0 && try < 10; try++ {
		var m Lists[uint32, uint64]
		const n = 400_000
		hashes := make(map[uint32]bool, n)
		for i := range uint32(n) {
			m.Insert(i, uint64(i))
			hashes[m.hash.of(i)] = true
		}
		for i := range uint32(n) {
			l := m.Of(i)
			if l == nil || l.Len() != 1 || l.Chunk(0)[0] != uint64(i) {
				require.FailNow(t, "wrong list", "of key %d: %v", i, l)
			}
		}
		same = n - len(hashes)
	}
	require.NotZero(t, same)
}
