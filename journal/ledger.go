package journal

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/stet-ecs/stet/disk"
)

// A ledger is the file that says which segments a journal has, so that one that is gone
// is missed, be it the newest, and sums up those that are ended, so that they need not
// be read in order to know what is in them.
//
//	header | features | pruned 2 | segment 3 | segment 4, sums of 3 | pruned 3 | segment 5, sums of 4
//
// A segment is entered once its name is durable, and before anything in it is
// acknowledged. Every opening writes a ledger of its own under the number of the
// segment that it begins, and so does a roll that finds most of the ledger to be of
// segments that were pruned; older ledgers are removed then. FORMAT.md has the bytes.
type ledger struct {
	name     string
	size     int64
	header   ledgerHeader
	features []feature
	kept     uint64 // Segments before this one were pruned, or are about to be.
	segments []listedSegment
	note     []byte
	torn     int64 // Where an unfinished or damaged last entry begins; 0: nowhere.
	told     bool  // That it ends too early.
}

const (
	ledgerMagic      = "STETLEDG"
	ledgerVersion    = 2 // As that of the segments: journals of version 1 have no ledger.
	ledgerHeaderSize = 64
	ledgerSuffix     = ".ledger"

	entryHeader = 16

	// maxEntry bounds what is read of an entry at once; a summary is shorter than its
	// segment.
	maxEntry = maxSegment

	maxNote = 16 << 20 // Bytes.
)

// renewSize is how many bytes of a ledger may be of no more use before it is written anew.
var renewSize int64 = 1 << 20

// The kinds of entries. Others are skipped: a feature that must be known is named.
const (
	entryFiller   = 0 // Zeros, in the place of what a failed write left.
	entryFeatures = 1 // Names; the first entry.
	entrySegment  = 2 // A segment was begun; with it, what is in the one that has ended.
	entryPruned   = 3 // The oldest segment that is kept.
	entryNote     = 4 // The caller's; the last one counts.
)

// A feature is something that a journal or what is kept with it uses beyond version 2.
type feature struct {
	name     string
	required bool // Who does not know it must not read on.
}

// A listedSegment is a segment as the ledger has it.
type listedSegment struct {
	number, epoch, first, salt uint64
	sums                       []byte // Encoded; nil: none, or damaged.
}

