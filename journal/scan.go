package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"

	"github.com/stet-ecs/stet/disk"
)

// Scan reads and checks the segments. It writes nothing. Damage does not stop the scan; see
// [Log.Problems]. Scan returns an error if a read fails, because a failed read says nothing about
// the file's contents. It also returns an error if ctx ends.
//
// If the argument newest is greater than 0, Scan limits its reads. It reads the last segment, and
// earlier segments up to a total size of newest bytes. Of an older segment, it reads only the
// header, and takes the records from the summary in the ledger. If the segment is small or has no
// usable summary, Scan reads the whole segment. Damage in the unread bytes is detected when a
// record is read later. [Log.ScanFrom] reads even less.
//
// Scan may run while another process appends; then the tail can look torn. If segments are pruned
// during the scan, it starts again.
//
// If progress is not nil, Scan calls it with the number of bytes read so far. It does so at the
// beginning with 0, after every 64 KiB, and at the end with the total. If the scan starts again,
// the number starts at 0 again.
//
// Cost: every byte is read once. If newest limits the reads, the cost is about 12 bytes of the
// ledger for each older record. Memory: 64 bytes per record stay allocated. During the scan,
// several times as many bytes are allocated. Payloads pass through a small buffer.
func Scan(ctx context.Context, fs disk.FS, newest int64, progress func(done, total int64)) (*Log, error) {
	l, err := scan(ctx, fs, newest, nil, progress)
	if err == nil {
		l.small = nil // Later reads must read the files again, because the files may have changed.
	}
	return l, err
}

// scan implements [Scan] or, if base is not nil, [Log.ScanFrom]. It stores the bytes of small
// segments in the log.
func scan(ctx context.Context, fs disk.FS, newest int64, base *uint64, progress func(done, total int64)) (*Log, error) {
	if newest <= 0 {
		newest = math.MaxInt64
	}
	const tries = 8
	var err error
	for range tries {
		var l *Log
		if l, err = scanOnce(ctx, fs, newest, base, progress); !vanished(err) && !errors.Is(err, errListing) {
			return l, err
		}
	}
	return nil, err
}

