package persist

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
	log, err := journal.ScanWith(ctx, disk.Sub(v.files, journalDir), journal.ScanOptions{Progress: scanProgress(ctx)})
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
func (v *View) Head() uint64 {
	if v.log.Head == 0 && v.log.LastID.IsZero() && len(v.snapshots) > 0 {
		return v.snapshots[len(v.snapshots)-1].ID.Seq
	}
	return v.log.Head
}

// A Commit is a tick in the journal.
type Commit struct {
	Seq, Parent uint64
	ID          journal.ID
	Tick        uint64
	Time        time.Time // When it was committed, by the clock of the writer.
	Bytes       int       // Of its payload.
	OnHead      bool      // It is the head or an ancestor of it; others were rewound.
	Rows        []RowChange
	Marks       []string // Names that the program gave it, see [Store.Mark].
	Inputs      []Input  // What the program journaled with it, in order.

	EntityBytes, OpBytes int // Of Bytes: those that say which entities are alive, and list the operations.

	ops    []byte
	schema *schema
}

// A RowChange says what a tick did to the rows of a component or resource.
type RowChange struct {
	Component     int // Its number, as in an [Op].
	Before, After int // How many rows there were.
	Written       int // Rows below After whose value the tick gives: added, set or moved.

	Entities, Values []ecs.Range // The rows below After whose entity the tick gives, and whose value.

	Bytes int // Of the tick's payload that say all this.
}

// Commits returns the ticks in the journal with seqs in [from, to], in the order
// in which they were committed. It stops at the first that cannot be read, and
// returns the error beside those before.
//
// The operations of all of them stay in memory; a caller that wants many asks for
// a few at a time. After the first call, which follows the head back, the cost is
// that of reading the ticks returned.
func (v *View) Commits(from, to uint64) ([]Commit, error) {
	entries := v.log.Entries
	first, _ := slices.BinarySearchFunc(entries, from, func(e journal.Entry, seq uint64) int {
		return cmp.Compare(e.ID.Seq, seq)
	})
	var commits []Commit
	for _, e := range entries[first:] {
		if e.ID.Seq > to {
			break
		}
		c, err := v.commit(e)
		if err != nil {
			return commits, err
		}
		commits = append(commits, c)
	}
	return commits, nil
}

func (v *View) commit(e journal.Entry) (Commit, error) {
	t, s, err := v.tick(e)
	if err != nil {
		return Commit{}, err
	}
	return *v.describe(e, t, s), nil
}

// describe returns what the payload of record e says.
func (v *View) describe(e journal.Entry, t *tick, s *schema) *Commit {
	if v.onHead == nil {
		v.onHead = v.ancestors(v.log.Head)
	}
	c := &Commit{
		Seq: e.ID.Seq, Parent: e.Parent, ID: e.ID, Tick: t.tick, Time: t.time, Bytes: int(e.Length),
		OnHead: v.onHead[e.ID.Seq], Marks: t.marks,
		EntityBytes: t.registrySize, OpBytes: t.opsSize, ops: append([]byte(nil), t.ops...), schema: s,
	}
	for _, in := range t.inputs {
		c.Inputs = append(c.Inputs, Input{in.Name, bytes.Clone(in.Data)})
	}
	for _, p := range t.storages {
		c.Rows = append(c.Rows, RowChange{p.number, p.before, p.after, countRows(p.valueRanges), p.entityRanges, p.valueRanges, p.size})
	}
	return c
}

// ancestors returns the seqs of a record, of its ancestors, and of what the
// oldest of these continues.
func (v *View) ancestors(seq uint64) map[uint64]bool {
	seqs := map[uint64]bool{seq: true}
	for e := range v.log.Ancestors(seq) {
		seqs[e.ID.Seq], seqs[e.Parent] = true, true
	}
	return seqs
}