// A ledgerHeader stands at the start of a ledger.
type ledgerHeader struct {
	world  [16]byte
	number uint64 // As in the file name.
	salt   uint64 // Random; makes the bytes of other ledgers invalid here.
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

// parse reads the header of ledger number, and returns what is wrong, or "", and which
// question that answers.
func (h *ledgerHeader) parse(b []byte, number uint64) (reason string, kind error) {
	le := binary.LittleEndian
	if len(b) < ledgerHeaderSize {
		return "header of the ledger cut short", ErrCorrupt
	}
	b = b[:ledgerHeaderSize]
	switch version := le.Uint32(b[8:]); {
	case crc32.Checksum(b[8:ledgerHeaderSize-4], castagnoli) != le.Uint32(b[ledgerHeaderSize-4:]):
		return "header checksum of the ledger does not match", ErrCorrupt
	case !bytes.Equal(b[:8], []byte(ledgerMagic)):
		return "magic of the ledger is damaged", ErrCorrupt
	case version != ledgerVersion:
		return fmt.Sprintf("ledger of version %d, this program knows %d", version, ledgerVersion), ErrNewer
	}
	h.world, h.number, h.salt = [16]byte(b[16:32]), le.Uint64(b[32:]), le.Uint64(b[40:])
	if h.number != number {
		return fmt.Sprintf("header of ledger %d", h.number), ErrCorrupt
	}
	return "", nil
}

// seed returns what the CRC of the entry at offset starts with.
func (h *ledgerHeader) seed(offset int64) uint32 {
	b := binary.LittleEndian.AppendUint64(nil, h.salt)
	return crc32.Checksum(binary.LittleEndian.AppendUint64(b, uint64(offset)), castagnoli)
}

// appendEntry appends an entry to b, whose first byte lies at offset base of the ledger.
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

// entryAt returns the entry that begins at b[at:], and where it ends; ok is false if none
// that holds does. The first byte of b lies at offset base of the ledger.
func (h *ledgerHeader) entryAt(b []byte, base int64, at int) (kind uint32, payload []byte, end int, ok bool) {
	e := b[at:]
	if len(e) < entryHeader {
		return 0, nil, 0, false
	}
	length := binary.LittleEndian.Uint64(e[8:])
	if length > uint64(len(e)-entryHeader) || length > maxEntry {
		return 0, nil, 0, false
	}
	e = e[:entryHeader+int(length)]
	end = (at + len(e) + recordAlign - 1) &^ (recordAlign - 1)
	if end > len(b) || crc32.Update(h.seed(base+int64(at)), castagnoli, e[4:]) != binary.LittleEndian.Uint32(e) || !allZero(b[at+len(e):end]) {
		return 0, nil, 0, false
	}
	return binary.LittleEndian.Uint32(e[4:]), e[entryHeader:], end, true
}

// read takes what holds in b, which are the bytes of the file behind those that l has
// taken, and reports the rest. It returns why nothing of it can be read, or nil.
func (l *ledger) read(b []byte, report func(offset, length int64, reason string)) *DamageError {
	base, at := l.size, 0
	l.size += int64(len(b))
	if base == 0 {
		number, _ := numbered(l.name, ledgerSuffix)
		if reason, kind := l.header.parse(b, number); reason != "" {
			return &DamageError{File: l.name, Length: min(l.size, ledgerHeaderSize), Reason: reason, Err: kind}
		}
		at = ledgerHeaderSize
	}
	for at < len(b) {
		kind, payload, end, ok := l.header.entryAt(b, base, at)
		if !ok {
			bad := at
			for at += recordAlign; at < len(b) && !ok; {
				if _, _, _, ok = l.header.entryAt(b, base, at); !ok {
					at += recordAlign
				}
			}
			if ok {
				report(base+int64(bad), int64(at-bad), "entry of the ledger is damaged")
			} else {
				l.torn = base + int64(bad)
			}
			continue
		}
		if reason, err := l.take(kind, payload); reason != "" {
			d := &DamageError{File: l.name, Offset: base + int64(at), Length: int64(end - at), Reason: reason, Err: err}
			if errors.Is(err, ErrNewer) {
				return d
			}
			report(d.Offset, d.Length, reason)
		}
		at = end
	}
	return nil
}

// take adds an entry to l, or returns what is wrong with it.
func (l *ledger) take(kind uint32, payload []byte) (reason string, err error) {
	r := varints{b: payload}
	switch kind {
	case entryFeatures:
		var features []feature
		for len(r.b) > 0 {
			f := feature{required: r.next() == 1}
			f.name = string(r.bytes(r.next()))
			features = append(features, f)
		}
		for _, f := range features {
			if f.required && !r.bad {
				return fmt.Sprintf("the journal needs the feature %q, which this program does not know", f.name), ErrNewer
			}
		}
		if !r.bad {
			l.features = features
		}
	case entrySegment:
		s := listedSegment{number: r.next(), epoch: r.next(), first: r.next(), salt: r.next()}
		if ended := l.find(r.next()); ended != nil {
			ended.sums, r.b = r.b, nil
		}
		if s.number <= l.newest() || s.number == 0 || s.number >= maxNumber || s.epoch == 0 || s.first == 0 {
			return "the ledger lists a segment out of turn", ErrCorrupt
		}
		l.segments = append(l.segments, s)
	case entryPruned:
		l.kept = max(l.kept, r.next())
	case entryNote:
		l.note = bytes.Clone(payload)
		return "", nil
	default:
		return "", nil
	}
	if r.bad || len(r.b) > 0 {
		return "entry of the ledger says impossible things", ErrCorrupt
	}
	return "", nil
}

// find returns the segment of that number, or nil.
func (l *ledger) find(number uint64) *listedSegment {
	i, ok := slices.BinarySearchFunc(l.segments, number, func(s listedSegment, n uint64) int { return cmp.Compare(s.number, n) })
	if !ok {
		return nil
	}
	return &l.segments[i]
}

// newest returns the number of the last segment that l lists.
func (l *ledger) newest() uint64 {
	if len(l.segments) == 0 {
		return 0
	}
	return l.segments[len(l.segments)-1].number
}

// varints reads the numbers of an entry. After bad input it is bad, and reads zeros.
type varints struct {
	b   []byte
	bad bool
}

func (r *varints) next() uint64 {
	x, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return x
}

func (r *varints) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// ledgerName returns the file name of a ledger: "00000012.ledger".
func ledgerName(number uint64) string { return fmt.Sprintf("%08d%s", number, ledgerSuffix) }

// checkEnd reports an unfinished entry in the ledger of a journal that was closed: it was
// finished once. Nor is all there, perhaps, if newer segments may be missing.
func (l *Log) checkEnd() {
	l.Clean = l.Clean && l.Unsure == nil
	if led := l.ledger; led != nil && led.torn > 0 && l.Clean && !led.told {
		_ = l.problem(led.name, led.torn, led.size-led.torn, "the last entry of the ledger is damaged")
	}
}

// forget lets go of the summaries, which the log has taken what it needs from.
func (l *ledger) forget() {
	if l != nil {
		for i := range l.segments {
			l.segments[i].sums = nil
		}
	}
}

// is reports whether l is what the newest of these files holds.
func (l *ledger) is(files []listedFile) bool {
	n := len(files)
	return n > 0 && files[n-1].name == l.name && files[n-1].size == l.size
}

// readLedger reads the newest of the ledgers, or what was added to it since it was read
// before, and compares the segments with it.
func (l *Log) readLedger(files []listedFile) error {
	before := l.ledger
	l.ledger, l.Unsure, l.Note, l.gone = nil, nil, nil, 0
	if !l.hasLedger(len(files)) {
		return nil
	}
	if len(files) == 0 {
		l.missesLedger()
		return nil
	}
	led := before
	if led == nil || led.torn > 0 || !led.is(files) {
		var err error
		if led, err = l.openLedger(files[len(files)-1], before); err != nil || led == nil {
			return err
		}
	}
	l.ledger, l.Note = led, led.note
	return l.compare(led)
}

// hasLedger reports whether the journal is of a version with a ledger. If nothing is left
// of the segments, the files that are there tell.
func (l *Log) hasLedger(files int) bool {
	readable := func(s Segment) bool { return s.Err == nil }
	if !slices.ContainsFunc(l.Segments, readable) {
		return files > 0
	}
	return slices.ContainsFunc(l.Segments, func(s Segment) bool { return readable(s) && s.header.version >= ledgerVersion })
}

// openLedger reads a ledger, perhaps a longer one than before. It returns nil, and the log
// has the problem, if nothing of the file can be read.
func (l *Log) openLedger(file listedFile, before *ledger) (*ledger, error) {
	led := &ledger{name: file.name}
	if before != nil && before.name == file.name && before.size < file.size && before.torn == 0 {
		*led = *before
		led.segments = slices.Clone(before.segments)
	}
	d := irregular(file.name)
	if file.regular {
		b, err := readFrom(l.fs, file.name, led.size)
		if err != nil {
			return nil, err
		}
		d = led.read(b, func(offset, length int64, reason string) { _ = l.problem(file.name, offset, length, reason) })
	}
	if d != nil {
		l.Problems, l.Unsure = append(l.Problems, d), d
		return nil, nil
	}
	return led, nil
}

// missesLedger reports that there is none, unless a crash kept the first one from being
// written: then no segment has anything in it.
func (l *Log) missesLedger() {
	for i := range l.Segments {
		if s := &l.Segments[i]; s.Err == nil && s.written() {
			l.Unsure = l.problem(ledgerName(l.Segments[len(l.Segments)-1].Number), 0, 0, "missing: nothing else says whether there were newer segments")
			return
		}
	}
}

// written reports whether s holds more than it was created with.
func (s *Segment) written() bool { return s.Size > int64(s.header.start) }

// compare reports how the segments differ from what led says of them. Segments without
// content, newer than those that are listed, were about to be when the program ended.
func (l *Log) compare(led *ledger) error {
	if !l.known(led.header.world) {
		l.Problems = append(l.Problems, &DamageError{File: led.name, Offset: 16, Length: 16, Err: ErrForeign,
			Reason: fmt.Sprintf("ledger of world %x among segments of world %x", led.header.world, l.World)})
		return nil
	}
	if err := l.missing(led); err != nil {
		return err
	}
	for i := range l.Segments {
		s := &l.Segments[i]
		if s.Err != nil {
			continue
		}
		switch listed := led.find(s.Number); {
		case listed == nil && s.Number > led.newest() && s.written():
			l.unlisted(led, s)
			return nil // As are those behind it.
		case listed != nil && (listed.epoch != s.header.epoch || listed.first != s.header.first || listed.salt != s.header.salt):
			_ = l.problem(s.Name, 0, segmentHeaderSize, "it is another segment than the one that the ledger lists")
		}
	}
	return nil
}

// unlisted reports that led ends before it lists s.
func (l *Log) unlisted(led *ledger, s *Segment) {
	end := cmp.Or(led.torn, led.size)
	_ = l.problem(led.name, end, led.size-end, fmt.Sprintf("the ledger ends before it lists %s", s.Name))
	led.told = true
}

// known reports whether the segments, if one can be read, are of that world.
func (l *Log) known(world [16]byte) bool {
	if !slices.ContainsFunc(l.Segments, func(s Segment) bool { return s.Err == nil }) {
		l.World = world
	}
	return l.World == world
}

// missing reports segments that led lists and that are not there, before and behind
// those that are; what is missing in between is seen without a ledger.
func (l *Log) missing(led *ledger) error {
	oldest, newest := uint64(math.MaxUint64), uint64(0)
	if n := len(l.Segments); n > 0 {
		oldest, newest = l.Segments[0].Number, l.Segments[n-1].Number
	}
	for _, s := range led.segments {
		if s.number < led.kept || s.number >= oldest && s.number <= newest {
			continue
		}
		name := segmentName(s.number)
		switch f, err := l.fs.Open(name); {
		case err == nil:
			f.Close()
			return fmt.Errorf("journal: %s: %w", name, errListing)
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("journal: open %s: %w", name, err)
		}
		d := l.problem(name, 0, 0, fmt.Sprintf("missing: the ledger lists it, of epoch %d from record %d on", s.epoch, s.first))
		if s.number > newest {
			l.gone, l.Unsure = s.number, d
		}
		l.Epoch = max(l.Epoch, s.epoch)
	}
	return nil
}

// errListing reports a listing of the directory that is older than the ledger.
var errListing = errors.New("it was begun while the directory was read")

// readFrom returns the bytes of a file from offset on.
func readFrom(dir disk.FS, name string, offset int64) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, fmt.Errorf("journal: open %s: %w", name, err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("journal: size of %s: %w", name, err)
	}
	b := make([]byte, max(0, size-offset))
	n, err := readAt(f, name, b, offset)
	return b[:n], err
}

