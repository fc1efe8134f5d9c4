package catalog

import (
	"context"
	"fmt"

	"github.com/stet-ecs/stet/persist/internal/format"
)

// Refresh brings v up to date with what programs did to the store since it was
// opened, and reports whether the journal may have changed. It reads only what is
// new, see [journal.Log.Refresh], so that it can be called often. [Catalog.InUse] still
// tells what was when v was opened.
//
// Nothing else of v may be in use meanwhile; images that were read from it stay as they
// are. Records that were pruned are no longer in the log. If the
// journal is gone the error wraps [format.ErrNotFound]. A save never changes.
func (v *Catalog) Refresh(ctx context.Context) (changed bool, err error) {
	if v.IsSave() {
		return false, nil
	}
	known := len(v.Damage())
	changed, err = v.refresh(ctx)
	if err == nil && len(v.Damage()) > known { // Only what is seen twice counts, see scanTwice.
		_, err = v.refresh(ctx)
	}
	return changed, Pruned(err)
}

// refresh is Refresh that believes what it sees. As in scan, snapshots come first.
func (v *Catalog) refresh(ctx context.Context) (changed bool, err error) {
	if err := v.list(ctx); err != nil {
		return false, err
	}
	head, world := v.Log.Head, v.Log.World
	if len(v.Log.Segments) == 0 {
		if err := v.scanJournal(ctx); err != nil {
			return false, err
		}
		changed = len(v.Log.Segments) > 0
	} else if changed, err = v.Log.Refresh(ctx); err != nil {
		return false, err
	} else if len(v.Log.Segments) == 0 {
		return true, fmt.Errorf("%w: the journal was removed", format.ErrNotFound)
	}
	if changed {
		v.Schemas = make(map[JournalPreamble]*format.Schema) // Segments may have other places.
		v.followHead(head, world == v.Log.World)
	}
	return changed, nil
}

// followHead brings onHead up to date, which was that of record head, if this is the
// world that it was.
func (v *Catalog) followHead(head uint64, same bool) {
	path, err := v.Log.Path(head, v.Log.Head)
	if v.onHead == nil || err != nil || !same {
		v.onHead = nil
		return
	}
	for _, e := range path {
		v.onHead[e.ID.Seq] = true
	}
}
