package persist

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/background"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

const (
	minSnapshotBytes = 16 << 20
	defaultPace      = 1 << 20

	// slackBytes is how many bytes of unused pages are always allowed. Otherwise a small world
	// would often need a full snapshot. See needFullSnapshot.
	slackBytes = 1 << 20

	// hurryTicks is how many ticks a copy may take before its pace doubles.
	hurryTicks = 256
)

// ErrAbandoned reports an abandoned snapshot: during the copy, the world went back to before the
// snapshot's tick.
var ErrAbandoned = errors.New("persist: snapshot abandoned: the world went back to before it")

// A snapshotter makes the snapshots of a store. A Commit begins a snapshot of its tick, and a
// raw.Pin keeps the state of that tick readable. This Commit and the Commits after it copy the
// state. When the copy is complete, another goroutine makes pages of it, writes and syncs the file,
// and gives the file its name.
//
// At most one snapshot is under way: see [snapshotStage].
type snapshotter struct {
	grown int64 // Journal bytes since the last snapshot began.
	// Number of small segments after the last snapshot, as counted at Open. It becomes 0 when
	// another snapshot begins.
	behind   int
	lastTick int64  // Journal bytes of the last tick.
	number   uint32 // Number of the last snapshot that began.
	base     pageBase
	// Bytes of pages in the last full snapshot; at Open, the size of the largest snapshot.
	fullSize int64

	dirty snap.Dirty // Changes since the last snapshot began.
	since uint64     // The record at which the last snapshot began.

	underWay  *snapshotCopy // The snapshot under way, or nil.
	paceBoost int           // How many times the pace is doubled.
	buffers   snap.BufferList

	// Time of the last tick, by the clock of the store; zero: unknown.
	committedAt time.Time

	list  []storedSnapshot // The snapshots of the store, oldest first.
	watch watch
	bounding
}

// A snapshotStage is the stage of the snapshot under way. Each arrow leads from one stage to the
// next, and names the function that makes the change. These functions run in the goroutine of the
// world.
//
//	       begin             startWriting             adoptResult
//	idle ─────────▶ copying ──────────────▶ writing ─────────────▶ idle
//	                   └───────────── abandon ───────────────────▶ idle
type snapshotStage int

const (
	stageIdle    snapshotStage = iota // No snapshot is under way.
	stageCopying                      // Each Commit copies a share of the pinned state.
	stageWriting                      // A goroutine writes the copy, and then sends the result.
)

// stage returns the stage of the snapshot under way.
func (s *snapshotter) stage() snapshotStage {
	if s.underWay == nil {
		return stageIdle
	}
	return s.underWay.stage
}

// A pageBase is the last snapshot, with which the next one shares pages. With the zero pageBase
// the next snapshot shares no pages, so it is a full one.
type pageBase struct {
	table snap.PageTable       // Page table of the snapshot.
	sums  snap.PageSums        // Page sums of the snapshot; nil means unknown.
	files map[uint32]namedFile // The files that table refers to.
}

// A namedFile is a snapshot file that contains pages of the table.
type namedFile struct {
	crc   uint32
	bytes int64
}

// A snapshotCopy is a snapshot under way.
type snapshotCopy struct {
	*snap.Snapshot
	lineage
	stage snapshotStage // stageCopying or stageWriting.
	pin   raw.Pin       // Reads the state while it is copied.
	ticks int           // Number of commits that have copied data.
	// Makes the records up to the snapshot durable. It runs before the file gets its name.
	beforePublish func(context.Context) error
	finished      chan finishedSnapshot // Receives the result of stageWriting.

	dirty snap.Dirty // Value of snapshotter.dirty to restore if the snapshot fails.
	since uint64     // Value of snapshotter.since to restore if the snapshot fails.

	replaces []uint32 // Numbers of the lost snapshots that this one replaces: see watch.
}

// A slotName is the name and the note of a slot. The zero slotName means a snapshot without a name.
type slotName struct{ name, note string }

