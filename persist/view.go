package persist

import (
	"context"
	"errors"
	"math"

	"github.com/stet-ecs/stet/internal/disk"
	"github.com/stet-ecs/stet/journal"
)

// A View reads a store or a save without changing anything: no lock, no repair.
// It shows the store as it was when it was opened, also while a program goes on
// writing it; what that program removes meanwhile can no longer be shown.
type View struct{ *catalog }

// OpenReadOnly opens the directory of a store, or a file that Save wrote, for
// reading.
//
// Damage does not keep it from opening: what can be read is there, and
// [View.Verify] tells the rest. Errors wrap [ErrForeign], [ErrNewer] or an error
// of the file system.
func OpenReadOnly(ctx context.Context, path string) (*View, error) {
	c, err := openCatalog(ctx, path)
	if err != nil {
		return nil, err
	}
	return &View{c}, nil
}

// Backup copies the store as it is now, also if another process has it open: with
// all ticks that can be read. See [Store.Backup].
func (v *View) Backup(ctx context.Context, dir string) error {
	if v.IsSave() {
		return errors.New("persist: backup: a save is one file that never changes; copy it")
	}
	return backup(ctx, v.files, dir, func() uint64 { return math.MaxUint64 })
}

// OpenFS opens a store that lies in files, whose directory it is, for reading; see
// [OpenReadOnly]. Close closes files.
func OpenFS(ctx context.Context, files disk.FS) (*View, error) {
	c, err := openFS(ctx, files)
	if err != nil {
		return nil, err
	}
	return &View{c}, nil
}

// Snapshots lists the snapshot files, oldest first.
func (v *View) Snapshots() []SnapshotInfo { return v.snapshots }

// Log returns what the journal holds; nothing for a save.
func (v *View) Log() *journal.Log { return v.log }

// InUse reports whether a program had the store open for writing when v was
// opened. [View.LockHolder] says which.
func (v *View) InUse() bool { return v.inUse }
