package query

import (
	"context"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/inspect"
)

// A sweep evaluates expressions for all entities of a state. The expressions are compiled first, so
// the sweep reads only the pages of their columns, even from a state of gigabytes.

// A Sweeper evaluates expressions for the living entities of a state. It reads only the components
// that the expressions use. Several goroutines evaluate spans of entities.
type Sweeper struct {
	State *inspect.State
	Begin int // Index of the first entity, see [inspect.State.Sweep].

	components []*inspect.Component // Components that the sweep reads, each once.
	exprs      []*Swept
}

// A SweptEntity is an entity of a sweep.
type SweptEntity struct {
	*inspect.Span
	asker, i int
}

// Entity returns the entity.
func (at SweptEntity) Entity() ecs.Entity { return at.Entities[at.i] }

// Has reports whether the entity has component number n of the sweep.
func (at SweptEntity) Has(n int) bool { return at.Span.Has(n, at.i) }

// Row returns the encoded value of component number n of the sweep, and whether the entity has
// it. The value is valid until the next entity.
func (at SweptEntity) Row(n int) (row []byte, has bool, err error) { return at.Span.Row(n, at.i) }

// A Swept is an expression that a sweep evaluates.
type Swept struct {
	*Expr
	sweeper *Sweeper
	reads   []int       // Numbers of the components that the expression reads.
	copies  []*exprCopy // One copy for each goroutine.
}

// An exprCopy is the copy of an expression for one goroutine, with its current entity.
type exprCopy struct {
	*Expr
	at   SweptEntity
	rows Rows
}

// Number returns the number of c in the sweep, and adds c if necessary.
func (w *Sweeper) Number(c *inspect.Component) int {
	for n, known := range w.components {
		if c == known {
			return n
		}
	}
	w.components = append(w.components, c)
	return len(w.components) - 1
}

// Component returns the component with a number in the sweep.
func (w *Sweeper) Component(n int) *inspect.Component { return w.components[n] }

// Compile compiles text for the sweep, see the function Compile. It must be called before the sweep
// begins.
func (w *Sweeper) Compile(what, text string, want Want) (*Swept, error) {
	x, err := Compile(w.State.Outline(), what, text, want)
	if err != nil {
		return nil, err
	}
	return w.sweep(x), nil
}

// sweep adds the expression x, and the components that it reads, to the sweep.
func (w *Sweeper) sweep(x *Expr) *Swept {
	x.Among(w.State.IsAlive)
	x.Looking(func(c *inspect.Component) Lookup { return w.State.Lookup(c) })
	s := &Swept{Expr: x, sweeper: w}
	for _, c := range x.Reads() {
		s.reads = append(s.reads, w.Number(c))
	}
	w.exprs = append(w.exprs, s)
	return s
}

// copy adds a copy of x for the next goroutine.
func (x *Swept) copy() {
	c := &exprCopy{Expr: x.Clone()}
	c.rows = func(n int) ([]byte, bool, error) { return c.at.Row(x.reads[n]) }
	x.copies = append(x.copies, c)
}

// to returns the copy of x for the goroutine that evaluates the entity at. It sets the current
// entity of this copy.
func (x *Swept) to(at SweptEntity) *exprCopy {
	c := x.copies[at.asker]
	c.at = at
	return c
}

// At evaluates x for an entity of the sweep.
func (x *Swept) At(at SweptEntity) (Answer, error) {
	c := x.to(at)
	return c.OfRows(at.Entity(), c.rows)
}

// HoldsAt reports whether condition x holds for an entity of the sweep.
func (x *Swept) HoldsAt(at SweptEntity) (bool, error) {
	c := x.to(at)
	return c.HoldsRows(at.Entity(), c.rows)
}

// LookUp evaluates x for a single entity, outside of a sweep. Only one goroutine may call it.
func (x *Swept) LookUp(e ecs.Entity) (Answer, error) {
	w := x.sweeper
	return x.OfRows(e, func(n int) ([]byte, bool, error) { return w.State.Has(w.components[x.reads[n]], e) })
}

// A Filter selects entities of a sweep. The empty filter selects all.
type Filter struct {
	With, Without []int // Numbers of components.
	Where         []*Swept
}

// Holds reports whether f selects an entity of the sweep. It checks components before expressions.
func (f *Filter) Holds(at SweptEntity) (bool, error) {
	for _, n := range f.With {
		if !at.Has(n) {
			return false, nil
		}
	}
	for _, n := range f.Without {
		if at.Has(n) {
			return false, nil
		}
	}
	for _, x := range f.Where {
		if holds, err := x.HoldsAt(at); err != nil || !holds {
			return false, err
		}
	}
	return true, nil
}

// Sweep evaluates entities in parallel. It divides the entities into spans, and each span has a
// result of type T. Sweep calls ask() for each entity of a span. ask() adds the entity to the
// result at found. Sweep then calls take() with the result, and with the start index of the next
// span.
//
// Several goroutines call ask() concurrently, for different spans. Each goroutine has its own
// copies of the expressions. The calls of take() come one after the other, in the order of the
// spans.
//
// If ask() fails, Sweep still calls take() with the partial result of the span, and returns the
// error.
func Sweep[T any](ctx context.Context, w *Sweeper, ask func(at SweptEntity, found *T) error, take func(found T, next int) error) error {
	type span struct {
		found T
		next  int
		err   error
	}
	askers := 0
	return w.State.Sweep(ctx, w.Begin, w.components, func() func(*inspect.Span) (any, error) {
		// State.Sweep calls this function once for each of its goroutines, one after the other.
		// Each goroutine runs the function that this call returns. asker is the number of the
		// goroutine.
		asker := askers
		askers++
		for _, x := range w.exprs {
			x.copy()
		}
		return func(of *inspect.Span) (any, error) {
			s := span{next: of.Next}
			for i := 0; i < len(of.Entities) && s.err == nil; i++ {
				s.err = ask(SweptEntity{of, asker, i}, &s.found)
			}
			return &s, nil
		}
	}, func(found any) error {
		s := found.(*span)
		if err := take(s.found, s.next); err != nil {
			return err
		}
		return s.err
	})
}
