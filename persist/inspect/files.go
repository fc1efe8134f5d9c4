package inspect

import (
	"context"
	"errors"
	"math"

	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/progress"
)

// Verify reads everything and checks all there is to check: checksums, the
// format of every page and record, that sparse and dense arrays agree, that the
// entities of every array are alive and there once, that the
// operations of every tick lead to what its rows say, and that replay reproduces
// the digest of every snapshot, on rewound branches as well. An error says that checking itself was
// not possible, or that ctx ended. Its phases are [progress.PhaseVerify], in bytes, and
// [progress.PhaseReplay] if nothing was wrong before.
//
// It works with as many goroutines as the program has processors, and needs memory
// for one world, where a branch begins for another one. A save is read page by page: that needs some
// 10 bytes for each entity, but memory for the world where checksums are good and the state is not.
//
// What the program that has the store open removes meanwhile is a note.
func (v *View) Verify(ctx context.Context) (VerifyReport, error) {
	if err := v.cat.ReadJournal(ctx); err != nil {
		return VerifyReport{}, err
	}
	p := progress.Start(ctx, progress.PhaseVerify, size(v.cat))
	var last *Image // Of the oldest state, where replay begins.
	r, err := verifyFiles(ctx, v.cat, p, func(ctx context.Context, s SnapshotInfo, r *VerifyReport) (err error) {
		last = nil
		if v.cat.IsSave() {
			if done, err := verifySave(ctx, v.cat, s, r); done || err != nil {
				return err
			}
		}
		last, err = verifySnapshot(ctx, v.cat, s, r)
		return err
	})
	if err != nil {
		return r, err
	}
	if err := verifyRecords(ctx, v.cat, p, &r); err != nil {
		return r, err
	}
	if len(r.Problems) == 0 && !v.cat.IsSave() {
		return r, verifyReplay(ctx, v.cat, last, &r)
	}
	return r, nil
}

// VerifyChecksums is [View.Verify] of the checksums alone: it reads every byte of the
// snapshots, and of the journal unless that was read when v was opened. It needs next
// to no memory.
func (v *View) VerifyChecksums(ctx context.Context) (VerifyReport, error) {
	if err := v.cat.ReadJournal(ctx); err != nil {
		return VerifyReport{}, err
	}
	p := progress.Start(ctx, progress.PhaseVerify, size(v.cat)-bytesOf(v.cat.Log.Entries))
	r, err := verifyFiles(ctx, v.cat, p, func(ctx context.Context, s SnapshotInfo, r *VerifyReport) error {
		return verifyFile(ctx, v.cat, s, r)
	})
	r.Records = len(v.cat.Log.Entries)
	return r, err
}

// Space says what the bytes of the files are for. It reads what holds the keys of
// snapshots, not their pages, and no payloads.
func (v *View) Space(ctx context.Context) (*Space, error) {
	s := new(Space)
	var sizes pageSizes
	if len(v.cat.Snapshots) > 1 {
		sizes = pageSizes{}
	}
	refs := make([][]sharedPage, len(v.cat.Snapshots))
	for i, info := range v.cat.Snapshots {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		sn, shared, err := SnapshotSpace{}, []sharedPage(nil), info.Err
		if err == nil {
			sn, shared, err = snapshotSpace(v.cat, info, sizes)
		}
		if err != nil {
			sn = SnapshotSpace{Name: info.Name, Size: info.Size, Err: err}
		}
		s.Snapshots, refs[i] = append(s.Snapshots, sn), shared
	}
	for i, shared := range refs {
		for _, p := range shared {
			s.Snapshots[i].Shared += sizes[p]
		}
	}
	s.Segments = segmentSpaces(v.cat)
	return s, nil
}

// Compact writes a new store, or a new save, that leads to a state of v and holds
// little else: a full snapshot and as much of the way to it as options ask for.
// Branches that were rewound are left out. States have the digests that they had;
// a program opens the copy with the types it would open v with.
//
// Nothing may be called out yet. It has its name once it is whole and durable. It
// costs reading and writing what is kept, and memory for a world.
//
// The state that At names has its seq and tick in the copy as well, unless ticks are kept that
// follow lost or rewound ones: these are numbered without gaps.
//
// Errors: those of [View.At], and one wrapping [fs.ErrExist] if there is something
// called out.
func (v *View) Compact(ctx context.Context, out string, options CompactOptions) (CompactReport, error) {
	to, err := v.cat.Resolve(options.At)
	if err != nil {
		return CompactReport{}, err
	}
	from := to
	if options.Keep != "" {
		if from, err = v.cat.Resolve(options.Keep); err != nil {
			return CompactReport{}, err
		}
	}
	c := compaction{Catalog: v.cat, from: from, to: to}
	c.report.Before = storeSize(v.cat)
	if v.cat.IsSave() {
		err = c.save(ctx, out, options.Compress)
	} else {
		err = c.store(ctx, out, !options.NoNames)
	}
	return c.report, err
}

// Backup copies the store as it is now, also if another process has it open: with
// all ticks that can be read. See [persist.Store.Backup].
func (v *View) Backup(ctx context.Context, dir string) error {
	if v.cat.IsSave() {
		return errors.New("persist: backup: a save is one file that never changes; copy it")
	}
	return catalog.Backup(ctx, v.cat.Files, dir, func() uint64 { return math.MaxUint64 })
}
