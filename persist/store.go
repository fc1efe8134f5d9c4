package persist

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/disk"
	"github.com/stet-ecs/stet/journal"
)

// Options say how a store is written. The zero Options are useful.
type Options struct {
	// Sync says when the journal is synced to disk. Default: 100 ms after the
	// first tick that is not durable yet. journal.SyncAlways() after every tick,
	// journal.SyncNever() only at Sync, Snapshot and Close.
	Sync journal.SyncPolicy

	// SnapshotBytes is how far the journal may grow before Commit begins a
	// snapshot. Default: as many bytes as the last full snapshot has, and at least
	// 1 MiB, so that recovery reads at most about twice what the world holds.
	// Negative: Commit begins none.
	SnapshotBytes int64

	// OnDurable is called when a tick has become durable, in the order of commits,
	// by the journal's goroutine. It must not block. nil: nothing is called.
	OnDurable func(tick uint64)

	// OnSnapshot is called when a snapshot is finished or has failed, by the
	// snapshot's goroutine. A failed snapshot does not fail the store; the next
	// one is tried when it is due. nil: nothing is called.
	OnSnapshot func(SnapshotResult)

	// Now is the clock of ticks. It may go backwards. Default: time.Now.
	Now func() time.Time

	segmentSize int64 // Of the journal. 0: its default; less in tests.
}

const minSnapshotBytes = 1 << 20

// SnapshotResult tells how a snapshot ended.
type SnapshotResult struct {
	Tick    uint64
	Name    string // Of the file, relative to the store's directory.
	Written int    // Pages written,
	Shared  int    // and pages that other files hold already.
	Bytes   int64  // Size of the file.
	Err     error
}

// A Store keeps a world in a directory: every tick in a journal, and now and then
// a snapshot of it all.
//
// Its methods belong to the goroutine of the world.
type Store struct {
	world   *ecs.World
	options Options
	files   disk.FS
	lock    *lock // nil: nobody else can know the files.
	report  Report
	closed  bool

	id        [16]byte // Of the world.
	head      uint64   // The record that Open recovered.
	schema    *schema
	announced int // Components that the journal's preambles describe.
	journal   *journal.Journal
	failed    error // Why a tick could not be handed to it.
	encoder   *tickEncoder
	ids       map[uint64]journal.ID // By seq, as far back as the history reaches.

	mu      sync.Mutex
	pending []pendingTick // Not known to be durable, by seq.

	grown    int64 // Journal bytes since the last snapshot began.
	number   uint32
	table    pageTable         // Of the last snapshot.
	crcs     map[uint32]uint32 // Of the files in table.
	fullSize int64             // Bytes of pages in the last full snapshot.
	running  chan finished     // The snapshot under way, or nil.
}

type pendingTick struct{ seq, tick uint64 }

// A finished snapshot is what its goroutine leaves behind.
type finished struct {
	SnapshotResult
	number uint32
	crc    uint32
	table  pageTable
	full   int64 // Bytes of its pages if it refers to no other file, else 0.
}

// Report returns what Open found.
func (s *Store) Report() Report { return s.report }

// Commit ends the tick: [ecs.World.Commit], which hands what changed to the
// journal. It does not wait for the disk; see [Options.Sync] and [Store.Sync].
//
// Once the journal has failed, every Commit returns why. The world goes on in
// memory; what was durable stays.
func (s *Store) Commit() error {
	if s.closed {
		return ErrClosed
	}
	s.world.Commit()
	if err := s.Err(); err != nil {
		return err
	}
	s.collect(false)
	if s.running == nil && s.snapshotDue() {
		s.begin(s.syncing(context.Background()))
	}
	return nil
}

// Err returns why the journal failed, or nil.
func (s *Store) Err() error {
	err := s.failed
	if e := s.journal.Err(); err == nil && !errors.Is(e, journal.ErrClosed) {
		err = e
	}
	if err != nil {
		return fmt.Errorf("persist: journal failed, nothing later is saved: %w", err)
	}
	return nil
}

// Record encodes a tick into the journal. [ecs.World.Commit] calls it.
func (s *Store) Record(c *ecs.Change) uint64 {
	if s.failed != nil {
		return c.Parent
	}
	s.encoder.seq = s.journal.Next()
	payload := s.encoder.encode(s.journal.Buffer(), c, s.ids[c.Parent], s.options.Now())
	if n := len(s.schema.components); n != s.announced {
		if s.failed = s.journal.AppendPreamble(s.schema.encode()); s.failed != nil {
			return c.Parent // Err tells.
		}
		s.announced = n
	}
	size := int64(len(payload))
	s.await(s.journal.Next(), c.Tick)
	id, err := s.journal.Append(c.Parent, c.Tick, 0, payload)
	if s.failed = err; err != nil {
		return c.Parent
	}
	s.grown += size
	s.remember(id)
	return id.Seq
}

// remember keeps id for as long as the history can go back to it.
func (s *Store) remember(id journal.ID) {
	s.ids[id.Seq] = id
	if len(s.ids)%1024 == 0 {
		oldest := s.world.OldestMark()
		for seq := range s.ids {
			if seq < oldest {
				delete(s.ids, seq)
			}
		}
	}
}

// await notes a tick that OnDurable is to be told.
func (s *Store) await(seq, tick uint64) {
	if s.options.OnDurable == nil {
		return
	}
	s.mu.Lock()
	s.pending = append(s.pending, pendingTick{seq, tick})
	s.mu.Unlock()
}

