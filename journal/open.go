package journal

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"strings"
	"time"

	"github.com/stet-ecs/stet/disk"
)

// Open continues after log for writing. The log must be fresh: a [Scan] of the
// same directory since nobody wrote to it. Only one Journal may be open on a
// directory; the caller holds a lock. With an [Options.Guard], somebody who lost the lock
// before the scan may still add to the newest segment: nothing of that was or will be
// confirmed, and it is disowned.
//
// Nothing is cut off. What the log holds is made durable as it lies, and a new
// segment under a higher epoch says where its predecessor ends; later bytes
// there are disowned. A crash on the way is harmless. Temporary files of an
// earlier crash are removed.
//
// Problems of the log do not keep it from being continued, except: a segment of
// another world or of a newer program, and a last segment whose header cannot
// be read, for then the epoch and the end are unknown.
func Open(fs disk.FS, log *Log, opt Options) (*Journal, error) {
	guarded := opt.Guard != nil
	opt = opt.resolve()
	if err := log.fits(&opt); err != nil {
		return nil, err
	}
	if err := log.checkFresh(fs, guarded); err != nil {
		if lost := opt.Guard(); lost != nil { // It was another who opened it.
			return nil, fmt.Errorf("journal: open: %w", lost)
		}
		return nil, err
	}
	if err := retryBriefly(opt.Guard); err != nil { // Else the files may be those of the new owner.
		return nil, fmt.Errorf("journal: open: %w", err)
	}
	if err := disk.RemoveTemps(fs, ".", isTemp); err != nil {
		return nil, fmt.Errorf("journal: remove unfinished files: %w", err)
	}
	if err := log.settle(fs); err != nil {
		return nil, err
	}
	j := newJournal(fs, log, opt)
	preamble, err := j.preamble()
	if err != nil {
		return nil, err
	}
	w := newWriter(j, log, opt)
	h := log.successor(opt)
	if h.version >= ledgerVersion {
		j.ledger = log.ledgerWriter(fs, opt.World, opt.Guard)
	}
	if err := w.begin(h, preamble, nil); err != nil {
		return nil, err
	}
	j.size = w.written
	j.share = opt.Budget.Open(j.wakeAppend)
	go w.run()
	return j, nil
}

func newJournal(fs disk.FS, log *Log, opt Options) *Journal {
	j := &Journal{
		fs:    fs,
		opt:   opt,
		epoch: log.nextEpoch(opt),
		wake:  make(chan struct{}, 1),
		done:  make(chan struct{}),
		next:  log.next(opt),
	}
	j.space.L = &j.mu
	j.durable.Store(j.next - 1)
	j.counted.Local = j.next - 1
	for i := range log.Segments {
		s := &log.Segments[i]
		j.segments = append(j.segments, segmentRef{number: s.Number, first: s.First, size: s.Size})
		j.counted.Bytes += s.Size
	}
	return j
}

func newWriter(j *Journal, log *Log, opt Options) *writer {
	w := &writer{
		j:     j,
		last:  log.LastID,
		seq:   j.next - 1,
		head:  log.head(opt),
		timer: time.NewTimer(math.MaxInt64),
		idle:  time.NewTimer(math.MaxInt64),

		looked: time.Now(), // Open has compared the directory with the log.
	}
	w.timer.Stop()
	w.idle.Stop()
	return w
}

// ScanFrom makes l what [Scan] returns, for a program that has the directory to itself and goes on from
// the state after record base. It closes the log before anything but [Open] writes. Each segment is
// opened at most once: the bytes of small ones stay in memory until [Log.Close].
//
// A segment that has no record after base is not opened if its size is what the ledger says. Each call
// reads the oldest segment and up to four others of these, in turns by the newest epoch. So a
// journal that is opened again and again is read as a whole in the course of time, and damage to such
// a segment is found by one of the next calls, or by [Scan].
//
// Cost: that of the segments behind base, and about 12 bytes of the ledger for each older record.
func (l *Log) ScanFrom(ctx context.Context, fs disk.FS, newest int64, base uint64, progress func(done, total int64)) error {
	next, err := scan(ctx, fs, newest, &base, progress)
	if err != nil {
		return err
	}
	l.fs = fs
	l.become(next)
	l.small, l.smallSize = next.small, next.smallSize
	return nil
}

