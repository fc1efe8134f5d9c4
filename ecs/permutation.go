package ecs

// Groups and sorting move rows and leave the members what they are. Every row
// that moves is saved and noted like any other write, so a restore, a journal or
// a cached query needs no rule for them.

// swapRows exchanges rows i and j, which are below n.
func (s *Storage[T]) swapRows(i, j int) {
	if i == j {
		return
	}
	if s.rows.Span != s.w.clock.Span {
		s.rows.Open()
	}
	if s.dense.Unsaved(i) {
		s.saveRow(i)
	}
	if s.dense.Unsaved(j) {
		s.saveRow(j)
	}
	e, v := s.dense.Live[i], s.data.Live[i]
	s.place(i, s.dense.Live[j], s.data.Live[j])
	s.place(j, e, v)
	s.bump(i)
	s.bump(j)
}

// place writes a row that was saved, and points to it. No other row may keep e
// and v, whose memory v may share.
func (s *Storage[T]) place(row int, e Entity, v T) {
	s.dense.Live[row], s.data.Live[row] = e, v
	p := s.sparse.Page(e.Index())
	if s.sparse.Unsaved(p, e.Index()) {
		s.sparse.Save(p, e.Index())
	}
	p.Rows[e&pageMask] = uint32(row)
}

// permute fills each row lo+k with what is in row from[k], where from holds every
// row of [lo, lo+len(from)) once. Rows that stay are not written. It uses from up.
func (s *Storage[T]) permute(lo int, from []uint32) {
	k := moving(from, lo, 0)
	if k == len(from) {
		return
	}
	if s.rows.Span != s.w.clock.Span {
		s.rows.Open()
	}
	for k < len(from) {
		end := staying(from, lo, k)
		s.dense.TouchRange(lo+k, lo+end)
		s.data.TouchRange(lo+k, lo+end)
		s.reorder(lo+k, lo+end)
		k = moving(from, lo, end)
	}
	for k := range from {
		s.rotate(lo, k, from)
	}
	s.w.changes++
	s.version = s.w.changes
	s.rewoundAt = s.w.changes // A loop cannot tell where its rows went, as after a restore.
}

// moving returns the first position at or behind k whose row moves.
func moving(from []uint32, lo, k int) int {
	for k < len(from) && int(from[k]) == lo+k {
		k++
	}
	return k
}

// staying returns the first position at or behind k whose row stays.
func staying(from []uint32, lo, k int) int {
	for k < len(from) && int(from[k]) != lo+k {
		k++
	}
	return k
}

// rotate moves the rows of the cycle that row lo+k is in, and notes in from that
// they stay from now on.
func (s *Storage[T]) rotate(lo, k int, from []uint32) {
	first := lo + k
	if int(from[k]) == first {
		return
	}
	e, v := s.dense.Live[first], s.data.Live[first]
	row := first
	for {
		next := int(from[row-lo])
		from[row-lo] = uint32(row)
		if next == first {
			s.place(row, e, v)
			return
		}
		s.place(row, s.dense.Live[next], s.data.Live[next])
		row = next
	}
}

func (r *Resource[T]) swapRows(int, int)     {}
func (r *Resource[T]) permute(int, []uint32) {}
