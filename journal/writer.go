package journal

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"syscall"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/internal/background"
)

const (
	// stageSize is how many bytes one write collects.
	stageSize = 256 << 10

	// directSize is the payload from which copying costs more than a write.
	directSize = 64 << 10

	// sectorSize is what a disk writes in one piece.
	sectorSize = 512
)

// A writer owns the current segment. It runs in one goroutine.
//
//	             synced          written         end
//	|   durable    |  in the file   |   stage      |
//	+--------------+----------------+--------------+
type writer struct {
	j *Journal

	segment segmentHeader
	name    string
	file    disk.File
	seed    uint32

	stage   []byte
	written int64
	synced  int64 // Known durable: the watermark.

	sums *sums // Of the segment so far.

	last  ID     // Of the newest record staged.
	seq   uint64 // Its seq, or the one before the first record.
	head  uint64 // Its seq, or the head that was found at opening.
	tick  uint64 // Its tick, if this writer staged it.
	items uint64 // Items staged, ever.
	dirty bool   // Something that must become durable is not.

	looked time.Time // When older segments were looked for last.

	timer *time.Timer
	idle  *time.Timer // For trim, while there may be something to trim.
	trims bool        // It runs.

	trimmed uint64 // What items was when trim was called last.
}

// lookPeriod is how often the writer looks for older segments while it confirms records.
const lookPeriod = time.Second

// run writes until the journal is closed or fails.
func (w *writer) run() {
	background.Enter()
	err := w.loop()
	w.timer.Stop()
	w.idle.Stop()
	if err != nil {
		w.j.fail(err) // Before the files are closed: a note that comes now is told why it fails.
	}
	if closeErr := w.file.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("journal: close %s: %w", w.name, closeErr)
	}
	if w.j.ledger != nil {
		if closeErr := w.j.ledger.close(); err == nil {
			err = closeErr
		}
	}
	if err == nil {
		err = ErrClosed
	}
	w.j.fail(err)
	close(w.j.done)
}

func (w *writer) loop() error {
	for {
		due := w.sleep()
		batch, sync, closing := w.take()
		if err := w.writeBatch(batch); err != nil {
			return err
		}
		if closing && w.j.unsealed {
			return nil
		}
		if closing {
			return w.seal()
		}
		if sync || due || w.j.opt.Sync.kind == syncAlways {
			if err := w.commit(); err != nil {
				return err
			}
		}
	}
}

// sleep returns when there is something to do, and whether the policy wants an
// fsync now.
func (w *writer) sleep() (due bool) {
	for {
		select {
		case <-w.j.wake:
			return false
		case <-w.timer.C:
			return true
		case <-w.idle.C:
			w.trim()
		}
	}
}

// trim gives back memory that was not used for a while.
func (w *writer) trim() {
	again := w.j.trim()
	if cap(w.stage) > trimBytes && w.items == w.trimmed {
		w.stage = nil
	}
	w.trimmed, w.trims = w.items, again || cap(w.stage) > trimBytes
	if w.trims {
		w.idle.Reset(trimPeriod)
	}
}

// take empties the queue.
func (w *writer) take() (batch []item, sync, closing bool) {
	j := w.j
	j.mu.Lock()
	defer j.mu.Unlock()
	batch, sync, closing = j.queue, j.wantSync, j.closing
	j.queue, j.batch = j.batch[:0], batch
	j.wantSync = false
	return batch, sync, closing
}

// recycleBytes is after how many bytes of a batch those that are written leave the queue.
const recycleBytes = 1 << 20

// writeBatch writes the items of a batch. What is written before a roll leaves the queue first: Append then
// has the whole queue while the roll waits for its syncs. Of a long batch each part leaves it once it is written:
// a file that keeps what is written until it is synced has no second copy of all of it.
func (w *writer) writeBatch(batch []item) error {
	written, bytes := 0, 0
	for i := range batch {
		if batch[i].kind == itemRoll || bytes >= recycleBytes {
			if err := w.flush(); err != nil {
				return err
			}
			w.j.recycle(batch[written:i])
			written, bytes = i, 0
		}
		if err := w.writeItem(&batch[i]); err != nil {
			return err
		}
		bytes += len(batch[i].payload)
		w.items++
	}
	if err := w.flush(); err != nil {
		return err
	}
	w.j.recycle(batch[written:])
	if !w.trims && (cap(w.stage) > trimBytes || w.j.hasUntrimmed()) {
		w.trims = true
		w.idle.Reset(trimPeriod)
	}
	return nil
}

