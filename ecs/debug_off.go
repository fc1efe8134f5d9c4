//go:build !stetdebug

package ecs

// debug reports whether writes that the world does not learn of are looked for:
// see debug_on.go.
const debug = false

type guards struct{} //nolint:unused // Of a debug build.

func checkedClone[T any](clone func(T) T, _ string) func(T) T { return clone }

func (w *World) verify()   {}
func (w *World) remember() {}
