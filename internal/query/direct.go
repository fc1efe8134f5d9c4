package query

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
)

// A query may evaluate one expression for millions of entities. The virtual machine of package expr
// is slow, so simple expressions are compiled to closures, which read the bytes of rows. All other
// expressions need the machine. Both ways return the same results.
//
// For example, the expression Unit.HP < 10 first gets a guard: has(Unit) && Unit.HP < 10. A closure
// then returns false for an entity without Unit. For other entities, it compares the int32 at
// offset 0 of the row with 10.

// A reading evaluates an expression directly, for one entity at a time. It looks up each row at
// most once, and only if the expression needs the row.
type reading struct {
	entity ecs.Entity
	find   Rows
	found  []foundRow // Rows of the current entity, by column.
	others []otherRow // Rows of other entities, by the index in Expr.referred.
	err    error      // The first error of looking up a row.
}

// newReading returns a reading for x.
func (x *Expr) newReading() reading {
	return reading{found: make([]foundRow, len(x.columns)), others: make([]otherRow, len(x.referred))}
}

// begin prepares r to evaluate entity e. The second argument looks up the rows of e.
func (r *reading) begin(e ecs.Entity, rows Rows) {
	r.entity, r.find, r.err = e, rows, nil
	clear(r.found)
	clear(r.others)
}

// An otherRow is the result of the most recent look-up of another entity in a column: the entity,
// and its row.
type otherRow struct {
	entity ecs.Entity
	foundRow
}

// A foundRow is the row of an entity in a column, once it was looked up. The caller of OfRows owns
// the memory of the row.
type foundRow struct {
	asked, has bool
	row        []byte
}

// row returns the row of the entity in column n.
func (r *reading) row(n int) *foundRow {
	f := &r.found[n]
	if !f.asked {
		row, has, err := r.find(n)
		*f = foundRow{true, has && err == nil, row}
		if r.err == nil {
			r.err = err
		}
	}
	return f
}

// other returns the row of entity e in the column x.referred[n]. It caches the last row. For
// example, the guard of(Owner) != nil and the condition of(Owner).HP < 10 read the same row.
func (r *reading) other(x *Expr, n int, e ecs.Entity) *foundRow {
	o := &r.others[n]
	if !o.asked || o.entity != e {
		row, has, err := x.other(x.referred[n], e)
		*o = otherRow{e, foundRow{true, has && err == nil, row}}
		if r.err == nil {
			r.err = err
		}
	}
	return &o.foundRow
}

// direct is an expression, or a part of one, that is compiled to a closure. One field is set, for
// the type of the result. If no field is set, the expression cannot be compiled to a closure.
type direct struct {
	boolean func(*reading) bool
	integer func(*reading) int
	wide    func(*reading) uint64
	float   func(*reading) float64
}

// directly compiles the tree n to the closure x.direct, if every node of the tree is simple.
// Otherwise x.direct is nil.
//
// The root of the tree may be a conditional from the guarder: has(Unit) ? Unit.HP : nil. The
// closure then returns nil for an entity without Unit.
func (x *Expr) directly(n ast.Node) {
	x.direct = nil
	// only() is the condition of this conditional.
	value, only := n, func(*reading) bool { return true }
	if c, ok := n.(*ast.ConditionalNode); ok && isNil(c.Exp2) {
		if only = x.part(c.Cond).boolean; only == nil {
			return
		}
		value = c.Exp1
	}
	p := x.part(value)
	var give func(*reading) any
	switch {
	case p.boolean != nil:
		give = func(r *reading) any { return p.boolean(r) }
	case p.integer != nil:
		give = func(r *reading) any { return p.integer(r) }
	case p.wide != nil:
		give = func(r *reading) any { return p.wide(r) }
	case p.float != nil:
		give = func(r *reading) any { return p.float(r) }
	default:
		return
	}
	x.direct = func(r *reading) any {
		if !only(r) {
			return nil
		}
		return give(r)
	}
}

// part compiles node n to a closure, or returns direct{} if n is not simple.
func (x *Expr) part(n ast.Node) direct {
	switch n := n.(type) {
	case *ast.BoolNode:
		return direct{boolean: func(*reading) bool { return n.Value }}
	case *ast.IntegerNode:
		return direct{integer: func(*reading) int { return n.Value }}
	case *ast.FloatNode:
		return direct{float: func(*reading) float64 { return n.Value }}
	case *ast.IdentifierNode:
		return x.variable(n.Value)
	case *ast.MemberNode:
		if of, t, offset, ok := x.place(n); ok {
			return field(of, t, offset)
		}
	case *ast.UnaryNode:
		return unary(n.Operator, x.part(n.Node))
	case *ast.BinaryNode:
		// The guard of(Owner) != nil checks whether the owner has the component.
		if of, _, ok := x.referring(n.Left); ok && isNil(n.Right) && n.Operator == "!=" {
			return direct{boolean: func(r *reading) bool { return of(r).has }}
		}
		return joined(n.Operator, x.part(n.Left), x.part(n.Right))
	case *ast.CallNode:
		// The component is a tag. The call returns whether the other entity has the tag.
		if of, col, ok := x.referring(n); ok && col.typ == nil {
			return direct{boolean: func(r *reading) bool { return of(r).has }}
		}
		if p := x.existing(n); p.boolean != nil {
			return p
		}
		return x.exactly(n)
	}
	return direct{}
}

