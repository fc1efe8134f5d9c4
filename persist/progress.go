package persist

import (
	"context"

	"github.com/stet-ecs/stet/persist/internal/progress"
)

// A Progress reports the Phase of a long operation, and how much is Done of the Total. The unit is
// bytes, or ticks for "replaying ticks". The phases are "reading the journal", "loading a
// snapshot", "replaying ticks", "writing a snapshot", "verifying" and "copying files".
type Progress = progress.Progress

// WithProgress returns a context that reports progress. Every long operation of this package and of
// package inspect calls report with its progress, a few hundred times at most in each phase. Only
// one goroutine at a time calls report, and the call delays that goroutine.
func WithProgress(ctx context.Context, report func(Progress)) context.Context {
	return progress.WithProgress(ctx, report)
}
