package ecs

import (
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/digest"
)

// A rawPin is a [raw.Pin]: it reads the state at the end of a tick while the world goes on.
//
// Later ticks save the old values of the rows that they write. At the end of each later tick, the
// pin copies the old values that it does not have yet. For rows without a copy, a read returns the
// live row. So the pin does not need the frames of the later ticks, and the world can drop them.
type rawPin struct {
	w *World
	// Id of the frame that began at the pinned boundary. A restore to a frame with a lower id makes
	// the pin invalid.
	id      uint64
	invalid bool // The world was restored to a state before the pinned boundary.

	parts  map[*track.Tracker]*pinPart
	staged *pinPart
}

// A pinPart has the registry, a storage or a resource at the pinned boundary.
type pinPart struct {
	track.Lengths
	dense   rowWriter // Writes the entities. Nil for a resource.
	data    rowWriter // Writes the values. Nil for the registry.
	columns []*track.Old
}

// A rowWriter appends the canonical bytes of staged rows.
type rowWriter func(dst []byte, lo, hi int) []byte

// Pin pins the current state. It costs O(storages).
func (w rawWorld) Pin() (raw.Pin, error) {
	k := w.newestBoundary()
	if k < 0 || w.Dirty() {
		return nil, raw.ErrDirty
	}
	p := &rawPin{w: w.World, id: w.frames[k].ID, parts: make(map[*track.Tracker]*pinPart)}
	r := &w.entities
	p.add(&r.rows, pastEntities(&r.dense, r.rows.Total))
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

// add makes the given part read the rows of t. From now on, t saves the rows that the part needs.
func (p *rawPin) add(t *track.Tracker, part *pinPart) {
	part.Lengths = t.Lengths
	p.parts[t] = part
	part.protect(t)
}

// protect makes t save the rows that the part still needs.
func (part *pinPart) protect(t *track.Tracker) {
	if !part.finished() {
		t.Protect(part.Lengths)
	}
}

// finished reports whether the part has been read completely.
func (part *pinPart) finished() bool { return part.columns[0].Finished() }

// Valid reports whether the pinned state can still be read.
func (p *rawPin) Valid() bool { return !p.invalid && slices.Contains(p.w.pins, p) }

// Release frees p and the rows that it has copied.
func (p *rawPin) Release() {
	p.w.pins = slices.DeleteFunc(p.w.pins, func(o *rawPin) bool { return o == p })
	p.unprotect()
}

// unprotect frees the rows that p has copied, and stops saving rows for p.
func (p *rawPin) unprotect() {
	parts := p.parts
	p.parts, p.staged = nil, nil
	for t, part := range parts {
		for _, c := range part.columns {
			c.Release()
		}
		p.w.protect(t)
	}
}

// protect makes t save only the rows that the remaining pins need.
func (w *World) protect(t *track.Tracker) {
	t.Unprotect()
	for _, p := range w.pins {
		if part := p.parts[t]; part != nil {
			part.protect(t)
		}
	}
}

// absorb copies the rows that the pins need from the logs of frames[k] and later frames.
func (w *World) absorb(k int) {
	for _, p := range w.pins {
		if p.invalid {
			continue
		}
		for i := k; i < len(w.frames); i++ {
			for _, t := range w.frames[i].Touched {
				if part := p.parts[t]; part != nil && !part.finished() {
					part.absorb(t, w.frames[k].ID, w.frames[i].ID)
				}
			}
		}
	}
}

// absorb copies the rows that t has saved since the start of the frame with the id from.
// World.absorb calls it for each frame since then that changed t, with the id of that frame. The
// call for the first of these frames copies all rows. The other calls do nothing.
func (part *pinPart) absorb(t *track.Tracker, from, id uint64) {
	first, _, _ := t.Since(from)
	if k, _, _ := t.Since(id); k == first {
		for _, c := range part.columns {
			c.Absorb(k)
		}
	}
}

// invalidatePins runs when the world is restored to the start of the frame with the id from. It
// invalidates the pins of later boundaries.
func (w *World) invalidatePins(from uint64) {
	for _, p := range w.pins {
		if p.id > from {
			p.invalid = true
			p.unprotect()
		}
	}
}

// part returns the part of s, or of the registry if s is nil. It returns nil for a storage that is
// newer than the pin.
func (p *rawPin) part(s raw.Storage) *pinPart { return p.parts[p.tracker(s)] }

func (p *rawPin) tracker(s raw.Storage) *track.Tracker {
	if s == nil {
		return &p.w.entities.rows
	}
	return s.(*rawAdapter).tracked()
}

// Registry returns the lengths of the registry at the pinned boundary.
func (p *rawPin) Registry() (alive, free, total int) {
	l := p.part(nil)
	return l.N, l.Extra, l.Total
}

// Len returns the number of rows that s had at the pinned boundary, including gaps.
func (p *rawPin) Len(s raw.Storage) int {
	if part := p.part(s); part != nil {
		return part.N
	}
	return 0
}

// Stage selects s for AppendEntities and AppendRows.
func (p *rawPin) Stage(s raw.Storage, _, _ int) {
	p.absorbOpenFrame()
	p.staged = p.part(s)
}

// absorbOpenFrame makes all pins of the world copy the rows that were saved since the last commit.
func (p *rawPin) absorbOpenFrame() {
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

// Done declares that rows [lo, hi) of s will not be staged again, so the pin can free them.
func (p *rawPin) Done(s raw.Storage, lo, hi int) {
	t := p.tracker(s)
	part := p.parts[t]
	if part == nil || part.finished() {
		return
	}
	for _, c := range part.columns {
		c.Done(lo, hi)
	}
	if part.finished() {
		p.w.protect(t)
	}
}

// pastEntities returns a part that has only entities.
func pastEntities(dense *track.Column[Entity], rows int) *pinPart {
	part := new(pinPart)
	part.dense = pinColumn(part, dense, rows, digest.AppendEntities[Entity])
	return part
}

// pinColumn adds the first rows of the column c to the given part. It returns a writer that encodes
// these rows.
func pinColumn[T any](part *pinPart, c *track.Column[T], rows int, encode func(dst []byte, rows []T) []byte) rowWriter {
	old := track.Pin(c, rows)
	part.columns = append(part.columns, old)
	var scratch []T
	return func(dst []byte, lo, hi int) []byte {
		for lo < hi {
			rows := track.RunAsOf(c, old, lo, hi)
			if len(rows) < shortRun {
				n := min(hi-lo, pinnedRows)
				scratch = longer(scratch, n)
				rows = track.RowsAsOf(c, old, lo, scratch[:n])
			}
			dst = encode(dst, rows)
			lo += len(rows)
		}
		return dst
	}
}

const (
	// pinnedRows is the maximum number of rows that a pin copies at once to encode them.
	pinnedRows = 4096
	// A pin encodes a run of unchanged rows without a copy if the run has at least shortRun rows.
	shortRun = 64
)

func (s *Storage[T]) pinPart() *pinPart {
	part := pastEntities(&s.dense, s.rows.N)
	part.data = pinColumn(part, &s.data, s.rows.N, s.adapter.encodeRows)
	return part
}
