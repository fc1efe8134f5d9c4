package dump

import (
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/persist/inspect"
)

// A sweeper evaluates expressions for all entities of a state. It combines the sweeper of package
// query with a source, which turns errors about names and expressions into failures with a
// suggestion.
//
// A sweeper numbers its expressions and components, and reads the columns of all of them. So
// expressions for all entities and expressions for few entities need separate sweepers.
type sweeper struct {
	*source
	query.Sweeper
}

// sweeper returns a sweeper for st. The new sweeper has read nothing.
func (s *source) sweeper(st *inspect.State) *sweeper {
	return &sweeper{s, query.Sweeper{State: st}}
}

// present returns the numbers of components that a filter names. Resources are an error, because
// no entity has one.
func (w *sweeper) present(names []string) (numbers []int, err error) {
	found, err := w.components(outline(w.State), names, false)
	for _, c := range found {
		numbers = append(numbers, w.Number(c))
	}
	return numbers, err
}

// compile is like [source.compile], but compiles text for the sweep.
func (w *sweeper) compile(what, text string, want query.Want) (*query.Swept, error) {
	x, err := w.Compile(what, text, want)
	return x, w.uncompiled(err)
}

// compileAll compiles texts. The parameter what is the name of their argument, for errors.
func (w *sweeper) compileAll(what string, texts []string, want query.Want) ([]*query.Swept, error) {
	return describe.TryListed(texts, func(text string) (*query.Swept, error) { return w.compile(what, text, want) })
}
