package journal

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"strings"
	"time"

	"github.com/stet-ecs/stet/disk"
)

// Open continues the journal in log for writing. The log must be fresh: no process may have written
// to the directory since its [Scan]. Only one Journal may be open on a directory, so the caller
// holds a lock.
//
// With an [Options.Guard], a previous owner that lost the lock may still append to the newest
// segment. These bytes are never acknowledged, and Open cuts them off.
//
// Open truncates no file. It makes the bytes in the log durable as they are. It begins a new
// segment with a higher epoch, whose header states where the previous segment ends. Readers ignore
// the bytes after that end. A crash during Open is harmless. Open removes temporary files of an
// earlier crash.
//
// Open continues a log that has problems. It refuses a log if
//
//   - a segment belongs to another world or a newer program
//   - the header of the last segment is unreadable, so the epoch and the end are unknown.
func Open(fs disk.FS, log *Log, opt Options) (*Journal, error) {
	guarded := opt.Guard != nil
	opt = opt.resolve()
	if err := log.fits(&opt); err != nil {
		return nil, err
	}
	if err := log.checkFresh(fs, guarded); err != nil {
		if lost := opt.Guard(); lost != nil { // Another process opened the journal.
			return nil, fmt.Errorf("journal: open: %w", lost)
		}
		return nil, err
	}
	// Another process may own the files now. Check that before the first change of a file.
	if err := retryBriefly(opt.Guard); err != nil {
		return nil, fmt.Errorf("journal: open: %w", err)
	}
	if err := disk.RemoveTemps(fs, ".", isTemp); err != nil {
		return nil, fmt.Errorf("journal: remove unfinished files: %w", err)
	}
	if err := log.syncLastSegment(fs); err != nil {
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

		looked: time.Now(), // Open has just compared the directory with the log.
	}
	w.timer.Stop()
	w.idle.Stop()
	return w
}

// ScanFrom replaces the contents of l with the result of a scan. It is for a program that owns the
// directory and continues from the state after the record with seq base. ScanFrom opens each
// segment at most once. The bytes of small segments stay in memory until [Log.Close]. Call [Open]
// or Close before anything else writes to the directory.
//
// ScanFrom skips a segment if it has no record after record base, and its size matches the ledger.
// As an exception, each call reads the oldest segment and up to four others. Later calls choose
// other segments, so repeated openings read the whole journal. Damage in a skipped segment is found
// by a later call, or by [Scan].
//
// Cost: the bytes of the segments after base, and about 12 bytes of the ledger for each older
// record.
func (l *Log) ScanFrom(ctx context.Context, fs disk.FS, newest int64, base uint64, progress func(done, total int64)) error {
	next, err := scan(ctx, fs, newest, &base, progress)
	if err != nil {
		return err
	}
	l.fs = fs
	l.replaceWith(next)
	l.small, l.smallSize = next.small, next.smallSize
	return nil
}

// Continuable returns the error with which [Open] would refuse the journal for any options, or nil.
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

// fits returns an error if the journal cannot be continued with the options opt. If opt has no
// world, fits sets it to the world of the log.
func (l *Log) fits(opt *Options) error {
	if err := l.Continuable(); err != nil || len(l.Segments) == 0 {
		return err
	}
	last := &l.Segments[len(l.Segments)-1]
	if opt.World == ([16]byte{}) {
		opt.World = l.World
	}
	if opt.World != l.World {
		return &disk.DamageError{File: last.Name, Offset: 16, Length: 16, Err: ErrForeign,
			Reason: fmt.Sprintf("segment of world %x, not %x", l.World, opt.World)}
	}
	return nil
}

// checkFresh returns an error if the directory changed since the scan. If guarded is set, a
// previous owner may still append, so the newest segment may be longer.
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

// isTemp reports whether a file is an unfinished temporary file of a journal writer.
func isTemp(temp string) bool {
	name, ok := disk.TempOf(temp)
	if !ok {
		name, ok = strings.CutSuffix(temp, formerTemp)
	}
	_, segment := numbered(name, segmentSuffix)
	_, ledger := numbered(name, ledgerSuffix)
	return ok && (segment || ledger)
}