// check returns an error if a slot cannot have that name or note.
func (n slotName) check() error {
	if err := format.CheckLabel(n.name); err != nil {
		return err
	}
	return format.CheckNote(n.note)
}

// A finishedSnapshot is the result of the snapshot's goroutine.
type finishedSnapshot struct {
	SnapshotResult
	*snapshotCopy
	table snap.PageTable
	crc   uint32

	// Describes the data kept after pruning; nil means that retention did not run.
	keeping *RetentionStatus
}

// A sharedFileError is the error of a snapshot that shares pages with an older file. That file is
// missing or has another size.
type sharedFileError struct{ error }

func (e sharedFileError) Unwrap() error { return e.error }

// Snapshot writes the present tick of the world, also after a rewind or a load, to a snapshot file.
// It waits for the file. Pages that an earlier file already holds are not written again. Snapshot
// returns [ErrUncommitted] if the world has uncommitted changes. If ctx has ended before the call,
// no snapshot begins. If ctx ends later, Snapshot returns the error of ctx and the snapshot
// continues.
func (s *Store) Snapshot(ctx context.Context) (SnapshotResult, error) {
	return s.snapshotNow(ctx, slotName{})
}

// BeginSnapshot begins a snapshot of the present tick, and does not wait. Later commits copy the
// snapshot at [Options.SnapshotPace], and a goroutine writes it. Snapshots that
// [Options.SnapshotBytes] begins are made in the same way. [Options.OnSnapshot] and [Store.Metrics]
// report the result. [SnapshotResult.Files] then lists the files to copy, for example to an object
// store. If another snapshot is under way, BeginSnapshot only returns false. See also
// [Store.BeginSlot].
//
// It returns [ErrUncommitted] if the world has uncommitted changes. Cost: O(storages).
func (s *Store) BeginSnapshot() (begun bool, err error) {
	if err := s.snapshotable(); err != nil {
		return false, err
	}
	if s.collectResult(); s.snapshotting() {
		return false, nil
	}
	err = s.beginAtPace(slotName{})
	return err == nil, err
}

// snapshotable returns an error unless a snapshot of the present tick can be taken. If the last
// ticks have no record yet, it journals them.
func (s *Store) snapshotable() error {
	switch {
	case s.closed:
		return ErrClosed
	case s.world.Raw().Dirty():
		return tooEarly(s.world.Raw(), "a snapshot or SaveSlot, unlike BeginSlot,")
	}
	if err := s.Err(); err != nil {
		return err
	}
	return s.recordDeferred()
}

// snapshotNow finishes the snapshot under way, if any, and takes another one of the present tick.
// The ticks of that snapshot are durable before its file gets its name.
func (s *Store) snapshotNow(ctx context.Context, name slotName) (SnapshotResult, error) {
	if err := ctx.Err(); err != nil {
		return SnapshotResult{}, err
	}
	if err := s.snapshotable(); err != nil {
		return SnapshotResult{}, err
	}
	if _, err := s.waitSnapshot(ctx); err != nil {
		return SnapshotResult{}, err
	}
	s.watch.look(s.files)
	r, err := s.snapshot(ctx, name, s.journal.Sync)
	if errors.Is(err, snap.ErrPagesShared) {
		// The failure cleared s.base, so the second attempt is a full snapshot.
		return s.snapshot(ctx, name, s.journal.Sync)
	}
	return r, err
}

// snapshot copies a whole snapshot at once and waits until it is written.
func (s *Store) snapshot(ctx context.Context, name slotName, beforePublish func(context.Context) error) (SnapshotResult, error) {
	if err := s.begin(name, beforePublish); err != nil {
		return SnapshotResult{}, err
	}
	r, err := s.waitSnapshot(ctx)
	if err == nil {
		err = r.Err
	}
	return r, err
}

