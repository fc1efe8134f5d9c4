package persist

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// A catalog is what lies in a store or a save, and which states can be reached from
// it: one answer for opening, verifying and looking. It reads without changing
// anything, no lock, no repair, and shows the store as it was when it was opened, also
// while a program goes on writing it; what that program removes meanwhile can no longer
// be shown.
type catalog struct {
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

// openCatalog opens the directory of a store, or a file that Save wrote. Damage does
// not keep it from opening. Errors wrap [ErrForeign], [ErrNewer] or an error of the
// file system.
func openCatalog(ctx context.Context, path string) (*catalog, error) {
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
	v := newCatalog(files)
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

// openFS opens the store whose directory is files.
func openFS(ctx context.Context, files disk.FS) (*catalog, error) {
	v := newCatalog(files)
	if err := v.scan(ctx); err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
}

func newCatalog(files disk.FS) *catalog {
	return &catalog{files: files, log: new(journal.Log), schemas: make(map[journalPreamble]*schema)}
}

// open reads the store in dir.
func (v *catalog) open(ctx context.Context, dir string) error {
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
func (v *catalog) scanTwice(ctx context.Context) error {
	err := v.scan(ctx)
	if v.inUse && err == nil && len(v.Damage()) > 0 {
		_ = v.log.Close()
		err = v.scan(ctx)
	}
	return err
}

// Close lets go of the files.
func (v *catalog) Close() error { return errors.Join(v.log.Close(), v.files.Close()) }

func (v *catalog) openSave(name string) error {
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
func (v *catalog) scan(ctx context.Context) error {
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

func (v *catalog) scanJournal(ctx context.Context) error {
	_, err := v.files.ReadDir(journalDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	log, err := journal.ScanWith(ctx, disk.Sub(v.files, journalDir), journal.ScanOptions{Progress: scanProgress(ctx)})
	if err == nil {
		v.log = log
	}
	return err
}

// misfit returns why the state in s cannot be one that the journal leads to, or
// nil.
func (v *catalog) misfit(s SnapshotInfo) error {
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
func (v *catalog) endsBefore(s SnapshotInfo) error {
	ends := fmt.Sprintf("ends at record %d, but %s has the state after record %d", v.log.Last, s.Name, s.ID.Seq)
	if t := v.log.Torn; t != nil {
		return &DamageError{journalDir + "/" + t.File, t.Offset, t.Length, "not readable; the journal " + ends, ErrCorrupt}
	}
	return &DamageError{journalDir, -1, 0, "it " + ends, ErrCorrupt}
}

// inspect reads the manifest of a snapshot file.
func (v *catalog) inspect(name string, number uint32) SnapshotInfo {
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
func (v *catalog) IsSave() bool { return v.save != "" }

// Damage returns what opening found damaged: snapshot files that cannot be read,
// and [journal.Log.Problems]. Only [View.Verify] looks at everything.
func (v *catalog) Damage() []error {
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

// LockHolder returns what the lock file says of the process that has the store
// open, or had it when it was killed; "" if it was closed cleanly. [View.InUse]
// tells the two apart.
func (v *catalog) LockHolder() string {
	if v.IsSave() {
		return ""
	}
	f, err := v.files.Open(lockFile)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, _ := io.ReadAll(io.NewSectionReader(f, 0, maxHolder))
	if len(b) == 0 {
		return ""
	}
	return named(string(b))
}

// Head returns the state that recovery leads to: the seq of its record, 0 for a
// state that has none.
func (v *catalog) Head() uint64 {
	if v.log.Head == 0 && v.log.LastID.IsZero() && len(v.snapshots) > 0 {
		return v.snapshots[len(v.snapshots)-1].ID.Seq
	}
	return v.log.Head
}

// entryError says that the content of a record, whose checksum is right, makes
// no sense.
func (v *catalog) entryError(e journal.Entry, err error) error {
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
func (v *catalog) journalError(err error) error {
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
