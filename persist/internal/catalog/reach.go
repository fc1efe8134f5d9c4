package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/progress"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// A Found says how a state was reached.
type Found struct {
	Snapshot SnapshotInfo
	Replayed int
	Skipped  []error // Why newer snapshots were not used.
	Table    snap.PageTable
}

// At returns the state after the record seq; 0 is the oldest state of the store.
// It is reached from the nearest snapshot among its ancestors.
//
// If the program that has the store open removed files since, At looks for other
// ways to the state; if there is none any more, the error wraps [format.ErrNotFound].
func (v *Catalog) At(ctx context.Context, seq uint64) (im *image.Image, err error) {
	err = v.Persevere(ctx, func() error {
		im, _, err = v.Load(ctx, seq, false)
		return err
	})
	return im, err
}

// Persevere calls f again if it fails and the files that there are have changed.
func (v *Catalog) Persevere(ctx context.Context, f func() error) error {
	for try := 0; ; try++ {
		err := f()
		if err == nil || ctx.Err() != nil {
			return err
		}
		changed, e := v.Relist(ctx)
		changed = changed || errors.Is(err, fs.ErrNotExist)
		if e != nil || !changed || try == MaxListings {
			return Pruned(err)
		}
	}
}

// Load is [Catalog.At] that tells how it got there and does not look for other ways. If
// bare is set and no ticks are to be replayed, the image is a bare one.
func (v *Catalog) Load(ctx context.Context, seq uint64, bare bool) (*image.Image, *Found, error) {
	im, f, err := v.Reach(ctx, seq, bare)
	if err == nil {
		im.DropDead()
	}
	return im, f, err
}

// Reach is [Catalog.Load] for a state that ticks may follow: what does not rewind is
// still there for dead entities.
func (v *Catalog) Reach(ctx context.Context, seq uint64, bare bool) (*image.Image, *Found, error) {
	f := new(Found)
	for _, s := range v.Bases(seq) {
		if s.Err == nil && !v.Leads(s, seq) {
			continue
		}
		im, table, err := v.LoadSnapshot(ctx, s, bare && s.ID.Seq == seq)
		if err == nil {
			f.Snapshot, f.Table = s, table
			f.Replayed, err = v.replay(ctx, im, seq)
			if err == nil {
				return im, f, nil
			}
			return nil, f, errors.Join(append(f.Skipped, err)...)
		}
		if ctx.Err() != nil {
			return nil, f, err
		}
		f.Skipped = append(f.Skipped, err)
	}
	if len(f.Skipped) > 0 {
		return nil, f, errors.Join(f.Skipped...)
	}
	return nil, f, v.Unreachable(seq)
}

// Unreachable says that no snapshot leads to record seq, and what is missing on
// the way.
func (v *Catalog) Unreachable(seq uint64) error {
	_, err := v.Log.Path(0, seq)
	return errors.Join(fmt.Errorf("%w: no snapshot leads to record %d", format.ErrNotFound, seq), err)
}

// StatesTo returns the states on the way to record seq, as far back as it is known.
func (v *Catalog) StatesTo(seq uint64) map[journal.ID]bool {
	onPath := map[journal.ID]bool{}
	root := seq
	var oldest journal.Entry
	for e := range v.Log.Ancestors(seq) {
		onPath[e.ID] = true
		root, oldest = e.Parent, e
	}
	if _, ok := v.Log.Find(root); !ok && root != seq { // Damaged: who continued it knew its ID.
		if t, _, err := v.Tick(oldest); err == nil {
			onPath[t.Parent] = true
		}
	}
	if root == 0 {
		onPath[journal.ID{}] = true // The base, unless the way to it was pruned.
	}
	for _, s := range v.Log.Segments { // The record before the oldest segment is known by its ID only.
		if s.Err == nil && s.Previous.Seq == root {
			onPath[s.Previous] = true
		}
	}
	if _, ok := v.Log.Find(seq); !ok { // The journal holds nothing to compare with.
		for _, s := range v.Snapshots {
			if s.ID.Seq == seq {
				onPath[s.ID] = true
			}
		}
	}
	return onPath
}

// Bases returns the snapshots that record seq can be reached from, nearest
// first; those that cannot be read come in order, so that they are reported.
func (v *Catalog) Bases(seq uint64) []SnapshotInfo {
	onPath := v.StatesTo(seq)
	var bases []SnapshotInfo
	for _, s := range slices.Backward(v.Snapshots) {
		if s.Err == nil && len(v.Log.Segments) > 0 {
			s.Err = v.Misfit(s)
		}
		if s.Err != nil || onPath[s.ID] {
			bases = append(bases, s)
		}
	}
	return bases
}

// LoadSnapshot loads the state in s. A bare image has what filling a world takes, and no
// more.
func (v *Catalog) LoadSnapshot(ctx context.Context, s SnapshotInfo, bare bool) (*image.Image, snap.PageTable, error) {
	if s.Err != nil {
		return nil, nil, s.Err
	}
	r, err := snap.Open(v.Files, s.Name, SnapshotName)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	table := snap.PageTable{}
	im, err := r.Load(ctx, table, bare)
	return im, table, err
}

// replay brings im forward to record seq.
func (v *Catalog) replay(ctx context.Context, im *image.Image, seq uint64) (n int, err error) {
	path, err := v.Log.Path(im.ID.Seq, seq)
	if err != nil {
		return 0, v.JournalError(err)
	}
	p := progress.Start(ctx, progress.PhaseReplay, int64(len(path)))
	for i, e := range path {
		if err := ctx.Err(); err != nil {
			return i, err
		}
		if err := v.Step(im, e); err != nil {
			return i, err
		}
		p.Add(1)
	}
	return len(path), nil
}

// Step applies the tick of record e to im.
func (v *Catalog) Step(im *image.Image, e journal.Entry) error {
	t, s, err := v.Tick(e)
	if err != nil {
		return err
	}
	return v.Advance(im, e, t, s)
}

// Advance applies t, the tick of record e, to im.
func (v *Catalog) Advance(im *image.Image, e journal.Entry, t *format.Tick, s *format.Schema) error {
	if err := im.Adopt(s); err != nil {
		return v.EntryError(e, err)
	}
	if err := im.Apply(t, e.ID); err != nil {
		return v.EntryError(e, err)
	}
	return nil
}
