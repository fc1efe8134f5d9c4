package inspect

import (
	"context"
	"os"
	"sync/atomic"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/archive"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
)

// A View reads a store or a save without locking, repairing or changing it. It shows the store as
// of the time when it was opened, even while a program continues to write. Data that the program
// removes in the meantime disappears from the View.
type View struct {
	cat *catalog.Catalog
	// aliveSet caches the live entities of the last state for which [State.Count] was called.
	aliveSet atomic.Pointer[aliveSet]
}

// OpenReadOnly opens the directory of a store, a file that Save wrote, or a zip file that
// [persist.Store.BackupTo] wrote, for reading. It unpacks a zip file into memory.
//
// OpenReadOnly opens a damaged store too. Its intact data can be read, and [View.Verify] reports
// the damage. Errors wrap [persist.ErrForeign], [persist.ErrNewer], an error of the file system or,
// for a zip file, an error of [archive.Read].
func OpenReadOnly(ctx context.Context, path string) (*View, error) {
	files, err := openArchive(ctx, path)
	if err != nil {
		return nil, err
	}
	if files != nil {
		return OpenFS(ctx, files, ".")
	}
	c, err := catalog.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	return &View{cat: c}, nil
}

// openArchive unpacks the file at path if it is an archive. Otherwise it returns nil.
func openArchive(ctx context.Context, path string) (disk.FS, error) {
	// Other names, such as devices, could block.
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !archive.Is(f) {
		return nil, err
	}
	return archive.Read(ctx, f, info.Size(), maxArchive)
}

// maxArchive is the maximum size of the files in an archive, in bytes. A user can unpack a larger
// archive with another program.
const maxArchive = 16 << 30

// OpenFS is like [OpenReadOnly], but opens a store in a file system. name is "." for a store in the
// root directory of files, or the name of a save. Close does not close files.
func OpenFS(ctx context.Context, files disk.FS, name string) (*View, error) {
	c, err := catalog.OpenFS(ctx, disk.Sub(files, "."), name)
	if err != nil {
		return nil, err
	}
	return &View{cat: c}, nil
}

// Close closes the files.
func (v *View) Close() error { return v.cat.Close() }

// Catalog returns the files and records of v. It is for the packages in persist, such as repair.
func (v *View) Catalog() *catalog.Catalog { return v.cat }

// IsSave reports whether v shows a file that Save wrote.
func (v *View) IsSave() bool { return v.cat.IsSave() }

// Snapshots returns the snapshot files, oldest first.
func (v *View) Snapshots() []SnapshotInfo { return snapshotsOf(v.cat.Snapshots) }

// Log returns the index of the journal. It is empty for a save.
func (v *View) Log() *journal.Log { return v.cat.Log }

// Builds returns the program and the machine that wrote each segment of the journal, in the
// format of rollback.Session.Build. An entry is "" if unknown, as in stores that earlier versions
// wrote.
func (v *View) Builds() []string {
	builds := make([]string, len(v.cat.Log.Segments))
	for i := range builds {
		builds[i] = v.cat.BuildOf(&v.cat.Log.Segments[i])
	}
	return builds
}

// Build returns the program and the machine that wrote the record with number seq. For a save, it
// returns the program and the machine that wrote the save. The text has the format of
// [View.Builds], and is "" if unknown.
func (v *View) Build(seq uint64) string { return v.cat.Build(seq) }

// InUse reports whether a program had the store open for writing at the time when v was opened.
// [View.LockHolder] names the program, and [View.InUseNow] checks again.
func (v *View) InUse() bool { return v.cat.InUse }

// InUseNow reports whether a program has the store open for writing now. Like [View.WatchWriter],
// it checks the lock of the store.
func (v *View) InUseNow() bool { return !v.IsSave() && catalog.Held(v.cat.Files) }

// WatchWriter returns a function look() that checks the lock of the store. Call look() repeatedly
// until v is closed. look() calls changed() when the writing program has ended, and when another
// program has opened the store. The first call of look() only stores the current status.
//
// The argument program is the text of the lock file, as [View.LockHolder] returns it. The other
// arguments tell what happened:
//
//	running             the program has the store open
//	closed              the program has closed the store
//	neither is true     the program failed or was killed
//
// A check reads the lock file, and holds a shared lock for a moment, like Locked of [disk.FS]. A
// program that opens the store at that moment tries again. look() checks at most twice a second,
// and does nothing if it is called more often.
func (v *View) WatchWriter(changed func(program string, running, closed bool)) (look func()) {
	if v.IsSave() {
		return func() {}
	}
	return (&writerWatch{files: v.cat.Files, changed: changed}).look
}

