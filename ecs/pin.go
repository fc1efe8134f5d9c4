package ecs

import (
	"errors"
	"math/bits"
	"slices"

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

	parts  map[*tracker]*pinPart
	staged *pinPart
}

// A pinPart is the registry, a storage or a resource at the boundary.
type pinPart struct {
	lengths
	dense   *pastRows[Entity] // nil: a resource.
	data    pastColumn        // nil: the registry.
	columns []pastColumn      // Those of them that are tracked, with the positions of their logs.
}

// A pastColumn is a column as it was.
type pastColumn interface {
	absorb(log int)
	done(lo, hi int)
	stage(lo, hi int)
	append(dst []byte, lo, hi int) []byte
	release()
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
	if f := &w.frames[k]; f.bare { // Nothing is in it yet.
		f.bare, f.hidden = false, true
	}
	p := &Pin{w: w, id: w.frames[k].id, parts: make(map[*tracker]*pinPart)}
	r := &w.entities
	p.add(&r.tracker, &pinPart{dense: &pastRows[Entity]{column: &r.dense}})
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
func (p *Pin) add(t *tracker, part *pinPart) {
	part.lengths = t.lengths
	if part.dense != nil {
		part.columns = append(part.columns, part.dense)
	}
	if part.data != nil {
		part.columns = append(part.columns, part.data)
	}
	p.parts[t] = part
	t.floor = max(t.floor, part.height())
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
			c.release()
		}
		t.floor = 0
		for _, o := range p.w.pins {
			if part := o.parts[t]; part != nil {
				t.floor = max(t.floor, part.height())
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
			for _, t := range w.frames[i].touched {
				if part := p.parts[t]; part != nil {
					at := t.find(w.frames[i].id)
					for _, c := range part.columns {
						c.absorb(at)
					}
				}
			}
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
	l := p.parts[&p.w.entities.tracker].lengths
	return l.n, l.m, l.total
}

// Len returns how many rows s had, gaps included.
func (p *Pin) Len(s AnyStorage) int {
	if part := p.parts[s.tracked()]; part != nil {
		return part.n
	}
	return 0 // It was registered since.
}

// StageRegistry makes rows [lo, hi) of the registry those that AppendEntities
// appends. See [Pin.Stage].
func (p *Pin) StageRegistry(lo, hi int) {
	p.keepUp()
	p.staged = p.parts[&p.w.entities.tracker]
	p.staged.dense.stage(lo, hi)
}

// Stage makes rows [lo, hi) of s, at most Len, those that AppendEntities and
// AppendRows append, until the next Stage or change of the world.
// In the middle of a tick it costs O(rows written in it), else nothing: between
// two ticks, and for a [Recorder] while it records one.
func (p *Pin) Stage(s AnyStorage, lo, hi int) {
	p.keepUp()
	p.staged = p.parts[s.tracked()]
	if p.staged.dense != nil {
		p.staged.dense.stage(lo, hi)
	}
	p.staged.data.stage(lo, hi)
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
func (p *Pin) DoneRegistry(lo, hi int) { p.parts[&p.w.entities.tracker].done(lo, hi) }

// Done says that rows [lo, hi) of s will not be staged any more, so that nothing
// needs to be taken over of the groups of 4096 rows that lie in it.
func (p *Pin) Done(s AnyStorage, lo, hi int) {
	if part := p.parts[s.tracked()]; part != nil {
		part.done(lo, hi)
	}
}

func (part *pinPart) done(lo, hi int) {
	for _, c := range part.columns {
		c.done(lo, hi)
	}
}

func (s *Storage[T]) pinPart() *pinPart {
	part := &pinPart{dense: &pastRows[Entity]{column: &s.dense}}
	part.data = &pastRows[T]{column: &s.data, codec: s.codec, empty: s.tag}
	return part
}

func (r *Resource[T]) pinPart() *pinPart {
	return &pinPart{data: &pastRows[T]{column: &r.data, codec: r.codec}}
}

const pinGroupRows = 4096

// pastRows is a column as it was at the boundary of a pin.
type pastRows[T any] struct {
	column *column[T]
	codec  rowCodec[T] // nil: entities.
	empty  bool        // Rows have size 0: no log has any.
	groups []*pastGroup[T]
	closed *pastGroup[T] // Stands for groups that are done.

	lo, hi  int // The rows that are staged.
	laid    int // The group of them that scratch holds; -1: none.
	scratch []T
}

// A pastGroup holds what was saved of 4096 rows, the oldest value of each.
type pastGroup[T any] struct {
	saved  [pinGroupRows / 64]uint64
	runs   []pastRun
	values []T // Of the runs, one after the other.
}

type pastRun struct{ row, n uint16 } // row less the group's first one

// group returns group g, or nil if it is done.
func (p *pastRows[T]) group(g int) *pastGroup[T] {
	for g >= len(p.groups) {
		p.groups = append(p.groups, nil)
	}
	group := p.groups[g]
	switch group {
	case nil:
		group, _ = p.column.past.Get().(*pastGroup[T])
		if group == nil {
			group = new(pastGroup[T])
		}
		p.groups[g] = group
	case p.closed:
		return nil
	}
	return group
}

// absorb takes over what log k of the column holds and p does not, yet.
func (p *pastRows[T]) absorb(k int) {
	if p.empty || k >= len(p.column.logs) {
		return
	}
	for _, c := range p.column.logs[k].chunks {
		values := c.rows
		for _, r := range c.runs {
			row, n := int(r.row), int(r.n)
			for n > 0 {
				in := min(n, pinGroupRows-row%pinGroupRows)
				if group := p.group(row / pinGroupRows); group != nil {
					group.add(row%pinGroupRows, values[:in], p.column.clone)
				}
				row, n, values = row+in, n-in, values[in:]
			}
		}
	}
}

// add adds the values of rows from row on that g does not have.
func (g *pastGroup[T]) add(row int, values []T, clone func(T) T) {
	for end := row + len(values); row < end; {
		n := g.same(row, end)
		if g.saved[row>>6]>>(row&63)&1 == 0 {
			g.push(row, values[:n], clone)
		}
		row, values = row+n, values[n:]
	}
}

// same returns how many rows from row to end are all saved, or all not.
func (g *pastGroup[T]) same(row, end int) int {
	invert := -(g.saved[row>>6] >> (row & 63) & 1) // All ones if they are.
	for at := row; at < end; at = (at | 63) + 1 {
		if differ := (g.saved[at>>6] ^ invert) >> (at & 63); differ != 0 {
			return min(at+bits.TrailingZeros64(differ), end) - row
		}
	}
	return end - row
}

// push adds the values of rows from row on.
func (g *pastGroup[T]) push(row int, values []T, clone func(T) T) {
	n := len(values)
	if k := len(g.runs) - 1; k >= 0 && int(g.runs[k].row+g.runs[k].n) == row {
		g.runs[k].n += uint16(n)
	} else {
		g.runs = append(g.runs, pastRun{uint16(row), uint16(n)})
	}
	g.values = append(g.values, values...)
	if clone != nil { // What a log holds can become a live row again.
		added := g.values[len(g.values)-n:]
		for i := range added {
			added[i] = clone(added[i])
		}
	}
	for at := row; at < row+n; at = (at | 63) + 1 {
		in := min(row+n, (at|63)+1) - at
		g.saved[at>>6] |= ^uint64(0) >> (64 - in) << (at & 63)
	}
}

func (p *pastRows[T]) done(lo, hi int) {
	if p.closed == nil {
		p.closed = new(pastGroup[T])
	}
	for g := (lo + pinGroupRows - 1) / pinGroupRows; g < (hi+pinGroupRows-1)/pinGroupRows; g++ {
		for g >= len(p.groups) {
			p.groups = append(p.groups, nil)
		}
		p.giveBack(g)
		p.groups[g] = p.closed
	}
}

// giveBack makes the memory of group g free for others.
func (p *pastRows[T]) giveBack(g int) {
	group := p.groups[g]
	if group == nil || group == p.closed {
		return
	}
	clear(group.values)
	*group = pastGroup[T]{runs: group.runs[:0], values: group.values[:0]}
	p.column.past.Put(group)
}

func (p *pastRows[T]) release() {
	for g := range p.groups {
		p.giveBack(g)
	}
	p.groups = nil
}

func (p *pastRows[T]) stage(lo, hi int) { p.lo, p.hi, p.laid = lo, hi, -1 }

// append appends the encoding of rows [lo, hi), of those that are staged.
func (p *pastRows[T]) append(dst []byte, lo, hi int) []byte {
	for lo < hi {
		end := min(hi, (lo/pinGroupRows+1)*pinGroupRows)
		dst = p.encode(dst, p.read(lo, end))
		lo = end
	}
	return dst
}

func (p *pastRows[T]) encode(dst []byte, rows []T) []byte {
	if p.codec == nil {
		entities, _ := any(rows).([]Entity)
		return digest.AppendEntities(dst, entities)
	}
	return p.codec.append(dst, rows)
}

// read returns rows [lo, hi), which lie in one group: the live ones, or what was
// saved if that is all of them, or a copy of the former with the latter laid over.
func (p *pastRows[T]) read(lo, hi int) []T {
	if p.empty {
		return make([]T, hi-lo)
	}
	g := lo / pinGroupRows
	if g >= len(p.groups) || p.groups[g] == nil || len(p.groups[g].runs) == 0 {
		return p.column.live[lo:hi:hi]
	}
	group, base := p.groups[g], g*pinGroupRows
	if first := group.runs[0]; int(first.row) <= lo-base && hi-base <= int(first.row+first.n) {
		at := lo - base - int(first.row)
		return group.values[at : at+hi-lo]
	}
	from, to := max(p.lo, base), min(p.hi, base+pinGroupRows)
	if p.laid != g {
		p.laid = g
		p.scratch = append(p.scratch[:0], p.column.live[from:to]...)
		values := group.values
		for _, r := range group.runs {
			lay(p.scratch, base+int(r.row)-from, values[:r.n])
			values = values[r.n:]
		}
	}
	return p.scratch[lo-from : hi-from]
}

// lay puts values at rows[at:], as far as that exists.
func lay[T any](rows []T, at int, values []T) {
	switch {
	case at >= len(rows) || at+len(values) <= 0:
	case at < 0:
		copy(rows, values[-at:])
	default:
		copy(rows[at:], values)
	}
}
