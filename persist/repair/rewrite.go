package repair

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// A rewrite builds a store from states of another store and the ticks between these states. The new
// store has snapshots of a base state and of the last state, and the ticks in between. It may also
// have older snapshots.
//
// States up to the base keep their IDs, so the new store looks like a store whose older journal
// was pruned. The ticks after the base become records of a later epoch, with new IDs and new
// parent IDs.
//
// append() copies encoded payloads and replaces only the parent ID. So a rewrite also copies fields
// that this program does not know.
type rewrite struct {
	*catalog.Catalog // The original store.
	files            disk.FS
	journal          *journal.Journal
	schema           *format.Schema        // The schema of the journal's last preamble.
	ids              map[uint64]journal.ID // The new IDs of records, by their original seqs.
	number           uint32                // Number of the last snapshot.
	ticks            int                   // Number of records written.

	// labelled has the named snapshots to copy.
	labelled []catalog.SnapshotInfo
	// load reads a named snapshot.
	load loader
	// branches says that rewound branches after the base are written too.
	branches bool
	// bad has the records that must not be written, by seq.
	bad map[uint64]bool
}

// A loader returns the state in a snapshot. It returns nil without an error to leave the snapshot
// out.
type loader func(context.Context, catalog.SnapshotInfo) (*image.Image, error)

// newRewrite returns a rewrite of a catalog. The rewrite copies only snapshots with a name.
func newRewrite(from *catalog.Catalog, snapshots []catalog.SnapshotInfo, load loader) *rewrite {
	named := slices.DeleteFunc(slices.Clone(snapshots), func(s catalog.SnapshotInfo) bool { return s.Label == "" || s.Err != nil })
	return &rewrite{Catalog: from, ids: map[uint64]journal.ID{}, labelled: named, load: load}
}

// store writes a new store to a directory with a temporary name, see [tempDir], and renames the
// directory to dir. fill() writes the files, and makes them durable before the rename. If anything
// fails before the rename, store removes the directory. The parent directory is synced last.
func (r *rewrite) store(dir string, fill func() error) error {
	if err := checkUnused(dir); err != nil {
		return err
	}
	dir = filepath.Clean(dir)
	removeTempDirs(dir)
	temp, err := makeTempDir(dir)
	if err != nil {
		return err
	}
	r.files = temp.files
	if err = catalog.MakeDirs(r.files); err == nil {
		if err = fill(); err != nil && r.journal != nil {
			r.journal.Abandon()
		}
	}
	if err == nil {
		err = temp.publish(dir)
	}
	if err != nil {
		temp.discard()
		return err
	}
	if e := inDirectory(filepath.Dir(dir), func(files disk.FS) error { return disk.SyncDir(files, ".") }); e != nil {
		return fmt.Errorf("persist: %s is complete, but its name is not durable: %w", dir, e)
	}
	return nil
}

// snapshot writes im to a snapshot file. id is the new ID of the state.
func (r *rewrite) snapshot(ctx context.Context, im *image.Image, id journal.ID, made time.Time, label, note string) error {
	r.number++
	s := snap.SavedImage(im)
	s.Manifest.World, s.Manifest.Number, s.Manifest.ID = r.Log.World, r.number, id
	s.Manifest.Time, s.Manifest.Name = made, label
	s.Manifest.SetNote(note)
	_, err := s.Create(ctx, r.files, catalog.SnapshotName(r.number))
	return err
}