// A ledgerWriter adds entries to a ledger and makes them durable. Its methods may be
// called from several goroutines.
type ledgerWriter struct {
	fs    disk.FS
	guard func() error

	mu      sync.Mutex
	header  ledgerHeader
	name    string
	file    disk.File
	stage   []byte
	end     int64
	spoiled int64 // A failed write may have left something up to here.
	err     error // Sticky: an fsync is never tried again.

	features []feature
	kept     uint64
	segments []writtenSegment
	note     []byte
}

// A writtenSegment is a segment and where its summary lies in the ledger.
type writtenSegment struct {
	listedSegment
	at     int64
	length int // 0: it has none, or it is in memory.
}

// ledgerWriter returns the writer of a ledger of the segments of l, which are all ended. It
// has no file before the next one has begun.
func (l *Log) ledgerWriter(dir disk.FS, world [16]byte, guard func() error) *ledgerWriter {
	w := &ledgerWriter{fs: dir, guard: guard, header: ledgerHeader{world: world}, note: l.Note}
	if l.ledger != nil {
		w.features = l.ledger.features
	}
	segments := map[uint64]listedSegment{}
	if l.ledger != nil { // Of what is missing it says so again.
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
			segments[s.Number] = listedSegment{number: s.Number, epoch: h.epoch, first: h.first, salt: h.salt, sums: l.sumsOf(i)}
		}
	}
	for _, number := range slices.Sorted(maps.Keys(segments)) {
		w.segments = append(w.segments, writtenSegment{listedSegment: segments[number]})
	}
	return w
}

