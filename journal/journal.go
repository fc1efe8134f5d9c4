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

// A Journal appends records. Append queues them and a writer goroutine puts
// them into the file, many at once if they come fast.
//
// A Journal that failed stays failed: the first error of a write or an fsync is
// what every later call returns, and nothing more is written. An fsync is never
// tried again, for after a failed one the system may call bytes durable that
// are not.
//
// All methods may be called from several goroutines.
type Journal struct {
	fs    disk.FS
	opt   Options
	epoch uint64

	durable atomic.Uint64 // Highest seq that an fsync covered.

	ledger *ledgerWriter // nil: the journal is of version 1.

	wake chan struct{} // One token: the writer has something to look at.
	done chan struct{} // Closed when the writer has returned.

	pruning sync.Mutex // Held over one Prune.

	mu       sync.Mutex
	space    sync.Cond     // Signalled when queued falls, and on failure.
	progress chan struct{} // Closed at the next fsync or failure; nil: nobody waits.

	share  *budget.Share // Of Options.Budget; nil: there is none.
	queue  []item
	batch  []item   // The queue's other half, which the writer has.
	queued int64    // Bytes in queue and with the writer, headers included.
	opened bool     // The next record is let in: the last item is a preamble, or Reserve promised it.
	free   [][]byte // Recycled payload buffers.
	freed  int64    // Their bytes.
	unused int      // The smallest length of free since trim last looked.
	most   int      // The largest length of queue since then.

	next     uint64 // Seq of the next record.
	size     int64  // At least the size the current segment will have.
	segments []segmentRef
	counted  Stats // What else is counted for them.

	appended uint64 // Items ever queued.
	synced   uint64 // Items that an fsync covered.
	wantSync bool
	closing  bool
	unsealed bool   // Once closing: without a seal.
	head     uint64 // For the seal, once closing.
	err      error  // Sticky.
}

// segmentRef is what [Journal.Prune] knows of a segment.
type segmentRef struct {
	number uint64
	first  uint64 // 0: unknown, its header cannot be read.
	size   int64  // Of the file, once nothing more is written to it.
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
	itemRoll // payload is the new segment's preamble; nil: none.
	itemSync // Nothing to write: what comes before is to be confirmed.
)

// Epoch returns the epoch of the records that j appends.
func (j *Journal) Epoch() uint64 { return j.epoch }

// Next returns the seq that the next record will have.
func (j *Journal) Next() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.next
}

// Durable returns the highest seq that an fsync covered. Every record up to it
// survives any crash.
func (j *Journal) Durable() uint64 { return j.durable.Load() }

// Err returns the error that made j fail, [ErrClosed] once j is closed, or nil.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// Backlog returns how many bytes wait for the writer, headers included. While
// they are fewer than QueueSize, the next Append does not wait, unless [Options.Budget] is used up.
func (j *Journal) Backlog() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.queued
}

// Reserve reports whether the queue has room for a record. If it has, the next record is let in, even if another
// journal uses up [Options.Budget] before.
func (j *Journal) Reserve() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.usable() == nil {
		j.opened = j.opened || j.queued < j.opt.QueueSize && !j.share.Full()
		return j.opened
	}
	return true // Append tells why not.
}

// Append queues one record and returns its ID. It does not wait for the disk,
// unless QueueSize bytes or more wait already; see [Options.RefuseWhenFull]. The journal
// keeps payload until it is written and then recycles it; the caller must not
// touch it again, unless Append returned an error.
//
// The parent is the seq of an earlier record, or 0. The flags must lie within
// [FlagsUser].
//
// Cost: a CRC of the payload. In the steady state nothing is allocated.
func (j *Journal) Append(parent, tick uint64, flags uint32, payload []byte) (ID, error) {
	return j.AppendSummed(parent, tick, flags, payload, Sum{})
}

// AppendSummed is Append of a payload whose beginning is in sum already. If sum is
// of something else, the record will be reported as damaged.
func (j *Journal) AppendSummed(parent, tick uint64, flags uint32, payload []byte, sum Sum) (ID, error) {
	if flags&^FlagsUser != 0 {
		return ID{}, fmt.Errorf("journal: append: flags %#x are not the caller's", flags&^FlagsUser)
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

// AppendPreamble queues a preamble in the middle of a segment, for the records
// after it. It has no seq of its own. It takes payload as Append does; once it is
// in the queue, the next record is let in behind it, however full the queue is.
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

// Roll ends the current segment and begins a new one, so that [Journal.Prune]
// can remove the old one some day. It waits until both are durable, which
// acknowledges everything appended before.
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

// full reports whether the next item must not be let into the queue yet. If the budget is used up, j is woken
// when it has room.
func (j *Journal) full(length int64) bool {
	return !j.opened && (j.queued >= j.opt.QueueSize || j.share.Wait(length))
}

// wakeAppend makes an Append that waits look again.
func (j *Journal) wakeAppend() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.space.Broadcast()
}

// admit waits until a payload of this length may be queued, and begins a new
// segment if it is due. j.mu is held, but not all the time.
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
		preamble, err := j.preamble() // The caller's code: not under the lock.
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

// rollDue reports whether the next payload goes into a new segment.
func (j *Journal) rollDue(length int64) bool {
	return j.size > j.opt.SegmentSize || j.size+j.spaceFor(length)+maxTrailer > maxSegment
}

// spaceFor returns the most that a payload can add to a segment: its parts, and
// a mark after it.
func (j *Journal) spaceFor(length int64) int64 {
	parts := length/j.opt.partSize + 1
	return length + parts*(recordHeader+recordAlign) + recordHeader
}

// maxTrailer is the most that closing can add to a segment.
const maxTrailer = 4 * recordHeader

// usable returns why j cannot be appended to, or nil.
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

// memory returns how many bytes an item takes.
func (it *item) memory() int64 { return int64(unsafe.Sizeof(*it)) + int64(cap(it.payload)) }

// preamble returns a copy of the caller's preamble, or nil without one.
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
	default: // It has been told.
	}
}

