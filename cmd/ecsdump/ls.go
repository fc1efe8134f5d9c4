package main

import (
	"cmp"
	"slices"
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
	Entities []entityDoc `json:"entities"` // By index; as many as --limit allows.
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
	var l lister
	cmd := &cobra.Command{
		Use:   "ls STORE",
		Short: "List entities with their components",
		Args:  positional(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.read(cmd.Context(), args[0], func(s *source) error {
				im, err := s.state(cmd.Context(), l.at)
				if err != nil {
					return err
				}
				entities, err := l.choose(s, im)
				if err != nil {
					return err
				}
				if a.json {
					return a.lsJSON(im, entities, l.limit)
				}
				return a.ls(im, entities, l.limit)
			})
		},
	}
	cmd.Flags().StringSliceVar(&l.with, "with", nil, "only entities that have all of these components (a comma between, or the flag again)")
	cmd.Flags().StringSliceVar(&l.without, "without", nil, "only entities that have none of these components")
	l.at.flag(cmd)
	l.limit.flag(cmd, 20, "entities")
	return cmd
}

// A lister says which entities to list.
type lister struct {
	with, without []string
	at            point
	limit         limit
}

// choose returns the entities that the filters leave, by index.
func (l *lister) choose(s *source, im state) ([]ecs.Entity, error) {
	with, err := s.components(im, l.with)
	if err != nil {
		return nil, err
	}
	without, err := s.components(im, l.without)
	if err != nil {
		return nil, err
	}
	var chosen []ecs.Entity
	for _, e := range im.Registry[:im.Alive] {
		has := func(c *persist.Component) bool { return c.Find(e) >= 0 }
		hasNot := func(c *persist.Component) bool { return c.Find(e) < 0 }
		if !slices.ContainsFunc(with, hasNot) && !slices.ContainsFunc(without, has) {
			chosen = append(chosen, e)
		}
	}
	slices.SortFunc(chosen, func(a, b ecs.Entity) int { return cmp.Compare(a.Index(), b.Index()) })
	return chosen, nil
}

func (a *app) lsJSON(im state, entities []ecs.Entity, l limit) error {
	shown, _ := l.of(len(entities))
	doc := lsDoc{im.doc(), len(entities), []entityDoc{}}
	for _, e := range entities[:shown] {
		values, err := valuesOf(im, e)
		if err != nil {
			return err
		}
		doc.Entities = append(doc.Entities, entityDoc{e.String(), values})
	}
	return a.document(doc)
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

func (a *app) ls(im state, entities []ecs.Entity, l limit) error {
	shown, more := l.of(len(entities))
	g := a.grid("ENTITY", "COMPONENTS")
	for _, e := range entities[:shown] {
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
	if more > 0 {
		a.line("%d more of %s; --limit 0 prints all", more, count(len(entities), "entity", "entities"))
	}
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
