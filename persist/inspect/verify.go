package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
	"github.com/stet-ecs/stet/persist/internal/progress"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// Verify checks each snapshot, and then each record of the journal. If all snapshots and records
// are good, Verify also replays the records and compares the states with the snapshots. A program
// may write and prune files meanwhile. If a damaged file was pruned, the report has a note instead
// of the damage. There are three steps:
//
//   - verifyFiles loads each snapshot and checks its state. If loading fails, it checks the
//     checksums. A save is read page by page instead (verifySave), because no records follow a
//     save.
//   - verifyRecords checks each payload: its checksum, format, operations and schema.
//   - verifyReplay replays the records from the oldest state on. It checks the digests of
//     snapshots, and the whole states at the tips. See verifyreplay.go.

// A VerifyReport is the result of [View.Verify].
type VerifyReport struct {
	Snapshots int // Snapshot files checked.
	Records   int // Records of the journal checked.
	// Replayed is the number of records replayed on the path from the oldest snapshot to the
	// head.
	Replayed int
	// Rewound is the number of records replayed on other branches.
	Rewound int
	Bytes   int64 // Bytes of files and payloads.
	// Problems is the damage, with file and offset where known. It is empty if the store is good.
	Problems []error
	Notes    []string
}

// verifyFiles calls check() for each snapshot file, from the newest to the oldest state. So the
// image of the oldest state is still in memory when replay begins with it. verifyFiles also reports
// the known damage of the journal.
func verifyFiles(ctx context.Context, v *catalog.Catalog, p *progress.Meter, check func(context.Context, catalog.SnapshotInfo, *VerifyReport) error) (r VerifyReport, err error) {
	r.Bytes = size(v)
	done := int64(0)
	files := slices.Clone(v.Snapshots)
	slices.SortStableFunc(files, func(a, b catalog.SnapshotInfo) int { return cmp.Compare(b.ID.Seq, a.ID.Seq) })
	for _, s := range files {
		r.Snapshots++
		if errors.Is(s.Err, disk.ErrIrregular) {
			r.Problems = append(r.Problems, s.Err)
			continue
		}
		if err := check(p.Part(ctx, s.Size), s, &r); err != nil {
			return r, err
		}
		done += s.Size
		p.UpTo(done)
	}
	r.Problems = append(r.Problems, v.Problems()...)
	noteEnds(v, &r)
	return r, nil
}

func (r *VerifyReport) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// noteEnds adds a note for each segment with unused bytes at its end.
func noteEnds(v *catalog.Catalog, r *VerifyReport) {
	if t := v.Log.Torn; t != nil && v.InUse {
		r.note("%s/%s: %d bytes at offset %d are being written", catalog.JournalDir, t.File, t.Length, t.Offset)
	} else if t != nil {
		r.note("the journal was not closed: %v", t.In(catalog.JournalDir))
	}
	for _, d := range v.Log.TornTails {
		r.note("%s/%s: %d bytes at offset %d were left behind by an unclean end", catalog.JournalDir, d.File, d.Length, d.Offset)
	}
}

// verifyRecords reads and checks all ticks.
func verifyRecords(ctx context.Context, v *catalog.Catalog, p *progress.Meter, r *VerifyReport) error {
	entries := v.Log.Entries
	r.Records = len(entries)
	// errs has an error per record, so problems are reported in order.
	errs := make([]error, len(entries))
	// mu guards the progress meter p.
	var mu sync.Mutex
	err := v.RecordsAtOnce(ctx, entries, func(i int, r *catalog.Record) error {
		errs[i] = verifyRecord(v, r)
		mu.Lock()
		defer mu.Unlock()
		p.Add(int64(r.Length))
		return nil
	})
	addProblems(v, r, errs)
	return err
}

// verifyRecord returns the error of a record, or nil. The journal has already verified the
// checksum. verifyRecord checks that the payload is a tick of components in the schema.
func verifyRecord(v *catalog.Catalog, r *catalog.Record) error {
	// Without a schema, the record cannot be checked further.
	if err := v.DescribeAt(r); err != nil {
		return err
	}
	if err := format.EachOp(r.Decoded.Ops, func(format.Op) {}); err != nil {
		return v.EntryError(r.Entry, err)
	}
	return nil
}

