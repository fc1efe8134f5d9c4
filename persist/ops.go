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
	if err := eachOp(src, func(op Op) { ops = append(ops, op) }); err != nil {
		return nil, err
	}
	return ops, nil
}

// eachOp calls f for the operations of a tick, up to the first bad one.
func eachOp(src []byte, f func(Op)) error {
	var last ecs.Entity
	v := varints{src: src}
	for v.more() {
		code, count := v.uint(), v.uint()
		op := Op{Kind: ecs.OpKind(code & 7), Component: int(code>>3) - 1}
		limit := uint64(len(v.src) / 2) // An entity takes two bytes or more.
		if op.Kind == ecs.OpClear {
			limit = 1
		}
		if v.bad || op.Kind > ecs.OpClear || code>>3 > maxComponents || count == 0 || count > limit {
			return fmt.Errorf("operations: code %d for %d entities", code, count)
		}
		if op.Kind == ecs.OpClear {
			f(op)
			continue
		}
		for range count {
			index := int64(last.Index()) + v.int()
			generation := int64(last.Generation()) + v.int()
			if v.bad || index != int64(uint32(index)) || generation != int64(uint32(generation)) {
				return fmt.Errorf("operations: bad entity after %v", last)
			}
			op.Entity = ecs.NewEntity(uint32(index), uint32(generation))
			last = op.Entity
			f(op)
		}
	}
	if v.bad {
		return fmt.Errorf("operations: %w", errShort)
	}
	return nil
}

// An opCheck holds what the operations of a tick say of the state after it, to
// be compared with what the patches made of it. An image keeps one.
type opCheck struct {
	alive   opSet
	members []opSet // By component.
}

// expect works out, from im before the tick, what ops lead to.
func (im *Image) expect(ops []byte) error {
	c := &im.check
	if c.alive.before == nil {
		c.alive.before = im.alive
	}
	c.alive.begin(im.Alive)
	for _, comp := range im.Components[len(c.members):] {
		c.members = append(c.members, opSet{before: func(e ecs.Entity) bool { return comp.Find(e) >= 0 }})
	}
	for i := range c.members {
		c.members[i].begin(im.Components[i].Members())
	}
	return eachOp(ops, c.do)
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
	if err := c.alive.compare(im.Alive); err != nil {
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
		if err := c.members[i].compare(n); err != nil {
			return fmt.Errorf("component %s: %w", comp.Name, err)
		}
	}
	return nil
}
