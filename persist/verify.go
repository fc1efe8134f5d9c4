package persist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/stet-ecs/stet/internal/pagefile"
	"github.com/stet-ecs/stet/journal"
)

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

// Verify reads everything and checks all there is to check: checksums, the
// format of every page and record, that sparse and dense arrays agree, that the
// entities of every array are alive and there once, that the
// operations of every tick lead to what its rows say, and that replay reproduces
// the digest of every snapshot, on rewound branches as well. An error says that checking itself was
// not possible, or that ctx ended. Its phases are [PhaseVerify], in bytes, and
// [PhaseReplay] if nothing was wrong before.
//
// It works with as many goroutines as the program has processors, and needs memory
// for one world, where a branch begins for another one.
//
// What the program that has the store open removes meanwhile is a note.
func (v *View) Verify(ctx context.Context) (VerifyReport, error) {
	p := startProgress(ctx, PhaseVerify, v.size())
	var last *Image // Of the oldest state, where replay begins.
	r, err := v.verifyFiles(ctx, p, func(ctx context.Context, s SnapshotInfo, r *VerifyReport) (err error) {
		last = nil
		last, err = v.verifySnapshot(ctx, s, r)
		return err
	})
	if err != nil {
		return r, err
	}
	if err := v.verifyRecords(ctx, p, &r); err != nil {
		return r, err
	}
	if len(r.Problems) == 0 && !v.IsSave() {
		return r, v.verifyReplay(ctx, last, &r)
	}
	return r, nil
}

// VerifyChecksums is [View.Verify] of the checksums alone: it reads every byte of the
// snapshots and tells what reading the journal found when v was opened. It needs next
// to no memory.
func (v *View) VerifyChecksums(ctx context.Context) (VerifyReport, error) {
	p := startProgress(ctx, PhaseVerify, v.size()-bytesOf(v.log.Entries))
	r, err := v.verifyFiles(ctx, p, func(ctx context.Context, s SnapshotInfo, r *VerifyReport) error {
		return v.verifyFile(ctx, s, r)
	})
	r.Records = len(v.log.Entries)
	return r, err
}

// verifyFiles calls check for all snapshot files, that of the oldest state last, and
// reports what is known of the journal.
func (v *catalog) verifyFiles(ctx context.Context, p *progress, check func(context.Context, SnapshotInfo, *VerifyReport) error) (r VerifyReport, err error) {
	r.Bytes = v.size()
	done := int64(0)
	files := slices.Clone(v.snapshots)
	slices.SortStableFunc(files, func(a, b SnapshotInfo) int { return cmp.Compare(b.ID.Seq, a.ID.Seq) })
	for _, s := range files {
		r.Snapshots++
		if err := check(p.part(ctx, s.Size), s, &r); err != nil {
			return r, err
		}
		done += s.Size
		p.upTo(done)
	}
	for _, p := range v.log.Problems {
		r.Problems = append(r.Problems, journalDamage(p))
	}
	v.noteEnds(&r)
	return r, nil
}

func (r *VerifyReport) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// noteEnds notes the bytes that are not in use.
func (v *catalog) noteEnds(r *VerifyReport) {
	if t := v.log.Torn; t != nil && v.inUse {
		r.note("%s/%s: %d bytes at offset %d are being written", journalDir, t.File, t.Length, t.Offset)
	} else if t != nil {
		r.note("the journal was not closed: %v", journalDamage(t))
	}
	for _, d := range v.log.Disowned {
		r.note("%s/%s: %d bytes at offset %d were left behind by an unclean end", journalDir, d.File, d.Length, d.Offset)
	}
}

// recordsAtOnce is how many records one goroutine verifies before it takes others.
const recordsAtOnce = 64

