package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/journal/budget"
)

// A Journal appends records. Append puts records into a queue. A writer goroutine writes the queued
// records to the file, in batches if they arrive fast.
//
// A failed Journal stays failed: after the first failed write or fsync, every call returns that
// error and nothing more is written. The writer never retries an fsync: after a failed fsync, the
// system may report lost bytes as durable.
//
// All methods may be called from several goroutines.
type Journal struct {
	fs    disk.FS
	opt   Options
	epoch uint64

	durable atomic.Uint64 // Highest seq that an fsync covered.

	ledger *ledgerWriter // Nil if the journal has version 1.

	wake chan struct{} // Holds one token while the writer has work.
	done chan struct{} // Closed when the writer has returned.

	pruning sync.Mutex // Held during one Prune.

	mu       sync.Mutex
	space    sync.Cond     // Signalled when the queue becomes shorter, and on failure.
	progress chan struct{} // Closed at the next fsync or failure. Nil if no goroutine waits.

	share  *budget.Share // Share of Options.Budget. Nil without a budget.
	queue  []item
	batch  []item // The items that the writer took last. It swaps queue and batch.
	queued int64  // Bytes in queue and batch, headers included.
	// Set if the next record may enter the queue even if the queue is full. That is so after a
	// preamble, and after Reserve has returned true.
	opened bool
	free   [][]byte // Recycled payload buffers.
	freed  int64    // Bytes of the free buffers.
	unused int      // Smallest number of free buffers since the last trim.
	most   int      // Largest number of queued items since the last trim.

	next     uint64 // Seq of the next record.
	size     int64  // Maximum size of the current segment after all queued items are written.
	segments []segmentRef
	counted  Stats // Counters that Stats returns.

	appended uint64 // Number of items ever queued.
	synced   uint64 // Number of items that an fsync covered.
	wantSync bool
	closing  bool
	unsealed bool   // Set by Abandon: the writer writes no seal.
	head     uint64 // Head for the seal; valid once closing is set.
	err      error  // The first error. Every later call returns it.
}

// A segmentRef describes one segment for [Journal.Prune].
type segmentRef struct {
	number uint64
	first  uint64 // Seq of the first record. 0 if the header cannot be read.
	size   int64  // File size. Set once the segment is complete.
}

// An item is one entry of the queue.
type item struct {
	kind    itemKind
	header  header
	payload []byte
}

type itemKind uint8

const (
	itemRecord itemKind = iota
	itemPreamble
	itemRoll // Begin a segment. payload is its preamble, or nil.
	itemSync // Writes nothing. The items before this item must become durable.
)

// Epoch returns the epoch of the records that j appends.
func (j *Journal) Epoch() uint64 { return j.epoch }

// Next returns the seq that the next record will have.
func (j *Journal) Next() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.next
}

// Durable returns the highest seq that an fsync covered. Every record up to this seq survives any
// crash.
func (j *Journal) Durable() uint64 { return j.durable.Load() }

// Err returns the error that made j fail, [ErrClosed] once j is closed, or nil.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// Backlog returns how many bytes wait for the writer, headers included. While the backlog is less
// than QueueSize, the next Append does not wait, unless [Options.Budget] is used up.
func (j *Journal) Backlog() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.queued
}

// Reserve reports whether the queue has room for a record. If it returns true, the queue accepts
// the next record, even if another journal uses up [Options.Budget] first.
func (j *Journal) Reserve() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.usable() == nil {
		j.opened = j.opened || j.queued < j.opt.QueueSize && !j.share.Full()
		return j.opened
	}
	return true // The journal has failed. Append does not wait, and returns the error.
}

// Append queues one record and returns its ID. Append waits for the disk only if the queue is full;
// see [Options.QueueSize], [Options.Budget] and [Options.RefuseWhenFull]. The journal keeps payload
// until it is written, and then recycles it. If Append returns nil as error, the caller must not
// use payload again.
//
// The parent is the seq of an earlier record, or 0. The flags must be within [FlagsUser].
//
// Cost: one CRC of the payload. In the steady state Append allocates nothing.
func (j *Journal) Append(parent, tick uint64, flags uint32, payload []byte) (ID, error) {
	return j.AppendSummed(parent, tick, flags, payload, Sum{})
}

