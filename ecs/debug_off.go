//go:build !stetdebug

package ecs

import "github.com/stet-ecs/stet/ecs/internal/track"

// debug reports whether a world looks for what it would not learn of and for what is
// written in vain: see debug_on.go, debug_loan.go and debug_step.go.
const debug = false

type guards struct{} //nolint:unused // Of a debug build.

func checkedClone[T any](clone func(T) T, _ string) func(T) T { return clone }

func (w *World) verify()                                 {}
func (w *World) remember()                               {}
func (w *World) verifyOf(*track.Tracker)                 {}
func (w *World) rememberOf(*track.Tracker, uint32, bool) {}

func (w *World) loan(t *track.Tracker, c *track.Column[Entity]) []Entity { return c.Live[:t.N:t.N] }
func (w *World) spoil()                                                  {}
func mustBeCurrent(Entity)                                               {}

func (w *World) stepping(string) (end func()) { return nil }
func (w *World) mustBeStepped()               {}
func (w *World) begun()                       {}
