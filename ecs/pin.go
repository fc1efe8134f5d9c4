package ecs

import (
	"errors"
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/internal/digest"
)

// A Pin reads a world as it was at the end of a tick, while the world goes on: a
// reader of a past frame. [World.Pin] makes one. Snapshots are copied through it,
// some rows in each tick.
//
//	tick 7 (pinned)   tick 8 saves rows   tick 9 saves rows   now
//	                       |                   |
//	pin   group 0  | old rows, the oldest value of each |  laid over the live rows
//	      group 1  | ...                                |
//
// While a pin is held, every tick saves the old values of what it writes, as for a
// checkpoint, and when it ends the pin takes over those that it has not yet, by
// groups of 4096 rows. That is O(rows written), and what is read costs no more
// than the rows and what was saved of them. The pin holds no frame: the
// history and its bounds are as they would be without.
//
// It reads what rewinds. What is registered with [NoRewind] has no past.
type Pin struct {
	w    *World
	id   uint64 // Of the frame that begins with the boundary.
	gone bool   // The world went back to before it.

	parts  map[*track.Tracker]*pinPart
	staged *pinPart
}

// A pinPart is the registry, a storage or a resource at the boundary.
type pinPart struct {
	track.Lengths
	dense   pastColumn   // nil: a resource.
	data    pastColumn   // nil: the registry.
	columns []pastColumn // Those of them that there are.
}

// A pastColumn is a column as it was; see [track.Past].
type pastColumn interface {
	Absorb(log int)
	Done(lo, hi int)
	Stage(lo, hi int)
	Release()
	append(dst []byte, lo, hi int) []byte
}

// ErrDirty reports an operation that needs a world without changes since its
// last commit.
var ErrDirty = errors.New("ecs: changed since the last commit")

// Pin pins the present state, which must be the end of a tick: an error wraps
// [ErrDirty] if anything was written since, or if the world keeps no ticks, as
// one with neither history nor recorder. It costs O(storages).
func (w *World) Pin() (*Pin, error) {
	k := w.newestBoundary()
	if k < 0 || w.Dirty() {
		return nil, ErrDirty
	}
	if f := &w.frames[k]; f.Bare { // Nothing is in it yet.
		f.Bare, f.hidden = false, true
	}
	p := &Pin{w: w, id: w.frames[k].ID, parts: make(map[*track.Tracker]*pinPart)}
	r := &w.entities
	p.add(&r.rows, &pinPart{dense: pastEntities{track.NewPast(&r.dense)}})
	for _, list := range [2][]AnyStorage{w.storages, w.resources} {
		for _, s := range list {
			if s.Rewinds() {
				p.add(s.tracked(), s.pinPart())
			}
		}
	}
	w.pins = append(w.pins, p)
	return p, nil
}

// add makes part the part of t. Rows below its height are protected from now on.
func (p *Pin) add(t *track.Tracker, part *pinPart) {
	part.Lengths = t.Lengths
	if part.dense != nil {
		part.columns = append(part.columns, part.dense)
	}
	if part.data != nil {
		part.columns = append(part.columns, part.data)
	}
	p.parts[t] = part
	t.Protect(part.Lengths)
}

// Valid reports whether the state can still be read: the world was not put back
// to before it, loaded, or attached to another recorder, and p was not released.
func (p *Pin) Valid() bool { return !p.gone && slices.Contains(p.w.pins, p) }

// Release gives p up, and what it took over.
func (p *Pin) Release() {
	p.w.pins = slices.DeleteFunc(p.w.pins, func(o *Pin) bool { return o == p })
	p.unprotect()
}

// unprotect forgets what p took over and that its rows are protected.
func (p *Pin) unprotect() {
	parts := p.parts
	p.parts, p.staged = nil, nil
	for t, part := range parts {
		for _, c := range part.columns {
			c.Release()
		}
		t.Unprotect()
		for _, o := range p.w.pins {
			if part := o.parts[t]; part != nil {
				t.Protect(part.Lengths)
			}
		}
	}
}

// absorb makes the pins take over what the frames from k on saved.
func (w *World) absorb(k int) {
	for _, p := range w.pins {
		if p.gone {
			continue
		}
		for i := k; i < len(w.frames); i++ {
			for _, t := range w.frames[i].Touched {
				if part := p.parts[t]; part != nil {
					part.absorb(t, w.frames[k].ID, w.frames[i].ID)
				}
			}
		}
	}
}

