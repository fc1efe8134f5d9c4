package ecs

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/naming"
)

// Apply applies recorded ticks, which must continue the current state of w. The cost is O(rows that
// the ticks wrote).
//
// The world tracks these writes like those of a program. So they become part of the history, and
// indexes and change filters see them.
func (w rawWorld) Apply(ticks iter.Seq2[*raw.Patch, error]) (err error) {
	switch {
	case len(w.recorders) > 1:
		return raw.ErrAttached
	case w.anyCheckpoint():
		return raw.ErrCheckpointHeld
	case w.Dirty():
		return raw.ErrDirty
	}
	applied := false
	for p, fault := range ticks {
		if err = fault; err == nil {
			err = w.apply(p)
		}
		if err != nil {
			break
		}
		applied = true
	}
	if applied {
		w.afterRestore()
	}
	return err
}

// apply applies the patch p as a new tick of the world.
//
// A recorder may record a tick again, with later writes of NoRewind storages. Such a patch has the
// number of the present tick and changes only NoRewind storages. apply then adds the changes to the
// present tick.
func (w *World) apply(p *raw.Patch) error {
	puts, err := w.readPatch(p)
	if err != nil {
		return stateError(fmt.Errorf("tick %d: %w", p.Tick, err))
	}
	w.verify()
	rewinds := func(s raw.StoragePatch) bool { return s.Storage.Rewinds() }
	if k := w.newestBoundary(); k >= 0 && p.Tick == w.tick && !p.Entities.Changed && !slices.ContainsFunc(p.Storages, rewinds) {
		for _, put := range puts {
			put()
		}
		w.frames[k].seq = seqs{first: p.Seq}
		return nil
	}
	w.dropForward()
	// Do not record the operations of p: the recorder already has them.
	w.ops = nil
	if p.Entities.Changed {
		w.entities.patch(p)
	}
	for _, put := range puts {
		put()
	}
	for _, g := range w.groups {
		if g.touched() {
			g.rows.Open()
			g.measure()
		}
	}
	if len(w.pins) > 0 {
		w.absorb(max(0, w.newestBoundary()))
	}
	w.endFrame(p.Tick, frame{seq: seqs{first: p.Seq}})
	return nil
}

// A patched is a storage or resource to which a patch can be applied.
type patched interface {
	// patch checks and decodes p. total is the number of entity indices in the world. put writes
	// the decoded rows.
	patch(p *raw.StoragePatch, total int) (put func(), err error)
}

// readPatch checks p and decodes its rows. The returned functions write the rows.
func (w *World) readPatch(p *raw.Patch) (puts []func(), err error) {
	r, e := &w.entities, &p.Entities
	total := r.rows.Total
	if e.Changed {
		if total = e.Total; e.Alive < 0 || e.Alive > e.Free || e.Free > total {
			return nil, fmt.Errorf("entities: %d alive, %d with free ones, %d in all", e.Alive, e.Free, total)
		}
		if err := checkRanges(e.Rows, len(p.Registry)/8, r.rows.Total, total); err != nil {
			return nil, fmt.Errorf("entities: %w", err)
		}
		if err := checkIndices(p.Registry, total); err != nil {
			return nil, fmt.Errorf("entities: %w", err)
		}
	}
	for i := range p.Storages {
		s := &p.Storages[i]
		target := w.names[s.Storage.Name()]
		if target == nil || target.Raw() != s.Storage {
			return nil, fmt.Errorf("component %s: not of this world", naming.Shown(s.Storage.Name()))
		}
		put, err := target.(patched).patch(s, total)
		if err != nil {
			return nil, fmt.Errorf("component %s: %w", naming.Shown(s.Storage.Name()), err)
		}
		puts = append(puts, put)
	}
	return puts, nil
}

