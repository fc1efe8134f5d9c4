package dump

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/query"
)

// queryDoc is what query --json prints.
type queryDoc struct {
	stateDoc
	Total   int         `json:"total"`   // Rows there are: entities that the filters leave, or groups.
	Columns []string    `json:"columns"` // In order.
	Rows    []recordDoc `json:"rows"`    // As many as --limit allows.
}

// A recordDoc is a row of a query: an object with a member for each column, in their
// order. The member has the name that columns says, which is the text of the expression
// or what stands behind "as" in it. It is a number, a boolean, a string (entities too)
// or, of a component or a list, a value; what is nothing is null.
type recordDoc struct {
	columns []string
	answers []query.Answer
}

// MarshalJSON implements [json.Marshaler].
func (r recordDoc) MarshalJSON() ([]byte, error) {
	return query.Record(r.columns, r.answers), nil
}

var queryCommand = command{
	use: "query STORE [EXPR]",
	doc: `Print expressions for the entities of which EXPR is true

Print a table of expressions, with a row for each entity of which EXPR is true,
or totals over these entities.

` + expressionHelp,
	example: `  ecsdump query D 'Health < 10' --select 'entity, Position.X, Health * 2 as twice'
  ecsdump query D --count --avg Health --group-by 'has(Frozen)'`,
	run: func(f flags) action {
		var q querier
		f.StringVar(&q.selected, "select", "", `columns: expressions with commas between, each perhaps "… as NAME" (default entity)`)
		q.flags(f)
		q.totalFlags(f)
		f.limit(&q.limit, 0, "rows")
		return f.showing(func(c *call, s *source, im state) error {
			q.where = strings.Join(c.args[1:], "")
			return c.query(c.ctx, s, im, &q)
		})
	},
}

// A querier says what to print of a selection.
type querier struct {
	selection
	selected string
	totals   []totalFlag // In the order of the command line.
	groupBy  string
}

// A field is a column that a query prints.
type field struct {
	name   string
	expr   *query.Expr
	number bool // It has numbers, mostly.
}

// query prints q for im.
func (a *app) query(ctx context.Context, s *source, im state, q *querier) error {
	if len(q.totals) > 0 || q.groupBy != "" {
		return a.groups(ctx, s, im, q)
	}
	c, err := q.choice(s, im, "query")
	if err != nil {
		return err
	}
	fields, err := s.fields(im, q.selected)
	if err != nil {
		return err
	}
	p, err := c.part(ctx, a.json)
	if err != nil {
		return err
	}
	err = a.records(im, fields, p.total, each(len(p.entities), func(i int) ([]query.Answer, error) { return answersOf(fields, p.entities[i]) }))
	if err == nil && !a.json {
		a.rest(p, "entity", "entities")
	}
	return err
}

// records prints the rows of a query.
func (a *app) records(im state, fields []field, total int, rows iter.Seq2[[]query.Answer, error]) error {
	names := namesOf(fields)
	if a.json {
		return stream(a, queryDoc{im.doc(), total, names, []recordDoc{}}, mapped(rows, func(answers []query.Answer) (recordDoc, error) {
			return recordDoc{names, answers}, nil
		}))
	}
	headers := slices.Clone(names)
	for i, f := range fields {
		if f.number {
			headers[i] = ">" + headers[i]
		}
	}
	g := a.Grid(headers...)
	defer g.Flush()
	for answers, err := range rows {
		if err != nil {
			return err
		}
		g.Row(listed(answers, func(v query.Answer) any { return v })...)
	}
	return nil
}

func namesOf(fields []field) []string { return listed(fields, func(f field) string { return f.name }) }