func (w *writer) writeItem(it *item) error {
	switch it.kind {
	case itemRoll:
		return w.roll(it.header.seq, it.payload)
	case itemSync:
		return nil
	case itemPreamble:
		w.touch()
		w.sums.preamble(&it.header, w.end(), int64(len(it.payload)))
		return w.put(it.header, it.payload)
	default:
		w.touch()
		w.sums.record(&it.header, w.end(), int64(len(it.payload)))
		w.seq, w.head, w.tick = it.header.seq, it.header.seq, it.header.tick
		w.last = ID{Epoch: w.segment.epoch, Seq: it.header.seq, CRC: it.header.crc}
		return w.putParts(it.header, it.payload)
	}
}

// touch notes that something is not durable, from now on.
func (w *writer) touch() {
	if !w.dirty && w.j.opt.Sync.kind == syncEvery {
		w.timer.Reset(w.j.opt.Sync.every)
	}
	w.dirty = true
}

// putParts stages a record of the tree, in parts if it is long. The checksum of
// a part covers all parts so far, so the last one's is the payload's.
func (w *writer) putParts(h header, payload []byte) error {
	size := w.j.opt.partSize
	if int64(len(payload)) <= size {
		return w.put(h, payload)
	}
	h.flags |= flagMore
	h.crc = 0
	for int64(len(payload)) > size {
		h.crc = crc32.Update(h.crc, castagnoli, payload[:size])
		if err := w.put(h, payload[:size]); err != nil {
			return err
		}
		payload = payload[size:]
		h.flags |= flagPart
	}
	h.flags &^= flagMore
	h.crc = crc32.Update(h.crc, castagnoli, payload)
	return w.put(h, payload)
}

var padding [recordAlign]byte

// put stages one record. A long payload is written from where it is.
func (w *writer) put(h header, payload []byte) error {
	h.synced = uint32(w.synced)
	h.length = uint32(len(payload))
	n := len(w.stage)
	w.stage = append(w.stage, make([]byte, recordHeader)...)
	h.put(w.stage[n:], w.seed, w.end()-recordHeader)
	if len(payload) < directSize {
		w.stage = append(w.stage, payload...)
	} else if err := w.direct(payload); err != nil {
		return err
	}
	w.stage = append(w.stage, padding[:-len(payload)&(recordAlign-1)]...)
	if len(w.stage) < stageSize {
		return nil
	}
	return w.flush()
}

// end returns where the next record goes.
func (w *writer) end() int64 { return w.written + int64(len(w.stage)) }

func (w *writer) flush() error {
	if len(w.stage) == 0 {
		return nil
	}
	stage := w.stage
	w.stage = w.stage[:0]
	return w.write(stage)
}

func (w *writer) direct(payload []byte) error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.write(payload)
}

func (w *writer) write(b []byte) error {
	if err := writeAt(w.file, w.name, b, w.written); err != nil {
		return err
	}
	w.written += int64(len(b))
	w.j.countBytes(int64(len(b)))
	return nil
}

// fsync makes everything written durable.
func (w *writer) fsync() error {
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.sync(); err != nil {
		return fmt.Errorf("journal: sync %s: %w", w.name, err)
	}
	w.synced = w.written
	return w.confirm()
}

// confirm tells the journal that everything staged is durable. It is the last
// moment in which the journal can find out that it is not: whoever takes the
// directory over claims it first (the lock), and then reads what is there. So if it
// is not claimed now, the successor will read all that was synced.
func (w *writer) confirm() error {
	if err := retryBriefly(w.owned); err != nil {
		return err
	}
	if time.Since(w.looked) >= lookPeriod {
		if err := w.complete(); err != nil {
			return err
		}
	}
	w.dirty = false
	w.timer.Stop()
	w.j.reached(w.items, w.seq, w.tick)
	return nil
}

// retryBriefly calls look again while the process or the system has no file descriptor left, for
// about half a second. What look tells is not known then, and nothing has been confirmed yet.
func retryBriefly(look func() error) error {
	err := look()
	for pause := time.Millisecond; pause <= 256*time.Millisecond && (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)); pause *= 2 {
		time.Sleep(pause)
		err = look()
	}
	return err
}

