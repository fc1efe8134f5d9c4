package replica

import (
	"bytes"
	"cmp"
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/journal/budget"
	"github.com/stet-ecs/stet/persist"
)

// A sender appends the owner's writes to the log, in the order of the writes.
//
// A write adds an operation to s.pending, and never waits for the log. A sync locks s.order, and
// appends all pending operations of all files. A snapshot is sent in parts when it is published.
// While a large file is sent, s.order is unlocked after each part, so that ticks are confirmed
// meanwhile.
//
// Each entry names the previous entry, so entries are appended one at a time. A failed append is
// repeated until its result is known; see appendUntilKnown. After a permanent error (failed), every
// sync returns that error.
//
// The memory budget counts pending operations, the current entry, and recent entries. The queue of
// the journal waits for the budget, and the sender does not.
//
// Locks are taken in this order: s.order, s.mu.
type sender struct {
	log     Log
	ctx     context.Context // Ends when the owner is closed.
	options *Options
	info    logInfo // The log information of the claim.

	mu      sync.Mutex           // Guards the fields up to failed.
	pending []op                 // Operations that were written and not sent yet.
	files   map[string]*sentFile // The files that are open for writing, by name.
	sizes   map[string]int64     // Sizes of the files, pending operations included.
	failed  error                // The error after which nothing is sent.

	share   *budget.Share // Memory of s.pending, s.recent and the current entry. May be nil.
	monitor monitor
	tight   chan struct{} // Signals that the log is nearly full.

	order  chanMutex // Held for an append. Guards the fields below.
	writer uint64    // A random number that identifies this sender.
	number uint64    // The number of entries that this sender appended.
	at     trail     // The newest valid entries of the log, newest first.
	end    Position  // The last entry of the log, valid or not.
	// Set if the next append must first verify that the log still has the entries in s.at.
	check bool
	heard time.Time // When the log last acknowledged an entry.
	// When the sender first found that the log lacks an entry, and that s.recent no longer has it.
	// Zero if the log has all older entries. The answer of the log may be stale, so the sender
	// retries for a while.
	short time.Time
	beats int // Heartbeats since the last entry with operations.
	room  room
	// Bytes appended since the beginning of the last complete store in the log.
	logged int64
	recent []sentEntry      // The newest entries, oldest first, in case the log loses them.
	kept   int64            // Bytes of memory that recent uses.
	sent   map[string]int64 // Sizes of the files that the log has.
	// For each file that is being sent, the number of bytes that the log has.
	coming map[string]int64
	begun  uint64          // The number of times that the sender began to send all files.
	rest   map[string]bool // While all files are sent: the names of the remaining files.
}

// A chanMutex is a mutex whose holder may wait for an answer of the log.
type chanMutex chan struct{}

func newChanMutex() chanMutex { return make(chanMutex, 1) }

// Lock locks t, and waits until t is free.
func (t chanMutex) Lock() { t <- struct{}{} }

// Unlock unlocks t.
func (t chanMutex) Unlock() { <-t }

// A sentEntry is an entry that the log acknowledged, in a form that can be encoded again.
type sentEntry struct {
	link
	before link
	ops    []op
}

// keepSent is how many bytes of recent entries the sender retains. If the log loses these entries,
// the sender appends them again. The sender retains at least one entry. With a memory budget, it
// retains at most the minimum share of one world.
const keepSent = 4 << 20

// The sender checks the log for lost entries after an acknowledgement that took longer than
// slowAnswer. It also does so after a silence of longSilence. Logs lose entries when servers end or
// when the leader changes, and they acknowledge no entry for longer than these times then. An owner
// with heartbeats is never silent for that long.
const (
	slowAnswer  = time.Second
	longSilence = 2 * time.Second
)

// newSender returns a sender that continues after the newest entry of t. The argument end is the
// last position in the log. ctx is the context of the claim. The owner replaces this context later.
func newSender(ctx context.Context, log Log, t trail, end Position, options *Options) *sender {
	var b [8]byte
	crand.Read(b[:]) // Never fails.
	bounded, _ := log.(BoundedLog)
	return &sender{
		room: room{log: bounded}, tight: make(chan struct{}, 1),
		log: log, ctx: ctx, options: options, files: map[string]*sentFile{}, sizes: map[string]int64{}, writer: binary.LittleEndian.Uint64(b[:]),
		at: t, end: end, check: true, sent: map[string]int64{}, coming: map[string]int64{}, order: newChanMutex(),
	}
}

// countMemory registers the sender with a budget until the owner is closed. Without a budget (nil),
// no memory is counted. No other goroutine may use the sender yet.
func (s *sender) countMemory(b *budget.Budget) {
	s.share = b.Open(nil)
	s.share.Add(memoryOf(s.pending) + s.kept)
}

