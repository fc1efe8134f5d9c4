//go:build !stetdebug

package track

type watched struct{} // watched has fields only in a debug build.

func (*watched) saving(lo, hi int) {}

const watching = false
