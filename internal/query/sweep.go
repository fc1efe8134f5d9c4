package query

import (
	"context"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Whoever asks all entities compiles first, which tells the components that are read, and sweeps
// then: so a state of gigabytes takes the pages of a few columns. What an expression reads of other
// entities than its own is looked up, in the columns that it names (see [inspect.State.Lookup]).

// A Sweeper asks the entities alive in a state for what expressions give, span by span and several
// at the same time, and reads of the state only the components that are asked for.
type Sweeper struct {
	State *inspect.State
	Begin int // The index to begin with, see [inspect.State.Sweep].

	components []*inspect.Component // That are read, each once.
	exprs      []*Swept
}

// A SweptEntity is an entity that a sweep has come to: which of a span, and who asks it.
type SweptEntity struct {
	*inspect.Span
	asker, i int
}

// Entity returns the entity itself.
func (at SweptEntity) Entity() ecs.Entity { return at.Entities[at.i] }

// Has reports whether the entity has component number n of the sweep.
func (at SweptEntity) Has(n int) bool { return at.Span.Has(n, at.i) }

// Row returns what the entity has of component number n of the sweep, encoded, and whether it has it. It is
// valid until the next entity is asked.
func (at SweptEntity) Row(n int) (row []byte, has bool, err error) { return at.Span.Row(n, at.i) }

// A Swept is an expression of a sweep.
type Swept struct {
	*Expr
	sweeper *Sweeper
	reads   []int       // Components, by their numbers in the sweep.
	copies  []*exprCopy // By who asks.
}

// An exprCopy is an expression for one of those who ask at the same time, and the entity that it
// asks.
type exprCopy struct {
	*Expr
	at   SweptEntity
	rows Rows
}

// Number returns the number that c has in the sweep, which reads it from then on.
func (w *Sweeper) Number(c *inspect.Component) int {
	for n, known := range w.components {
		if c == known {
			return n
		}
	}
	w.components = append(w.components, c)
	return len(w.components) - 1
}

// Component returns the component that has a number in the sweep.
func (w *Sweeper) Component(n int) *inspect.Component { return w.components[n] }

// Compile compiles text for the sweep, see the function Compile. It is called before the sweep begins,
// as that reads the components that were asked for by then.
func (w *Sweeper) Compile(what, text string, want Want) (*Swept, error) {
	x, err := Compile(w.State.Outline(), what, text, want)
	if err != nil {
		return nil, err
	}
	return w.sweep(x), nil
}

// sweep makes x, which is compiled for the outline of the state, an expression of the sweep.
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

// copy gives x one more copy, for the asker of the next number. Its rows are those of the entity that
// it was brought to last.
func (x *Swept) copy() {
	c := &exprCopy{Expr: x.Clone()}
	c.rows = func(n int) ([]byte, bool, error) { return c.at.Row(x.reads[n]) }
	x.copies = append(x.copies, c)
}

// to returns the copy of whoever asks, for the entity that it has come to.
func (x *Swept) to(at SweptEntity) *exprCopy {
	c := x.copies[at.asker]
	c.at = at
	return c
}

// At evaluates x for an entity that the sweep has come to.
func (x *Swept) At(at SweptEntity) (Answer, error) {
	c := x.to(at)
	return c.OfRows(at.Entity(), c.rows)
}

// HoldsAt reports whether condition x holds for an entity that the sweep has come to.
func (x *Swept) HoldsAt(at SweptEntity) (bool, error) {
	c := x.to(at)
	return c.HoldsRows(at.Entity(), c.rows)
}

// LookUp evaluates x for an entity that is looked up by itself, outside of a sweep and by one goroutine.
func (x *Swept) LookUp(e ecs.Entity) (Answer, error) {
	w := x.sweeper
	return x.OfRows(e, func(n int) ([]byte, bool, error) { return w.State.Has(w.components[x.reads[n]], e) })
}

// Answers returns what all of exprs give by of: what [Swept.At] or [Swept.LookUp] gives for an entity.
func Answers(exprs []*Swept, of func(*Swept) (Answer, error)) (answers []Answer, err error) {
	answers = make([]Answer, len(exprs))
	for i, x := range exprs {
		if answers[i], err = of(x); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// Sweep calls ask with all entities, which adds to what was found in its span, and take with this
// and the index to go on with, span by span by index. What was found before an error is taken
// first, as take may have enough.
//
//	asker 0: span 0 ask ask …   span 2 ask …          several at the same time, each with
//	asker 1: span 1 ask ask ask …   span 3 ask …      copies of the expressions of its own
//	take:        0       1       2       3            one after the other, in order
func Sweep[T any](ctx context.Context, w *Sweeper, ask func(at SweptEntity, found *T) error, take func(found T, next int) error) error {
	type span struct {
		found T
		next  int
		err   error
	}
	askers := 0
	return w.State.Sweep(ctx, w.Begin, w.components, func() func(*inspect.Span) (any, error) {
		asker := askers // Askers are made one after the other, and used at the same time.
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
