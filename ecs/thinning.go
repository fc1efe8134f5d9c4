package ecs

import "math/bits"

// A thinning selects the next tick that a history drops. The history retains all of the newest
// ticks, and fewer of the older ticks.
//
// The level of a tick says how often its number can be divided by 2. For example, 12 can be divided
// twice, so its level is 2. Half of all ticks have level 0, a quarter have level 1, and so on.
//
// If the history is full, it looks for the level with the most older ticks, and drops the oldest
// tick of this level. So the ticks of level 1 reach about twice as far back as those of level 0,
// and so on. In this example, the history retains ticks 51 to 55 and these older ticks:
//
//	level 0                                    45  47  49
//	level 1              30    34    38    42    46    50
//	level 2     12  20 28       36       44
//	level 3   8       24            40
//
// On average, a commit drops at most one tick.
type thinning struct {
	from   [64]uint64 // First tick of each level that may be dropped.
	oldest uint64     // The lowest tick in the field from.
}

func levelOf(tick uint64) int { return min(63, bits.TrailingZeros64(tick)) }

// consider adds the given tick to the ticks that the history may drop.
func (t *thinning) consider(tick uint64) {
	from := &t.from[levelOf(tick)]
	*from, t.oldest = min(*from, tick), min(t.oldest, tick)
}

// fullest returns the level that has the most droppable ticks up to limit, and their number.
func (t *thinning) fullest(limit uint64) (level int, n uint64) {
	for i := range bits.Len64(limit) {
		if from := t.from[i]; from <= limit {
			if k := ticksOfLevel(i, limit+1) - ticksOfLevel(i, from); k > n {
				level, n = i, k
			}
		}
	}
	return level, n
}

// ticksOfLevel returns the number of ticks of the level that are less than end.
func ticksOfLevel(level int, end uint64) uint64 {
	if end == 0 {
		return 0
	}
	return ((end-1)>>level + 1) >> 1
}