// removeLedgers removes those that are older than the one that is written.
func removeLedgers(dir disk.FS, w *ledgerWriter) error {
	files, err := list(dir)
	if err != nil || w == nil {
		return err
	}
	for _, f := range files.ledgers {
		if f.name != w.name {
			if err := w.remove(f.name); err != nil {
				return err
			}
		}
	}
	return nil
}

// add stages an entry and returns where its payload lies.
func (w *ledgerWriter) add(kind uint32, payload ...[]byte) int64 {
	at := w.end + int64(len(w.stage)) + entryHeader
	w.stage = w.header.appendEntry(w.stage, w.end, kind, payload...)
	return at
}

// flush writes what is staged, over what a failed write left, and makes it durable.
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
	if err := w.file.Sync(); err != nil {
		w.err = fmt.Errorf("journal: sync %s: %w", w.name, err)
	}
	return w.err
}

// finish makes the ledger one of a journal that is closed, which has no unfinished end.
func (w *ledgerWriter) finish() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil && w.spoiled > w.end {
		return w.flush()
	}
	return w.err
}

// began enters segment h and, if it is not nil, the summary of the segment before.
func (w *ledgerWriter) began(h *segmentHeader, sums []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if n := len(w.segments); n > 0 && sums != nil {
		w.segments[n-1].sums, w.segments[n-1].length = sums, 0
	}
	w.segments = append(w.segments, writtenSegment{listedSegment: listedSegment{number: h.number, epoch: h.epoch, first: h.first, salt: h.salt}})
	if w.file == nil || w.stale() {
		w.err = w.renew(h.number)
		return w.err
	}
	w.enter(len(w.segments) - 1)
	return w.flush()
}

