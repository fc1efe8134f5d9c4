package ecs

import (
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/digest"
)

// A rawPin is a [raw.Pin]: a reader of a past frame.
//
//	tick 7 (pinned)   tick 8 saves rows   tick 9 saves rows   now
//	                       |                   |
//	pin   group 0  | old rows, the oldest value of each |  laid over the live rows
//	      group 1  | ...                                |
//
// It holds no frame: when a tick ends, it takes over what the tick saved and it has
// not yet, by groups of 4096 rows.
type rawPin struct {
	w    *World
	id   uint64 // Of the frame that began with the boundary when it was pinned; an undo renames it.
	gone bool   // The world went back to before it.

	parts  map[*track.Tracker]*pinPart
	staged *pinPart
}

// A pinPart is the registry, a storage or a resource at the boundary.
type pinPart struct {
	track.Lengths
	dense   rowWriter // nil: a resource.
	data    rowWriter // nil: the registry.
	columns []pastColumn
}

// A rowWriter appends the canonical bytes of rows that are staged.
type rowWriter func(dst []byte, lo, hi int) []byte

// A pastColumn is a column as it was; see [track.Past].
type pastColumn interface {
	Absorb(log int)
	Done(lo, hi int)
	Stage(lo, hi int)
	Release()
}

// Pin pins the present state. It costs O(storages).
func (w rawWorld) Pin() (raw.Pin, error) {
	k := w.newestBoundary()
	if k < 0 || w.Dirty() {
		return nil, raw.ErrDirty
	}
	if f := &w.frames[k]; f.Bare { // Nothing is in it yet.
		f.Bare, f.hidden = false, true
	}
	p := &rawPin{w: w.World, id: w.frames[k].ID, parts: make(map[*track.Tracker]*pinPart)}
	r := &w.entities
	p.add(&r.rows, pastEntities(&r.dense))
	for _, list := range [2][]AnyStorage{w.storages, w.resources} {
		for _, s := range list {
			if !s.about().noRewind {
				p.add(s.tracked(), s.pinPart())
			}
		}
	}
	w.pins = append(w.pins, p)
	return p, nil
}

// add makes part the part of t. Rows below its height are protected from now on.
func (p *rawPin) add(t *track.Tracker, part *pinPart) {
	part.Lengths = t.Lengths
	p.parts[t] = part
	t.Protect(part.Lengths)
}

// Valid reports whether the state can still be read.
func (p *rawPin) Valid() bool { return !p.gone && slices.Contains(p.w.pins, p) }

// Release gives p up, and what it took over.
func (p *rawPin) Release() {
	p.w.pins = slices.DeleteFunc(p.w.pins, func(o *rawPin) bool { return o == p })
	p.unprotect()
}

// unprotect forgets what p took over and that its rows are protected.
func (p *rawPin) unprotect() {
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

// leavePins notes that the world went back to the beginning of frame from. The ids of
// frames before that of a pin stay below the pin's, whatever they are renamed to: who
// goes back to one of them leaves the pin first.
func (w *World) leavePins(from uint64) {
	for _, p := range w.pins {
		if p.id > from {
			p.gone = true
			p.unprotect()
		}
	}
}

// part returns the part of s, which this package made, or of the registry; nil if s
// was registered since.
func (p *rawPin) part(s raw.Storage) *pinPart {
	if s == nil {
		return p.parts[&p.w.entities.rows]
	}
	return p.parts[s.(readable).tracked()]
}

// Registry returns the lengths of the registry.
func (p *rawPin) Registry() (alive, free, total int) {
	l := p.part(nil)
	return l.N, l.Extra, l.Total
}

// Len returns how many rows s had, gaps included.
func (p *rawPin) Len(s raw.Storage) int {
	if part := p.part(s); part != nil {
		return part.N
	}
	return 0
}

// Stage makes rows [lo, hi) of s those that AppendEntities and AppendRows append.
func (p *rawPin) Stage(s raw.Storage, lo, hi int) {
	p.keepUp()
	p.staged = p.part(s)
	for _, c := range p.staged.columns {
		c.Stage(lo, hi)
	}
}

// keepUp takes over what was saved since the last commit.
func (p *rawPin) keepUp() {
	if !p.w.recording && p.w.Raw().Dirty() {
		p.w.absorb(p.w.newestBoundary())
	}
}

// AppendEntities appends the entities of staged rows [lo, hi) to dst.
func (p *rawPin) AppendEntities(dst []byte, lo, hi int) []byte {
	if p.staged.dense == nil {
		return dst
	}
	return p.staged.dense(dst, lo, hi)
}

// AppendRows appends the canonical encoding of staged rows [lo, hi) to dst.
func (p *rawPin) AppendRows(dst []byte, lo, hi int) []byte { return p.staged.data(dst, lo, hi) }

// Done says that rows [lo, hi) of s will not be staged any more.
func (p *rawPin) Done(s raw.Storage, lo, hi int) {
	if part := p.part(s); part != nil {
		for _, c := range part.columns {
			c.Done(lo, hi)
		}
	}
}

// pastEntities is the part of a dense array alone.
func pastEntities(dense *track.Column[Entity]) *pinPart {
	past := track.NewPast(dense)
	return &pinPart{columns: []pastColumn{past}, dense: func(dst []byte, lo, hi int) []byte {
		past.Each(lo, hi, func(rows []Entity) { dst = digest.AppendEntities(dst, rows) })
		return dst
	}}
}

// addValues adds the values of c to part.
func addValues[T any](part *pinPart, c *track.Column[T], codec rowCodec[T]) *pinPart {
	past := track.NewPast(c)
	part.columns = append(part.columns, past)
	part.data = func(dst []byte, lo, hi int) []byte {
		past.Each(lo, hi, func(rows []T) { dst = codec.append(dst, rows) })
		return dst
	}
	return part
}

func (s *Storage[T]) pinPart() *pinPart {
	return addValues(pastEntities(&s.dense), &s.data, s.face.codec)
}

func (r *Resource[T]) pinPart() *pinPart { return addValues(new(pinPart), &r.data, r.face.codec) }
