package replica

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist"
)

// A sender appends to the log what the owner of a store wrote, in the order in which it was written.
//
//	journal    write, write, … ─note─▶ pending ──sync──▶ entries ──▶ Log
//	snapshot   publish ────────────────────────────────▶ parts
type sender struct {
	log     Log
	ctx     context.Context // Ends when nobody is to wait any more.
	shorter func(*ShorterError)

	mu      sync.Mutex // Guards what was written and not sent.
	pending []op
	files   map[string]*sentFile // Those that are open for writing, by their names.
	sizes   map[string]int64     // Of the files, with what is pending.
	failed  error                // Why nothing is sent any more.

	order  turn // Of appends. Guards what follows.
	writer uint64
	number uint64
	at     link // The last entry.
	recent []sent
	kept   int              // Bytes of recent.
	sent   map[string]int64 // Sizes of the files that the log has,
	coming map[string]bool  // and others of which it has a part.

	whole turn // Held by who sends a file in parts, or all of them.
}

// A turn is a mutex for what may take as long as a log does not answer.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// Lock waits for its turn.
func (t turn) Lock() { t <- struct{}{} }

// Unlock lets the next one go on.
func (t turn) Unlock() { <-t }

// A sent is an entry that the log acknowledged, as it was before it.
type sent struct {
	link
	before link
	ops    []op
}

// keepSent is how many bytes of entries are kept, for a log that forgets some.
const keepSent = 4 << 20

func newSender(ctx context.Context, log Log, at link, shorter func(*ShorterError)) *sender {
	var b [8]byte
	rand.Read(b[:]) // Never fails.
	return &sender{
		log: log, ctx: ctx, shorter: shorter, files: map[string]*sentFile{}, sizes: map[string]int64{}, writer: binary.LittleEndian.Uint64(b[:]), at: at,
		sent: map[string]int64{}, coming: map[string]bool{}, order: newTurn(), whole: newTurn(),
	}
}

// lost returns why nothing can be sent any more.
func (s *sender) lost() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

func (s *sender) opened(f disk.File, name string) *sentFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := &sentFile{f, s, name}
	s.files[name] = sent
	return sent
}

func (s *sender) closed(f *sentFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[f.name] == f {
		delete(s.files, f.name)
	}
}

// beyond reports whether a write is news to the log: not if it writes once more what it has.
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
	for i := range ops {
		if ops[i].kind == opRemove {
			delete(s.sizes, ops[i].name)
		}
	}
}

// flush returns when the log has all that was noted.
func (s *sender) flush() error {
	s.order.Lock()
	defer s.order.Unlock()
	return s.flushLocked()
}

func (s *sender) flushLocked() error {
	s.mu.Lock()
	ops, err := s.pending, s.failed
	s.pending = nil
	s.mu.Unlock()
	for err == nil && len(ops) > 0 {
		n, size := 0, 0
		for n < len(ops) {
			if size += sizeOf(ops[n : n+1]); n > 0 && size > MaxEntry-entryHeader {
				break
			}
			n++
		}
		err = s.append(ops[:n])
		ops = ops[n:]
	}
	return err
}

// append appends an entry. It tries until it is known what became of it, or nobody waits any more.
func (s *sender) append(ops []op) error {
	if err := s.lost(); err != nil {
		return err
	}
	s.number++
	h := header{entryID{s.writer, s.number}, s.at}
	at, err := s.try(encodeEntry(h, ops), h.id)
	if err != nil {
		return s.fail(err)
	}
	e := sent{link{at, h.id}, s.at, ops}
	s.at = e.link
	s.recent, s.kept = append(s.recent, e), s.kept+sizeOf(ops)
	for len(s.recent) > 1 && s.kept > keepSent {
		s.kept -= sizeOf(s.recent[0].ops)
		s.recent = s.recent[1:]
	}
	for i := range ops {
		s.count(&ops[i])
	}
	return nil
}

// count notes what the log has of the files now.
func (s *sender) count(o *op) {
	switch o.kind {
	case opPart:
		if _, has := s.sent[o.name]; !has {
			s.coming[o.name] = true
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
	}
}

// fail makes err, with which nothing more can be sent, what everybody is told.
func (s *sender) fail(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = err
	}
	return s.failed
}

// try appends an entry behind s.at.
func (s *sender) try(entry []byte, id entryID) (Position, error) {
	wait := 2 * time.Millisecond
	for {
		at, err := s.log.Append(s.ctx, s.at.Position, entry)
		if err == nil {
			return at, nil
		}
		if s.ctx.Err() != nil {
			return 0, fmt.Errorf("%w: %w", persist.ErrClosed, context.Cause(s.ctx))
		}
		if errors.Is(err, ErrTaken) {
			at, err = s.look(id)
			if err == nil && at > 0 {
				return at, nil
			}
			if errors.Is(err, persist.ErrLost) {
				return 0, err
			}
		}
		pause(s.ctx, wait) // The log does not answer.
		wait = min(2*wait, 500*time.Millisecond)
	}
}