// copyStep copies a tick's share of the snapshot under way. It runs before the tick is journaled,
// because a later copy would delay the writing of the tick.
func (s *Store) copyStep() {
	if s.stage() == stageCopying {
		start := time.Now()
		s.copySome(s.pace())
		s.observeStall(time.Since(start))
	}
}

// collectAndBegin adopts the result of a finished snapshot, and begins the next one if it is due.
func (s *Store) collectAndBegin() {
	s.collectResult()
	// A snapshot needs the record of its tick. So before a snapshot begins, journal the ticks that
	// wait for a record.
	if due := len(s.watch.missing()) > 0 || !s.snapshotting() && s.snapshotDue(); due && s.recordDeferred() != nil {
		return
	}
	s.beginAsked()
	switch lost := s.watch.missing(); {
	case len(lost) > 0:
		s.replaceLost(lost)
	case !s.snapshotting() && s.snapshotDue():
		_ = s.beginAtPace(slotName{}) // If it could not begin, the next tick tries again.
	}
}

// beginAsked begins the slots that BeginSlot requested for the tick that has just ended.
func (s *Store) beginAsked() {
	for _, n := range s.asked {
		_, _ = s.waitSnapshot(context.Background()) // Fails only if the context ends.
		if err := s.beginAtPace(n); err != nil && s.options.OnSnapshot != nil {
			s.options.OnSnapshot(SnapshotResult{Tick: s.world.Tick(), Slot: n.name, Err: fmt.Errorf("persist: slot %q: %w", n.name, err)})
		}
	}
	s.asked = s.asked[:0]
}

// beginAtPace begins a snapshot and copies the first share of it, as many bytes as a tick may copy.
// Later commits copy the rest.
func (s *Store) beginAtPace(name slotName) error {
	start := time.Now()
	if err := s.begin(name, s.journal.Sync); err != nil {
		return err
	}
	s.copySome(s.pace())
	s.observeStall(time.Since(start))
	return nil
}

// snapshotDue reports whether the journal has grown enough since the last snapshot began, or has
// many small segments.
func (s *Store) snapshotDue() bool {
	limit := s.snapshotBytes()
	return limit > 0 && (s.grown > limit || s.manySegments())
}

// snapshotBytes returns how far the journal may grow until a snapshot: see [Options.SnapshotBytes].
func (s *Store) snapshotBytes() int64 {
	if s.options.SnapshotBytes != 0 {
		return s.options.SnapshotBytes
	}
	due := max(minSnapshotBytes, 2*s.fullSize)
	if s.bound > 0 {
		due = min(due, max(share(s.bound), s.fullSize))
	}
	return due
}

// pace returns how many bytes a Commit copies now. The journal grows during a copy. With a bound,
// it may grow by one share of the bound until the copy ends. If only Last, Ticks or Age is set, it
// may grow by snapshotBytes.
func (s *Store) pace() int {
	pace := s.options.SnapshotPace
	switch {
	case pace < 0:
		return snap.Unlimited
	case pace == 0:
		pace = defaultPace
	}
	room := int64(0)
	switch {
	case s.bound > 0:
		room = share(s.bound)
	case s.options.Retain.asks():
		room = s.snapshotBytes()
	}
	if room > 0 {
		pace = max(pace, int(float64(s.fullSize)*float64(s.lastTick)/float64(room)))
	}
	return pace << min(20, s.paceBoost+s.underWay.ticks/hurryTicks)
}

