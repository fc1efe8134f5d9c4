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

// A sender appends to the log what the owner of a store wrote, in the order in which it was
// written.
//
//	journal    write, write, … ─note─▶ pending ──sync──▶ entries ──▶ Log
//	snapshot   publish ────────────────────────────────▶ parts
//
// A write only adds to pending, under mu, and never waits for the log. A sync takes its turn in
// order, and sends all that is pending, from all files. Sending a file gives up the turn after each
// part. So ticks are confirmed, and other files sent, while a snapshot or all of the store is sent.
//
// Each entry names the one before it, so entries are appended one at a time. An append that failed
// may have succeeded all the same. It is repeated until that is known: see try. After an error that
// lasts (failed), nothing is sent any more, and every sync returns that error.
//
// The budget of the options counts what is in memory: pending operations, the entry that is being
// appended, and the entries that are kept for a log that forgets. A sender never waits for the
// budget. Its bytes come from the queue of a journal, which does, so ticks wait while they are
// pending here.
//
// Locks are taken in this order: order, mu.
type sender struct {
	log     Log
	ctx     context.Context // Ends when the owner is closed.
	options *Options
	info    logInfo // Of the claim.

	mu      sync.Mutex // Guards what was written and not sent.
	pending []op
	files   map[string]*sentFile // Those that are open for writing, by their names.
	sizes   map[string]int64     // Of the files, with what is pending.
	failed  error                // Why nothing is sent any more.

	share   *budget.Share // Holds what is pending, and recent. nil: nothing counts it.
	monitor monitor
	tight   chan struct{} // The log has no room for more.

	order  turn      // Of appends. Guards what follows.
	writer uint64    // Random: which sender of all that there ever were.
	number uint64    // Of the last entry, of this writer.
	at     trail     // The last entries of the log that count, newest first.
	end    Position  // The last entry of the log. It lies behind at if it does not count.
	check  bool      // The next entry is confirmed only if the log still has the one at at.
	heard  time.Time // When the log last acknowledged an entry.
	short  time.Time // When the log first said that it ends before at; zero: it does not.
	beats  int       // Entries without operations since the last one with some.
	room   room
	logged int64            // Bytes that were appended since all began to be sent the last time.
	recent []sent           // The newest entries, oldest first, for again.
	kept   int64            // Bytes of recent in memory.
	sent   map[string]int64 // Sizes of the files that the log has,
	coming map[string]int64 // and of others what it has of them.
	begun  uint64           // How often all began to be sent,
	rest   map[string]bool  // and which files are still to be.
}

// A turn is a mutex for what may take as long as a log does not answer.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// Lock waits for its turn.
func (t turn) Lock() { t <- struct{}{} }

// Unlock lets the next one go on.
func (t turn) Unlock() { <-t }

// A sent is an entry that the log acknowledged: enough to encode the same bytes once more.
type sent struct {
	link
	before link
	ops    []op
}

// keepSent is how many bytes of entries are kept, for a log that forgets some. One is kept in any
// case. Of many worlds that share a budget, each keeps no more than the floor of its share.
const keepSent = 4 << 20

// An acknowledgement is checked that took longer than slowAnswer, or that came after a silence of
// longSilence. A log loses entries when servers end or another one decides, which takes longer. An
// owner that shows that it is there, each second, is not silent for long.
const (
	slowAnswer  = time.Second
	longSilence = 2 * time.Second
)

// newSender returns one that continues the newest entry of t, in a log that ends at end. ctx bounds
// the claim; the owner gives it another one afterwards.
func newSender(ctx context.Context, log Log, t trail, end Position, options *Options) *sender {
	var b [8]byte
	crand.Read(b[:]) // Never fails.
	bounded, _ := log.(BoundedLog)
	return &sender{
		room: room{log: bounded}, tight: make(chan struct{}, 1),
		log: log, ctx: ctx, options: options, files: map[string]*sentFile{}, sizes: map[string]int64{}, writer: binary.LittleEndian.Uint64(b[:]),
		at: t, end: end, check: true, sent: map[string]int64{}, coming: map[string]int64{}, order: newTurn(),
	}
}

// countMemory makes the sender hold a share of a budget until the owner is closed. nil: nothing
// counts. The sender is not used by others yet.
func (s *sender) countMemory(b *budget.Budget) {
	s.share = b.Open(nil)
	s.share.Add(memoryOf(s.pending) + s.kept)
}

