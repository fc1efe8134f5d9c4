package ecs

import "math/bits"

// A thinning selects the next tick that a history drops. The history retains all of the newest
// ticks. It retains fewer of the older ticks, at distances that grow with their age.
//
// The level of a tick is the number of times that its number can be divided by 2. Half of all ticks
// have level 0, a quarter have level 1, and so on. The history drops the oldest tick of the level
// with the most ticks. So each level has ticks twice as old as the level before:
//
//	level 0                                    45  47  49 |  51 52 53 54 55
//	level 1              30    34    38    42    46    50 |  all retained
//	level 2     12  20 28       36       44               |
//	level 3   8       24            40                    |
//
// A distance of 2ⁿ between ticks means that ticks were merged n times. In the long run, a commit
// drops at most one tick. The cost of a merge depends only on the saved rows of two neighboring
// ticks.
type thinning struct {
	from   [64]uint64 // For each level, the first tick that may be dropped.
	oldest uint64     // The lowest tick in from, for a history that always drops its oldest tick.
}

func levelOf(tick uint64) int { return min(63, bits.TrailingZeros64(tick)) }

// consider records that the history may drop tick.
func (t *thinning) consider(tick uint64) {
	from := &t.from[levelOf(tick)]
	*from, t.oldest = min(*from, tick), min(t.oldest, tick)
}

// fullest returns the level with the most ticks up to limit that may be dropped. n is their number.
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
