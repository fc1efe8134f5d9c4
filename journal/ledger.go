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

// A ledger is the file that lists the segments of a journal. It shows when a segment is missing,
// even the newest one. The ledger also contains summaries of complete segments, so that a scan need
// not read these segments. For example, a ledger can have these entries:
//
//	header | features | pruned 3 | segment 3 | segment 4, summary of 3 | pruned 4 | …
//
// The entry "pruned 4" says that the segments before segment 4 may be missing.
//
// The writer adds a segment to the ledger once the segment's name is durable, and before any of its
// records is acknowledged. Every opening writes a new ledger, with the number of the segment that
// the opening begins. A roll also writes a new ledger if most of the old ledger describes pruned
// segments. Once a new ledger is written, older ledgers are removed. FORMAT.md describes the bytes.
type ledger struct {
	name     string
	size     int64
	header   ledgerHeader
	features []feature
	kept     uint64 // Segments with smaller numbers were pruned, or are about to be.
	segments []listedSegment
	note     []byte
	closed   closedSegment
	torn     int64 // Offset of an unfinished or damaged last entry. 0 means no such entry.
	told     bool  // reportUnlisted has reported that the ledger ends too early.
}

const (
	ledgerMagic = "STETLEDG"
	// Same number as the segment version: journals of version 1 have no ledger.
	ledgerVersion    = 2
	ledgerHeaderSize = 64
	ledgerSuffix     = ".ledger"

	entryHeader = 16

	// maxEntry bounds the length of one entry. A summary is shorter than its segment.
	maxEntry = maxSegment

	maxNote = 16 << 20 // Maximum size of a note in bytes.
)

// The kinds of entries. Readers skip unknown kinds. A feature that readers must support is listed
// in the features entry.
const (
	entryFiller   = 0 // Zeros that overwrite the remains of a failed write.
	entryFeatures = 1 // Feature names. Always the first entry.
	entrySegment  = 2 // A segment was begun. Contains the summary of the previous segment.
	entryPruned   = 3 // Number of the oldest segment that was not pruned.
	entryNote     = 4 // The caller's note. The last note entry counts.
	entryClosed   = 5 // The newest segment is about to be sealed at this offset.
	entryWriter   = 6 // The program that writes a segment. Follows the entry of that segment.
)

// A feature is an extension beyond version 2 that the journal or its note uses.
type feature struct {
	name     string
	required bool // A program without support for the feature must refuse the journal.
}

// A listedSegment describes a segment as the ledger lists it.
type listedSegment struct {
	number, epoch, first, salt uint64
	sums                       []byte // Encoded summary. Nil if the summary is missing or damaged.
	writer                     string // The writing program; "" means unknown.
}

// A closedSegment describes a complete segment. Its seals are about to be written at the offset
// end.
type closedSegment struct{ number, end uint64 }

// A ledgerHeader is at the start of a ledger.
type ledgerHeader struct {
	world  [16]byte
	number uint64 // Same number as in the file name.
	salt   uint64 // Random. Makes bytes of other ledgers invalid here.
}

// parse reads the header of the ledger with this number. If the header is invalid, parse returns
// the reason and the kind of error: ErrCorrupt or ErrNewer. Otherwise the reason is "".
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

// seed returns the initial CRC value for the entry at offset.
func (h *ledgerHeader) seed(offset int64) uint32 {
	b := binary.LittleEndian.AppendUint64(nil, h.salt)
	return crc32.Checksum(binary.LittleEndian.AppendUint64(b, uint64(offset)), castagnoli)
}

// entryAt returns the entry that begins at b[at:] and the index of its end in b. ok is false if no
// valid entry begins there. The parameter base is the offset of b[0] in the ledger.
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

// read parses b, the bytes of the file after those that l has already read. It adds valid entries
// to l and reports damaged ones. It returns an error only if the whole ledger is unusable.
func (l *ledger) read(b []byte, report func(offset, length int64, reason string)) *disk.DamageError {
	base, at := l.size, 0
	l.size += int64(len(b))
	if base == 0 {
		number, _ := numbered(l.name, ledgerSuffix)
		if reason, kind := l.header.parse(b, number); reason != "" {
			return &disk.DamageError{File: l.name, Length: min(l.size, ledgerHeaderSize), Reason: reason, Err: kind}
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
		if reason, err := l.addEntry(kind, payload); reason != "" {
			d := &disk.DamageError{File: l.name, Offset: base + int64(at), Length: int64(end - at), Reason: reason, Err: err}
			if errors.Is(err, ErrNewer) {
				return d
			}
			report(d.Offset, d.Length, reason)
		}
		at = end
	}
	return nil
}

// addEntry adds the contents of an entry to l. If the entry is invalid, addEntry returns the
// reason.
func (l *ledger) addEntry(kind uint32, payload []byte) (reason string, err error) {
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
				return fmt.Sprintf("the journal needs the feature %q, which this program does not support", f.name), ErrNewer
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
			return "the ledger lists a segment out of order", ErrCorrupt
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
		return "entry of the ledger has impossible values", ErrCorrupt
	}
	return "", nil
}

// find returns the listed segment with this number, or nil.
func (l *ledger) find(number uint64) *listedSegment {
	i, ok := slices.BinarySearchFunc(l.segments, number, func(s listedSegment, n uint64) int { return cmp.Compare(s.number, n) })
	if !ok {
		return nil
	}
	return &l.segments[i]
}

// newest returns the number of the last listed segment.
func (l *ledger) newest() uint64 {
	if len(l.segments) == 0 {
		return 0
	}
	return l.segments[len(l.segments)-1].number
}

// varints decodes the numbers of an entry. After invalid input, bad is set and all reads return
// zero.
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

