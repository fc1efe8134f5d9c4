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

// keep puts a buffer on the free list, unless the free buffers would then have more than atMost
// bytes. It drops a large buffer if the payload used less than a quarter of it.
func (j *Journal) keep(b []byte, atMost int64) {
	if cap(b) > maxIdleBuffer && len(b) < cap(b)/4 {
		return
	}
	if size := int64(cap(b)); size > 0 && j.freed+size <= atMost {
		j.free = append(j.free, b)
		j.freed += size
	}
}

// dropFree drops the least recently used free buffers, up to the number in the parameter buffers.
// It stops when the remaining buffers have at most atMost bytes.
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

// trim releases queue memory that was unused for trimPeriod. It keeps up to trimBytes of buffers
// and a queue of up to trimItems.
const (
	trimPeriod = time.Second
	trimBytes  = 64 << 10
	trimItems  = 256
)

// trim releases buffers that were unused since the last call, and the queue's memory if the queue
// was mostly empty. It reports whether a later call may release more. The writer calls trim() while
// it is idle.
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
