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

// A scan creates a Catalog. It lists the snapshots, reads their manifests and then the journal, and
// checks whether all of them are consistent. If files vanish meanwhile, the scan lists the files
// again. If a store in use looks damaged, the scan reads everything a second time.
//
// Later, Refresh reads the changes of the snapshots and of the journal. Relist reads only the
// changes of the snapshots, for states that the Catalog already has.
//
// A scan records damage in SnapshotInfo.Err and in the problems of the journal, so tools can show
// the remaining data. Usable and Missing decide whether a program may continue the store.

// Names inside a store's directory.
const (
	LockFile     = "LOCK"
	BallastFile  = "BALLAST"
	JournalDir   = "journal"
	SnapshotDir  = "snapshots"
	SnapshotType = ".snap"
	segmentType  = ".seg"
	ledgerType   = ".ledger"
	TempType     = ".tmp" // Suffix of incomplete files, and of the incomplete journal of a backup.
)

// SnapshotName returns the path of snapshot file number, relative to the store's directory.
func SnapshotName(number uint32) string {
	return SnapshotDir + "/" + fmt.Sprintf("%08d", number) + SnapshotType
}

// A Catalog lists the contents of a store or a save, and finds the states that can be reached.
// Opening, verifying and inspecting use the same Catalog. A Catalog only reads: it takes no lock
// and repairs nothing. It describes the store as of the scan, even while a program writes the
// store. If the program removes files, their states become unreachable.
type Catalog struct {
	Files disk.FS
	Save  string // Name of the save. "" for a store.

	InUse     bool // A program had the store open for writing.
	Log       *journal.Log
	Snapshots []SnapshotInfo // Ordered by number. Includes unreadable ones: see SnapshotInfo.Err.

	// Names of the store that are not regular files or directories, such as links.
	irregular []error

	// Set by ScanToOpen: the calling program holds the lock and will write to the store.
	goesOn bool
	// The record of the newest snapshot, if ScanToOpen is called for the newest state. The scan
	// skips most of the records up to this one.
	base uint64

	mu      sync.Mutex // Guards the fields below. The first caller that needs a field computes it.
	schemas map[JournalPreamble]*format.Schema
	onHead  map[uint64]bool // Seqs of the head and its ancestors. Nil if not computed yet.
	// Cached result of Newest. Nil until Newest is called, and again after files change.
	newest *newestState
}

// A JournalPreamble is the position of a preamble in the journal. A preamble contains a schema. The
// cache of decoded schemas has these positions as keys. Each schema is decoded only once, because
// callers compare pointers to schemas; see [Catalog.SchemaAt].
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
	Size   int64     // In bytes.
	Files  int       // Number of other snapshot files that this file refers to.
	Time   time.Time // Commit time of its tick, by the writer's clock. Zero if unknown.
	Label  string    // Name of the snapshot, or "": see names.go.
	Note   string    // Note of the slot, or "".
	Err    error     // Why the file cannot be read, or nil.

	// Given is the name that the file contains. It stays the same when the snapshot loses its name;
	// see names.go.
	Given string

	Compressed bool   // Pages may be compressed.
	Build      string // The program and machine that wrote the file, if known.

	World [16]byte // ID of the store's world. Zero for a save.
	// Checksum of the file. Other snapshots and the journal identify the file by this checksum.
	CRC    uint32
	Refs   []format.FileRef // Other snapshot files that this file refers to.
	Schema *format.Schema   // Nil if the file cannot be read.
}

// Open opens the directory of a store, or a save. It also opens a damaged store. Errors wrap
// [format.ErrForeign], [format.ErrNewer] or an error of the file system.
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

// Locate returns the arguments files and name with which [OpenFS] opens the store or save at path.
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

// OpenFS opens the store at the root of a file system, or a save. name is "." for a store. If
// OpenFS fails, it does not close the file system.
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

// New returns an empty catalog of the given file system. The caller fills it by a scan.
func New(files disk.FS) *Catalog {
	return &Catalog{Files: files, Log: new(journal.Log), schemas: make(map[JournalPreamble]*format.Schema)}
}