// closedAt returns the offset up to which s was durable, according to the ledger of a closed
// journal. It returns 0 if there is no plausible offset.
func (l *Log) closedAt(s *Segment) int64 {
	if l.ledger == nil || l.ledger.closed.number != s.Number || l.ledger.closed.end > maxSegment {
		return 0
	}
	return int64(l.ledger.closed.end)
}

// checkEnd checks the end of the ledger. Close adds an entry to the ledger before it writes the
// seals. So if the seals exist without this entry, checkEnd reports a problem. If newer segments
// may be missing, checkEnd marks the log as not clean.
func (l *Log) checkEnd() {
	l.Clean = l.Clean && l.Unsure == nil
	for _, file := range l.spare {
		// A crash may have prevented the removal of an older ledger. In a closed journal, an older
		// ledger is a problem.
		if l.Clean {
			_ = l.problem(file.name, 0, file.size, "there is a newer ledger")
		}
	}
	if led := l.ledger; led != nil && l.Clean && !led.told && len(l.Segments) > 0 {
		if last := &l.Segments[len(l.Segments)-1]; led.torn > 0 || led.closed.number != last.Number {
			end := cmp.Or(led.torn, led.size)
			_ = l.problem(led.name, end, led.size-end, "the ledger ends before the entry that the journal was closed")
		}
	}
}

// isFile reports whether l was read from the newest of the files, and the size has not changed.
func (l *ledger) isFile(files []listedFile) bool {
	n := len(files)
	return n > 0 && files[n-1].name == l.name && files[n-1].size == l.size
}

// readLedger reads the newest ledger and compares the segments with it. If the ledger was read
// before, readLedger reads only the added bytes.
func (l *Log) readLedger(files []listedFile) error {
	before := l.ledger
	l.ledger, l.Unsure, l.Note, l.gone = nil, nil, nil, 0
	l.spare = files[:max(0, len(files)-1)]
	if !l.hasLedger(len(files)) {
		return nil
	}
	if len(files) == 0 {
		l.reportMissingLedger()
		return nil
	}
	led := before
	if led == nil || led.torn > 0 || !led.isFile(files) {
		var err error
		if led, err = l.openLedger(files[len(files)-1], before); err != nil || led == nil {
			return err
		}
	}
	l.ledger, l.Note = led, led.note
	return l.compare(led)
}

// hasLedger reports whether the journal has a version with a ledger. If no segment is readable,
// hasLedger reports whether ledger files exist.
func (l *Log) hasLedger(files int) bool {
	readable := func(s Segment) bool { return s.Err == nil }
	if !slices.ContainsFunc(l.Segments, readable) {
		return files > 0
	}
	return slices.ContainsFunc(l.Segments, func(s Segment) bool { return readable(s) && s.header.version >= ledgerVersion })
}

// openLedger reads a ledger. The parameter before is the ledger of an earlier scan, or nil. If the
// same file has grown, openLedger reads only the added bytes. If the whole file is unusable,
// openLedger adds a problem to the log and returns nil.
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

// reportMissingLedger reports a problem if there is no ledger, but a segment contains records.
// Without records, a crash may have prevented the first ledger from being written.
func (l *Log) reportMissingLedger() {
	for i := range l.Segments {
		if s := &l.Segments[i]; s.Err == nil && s.written() {
			l.Unsure = l.problem(ledgerName(l.Segments[len(l.Segments)-1].Number), 0, 0, "missing: newer segments may be missing as well")
			return
		}
	}
}

// written reports whether s contains more bytes than at its creation.
func (s *Segment) written() bool { return s.Size > int64(s.header.start) }

// compare reports differences between the segments and the ledger. The newest segment may be
// unlisted if it has no records: the program ended before it added the segment to the ledger.
func (l *Log) compare(led *ledger) error {
	if !l.isOwnWorld(led.header.world) {
		l.Problems = append(l.Problems, &disk.DamageError{File: led.name, Offset: 16, Length: 16, Err: ErrForeign,
			Reason: fmt.Sprintf("ledger of world %x among segments of world %x", led.header.world, l.World)})
		return nil
	}
	if err := l.reportMissing(led); err != nil {
		return err
	}
	for i := range l.Segments {
		s := &l.Segments[i]
		if s.Err != nil {
			continue
		}
		switch listed := led.find(s.Number); {
		case listed == nil && s.Number > led.newest() && s.written():
			l.reportUnlisted(led, s)
			return nil // The later segments are unlisted, too.
		case listed != nil && (listed.epoch != s.header.epoch || listed.first != s.header.first || listed.salt != s.header.salt):
			_ = l.problem(s.Name, 0, segmentHeaderSize, "it is another segment than the one that the ledger lists")
		}
	}
	return nil
}

// reportUnlisted reports that the ledger ends before it lists s.
func (l *Log) reportUnlisted(led *ledger, s *Segment) {
	end := cmp.Or(led.torn, led.size)
	_ = l.problem(led.name, end, led.size-end, fmt.Sprintf("the ledger ends before it lists %s", s.Name))
	led.told = true
}

// isOwnWorld reports whether the segments belong to the given world, which is that of the ledger.
// If no segment is readable, isOwnWorld takes the world of the ledger and returns true.
func (l *Log) isOwnWorld(world [16]byte) bool {
	if !slices.ContainsFunc(l.Segments, func(s Segment) bool { return s.Err == nil }) {
		l.World = world
	}
	return l.World == world
}

// reportMissing reports listed segments that do not exist, before the oldest and after the newest
// existing segment. Gaps between existing segments are found without the ledger.
func (l *Log) reportMissing(led *ledger) error {
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

// errListing reports a segment that was created after the directory was listed. The scan must start
// again.
var errListing = errors.New("it was created while the directory was read")

// readFrom returns the bytes of a file from offset to its end.
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