// syncLastSegment makes the bytes of the last segment durable, because the next segment's header
// declares them durable. Reading the bytes back proves nothing: they may exist only in the system's
// cache. After a failed fsync the cache may treat them as clean. So syncLastSegment writes the same
// bytes again.
func (l *Log) syncLastSegment(fs disk.FS) error {
	if len(l.Segments) == 0 {
		return nil
	}
	s := &l.Segments[len(l.Segments)-1]
	f, err := fs.OpenWrite(s.Name)
	if err != nil {
		return fmt.Errorf("journal: open %s: %w", s.Name, err)
	}
	if err := copyBytes(context.Background(), f, f, s.Name, s.durable, s.End, nil); err != nil {
		return err
	}
	// The directory entry of this segment must be durable before that of its successor.
	return syncDir(fs)
}

// next returns the seq of the first record after the log.
func (l *Log) next(opt Options) uint64 {
	if len(l.Segments) == 0 {
		return opt.FirstSeq
	}
	return l.Last + 1
}

// nextEpoch returns the epoch of the records that will be appended.
func (l *Log) nextEpoch(opt Options) uint64 { return max(l.Epoch+1, opt.Epoch) }

// head returns the seq of the state that the next record continues.
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
		// Keep the proven end, even if the file is shorter now. Then later scans report the missing
		// bytes, too.
		h.prevEnd = uint64(max(l.Segments[n-1].End, l.Segments[n-1].vouched))
	}
	return h
}

// begin creates the segment that h describes, with its preamble, and makes it the current segment.
// The segment gets its name after its bytes are durable. Then begin adds the segment to the ledger.
// The parameter before is the summary of the previous segment.
func (w *writer) begin(h segmentHeader, preamble, before []byte) error {
	h.salt = newSalt()
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

// publish makes the staged header and the preamble durable, and then gives the segment its name.
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
	return publish(w.j.fs, temp, w.name)
}

// publish gives a complete file its name, and makes the name durable.
func publish(dir disk.FS, temp *disk.Temp, name string) error {
	switch err := temp.Publish(); {
	case errors.Is(err, fs.ErrExist):
		return lostTo(name)
	case err != nil:
		return fmt.Errorf("journal: publish %s: %w", name, err)
	}
	return syncDir(dir)
}

// syncDir makes the names in the directory of a journal durable.
func syncDir(dir disk.FS) error {
	if err := disk.SyncDir(dir, "."); err != nil {
		return fmt.Errorf("journal: sync directory: %w", err)
	}
	return nil
}

// began appends the segment of h to the list of segments, as the current one.
func (j *Journal) began(h *segmentHeader) {
	j.mu.Lock()
	defer j.mu.Unlock()
	// The previous segment is complete, so set its size. If it existed before Open, it has its size
	// already.
	if n := len(j.segments); n > 0 && j.segments[n-1].size == 0 {
		j.segments[n-1].size = int64(h.prevEnd)
	}
	j.segments = append(j.segments, segmentRef{number: h.number, first: h.first})
}

// Prune removes the oldest segments whose records all have a seq less than the parameter keep. The
// current segment always stays. Each removal is durable before the next one, so a crash leaves no
// gap. If an fsync of the ledger fails, the journal fails. After any other error of Prune, the
// journal continues.
func (j *Journal) Prune(keep uint64) (removed []string, err error) {
	j.pruning.Lock()
	defer j.pruning.Unlock()
	numbers := j.prunable(keep)
	for i, number := range numbers {
		if err := j.opt.Guard(); err != nil {
			return removed, fmt.Errorf("journal: prune: %w", err)
		}
		name := segmentName(number)
		// One ledger entry covers all segments that are about to be removed.
		if i == 0 && j.ledger != nil {
			if err := j.waitForFailure(j.ledger.pruned(numbers[len(numbers)-1] + 1)); err != nil {
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

// prunable returns the numbers of the oldest segments that have only records with a seq less than
// the parameter keep. A segment ends where its successor begins. If the header of the successor
// cannot be read, the segment stays.
func (j *Journal) prunable(keep uint64) (numbers []uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := 1; i < len(j.segments) && j.segments[i].first > 0 && j.segments[i].first <= keep; i++ {
		numbers = append(numbers, j.segments[i-1].number)
	}
	return numbers
}
