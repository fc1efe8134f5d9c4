package inspect

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/snap"
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

// A compaction is a call of Compact.
type compaction struct {
	*catalog.Catalog
	from, to uint64
	names    bool // Keep snapshots with names.
	report   CompactReport
}

// save writes a save as Save would.
func (c *compaction) save(ctx context.Context, out string) error {
	im, err := c.At(ctx, c.to)
	if err != nil {
		return err
	}
	c.report.Tick, c.report.From = im.Tick, im.Tick
	c.report.After, err = saveImage(ctx, im, out)
	return err
}

// saveImage writes im to a new file and returns its size.
func saveImage(ctx context.Context, im *Image, out string) (int64, error) {
	if err := unused(out); err != nil {
		return 0, err
	}
	files, err := disk.Open(filepath.Dir(filepath.Clean(out)))
	if err != nil {
		return 0, err
	}
	defer files.Close()
	s := snap.SavedImage(im)
	s.Manifest.ID = journal.ID{} // A save belongs to no journal.
	info, err := s.Create(ctx, files, filepath.Base(out))
	return info.Size, err
}

func (c *compaction) store(ctx context.Context, out string) error {
	if _, err := c.Log.Path(c.from, c.to); errors.Is(err, journal.ErrNotAncestor) {
		return fmt.Errorf("%w: record %d is not on the way to record %d", format.ErrNotFound, c.from, c.to)
	} else if err != nil {
		return c.JournalError(err)
	}
	err := draftStore(out, func(files disk.FS) error {
		r := newRewrite(files, c.Catalog)
		err := c.write(ctx, r)
		if err != nil {
			r.abandon()
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.measure(ctx, out)
}

// write writes the store.
func (c *compaction) write(ctx context.Context, r *rewrite) error {
	if err := c.older(ctx, r); err != nil {
		return err
	}
	im, err := base(ctx, c.Catalog, c.from)
	if err != nil {
		return err
	}
	c.report.From = im.Tick
	if err := r.begin(ctx, im, c.names); err != nil {
		return err
	}
	last, err := r.along(ctx, im, c.to, c.names)
	if err != nil {
		return err
	}
	c.report.Tick, c.report.Seq, c.report.Ticks = last.Tick, r.ids[c.to].Seq, r.ticks
	c.dropped()
	return r.end(ctx, c.to)
}

// older writes the snapshots with names of states before the base.
func (c *compaction) older(ctx context.Context, r *rewrite) error {
	if !c.names {
		return nil
	}
	for _, s := range c.Snapshots {
		if s.Label == "" || s.Err != nil || s.ID.Seq >= c.from || !c.leadsTo(s.ID) {
			continue
		}
		im, _, err := c.LoadSnapshot(ctx, s, false)
		if err != nil {
			return err
		}
		if err := r.snapshot(ctx, im, s.ID, s.Time, s.Label); err != nil {
			return err
		}
	}
	return nil
}

// leadsTo reports whether the state that id names is, as far as is known, on the way
// to the one that the copy leads to.
func (c *compaction) leadsTo(id journal.ID) bool {
	_, err := c.Log.Path(id.Seq, c.to)
	return err == nil || id.Seq < c.Oldest(c.to)
}

// labels returns the names of the snapshots of a state.
func labels(v *catalog.Catalog, id journal.ID) (names []string) {
	for _, s := range v.Snapshots {
		if s.Err == nil && s.ID == id && s.Label != "" {
			names = append(names, s.Label)
		}
	}
	return names
}

// dropped counts what is left out.
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

// measure looks what the copy holds.
func (c *compaction) measure(ctx context.Context, out string) error {
	copied, err := OpenReadOnly(ctx, out)
	if err != nil {
		return err
	}
	defer copied.cat.Close()
	for _, s := range copied.cat.Snapshots {
		c.report.After += s.Size
		if s.Label != "" {
			c.report.Names = append(c.report.Names, s.Label)
		}
	}
	for _, s := range copied.cat.Log.Segments {
		c.report.After += s.Size
	}
	for _, s := range c.Snapshots {
		if s.Label != "" && !slices.Contains(c.report.Names, s.Label) {
			c.report.DroppedNames = append(c.report.DroppedNames, s.Label)
		}
	}
	return nil
}
