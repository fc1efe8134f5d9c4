package journal

import (
	"slices"
	"time"
)

// Buffer returns an empty buffer for the next payload, a recycled one if possible. After Append has
// written the payload, the journal recycles the buffer.
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

// maxIdleBuffer is the capacity above which keep() drops a mostly unused buffer.
const maxIdleBuffer = 1 << 20

// keep puts a buffer on the free list. It drops the buffer if the free buffers would then have more
// than atMost bytes. It also drops a large buffer if the payload used less than a quarter of it.
func (j *Journal) keep(b []byte, atMost int64) {
	if cap(b) > maxIdleBuffer && len(b) < cap(b)/4 {
		return
	}
	if size := int64(cap(b)); size > 0 && j.freed+size <= atMost {
		j.free = append(j.free, b)
		j.freed += size
	}
}

// dropFree drops free buffers, the least recently used first. It stops when the others have at most
// atMost bytes. The parameter buffers is the maximum number of dropped buffers.
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

// The writer calls trim every trimPeriod while there may be memory to release. trim keeps trimBytes
// of free buffers, and a queue with room for trimItems.
const (
	trimPeriod = time.Second
	trimBytes  = 64 << 10
	trimItems  = 256
)

// trim releases the buffers that were unused since the last call. It also releases the queue if
// less than a quarter of its items were used. It reports whether a later call may release more. The
// writer calls trim() while it is idle.
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

// room returns the larger capacity of the two slices queue and batch, in items.
func (j *Journal) room() int { return max(cap(j.queue), cap(j.batch)) }

// untrimmed reports whether trim() may have memory to release. The caller holds j.mu.
func (j *Journal) untrimmed() bool { return j.freed > trimBytes || j.room() > trimItems }

// hasUntrimmed does the same as untrimmed(), for callers without the lock.
func (j *Journal) hasUntrimmed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.untrimmed()
}
