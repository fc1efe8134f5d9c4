package query

import (
	"maps"
	"reflect"

	"github.com/expr-lang/expr/vm"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/inspect"
)

// An expression can be evaluated for rows that are not in an image. The caller passes the rows.
// Several goroutines can evaluate clones of such an expression.

// Rows returns the encoded value of an entity in component n, and whether the entity has the
// component. The parameter n is an index into the result of [Expr.Reads].
type Rows func(n int) (row []byte, has bool, err error)

// Reads returns the components and resources of the current entity that x reads. An element is nil
// if the image lacks the component.
func (x *Expr) Reads() (components []*inspect.Component) {
	for _, col := range x.columns {
		components = append(components, col.component)
	}
	return components
}

// Among sets the function that reports whether an entity is alive, for x and its later clones. By
// default, the image decides.
func (x *Expr) Among(alive func(ecs.Entity) bool) { x.alive = alive }

// Looking sets the functions that look up components of other entities, for x and its clones.
// Without them, x reads the components from the image. Several clones may use a Lookup
// concurrently.
func (x *Expr) Looking(up func(*inspect.Component) Lookup) {
	for _, col := range x.referred {
		col.lookup = up(col.component)
	}
}

// Clone returns a copy of x that another goroutine may use. The copies share the program, and the
// functions set by [Expr.Among] and [Expr.Looking].
func (x *Expr) Clone() *Expr {
	c := *x
	c.env, c.vm = maps.Clone(x.env), vm.VM{MemoryBudget: memoryBudget}
	c.reading = x.newReading()
	c.columns = make([]*column, len(x.columns))
	for i, col := range x.columns {
		own := *col
		if own.typ != nil {
			own.value = reflect.New(col.value.Type().Elem())
		}
		c.columns[i] = &own
	}
	return &c
}

// OfRows is like [Expr.Of], but evaluates rows that are not in the image. A simple expression reads
// only the rows that it needs.
func (x *Expr) OfRows(e ecs.Entity, rows Rows) (Answer, error) {
	if x.direct != nil {
		r := &x.reading
		r.begin(e, rows)
		v := x.direct(r)
		return Answer{v}, r.err
	}
	for n, col := range x.columns {
		row, has, err := rows(n)
		if err == nil {
			err = col.load(x.env, row, has)
		}
		if err != nil {
			return Answer{}, err
		}
	}
	return x.run(e)
}

// HoldsRows is like [Expr.Holds], but evaluates rows that are not in the image.
func (x *Expr) HoldsRows(e ecs.Entity, rows Rows) (bool, error) {
	a, err := x.OfRows(e, rows)
	if err != nil {
		return false, err
	}
	return x.condition(a)
}
