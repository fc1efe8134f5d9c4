package journal

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/stet-ecs/stet/disk"
)

// A Log is the result of a [Scan]. Payloads stay in the files; [Log.Payload] reads them. The
// methods of a Log may be called from several goroutines. Its fields are read-only.
type Log struct {
	// Segments lists the segment files in order, including unreadable ones.
	Segments []Segment

	// Entries lists the readable records of the tree in file order. This is also the order of their
	// seqs.
	Entries []Entry

	// Lost lists records that were durable and cannot be read, ordered by seq. Their parents are
	// known, so [Log.Ancestors] can continue with them. A record is unknown if neither Entries nor
	// Lost contains it.
	Lost []Entry

	// Preambles lists the readable preambles in file order.
	Preambles []Entry

	// Problems lists damage to durable bytes, and segments that are foreign or newer, in file
	// order. They unwrap to [ErrCorrupt], [ErrForeign] or [ErrNewer].
	Problems []*disk.DamageError

	// Torn is the unfinished tail of the last segment. No record in it was acknowledged. Nil means
	// no tail.
	Torn *disk.DamageError

	// TornTails lists the cut-off tails of earlier segments. The header of the next segment says
	// where a segment ends; later bytes are cut off. They contain no acknowledged record, and may
	// contain any bytes.
	TornTails []Range

	World [16]byte // World of the segments. Zero if there are no segments.
	// Highest epoch of the segments, which every opening for writing increases. 0 if there are
	// none.
	Epoch  uint64
	Head   uint64 // Seq of the record to continue from. 0 means no record.
	Last   uint64 // Highest seq in use, readable or not. 0 means none.
	LastID ID     // The last readable record, or the record before the oldest segment.

	// Clean reports that the journal was closed, or is empty. Then no record is missing at its end.
	Clean bool

	// Unsure is the damage because of which newer, acknowledged segments may be missing. Nil means
	// that no newer segment is missing. A journal of version 1 has no ledger, so there nil means
	// unknown. Problems contains Unsure as well.
	Unsure *disk.DamageError

	// Believed counts the segments whose contents the log took from the ledger; see [Scan] and
	// [Log.ScanFrom].
	Believed int

	// Note is the last note of [Journal.KeepNote]. Nil means no note.
	Note []byte

	fs     disk.FS
	ledger *ledger      // Nil if no ledger is readable.
	spare  []listedFile // Older ledgers that a crash left behind.
	gone   uint64       // Number of the newest listed segment, if that is missing. Otherwise 0.
	gap    []gap        // Places where a preamble may be missing, in file order.
	newest newest       // How far Refresh has read the newest segment.

	trusted map[uint64]bool // Numbers of the segments that ScanFrom does not open.
	// Decoded summaries of the ledger, by segment number. Only set during a scan.
	summaries map[uint64]summary

	// Bytes of completely read segments, by name, until Close. Nil if no bytes are stored.
	small     map[string][]byte
	smallSize int64 // Number of bytes in the field small.

	mu   sync.Mutex
	open disk.File // The segment that was read last, kept open.
	name string
}

// A Segment describes one segment file.
type Segment struct {
	Name   string
	Number uint64 // Numbers are consecutive.
	Epoch  uint64 // Epoch of the opening that wrote it.
	// Seq of its first record, even if that is not written yet. 0 means that the header cannot be
	// read.
	First uint64
	Size  int64 // File size in bytes.
	// End of its records, marks and seals. Later bytes are torn, or cut off by the header of the
	// next segment; see TornTails of [Log].
	End int64

	Records int // Readable records of the tree.

	// Previous is the last record before this segment, according to the header.
	Previous ID

	// Err says why the segment cannot be read. Nil means that its header is valid.
	Err *disk.DamageError

	header  segmentHeader
	durable int64 // Bytes before this offset are durable: the highest watermark.
	// The bytes before this offset were durable once. The file may have lost some of them since.
	vouched int64
	sealed  bool   // Set if a clean close ended the segment.
	last    uint64 // Highest seq in use up to the end of the segment.
	head    uint64 // Head at the end of the segment.
}

// After reports whether s comes after the named file of the journal. It compares the numbers in the
// names, because the order of the strings is wrong for numbers of more than 8 digits. A ledger
// comes before the segment with the same number.
func (s *Segment) After(file string) bool {
	digits, kind, _ := strings.Cut(file, ".")
	n, err := strconv.ParseUint(digits, 10, 64)
	return err == nil && (s.Number > n || s.Number == n && "."+kind != segmentSuffix)
}

