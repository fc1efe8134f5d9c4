//go:build !stetdebug

package ecs

import (
	"github.com/stet-ecs/stet/ecs/internal/system"
	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/raw"
)

// debug reports whether a world detects misuse that is silent otherwise: see debug_on.go,
// debug_lend.go, debug_loan.go, debug_step.go and debug_write.go.
const debug = false

type (
	guards  struct{} //nolint:unused // Used only in a debug build.
	lending struct{} //nolint:unused // Used only in a debug build.
)

func (s *Storage[T]) initLending() {}
func (s *set) lend()               {}
func (s *set) outgrow()            {}
func (s *set) displace()           {}
func (s *set) recordCaller()       {}
func (s *set) caller() string      { return "" }

// lendWritten does nothing in this build.
func lendWritten[C any](columns []C) {}

func checkedClone[T any](clone func(T) T, _ string) func(T) T { return clone }

func (w *World) verify()                                 {}
func (w *World) remember()                               {}
func (w *World) verifyOf(*track.Tracker)                 {}
func (w *World) rememberOf(*track.Tracker, uint32, bool) {}

func (w *World) loan(t *track.Tracker, c *track.Column[Entity]) []Entity { return c.Live[:t.N:t.N] }
func (w *World) spoil()                                                  {}
func mustBeCurrent(Entity)                                               {}

func (w *World) stepping(*system.System) (end func()) { return nil }
func (w *World) noteCreated()                         {}

func (w *World) mustBeWritable(string)        {}
func (w *World) mustBeAlone(string)           {}
func (w *World) mustBeReadable([]raw.Use)     {}
func (w *World) mustReadResource(_, _ string) {}
func (w *World) mustWriteResource(string)     {}
func (s *set) mustBeWritable(string, Entity)  {}
func (s *set) mustBeReadable(string)          {}
func (s *set) following() (end func())        { return nil }
func (s *set) mustNotFollow()                 {}
