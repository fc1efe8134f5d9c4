package replica

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
)

// A Position is the place of an entry in a log. Positions increase. Position 0 is before the first
// entry.
type Position uint64

// MaxEntry is the size limit of an entry, in bytes.
const MaxEntry = 512 << 10

var (
	// ErrTaken reports that the log does not end at the position that an append expects.
	ErrTaken = errors.New("replica: the log has other entries at this position")

	// ErrUnknown reports an append without an answer. The log may have the entry, or may get it
	// later. To find out, read the log or append again.
	ErrUnknown = errors.New("replica: it is unknown whether the log has the entry")
)

// A Log is a sequence of entries that machines share. It exists independently of these machines. It
// retains every acknowledged entry until the entry is trimmed. Its methods may be called from
// several goroutines.
type Log interface {
	// Append adds an entry if the last entry of the log is at the given position. If the log is
	// empty, the given position may also be 0, or the position of the last entry before the log
	// became empty. Append returns the position of the new entry once the entry is durable.
	//
	// Append returns [ErrTaken] if the log ends at another position. After any other error, such as
	// [ErrUnknown], the log may have the entry, or may get it later.
	Append(ctx context.Context, after Position, entry []byte) (Position, error)

	// Entries yields the entries after a position, in order, and waits for new ones. It always ends
	// with an error, at the latest when ctx ends. If some of these entries were trimmed, it begins
	// with the oldest retained entry.
	Entries(ctx context.Context, after Position) iter.Seq2[Entry, error]

	// Next returns the first entry after a position, or the zero Entry if there is none. It reads
	// from the server that decides on appends. The answer may be stale: newer entries may be
	// missing.
	Next(ctx context.Context, after Position) (Entry, error)

	// Bounds returns the positions of the oldest retained entry and of the last entry. For an empty
	// log, the first result is 0, and the second is the position of the last entry before the log
	// became empty. Both are lower bounds, because the answer may be stale.
	Bounds(ctx context.Context) (first, last Position, err error)

	// Trim removes the entries before a position. The log may retain its last entry in any case.
	// For a while, Entries may yield trimmed entries that Bounds no longer includes.
	Trim(ctx context.Context, before Position) error
}

// An Entry is one entry of a log, with its position.
type Entry struct {
	Position Position
	Data     []byte
}

// A ShorterError reports that a log lost an entry which it had acknowledged. The log ends before
// that entry, or has another entry at its position. A machine that has the lost entry stops
// following this log.
type ShorterError struct {
	Known Position // Position of an entry that was acknowledged or read.
	// Last is the position of the last entry of the log. If the log has continued with other
	// entries, Last is the position of the last entry that this machine also has.
	Last Position
}

// Error names the positions.
func (e *ShorterError) Error() string {
	return fmt.Sprintf("replica: the log ends at %d and had %d: it lost entries that it had acknowledged", e.Last, e.Known)
}

// Is reports whether target is [ErrLogShorter].
func (e *ShorterError) Is(target error) bool { return target == ErrLogShorter }

// ErrLogShorter matches every [ShorterError]; see errors.Is.
var ErrLogShorter = errors.New("replica: the log lost entries that it had acknowledged")

// A HoleError reports a log that does not show some of its entries. Some engines hide entries after
// a restart of one server. The reader keeps its files and retries. It also reads from the server
// that decides on appends.
type HoleError struct {
	After Position // Position of the last entry that was shown.
	// Position of the next entry that was shown. It does not continue the entry at After.
	Next Position
}

// Error names the positions around the hole.
func (e *HoleError) Error() string {
	return fmt.Sprintf("replica: the log does not show its entries between %d and %d", e.After, e.Next)
}

// Is reports whether target is [ErrHole].
func (e *HoleError) Is(target error) bool { return target == ErrHole }

// ErrHole matches every [HoleError]; see errors.Is.
var ErrHole = errors.New("replica: the log does not show an entry that it has")

// Errors of checkLink.
var (
	errOldAnswer = errors.New("replica: a server answered with an old state of the log")
	errTrimmed   = errors.New("replica: the entry was trimmed")
)

// A trail has the newest valid entries, newest first. Comparing a trail with a log shows whether
// the log has lost entries. The newest entry alone does not show that. An engine may lose an entry,
// and execute a late append of the next entry afterwards.
type trail [4]link

// push adds an entry, and drops the oldest one.
func (t *trail) push(l link) {
	copy(t[1:], t[:])
	t[0] = l
}

// check returns nil if the log still has the entries of t, apart from trimmed entries. Several
// entries in a log can name the same entry before them, and only the first of these is valid. So
// check also compares which one is the first. If the log has lost an entry, check returns a
// [ShorterError]. It also returns the errors of checkLink.
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

// continuation returns the first entry after l that names l as the entry before it. If there is no
// such entry before the position upto, it returns the first entry at upto or later. At the end of
// the log, it returns the zero Entry.
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

// checkLink looks for an entry in the log, by its position and its ID. The result depends on what
// the log has:
//
//	the entry, or a next entry that names it    nil
//	another entry at the same position          [ShorterError]
//	only entries at later positions             errTrimmed
//	only entries at earlier positions           errOldAnswer
//
// The entry must not be newer than the last entry of the log.
func checkLink(ctx context.Context, log Log, l link) error {
	if l.ID == (entryID{}) {
		return nil // The ID is unknown, so there is nothing to compare.
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

// Memory is a [Log] in memory. It is for tests, and for programs that have several worlds in one
// process. The zero Memory is empty.
type Memory struct {
	mu      sync.Mutex
	entries []Entry
	last    Position
	grown   chan struct{} // Closed when an entry is added. nil if no reader waits.
}

// Append implements [Log].
func (m *Memory) Append(ctx context.Context, after Position, entry []byte) (Position, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if len(entry) > MaxEntry {
		return 0, fmt.Errorf("replica: an entry has %d bytes, more than %d", len(entry), MaxEntry)
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

// Entries implements [Log].
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

// Next implements [Log].
func (m *Memory) Next(ctx context.Context, after Position) (Entry, error) {
	e, _, _ := m.find(after)
	return e, ctx.Err()
}

// find returns the first entry after a position. If there is none, it returns a channel that is
// closed when an entry is added. It searches and gets the channel under one lock, so that the
// caller misses no entry.
func (m *Memory) find(after Position) (e Entry, ok bool, grown <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.entries); n > 0 && m.entries[n-1].Position > after {
		// Positions are consecutive. If the next entry was trimmed, return the oldest entry.
		i := 0
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

// Bounds implements [Log].
func (m *Memory) Bounds(ctx context.Context) (first, last Position, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.entries) > 0 {
		first = m.entries[0].Position
	}
	return first, m.last, ctx.Err()
}

// Trim implements [Log].
func (m *Memory) Trim(ctx context.Context, before Position) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.entries) > 0 && m.entries[0].Position < before {
		m.entries = m.entries[1:]
	}
	return ctx.Err()
}

// Forget removes the last n entries, like an engine that breaks its promise. It is for tests.
func (m *Memory) Forget(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n = min(n, len(m.entries))
	m.entries = m.entries[:len(m.entries)-n]
	m.last -= Position(n)
	m.tell()
}
