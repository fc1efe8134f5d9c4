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
	"sync"
	"syscall"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/build"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/progress"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// A Catalog is made by a scan, which reads names, headers and manifests, and brought up to date
// by Refresh and Relist:
//
//	scan    names of snapshots ─▶ their manifests ─▶ journal ─▶ do they fit each other?
//	again   what vanished meanwhile; all of it once, if something in use looks damaged
//	later   Refresh: snapshots, then the journal. Relist: snapshots only, of states that are known
//
// Damage is noted where it is found, in SnapshotInfo.Err and in the problems of the journal, so
// that tools can show what is left. What must not be continued, Usable and Missing say.

// Names inside a store's directory.
const (
	LockFile     = "LOCK"
	BallastFile  = "BALLAST"
	JournalDir   = "journal"
	SnapshotDir  = "snapshots"
	SnapshotType = ".snap"
	segmentType  = ".seg"
	ledgerType   = ".ledger"
	TempType     = ".tmp" // Of files, and of the journal of a backup, that are not complete.
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
	Snapshots []SnapshotInfo // By number. Also those that cannot be read: see SnapshotInfo.Err.

	irregular []error // Names at the top of a store that are not those of files and directories, such as links.

	goesOn bool   // The program that asks has the lock and goes on with the store.
	base   uint64 // If goesOn is set, records up to this one are not needed.

	mu      sync.Mutex // Guards what follows, which whoever asks first finds out: several may ask at the same time.
	schemas map[JournalPreamble]*format.Schema
	onHead  map[uint64]bool // Seqs of the head and its ancestors; nil: not asked for yet.
	newest  *newestState    // What Newest returns; nil: not asked for since the files were listed.
}

// A JournalPreamble is the place of a schema in the journal. Schemas are kept by it, since decoding
// one again would give another pointer: see [Catalog.SchemaAt].
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

	Compressed bool   // Pages may be compressed.
	Build      string // The program and the machine that wrote it, if it says so.

	World  [16]byte         // Of the store it belongs to; zero: a save.
	CRC    uint32           // Of the file, by which other files and the journal name it.
	Refs   []format.FileRef // The other files.
	Schema *format.Schema   // nil: it cannot be read.
}

// Open opens the directory of a store, or a save. Damage does not keep it from
// opening. Errors wrap [format.ErrForeign], [format.ErrNewer] or an error of the file
// system.
func Open(ctx context.Context, path string) (*Catalog, error) {
	files, name, err := Locate(path)
	if err != nil {
		return nil, err
	}
	c, err := OpenFS(ctx, files, name)
	if err != nil {
		files.Close()
	}
	return c, err
}

// Locate returns the files that [OpenFS] finds what lies at path in, and its name there.
func Locate(path string) (files disk.FS, name string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, "", err
	}
	dir, name := path, "."
	if !info.IsDir() {
		if path, err = Follow(path); err != nil {
			return nil, "", err
		}
		dir, name = filepath.Dir(path), filepath.Base(path)
	}
	files, err = disk.Open(dir)
	return files, name, err
}

// OpenFS opens the store at the top of files, whose name is ".", or a save. It closes
// nothing if it fails.
func OpenFS(ctx context.Context, files disk.FS, name string) (c *Catalog, err error) {
	c = New(files)
	if name == "." {
		err = c.open(ctx)
	} else {
		err = c.openSave(name)
	}
	if err != nil {
		_ = c.Log.Close()
		return nil, err
	}
	return c, nil
}

// New returns a catalog of files that knows nothing of them yet.
func New(files disk.FS) *Catalog {
	return &Catalog{Files: files, Log: new(journal.Log), schemas: make(map[JournalPreamble]*format.Schema)}
}

// open reads the store. Whether it is in use is asked before, as damage then is looked at twice, and
// after, as a program that opened it meanwhile may have written what was read.
func (c *Catalog) open(ctx context.Context) error {
	c.InUse = Held(c.Files)
	err := c.scanTwice(ctx)
	if !c.InUse && Held(c.Files) {
		c.InUse = true // It was just opened.
		return c.scanTwice(ctx)
	}
	return err
}

// scanTwice reads the store, again if a program has it open and something looks damaged:
// that may be what is being written. Only what is seen twice counts.
func (c *Catalog) scanTwice(ctx context.Context) error {
	err := c.Scan(ctx)
	if c.InUse && err == nil && len(c.Damage()) > 0 {
		_ = c.Log.Close()
		err = c.Scan(ctx)
	}
	return err
}