// owned returns an error unless the directory is this journal's, and its segment
// is what a recovery would find under that name.
func (w *writer) owned() error {
	if err := w.j.opt.Guard(); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	next := segmentName(w.segment.number + 1)
	switch f, err := w.j.fs.Open(next); {
	case err == nil:
		f.Close()
		return lostTo(next)
	case errors.Is(err, disk.ErrIrregular):
		return lostTo(next)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("journal: look for %s: %w", next, err)
	}
	switch named, err := w.file.Named(w.name); {
	case err != nil:
		return fmt.Errorf("journal: look for %s: %w", w.name, err)
	case !named:
		return fmt.Errorf("journal: %s was removed or replaced while it was written: %w", w.name, fs.ErrNotExist)
	}
	if w.j.ledger != nil {
		return w.j.ledger.named()
	}
	return nil
}

// complete returns an error if an older segment is gone that Prune did not remove. It reads
// the directory, so it is asked at the end of a segment and once a second.
func (w *writer) complete() error {
	w.looked = time.Now()
	return w.j.complete()
}

// complete is [writer.complete]. Cost: O(n log n) for n segments.
func (j *Journal) complete() error {
	j.pruning.Lock()
	defer j.pruning.Unlock()
	found, err := list(j.fs)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.segments {
		name := segmentName(s.number)
		i, ok := slices.BinarySearchFunc(found.segments, name, func(f listedFile, name string) int { return compareNames(f.name, name) })
		if !ok || found.segments[i].bad != nil {
			return fmt.Errorf("journal: %s was removed or replaced while the journal was open: %w", name, fs.ErrNotExist)
		}
	}
	return nil
}

// lostTo returns the error of a journal whose next segment is there already.
func lostTo(segment string) error {
	return fmt.Errorf("journal: %w, which has begun %s", disk.ErrLost, segment)
}

// commit syncs what is not durable and, if nothing waits to be written, leaves
// a mark: from then on damage below the watermark is told from a tear, even if
// the process is killed.
func (w *writer) commit() error {
	if !w.dirty {
		return w.confirm()
	}
	if err := w.fsync(); err != nil {
		return err
	}
	if w.j.busy() {
		return nil
	}
	if err := w.put(w.mark(), nil); err != nil {
		return err
	}
	return w.flush()
}

func (w *writer) mark() header { return header{seq: w.seq, flags: flagMark} }

// busy reports whether the queue holds something.
func (j *Journal) busy() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.queue) > 0
}

// finish makes the whole segment durable, marks included: what comes after
// vouches for all of it.
func (w *writer) finish() error {
	if w.end() > w.synced {
		return w.fsync()
	}
	return w.confirm()
}

// seal ends the journal. Both seals lie in one sector, so a crash leaves both
// or a beginning of them; marks fill up a sector that is too full.
func (w *writer) seal() error {
	for w.end()%sectorSize > sectorSize-2*recordHeader {
		if err := w.put(w.mark(), nil); err != nil {
			return err
		}
	}
	if err := w.finish(); err != nil {
		return err
	}
	if err := w.complete(); err != nil {
		return err
	}
	if w.j.ledger != nil {
		if err := w.j.ledger.closed(closedSegment{w.segment.number, uint64(w.written)}); err != nil {
			return err
		}
	}
	h := sealHeader(w.j.head, w.seq, w.end()+2*recordHeader)
	for range 2 {
		if err := w.put(h, nil); err != nil {
			return err
		}
	}
	return w.fsync()
}

// roll goes on in a new segment whose first record has this seq.
func (w *writer) roll(first uint64, preamble []byte) error {
	if err := w.finish(); err != nil {
		return err
	}
	if err := w.complete(); err != nil {
		return err
	}
	next := w.segment
	next.first = first
	next.number++
	next.previous = w.segment.number
	next.prevEnd = uint64(w.written)
	next.last = w.last
	next.head = w.head
	old, name := w.file, w.name
	err := w.begin(next, preamble, w.sums.ended(w.written, false, w.seq, w.head))
	if w.file == old {
		return err // The writer closes it.
	}
	if closeErr := old.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("journal: close %s: %w", name, closeErr)
	}
	return err
}

func writeAt(f disk.File, name string, b []byte, offset int64) error {
	if _, err := f.WriteAt(b, offset); err != nil {
		return fmt.Errorf("journal: write %s: %w", name, err)
	}
	return nil
}