// An Entry is a record without its payload, and its position.
type Entry struct {
	ID      ID
	Parent  uint64 // Seq of the parent. 0 means no parent.
	Tick    uint64
	Flags   uint32 // The caller's flags, and FlagPreamble.
	Length  uint32 // Length of the payload in bytes, all parts together.
	Segment int    // Index in Log.Segments.
	// Offset of the record header, or of the first header if the record has several parts.
	Offset int64
}

// A Range is a part of a file.
type Range struct {
	File   string
	Offset int64
	Length int64
}

// A gap is a range of bad bytes in which a preamble may be lost.
type gap struct {
	segment int
	problem *disk.DamageError
}

// Err returns the first of Problems, or nil. A torn tail is not a problem.
func (l *Log) Err() error {
	switch n := len(l.Problems); n {
	case 0:
		return nil
	case 1:
		return l.Problems[0]
	default:
		return fmt.Errorf("%w (and %d more problems)", l.Problems[0], n-1)
	}
}

// Find returns the record with this seq, and whether it is readable.
//
// Cost: O(1), or O(log n) after unreadable records.
func (l *Log) Find(seq uint64) (Entry, bool) { return find(l.Entries, seq) }

// find returns the entry with this seq. The entries are ordered by seq.
func find(entries []Entry, seq uint64) (Entry, bool) {
	i, ok := index(entries, seq)
	if !ok {
		return Entry{}, false
	}
	return entries[i], true
}

// index returns the index of the entry with this seq. The entries are ordered by seq.
func index(entries []Entry, seq uint64) (int, bool) {
	if len(entries) > 0 {
		if i := seq - entries[0].ID.Seq; i < uint64(len(entries)) && entries[i].ID.Seq == seq {
			return int(i), true
		}
	}
	return slices.BinarySearchFunc(entries, seq, func(e Entry, seq uint64) int { return cmp.Compare(e.ID.Seq, seq) })
}

// Lost reports whether e was durable and cannot be read. The parent of a lost record is known, but
// its payload is lost.
func (e Entry) Lost() bool { return e.Flags&flagLost != 0 }

// damageAt returns the damage that contains the lost record e: the first damage after e.Offset. If
// setLost has inferred e, then e.Offset is the offset of the record before it. In that case, the
// damage may be in a later segment.
func (l *Log) damageAt(e Entry) *disk.DamageError {
	name := l.Segments[e.Segment].Name
	for _, p := range l.Problems {
		if c := compareNames(p.File, name); strings.HasSuffix(p.File, segmentSuffix) && (c > 0 || c == 0 && (p.Offset+p.Length > e.Offset || p.Length == 0)) {
			return p
		}
	}
	return &disk.DamageError{File: name, Offset: e.Offset, Reason: fmt.Sprintf("record %d is missing", e.ID.Seq), Err: ErrCorrupt}
}

// Tips returns the ends of the branches, oldest first: the records without children. Head is not
// always a tip, because a program may rewind before it closes the journal. Cost: O(n).
func (l *Log) Tips() []Entry {
	continued := make([]bool, len(l.Entries))
	for i := range l.Entries {
		if parent, ok := index(l.Entries, l.Entries[i].Parent); ok {
			continued[parent] = true
		}
	}
	for _, e := range l.Lost {
		if parent, ok := index(l.Entries, e.Parent); ok {
			continued[parent] = true
		}
	}
	var tips []Entry
	for i, e := range l.Entries {
		if !continued[i] {
			tips = append(tips, e)
		}
	}
	return tips
}

// Ancestors returns the record with this seq, its parent, and so on. It ends at the root, or at the
// first unknown record. Some of the records may be [Entry.Lost].
func (l *Log) Ancestors(seq uint64) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for e, ok := l.Known(seq); ok && yield(e); {
			e, ok = l.Known(e.Parent) // The loop ends, because a parent's seq is always less.
		}
	}
}

// Known returns the record with this seq, readable or lost, and whether the log has one.
func (l *Log) Known(seq uint64) (Entry, bool) {
	if e, ok := l.Find(seq); ok {
		return e, true
	}
	return find(l.Lost, seq)
}

