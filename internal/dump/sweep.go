package dump

import (
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Commands that ask all entities compile first, which tells the components that are read, and
// sweep then: so a state of gigabytes takes the pages of a few columns. What an expression reads of
// other entities than its own is looked up, in the columns that it names (see
// [inspect.State.Lookup]).

// A sweeper asks the entities alive for what expressions give, span by span and several at the
// same time, and reads of the state only the components that are asked for.
type sweeper struct {
	*source
	st         *inspect.State
	components []*inspect.Component // That are read, each once.
	exprs      []*sweptExpr
	begin      int // Index.
}

// A sweptEntity is an entity that a sweep has come to: which of a span, and who asks it.
type sweptEntity struct {
	*inspect.Span
	asker, i int
}

func (at sweptEntity) entity() ecs.Entity { return at.Entities[at.i] }

// A sweptExpr is an expression of a sweep.
type sweptExpr struct {
	*query.Expr
	reads  []int       // Components, by their numbers in the sweep.
	copies []*exprCopy // By who asks.
}

// An exprCopy is an expression for one of those who ask at the same time, and the entity that it
// asks.
type exprCopy struct {
	*query.Expr
	at   sweptEntity
	rows query.Rows
}

// number returns the number that c has in the sweep.
func (w *sweeper) number(c *inspect.Component) int {
	for n, known := range w.components {
		if c == known {
			return n
		}
	}
	w.components = append(w.components, c)
	return len(w.components) - 1
}

// present returns the numbers of components that entities have or do not have.
func (w *sweeper) present(names []string) (numbers []int, err error) {
	found, err := w.source.components(outline(w.st), names, false)
	for _, c := range found {
		numbers = append(numbers, w.number(c))
	}
	return numbers, err
}

// compile compiles text for the sweep, see [source.compile].
func (w *sweeper) compile(what, text string, want query.Want) (*sweptExpr, error) {
	x, err := w.source.compile(outline(w.st), what, text, want)
	if err != nil {
		return nil, err
	}
	x.Among(w.st.IsAlive)
	x.Looking(func(c *inspect.Component) query.Lookup { return w.st.Lookup(c) })
	s := &sweptExpr{Expr: x}
	for _, c := range x.Reads() {
		s.reads = append(s.reads, w.number(c))
	}
	w.exprs = append(w.exprs, s)
	return s, nil
}

// copy gives x one more copy.
func (x *sweptExpr) copy() {
	c := &exprCopy{Expr: x.Clone()}
	c.rows = func(n int) ([]byte, bool, error) { return c.at.Row(x.reads[n], c.at.i) }
	x.copies = append(x.copies, c)
}

// compileAll compiles texts, all of the argument called what.
func (w *sweeper) compileAll(what string, texts []string, want query.Want) (exprs []*sweptExpr, err error) {
	for _, text := range texts {
		x, err := w.compile(what, text, want)
		if err != nil {
			return nil, err
		}
		exprs = append(exprs, x)
	}
	return exprs, nil
}

// of evaluates x for an entity.
func (x *sweptExpr) of(at sweptEntity) (query.Answer, error) {
	c := x.copies[at.asker]
	c.at = at
	return c.OfRows(at.entity(), c.rows)
}

// holds reports whether condition x holds for an entity.
func (x *sweptExpr) holds(at sweptEntity) (bool, error) {
	c := x.copies[at.asker]
	c.at = at
	return c.HoldsRows(at.entity(), c.rows)
}

// answersAt evaluates all of exprs for an entity.
func answersAt(exprs []*sweptExpr, at sweptEntity) (answers []query.Answer, err error) {
	answers = make([]query.Answer, len(exprs))
	for i, x := range exprs {
		if answers[i], err = x.of(at); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// looked evaluates all of exprs for an entity that is looked up by itself.
func (w *sweeper) looked(exprs []*sweptExpr, e ecs.Entity) (answers []query.Answer, err error) {
	answers = make([]query.Answer, len(exprs))
	for i, x := range exprs {
		answers[i], err = x.OfRows(e, func(n int) ([]byte, bool, error) { return w.st.Has(w.components[x.reads[n]], e) })
		if err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// sweep calls ask with all entities, which adds to what was found in its span, and take with this,
// span by span by index. What was found before an error is taken first, as take may have enough.
func sweep[T any](w *sweeper, ask func(at sweptEntity, found *T) error, take func(found T) error) error {
	type span struct {
		found T
		err   error
	}
	askers := 0
	return w.st.Sweep(w.ctx, w.begin, w.components, func() func(*inspect.Span) (any, error) {
		asker := askers // Askers are made one after the other, and used at the same time.
		askers++
		for _, x := range w.exprs {
			x.copy()
		}
		return func(of *inspect.Span) (any, error) {
			var s span
			for i := 0; i < len(of.Entities) && s.err == nil; i++ {
				s.err = ask(sweptEntity{of, asker, i}, &s.found)
			}
			return &s, nil
		}
	}, func(found any) error {
		s := found.(*span)
		if err := take(s.found); err != nil {
			return err
		}
		return s.err
	})
}