// answersOf evaluates all fields for e.
func answersOf(fields []field, e ecs.Entity) (answers []query.Answer, err error) {
	answers = make([]query.Answer, len(fields))
	for i, f := range fields {
		if answers[i], err = f.expr.Of(e); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// fields compiles the columns that --select names.
func (s *source) fields(im state, selected string) ([]field, error) {
	if strings.TrimSpace(selected) == "" {
		selected = "entity"
	}
	var fields []field
	for _, text := range query.Split(selected) {
		text, name := query.SplitName(text)
		if text == "" {
			return nil, fail(exitUsage, "", "--select: an empty column in %q", selected)
		}
		if slices.Contains(namesOf(fields), name) {
			return nil, fail(exitUsage, "", "--select: two columns are called %s; write \"… as NAME\"", name)
		}
		x, err := s.compile(im, "--select", text, query.WantValue)
		if err != nil {
			return nil, err
		}
		fields = append(fields, field{name, x, x.Number})
	}
	return fields, nil
}

// A totalFlag is one of --count, --sum EXPR, --min EXPR, --max EXPR and --avg EXPR.
type totalFlag struct{ kind, text string }

// name returns what the column of t is called, as people would write it in an expression.
func (t totalFlag) name() string {
	if t.kind == "count" {
		return "count"
	}
	return t.kind + "(" + t.text + ")"
}

// totalFlags declares the flags that ask for totals.
func (q *querier) totalFlags(f flags) {
	f.BoolFunc("count", "count the entities", func(string) error {
		q.totals = append(q.totals, totalFlag{"count", "true"})
		return nil
	})
	for _, t := range []struct{ kind, help string }{
		{"sum", "sum up this expression"},
		{"min", "the least value of this expression"},
		{"max", "the greatest value of this expression"},
		{"avg", "the mean of this expression"},
	} {
		f.Func(t.kind, t.help+"; nothing does not count", func(text string) error {
			q.totals = append(q.totals, totalFlag{t.kind, text})
			return nil
		})
	}
	f.StringVar(&q.groupBy, "group-by", "", "a row of totals for each value of this expression")
}

// A group is the entities of which --group-by gives the same.
type group struct {
	key    query.Answer
	totals []*query.Total
}

// A grouping makes groups.
type grouping struct {
	by     *query.Expr // Nil: one group.
	totals []field
	kinds  []string
	groups []*group // In the order in which they were met.
	byName map[string]*group
}

// maxGroups bounds what a grouping keeps.
const maxGroups = 1 << 20

// groups prints totals.
func (a *app) groups(ctx context.Context, s *source, im state, q *querier) error {
	switch {
	case q.selected != "":
		return fail(exitUsage, "", "--select prints entities; it does not go with totals")
	case q.sort != "" || q.desc:
		return fail(exitUsage, "", "--sort orders entities; groups are in the order of --group-by")
	case len(q.totals) == 0:
		q.totals = []totalFlag{{"count", "true"}}
	}
	g, err := s.grouping(im, q)
	if err != nil {
		return err
	}
	c, err := q.choice(s, im, "query")
	if err != nil {
		return err
	}
	for e, err := range c.all(ctx) {
		if err == nil {
			err = g.add(e)
		}
		if err != nil {
			return err
		}
	}
	return g.print(a, im, q)
}

// grouping compiles what q asks for.
func (s *source) grouping(im state, q *querier) (*grouping, error) {
	g := &grouping{byName: map[string]*group{}}
	var err error
	if q.groupBy != "" {
		if g.by, err = s.compile(im, "--group-by", q.groupBy, query.WantValue); err != nil {
			return nil, err
		}
	}
	for _, t := range q.totals {
		x, err := s.compile(im, "--"+t.kind, t.text, query.WantOf(t.kind))
		if err != nil {
			return nil, err
		}
		if slices.Contains(namesOf(g.totals), t.name()) {
			return nil, fail(exitUsage, "", "%s is asked for twice", t.name())
		}
		g.totals, g.kinds = append(g.totals, field{t.name(), x, true}), append(g.kinds, t.kind)
	}
	if q.groupBy == "" {
		g.begin("", query.Answer{})
	}
	return g, nil
}

// begin adds a group.
func (g *grouping) begin(name string, key query.Answer) *group {
	n := &group{key: key}
	for _, kind := range g.kinds {
		n.totals = append(n.totals, query.NewTotal(kind))
	}
	g.groups, g.byName[name] = append(g.groups, n), n
	return n
}

// add counts e.
func (g *grouping) add(e ecs.Entity) error {
	of, err := g.groupOf(e)
	if err != nil {
		return err
	}
	for i, f := range g.totals {
		v, err := f.expr.Of(e)
		if err != nil {
			return err
		}
		if err := of.totals[i].Add(v); err != nil {
			return f.expr.Wrong(e, err)
		}
	}
	return nil
}

// groupOf returns the group of e.
func (g *grouping) groupOf(e ecs.Entity) (*group, error) {
	if g.by == nil {
		return g.groups[0], nil
	}
	key, err := g.by.Of(e)
	if err != nil {
		return nil, err
	}
	name := key.Key()
	switch {
	case g.byName[name] != nil:
		return g.byName[name], nil
	case len(g.groups) == maxGroups:
		return nil, fail(exitUsage, "", "--group-by makes more than %d groups", maxGroups)
	}
	return g.begin(name, key), nil
}

// print prints the groups that --offset and --limit leave.
func (g *grouping) print(a *app, im state, q *querier) error {
	slices.SortStableFunc(g.groups, func(a, b *group) int { return a.key.Compare(b.key) })
	fields := g.totals
	if g.by != nil {
		fields = append([]field{{q.groupBy, g.by, g.by.Number}}, fields...)
	}
	total := len(g.groups)
	first, end := q.of(total)
	err := a.records(im, fields, total, each(end-first, func(i int) (answers []query.Answer, err error) {
		n := g.groups[first+i]
		if g.by != nil {
			answers = append(answers, n.key)
		}
		for _, t := range n.totals {
			answers = append(answers, t.Result())
		}
		return answers, nil
	}))
	if err == nil && !a.json {
		a.rest(part{total: total, more: total - end}, "group", "groups")
	}
	return err
}
