package inspect

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// A rewrite makes a store of states that were read from another one, and of the
// ticks between them:
//
//	older snapshots    base ── tick ── tick ── last
//
// Up to the base the states keep their identities, so that the new store is like
// one whose older journal was pruned. The ticks behind it are records of a later
// epoch: what they continue has another name than before, and so have they.
//
// Payloads are not decoded and encoded again: a tick is copied as it lies, but for the name
// of what it continues (see append). So a rewrite cannot lose what it does not understand.
type rewrite struct {
	walk    // Along the records of the other store.
	files   disk.FS
	journal *journal.Journal
	schema  *format.Schema        // That of the journal's last preamble.
	ids     map[uint64]journal.ID // What the records are called here, by their seqs there.
	number  uint32                // Of the last snapshot.
	ticks   int                   // Records written.

	labelled []SnapshotInfo  // Those that have names, which are kept. They are read
	load     loader          // in this way.
	branches bool            // Write what was rewound behind the base as well, but
	bad      map[uint64]bool // not these records.
}

// A loader returns the state in a snapshot; nil without an error: it cannot be had, and is left out.
type loader func(context.Context, SnapshotInfo) (*Image, error)

// newRewrite returns a rewrite of what lies in from that keeps those of snapshots that
// have names.
func newRewrite(from *catalog.Catalog, snapshots []SnapshotInfo, load loader) *rewrite {
	named := slices.DeleteFunc(slices.Clone(snapshots), func(s SnapshotInfo) bool { return s.Label == "" || s.Err != nil })
	return &rewrite{walk: walk{Catalog: from}, ids: map[uint64]journal.ID{}, labelled: named, load: load}
}

// store makes a directory that fill fills, and gives it its name once all of it is
// durable. Until then it has a temporary name, see [tempDir]. If anything fails, there
// is neither. What fill writes is synced by those who write it (snapshots when they are
// published, the journal when it is closed); the name itself by the directory above it.
func (r *rewrite) store(dir string, fill func() error) error {
	if err := unused(dir); err != nil {
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
		return fmt.Errorf("persist: %s has its name, which is not durable: %w", dir, e)
	}
	return nil
}

// inDirectory calls f with the files in dir.
func inDirectory(dir string, f func(files disk.FS) error) error {
	files, err := disk.Open(dir)
	if err != nil {
		return err
	}
	defer files.Close()
	return f(files)
}

// snapshot writes im, the state that id names here, to a snapshot file.
func (r *rewrite) snapshot(ctx context.Context, im *Image, id journal.ID, made time.Time, label string) error {
	r.number++
	s := snap.SavedImage(im)
	s.Manifest.World, s.Manifest.Number, s.Manifest.ID = r.Log.World, r.number, id
	s.Manifest.Time, s.Manifest.Name = made, label
	_, err := s.Create(ctx, r.files, catalog.SnapshotName(r.number))
	return err
}

