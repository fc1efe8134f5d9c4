package persist

import (
	"context"

	"github.com/stet-ecs/stet/persist/internal/progress"
)

// A Progress reports how far a long operation is.
type Progress struct {
	// Phase is "reading the journal", "loading a snapshot", "replaying ticks", "writing a
	// snapshot", "verifying" or "copying files".
	Phase string
	Done  int64 // Completed part of Total.
	Total int64 // In bytes; in ticks while replaying.
}

// WithProgress returns a context that reports progress. Every long operation of this package and of
// package inspect calls report with its progress, a few hundred times at most in each phase. Only
// one goroutine at a time calls report, and the call delays that goroutine.
func WithProgress(ctx context.Context, report func(Progress)) context.Context {
	return progress.WithProgress(ctx, func(p progress.Progress) { report(Progress(p)) })
}
