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

	// slackBytes is how much of the files of a small world may be unnamed.
	slackBytes = 1 << 20

	// hurryTicks is how many ticks a copy may take before its pace is doubled.
	hurryTicks = 256
)

// ErrAbandoned reports a snapshot that was given up, as the world went back to
// before its tick while it was copied.
var ErrAbandoned = errors.New("persist: snapshot abandoned: the world went back to before it")

// SnapshotResult tells how a snapshot ended.
type SnapshotResult struct {
	Tick    uint64
	Name    string // Of the file, relative to the store's directory.
	Written int    // Pages written,
	Shared  int    // and pages that other files hold already. Those that repeat one of the pages written are neither.
	Bytes   int64  // Size of the file.
	Err     error

	// Files are those that it takes to read the snapshot, relative to the store's directory: its
	// own, first, and those it shares pages with, which stay as long as it does. Brought elsewhere
	// under these names, the first is a save: for [Load], package inspect, ecsdump.
	Files []string

	// Removed are the files that nobody needs any longer and that are gone, and
	// RemoveErr why no more are. See [Retention].
	Removed   []string
	RemoveErr error

	// Lost are the files of older snapshots that another program removed or cut short while the
	// store was open. This snapshot is a full one, which replaces them.
	Lost []string
}

// A snapshotter makes the snapshots of a store:
//
//	Commit   | begin | copy some | copy some | ... | hand over |
//	               `---- a raw.Pin reads the tick -----'  |
//	goroutine                                             pages, file, sync, name
//
// One is under way at a time.
type snapshotter struct {
	grown    int64 // Journal bytes since the last snapshot began.
	behind   int   // Small segments behind the last snapshot when the store was opened. 0 once another one began.
	lastTick int64 // Those of the last tick.
	number   uint32
	table    snap.PageTable       // Of the last snapshot,
	sums     snap.PageSums        // and its sums; nil: not known.
	named    map[uint32]namedFile // The files that table names.
	fullSize int64                // Bytes of pages in the last full snapshot.

	dirty snap.Dirty // What changed
	since uint64     // since this record, which the last snapshot was begun at.

	copying *copying      // The snapshot that is copied, or nil.
	running chan finished // The snapshot that is written, or nil:
	handed  *copying      // this one.
	hurry   int           // How often the pace is doubled.
	buffers snap.BufferList

	committedAt time.Time // When the last tick was, by the clock of the store; zero: not known.

	list    []storedSnapshot // The snapshots of the store, oldest first.
	damaged bool             // Something was damaged when it was opened: remove nothing.
	watch   watch
	bounding
}

// A namedFile is a snapshot file that pages lie in.
type namedFile struct {
	crc   uint32
	bytes int64
}

// A copying is a snapshot that is being copied.
type copying struct {
	*snap.Snapshot
	pin     raw.Pin
	base    snap.SnapshotBase // To go back to if it fails.
	since   uint64
	ticks   int // Commits that have copied.
	done    func(context.Context) error
	offHead bool   // The world went back to before it and on from there.
	next    uint64 // As in what the store will know of it.

	replaces []uint32 // Numbers of lost snapshots: see watch.
}

// A finished snapshot is what its goroutine leaves behind.
type finished struct {
	SnapshotResult
	*copying
	table snap.PageTable
	crc   uint32
	full  int64 // Bytes of its pages if it refers to no other file, else 0.
	alone bool  // The next snapshot must be a full one: a file is missing, or pages need fewer rows.

	keeping *Keeping // What is kept since; nil: nothing was decided.
}

// Snapshot writes the state of the last commit to a snapshot file and waits for
// it. Pages that an earlier file holds already are not written again. If ctx ends
// first, it returns its error, and the snapshot goes on; if it has ended already,
// none is begun. It returns
// [ErrUncommitted] if the world was changed since the commit.
func (s *Store) Snapshot(ctx context.Context) (SnapshotResult, error) { return s.snapshotNow(ctx, "") }

