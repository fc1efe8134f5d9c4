package journal

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stet-ecs/stet/disk"
)

// renewSize keeps short ledgers from being rewritten. A ledger is rewritten when it is longer than
// twice the sum of renewSize and the bytes that are still needed.
var renewSize int64 = 4 << 10

// A ledgerWriter appends entries to a ledger and makes them durable. Its methods may be called from
// several goroutines.
type ledgerWriter struct {
	fs    disk.FS
	guard func() error
	size  atomic.Int64 // Size of the file in bytes.

	mu      sync.Mutex
	header  ledgerHeader
	name    string
	file    disk.File
	stage   []byte
	end     int64
	spoiled int64 // End of bytes that a failed write may have left.
	err     error // Sticky: a failed fsync is never retried.

	features []feature
	kept     uint64
	segments []writtenSegment
	note     []byte
}

// A writtenSegment is a segment that the ledger lists. Its summary is either in memory, or at
// offset at of the ledger file.
type writtenSegment struct {
	listedSegment
	at     int64
	length int // Length of the summary in the file. 0 if it is not there.
}

// ledgerWriter returns a writer for a new ledger that lists the segments of l. All these segments
// are complete. The ledger file is created when the next segment begins.
func (l *Log) ledgerWriter(dir disk.FS, world [16]byte, guard func() error) *ledgerWriter {
	w := &ledgerWriter{fs: dir, guard: guard, header: ledgerHeader{world: world}, note: l.Note}
	segments := map[uint64]listedSegment{}
	if l.ledger != nil { // Keep listing segments that are missing.
		w.features, w.kept = l.ledger.features, l.ledger.kept
		for _, s := range l.ledger.segments {
			if s.sums = nil; s.number >= w.kept {
				segments[s.number] = s
			}
		}
	} else if len(l.Segments) > 0 {
		w.kept = l.Segments[0].Number
	}
	for i := range l.Segments {
		if s, h := &l.Segments[i], &l.Segments[i].header; s.Err == nil {
			segments[s.Number] = listedSegment{number: s.Number, epoch: h.epoch, first: h.first, salt: h.salt, sums: l.sumsOf(i), writer: l.Writer(s)}
		}
	}
	for _, number := range slices.Sorted(maps.Keys(segments)) {
		w.segments = append(w.segments, writtenSegment{listedSegment: segments[number]})
	}
	return w
}

// add stages an entry and returns the file offset of its payload.
func (w *ledgerWriter) add(kind uint32, payload ...[]byte) int64 {
	at := w.end + int64(len(w.stage)) + entryHeader
	w.stage = w.header.appendEntry(w.stage, w.end, kind, payload...)
	return at
}

// flush writes the staged entries and makes them durable. It overwrites the remains of a failed
// write.
func (w *ledgerWriter) flush() error {
	if left := w.spoiled - w.end - int64(len(w.stage)); left > 0 {
		w.add(entryFiller, make([]byte, max(0, left-entryHeader)))
	}
	stage := w.stage
	w.stage = w.stage[:0]
	if err := writeAt(w.file, w.name, stage, w.end); err != nil {
		w.spoiled = max(w.spoiled, w.end+int64(len(stage)))
		return err
	}
	w.end += int64(len(stage))
	w.size.Store(w.end)
	if err := w.file.Sync(); err != nil {
		w.err = fmt.Errorf("journal: sync %s: %w", w.name, err)
	}
	return w.err
}

// put appends one entry and makes it durable. Then it calls the function durable, unless that is
// nil.
func (w *ledgerWriter) put(kind uint32, payload []byte, durable func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	w.add(kind, payload)
	err := w.flush()
	if err == nil && durable != nil {
		durable()
	}
	return err
}

// closed adds an entry with the end of the last segment, before the seals of that segment are
// written. The end of every other segment is stated by the header of its successor.
func (w *ledgerWriter) closed(s closedSegment) error {
	return w.put(entryClosed, binary.AppendUvarint(binary.AppendUvarint(nil, s.number), s.end), nil)
}

// pruned adds an entry with the parameter kept. The entry says that segments with lower numbers may
// now be missing.
func (w *ledgerWriter) pruned(kept uint64) error {
	return w.put(entryPruned, binary.AppendUvarint(nil, kept), func() {
		w.kept = kept
		w.segments = slices.DeleteFunc(w.segments, func(s writtenSegment) bool { return s.number < kept })
	})
}

// keepNote makes the caller's note durable. It replaces the previous note.
func (w *ledgerWriter) keepNote(b []byte) error {
	return w.put(entryNote, b, func() { w.note = bytes.Clone(b) })
}

// began adds the segment with header h, and the name of the program that writes it. If sums is not
// nil, it is the summary of the previous segment.
func (w *ledgerWriter) began(h *segmentHeader, writer string, sums []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if n := len(w.segments); n > 0 && sums != nil {
		w.segments[n-1].sums, w.segments[n-1].length = sums, 0
	}
	w.segments = append(w.segments, writtenSegment{listedSegment: listedSegment{number: h.number, epoch: h.epoch, first: h.first, salt: h.salt, writer: writer}})
	if w.file == nil || w.stale() {
		w.err = w.renew(h.number)
		return w.err
	}
	w.enter(len(w.segments) - 1)
	return w.flush()
}

