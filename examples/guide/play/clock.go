package play

import "time"

// maxDue is the largest number of ticks that run between two frames.
const maxDue = 5

// A clock divides time into ticks of equal length.
type clock struct {
	step time.Duration
	last time.Time // The end of the last tick.
}

// due returns how many ticks must run until now. If the program was suspended, or is too slow, it
// drops ticks, and the game waits.
func (c *clock) due(now time.Time) int {
	n := now.Sub(c.last) / c.step
	c.last = c.last.Add(n * c.step)
	return min(int(n), maxDue)
}