// Continuable returns why [Open] refuses to continue a journal, whatever the options; nil: it
// does not.
func (l *Log) Continuable() error {
	for _, p := range l.Problems {
		if errors.Is(p, ErrForeign) || errors.Is(p, ErrNewer) {
			return p
		}
	}
	if l.Epoch == math.MaxUint64 || l.Last >= math.MaxUint64-1 {
		return fmt.Errorf("%w: epoch %d, seq %d: no number is left", ErrCorrupt, l.Epoch, l.Last)
	}
	if n := len(l.Segments); n > 0 && l.Segments[n-1].Err != nil {
		return l.Segments[n-1].Err
	}
	return nil
}

// fits returns why the journal must not be continued with these options, to which it adds the
// world.
func (l *Log) fits(opt *Options) error {
	if err := l.Continuable(); err != nil || len(l.Segments) == 0 {
		return err
	}
	last := &l.Segments[len(l.Segments)-1]
	if opt.World == ([16]byte{}) {
		opt.World = l.World
	}
	if opt.World != l.World {
		return &DamageError{File: last.Name, Offset: 16, Length: 16, Err: ErrForeign,
			Reason: fmt.Sprintf("segment of world %x, not %x", l.World, opt.World)}
	}
	return nil
}

// checkFresh returns an error if the directory changed since the scan. If that is guarded,
// the newest segment may have become longer.
func (l *Log) checkFresh(fs disk.FS, guarded bool) error {
	found, err := list(fs)
	if err != nil {
		return err
	}
	files := found.segments
	changed := len(files) != len(l.Segments)
	for i := 0; i < len(files) && !changed; i++ {
		s := &l.Segments[i]
		longer := guarded && i == len(files)-1 && files[i].size > s.Size
		changed = files[i].name != s.Name || files[i].size != s.Size && !longer
	}
	if changed {
		return errors.New("journal: open: the directory changed since it was scanned")
	}
	return nil
}

// isTemp reports whether a file is one that a writer did not finish.
func isTemp(temp string) bool {
	name, ok := disk.TempOf(temp)
	if !ok {
		name, ok = strings.CutSuffix(temp, formerTemp)
	}
	_, segment := numbered(name, segmentSuffix)
	_, ledger := numbered(name, ledgerSuffix)
	return ok && (segment || ledger)
}

// settle makes durable what the last segment holds, as the next segment's
// header will vouch for it. That the bytes can be read proves nothing: they may
// be in the system's cache only, and after a failed fsync the cache may call
// them clean. So they are written again, as they are.
func (l *Log) settle(fs disk.FS) error {
	if len(l.Segments) == 0 {
		return nil
	}
	s := &l.Segments[len(l.Segments)-1]
	f, err := fs.OpenWrite(s.Name)
	if err != nil {
		return fmt.Errorf("journal: open %s: %w", s.Name, err)
	}
	if err := rewrite(f, s); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("journal: close %s: %w", s.Name, err)
	}
	if err := disk.SyncDir(fs, "."); err != nil { // Its name, too, before its successor's.
		return fmt.Errorf("journal: sync directory: %w", err)
	}
	return nil
}

// rewrite writes the bytes of s that are not known to be durable once more.
func rewrite(f disk.File, s *Segment) error {
	buf := make([]byte, stageSize)
	for offset := s.durable; offset < s.End; {
		n, err := readAt(f, s.Name, buf[:min(stageSize, s.End-offset)], offset)
		if err == nil && n == 0 {
			err = fmt.Errorf("journal: read %s: %w", s.Name, io.ErrUnexpectedEOF)
		}
		if err != nil {
			return err
		}
		if err := writeAt(f, s.Name, buf[:n], offset); err != nil {
			return err
		}
		offset += int64(n)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("journal: sync %s: %w", s.Name, err)
	}
	return nil
}

// next returns the seq of the record after the log.
func (l *Log) next(opt Options) uint64 {
	if len(l.Segments) == 0 {
		return opt.FirstSeq
	}
	return l.Last + 1
}

// nextEpoch returns the epoch of the records that come.
func (l *Log) nextEpoch(opt Options) uint64 { return max(l.Epoch+1, opt.Epoch) }

// head returns the seq whose state the next record finds.
func (l *Log) head(opt Options) uint64 {
	if len(l.Segments) == 0 {
		return opt.FirstSeq - 1
	}
	return l.Head
}

// successor returns the header of the segment that continues the log.
func (l *Log) successor(opt Options) segmentHeader {
	h := segmentHeader{
		version: segmentVersion,
		world:   opt.World,
		epoch:   l.nextEpoch(opt),
		number:  l.gone + 1,
		first:   l.next(opt),
		last:    l.LastID,
		head:    l.head(opt),
	}
	if n := len(l.Segments); n > 0 {
		h.version = l.Segments[n-1].header.version
		h.number = max(l.Segments[n-1].Number, l.gone) + 1
		h.previous = l.Segments[n-1].Number
		h.prevEnd = uint64(max(l.Segments[n-1].End, l.Segments[n-1].vouched)) // What is missing stays damage.
	}
	return h
}