// Path returns the records that lead from the state after record from to the state after record to,
// oldest first. The last element is record to. Record from is not in the path, and may have been
// pruned. If from is 0, the path starts before the first record.
//
// Path fails with the damage if a record on the path is lost, and with [ErrNotFound] if a record is
// unknown. It fails with [ErrNotAncestor] if record from is not an ancestor of record to.
//
// Cost: O(length of the path · log n).
func (l *Log) Path(from, to uint64) ([]Entry, error) {
	// If no record between the two was abandoned, the path has this length.
	path := make([]Entry, 0, min(max(to, from)-from, uint64(len(l.Entries))))
	for seq := to; seq != from; {
		if seq < from {
			return nil, fmt.Errorf("%w: record %d of record %d", ErrNotAncestor, from, to)
		}
		e, ok := l.Known(seq)
		if !ok {
			return nil, fmt.Errorf("%w: %d, on the path from %d to %d", ErrNotFound, seq, from, to)
		}
		if e.Lost() {
			return nil, l.damageAt(e)
		}
		path = append(path, e)
		seq = e.Parent
	}
	slices.Reverse(path)
	return path, nil
}

// Payload reads the payload of e into buf[:0] and returns it. Payload verifies all checksums again.
// If the bytes changed since the scan, it returns a [disk.DamageError].
func (l *Log) Payload(e Entry, buf []byte) ([]byte, error) {
	if e.Lost() {
		return nil, l.damageAt(e)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.Segments[e.Segment]
	f, err := l.file(s.Name)
	if err != nil {
		return nil, err
	}
	buf = slices.Grow(buf[:0], int(e.Length))
	r := payloadReader{file: f, segment: s, entry: e}
	return r.read(buf)
}

// Record reads the record of e. It reads the payload into buf as Payload does.
func (l *Log) Record(e Entry, buf []byte) (Record, error) {
	payload, err := l.Payload(e, buf)
	if err != nil {
		return Record{}, err
	}
	return Record{ID: e.ID, Parent: e.Parent, Tick: e.Tick, Flags: e.Flags, Payload: payload}, nil
}

// PreambleAt returns the last readable preamble before e in its segment, and whether one exists. If
// there is damage between that preamble and e, it may contain a later preamble: see [Log.Hidden].
func (l *Log) PreambleAt(e Entry) (Entry, bool) {
	i := sort.Search(len(l.Preambles), func(i int) bool { return !l.Preambles[i].before(e) })
	if i == 0 || l.Preambles[i-1].Segment != e.Segment {
		return Entry{}, false
	}
	return l.Preambles[i-1], true
}

func (e Entry) before(other Entry) bool {
	return e.Segment < other.Segment || e.Segment == other.Segment && e.Offset < other.Offset
}

// Preamble reads the preamble that applies to e: the last preamble before e in its segment. It
// returns nil if the segment has no preamble. If a later preamble may be lost in damage before e,
// Preamble returns that damage as its error.
func (l *Log) Preamble(e Entry) ([]byte, error) {
	if d := l.Hidden(e); d != nil {
		return nil, d
	}
	p, ok := l.PreambleAt(e)
	if !ok {
		return nil, nil
	}
	return l.Payload(p, nil)
}

// Hidden returns damage that may contain the preamble of e, or nil. Such damage is between the last
// readable preamble and e. If the segment has no readable preamble before e, any damage in the
// segment before e counts.
func (l *Log) Hidden(e Entry) *disk.DamageError {
	p, ok := l.PreambleAt(e)
	if !ok {
		p = Entry{Segment: e.Segment}
	}
	for _, g := range l.gap {
		at := Entry{Segment: g.segment, Offset: g.problem.Offset}
		if p.before(at) && at.before(e) {
			return g.problem
		}
	}
	return nil
}

// Writer returns the [Options.Writer] of the program that began s, or "" if it is unknown. It is
// unknown for a journal of version 1. It is also unknown if a program without this feature has
// rewritten the ledger since.
func (l *Log) Writer(s *Segment) string {
	if l.ledger == nil || s.Err != nil {
		return ""
	}
	if listed := l.ledger.find(s.Number); listed != nil && listed.salt == s.header.salt {
		return listed.writer
	}
	return ""
}

// Close closes the file that was read last and releases the bytes that [Log.ScanFrom] kept. The log
// remains usable.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.small = nil
	return l.release()
}

func (l *Log) release() error {
	if l.open == nil {
		return nil
	}
	f := l.open
	l.open, l.name = nil, ""
	return f.Close()
}