// exactly compiles a call of [compareCall] that compares two uint64, a uint64 with an int, or an
// int with a float. It returns direct{} for all other calls.
func (x *Expr) exactly(n *ast.CallNode) direct {
	callee, ok := n.Callee.(*ast.IdentifierNode)
	if !ok || callee.Value != compareName {
		return direct{}
	}
	operator, a, b := n.Arguments[0].(*ast.StringNode).Value, x.part(n.Arguments[1]), x.part(n.Arguments[2])
	switch {
	case a.wide != nil && b.wide != nil:
		return direct{boolean: compared(operator, a.wide, b.wide)}
	case a.wide != nil && b.integer != nil:
		return direct{boolean: compared(operator, apart(a.wide, b.integer, 1), zero)}
	case a.integer != nil && b.wide != nil:
		return direct{boolean: compared(operator, apart(b.wide, a.integer, -1), zero)}
	case a.integer != nil && b.float != nil:
		return direct{boolean: mixed(operator, a.integer, b.float, 1)}
	case a.float != nil && b.integer != nil:
		return direct{boolean: mixed(operator, b.integer, a.float, -1)}
	}
	return direct{}
}

// apart returns a function that compares a uint64 with an int. The function returns -1, 0 or 1,
// times sign. The caller then compares this result with zero.
func apart(a func(*reading) uint64, b func(*reading) int, sign int) func(*reading) int {
	return func(r *reading) int {
		b := b(r)
		if b < 0 {
			return sign
		}
		return sign * cmp.Compare(a(r), uint64(b))
	}
}

// zero returns 0. A comparison a < b becomes apart(a, b) < zero.
func zero(*reading) int { return 0 }

// mixed returns an exact comparison of the int a with the float b. If sign is -1, b is on the left
// side of the operator.
func mixed(operator string, a func(*reading) int, b func(*reading) float64, sign int) func(*reading) bool {
	when := outcomes[operator]
	return func(r *reading) bool {
		c := compareFloat(a(r), b(r))
		if c != unordered {
			c *= sign
		}
		return slices.Contains(when, c)
	}
}

// compareFloat compares exactly, like [ordered].
func compareFloat(a int, b float64) int {
	switch {
	case math.IsNaN(b):
		return unordered
	case b >= 1<<63:
		return -1
	case b < -1<<63:
		return 1
	}
	whole := math.Trunc(b)
	return cmp.Or(cmp.Compare(int64(a), int64(whole)), cmp.Compare(whole, b))
}

// existing compiles a call of [Expr.exists] for an entity in a field. Without a row, the call
// returns false.
func (x *Expr) existing(n *ast.CallNode) direct {
	if callee, ok := n.Callee.(*ast.IdentifierNode); !ok || callee.Value != existsName {
		return direct{}
	}
	of, t, offset, ok := x.place(n.Arguments[0])
	if !ok || !isEntity(t) {
		return direct{}
	}
	return direct{boolean: func(r *reading) bool {
		from := of(r)
		return from.has && x.isThere(ecs.Entity(from.bits(offset, t.Width())))
	}}
}

// noRow is the row of a missing entity.
var noRow foundRow

// referring returns the row and the column for a call that reads a component of another entity. The
// result ok is false for other nodes.
func (x *Expr) referring(n ast.Node) (of rowOf, col *column, ok bool) {
	call, ok := n.(*ast.CallNode)
	if !ok {
		return nil, nil, false
	}
	for i, col := range x.referred {
		if callee, ok := call.Callee.(*ast.IdentifierNode); !ok || callee.Value != referName(i) {
			continue
		}
		// The argument is a field that contains an entity. In Owner.Unit.Owner.Unit.HP, this field
		// is itself in the row of another entity.
		of, t, offset, ok := x.place(call.Arguments[0])
		if !ok || !isEntity(t) {
			break
		}
		return func(r *reading) *foundRow {
			from := of(r)
			if !from.has {
				return &noRow
			}
			return r.other(x, i, ecs.Entity(from.bits(offset, t.Width())))
		}, col, true
	}
	return nil, nil, false
}

// variable compiles a variable: the flag of a component, a scalar component, index or generation.
func (x *Expr) variable(name string) direct {
	for n, col := range x.columns {
		switch {
		case name == col.flag:
			return direct{boolean: func(r *reading) bool { return r.row(n).has }}
		case name == col.key && col.layout.Width() > 0:
			return field(ownRow(n), col.layout, 0)
		}
	}
	switch name {
	case "index":
		return direct{integer: func(r *reading) int { return int(r.entity.Index()) }}
	case "generation":
		return direct{integer: func(r *reading) int { return int(r.entity.Generation()) }}
	}
	return direct{}
}

// A rowOf returns a row of the current entity, or of another entity.
type rowOf func(*reading) *foundRow

