package dump

import (
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/inspect"
)

// lsDoc is what ls --json prints.
type lsDoc struct {
	stateDoc
	Total    int         `json:"total"`    // Entities that the filters leave.
	Entities []entityDoc `json:"entities"` // By index or --sort; as many as --limit allows.
}

// An entityDoc is an entity with its components.
type entityDoc struct {
	Entity     string     `json:"entity"`
	Components []valueDoc `json:"components"`
}

var lsCommand = command{
	use: "ls STORE",
	doc: `List entities with their components

List the entities that are alive, with their components.

--where takes a condition on each entity, --sort an expression.

` + expressionHelp,
	example: `  ecsdump ls D --with Position,Name --limit 20
  ecsdump ls D --where 'Position.X > 3 && Label.Text contains "orc"' --sort Health --desc
  ecsdump ls D --where 'has(Target) && !exists(Target.Of)' --at @latest~10`,
	run: func(f flags) action {
		var at string
		var l selection
		l.flags(f)
		f.condition(&l.where, "where", "only entities for which this expression is true (and the others, if it is given again)")
		f.point(&at)
		f.limit(&l.limit, 20, "entities")
		return reading(func(s *source) error {
			if done, err := s.lsQuickly(at, &l); done || err != nil {
				return err
			}
			im, err := s.state(at)
			if err != nil {
				return err
			}
			chosen, err := l.choice(s, im, "--where")
			if err != nil {
				return err
			}
			p, err := chosen.part(s.json)
			if err != nil {
				return err
			}
			return s.ls(im.doc(), p, func(e ecs.Entity) ([]valueDoc, error) { return valuesOf(im, e) })
		})
	},
}

// quickLimit is how many entities are looked up one by one instead of loading all.
const quickLimit = 1000

// lsQuickly lists the first entities of a state in a snapshot without loading it. It
// is done unless the state or the selection asks for more, or something is damaged: loading the
// state says then what is.
func (s *source) lsQuickly(at string, l *selection) (done bool, err error) {
	if !l.everything() || l.limit == 0 || uint64(l.from)+uint64(l.limit) > quickLimit {
		return false, nil
	}
	seq, err := s.Resolve(at)
	if err != nil {
		return false, err
	}
	r, err := s.Roster(s.ctx, seq, int(l.from), int(l.limit))
	if err != nil {
		return false, s.ctx.Err()
	}
	p := part{entities: r.Entities, total: r.Alive, more: max(0, r.Alive-int(l.from)-len(r.Entities))}
	return true, s.ls(stateDoc{r.Tick, seq}, p, func(e ecs.Entity) ([]valueDoc, error) {
		state, err := s.peek(e, seq)
		if err != nil {
			return nil, err
		}
		return peekedValues(state), nil
	})
}

// ls lists p, whose entities have these values.
func (s *source) ls(at stateDoc, p part, values func(ecs.Entity) ([]valueDoc, error)) error {
	entities := each(len(p.entities), func(i int) (entityDoc, error) {
		values, err := values(p.entities[i])
		return entityDoc{p.entities[i].String(), values}, err
	})
	g := s.Grid("ENTITY", "COMPONENTS")
	err := list(s.app, lsDoc{at, p.total, []entityDoc{}}, entities, g, func(e entityDoc) {
		g.Row(e.Entity, strings.Join(listed(e.Components, labelled), " "))
	})
	return s.rest(err, g, p, "entity", "entities")
}

// valuesOf returns the components of e.
func valuesOf(im state, e ecs.Entity) ([]valueDoc, error) {
	values := []valueDoc{}
	for _, c := range im.Components {
		row := c.Find(e)
		if row < 0 {
			continue
		}
		v, err := c.Value(row)
		if err != nil {
			return nil, err
		}
		values = append(values, valueDoc{c.Name, kind(c), row, v})
	}
	return values, nil
}

// peekedValues returns the components of an entity.
func peekedValues(state *inspect.EntityState) []valueDoc {
	values := []valueDoc{}
	for _, c := range state.Components {
		if c.Resource || c.Row < 0 {
			continue
		}
		values = append(values, valueDocOf(c))
	}
	return values
}
