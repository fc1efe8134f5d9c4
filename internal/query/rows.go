package query

import (
	"maps"
	"reflect"

	"github.com/expr-lang/expr/vm"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/inspect"
)

// An expression can be evaluated without an image: whoever reads a state by pages hands in the rows.
// Then the expression may be cloned, so that several goroutines evaluate it at once.

// Rows finds what an entity has of a component, encoded, and whether it has it. The number of
// the component is its place in what [Expr.Reads] returned.
type Rows func(n int) (row []byte, has bool, err error)

// Reads returns the components and resources that x reads of the entity at hand; nil for one that the
// image does not have yet.
func (x *Expr) Reads() (components []*inspect.Component) {
	for _, col := range x.columns {
		components = append(components, col.component)
	}
	return components
}

// Among tells x, and what is cloned of it, who is alive: the image that x was compiled for need
// not know.
func (x *Expr) Among(alive func(ecs.Entity) bool) { x.alive = alive }

// Looking tells x, and what is cloned of it, how to look up what other entities have of a
// component: the image that x was compiled for need not have the rows. What is looked up may be used
// by all of them at the same time.
func (x *Expr) Looking(up func(*inspect.Component) Lookup) {
	for _, col := range x.referred {
		col.lookup = up(col.component)
	}
}

// Clone returns a copy of x, which may be used at the same time. What evaluation writes is made anew:
// variables, the machine, room for values. The program and the functions are shared; nothing writes
// to them. Functions still ask the first x who is alive, and look up in its referred columns.
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

// OfRows is [Expr.Of] for an entity whose rows lie elsewhere than in the image. Evaluated directly it
// asks for the rows that it comes to, by the machine for all that x reads. Only this way is direct: Of
// always takes the machine.
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
			err = col.loadRow(x.env, row, has)
		}
		if err != nil {
			return Answer{}, err
		}
	}
	return x.run(e)
}

// HoldsRows is [Expr.Holds] in the same way.
func (x *Expr) HoldsRows(e ecs.Entity, rows Rows) (bool, error) {
	a, err := x.OfRows(e, rows)
	if err != nil {
		return false, err
	}
	return x.condition(a)
}
