package dump

import (
	"cmp"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist/inspect"
)

// expressionHelp is what the help of a command says of expressions.
const expressionHelp = `An expression names components and their fields: Position.X > 3 && Health < 10.
A tag is true or false; has(C) says whether the entity has component C. What needs
a component that the entity lacks is nothing, and a condition on nothing is false:
write not (Health > 3), or (Health ?? 0) > 3, to take in entities without Health.

  entity, index, generation    of the entity; an entity is text: Target.Of == "12v3"
  exists(Target.Of)            it is alive
  component("a-b"), score      a component of any name; a resource
  ==  !=  <  <=  >  >=  in  contains  startsWith  endsWith  matches
  and  or  not  +  -  *  /  %  **  ??  ?:  len()  abs()  lower()  any(Bag.Items, .N > 1)

The language is that of expr-lang.org.`

// A selection says which entities a command prints, and in what order. From the flags to what is
// printed it takes three types:
//
//	selection   what the flags say, as text
//	choice      the same for a state: components found, expressions compiled
//	part        the entities of a choice that offset and limit leave, and how many there are
type selection struct {
	with, without []string
	where         []string // All of them.
	sort          []string // The first is the one that matters most.
	desc          bool
	window
}

// flags declares the flags of a selection.
func (l *selection) flags(f flags) {
	f.StringSliceVar(&l.with, "with", nil, "only entities that have all of these components (a comma between, or the flag again)")
	f.StringSliceVar(&l.without, "without", nil, "only entities that have none of these components")
	f.expressions(&l.sort, "sort", "sort by these expressions, nothing last; without it by index")
	f.BoolVar(&l.desc, "desc", false, "the greatest of --sort first")
	f.number(&l.from, "offset", "", 0, "leave out this many of the first")
}

// everything reports whether l leaves all entities, by index.
func (l *selection) everything() bool {
	return len(l.with) == 0 && len(l.without) == 0 && len(l.where) == 0 && len(l.sort) == 0 && !l.desc
}

// A choice is a selection for a state.
type choice struct {
	*selection
	s             *source
	im            state
	with, without []*inspect.Component
	where, sort   []*query.Expr // None: everything; by index.
}

// choice finds the components that l names and compiles its expressions, of which
// what is called whereName holds the condition.
func (l *selection) choice(s *source, im state, whereName string) (c *choice, err error) {
	c = &choice{selection: l, s: s, im: im}
	if l.desc && len(l.sort) == 0 {
		return nil, fail(exitUsage, "", "--desc needs --sort EXPR")
	}
	if c.with, err = s.components(im, l.with, false); err != nil {
		return nil, err
	}
	if c.without, err = s.components(im, l.without, false); err != nil {
		return nil, err
	}
	if c.where, err = s.compileAll(im, whereName, l.where, query.WantCondition); err != nil {
		return nil, err
	}
	c.sort, err = s.compileAll(im, "--sort", l.sort, query.WantValue)
	return c, err
}

// holds reports whether the filters leave e.
func (c *choice) holds(e ecs.Entity) (bool, error) {
	for _, comp := range c.with {
		if comp.Find(e) < 0 {
			return false, nil
		}
	}
	for _, comp := range c.without {
		if comp.Find(e) >= 0 {
			return false, nil
		}
	}
	for _, x := range c.where {
		if holds, err := x.Holds(e); err != nil || !holds {
			return false, err
		}
	}
	return true, nil
}

// A part is the entities of a choice that are to be printed.
type part struct {
	entities []ecs.Entity
	more     int // How many there are behind them.
	total    int // That the filters leave.
	open     bool
}

// part returns what offset and limit leave of c. If counted is not set and what is
// to be printed is found before all entities are asked, the rest is not: the part
// is open then, and nobody knows how many more there are.
func (c *choice) part(counted bool) (p part, err error) {
	entities := c.all
	if len(c.sort) > 0 {
		entities, counted = c.sorted, true // All are asked before the first is known.
	}
	end := uint64(c.from) + uint64(c.limit) // With 64 bits there is no sum too large on machines that have 32.
	err = entities(func(e ecs.Entity) error {
		n := uint64(p.total)
		p.total++
		switch {
		case c.limit > 0 && n >= end:
			p.more++
			if p.open = !counted && len(c.where) > 0; p.open {
				return errEnough
			}
		case n >= uint64(c.from):
			p.entities = append(p.entities, e)
		}
		return nil
	})
	return p, ended(err)
}

// all walks over the entities that the filters leave, by index: as they lie, they are in
// another order whenever one was destroyed.
func (c *choice) all(visit func(ecs.Entity) error) error {
	for i, e := range byIndex(c.im) {
		ok, err := c.holds(e)
		if i%1024 == 0 { // Often enough for whoever waits, seldom enough to cost nothing.
			err = cmp.Or(err, c.s.ctx.Err())
		}
		if ok && err == nil {
			err = visit(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sorted is all in the order of --sort, and by index where that makes no difference.
func (c *choice) sorted(visit func(ecs.Entity) error) error {
	type keyed struct {
		e    ecs.Entity
		keys []query.Answer
	}
	var all []keyed
	err := c.all(func(e ecs.Entity) error {
		keys, err := answersOf(c.sort, e)
		all = append(all, keyed{e, keys})
		return err
	})
	slices.SortStableFunc(all, func(a, b keyed) int { return slices.CompareFunc(a.keys, b.keys, c.order) })
	for i := 0; i < len(all) && err == nil; i++ {
		err = visit(all[i].e)
	}
	return err
}

// order compares two keys as --desc says. Nothing comes last either way.
func (c *choice) order(a, b query.Answer) int {
	n := a.Compare(b)
	if c.desc && !a.Nothing() && !b.Nothing() {
		return -n
	}
	return n
}

// rest ends what g lists of p: with how much that leaves out, unless err says that the list
// was not ended either.
func (s *source) rest(err error, g *term.Grid, p part, one, many string) error {
	if err != nil || s.json {
		return err
	}
	g.Flush() // The headings, if there is nothing else.
	if p.open {
		s.Line("and more; --limit 0 prints all")
	} else {
		s.more(p.more, p.total, one, many)
	}
	return nil
}

// answersOf evaluates all of exprs for e.
func answersOf(exprs []*query.Expr, e ecs.Entity) (answers []query.Answer, err error) {
	answers = make([]query.Answer, len(exprs))
	for i, x := range exprs {
		if answers[i], err = x.Of(e); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// compileAll compiles texts, all of the argument called what.
func (s *source) compileAll(im state, what string, texts []string, w query.Want) (exprs []*query.Expr, err error) {
	for _, text := range texts {
		x, err := s.compile(im, what, text, w)
		if err != nil {
			return nil, err
		}
		exprs = append(exprs, x)
	}
	return exprs, nil
}

// compile compiles text, which the argument called what holds, for the components of
// im.
func (s *source) compile(im state, what, text string, w query.Want) (*query.Expr, error) {
	x, err := query.Compile(im.Image, what, text, w)
	if err != nil {
		return nil, &failure{code: exitUsage, err: pointedOut(err), next: try("schema", s.path)}
	}
	return x, nil
}
