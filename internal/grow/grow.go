// Package grow enlarges buffers while they are filled, from an estimate of their final length.
package grow

import "slices"

// Maximum numbers of elements and bytes to append between two calls of [For].
const (
	Elements = 1024
	Bytes    = 64 << 10
)

// For grows dst while the caller appends the elements of a list. The list has n elements and begins
// at dst[start]. The first done elements are in dst already. For estimates the space of the other
// elements from the average size of the first ones. It grows dst only if little space is left, and
// at most doubles it.
//
// If all elements have the same size, all calls together allocate about twice the size of the list.
func For(dst []byte, start, done, n int) []byte {
	if done == 0 || done >= n {
		return dst
	}
	each := float64(len(dst)-start) / float64(done)
	rest := float64(each * float64(n-done))
	if room := float64(cap(dst) - len(dst)); room >= rest || room >= 2*(Bytes+each) {
		return dst
	}
	return slices.Grow(dst, int(min(rest+rest/16, float64(len(dst)))))
}

// MaxKept is the largest capacity of a scratch buffer that Keep returns for reuse.
const MaxKept = 1 << 20

// Keep returns buf with length 0 for reuse. It returns nil if the capacity of buf exceeds MaxKept.
func Keep(buf []byte) []byte {
	if cap(buf) > MaxKept {
		return nil
	}
	return buf[:0]
}