// Close lets go of the files.
func (c *Catalog) Close() error { return errors.Join(c.Log.Close(), c.Files.Close()) }

// openSave shows a save as a store of one snapshot and no journal.
func (c *Catalog) openSave(name string) error {
	c.Save = name
	s := c.inspect(name, 0)
	if s.Err != nil {
		return s.Err
	}
	c.Snapshots = []SnapshotInfo{s}
	return nil
}

// Scan reads the headers of everything in the directory of a store. Snapshots
// come first: a journal that is read later leads to all of them, though a program
// may be writing both.
func (c *Catalog) Scan(ctx context.Context) error {
	if err := c.scanSnapshots(ctx); err != nil {
		return err
	}
	return c.scanBehind(ctx)
}

// scanSnapshots looks at the names at the top of the store, and reads the headers of the snapshots.
func (c *Catalog) scanSnapshots(ctx context.Context) error {
	entries, err := c.Files.ReadDir(".")
	if err != nil {
		return err
	}
	c.irregular = nil
	for _, e := range entries {
		dir := e.Name() == JournalDir || e.Name() == SnapshotDir
		if !dir && e.Name() != LockFile && e.Name() != BallastFile {
			continue
		}
		if d := disk.Irregular(e.Name(), e.Type(), dir); d != nil {
			c.irregular = append(c.irregular, d)
		}
	}
	return c.list(ctx)
}

// irregularAt returns what is wrong with the name of a directory of the store; nil: it is one, or missing.
func (c *Catalog) irregularAt(dir string) error {
	for _, err := range c.irregular {
		if d, ok := errors.AsType[*disk.DamageError](err); ok && d.File == dir {
			return err
		}
	}
	return nil
}

// Creatable reports whether a new store can be created, where [Catalog.ScanToOpen] returned err: nothing of a
// store is there, or only what an earlier creation left that was cut short. Where a link has one of the
// names of a store, none is created.
func (c *Catalog) Creatable(err error) bool {
	if len(c.irregular) > 0 {
		return false
	}
	return errors.Is(err, format.ErrForeign) && len(c.Log.Segments) == 0 || err == nil && c.Unfinished()
}

// scanBehind reads the journal of the snapshots that c lists.
func (c *Catalog) scanBehind(ctx context.Context) error {
	if err := c.scanJournal(ctx); err != nil {
		return err
	}
	if len(c.Log.Segments) > 0 {
		return nil
	}
	if err := halfBackup(c.Files); err != nil {
		return err
	}
	if len(c.Snapshots) == 0 {
		return errors.Join(errors.Join(c.irregular...), fmt.Errorf("%w: no %s and no %s in it", format.ErrForeign, SnapshotDir, JournalDir))
	}
	return nil
}

// ScanToOpen is Scan for a program that has the lock of the store and goes on from its newest state, or
// from the point at. What lies before the newest snapshot is not needed for the newest state, so
// that little of it is read; see [journal.Log.ScanFrom]. c.Log has to be closed before the program writes.
func (c *Catalog) ScanToOpen(ctx context.Context, at string) error {
	if err := c.scanSnapshots(ctx); err != nil {
		return err
	}
	c.goesOn = true
	for _, s := range c.Snapshots {
		if s.Err == nil && at == "" {
			c.base = max(c.base, s.ID.Seq)
		}
	}
	return c.scanBehind(ctx)
}

// JournalRead is how many bytes of the journal opening a store reads, the newest ones; of
// those before it believes what the journal says of itself. They take about a tenth of a
// second, and stores of less are looked at in all places. Tests set it.
var JournalRead int64 = 256 << 20

// ReadJournal reads all of the journal, if opening did not. Nothing else of c may be in use
// meanwhile.
func (c *Catalog) ReadJournal(ctx context.Context) error {
	if c.Log.Believed == 0 {
		return nil
	}
	log, err := journal.Scan(ctx, disk.Sub(c.Files, JournalDir), 0, progress.Scan(ctx)) // 0: believe nothing.
	if err == nil {
		_ = c.Log.Close()
		c.Log, c.onHead = log, nil
		c.setNewest(nil)
		c.schemas = make(map[JournalPreamble]*format.Schema) // Segments may have been pruned, and have other places.
	}
	return err
}

