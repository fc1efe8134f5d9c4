package dump

import (
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/persist/inspect"
)

// A sweeper evaluates expressions for all entities of a state. It reads the columns of all its
// expressions. So an expression that is evaluated for a few entities belongs in a separate sweeper.
type sweeper struct {
	*source
	query.Sweeper
}

// sweeper returns a sweeper for st, without expressions.
func (s *source) sweeper(st *inspect.State) *sweeper {
	return &sweeper{s, query.Sweeper{State: st}}
}

// present returns the numbers of the named components. The name of a resource is an error, because
// no entity has a resource.
func (w *sweeper) present(names []string) (numbers []int, err error) {
	found, err := w.components(outline(w.State), names, false)
	return describe.Listed(found, w.Number), err
}

// compile compiles an expression for all entities. In errors, the text what names the argument of
// the command that has the expression.
func (w *sweeper) compile(what, text string, want query.Want) (*query.Swept, error) {
	x, err := w.Compile(what, text, want)
	return x, w.uncompiled(err)
}

// compileAll compiles several expressions, see compile.
func (w *sweeper) compileAll(what string, texts []string, want query.Want) ([]*query.Swept, error) {
	return describe.TryListed(texts, func(text string) (*query.Swept, error) { return w.compile(what, text, want) })
}