// ownRow returns the row of the current entity in column n.
func ownRow(n int) rowOf { return func(r *reading) *foundRow { return r.row(n) } }

// place returns the row, type and offset of the field n. The result ok is false if the rows of the
// component have no fixed size.
func (x *Expr) place(n ast.Node) (of rowOf, t *layout.Type, offset int, ok bool) {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		for i, col := range x.columns {
			if n.Value == col.key {
				return ownRow(i), col.layout, 0, col.layout.Width() > 0
			}
		}
	case *ast.CallNode:
		if of, col, ok := x.referring(n); ok {
			return of, col.layout, 0, col.layout.Width() > 0
		}
	case *ast.MemberNode:
		if of, t, offset, ok = x.place(n.Node); ok {
			t, within, ok := placeIn(t, n.Property)
			return of, t, offset + within, ok
		}
	}
	return nil, nil, 0, false
}

// placeIn returns the type and offset of a struct field or an array element in a value of type t.
// The index of an element must be a valid constant.
func placeIn(t *layout.Type, property ast.Node) (in *layout.Type, offset int, ok bool) {
	switch p := property.(type) {
	case *ast.StringNode:
		for _, f := range t.Fields {
			if f.Name == p.Value {
				return f.Type, offset, t.Kind == layout.Struct
			}
			offset += f.Type.Width()
		}
	case *ast.IntegerNode:
		if t.Kind == layout.Array && p.Value >= 0 && p.Value < t.Len {
			return t.Elem, p.Value * t.Elem.Width(), true
		}
	}
	return nil, 0, false
}

// field compiles a scalar field of type t at an offset. It returns direct{} for all other types.
func field(of rowOf, t *layout.Type, offset int) direct {
	width := t.Width()
	bits := func(r *reading) uint64 { return of(r).bits(offset, width) }
	switch t.Kind {
	case layout.Bool:
		return direct{boolean: func(r *reading) bool { return bits(r) != 0 }}
	case layout.Int8, layout.Int16, layout.Int32, layout.Int64:
		// Shift the sign bit to the top and back, so that it fills the unused bits.
		unused := 64 - 8*width
		return direct{integer: func(r *reading) int { return int(int64(bits(r)<<unused) >> unused) }}
	case layout.Uint8, layout.Uint16, layout.Uint32:
		return direct{integer: func(r *reading) int { return int(bits(r)) }}
	case layout.Uint64:
		return direct{wide: bits}
	case layout.Float32:
		return direct{float: func(r *reading) float64 { return asPrinted(float64(math.Float32frombits(uint32(bits(r))))) }}
	case layout.Float64:
		return direct{float: func(r *reading) float64 { return math.Float64frombits(bits(r)) }}
	}
	return direct{}
}

// bits returns the encoded scalar at an offset of the row, or 0 without a row.
func (f *foundRow) bits(offset, width int) uint64 {
	if !f.has {
		return 0
	}
	switch b := f.row[offset:]; width {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	default:
		return binary.LittleEndian.Uint64(b)
	}
}

// unary compiles a negation.
func unary(operator string, p direct) direct {
	switch {
	case p.boolean != nil && (operator == "not" || operator == "!"):
		return direct{boolean: func(r *reading) bool { return !p.boolean(r) }}
	case p.integer != nil && operator == "-":
		return direct{integer: func(r *reading) int { return -p.integer(r) }}
	case p.float != nil && operator == "-":
		return direct{float: func(r *reading) float64 { return -p.float(r) }}
	}
	return direct{}
}

// joined compiles a logical operator or a comparison. It compares an int and a float as floats.
// That is exact here, because one of them is a constant below 2^53, see isMixed.
func joined(operator string, a, b direct) direct {
	switch {
	case a.boolean != nil && b.boolean != nil:
		switch operator {
		case "&&", "and":
			return direct{boolean: func(r *reading) bool { return a.boolean(r) && b.boolean(r) }}
		case "||", "or":
			return direct{boolean: func(r *reading) bool { return a.boolean(r) || b.boolean(r) }}
		}
	case a.integer != nil && b.integer != nil:
		return direct{boolean: compared(operator, a.integer, b.integer)}
	case a.number() != nil && b.number() != nil:
		return direct{boolean: compared(operator, a.number(), b.number())}
	}
	return direct{}
}

// number returns p as a float, or nil if p is not a number.
func (p direct) number() func(*reading) float64 {
	if p.integer != nil {
		return func(r *reading) float64 { return float64(p.integer(r)) }
	}
	return p.float
}

// compared compiles a comparison. It returns nil for other operators.
func compared[T int | uint64 | float64](operator string, a, b func(*reading) T) func(*reading) bool {
	switch operator {
	case "==":
		return func(r *reading) bool { return a(r) == b(r) }
	case "!=":
		return func(r *reading) bool { return a(r) != b(r) }
	case "<":
		return func(r *reading) bool { return a(r) < b(r) }
	case "<=":
		return func(r *reading) bool { return a(r) <= b(r) }
	case ">":
		return func(r *reading) bool { return a(r) > b(r) }
	case ">=":
		return func(r *reading) bool { return a(r) >= b(r) }
	}
	return nil
}