// named writes the snapshots with names for which idOf returns what their states are
// called here, and true.
func (r *rewrite) named(ctx context.Context, idOf func(SnapshotInfo) (journal.ID, bool)) error {
	for _, s := range r.labelled {
		id, ok := idOf(s)
		if !ok {
			continue
		}
		im, err := r.load(ctx, s)
		if err == nil && im != nil {
			err = r.snapshot(ctx, im, id, s.Time, s.Label)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// begin makes im the base: the journal goes on from there.
func (r *rewrite) begin(ctx context.Context, im *Image) (err error) {
	r.ids[im.ID.Seq], r.schema = im.ID, im.Stored()
	if err := r.settle(ctx, im, true); err != nil {
		return err
	}
	// The journal takes an epoch above that of its log, so no record here has the name of
	// one there. Nothing needs to be durable before Close: without its name the directory
	// is nobody's store.
	log := &journal.Log{Epoch: max(r.Log.Epoch, im.ID.Epoch), LastID: im.ID}
	r.journal, err = journal.Open(disk.Sub(r.files, catalog.JournalDir), log, journal.Options{
		World: r.Log.World, Sync: journal.SyncNever(), FirstSeq: im.ID.Seq + 1,
		Preamble: func() []byte { return r.schema.Encode() },
	})
	return err
}

// append writes a record, which continues one that was written or the base. In the payload only the
// parent is another: the ID that the record before has here.
func (r *rewrite) append(ctx context.Context, rec *catalog.Record) error {
	if err := r.announce(ctx, rec.Schema); err != nil {
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

// to writes the records that lead from im, the base, to that of seq, and the snapshots
// of states between: those with names, those that a conversion made, and the last one.
// It returns the last state.
func (r *rewrite) to(ctx context.Context, im *Image, seq uint64) (*Image, error) {
	path, err := r.Path(im.ID.Seq, seq)
	if err != nil {
		return nil, err
	}
	// Records lie in the order of their seqs, and a branch that was rewound has seqs between
	// those of the way: its records are written when the way passes them.
	r.before = func(ctx context.Context, was, im *Image, rec *catalog.Record) error {
		if err := r.aside(ctx, was.ID.Seq+1, rec.ID.Seq-1); err != nil || was == im {
			return err
		}
		return r.snapshot(ctx, im, r.ids[im.ID.Seq], r.committed(im.ID), "")
	}
	r.after = func(ctx context.Context, im *Image, rec *catalog.Record) error {
		if err := r.append(ctx, rec); err != nil {
			return err
		}
		return r.settle(ctx, im, rec.ID.Seq == seq)
	}
	if im, _, err = r.along(ctx, im, path); err != nil {
		return nil, err
	}
	return im, r.aside(ctx, seq+1, math.MaxUint64)
}

// aside writes, if rewound branches are wanted, the records with seqs from first to last
// that continue what was written. Those that cannot be read are left out.
func (r *rewrite) aside(ctx context.Context, first, last uint64) error {
	if !r.branches {
		return nil
	}
	for _, e := range recordsBetween(r.Log, first, last) {
		if _, ok := r.ids[e.Parent]; !ok || r.bad[e.ID.Seq] {
			continue // So whatever continues it is left out as well: it has no name here.
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		rec, im := r.Record(e), new(Image)
		if r.Describe(rec, im.ID, im.Stored) == nil {
			if err := r.append(ctx, rec); err != nil {
				return err
			}
		}
	}
	return nil
}

// settle writes the snapshots of im: those with names, and at least one if there must be.
func (r *rewrite) settle(ctx context.Context, im *Image, must bool) error {
	var labels []string
	for _, s := range r.labelled {
		if s.ID == im.ID {
			labels = append(labels, s.Label)
		}
	}
	if must && len(labels) == 0 {
		labels = []string{""}
	}
	for _, label := range labels { // One state may have several names: a file each.
		if err := r.snapshot(ctx, im, r.ids[im.ID.Seq], r.committed(im.ID), label); err != nil {
			return err
		}
	}
	return nil
}

// announce sees to it that s is the schema of the next record. Schemas are compared as
// pointers first: the catalog decodes each preamble once. Components that were only added
// take a preamble in the same segment; a type that changed takes a segment of its own.
func (r *rewrite) announce(ctx context.Context, s *format.Schema) error {
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
	return r.journal.Roll(ctx) // Within a segment numbers are only added.
}

// end closes the journal at the state that was there after record seq. Before that it notes
// in the journal which snapshots there are, so that one that goes missing later is missed.
func (r *rewrite) end(ctx context.Context, seq uint64) error {
	promise, err := catalog.PromiseAll(ctx, r.files)
	if err == nil {
		err = r.journal.KeepNote(promise)
	}
	if err != nil {
		return err
	}
	// A journal that was not closed reads as one after a crash, so the end of ctx waits.
	if err := r.journal.Close(context.WithoutCancel(ctx), r.ids[seq].Seq); err != nil {
		return err
	}
	return ctx.Err()
}

// committed returns when the state that id names was committed; zero: not known.
func (r *rewrite) committed(id journal.ID) time.Time {
	for _, s := range r.Snapshots {
		if s.Err == nil && s.ID == id && !s.Time.IsZero() {
			return s.Time
		}
	}
	if e, ok := r.Log.Find(id.Seq); ok && e.ID == id { // Else the seq is of another record.
		if t, err := r.Catalog.Read(e); err == nil {
			return t.Time
		}
	}
	return time.Time{}
}

// written looks what lies in the store that was made at dir: its bytes, the snapshots with
// names that it has, and those that it lacks.
func (r *rewrite) written(ctx context.Context, dir string) (size int64, names, dropped []string, err error) {
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

// recordsBetween returns the records with seqs from first to last.
func recordsBetween(l *journal.Log, first, last uint64) []journal.Entry {
	from := sort.Search(len(l.Entries), func(i int) bool { return l.Entries[i].ID.Seq >= first })
	to := sort.Search(len(l.Entries), func(i int) bool { return l.Entries[i].ID.Seq > last })
	return l.Entries[from:max(from, to)]
}

// SaveStore makes a directory, which does not exist yet, a store that begins with
// im.
func SaveStore(ctx context.Context, im *Image, dir string) error {
	from := catalog.New(nil)
	_, _ = rand.Read(from.Log.World[:]) // It never fails.
	r := newRewrite(from, nil, nil)
	return r.store(dir, func() error {
		if err := r.begin(ctx, im); err != nil {
			return err
		}
		return r.end(ctx, im.ID.Seq)
	})
}

// SaveImage writes im to a file that does not exist yet, as [persist.Save] writes a world.
func SaveImage(ctx context.Context, im *Image, file string) error {
	_, err := saveImage(ctx, im, file, false)
	return err
}

// saveImage is SaveImage that compresses pages or not, and returns the size of the file.
func saveImage(ctx context.Context, im *Image, file string, compress bool) (size int64, err error) {
	if err := unused(file); err != nil {
		return 0, err
	}
	err = inDirectory(filepath.Dir(filepath.Clean(file)), func(files disk.FS) error {
		s := snap.SavedImage(im)
		s.Manifest.ID = journal.ID{} // A save belongs to no journal.
		s.Manifest.Compressed = compress
		info, err := s.Create(ctx, files, filepath.Base(file))
		size = info.Size
		return err
	})
	return size, err
}

// unused returns an error if something has that name.
func unused(path string) error {
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return fmt.Errorf("persist: %w: %s is there; give a name that nothing has", fs.ErrExist, path)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}
