package persist

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/build"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// Open makes dir the store of w and fills w from it.
//
// In an empty or missing directory, the present state of w becomes the base, which is durable when
// Open returns. Otherwise w must have no entities: a new world, or one after Clear. Open fills w
// with the newest state that can be recovered. For this, it loads the newest readable snapshot on
// the path to that state, and applies the ticks after the snapshot. Register all components before
// Open. [Options.At] selects an older state.
//
// Stored components whose types have changed are converted: see package
// [github.com/stet-ecs/stet/ecs], [ecs.Component] and [ecs.Migrate]. The Report lists them. A
// conversion that would lose values is refused unless [ecs.Component.Dropped] allows it. The
// converted state is durable, as a full snapshot, before Open returns, and its source is kept. From
// then on a program with the older types is refused.
//
// The opened state is durable when Open returns, also after a crash. Open writes bytes of the
// journal that may not be durable again, and syncs them. OnDurable is called only for later ticks.
//
// While the store is open, every [ecs.World.Commit] is journaled. The history of w starts again at
// the opened state.
//
// Recovery can take long. If ctx ends, Open returns the error of ctx. See [WithProgress].
//
// Open truncates no file. It removes incomplete files of processes that have ended. It also
// removes what [Options.Retain] allows in two cases: the disk is full, or many openings without a
// Commit left small journal segments. So a store that filled its own disk can be opened with
// another Retain.
//
// If Open fails, w is unchanged. Errors:
//
//   - [ErrLocked] with the process that has the store open
//   - [ErrSchema] with all fields that do not fit; it wraps [raw.ErrDropped] if values would only
//     be lost
//   - [ErrPoint] and [ErrNotFound] for [Options.At]
//   - [ErrCorrupt] with file and offset if durable data cannot be read
//   - [ErrNotEmpty], [ErrForeign], [ErrNewer]
func Open(ctx context.Context, dir string, w *ecs.World, options Options) (*Store, error) {
	if options.Files != nil {
		return openAnyway(ctx, disk.Sub(options.Files, dir), "the file system", w, options)
	}
	if err := catalog.MakeDir(dir); err != nil {
		return nil, err
	}
	files, err := disk.Open(dir)
	if err != nil {
		return nil, err
	}
	s, err := openAnyway(ctx, files, dir, w, options)
	if err != nil {
		files.Close()
	}
	return s, err
}

// openAnyway opens the store in the file system files. If the disk is full, it removes the reserve
// file, opens the store again and prunes what Retain allows. The parameter dir is the name of the
// directory, for errors.
func openAnyway(ctx context.Context, files disk.FS, dir string, w *ecs.World, options Options) (*Store, error) {
	if err := catalog.Ours(files, dir); err != nil {
		return nil, err
	}
	s, err := openLocked(ctx, files, w, options)
	if spendBallast(files, err) {
		if s, err = openLocked(ctx, files, w, options); err == nil {
			s.pruneNow()
			s.report.Kept = s.keeping
		}
	}
	return s, err
}

// openLocked locks the store in the file system files, and opens it.
func openLocked(ctx context.Context, files disk.FS, w *ecs.World, options Options) (*Store, error) {
	l, err := catalog.Acquire(files)
	if err != nil {
		return nil, err
	}
	s, err := openFiles(ctx, files, l, w, options)
	if err != nil {
		l.Undo()
	}
	return s, err
}

// openFiles opens the store in the file system files. The caller holds the lock l on that store.
func openFiles(ctx context.Context, files disk.FS, l *catalog.Lock, w *ecs.World, options Options) (*Store, error) {
	s := &Store{world: w, options: options.resolved(files), files: files, lock: l, ids: make(map[uint64]journal.ID)}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	s.finishOpen()
	return s, nil
}

// finishOpen completes an opening after the journal was opened for writing.
func (s *Store) finishOpen() {
	s.first = s.journal.Next()
	s.report.UnsyncedNames = errors.Is(s.files.SyncDir("."), disk.ErrNoDirSync)
	s.beginIfCrowded()
}