// enter stages segment i, with the summary of the one before if that is known, which is in
// the ledger from then on, not in memory. They are one entry, so that a crash does not
// leave the second half of two.
func (w *ledgerWriter) enter(i int) {
	s := &w.segments[i]
	b := binary.AppendUvarint(nil, s.number)
	b = binary.AppendUvarint(b, s.epoch)
	b = binary.AppendUvarint(b, s.first)
	b = binary.AppendUvarint(b, s.salt)
	if i == 0 || w.segments[i-1].sums == nil {
		w.add(entrySegment, binary.AppendUvarint(b, 0))
		return
	}
	ended := &w.segments[i-1]
	b = binary.AppendUvarint(b, ended.number)
	ended.at = w.add(entrySegment, b, ended.sums) + int64(len(b))
	ended.length, ended.sums = len(ended.sums), nil
}

// stale reports whether most of the ledger is of segments that were pruned.
func (w *ledgerWriter) stale() bool {
	live := renewSize
	for i := range w.segments {
		live += int64(w.segments[i].length)
	}
	return w.end > 2*live
}

// renew writes the ledger anew, under the number of the segment that was begun, and
// removes the one before.
func (w *ledgerWriter) renew(number uint64) (err error) {
	for i := range w.segments { // What is only in the old file.
		if s := &w.segments[i]; s.length > 0 && s.sums == nil {
			s.sums = make([]byte, s.length)
			if n, err := readAt(w.file, w.name, s.sums, s.at); err != nil || n < s.length {
				return fmt.Errorf("journal: read %s at %d: %w", w.name, s.at, cmp.Or(err, fs.ErrNotExist))
			}
		}
	}
	var salt [8]byte
	rand.Read(salt[:]) // Never fails.
	old, oldName := w.file, w.name
	w.header.number, w.header.salt, w.name = number, binary.LittleEndian.Uint64(salt[:]), ledgerName(number)
	temp := w.name + tempSuffix
	if w.file, err = w.fs.Create(temp); err != nil {
		return fmt.Errorf("journal: create %s: %w", temp, err)
	}
	w.stage, w.end = append(w.stage[:0], w.header.encode()...), 0
	w.enterAll()
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.publish(temp); err != nil {
		return err
	}
	if old == nil {
		return nil
	}
	w.spoiled = 0
	if err := old.Close(); err != nil {
		return fmt.Errorf("journal: close %s: %w", oldName, err)
	}
	return w.remove(oldName)
}

// enterAll stages everything that the ledger says.
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

// publish gives the new ledger its name.
func (w *ledgerWriter) publish(temp string) error {
	if err := w.guard(); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	switch err := w.fs.Publish(temp, w.name); {
	case errors.Is(err, fs.ErrExist):
		return lostTo(w.name)
	case err != nil:
		return fmt.Errorf("journal: publish %s: %w", w.name, err)
	}
	if err := w.fs.SyncDir("."); err != nil {
		return fmt.Errorf("journal: sync directory: %w", err)
	}
	return nil
}

// remove removes a ledger that another has taken the place of.
func (w *ledgerWriter) remove(name string) error {
	if err := w.fs.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("journal: remove %s: %w", name, err)
	}
	return nil
}

// pruned notes that the segments before this one may be gone from now on.
func (w *ledgerWriter) pruned(kept uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	w.kept = kept
	w.segments = slices.DeleteFunc(w.segments, func(s writtenSegment) bool { return s.number < kept })
	w.add(entryPruned, binary.AppendUvarint(nil, kept))
	return w.flush()
}

// keepNote makes the caller's bytes durable in the place of those before.
func (w *ledgerWriter) keepNote(b []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	w.note = bytes.Clone(b)
	w.add(entryNote, w.note)
	return w.flush()
}

// named returns an error if the ledger is no longer what is found under its name.
func (w *ledgerWriter) named() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch named, err := w.file.Named(w.name); {
	case err != nil:
		return fmt.Errorf("journal: look for %s: %w", w.name, err)
	case !named:
		return fmt.Errorf("journal: %s was removed or replaced while it was written: %w", w.name, fs.ErrNotExist)
	}
	return nil
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
