package catalog

import (
	"context"
	"slices"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// Leads reports whether the records that lead from s to seq continue its schema.
// Those of a state that was converted afterwards, or before, do not.
func (v *Catalog) Leads(s SnapshotInfo, seq uint64) bool {
	if !v.converted() {
		return true
	}
	path, err := v.Log.Path(s.ID.Seq, seq)
	if err != nil || len(path) == 0 {
		return true // Replay tells.
	}
	next, err := v.SchemaAt(path[0])
	return err != nil || s.Schema.Differs(next) == nil
}

// converted reports whether the snapshots of the store have different schemas.
func (v *Catalog) converted() bool {
	var last *format.Schema
	for _, s := range v.Snapshots {
		if s.Schema == nil {
			continue
		}
		if last != nil && last.Differs(s.Schema) != nil {
			return true
		}
		last = s.Schema
	}
	return false
}

// Across returns im if record e continues its schema, and otherwise the snapshot
// of the same state that was converted to the schema of e, if there is one.
func (v *Catalog) Across(ctx context.Context, im *image.Image, e journal.Entry) (*image.Image, error) {
	next, err := v.SchemaAt(e)
	if err != nil || im.Schema == next || im.Stored().Differs(next) == nil {
		return im, nil // The step tells.
	}
	if s, ok := v.SnapshotUnder(im.ID, next); ok {
		converted, _, err := v.LoadSnapshot(ctx, s, false)
		return converted, err
	}
	return im, nil
}

// SnapshotUnder returns the newest snapshot of a state whose schema and s continue
// each other.
func (v *Catalog) SnapshotUnder(id journal.ID, s *format.Schema) (SnapshotInfo, bool) {
	for _, info := range slices.Backward(v.Snapshots) {
		if info.Err == nil && info.ID == id && info.Schema.Differs(s) == nil {
			return info, true
		}
	}
	return SnapshotInfo{}, false
}