// KeepNote makes b, at most 16 MiB, durable beside the journal, in the place of the note
// before: [Log.Note] is the last one. It is for what else there should be beside the
// segments. A journal of version 1 keeps none. A failed write leaves the note before; a
// failed fsync fails the journal.
func (j *Journal) KeepNote(b []byte) error {
	if len(b) > maxNote {
		return fmt.Errorf("%w: note of %d bytes, at most %d", ErrTooLong, len(b), maxNote)
	}
	if j.ledger == nil {
		return nil
	}
	return j.told(j.ledger.keepNote(b))
}

// told returns err, which the ledger gave, once the writer knows of it if it is final. If the
// journal has failed, it returns why.
func (j *Journal) told(err error) error {
	if err == nil {
		return nil
	}
	if j.ledger.failed() {
		_ = j.Sync(context.Background())
	}
	return cmp.Or(j.Err(), err)
}

// Wait returns once the record with this seq is durable, or with the error that
// keeps it from becoming so. It waits for the policy to sync; under
// [SyncNever], which would never, it asks for an fsync.
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
	if j.opt.Sync.kind == syncNever {
		j.wantSync = true
		j.notifyWriter()
	}
	return j.await(ctx, func() bool { return j.durable.Load() >= seq })
}

// Sync makes everything durable that was appended so far, preambles included. If
// all of it is, it still finds out whether the files are there and the journal's; see
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

// await waits until reached, called under the lock, returns true. It is entered
// with j.mu held and returns without. What was reached before a failure counts.
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

// Close makes everything durable, seals the last segment with head as the seq
// that recovery starts from, and ends the writer. The head is the newest record
// or, after a rewind, an older one; 0 is the state before the first.
//
// If ctx ends first, Close returns its error and closing goes on. A second
// Close waits for the first and returns its outcome.
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

// Abandon ends the writer as a crash would: no seal says that the journal is
// whole, and nothing is synced. It is for what never came to be; see [Journal.Close]
// for the usual end.
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

// reached notes that an fsync covered everything up to this item and seq, which is of
// that tick.
func (j *Journal) reached(items, seq, tick uint64) {
	j.local(seq, tick)
	j.mu.Lock()
	advanced := seq > j.durable.Load()
	j.synced = items
	j.durable.Store(max(seq, j.durable.Load()))
	j.counted.DurableTick = tick
	j.announce()
	j.mu.Unlock()
	if advanced && j.opt.OnDurable != nil {
		j.opt.OnDurable(seq)
	}
}

// local notes that a crash of this machine leaves everything up to seq, which is of that tick.
func (j *Journal) local(seq, tick uint64) {
	j.mu.Lock()
	advanced := seq > j.counted.Local
	j.counted.Local, j.counted.LocalTick = max(seq, j.counted.Local), tick
	j.mu.Unlock()
	if advanced && j.opt.OnLocal != nil {
		j.opt.OnLocal(seq)
	}
}

// fail makes err the answer to everything from now on.
func (j *Journal) fail(err error) {
	defer j.share.Close() // Without the lock: it wakes others.
	j.mu.Lock()
	defer j.mu.Unlock()
	j.err = err
	j.queue, j.batch, j.free = nil, nil, nil
	j.queued, j.freed = 0, 0
	j.announce()
	j.space.Broadcast()
}

// announce wakes everybody in await.
func (j *Journal) announce() {
	if j.progress != nil {
		close(j.progress)
		j.progress = nil
	}
}

// recycle takes back the payloads of a batch that was written.
func (j *Journal) recycle(batch []item) {
	atMost := j.opt.QueueSize
	if j.share != nil {
		memory := int64(0)
		for i := range batch {
			if batch[i].isPayload() {
				memory += batch[i].memory()
			}
		}
		atMost = min(atMost, j.share.Release(memory)) // Without the lock: it wakes others.
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

// isPayload reports whether an item is a record or a preamble, which count in the queue.
func (it *item) isPayload() bool { return it.kind == itemRecord || it.kind == itemPreamble }
