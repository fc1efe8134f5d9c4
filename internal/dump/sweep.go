package dump

import (
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/persist/inspect"
)

// A sweeper asks all entities of a state. It is the sweeper of package query, which reads columns
// and evaluates expressions span by span, with a source, which turns what is wrong with a name or
// an expression into a failure that says how to go on.
//
// Expressions and components have numbers in it, and it reads only the columns of those that it was
// given. So one that is asked of all entities and one that is asked of few are two sweepers.
type sweeper struct {
	*source
	query.Sweeper
}

// sweeper returns one for st, which reads nothing yet.
func (s *source) sweeper(st *inspect.State) *sweeper {
	return &sweeper{s, query.Sweeper{State: st}}
}

// present returns the numbers of components that entities have or do not have. Resources are
// refused: no entity has one.
func (w *sweeper) present(names []string) (numbers []int, err error) {
	found, err := w.components(outline(w.State), names, false)
	for _, c := range found {
		numbers = append(numbers, w.Number(c))
	}
	return numbers, err
}

// compile compiles text for the sweep, see [source.compile].
func (w *sweeper) compile(what, text string, want query.Want) (*query.Swept, error) {
	x, err := w.Compile(what, text, want)
	return x, w.uncompiled(err)
}

// compileAll compiles texts, all of the argument called what.
func (w *sweeper) compileAll(what string, texts []string, want query.Want) (exprs []*query.Swept, err error) {
	for _, text := range texts {
		x, err := w.compile(what, text, want)
		if err != nil {
			return nil, err
		}
		exprs = append(exprs, x)
	}
	return exprs, nil
}
