package ecs

import (
	"fmt"
	"math"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

// The registry is the sparse set of entities, without data. The column dense has every index
// exactly once:
//
//	dense   | alive ...      | free ...       | retired ... |
//	        0                n                m             total
//
// Destroying an entity swaps it with the last alive one. Creating an entity takes the free entry at
// n and increases its generation. So a restore of dense also restores the order in which indices
// are reused.
//
// If the generation of a free entity is at its maximum, the entity is retired: it is swapped with
// the last free one. Only createAt can use it again.
//
// Frames save nothing of sparse. A restore of dense writes the entries of sparse again.
type registry struct {
	w             *World
	rows          track.Tracker
	dense         track.Column[Entity]
	sparse        []uint32 // Entity index to row. It has the length of dense.Live.
	maxGeneration uint32
}

// maxIndices is the maximum number of entity indices, and fits into an int.
const maxIndices = math.MaxUint32 & math.MaxInt

func (r *registry) init(w *World) {
	r.w, r.maxGeneration = w, math.MaxUint32
	r.dense.Init(&w.clock, false)
	r.dense.Log.Moved = func(m track.Run) { r.enterRows(int(m.Row), min(int(m.Row+m.N), r.rows.Total)) }
	r.rows.Init(&w.clock, false, &r.dense.Log)
	// A redo can make rows valid again that are not in the logs. Write their sparse entries too.
	r.rows.Rewound = func(before track.Lengths) { r.enterRows(before.Total, r.rows.Total) }
}

func (r *registry) create() Entity {
	r.rows.Open()
	for r.rows.N < r.rows.Extra {
		if e := r.dense.Live[r.rows.N]; e.Generation() != r.maxGeneration {
			if r.dense.Unsaved(r.rows.N) {
				r.dense.Save(r.rows.N)
			}
			e += 1 << 32
			r.dense.Live[r.rows.N] = e
			r.rows.N++
			return e
		}
		// The generation is at its maximum, so retire the entity.
		r.swap(r.rows.N, r.rows.Extra-1)
		r.rows.Extra--
	}
	r.addIndex()
	e := r.dense.Live[r.rows.N]
	r.rows.N++
	return e
}

// addIndex adds a new index as the last free entity, with generation 1. If there are retired
// entities, the first of them moves to the end to make room.
func (r *registry) addIndex() {
	i := r.rows.Total
	if i == len(r.dense.Live) {
		r.grow(i + 1)
	}
	// Do not save row i: no frame needs its old content. A restore that removes the row also drops
	// newer frames.
	r.dense.Live[i] = NewEntity(uint32(i), 1)
	r.sparse[i] = uint32(i)
	r.rows.Total++
	if r.rows.Extra < i {
		r.swap(r.rows.Extra, i)
	}
	r.rows.Extra++
}

// createAt makes e alive. The generation of e must not be lower than that of the last entity with
// its index.
func (r *registry) createAt(e Entity) error {
	i := int(e.Index())
	switch {
	case e.Generation() == 0:
		return fmt.Errorf("ecs: CreateAt(%v): generations begin with 1", e)
	case uint64(e.Index()) >= maxIndices:
		return fmt.Errorf("ecs: CreateAt(%v): a world has at most %d entity indices", e, maxIndices)
	case i >= r.rows.Total:
	case int(r.sparse[i]) < r.rows.N:
		return fmt.Errorf("ecs: CreateAt(%v): the index is %w: %v is alive", e, ErrTaken, r.of(i))
	case r.of(i).Generation() > e.Generation():
		return fmt.Errorf("ecs: CreateAt(%v): the name is %w: the index was given out since, last as %v", e, ErrTaken, r.of(i))
	}
	r.rows.Open()
	for r.rows.Total <= i {
		r.addIndex()
	}
	if row := int(r.sparse[i]); row >= r.rows.Extra { // Make the retired entity free first.
		r.swap(row, r.rows.Extra)
		r.rows.Extra++
	}
	r.swap(int(r.sparse[i]), r.rows.N)
	if r.dense.Unsaved(r.rows.N) {
		r.dense.Save(r.rows.N)
	}
	r.dense.Live[r.rows.N] = e
	r.rows.N++
	return nil
}

// grow gives the columns room for at least the given number of entities.
//
//go:noinline
func (r *registry) grow(rows int) {
	if rows > maxIndices {
		panic(fmt.Sprintf("ecs: %d entity indices are in use; destroy entities before creating more", maxIndices))
	}
	if rows > len(r.dense.Live) {
		r.reserve(max(rows, min(2*len(r.dense.Live), maxIndices), minRows))
	}
}

// reserve gives the columns and their undo marks room for the given number of entities.
func (r *registry) reserve(rows int) {
	if rows > len(r.dense.Live) {
		r.dense.Reserve(rows)
		r.rows.Reserve(rows)
		sparse := make([]uint32, len(r.dense.Live))
		copy(sparse, r.sparse)
		r.sparse = sparse
	}
}

func (r *registry) swap(a, b int) {
	if a == b {
		return
	}
	r.dense.Log.SaveBoth(a, b)
	d := r.dense.Live
	x, y := d[a], d[b]
	d[a], d[b] = y, x
	r.sparse[y.Index()], r.sparse[x.Index()] = uint32(a), uint32(b)
}

// allAlive reports whether all of entities are alive.
func (r *registry) allAlive(entities []Entity) bool {
	for _, e := range entities {
		if !r.alive(e) {
			return false
		}
	}
	return true
}

// freed reports whether e was destroyed since the registry had n alive entities. The result is
// wrong if an entity was created in the meantime.
func (r *registry) freed(e Entity, n int) bool {
	i := e.Index()
	if uint(i) >= uint(len(r.sparse)) {
		return false
	}
	k := int(r.sparse[i])
	return k >= r.rows.N && k < n && r.dense.Live[k] == e
}

func (r *registry) destroy(e Entity) bool {
	row := r.row(e)
	if row < 0 {
		return false
	}
	r.rows.Open()
	r.rows.N--
	last := r.rows.N
	if r.dense.Unsaved(row) || r.dense.Unsaved(last) {
		r.swap(row, last)
		return true
	}
	d := r.dense.Live
	moved := d[last]
	d[row], d[last] = moved, e
	r.sparse[moved.Index()], r.sparse[e.Index()] = uint32(row), uint32(last)
	return true
}

func (r *registry) clear() {
	r.rows.Open()
	r.rows.N = 0
}

// enterRows writes the sparse entries of the entities in rows [lo, hi) of dense.
func (r *registry) enterRows(lo, hi int) {
	for row := lo; row < hi; row++ {
		r.sparse[r.dense.Live[row].Index()] = uint32(row)
	}
}

// A border has the entities on both sides of the border between alive and free entities. It changes
// whenever entities are created or destroyed, even if equal numbers of them are.
type border struct {
	track.Lengths
	last, next Entity
}

func (r *registry) border() border {
	b := border{Lengths: r.rows.Lengths}
	if r.rows.N > 0 {
		b.last = r.dense.Live[r.rows.N-1]
	}
	if r.rows.N < r.rows.Total {
		b.next = r.dense.Live[r.rows.N]
	}
	return b
}

// word, nextWord and summary implement tree for the alive entities.
func (r *registry) word(b int) (word uint64) {
	if b > r.rows.Total>>6 {
		return 0
	}
	for i, row := range r.sparse[b<<6 : min(b<<6+64, r.rows.Total)] {
		if int(row) < r.rows.N {
			word |= 1 << i
		}
	}
	return word
}

func (r *registry) nextWord(b int) int {
	if r.rows.N > 0 && b <= (r.rows.Total-1)>>6 {
		return b
	}
	return -1
}

func (r *registry) summary(level, k int) uint64 {
	// k<<(6*level) is the first block below word k.
	if r.nextWord(k<<(6*level)) >= 0 {
		return ^uint64(0)
	}
	return 0
}

// of returns the living entity with index i, which must exist.
func (r *registry) of(i int) Entity { return r.dense.Live[r.sparse[i]] }