// look finds out why the log does not end where it was expected to: it has the entry already, which
// lies at the position returned; or it has forgotten some, which are appended again; or
// somebody else has it.
func (s *sender) look(id entryID) (Position, error) {
	_, last, err := s.log.Bounds(s.ctx)
	if err != nil {
		return 0, err
	}
	if last < s.at.Position {
		return 0, s.again(last)
	}
	if last == s.at.Position {
		return 0, nil // By now it ends there.
	}
	h, at, err := s.behind(s.at.Position)
	switch {
	case err != nil:
		return 0, err
	case h.id == id && h.before == s.at:
		return at, nil
	}
	return 0, fmt.Errorf("replica: %w: the log was claimed at position %d", persist.ErrLost, at)
}

// behind returns the first entry behind a position, of which there is one.
func (s *sender) behind(after Position) (h header, at Position, err error) {
	for e, err := range s.log.Entries(s.ctx, after) {
		if err != nil {
			return h, 0, err
		}
		h, _, err = decodeEntry(e.Data)
		return h, e.Position, err
	}
	return h, 0, s.ctx.Err()
}

// again appends what a log has forgotten that ends at last.
func (s *sender) again(last Position) error {
	report := &ShorterError{Known: s.at.Position, Last: last}
	i := slices.IndexFunc(s.recent, func(e sent) bool { return e.before.Position == last })
	if i < 0 {
		return fmt.Errorf("replica: %w: %w", persist.ErrLost, report)
	}
	for _, e := range s.recent[i:] {
		at, err := s.log.Append(s.ctx, e.before.Position, encodeEntry(header{e.ID, e.before}, e.ops))
		switch {
		case errors.Is(err, ErrTaken):
			if h, _, err := s.behind(e.before.Position); err != nil {
				return err
			} else if h.id != e.ID {
				return fmt.Errorf("replica: %w: another one went on from there: %w", persist.ErrLost, report)
			}
		case err != nil:
			return err
		case at != e.Position:
			return fmt.Errorf("replica: %w: it gave %d to what lay at %d: %w", persist.ErrLost, at, e.Position, report)
		}
	}
	if s.shorter != nil {
		s.shorter(report)
	}
	return nil
}

// publish gives a file of the store its name, and the log all that lies in it.
func (s *sender) publish(files disk.FS, from, to string, name func(from, to string) error) error {
	s.whole.Lock()
	defer s.whole.Unlock()
	f, err := files.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	if err := s.parts(f, to, func() int64 { return size }); err != nil {
		return err
	}
	s.order.Lock()
	defer s.order.Unlock()
	if err := name(from, to); err != nil {
		return err
	}
	s.mu.Lock()
	if f := s.files[from]; f != nil {
		delete(s.files, from)
		f.name, s.files[to] = to, f
	}
	s.sizes[to] = size
	s.mu.Unlock()
	s.note(op{kind: opWhole, name: to, number: uint64(size)})
	return s.flushLocked()
}

// parts sends what lies in a file. Between two parts, others send.
func (s *sender) parts(f io.ReaderAt, name string, size func() int64) error {
	buf := make([]byte, maxData)
	for at := int64(0); ; {
		s.order.Lock()
		n := int(min(int64(len(buf)), size()-at))
		if n <= 0 {
			s.order.Unlock()
			return nil
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

// all sends all files that the log has, for those who have none.
func (s *sender) all(files disk.FS, term uint64) (begin Position, err error) {
	s.whole.Lock()
	defer s.whole.Unlock()
	s.order.Lock()
	if err = s.append([]op{{kind: opBegin, number: term}}); err == nil {
		begin = s.at.Position
	}
	names := slices.Sorted(maps.Keys(s.sent))
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
	return begin, err
}

// one sends a file that the log has, unless it is removed meanwhile.
func (s *sender) one(files disk.FS, name string) error {
	f, err := files.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	size := func() int64 { return s.sent[name] } // 0: it was removed.
	if err := s.parts(f, name, size); err != nil {
		return err
	}
	s.order.Lock()
	defer s.order.Unlock()
	n, has := s.sent[name]
	if !has {
		return s.append([]op{{kind: opRemove, name: name}})
	}
	return s.append([]op{{kind: opWhole, name: name, number: uint64(n)}})
}