// durable tells OnDurable the ticks up to seq. The journal calls it.
func (s *Store) durable(seq uint64) {
	s.mu.Lock()
	n := 0
	for n < len(s.pending) && s.pending[n].seq <= seq {
		n++
	}
	ticks := append([]pendingTick(nil), s.pending[:n]...)
	s.pending = append(s.pending[:0], s.pending[n:]...)
	s.mu.Unlock()
	for _, p := range ticks {
		s.options.OnDurable(p.tick)
	}
}

// Sync waits until all ticks committed so far are durable: they survive any
// crash.
func (s *Store) Sync(ctx context.Context) error {
	if s.closed {
		return ErrClosed
	}
	if err := s.Err(); err != nil {
		return err
	}
	return s.journal.Sync(ctx)
}

// Snapshot writes the state of the last commit to a snapshot file and waits for
// it. Pages that an earlier file holds already are not written again. It returns
// [ErrUncommitted] if the world was changed since the commit.
func (s *Store) Snapshot(ctx context.Context) (SnapshotResult, error) {
	if s.closed {
		return SnapshotResult{}, ErrClosed
	}
	if s.world.Dirty() {
		return SnapshotResult{}, ErrUncommitted
	}
	if err := s.Err(); err != nil {
		return SnapshotResult{}, err
	}
	s.collect(true)
	s.begin(s.syncing(ctx))
	r := s.collect(true)
	return r, r.Err
}

func (s *Store) snapshotDue() bool {
	limit := s.snapshotBytes()
	return limit > 0 && s.grown > limit
}

// snapshotBytes resolves [Options.SnapshotBytes].
func (s *Store) snapshotBytes() int64 {
	if s.options.SnapshotBytes == 0 {
		return max(minSnapshotBytes, s.fullSize)
	}
	return s.options.SnapshotBytes
}

// syncing returns what must be done before a snapshot is published: it must not
// outlive the journal that leads to it, or it would fit on a later, foreign
// history.
func (s *Store) syncing(ctx context.Context) func() error {
	return func() error { return s.journal.Sync(ctx) }
}

// begin takes a snapshot and hands it to a goroutine that writes it, and
// publishes it if beforePublish returns nil.
func (s *Store) begin(beforePublish func() error) {
	previous := s.table
	if len(s.crcs) > maxFiles {
		previous = nil
	}
	s.number++
	s.grown = 0
	sn := takeSnapshot(s.world, s.schema, s.ids[s.world.Mark()], s.number, previous, s.committed)
	sn.manifest.world = s.id
	sn.manifest.files = sn.references(s.crcs)
	s.running = make(chan finished, 1)
	go func(done chan<- finished, told func(SnapshotResult)) {
		f := finish(s.files, sn, beforePublish)
		if told != nil {
			told(f.SnapshotResult)
		}
		done <- f
	}(s.running, s.options.OnSnapshot)
}

// committed reports whether st belongs to the state of the last commit: a
// resource or component registered since does not.
func (s *Store) committed(st ecs.AnyStorage) bool {
	_, numbered := s.schema.numbers[st.Name()]
	return st.Persistent() && numbered && s.encoder.whole.has(st, s.world.Mark())
}

// finish writes sn.
func finish(files disk.FS, sn *snapshot, beforePublish func() error) finished {
	f := finished{number: sn.manifest.number, SnapshotResult: SnapshotResult{
		Tick: sn.manifest.tick, Name: snapshotName(sn.manifest.number),
	}}
	for _, p := range sn.pages {
		if p.content == nil {
			f.Shared++
		} else {
			f.Written++
		}
	}
	if f.Shared == 0 {
		f.full = sn.bytes
	}
	info, table, err := sn.write(files, f.Name, beforePublish)
	f.Bytes, f.crc, f.table, f.Err = info.Size, info.CRC, table, err
	return f
}

// collect takes over what a finished snapshot leaves behind. It waits for one
// under way if told to.
func (s *Store) collect(wait bool) SnapshotResult {
	if s.running == nil {
		return SnapshotResult{}
	}
	var f finished
	if wait {
		f = <-s.running
	} else {
		select {
		case f = <-s.running:
		default:
			return SnapshotResult{}
		}
	}
	s.running = nil
	if f.Err != nil {
		s.grown = max(s.grown, s.snapshotBytes()/2) // Try again, but not at once.
		return f.SnapshotResult
	}
	if f.full > 0 {
		s.fullSize = f.full
	}
	crcs := map[uint32]uint32{f.number: f.crc}
	for _, p := range f.table {
		if crc, ok := s.crcs[p.file]; ok && p.file != f.number {
			crcs[p.file] = crc
		}
	}
	s.table, s.crcs = f.table, crcs
	return f.SnapshotResult
}

// Close makes everything that was committed durable, seals the journal at the
// present tick and lets go of the directory. Changes since the last commit are
// not saved. The world stays usable and loses its history.
//
// It returns the first error of the journal, if any. While a checkpoint is held
// it returns [ecs.ErrCheckpointHeld], and the store stays open. If ctx ends
// first, it returns its error and closing goes on; the directory stays locked
// until it is done.
func (s *Store) Close(ctx context.Context) error {
	if s.closed {
		return ErrClosed
	}
	head := s.world.Mark()
	if err := s.world.Attach(nil, 0); err != nil {
		return err
	}
	s.closed = true
	done := make(chan error, 1)
	go func() { done <- s.seal(head) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// seal closes everything once what is under way is finished.
func (s *Store) seal(head uint64) error {
	s.collect(true)
	err := s.journal.Close(context.Background(), head)
	if e := s.failed; err == nil {
		err = e
	}
	if e := s.lock.release(err == nil); err == nil {
		err = e
	}
	if e := s.files.Close(); err == nil {
		err = e
	}
	return err
}
