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

// A query over a million entities evaluates one expression a million times. The virtual machine
// of package expr finds variables in a map and hands numbers around as interfaces. Expressions of a
// simple form are made closures instead, which read the field from the bytes of the row. Whatever
// has no such form, even in one part, is left to the machine as a whole; and what both can evaluate
// must give the same, to the last bit.
//
//	Unit.HP < 10                                    as it is written
//	has(Unit) && Unit.HP < 10                       guarded: this is the tree that is looked at
//	joined("&&", row(Unit).has,                     as functions, made once
//	       compared("<", int32 at offset 0 of row(Unit), 10))

// A reading is the evaluation of an expression without a program, of one entity after the other.
// Rows are found when they are first read, and once for an entity: what short-circuits reads less.
type reading struct {
	entity ecs.Entity
	find   Rows
	found  []foundRow // By column.
	others []otherRow // By referred column.
	err    error      // A row could not be found.
}

// newReading returns one for x.
func (x *Expr) newReading() reading {
	return reading{found: make([]foundRow, len(x.columns)), others: make([]otherRow, len(x.referred))}
}

// begin makes r ready for entity e, whose rows find finds.
func (r *reading) begin(e ecs.Entity, rows Rows) {
	r.entity, r.find, r.err = e, rows, nil
	clear(r.found) // Rows of the entity before.
	clear(r.others)
}

// An otherRow is what the entity that was asked for last has of a referred column.
type otherRow struct {
	entity ecs.Entity
	foundRow
}

// A foundRow is what an entity has of a column. The row is that of whoever keeps the state: it is valid as
// long as that says.
type foundRow struct {
	asked, has bool
	row        []byte
}

// row returns what the entity has of column n.
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

// other returns what entity e has of referred column n of x. A guard asks for it first, whether it is
// there, and then the expression: the last answer is kept for that.
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

// A direct is a part of an expression as functions, of which one is there: what it gives is of
// that type. Nearly all expressions that are asked of millions of entities are made of few parts,
// comparisons of scalar fields with numbers, joined; for these there are functions that read no more
// of a row than the field, and need neither variables nor a machine. They give what the program does.
type direct struct {
	boolean func(*reading) bool
	integer func(*reading) int
	wide    func(*reading) uint64
	float   func(*reading) float64
}

// directly makes x, whose tree is n as it is compiled, functions, if it is made of such parts. A
// conditional without an else is what guard.go puts around an expression that needs components: the
// answer is nothing for whoever lacks them.
func (x *Expr) directly(n ast.Node) {
	x.direct = nil
	value, only := n, func(*reading) bool { return true } // Whether there is an answer.
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

// part returns n as a function, or none. The cases are forms that the passes of package query leave:
// names as columns call them, comparisons of what is wide as calls of [compareCall].
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
		// A guard of a component of another entity, see guarder.referred.
		if of, _, ok := x.referring(n.Left); ok && isNil(n.Right) && n.Operator == "!=" {
			return direct{boolean: func(r *reading) bool { return of(r).has }}
		}
		return joined(n.Operator, x.part(n.Left), x.part(n.Right))
	case *ast.CallNode:
		if of, col, ok := x.referring(n); ok && col.typ == nil { // A tag: whether it has it.
			return direct{boolean: func(r *reading) bool { return of(r).has }}
		}
		if p := x.existing(n); p.boolean != nil {
			return p
		}
		return x.exactly(n)
	}
	return direct{}
}

// exactly returns a call of [compareCall] for integers, one of which is wide, or for an int and a
// float. With a float beside what is wide, or nil, the machine compares.
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

// apart returns how a compares with b, times sign. What is less than 0 is below every uint64.
func apart(a func(*reading) uint64, b func(*reading) int, sign int) func(*reading) int {
	return func(r *reading) int {
		b := b(r)
		if b < 0 {
			return sign
		}
		return sign * cmp.Compare(a(r), uint64(b))
	}
}

// zero is what apart is compared with.
func zero(*reading) int { return 0 }

// mixed returns a comparison of an int with a float, exactly; with sign -1 of the float with the int.
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

// compareFloat compares exactly, as [ordered] does.
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

// existing returns a call of [Expr.exists] for an entity in a field. The guard before it has asked
// whether there is a row; without one, it is false.
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

// noRow is what is read where there is no entity.
var noRow foundRow

// referring returns what is read of the entity in a field, if n is that: a call, see refer.go.
func (x *Expr) referring(n ast.Node) (of rowOf, col *column, ok bool) {
	call, ok := n.(*ast.CallNode)
	if !ok {
		return nil, nil, false
	}
	for i, col := range x.referred {
		if callee, ok := call.Callee.(*ast.IdentifierNode); !ok || callee.Value != referName(i) {
			continue
		}
		// The entity may come from another call: Owner.Unit.Owner.Unit.HP is read row by row.
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

// variable returns what an identifier of the program is: whether there is a component, or a scalar
// that is one, or of the entity.
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

// A rowOf returns a row: of the entity, or of one that it refers to.
type rowOf func(*reading) *foundRow

// ownRow returns the row that the entity at hand has of column n.
func ownRow(n int) rowOf { return func(r *reading) *foundRow { return r.row(n) } }

// place returns where n, a field of a component whose rows are of one size, lies in which row. Fields
// are encoded one behind the other without padding, so an offset is the sum of widths.
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

// placeIn returns where the field of a struct, or the element of an array, lies in a value of type t.
// An index that is computed, negative or too large is left to the machine.
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

// field returns a scalar of type t as expressions know it, see [column]; none of another type.
func field(of rowOf, t *layout.Type, offset int) direct {
	width := t.Width()
	bits := func(r *reading) uint64 { return of(r).bits(offset, width) }
	switch t.Kind {
	case layout.Bool:
		return direct{boolean: func(r *reading) bool { return bits(r) != 0 }}
	case layout.Int8, layout.Int16, layout.Int32, layout.Int64:
		unused := 64 - 8*width // Shifted out to the left and back, the sign comes along.
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

// bits returns a scalar of the row, which was checked, as package layout encodes it; 0 if there is
// no row.
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

// unary returns a part negated.
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

// joined returns two parts joined by an operator. An int and a float beside each other compare as
// floats: here one of them is a small constant. A uint64 never comes here (see exactly). There are no functions for
// sums and the like.
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

// number returns p as a float, if it is a number.
func (p direct) number() func(*reading) float64 {
	if p.integer != nil {
		return func(r *reading) float64 { return float64(p.integer(r)) }
	}
	return p.float
}

// compared returns a comparison, or nil.
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
