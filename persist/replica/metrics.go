package replica

import (
	"sync"
	"time"
)

// Metrics say how a machine and its log get on. Reading them never waits for the log. Counts are
// those since the machine began to follow, or to own.
type Metrics struct {
	Position Position // Of the last entry that was read, or appended.
	Term     uint64   // Of the newest claim. Each claim has a higher one.
	// Of the entries in the log, counted since all files were last sent, or since Follow.
	LogBytes int64

	Heard      time.Time // When the last entry was read, or acknowledged.
	StuckSince time.Time // When the call that is under way first failed. Zero: it has not.
	Stuck      error     // How it failed last. ClassOf tells what helps.

	Errors [Operator + 1]uint64 // Failed calls, by Class.
	// How often an owner sent all files once more since the log did not show an entry.
	Healed uint64
}

// A monitor keeps Metrics. Its lock is held for a few instructions only.
type monitor struct {
	mu      sync.Mutex
	metrics Metrics
	held    error     // Why no call is made.
	since   time.Time // Since when none is made.
	// When the call that is under way began; zero: a failed call waits for its repetition.
	tried time.Time
}

// calm is how long a call may be under way until the failure of the one before counts as over. A
// call of reading lasts as long as the log is in order. Engines report a failure sooner.
const calm = 5 * time.Second

// begin notes that a call begins.
func (m *monitor) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tried = time.Now()
}

// fail notes that a call failed.
func (m *monitor) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tried = time.Time{}
	if m.metrics.StuckSince.IsZero() {
		m.metrics.StuckSince = time.Now()
	}
	m.metrics.Stuck = err
	m.metrics.Errors[ClassOf(err)]++
}

// hold notes why no call is made; nil: calls are made.
func (m *monitor) hold(why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if why != nil && m.held == nil {
		m.since = time.Now()
		m.metrics.Errors[ClassOf(why)]++
	}
	m.held = why
}

// failures returns how many calls failed.
func (m *monitor) failures() (n uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, of := range m.metrics.Errors {
		n += of
	}
	return n
}

// heal notes that the owner repaired the log.
func (m *monitor) heal() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.metrics.Healed++
}

// succeed notes that the log has, or has yielded, the entry at a position.
func (m *monitor) succeed(at Position, logBytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.metrics.Position, m.metrics.LogBytes, m.metrics.Heard = at, logBytes, time.Now()
	m.metrics.StuckSince, m.metrics.Stuck = time.Time{}, nil
}

// now returns the metrics.
func (m *monitor) now() Metrics {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.metrics
	if !m.tried.IsZero() && time.Since(m.tried) > calm {
		now.StuckSince, now.Stuck = time.Time{}, nil
	}
	if m.held != nil {
		now.StuckSince, now.Stuck = m.since, m.held
	}
	return now
}