// writeNamed writes the named snapshots that idOf accepts. For an accepted snapshot, idOf returns
// the new ID of the state, and true.
func (r *rewrite) writeNamed(ctx context.Context, idOf func(catalog.SnapshotInfo) (journal.ID, bool)) error {
	for _, s := range r.labelled {
		id, ok := idOf(s)
		if !ok {
			continue
		}
		im, err := r.load(ctx, s)
		if err == nil && im != nil {
			err = r.snapshot(ctx, im, id, s.Time, s.Label, s.Note)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// begin writes im as the base, and creates the journal that begins after it.
func (r *rewrite) begin(ctx context.Context, im *image.Image) (err error) {
	r.ids[im.ID.Seq], r.schema = im.ID, im.Stored()
	if err := r.writeSnapshots(ctx, im, true); err != nil {
		return err
	}
	// journal.Open begins a later epoch, so the IDs of new records differ from all IDs in the old
	// store. The files are made durable later, in Close. Until then, the directory does not have
	// its final name and is no store.
	log := &journal.Log{Epoch: max(r.Log.Epoch, im.ID.Epoch), LastID: im.ID}
	r.journal, err = journal.Open(disk.Sub(r.files, catalog.JournalDir), log, journal.Options{
		World: r.Log.World, Sync: journal.SyncNever, FirstSeq: im.ID.Seq + 1,
		Preamble: func() []byte { return r.schema.Encode() },
	})
	return err
}

// append writes a record that continues the base or a written record. It replaces only the parent
// ID in the payload.
func (r *rewrite) append(ctx context.Context, rec *catalog.Record) error {
	if err := r.setSchema(ctx, rec.Schema); err != nil {
		return err
	}
	parent := r.ids[rec.Parent]
	renamed, err := format.Reparented(r.journal.Buffer(), rec.Payload, parent)
	if err != nil {
		return r.EntryError(rec.Entry, err)
	}
	id, err := r.journal.Append(parent.Seq, rec.Tick, rec.Flags&journal.FlagsUser, renamed)
	if err != nil {
		return err
	}
	r.ids[rec.ID.Seq] = id
	r.ticks++
	return nil
}

// writeTo writes the records from the base image im to record seq. It returns the state after
// record seq. It writes a snapshot of:
//
//   - each state with a name
//   - each state that a conversion made
//   - the last state
func (r *rewrite) writeTo(ctx context.Context, im *image.Image, seq uint64) (*image.Image, error) {
	path, err := r.Path(im.ID.Seq, seq)
	if err != nil {
		return nil, err
	}
	// The journal must have the records in the order of their seqs. So records of rewound branches
	// are written between the records of the path.
	w := catalog.Walk{Catalog: r.Catalog}
	w.Before = func(ctx context.Context, was, im *image.Image, rec *catalog.Record) error {
		if err := r.writeBranches(ctx, was.ID.Seq+1, rec.ID.Seq-1); err != nil || was == im {
			return err
		}
		return r.snapshot(ctx, im, r.ids[im.ID.Seq], r.committed(im.ID), "", "")
	}
	w.After = func(ctx context.Context, im *image.Image, rec *catalog.Record) error {
		if err := r.append(ctx, rec); err != nil {
			return err
		}
		return r.writeSnapshots(ctx, im, rec.ID.Seq == seq)
	}
	if im, _, err = w.Along(ctx, im, path); err != nil {
		return nil, err
	}
	return im, r.writeBranches(ctx, seq+1, math.MaxUint64)
}

// writeBranches writes rewound records with seqs from first to last. It skips records that cannot
// be read, and records whose parents were skipped. If r.branches is false, it skips all records.
func (r *rewrite) writeBranches(ctx context.Context, first, last uint64) error {
	if !r.branches {
		return nil
	}
	for _, e := range r.EntriesBetween(first, last) {
		if _, ok := r.ids[e.Parent]; !ok || r.bad[e.ID.Seq] {
			// The record gets no new ID, so records that continue it are skipped too.
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		rec, im := r.Record(e), new(image.Image)
		if r.Describe(rec, im.ID, im.Stored) == nil {
			if err := r.append(ctx, rec); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeSnapshots writes a snapshot of im for each name of that state. If the state has no name and
// the last argument is true, it writes a snapshot without a name.
func (r *rewrite) writeSnapshots(ctx context.Context, im *image.Image, must bool) error {
	named := slices.DeleteFunc(slices.Clone(r.labelled), func(s catalog.SnapshotInfo) bool { return s.ID != im.ID })
	if must && len(named) == 0 {
		named = []catalog.SnapshotInfo{{}}
	}
	// A state may have several names. Each name has a file.
	for _, s := range named {
		if err := r.snapshot(ctx, im, r.ids[im.ID.Seq], r.committed(im.ID), s.Label, s.Note); err != nil {
			return err
		}
	}
	return nil
}

// setSchema makes s the schema of the next record. If s only adds components, setSchema appends a
// preamble to the current segment. If s changes a type, setSchema begins a new segment.
func (r *rewrite) setSchema(ctx context.Context, s *format.Schema) error {
	if s == r.schema {
		return nil
	}
	encoded, before := s.Encode(), r.schema.Encode()
	more := len(s.Components) >= len(r.schema.Components) && s.Differs(r.schema) == nil
	r.schema = s
	switch {
	case string(encoded) == string(before):
		return nil
	case more:
		return r.journal.AppendPreamble(encoded)
	}
	// Within a segment, components can only be added.
	return r.journal.Roll(ctx)
}

// end closes the journal with the state after record seq as its head. Before that it lists all
// snapshots in the journal, so a missing snapshot is detected later.
func (r *rewrite) end(ctx context.Context, seq uint64) error {
	promise, err := catalog.EncodeSnapshotListOf(ctx, r.files)
	if err == nil {
		err = r.journal.KeepNote(promise)
	}
	if err != nil {
		return err
	}
	// Close even if ctx has ended: a journal that is not closed looks like one after a crash.
	if err := r.journal.Close(context.WithoutCancel(ctx), r.ids[seq].Seq); err != nil {
		return err
	}
	return ctx.Err()
}

// committed returns the commit time of the state id, or the zero time if unknown.
func (r *rewrite) committed(id journal.ID) time.Time {
	for _, s := range r.Snapshots {
		if s.Err == nil && s.ID == id && !s.Time.IsZero() {
			return s.Time
		}
	}
	// If the IDs differ, the seq belongs to another record.
	if e, ok := r.Log.Find(id.Seq); ok && e.ID == id {
		if t, err := r.Catalog.Read(e); err == nil {
			return t.Time
		}
	}
	return time.Time{}
}

// summary opens the new store at dir. It returns the size of the store, its named snapshots, and
// the names that were not copied.
func (r *rewrite) summary(ctx context.Context, dir string) (size int64, names, dropped []string, err error) {
	v, err := catalog.Open(ctx, dir)
	if err != nil {
		return 0, nil, nil, err
	}
	defer v.Close()
	for _, s := range v.Snapshots {
		if s.Label != "" {
			names = append(names, s.Label)
		}
	}
	for _, s := range r.Snapshots {
		if s.Label != "" && !slices.Contains(names, s.Label) {
			dropped = append(dropped, s.Label)
		}
	}
	return storeSize(v), names, dropped, nil
}

// storeSize returns the bytes of the snapshots and segments of v.
func storeSize(v *catalog.Catalog) (n int64) {
	for _, s := range v.Snapshots {
		n += s.Size
	}
	for _, s := range v.Log.Segments {
		n += s.Size
	}
	return n
}
