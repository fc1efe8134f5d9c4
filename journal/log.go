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

// A Log is what a [Scan] found. Payloads stay in the files; [Log.Payload] reads
// them. Its methods may be called from several goroutines; its fields are
// read-only.
type Log struct {
	// Segments lists the segment files in order, also those that cannot be
	// read.
	Segments []Segment

	// Entries lists the readable records of the tree in file order, which is
	// also the order of their seqs.
	Entries []Entry

	// Lost lists the records, in the order of their seqs, that were durable and cannot be
	// read, but of which it is known what they continue: the way to newer ones leads over
	// them. Of a record that is in neither list nothing is known.
	Lost []Entry

	// Preambles lists the readable preambles in file order.
	Preambles []Entry

	// Problems lists damage to what was durable, and segments that are foreign
	// or newer, in file order. They did not keep the rest from being read.
	Problems []*DamageError

	// Torn is the unfinished tail of the last segment; nil: none. Nothing in it
	// was acknowledged.
	Torn *DamageError

	// Disowned lists tails of earlier segments that the next opening for
	// writing left behind. They hold nothing that was acknowledged, and may
	// hold anything.
	Disowned []Range

	World  [16]byte // Of the segments. Zero if there are none.
	Epoch  uint64   // The highest; 0 if there are no segments.
	Head   uint64   // Seq of the record that recovery leads to; 0: none.
	Last   uint64   // Highest seq given out, readable or not; 0: none.
	LastID ID       // The last readable record, or the one before the oldest segment.

	// Clean says that the journal was closed, or is empty: what is there is all
	// there was.
	Clean bool

	// Unsure is why newer segments than these may be missing, with what was
	// acknowledged; nil: none is, or the journal is of version 1, which cannot tell.
	// It is among Problems as well.
	Unsure *DamageError

	// Believed counts the segments of which the log has what the ledger says; see [Scan] and
	// [Log.ScanFrom].
	Believed int

	// Note is what [Journal.KeepNote] kept last; nil: nothing.
	Note []byte

	fs     disk.FS
	ledger *ledger      // nil: none that can be read.
	spare  []listedFile // Older ledgers, which a crash left.
	gone   uint64       // The newest segment, if it is missing; else 0.
	gap    []gap        // Where a preamble may be missing, in file order.
	newest newest       // For Refresh.

	trusted   map[uint64]bool    // Numbers of the segments that are not opened; see ScanFrom.
	summaries map[uint64]summary // Decoded ones of the ledger, by the number of the segment, while it is scanned.

	small     map[string][]byte // Segments that were read whole, by name, until Close; nil: none are kept.
	smallSize int64             // Bytes in small.

	mu   sync.Mutex
	open disk.File // The segment that was read last, kept open.
	name string
}

// A Segment is one file.
type Segment struct {
	Name   string
	Number uint64 // Consecutive.
	Epoch  uint64 // Of the opening that wrote it.
	First  uint64 // Seq of its first record, if it has one. 0: the header cannot be read.
	Size   int64  // Of the file, in bytes.
	End    int64  // Where its records, marks and seals end; behind is torn or disowned.

	Records int // Readable records of the tree.

	// Previous is the last record before this segment, as its header says.
	Previous ID

	// Err says why nothing of the segment can be read; nil: its header is good.
	Err *DamageError

	header  segmentHeader
	durable int64  // Durable for sure: the highest watermark.
	vouched int64  // Durable once, even if the file was cut short since.
	sealed  bool   // Ended by a clean close.
	last    uint64 // Highest seq given out up to its end,
	head    uint64 // and the head there.
}

// After reports whether s comes behind what lies in a file, as damage names it: by the numbers in the names,
// which have more digits from 100,000,000 on. A ledger comes before the segment of its number.
func (s *Segment) After(file string) bool {
	digits, kind, _ := strings.Cut(file, ".")
	n, err := strconv.ParseUint(digits, 10, 64)
	return err == nil && (s.Number > n || s.Number == n && "."+kind != segmentSuffix)
}

// An Entry is a record without its payload, and where it lies.
type Entry struct {
	ID      ID
	Parent  uint64 // Seq; 0: none.
	Tick    uint64
	Flags   uint32 // The caller's, and FlagPreamble.
	Length  uint32 // Of the payload in bytes, all parts together.
	Segment int    // Index in Log.Segments.
	Offset  int64  // Of the (first) record header.
}

// A Range is a part of a file.
type Range struct {
	File   string
	Offset int64
	Length int64
}

// A gap is a range of bad bytes before which nothing is known of preambles.
type gap struct {
	segment int
	problem *DamageError
}

// Err returns the first of Problems, or nil. A torn tail is no problem.
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

// Find returns the record with this seq, and whether it can be read. Cost: O(1), or
// O(log n) behind records that cannot be read.
func (l *Log) Find(seq uint64) (Entry, bool) {
	i, ok := l.index(seq)
	if !ok {
		return Entry{}, false
	}
	return l.Entries[i], true
}

// index returns where in Entries the record with this seq is, and whether it is there.
func (l *Log) index(seq uint64) (int, bool) {
	if len(l.Entries) > 0 {
		if i := seq - l.Entries[0].ID.Seq; i < uint64(len(l.Entries)) && l.Entries[i].ID.Seq == seq {
			return int(i), true
		}
	}
	return slices.BinarySearchFunc(l.Entries, seq, func(e Entry, seq uint64) int { return cmp.Compare(e.ID.Seq, seq) })
}

// Lost reports whether e was durable and cannot be read: what it continues is known, its
// payload is not.
func (e Entry) Lost() bool { return e.Flags&flagLost != 0 }

