package persist

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/stet-ecs/stet/journal"
)

// A found says how a state was reached.
type found struct {
	snapshot SnapshotInfo
	replayed int
	skipped  []error // Why newer snapshots were not used.
	table    pageTable
}

// At returns the state after the record seq; 0 is the oldest state of the store.
// It is reached from the nearest snapshot among its ancestors.
//
// If the program that has the store open removed files since, At looks for other
// ways to the state; if there is none any more, the error wraps [ErrNotFound].
func (v *catalog) At(ctx context.Context, seq uint64) (im *Image, err error) {
	err = v.persevere(ctx, func() error {
		im, _, err = v.at(ctx, seq, false)
		return err
	})
	return im, err
}

// persevere calls f again if it fails and the files that there are have changed.
func (v *catalog) persevere(ctx context.Context, f func() error) error {
	for try := 0; ; try++ {
		err := f()
		if err == nil || ctx.Err() != nil {
			return err
		}
		changed, e := v.relist(ctx)
		changed = changed || errors.Is(err, fs.ErrNotExist)
		if e != nil || !changed || try == maxListings {
			return pruned(err)
		}
	}
}

// at is At. If no ticks are to be replayed and bare is set, the image is a bare one.
func (v *catalog) at(ctx context.Context, seq uint64, bare bool) (*Image, *found, error) {
	im, f, err := v.reach(ctx, seq, bare)
	if err == nil {
		im.dropDead()
	}
	return im, f, err
}

// reach is at for a state that ticks may follow.
func (v *catalog) reach(ctx context.Context, seq uint64, bare bool) (*Image, *found, error) {
	f := new(found)
	for _, s := range v.bases(seq) {
		if s.Err == nil && !v.leads(s, seq) {
			continue
		}
		im, table, err := v.loadSnapshot(ctx, s, bare && s.ID.Seq == seq)
		if err == nil {
			f.snapshot, f.table = s, table
			f.replayed, err = v.replay(ctx, im, seq)
			if err == nil {
				return im, f, nil
			}
			return nil, f, errors.Join(append(f.skipped, err)...)
		}
		if ctx.Err() != nil {
			return nil, f, err
		}
		f.skipped = append(f.skipped, err)
	}
	if len(f.skipped) > 0 {
		return nil, f, errors.Join(f.skipped...)
	}
	return nil, f, v.unreachable(seq)
}

// unreachable says that no snapshot leads to record seq, and what is missing on
// the way.
func (v *catalog) unreachable(seq uint64) error {
	_, err := v.log.Path(0, seq)
	return errors.Join(fmt.Errorf("%w: no snapshot leads to record %d", ErrNotFound, seq), err)
}

// statesTo returns the states on the way to record seq, as far back as it is known.
func (v *catalog) statesTo(seq uint64) map[journal.ID]bool {
	onPath := map[journal.ID]bool{}
	root := seq
	var oldest journal.Entry
	for e := range v.log.Ancestors(seq) {
		onPath[e.ID] = true
		root, oldest = e.Parent, e
	}
	if _, ok := v.log.Find(root); !ok && root != seq { // Damaged: who continued it knew its ID.
		if t, _, err := v.tick(oldest); err == nil {
			onPath[t.parent] = true
		}
	}
	if root == 0 {
		onPath[journal.ID{}] = true // The base, unless the way to it was pruned.
	}
	for _, s := range v.log.Segments { // The record before the oldest segment is known by its ID only.
		if s.Err == nil && s.Previous.Seq == root {
			onPath[s.Previous] = true
		}
	}
	if _, ok := v.log.Find(seq); !ok { // The journal holds nothing to compare with.
		for _, s := range v.snapshots {
			if s.ID.Seq == seq {
				onPath[s.ID] = true
			}
		}
	}
	return onPath
}

// bases returns the snapshots that record seq can be reached from, nearest
// first; those that cannot be read come in order, so that they are reported.
func (v *catalog) bases(seq uint64) []SnapshotInfo {
	onPath := v.statesTo(seq)
	var bases []SnapshotInfo
	for _, s := range slices.Backward(v.snapshots) {
		if s.Err == nil && len(v.log.Segments) > 0 {
			s.Err = v.misfit(s)
		}
		if s.Err != nil || onPath[s.ID] {
			bases = append(bases, s)
		}
	}
	return bases
}

func (v *catalog) loadSnapshot(ctx context.Context, s SnapshotInfo, bare bool) (*Image, pageTable, error) {
	if s.Err != nil {
		return nil, nil, s.Err
	}
	r, err := openSnapshot(v.files, s.Name, snapshotName)
	if err != nil {
		return nil, nil, err
	}
	defer r.close()
	table := pageTable{}
	im, err := r.load(ctx, table, bare)
	return im, table, err
}

// replay brings im forward to record seq.
func (v *catalog) replay(ctx context.Context, im *Image, seq uint64) (n int, err error) {
	path, err := v.log.Path(im.ID.Seq, seq)
	if err != nil {
		return 0, v.journalError(err)
	}
	p := startProgress(ctx, PhaseReplay, int64(len(path)))
	for i, e := range path {
		if err := ctx.Err(); err != nil {
			return i, err
		}
		if err := v.step(im, e); err != nil {
			return i, err
		}
		p.add(1)
	}
	return len(path), nil
}

// step applies the tick of record e to im.
func (v *catalog) step(im *Image, e journal.Entry) error {
	t, s, err := v.tick(e)
	if err != nil {
		return err
	}
	return v.advance(im, e, t, s)
}

// advance applies t, the tick of record e, to im.
func (v *catalog) advance(im *Image, e journal.Entry, t *tick, s *schema) error {
	if err := im.adopt(s); err != nil {
		return v.entryError(e, err)
	}
	if err := im.apply(t, e.ID); err != nil {
		return v.entryError(e, err)
	}
	return nil
}
