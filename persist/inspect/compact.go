package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// CompactOptions say what [View.Compact] keeps. The zero value keeps the newest
// state and the snapshots with names.
type CompactOptions struct {
	// At is the state that the copy leads to, as [View.Resolve] takes it. Default:
	// the newest.
	At string

	// Keep is the oldest state, on the way to At, from which on every tick is kept.
	// Default: At; no ticks are.
	Keep string

	// NoNames leaves out the snapshots that the program gave a name. Default: those on
	// the way to At stay.
	NoNames bool

	// Compress compresses the copy of a save, as [persist.SaveOptions] say. One that is
	// compressed stays so without. Snapshots of stores are not compressed. Default: as it is.
	Compress bool
}

// A CompactReport says what [View.Compact] kept.
type CompactReport struct {
	Tick, Seq uint64   // The state that the copy leads to.
	From      uint64   // The tick of the oldest state from which on it holds all.
	Ticks     int      // How many it holds behind that one.
	Names     []string // The snapshots with names that it holds, oldest first.

	// What is not in it: ticks, those of rewound branches among them, and the names
	// of snapshots.
	DroppedTicks, DroppedRewound int
	DroppedNames                 []string

	Before, After int64 // Bytes of the files.
}

// A compaction is a call of Compact: a rewrite of the way from one state to another, without
// branches. Its base is the state to keep ticks from; older snapshots with names come before it.
// Unlike a recovery it refuses what is damaged, rather than to leave it out.
//
//	there   1 ── 2 ── 3 "boss" ── 4 ── 5 ── 6 ── 7 ── 8        Keep 5, At 7
//	                              └─── 9
//	here              3 "boss"         5 ── 6 ── 7
//
// 3 and 5 are snapshots, and so is 7, where a program goes on. Without Keep the base is At itself.
type compaction struct {
	*catalog.Catalog
	from, to uint64
	report   CompactReport
}

// save writes a save as Save would, compressed if that is wanted or the old one is.
func (c *compaction) save(ctx context.Context, out string, compress bool) error {
	im, err := c.At(ctx, c.to)
	if err != nil {
		return err
	}
	c.report.Tick, c.report.From = im.Tick, im.Tick
	c.report.After, err = saveImage(ctx, im, out, compress || c.Snapshots[0].Compressed)
	return err
}

// store writes a store, with or without snapshots that have names.
func (c *compaction) store(ctx context.Context, out string, names bool) error {
	if _, err := c.Log.Path(c.from, c.to); errors.Is(err, journal.ErrNotAncestor) {
		return fmt.Errorf("%w: record %d is not on the way to record %d", format.ErrNotFound, c.from, c.to)
	} else if err != nil {
		return c.JournalError(err)
	}
	var labelled []SnapshotInfo
	if names {
		labelled = c.Snapshots
	}
	r := newRewrite(c.Catalog, labelled, func(ctx context.Context, s SnapshotInfo) (*Image, error) {
		im, _, err := c.LoadSnapshot(ctx, s, false)
		return im, err
	})
	if err := r.store(out, func() error { return c.fill(ctx, r) }); err != nil {
		return err
	}
	c.dropped()
	var err error
	c.report.After, c.report.Names, c.report.DroppedNames, err = r.written(ctx, out)
	return err
}

// fill writes what is kept.
func (c *compaction) fill(ctx context.Context, r *rewrite) error {
	err := r.named(ctx, func(s SnapshotInfo) (journal.ID, bool) { return s.ID, s.ID.Seq < c.from && c.leadsTo(s.ID) })
	if err != nil {
		return fmt.Errorf("of the snapshots with names, which can be left out: %w", err)
	}
	im, err := base(ctx, c.Catalog, c.from) // Not At: ticks follow it.
	if err != nil {
		return err
	}
	c.report.From = im.Tick
	if err := r.begin(ctx, im); err != nil {
		return err
	}
	last, err := r.to(ctx, im, c.to)
	if err != nil {
		return err
	}
	c.report.Tick, c.report.Seq, c.report.Ticks = last.Tick, r.ids[c.to].Seq, r.ticks
	return r.end(ctx, c.to)
}

// leadsTo reports whether the state that id names is, as far as is known, on the way
// to the one that the copy leads to. Of states before the oldest record that is left nobody knows: they
// count as being on it.
func (c *compaction) leadsTo(id journal.ID) bool {
	_, err := c.Log.Path(id.Seq, c.to)
	return err == nil || id.Seq < c.Oldest(c.to)
}

// dropped counts what is left out: every record that is not on the way, and those on it up to the base.
func (c *compaction) dropped() {
	way := c.Ancestors(c.to)
	for _, e := range c.Log.Entries {
		switch {
		case !way[e.ID.Seq]:
			c.report.DroppedRewound++
			c.report.DroppedTicks++
		case e.ID.Seq <= c.from:
			c.report.DroppedTicks++
		}
	}
}