// Ops returns the operations of a tick in the order of the calls.
func (c *Commit) Ops() ([]Op, error) { return decodeOps(c.ops) }

// Component returns the name of a component by the number that an [Op] has.
func (c *Commit) Component(number int) string {
	if number < 0 || number >= len(c.schema.components) {
		return ""
	}
	return c.schema.components[number].Name
}

// tick reads and decodes the payload of e.
func (v *View) tick(e journal.Entry) (*tick, *schema, error) {
	s, err := v.schemaAt(e)
	if err != nil {
		return nil, nil, v.journalError(err)
	}
	payload, err := v.log.Payload(e, nil)
	if err != nil {
		return nil, nil, v.journalError(err)
	}
	t, err := v.decode(e, payload)
	return t, s, err
}

// decode decodes the payload of e.
func (v *View) decode(e journal.Entry, payload []byte) (*tick, error) {
	t, err := decodeTick(payload)
	if err == nil && (t.tick != e.Tick || t.parent.Seq != e.Parent) {
		err = fmt.Errorf("tick %d with parent %d in the payload, %d and %d in the header", t.tick, t.parent.Seq, e.Tick, e.Parent)
	}
	if err == nil && (len(t.marks) > 0) != (e.Flags&flagMarks != 0) {
		err = fmt.Errorf("%d marks in the payload, flags %#x in the header", len(t.marks), e.Flags)
	}
	if err != nil {
		return nil, v.entryError(e, err)
	}
	return t, nil
}

