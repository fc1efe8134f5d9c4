package ecs

// A rowMove is a change of two rows of a set:
//
//	before          row i: a    row j: b
//	if swapped      row i: b    row j: a
//	if a removed    row i: b    row j was the last row
//
// If the removed entity was in the last row, i and j are equal. If a is 0, all rows were removed.
type rowMove struct {
	a, b    Entity
	i, j    uint32
	swapped bool
}

// A moveLog has the moves of the rows of a set since the first of the running loops began.
type moveLog struct {
	loops int       // The number of running loops over the set, and of loops whose body panicked.
	moves []rowMove // Empty if loops is 0.
	first uint64    // The number of the first move in moves.
}

const (
	// When the log reaches this length, logMove checks whether any loop is still running. It checks
	// again whenever the length has doubled.
	longLog = 4096
	// A log keeps this capacity after the last loop ends.
	keptLog = 256
)

// end returns the number of the next move.
func (l *moveLog) end() uint64 { return l.first + uint64(len(l.moves)) }

// reset removes all moves. A loop that still needs them can tell that they are missing.
func (l *moveLog) reset() {
	l.loops, l.first = 0, l.end()+1
	if l.moves = l.moves[:0]; cap(l.moves) > keptLog {
		l.moves = nil
	}
}
