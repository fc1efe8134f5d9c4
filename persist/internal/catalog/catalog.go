package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/progress"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// Names inside a store's directory.
const (
	LockFile     = "LOCK"
	JournalDir   = "journal"
	SnapshotDir  = "snapshots"
	SnapshotType = ".snap"
	SegmentType  = ".seg"
	TempType     = ".tmp"
)

// SnapshotName returns the name of snapshot file number, below the top of a store.
func SnapshotName(number uint32) string {
	return SnapshotDir + "/" + fmt.Sprintf("%08d", number) + SnapshotType
}

// A Catalog is what lies in a store or a save, and which states can be reached from
// it: one answer for opening, verifying and looking. It reads without changing
// anything, no lock, no repair, and shows the store as it was when it was opened, also
// while a program goes on writing it; what that program removes meanwhile can no longer
// be shown.
type Catalog struct {
	Files disk.FS
	Save  string // The name of a save; "" for a store.

	InUse     bool // A program had it open for writing.
	Log       *journal.Log
	Snapshots []SnapshotInfo // By number.
	Schemas   map[JournalPreamble]*format.Schema
	onHead    map[uint64]bool // Seqs of the head and its ancestors; nil: not asked for yet.
}

// A JournalPreamble is the place of a schema in the journal.
type JournalPreamble struct {
	Segment int
	Offset  int64
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
	Label  string    // The name that the program gave it, or "".
	Err    error     // Why it cannot be read, or nil.

	World  [16]byte
	CRC    uint32
	Refs   []format.FileRef
	Schema *format.Schema // nil: it cannot be read.
}

// Open opens the directory of a store, or a save. Damage does not keep it from
// opening. Errors wrap [format.ErrForeign], [format.ErrNewer] or an error of the file
// system.
func Open(ctx context.Context, path string) (*Catalog, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	dir, name := path, "."
	if !info.IsDir() {
		dir, name = filepath.Dir(path), filepath.Base(path)
	}
	files, err := disk.Open(dir)
	if err != nil {
		return nil, err
	}
	v, err := OpenFS(ctx, files, name)
	if err != nil {
		files.Close()
	}
	return v, err
}

// OpenFS opens the store at the top of files, whose name is ".", or a save. It closes
// nothing if it fails.
func OpenFS(ctx context.Context, files disk.FS, name string) (v *Catalog, err error) {
	v = New(files)
	if name == "." {
		err = v.open(ctx)
	} else {
		err = v.openSave(name)
	}
	if err != nil {
		_ = v.Log.Close()
		return nil, err
	}
	return v, nil
}

// New returns a catalog of files that knows nothing of them yet.
func New(files disk.FS) *Catalog {
	return &Catalog{Files: files, Log: new(journal.Log), Schemas: make(map[JournalPreamble]*format.Schema)}
}

// open reads the store.
func (v *Catalog) open(ctx context.Context) error {
	v.InUse = Held(v.Files)
	err := v.scanTwice(ctx)
	if !v.InUse && Held(v.Files) {
		v.InUse = true // It was just opened.
		return v.scanTwice(ctx)
	}
	return err
}

// scanTwice is scan. If a program writes meanwhile, what looks like damage may be
// that: only what is seen twice counts.
func (v *Catalog) scanTwice(ctx context.Context) error {
	err := v.Scan(ctx)
	if v.InUse && err == nil && len(v.Damage()) > 0 {
		_ = v.Log.Close()
		err = v.Scan(ctx)
	}
	return err
}

// Close lets go of the files.
func (v *Catalog) Close() error { return errors.Join(v.Log.Close(), v.Files.Close()) }

func (v *Catalog) openSave(name string) error {
	v.Save = name
	s := v.inspect(name, 0)
	if s.Err != nil {
		return s.Err
	}
	v.Snapshots = []SnapshotInfo{s}
	return nil
}

// Scan reads the headers of everything in the directory of a store. Snapshots
// come first: a journal that is read later leads to all of them, though a program
// may be writing both.
func (v *Catalog) Scan(ctx context.Context) error {
	if err := v.list(ctx); err != nil {
		return err
	}
	if err := v.scanJournal(ctx); err != nil {
		return err
	}
	if len(v.Log.Segments) > 0 {
		return nil
	}
	if err := Half(v.Files); err != nil {
		return err
	}
	if len(v.Snapshots) == 0 {
		return fmt.Errorf("%w: no %s and no %s in it", format.ErrForeign, SnapshotDir, JournalDir)
	}
	return nil
}

