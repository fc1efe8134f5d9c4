package format

import (
	"encoding/binary"
	"fmt"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
)

// An opEncoder encodes the operations of a tick in the order of the calls. All numbers are varints:
//
//	operations  (code, count, entities)*
//	code        kind + 8·(component number + 1), or only the kind without a component
//	entity      index - last index, generation - last generation, both zigzag
//
// For example, these operations create entities 5, 6 and 7 of generation 1, and then add component
// 0 to entity 5. Each pair of numbers is a code and a count, or an entity:
//
//	create 5, 6, 7      0 3    10 2   2 0   2 0
//	add 0 to 5          10 1   3 0
//
// Consecutive operations with the same code share the code. A clear has no entities and always its
// own code. Each entity is stored as the difference from the entity before it, even if that entity
// has another code. So entities that were created together take two bytes each.
type opEncoder struct {
	// buf holds the finished operations. run holds the entities of the current code.
	buf, run []byte
	code     uint64
	count    uint64     // Number of operations in the field run.
	last     ecs.Entity // Entity of the last operation, whatever its code.
}

// begin drops the operations of the previous tick and keeps the buffers.
func (o *opEncoder) begin() {
	o.buf, o.run, o.count, o.last = o.buf[:0], o.run[:0], 0, 0
}

// Add appends an operation on entity e, or on all entities. number is the component or
// [NoComponent].
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

// flush appends the entities in the field run to buf, after their code and their number. The number
// is known only at the end of a run.
func (o *opEncoder) flush() {
	if o.count > 0 {
		o.buf = binary.AppendUvarint(o.buf, o.code)
		o.buf = binary.AppendUvarint(o.buf, o.count)
		o.buf = append(o.buf, o.run...)
	}
	o.run, o.count = o.run[:0], 0
}

// NoComponent is the component number of operations without a component.
const NoComponent = -1

// An Op is one operation of a tick.
type Op struct {
	Kind raw.OpKind
	// Component number in the image, or [NoComponent] for an operation on the world or an entity.
	Component int
	Entity    ecs.Entity
}

// EachOp calls f for the operations of a tick, up to the first invalid one. It calls f at most
// len(src)/2 times and allocates nothing.
func EachOp(src []byte, f func(Op)) error {
	var last ecs.Entity
	v := varints{src: src}
	for v.more() {
		code, count := v.uint(), v.uint()
		op := Op{Kind: raw.OpKind(code & 7), Component: int(code>>3) - 1}
		limit := uint64(len(v.src) / 2) // An entity takes at least two bytes.
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
