package inspect

import (
	"cmp"
	"context"
	"sync/atomic"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
)

// A View reads a store or a save without changing anything: no lock, no repair.
// It shows the store as it was when it was opened, also while a program goes on
// writing it; what that program removes meanwhile can no longer be shown.
type View struct {
	cat    *catalog.Catalog
	census atomic.Pointer[census] // Of the state that was counted last, see [State.Count].
}

// OpenReadOnly opens the directory of a store, or a file that Save wrote, for
// reading.
//
// Damage does not keep it from opening: what can be read is there, and
// [View.Verify] tells the rest. Errors wrap [persist.ErrForeign], [persist.ErrNewer] or
// an error of the file system.
func OpenReadOnly(ctx context.Context, path string) (*View, error) {
	c, err := catalog.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	return &View{cat: c}, nil
}

// OpenFS is [OpenReadOnly] of the store at the top of files, for which name is ".", or
// of a save of that name in them. Close leaves files open.
func OpenFS(ctx context.Context, files disk.FS, name string) (*View, error) {
	c, err := catalog.OpenFS(ctx, disk.Sub(files, "."), name)
	if err != nil {
		return nil, err
	}
	return &View{cat: c}, nil
}

// Close lets go of the files.
func (v *View) Close() error { return v.cat.Close() }

// IsSave reports whether v shows a file that Save wrote.
func (v *View) IsSave() bool { return v.cat.IsSave() }

// Snapshots lists the snapshot files, oldest first.
func (v *View) Snapshots() []SnapshotInfo { return v.cat.Snapshots }

// Log returns what the journal holds; nothing for a save.
func (v *View) Log() *journal.Log { return v.cat.Log }

// Builds returns which program on which machine wrote each segment of the journal, as rollback.Session.Build
// describes it; "" is unknown, as in stores of earlier programs.
func (v *View) Builds() []string {
	builds := make([]string, len(v.cat.Log.Segments))
	for i := range builds {
		builds[i] = v.cat.BuildOf(&v.cat.Log.Segments[i])
	}
	return builds
}

// Build returns which program on which machine wrote the record that leads to the state seq, or the save.
// It has the form of [View.Builds]; "" is unknown.
func (v *View) Build(seq uint64) string { return v.cat.Build(seq) }

// InUse reports whether a program had the store open for writing when v was
// opened. [View.LockHolder] says which, and [View.InUseNow] whether one has it open now.
func (v *View) InUse() bool { return v.cat.InUse }

// InUseNow reports whether a program has the store open for writing. Like [View.WatchWriter], it looks at the lock.
func (v *View) InUseNow() bool { return !v.IsSave() && catalog.Held(v.cat.Files) }

// WatchWriter returns a function that looks at the lock of the store, to be called again and again until v is
// closed. It calls changed when the program that writes the store has ended, also when it was killed, and when another
// one has opened the store. The first look only finds out what is so.
//
// program is what the lock file says of it, as [View.LockHolder] returns it. running says that it has the store
// open. closed says that it has closed the store; if neither is set, it ended otherwise: it was killed, or it failed.
//
// A look takes a shared lock for a moment, as [disk.FS] Locked does, and reads the lock file. Programs that open a
// store allow for that. It is done at most twice a second; calls in between do nothing.
func (v *View) WatchWriter(changed func(program string, running, closed bool)) (look func()) {
	if v.IsSave() {
		return func() {}
	}
	return (&writerWatch{files: v.cat.Files, changed: changed}).look
}

// Damage returns what opening found damaged: snapshot files that cannot be read or that the
// journal does not lead to, and [journal.Log.Problems]. Only [View.Verify] looks at everything.
func (v *View) Damage() []error { return v.cat.Faults() }

// LockHolder returns what the lock file says of the process that has the store
// open, or had it when it was killed; "" if it was closed cleanly. [View.InUse]
// tells the two apart.
func (v *View) LockHolder() string { return v.cat.LockHolder() }

// Head returns the record that the journal ends with, 0 for none: [persist.Open] would go on from its
// state. Of a damaged store nothing may lead to it; what is shown is the state of [View.Newest].
func (v *View) Head() uint64 { return v.cat.Head() }

// Newest returns the record of the newest state that can be reached, which is the newest state wherever
// a store is shown. The error is nil if that
// is the head; it wraps [persist.ErrCorrupt] if newer states are lost, or cannot be reached
// since something is damaged on the way.
func (v *View) Newest() (seq uint64, err error) { return v.cat.Newest() }

// Refusal returns why [persist.Open] would refuse to go on from the newest state of the store, if
// nobody has it open and the program has its types; nil: it would not, nor of a save. It costs
// what opening does; an error of ctx says nothing of the store.
func (v *View) Refusal(ctx context.Context) error {
	if v.IsSave() {
		return nil
	}
	return v.cat.Refusal(ctx)
}

// Recover is [Recover] of the store or save that v shows, whatever options say of Files. With out
// empty, it says what would be saved.
func (v *View) Recover(ctx context.Context, out string, options RecoverOptions) (RecoverReport, error) {
	options.Files = v.cat.Files
	return Recover(ctx, cmp.Or(v.cat.Save, "."), out, options)
}

// Tips returns the ends of the branches, oldest first: the records that no readable
// one continues. The newest state of the store need not be one of them, as a
// program may have gone back before it closed the store.
func (v *View) Tips() []journal.Entry { return v.cat.Log.Tips() }

// Marks lists the names in the journal, in the order in which they were committed.
// It returns what it has read beside an error: damage, of which the first is returned, does
// not end it. It reads the ticks that have marks, and no others; those that the program that has the store
// open removes meanwhile are left out.
func (v *View) Marks(ctx context.Context) ([]Mark, error) { return v.cat.Marks(ctx) }

// Resolve returns the record that a point in time names. It may be
//
//	""  @latest      the newest state, see [View.Newest]
//	@first           the oldest state that the newest one comes from and that can be shown
//	@-5s             the newest tick at least 5 seconds older than the newest state
//	@+5s             the first tick at least 5 seconds newer than the oldest one
//	@2026-11-24T02:47:10Z
//	                 the newest tick on the way to the newest state that was committed by then
//	@02:47:10        the same for a time of day, UTC: the last one by the time of the newest state
//	1200             tick 1200 on the way to the newest state
//	record:88        record 88, on whatever branch
//	snap:3           the state in snapshot file 3
//	snap:NAME        the state in the snapshot that the program gave this name
//	mark:NAME        the newest tick that the program gave this name: of those on the way
//	                 to the newest state, if there are any, else on whatever branch
//	tip:1            the end of the first of the branches, see [View.Tips]
//	POINT~10         10 ticks before the point: @latest~10, mark:NAME~1
//
// An error wraps [persist.ErrNotFound] if the store has no such point, or has it no longer:
// then it says which the oldest is. It wraps [persist.ErrPoint] if it is written otherwise.
func (v *View) Resolve(point string) (seq uint64, err error) { return v.cat.Resolve(point) }

// Refresh brings v up to date with what programs did to the store since it was
// opened, and reports whether the journal may have changed. It reads only what is
// new, see [journal.Log.Refresh], so that it can be called often. [View.InUse] still
// tells what was when v was opened.
//
// Nothing else of v may be in use meanwhile, but a [Cursor] of it stays where it is
// and can be used on. Records that were pruned are no longer in the log. If the
// journal is gone the error wraps [persist.ErrNotFound]. A save never changes.
func (v *View) Refresh(ctx context.Context) (changed bool, err error) { return v.cat.Refresh(ctx) }