// SnapshotAs takes a snapshot, as [Store.Snapshot] does, and gives it a name: it stays
// whatever [Options.Retain] says, and "snap:NAME" is a point in time, see
// inspect.View.Resolve.
//
// A name has at most 255 bytes, all of which can be seen, and is not a number; an
// error wraps [ErrName] if it is another one, or if a snapshot has it already.
func (s *Store) SnapshotAs(ctx context.Context, name string) (SnapshotResult, error) {
	if err := s.nameable(name); err != nil {
		return SnapshotResult{}, err
	}
	return s.snapshotNow(ctx, name)
}

// BeginSnapshot begins a snapshot of the last commit, of that name or of none if it is "", and
// waits for nothing: as one that [Options.SnapshotBytes] begins, it is copied by the commits
// that follow, at [Options.SnapshotPace], and written beside them. [Options.OnSnapshot] and
// [Store.Metrics] tell how it ended, and [SnapshotResult.Files] what there is to copy then: to an object
// store, say. While another one is under way, it begins none and reports false.
//
// Errors are those of [Store.SnapshotAs]. Cost: O(storages).
func (s *Store) BeginSnapshot(name string) (begun bool, err error) {
	if name != "" {
		if err := s.nameable(name); err != nil {
			return false, err
		}
	}
	if err := s.snapshotable(); err != nil {
		return false, err
	}
	if s.collect(); s.snapshotting() {
		return false, nil
	}
	err = s.beginAtPace(name)
	return err == nil, err
}

// nameable returns an error unless a snapshot can have that name.
func (s *Store) nameable(name string) error {
	if err := format.CheckLabel(name); err != nil {
		return err
	}
	return s.free(name)
}

// snapshotable returns an error unless a snapshot of the last commit can be taken.
func (s *Store) snapshotable() error {
	switch {
	case s.closed:
		return ErrClosed
	case s.world.Raw().Dirty():
		return ErrUncommitted
	}
	return s.Err()
}

// snapshotNow finishes the snapshot under way, if any, and takes another one of the last
// commit. Its ticks are durable before it has its name.
func (s *Store) snapshotNow(ctx context.Context, name string) (SnapshotResult, error) {
	if err := ctx.Err(); err != nil {
		return SnapshotResult{}, err
	}
	if err := s.snapshotable(); err != nil {
		return SnapshotResult{}, err
	}
	s.hand()
	if _, err := s.written(ctx); err != nil {
		return SnapshotResult{}, err
	}
	s.watch.look(s.files)
	r, err := s.snapshot(ctx, name, s.journal.Sync)
	if errors.Is(err, snap.ErrPagesShared) {
		return s.snapshot(ctx, name, s.journal.Sync) // It is a full one.
	}
	return r, err
}

// snapshot takes a snapshot in one go and waits for it.
func (s *Store) snapshot(ctx context.Context, name string, beforePublish func(context.Context) error) (SnapshotResult, error) {
	if err := s.begin(name, beforePublish); err != nil {
		return SnapshotResult{}, err
	}
	s.hand()
	r, err := s.written(ctx)
	if err == nil {
		err = r.Err
	}
	return r, err
}

// goOn copies a tick's share of the snapshot under way, before the tick is
// journaled: what is done after that competes with its way to the disk.
func (s *Store) goOn() {
	if s.copying != nil {
		start := time.Now()
		s.copySome(s.pace())
		s.stalled(time.Since(start))
	}
}

// collectAndBegin takes over what a finished snapshot leaves behind, and begins
// one if it is time. It does a little after each tick.
func (s *Store) collectAndBegin() {
	s.collect()
	switch lost := s.watch.missing(); {
	case len(lost) > 0:
		s.replaceLost(lost)
	case !s.snapshotting() && s.snapshotDue():
		_ = s.beginAtPace("") // If there was nothing to begin at, the next tick tries again.
	}
}

