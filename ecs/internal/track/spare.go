package track

// A log that releases a chunk keeps it for reuse, as a spare. Without a limit, the spares could use
// more and more memory. For example, a history that retains few old ticks releases many small
// chunks, but reuses few of them. The limit for used and spare chunks together is 1.25 times the
// peak of used chunks, plus leastSpare.

// leastSpare is the number of bytes of spare chunks that are always allowed.
const leastSpare = 64 << 10

// count adds n to the byte count of the chunks in logs.
func (u *undoStack) count(n int64) {
	u.clock.bytes.Add(n)
	u.used += n
	u.most = max(u.most, u.used)
}

// giveBack drops spare chunks, the largest first, for the garbage collector. The parameter more is
// the number of bytes that a log is about to allocate. giveBack stops when these bytes fit within
// the limit.
func (u *undoStack) giveBack(more int64) {
	limit := u.most + u.most/4 + leastSpare - u.used - more
	for rung := len(u.spares) - 1; rung >= 0 && u.spare > limit; rung-- {
		u.spares[rung] = u.giveBackOf(u.spares[rung], limit)
	}
	if u.spare > limit {
		u.bare = u.giveBackOf(u.bare, limit)
	}
}

// giveBackOf drops chunks from the list, for the garbage collector, until all spare chunks together
// take at most the given number of bytes. It returns the remaining list.
func (u *undoStack) giveBackOf(chunks []*chunk, limit int64) []*chunk {
	k := len(chunks)
	for ; k > 0 && u.spare > limit; k-- {
		u.spare -= u.bytes(chunks[k-1])
	}
	clear(chunks[k:])
	return chunks[:k]
}

// sparesOf returns the list of recycled chunks of one size class.
func (u *undoStack) sparesOf(rung int) *[]*chunk {
	for rung >= len(u.spares) {
		u.spares = append(u.spares, nil)
	}
	return &u.spares[rung]
}

// recycleChunk makes c a spare chunk. The caller must have removed c from its log.
func (u *undoStack) recycleChunk(c *chunk) {
	u.count(-u.bytes(c))
	u.spare += u.bytes(c)
	if u.wipes && c.rows.room > 0 {
		u.rows.wipe(c.rows.p, c.rows.n)
	}
	c.rows.n, c.runs = 0, c.runs[:0]
	if c.rows.room > 0 {
		list := u.sparesOf(c.rung)
		*list = append(*list, c)
	} else {
		u.bare = append(u.bare, c)
	}
}