// beginIfCrowded begins a snapshot if many small segments follow the last snapshot. Each opening
// begins a segment, so many openings without a Commit leave many of them. If a snapshot already has
// the state of the head, beginIfCrowded only prunes.
func (s *Store) beginIfCrowded() {
	atHead := func(o storedSnapshot) bool { return o.onHead && o.ID.Seq == s.head }
	switch {
	case !s.snapshotDue() || !s.manySegments() || s.snapshotting():
	case slices.ContainsFunc(s.list, atHead):
		s.behind = 0
		s.pruneNow()
	default:
		_ = s.beginAtPace(slotName{}) // If this fails, a Commit tries again.
	}
}

// open examines the files and creates or recovers a store. If it fails, the world is unchanged.
func (s *Store) open(ctx context.Context) error {
	c := catalog.New(s.files)
	defer func() { _ = c.Log.Close() }()
	err := c.ScanToOpen(ctx, s.options.At)
	switch {
	// The directory is empty, or has only files of a creation that did not complete.
	case c.Creatable(err):
		if s.options.At != "" {
			return fmt.Errorf("%w: a new store has no state %q", ErrNotFound, s.options.At)
		}
		return s.create(ctx, c.Log)
	case err != nil:
		return err
	}
	before := image.WithoutEntities(s.world)
	if err := s.recover(ctx, c); err != nil {
		return err
	}
	if s.report.Converted != nil {
		return s.convert(ctx, c.Log, before)
	}
	err = s.openJournal(c.Log)
	if err == nil {
		if err = s.world.Raw().Attach(s, s.head); err == nil && s.options.History > 0 {
			err = s.loadHistory(ctx, c)
		}
		if err != nil {
			_ = s.world.Raw().Detach(s) // Detach fails only if a checkpoint is held; none is.
			s.journal.Abandon()
		}
	}
	if err != nil {
		_ = s.world.Raw().Load(before) // Load succeeds, because the world had this state before.
	}
	return err
}

// convert completes the opening of a store whose state was converted to the types of the world. It
// writes a full snapshot under the new schema. If that fails, it loads the state in the parameter
// before again.
func (s *Store) convert(ctx context.Context, log *journal.Log, before *raw.State) error {
	if err := s.world.Raw().Attach(s, s.head); err != nil {
		return err
	}
	s.base = pageBase{} // Pages of the old layout must not be shared.
	_, err := s.firstSnapshot(ctx, log)
	if err == nil {
		return nil
	}
	_ = s.world.Raw().Detach(s)    // Detach fails only if a checkpoint is held; none is.
	_ = s.world.Raw().Load(before) // Load succeeds, because the world had this state before.
	if s.journal != nil {
		s.journal.Abandon()
	}
	return err
}

// create makes the present world the base of a new store. It first writes the base snapshot, then
// begins the journal, and then gives the snapshot its final name. So a snapshot without a journal
// is always damage.
func (s *Store) create(ctx context.Context, log *journal.Log) error {
	if s.id = log.World; s.id == [16]byte{} {
		rand.Read(s.id[:]) // rand.Read never fails.
	}
	if err := s.world.Raw().Attach(s, 0); err != nil {
		return err
	}
	s.schema = format.SchemaOf(s.world)
	s.encoder = newTickRecorder(s.schema, &s.notes, &s.dirty)
	for _, st := range s.world.Raw().Storages() {
		s.encoder.whole.add(st, 0)
	}
	err := catalog.MakeDirs(s.files)
	if err == nil {
		err = s.removeTemps()
	}
	if err == nil {
		var r SnapshotResult
		r, err = s.firstSnapshot(ctx, log)
		s.report = Report{Fresh: true, Tick: s.world.Tick(), Snapshot: r.Name, Clean: true}
	}
	if err == nil {
		s.initRetention(sizesOf(s.journal))
	}
	if err != nil {
		_ = s.world.Raw().Detach(s) // Detach fails only if a checkpoint is held; none is.
		if s.journal != nil {
			// Close would seal the journal, and a sealed journal marks the directory as a store.
			s.journal.Abandon()
		}
	}
	return err
}

