package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/progress"
)

// A replayCheck replays all records to which a snapshot leads, also those of rewound branches. It
// replays each record once. If several records continue a state, the image is copied for each of
// them but one. The record with the most descendants gets the image itself.
//
// So a branch on a copy has at most half of the remaining records. For n records, at most log2(n)
// copies exist at the same time.
type replayCheck struct {
	*catalog.Catalog
	// children maps a record to the records that continue it.
	children map[uint64][]journal.Entry
	// size maps a record to the number of its descendants plus one.
	size map[uint64]int
	// reached has the records whose states were replayed or loaded from a snapshot.
	reached map[uint64]bool
	// way has the records on the path to the head.
	way map[uint64]bool
	// states has the snapshots of each state. A conversion makes a second snapshot of the same
	// state, with another schema.
	states   map[journal.ID][]catalog.SnapshotInfo
	progress *progress.Meter
	// base is the image of the oldest state, or nil if load must read it.
	base *image.Image

	replayed, rewound int
	problems          []error
}

// verifyReplay replays all records. It begins with the given image of the oldest state. If files
// are removed in the meantime, it lists the files again and starts over. The program may even have
// removed all files that lead to the old head. So after a second listing, an unreachable head is
// not damage.
func verifyReplay(ctx context.Context, v *catalog.Catalog, base *image.Image, r *VerifyReport) error {
	// Files may vanish while this loop body runs. In that case its problems are discarded.
	for try := range catalog.MaxListings {
		c := newReplayCheck(ctx, v)
		c.base, base = base, nil
		if err := c.run(progress.Quiet(ctx)); err != nil {
			return err
		}
		r.Replayed, r.Rewound = c.replayed, c.rewound
		if len(c.problems) == 0 && !c.reached[v.Head()] {
			if err := v.Unreachable(v.Head()); try == 0 {
				c.problems = append(c.problems, err)
			} else {
				r.note("the records that lead to the head were removed meanwhile: %v", err)
			}
		}
		if len(c.problems) == 0 {
			return nil
		}
		changed, err := v.Relist(ctx)
		if err != nil {
			return err
		}
		if !changed {
			r.Problems = append(r.Problems, c.problems...)
			return nil
		}
	}
	r.note("the path to the head was not replayed: files are removed faster than they can be read")
	return nil
}

// newReplayCheck returns a check of the current records and snapshots of v.
func newReplayCheck(ctx context.Context, v *catalog.Catalog) *replayCheck {
	c := &replayCheck{
		Catalog: v, children: map[uint64][]journal.Entry{}, size: map[uint64]int{}, reached: map[uint64]bool{},
		way: v.Ancestors(v.Head()), states: map[journal.ID][]catalog.SnapshotInfo{},
		progress: progress.Start(ctx, progress.PhaseReplay, int64(len(v.Log.Entries))),
	}
	for _, s := range v.Snapshots {
		c.states[s.ID] = append(c.states[s.ID], s)
	}
	// Go backward, since the records that continue a record come after it.
	for _, e := range slices.Backward(v.Log.Entries) {
		c.size[e.ID.Seq]++
		c.size[e.Parent] += c.size[e.ID.Seq]
		c.children[e.Parent] = append(c.children[e.Parent], e)
	}
	return c
}

// run replays from every snapshot that replay has not reached, the oldest state first.
func (c *replayCheck) run(ctx context.Context) error {
	roots := slices.Clone(c.Snapshots)
	slices.SortStableFunc(roots, func(a, b catalog.SnapshotInfo) int { return cmp.Compare(a.ID.Seq, b.ID.Seq) })
	for _, s := range roots {
		if s.Err != nil || c.reached[s.ID.Seq] {
			continue
		}
		im, err := c.load(ctx, s)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			c.problem(err)
			continue
		}
		if err := c.from(ctx, im); err != nil {
			return err
		}
	}
	c.progress.Finish()
	return nil
}

// load returns the state of s. If c.base has the same state and schema, load returns c.base and
// does not read the file. It sets c.base to nil, because replay will change the image.
func (c *replayCheck) load(ctx context.Context, s catalog.SnapshotInfo) (*image.Image, error) {
	im := c.base
	c.base = nil
	if im != nil && im.ID == s.ID && im.Stored().Differs(s.Schema) == nil {
		return im, nil
	}
	im, _, err := c.LoadSnapshot(ctx, s, false)
	return im, err
}

// problem reports err, but not a missing file. A file that retention has removed is no damage, and
// later snapshots lead to the same records.
func (c *replayCheck) problem(err error) {
	if !errors.Is(err, fs.ErrNotExist) {
		c.problems = append(c.problems, err)
	}
}

// from replays all descendants of the state im. It returns an error only if ctx ends.
func (c *replayCheck) from(ctx context.Context, im *image.Image) (err error) {
	for im != nil {
		c.reached[im.ID.Seq] = true
		next := c.next(im)
		if len(next) == 0 {
			return c.tip(ctx, im)
		}
		last := len(next) - 1
		// Replay the smaller branches first, each on a copy.
		for _, e := range next[:last] {
			side, err := c.step(ctx, im.Clone(), e)
			if err == nil {
				err = c.from(ctx, side)
			}
			if err != nil {
				return err
			}
		}
		if im, err = c.step(ctx, im, next[last]); err != nil {
			return err
		}
	}
	return nil
}

// next returns the records that continue im. The record with the most descendants is last.
func (c *replayCheck) next(im *image.Image) (next []journal.Entry) {
	for _, e := range c.children[im.ID.Seq] {
		if !c.reached[e.ID.Seq] {
			next = append(next, e)
		}
	}
	slices.SortFunc(next, func(a, b journal.Entry) int {
		return cmp.Or(cmp.Compare(c.size[a.ID.Seq], c.size[b.ID.Seq]), cmp.Compare(a.ID.Seq, b.ID.Seq))
	})
	return next
}

// step replays e on im, and compares the digest. It returns the new state, or nil if e cannot be
// applied. The only error is that of ctx.
func (c *replayCheck) step(ctx context.Context, im *image.Image, e journal.Entry) (*image.Image, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	im, err := (&catalog.Walk{Catalog: c.Catalog}).Step(ctx, im, c.Record(e))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		c.problem(err)
		return nil, nil
	}
	c.progress.Add(1)
	if c.way[e.ID.Seq] {
		c.replayed++
	} else {
		c.rewound++
	}
	if err := c.compare(im, e); err != nil {
		c.problem(err)
		// Stop here. run() replays the later records from a later snapshot, if there is one.
		return nil, nil
	}
	return im, nil
}

// compare compares the digest of im with that of each snapshot that has the same state and schema.
func (c *replayCheck) compare(im *image.Image, e journal.Entry) error {
	for _, s := range c.states[im.ID] {
		if s.Schema == nil || im.Stored().Differs(s.Schema) != nil {
			continue
		}
		if d := im.Digest(); d != s.Digest {
			return c.EntryError(e, fmt.Errorf("replay gives digest %v, %s has %v", d, s.Name, s.Digest))
		}
	}
	return nil
}

// tip checks the state at the end of a branch. This check reads the whole state, so it runs only
// at ends. After other ticks only the digest is compared, if a snapshot records one.
func (c *replayCheck) tip(ctx context.Context, im *image.Image) error {
	err := im.Settled().Unsound(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if e, ok := c.Log.Find(im.ID.Seq); ok && err != nil {
		c.problem(c.EntryError(e, err))
	}
	return nil
}