// scanJournal reads the journal, if there is one.
func (c *Catalog) scanJournal(ctx context.Context) error {
	_, err := c.Files.ReadDir(JournalDir)
	bad := c.irregularAt(JournalDir)
	if errors.Is(err, fs.ErrNotExist) && bad == nil {
		return nil
	}
	if err != nil {
		return errors.Join(bad, err)
	}
	dir, log := disk.Sub(c.Files, JournalDir), new(journal.Log)
	if c.goesOn {
		err = log.ScanFrom(ctx, dir, JournalRead, c.base, progress.Scan(ctx))
	} else {
		log, err = journal.Scan(ctx, dir, JournalRead, progress.Scan(ctx))
	}
	if err == nil {
		c.Log = log
	}
	return err
}

// Misfit returns why the state in s cannot be one that the journal leads to, or
// nil. Each of the two can be read, and they contradict each other: it is damage if the journal is
// missing or ends too early, and a foreign file if it is of another store, or has another state
// than the journal under the same seq, as after a part of the history was lost and written anew.
func (c *Catalog) Misfit(s SnapshotInfo) error {
	if s.Err != nil || c.IsSave() {
		return nil
	}
	if len(c.Log.Segments) == 0 {
		return &format.DamageError{File: JournalDir, Offset: -1, Length: 0, Reason: "it is missing or empty, but " + s.Name + " is there", Err: format.ErrCorrupt}
	}
	// If the record cannot be read, or was pruned, there is nothing to compare the state with.
	e, ok := c.Log.Find(s.ID.Seq)
	switch {
	case s.World != c.Log.World:
		return &format.DamageError{File: s.Name, Offset: -1, Length: 0, Reason: "it belongs to another world than the journal", Err: format.ErrForeign}
	case s.ID.Seq > c.Log.Last:
		return c.endsBefore(s)
	case ok && e.ID != s.ID:
		return &format.DamageError{File: s.Name, Offset: -1, Length: 0, Reason: fmt.Sprintf("it has state %v, the journal has %v", s.ID, e.ID), Err: format.ErrForeign}
	}
	return nil
}

// endsBefore says that the journal lacks the record that led to s. What seemed to be
// an unfinished end is where it was.
func (c *Catalog) endsBefore(s SnapshotInfo) error {
	ends := fmt.Sprintf("ends at record %d, but %s has the state after record %d", c.Log.Last, s.Name, s.ID.Seq)
	if t := c.Log.Torn; t != nil {
		return &format.DamageError{File: JournalDir + "/" + t.File, Offset: t.Offset, Length: t.Length, Reason: "not readable; the journal " + ends, Err: format.ErrCorrupt}
	}
	return &format.DamageError{File: JournalDir, Offset: -1, Length: 0, Reason: "it " + ends, Err: format.ErrCorrupt}
}

// inspect reads the manifest of a snapshot file. What is wrong with it is noted, not
// returned: a store with a damaged snapshot can be opened, and says so.
func (c *Catalog) inspect(name string, number uint32) SnapshotInfo {
	info := SnapshotInfo{Name: name, Number: number}
	r, err := snap.Open(c.Files, name, SnapshotName)
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
	info.Files, info.Refs, info.Time, info.Label, info.Compressed = len(m.Files), m.Files, m.Time, m.Name, m.Compressed
	info.Build = m.Build()
	info.Size, info.CRC, info.Schema = r.File.Info().Size, r.File.Info().CRC, m.Schema
	return info
}

// IsSave reports whether c shows a save.
func (c *Catalog) IsSave() bool { return c.Save != "" }

// Damage returns what opening found damaged: snapshot files that cannot be read,
// and [journal.Log.Problems]. There may be more in what opening does not read.
func (c *Catalog) Damage() []error {
	var damage []error
	for _, s := range c.Snapshots {
		if s.Err != nil {
			damage = append(damage, s.Err)
		}
	}
	return append(damage, c.Problems()...)
}

