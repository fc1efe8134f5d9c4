package persist

import (
	"context"
	"slices"

	"github.com/stet-ecs/stet/journal"
)

// leads reports whether the records that lead from s to seq continue its schema.
// Those of a state that was converted afterwards, or before, do not.
func (v *catalog) leads(s SnapshotInfo, seq uint64) bool {
	if !v.converted() {
		return true
	}
	path, err := v.log.Path(s.ID.Seq, seq)
	if err != nil || len(path) == 0 {
		return true // Replay tells.
	}
	next, err := v.schemaAt(path[0])
	return err != nil || s.schema.differs(next) == nil
}

// converted reports whether the snapshots of the store have different schemas.
func (v *catalog) converted() bool {
	var last *schema
	for _, s := range v.snapshots {
		if s.schema == nil {
			continue
		}
		if last != nil && last.differs(s.schema) != nil {
			return true
		}
		last = s.schema
	}
	return false
}

// across returns im if record e continues its schema, and otherwise the snapshot
// of the same state that was converted to the schema of e, if there is one.
func (v *catalog) across(ctx context.Context, im *Image, e journal.Entry) (*Image, error) {
	next, err := v.schemaAt(e)
	if err != nil || im.schema == next || im.stored().differs(next) == nil {
		return im, nil // The step tells.
	}
	if s, ok := v.snapshotUnder(im.ID, next); ok {
		converted, _, err := v.loadSnapshot(ctx, s, false)
		return converted, err
	}
	return im, nil
}

// snapshotUnder returns the newest snapshot of a state whose schema and s continue
// each other.
func (v *catalog) snapshotUnder(id journal.ID, s *schema) (SnapshotInfo, bool) {
	for _, info := range slices.Backward(v.snapshots) {
		if info.Err == nil && info.ID == id && info.schema.differs(s) == nil {
			return info, true
		}
	}
	return SnapshotInfo{}, false
}
