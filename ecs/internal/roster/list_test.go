package roster

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func all(l *List[uint64]) (entities []uint64) {
	for i := range l.Chunks() {
		entities = append(entities, l.Chunk(i)...)
	}
	return entities
}

// The test compares a list with a sorted slice while entities are inserted and removed and the list
// is cleared.
func TestList_SameAsSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l List[uint64]
		var want []uint64
		have := make(map[uint32]uint64)
		insert := func(index uint32) {
			if _, ok := have[index]; ok {
				return
			}
			e := uint64(index) | uint64(index%7)<<32
			have[index] = e
			l.Insert(e)
			want = slices.Insert(want, place(want, index), e)
		}
		remove := func(e uint64) {
			_, held := have[uint32(e)]
			held = held && have[uint32(e)] == e
			require.Equal(t, held, l.Remove(e))
			if held {
				delete(have, uint32(e))
				want = slices.DeleteFunc(want, func(o uint64) bool { return o == e })
			}
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			from := rapid.Uint32Range(0, 3000).Draw(t, "from")
			n := rapid.Uint32Range(0, 900).Draw(t, "n")
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0:
				for i := range n {
					insert(from + i)
				}
			case 1:
				for i := range n {
					insert(from + n - i)
				}
			case 2:
				for i := range n {
					insert((from + i*7919) % 4000)
				}
			case 3:
				for i := range n {
					remove(have[from+i])
				}
			case 4:
				for i := range n {
					remove(have[(from+i*7919)%4000])
				}
			case 5:
				remove(uint64(from) | 9<<32) // An entity of another generation.
			case 6:
				if n < 50 {
					l.Clear()
					want = nil
					clear(have)
				}
			}
			require.Equal(t, len(want), l.Len())
			require.True(t, slices.Equal(want, all(&l)), "want %v\nhave %v", want, all(&l))
			index := rapid.Uint32Range(0, 5000).Draw(t, "index")
			i, at := l.Seek(index)
			var rest []uint64
			for ; i < l.Chunks(); i, at = i+1, 0 {
				require.NotEmpty(t, l.Chunk(i)[at:])
				rest = append(rest, l.Chunk(i)[at:]...)
			}
			require.True(t, slices.Equal(want[place(want, index):], rest))
		}
	})
}

func TestList_ChunksStayFull(t *testing.T) {
	var l List[uint64]
	for i := range uint64(100_000) {
		l.Insert(i)
	}
	require.LessOrEqual(t, l.Chunks(), 100_000/chunkMax+1)
	for i := range uint64(100_000) {
		if i%100 != 0 {
			l.Remove(i)
		}
	}
	require.LessOrEqual(t, l.Chunks(), 4*(1000/(chunkMax/2)+1), "neighbours become one")
}
