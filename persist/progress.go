package persist

import (
	"context"

	"github.com/stet-ecs/stet/persist/internal/progress"
)

// A Progress tells how far something that can take long has come: its Phase, and how
// much is Done of the Total, in bytes or, for [PhaseReplay], in ticks.
type Progress = progress.Progress

// A Phase is what is being done. Its text reads well behind "persist: ".
type Phase = progress.Phase

// The phases of what this package and package inspect do.
const (
	PhaseScan   = progress.PhaseScan
	PhaseLoad   = progress.PhaseLoad
	PhaseReplay = progress.PhaseReplay
	PhaseWrite  = progress.PhaseWrite
	PhaseVerify = progress.PhaseVerify
	PhaseCopy   = progress.PhaseCopy
)

// WithProgress returns a context under which every function of this package and of
// package inspect that can take long tells report how far it has come, a few hundred
// times at most in each phase. report is called by one goroutine at a time, which it
// holds up.
func WithProgress(ctx context.Context, report func(Progress)) context.Context {
	return progress.WithProgress(ctx, report)
}