// beginAtPace begins a snapshot and copies a tick's share of it, of which nothing need be
// saved, as no row was written since. The commits that follow copy the rest.
func (s *Store) beginAtPace(name string) error {
	start := time.Now()
	if err := s.begin(name, s.journal.Sync); err != nil {
		return err
	}
	s.copySome(s.pace())
	s.stalled(time.Since(start))
	return nil
}

// snapshotDue reports whether the journal has grown enough since the last snapshot began.
func (s *Store) snapshotDue() bool {
	limit := s.snapshotBytes()
	return limit > 0 && (s.grown > limit || s.manySegments())
}

// snapshotBytes resolves [Options.SnapshotBytes].
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

// pace returns how many bytes a Commit copies now. Where the past is limited, they are as
// many as it takes for the copy to be complete before the ticks meanwhile have journaled
// what lies between two snapshots, or a share of the bound: half as many as the tick
// journals, unless the bound is small.
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
	return pace << min(20, s.hurry+s.copying.ticks/hurryTicks)
}

// begin begins to copy the present state, which is that of the last commit.
// beforePublish is what must be done before the snapshot gets its name: it must
// not outlive the journal that leads to it, or it would fit on a later, foreign
// history.
func (s *Store) begin(name string, beforePublish func(context.Context) error) error {
	lost := s.watch.missing()
	if err := s.dropLost(lost); err != nil {
		return err
	}
	pin, err := s.world.Raw().Pin()
	if err != nil {
		return err
	}
	base := snap.SnapshotBase{Table: s.table, Sums: s.sums, Dirty: s.dirty}
	base.Dirty.All = base.Dirty.All || s.seq() < s.since
	if s.chainDone() {
		base.Table, base.Sums = nil, nil
	}
	sn := snap.NewSnapshot(s.world, pin, s.schema, base, s.committed, &s.buffers)
	s.number++
	sn.Manifest.World, sn.Manifest.Number, sn.Manifest.ID = s.id, s.number, s.ids[s.seq()]
	sn.Manifest.Time, sn.Manifest.Name = s.committedAt, name
	s.copying = &copying{Snapshot: sn, pin: pin, base: base, since: s.since, done: beforePublish, replaces: lost}
	s.grown, s.behind, s.dirty, s.since = 0, 0, snap.Dirty{}, s.seq()
	s.begun()
	return nil
}

// chainDone reports whether the next snapshot is to be a full one: the last one
// refers to many files, or to files most of which nobody needs, or the last full
// one is long ago, or what must stay is too much: only what shares no file with it
// lets the older ones go.
func (s *Store) chainDone() bool {
	var files, pages int64
	for _, f := range s.named {
		files += f.bytes
	}
	for _, p := range s.table {
		pages += int64(p.Size)
	}
	return len(s.named) > snap.MaxFiles || files > 2*pages+slackBytes || s.chain() >= snap.MaxChain || s.crowded()
}

// chain returns how many snapshots were made since the last full one.
func (s *snapshotter) chain() (n int) {
	for i := len(s.list) - 1; i >= 0 && len(s.list[i].Refs) > 0; i-- {
		n++
	}
	return n
}

// committed reports whether st belongs to the state of the last commit: a
// resource or component registered since does not.
func (s *Store) committed(st raw.Storage) bool {
	_, numbered := s.schema.Numbers[st.Name()]
	return st.Persistent() && numbered && s.encoder.whole.has(st, s.seq())
}