// verifyRecords reads all ticks.
func (v *catalog) verifyRecords(ctx context.Context, p *progress, r *VerifyReport) error {
	entries := v.log.Entries
	r.Records = len(entries)
	errs := make([]error, len(entries))
	for i, e := range entries {
		if _, err := v.schemaAt(e); err != nil {
			errs[i] = v.journalError(err)
		}
	}
	var mu sync.Mutex
	err := inParallel(ctx, (len(entries)+recordsAtOnce-1)/recordsAtOnce, func(part int) error {
		at := part * recordsAtOnce
		some := entries[at:min(at+recordsAtOnce, len(entries))]
		v.log.Payloads(some, func(e journal.Entry, payload []byte, err error) {
			if errs[at] == nil {
				errs[at] = v.verifyRecord(e, payload, err)
			}
			at++
		})
		mu.Lock()
		defer mu.Unlock()
		p.add(bytesOf(some))
		return nil
	})
	v.addProblems(r, errs)
	return err
}

// verifyRecord returns what is wrong with a record, whose payload could not be read
// if err is not nil.
func (v *catalog) verifyRecord(e journal.Entry, payload []byte, err error) error {
	if err != nil {
		return v.journalError(err)
	}
	t, err := v.decode(e, payload)
	if err != nil {
		return err
	}
	if _, err := decodeOps(t.ops); err != nil {
		return v.entryError(e, err)
	}
	return nil
}

// addProblems reports errs, those of records by their positions. Segments that were
// removed meanwhile are noted.
func (v *catalog) addProblems(r *VerifyReport, errs []error) {
	removed := -1 // Segment.
	for i, err := range errs {
		segment := v.log.Entries[i].Segment
		if err == nil || segment == removed {
			continue
		}
		if name := journalDir + "/" + v.log.Segments[segment].Name; v.gone(name) {
			removed = segment
			r.note("%s was removed meanwhile", name)
			continue
		}
		r.Problems = append(r.Problems, err)
	}
}

// size returns how many bytes there are to verify.
func (v *catalog) size() (n int64) {
	for _, s := range v.snapshots {
		n += s.Size
	}
	return n + bytesOf(v.log.Entries)
}

// verifySnapshot checks one file and returns what it holds, if it is good. One that can
// be loaded has good checksums; else they come first.
func (v *catalog) verifySnapshot(ctx context.Context, s SnapshotInfo, r *VerifyReport) (*Image, error) {
	im, _, err := v.loadSnapshot(ctx, s, false)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err == nil {
		err = im.settled().unsound(ctx)
		if err != nil && ctx.Err() == nil {
			err = &DamageError{s.Name, -1, 0, err.Error(), ErrCorrupt}
		}
	}
	if err == nil {
		v.report(s, r)
		return im, nil
	}
	errs := []error{err}
	if _, e := pagefile.Check(quiet(ctx), v.files, s.Name); e != nil {
		errs = flatten(e)
	}
	v.report(s, r, errs...)
	return nil, ctx.Err()
}

// verifyFile checks the checksums of one file.
func (v *catalog) verifyFile(ctx context.Context, s SnapshotInfo, r *VerifyReport) error {
	_, err := pagefile.Check(ctx, v.files, s.Name)
	errs := flatten(err)
	if err == nil && s.Err != nil {
		errs = []error{s.Err}
	}
	v.report(s, r, errs...)
	return ctx.Err()
}

// report adds what is wrong with a snapshot.
func (v *catalog) report(s SnapshotInfo, r *VerifyReport, errs ...error) {
	before := len(r.Problems)
	for _, e := range errs {
		r.Problems = append(r.Problems, fileError(s.Name, e))
	}
	if err := v.misfit(s); err != nil {
		r.Problems = append(r.Problems, err)
	}
	if len(r.Problems) > before && v.gone(s.Name) && !errors.Is(s.Err, fs.ErrNotExist) {
		r.Problems = r.Problems[:before]
		r.note("%s was removed meanwhile", s.Name)
	}
}

// flatten returns the errors that errors.Join joined.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	return []error{err}
}