// enter stages the entry of segment i. The entry also contains the summary of segment i-1 if that
// is in memory, so a crash cannot separate the two. Afterwards the summary is only in the ledger.
func (w *ledgerWriter) enter(i int) {
	s := &w.segments[i]
	b := binary.AppendUvarint(nil, s.number)
	b = binary.AppendUvarint(b, s.epoch)
	b = binary.AppendUvarint(b, s.first)
	b = binary.AppendUvarint(b, s.salt)
	if i == 0 || w.segments[i-1].sums == nil {
		w.add(entrySegment, binary.AppendUvarint(b, 0))
	} else {
		ended := &w.segments[i-1]
		b = binary.AppendUvarint(b, ended.number)
		ended.at = w.add(entrySegment, b, ended.sums) + int64(len(b))
		ended.length, ended.sums = len(ended.sums), nil
	}
	if s.writer != "" {
		w.add(entryWriter, binary.AppendUvarint(nil, s.number), []byte(s.writer))
	}
}

// stale reports whether most of the ledger describes pruned segments.
func (w *ledgerWriter) stale() bool {
	live := renewSize
	for i := range w.segments {
		live += int64(w.segments[i].length + len(w.segments[i].writer))
	}
	return w.end > 2*live
}

// renew writes a new ledger, numbered like the segment that was begun, and removes older ledgers.
func (w *ledgerWriter) renew(number uint64) (err error) {
	for i := range w.segments { // Load the summaries that are only in the old file.
		if s := &w.segments[i]; s.length > 0 && s.sums == nil {
			s.sums = make([]byte, s.length)
			if n, err := readAt(w.file, w.name, s.sums, s.at); err != nil || n < s.length {
				return fmt.Errorf("journal: read %s at %d: %w", w.name, s.at, cmp.Or(err, fs.ErrNotExist))
			}
		}
	}
	old, oldName := w.file, w.name
	w.header.number, w.header.salt, w.name = number, newSalt(), ledgerName(number)
	temp, err := disk.CreateTemp(w.fs, w.name)
	if err != nil {
		return fmt.Errorf("journal: create %s: %w", w.name, err)
	}
	defer temp.Discard()
	w.file = temp.File
	w.stage, w.end, w.spoiled = append(w.stage[:0], w.header.encode()...), 0, 0
	w.enterAll()
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.guard(); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if err := publish(w.fs, temp, w.name); err != nil {
		return err
	}
	if old != nil {
		if err := old.Close(); err != nil {
			return fmt.Errorf("journal: close %s: %w", oldName, err)
		}
	}
	return w.removeOthers()
}

// enterAll stages all entries of the ledger.
func (w *ledgerWriter) enterAll() {
	var names []byte
	for _, f := range w.features {
		required := uint64(0)
		if f.required {
			required = 1
		}
		names = binary.AppendUvarint(binary.AppendUvarint(names, required), uint64(len(f.name)))
		names = append(names, f.name...)
	}
	w.add(entryFeatures, names)
	w.add(entryPruned, binary.AppendUvarint(nil, w.kept))
	if w.note != nil {
		w.add(entryNote, w.note)
	}
	for i := range w.segments {
		w.enter(i)
	}
}

// removeOthers removes the ledgers that this ledger replaces.
func (w *ledgerWriter) removeOthers() error {
	files, err := list(w.fs)
	if err != nil {
		return err
	}
	for _, f := range files.ledgers {
		if f.name == w.name {
			continue
		}
		if err := w.fs.Remove(f.name); err != nil {
			return fmt.Errorf("journal: remove %s: %w", f.name, err)
		}
		if err := syncDir(w.fs); err != nil {
			return err
		}
	}
	return nil
}

// checkNamed returns an error if the ledger's name no longer refers to this file, or if an fsync
// failed.
func (w *ledgerWriter) checkNamed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	return checkNamed(w.file, w.name)
}

// failed reports whether an fsync failed. A failed fsync is never retried.
func (w *ledgerWriter) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err != nil
}

func (w *ledgerWriter) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return nil
	}
	if err := w.file.Close(); err != nil {
		return fmt.Errorf("journal: close %s: %w", w.name, err)
	}
	return nil
}

func (h *ledgerHeader) encode() []byte {
	le := binary.LittleEndian
	b := append(make([]byte, 0, ledgerHeaderSize), ledgerMagic...)
	b = le.AppendUint32(b, ledgerVersion)
	b = le.AppendUint32(b, 0) // Reserved.
	b = append(b, h.world[:]...)
	b = le.AppendUint64(b, h.number)
	b = le.AppendUint64(b, h.salt)
	b = append(b, make([]byte, ledgerHeaderSize-4-len(b))...)
	return le.AppendUint32(b, crc32.Checksum(b[len(ledgerMagic):], castagnoli))
}

// appendEntry appends an entry to b. The parameter base is the offset of b[0] in the ledger.
func (h *ledgerHeader) appendEntry(b []byte, base int64, kind uint32, payload ...[]byte) []byte {
	le := binary.LittleEndian
	at := len(b)
	b = append(b, make([]byte, entryHeader)...)
	for _, p := range payload {
		b = append(b, p...)
	}
	e := b[at:]
	le.PutUint32(e[4:], kind)
	le.PutUint64(e[8:], uint64(len(e)-entryHeader))
	le.PutUint32(e, crc32.Update(h.seed(base+int64(at)), castagnoli, e[4:]))
	return append(b, padding[:-len(b)&(recordAlign-1)]...)
}