// keepEntry adds an appended entry to s.recent, and drops the oldest entries beyond the limit.
func (s *sender) keepEntry(e sentEntry) {
	n := memoryOf(e.ops)
	s.recent, s.kept = append(s.recent, e), s.kept+n
	s.share.Add(n)
	for most := min(keepSent, s.share.Floor()); len(s.recent) > 1 && s.kept > most; {
		n := memoryOf(s.recent[0].ops)
		s.kept -= n
		s.share.Release(n)
		// Drop the data. The operations are a part of an array that other entries keep in memory.
		clear(s.recent[0].ops)
		s.recent[0] = sentEntry{}
		s.recent = s.recent[1:]
	}
}

// failure returns why the sender can no longer send, or nil.
func (s *sender) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// registerFile registers a file that is open for writing. It returns the file, whose writes are
// then recorded.
func (s *sender) registerFile(f disk.File, name string) *sentFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := &sentFile{f, s, name}
	s.files[name] = sent
	return sent
}

// unregisterFile unregisters f, unless another file is registered under its name.
func (s *sender) unregisterFile(f *sentFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[f.name] == f {
		delete(s.files, f.name)
	}
}

// needsWrite reports whether a write of b to the file f must be sent. It need not be sent if f
// already has these bytes. A write beyond the end of f must be sent.
func (s *sender) needsWrite(name string, at int64, b []byte, f io.ReaderAt) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if end := at + int64(len(b)); end > s.sizes[name] {
		s.sizes[name] = end
		return true
	}
	old := make([]byte, len(b))
	n, err := readUpTo(f, old, at)
	return err != nil || !bytes.Equal(old[:n], b)
}

// addPending adds pending operations.
func (s *sender) addPending(ops ...op) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = append(s.pending, ops...)
	s.share.Add(memoryOf(ops))
	for i := range ops {
		if ops[i].kind == opRemove {
			delete(s.sizes, ops[i].name)
		}
	}
}

// flush appends all pending operations, of all files and in order. The log therefore never has a
// write without the earlier ones.
func (s *sender) flush() error {
	for {
		if err := s.waitForRoom(); err != nil {
			return err
		}
		s.order.Lock()
		rest, err := s.flushSome(chunkBytes)
		s.order.Unlock()
		if err != nil || !rest {
			return err
		}
	}
}

// flushLocked implements flush for a caller that holds s.order. It does not check the room of the
// log.
func (s *sender) flushLocked() error {
	_, err := s.flushSome(math.MaxInt)
	return err
}

// flushSome appends the pending operations in order, in as few entries as possible. It stops after
// limit bytes, and reports whether operations are left. If an append fails, all pending operations
// are dropped: the log must not have a later operation without the earlier ones.
func (s *sender) flushSome(limit int) (more bool, err error) {
	s.mu.Lock()
	ops, err := s.pending, s.failed
	s.pending = nil
	s.mu.Unlock()
	for total := 0; err == nil && len(ops) > 0; {
		if total >= limit {
			s.mu.Lock()
			s.pending = append(ops, s.pending...)
			s.mu.Unlock()
			return true, nil
		}
		n, size := 0, 0
		for n < len(ops) {
			if size += sizeOf(ops[n : n+1]); n > 0 && size > MaxEntry-entryHeader {
				break
			}
			n++
		}
		err = s.append(ops[:n])
		// append has counted the memory of these operations again, as a part of s.recent.
		s.share.Release(memoryOf(ops[:n]))
		ops, total = ops[n:], total+size
	}
	// After an error, the remaining operations are dropped.
	s.share.Release(memoryOf(ops))
	return false, err
}

// append appends an entry with the operations. It retries until the result is known, or until the
// owner is closed. The caller holds s.order, and has removed ops from pending.
func (s *sender) append(ops []op) error {
	if err := s.failure(); err != nil {
		return err
	}
	s.number++
	h := header{entryID{s.writer, s.number}, s.at[0]}
	entry := encodeEntry(h, ops)
	s.share.Add(int64(cap(entry))) // The entry uses memory while the log does not answer.
	at, err := s.appendUntilKnown(entry, h.id)
	s.share.Release(int64(cap(entry)))
	if err != nil {
		return s.fail(err)
	}
	s.logged += int64(len(entry))
	if s.room.addUsed(int64(len(entry))); !s.room.fits(2*s.reserve() + chunkBytes) {
		s.wakeMaintenance()
	}
	s.monitor.succeed(at, s.logged)
	if len(ops) > 0 {
		s.beats = 0
	}
	e := sentEntry{link{at, h.id}, s.at[0], ops}
	s.at.push(e.link)
	s.end = at
	s.keepEntry(e)
	for i := range ops {
		s.countOp(&ops[i])
	}
	return nil
}

