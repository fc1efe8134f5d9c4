package persist

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/stet-ecs/stet/internal/pagefile"
	"github.com/stet-ecs/stet/journal"
)

// A VerifyReport is what [View.Verify] found.
type VerifyReport struct {
	Snapshots int     // Files checked.
	Records   int     // Records of the journal checked.
	Replayed  int     // Of them on the way from the oldest snapshot to the head.
	Problems  []error // Damage, with file and offset where known. Empty: all is well.
	Notes     []string
}

// Verify reads everything and checks all there is to check: checksums, the
// format of every page and record, that sparse and dense arrays agree, that the
// operations of every tick lead to what its rows say, and that replay reproduces
// the digest of every snapshot on its way. An error says that checking itself was
// not possible, or that ctx ended. Its phases are [PhaseVerify], in bytes, and
// [PhaseReplay] if nothing was wrong before.
//
// What the program that has the store open removes meanwhile is a note.
func (v *View) Verify(ctx context.Context) (VerifyReport, error) {
	var r VerifyReport
	p := startProgress(ctx, PhaseVerify, v.size())
	done := int64(0)
	for _, s := range v.snapshots {
		r.Snapshots++
		if err := v.verifySnapshot(p.part(ctx, s.Size), s, &r); err != nil {
			return r, err
		}
		done += s.Size
		p.upTo(done)
	}
	for _, p := range v.log.Problems {
		r.Problems = append(r.Problems, journalDamage(p))
	}
	v.noteEnds(&r)
	if err := v.verifyRecords(ctx, p, &r); err != nil {
		return r, err
	}
	if len(r.Problems) == 0 && !v.IsSave() {
		return r, v.verifyReplay(ctx, &r)
	}
	return r, nil
}

func (r *VerifyReport) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// noteEnds notes the bytes that are not in use.
func (v *View) noteEnds(r *VerifyReport) {
	if t := v.log.Torn; t != nil && v.inUse {
		r.note("%s/%s: %d bytes at offset %d are being written", journalDir, t.File, t.Length, t.Offset)
	} else if t != nil {
		r.note("the journal was not closed: %v", journalDamage(t))
	}
	for _, d := range v.log.Disowned {
		r.note("%s/%s: %d bytes at offset %d were left behind by an unclean end", journalDir, d.File, d.Length, d.Offset)
	}
}

// verifyRecords reads all ticks.
func (v *View) verifyRecords(ctx context.Context, p *progress, r *VerifyReport) error {
	removed := -1 // Segment.
	for _, e := range v.log.Entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.Records++
		p.add(int64(e.Length))
		if e.Segment == removed {
			continue
		}
		t, _, err := v.tick(e)
		if err == nil {
			if _, err = decodeOps(t.ops); err != nil {
				err = v.entryError(e, err)
			}
		}
		if name := journalDir + "/" + v.log.Segments[e.Segment].Name; err != nil && v.gone(name) {
			removed = e.Segment
			r.note("%s was removed meanwhile", name)
		} else if err != nil {
			r.Problems = append(r.Problems, err)
		}
	}
	return nil
}

// size returns how many bytes there are to verify.
func (v *View) size() (n int64) {
	for _, s := range v.snapshots {
		n += s.Size
	}
	for _, e := range v.log.Entries {
		n += int64(e.Length)
	}
	return n
}

// verifySnapshot checks one file: first its checksums, then what it means.
func (v *View) verifySnapshot(ctx context.Context, s SnapshotInfo, r *VerifyReport) error {
	before := len(r.Problems)
	_, err := pagefile.Check(ctx, v.files, s.Name)
	for _, e := range flatten(err) {
		r.Problems = append(r.Problems, fileError(s.Name, e))
	}
	if len(r.Problems) == before {
		if _, _, err := v.loadSnapshot(ctx, s, false); err != nil {
			r.Problems = append(r.Problems, err)
		}
	}
	if err := v.misfit(s); err != nil {
		r.Problems = append(r.Problems, err)
	}
	if len(r.Problems) > before && v.gone(s.Name) && !errors.Is(s.Err, fs.ErrNotExist) {
		r.Problems = r.Problems[:before]
		r.note("%s was removed meanwhile", s.Name)
	}
	return ctx.Err()
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

// verifyReplay goes from the oldest snapshot to the head, tick by tick. If what it
// needs was removed meanwhile, it begins later.
func (v *View) verifyReplay(ctx context.Context, r *VerifyReport) error {
	skip := 0
	for range maxListings {
		problem, err := v.replayAll(ctx, skip, r)
		if problem == nil || err != nil {
			return err
		}
		changed, err := v.relist(ctx)
		if err != nil {
			return err
		}
		switch {
		case errors.Is(problem, fs.ErrNotExist):
			skip++ // A segment behind the oldest snapshot.
		case !changed:
			r.Problems = append(r.Problems, problem)
			return nil
		}
		r.Replayed = 0
	}
	r.note("the way to the head was not replayed: files are removed faster than they can be read")
	return nil
}

// replayAll replays the ticks from the oldest snapshot but skip to the head and
// returns what is wrong with them. An error is that of ctx.
func (v *View) replayAll(ctx context.Context, skip int, r *VerifyReport) (problem, err error) {
	bases := v.bases(v.Head())
	if len(bases) == 0 {
		return fmt.Errorf("%w: no snapshot leads to the head, record %d", ErrNotFound, v.Head()), nil
	}
	bases = bases[:max(1, len(bases)-skip)]
	im, _, err := v.loadSnapshot(quiet(ctx), bases[len(bases)-1], false)
	if err != nil {
		return err, ctx.Err()
	}
	digests := map[journal.ID][]SnapshotInfo{} // A state that was converted has two.
	for _, s := range v.snapshots {
		digests[s.ID] = append(digests[s.ID], s)
	}
	path, err := v.log.Path(im.ID.Seq, v.Head())
	if err != nil {
		return v.journalError(err), nil
	}
	p := startProgress(ctx, PhaseReplay, int64(len(path)))
	for _, e := range path {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if im, err = v.across(quiet(ctx), im, e); err != nil {
			return err, ctx.Err()
		}
		if err := v.step(im, e); err != nil {
			return err, nil
		}
		p.add(1)
		r.Replayed++
		for _, s := range digests[e.ID] {
			if s.schema == nil || im.stored().differs(s.schema) != nil {
				continue
			}
			if d := im.Digest(); d != s.Digest {
				return v.entryError(e, fmt.Errorf("replay gives digest %v, %s has %v", d, s.Name, s.Digest)), nil
			}
		}
	}
	return nil, nil
}