// firstSnapshot takes the first snapshot of a new store, or the first snapshot after a conversion.
// It opens the journal when the snapshot file is complete, and then gives that file its final name.
// If ctx has ended by then, neither journal nor snapshot is created.
func (s *Store) firstSnapshot(ctx context.Context, log *journal.Log) (SnapshotResult, error) {
	return s.snapshot(context.WithoutCancel(ctx), slotName{}, func(context.Context) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return s.openJournal(log)
	})
}

// recover fills the world with the state that [Options.At] selects, by default the newest one.
func (s *Store) recover(ctx context.Context, c *catalog.Catalog) error {
	if n := s.world.Len(); n > 0 {
		return fmt.Errorf("%w: the world has %d entities; open with an empty world, then call Store.Load to continue from a save; or open a new directory", ErrNotEmpty, n)
	}
	im, f, err := c.RecoverHead(ctx, s.options.At)
	if err != nil {
		return err
	}
	stored := im.Stored()
	conversions, err := conversionsOf(stored, s.world)
	if err != nil {
		return err
	}
	s.report.types(conversions)
	s.schema = evolved(stored, s.world, s.report.Converted)
	s.report.Skipped = c.AllDamage(f)
	if s.foundDamage(s.report.Skipped); len(s.report.Skipped) == 0 {
		if err := s.removeTemps(); err != nil {
			return err
		}
	}
	if err := im.Fill(s.world, f.Snapshot.Name); err != nil {
		return err
	}
	s.continueAt(c, stateOf(im), f)
	s.reportOf(c)
	s.report.Snapshot, s.report.Replayed = f.Snapshot.Name, f.Replayed
	return nil
}

// reportOf sets the bound of the store and fills the report. The world is at the recovered state.
func (s *Store) reportOf(c *catalog.Catalog) {
	sizes := make([]segmentSize, len(c.Log.Segments))
	for i, segment := range c.Log.Segments {
		sizes[i] = segmentSize{segment.First, segment.Size}
	}
	s.initRetention(sizes)
	s.report.Tick = s.world.Tick()
	s.report.Clean, s.report.TornTails = c.Log.Clean, len(c.Log.TornTails)
	if n := len(c.Log.Segments); n > 0 {
		last := c.BuildOf(&c.Log.Segments[n-1])
		if floats := build.Floats(last); floats != "" && floats != build.Floats(build.Here()) {
			s.report.Build = last
		}
	}
	if c.Log.Torn != nil {
		s.report.Torn = c.Log.Torn.In(catalog.JournalDir)
	}
}

// A storedState says which state of the store the world has.
type storedState struct {
	id     journal.ID
	schema *format.Schema
	// given maps the number of a component to a record that wrote it: the first one, or the last
	// one for a NoRewind component. 0 means that the component was in the state that filled the
	// world. Components without rows have no entry.
	given map[int]uint64
}

// stateOf returns the storedState of a world that was filled with im.
func stateOf(im *image.Image) storedState {
	state := storedState{im.ID, im.Stored(), make(map[int]uint64)}
	for n, c := range im.Components {
		if c.N > 0 {
			state.given[n] = 0
		}
	}
	return state
}

// continueAt prepares the store, so that the next tick continues the given state. The caller has
// filled the world with that state, and has set s.schema to the schema of the world.
func (s *Store) continueAt(c *catalog.Catalog, state storedState, f *catalog.Recovery) {
	s.head, s.older = state.id.Seq, state.id.Seq != c.Head()
	s.adoptFiles(c, f)
	s.forgetBefore(state.id, time.Time{})
	if e, ok := c.Log.Find(s.head); ok {
		if t, err := c.Read(e); err == nil {
			s.committedAt = t.Time
		}
	}
	for _, st := range s.world.Raw().Storages() {
		given := uint64(neverGiven)
		if n, ok := image.NumberOf(state.schema, st); ok {
			if seq, has := state.given[n]; has {
				given = seq
			}
		}
		s.encoder.whole.add(st, given)
		if st.Persistent() {
			s.schema.Number(st)
		}
	}
}