// Faults returns [Catalog.Damage], and the snapshots that do not fit the journal.
func (c *Catalog) Faults() []error {
	errs := c.Damage()
	for _, s := range c.Snapshots {
		if err := c.Misfit(s); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// LockHolder returns what the lock file says of the process that has the store
// open, or had it when it was killed; "" if it was closed cleanly. [Catalog.InUse]
// tells the two apart.
func (c *Catalog) LockHolder() string {
	if c.IsSave() {
		return ""
	}
	return Named(readHolder(c.Files))
}

// Head returns the record that the journal ends with, from which [persist.Open] would go on; 0: it
// has none. Without any record it is that of the newest snapshot. Of a damaged store nothing may
// lead to it: [Catalog.Newest] says which state is the newest then.
func (c *Catalog) Head() uint64 {
	if c.Log.Head == 0 && c.Log.LastID.IsZero() && len(c.Snapshots) > 0 {
		return c.Snapshots[len(c.Snapshots)-1].ID.Seq
	}
	return c.Log.Head
}

// Build describes the program and the machine that wrote the record of a state, or the save; "": unknown.
func (c *Catalog) Build(seq uint64) string {
	if e, ok := c.Log.Find(seq); ok {
		return c.BuildOf(&c.Log.Segments[e.Segment])
	}
	for _, s := range c.Snapshots {
		if s.ID.Seq == seq && s.Err == nil {
			return s.Build
		}
	}
	return ""
}

// BuildOf describes the program and the machine that wrote a segment; "": unknown.
func (c *Catalog) BuildOf(s *journal.Segment) string {
	if text := c.Log.Writer(s); build.Check(text) == nil {
		return text
	}
	return ""
}

// EntryError says that the content of a record, whose checksum is right, makes
// no sense: the range that it names is that of the record.
func (c *Catalog) EntryError(e journal.Entry, err error) error {
	if errors.Is(err, format.ErrNewer) || errors.Is(err, format.ErrTooLarge) {
		return err
	}
	file := JournalDir
	if e.Segment < len(c.Log.Segments) {
		file += "/" + c.Log.Segments[e.Segment].Name
	}
	return &format.DamageError{File: file, Offset: e.Offset, Length: int64(e.Length), Reason: err.Error(), Err: format.ErrCorrupt}
}

// JournalError makes an error of package journal one that says where in the store.
func (c *Catalog) JournalError(err error) error {
	var damage *journal.DamageError
	switch {
	case errors.As(err, &damage):
		return damage.In(JournalDir)
	case errors.Is(err, journal.ErrNotFound):
		return fmt.Errorf("%w: %w", format.ErrNotFound, err)
	}
	return Pruned(err)
}

// MaxListings is how often a reader looks again because files that it was about
// to read are gone: the program that has the store open removes old ones.
const MaxListings = 8

// list reads the manifests of the snapshot files, again if one vanishes before it
// is read.
func (c *Catalog) list(ctx context.Context) error {
	for range MaxListings {
		numbers, bad, err := c.SnapshotFiles()
		if err != nil {
			return err
		}
		infos, err := c.manifests(ctx, numbers, bad)
		if err != nil {
			return err
		}
		c.setNewest(nil)
		if c.Snapshots = infos; !c.anyVanished() {
			return nil
		}
	}
	return nil // A name that can never be opened is not one that vanished.
}

// SnapshotFiles returns the numbers of the snapshot files there are, ascending, and what is wrong with
// those that are links or otherwise no files. Files of another name, such as those that are being
// written, are none.
func (c *Catalog) SnapshotFiles() (numbers []uint32, bad map[uint32]error, err error) {
	entries, err := c.Files.ReadDir(SnapshotDir)
	notThere := c.irregularAt(SnapshotDir)
	if err != nil && (!errors.Is(err, fs.ErrNotExist) || notThere != nil) {
		return nil, nil, errors.Join(notThere, err)
	}
	bad = map[uint32]error{}
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), SnapshotType)
		number, err := strconv.ParseUint(base, 10, 32)
		if ok && err == nil && number > 0 && SnapshotName(uint32(number)) == SnapshotDir+"/"+e.Name() {
			numbers = append(numbers, uint32(number))
			if d := disk.Irregular(SnapshotName(uint32(number)), e.Type(), false); d != nil {
				bad[uint32(number)] = d
			}
		}
	}
	slices.Sort(numbers)
	return numbers, bad, nil
}

