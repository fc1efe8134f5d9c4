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
	"github.com/stet-ecs/stet/persist/internal/progress"
)

// A replayCheck replays every record that a snapshot leads to, each once: the way to
// the head and the branches that were rewound.
//
//	snapshot ── 1 ── 2 ── 3 ── 4         of the branches at a record the one with most
//	                 └─── 5 ── 6 ── 7    records behind it goes on with the image, the
//	                           └─── 8    others with copies
//
// So there are at most as many copies at a time as the number of records has binary
// digits: whoever goes on with a copy has at most half of the records left.
type replayCheck struct {
	*catalog.Catalog
	children map[uint64][]journal.Entry    // By the record that they continue.
	size     map[uint64]int                // Records behind a record, itself among them.
	reached  map[uint64]bool               // Records that replay came to, the snapshots' among them.
	way      map[uint64]bool               // To the head.
	states   map[journal.ID][]SnapshotInfo // One that was converted has two.
	progress *progress.Meter
	base     *Image // The state that it begins at, or nil: it is read again.

	replayed, rewound int
	problems          []error
}

// verifyReplay replays all there is. If files are removed meanwhile, it looks which
// there are and begins again; that those that are left do not lead to the head of v, which
// may be older than all of them by then, is no damage. base is the oldest state.
func verifyReplay(ctx context.Context, v *catalog.Catalog, base *Image, r *VerifyReport) error {
	// Only a round in which no file was missing says anything: problems count if the
	// directory is as it was when the round began.
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
				r.note("what led to the head was removed meanwhile: %v", err)
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
	r.note("the way to the head was not replayed: files are removed faster than they can be read")
	return nil
}

// newReplayCheck returns a check of what v has now: which records continue which, and how many lie
// behind each.
func newReplayCheck(ctx context.Context, v *catalog.Catalog) *replayCheck {
	c := &replayCheck{
		Catalog: v, children: map[uint64][]journal.Entry{}, size: map[uint64]int{}, reached: map[uint64]bool{},
		way: v.Ancestors(v.Head()), states: map[journal.ID][]SnapshotInfo{},
		progress: progress.Start(ctx, progress.PhaseReplay, int64(len(v.Log.Entries))),
	}
	for _, s := range v.Snapshots {
		c.states[s.ID] = append(c.states[s.ID], s)
	}
	for _, e := range slices.Backward(v.Log.Entries) { // What continues a record lies behind it, and was counted.
		c.size[e.ID.Seq]++
		c.size[e.Parent] += c.size[e.ID.Seq]
		c.children[e.Parent] = append(c.children[e.Parent], e)
	}
	return c
}

// run begins at every snapshot that none before led to, oldest state first.
func (c *replayCheck) run(ctx context.Context) error {
	roots := slices.Clone(c.Snapshots)
	slices.SortStableFunc(roots, func(a, b SnapshotInfo) int { return cmp.Compare(a.ID.Seq, b.ID.Seq) })
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

// load returns what s holds. The image that Verify has already is taken once, since
// replay changes it; of a converted state there are two snapshots, so the schema counts.
func (c *replayCheck) load(ctx context.Context, s SnapshotInfo) (*Image, error) {
	im := c.base
	c.base = nil
	if im != nil && im.ID == s.ID && im.Stored().Differs(s.Schema) == nil {
		return im, nil
	}
	im, _, err := c.LoadSnapshot(ctx, s, false)
	return im, err
}

// problem adds err, unless it is that of a file that is gone: what that led to is
// looked at from a later snapshot.
func (c *replayCheck) problem(err error) {
	if !errors.Is(err, fs.ErrNotExist) {
		c.problems = append(c.problems, err)
	}
}

// from replays what lies behind im. An error is that of ctx.
func (c *replayCheck) from(ctx context.Context, im *Image) (err error) {
	for im != nil {
		c.reached[im.ID.Seq] = true
		next := c.next(im)
		if len(next) == 0 {
			return c.tip(ctx, im)
		}
		last := len(next) - 1
		for _, e := range next[:last] { // The small branches first, each on a copy.
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

// next returns the records that continue im, those with most behind them last.
func (c *replayCheck) next(im *Image) (next []journal.Entry) {
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

// step replays e on im, and compares the digest. It returns what im is then, or nil if e
// does not fit. An error is that of ctx.
func (c *replayCheck) step(ctx context.Context, im *Image, e journal.Entry) (*Image, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	im, err := (&walk{Catalog: c.Catalog}).step(ctx, im, c.Record(e))
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
		return nil, nil // What follows is not looked at from here; snapshots behind it are begun at anew.
	}
	return im, nil
}

// compare compares the digest of im with those that snapshots of the same state and
// schema have.
func (c *replayCheck) compare(im *Image, e journal.Entry) error {
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

// tip looks at the state that a branch ends with. Whether a state hangs together is asked
// there only, since that looks at all of it; after a tick only digests are compared, where a
// snapshot has one.
func (c *replayCheck) tip(ctx context.Context, im *Image) error {
	err := im.Settled().Unsound(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if e, ok := c.Log.Find(im.ID.Seq); ok && err != nil {
		c.problem(c.EntryError(e, err))
	}
	return nil
}