// AppendSummed is like Append, but the caller has already computed a checksum of the first bytes of
// payload. If sum is the checksum of other bytes, later reads report the record as damaged.
func (j *Journal) AppendSummed(parent, tick uint64, flags uint32, payload []byte, sum Sum) (ID, error) {
	if flags&^FlagsUser != 0 {
		return ID{}, fmt.Errorf("journal: append: flags %#x are reserved for the journal", flags&^FlagsUser)
	}
	if int64(len(payload)) > MaxAppend {
		return ID{}, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLong, len(payload), int64(MaxAppend))
	}
	sum.Add(payload)

	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.admit(int64(len(payload))); err != nil {
		return ID{}, err
	}
	if parent >= j.next {
		return ID{}, fmt.Errorf("journal: append: parent %d of record %d is not an earlier one", parent, j.next)
	}
	id := ID{Epoch: j.epoch, Seq: j.next, CRC: sum.crc}
	j.next++
	j.counted.Tick = tick
	j.opened = false
	j.push(item{
		kind:    itemRecord,
		header:  header{seq: id.Seq, parent: parent, tick: tick, flags: flags, crc: sum.crc},
		payload: payload,
	})
	return id, nil
}

// AppendPreamble queues a preamble for the records after it, in the middle of a segment. A preamble
// has no seq of its own. As for Append, the caller must not use payload again. After AppendPreamble
// returns, the next record enters the queue even if the queue is full.
func (j *Journal) AppendPreamble(payload []byte) error {
	if int64(len(payload)) > j.opt.partSize {
		return fmt.Errorf("%w: preamble of %d bytes, at most %d", ErrTooLong, len(payload), j.opt.partSize)
	}
	crc := crc32.Checksum(payload, castagnoli)

	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.admit(int64(len(payload))); err != nil {
		return err
	}
	j.push(item{
		kind:    itemPreamble,
		header:  header{seq: j.next - 1, flags: FlagPreamble, crc: crc},
		payload: payload,
	})
	j.opened = true
	return nil
}

// Roll ends the current segment and begins a new one, so that [Journal.Prune] can remove the old
// one later. Roll waits until both segments are durable, which acknowledges all records appended
// before.
func (j *Journal) Roll(ctx context.Context) error {
	preamble, err := j.preamble()
	if err != nil {
		return err
	}
	j.mu.Lock()
	if err := j.usable(); err != nil {
		j.mu.Unlock()
		return err
	}
	j.pushRoll(preamble)
	j.mu.Unlock()
	return j.Sync(ctx)
}

// full reports whether the next item must wait because the queue or the share of the budget is
// full. If the budget is used up, it calls wakeAppend once the share may grow.
func (j *Journal) full(length int64) bool {
	return !j.opened && (j.queued >= j.opt.QueueSize || j.share.Wait(length))
}

// wakeAppend makes a waiting Append check the queue again.
func (j *Journal) wakeAppend() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.space.Broadcast()
}

// admit waits until the queue has room for a payload of this length. If the current segment is
// full, admit also queues the beginning of a new one. The caller holds j.mu; admit may release it
// temporarily.
func (j *Journal) admit(length int64) error {
	for {
		for j.usable() == nil && j.full(length) {
			if j.opt.RefuseWhenFull {
				return ErrBacklog
			}
			j.space.Wait()
		}
		if err := j.usable(); err != nil {
			return err
		}
		if !j.rollDue(length) {
			return nil
		}
		j.mu.Unlock()
		// Call preamble without the lock, because it runs the caller's code.
		preamble, err := j.preamble()
		j.mu.Lock()
		if err != nil {
			return err
		}
		if j.usable() == nil && j.rollDue(length) {
			j.pushRoll(preamble)
			return nil
		}
	}
}

// rollDue reports whether the next payload must be written to a new segment.
func (j *Journal) rollDue(length int64) bool {
	return j.size > j.opt.SegmentSize || j.size+j.spaceFor(length)+maxTrailer > maxSegment
}

// spaceFor returns the maximum number of bytes that a payload of this length adds to a segment.
// They include the record headers and the mark after the payload.
func (j *Journal) spaceFor(length int64) int64 {
	parts := length/j.opt.partSize + 1
	return length + parts*(recordHeader+recordAlign) + recordHeader
}

// maxTrailer is the largest number of bytes that closing can add to a segment.
const maxTrailer = 4 * recordHeader

