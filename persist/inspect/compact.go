package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// CompactOptions say what [View.Compact] keeps. The zero value keeps the newest state and the
// named snapshots.
type CompactOptions struct {
	// At is the newest state of the copy, in the syntax of [View.Resolve]. Default: the newest
	// state.
	At string

	// Keep is an ancestor of At, in the same syntax. The copy keeps every tick after it. Default:
	// At, so that no ticks are kept.
	Keep string

	// NoNames drops the named snapshots. Default: those among the ancestors of At are kept.
	NoNames bool

	// Compress compresses the copy of a save, see [persist.SaveOptions]. A compressed save stays
	// compressed without it. Snapshots of stores are not compressed. Default: as the original.
	Compress bool
}

// A CompactReport says what [View.Compact] kept.
type CompactReport struct {
	Tick, Seq uint64 // The newest state of the copy.
	// The tick of the oldest state from which on the copy has every tick.
	From  uint64
	Ticks int      // Number of ticks after From in the copy.
	Names []string // Named snapshots in the copy, oldest first.

	// What the copy leaves out: the ticks, how many of them were on rewound branches, and the
	// named snapshots.
	DroppedTicks, DroppedRewound int
	DroppedNames                 []string

	Before, After int64 // Bytes of the files before and after.
}

// A compaction is one call of Compact. It rewrites the path from one state to another, without
// branches. Its base is the oldest state whose following ticks are kept. Older named snapshots
// come before the base. In contrast to a recovery, it fails on damage rather than skip it.
//
//	original   1 ── 2 ── 3 "boss" ── 4 ── 5 ── 6 ── 7 ── 8        Keep 5, At 7
//	                                  └─── 9
//	copy                 3 "boss"         5 ── 6 ── 7
//
// The copy has snapshots of 3, of 5, and of 7, which a program loads when it opens the copy.
// Without Keep the base is At itself.
type compaction struct {
	*catalog.Catalog
	from, to uint64
	report   CompactReport
}

// save writes the copy of a save. It compresses the copy if compress is set or if the original is
// compressed.
func (c *compaction) save(ctx context.Context, out string, compress bool) error {
	im, err := c.At(ctx, c.to)
	if err != nil {
		return err
	}
	c.report.Tick, c.report.From = im.Tick, im.Tick
	c.report.After, err = saveImage(ctx, im, out, compress || c.Snapshots[0].Compressed)
	return err
}

// store writes the copy of a store. If names is set, the copy keeps the named snapshots.
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
	c.countDropped()
	var err error
	c.report.After, c.report.Names, c.report.DroppedNames, err = r.summary(ctx, out)
	return err
}

// fill writes the named snapshots, the base and the ticks.
func (c *compaction) fill(ctx context.Context, r *rewrite) error {
	err := r.writeNamed(ctx, func(s SnapshotInfo) (journal.ID, bool) { return s.ID, s.ID.Seq < c.from && c.leadsTo(s.ID) })
	if err != nil {
		return fmt.Errorf("named snapshots, which can be left out: %w", err)
	}
	// Load the base without View.At: ticks are appended to it.
	im, err := base(ctx, c.Catalog, c.from)
	if err != nil {
		return err
	}
	c.report.From = im.Tick
	if err := r.begin(ctx, im); err != nil {
		return err
	}
	last, err := r.writeTo(ctx, im, c.to)
	if err != nil {
		return err
	}
	c.report.Tick, c.report.Seq, c.report.Ticks = last.Tick, r.ids[c.to].Seq, r.ticks
	return r.end(ctx, c.to)
}

// leadsTo reports whether the state id is on the path to the newest state of the copy. For states
// before the oldest retained record this is unknown, and it returns true.
func (c *compaction) leadsTo(id journal.ID) bool {
	_, err := c.Log.Path(id.Seq, c.to)
	return err == nil || id.Seq < c.Oldest(c.to)
}

// countDropped counts the records that the copy leaves out: those off the path, and those on it
// up to the base.
func (c *compaction) countDropped() {
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
