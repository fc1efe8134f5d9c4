package ecs

// A rowMove is a change of the rows i and j of a set. It swaps the entities a and b, or it removes
// a:
//
//	                   entity in row i    entity in row j
//	before             a                  b
//	after a swap       b                  a
//	after a removal    b                  no entity: row j was the last row
//
// If the removed entity was in the last row, i and j are equal. If a is 0, all rows were removed.
type rowMove struct {
	a, b    Entity
	i, j    uint32
	swapped bool
}

// A moveLog has the row moves of a set while loops over the set are running.
type moveLog struct {
	loops int       // Number of running loops over the set, including loops whose body panicked.
	moves []rowMove // The logged moves. Empty while the field loops is 0.
	first uint64    // Number of the first move in moves.
}

const (
	// Length at which logMove checks whether any loop is still running. It checks again at each
	// doubled length.
	longLog = 4096
	// Maximum capacity that a log keeps after the last loop.
	keptLog = 256
)

// end returns the number of the next move.
func (l *moveLog) end() uint64 { return l.first + uint64(len(l.moves)) }

// reset removes all moves. It also increases first beyond the numbers that running loops expect. So
// a loop that is still running finds out that it has missed moves.
func (l *moveLog) reset() {
	l.loops, l.first = 0, l.end()+1
	if l.moves = l.moves[:0]; cap(l.moves) > keptLog {
		l.moves = nil
	}
}
