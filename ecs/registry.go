package ecs

import "math"

// The registry is the sparse set of entities, without data. Every index ever
// made is in dense exactly once:
//
//	dense   | alive ...      | free ...       | retired ... |
//	        0                n                m             total
//
// Destroying an entity swaps it behind n, creating one takes the first behind n
// with its generation raised. So the free list is the tail of the dense array,
// and putting it back, order of reuse included, is the business of a column. An
// entity whose generation cannot be raised is swapped behind m instead and never
// used again.
//
// Dense is a permutation of all indices, so sparse needs no saving: what a
// restore writes to dense, below total, is pointed to again.
type registry struct {
	tracker
	dense         column[Entity]
	sparse        []uint32 // Entity index to row; as long as dense.live.
	maxGeneration uint32
}

func (r *registry) init(w *World) {
	r.w, r.owner, r.maxGeneration = w, r, math.MaxUint32
	r.dense = newColumn[Entity](w)
	r.dense.moved = func(m run) { r.point(int(m.row), min(int(m.row+m.n), r.total)) }
	r.columns = []trackedColumn{&r.dense}
}

// alive reports whether e is in [0, n).
func (r *registry) alive(e Entity) bool {
	i := e.Index()
	if int(i) >= len(r.sparse) {
		return false
	}
	k := int(r.sparse[i])
	return k < r.n && r.dense.live[k] == e
}

func (r *registry) create() Entity {
	if r.span != r.w.span {
		r.open()
	}
	for r.n < r.m {
		if e := r.dense.live[r.n]; e.Generation() != r.maxGeneration {
			if r.dense.unsaved(r.n) {
				r.dense.save(r.n)
			}
			e += 1 << 32
			r.dense.live[r.n] = e
			r.n++
			return e
		}
		r.swap(r.n, r.m-1) // Spent: retire it.
		r.m--
	}
	return r.createIndex()
}

// createIndex returns the first entity of a new index. It takes row n; what lay
// there, a retired entity, moves to the end.
func (r *registry) createIndex() Entity {
	if r.total == math.MaxUint32 {
		panic("ecs: 4294967295 entity indices are in use; destroy entities before creating more")
	}
	e := NewEntity(uint32(r.total), 1)
	if r.total < len(r.dense.live) { // No frame protects row total: a restore that lowered total ended those that did.
		r.dense.live[r.total] = e
	} else {
		r.dense.live = append(r.dense.live, e)
		r.sparse = append(r.sparse, 0)
	}
	r.sparse[r.total] = uint32(r.total)
	r.total++
	r.swap(r.n, r.total-1)
	r.n++
	r.m++
	return e
}

func (r *registry) swap(a, b int) {
	if a == b {
		return
	}
	if r.dense.unsaved(a) {
		r.dense.save(a)
	}
	if r.dense.unsaved(b) {
		r.dense.save(b)
	}
	d := r.dense.live
	x, y := d[a], d[b]
	d[a], d[b] = y, x
	r.sparse[y.Index()], r.sparse[x.Index()] = uint32(a), uint32(b)
}

func (r *registry) destroy(e Entity) bool {
	if int(e.Index()) >= len(r.sparse) {
		return false
	}
	row := int(r.sparse[e.Index()])
	if row >= r.n || r.dense.live[row] != e {
		return false
	}
	if r.span != r.w.span {
		r.open()
	}
	r.n--
	last := r.n
	if r.dense.unsaved(row) || r.dense.unsaved(last) {
		r.swap(row, last)
		return true
	}
	d := r.dense.live
	moved := d[last]
	d[row], d[last] = moved, e
	r.sparse[moved.Index()], r.sparse[e.Index()] = uint32(row), uint32(last)
	return true
}

func (r *registry) clear() {
	if r.span != r.w.span {
		r.open()
	}
	r.n = 0
}

// point makes sparse follow rows [lo, hi) of dense.
func (r *registry) point(lo, hi int) {
	for row := lo; row < hi; row++ {
		r.sparse[r.dense.live[row].Index()] = uint32(row)
	}
}

func (r *registry) settle() {}

// rewound points to the rows that redo appended: no log has them.
func (r *registry) rewound(before lengths) { r.point(before.total, r.total) }