// usable returns the error with which an append must fail, or nil.
func (j *Journal) usable() error {
	if j.err == nil && j.closing {
		return ErrClosed
	}
	return j.err
}

func (j *Journal) pushRoll(preamble []byte) {
	j.size = segmentHeaderSize
	if preamble != nil {
		j.size += recordSize(int64(len(preamble)))
	}
	j.queue = append(j.queue, item{kind: itemRoll, header: header{seq: j.next}, payload: preamble})
	j.appended++
	j.notifyWriter()
}

func (j *Journal) push(it item) {
	j.size += j.spaceFor(int64(len(it.payload)))
	j.queued += recordHeader + int64(len(it.payload))
	j.queue = append(j.queue, it)
	j.most = max(j.most, len(j.queue))
	if j.share != nil {
		j.dropFree(len(j.free), j.share.Add(it.memory()))
	}
	j.appended++
	j.notifyWriter()
}

// memory returns how many bytes an item occupies.
func (it *item) memory() int64 { return int64(unsafe.Sizeof(*it)) + int64(cap(it.payload)) }

// preamble returns a copy of the caller's preamble, or nil if there is no Options.Preamble.
func (j *Journal) preamble() ([]byte, error) {
	if j.opt.Preamble == nil {
		return nil, nil
	}
	p := j.opt.Preamble()
	if int64(len(p)) > j.opt.partSize {
		return nil, fmt.Errorf("%w: preamble of %d bytes, at most %d", ErrTooLong, len(p), j.opt.partSize)
	}
	return append(make([]byte, 0, len(p)), p...), nil
}

func (j *Journal) notifyWriter() {
	select {
	case j.wake <- struct{}{}:
	default: // The writer has a pending token already.
	}
}

// KeepNote stores b, at most 16 MiB, durably in the ledger and replaces the previous note.
// [Log.Note] returns the last note. The caller can use the note to list other files that belong to
// the journal. A journal of version 1 keeps no note. A failed write leaves the previous note in
// place; a failed fsync fails the journal.
func (j *Journal) KeepNote(b []byte) error {
	if len(b) > maxNote {
		return fmt.Errorf("%w: note of %d bytes, at most %d", ErrTooLong, len(b), maxNote)
	}
	if j.ledger == nil {
		return nil
	}
	return j.waitForFailure(j.ledger.keepNote(b))
}

// KeepsNotes reports whether KeepNote stores its notes. A journal of version 1 keeps none.
func (j *Journal) KeepsNotes() bool { return j.ledger != nil }

// waitForFailure returns the error of a failed write to the ledger. The parameter err is the error
// that the ledger returned. If an fsync of the ledger has failed, the writer goroutine makes the
// journal fail. Then waitForFailure waits for the failure, and returns the error of the journal.
func (j *Journal) waitForFailure(err error) error {
	if err == nil {
		return nil
	}
	if j.ledger.failed() {
		_ = j.Sync(context.Background())
	}
	return cmp.Or(j.Err(), err)
}

// Wait returns nil once the record with this seq is durable, or the error that prevents it. Wait
// does not trigger an fsync: the sync policy does. Only under [SyncNever], Wait requests an fsync.
func (j *Journal) Wait(ctx context.Context, seq uint64) error {
	if j.durable.Load() >= seq {
		return nil
	}
	j.mu.Lock()
	if seq >= j.next {
		next := j.next
		j.mu.Unlock()
		return fmt.Errorf("journal: wait for record %d: the next one is %d", seq, next)
	}
	if j.opt.Sync == SyncNever {
		j.wantSync = true
		j.notifyWriter()
	}
	return j.await(ctx, func() bool { return j.durable.Load() >= seq })
}

// Sync makes all records and preambles durable that were appended so far. Even if all of them are
// durable already, Sync checks that the files still exist and still belong to the journal; see
// [Options.Guard].
func (j *Journal) Sync(ctx context.Context) error {
	j.mu.Lock()
	if j.usable() == nil {
		j.queue = append(j.queue, item{kind: itemSync})
		j.appended++
		j.wantSync = true
		j.notifyWriter()
	}
	target := j.appended
	return j.await(ctx, func() bool { return j.synced >= target })
}

