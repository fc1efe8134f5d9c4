package ecs

import (
	"iter"
	"math/bits"
	"sort"
)

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
	from [64]uint64 // By level: no tick before it is to be given up.
}

func levelOf(tick uint64) int { return min(63, bits.TrailingZeros64(tick)) }

// consider makes tick one that may be given up.
func (t *thinning) consider(tick uint64) {
	from := &t.from[levelOf(tick)]
	*from = min(*from, tick)
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

// thinnable returns the position of the tick boundary to be given up, which is
// neither the oldest nor one of the newest, or -1.
func (w *World) thinnable() int {
	dense := uint64(w.options.HistoryDense)
	if dense == 0 || w.tick <= dense+1 {
		return -1
	}
	t, limit := &w.thinning, w.tick-dense-1
	for {
		level, n := t.fullest(limit)
		if n == 0 {
			return -1
		}
		from := &t.from[level]
		k := w.boundaryOfLevel(level, *from, limit)
		switch {
		case k < 0:
			*from = limit + 1
		case ticksOfLevel(level, w.frames[k].at) > ticksOfLevel(level, *from): // Another level may be fuller.
			*from = w.frames[k].at
		default:
			*from = w.frames[k].at + 1
			return k
		}
	}
}

// boundaryOfLevel returns the position of the first boundary from tick from to
// limit that is of that level and can be given up, or -1. The oldest boundary
// cannot, nor one that a checkpoint follows.
func (w *World) boundaryOfLevel(level int, from, limit uint64) int {
	for k := max(1, w.firstFrame(from)); k+1 < len(w.frames) && w.frames[k].at <= limit; k++ {
		if f := &w.frames[k]; f.tick && levelOf(f.at) == level && w.frames[k+1].tick {
			return k
		}
	}
	return -1
}

// firstFrame returns the position of the first frame that begins at tick or later.
func (w *World) firstFrame(tick uint64) int {
	return sort.Search(len(w.frames), func(i int) bool { return w.frames[i].at >= tick })
}

// Ticks iterates over the ticks that can be gone to, in ascending order: those
// before the present one, it, and those that can be gone forward to. The world must
// not change meanwhile.
func (h History) Ticks() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for i := range h.w.frames {
			if f := &h.w.frames[i]; f.tick && f.held() && !yield(f.at) {
				return
			}
		}
		for i := len(h.w.forward) - 1; i >= 0; i-- {
			if !yield(h.w.forward[i].at) {
				return
			}
		}
	}
}

// around returns the nearest ticks before and after tick that can be gone to, and
// whether there is one on each side.
func (h History) around(tick uint64) (before, after uint64, ok bool) {
	for t := range h.Ticks() {
		if t > tick {
			return before, t, ok
		}
		before, ok = t, true
	}
	return 0, 0, false
}
