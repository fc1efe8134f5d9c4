package persist

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/disk"
	"github.com/stet-ecs/stet/journal"
)

// Names inside a store's directory.
const (
	lockFile     = "LOCK"
	journalDir   = "journal"
	snapshotDir  = "snapshots"
	snapshotType = ".snap"
	segmentType  = ".seg"
	tempType     = ".tmp"
)

func snapshotName(number uint32) string {
	return snapshotDir + "/" + fmt.Sprintf("%08d", number) + snapshotType
}

// A View reads a store or a save without changing anything: no lock, no repair.
// It shows the store as it was when it was opened, also while a program goes on
// writing it; what that program removes meanwhile can no longer be shown.
type View struct {
	files disk.FS
	save  string // The name of a save; "" for a store.

	inUse     bool // A program had it open for writing.
	log       *journal.Log
	snapshots []SnapshotInfo // By number.
	schemas   map[journalPreamble]*schema
	onHead    map[uint64]bool // Seqs of the head and its ancestors; nil: not asked for yet.
}

type journalPreamble struct {
	segment int
	offset  int64
}

// SnapshotInfo describes a snapshot file.
type SnapshotInfo struct {
	Name   string // Relative to the store's directory.
	Number uint32
	Tick   uint64
	ID     journal.ID
	Digest ecs.Digest
	Size   int64     // Bytes.
	Files  int       // Other files it refers to.
	Time   time.Time // When its tick was committed, by the clock of the writer; zero: not known.
	Label  string    // What the program called it, see [Store.SnapshotAs].
	Err    error     // Why it cannot be read, or nil.

	world  [16]byte
	crc    uint32
	refs   []fileRef
	schema *schema // nil: it cannot be read.
}

// OpenReadOnly opens the directory of a store, or a file that Save wrote, for
// reading.
//
// Damage does not keep it from opening: what can be read is there, and
// [View.Verify] tells the rest. Errors wrap [ErrForeign], [ErrNewer] or an error
// of the file system.
func OpenReadOnly(ctx context.Context, path string) (*View, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	dir := path
	if !info.IsDir() {
		dir = filepath.Dir(path)
	}
	files, err := disk.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	v := newView(files)
	if info.IsDir() {
		err = v.open(ctx, dir)
	} else {
		err = v.openSave(filepath.Base(path))
	}
	if err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
}

func newView(files disk.FS) *View {
	return &View{files: files, log: new(journal.Log), schemas: make(map[journalPreamble]*schema)}
}

// open reads the store in dir.
func (v *View) open(ctx context.Context, dir string) error {
	v.inUse = held(dir)
	err := v.scanTwice(ctx)
	if !v.inUse && held(dir) {
		v.inUse = true // It was just opened.
		return v.scanTwice(ctx)
	}
	return err
}

// scanTwice is scan. If a program writes meanwhile, what looks like damage may be
// that: only what is seen twice counts.
func (v *View) scanTwice(ctx context.Context) error {
	err := v.scan(ctx)
	if v.inUse && err == nil && len(v.Damage()) > 0 {
		_ = v.log.Close()
		err = v.scan(ctx)
	}
	return err
}

// Close lets go of the files.
func (v *View) Close() error { return errors.Join(v.log.Close(), v.files.Close()) }

func (v *View) openSave(name string) error {
	v.save = name
	s := v.inspect(name, 0)
	if s.Err != nil {
		return s.Err
	}
	v.snapshots = []SnapshotInfo{s}
	return nil
}

// scan reads the headers of everything in the directory of a store. Snapshots
// come first: a journal that is read later leads to all of them, though a program
// may be writing both.
func (v *View) scan(ctx context.Context) error {
	if err := v.list(ctx); err != nil {
		return err
	}
	if err := v.scanJournal(ctx); err != nil {
		return err
	}
	if len(v.log.Segments) > 0 {
		return nil
	}
	if err := half(v.files); err != nil {
		return err
	}
	if len(v.snapshots) == 0 {
		return fmt.Errorf("%w: no %s and no %s in it", ErrForeign, snapshotDir, journalDir)
	}
	return nil
}