// file returns the opened segment with this name. It keeps the last segment open, because most
// reads use the same segment again.
func (l *Log) file(name string) (io.ReaderAt, error) {
	if b := l.small[name]; b != nil {
		return bytes.NewReader(b), nil
	}
	if l.open != nil && l.name == name {
		return l.open, nil
	}
	l.release()
	f, err := l.fs.Open(name)
	if err != nil {
		return nil, fmt.Errorf("journal: open %s: %w", name, err)
	}
	l.open, l.name = f, name
	return f, nil
}

// A payloadReader reads the parts of one entry.
type payloadReader struct {
	file    io.ReaderAt
	segment *Segment
	entry   Entry
	scratch [recordHeader]byte
}

func (r *payloadReader) read(buf []byte) ([]byte, error) {
	offset, crc := r.entry.Offset, uint32(0)
	for {
		h, err := r.header(offset)
		if err != nil {
			return nil, err
		}
		start := len(buf)
		if int64(start)+int64(h.length) > int64(r.entry.Length) {
			return nil, r.damage(offset, "payload is longer than it was")
		}
		buf = buf[:start+int(h.length)]
		n, err := readAt(r.file, r.segment.Name, buf[start:], offset+recordHeader)
		if err != nil {
			return nil, err
		}
		crc = crc32.Update(crc, castagnoli, buf[start:start+n])
		if n < int(h.length) || crc != h.crc {
			return nil, r.damage(offset, "payload checksum does not match")
		}
		if h.flags&flagMore == 0 {
			return r.whole(buf, crc)
		}
		offset += recordSize(int64(h.length))
	}
}

func (r *payloadReader) header(offset int64) (h header, err error) {
	n, err := readAt(r.file, r.segment.Name, r.scratch[:], offset)
	if err != nil {
		return h, err
	}
	if n < recordHeader || !h.parse(r.scratch[:], r.segment.header.seed(), offset) || h.seq != r.entry.ID.Seq {
		return h, r.damage(offset, "record header is not what it was")
	}
	return h, nil
}

func (r *payloadReader) whole(buf []byte, crc uint32) ([]byte, error) {
	if crc != r.entry.ID.CRC || len(buf) != int(r.entry.Length) {
		return nil, r.damage(r.entry.Offset, "payload is not what it was")
	}
	return buf, nil
}

func (r *payloadReader) damage(offset int64, reason string) error {
	return &disk.DamageError{File: r.segment.Name, Offset: offset, Length: recordSize(int64(r.entry.Length)),
		Reason: fmt.Sprintf("record %d: %s", r.entry.ID.Seq, reason), Err: ErrCorrupt}
}

// Payloads reads the payloads of entries, in this order. It calls f with each payload, or with the
// error of reading it. The payload is valid until f returns. Payloads opens its own files, so
// several goroutines can read in parallel.
func (l *Log) Payloads(entries []Entry, f func(e Entry, payload []byte, err error)) {
	var (
		file aheadFile
		done = func() {}
		err  error
		buf  []byte
	)
	defer func() { done() }()
	last := -1
	for _, e := range entries {
		if e.Segment != last {
			done()
			last = e.Segment
			file.filled = 0
			file.ReaderAt, done, err = l.reader(l.Segments[last].Name)
		}
		if err != nil {
			f(e, nil, err)
			continue
		}
		r := payloadReader{file: &file, segment: &l.Segments[e.Segment], entry: e}
		payload, readErr := r.read(slices.Grow(buf[:0], int(e.Length)))
		if readErr == nil {
			buf = payload
		}
		f(e, payload, readErr)
	}
}

// An aheadFile reads more bytes than requested. Most reads are sequential: a header, its payload,
// and then the next record.
type aheadFile struct {
	io.ReaderAt
	window [16 << 10]byte
	at     int64 // Offset of the window in the file.
	filled int   // Number of valid bytes in the window.
}

// ReadAt implements [io.ReaderAt].
func (f *aheadFile) ReadAt(b []byte, offset int64) (n int, err error) {
	if at := offset - f.at; at >= 0 && at+int64(len(b)) <= int64(f.filled) {
		return copy(b, f.window[at:]), nil
	}
	if len(b) > len(f.window)/2 {
		return f.ReaderAt.ReadAt(b, offset)
	}
	f.at = offset
	f.filled, err = f.ReaderAt.ReadAt(f.window[:], offset)
	n = copy(b, f.window[:f.filled])
	if n == len(b) {
		err = nil
	}
	return n, err
}
