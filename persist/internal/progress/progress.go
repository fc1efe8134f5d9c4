// Package progress reports the progress of long operations to a function in the context: reading a
// journal, loading, replaying, writing, verifying, copying.
package progress

import "context"

// A Progress is the progress of a long operation.
type Progress struct {
	Phase string // One of the texts below. It can follow the prefix "persist: ".
	Done  int64  // Completed part of Total. The unit is bytes, or ticks for [PhaseReplay].
	Total int64
}

// The phases of operations on a store.
const (
	PhaseScan   = "reading the journal"
	PhaseLoad   = "loading a snapshot"
	PhaseReplay = "replaying ticks"
	PhaseWrite  = "writing a snapshot"
	PhaseVerify = "verifying"
	PhaseCopy   = "copying files"
)

type progressKey struct{}

// WithProgress returns a context in which long operations call report. Each phase makes at most a
// few hundred calls. Only one goroutine calls report at a time, and it waits for report to return.
func WithProgress(ctx context.Context, report func(Progress)) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

// A Meter counts the progress of one phase. Only one goroutine may use it at a time. A nil Meter
// reports nothing.
type Meter struct {
	Progress
	report func(Progress)
	next   int64 // Value of Done from which the next report is due.
}

// Steps is the approximate maximum number of reports in a phase.
const Steps = 200

// Start begins a phase in ctx and reports zero progress. It returns nil if ctx has no report
// function, so callers need no check: see [Meter].
func Start(ctx context.Context, phase string, total int64) *Meter {
	report, ok := ctx.Value(progressKey{}).(func(Progress))
	if !ok {
		return nil
	}
	p := &Meter{Progress{phase, 0, total}, report, 0}
	p.Add(0)
	return p
}

// Quiet returns a context like ctx without a report function.
func Quiet(ctx context.Context) context.Context { return context.WithValue(ctx, progressKey{}, nil) }

// Part returns a context for an operation that is a part of the work of p. While the operation runs
// from 0 to its own total, p increases by n. If the operation has several phases, each of them runs
// from 0 to its own total. p never decreases, so it shows the phase with the most progress. After
// the operation, the caller calls UpTo.
func (p *Meter) Part(ctx context.Context, n int64) context.Context {
	if p == nil {
		return ctx
	}
	start := p.Done
	return WithProgress(ctx, func(q Progress) {
		if q.Total > 0 {
			p.UpTo(start + int64(float64(n)*float64(q.Done)/float64(q.Total)))
		}
	})
}

// UpTo raises the progress to the given value. It never decreases the progress.
func (p *Meter) UpTo(done int64) {
	if p != nil && done > p.Done {
		p.Add(done - p.Done)
	}
}

// Add adds n to the progress. It reports only after each 1/[Steps] of the total and at the end, so
// it may be called for each page or tick.
func (p *Meter) Add(n int64) {
	if p == nil {
		return
	}
	if p.Done += n; p.Done >= p.next || p.Done == p.Total {
		p.next = p.Done + max(1, p.Total/Steps)
		p.report(p.Progress)
	}
}

// Finish sets the progress to Total.
func (p *Meter) Finish() {
	if p != nil && p.Done < p.Total {
		p.Add(p.Total - p.Done)
	}
}

// Scan returns the progress function for a scan of the journal. It returns nil if ctx has no report
// function.
func Scan(ctx context.Context) func(done, total int64) {
	var p *Meter
	if _, ok := ctx.Value(progressKey{}).(func(Progress)); !ok {
		return nil
	}
	return func(done, total int64) {
		if p == nil || done < p.Done { // The scan started again, because segments vanished.
			p = Start(ctx, PhaseScan, total)
		}
		p.Add(done - p.Done)
	}
}
