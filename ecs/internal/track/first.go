package track

import "unsafe"

// SaveMember saves what a member overwrites that comes to row i: that row of dense and of
// data, and the entry of index e, in page p; as far as they are not saved yet. All that
// takes is written into one body, as a call for each would cost more than they do.
//
// Rows of data must be plain: without pointers and Clone. Those of dense have 8 bytes. Whoever
// writes a row of dense writes that of data too, so one that is saved there needs no second
// test.
//
//go:noinline
func SaveMember(dense, data *Log, s *Sparse, p *Page, e uint32, i int) {
	if i < dense.prot && dense.mark(i) {
		if i < data.prot && data.mark(i) {
			data.beforeSave(i, i+1)
			if c := data.tip; c.takes(uint32(i), data.split) {
				data.top.size++
				copyRow(c.rows.next(data.size), data.row(i), data.size)
			} else {
				data.saveSlow(i, data.row(i))
			}
		}
		dense.beforeSave(i, i+1)
		if c := dense.tip; c.takes(uint32(i), dense.split) {
			dense.top.size++
			*(*uint64)(c.rows.next(8)) = *(*uint64)(unsafe.Add(*dense.live, i*8))
		} else {
			dense.saveSlow(i, dense.row(i))
		}
	}
	if row := p.Rows[e&PageMask]; row < s.prot && p.mark(e, s.span) {
		if c := s.tip; c.takes(e, PageMask) {
			s.top.size++
			*(*uint32)(c.rows.next(4)) = row
		} else {
			s.saveSlow(int(e), unsafe.Pointer(&p.Rows[e&PageMask]))
		}
	}
}
