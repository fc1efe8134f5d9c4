package dump

import (
	"cmp"
	"math"

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
//
//	offset, limit, no filter   Skip: whole spans before the offset are passed unread
//	filters                    entities are asked span by span, until the limit is full
//	--sort                     all are asked, sorted, and then cut
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
	with, without []int          // Components, by their numbers in the sweep.
	where, sort   []*query.Swept // None: everything; by index.
}

// choice finds the components that l names and compiles its expressions, of which
// what is called whereName holds the condition. Whatever can be said wrong of the flags is said
// here, before an entity is asked.
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

// holds reports whether the filters leave entity i of a span. What is cheap comes first: whether an
// entity has a component is one look at a row number, an expression is evaluated.
func (c *choice) holds(at query.SweptEntity) (bool, error) {
	for _, n := range c.with {
		if !at.Has(n) {
			return false, nil
		}
	}
	for _, n := range c.without {
		if at.Has(n) {
			return false, nil
		}
	}
	for _, x := range c.where {
		if holds, err := x.HoldsAt(at); err != nil || !holds {
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
//
//	n             place of an entity among those that the filters leave, from 0
//	n < from      left out
//	from … end    printed
//	n ≥ end       counted, if the total is wanted; else the first of them ends the search
//
// The first entity behind the end tells that there are more. Whether they are counted depends: if
// the total is known without asking, it is told; if asking would take evaluating a condition on
// each and nobody said counted, the part stays open; else they are counted, which takes no more
// than row numbers.
func (c *choice) part(counted bool) (p part, err error) {
	if len(c.sort) > 0 {
		return c.sorted()
	}
	if c.isAll() {
		// What is skipped is counted, so that n goes on from there.
		if c.Begin, p.total, err = c.State.Skip(c.ctx, int(min(c.from, uint(c.State.Outline().Alive)))); err != nil {
			return part{}, err
		}
	}
	end := uint64(c.from) + uint64(c.limit) // With 64 bits there is no sum too large on machines that have 32.
	err = c.all(func(e ecs.Entity) error {
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
// those with one component, each of whose rows is somebody's. A component whose rows do not rewind
// may have some of dead entities, and one that is indexed has gaps, so the number of their rows
// says nothing.
func (c *choice) known() (total int, known bool) {
	if len(c.without)+len(c.where)+len(c.sort) > 0 || len(c.with) > 1 {
		return 0, false
	}
	if len(c.with) == 0 {
		return c.State.Outline().Alive, true
	}
	of := c.Component(c.with[0])
	return of.Len(), of.Rewinds && !of.Indexed && !of.Resource
}

// all walks over the entities that the filters leave, by index: as they lie, they are in
// another order whenever one was destroyed. Spans are asked by several goroutines, what they find
// is visited by one, in order.
func (c *choice) all(visit func(ecs.Entity) error) error {
	return query.Sweep(c.ctx, &c.Sweeper, func(at query.SweptEntity, found *[]ecs.Entity) error {
		ok, err := c.holds(at)
		if ok && err == nil {
			*found = append(*found, at.Entity())
		}
		return err
	}, func(found []ecs.Entity, _ int) error {
		for _, e := range found {
			if err := visit(e); err != nil {
				return err
			}
		}
		return nil
	})
}

// sorted is part in the order of --sort, and by index where keys are equal. All entities are asked, as an
// order is not known before the last one. With a limit, keys are kept for as many as are printed and for
// those before them; without one, for all.
func (c *choice) sorted() (p part, err error) {
	limit := 0
	if end := uint64(c.from) + uint64(c.limit); c.limit > 0 && end < math.MaxInt32 {
		limit = int(end)
	}
	best := &query.Best{Desc: c.desc, Limit: limit}
	err = query.Sweep(c.ctx, &c.Sweeper, func(at query.SweptEntity, found **query.Best) error {
		ok, err := c.holds(at)
		if !ok || err != nil {
			return err
		}
		keys, err := query.Answers(c.sort, func(x *query.Swept) (query.Answer, error) { return x.At(at) })
		if err != nil {
			return err
		}
		if *found == nil {
			*found = best.Part()
		}
		(*found).Add(at.Entity(), keys...)
		return nil
	}, func(found *query.Best, _ int) error {
		if found != nil {
			best.Join(found)
		}
		return nil
	})
	if err != nil {
		return part{}, err
	}
	from, place := int(min(c.from, math.MaxInt32)), 0
	p.total = best.Total
	p.entities = make([]ecs.Entity, 0, max(0, min(best.Total-from, int(min(cmp.Or(c.limit, math.MaxInt32), math.MaxInt32)))))
	for r := range best.Sorted() {
		if place++; place <= from {
			continue
		}
		if len(p.entities) == cap(p.entities) {
			break
		}
		p.entities = append(p.entities, r.Entity())
	}
	p.more = max(0, p.total-from-len(p.entities))
	return p, nil
}

// order compares two keys as --desc says. Nothing comes last either way. So --desc turns the order
// of values, not that of who has one.
func (l *selection) order(a, b query.Answer) int {
	n := a.Compare(b)
	if l.desc && !a.Nothing() && !b.Nothing() {
		return -n
	}
	return n
}

// rest prints what comes behind a list of p for people: how much its limit left out, or that there
// is more without a number if p is open. g is the table of the list, whose rows and headings come
// first. If err is not nil the list broke off, and nothing more is printed. JSON says all this by
// its members.
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
	return x, s.uncompiled(err)
}

// uncompiled returns why an expression does not compile, if err is not nil. What helps is to know
// which components and fields there are.
func (s *source) uncompiled(err error) error {
	if err == nil {
		return nil
	}
	return &failure{code: exitUsage, err: pointedOut(err), next: try("schema", s.path)}
}
