package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/progress"
)

// At returns the state after the record seq; 0 is the oldest state of the store.
// It is reached from the nearest snapshot among its ancestors.
//
// If the program that has the store open removed files since, At looks for other
// ways to the state; if there is none any more, the error wraps [persist.ErrNotFound].
func (v *View) At(ctx context.Context, seq uint64) (*Image, error) { return v.cat.At(ctx, seq) }

// Read calls f with the state after record seq. If the state lies in a snapshot file, it is read
// by pages, see [State]; damage to those that f does not ask for goes unnoticed. Otherwise, or if
// a page cannot be read, or f returns what [State.NeedWhole] gave, f is called with the whole state, see [View.At]:
// so it must be without effect until it has all that it asks for.
func (v *View) Read(ctx context.Context, seq uint64, f func(*State) error) error {
	for _, s := range leadingBases(v.cat, seq) {
		if s.Err == nil && s.ID.Seq == seq {
			if done, err := v.readPages(ctx, s, f); done || ctx.Err() != nil {
				return cmp.Or(err, ctx.Err())
			}
			break
		}
	}
	im, err := v.At(ctx, seq)
	if err != nil {
		return err
	}
	st := stateOf(im)
	st.Seq = seq
	return f(st)
}

// Fill replaces all that w holds by the state after record seq, see [View.At], in the types
// of w: what others wrote is converted, and what is not registered is kept, by the rules
// and with the errors of [persist.Load]. The world then goes its own way: to go on with the store is what
// [persist.Store.Goto] does.
func (v *View) Fill(ctx context.Context, seq uint64, w *ecs.World) error {
	im, err := v.At(ctx, seq)
	if err != nil {
		return err
	}
	if _, err := image.Conversions(im.Stored(), w); err != nil {
		return err
	}
	return im.Fill(w, fmt.Sprintf("state after record %d", seq))
}

// Path returns the records that lead from the state after record from, which must
// be an ancestor of to, to that after record to, in this order.
func (v *View) Path(from, to uint64) ([]journal.Entry, error) { return v.cat.Path(from, to) }

// Walk goes from the state after record from, which must be an ancestor of to, to
// that after record to, and calls f with the state after each record on the way
// and the tick that led to it. im is the same world a tick later each time; f may
// read it until it returns. Its error ends the walk, as does that of ctx, and
// damage.
//
// Where a program converted the store, the next tick continues the converted state.
// The cost is that of loading the nearest snapshot, and of reading the ticks. The
// phase is [progress.PhaseReplay].
func (v *View) Walk(ctx context.Context, from, to uint64, f func(im *Image, c *Commit) error) error {
	w := walk{Catalog: v.cat, after: func(_ context.Context, im *Image, r *catalog.Record) error {
		return f(im.Settled(), describeTick(v.cat, r.Entry, r.Says, r.Schema))
	}}
	return w.between(ctx, from, to)
}

// Cursor returns a cursor at the state after record seq, see [View.At].
func (v *View) Cursor(ctx context.Context, seq uint64) (*Cursor, error) {
	return newCursor(ctx, v.cat, seq)
}

// Commits returns the ticks in the journal with seqs in [from, to], in the order
// in which they were committed. It stops at the first that cannot be read, and
// returns the error beside those before.
//
// The operations of all of them stay in memory; a caller that wants many asks for
// a few hundred at a time, which several goroutines read. After the first call, which follows the
// head back, the cost is that of reading the ticks returned.
func (v *View) Commits(from, to uint64) ([]Commit, error) {
	entries := recordsBetween(v.cat.Log, from, to)
	commits := make([]Commit, len(entries))
	err := v.cat.RecordsAtOnce(context.Background(), entries, func(i int, r *catalog.Record) error {
		if err := v.cat.DescribeAt(r); err != nil {
			return err
		}
		commits[i] = *describeTick(v.cat, r.Entry, r.Says, r.Schema)
		return nil
	})
	if err != nil {
		commits = commits[:slices.IndexFunc(commits, func(c Commit) bool { return c.Seq == 0 })]
	}
	return commits, err
}

// Changes goes from the state after record from, which must be an ancestor of to,
// to that after record to, and calls f with what each record changed: a [Diff]
// that is valid until f returns. Its error ends the walk, as does that of ctx, and
// damage.
//
// A tick costs what it wrote, not what the world holds; but where a program
// converted the store, two states are compared. Components that do not rewind may
// still have rows of entities that a rewind took away.
func (v *View) Changes(ctx context.Context, from, to uint64, f func(d *Diff, c *Commit) error) error {
	var older *Image
	var kept *keptTick
	w := walk{
		Catalog: v.cat,
		before: func(_ context.Context, was, im *Image, r *catalog.Record) error {
			older, kept = was, nil
			if was == im { // Else it was converted.
				kept = keepRows(im, r.Says)
			}
			return nil
		},
		after: func(ctx context.Context, im *Image, r *catalog.Record) (err error) {
			var d *Diff
			if kept != nil {
				d, err = kept.diff(im)
			} else {
				d, err = diffImages(ctx, older, im)
			}
			if err != nil {
				return err
			}
			return f(d, describeTick(v.cat, r.Entry, r.Says, r.Schema))
		},
	}
	return w.between(ctx, from, to)
}

// Diff compares the state after record b with that after record a.
//
// It reads both states, and keeps them in memory together with 32 bytes for each
// row that differs. Of two states that are in snapshot files it reads no page that
// the files share, and keeps only those that differ: damage elsewhere goes
// unnoticed. See [View.At] for its errors.
func (v *View) Diff(ctx context.Context, a, b uint64) (*Diff, error) {
	return v.DiffTo(ctx, a, v, b)
}

// DiffTo compares the state of u after record b with that of v after record a.
// Components are the same if they have the same name.
func (v *View) DiffTo(ctx context.Context, a uint64, u *View, b uint64) (*Diff, error) {
	if d, err := diffPages(ctx, v.cat, a, u.cat, b); err == nil {
		return d, nil
	} // Where a page is damaged, other files may lead to the state.
	older, err := v.cat.At(ctx, a)
	if err != nil {
		return nil, err
	}
	newer, err := u.cat.At(ctx, b)
	if err != nil {
		return nil, err
	}
	return diffImages(ctx, older, newer)
}

// Part compares the way to record b of u with the way to record a of v, tick by
// tick, and finds the first after which their states differ. What does not rewind
// does not count.
//
// Two branches of one store are compared from where they part, others from the
// oldest tick that both have. Where two ticks say the same, it only reads them; else
// it replays both histories up to there and compares digests. An error wraps
// [persist.ErrNotFound] if no state has a tick in common.
func (v *View) Part(ctx context.Context, a uint64, u *View, b uint64) (*Parting, error) {
	common, err := commonTicks(v.cat, a, u.cat, b)
	if err != nil {
		return nil, err
	}
	d := parting{
		Parting: Parting{Compared: len(common)},
		views:   [2]*catalog.Catalog{v.cat, u.cat}, cursors: [2]*Cursor{{view: v.cat}, {view: u.cat}},
	}
	p := progress.Start(ctx, progress.PhaseReplay, int64(len(common)))
	for i := range common {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		equal := i > 0 && d.sameTick(&common[i-1], &common[i])
		if !equal {
			if equal, err = d.sameState(progress.Quiet(ctx), &common[i]); err != nil {
				return nil, err
			}
		}
		if !equal {
			d.First = &common[i].CommonTick
			break
		}
		d.Equal = &common[i].CommonTick
		p.Add(1)
	}
	return &d.Parting, nil
}