// open scans the store. It checks before and after the scan whether the store is in use. In a store
// in use, damage counts only if a second scan finds it again: the first scan may have read
// half-written bytes.
func (c *Catalog) open(ctx context.Context) error {
	c.InUse = Held(c.Files)
	err := c.scanTwice(ctx)
	if !c.InUse && Held(c.Files) {
		c.InUse = true // The store was opened during the scan.
		return c.scanTwice(ctx)
	}
	return err
}

// scanTwice reads the store. If a program has the store open and something looks damaged, scanTwice
// reads it again: the bytes may have been half written. Only damage that is still visible counts.
func (c *Catalog) scanTwice(ctx context.Context) error {
	err := c.Scan(ctx)
	if c.InUse && err == nil && len(c.Damage()) > 0 {
		_ = c.Log.Close()
		err = c.Scan(ctx)
	}
	return err
}

// Close closes the files.
func (c *Catalog) Close() error { return errors.Join(c.Log.Close(), c.Files.Close()) }

// openSave shows a save as a store with one snapshot and no journal.
func (c *Catalog) openSave(name string) error {
	c.Save = name
	s := c.inspect(name, 0)
	if s.Err != nil {
		return s.Err
	}
	c.Snapshots = []SnapshotInfo{s}
	NameSnapshots(c)
	return nil
}

// Scan reads the headers of all files of a store. A program may write the store meanwhile. It
// writes a record before the snapshot of its state. So Scan reads the snapshots first, and then the
// journal, which has the records of all these snapshots.
func (c *Catalog) Scan(ctx context.Context) error {
	if err := c.scanSnapshots(ctx); err != nil {
		return err
	}
	return c.scanBehind(ctx)
}

// scanSnapshots checks the names at the root of the store and reads the headers of the snapshots.
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

// irregularAt returns an error if the name dir in the store is a link or another irregular file. It
// returns nil if dir is a directory or does not exist.
func (c *Catalog) irregularAt(dir string) error {
	for _, err := range c.irregular {
		if d, ok := errors.AsType[*disk.DamageError](err); ok && d.File == dir {
			return err
		}
	}
	return nil
}

// Creatable reports whether a new store can be created after [Catalog.ScanToOpen] returned err. A
// store can be created if the directory contains no store, or only the remains of an unfinished
// creation. It cannot be created if a link has one of the names of a store.
func (c *Catalog) Creatable(err error) bool {
	if len(c.irregular) > 0 {
		return false
	}
	return errors.Is(err, format.ErrForeign) && len(c.Log.Segments) == 0 || err == nil && c.Unfinished()
}

// scanBehind reads the journal after the snapshots were listed.
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

// ScanToOpen is like Scan, but for a program that holds the lock and continues the store. The
// argument at is the point in time from which the program continues, or "" for the newest state.
// The newest state only needs the newest snapshot and the records after it. So ScanToOpen then
// skips most older records; see [journal.Log.ScanFrom]. The caller closes c.Log before it writes.
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

// JournalRead limits how many bytes of the journal are read when a store is opened, newest segments
// first. For older segments, opening uses the summaries in the ledger. Reading that many bytes
// takes about a tenth of a second. Tests change the limit.
var JournalRead int64 = 256 << 20

// ReadJournal reads the whole journal, if opening has read only a part of it. No other method of c
// may run during ReadJournal.
func (c *Catalog) ReadJournal(ctx context.Context) error {
	if c.Log.Believed == 0 {
		return nil
	}
	// 0 makes Scan read all segments, without summaries.
	log, err := journal.Scan(ctx, disk.Sub(c.Files, JournalDir), 0, progress.Scan(ctx))
	if err == nil {
		_ = c.Log.Close()
		c.Log, c.onHead = log, nil
		c.setNewest(nil)
		// Pruning may have changed the indexes of segments, and the keys of the cache contain these
		// indexes.
		c.schemas = make(map[JournalPreamble]*format.Schema)
	}
	return err
}

// scanJournal reads the journal, if the store has one.
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
		NameSnapshots(c)
	}
	return err
}

