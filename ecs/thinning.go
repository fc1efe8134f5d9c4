package ecs

import "math/bits"

// A thinning chooses the tick that a history gives up while it holds the newest
// ones all, and the older ones at distances that grow with their age.
//
// The level of a tick is how often 2 divides its number: half of all ticks have
// level 0, a quarter level 1, and so on. The tick to go is the oldest one of the
// level that holds most, so that each level reaches twice as far back as the one
// below:
//
//	level 0                                    45  47  49 |  51 52 53 54 55
//	level 1              30    34    38    42    46    50 |  one by one
//	level 2     12  20 28       36       44               |
//	level 3   8       24            40                    |
//
// So where the distance is 2ⁿ, ticks were merged n times, and a commit gives up at
// most one tick in the long run. What a tick costs to merge is bounded by the rows
// that it and its neighbour hold.
type thinning struct {
	from   [64]uint64 // By level: no tick before it is to be given up.
	oldest uint64     // The least of them, for a history that gives up its oldest tick.
}

func levelOf(tick uint64) int { return min(63, bits.TrailingZeros64(tick)) }

// consider makes tick one that may be given up.
func (t *thinning) consider(tick uint64) {
	from := &t.from[levelOf(tick)]
	*from, t.oldest = min(*from, tick), min(t.oldest, tick)
}

// fullest returns the level that has most ticks from the first one to be given up
// to limit, and how many these are.
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

// ticksOfLevel returns how many ticks before end are of that level.
func ticksOfLevel(level int, end uint64) uint64 {
	if end == 0 {
		return 0
	}
	return ((end-1)>>level + 1) >> 1
}
