package dump

import (
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/persist/inspect"
)

// lsDoc is what ls --json prints.
type lsDoc struct {
	stateDoc
	Total    int         `json:"total"`    // Number of entities that pass the filters.
	Entities []entityDoc `json:"entities"` // By index or --sort; at most --limit.
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

--where takes a condition on each entity, and --sort takes an expression. To list more
than 16,384 entities, ls loads the whole state; query lists their fields without
loading it.

` + expressionHelp,
	example: `  ecsdump ls D --with Position,Name --limit 20
  ecsdump ls D --where 'Position.X > 3 && Label.Text contains "orc"' --sort Health --desc
  ecsdump ls D --where 'has(Target) && !exists(Target.Of)' --at @latest~10`,
	run: func(f flags) action {
		var l selection
		l.flags(f)
		f.condition(&l.where, "where", "only entities for which this expression is true; repeat the flag to add a condition")
		f.limit(&l.limit, "entities")
		return f.withState(func(s *source, st *inspect.State) error {
			chosen, err := l.choice(s.sweeper(st), "--where")
			if err != nil {
				return err
			}
			p, err := chosen.part(s.json)
			if err != nil {
				return err
			}
			return s.ls(st, p)
		})
	},
}

// loadLimit is the largest number of items that are read page by page before printing. For more
// items, the whole state is loaded first, because reading must not fail in the middle of the
// output.
const loadLimit = 1 << 14

// loadedWalk returns a walk that visits the result of f for each entity. All pages are read before
// the walk begins, so damage cannot end the walk. There are three cases:
//
//   - If the state is in memory, the walk calls f for each entity.
//   - For at most loadLimit entities, loadedWalk calls f for all entities before it returns.
//   - For more entities, loadedWalk returns the error of [inspect.State.NeedWhole]. View.Read then
//     loads the state, and calls its function again.
func loadedWalk[T any](st *inspect.State, entities []ecs.Entity, f func(e ecs.Entity) (T, error)) (walk[T], error) {
	n := len(entities)
	if st.Whole() {
		return each(n, func(i int) (T, error) { return f(entities[i]) }), nil
	}
	if n > loadLimit {
		return nil, st.NeedWhole()
	}
	made, err := describe.TryListed(entities, f)
	return each(n, func(i int) (T, error) { return made[i], nil }), err
}

// ls lists the entities of p with the values of their components.
func (s *source) ls(st *inspect.State, p part) error {
	entities, err := loadedWalk(st, p.entities, func(e ecs.Entity) (entityDoc, error) {
		values, err := valuesOf(st, e)
		return entityDoc{e.String(), values}, err
	})
	if err != nil {
		return err
	}
	g := s.Grid("ENTITY", "<COMPONENTS")
	err = list(s.app, lsDoc{outline(st).doc(), p.total, []entityDoc{}}, entities, g, func(e entityDoc) {
		g.Row(e.Entity, strings.Join(describe.Listed(e.Components, func(v valueDoc) string { return describe.Labelled(v.Name, v.Value) }), " "))
	})
	return s.printRest(err, g, p, "entity", "entities")
}

// valuesOf returns the components of the living entity e.
func valuesOf(st *inspect.State, e ecs.Entity) ([]valueDoc, error) {
	values := []valueDoc{}
	for c, err := range describe.ComponentsOf(st, e) {
		if err != nil {
			return nil, err
		}
		values = append(values, valueDocOf(c))
	}
	return values, nil
}
