//go:build !stetdebug

package track

type watched struct{} // Of a debug build.

func (*watched) saving(lo, hi int) {}

const watching = false