// findLost returns the record with this seq if it is one of l.Lost.
func (l *Log) findLost(seq uint64) (Entry, bool) {
	i, ok := slices.BinarySearchFunc(l.Lost, seq, func(e Entry, seq uint64) int { return cmp.Compare(e.ID.Seq, seq) })
	if !ok {
		return Entry{}, false
	}
	return l.Lost[i], true
}

// damageAt returns the damage that e, which is lost, was lost in: the first behind it. Of one
// that was inferred no more is known than what it lies behind, perhaps in another segment.
func (l *Log) damageAt(e Entry) *DamageError {
	name := l.Segments[e.Segment].Name
	for _, p := range l.Problems {
		if c := compareNames(p.File, name); strings.HasSuffix(p.File, segmentSuffix) && (c > 0 || c == 0 && (p.Offset+p.Length > e.Offset || p.Length == 0)) {
			return p
		}
	}
	return &DamageError{File: name, Offset: e.Offset, Reason: fmt.Sprintf("record %d is missing", e.ID.Seq), Err: ErrCorrupt}
}

// Tips returns the ends of the branches, oldest first: the records that no other one
// continues. Head need not be one of them, as a program may have gone back before it
// closed the journal. Cost: O(n).
func (l *Log) Tips() []Entry {
	continued := make([]bool, len(l.Entries))
	for i := range l.Entries {
		if parent, ok := l.index(l.Entries[i].Parent); ok {
			continued[parent] = true
		}
	}
	for _, e := range l.Lost {
		if parent, ok := l.index(e.Parent); ok {
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

// Ancestors returns the record with this seq, its parent, and so on to the
// root, or to the first of which nothing is known. Some may be [Entry.Lost].
func (l *Log) Ancestors(seq uint64) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for e, ok := l.Known(seq); ok && yield(e); {
			e, ok = l.Known(e.Parent) // A parent's seq is always less.
		}
	}
}

// Known returns the record with this seq, readable or lost, and whether there is one.
func (l *Log) Known(seq uint64) (Entry, bool) {
	e, ok := l.Find(seq)
	if !ok && len(l.Lost) > 0 {
		return l.findLost(seq)
	}
	return e, ok
}

// Path returns the records that lead from the state after from to the state
// after to, oldest first: without from, with to. From 0 is the state before the
// first record; from itself need not be in the log any more. It fails with the damage
// if a record on the way is lost, with [ErrNotFound] if nothing is known of one, and with
// [ErrNotAncestor] if the way does not pass from.
//
// Cost: O(length of the path · log n).
func (l *Log) Path(from, to uint64) ([]Entry, error) {
	path := make([]Entry, 0, min(max(to, from)-from, uint64(len(l.Entries)))) // As many as there are, unless some between are rewound.
	for seq := to; seq != from; {
		if seq < from {
			return nil, fmt.Errorf("%w: record %d of record %d", ErrNotAncestor, from, to)
		}
		e, ok := l.Known(seq)
		if !ok {
			return nil, fmt.Errorf("%w: %d, on the way from %d to %d", ErrNotFound, seq, from, to)
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

// Payload reads the payload of e, appends it to buf[:0], and returns it. It
// checks all checksums again; bytes that changed since the scan are a
// [DamageError].
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

// Record reads the record of e, its payload into buf as Payload does.
func (l *Log) Record(e Entry, buf []byte) (Record, error) {
	payload, err := l.Payload(e, buf)
	if err != nil {
		return Record{}, err
	}
	return Record{ID: e.ID, Parent: e.Parent, Tick: e.Tick, Flags: e.Flags, Payload: payload}, nil
}

// PreambleAt returns the last readable preamble before e in its segment, and
// whether there is one. If damage lies between the two, there may have been a
// later one.
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

// Preamble reads the preamble in force at e: the last one before it in its
// segment, nil if there is none. If damage lies between the two, it returns
// that damage instead, since a later preamble may be lost in it.
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

// Hidden returns the damage between e and the last readable preamble before it in its
// segment, or the beginning of that, in which a later one may be lost; nil: there is none.
func (l *Log) Hidden(e Entry) *DamageError {
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

// Writer returns what [Options.Writer] said of the program that began s, or "" if that is unknown: a
// program that has no word for it wrote the ledger since, or the journal is of version 1.
func (l *Log) Writer(s *Segment) string {
	if l.ledger == nil || s.Err != nil {
		return ""
	}
	if listed := l.ledger.find(s.Number); listed != nil && listed.salt == s.header.salt {
		return listed.writer
	}
	return ""
}

// Close lets go of the file that was read last and of the bytes that [Log.ScanFrom] kept. The log can
// still be used.
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

// file returns the named segment, opened. Most reads ask for the same one again
// and again.
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
	return &DamageError{File: r.segment.Name, Offset: offset, Length: recordSize(int64(r.entry.Length)),
		Reason: fmt.Sprintf("record %d: %s", r.entry.ID.Seq, reason), Err: ErrCorrupt}
}

// Payloads reads the payloads of entries, in this order, and calls f with each, or
// with why it cannot be read. A payload is valid until f returns. It has files of its
// own, so that several goroutines may read at the same time.
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

// An aheadFile reads more than it is asked for, as what lies behind is most often asked for next: a
// header and its payload, and the next record.
type aheadFile struct {
	io.ReaderAt
	window [16 << 10]byte
	at     int64 // Where in the file the window is,
	filled int   // and how much of it holds something.
}

// ReadAt reads as [io.ReaderAt] says.
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
