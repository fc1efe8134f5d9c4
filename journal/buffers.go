package journal

import (
	"slices"
	"time"
)

// Buffer returns an empty buffer for the next payload, recycled if there is
// one. Append takes it back.
func (j *Journal) Buffer() []byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := len(j.free)
	if n == 0 {
		return nil
	}
	b := j.free[n-1]
	j.free[n-1] = nil
	j.free = j.free[:n-1]
	j.freed -= int64(cap(b))
	j.unused = min(j.unused, len(j.free))
	return b[:0]
}

// maxIdleBuffer is the capacity up to which buffers are kept however little of them is used.
const maxIdleBuffer = 1 << 20

// keep puts a buffer on the free list, if there is room. A large one that the payload left mostly empty is given
// back: payloads have become smaller. Together they have no more bytes than atMost.
func (j *Journal) keep(b []byte, atMost int64) {
	if cap(b) > maxIdleBuffer && len(b) < cap(b)/4 {
		return
	}
	if size := int64(cap(b)); size > 0 && j.freed+size <= atMost {
		j.free = append(j.free, b)
		j.freed += size
	}
}

// dropFree gives back up to so many buffers, the least recently used first, until all others together have no more
// bytes than atMost.
func (j *Journal) dropFree(buffers int, atMost int64) {
	n := 0
	for ; n < buffers && j.freed > atMost; n++ {
		j.freed -= int64(cap(j.free[n]))
	}
	if n > 0 {
		j.free = slices.Delete(j.free, 0, n)
		j.unused = max(0, j.unused-n)
	}
}

// Memory of a queue that was not used for trimPeriod is given back, but for what a few small records need.
const (
	trimPeriod = time.Second
	trimBytes  = 64 << 10
	trimItems  = 256
)

// trim gives back buffers that were not used since it was called before, and the room of the queue if that was mostly
// empty. It reports whether there may be more to give back later. The writer calls it while it writes nothing.
func (j *Journal) trim() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.dropFree(min(j.unused, len(j.free)), trimBytes)
	if cap(j.free) > trimItems && len(j.free) < cap(j.free)/4 {
		j.free = slices.Clone(j.free)
	}
	j.unused = len(j.free)
	if len(j.queue) == 0 && j.room() > trimItems && j.most < j.room()/4 {
		j.queue, j.batch = nil, nil
	}
	j.most = len(j.queue)
	return j.untrimmed()
}

// room returns how many items the larger half of the queue has room for.
func (j *Journal) room() int { return max(cap(j.queue), cap(j.batch)) }

// untrimmed reports whether trim may have something to give back. j.mu is held.
func (j *Journal) untrimmed() bool { return j.freed > trimBytes || j.room() > trimItems }

// hasUntrimmed is untrimmed with the lock.
func (j *Journal) hasUntrimmed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.untrimmed()
}