// begin begins to copy the state of the present tick. Before the snapshot file gets its name,
// beforePublish makes the records up to the snapshot durable. Otherwise a crash could lose these
// records, and later ticks would get the same numbers. The snapshot would then seem to belong to
// the later ticks.
func (s *Store) begin(name slotName, beforePublish func(context.Context) error) error {
	lost := s.watch.missing()
	if err := s.dropLost(lost); err != nil {
		return err
	}
	pin, err := s.world.Raw().Pin()
	if err != nil {
		return err
	}
	base := snap.SnapshotBase{Table: s.base.table, Sums: s.base.sums, Dirty: s.dirty}
	base.Dirty.All = base.Dirty.All || s.seq() < s.since
	if s.needFullSnapshot() {
		base.Table, base.Sums = nil, nil
	}
	sn := snap.NewSnapshot(s.world, pin, s.schema, base, s.committed, &s.buffers)
	s.number++
	sn.Manifest.World, sn.Manifest.Number, sn.Manifest.ID = s.id, s.number, s.ids[s.seq()]
	sn.Manifest.Time, sn.Manifest.Name = s.committedAt, name.name
	sn.Manifest.SetNote(name.note)
	s.underWay = &snapshotCopy{
		Snapshot: sn, lineage: lineage{onHead: true}, stage: stageCopying, pin: pin, beforePublish: beforePublish,
		finished: make(chan finishedSnapshot, 1), dirty: base.Dirty, since: s.since, replaces: lost,
	}
	s.grown, s.behind, s.dirty, s.since = 0, 0, snap.Dirty{}, s.seq()
	s.begun()
	return nil
}

// needFullSnapshot reports whether the next snapshot must be a full one. There are four reasons:
//
//   - The last snapshot refers to too many files.
//   - More than half of the bytes in those files are unused.
//   - The last full snapshot is MaxChain snapshots ago.
//   - Retention requires a full snapshot.
//
// Older snapshots can be removed only when a newer one shares no file with them.
func (s *Store) needFullSnapshot() bool {
	var files, pages int64
	for _, f := range s.base.files {
		files += f.bytes
	}
	for _, p := range s.base.table {
		pages += int64(p.Size)
	}
	return len(s.base.files) > snap.MaxFiles || files > 2*pages+slackBytes || s.chain() >= snap.MaxChain || s.retentionNeedsFull()
}

// chain returns how many snapshots were made since the last full one.
func (s *snapshotter) chain() (n int) {
	for i := len(s.list) - 1; i >= 0 && len(s.list[i].Refs) > 0; i-- {
		n++
	}
	return n
}

// committed reports whether st belongs to the state of the last commit. A resource or component
// that was registered since then does not belong to it.
func (s *Store) committed(st raw.Storage) bool {
	_, numbered := s.schema.Numbers[st.Name()]
	return st.Persistent() && numbered && s.encoder.whole.has(st, s.seq())
}

// copySome copies about budget bytes of the snapshot, and starts to write the snapshot when the
// copy is complete.
func (s *Store) copySome(budget int) {
	c := s.underWay
	if !c.pin.Valid() {
		s.abandon()
		return
	}
	c.ticks++
	if c.Advance(c.pin, budget) {
		s.startWriting()
	}
}

// startWriting begins to write the copied snapshot in another goroutine. That goroutine gets copies
// of all data that the world's goroutine may change.
func (s *Store) startWriting() {
	c := s.underWay
	c.pin.Release()
	c.stage = stageWriting
	files, told, prune := s.files, s.options.OnSnapshot, s.mayPrune()
	shared := maps.Clone(s.base.files)
	from := past{list: slices.Clone(s.list), newest: c.Manifest.ID.Seq, oldest: s.oldestSeq(), small: s.smallSegment()}
	go func() {
		background.Enter()
		f := c.write(files, shared)
		if f.Err == nil {
			s.publish(&f, files, from, prune)
		} else {
			s.watch.look(files)       // The reason may be that files are missing.
			s.removeFailed(files, &f) // The file may have its final name without being durable.
		}
		s.ended(f.SnapshotResult, bytesAmong(from.list, f.Removed), f.keeping)
		if told != nil {
			told(f.SnapshotResult)
		}
		c.finished <- f
	}()
}

