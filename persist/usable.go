package persist

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/journal"
)

// unfinished reports whether the creation of the store was cut short, once or
// several times: there is a journal, but the base never got its name.
func (v *catalog) unfinished() bool {
	l := v.log
	bad := func(s journal.Segment) bool { return s.Err != nil }
	return len(v.snapshots) == 0 && len(l.Segments) > 0 && !slices.ContainsFunc(l.Segments, bad) && l.Last == 0 && !l.Clean
}

// problems returns the damage to the journal.
func (v *catalog) problems() (errs []error) {
	for _, p := range v.log.Problems {
		errs = append(errs, journalDamage(p))
	}
	return errs
}

// usable returns why the store must not be continued whatever can be recovered:
// something in it is newer than this program or of another world, or its journal
// lost what was durable.
func (v *catalog) usable() error {
	for _, p := range v.log.Problems {
		if errors.Is(p, journal.ErrForeign) || errors.Is(p, journal.ErrNewer) {
			return journalDamage(p)
		}
	}
	for _, s := range v.snapshots {
		if err := v.misfit(s); errors.Is(s.Err, ErrNewer) || errors.Is(err, ErrCorrupt) {
			return cmp.Or(s.Err, err)
		}
	}
	return nil
}

// missing returns the damage to the journal that something newer than the
// snapshot and the head may have been lost in.
func (v *catalog) missing(base SnapshotInfo) error {
	for _, p := range v.log.Problems {
		next := slices.IndexFunc(v.log.Segments, func(s journal.Segment) bool { return s.Name > p.File })
		covered := next >= 0 && v.log.Segments[next].First > 0 && v.log.Segments[next].First <= base.ID.Seq+1
		if !covered && !v.headBehind(p) {
			return fmt.Errorf("persist: ticks that were durable cannot be read; Options.At goes on without them: %w", journalDamage(p))
		}
	}
	return nil
}

// headBehind reports whether the head was chosen after what p concerns was
// written. If the way to the head can be read, what was lost there was rewound.
func (v *catalog) headBehind(p *journal.DamageError) bool {
	if v.log.Clean {
		return true
	}
	e, ok := v.log.Find(v.Head())
	if !ok {
		return false
	}
	s := &v.log.Segments[e.Segment]
	return s.Name > p.File || s.Name == p.File && e.Offset > p.Offset
}
