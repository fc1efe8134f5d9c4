package ecs

import (
	"errors"
	"slices"

	"github.com/stet-ecs/stet/internal/digest"
)

// A Pin reads a world as it was at the end of a tick, while the world goes on: a
// reader of a past frame. [World.Pin] makes one. Snapshots are copied through it,
// some rows in each tick.
//
//	frames   | tick 7 (pinned) | tick 8 | tick 9 |  now
//	           `------ what these saved ------'   laid over the live rows
//
// While a pin is held, every frame keeps the old values of what it writes, as
// for a checkpoint, and the boundary it begins with is kept, whatever the bounds
// of the history. Writing itself is not slower.
//
// It reads what rewinds. What is registered with [NoRewind] has no past.
type Pin struct {
	w  *World
	id uint64 // Of the frame that begins with the boundary.

	lo       int // The rows that were staged.
	rows     pastRows
	entities []Entity
	scratch  []Entity
}

// ErrDirty reports an operation that needs a world without changes since its
// last commit.
var ErrDirty = errors.New("ecs: changed since the last commit")

// Pin pins the present state, which must be the end of a tick: an error wraps
// [ErrDirty] if anything was written since, or if the world keeps no ticks, as
// one with neither history nor recorder. It costs O(1).
func (w *World) Pin() (*Pin, error) {
	k := w.newestBoundary()
	if k < 0 || w.Dirty() {
		return nil, ErrDirty
	}
	if f := &w.frames[k]; f.bare { // Nothing is in it yet.
		f.bare, f.hidden = false, true
	}
	p := &Pin{w: w, id: w.frames[k].id}
	w.pins = append(w.pins, p)
	return p, nil
}

// Valid reports whether the state can still be read: the world was not put back
// to before it, loaded, or attached to another recorder, and p was not released.
func (p *Pin) Valid() bool { return slices.Contains(p.w.pins, p) && p.w.findCheckpoint(p.id) >= 0 }

// Release gives p up. What only p kept is forgotten.
func (p *Pin) Release() {
	if k := slices.Index(p.w.pins, p); k >= 0 {
		p.w.pins = slices.Delete(p.w.pins, k, k+1)
		p.w.evict()
	}
	p.rows, p.entities, p.scratch = nil, nil, nil
}

// pinned reports whether a pin needs the boundary at the start of frames[k].
func (w *World) pinned(k int) bool { return w.pinnedFrame(w.frames[k].id) }

func (w *World) pinnedFrame(id uint64) bool {
	return slices.ContainsFunc(w.pins, func(p *Pin) bool { return p.id == id })
}

// movePins makes pins of frame from follow to frame to, which begins with the
// same state.
func (w *World) movePins(from, to uint64) {
	for _, p := range w.pins {
		if p.id == from {
			p.id = to
		}
	}
}

// before returns the lengths that t had, and the position of the logs that hold
// what was written since.
func (p *Pin) before(t *tracker) (lengths, int) {
	k := t.find(p.id)
	if k < len(t.recs) {
		return t.recs[k].lengths, k
	}
	return t.lengths, k
}

// Registry returns the lengths of the registry: rows [0, alive) were alive,
// [alive, free) free, [free, total) retired.
func (p *Pin) Registry() (alive, free, total int) {
	l, _ := p.before(&p.w.entities.tracker)
	return l.n, l.m, l.total
}

// Len returns how many rows s had, gaps included.
func (p *Pin) Len(s AnyStorage) int {
	l, _ := p.before(s.tracked())
	return l.n
}

// StageRegistry makes rows [lo, hi) of the registry those that AppendEntities
// appends. See [Pin.Stage].
func (p *Pin) StageRegistry(lo, hi int) {
	r := &p.w.entities
	_, k := p.before(&r.tracker)
	p.lo, p.rows = lo, nil
	p.entities = r.dense.past(k, lo, hi, &p.scratch)
}

// Stage makes rows [lo, hi) of s, at most Len, those that AppendEntities and
// AppendRows append, until the next Stage or change of the world. It costs
// O(rows) and O(runs of rows written since), so stage many rows at a time.
func (p *Pin) Stage(s AnyStorage, lo, hi int) {
	_, k := p.before(s.tracked())
	p.lo, p.entities = lo, nil
	if set := s.sparseSet(); set != nil {
		p.entities = set.dense.past(k, lo, hi, &p.scratch)
	}
	p.rows = s.pastRows(p.rows, k, lo, hi)
}

// AppendEntities appends the entities of staged rows [lo, hi) to dst, 8 bytes
// each, little-endian; nothing for a resource.
func (p *Pin) AppendEntities(dst []byte, lo, hi int) []byte {
	if p.entities == nil {
		return dst
	}
	return digest.AppendEntities(dst, p.entities[lo-p.lo:hi-p.lo])
}

// AppendRows appends the canonical encoding of staged rows [lo, hi) to dst.
func (p *Pin) AppendRows(dst []byte, lo, hi int) []byte {
	return p.rows.append(dst, lo-p.lo, hi-p.lo)
}

// A pastRows holds the rows that were staged.
type pastRows interface {
	append(dst []byte, lo, hi int) []byte
}

type typedPast[T any] struct {
	codec         rowCodec[T]
	rows, scratch []T
}

func (t *typedPast[T]) append(dst []byte, lo, hi int) []byte {
	return t.codec.append(dst, t.rows[lo:hi])
}

// stagePast stages rows of c in recycled, if that is for rows of T.
func stagePast[T any](recycled pastRows, codec rowCodec[T], c *column[T], k, lo, hi int) pastRows {
	t, ok := recycled.(*typedPast[T])
	if !ok {
		t = new(typedPast[T])
	}
	t.codec, t.rows = codec, c.past(k, lo, hi, &t.scratch)
	return t
}

func (s *Storage[T]) pastRows(recycled pastRows, k, lo, hi int) pastRows {
	return stagePast(recycled, s.codec, &s.data, k, lo, hi)
}

func (r *Resource[T]) pastRows(recycled pastRows, k, lo, hi int) pastRows {
	return stagePast(recycled, r.codec, &r.data, k, lo, hi)
}

// past returns rows [lo, hi) as they were when logs[k:] were empty: the live
// rows, and if any of them was saved since, in scratch with the saved values laid
// over. Newest first, so that the oldest wins.
func (c *column[T]) past(k, lo, hi int, scratch *[]T) []T {
	live := c.live[lo:hi:hi]
	then := live
	for i := len(c.logs) - 1; i >= k; i-- {
		for j := len(c.logs[i].chunks) - 1; j >= 0; j-- {
			chunk := c.logs[i].chunks[j]
			from := len(chunk.rows)
			for m := len(chunk.runs) - 1; m >= 0; m-- {
				first, n := int(chunk.runs[m].row), int(chunk.runs[m].n)
				from -= n
				a, b := max(first, lo), min(first+n, hi)
				if a >= b {
					continue
				}
				if &then[0] == &live[0] {
					*scratch = append((*scratch)[:0], live...)
					then = *scratch
				}
				if n == 1 {
					then[a-lo] = chunk.rows[from]
					continue
				}
				copy(then[a-lo:b-lo], chunk.rows[from+a-first:])
			}
		}
	}
	return then
}
