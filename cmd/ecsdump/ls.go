package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
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
				if a.json {
					return a.lsJSON(im, p)
				}
				return a.ls(im, p)
			})
		},
	}
	l.flags(cmd)
	cmd.Flags().StringVar(&l.where, "where", "", "only entities for which this expression is true")
	at.flag(cmd)
	l.limit.flag(cmd, 20, "entities")
	return cmd
}

func (a *app) lsJSON(im state, p part) error {
	return stream(a, lsDoc{im.doc(), p.total, []entityDoc{}}, func(yield func(entityDoc, error) bool) {
		for _, e := range p.entities {
			values, err := valuesOf(im, e)
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

func (a *app) ls(im state, p part) error {
	g := a.grid("ENTITY", "COMPONENTS")
	for _, e := range p.entities {
		values, err := valuesOf(im, e)
		if err != nil {
			return err
		}
		texts := make([]string, len(values))
		for i, v := range values {
			texts[i] = labelled(v)
		}
		g.row(e, strings.Join(texts, " "))
	}
	if err := g.end(); err != nil {
		return err
	}
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
