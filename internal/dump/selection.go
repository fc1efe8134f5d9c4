package dump

import (
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/internal/term"
)

// expressionHelp is what the help of a command says of expressions.
const expressionHelp = `An expression names components and their fields: Position.X > 3 && Health < 10.
A tag is true or false; has(C) says whether the entity has component C. What needs
a component that the entity lacks is nothing, and a condition on nothing is false:
write not (Health > 3), or (Health ?? 0) > 3, to take in entities without Health.

  entity, index, generation    of the entity; an entity is text: Target.Of == "12v3"
  exists(Target.Of)            it is alive
  Target.Of.Health < 0         of the entity in a field; nothing if it is dead or has none
  State == "Idle"              a number that has this name; JSON and CSV have numbers
  Wait > "1.5s"                a time.Duration; duration("1.5s") is nanoseconds
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

// A choice is a selection for a state.
type choice struct {
	*selection
	*sweeper
	with, without []int        // Components, by their numbers in the sweep.
	where, sort   []*sweptExpr // None: everything; by index.
}

// choice finds the components that l names and compiles its expressions, of which
// what is called whereName holds the condition.
func (l *selection) choice(w *sweeper, whereName string) (c *choice, err error) {
	c = &choice{selection: l, sweeper: w}
	if l.desc && len(l.sort) == 0 {
		return nil, fail(exitUsage, "", "--desc needs --sort EXPR")
	}
	if c.with, err = c.present(l.with); err != nil {
		return nil, err
	}
	if c.without, err = c.present(l.without); err != nil {
		return nil, err
	}
	if c.where, err = c.compileAll(whereName, l.where, query.WantCondition); err != nil {
		return nil, err
	}
	c.sort, err = c.compileAll("--sort", l.sort, query.WantValue)
	return c, err
}

// holds reports whether the filters leave entity i of a span.
func (c *choice) holds(at sweptEntity) (bool, error) {
	for _, n := range c.with {
		if !at.Has(n, at.i) {
			return false, nil
		}
	}
	for _, n := range c.without {
		if at.Has(n, at.i) {
			return false, nil
		}
	}
	for _, x := range c.where {
		if holds, err := x.holds(at); err != nil || !holds {
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
	switch {
	case len(c.sort) > 0:
		entities, counted = c.sorted, true // All are asked before the first is known.
	case c.isAll():
		if c.begin, p.total, err = c.st.Skip(c.ctx, int(min(c.from, uint(c.st.Outline().Alive)))); err != nil {
			return part{}, err
		}
	}
	end := uint64(c.from) + uint64(c.limit) // With 64 bits there is no sum too large on machines that have 32.
	err = entities(func(e ecs.Entity) error {
		n := uint64(p.total)
		p.total++
		switch {
		case c.limit > 0 && n >= end:
			p.more++
			if total, known := c.known(); known {
				p.total, p.more = total, total-int(end)
				return errEnough
			}
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

// isAll reports whether the filters leave all, by index.
func (c *choice) isAll() bool { return len(c.with)+len(c.without)+len(c.where)+len(c.sort) == 0 }

// known returns how many entities the filters leave, if that takes asking none: by index, all, or
// those with one component, each of whose rows is somebody's.
func (c *choice) known() (total int, known bool) {
	if len(c.without)+len(c.where)+len(c.sort) > 0 || len(c.with) > 1 {
		return 0, false
	}
	if len(c.with) == 0 {
		return c.st.Outline().Alive, true
	}
	of := c.sweeper.components[c.with[0]]
	return of.Len(), of.Rewinds && !of.Indexed && !of.Resource
}

// all walks over the entities that the filters leave, by index: as they lie, they are in
// another order whenever one was destroyed.
func (c *choice) all(visit func(ecs.Entity) error) error {
	return sweep(c.sweeper, func(at sweptEntity, found *[]ecs.Entity) error {
		ok, err := c.holds(at)
		if ok && err == nil {
			*found = append(*found, at.entity())
		}
		return err
	}, func(found []ecs.Entity) error {
		for _, e := range found {
			if err := visit(e); err != nil {
				return err
			}
		}
		return nil
	})
}

// sorted is all in the order of --sort, and by index where that makes no difference.
func (c *choice) sorted(visit func(ecs.Entity) error) error {
	type keyed struct {
		e    ecs.Entity
		keys []query.Answer
	}
	var all []keyed
	err := sweep(c.sweeper, func(at sweptEntity, found *[]keyed) error {
		ok, err := c.holds(at)
		if !ok || err != nil {
			return err
		}
		keys, err := answersAt(c.sort, at)
		*found = append(*found, keyed{at.entity(), keys})
		return err
	}, func(found []keyed) error {
		all = append(all, found...)
		return nil
	})
	slices.SortStableFunc(all, func(a, b keyed) int { return slices.CompareFunc(a.keys, b.keys, c.order) })
	for i := 0; i < len(all) && err == nil; i++ {
		err = visit(all[i].e)
	}
	return err
}

// order compares two keys as --desc says. Nothing comes last either way.
func (l *selection) order(a, b query.Answer) int {
	n := a.Compare(b)
	if l.desc && !a.Nothing() && !b.Nothing() {
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
		s.moreUnknown(many)
	} else {
		s.more(p.more, p.total, one, many)
	}
	return nil
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
