// Package progress tells how far something that takes long has come, to whom the context
// names: reading a journal, loading, replaying, writing, verifying, copying.
package progress

import "context"

// A Progress tells how far something that can take long has come.
type Progress struct {
	Phase Phase
	Done  int64 // Of Total: bytes, or ticks for [PhaseReplay].
	Total int64
}

// A Phase is what is being done.
type Phase string

// The phases of what is done with a store. Their texts read well behind "persist: ".
const (
	PhaseScan   Phase = "reading the journal"
	PhaseLoad   Phase = "loading a snapshot"
	PhaseReplay Phase = "replaying ticks"
	PhaseWrite  Phase = "writing a snapshot"
	PhaseVerify Phase = "verifying"
	PhaseCopy   Phase = "copying files"
)

type progressKey struct{}

// WithProgress returns a context under which whatever can take long tells report how far
// it has come, a few hundred times at most in each phase. report is called by one goroutine at a time, which it holds up.
func WithProgress(ctx context.Context, report func(Progress)) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

// A Meter counts one phase, for one goroutine at a time. The nil Meter tells nobody.
type Meter struct {
	Progress
	report func(Progress)
	next   int64 // Done at the next report.
}

// Steps is how often a phase tells at most, about.
const Steps = 200

// Start begins a phase under ctx, of which nothing is done yet, and tells so. It returns nil if
// ctx has nobody to be told, so that who counts need not ask: see [Meter].
func Start(ctx context.Context, phase Phase, total int64) *Meter {
	report, ok := ctx.Value(progressKey{}).(func(Progress))
	if !ok {
		return nil
	}
	p := &Meter{Progress{phase, 0, total}, report, 0}
	p.Add(0)
	return p
}

// Quiet returns a context like ctx that has nobody to be told.
func Quiet(ctx context.Context) context.Context { return context.WithValue(ctx, progressKey{}, nil) }

// Part returns a context under which what is done counts as n of p, whatever its
// own phases. Each of these goes from nothing to n, but p never goes back: it is as far as the
// one that came furthest. The caller ends it with UpTo.
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

// UpTo notes that so many are done in all; it never goes back.
func (p *Meter) UpTo(done int64) {
	if p != nil && done > p.Done {
		p.Add(done - p.Done)
	}
}

// Add notes that n more are done. It reports now and then only, when another [Steps]-th of the
// whole is done and at the end, so that it may be called for each page or tick.
func (p *Meter) Add(n int64) {
	if p == nil {
		return
	}
	if p.Done += n; p.Done >= p.next || p.Done == p.Total {
		p.next = p.Done + max(1, p.Total/Steps)
		p.report(p.Progress)
	}
}

// Finish notes that all is done.
func (p *Meter) Finish() {
	if p != nil && p.Done < p.Total {
		p.Add(p.Total - p.Done)
	}
}

// Scan returns what a scan of the journal tells how far it is; nil: the
// context has nobody to be told.
func Scan(ctx context.Context) func(done, total int64) {
	var p *Meter
	if _, ok := ctx.Value(progressKey{}).(func(Progress)); !ok {
		return nil
	}
	return func(done, total int64) {
		if p == nil || done < p.Done { // It began anew: segments vanished.
			p = Start(ctx, PhaseScan, total)
		}
		p.Add(done - p.Done)
	}
}