// publish lists the written snapshot f in the journal's note. If prune is set, it then removes the
// data that retention does not keep. The parameter from lists the snapshots that existed before f.
func (s *Store) publish(f *finishedSnapshot, files disk.FS, from past, prune bool) {
	older, p := from.list, pruning{}
	// During the pruning, the world may go back to any tick of its history. So the plan keeps the
	// base of the oldest of these ticks.
	from.list = withNewest(slices.Clone(older), f.stored(lineage{onHead: true}))
	if prune {
		from.journal = sizesOf(s.journal)
		p = s.options.Retain.plan(from, s.options.bound(from.largest()))
		f.keeping = &p.keeping
	}
	if f.Err = s.journal.KeepNote(p.promise(from.list)); f.Err == nil {
		s.watch.replaced(f.replaces)
		s.watch.expect(sizesByNumber(from.list, p.files...))
		f.Removed, f.RemoveErr = p.prune(files, s.journal, s.lock)
		journaled := s.journal.Stats()
		keepBallast(files, f.Bytes+journaled.Bytes, journaled.Ledger)
	} else if s.journal.Err() == nil && s.lock.Check() == nil {
		// KeepNote failed, but the note may be on the disk, and it lists f. So write the previous
		// note before the file of f is removed. Otherwise Open would report f as missing.
		if s.journal.KeepNote(new(pruning).promise(older)) == nil {
			s.removeFailed(files, f)
		}
	}
	if f.RemoveErr != nil && f.keeping != nil {
		f.keeping.Reason = removeFailed
	}
}

// removeFailed removes the file of the failed snapshot f, if it exists. If the file stayed, the
// next Open could list a slot whose saving failed.
func (s *Store) removeFailed(files disk.FS, f *finishedSnapshot) {
	if s.lock.Check() == nil && files.Remove(f.Name) == nil {
		_ = disk.SyncDir(files, catalog.SnapshotDir)
	}
}

// stored returns the store's entry for f.
func (f *finishedSnapshot) stored(of lineage) storedSnapshot {
	m := &f.Manifest
	info := catalog.SnapshotInfo{
		Number: m.Number, Tick: m.Tick, ID: m.ID, Time: m.Time, Label: m.Name, Given: m.Name, Note: m.Note(), Refs: m.Files, Schema: m.Schema,
		Size: f.Bytes, CRC: f.crc,
	}
	return storedSnapshot{SnapshotInfo: info, lineage: of}
}

// finishCopy copies all remaining data of the snapshot under way, if any, and starts to write it.
func (s *Store) finishCopy() {
	if s.stage() == stageCopying {
		s.copySome(snap.Unlimited)
	}
}

// abandon abandons the snapshot that is being copied. The next snapshot begins with the next commit
// and is copied faster.
func (s *Store) abandon() {
	c := s.underWay
	c.pin.Release()
	s.underWay = nil
	s.paceBoost++
	s.undo(c, s.snapshotBytes()+1)
	s.ended(c.result(ErrAbandoned), 0, nil)
	if s.options.OnSnapshot != nil {
		s.options.OnSnapshot(c.result(ErrAbandoned))
	}
}

// undo restores the change tracking from before the failed or abandoned snapshot c. So the next
// snapshot also writes the changes that c should have written. A snapshot is due when the journal
// has grown enough since the last one began. undo sets this growth to at least grown bytes.
func (s *Store) undo(c *snapshotCopy, grown int64) {
	c.dirty.Merge(&s.dirty)
	s.dirty, s.since = c.dirty, c.since
	s.grown = max(s.grown, grown)
	s.buffers.Put(&c.StateCopy)
}

func (c *snapshotCopy) result(err error) SnapshotResult {
	return SnapshotResult{Tick: c.Manifest.Tick, Slot: c.Manifest.Name, Name: catalog.SnapshotName(c.Manifest.Number), Lost: snapshotNames(c.replaces), Err: err}
}

