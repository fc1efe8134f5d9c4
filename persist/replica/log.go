package replica

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
)

// A Position is the place of an entry in a log. Positions grow; 0 is before the first.
type Position uint64

// MaxEntry is how many bytes the longest entry has.
const MaxEntry = 512 << 10

var (
	// ErrTaken reports that the log does not end where an append wanted it to.
	ErrTaken = errors.New("replica: the log has other entries there")

	// ErrUnknown reports an append without an answer. The log may have the entry, or may get it
	// later. Read the log, or try again, to find out.
	ErrUnknown = errors.New("replica: it is not known whether the log took the entry")
)

// A Log is a sequence of entries that machines share. It survives the machines that use it, and
// keeps every entry that it acknowledged until the entry is trimmed. Its methods may be called from
// several goroutines.
type Log interface {
	// Append adds an entry if the log ends with that at position after, or is empty and after is 0
	// or the last that there was. It returns the position of the entry once it will not be
	// forgotten. Otherwise: [ErrTaken], if the log ends elsewhere; any other error, [ErrUnknown]
	// among them, says that the entry may be there, or may yet come to be there.
	Append(ctx context.Context, after Position, entry []byte) (Position, error)

	// Entries yields the entries behind position after, in order, those that come included: it ends
	// with an error, that of ctx if nothing else. If some of them were trimmed, it begins with the
	// oldest there is.
	Entries(ctx context.Context, after Position) iter.Seq2[Entry, error]

	// Next returns the first entry behind position after, or the zero Entry if there is none. It
	// asks the server that decides on appends. The answer may be old: newer entries may be missing.
	Next(ctx context.Context, after Position) (Entry, error)

	// Bounds returns the positions of the oldest entry that is kept and of the last. If none is,
	// first is 0; last is that of the last there was. Both are lower bounds: the answer may be old.
	Bounds(ctx context.Context) (first, last Position, err error)

	// Trim lets go of the entries before a position, but for the last one, which may stay. It may
	// be done later, and Entries may yield them a while longer than Bounds tells of them.
	Trim(ctx context.Context, before Position) error
}

// An Entry is what lies at a position of a log.
type Entry struct {
	Position Position
	Data     []byte
}

// A ShorterError reports a log that lost an entry which it had acknowledged: it ends before that
// entry, or has another one in its place. The engine broke its promise. A machine that has the
// entry does not go on without it.
type ShorterError struct {
	Known Position // Position of an entry that was acknowledged or read.
	Last  Position // Position of the last entry that the log still has, or has in common.
}

// Error says what is missing.
func (e *ShorterError) Error() string {
	return fmt.Sprintf("replica: the log ends at %d and had %d: it forgot what it acknowledged", e.Last, e.Known)
}

// Is reports whether target is [ErrLogShorter].
func (e *ShorterError) Is(target error) bool { return target == ErrLogShorter }

// ErrLogShorter is what a [ShorterError] is.
var ErrLogShorter = errors.New("replica: the log forgot what it acknowledged")

// A HoleError reports a log that does not show entries which it has. Some engines do so after a
// restart of one server. The reader keeps its files and asks again, also the server that decides on
// appends.
type HoleError struct {
	After Position // Position of the last entry that was shown.
	// Position of the next one that was shown. It does not continue the one at After.
	Next Position
}

// Error says where the hole is.
func (e *HoleError) Error() string {
	return fmt.Sprintf("replica: the log does not show its entries between %d and %d", e.After, e.Next)
}

// Is reports whether target is [ErrHole].
func (e *HoleError) Is(target error) bool { return target == ErrHole }

// ErrHole is what a [HoleError] is.
var ErrHole = errors.New("replica: the log does not show an entry that it has")

// Errors of checkLink, for which the caller decides.
var (
	errOldAnswer = errors.New("replica: a server answered with an old state of the log")
	errTrimmed   = errors.New("replica: the entry was trimmed")
)

// A trail is the newest entries that count, newest first. One alone does not tell whether it still
// counts: an append that the engine carries out late may lie behind another entry, or a hidden one.
type trail [4]link

// push adds an entry.
func (t *trail) push(l link) {
	copy(t[1:], t[:])
	t[0] = l
}

// check returns nil if the entries of t count, as far as they were not trimmed: each is the first
// that continues the one before. Else it returns what checkLink does.
func (t *trail) check(ctx context.Context, log Log) error {
	oldest := len(t) - 1
	for ; oldest > 0; oldest-- {
		if t[oldest].ID == (entryID{}) {
			continue
		}
		err := checkLink(ctx, log, t[oldest])
		if err == nil {
			break
		}
		if !errors.Is(err, errTrimmed) {
			return err
		}
	}
	if oldest == 0 {
		return checkLink(ctx, log, t[0])
	}
	for i := oldest; i > 0; i-- {
		want := t[i-1]
		e, h, err := continuation(ctx, log, t[i], want.Position)
		switch {
		case err != nil:
			return err
		case e.Position == 0:
			return errOldAnswer
		case (e.Position != want.Position || h.id != want.ID) && h.before != want:
			return &ShorterError{Known: want.Position, Last: t[i].Position}
		}
	}
	return nil
}