func vanished(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func scanOnce(ctx context.Context, fs disk.FS, newest int64, base *uint64, progress func(done, total int64)) (*Log, error) {
	files, err := list(fs)
	if err != nil {
		return nil, err
	}
	l := &Log{fs: fs, Clean: true, small: map[string][]byte{}}
	if base != nil {
		if err := l.trustLedger(files, *base); err != nil {
			return nil, err
		}
	}
	for i, file := range files.segments {
		if err := l.addSegment(file, i+1 == len(files.segments)); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	l.checkWorlds()
	if err := l.readLedger(files.ledgers); err != nil {
		return nil, err
	}
	w := newScanWindow(ctx, l.Segments, progress)
	w.first = len(l.Segments) - 1
	for ; w.first > 0 && l.Segments[w.first-1].Size <= newest; w.first-- {
		newest -= l.Segments[w.first-1].Size
	}
	if err := l.scanSegments(0, w, nil); err != nil {
		return nil, err
	}
	return l, ctx.Err()
}

// scanSegments scans the segments from index first on, and completes the log. If known is not nil,
// it is an earlier scan that ended in the first of them. Then the scan of this segment continues
// where the earlier scan ended.
func (l *Log) scanSegments(first int, w *scanWindow, known *Log) error {
	for i := first; i < len(l.Segments); i++ {
		l.newest = newest{last: l.Last, lastID: l.LastID}
		l.checkLink(i)
		if err := l.scanSegment(i, w, known); err != nil {
			return err
		}
		known = nil
		w.passed(l.Segments[i].Size)
	}
	l.checkEnd()
	l.setLost()
	l.sortProblems()
	l.forgetSummaries()
	return nil
}

// A scanWindow is shared by the scanners of all segments: a buffer, the context and the progress.
type scanWindow struct {
	ctx      context.Context
	bytes    []byte // A buffer of windowSize bytes.
	progress func(done, total int64)
	// Segments with a lower index need not be read if the ledger has their summary.
	first int

	before int64 // Bytes of the completed segments.
	// Last value passed to progress. It never decreases, even if bytes are read twice.
	told  int64
	total int64
}

func newScanWindow(ctx context.Context, segments []Segment, progress func(done, total int64)) *scanWindow {
	w := &scanWindow{ctx: ctx, bytes: make([]byte, windowSize), progress: progress, told: -1}
	for i := range segments {
		w.total += segments[i].Size
	}
	_ = w.moved(0)
	return w
}

// moved reports the progress of reading the current segment, up to an offset. It returns the error
// of the context.
func (w *scanWindow) moved(offset int64) error {
	if done := w.before + offset; w.progress != nil && done > w.told && w.ctx.Err() == nil {
		w.told = done
		w.progress(done, w.total)
	}
	return w.ctx.Err()
}

// passed is called after a segment of this size has been read.
func (w *scanWindow) passed(size int64) {
	w.before += size
	_ = w.moved(0)
}

// sortProblems sorts the problems by file and offset. Headers are read before records, so their
// problems were found out of order.
func (l *Log) sortProblems() {
	slices.SortStableFunc(l.Problems, func(a, b *disk.DamageError) int {
		return cmp.Or(compareNames(a.File, b.File), cmp.Compare(a.Offset, b.Offset))
	})
}

// compareNames orders segment names by their numbers.
func compareNames(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// A listing contains the journal's files in the directory, each kind ordered by number.
type listing struct{ segments, ledgers []listedFile }

type listedFile struct {
	name string
	size int64
	bad  *disk.DamageError // Set if the entry is not a regular file.
}

// list reads the directory of a journal.
func list(dir disk.FS) (listing, error) {
	entries, err := dir.ReadDir(".")
	if err != nil {
		return listing{}, fmt.Errorf("journal: list: %w", err)
	}
	var l listing
	for _, e := range entries {
		_, segment := numbered(e.Name(), segmentSuffix)
		_, ledger := numbered(e.Name(), ledgerSuffix)
		if !segment && !ledger {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // The file was removed after the directory was read.
		}
		if err != nil {
			return listing{}, fmt.Errorf("journal: list: %w", err)
		}
		file := listedFile{e.Name(), info.Size(), disk.Irregular(e.Name(), e.Type(), false)}
		if segment {
			l.segments = append(l.segments, file)
		} else {
			l.ledgers = append(l.ledgers, file)
		}
	}
	for _, files := range [][]listedFile{l.segments, l.ledgers} {
		slices.SortFunc(files, func(a, b listedFile) int { return compareNames(a.name, b.name) })
	}
	return l, nil
}

// addSegment reads the header of a segment, or the whole file if it is small. For a trusted
// segment, it uses the header in the ledger. The parameter newest is set for the newest segment,
// which may have grown since the directory was listed.
func (l *Log) addSegment(file listedFile, newest bool) error {
	name := file.name
	number, _ := numbered(name, segmentSuffix)
	if file.bad != nil {
		s := Segment{Name: name, Number: number, Err: file.bad}
		l.Segments, l.Problems = append(l.Segments, s), append(l.Problems, s.Err)
		return nil
	}
	if l.addTrusted(file, number) {
		return nil
	}
	f, err := l.fs.Open(name)
	if err != nil {
		return fmt.Errorf("journal: open %s: %w", name, err)
	}
	defer f.Close()
	size := file.size
	if newest {
		if size, err = f.Size(); err != nil {
			return fmt.Errorf("journal: size of %s: %w", name, err)
		}
	}
	b, err := l.readStart(f, name, size)
	if err != nil {
		return err
	}
	s := Segment{Name: name, Number: number, Size: size, End: size}
	l.readHeader(&s, b)
	l.Segments = append(l.Segments, s)
	return nil
}

// readHeader uses the first valid copy of the header.
func (l *Log) readHeader(s *Segment, b []byte) {
	var second segmentHeader
	reason1, err1 := s.header.parse(b, s.Number)
	reason2, err2 := second.parse(b[min(segmentHeaderCopy, len(b)):], s.Number)
	switch {
	case err1 != nil && err2 != nil:
		s.Err = headerDamage(s, reason1, err1)
		if errors.Is(err1, ErrCorrupt) && !errors.Is(err2, ErrCorrupt) {
			s.Err = headerDamage(s, reason2, err2)
		}
		l.Problems = append(l.Problems, s.Err)
		return
	case err1 != nil:
		s.header = second
		_ = l.problem(s.Name, 0, segmentHeaderCopy, "first copy: "+reason1)
	case err2 != nil:
		_ = l.problem(s.Name, segmentHeaderCopy, segmentHeaderCopy, "second copy: "+reason2)
	case s.header != second:
		_ = l.problem(s.Name, segmentHeaderCopy, segmentHeaderCopy, "the copies of the segment header differ")
	}
	h := &s.header
	s.Epoch, s.First, s.Previous = h.epoch, h.first, h.last
	l.Epoch = max(l.Epoch, h.epoch)
}

// headerDamage returns damage of the whole file: without a header, the records cannot be checked.
func headerDamage(s *Segment, reason string, err error) *disk.DamageError {
	return &disk.DamageError{File: s.Name, Length: s.Size, Reason: reason, Err: err}
}

func (l *Log) problem(file string, offset, length int64, reason string) *disk.DamageError {
	d := &disk.DamageError{File: file, Offset: offset, Length: length, Reason: reason, Err: ErrCorrupt}
	l.Problems = append(l.Problems, d)
	return d
}

// checkWorlds marks segments as foreign if their world differs from that of the first readable
// segment.
func (l *Log) checkWorlds() {
	known := false
	for i := range l.Segments {
		s := &l.Segments[i]
		switch {
		case s.Err != nil:
		case !known:
			l.World, known = s.header.world, true
		case s.header.world != l.World:
			s.Err = &disk.DamageError{File: s.Name, Offset: 16, Length: 16, Err: ErrForeign,
				Reason: fmt.Sprintf("segment of world %x among those of world %x", s.header.world, l.World)}
			l.Problems = append(l.Problems, s.Err)
		}
	}
}

// checkLink checks that segment i continues the segment before it.
func (l *Log) checkLink(i int) {
	s := &l.Segments[i]
	if i == 0 {
		l.startAt(s)
		return
	}
	before := &l.Segments[i-1]
	if s.Number != before.Number+1 {
		_ = l.problem(segmentName(before.Number+1), 0, 0, fmt.Sprintf("missing: the next segment is %s", s.Name))
	}
	if s.Err != nil {
		return
	}
	whole := before.Err == nil && s.Number == before.Number+1 && !l.damaged(before.Name)
	if whole && s.header.last != l.LastID {
		_ = l.problem(s.Name, 0, segmentHeaderSize,
			fmt.Sprintf("follows record %v, but the last one before it is %v", s.header.last, l.LastID))
	}
	if s.Epoch < before.Epoch {
		_ = l.problem(s.Name, 0, segmentHeaderSize, fmt.Sprintf("epoch %d follows epoch %d", s.Epoch, before.Epoch))
	}
	l.startAt(s)
}

// startAt sets the head and the last record of l as they were when segment s began. The header of s
// contains both.
func (l *Log) startAt(s *Segment) {
	if s.Err != nil {
		return
	}
	l.Head = s.header.head
	l.LastID = s.header.last
	l.Last = max(l.Last, s.header.first-1)
}

func (l *Log) damaged(name string) bool {
	return slices.ContainsFunc(l.Problems, func(d *disk.DamageError) bool { return d.File == name })
}

// readAt reads len(b) bytes, or fewer at the end of the file.
func readAt(f io.ReaderAt, name string, b []byte, offset int64) (int, error) {
	n, err := f.ReadAt(b, offset)
	if n == len(b) || errors.Is(err, io.EOF) {
		return n, nil
	}
	return n, fmt.Errorf("journal: read %s at %d: %w", name, offset, err)
}