// absorb takes over what t saved since frame from, unless an older frame than id
// has told it of that.
func (part *pinPart) absorb(t *track.Tracker, from, id uint64) {
	first, _, _ := t.Since(from)
	if k, _, _ := t.Since(id); k == first {
		for _, c := range part.columns {
			c.Absorb(k)
		}
	}
}

// leavePins notes that the world went back to the beginning of frame from, which
// is frame to from now on.
func (w *World) leavePins(from, to uint64) {
	for _, p := range w.pins {
		switch {
		case p.id == from:
			p.id = to
		case p.id > from:
			p.gone = true
			p.unprotect()
		}
	}
}

// Registry returns the lengths of the registry: rows [0, alive) were alive,
// [alive, free) free, [free, total) retired.
func (p *Pin) Registry() (alive, free, total int) {
	l := p.parts[&p.w.entities.rows]
	return l.N, l.Extra, l.Total
}

// Len returns how many rows s had, gaps included.
func (p *Pin) Len(s AnyStorage) int {
	if part := p.parts[s.tracked()]; part != nil {
		return part.N
	}
	return 0 // It was registered since.
}

// StageRegistry makes rows [lo, hi) of the registry those that AppendEntities
// appends. See [Pin.Stage].
func (p *Pin) StageRegistry(lo, hi int) {
	p.keepUp()
	p.staged = p.parts[&p.w.entities.rows]
	p.staged.dense.Stage(lo, hi)
}

// Stage makes rows [lo, hi) of s, at most Len, those that AppendEntities and
// AppendRows append, until the next Stage or change of the world.
// In the middle of a tick it costs O(rows written in it), else nothing: between
// two ticks, and for a [Recorder] while it records one.
func (p *Pin) Stage(s AnyStorage, lo, hi int) {
	p.keepUp()
	p.staged = p.parts[s.tracked()]
	if p.staged.dense != nil {
		p.staged.dense.Stage(lo, hi)
	}
	p.staged.data.Stage(lo, hi)
}

// keepUp takes over what was saved since the last commit.
func (p *Pin) keepUp() {
	if !p.w.recording && p.w.Dirty() {
		p.w.absorb(p.w.newestBoundary())
	}
}

// AppendEntities appends the entities of staged rows [lo, hi) to dst, 8 bytes
// each, little-endian; nothing for a resource.
func (p *Pin) AppendEntities(dst []byte, lo, hi int) []byte {
	if p.staged.dense == nil {
		return dst
	}
	return p.staged.dense.append(dst, lo, hi)
}

// AppendRows appends the canonical encoding of staged rows [lo, hi) to dst.
func (p *Pin) AppendRows(dst []byte, lo, hi int) []byte { return p.staged.data.append(dst, lo, hi) }

// DoneRegistry says that rows [lo, hi) of the registry will not be staged any
// more. See [Pin.Done].
func (p *Pin) DoneRegistry(lo, hi int) { p.parts[&p.w.entities.rows].done(lo, hi) }

// Done says that rows [lo, hi) of s will not be staged any more, so that nothing
// needs to be taken over of the groups of 4096 rows that lie in it.
func (p *Pin) Done(s AnyStorage, lo, hi int) {
	if part := p.parts[s.tracked()]; part != nil {
		part.done(lo, hi)
	}
}

func (part *pinPart) done(lo, hi int) {
	for _, c := range part.columns {
		c.Done(lo, hi)
	}
}

func (s *Storage[T]) pinPart() *pinPart {
	return &pinPart{dense: pastEntities{track.NewPast(&s.dense)}, data: pastValues[T]{track.NewPast(&s.data), s.codec}}
}

func (r *Resource[T]) pinPart() *pinPart {
	return &pinPart{data: pastValues[T]{track.NewPast(&r.data), r.codec}}
}

// pastEntities is the dense array at the boundary, and pastValues the values: both
// append the canonical bytes of rows that are staged.
type (
	pastEntities      struct{ *track.Past[Entity] }
	pastValues[T any] struct {
		*track.Past[T]
		codec rowCodec[T]
	}
)

func (p pastEntities) append(dst []byte, lo, hi int) []byte {
	p.Each(lo, hi, func(rows []Entity) { dst = digest.AppendEntities(dst, rows) })
	return dst
}

func (p pastValues[T]) append(dst []byte, lo, hi int) []byte {
	p.Each(lo, hi, func(rows []T) { dst = p.codec.append(dst, rows) })
	return dst
}