// forgetBefore removes all record IDs and adds id. So the next tick can only continue that record.
// at is the commit time of the record. forgetBefore also resets the encoder and the notes.
func (s *Store) forgetBefore(id journal.ID, at time.Time) {
	clear(s.ids)
	s.ids[id.Seq], s.committedAt = id, at
	s.notes.Reset()
	s.encoder = newTickRecorder(s.schema, &s.notes, &s.dirty)
}

// adoptFiles makes the files in c those of the store. The next snapshot can share pages with the
// recovered one. Replayed ticks do not mark the pages that they change. So the next snapshot
// compares the checksums of all pages, and shares the equal ones.
func (s *Store) adoptFiles(c *catalog.Catalog, f *catalog.Recovery) {
	s.id = f.Snapshot.World
	s.list = storedSnapshots(c, s.head)
	s.watch.expect(sizesByNumber(s.list))
	s.dirty.All, s.since = true, s.head
	inTable := map[uint32]bool{}
	for _, p := range f.Table {
		inTable[p.File] = true
	}
	bytes := int64(0)
	s.grown = 0
	s.base = pageBase{table: f.Table, files: make(map[uint32]namedFile)}
	for _, sn := range c.Snapshots {
		bytes += sn.Size
		s.number = max(s.number, sn.Number)
		s.fullSize = max(s.fullSize, sn.Size)
		if inTable[sn.Number] && sn.Err == nil {
			s.base.files[sn.Number] = namedFile{sn.CRC, sn.Size}
		}
	}
	if len(s.base.files) != len(inTable) {
		// A file with pages of the recovered snapshot is unreadable. So the next snapshot shares no
		// page.
		s.base = pageBase{}
	}
	for _, e := range c.Log.Entries {
		if e.ID.Seq > f.Snapshot.ID.Seq {
			s.grown += int64(e.Length)
		}
	}
	s.behind = 0
	for i := range c.Log.Segments {
		if segment := &c.Log.Segments[i]; segment.First > f.Snapshot.ID.Seq && segment.Size < s.smallSegment() {
			s.behind++
		}
	}
	marks, tips := s.notesIn(c.Log)
	s.adopted(bytes, marks, tips)
}

// notesIn returns the records with marks and the branch tips of a journal.
func (s *Store) notesIn(log *journal.Log) (marks, tips []uint64) {
	for _, e := range log.Entries {
		if e.Flags&format.FlagMarks != 0 {
			marks = append(marks, e.ID.Seq)
		}
	}
	for _, e := range log.Tips() {
		if e.ID.Seq != s.head {
			tips = append(tips, e.ID.Seq)
		}
	}
	return marks, tips
}

// openJournal continues the journal, or creates it.
func (s *Store) openJournal(log *journal.Log) error {
	s.announced = len(s.schema.Components)
	options := journal.Options{
		World:       s.id,
		Sync:        s.options.Sync,
		QueueSize:   s.options.QueueBytes,
		Budget:      s.options.Budget,
		SegmentSize: s.segmentBytes(),
		FirstSeq:    s.head + 1,
		Epoch:       s.options.Epoch,
		Preamble:    func() []byte { return s.schema.Encode() },
		Writer:      build.Here(),
	}
	options.Guard = s.guard
	if s.options.OnDurable != nil || s.options.OnLocal != nil {
		options.OnLocal, options.OnDurable = s.kept, s.durable
	}
	j, err := journal.Open(disk.Sub(s.files, catalog.JournalDir), log, options)
	if err == nil {
		s.opened(j, s.world.Tick())
	}
	return err
}
