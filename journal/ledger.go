package journal

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"slices"

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
	closed   closedSegment
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

// The kinds of entries. Others are skipped: a feature that must be known is named.
const (
	entryFiller   = 0 // Zeros, in the place of what a failed write left.
	entryFeatures = 1 // Names; the first entry.
	entrySegment  = 2 // A segment was begun; with it, what is in the one that has ended.
	entryPruned   = 3 // The oldest segment that is kept.
	entryNote     = 4 // The caller's; the last one counts.
	entryClosed   = 5 // The newest segment is about to be sealed, at this offset.
	entryWriter   = 6 // The program that writes a segment; behind that segment's entry.
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
	writer                     string // "": unknown.
}

// A closedSegment is one that is complete, and where its seals are about to be written.
type closedSegment struct{ number, end uint64 }

// A ledgerHeader stands at the start of a ledger.
type ledgerHeader struct {
	world  [16]byte
	number uint64 // As in the file name.
	salt   uint64 // Random; makes the bytes of other ledgers invalid here.
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
	case entryClosed:
		l.closed = closedSegment{r.next(), r.next()}
	case entryWriter:
		if s := l.find(r.next()); s != nil && len(r.b) <= maxWriter {
			s.writer, r.b = string(r.b), nil
		}
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

// closedAt returns up to where s was durable when the journal was closed, by what the
// ledger says; 0: it was not closed, or that cannot be.
func (l *Log) closedAt(s *Segment) int64 {
	if l.ledger == nil || l.ledger.closed.number != s.Number || l.ledger.closed.end > maxSegment {
		return 0
	}
	return int64(l.ledger.closed.end)
}

// checkEnd reports an unfinished end of the ledger of a journal that was closed, since the
// ledger says so before the seals do. One is not closed of which newer segments may be
// missing.
func (l *Log) checkEnd() {
	l.Clean = l.Clean && l.Unsure == nil
	for _, file := range l.spare {
		if l.Clean { // Else a crash may have kept it from being removed.
			_ = l.problem(file.name, 0, file.size, "there is a newer ledger")
		}
	}
	if led := l.ledger; led != nil && l.Clean && !led.told && len(l.Segments) > 0 {
		if last := &l.Segments[len(l.Segments)-1]; led.torn > 0 || led.closed.number != last.Number {
			end := cmp.Or(led.torn, led.size)
			_ = l.problem(led.name, end, led.size-end, "the ledger ends before it says that the journal was closed")
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
	l.spare = files[:max(0, len(files)-1)]
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
	d := file.bad
	if d == nil {
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