// keep keeps an entry that was appended, and drops the oldest ones.
func (s *sender) keep(e sent) {
	n := memoryOf(e.ops)
	s.recent, s.kept = append(s.recent, e), s.kept+n
	s.share.Add(n)
	for most := min(keepSent, s.share.Floor()); len(s.recent) > 1 && s.kept > most; {
		n := memoryOf(s.recent[0].ops)
		s.kept -= n
		s.share.Release(n)
		clear(s.recent[0].ops) // Other entries may have the rest of this array.
		s.recent[0] = sent{}
		s.recent = s.recent[1:]
	}
}

// lost returns why nothing can be sent any more.
func (s *sender) lost() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// opened returns f, whose writes are heard from now on.
func (s *sender) opened(f disk.File, name string) *sentFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := &sentFile{f, s, name}
	s.files[name] = sent
	return sent
}

// closed forgets f, unless its name is that of another file by now.
func (s *sender) closed(f *sentFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[f.name] == f {
		delete(s.files, f.name)
	}
}

// beyond reports whether a write, which is yet to be done to f, is news to the log: not if it
// writes once more what f has. Behind the end of the file all is news, and f is not read.
func (s *sender) beyond(name string, at int64, b []byte, f io.ReaderAt) bool {
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

// note adds to what is sent next.
func (s *sender) note(ops ...op) {
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

// flush returns when the log has all that was noted, of all files: a Sync of one file sends the
// writes to others, in their order, so that the log never has a later write without an earlier one.
func (s *sender) flush() error {
	for {
		if err := s.admit(); err != nil {
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

// flushLocked is flush for a caller that has the lock of appends. It does not look at the room of
// the log.
func (s *sender) flushLocked() error {
	_, err := s.flushSome(math.MaxInt)
	return err
}

// flushSome appends what is pending, in its order, in as few entries as it fits in, until so many
// bytes are. It reports whether there is more. An operation that cannot be sent fails all: those
// behind it are not sent either.
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
		s.share.Release(memoryOf(ops[:n])) // What append keeps is counted once more.
		ops, total = ops[n:], total+size
	}
	s.share.Release(memoryOf(ops)) // If one failed, the rest is dropped.
	return false, err
}

// append appends an entry. It tries until it is known what became of it, or until the owner is
// closed. The caller has the turn, and has taken ops from pending.
func (s *sender) append(ops []op) error {
	if err := s.lost(); err != nil {
		return err
	}
	s.number++
	h := header{entryID{s.writer, s.number}, s.at[0]}
	entry := encodeEntry(h, ops)
	s.share.Add(int64(cap(entry))) // A log that does not answer holds it up.
	at, err := s.try(entry, h.id)
	s.share.Release(int64(cap(entry)))
	if err != nil {
		return s.fail(err)
	}
	s.logged += int64(len(entry))
	if s.room.use(int64(len(entry))); !s.room.has(2*s.reserve() + chunkBytes) {
		s.wake()
	}
	s.monitor.succeed(at, s.logged)
	if len(ops) > 0 {
		s.beats = 0
	}
	e := sent{link{at, h.id}, s.at[0], ops}
	s.at.push(e.link)
	s.end = at
	s.keep(e)
	for i := range ops {
		s.count(&ops[i])
	}
	return nil
}

// beat appends an entry without operations if the log was silent for that long; negative: never. In
// the beginning of a silence entries come sooner, so that followers learn how seldom they come. It
// returns when the next one may be due, and whether the log is much longer than the store.
func (s *sender) beat(every time.Duration) (next time.Duration, long bool) {
	s.order.Lock()
	reserve := s.reserve()
	s.order.Unlock()
	s.room.refresh(s.ctx, reserve+chunkBytes)
	s.order.Lock()
	defer s.order.Unlock()
	next = time.Second
	if every > 0 {
		if time.Since(s.heard) >= s.due(every) && s.append(nil) == nil {
			s.beats++
		}
		next = max(s.due(every)-time.Since(s.heard), every/32)
	}
	return next, s.long()
}

// due returns after how long a silence the next entry without operations comes.
func (s *sender) due(every time.Duration) time.Duration { return every >> max(3-s.beats, 0) }

// minLog is how many bytes a log has at least before the owner sends all files once more.
const minLog = 16 << 20

// count records what the log has of the files now. Parts and names of a file that it has are sent
// for new followers, and change nothing.
func (s *sender) count(o *op) {
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

// fail makes err, with which nothing more can be sent, what everybody is told.
func (s *sender) fail(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = err
		s.monitor.fail(err)
	}
	return s.failed
}

// try appends an entry behind the last one, the same bytes each time. If that place is taken, look
// finds out by which entry. After any other error, or if look does not know either, it waits and
// tries again. It ends when the entry is there, when nothing of s can come there any more, or with
// the context.
//
// A position tells entries apart only while the engine keeps its promise. An engine that forgot
// entries gives their positions to others. So try compares the entry that the new one continues,
// where the log may have lost it: for the first entry of a claim, after an append that failed or
// was slow, and after a silence.
func (s *sender) try(entry []byte, id entryID) (Position, error) {
	for tries := newBackoff(); ; {
		begun := time.Now()
		at, err := s.log.Append(s.ctx, s.end, entry)
		s.check = s.check || err != nil || time.Since(begun) > slowAnswer || begun.Sub(s.heard) > longSilence
		if errors.Is(err, ErrTaken) && s.ctx.Err() == nil {
			at, err = s.look(id)
		}
		if err == nil && at > 0 && s.check {
			if at, err = s.walk(id); err == nil && at > 0 {
				err = s.at.check(s.ctx, s.log)
			}
		}
		var short *ShorterError
		switch {
		case err == nil && at > 0:
			s.check, s.heard, s.short = false, time.Now(), time.Time{}
			return at, nil
		case s.ctx.Err() != nil:
			why := s.monitor.now().Stuck // What kept it waiting.
			return 0, errors.Join(fmt.Errorf("%w: %w", persist.ErrClosed, context.Cause(s.ctx)), why)
		case errors.Is(err, persist.ErrLost):
			return 0, err
		case errors.Is(err, errTrimmed): // Only an owner trims.
			return 0, fmt.Errorf("replica: %w: the log was claimed, and trimmed behind position %d", persist.ErrLost, s.at[0].Position)
		case errors.As(err, &short): // What was appended continues an entry that is gone: it does not count.
			return 0, fmt.Errorf("replica: %w: %w", persist.ErrLost, err)
		}
		s.monitor.fail(cmp.Or(err, errOldAnswer))
		tries.pause(s.ctx)
	}
}

// holds returns nil if the log still has the last entry that was appended. It is for what cannot be
// undone.
func (s *sender) holds() error {
	s.order.Lock()
	defer s.order.Unlock()
	for tries := newBackoff(); ; {
		err := s.lost()
		if err == nil {
			err = s.at.check(s.ctx, s.log)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrLogShorter), errors.Is(err, errTrimmed):
			return s.fail(fmt.Errorf("replica: %w: %w", persist.ErrLost, err))
		case s.lost() != nil || s.ctx.Err() != nil:
			return err
		}
		tries.pause(s.ctx)
	}
}

// look finds out why the log does not end where it was expected to: it has the entry already, which
// lies at the position returned; or it has forgotten some, which are appended again; or
// another machine has it. It returns 0 if the append is to be tried again, behind s.end.
//
//	… | s.at |                 it ends there by now: try again
//	… |                        it forgot s.at: again
//	… | s.at | id | …          the entry is there, its answer was lost
//	… | s.at | other | …       another machine claimed
//	… | s.at | no part | …     the entry continues one that the log forgot: try again behind it
func (s *sender) look(id entryID) (Position, error) {
	first, last, err := s.log.Bounds(s.ctx)
	switch {
	case err != nil:
		return 0, err
	case last < s.at[0].Position:
		return 0, s.again(first, last)
	case first == 0 && last > s.at[0].Position:
		return 0, fmt.Errorf("replica: %w: the log goes on to position %d, and was emptied", persist.ErrLost, last)
	}
	return s.walk(id)
}

// walk looks for the entry among those behind s.at, of which the first that counts decides. It
// returns 0 if none counts.
func (s *sender) walk(id entryID) (Position, error) {
	s.end = s.at[0].Position
	for skipped := false; ; skipped = true {
		h, at, err := s.behind(s.end)
		switch {
		case err != nil:
			return 0, err
		case at == 0:
			return 0, nil // By now it ends there.
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

// behind returns the first entry behind a position; 0 if there is none.
func (s *sender) behind(after Position) (h header, at Position, err error) {
	e, err := s.log.Next(s.ctx, after)
	if err != nil || e.Position == 0 {
		return h, 0, err
	}
	h, err = decodeHeader(e.Data)
	return h, e.Position, err
}

// again appends what a log has forgotten that ends at last: the same entries, which must come to
// lie at the same positions, since others know them by these. It cannot if they are not kept any
// longer, or if another machine went on from where the log ends. The answer that it ends there may
// be old: then the log has the entries, or another server knows better after a while.
func (s *sender) again(first, last Position) error {
	report := &ShorterError{Known: s.at[0].Position, Last: last}
	i := slices.IndexFunc(s.recent, func(e sent) bool { return e.before.Position == last })
	if i < 0 {
		if s.short.IsZero() {
			s.short = time.Now()
		}
		if err := s.at.check(s.ctx, s.log); err == nil || time.Since(s.short) < s.options.sure() {
			return cmp.Or(err, errOldAnswer)
		}
		return fmt.Errorf("replica: %w: %w", persist.ErrLost, report)
	}
	if first > 0 { // Else there is nothing left to compare with.
		if err := checkLink(s.ctx, s.log, s.recent[i].before); err != nil && !errors.Is(err, errTrimmed) {
			return err
		}
	}
	appended := false
	for _, e := range s.recent[i:] {
		at, err := s.log.Append(s.ctx, e.before.Position, encodeEntry(header{e.ID, e.before}, e.ops))
		switch {
		case errors.Is(err, ErrTaken): // As in look: it may be there, by an append whose answer was lost.
			if h, at, err := s.behind(e.before.Position); err != nil {
				return err
			} else if at == 0 {
				return errOldAnswer
			} else if h.id != e.ID {
				return fmt.Errorf("replica: %w: another one went on from there: %w", persist.ErrLost, report)
			}
		case err != nil:
			return err
		case at != e.Position:
			return fmt.Errorf("replica: %w: it gave %d to what lay at %d: %w", persist.ErrLost, at, e.Position, report)
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

// publish gives a file of the store its name, and the log all that lies in it. The content is sent
// before: while it takes its time, the file has no name anywhere, and what comes of it is dropped
// if its sender dies. The name is given here first and noted in the same turn, so that no write to
// the file under its name can come before that in the log.
func (s *sender) publish(files disk.FS, from, to string, name func(from, to string) error) error {
	f, err := files.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err == nil && s.removes(to) {
		err = s.flush() // Else the removal would come behind the parts, and end them.
	}
	if err != nil {
		return err
	}
	return s.parts(f, to, s.admit, func() int64 { return size }, func() error {
		if err := name(from, to); err != nil {
			return err
		}
		s.mu.Lock()
		if f := s.files[from]; f != nil { // A segment stays open, and is written on under its name.
			delete(s.files, from)
			f.name, s.files[to] = to, f
		}
		s.sizes[to] = size
		s.mu.Unlock()
		s.note(op{kind: opWhole, name: to, number: uint64(size)})
		return s.flushLocked()
	})
}

// removes reports whether a removal of a file is yet to be sent.
func (s *sender) removes(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.pending, func(o op) bool { return o.kind == opRemove && o.name == name })
}

// parts sends the content of a file, up to what size returns. It calls size for each part, with the
// turn, since a file that has its name grows meanwhile. Between two parts, other files are sent. If
// all files begin to be sent again then, this file is sent from its beginning, since a new follower
// has none of it. When the log has all of it, end is called in the same turn. A write between the
// last part and the name of the file would be in neither for a new follower. Before each part it
// calls admit.
func (s *sender) parts(f io.ReaderAt, name string, admit func() error, size func() int64, end func() error) error {
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

// all sends all files that the log has, for machines that have none, and returns the position of
// the entry with which that begins. New files are sent in between. Writes to the files go on: a
// follower that has a file whole applies them, and another one gets them with the parts of the
// file. Only one call may run at a time.
func (s *sender) all(files disk.FS, term uint64) (begin Position, err error) {
	s.order.Lock()
	s.begun, s.rest = s.begun+1, map[string]bool{}
	s.check = true // The log is trimmed before the entry that comes.
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
			err = s.one(files, name)
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

// one sends a file that the log has, unless it is removed meanwhile: another one may have its name
// then.
func (s *sender) one(files disk.FS, name string) error {
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
	return s.parts(f, name, s.lost, size, func() error {
		if !s.rest[name] {
			return nil
		}
		delete(s.rest, name)
		return s.append([]op{{kind: opWhole, name: name, number: uint64(s.sent[name])}})
	})
}
