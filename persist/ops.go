package persist

import (
	"encoding/binary"
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

// An opEncoder turns the operations of a tick into bytes, in the order of the
// calls.
//
//	operations  (code, count, entities)*           varints
//	code        kind + 8·(component number + 1), or the kind alone if it has none
//	entity      index - last index, generation - last generation, both zigzag
//
// Operations of one code that follow each other share it. A clear has no
// entities.
type opEncoder struct {
	buf, run []byte
	code     uint64
	count    uint64
	last     ecs.Entity
}

func (o *opEncoder) encode(c *ecs.Change, s *schema, d *dirty) []byte {
	o.buf, o.run, o.count, o.last = o.buf[:0], o.run[:0], 0, 0
	for op := range c.Ops() {
		code, number := uint64(op.Kind), noComponent
		if op.Storage != nil {
			if !op.Storage.Persistent() {
				continue
			}
			number = s.number(op.Storage)
			code += 8 * uint64(number+1)
		}
		if d != nil {
			d.setOp(op, number)
		}
		if code != o.code || op.Kind == ecs.OpClear {
			o.flush()
			o.code = code
		}
		o.count++
		if op.Kind != ecs.OpClear {
			o.run = appendInt(o.run, int64(op.Entity.Index())-int64(o.last.Index()))
			o.run = appendInt(o.run, int64(op.Entity.Generation())-int64(o.last.Generation()))
			o.last = op.Entity
		}
	}
	o.flush()
	return o.buf
}

func (o *opEncoder) flush() {
	if o.count > 0 {
		o.buf = binary.AppendUvarint(o.buf, o.code)
		o.buf = binary.AppendUvarint(o.buf, o.count)
		o.buf = append(o.buf, o.run...)
	}
	o.run, o.count = o.run[:0], 0
}

// noComponent is the component number of operations that concern none.
const noComponent = -1

// An Op is one operation of a tick, as it was called.
type Op struct {
	Kind      ecs.OpKind
	Component int // Its number in the image, or -1: the whole world or none.
	Entity    ecs.Entity
}

// decodeOps reads the operations of a tick.
func decodeOps(src []byte) ([]Op, error) {
	var ops []Op
	var last ecs.Entity
	v := varints{src: src}
	for v.more() {
		code, count := v.uint(), v.uint()
		kind, component := ecs.OpKind(code&7), int(code>>3)-1
		limit := uint64(len(v.src) / 2) // An entity takes two bytes or more.
		if kind == ecs.OpClear {
			limit = 1
		}
		if v.bad || kind > ecs.OpClear || code>>3 > maxComponents || count == 0 || count > limit {
			return nil, fmt.Errorf("operations: code %d for %d entities", code, count)
		}
		for range count {
			op := Op{Kind: kind, Component: component}
			if kind != ecs.OpClear {
				index := int64(last.Index()) + v.int()
				generation := int64(last.Generation()) + v.int()
				if v.bad || index != int64(uint32(index)) || generation != int64(uint32(generation)) {
					return nil, fmt.Errorf("operations: bad entity after %v", last)
				}
				op.Entity = ecs.NewEntity(uint32(index), uint32(generation))
				last = op.Entity
			}
			ops = append(ops, op)
		}
	}
	if v.bad {
		return nil, fmt.Errorf("operations: %w", errShort)
	}
	return ops, nil
}

// An opCheck holds what the operations of a tick say of the state after it, to
// be compared with what the patches made of it.
type opCheck struct {
	alive   opSet
	members []opSet // By component.
}

// expect works out, from im before the tick, what ops lead to.
func (im *Image) expect(ops []Op) *opCheck {
	c := &opCheck{alive: newOpSet(im.Alive, im.alive)}
	for _, comp := range im.Components {
		c.members = append(c.members, newOpSet(comp.Members(), func(e ecs.Entity) bool { return comp.Find(e) >= 0 }))
	}
	for _, op := range ops {
		c.do(op)
	}
	return c
}

func (c *opCheck) do(op Op) {
	switch {
	case op.Kind == ecs.OpCreate:
		c.alive.set(op.Entity, true)
	case op.Kind == ecs.OpDestroy:
		c.alive.set(op.Entity, false)
		for i := range c.members {
			c.members[i].set(op.Entity, false)
		}
	case op.Kind == ecs.OpClear && op.Component == noComponent:
		c.alive.clear()
		for i := range c.members {
			c.members[i].clear()
		}
	case op.Component == noComponent || op.Component >= len(c.members):
		// compare finds what is missing.
	case op.Kind == ecs.OpClear:
		c.members[op.Component].clear()
	default:
		c.members[op.Component].set(op.Entity, op.Kind == ecs.OpAdd)
	}
}

// compare returns an error if im, after the tick, is not what the operations
// lead to.
func (c *opCheck) compare(im *Image) error {
	if err := c.alive.compare(im.Alive, im.alive); err != nil {
		return fmt.Errorf("entities alive: %w", err)
	}
	for i := range c.members {
		comp := im.Components[i]
		n := comp.Members()
		switch {
		case !comp.Rewinds:
			continue // Given whole, whatever the operations were.
		case comp.Resource:
			n = c.members[i].n // It may be given the first time.
		}
		if err := c.members[i].compare(n, func(e ecs.Entity) bool { return comp.Find(e) >= 0 }); err != nil {
			return fmt.Errorf("component %s: %w", comp.Name, err)
		}
	}
	return nil
}

// An opSet is a set of entities as operations change it.
type opSet struct {
	n       int
	known   map[ecs.Entity]bool   // Whether those that operations named are in it.
	cleared bool                  // Others are not in it,
	before  func(ecs.Entity) bool // else as they were before the tick.
}

func newOpSet(n int, before func(ecs.Entity) bool) opSet {
	return opSet{n: n, known: map[ecs.Entity]bool{}, before: before}
}

func (s *opSet) set(e ecs.Entity, now bool) {
	was, known := s.known[e]
	if !known {
		was = !s.cleared && s.before(e)
	}
	switch {
	case now && !was:
		s.n++
	case was && !now:
		s.n--
	}
	if known || was != now {
		s.known[e] = now
	}
}

// clear costs O(operations before it), however many entities there were.
func (s *opSet) clear() {
	s.n, s.cleared = 0, true
	clear(s.known)
}

// compare returns how s differs from a set of n entities.
func (s *opSet) compare(n int, has func(ecs.Entity) bool) error {
	if s.n != n {
		return fmt.Errorf("operations lead to %d, patches to %d", s.n, n)
	}
	for e, in := range s.known {
		if has(e) != in {
			return fmt.Errorf("operations and patches differ on %v", e)
		}
	}
	return nil
}