// schemaAt returns the schema in force at e.
func (v *View) schemaAt(e journal.Entry) (*schema, error) {
	p, ok := v.log.PreambleAt(e)
	at := journalPreamble{p.Segment, p.Offset}
	if s := v.schemas[at]; ok && s != nil {
		return s, nil
	}
	encoded, err := v.log.Preamble(e)
	if err != nil {
		return nil, err
	}
	s, err := decodeSchema(encoded)
	if err != nil {
		return nil, v.entryError(p, err)
	}
	v.schemas[at] = s
	return s, nil
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

// A found says how a state was reached.
type found struct {
	snapshot SnapshotInfo
	replayed int
	skipped  []error // Why newer snapshots were not used.
	table    pageTable
}

// At returns the state after the record seq; 0 is the oldest state of the store.
// It is reached from the nearest snapshot among its ancestors.
//
// If the program that has the store open removed files since, At looks for other
// ways to the state; if there is none any more, the error wraps [ErrNotFound].
func (v *View) At(ctx context.Context, seq uint64) (im *Image, err error) {
	err = v.persevere(ctx, func() error {
		im, _, err = v.at(ctx, seq, false)
		return err
	})
	return im, err
}

// persevere calls f again if it fails and the files that there are have changed.
func (v *View) persevere(ctx context.Context, f func() error) error {
	for try := 0; ; try++ {
		err := f()
		if err == nil || ctx.Err() != nil {
			return err
		}
		changed, e := v.relist(ctx)
		changed = changed || errors.Is(err, fs.ErrNotExist)
		if e != nil || !changed || try == maxListings {
			return pruned(err)
		}
	}
}

// at is At. If no ticks are to be replayed and bare is set, the image is a bare one.
func (v *View) at(ctx context.Context, seq uint64, bare bool) (*Image, *found, error) {
	im, f, err := v.reach(ctx, seq, bare)
	if err == nil {
		im.dropDead()
	}
	return im, f, err
}

// reach is at for a state that ticks may follow.
func (v *View) reach(ctx context.Context, seq uint64, bare bool) (*Image, *found, error) {
	f := new(found)
	for _, s := range v.bases(seq) {
		if s.Err == nil && !v.leads(s, seq) {
			continue
		}
		im, table, err := v.loadSnapshot(ctx, s, bare && s.ID.Seq == seq)
		if err == nil {
			f.snapshot, f.table = s, table
			f.replayed, err = v.replay(ctx, im, seq)
			if err == nil {
				return im, f, nil
			}
			return nil, f, errors.Join(append(f.skipped, err)...)
		}
		if ctx.Err() != nil {
			return nil, f, err
		}
		f.skipped = append(f.skipped, err)
	}
	if len(f.skipped) > 0 {
		return nil, f, errors.Join(f.skipped...)
	}
	return nil, f, v.unreachable(seq)
}

// unreachable says that no snapshot leads to record seq, and what is missing on
// the way.
func (v *View) unreachable(seq uint64) error {
	_, err := v.log.Path(0, seq)
	return errors.Join(fmt.Errorf("%w: no snapshot leads to record %d", ErrNotFound, seq), err)
}

// statesTo returns the states on the way to record seq, as far back as it is known.
func (v *View) statesTo(seq uint64) map[journal.ID]bool {
	onPath := map[journal.ID]bool{}
	root := seq
	var oldest journal.Entry
	for e := range v.log.Ancestors(seq) {
		onPath[e.ID] = true
		root, oldest = e.Parent, e
	}
	if _, ok := v.log.Find(root); !ok && root != seq { // Damaged: who continued it knew its ID.
		if t, _, err := v.tick(oldest); err == nil {
			onPath[t.parent] = true
		}
	}
	if root == 0 {
		onPath[journal.ID{}] = true // The base, unless the way to it was pruned.
	}
	for _, s := range v.log.Segments { // The record before the oldest segment is known by its ID only.
		if s.Err == nil && s.Previous.Seq == root {
			onPath[s.Previous] = true
		}
	}
	if _, ok := v.log.Find(seq); !ok { // The journal holds nothing to compare with.
		for _, s := range v.snapshots {
			if s.ID.Seq == seq {
				onPath[s.ID] = true
			}
		}
	}
	return onPath
}

// bases returns the snapshots that record seq can be reached from, nearest
// first; those that cannot be read come in order, so that they are reported.
func (v *View) bases(seq uint64) []SnapshotInfo {
	onPath := v.statesTo(seq)
	var bases []SnapshotInfo
	for _, s := range slices.Backward(v.snapshots) {
		if s.Err == nil && len(v.log.Segments) > 0 {
			s.Err = v.misfit(s)
		}
		if s.Err != nil || onPath[s.ID] {
			bases = append(bases, s)
		}
	}
	return bases
}

func (v *View) loadSnapshot(ctx context.Context, s SnapshotInfo, bare bool) (*Image, pageTable, error) {
	if s.Err != nil {
		return nil, nil, s.Err
	}
	r, err := openSnapshot(v.files, s.Name, snapshotName)
	if err != nil {
		return nil, nil, err
	}
	defer r.close()
	table := pageTable{}
	im, err := r.load(ctx, table, bare)
	return im, table, err
}

// replay brings im forward to record seq.
func (v *View) replay(ctx context.Context, im *Image, seq uint64) (n int, err error) {
	path, err := v.log.Path(im.ID.Seq, seq)
	if err != nil {
		return 0, v.journalError(err)
	}
	p := startProgress(ctx, PhaseReplay, int64(len(path)))
	for i, e := range path {
		if err := ctx.Err(); err != nil {
			return i, err
		}
		if err := v.step(im, e); err != nil {
			return i, err
		}
		p.add(1)
	}
	return len(path), nil
}

// step applies the tick of record e to im.
func (v *View) step(im *Image, e journal.Entry) error {
	t, s, err := v.tick(e)
	if err != nil {
		return err
	}
	return v.advance(im, e, t, s)
}

// advance applies t, the tick of record e, to im.
func (v *View) advance(im *Image, e journal.Entry, t *tick, s *schema) error {
	if err := im.adopt(s); err != nil {
		return v.entryError(e, err)
	}
	if err := im.apply(t, e.ID); err != nil {
		return v.entryError(e, err)
	}
	return nil
}
