package format

import (
	"encoding/binary"
	"fmt"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
)

// An opEncoder turns the operations of a tick into bytes, in the order of the
// calls.
//
//	operations  (code, count, entities)*           varints
//	code        kind + 8·(component number + 1), or the kind alone if it has none
//	entity      index - last index, generation - last generation, both zigzag
//
//	create 5, 6, 7     0 3   10 2   2 0   2 0      all of generation 1
//	add 0 to 5         10 1   3 0
//
// Operations of one code that follow each other share it. A clear has no
// entities, and a code of its own each time. Entities are told by how they differ from the one before,
// of whatever code: those that were created together take two bytes each.
type opEncoder struct {
	buf, run []byte // All that is finished; the entities of the code that is not.
	code     uint64
	count    uint64     // Of operations in run.
	last     ecs.Entity // Of all codes.
}

// begin forgets the operations of the tick before, but for their buffers.
func (o *opEncoder) begin() {
	o.buf, o.run, o.count, o.last = o.buf[:0], o.run[:0], 0, 0
}

// Add appends an operation: what was done to an entity or all of them, in the
// component of that number or [NoComponent].
func (o *opEncoder) Add(kind raw.OpKind, number int, e ecs.Entity) {
	code := uint64(kind) + 8*uint64(number+1)
	if code != o.code || kind == raw.OpClear {
		o.flush()
		o.code = code
	}
	o.count++
	if kind != raw.OpClear {
		o.run = binary.AppendVarint(o.run, int64(e.Index())-int64(o.last.Index()))
		o.run = binary.AppendVarint(o.run, int64(e.Generation())-int64(o.last.Generation()))
		o.last = e
	}
}

// end returns the bytes of all operations.
func (o *opEncoder) end() []byte {
	o.flush()
	return o.buf
}

// flush ends the run of operations that share a code: their number stands before them, so
// it must be known.
func (o *opEncoder) flush() {
	if o.count > 0 {
		o.buf = binary.AppendUvarint(o.buf, o.code)
		o.buf = binary.AppendUvarint(o.buf, o.count)
		o.buf = append(o.buf, o.run...)
	}
	o.run, o.count = o.run[:0], 0
}

// NoComponent is the component number of operations that concern none.
const NoComponent = -1

// An Op is one operation of a tick, as it was called.
type Op struct {
	Kind      raw.OpKind
	Component int // Its number in the image, or [NoComponent]: the world or none.
	Entity    ecs.Entity
}

// DecodeOps reads the operations of a tick.
func DecodeOps(src []byte) ([]Op, error) {
	var ops []Op
	if err := EachOp(src, func(op Op) { ops = append(ops, op) }); err != nil {
		return nil, err
	}
	return ops, nil
}

// EachOp calls f for the operations of a tick, up to the first bad one. It may call f for
// as many as half the bytes of src, and keeps none of them.
func EachOp(src []byte, f func(Op)) error {
	var last ecs.Entity
	v := varints{src: src}
	for v.more() {
		code, count := v.uint(), v.uint()
		op := Op{Kind: raw.OpKind(code & 7), Component: int(code>>3) - 1}
		limit := uint64(len(v.src) / 2) // An entity takes two bytes or more.
		if op.Kind == raw.OpClear {
			limit = 1
		}
		if v.bad || op.Kind > raw.OpClear || code>>3 > MaxComponents || count == 0 || count > limit {
			return fmt.Errorf("operations: code %d for %d entities", code, count)
		}
		if op.Kind == raw.OpClear {
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
		return fmt.Errorf("operations: %w", ErrShort)
	}
	return nil
}
