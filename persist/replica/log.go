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

	// ErrUnknown reports that nobody knows whether an append came to be, or will: whoever
	// wants to know reads the log, or tries again.
	ErrUnknown = errors.New("replica: it is not known whether the log took the entry")
)

// A Log is what machines share: a sequence of entries. It survives the machines that use it,
// and never forgets what it acknowledged, but for what is trimmed. It may be used from several
// goroutines.
type Log interface {
	// Append adds an entry if the log ends with that at position after, or is empty and after is 0
	// or the last that there was. It returns the position of the entry once it will not be
	// forgotten. Otherwise: [ErrTaken], if the log ends elsewhere; any other error, [ErrUnknown]
	// among them, says that the entry may be there, or may yet come to be there.
	Append(ctx context.Context, after Position, entry []byte) (Position, error)

	// Entries yields the entries behind position after, in order, those that come included: it
	// ends with an error, that of ctx if nothing else. If some of them were trimmed, it begins with the
	// oldest there is.
	Entries(ctx context.Context, after Position) iter.Seq2[Entry, error]

	// Bounds returns the positions of the oldest entry that is kept and of the last. If none is,
	// first is 0; last is that of the last there was.
	Bounds(ctx context.Context) (first, last Position, err error)

	// Trim lets go of the entries before a position, but for the last one, which may stay. It may be
	// done later, and Entries may yield them a while longer than Bounds tells of them.
	Trim(ctx context.Context, before Position) error
}

// An Entry is what lies at a position of a log.
type Entry struct {
	Position Position
	Data     []byte
}

// A ShorterError reports a log that ends before an entry which it has acknowledged: the engine
// broke its word. Whoever knows the entry does not go on from less.
type ShorterError struct {
	Known Position // That was acknowledged, or read.
	Last  Position // Where the log ends.
}

// Error says what is missing.
func (e *ShorterError) Error() string {
	return fmt.Sprintf("replica: the log ends at %d and had %d: it forgot what it acknowledged", e.Last, e.Known)
}

// Is reports whether target is [ErrLogShorter].
func (e *ShorterError) Is(target error) bool { return target == ErrLogShorter }

// ErrLogShorter is what a [ShorterError] is.
var ErrLogShorter = errors.New("replica: the log forgot what it acknowledged")

// Memory is a [Log] in memory, for programs that have several worlds in one process, and for
// tests. The zero Memory is empty.
type Memory struct {
	mu      sync.Mutex
	entries []Entry
	last    Position
	grown   chan struct{} // Closed when there is something new; nil: nobody waits.
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

// tell wakes those who wait for an entry.
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
			e, ok, grown := m.next(after)
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

// next returns the first entry behind a position, or what is closed when there may be one. Both are asked
// under one lock, so that no entry comes between the question and the waiting.
func (m *Memory) next(after Position) (e Entry, ok bool, grown <-chan struct{}) {
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
