package journal

import (
	"bytes"
	"fmt"
	"io"

	"github.com/stet-ecs/stet/disk"
)

const (
	// maxSmall is the maximum number of bytes of small segments that a log stores in memory.
	maxSmall = 4 << 20

	// readInTurns is how many segments each [Log.ScanFrom] reads although it could skip them. The
	// epoch of the journal selects them, so the next opening reads others.
	readInTurns = 4
)

// trustLedger finds the segments that ScanFrom does not open. If the ledger is damaged, it trusts
// no summary. Then readLedger reads the ledger again later, and reports the damage.
func (l *Log) trustLedger(files listing, base uint64) error {
	n := len(files.ledgers)
	if n == 0 {
		return nil
	}
	apart := &Log{fs: l.fs}
	led, err := apart.openLedger(files.ledgers[n-1], nil)
	if err != nil || led == nil || led.torn > 0 || len(apart.Problems) > 0 || len(led.segments) == 0 {
		return err
	}
	l.ledger, l.trusted = led, map[uint64]bool{}
	var old []uint64
	for i := 1; i+1 < len(files.segments); i++ {
		if number, ok := l.endedBefore(files.segments[i-1:i+2], base); ok {
			old = append(old, number)
		}
	}
	// Each segment is read in one of turns consecutive epochs. turns is a power of two, so it
	// seldom changes when segments are added.
	turns := uint64(1)
	for turns*readInTurns < uint64(len(old)) {
		turns *= 2
	}
	for _, number := range old {
		l.trusted[number] = (number+led.segments[len(led.segments)-1].epoch)%turns != 0
	}
	return nil
}

// endedBefore reports whether the middle one of three consecutive segments can be skipped, and
// returns its number. It must have no record after the record with seq base. The ledger must have a
// summary of this segment and of the one before.
func (l *Log) endedBefore(files []listedFile, base uint64) (number uint64, ok bool) {
	number, _ = numbered(files[1].name, segmentSuffix)
	before, listed, after := l.ledger.find(number-1), l.ledger.find(number), l.ledger.find(number+1)
	if before == nil || listed == nil || after == nil || after.first-1 > base || files[1].bad != nil {
		return 0, false
	}
	if files[0].name != segmentName(number-1) || files[2].name != segmentName(number+1) {
		return 0, false
	}
	_, ok = l.summary(before)
	sum, known := l.summary(listed)
	return number, ok && known && sum.end == files[1].size
}

// summary returns the decoded summary of a segment, and whether the ledger has a valid summary.
func (l *Log) summary(listed *listedSegment) (s summary, ok bool) {
	if s, ok = l.summaries[listed.number]; ok || listed.sums == nil {
		return s, ok
	}
	if s, ok = readSums(listed.sums, listed.first); ok {
		if l.summaries == nil {
			l.summaries = map[uint64]summary{}
		}
		l.summaries[listed.number] = s
	}
	return s, ok
}

// forgetSummaries releases the summaries after the log has copied their contents.
func (l *Log) forgetSummaries() {
	l.summaries, l.trusted = nil, nil
	if l.ledger != nil {
		for i := range l.ledger.segments {
			l.ledger.segments[i].sums = nil
		}
	}
}

// addTrusted adds a segment without opening its file. It computes the header of the segment from
// the ledger. It returns false if the ledger does not suffice for that.
func (l *Log) addTrusted(file listedFile, number uint64) bool {
	if !l.trusted[number] {
		return false
	}
	before := &l.Segments[len(l.Segments)-1]
	listedBefore, listed := l.ledger.find(number-1), l.ledger.find(number)
	if before.Err != nil || before.header.salt != listedBefore.salt {
		// The previous segment is damaged, or another file has its name. So its last record and its
		// head are unknown.
		return false
	}
	ended, _ := l.summary(listedBefore)
	sum, _ := l.summary(listed)
	h := segmentHeader{
		version: ledgerVersion, world: l.ledger.header.world,
		epoch: listed.epoch, number: number, first: listed.first, salt: listed.salt,
		start: segmentHeaderSize, previous: number - 1, prevEnd: uint64(ended.end),
		last: before.header.last, head: ended.head,
	}
	if len(sum.preambles) > 0 && sum.preambles[0].Offset == segmentHeaderSize {
		h.start += uint64(recordSize(int64(sum.preambles[0].Length)))
	}
	if n := len(ended.entries); n > 0 {
		h.last = ID{Epoch: listedBefore.epoch, Seq: ended.entries[n-1].ID.Seq, CRC: ended.entries[n-1].ID.CRC}
	}
	s := Segment{Name: file.name, Number: number, Size: file.size, End: file.size, header: h}
	s.Epoch, s.First, s.Previous = h.epoch, h.first, h.last
	l.Epoch = max(l.Epoch, h.epoch)
	l.Segments = append(l.Segments, s)
	return true
}

// readStart returns the bytes of a segment's header. It reads a small segment completely and stores
// the bytes in l.small, if there is room. A refresh stores no bytes, because most of them were read
// before.
func (l *Log) readStart(f disk.File, name string, size int64) ([]byte, error) {
	whole := l.small != nil && size <= windowSize && l.smallSize+size <= maxSmall
	length := int64(segmentHeaderSize)
	if whole {
		length = size
	}
	b := make([]byte, length)
	n, err := readAt(f, name, b, 0)
	if err != nil {
		return nil, err
	}
	if whole && int64(n) == size {
		l.small[name] = b
		l.smallSize += size
	}
	return b[:n], nil
}

// reader returns the bytes of a segment, from l.small if possible. The caller calls done when it no
// longer needs the bytes. After an error, done does nothing.
func (l *Log) reader(name string) (r io.ReaderAt, done func(), err error) {
	l.mu.Lock()
	b := l.small[name]
	l.mu.Unlock()
	if b != nil {
		return bytes.NewReader(b), func() {}, nil
	}
	f, err := l.fs.Open(name)
	if err != nil {
		return nil, func() {}, fmt.Errorf("journal: open %s: %w", name, err)
	}
	return f, func() { f.Close() }, nil
}
