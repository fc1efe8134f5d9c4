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
	// stageSize is the number of bytes that are collected for one write.
	stageSize = 256 << 10

	// directSize is the payload length from which copying costs more than a separate write.
	directSize = 64 << 10

	// sectorSize is the unit that a disk writes atomically.
	sectorSize = 512
)

// A writer writes the current segment. It runs in one goroutine. The stage is a buffer of bytes
// that are not in the file yet. The offsets synced, written and end divide the bytes of the
// segment:
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
	synced  int64 // Durable up to this offset: the watermark.

	sums *sums // Summary of the segment so far.

	last  ID     // ID of the last staged record.
	seq   uint64 // Seq of the last staged record, or of the record before the first one.
	head  uint64 // Seq of the last staged record, or the head at opening.
	tick  uint64 // Tick of the last staged record, if this writer staged it.
	items uint64 // Number of items ever staged.
	dirty bool   // Some staged bytes must become durable.

	looked time.Time // Time of the last check for missing segments.

	timer *time.Timer
	idle  *time.Timer // Timer that triggers trim() while there may be memory to release.
	trims bool        // Set while the idle timer is running.

	trimmed uint64 // Value of the field items at the last call of trim().
}

// lookPeriod is how often the writer checks for missing segments while it confirms records.
const lookPeriod = time.Second

// run writes until the journal is closed or fails.
func (w *writer) run() {
	background.Enter()
	err := w.loop()
	w.timer.Stop()
	w.idle.Stop()
	if err != nil {
		// Fail the journal before the files are closed, so that a concurrent KeepNote returns the
		// cause of the failure.
		w.j.fail(err)
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
		if sync || due || w.j.opt.Sync == SyncAlways {
			if err := w.commit(); err != nil {
				return err
			}
		}
	}
}

// sleep waits until the writer has work. It reports whether the sync policy requires an fsync now.
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

// trim releases memory that was unused for a while.
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

// take removes all items from the queue and returns them as a batch. It also returns whether a
// caller requested an fsync and whether the journal is closing.
func (w *writer) take() (batch []item, sync, closing bool) {
	j := w.j
	j.mu.Lock()
	defer j.mu.Unlock()
	batch, sync, closing = j.queue, j.wantSync, j.closing
	j.queue, j.batch = j.batch[:0], batch
	j.wantSync = false
	return batch, sync, closing
}

// recycleBytes is the number of written bytes after which a part of a batch leaves the queue.
const recycleBytes = 1 << 20

// writeBatch writes the items of a batch. Before a roll, it removes the written items from the
// queue. So Append can use the whole queue while the roll waits for its syncs. In a long batch, it
// also removes the items after every recycleBytes, to release their memory.
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
		w.noteStaged()
		w.sums.preamble(&it.header, w.end(), int64(len(it.payload)))
		return w.put(it.header, it.payload)
	default:
		w.noteStaged()
		w.sums.record(&it.header, w.end(), int64(len(it.payload)))
		w.seq, w.head, w.tick = it.header.seq, it.header.seq, it.header.tick
		w.last = ID{Epoch: w.segment.epoch, Seq: it.header.seq, CRC: it.header.crc}
		return w.putParts(it.header, it.payload)
	}
}

// noteStaged sets the flag that staged bytes are not durable yet, and starts the sync timer.
func (w *writer) noteStaged() {
	if !w.dirty && w.j.opt.Sync > SyncAlways {
		w.timer.Reset(w.j.opt.Sync)
	}
	w.dirty = true
}

// putParts stages a record of the tree. It splits a long payload into parts. The checksum of a part
// covers all parts so far, so the last part has the checksum of the whole payload.
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

// put stages one record. It writes a long payload directly, without copying it to the stage.
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

// end returns the offset of the next record.
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

// confirm reports to the journal that everything staged is durable. Before that, it checks that the
// directory still belongs to this journal. Another process takes the lock before it reads the
// directory. So if this journal still has the lock, the other process will read all synced bytes.
func (w *writer) confirm() error {
	if err := retryBriefly(w.checkOwned); err != nil {
		return err
	}
	if time.Since(w.looked) >= lookPeriod {
		if err := w.checkComplete(); err != nil {
			return err
		}
	}
	w.dirty = false
	w.timer.Stop()
	w.j.reached(w.items, w.seq, w.tick)
	return nil
}

// retryBriefly calls the function look. If look fails because no file descriptor is free, it calls
// look again, for about half a second. During that time, the journal acknowledges nothing.
func retryBriefly(look func() error) error {
	err := look()
	for pause := time.Millisecond; pause <= 256*time.Millisecond && (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)); pause *= 2 {
		time.Sleep(pause)
		err = look()
	}
	return err
}

// checkOwned returns an error if the directory no longer belongs to this journal. It also returns
// an error if the segment's name no longer refers to the open file.
func (w *writer) checkOwned() error {
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
	if err := checkNamed(w.file, w.name); err != nil || w.j.ledger == nil {
		return err
	}
	return w.j.ledger.checkNamed()
}

// checkNamed returns an error if name no longer refers to the open file f.
func checkNamed(f disk.File, name string) error {
	switch named, err := f.Named(name); {
	case err != nil:
		return fmt.Errorf("journal: look for %s: %w", name, err)
	case !named:
		return fmt.Errorf("journal: %s was removed or replaced while it was written: %w", name, fs.ErrNotExist)
	}
	return nil
}

// checkComplete returns an error if an older segment is missing that Prune did not remove. It reads
// the directory, so the writer calls it only at the end of a segment and once a second. Cost:
// O(n log n) for n segments.
func (w *writer) checkComplete() error {
	w.looked = time.Now()
	j := w.j
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

// lostTo returns the error of a journal whose next segment exists already.
func lostTo(segment string) error {
	return fmt.Errorf("journal: %w, which has begun %s", disk.ErrLost, segment)
}

// commit syncs all bytes that are not durable. If the queue is empty, it then writes a mark. The
// mark proves which bytes were durable, so damage in them is not mistaken for a torn tail.
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

// busy reports whether the queue contains items.
func (j *Journal) busy() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.queue) > 0
}

// finish makes the whole segment durable, including marks. The next segment or the seals declare
// all of it durable.
func (w *writer) finish() error {
	if w.end() > w.synced {
		return w.fsync()
	}
	return w.confirm()
}

// seal ends the journal with two seals. Both are in one sector, so a crash leaves both or a prefix
// of them. If the current sector has too little room, seal fills it with marks.
func (w *writer) seal() error {
	for w.end()%sectorSize > sectorSize-2*recordHeader {
		if err := w.put(w.mark(), nil); err != nil {
			return err
		}
	}
	if err := w.finish(); err != nil {
		return err
	}
	if err := w.checkComplete(); err != nil {
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

// roll ends the current segment and begins a new one. The parameter first is the seq of the first
// record in the new segment.
func (w *writer) roll(first uint64, preamble []byte) error {
	if err := w.finish(); err != nil {
		return err
	}
	if err := w.checkComplete(); err != nil {
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
		return err // begin has failed before it changed the file. run() closes the old file.
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