// Damage returns the damage that was found when v was opened: snapshot files that cannot be read,
// snapshots without a record, and [journal.Log.Problems]. Only [View.Verify] checks everything.
func (v *View) Damage() []error { return v.cat.Faults() }

// LockHolder returns the text of the lock file. It names the process that has the store open, or
// that was killed with the store open. [View.InUse] distinguishes these two cases. The text is ""
// if the store was closed cleanly.
func (v *View) LockHolder() string { return v.cat.LockHolder() }

// Head returns the record at which the journal ends, or 0. [persist.Open] would continue from its
// state. In a damaged store the state may be unreachable: use [View.Newest] to show a state.
func (v *View) Head() uint64 { return v.cat.Head() }

// Newest returns the record of the newest reachable state, which tools show as the newest state.
// The error is nil if the state is the head. It wraps [persist.ErrCorrupt] if newer states are lost
// or cannot be reached because of damage.
func (v *View) Newest() (seq uint64, err error) { return v.cat.Newest() }

// Refusal reports whether [persist.Open] could continue the newest state. It returns the error of
// Open, or nil if Open would succeed. For a save, it returns nil. Refusal assumes that no program
// has the store open, and that the opening program has the same types. It takes as long as opening
// the store. If ctx ends, it returns the error of ctx.
func (v *View) Refusal(ctx context.Context) error {
	if v.IsSave() {
		return nil
	}
	return v.cat.CheckOpenable(ctx)
}

// Tips returns the ends of the branches, oldest first. An end is a record that no readable record
// continues. The newest state need not be an end: a program may have rolled back before it closed
// the store.
func (v *View) Tips() []journal.Entry { return v.cat.Log.Tips() }

// Marks returns the marks in the journal, in commit order. If some marks are damaged, it returns
// the other marks and the first error. It reads only ticks that have marks. It leaves out ticks
// that the writing program has removed in the meantime.
func (v *View) Marks(ctx context.Context) ([]Mark, error) {
	marks, err := v.cat.Marks(ctx)
	return marksOf(marks), err
}

// Resolve returns the record of a point in time. The syntax is:
//
//	""  @latest      the newest state, see [View.Newest]
//	@first           the oldest readable state on the path to the newest state
//	@-5s             the newest tick at least 5 seconds older than the newest state
//	@+5s             the oldest tick at least 5 seconds newer than the oldest state
//	@2026-11-24T02:47:10Z
//	                 the newest tick committed by this time, on the path to the newest state
//	@02:47:10        like a time with a date; the date is the latest one (UTC) at which this time
//	                 is at or before the newest state
//	1200             tick 1200 on the path to the newest state
//	1200@tip:1       tick 1200 on the path to another point
//	record:88        record 88, on any branch
//	snap:3           the state in snapshot file 3
//	snap:NAME        the state in the snapshot that the program gave this name
//	mark:NAME        the newest tick that the program gave this name; if ticks on the path to
//	                 the newest state have the name, ticks on other branches do not count
//	tip:1            the end of the first branch, see [View.Tips]
//	POINT~10         10 records before the point: @latest~10, mark:NAME~1. A record is a tick,
//	                 unless the program set [persist.Options.CommitEvery]
//
// If the store does not have the point, the error wraps [persist.ErrNotFound]. If the point was
// removed, the error names the oldest available point. If the syntax is wrong, the error wraps
// [persist.ErrPoint].
func (v *View) Resolve(point string) (seq uint64, err error) { return v.cat.Resolve(point) }

// Refresh updates v with the changes to the store since v was opened, and reports whether the
// journal may have changed. It reads only new data, see [journal.Log.Refresh], so it can be
// called often. [View.InUse] still reports the state from the time when v was opened.
//
// No other method of v may run at the same time. A [Cursor] of v keeps its position and stays
// usable. Pruned records disappear from the log. If the whole journal is missing, the error wraps
// [persist.ErrNotFound]. A save never changes.
func (v *View) Refresh(ctx context.Context) (changed bool, err error) { return v.cat.Refresh(ctx) }
