package track

import "unsafe"

// SaveMember saves the values that a storage overwrites when it adds a member in row i. These are
// row i of dense, row i of data, and the entry of index e in page p. It skips values that are
// already saved. The code of the three saves is repeated here, because a call for each would cost
// more than the save.
//
// Rows of data must have no pointers and no Clone. Rows of dense must have 8 bytes. Each caller
// that writes a row of dense also writes the row of data. So if the row of dense is already saved,
// SaveMember does not look at the row of data.
//
//go:noinline
func SaveMember(dense, data *Log, s *Sparse, p *Page, e uint32, i int) {
	if bit := uint64(1) << (uint(i) & 63); i < dense.prot {
		if m := dense.markOf(i); m.rows&bit == 0 {
			m.rows |= bit
			if i < data.prot { // A tag has no values, so data.prot is 0.
				if m := data.markOf(i); m.rows&bit == 0 {
					m.rows |= bit
					if tip := data.tip; tip.ready() && tip.note(uint32(i), true) {
						copyRow(tip.next(data.size), unsafe.Add(*data.live, uintptr(i)*data.size), data.size)
					} else {
						data.saveRow(i)
					}
				}
			}
			if tip := dense.tip; tip.ready() && tip.note(uint32(i), true) {
				*(*uint64)(tip.next(8)) = *(*uint64)(unsafe.Add(*dense.live, i*8))
			} else {
				dense.saveRow(i)
			}
		}
	}
	if row := p.Rows[e&PageMask]; row < s.prot {
		if m, bit := p.markOf(e, s.span), uint64(1)<<(e&63); m.rows&bit == 0 {
			m.rows |= bit
			if tip := s.tip; tip.ready() && tip.note(e, e&PageMask != 0) {
				*(*uint32)(tip.next(4)) = row
			} else {
				s.saveSlow(int(e), unsafe.Pointer(&p.Rows[e&PageMask]))
			}
		}
	}
}

// SaveBoth saves rows i and k of l, which have 8 bytes, unless they are already saved.
//
//go:noinline
func (l *Log) SaveBoth(i, k int) {
	for range 2 {
		if i < l.prot {
			if m, bit := l.markOf(i), uint64(1)<<(uint(i)&63); m.rows&bit == 0 {
				m.rows |= bit
				if tip := l.tip; tip.ready() && tip.note(uint32(i), true) {
					*(*uint64)(tip.next(8)) = *(*uint64)(unsafe.Add(*l.live, i*8))
				} else {
					l.saveRow(i)
				}
			}
		}
		i = k
	}
}

// saveRow saves row i, which is already marked, and reports it to readers.
//
//go:noinline
func (l *Log) saveRow(i int) {
	l.beforeSave(i, i+1)
	l.saveSlow(i, l.row(i))
}