// checkRanges checks the row ranges of a patch. given: the number of encoded rows in the patch. The
// parameters before and after are the numbers of rows without and with the patch. Valid ranges:
//
//   - are ascending and disjoint
//   - contain only rows that exist after the patch
//   - include every new row
//   - contain as many rows as the patch encodes
func checkRanges(ranges []raw.Range, given, before, after int) error {
	at, grown := 0, 0
	for _, r := range ranges {
		if r.N <= 0 || r.First < at || r.First+r.N > after || r.First+r.N < 0 {
			return fmt.Errorf("rows %d to %d of %d, after row %d", r.First, r.First+r.N, after, at)
		}
		at, given = r.First+r.N, given-r.N
		grown += max(0, at-max(r.First, before))
	}
	if given != 0 || grown < after-before {
		return fmt.Errorf("%d rows grow to %d, but %d are given", before, after, grown)
	}
	return nil
}

// checkIndices returns an error unless all entities have indices less than the parameter total.
func checkIndices(entities []byte, total int) error {
	if len(entities)%8 != 0 {
		return fmt.Errorf("%d bytes of entities", len(entities))
	}
	for ; len(entities) > 0; entities = entities[8:] {
		if e := entityOf(entities); e != Vacant && (int(e.Index()) >= total || e.Generation() == 0) {
			return fmt.Errorf("%v is out of range; there are %d indices", e, total)
		}
	}
	return nil
}

// entityOf decodes the first of the encoded entities, which take 8 bytes each.
func entityOf(entities []byte) Entity { return Entity(binary.LittleEndian.Uint64(entities)) }

// copyEntities decodes entities into rows. It returns the bytes after the last decoded entity.
func copyEntities(rows []Entity, entities []byte) []byte {
	for i := range rows {
		rows[i] = entityOf(entities[8*i:])
	}
	return entities[8*len(rows):]
}

// patch writes the rows and lengths of p to r.
func (r *registry) patch(p *raw.Patch) {
	r.rows.Open()
	r.grow(p.Entities.Total)
	from := p.Registry
	for _, rows := range p.Entities.Rows {
		lo, hi := rows.First, rows.First+rows.N
		r.dense.TouchRange(lo, hi)
		from = copyEntities(r.dense.Live[lo:hi], from)
		r.enterRows(lo, hi)
	}
	r.rows.N, r.rows.Extra, r.rows.Total = p.Entities.Alive, p.Entities.Free, p.Entities.Total
	r.w.changes++
}

func (s *Storage[T]) patch(p *raw.StoragePatch, total int) (put func(), err error) {
	if p.After < 0 || !s.noRewind && p.Before != s.rows.N {
		return nil, fmt.Errorf("continues %d rows, has %d", p.Before, s.rows.N)
	}
	if err := checkRanges(p.Entities, len(p.Members)/8, s.rows.N, p.After); err != nil {
		return nil, fmt.Errorf("entities: %w", err)
	}
	if err := checkIndices(p.Members, total); err != nil {
		return nil, err
	}
	n := 0
	for _, r := range p.Values {
		n += r.N
	}
	if err := checkRanges(p.Values, n, s.rows.N, p.After); err != nil && s.layout.Width() != 0 {
		return nil, fmt.Errorf("values: %w", err)
	}
	values := s.patched
	if s.patched = nil; n > cap(values) {
		values = make([]T, n)
	}
	values = values[:n]
	if err := s.adapter.codec.decode(p.Rows, values); err != nil {
		return nil, err
	}
	if s.set.kind == Indexed {
		members := p.Members
		for _, r := range p.Entities {
			for row := r.First; row < r.First+r.N; row++ {
				if e := entityOf(members); e != Vacant && int(e.Index()) != row {
					return nil, fmt.Errorf("row %d belongs to %v, which has another index", row, e)
				}
				members = members[8:]
			}
		}
	}
	return func() {
		s.putRows(p, values)
		if n <= maxPatched {
			// The storage now owns the memory behind pointers in values.
			clear(values)
			s.patched = values
		}
	}, nil
}

// maxPatched is the maximum size of the decode buffer that a storage reuses for its next patch.
const maxPatched = 1 << 14