// heartbeat appends an empty entry if the log was silent for the given interval. At the beginning
// of a silence, heartbeats have shorter intervals, so that followers learn the interval. A negative
// interval turns heartbeats off. heartbeat returns the time until the next heartbeat is due, and
// whether the log should be shortened.
func (s *sender) heartbeat(every time.Duration) (next time.Duration, long bool) {
	s.order.Lock()
	reserve := s.reserve()
	s.order.Unlock()
	s.room.refresh(s.ctx, reserve+chunkBytes)
	s.order.Lock()
	defer s.order.Unlock()
	next = time.Second
	if every > 0 {
		if time.Since(s.heard) >= s.heartbeatDue(every) && s.append(nil) == nil {
			s.beats++
		}
		next = max(s.heartbeatDue(every)-time.Since(s.heard), every/32)
	}
	return next, s.isLogLong()
}

// heartbeatDue returns the length of the silence after which the next heartbeat is due.
func (s *sender) heartbeatDue(every time.Duration) time.Duration { return every >> max(3-s.beats, 0) }

// minLog is the minimum number of bytes of entries before the owner sends all files again.
const minLog = 16 << 20

// countOp records which bytes of the files the log has after an operation. The owner may send a
// file again for new followers. countOp ignores these parts and names, because the log has the file
// already.
func (s *sender) countOp(o *op) {
	switch o.kind {
	case opPart:
		if _, has := s.sent[o.name]; !has {
			s.coming[o.name] = int64(o.number) + int64(len(o.data))
		}
	case opWhole:
		delete(s.coming, o.name)
		if _, has := s.sent[o.name]; !has {
			s.sent[o.name] = int64(o.number)
		}
	case opWrite:
		s.sent[o.name] = max(s.sent[o.name], int64(o.number)+int64(len(o.data)))
	case opRemove:
		delete(s.sent, o.name)
		delete(s.coming, o.name)
		delete(s.rest, o.name)
	}
}

// fail records the error after which nothing can be sent, unless an earlier error is recorded. It
// returns the recorded error.
func (s *sender) fail(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = err
		s.monitor.fail(err)
	}
	return s.failed
}

// appendUntilKnown appends an entry after the last entry, and repeats the append until its result
// is known. If the position is taken, resolveTaken finds the reason. appendUntilKnown ends when the
// log has the entry, when the log can no longer accept it, or when the context ends.
//
// An engine that has lost entries reuses their positions. Therefore, appendUntilKnown also compares
// the entries before the new entry in these cases:
//   - a claim
//   - all files are sent again
//   - the append failed or was slow
//   - the log was silent for a while
func (s *sender) appendUntilKnown(entry []byte, id entryID) (Position, error) {
	for tries := newBackoff(); ; {
		begun := time.Now()
		at, err := s.log.Append(s.ctx, s.end, entry)
		s.check = s.check || err != nil || time.Since(begun) > slowAnswer || begun.Sub(s.heard) > longSilence
		if errors.Is(err, ErrTaken) && s.ctx.Err() == nil {
			at, err = s.resolveTaken(id)
		}
		if err == nil && at > 0 && s.check {
			if at, err = s.findValidAfter(id); err == nil && at > 0 {
				err = s.at.check(s.ctx, s.log)
			}
		}
		var short *ShorterError
		switch {
		case err == nil && at > 0:
			s.check, s.heard, s.short = false, time.Now(), time.Time{}
			return at, nil
		case s.ctx.Err() != nil:
			// The reason why the append had to wait.
			why := s.monitor.current().Stuck
			return 0, errors.Join(fmt.Errorf("%w: %w", persist.ErrClosed, context.Cause(s.ctx)), why)
		case errors.Is(err, persist.ErrLost):
			return 0, err
		// Only an owner trims, so another machine has claimed.
		case errors.Is(err, errTrimmed):
			return 0, fmt.Errorf("replica: %w: the log was claimed, and trimmed after position %d", persist.ErrLost, s.at[0].Position)
		case errors.As(err, &short):
			// The append continues an entry that the log lost, so the new entry is not valid.
			return 0, fmt.Errorf("replica: %w: %w", persist.ErrLost, err)
		}
		s.monitor.fail(cmp.Or(err, errOldAnswer))
		tries.pause(s.ctx)
	}
}