// copySome copies about that many bytes, and hands the snapshot over if that was
// all.
func (s *Store) copySome(budget int) {
	c := s.copying
	if !c.pin.Valid() {
		s.abandon()
		return
	}
	c.ticks++
	if !c.Advance(c.pin, budget) {
		return
	}
	c.pin.Release()
	s.copying = nil
	s.running = make(chan finished, 1)
	s.handed = c
	list, oldest, named, small := slices.Clone(s.list), s.oldestSeq(), maps.Clone(s.named), s.smallSegment()
	prune := s.mayPrune()
	go func(files disk.FS, done chan<- finished, told func(SnapshotResult)) {
		background.Enter()
		f := c.finish(files, named)
		if f.Err == nil {
			written, p := c.stored(true), pruning{}
			written.Size, written.CRC = f.Bytes, f.crc
			list = append(list, written)
			if prune {
				// Should the world go back to before c meanwhile, what leads to the oldest
				// tick of its history is there.
				from := past{list, written.ID.Seq, oldest, sizesOf(s.journal), small}
				p = s.options.Retain.plan(from, s.options.bound(from.largest()))
				f.keeping = &p.keeping
			}
			if f.Err = s.journal.KeepNote(p.promise(list)); f.Err == nil {
				s.watch.replaced(c.replaces)
				s.watch.expect(sizesByNumber(list, p.files...))
				f.Removed, f.RemoveErr = p.prune(files, s.journal, s.lock)
				journaled := s.journal.Stats()
				keepBallast(files, f.Bytes+journaled.Bytes, journaled.Ledger)
			} else if s.journal.Err() == nil && s.lock.Check() == nil {
				// The note may be on the disk though writing it failed: a note without the snapshot
				// comes first, or the snapshot would be missed.
				if s.journal.KeepNote(new(pruning).promise(list[:len(list)-1])) == nil {
					_ = files.Remove(catalog.SnapshotName(written.Number))
				}
			}
			if f.RemoveErr != nil && f.keeping != nil {
				f.keeping.Reason = removeFailed
			}
		} else {
			s.watch.look(files) // Lost files may be the reason.
		}
		s.ended(f.SnapshotResult, bytesAmong(list, f.Removed), f.keeping)
		if told != nil {
			told(f.SnapshotResult)
		}
		done <- f
	}(s.files, s.running, s.options.OnSnapshot)
}

// stored returns what the store will know of c.
func (c *copying) stored(onHead bool) storedSnapshot {
	m := &c.Manifest
	info := catalog.SnapshotInfo{Number: m.Number, Tick: m.Tick, ID: m.ID, Time: m.Time, Label: m.Name, Refs: m.Files, Schema: m.Schema}
	return storedSnapshot{SnapshotInfo: info, onHead: onHead}
}

// hand copies all that is left of the snapshot under way, if any, and hands it
// over.
func (s *Store) hand() {
	if s.copying != nil {
		s.copySome(snap.Unlimited)
	}
}

// abandon gives up the snapshot under way. The next one begins with the next
// commit, and is copied faster.
func (s *Store) abandon() {
	c := s.copying
	c.pin.Release()
	s.copying = nil
	s.hurry++
	s.undo(c, s.snapshotBytes()+1)
	s.ended(c.result(ErrAbandoned), 0, nil)
	if s.options.OnSnapshot != nil {
		s.options.OnSnapshot(c.result(ErrAbandoned))
	}
}

// undo makes the next snapshot one of all that changed since the one before c. It
// counts grown bytes of journal as written already.
func (s *Store) undo(c *copying, grown int64) {
	c.base.Dirty.Merge(&s.dirty)
	s.dirty, s.since = c.base.Dirty, c.since
	s.grown = max(s.grown, grown)
	s.buffers.Put(&c.StateCopy)
}

func (c *copying) result(err error) SnapshotResult {
	return SnapshotResult{Tick: c.Manifest.Tick, Name: catalog.SnapshotName(c.Manifest.Number), Lost: snapshotNames(c.replaces), Err: err}
}

