package replica

import (
	"sync"
	"time"
)

// Metrics are the progress and the errors of a machine and its log. Reading them never waits for
// the log. Counters start when the machine begins to follow, or to own.
type Metrics struct {
	Position Position // Position of the last entry that was read or appended.
	Term     uint64   // Number of the newest claim. Each claim has a higher term.
	// Bytes of entries in the log since all files were last sent, or since Follow.
	LogBytes int64

	Heard      time.Time // When the last entry was read or acknowledged.
	StuckSince time.Time // When the current call first failed. Zero if it did not fail.
	Stuck      error     // The last error of the current call; see [ClassOf].

	Errors [Operator + 1]uint64 // Number of failed calls, by Class.
	// How often the owner sent all files again because the log did not show an entry.
	Healed uint64
}

// A monitor collects Metrics. Its methods never wait for the log.
type monitor struct {
	mu      sync.Mutex
	metrics Metrics
	held    error     // Why the owner makes no calls at the moment, or nil.
	since   time.Time // When held was set.
	// Start of the current call. Zero while a failed call waits for its next try.
	tried time.Time
}

// calm is how long a call must run before the failure of the previous call counts as resolved.
// Engines report failures sooner. A call that reads entries shows its success only in this way,
// because it does not return while the log works.
const calm = 5 * time.Second

// begin records that a call begins.
func (m *monitor) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tried = time.Now()
}

// fail records that a call failed.
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

// setPaused records the reason why the owner makes no calls. The reason is nil when the owner makes
// calls again.
func (m *monitor) setPaused(why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if why != nil && m.held == nil {
		m.since = time.Now()
		m.metrics.Errors[ClassOf(why)]++
	}
	m.held = why
}

// failures returns the number of failed calls.
func (m *monitor) failures() (n uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, of := range m.metrics.Errors {
		n += of
	}
	return n
}

// addRepair records that the owner repaired the log.
func (m *monitor) addRepair() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.metrics.Healed++
}

// succeed records that the log has, or has yielded, the entry at a position.
func (m *monitor) succeed(at Position, logBytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.metrics.Position, m.metrics.LogBytes, m.metrics.Heard = at, logBytes, time.Now()
	m.metrics.StuckSince, m.metrics.Stuck = time.Time{}, nil
}

// current returns the current metrics.
func (m *monitor) current() Metrics {
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