// verifyLast returns nil if the log still has the last appended entry. It is called before a step
// that cannot be undone, such as trimming.
func (s *sender) verifyLast() error {
	s.order.Lock()
	defer s.order.Unlock()
	for tries := newBackoff(); ; {
		err := s.failure()
		if err == nil {
			err = s.at.check(s.ctx, s.log)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrLogShorter), errors.Is(err, errTrimmed):
			return s.fail(fmt.Errorf("replica: %w: %w", persist.ErrLost, err))
		case s.failure() != nil || s.ctx.Err() != nil:
			return err
		}
		tries.pause(s.ctx)
	}
}

// resolveTaken handles a refused append, because the log does not end where the sender expects. If
// the log has the entry with this ID, it returns the position of the entry. If it returns 0, the
// caller must try again after s.end.
//
// The entry s.at[0] is the newest valid entry that the sender knows. These are the cases:
//
//   - The log ends at s.at[0]: Try again.
//   - The log ends before s.at[0]: The log has lost entries. Append these entries again.
//   - The next entry is the entry with this ID: The log has accepted it, and the answer was lost.
//   - The next entry is another valid entry: It is an error, because another machine has claimed.
//   - The next entry is invalid, because it continues a lost entry: Try again after it.
func (s *sender) resolveTaken(id entryID) (Position, error) {
	first, last, err := s.log.Bounds(s.ctx)
	switch {
	case err != nil:
		return 0, err
	case last < s.at[0].Position:
		return 0, s.reappend(first, last)
	case first == 0 && last > s.at[0].Position:
		return 0, fmt.Errorf("replica: %w: the log continued to position %d, and was emptied", persist.ErrLost, last)
	}
	return s.findValidAfter(id)
}

// findValidAfter looks for the first valid entry after s.at. If this is the entry id, it returns
// the position of the entry. It returns 0 if there is no valid entry. Any other valid entry is an
// error, because another machine has claimed the log.
func (s *sender) findValidAfter(id entryID) (Position, error) {
	s.end = s.at[0].Position
	for skipped := false; ; skipped = true {
		h, at, err := s.headerAfter(s.end)
		switch {
		case err != nil:
			return 0, err
		case at == 0:
			return 0, nil
		case h.before == s.at[0] && h.id == id:
			return at, nil
		case h.before == s.at[0], h.before.Position > s.end:
			return 0, fmt.Errorf("replica: %w: the log was claimed at position %d", persist.ErrLost, at)
		}
		if !skipped {
			if err := s.at.check(s.ctx, s.log); err != nil {
				return 0, err
			}
		}
		s.end = at
	}
}

// headerAfter returns the header and the position of the first entry after a position. The returned
// position is 0 if there is no such entry.
func (s *sender) headerAfter(after Position) (h header, at Position, err error) {
	e, err := s.log.Next(s.ctx, after)
	if err != nil || e.Position == 0 {
		return h, 0, err
	}
	h, err = decodeHeader(e.Data)
	return h, e.Position, err
}

// reappend appends the entries after the end of the log again, if the log has lost them. The
// arguments are the bounds of the log. The entries must get their old positions, because other
// machines know these positions. It returns an error if s.recent no longer has the entries, or if
// another machine has appended to the log.
//
// The bounds may come from a server with an old state, while the log still has the entries.
// reappend then returns errOldAnswer, and the caller tries again with newer bounds.
func (s *sender) reappend(first, last Position) error {
	report := &ShorterError{Known: s.at[0].Position, Last: last}
	i := slices.IndexFunc(s.recent, func(e sentEntry) bool { return e.before.Position == last })
	if i < 0 {
		if s.short.IsZero() {
			s.short = time.Now()
		}
		if err := s.at.check(s.ctx, s.log); err == nil || time.Since(s.short) < s.options.sure() {
			return cmp.Or(err, errOldAnswer)
		}
		return fmt.Errorf("replica: %w: %w", persist.ErrLost, report)
	}
	// An empty log has no entry to compare.
	if first > 0 {
		if err := checkLink(s.ctx, s.log, s.recent[i].before); err != nil && !errors.Is(err, errTrimmed) {
			return err
		}
	}
	appended := false
	for _, e := range s.recent[i:] {
		at, err := s.log.Append(s.ctx, e.before.Position, encodeEntry(header{e.ID, e.before}, e.ops))
		switch {
		case errors.Is(err, ErrTaken):
			// If the answer of an earlier append was lost, the log may already have the entry.
			if h, at, err := s.headerAfter(e.before.Position); err != nil {
				return err
			} else if at == 0 {
				return errOldAnswer
			} else if h.id != e.ID {
				return fmt.Errorf("replica: %w: another machine continued the log after the loss: %w", persist.ErrLost, report)
			}
		case err != nil:
			return err
		case at != e.Position:
			return fmt.Errorf("replica: %w: the log gave position %d to the entry of position %d: %w", persist.ErrLost, at, e.Position, report)
		default:
			appended = true
		}
	}
	s.end = s.at[0].Position
	if appended && s.options.OnShorter != nil {
		s.options.OnShorter(report)
	}
	return nil
}

