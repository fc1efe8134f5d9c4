package persist

import (
	"context"
	"fmt"
)

// Refresh brings v up to date with what programs did to the store since it was
// opened, and reports whether the journal may have changed. It reads only what is
// new, see [journal.Log.Refresh], so that it can be called often. [View.InUse] still
// tells what was when v was opened.
//
// Nothing else of v may be in use meanwhile, but a [Cursor] of it stays where it is
// and can be used on. Records that were pruned are no longer in the log. If the
// journal is gone the error wraps [ErrNotFound]. A save never changes.
func (v *catalog) Refresh(ctx context.Context) (changed bool, err error) {
	if v.IsSave() {
		return false, nil
	}
	known := len(v.Damage())
	changed, err = v.refresh(ctx)
	if err == nil && len(v.Damage()) > known { // Only what is seen twice counts, see scanTwice.
		_, err = v.refresh(ctx)
	}
	return changed, pruned(err)
}

// refresh is Refresh that believes what it sees. As in scan, snapshots come first.
func (v *catalog) refresh(ctx context.Context) (changed bool, err error) {
	if err := v.list(ctx); err != nil {
		return false, err
	}
	head, world := v.log.Head, v.log.World
	if len(v.log.Segments) == 0 {
		if err := v.scanJournal(ctx); err != nil {
			return false, err
		}
		changed = len(v.log.Segments) > 0
	} else if changed, err = v.log.Refresh(ctx); err != nil {
		return false, err
	} else if len(v.log.Segments) == 0 {
		return true, fmt.Errorf("%w: the journal was removed", ErrNotFound)
	}
	if changed {
		v.schemas = make(map[journalPreamble]*schema) // Segments may have other places.
		v.followHead(head, world == v.log.World)
	}
	return changed, nil
}

// followHead brings onHead up to date, which was that of record head, if this is the
// world that it was.
func (v *catalog) followHead(head uint64, same bool) {
	path, err := v.log.Path(head, v.log.Head)
	if v.onHead == nil || err != nil || !same {
		v.onHead = nil
		return
	}
	for _, e := range path {
		v.onHead[e.ID.Seq] = true
	}
}
