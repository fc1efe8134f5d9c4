package persist

import (
	"context"
	"errors"
	"fmt"

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
// not possible.
func (v *View) Verify(ctx context.Context) (VerifyReport, error) {
	var r VerifyReport
	for _, s := range v.snapshots {
		r.Snapshots++
		if err := v.verifySnapshot(ctx, s, &r); err != nil {
			return r, err
		}
	}
	for _, p := range v.log.Problems {
		r.Problems = append(r.Problems, journalDamage(p))
	}
	if t := v.log.Torn; t != nil {
		r.Notes = append(r.Notes, fmt.Sprintf("the journal was not closed: %v", journalDamage(t)))
	}
	for _, d := range v.log.Disowned {
		r.Notes = append(r.Notes, fmt.Sprintf("%s/%s: %d bytes at offset %d were left behind by an unclean end", journalDir, d.File, d.Length, d.Offset))
	}
	for _, e := range v.log.Entries {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		r.Records++
		t, _, err := v.tick(e)
		if err == nil {
			if _, err = decodeOps(t.ops); err != nil {
				err = v.entryError(e, err)
			}
		}
		if err != nil {
			r.Problems = append(r.Problems, err)
		}
	}
	if len(r.Problems) == 0 && !v.IsSave() {
		return r, v.verifyReplay(ctx, &r)
	}
	return r, nil
}

// verifySnapshot checks one file: first its checksums, then what it means.
func (v *View) verifySnapshot(ctx context.Context, s SnapshotInfo, r *VerifyReport) error {
	before := len(r.Problems)
	_, err := pagefile.Check(ctx, v.root, s.Name)
	for _, e := range flatten(err) {
		r.Problems = append(r.Problems, fileError(s.Name, e))
	}
	if len(r.Problems) == before {
		if _, _, err := v.loadSnapshot(ctx, s); err != nil {
			r.Problems = append(r.Problems, err)
		}
	}
	if err := v.misfit(s); err != nil {
		r.Problems = append(r.Problems, err)
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

// verifyReplay goes from the oldest snapshot to the head, tick by tick.
func (v *View) verifyReplay(ctx context.Context, r *VerifyReport) error {
	bases := v.bases(v.Head())
	if len(bases) == 0 {
		r.Problems = append(r.Problems, fmt.Errorf("%w: no snapshot leads to the head, record %d", ErrNotFound, v.Head()))
		return nil
	}
	im, _, err := v.loadSnapshot(ctx, bases[len(bases)-1])
	if err != nil {
		return err
	}
	digests := map[journal.ID][]SnapshotInfo{} // A state that was converted has two.
	for _, s := range v.snapshots {
		digests[s.ID] = append(digests[s.ID], s)
	}
	path, err := v.log.Path(im.ID.Seq, v.Head())
	if err != nil {
		r.Problems = append(r.Problems, v.journalError(err))
		return nil
	}
	for _, e := range path {
		if err := ctx.Err(); err != nil {
			return err
		}
		if im, err = v.across(ctx, im, e); err != nil {
			return err
		}
		if err := v.step(im, e); err != nil {
			r.Problems = append(r.Problems, err)
			return nil
		}
		r.Replayed++
		for _, s := range digests[e.ID] {
			if s.schema == nil || im.stored().differs(s.schema) != nil {
				continue
			}
			if d := im.Digest(); d != s.Digest {
				r.Problems = append(r.Problems, v.entryError(e, fmt.Errorf("replay gives digest %v, %s has %v", d, s.Name, s.Digest)))
				return nil
			}
		}
	}
	return nil
}