// await waits until the function reached returns true. It calls that function with j.mu locked. The
// caller holds j.mu, and await releases it. If reached returns true, await returns nil, even if the
// journal has failed.
func (j *Journal) await(ctx context.Context, reached func() bool) error {
	for {
		if reached() {
			j.mu.Unlock()
			return nil
		}
		if j.err != nil {
			err := j.err
			j.mu.Unlock()
			return err
		}
		if j.progress == nil {
			j.progress = make(chan struct{})
		}
		progress := j.progress
		j.mu.Unlock()
		select {
		case <-progress:
		case <-ctx.Done():
			return ctx.Err()
		}
		j.mu.Lock()
	}
}

// Close makes all records durable, seals the last segment and ends the writer. The seal stores
// head: the seq that recovery starts from. The head is the newest record or, after a rewind, an
// older one. 0 stands for the state before the first record.
//
// If ctx ends first, Close returns the error of ctx and closing continues in the background. A
// second Close waits for the first and returns its result.
func (j *Journal) Close(ctx context.Context, head uint64) error {
	j.mu.Lock()
	if head >= j.next && !j.closing {
		next := j.next
		j.mu.Unlock()
		return fmt.Errorf("journal: close: head %d is not a record, the next one is %d", head, next)
	}
	if !j.closing {
		j.closing, j.head = true, head
		j.space.Broadcast()
		j.notifyWriter()
	}
	j.mu.Unlock()

	select {
	case <-j.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := j.Err(); !errors.Is(err, ErrClosed) {
		return err
	}
	return nil
}

// Abandon ends the writer like a crash: it writes no seal and syncs nothing. Use Abandon to discard
// a journal that was never completed; see [Journal.Close] for the usual end.
func (j *Journal) Abandon() {
	j.mu.Lock()
	if !j.closing {
		j.closing, j.unsealed = true, true
		j.space.Broadcast()
		j.notifyWriter()
	}
	j.mu.Unlock()
	<-j.done
}

// reached is called after an fsync that covered all records up to seq. The parameter items is the
// number of items that were covered since Open, and tick is the tick of record seq.
func (j *Journal) reached(items, seq, tick uint64) {
	j.local(seq, tick)
	j.mu.Lock()
	advanced := seq > j.durable.Load()
	j.durable.Store(max(seq, j.durable.Load()))
	j.counted.DurableTick = tick
	j.mu.Unlock()
	if advanced && j.opt.OnDurable != nil {
		j.opt.OnDurable(seq)
	}
	j.mu.Lock()
	j.synced = items
	j.announce()
	j.mu.Unlock()
}

// local is called when all records up to seq survive a crash of this machine. Other machines may
// not have them yet. tick is the tick of record seq.
func (j *Journal) local(seq, tick uint64) {
	j.mu.Lock()
	advanced := seq > j.counted.Local
	j.counted.Local, j.counted.LocalTick = max(seq, j.counted.Local), tick
	j.mu.Unlock()
	if advanced && j.opt.OnLocal != nil {
		j.opt.OnLocal(seq)
	}
}

// fail makes err the result of every later call.
func (j *Journal) fail(err error) {
	// Close makes other journals lock their mutexes. So it must run after Unlock.
	defer j.share.Close()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.err = err
	j.queue, j.batch, j.free = nil, nil, nil
	j.queued, j.freed = 0, 0
	j.announce()
	j.space.Broadcast()
}

// announce wakes all callers of await().
func (j *Journal) announce() {
	if j.progress != nil {
		close(j.progress)
		j.progress = nil
	}
}

// recycle puts the payloads of a written batch on the free list.
func (j *Journal) recycle(batch []item) {
	atMost := j.opt.QueueSize
	if j.share != nil {
		memory := int64(0)
		for i := range batch {
			if batch[i].isPayload() {
				memory += batch[i].memory()
			}
		}
		// Release makes other journals lock their mutexes. So j.mu must not be locked here.
		atMost = min(atMost, j.share.Release(memory))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range batch {
		if batch[i].isPayload() {
			j.queued -= recordHeader + int64(len(batch[i].payload))
			j.keep(batch[i].payload, atMost)
		}
		batch[i].payload = nil
	}
	j.space.Broadcast()
}

// isPayload reports whether an item is a record or a preamble. Only records and preambles count in
// the size of the queue.
func (it *item) isPayload() bool { return it.kind == itemRecord || it.kind == itemPreamble }
