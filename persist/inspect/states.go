package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/progress"
)

// At returns the state after record seq; 0 means the oldest state of the store. It replays ticks
// from the nearest snapshot that leads to the record.
//
// While At runs, the writing program may remove files. At then tries other paths to the state. If
// no path is left, the error wraps [persist.ErrNotFound].
func (v *View) At(ctx context.Context, seq uint64) (*Image, error) {
	im, err := v.cat.At(ctx, seq)
	if err != nil {
		return nil, err
	}
	return NewImage(im), nil
}

// Read calls f with the state after record seq. If a snapshot file has the state, f reads only the
// pages that it needs, see [State]. Damage in other pages is ignored. Read loads the whole state
// (see [View.At]) and calls f with it in three cases:
//
//   - No snapshot file has the state.
//   - A page could not be read.
//   - f returned the error of [State.NeedWhole].
//
// So Read may call f twice. f must have no effects before it has read everything.
func (v *View) Read(ctx context.Context, seq uint64, f func(*State) error) error {
	for _, s := range leadingBases(v.cat, seq) {
		if s.Err == nil && s.ID.Seq == seq {
			var st *State
			err := v.readFrom(ctx, s, seq, everyComponent, func(read *State) error { st = read; return f(st) })
			if ctx.Err() != nil {
				return cmp.Or(err, ctx.Err())
			}
			// After an unreadable page, try again even if f succeeded: f may have ignored the
			// error.
			if st != nil && !st.failed.Load() && !errors.Is(err, errWhole) {
				return err
			}
			break
		}
	}
	im, err := v.cat.At(ctx, seq)
	if err != nil {
		return err
	}
	return f(stateOf(im))
}

// Fill replaces the contents of w with the state after record seq, see [View.At]. It converts
// values to the types of w, and keeps unregistered components as encoded rows. The rules and
// errors are those of [persist.Load]. Afterwards the world is independent of the store. To
// continue the store from a state, use [persist.Store.Goto].
func (v *View) Fill(ctx context.Context, seq uint64, w *ecs.World) error {
	im, err := v.cat.At(ctx, seq)
	if err != nil {
		return err
	}
	if _, err := image.Conversions(im.Stored(), w); err != nil {
		return err
	}
	return im.Fill(w, fmt.Sprintf("state after record %d", seq))
}

// Path returns the records between the states after two records, in order. The first record (from)
// must be an ancestor of the second record (to). The result ends with the second record.
func (v *View) Path(from, to uint64) ([]journal.Entry, error) { return v.cat.Path(from, to) }

// Walk calls f for the states along a path, oldest first. Two records define the path. The first
// state is the one after the first record (from). The last state is the one after the second record
// (to). The first record must be an ancestor of the second.
//
// The argument c is the record that led to the state, or nil in the first call. If c.Repeats is
// set, the last call was for the same tick. The image im is valid until f returns, because the next
// tick changes it in place. Walk ends at an error of f, at damage, or when ctx ends.
//
// If a program converted the store between two ticks, the next tick continues the converted state,
// and im is a new image. Walk loads the nearest snapshot and reads the ticks after it. It reports
// progress as [progress.PhaseReplay].
func (v *View) Walk(ctx context.Context, from, to uint64, f func(im *Image, c *Commit) error) error {
	path, err := v.cat.Path(from, to)
	if err != nil {
		return err
	}
	last, err := v.cat.Base(ctx, from)
	if err != nil {
		return err
	}
	shown := NewImage(last.Settled())
	if err := f(shown, nil); err != nil {
		return err
	}
	w := catalog.Walk{Catalog: v.cat, After: func(_ context.Context, im *image.Image, r *catalog.Record) error {
		if im != last { // The state was converted.
			shown, last = new(Image), im
		}
		shown.show(im.Settled())
		return f(shown, describeTick(v.cat, r.Entry, r.Decoded, r.Schema))
	}}
	_, _, err = w.Along(ctx, last, path)
	return err
}

// Cursor returns a cursor at the state after record seq, see [View.At].
func (v *View) Cursor(ctx context.Context, seq uint64) (*Cursor, error) {
	return newCursor(ctx, v.cat, seq)
}

