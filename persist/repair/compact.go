package repair

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// CompactOptions say what the copy made by [Compact] contains. The zero value keeps the newest
// state and the named snapshots.
type CompactOptions struct {
	// At is the newest state of the copy, in the syntax of [inspect.View.Resolve]. The default is
	// the newest state.
	At string

	// Keep is an ancestor of At, in the same syntax. The copy has every tick after Keep, up to At.
	// The default is At, so the copy has no ticks.
	Keep string

	// NoNames leaves the named snapshots out. By default, the copy has all named ancestors of At.
	NoNames bool

	// Compress compresses the copy of a save, see persist.FileOptions. The copy of a compressed
	// save is always compressed. Snapshots of stores are never compressed.
	Compress bool
}

// A CompactReport says what the copy made by [Compact] contains.
type CompactReport struct {
	Tick, Seq uint64 // The newest state of the copy.
	// From is the tick of a state in the copy. The copy has every tick after it.
	From  uint64
	Ticks int      // Number of ticks after From in the copy.
	Names []string // Named snapshots in the copy, oldest first.

	// Number of all ticks that the copy leaves out. DroppedRewound counts only ticks on rewound
	// branches.
	DroppedTicks, DroppedRewound int
	// Named snapshots that the copy leaves out.
	DroppedNames []string

	Before, After int64 // Total size of the files, in bytes.
}

// Compact writes a new store, or a new save, that ends at a state of v. The copy contains a full
// snapshot and as much of the history before that state as options say. It leaves out rewound
// branches. States keep their digests. A program opens the copy with the same types as v.
//
// Nothing may exist at the path out. The copy appears at this path only when it is complete and
// durable. Compact reads and writes only what the copy contains, and needs memory for one world.
//
// The state of At keeps its seq and tick, with one exception: after lost or rewound records, seqs
// are renumbered without gaps.
//
// The errors are those of [inspect.View.At]. An error wraps [fs.ErrExist] if something exists at
// the path out.
func Compact(ctx context.Context, v *inspect.View, out string, options CompactOptions) (CompactReport, error) {
	to, err := v.Resolve(options.At)
	if err != nil {
		return CompactReport{}, err
	}
	from := to
	if options.Keep != "" {
		if from, err = v.Resolve(options.Keep); err != nil {
			return CompactReport{}, err
		}
	}
	c := compaction{Catalog: v.Catalog(), from: from, to: to}
	c.report.Before = storeSize(c.Catalog)
	if c.IsSave() {
		err = c.save(ctx, out, options.Compress)
	} else {
		err = c.store(ctx, out, !options.NoNames)
	}
	return c.report, err
}

// A compaction is one call of Compact. It copies the path from a base state to a newest state,
// without branches. The copy has all ticks after the base. Older named snapshots come before the
// base. Unlike a recovery, a compaction fails on damage.
//
// For example, Keep is tick 5, At is tick 7, and tick 3 has a snapshot named boss. Tick 9 is on a
// branch after tick 4:
//
//	ticks of the original   1   2   3   4   5   6   7   8   9
//	ticks of the copy                           6   7
//	snapshots of the copy           3       5       7
//
// A program that opens the copy loads the snapshot of tick 7. Without Keep, the base is At itself.
type compaction struct {
	*catalog.Catalog
	from, to uint64
	report   CompactReport
}

// save writes the copy of a save. The copy is compressed if the last argument is true or if the
// original is compressed.
func (c *compaction) save(ctx context.Context, out string, compress bool) error {
	im, err := c.At(ctx, c.to)
	if err != nil {
		return err
	}
	c.report.Tick, c.report.From = im.Tick, im.Tick
	c.report.After, err = saveImage(ctx, im, out, compress || c.Snapshots[0].Compressed)
	return err
}

// store writes the copy of a store. If the last argument is true, the copy includes the named
// snapshots.
func (c *compaction) store(ctx context.Context, out string, names bool) error {
	if _, err := c.Log.Path(c.from, c.to); errors.Is(err, journal.ErrNotAncestor) {
		return fmt.Errorf("%w: record %d is not an ancestor of record %d", format.ErrNotFound, c.from, c.to)
	} else if err != nil {
		return c.JournalError(err)
	}
	var labelled []catalog.SnapshotInfo
	if names {
		labelled = c.Snapshots
	}
	r := newRewrite(c.Catalog, labelled, func(ctx context.Context, s catalog.SnapshotInfo) (*image.Image, error) {
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
	err := r.writeNamed(ctx, func(s catalog.SnapshotInfo) (journal.ID, bool) { return s.ID, s.ID.Seq < c.from && c.leadsTo(s.ID) })
	if err != nil {
		return fmt.Errorf("named snapshots, which can be left out: %w", err)
	}
	// Base keeps rows of dead entities, because the ticks that are applied below depend on them. At
	// drops these rows.
	im, err := c.Base(ctx, c.from)
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

// leadsTo reports whether the state id is on the path to the newest state of the copy. If the state
// is older than the oldest retained record, the answer is unknown, and leadsTo returns true.
func (c *compaction) leadsTo(id journal.ID) bool {
	_, err := c.Log.Path(id.Seq, c.to)
	return err == nil || id.Seq < c.Oldest(c.to)
}

// countDropped counts the records that the copy leaves out: those off the path, and those at or
// before the base.
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
