// Package grow enlarges buffers while they are filled, from an estimate of their final length.
package grow

import "slices"

// Maximum number of elements or bytes that may be appended between two calls of [For].
const (
	Elements = 1024
	Bytes    = 64 << 10
)

// For grows dst in a loop that appends n elements after dst[:start], of which done are appended. It
// makes space for the remaining elements, and assumes that they have the same average size. A call
// at most doubles the buffer, and only if little space is left. So elements of equal size allocate
// about twice their total size, and other elements a few times their total size.
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