// finish writes c. It runs beside the program: c and the files that its pages lie in are
// all that it may look at.
func (c *copying) finish(files disk.FS, named map[uint32]namedFile) finished {
	f := finished{copying: c, SnapshotResult: c.result(nil)}
	if err := c.Assemble(); err != nil {
		f.Err, f.alone = fmt.Errorf("persist: snapshot of tick %d: %w", c.Manifest.Tick, err), errors.Is(err, snap.ErrPagesShared)
		return f
	}
	f.Shared, f.Written = c.Snapshot.Shared()
	if f.Shared == 0 {
		f.full = c.Bytes
	}
	crcs := make(map[uint32]uint32, len(named))
	for number, n := range named {
		crcs[number] = n.crc
	}
	c.Manifest.Files = c.References(crcs)
	if err := missing(files, c.Manifest.Files, named); err != nil {
		f.Err, f.alone = fmt.Errorf("persist: snapshot of tick %d: %w", c.Manifest.Tick, err), true
		return f
	}
	info, table, err := c.Write(files, f.Name, func() error { return c.done(context.Background()) })
	f.Bytes, f.crc, f.table, f.Err = info.Size, info.CRC, table, err
	if err == nil {
		f.Files = []string{f.Name}
		for _, r := range c.Manifest.Files {
			f.Files = append(f.Files, catalog.SnapshotName(r.Number))
		}
	}
	return f
}

// missing returns an error if one of the files that a snapshot is to refer to is not
// there as it was.
func missing(files disk.FS, refs []format.FileRef, named map[uint32]namedFile) error {
	for _, r := range refs {
		name := catalog.SnapshotName(r.Number)
		f, err := files.Open(name)
		if err != nil {
			return fmt.Errorf("%s, which it shares pages with, is gone: %w", name, err)
		}
		size, err := f.Size()
		f.Close()
		if err == nil && size != named[r.Number].bytes {
			err = fmt.Errorf("%s, which it shares pages with, has %d bytes, not %d as it had: %w", name, size, named[r.Number].bytes, ErrCorrupt)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// collect takes over what a finished snapshot leaves behind, if one has finished.
func (s *Store) collect() {
	select {
	case f := <-s.running:
		s.take(&f)
	default:
	}
}

// written waits for the snapshot that is written, if any.
func (s *Store) written(ctx context.Context) (SnapshotResult, error) {
	if s.running == nil {
		return SnapshotResult{}, nil
	}
	select {
	case f := <-s.running:
		s.take(&f)
		return f.SnapshotResult, nil
	case <-ctx.Done():
		return SnapshotResult{}, ctx.Err()
	}
}

// settle finishes the snapshot under way, if any.
func (s *Store) settle() SnapshotResult {
	s.hand()
	r, _ := s.written(context.Background())
	return r
}

// snapshotting reports whether a snapshot is under way.
func (s *Store) snapshotting() bool { return s.copying != nil || s.running != nil }

// take takes over what a finished snapshot leaves behind.
func (s *Store) take(f *finished) {
	s.running, s.handed = nil, nil
	if f.Err != nil {
		again := s.snapshotBytes() / 2 // Not at once.
		if errors.Is(f.Err, snap.ErrPagesShared) {
			again = s.snapshotBytes() + 1
		}
		s.undo(f.copying, again)
		if f.alone {
			s.table, s.sums, s.named = nil, nil, nil
		}
		if len(f.replaces) > 0 {
			s.fail(lostError(f.replaces, f.Err))
		}
		return
	}
	s.hurry = 0
	if f.full > 0 {
		s.fullSize = f.full
	}
	named := map[uint32]namedFile{f.Manifest.Number: {f.crc, f.Bytes}}
	for _, r := range f.Manifest.Files {
		named[r.Number] = s.named[r.Number]
	}
	s.table, s.sums, s.named = f.table, f.copying.Sums, named
	written := f.stored(!f.offHead)
	written.Size, written.CRC, written.next = f.Bytes, f.crc, f.next
	s.list = append(s.list, written)
	s.buffers.Put(&f.StateCopy)
	s.forget(f.Removed, f.keeping)
}
