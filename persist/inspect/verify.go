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
	"github.com/stet-ecs/stet/internal/pagefile"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/progress"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// Verify looks at everything once: at each snapshot, then at each record of the journal by
// itself, and then, if all of these are good, at whether replaying the records leads to the
// states that snapshots have (see verifyreplay.go). A program may run meanwhile and prune:
// a file that is gone when its damage is looked at was never damaged, and becomes a note.
//
//	verifyFiles     each snapshot: load it and look at the state; if that fails, all of its checksums.
//	                A save is not loaded, as nothing is replayed from it: verifySave
//	verifyRecords   each payload: its sum, its format, its operations, and the schema
//	verifyReplay    from the oldest state on: digests where snapshots have some, the whole at the tips

// A VerifyReport is what [View.Verify] found.
type VerifyReport struct {
	Snapshots int     // Files checked.
	Records   int     // Records of the journal checked.
	Replayed  int     // Of them on the way from the oldest snapshot to the head,
	Rewound   int     // and of others, all of which replay has led to as well.
	Bytes     int64   // Of files and payloads.
	Problems  []error // Damage, with file and offset where known. Empty: all is well.
	Notes     []string
}

// verifyFiles calls check for all snapshot files, that of the oldest state last, since
// its image is where replay begins and need not be read twice. It reports what is known of
// the journal.
func verifyFiles(ctx context.Context, v *catalog.Catalog, p *progress.Meter, check func(context.Context, SnapshotInfo, *VerifyReport) error) (r VerifyReport, err error) {
	r.Bytes = size(v)
	done := int64(0)
	files := slices.Clone(v.Snapshots)
	slices.SortStableFunc(files, func(a, b SnapshotInfo) int { return cmp.Compare(b.ID.Seq, a.ID.Seq) })
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

// noteEnds notes the bytes that are not in use.
func noteEnds(v *catalog.Catalog, r *VerifyReport) {
	if t := v.Log.Torn; t != nil && v.InUse {
		r.note("%s/%s: %d bytes at offset %d are being written", catalog.JournalDir, t.File, t.Length, t.Offset)
	} else if t != nil {
		r.note("the journal was not closed: %v", t.In(catalog.JournalDir))
	}
	for _, d := range v.Log.Disowned {
		r.note("%s/%s: %d bytes at offset %d were left behind by an unclean end", catalog.JournalDir, d.File, d.Length, d.Offset)
	}
}

// verifyRecords reads all ticks.
func verifyRecords(ctx context.Context, v *catalog.Catalog, p *progress.Meter, r *VerifyReport) error {
	entries := v.Log.Entries
	r.Records = len(entries)
	errs := make([]error, len(entries)) // Problems are in the order of records.
	var mu sync.Mutex                   // For p.
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

// verifyRecord returns what is wrong with a record. Checksums are the journal's; this is whether what they
// guard is a tick, and one of the components that the schema describes.
func verifyRecord(v *catalog.Catalog, r *catalog.Record) error {
	if err := v.DescribeAt(r); err != nil { // Of a record without a schema no more is asked.
		return err
	}
	if _, err := format.DecodeOps(r.Says.Ops); err != nil {
		return v.EntryError(r.Entry, err)
	}
	return nil
}

// addProblems reports errs, those of records by their positions. Segments that were
// removed meanwhile are noted, once each.
func addProblems(v *catalog.Catalog, r *VerifyReport, errs []error) {
	removed := -1 // Segment.
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
		if !slices.ContainsFunc(r.Problems, func(p error) bool { return p.Error() == err.Error() }) { // One damage hides what describes many.
			r.Problems = append(r.Problems, err)
		}
	}
}

// size returns how many bytes there are to verify.
func size(v *catalog.Catalog) (n int64) {
	for _, s := range v.Snapshots {
		n += s.Size
	}
	return n + bytesOf(v.Log.Entries)
}

// verifySnapshot checks one file and returns what it holds, if it is good. One that can
// be loaded has good checksums; else they come first.
func verifySnapshot(ctx context.Context, v *catalog.Catalog, s SnapshotInfo, r *VerifyReport) (*Image, error) {
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
	// What loading stumbled over may follow from damaged bytes, of which it names the first at most.
	errs := []error{err}
	if _, e := pagefile.Check(progress.Quiet(ctx), v.Files, s.Name); e != nil {
		errs = flatten(e)
	}
	report(v, s, r, errs...)
	return nil, ctx.Err()
}

// verifySave checks a save page by page, in memory for its entities and not for what they have. It reports whether
// it is done: what is wrong beyond checksums is left to verifySnapshot, which says more about it.
func verifySave(ctx context.Context, v *catalog.Catalog, s SnapshotInfo, r *VerifyReport) (done bool, err error) {
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

// verifyFile checks the checksums of one file. If they are good, what kept it from opening is told.
func verifyFile(ctx context.Context, v *catalog.Catalog, s SnapshotInfo, r *VerifyReport) error {
	_, err := pagefile.Check(ctx, v.Files, s.Name)
	errs := flatten(err)
	if err == nil && s.Err != nil {
		errs = []error{s.Err}
	}
	report(v, s, r, errs...)
	return ctx.Err()
}

// report adds what is wrong with a snapshot: errs, and that it does not fit the journal. What is wrong
// with a file that is gone by now is taken back; but one that was missing from the beginning stays
// reported.
func report(v *catalog.Catalog, s SnapshotInfo, r *VerifyReport, errs ...error) {
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

// flatten returns the errors that errors.Join joined. One that wraps two others and says more than they do is one.
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
