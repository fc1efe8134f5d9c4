package dump

import (
	"math"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/internal/term"
)

// expressionHelp is the help text about expressions.
const expressionHelp = `An expression names components and their fields: Position.X > 3 && Health < 10.
A tag is true or false, and has(C) is true if the entity has component C. An expression
that needs a component that the entity lacks has the value nothing. A condition with
nothing is false. To include entities without Health, write not (Health > 3), or
(Health ?? 0) > 3.

  entity, index, generation    of the entity; an entity is text: Target.Of == "12v3"
  tick, alive                  the tick of the state; how many entities are alive in it
  exists(Target.Of)            whether the entity in this field is alive
  Target.Of.Health < 0         Health of the entity in a field; nothing if that entity
                               is dead or lacks Health
  State == "Idle"              a number with a name; JSON and CSV have the number
  Wait > "1.5s"                a time.Duration; duration("1.5s") is nanoseconds
  component("a-b"), score      a component of any name; a resource
  ==  !=  <  <=  >  >=  in  contains  startsWith  endsWith  matches
  and  or  not  +  -  *  /  %  **  ??  ?:  len()  abs()  lower()  any(Bag.Items, .N > 1)

The syntax is that of expr-lang.org.`

// A selection has the flags that select and order entities, as text. A [choice] is a selection that
// is compiled for a state. A [part] has the entities that are printed: those within --offset and
// --limit.
//
// The flags determine which entities are read:
//
//	only --offset and --limit   reading begins near the offset
//	filters                     all entities are read until enough are found
//	--sort                      all entities are read and sorted
type selection struct {
	with, without []string
	where         []string // All of these conditions must hold.
	sort          []string // Sort keys, the most significant first.
	desc          bool
	window
}

// flags declares the flags of a selection.
func (l *selection) flags(f flags) {
	f.StringSliceVar(&l.with, "with", nil, "only entities that have all of these components (comma-separated, or repeat the flag)")
	f.StringSliceVar(&l.without, "without", nil, "only entities that have none of these components")
	f.expressions(&l.sort, "sort", "sort by these expressions; entities without a value come last (default by index)")
	f.BoolVar(&l.desc, "desc", false, "sort in descending order")
	f.number(&l.from, "offset", "", 0, "skip this many at the start of the list")
}

// A choice is a selection that is compiled for a state.
type choice struct {
	*selection
	*sweeper
	query.Filter
	sort []*query.Swept // Empty if the entities are ordered by index.
}

// choice compiles l for a state. All errors about flags occur here. In errors, whereName names the
// argument that has the condition.
func (l *selection) choice(w *sweeper, whereName string) (c *choice, err error) {
	c = &choice{selection: l, sweeper: w}
	if l.desc && len(l.sort) == 0 {
		return nil, fail(exitUsage, "", "--desc needs --sort EXPR")
	}
	if c.With, err = c.present(l.with); err != nil {
		return nil, err
	}
	if c.Without, err = c.present(l.without); err != nil {
		return nil, err
	}
	if c.Where, err = c.compileAll(whereName, l.where, query.WantCondition); err != nil {
		return nil, err
	}
	c.sort, err = c.compileAll("--sort", l.sort, query.WantValue)
	return c, err
}

// A part has the entities to print. The fields more and total count the selected entities.
type part struct {
	entities []ecs.Entity
	more     int // Number of selected entities after the printed ones.
	total    int // Number of entities that pass the filters.
	open     bool
}

// part returns the selected entities within offset and limit. If the argument counted is true, it
// also returns the total.
//
// When part has found the first entity after the limit, it has three ways to go on:
//
//   - The total is known without reading. Then part returns it.
//   - The argument counted is false, and there are conditions, which are slow. Then part stops, and
//     sets p.open: more entities follow, but their number is unknown.
//   - Otherwise part reads the remaining entities and counts those that are selected.
func (c *choice) part(counted bool) (p part, err error) {
	if len(c.sort) > 0 {
		return c.sorted()
	}
	if c.isAll() {
		// Begin the sweep near the offset. The total must include the skipped entities.
		if c.Begin, p.total, err = c.State.Skip(c.ctx, int(min(c.from, uint(c.State.Outline().Living)))); err != nil {
			return part{}, err
		}
	}
	// A sum of 32 bits could overflow.
	end := uint64(c.from) + uint64(c.limit)
	err = c.all(func(e ecs.Entity) error {
		n := uint64(p.total)
		p.total++
		switch {
		case c.limit > 0 && n >= end:
			p.more++
			if total, known := c.knownTotal(); known {
				p.total, p.more = total, total-int(end)
				return errEnough
			}
			if p.open = !counted && len(c.Where) > 0; p.open {
				return errEnough
			}
		case n >= uint64(c.from):
			p.entities = append(p.entities, e)
		}
		return nil
	})
	return p, ignoreEnough(err)
}