// publish sends the content of a file to the log, and then gives the file its name. It renames the
// file on this machine and appends opWhole under one lock. So a write under the new name cannot
// reach the log before opWhole.
func (s *sender) publish(files disk.FS, from, to string, name func(from, to string) error) error {
	f, err := files.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err == nil && s.isRemovalPending(to) {
		// Send a pending removal of that name first. After the parts, it would drop them.
		err = s.flush()
	}
	if err != nil {
		return err
	}
	return s.sendParts(f, to, s.waitForRoom, func() int64 { return size }, func() error {
		if err := name(from, to); err != nil {
			return err
		}
		s.mu.Lock()
		// If a segment is renamed while it is open, later writes go to its new name.
		if f := s.files[from]; f != nil {
			delete(s.files, from)
			f.name, s.files[to] = to, f
		}
		s.sizes[to] = size
		s.mu.Unlock()
		s.addPending(op{kind: opWhole, name: to, number: uint64(size)})
		return s.flushLocked()
	})
}

// isRemovalPending reports whether the removal of a file is pending.
func (s *sender) isRemovalPending(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.pending, func(o op) bool { return o.kind == opRemove && o.name == name })
}

// sendParts sends the content of a file, up to size(). It holds s.order for each part, so that
// other files are sent between parts. Before each part, it calls admit() without the lock. If
// admit() fails, sendParts returns that error. A named file may grow, so sendParts calls size() for
// each part.
//
// If the sender begins to send all files again, sendParts restarts the file for new followers.
//
// When the log has the complete file, sendParts calls end() with the lock. Without the lock, a new
// follower could miss a write between the last part and end().
func (s *sender) sendParts(f io.ReaderAt, name string, admit func() error, size func() int64, end func() error) error {
	buf := make([]byte, maxData)
	for at, begun := int64(0), uint64(0); ; {
		if err := admit(); err != nil {
			return err
		}
		s.order.Lock()
		if begun != s.begun {
			at, begun = 0, s.begun
		}
		n := int(min(int64(len(buf)), size()-at))
		if n <= 0 {
			defer s.order.Unlock()
			return end()
		}
		read, err := readUpTo(f, buf[:n], at)
		if err == nil && read < n {
			err = fmt.Errorf("replica: %s: %w", name, io.ErrUnexpectedEOF)
		}
		if err == nil {
			err = s.append([]op{{opPart, name, uint64(at), append([]byte(nil), buf[:n]...)}})
		}
		s.order.Unlock()
		if err != nil {
			return err
		}
		at += int64(n)
	}
}

// sendAll sends all files that the log has, for new followers. It returns the position of the first
// entry that it appended. Only one call may run at a time.
//
// New files and writes are sent between the files. If a file is sent after a write to it, its
// content includes the write.
func (s *sender) sendAll(files disk.FS, term uint64) (begin Position, err error) {
	s.order.Lock()
	s.begun, s.rest = s.begun+1, map[string]bool{}
	s.check = true // The caller trims the log before this entry, so the append must be verified.
	before := s.logged
	if err = s.append([]op{{kind: opBegin, number: term, data: s.info.encode()}}); err == nil {
		begin = s.at[0].Position
	}
	names := slices.Sorted(maps.Keys(s.sent))
	for _, name := range names {
		s.rest[name] = true
	}
	s.order.Unlock()
	for _, name := range names {
		if err == nil {
			err = s.sendFile(files, name)
		}
	}
	s.order.Lock()
	defer s.order.Unlock()
	if err == nil {
		err = s.append([]op{{kind: opComplete}})
	}
	if err == nil {
		s.logged -= before
		s.monitor.succeed(s.end, s.logged)
	}
	return begin, err
}

// sendFile sends a file that the log has. It stops if the file is removed in the meantime, because
// another file may then get the name.
func (s *sender) sendFile(files disk.FS, name string) error {
	f, err := files.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	size := func() int64 {
		if !s.rest[name] {
			return 0
		}
		return s.sent[name]
	}
	return s.sendParts(f, name, s.failure, size, func() error {
		if !s.rest[name] {
			return nil
		}
		delete(s.rest, name)
		return s.append([]op{{kind: opWhole, name: name, number: uint64(s.sent[name])}})
	})
}