// begin creates the segment that h describes, with its preamble, and makes it
// the current one. The name appears only once the bytes are durable, and the ledger,
// which takes the summary of the segment before, lists only what has its name.
func (w *writer) begin(h segmentHeader, preamble, before []byte) error {
	var salt [8]byte
	rand.Read(salt[:]) // Never fails.
	h.salt = binary.LittleEndian.Uint64(salt[:])
	h.start = segmentHeaderSize
	if preamble != nil {
		h.start += uint64(recordSize(int64(len(preamble))))
	}
	name := segmentName(h.number)
	temp, err := disk.CreateTemp(w.j.fs, name)
	if err != nil {
		return fmt.Errorf("journal: create %s: %w", name, err)
	}
	w.segment, w.name, w.file, w.seed = h, name, temp.File, h.seed()
	w.stage = h.appendTo(w.stage[:0])
	w.written, w.synced = 0, 0
	w.sums = newSums(h.first)
	err = w.publish(temp, preamble)
	if err == nil && w.j.ledger != nil {
		err = w.j.ledger.began(&h, w.j.opt.Writer, before)
	}
	if err != nil {
		temp.File.Close()
		temp.Discard()
		return err
	}
	w.synced = w.written
	w.j.began(&h)
	return nil
}

// publish makes the staged header and the preamble durable, then the name.
func (w *writer) publish(temp *disk.Temp, preamble []byte) error {
	if preamble != nil {
		h := header{seq: w.segment.first - 1, flags: FlagPreamble, crc: crc32.Checksum(preamble, castagnoli)}
		w.sums.preamble(&h, w.end(), int64(len(preamble)))
		if err := w.put(h, preamble); err != nil {
			return err
		}
	}
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.sync(); err != nil {
		return fmt.Errorf("journal: sync %s: %w", w.name, err)
	}
	if err := retryBriefly(w.j.opt.Guard); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	switch err := temp.Publish(); {
	case errors.Is(err, fs.ErrExist):
		return lostTo(w.name)
	case err != nil:
		return fmt.Errorf("journal: publish %s: %w", w.name, err)
	}
	if err := disk.SyncDir(w.j.fs, "."); err != nil {
		return fmt.Errorf("journal: sync directory: %w", err)
	}
	return nil
}

// began notes that h is the segment that is written from now on.
func (j *Journal) began(h *segmentHeader) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if n := len(j.segments); n > 0 && j.segments[n-1].size == 0 { // Else it was there when j was opened.
		j.segments[n-1].size = int64(h.prevEnd)
	}
	j.segments = append(j.segments, segmentRef{number: h.number, first: h.first})
}

// Prune removes the oldest segments that hold only records with a seq less than
// keep; the current segment always stays. Each removal is durable before the
// next, so a crash leaves no gap. A failure does not fail the journal, unless it is that of
// an fsync of the ledger.
func (j *Journal) Prune(keep uint64) (removed []string, err error) {
	j.pruning.Lock()
	defer j.pruning.Unlock()
	numbers := j.prunable(keep)
	for i, number := range numbers {
		if err := j.opt.Guard(); err != nil {
			return removed, fmt.Errorf("journal: prune: %w", err)
		}
		name := segmentName(number)
		if i == 0 && j.ledger != nil { // All that is about to go, in one entry.
			if err := j.told(j.ledger.pruned(numbers[len(numbers)-1] + 1)); err != nil {
				return removed, fmt.Errorf("journal: prune %s: %w", name, err)
			}
		}
		if err := j.fs.Remove(name); err != nil {
			return removed, fmt.Errorf("journal: prune %s: %w", name, err)
		}
		removed = append(removed, name)
		if err := disk.SyncDir(j.fs, "."); err != nil {
			return removed, fmt.Errorf("journal: prune %s: sync directory: %w", name, err)
		}
		j.mu.Lock()
		j.segments, j.counted.Bytes = j.segments[1:], j.counted.Bytes-j.segments[0].size
		j.mu.Unlock()
	}
	return removed, nil
}

// prunable returns the oldest segments of which nothing is to be kept. The first
// seq of a segment's successor tells; a successor that cannot be read keeps it.
func (j *Journal) prunable(keep uint64) (numbers []uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := 1; i < len(j.segments) && j.segments[i].first > 0 && j.segments[i].first <= keep; i++ {
		numbers = append(numbers, j.segments[i-1].number)
	}
	return numbers
}