// putRows writes the patch p to the storage. values are the decoded values of p.
func (s *Storage[T]) putRows(p *raw.StoragePatch, values []T) {
	before := s.rows.Lengths
	s.rows.Open()
	s.rowsMoved = len(p.Entities) > 0
	for _, r := range p.Entities {
		s.removeMembers(r.First, min(r.First+r.N, before.N))
	}
	s.removeMembers(p.After, before.N)
	s.grow(p.After)
	members := p.Members
	// Save values before entities: copying a value calls Clone, which may panic.
	touchRanges(&s.data, p.Entities)
	touchRanges(&s.dense, p.Entities)
	for _, r := range p.Entities {
		members = copyEntities(s.dense.Live[r.First:r.First+r.N], members)
	}
	touchRanges(&s.data, p.Values)
	data := s.data.Live
	for _, r := range p.Values {
		if r.N == 1 { // For a single row, a call of copy costs more than the assignment.
			data[r.First], values = values[0], values[1:]
		} else {
			values = values[copy(data[r.First:r.First+r.N], values):]
		}
	}
	s.rows.N = p.After
	for _, r := range p.Entities {
		s.addMembers(r.First, r.First+r.N)
	}
	if s.set.kind == Indexed {
		if pages := (p.After + pageMask) >> pageBits; pages > len(s.sparse.Pages) {
			s.sparse.Pages = s.w.identity(pages)
			s.w.paged++
		}
	}
	s.markVacated(before.N)
	s.set.afterRewind(before)
}

// touchRanges makes the rows of ranges writable.
func touchRanges[T any](c *track.Column[T], ranges []raw.Range) {
	var some [64]uint32
	n := 0
	for _, r := range ranges {
		if r.N > 8 {
			c.TouchRange(r.First, r.First+r.N)
			continue
		}
		for row := r.First; row < r.First+r.N; row++ {
			some[n] = uint32(row)
			if n++; n == len(some) {
				c.TouchEach(&some, n)
				n = 0
			}
		}
	}
	c.TouchEach(&some, n)
}

// removeMembers runs before the rows [lo, hi) are overwritten or dropped. It removes their entities
// from the mask and notes them for queries. It also subtracts their gaps from the number of gaps.
func (s *set) removeMembers(lo, hi int) {
	if lo >= hi {
		return
	}
	s.noteRows(lo, hi)
	for _, e := range s.dense.Live[lo:hi] {
		if e == Vacant {
			s.rows.Extra--
		} else if s.mask != nil {
			s.mask.Remove(e.Index())
		}
	}
}

// addMembers runs after the rows [lo, hi) were written. It does the opposite of removeMembers, and
// also writes the sparse entries of the entities.
func (s *set) addMembers(lo, hi int) {
	s.noteRows(lo, hi)
	for row, e := range s.dense.Live[lo:hi] {
		if e == Vacant {
			s.rows.Extra++
			continue
		}
		if s.mask != nil {
			s.mask.Add(e.Index())
		}
		if s.special {
			// For Indexed and Hashed storages, putRows writes the sparse array at the end.
			continue
		}
		i := e.Index()
		page := s.page(i)
		if s.sparse.Unsaved(page, i) {
			s.sparse.Save(page, i)
		}
		page.Rows[i&pageMask] = uint32(lo + row)
	}
}

// touched reports whether the open frame has writes to a storage of g.
func (g *Group) touched() bool {
	for _, s := range g.sets {
		if s.rows.Span == g.w.clock.Span {
			return true
		}
	}
	return false
}

func (r *Resource[T]) patch(p *raw.StoragePatch, _ int) (put func(), err error) {
	if p.After != 1 || len(p.Members) > 0 {
		return nil, fmt.Errorf("a resource with %d rows and %d entities", p.After, len(p.Members))
	}
	values := make([]T, 1)
	if err := r.adapter.codec.decode(p.Rows, values); err != nil {
		return nil, err
	}
	return func() {
		r.rows.Open()
		r.data.Touch(0)
		r.data.Live[0] = values[0]
	}, nil
}
