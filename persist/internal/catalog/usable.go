package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// Unfinished reports whether the creation of the store was cut short, once or
// several times: there is a journal, but the base never got its name.
func (v *Catalog) Unfinished() bool {
	l := v.Log
	bad := func(s journal.Segment) bool { return s.Err != nil }
	return len(v.Snapshots) == 0 && len(l.Segments) > 0 && !slices.ContainsFunc(l.Segments, bad) && l.Last == 0 && !l.Clean
}

// Problems returns the damage to the journal.
func (v *Catalog) Problems() (errs []error) {
	for _, p := range v.Log.Problems {
		errs = append(errs, JournalDamage(p))
	}
	return errs
}

// Usable returns why the store must not be continued whatever can be recovered:
// something in it is newer than this program or of another world, or its journal
// lost what was durable.
func (v *Catalog) Usable() error {
	for _, p := range v.Log.Problems {
		if errors.Is(p, journal.ErrForeign) || errors.Is(p, journal.ErrNewer) {
			return JournalDamage(p)
		}
	}
	for _, s := range v.Snapshots {
		if err := v.Misfit(s); errors.Is(s.Err, format.ErrNewer) || errors.Is(err, format.ErrCorrupt) {
			return cmp.Or(s.Err, err)
		}
	}
	return nil
}

// Missing returns the damage to the journal that something newer than the
// snapshot and the head may have been lost in.
func (v *Catalog) Missing(base SnapshotInfo) error {
	for _, p := range v.Log.Problems {
		next := slices.IndexFunc(v.Log.Segments, func(s journal.Segment) bool { return s.Name > p.File })
		covered := next >= 0 && v.Log.Segments[next].First > 0 && v.Log.Segments[next].First <= base.ID.Seq+1
		if !covered && !v.headBehind(p) {
			return fmt.Errorf("persist: ticks that were durable cannot be read; Options.At goes on without them: %w", JournalDamage(p))
		}
	}
	return nil
}

// headBehind reports whether the head was chosen after what p concerns was
// written. If the way to the head can be read, what was lost there was rewound.
func (v *Catalog) headBehind(p *journal.DamageError) bool {
	if v.Log.Clean {
		return true
	}
	e, ok := v.Log.Find(v.Head())
	if !ok {
		return false
	}
	s := &v.Log.Segments[e.Segment]
	return s.Name > p.File || s.Name == p.File && e.Offset > p.Offset
}