// Commits returns the ticks in the journal with seqs in [from, to], in commit order. It stops at
// the first tick that cannot be read, and returns the earlier ticks with the error.
//
// The operations of all returned ticks stay in memory, so read many ticks in batches of a few
// hundred. Several goroutines read a batch. The first call also follows the ancestors of the head.
// Later calls cost as much as reading the ticks.
func (v *View) Commits(from, to uint64) ([]Commit, error) {
	entries := v.cat.EntriesBetween(from, to)
	commits := make([]Commit, len(entries))
	err := v.cat.RecordsAtOnce(context.Background(), entries, func(i int, r *catalog.Record) error {
		if err := v.cat.DescribeAt(r); err != nil {
			return err
		}
		commits[i] = *describeTick(v.cat, r.Entry, r.Decoded, r.Schema)
		return nil
	})
	if err != nil {
		commits = commits[:slices.IndexFunc(commits, func(c Commit) bool { return c.Seq == 0 })]
	}
	return commits, err
}

// Changes calls f for each record of a path, oldest first. The path begins after one record (from),
// and ends with another one (to). The first record must be an ancestor of the second. f gets the
// changes of the record as a [Diff], which is valid until f returns. Changes ends at an error of f,
// at damage, or when ctx ends.
//
// The cost of a tick grows with the rows that it wrote. Two whole states are compared only if a
// program converted the store between two ticks.
func (v *View) Changes(ctx context.Context, from, to uint64, f func(d *Diff, c *Commit) error) error {
	var older *image.Image
	var kept *keptTick
	w := catalog.Walk{
		Catalog: v.cat,
		Before: func(_ context.Context, was, im *image.Image, r *catalog.Record) error {
			older, kept = was, nil
			// If was and im are the same image, the tick will change it in place, so copy its rows.
			// A conversion before the tick makes a new image and leaves the old one unchanged.
			if was == im {
				kept = keepRows(im, r.Decoded)
			}
			return nil
		},
		After: func(ctx context.Context, im *image.Image, r *catalog.Record) (err error) {
			var d *Diff
			if kept != nil {
				d, err = kept.diff(im)
			} else {
				d, err = diffImages(ctx, older, im)
			}
			if err != nil {
				return err
			}
			return f(d, describeTick(v.cat, r.Entry, r.Decoded, r.Schema))
		},
	}
	return w.Between(ctx, from, to)
}

// Diff compares the state after record b with the state after record a.
//
// It reads both states into memory, and takes 32 more bytes per row that differs. If both states
// are in snapshot files, it skips pages that the files share, and holds in memory only the pages
// that differ. It then ignores damage in pages that it does not read. For errors see [View.At].
func (v *View) Diff(ctx context.Context, a, b uint64) (*Diff, error) {
	return v.DiffTo(ctx, a, v, b)
}

// DiffTo compares the state of u after record b with the state of v after record a. It matches
// components by name.
func (v *View) DiffTo(ctx context.Context, a uint64, u *View, b uint64) (d *Diff, err error) {
	err = v.readNearest(ctx, a, func(older *State) error {
		return u.readNearest(ctx, b, func(newer *State) error {
			d, err = diffStates(ctx, older, newer)
			return err
		})
	})
	if err == nil || ctx.Err() != nil {
		return d, err
	}
	// If a page is damaged, compare whole states, which At may reach through other files.
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

// FindDivergence compares two histories tick by tick. One leads to record a of v, the other to
// record b of u. FindDivergence finds the first tick after which the states of the two histories
// differ. It ignores components that do not rewind.
//
// Two branches of one store are compared from their last common record, other histories from their
// oldest common tick. If a tick is equal in both histories, FindDivergence only reads this tick.
// Otherwise it replays both histories up to the tick, and compares the digests. If there is no
// common tick, the error wraps [persist.ErrNotFound].
func (v *View) FindDivergence(ctx context.Context, a uint64, u *View, b uint64) (*Divergence, error) {
	common, err := commonTicks(v.cat, a, u.cat, b)
	if err != nil {
		return nil, err
	}
	d := divergenceSearch{
		Divergence: Divergence{Compared: len(common)},
		views:      [2]*catalog.Catalog{v.cat, u.cat}, cursors: [2]*Cursor{{view: v.cat}, {view: u.cat}},
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
	return &d.Divergence, nil
}

// diffImages compares newer with older. Neither image may change while the result is in use.
func diffImages(ctx context.Context, older, newer *image.Image) (*Diff, error) {
	return diffStates(ctx, stateOf(older), stateOf(newer))
}
