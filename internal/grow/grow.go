// Package grow makes room in buffers whose final length is estimated while they are filled.
package grow

import "slices"

// At most that many elements or bytes may be appended between two calls of [For].
const (
	Elements = 1024
	Bytes    = 64 << 10
)

// For returns dst with room for the elements that follow: done of n are appended, from start on, and the others
// are taken to be as large. So equal elements allocate about twice what they take, and any a few times as
// much: each call at most doubles the buffer, and only when little room is left.
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

// MaxKept is the capacity up to which buffers for scratch are kept for the next use.
const MaxKept = 1 << 20

// Keep returns buf without its content, or nil if it is too large to be kept.
func Keep(buf []byte) []byte {
	if cap(buf) > MaxKept {
		return nil
	}
	return buf[:0]
}