// continuation returns the first entry that continues the one of l or that lies at upto or behind
// it. It returns the zero Entry if there is none.
func continuation(ctx context.Context, log Log, l link, upto Position) (e Entry, h header, err error) {
	for after := l.Position; ; after = e.Position {
		if e, err = log.Next(ctx, after); err != nil || e.Position == 0 {
			return Entry{}, h, err
		}
		if h, err = decodeHeader(e.Data); err != nil {
			return Entry{}, h, fmt.Errorf("%w: at %d", err, e.Position)
		}
		if h.before == l || e.Position >= upto {
			return e, h, nil
		}
	}
}

// checkLink returns nil if the log has the entry of l, which lies before its end. It returns a
// [ShorterError] if another entry lies at that position, errTrimmed if none does, and errOldAnswer
// if the answer does not tell.
func checkLink(ctx context.Context, log Log, l link) error {
	if l.ID == (entryID{}) {
		return nil // Nothing is known of it.
	}
	e, err := log.Next(ctx, l.Position-1)
	if err != nil {
		return err
	}
	if e.Position == 0 {
		return errOldAnswer
	}
	h, err := decodeHeader(e.Data)
	switch {
	case err != nil:
		return fmt.Errorf("%w: at %d", err, e.Position)
	case e.Position == l.Position && h.id == l.ID, h.before == l:
		return nil
	case e.Position == l.Position:
		return &ShorterError{Known: l.Position, Last: h.before.Position}
	}
	return errTrimmed
}

// Memory is a [Log] in memory, for programs that have several worlds in one process, and for
// tests. The zero Memory is empty.
type Memory struct {
	mu      sync.Mutex
	entries []Entry
	last    Position
	grown   chan struct{} // Closed when there is a new entry; nil: no reader waits.
}

// Append is a part of [Log].
func (m *Memory) Append(ctx context.Context, after Position, entry []byte) (Position, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if len(entry) > MaxEntry {
		return 0, fmt.Errorf("replica: an entry of %d bytes, more than %d", len(entry), MaxEntry)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if after != m.last {
		return 0, fmt.Errorf("%w: it ends at %d, not %d", ErrTaken, m.last, after)
	}
	m.last++
	m.entries = append(m.entries, Entry{m.last, append([]byte(nil), entry...)})
	m.tell()
	return m.last, nil
}

// tell wakes the readers that wait for an entry.
func (m *Memory) tell() {
	if m.grown != nil {
		close(m.grown)
		m.grown = nil
	}
}

// Entries is a part of [Log].
func (m *Memory) Entries(ctx context.Context, after Position) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for {
			e, ok, grown := m.find(after)
			if ok {
				if after = e.Position; !yield(e, nil) {
					return
				}
				continue
			}
			select {
			case <-ctx.Done():
				yield(Entry{}, ctx.Err())
				return
			case <-grown:
			}
		}
	}
}

// Next is a part of [Log].
func (m *Memory) Next(ctx context.Context, after Position) (Entry, error) {
	e, _, _ := m.find(after)
	return e, ctx.Err()
}

// find returns the first entry behind a position, or a channel that is closed when there may be
// one. It holds the lock for both, so that no entry comes between the question and the waiting.
func (m *Memory) find(after Position) (e Entry, ok bool, grown <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.entries); n > 0 && m.entries[n-1].Position > after {
		i := 0 // Positions have no holes. If what is asked for was trimmed, it is the oldest.
		if first := m.entries[0].Position; first <= after {
			i = int(after - first + 1)
		}
		return m.entries[i], true, nil
	}
	if m.grown == nil {
		m.grown = make(chan struct{})
	}
	return Entry{}, false, m.grown
}

// Bounds is a part of [Log].
func (m *Memory) Bounds(ctx context.Context) (first, last Position, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.entries) > 0 {
		first = m.entries[0].Position
	}
	return first, m.last, ctx.Err()
}

// Trim is a part of [Log].
func (m *Memory) Trim(ctx context.Context, before Position) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.entries) > 0 && m.entries[0].Position < before {
		m.entries = m.entries[1:]
	}
	return ctx.Err()
}

// Forget makes the log end before what it has acknowledged, as an engine does that breaks its
// word: the last n entries are gone. It is for tests.
func (m *Memory) Forget(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n = min(n, len(m.entries))
	m.entries = m.entries[:len(m.entries)-n]
	m.last -= Position(n)
	m.tell()
}