func (v *View) scanJournal(ctx context.Context) error {
	_, err := v.files.ReadDir(journalDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	log, err := journal.Scan(ctx, disk.Sub(v.files, journalDir), scanProgress(ctx))
	if err == nil {
		v.log = log
	}
	return err
}

// misfit returns why the state in s cannot be one that the journal leads to, or
// nil.
func (v *View) misfit(s SnapshotInfo) error {
	if s.Err != nil || v.IsSave() {
		return nil
	}
	if len(v.log.Segments) == 0 {
		return &DamageError{journalDir, -1, 0, "it is missing or empty, but " + s.Name + " is there", ErrCorrupt}
	}
	e, ok := v.log.Find(s.ID.Seq)
	switch {
	case s.world != v.log.World:
		return &DamageError{s.Name, -1, 0, "it belongs to another world than the journal", ErrForeign}
	case s.ID.Seq > v.log.Last:
		return v.endsBefore(s)
	case ok && e.ID != s.ID:
		return &DamageError{s.Name, -1, 0, fmt.Sprintf("it has state %v, the journal has %v", s.ID, e.ID), ErrForeign}
	}
	return nil
}

// endsBefore says that the journal lacks the record that led to s. What seemed to be
// an unfinished end is where it was.
func (v *View) endsBefore(s SnapshotInfo) error {
	ends := fmt.Sprintf("ends at record %d, but %s has the state after record %d", v.log.Last, s.Name, s.ID.Seq)
	if t := v.log.Torn; t != nil {
		return &DamageError{journalDir + "/" + t.File, t.Offset, t.Length, "not readable; the journal " + ends, ErrCorrupt}
	}
	return &DamageError{journalDir, -1, 0, "it " + ends, ErrCorrupt}
}

// inspect reads the manifest of a snapshot file.
func (v *View) inspect(name string, number uint32) SnapshotInfo {
	info := SnapshotInfo{Name: name, Number: number}
	r, err := openSnapshot(v.files, name, snapshotName)
	if err != nil {
		info.Err = err
		return info
	}
	defer r.close()
	m := r.manifest
	if m.number != number {
		info.Err = &DamageError{name, -1, 0, fmt.Sprintf("its manifest says number %d", m.number), ErrCorrupt}
	}
	info.Tick, info.ID, info.Digest, info.world = m.tick, m.id, m.digest, m.world
	info.Files, info.refs, info.Time, info.Label = len(m.files), m.files, m.time, m.name
	info.Size, info.crc, info.schema = r.file.Info().Size, r.file.Info().CRC, m.schema
	return info
}

// IsSave reports whether v shows a file that Save wrote.
func (v *View) IsSave() bool { return v.save != "" }

// Snapshots lists the snapshot files, oldest first.
func (v *View) Snapshots() []SnapshotInfo { return v.snapshots }

// Log returns what the journal holds; nothing for a save.
func (v *View) Log() *journal.Log { return v.log }

// Damage returns what opening found damaged: snapshot files that cannot be read,
// and [journal.Log.Problems]. Only [View.Verify] looks at everything.
func (v *View) Damage() []error {
	var damage []error
	for _, s := range v.snapshots {
		if s.Err != nil {
			damage = append(damage, s.Err)
		}
	}
	for _, p := range v.log.Problems {
		damage = append(damage, journalDamage(p))
	}
	return damage
}

// InUse reports whether a program had the store open for writing when v was
// opened. [View.LockHolder] says which.
func (v *View) InUse() bool { return v.inUse }

// LockHolder returns what the lock file says of the process that has the store
// open, or had it when it was killed; "" if it was closed cleanly. [View.InUse]
// tells the two apart.
func (v *View) LockHolder() string {
	if v.IsSave() {
		return ""
	}
	holder := readHolder(v.files)
	if holder == "" {
		return ""
	}
	return named(holder)
}

// Head returns the state that recovery leads to: the seq of its record, 0 for a
// state that has none.
func (v *View) Head() uint64 {
	if v.log.Head == 0 && v.log.LastID.IsZero() && len(v.snapshots) > 0 {
		return v.snapshots[len(v.snapshots)-1].ID.Seq
	}
	return v.log.Head
}

// entryError says that the content of a record, whose checksum is right, makes
// no sense.
func (v *View) entryError(e journal.Entry, err error) error {
	if errors.Is(err, ErrNewer) {
		return err
	}
	file := journalDir
	if e.Segment < len(v.log.Segments) {
		file += "/" + v.log.Segments[e.Segment].Name
	}
	return &DamageError{file, e.Offset, int64(e.Length), err.Error(), ErrCorrupt}
}

// journalError makes an error of package journal one of this package.
func (v *View) journalError(err error) error {
	var damage *journal.DamageError
	switch {
	case errors.As(err, &damage):
		return journalDamage(damage)
	case errors.Is(err, journal.ErrNotFound):
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return pruned(err)
}

func journalDamage(d *journal.DamageError) error {
	err := ErrCorrupt
	switch {
	case errors.Is(d, journal.ErrForeign):
		err = ErrForeign
	case errors.Is(d, journal.ErrNewer):
		err = ErrNewer
	case errors.Is(d, journal.ErrTorn):
		err = journal.ErrTorn
	}
	return &DamageError{journalDir + "/" + d.File, d.Offset, d.Length, d.Reason, err}
}
