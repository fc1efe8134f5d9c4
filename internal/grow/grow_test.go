package grow_test

import (
	"testing"

	"github.com/stet-ecs/stet/internal/grow"
)

// allocated appends n elements. Element i has sizeOf(i) bytes. It returns the number of allocated
// bytes and the total size of the elements.
func allocated(n int, sizeOf func(i int) int) (bytes, total int) {
	var dst []byte
	last := 0
	count := func() {
		if cap(dst) != last {
			bytes, last = bytes+cap(dst), cap(dst)
		}
	}
	for i := 0; i < n; {
		end, full := min(n, i+grow.Elements), len(dst)+grow.Bytes
		for ; i < end && len(dst) < full; i++ {
			dst = append(dst, make([]byte, sizeOf(i))...)
			count()
		}
		dst = grow.For(dst, 0, i, n)
		count()
	}
	return bytes, len(dst)
}

func TestGrowFor_Allocations(t *testing.T) {
	const n = 1 << 20
	for name, c := range map[string]struct {
		// n: the number of elements. times: the limit of the allocated bytes, as a multiple of the
		// total size of the elements.
		n, times int
		sizeOf   func(i int) int
	}{
		"equal":         {n, 4, func(int) int { return 9 }},
		"large":         {1000, 4, func(int) int { return 10_000 }},
		"very large":    {8, 4, func(int) int { return 2 << 20 }},
		"growing":       {n, 5, func(i int) int { return i >> 15 }},
		"shrinking":     {n, 4, func(i int) int { return (n - i) >> 15 }},
		"first is huge": {n, 4, func(i int) int { return max(1, 1<<20-i<<20) }},
		"last is huge":  {n, 4, func(i int) int { return max(1, (i+2-n)<<20) }},
	} {
		if bytes, total := allocated(c.n, c.sizeOf); bytes > c.times*total {
			t.Errorf("%s: %d bytes allocated for %d", name, bytes, total)
		}
	}
}

func TestGrowKeep_DropsLargeBuffers(t *testing.T) {
	if b := grow.Keep(make([]byte, 7, grow.MaxKept)); len(b) != 0 || cap(b) != grow.MaxKept {
		t.Errorf("length %d, capacity %d", len(b), cap(b))
	}
	if b := grow.Keep(make([]byte, 7, 2*grow.MaxKept)); b != nil {
		t.Errorf("a buffer with capacity %d is reused", cap(b))
	}
}
