//go:build !stetdebug

package track

type watched struct{} // Of a debug build.

func (*watched) beforeSave(lo, hi int) {}
