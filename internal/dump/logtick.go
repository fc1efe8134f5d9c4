package dump

import (
	"context"
	"iter"
	"slices"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
)

// A logTick is a record that log lists.
type logTick struct {
	commitDoc
	entry journal.Entry
}

// ticks iterates over the ticks of entries that the filter lets through, in the order
// in which they are listed.
func (l *logger) ticks(ctx context.Context, s *source, entries []journal.Entry) iter.Seq2[*logTick, error] {
	if l.reverse {
		return l.backward(ctx, s, entries)
	}
	return l.forward(ctx, s, entries)
}

// backwardBlock is how many ticks are read forward before they are listed backward.
const backwardBlock = 64

// backward is forward from the last to the first.
func (l *logger) backward(ctx context.Context, s *source, entries []journal.Entry) iter.Seq2[*logTick, error] {
	return func(yield func(*logTick, error) bool) {
		for last := len(entries); last > 0; last -= backwardBlock {
			var block []*logTick
			var bad error
			for t, err := range l.forward(ctx, s, entries[max(0, last-backwardBlock):last]) {
				if bad = err; err != nil {
					break
				}
				block = append(block, t)
			}
			if bad != nil { // What comes behind it was listed before.
				yield(&logTick{}, bad)
				return
			}
			for _, t := range slices.Backward(block) {
				if !yield(t, nil) {
					return
				}
			}
		}
	}
}

// forward iterates over the ticks of entries that the filter lets through. An error is
// the last.
func (l *logger) forward(ctx context.Context, s *source, entries []journal.Entry) iter.Seq2[*logTick, error] {
	return func(yield func(*logTick, error) bool) {
		r := logReader{logger: l, source: s, known: s.rewoundFrom()}
		for _, e := range entries {
			t, err := r.read(ctx, e)
			if err != nil {
				yield(&logTick{}, err)
				return
			}
			if t != nil && !yield(t, nil) {
				return
			}
		}
	}
}

// A logReader reads ticks, best in the order of the journal.
type logReader struct {
	*logger
	*source
	known  uint64 // See rewoundFrom.
	cursor *persist.Cursor
}

// read returns the tick of e, or nil if the filter leaves it out.
func (r *logReader) read(ctx context.Context, e journal.Entry) (*logTick, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	commits, err := r.Commits(e.ID.Seq, e.ID.Seq)
	if err != nil || len(commits) == 0 {
		return nil, err
	}
	c := &commits[0]
	ops, err := c.Ops()
	if err != nil {
		return nil, err
	}
	t := &logTick{commitDocOf(c, ops), e}
	t.Head, t.Rewound = e.ID.Seq == r.Head(), !c.OnHead && e.ID.Seq >= r.known
	operations := operations(c, ops)
	if !r.filter.mayMatch(&t.commitDoc) {
		return nil, nil
	}
	var values []rowDoc
	if r.patch || r.filter.byValue() {
		if values, err = r.values(ctx, c, &t.commitDoc); err != nil {
			return nil, err
		}
	}
	if !r.filter.matches(&t.commitDoc, operations, values) {
		return nil, nil
	}
	if r.verbose {
		t.Operations, t.Inputs = operations, inputs(c)
	}
	if r.patch {
		t.Values = slices.DeleteFunc(values, func(v rowDoc) bool { return !r.filter.shows(v) })
	}
	return t, nil
}