// Misfit returns why snapshot s contradicts the journal, or nil:
//
//   - damage if the journal is missing or ends before s
//   - ErrForeign if s belongs to another store
//   - ErrForeign if the journal has another state with the same seq: a part of the history was lost
//     and written again
func (c *Catalog) Misfit(s SnapshotInfo) error {
	if s.Err != nil || c.IsSave() {
		return nil
	}
	if len(c.Log.Segments) == 0 {
		return &format.DamageError{File: JournalDir, Offset: -1, Length: 0, Reason: "it is missing or empty, but " + s.Name + " exists", Err: format.ErrCorrupt}
	}
	// If the record is unreadable or was pruned, the state cannot be compared.
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

// endsBefore returns the error for a journal that ends before the record of s. If the journal has a
// torn tail, the record may have been in this tail. The error then names the tail.
func (c *Catalog) endsBefore(s SnapshotInfo) error {
	ends := fmt.Sprintf("ends at record %d, but %s has the state after record %d", c.Log.Last, s.Name, s.ID.Seq)
	if t := c.Log.Torn; t != nil {
		return &format.DamageError{File: JournalDir + "/" + t.File, Offset: t.Offset, Length: t.Length, Reason: "not readable; the journal " + ends, Err: format.ErrCorrupt}
	}
	return &format.DamageError{File: JournalDir, Offset: -1, Length: 0, Reason: "it " + ends, Err: format.ErrCorrupt}
}

// inspect reads the manifest of a snapshot file. It stores errors in the result, because a store
// with a damaged snapshot can still be opened.
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
	info.Files, info.Refs, info.Time, info.Compressed = len(m.Files), m.Files, m.Time, m.Compressed
	info.Build, info.Note, info.Given = m.Build(), m.Note(), m.Name
	info.Size, info.CRC, info.Schema = r.File.Info().Size, r.File.Info().CRC, m.Schema
	return info
}

// IsSave reports whether c shows a save.
func (c *Catalog) IsSave() bool { return c.Save != "" }

// Damage returns the damage that the scan found: unreadable snapshot files, and the results of
// [Catalog.Problems]. Bytes that the scan did not read may have more damage.
func (c *Catalog) Damage() []error {
	var damage []error
	for _, s := range c.Snapshots {
		if s.Err != nil {
			damage = append(damage, s.Err)
		}
	}
	return append(damage, c.Problems()...)
}

// Faults returns [Catalog.Damage] and the snapshots that contradict the journal.
func (c *Catalog) Faults() []error {
	errs := c.Damage()
	for _, s := range c.Snapshots {
		if err := c.Misfit(s); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// LockHolder returns the text in the lock file. The text describes the process that last opened the
// store for writing. If [Catalog.InUse] is true, that process still has the store open. Otherwise
// it ended without closing the store. After a clean close, the text is "".
func (c *Catalog) LockHolder() string {
	if c.IsSave() {
		return ""
	}
	return Named(readHolder(c.Files))
}

// Head returns the record at the end of the journal, from which [persist.Open] continues. 0 means
// no record. In a journal without records, Head returns the record of the newest snapshot. In a
// damaged store the head may be unreachable; [Catalog.Newest] returns the newest reachable state.
func (c *Catalog) Head() uint64 {
	if c.Log.Head == 0 && c.Log.LastID.IsZero() && len(c.Snapshots) > 0 {
		return c.Snapshots[len(c.Snapshots)-1].ID.Seq
	}
	return c.Log.Head
}

// Build describes the program and the machine that wrote record seq, or the save. "" means unknown.
func (c *Catalog) Build(seq uint64) string {
	if e, ok := c.Log.Find(seq); ok {
		return c.BuildOf(&c.Log.Segments[e.Segment])
	}
	s, _ := c.snapshotAt(seq)
	return s.Build
}

// BuildOf describes the program and the machine that wrote a segment. "" means unknown.
func (c *Catalog) BuildOf(s *journal.Segment) string {
	if text := c.Log.Writer(s); build.Check(text) == nil {
		return text
	}
	return ""
}

// EntryError returns the error for a record with a matching checksum and invalid content. The error
// names the range of the record.
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

// JournalError converts an error of package journal: it adds the journal's directory to the file
// name.
func (c *Catalog) JournalError(err error) error {
	var damage *disk.DamageError
	switch {
	case errors.As(err, &damage):
		return damage.In(JournalDir)
	case errors.Is(err, journal.ErrNotFound):
		return fmt.Errorf("%w: %w", format.ErrNotFound, err)
	}
	return Pruned(err)
}

// MaxListings is how often a listing is repeated if a listed file no longer exists. The program
// that has the store open may remove old files between listing and reading.
const MaxListings = 8

// list reads the manifests of the snapshot files. It retries if a file vanishes before it is read.
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
		c.Snapshots = infos
		NameSnapshots(c)
		if !c.anyVanished() {
			return nil
		}
	}
	return nil // A file that fails in every listing was not removed. Its error is in c.Snapshots.
}

