package dump

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/persist/inspect"
)

// The command panel prints a table with a row for each entity at each sampled tick. Rows are
// printed as they are computed, so memory holds one state at a time. The expressions are evaluated
// only at the sampled states.

// panelDoc is what panel --json prints.
type panelDoc struct {
	States  int      `json:"states"`  // Number of states in the range.
	Columns []string `json:"columns"` // Names of the columns, in order.
	// Ordered by tick, then by index of the entity. Unreadable states have no rows.
	Rows []panelRowDoc `json:"rows"`
	More bool          `json:"more,omitempty"` // True if --limit left out rows at the end.
}

// A panelRowDoc has the values of the columns for an entity at a state.
type panelRowDoc struct {
	stateDoc
	Entity string   `json:"entity"`
	Values cellsDoc `json:"values"`
}

var panelCommand = command{
	use: "panel STORE EXPR … [A..B]",
	doc: `Print a table of expressions for each entity at each tick

Print a table with a row for each entity at each tick, and a column for each expression.
Statistics programs call such a table a panel, or long form. A row is left out if no
expression has a value. 'Component.*' stands for all fields of a component. The ticks
are those that lead from A to B, or all that lead to the state of --at. With --every N
they are A, A+N, A+2N, … and the last one. Expressions are about one entity, as in ls
and query. EXPR as NAME gives a column another name.

--format csv writes a table for other programs, with constants and durations as
numbers. --ndjson writes a line of JSON for each row.

` + expressionHelp,
	example: `  ecsdump panel D 'Position.*' 100..200
  ecsdump panel D Health.Current 100..200 --every 10 --where 'Team == 1'
  ecsdump panel D 'Position.X as x' 'Position.Y as y' --format csv > paths.csv`,
	complete: []completer{nil, (*completion).ranges},
	run: func(f flags) action {
		p := new(panel)
		f.condition(&p.where, "where", "only entities for which this expression is true; repeat the flag to add a condition")
		p.flags(f, "only the first tick, every Nth after it, and the last one", "table")
		f.limit(&p.limit, "rows")
		return func(c *call) error {
			if err := p.arguments(c); err != nil {
				return err
			}
			return c.read(c.args[0], p.print)
		}
	},
}

// A panel evaluates expressions for all entities, at the sampled states of a range. The expressions
// are compiled for the last state, which most likely has all components.
type panel struct {
	*route
	sampling
	limit limit
	where []string

	conditions []*query.Expr
	columns    []*query.Expr
	names      []string
	doc        panelDoc
}

// print prints the rows as they are computed. With a limit, it reports that more rows follow, but
// not their number.
func (p *panel) print(s *source) (err error) {
	if s.IsSave() {
		return s.noJournal(describe.Command("query", s.path, "--select", "entity"), "it has one state; use query")
	}
	if p.route, err = s.route(p.span, p.at); err != nil {
		return err
	}
	if err := p.compile(); err != nil {
		return err
	}
	if p.format == "csv" {
		err = writeValues(s.app, append([]string{"tick", "entity"}, p.names...), p.rows, func(r panelRowDoc) ([]string, []query.Answer) {
			return []string{strconv.FormatUint(r.Tick, 10), r.Entity}, r.Values.answers
		})
	} else {
		g := s.Grid(append([]string{">TICK", "ENTITY"}, p.headings()...)...)
		p.doc = panelDoc{len(p.states), p.names, []panelRowDoc{}, false}
		err = list(s.app, &p.doc, p.rows, g, func(r panelRowDoc) {
			row := []any{r.Tick, r.Entity}
			for i, x := range p.columns {
				row = append(row, x.Text("", r.Values.answers[i]))
			}
			g.Row(row...)
		})
		if err == nil && !s.json {
			g.Flush()
		}
	}
	switch {
	case err != nil || s.json || !p.doc.More:
	case p.format == "csv":
		s.printNote("more rows; --limit 0 prints all")
	default:
		s.printMoreUnknown("rows")
	}
	return cmp.Or(err, p.unread)
}

// compile compiles the conditions and columns for the last state, which most likely has all
// components.
func (p *panel) compile() (err error) {
	end := p.route.lastState()
	p.conditions, err = describe.TryListed(p.where, func(text string) (*query.Expr, error) {
		return p.source.compile(end, "--where", text, query.WantCondition)
	})
	if err != nil {
		return err
	}
	texts, err := p.expandFields(end)
	if err != nil {
		return err
	}
	for _, text := range texts {
		text, name := query.SplitName(text)
		x, err := p.source.compile(end, "panel", text, query.WantValue)
		if err != nil {
			return err
		}
		p.columns, p.names = append(p.columns, x), append(p.names, name)
	}
	return checkDistinct("panel", p.names)
}

// expandFields replaces each text "Name.*" by one text for each field of the component.
func (p *panel) expandFields(at state) (expanded []string, err error) {
	for _, text := range p.texts {
		name, all := strings.CutSuffix(text, ".*")
		if !all {
			expanded = append(expanded, text)
			continue
		}
		c, err := p.source.component(at, name)
		if err != nil {
			return nil, err
		}
		if len(c.Fields()) == 0 {
			return nil, fail(exitUsage, describe.Command("schema", p.path), "%s: %s has no fields; write %s", text, name, name)
		}
		for _, f := range c.Fields() {
			expanded = append(expanded, name+"."+f.Name)
		}
	}
	return expanded, nil
}

// headings returns the headings of the columns for a grid.
func (p *panel) headings() (headings []string) {
	for i, x := range p.columns {
		headings = append(headings, field{name: p.names[i], number: x.Number}.heading())
	}
	return headings
}

// rows visits the rows of the sampled states. It computes one row more than the limit, to learn
// whether more rows follow.
func (p *panel) rows(visit func(panelRowDoc) error) error {
	last, n := len(p.states)-1, 0
	return ignoreEnough(p.each(0, last, func(i int, im *inspect.Image, _ *inspect.Commit) error {
		if !p.states.sampled(i, p.every) {
			return nil
		}
		if err := p.bind(im); err != nil {
			return err
		}
		for _, e := range byIndex(state{im, p.states[i]}) {
			ok, err := holdAll(p.conditions, e)
			if err == nil && !ok {
				continue
			}
			row := panelRowDoc{describe.State(im.Tick, p.states[i]), e.String(), cellsDoc{p.names, nil}}
			if err == nil {
				row.Values.answers, err = describe.TryListed(p.columns, func(x *query.Expr) (query.Answer, error) { return x.Of(e) })
			}
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(row.Values.answers, func(a query.Answer) bool { return !a.Nothing() }) {
				continue
			}
			if p.doc.More = p.limit > 0 && n == int(p.limit); p.doc.More {
				return errEnough
			}
			if n++; n%1024 == 0 && p.ctx.Err() != nil {
				return p.ctx.Err()
			}
			if err := visit(row); err != nil {
				return err
			}
		}
		return nil
	}))
}

// bind binds all expressions to im. If the components of an expression changed, bind compiles it
// again, which can fail.
func (p *panel) bind(im *inspect.Image) error {
	for _, x := range slices.Concat(p.conditions, p.columns) {
		if err := x.Bind(im); err != nil {
			return err
		}
	}
	return nil
}

// holdAll reports whether all conditions hold for e. Without conditions it returns true.
func holdAll(where []*query.Expr, e ecs.Entity) (bool, error) {
	for _, x := range where {
		if ok, err := x.Holds(e); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}