func (v *Catalog) scanJournal(ctx context.Context) error {
	_, err := v.Files.ReadDir(JournalDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	log, err := journal.Scan(ctx, disk.Sub(v.Files, JournalDir), progress.Scan(ctx))
	if err == nil {
		v.Log = log
	}
	return err
}

// Misfit returns why the state in s cannot be one that the journal leads to, or
// nil.
func (v *Catalog) Misfit(s SnapshotInfo) error {
	if s.Err != nil || v.IsSave() {
		return nil
	}
	if len(v.Log.Segments) == 0 {
		return &format.DamageError{File: JournalDir, Offset: -1, Length: 0, Reason: "it is missing or empty, but " + s.Name + " is there", Err: format.ErrCorrupt}
	}
	e, ok := v.Log.Find(s.ID.Seq)
	switch {
	case s.World != v.Log.World:
		return &format.DamageError{File: s.Name, Offset: -1, Length: 0, Reason: "it belongs to another world than the journal", Err: format.ErrForeign}
	case s.ID.Seq > v.Log.Last:
		return v.endsBefore(s)
	case ok && e.ID != s.ID:
		return &format.DamageError{File: s.Name, Offset: -1, Length: 0, Reason: fmt.Sprintf("it has state %v, the journal has %v", s.ID, e.ID), Err: format.ErrForeign}
	}
	return nil
}

// endsBefore says that the journal lacks the record that led to s. What seemed to be
// an unfinished end is where it was.
func (v *Catalog) endsBefore(s SnapshotInfo) error {
	ends := fmt.Sprintf("ends at record %d, but %s has the state after record %d", v.Log.Last, s.Name, s.ID.Seq)
	if t := v.Log.Torn; t != nil {
		return &format.DamageError{File: JournalDir + "/" + t.File, Offset: t.Offset, Length: t.Length, Reason: "not readable; the journal " + ends, Err: format.ErrCorrupt}
	}
	return &format.DamageError{File: JournalDir, Offset: -1, Length: 0, Reason: "it " + ends, Err: format.ErrCorrupt}
}

// inspect reads the manifest of a snapshot file.
func (v *Catalog) inspect(name string, number uint32) SnapshotInfo {
	info := SnapshotInfo{Name: name, Number: number}
	r, err := snap.Open(v.Files, name, SnapshotName)
	if err != nil {
		info.Err = err
		return info
	}
	defer r.Close()
	m := r.Manifest
	if m.Number != number {
		info.Err = &format.DamageError{File: name, Offset: -1, Length: 0, Reason: fmt.Sprintf("its manifest says number %d", m.Number), Err: format.ErrCorrupt}
	}
	info.Tick, info.ID, info.Digest, info.World = m.Tick, m.ID, m.Digest, m.World
	info.Files, info.Refs, info.Time, info.Label = len(m.Files), m.Files, m.Time, m.Name
	info.Size, info.CRC, info.Schema = r.File.Info().Size, r.File.Info().CRC, m.Schema
	return info
}

// IsSave reports whether v shows a save.
func (v *Catalog) IsSave() bool { return v.Save != "" }

// Damage returns what opening found damaged: snapshot files that cannot be read,
// and [journal.Log.Problems]. There may be more in what opening does not read.
func (v *Catalog) Damage() []error {
	var damage []error
	for _, s := range v.Snapshots {
		if s.Err != nil {
			damage = append(damage, s.Err)
		}
	}
	for _, p := range v.Log.Problems {
		damage = append(damage, JournalDamage(p))
	}
	return damage
}

// LockHolder returns what the lock file says of the process that has the store
// open, or had it when it was killed; "" if it was closed cleanly. [Catalog.InUse]
// tells the two apart.
func (v *Catalog) LockHolder() string {
	if v.IsSave() {
		return ""
	}
	holder := ReadHolder(v.Files)
	if holder == "" {
		return ""
	}
	return named(holder)
}

// Head returns the state that recovery leads to: the seq of its record, 0 for a
// state that has none.
func (v *Catalog) Head() uint64 {
	if v.Log.Head == 0 && v.Log.LastID.IsZero() && len(v.Snapshots) > 0 {
		return v.Snapshots[len(v.Snapshots)-1].ID.Seq
	}
	return v.Log.Head
}

// EntryError says that the content of a record, whose checksum is right, makes
// no sense.
func (v *Catalog) EntryError(e journal.Entry, err error) error {
	if errors.Is(err, format.ErrNewer) {
		return err
	}
	file := JournalDir
	if e.Segment < len(v.Log.Segments) {
		file += "/" + v.Log.Segments[e.Segment].Name
	}
	return &format.DamageError{File: file, Offset: e.Offset, Length: int64(e.Length), Reason: err.Error(), Err: format.ErrCorrupt}
}

// JournalError makes an error of package journal one that says where in the store.
func (v *Catalog) JournalError(err error) error {
	var damage *journal.DamageError
	switch {
	case errors.As(err, &damage):
		return JournalDamage(damage)
	case errors.Is(err, journal.ErrNotFound):
		return fmt.Errorf("%w: %w", format.ErrNotFound, err)
	}
	return Pruned(err)
}

// JournalDamage says of damage to the journal what a [format.DamageError] says: the file by
// its name in the store, and the sentinel of this package.
func JournalDamage(d *journal.DamageError) error {
	err := format.ErrCorrupt
	switch {
	case errors.Is(d, journal.ErrForeign):
		err = format.ErrForeign
	case errors.Is(d, journal.ErrNewer):
		err = format.ErrNewer
	case errors.Is(d, journal.ErrTorn):
		err = journal.ErrTorn
	}
	return &format.DamageError{File: JournalDir + "/" + d.File, Offset: d.Offset, Length: d.Length, Reason: d.Reason, Err: err}
}

// MaxListings is how often a reader looks again because files that it was about
// to read are gone: the program that has the store open removes old ones.
const MaxListings = 8

// list reads the manifests of the snapshot files, again if one vanishes before it
// is read.
func (v *Catalog) list(ctx context.Context) error {
	for range MaxListings {
		numbers, err := v.Numbers()
		if err != nil {
			return err
		}
		if v.Snapshots, err = v.manifests(ctx, numbers); err != nil || !v.anyVanished() {
			return err
		}
	}
	return nil // A name that never can be opened is not one that vanished.
}

// Numbers returns the numbers of the snapshot files there are, ascending.
func (v *Catalog) Numbers() (numbers []uint32, err error) {
	entries, err := v.Files.ReadDir(SnapshotDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), SnapshotType)
		number, err := strconv.ParseUint(base, 10, 32)
		if ok && err == nil && number > 0 && SnapshotName(uint32(number)) == SnapshotDir+"/"+e.Name() {
			numbers = append(numbers, uint32(number))
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// manifests reads the manifests of snapshot files, but for those that v has read.
func (v *Catalog) manifests(ctx context.Context, numbers []uint32) ([]SnapshotInfo, error) {
	infos := make([]SnapshotInfo, 0, len(numbers))
	for _, n := range numbers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		at, ok := slices.BinarySearchFunc(v.Snapshots, n, func(s SnapshotInfo, n uint32) int { return cmp.Compare(s.Number, n) })
		if ok && v.Snapshots[at].Err == nil {
			infos = append(infos, v.Snapshots[at])
		} else {
			infos = append(infos, v.inspect(SnapshotName(n), n))
		}
	}
	return infos, nil
}

func (v *Catalog) anyVanished() bool {
	return slices.ContainsFunc(v.Snapshots, func(s SnapshotInfo) bool { return errors.Is(s.Err, fs.ErrNotExist) })
}

// Relist looks which snapshot files there are now, and reports whether one that v
// knew is gone, or it knew none. Those of states that are newer than v do not
// concern it.
func (v *Catalog) Relist(ctx context.Context) (changed bool, err error) {
	if v.IsSave() {
		return false, nil
	}
	before := v.Snapshots
	if err := v.list(ctx); err != nil {
		return false, err
	}
	v.Snapshots = slices.DeleteFunc(v.Snapshots, func(s SnapshotInfo) bool {
		return !has(before, s.Number) && (s.Err != nil || s.ID.Seq > v.Log.Last)
	})
	if len(before) == 0 {
		return len(v.Snapshots) > 0, nil
	}
	return slices.ContainsFunc(before, func(s SnapshotInfo) bool { return !has(v.Snapshots, s.Number) }), nil
}

func has(snapshots []SnapshotInfo, number uint32) bool {
	return slices.ContainsFunc(snapshots, func(s SnapshotInfo) bool { return s.Number == number })
}

// Gone reports whether a file that was there when v was opened is no more.
func (v *Catalog) Gone(name string) bool {
	f, err := v.Files.Open(name)
	if err == nil {
		f.Close()
	}
	return errors.Is(err, fs.ErrNotExist)
}

// Pruned makes err, which a file that is gone gave, one that says so.
func Pruned(err error) error {
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, format.ErrNotFound) {
		return fmt.Errorf("%w: removed since the store was opened for reading: %w", format.ErrNotFound, err)
	}
	return err
}

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