// SnapshotFiles returns the numbers of the existing snapshot files in ascending order. bad has an
// error for each link or other irregular file. Files with other names, such as unfinished ones, are
// skipped.
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

// manifests reads the manifests of snapshot files, except those that c has read already. A file
// with its final name is complete and does not change.
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

// refused reports whether err means that the process cannot open a file at the moment. This is not
// damage, because the same file can be opened later.
func refused(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// anyVanished reports whether a file vanished before its manifest was read.
func (c *Catalog) anyVanished() bool {
	return slices.ContainsFunc(c.Snapshots, func(s SnapshotInfo) bool { return errors.Is(s.Err, fs.ErrNotExist) })
}

// Relist lists the snapshot files again and reports whether the list has changed. It drops files
// that were removed. It adds new readable snapshots, except those of states after the last record
// in c. A new snapshot can replace records that the program has pruned since.
func (c *Catalog) Relist(ctx context.Context) (changed bool, err error) {
	if c.IsSave() {
		return false, nil
	}
	before := c.Snapshots // list assigns a new slice, so before remains the old list.
	if err := c.list(ctx); err != nil {
		return false, err
	}
	c.Snapshots = slices.DeleteFunc(c.Snapshots, func(s SnapshotInfo) bool {
		return !has(before, s.Number) && (s.Err != nil || s.ID.Seq > c.Log.Last)
	})
	NameSnapshots(c)
	c.setNewest(nil)
	return !sameSnapshots(before, c.Snapshots), nil
}

// sameSnapshots reports whether a and b list the same files.
func sameSnapshots(a, b []SnapshotInfo) bool {
	return slices.EqualFunc(a, b, func(a, b SnapshotInfo) bool { return a.Number == b.Number })
}

// has reports whether snapshots contains the snapshot with this number.
func has(snapshots []SnapshotInfo, number uint32) bool {
	return slices.ContainsFunc(snapshots, func(s SnapshotInfo) bool { return s.Number == number })
}

// Gone reports whether a file no longer exists. A file that exists and cannot be opened is not
// gone.
func (c *Catalog) Gone(name string) bool {
	f, err := c.Files.Open(name)
	if err == nil {
		f.Close()
	}
	return errors.Is(err, fs.ErrNotExist)
}

// Pruned returns err, unless err means that a file does not exist. In that case, retention has
// removed the file, and the result says so and wraps [format.ErrNotFound].
func Pruned(err error) error {
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, format.ErrNotFound) {
		return fmt.Errorf("%w: removed since the store was opened for reading: %w", format.ErrNotFound, err)
	}
	return err
}

// Refresh brings c up to date with the store and reports whether the journal may have changed. It
// reads only new bytes, see [journal.Log.Refresh], so it can be called often. [Catalog.InUse] keeps
// the value of the scan.
//
// No other method of c may run during Refresh. Images that were loaded from c stay unchanged.
// Refresh removes pruned records from the log. If the journal was removed, the error wraps
// [format.ErrNotFound]. A save never changes.
func (c *Catalog) Refresh(ctx context.Context) (changed bool, err error) {
	if c.IsSave() {
		return false, nil
	}
	known := len(c.Damage())
	changed, err = c.refresh(ctx)
	// New damage counts only if a second refresh finds it again: see scanTwice.
	if err == nil && len(c.Damage()) > known {
		_, err = c.refresh(ctx)
	}
	return changed, Pruned(err)
}

// refresh reads new bytes once. As in Scan, it reads snapshots first.
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
	NameSnapshots(c) // The list of snapshots in the ledger may be new.
	if changed {
		// Pruning may have changed the indexes of segments, and the keys of the cache contain these
		// indexes.
		c.schemas = make(map[JournalPreamble]*format.Schema)
		c.followHead(head, world == c.Log.World)
		c.setNewest(nil)
	}
	return changed, nil
}

// followHead updates the cache onHead after the head of the journal has changed. The parameter head
// is the old head. The parameter same says whether the store still has the same world. If the new
// head descends from the old one, followHead adds the records between them. Otherwise it drops the
// cache.
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
