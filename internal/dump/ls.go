package dump

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist"
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

// A valueDoc is a component of an entity.
type valueDoc struct {
	Name  string       `json:"name"`
	Kind  string       `json:"kind"` // component or tag.
	Row   int          `json:"row"`  // In the dense and data arrays.
	Value layout.Value `json:"value"`
}

func newLs(a *app) *cobra.Command {
	var at point
	var l selection
	cmd := &cobra.Command{
		Use:   "ls STORE",
		Short: "List entities with their components",
		Long: `List the entities that are alive, with their components.

--where takes a condition on each entity, --sort an expression.

` + expressionHelp,
		Example: `  ecsdump ls D --with Position,Name --limit 20
  ecsdump ls D --where 'Position.X > 3 && Label.Text contains "orc"' --sort Health --desc
  ecsdump ls D --where 'has(Target) && !exists(Target.Of)' --at @latest~10`,
		Args: positional(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.read(cmd.Context(), args[0], func(s *source) error {
				if done, err := a.lsQuickly(cmd.Context(), s, at, &l); done || err != nil {
					return err
				}
				im, err := s.state(cmd.Context(), at)
				if err != nil {
					return err
				}
				c, err := l.choice(s, im, "--where")
				if err != nil {
					return err
				}
				p, err := c.part(cmd.Context(), a.json)
				if err != nil {
					return err
				}
				return a.ls(im.doc(), p, func(e ecs.Entity) ([]valueDoc, error) { return valuesOf(im, e) })
			})
		},
	}
	l.flags(cmd)
	cmd.Flags().StringVar(&l.where, "where", "", "only entities for which this expression is true")
	at.flag(cmd)
	l.limit.flag(cmd, 20, "entities")
	return cmd
}

// quickLimit is how many entities are looked up one by one instead of loading all.
const quickLimit = 1000

// lsQuickly lists the first entities of a state in a snapshot without loading it. It
// is done unless the state or the selection asks for more, or something is damaged.
func (a *app) lsQuickly(ctx context.Context, s *source, at point, l *selection) (done bool, err error) {
	if !l.everything() || l.limit == 0 || uint64(l.offset)+uint64(l.limit) > quickLimit {
		return false, nil
	}
	seq, err := s.Resolve(at.at)
	if err != nil {
		return false, err
	}
	r, err := s.Roster(ctx, seq, int(l.offset), int(l.limit))
	if err != nil {
		return false, ctx.Err()
	}
	p := part{entities: r.Entities, total: r.Alive, more: max(0, r.Alive-int(l.offset)-len(r.Entities))}
	return true, a.ls(stateDoc{r.Tick, seq}, p, func(e ecs.Entity) ([]valueDoc, error) {
		state, err := s.Peek(ctx, e, seq)
		if err != nil {
			return nil, err
		}
		return peekedValues(state), nil
	})
}

// peekedValues returns the components of an entity.
func peekedValues(state *persist.EntityState) []valueDoc {
	values := []valueDoc{}
	for _, c := range state.Components {
		if c.Resource || c.Row < 0 {
			continue
		}
		values = append(values, valueDoc{c.Name, rowKind(c.Value), c.Row, c.Value})
	}
	return values
}

// ls lists p, whose entities have these values.
func (a *app) ls(at stateDoc, p part, values func(ecs.Entity) ([]valueDoc, error)) error {
	if a.json {
		return a.lsJSON(at, p, values)
	}
	return a.lsTable(p, values)
}

func (a *app) lsJSON(at stateDoc, p part, values func(ecs.Entity) ([]valueDoc, error)) error {
	return stream(a, lsDoc{at, p.total, []entityDoc{}}, func(yield func(entityDoc, error) bool) {
		for _, e := range p.entities {
			values, err := values(e)
			if !yield(entityDoc{e.String(), values}, err) {
				return
			}
		}
	})
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

func (a *app) lsTable(p part, values func(ecs.Entity) ([]valueDoc, error)) error {
	g := a.Grid("ENTITY", "COMPONENTS")
	for _, e := range p.entities {
		values, err := values(e)
		if err != nil {
			return err
		}
		texts := make([]string, len(values))
		for i, v := range values {
			texts[i] = labelled(v)
		}
		g.Row(e, strings.Join(texts, " "))
	}
	g.Flush()
	a.rest(p, "entity", "entities")
	return nil
}

// labelled returns a component on one line: Position{X:1 Y:2}, Health=5, Frozen.
func labelled(v valueDoc) string {
	switch {
	case v.Kind == "tag":
		return v.Name
	case v.Value.Kind() == layout.Struct:
		return v.Name + v.Value.String()
	}
	return v.Name + "=" + v.Value.String()
}