// manifests reads the manifests of snapshot files, but for those that c has read: a file that
// has its name is complete and does not change.
func (c *Catalog) manifests(ctx context.Context, numbers []uint32, bad map[uint32]error) ([]SnapshotInfo, error) {
	infos := make([]SnapshotInfo, 0, len(numbers))
	for _, n := range numbers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := bad[n]; err != nil {
			infos = append(infos, SnapshotInfo{Name: SnapshotName(n), Number: n, Err: err})
			continue
		}
		at, ok := slices.BinarySearchFunc(c.Snapshots, n, func(s SnapshotInfo, n uint32) int { return cmp.Compare(s.Number, n) })
		if ok && c.Snapshots[at].Err == nil {
			infos = append(infos, c.Snapshots[at])
			continue
		}
		info := c.inspect(SnapshotName(n), n)
		if refused(info.Err) {
			return nil, fmt.Errorf("persist: %w", info.Err)
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// refused reports whether err says that the system does not let this process open a file now. That is no
// damage: the same files can be read once that has changed.
func refused(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// anyVanished reports whether a file was gone before its manifest was read.
func (c *Catalog) anyVanished() bool {
	return slices.ContainsFunc(c.Snapshots, func(s SnapshotInfo) bool { return errors.Is(s.Err, fs.ErrNotExist) })
}

// Relist looks which snapshot files there are now, and reports whether they are others
// than c knew: one is gone, or one was written of a state that c knew, which leads where
// the records did that went with it. Those of newer states do not concern c.
func (c *Catalog) Relist(ctx context.Context) (changed bool, err error) {
	if c.IsSave() {
		return false, nil
	}
	before := c.Snapshots // list makes a new slice.
	if err := c.list(ctx); err != nil {
		return false, err
	}
	c.Snapshots = slices.DeleteFunc(c.Snapshots, func(s SnapshotInfo) bool {
		return !has(before, s.Number) && (s.Err != nil || s.ID.Seq > c.Log.Last)
	})
	c.setNewest(nil)
	return !sameSnapshots(before, c.Snapshots), nil
}

// sameSnapshots reports whether a and b are the same files.
func sameSnapshots(a, b []SnapshotInfo) bool {
	return slices.EqualFunc(a, b, func(a, b SnapshotInfo) bool { return a.Number == b.Number })
}

// has reports whether a snapshot of that number is among them.
func has(snapshots []SnapshotInfo, number uint32) bool {
	return slices.ContainsFunc(snapshots, func(s SnapshotInfo) bool { return s.Number == number })
}

// Gone reports whether a file that was there when c was opened is no more. One that is there and
// cannot be opened is not gone.
func (c *Catalog) Gone(name string) bool {
	f, err := c.Files.Open(name)
	if err == nil {
		f.Close()
	}
	return errors.Is(err, fs.ErrNotExist)
}

// Pruned makes err, which a file that is gone gave, one that says so: for who reads, a
// tick that retention removed is not damage.
func Pruned(err error) error {
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, format.ErrNotFound) {
		return fmt.Errorf("%w: removed since the store was opened for reading: %w", format.ErrNotFound, err)
	}
	return err
}

// Refresh brings c up to date with what programs did to the store since it was
// opened, and reports whether the journal may have changed. It reads only what is
// new, see [journal.Log.Refresh], so that it can be called often. [Catalog.InUse] still
// tells what was when c was opened.
//
// Nothing else of c may be in use meanwhile; images that were read from it stay as they
// are. Records that were pruned are no longer in the log. If the
// journal is gone the error wraps [format.ErrNotFound]. A save never changes.
func (c *Catalog) Refresh(ctx context.Context) (changed bool, err error) {
	if c.IsSave() {
		return false, nil
	}
	known := len(c.Damage())
	changed, err = c.refresh(ctx)
	if err == nil && len(c.Damage()) > known { // Only what is seen twice counts, see scanTwice.
		_, err = c.refresh(ctx)
	}
	return changed, Pruned(err)
}

// refresh reads what is new, once. As in Scan, snapshots come first.
func (c *Catalog) refresh(ctx context.Context) (changed bool, err error) {
	if err := c.list(ctx); err != nil {
		return false, err
	}
	head, world := c.Log.Head, c.Log.World
	if len(c.Log.Segments) == 0 {
		if err := c.scanJournal(ctx); err != nil {
			return false, err
		}
		changed = len(c.Log.Segments) > 0
	} else if changed, err = c.Log.Refresh(ctx); err != nil {
		return false, err
	} else if len(c.Log.Segments) == 0 {
		return true, fmt.Errorf("%w: the journal was removed", format.ErrNotFound)
	}
	if changed {
		c.schemas = make(map[JournalPreamble]*format.Schema) // Segments may have other places.
		c.followHead(head, world == c.Log.World)
		c.setNewest(nil)
	}
	return changed, nil
}

// followHead brings onHead up to date, which was that of record head, if this is the
// world that it was. A head that comes from the old one adds the records between, which
// are few, so that who follows a store pays for its new records only; any other is asked for anew.
func (c *Catalog) followHead(head uint64, same bool) {
	path, err := c.Log.Path(head, c.Log.Head)
	if c.onHead == nil || err != nil || !same {
		c.onHead = nil
		return
	}
	for _, e := range path {
		c.onHead[e.ID.Seq] = true
	}
}
