package inspect

import (
	"context"

	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/progress"
)

// Verify reads the whole store and checks that these statements are true:
//
//   - Every page and every record has the right checksum and format.
//   - Sparse and dense arrays agree.
//   - The entities of every array are alive and unique.
//   - The operations of every tick lead to the rows that the tick wrote.
//   - Replay reproduces the digest of every snapshot, also on rewound branches.
//
// An error means that Verify could not check the store, or that ctx ended. The progress phases are
// [progress.PhaseVerify], in bytes, and [progress.PhaseReplay] if the first phase found no problem.
//
// Verify uses as many goroutines as the program has processors. It needs memory for one world, and
// for one more world while it replays a rewound branch. A branch of that branch needs memory for a
// third world. A save is read page by page, with about 10 bytes of memory per entity. Verify loads
// the save only if the checksums are good but the state is damaged.
//
// Files that the writing program removes during Verify are reported as notes.
func (v *View) Verify(ctx context.Context) (VerifyReport, error) {
	if err := v.cat.ReadJournal(ctx); err != nil {
		return VerifyReport{}, err
	}
	p := progress.Start(ctx, progress.PhaseVerify, size(v.cat))
	// last is the image of the oldest state, where replay begins.
	var last *image.Image
	r, err := verifyFiles(ctx, v.cat, p, func(ctx context.Context, s catalog.SnapshotInfo, r *VerifyReport) (err error) {
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

// VerifyChecksums is like [View.Verify], but checks only checksums. It reads every byte of the
// snapshots. It reads the journal too, unless opening v has already read it. It needs almost no
// memory.
func (v *View) VerifyChecksums(ctx context.Context) (VerifyReport, error) {
	if err := v.cat.ReadJournal(ctx); err != nil {
		return VerifyReport{}, err
	}
	p := progress.Start(ctx, progress.PhaseVerify, size(v.cat)-bytesOf(v.cat.Log.Entries))
	r, err := verifyFiles(ctx, v.cat, p, func(ctx context.Context, s catalog.SnapshotInfo, r *VerifyReport) error {
		return verifyFile(ctx, v.cat, s, r)
	})
	r.Records = len(v.cat.Log.Entries)
	return r, err
}

// Space says how the bytes of the files are used. It reads the key trees of the snapshots, but no
// pages and no payloads.
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