// isAll reports whether c selects all entities by index.
func (c *choice) isAll() bool { return len(c.With)+len(c.Without)+len(c.Where)+len(c.sort) == 0 }

// knownTotal returns the number of selected entities if it is known without reading rows. It is
// known in two cases:
//
//   - The selection has no filters. The total is the number of living entities.
//   - The only filter is --with one component. The total is the number of its rows. In some
//     storages, a row may be a gap or belong to a dead entity, so their totals are unknown.
func (c *choice) knownTotal() (total int, known bool) {
	if len(c.Without)+len(c.Where)+len(c.sort) > 0 || len(c.With) > 1 {
		return 0, false
	}
	if len(c.With) == 0 {
		return c.State.Outline().Living, true
	}
	of := c.Component(c.With[0])
	return of.Len(), of.Rewinds && !of.Indexed && !of.Resource
}

// all visits the selected entities in index order. Several goroutines evaluate them, and one
// goroutine visits the results.
func (c *choice) all(visit func(ecs.Entity) error) error {
	return query.Sweep(c.ctx, &c.Sweeper, func(at query.SweptEntity, found *[]ecs.Entity) error {
		ok, err := c.Holds(at)
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

// sorted returns the entities to print, in the order of --sort. Entities with equal keys are in
// index order. With a limit, only the keys of the first offset + limit entities are in memory.
func (c *choice) sorted() (p part, err error) {
	limit := 0
	if end := uint64(c.from) + uint64(c.limit); c.limit > 0 && end < math.MaxInt32 {
		limit = int(end)
	}
	best := &query.Best{Desc: c.desc, Limit: limit}
	err = query.Sweep(c.ctx, &c.Sweeper, func(at query.SweptEntity, found **query.Best) error {
		ok, err := c.Holds(at)
		if !ok || err != nil {
			return err
		}
		keys, err := describe.TryListed(c.sort, func(x *query.Swept) (query.Answer, error) { return x.At(at) })
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
	first, end := c.of(best.Total)
	p = part{total: best.Total, more: best.Total - end, entities: make([]ecs.Entity, 0, end-first)}
	place := 0
	for r := range best.Sorted() {
		if place == end {
			break
		}
		if place >= first {
			p.entities = append(p.entities, r.Entity())
		}
		place++
	}
	return p, nil
}

// order compares two sort keys in the direction of --desc. A missing value is last in both
// directions.
func (l *selection) order(a, b query.Answer) int {
	n := a.Compare(b)
	if l.desc && !a.Nothing() && !b.Nothing() {
		return -n
	}
	return n
}

// printRest prints the end of the table g, and then how many entities the limit left out. With an
// error, or with --json, it only returns err.
func (s *source) printRest(err error, g *term.Grid, p part, one, many string) error {
	if err != nil || s.json {
		return err
	}
	// Flush prints the buffered rows. If there are none, it prints the headings.
	g.Flush()
	if p.open {
		s.printMoreUnknown(many)
	} else {
		s.printMore(p.more, p.total, one, many)
	}
	return nil
}

// compile compiles an expression for the components of im. In errors, the text what names the
// argument of the command that has the expression.
func (s *source) compile(im state, what, text string, w query.Want) (*query.Expr, error) {
	x, err := query.Compile(im.Image, what, text, w)
	return x, s.uncompiled(err)
}

// uncompiled returns err as a failure that suggests the command schema.
func (s *source) uncompiled(err error) error {
	if err == nil {
		return nil
	}
	return &failure{code: exitUsage, err: withMark(err), next: describe.Command("schema", s.path)}
}