// addProblems reports errs, the errors of the records in order. For each segment that was removed
// in the meantime, it adds one note.
func addProblems(v *catalog.Catalog, r *VerifyReport, errs []error) {
	// Number of the last removed segment.
	removed := -1
	for i, err := range errs {
		segment := v.Log.Entries[i].Segment
		if err == nil || segment == removed {
			continue
		}
		if name := catalog.JournalDir + "/" + v.Log.Segments[segment].Name; v.Gone(name) {
			removed = segment
			r.note("%s was removed meanwhile", name)
			continue
		}
		// Report an error once, although one damaged place may affect many records.
		if !slices.ContainsFunc(r.Problems, func(p error) bool { return p.Error() == err.Error() }) {
			r.Problems = append(r.Problems, err)
		}
	}
}

// size returns how many bytes Verify has to read.
func size(v *catalog.Catalog) (n int64) {
	for _, s := range v.Snapshots {
		n += s.Size
	}
	return n + bytesOf(v.Log.Entries)
}

// verifySnapshot checks one file, and returns its state if it is good. If the file cannot be
// loaded, it checks the checksums.
func verifySnapshot(ctx context.Context, v *catalog.Catalog, s catalog.SnapshotInfo, r *VerifyReport) (*image.Image, error) {
	im, _, err := v.LoadSnapshot(ctx, s, false)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err == nil {
		err = im.Settled().Unsound(ctx)
		if err != nil && ctx.Err() == nil {
			err = &format.DamageError{File: s.Name, Offset: -1, Length: 0, Reason: err.Error(), Err: format.ErrCorrupt}
		}
	}
	if err == nil {
		report(v, s, r)
		return im, nil
	}
	// err is only the first damage that loading has met. If checksums are wrong, report all of them
	// instead.
	errs := []error{err}
	if _, e := pagefile.Check(progress.Quiet(ctx), v.Files, s.Name); e != nil {
		errs = flatten(e)
	}
	report(v, s, r, errs...)
	return nil, ctx.Err()
}

// verifySave checks a save page by page. It needs memory for the entities, but not for their
// values. If checksums are wrong, it reports them. If checksums are good but the state is damaged,
// it returns false. The caller then loads the save to find the details.
func verifySave(ctx context.Context, v *catalog.Catalog, s catalog.SnapshotInfo, r *VerifyReport) (done bool, err error) {
	if s.Err != nil {
		return false, nil
	}
	if _, err := pagefile.Check(ctx, v.Files, s.Name); err != nil {
		if ctx.Err() == nil {
			report(v, s, r, flatten(err)...)
		}
		return true, ctx.Err()
	}
	f, err := snap.Open(v.Files, s.Name, catalog.SnapshotName)
	if err != nil {
		return false, nil
	}
	defer f.Close()
	if err := f.Check(ctx); err != nil {
		return ctx.Err() != nil, ctx.Err()
	}
	report(v, s, r)
	return true, nil
}

// verifyFile checks the checksums of one file. A file can have good checksums but a manifest that
// cannot be read. verifyFile then reports the error of opening the file.
func verifyFile(ctx context.Context, v *catalog.Catalog, s catalog.SnapshotInfo, r *VerifyReport) error {
	_, err := pagefile.Check(ctx, v.Files, s.Name)
	errs := flatten(err)
	if err == nil && s.Err != nil {
		errs = []error{s.Err}
	}
	report(v, s, r, errs...)
	return ctx.Err()
}

// report adds the problems of a snapshot: errs, and a mismatch with the journal. If the file was
// removed in the meantime, report adds a note instead. A file that was missing from the start is
// still a problem.
func report(v *catalog.Catalog, s catalog.SnapshotInfo, r *VerifyReport, errs ...error) {
	before := len(r.Problems)
	r.Problems = append(r.Problems, errs...)
	if err := v.Misfit(s); err != nil {
		r.Problems = append(r.Problems, err)
	}
	if len(r.Problems) > before && v.Gone(s.Name) && !errors.Is(s.Err, fs.ErrNotExist) {
		r.Problems = r.Problems[:before]
		r.note("%s was removed meanwhile", s.Name)
	}
}

// flatten splits an error that errors.Join made. An error that only wraps several others, with a
// text of its own, is not split.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) && errors.Join(joined.Unwrap()...).Error() == err.Error() {
		return joined.Unwrap()
	}
	return []error{err}
}