// write writes c to a file. It runs in parallel with the program, so it may only access c and the
// files that contain its pages.
func (c *snapshotCopy) write(files disk.FS, shared map[uint32]namedFile) finishedSnapshot {
	f := finishedSnapshot{snapshotCopy: c, SnapshotResult: c.result(nil)}
	if err := c.Assemble(); err != nil {
		f.Err = fmt.Errorf("persist: snapshot of tick %d: %w", c.Manifest.Tick, err)
		return f
	}
	f.Shared, f.Written = c.Snapshot.Shared()
	crcs := make(map[uint32]uint32, len(shared))
	for number, n := range shared {
		crcs[number] = n.crc
	}
	c.Manifest.Files = c.References(crcs)
	if err := missing(files, c.Manifest.Files, shared); err != nil {
		f.Err = fmt.Errorf("persist: snapshot of tick %d: %w", c.Manifest.Tick, sharedFileError{err})
		return f
	}
	info, table, err := c.Write(files, f.Name, func() error { return c.beforePublish(context.Background()) })
	f.Bytes, f.crc, f.table, f.Err = info.Size, info.CRC, table, err
	if err == nil {
		f.Files = []string{f.Name}
		for _, r := range c.Manifest.Files {
			f.Files = append(f.Files, catalog.SnapshotName(r.Number))
		}
	}
	return f
}

// missing returns an error if a file that a snapshot refers to is missing or has another size.
func missing(files disk.FS, refs []format.FileRef, named map[uint32]namedFile) error {
	for _, r := range refs {
		name := catalog.SnapshotName(r.Number)
		f, err := files.Open(name)
		if err != nil {
			return fmt.Errorf("%s, which it shares pages with, is missing: %w", name, err)
		}
		size, err := f.Size()
		f.Close()
		if err == nil && size != named[r.Number].bytes {
			err = fmt.Errorf("%s, which it shares pages with, has %d bytes instead of %d: %w", name, size, named[r.Number].bytes, ErrCorrupt)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// collectResult adopts the result of the snapshot being written, if it has ended.
func (s *Store) collectResult() {
	if s.stage() != stageWriting {
		return
	}
	select {
	case f := <-s.underWay.finished:
		s.adoptResult(&f)
	default:
	}
}

// waitSnapshot copies the rest of the snapshot under way, if any, and waits until it is written.
func (s *Store) waitSnapshot(ctx context.Context) (SnapshotResult, error) {
	s.finishCopy()
	if s.stage() != stageWriting {
		return SnapshotResult{}, nil
	}
	select {
	case f := <-s.underWay.finished:
		s.adoptResult(&f)
		return f.SnapshotResult, nil
	case <-ctx.Done():
		return SnapshotResult{}, ctx.Err()
	}
}

// snapshotting reports whether a snapshot is under way.
func (s *Store) snapshotting() bool { return s.stage() != stageIdle }

// adoptResult ends the snapshot under way. If that snapshot succeeded, the next one shares pages
// with it.
func (s *Store) adoptResult(f *finishedSnapshot) {
	s.underWay = nil
	if f.Err != nil {
		_, fileLost := errors.AsType[sharedFileError](f.Err)
		tooLarge := errors.Is(f.Err, snap.ErrPagesShared)
		again := s.snapshotBytes() / 2 // Try again after half of the usual growth.
		if tooLarge {
			again = s.snapshotBytes() + 1
		}
		s.undo(f.snapshotCopy, again)
		if fileLost || tooLarge {
			s.base = pageBase{}
		}
		if len(f.replaces) > 0 {
			s.fail(lostError(f.replaces, f.Err))
		}
		return
	}
	s.paceBoost = 0
	if pages := f.snapshotCopy.Bytes; f.Shared == 0 && pages > 0 {
		s.fullSize = pages
	}
	shared := map[uint32]namedFile{f.Manifest.Number: {f.crc, f.Bytes}}
	for _, r := range f.Manifest.Files {
		shared[r.Number] = s.base.files[r.Number]
	}
	s.base = pageBase{f.table, f.snapshotCopy.Sums, shared}
	s.list = withNewest(s.list, f.stored(f.lineage))
	s.buffers.Put(&f.StateCopy)
	s.forget(f.Removed, f.keeping)
}
