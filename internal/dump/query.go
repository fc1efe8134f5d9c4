package dump

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/near"
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Query prints a table from expressions, in one of two ways:
//
//	rows      selection ──▶ choice ──▶ part: the entities to print ──▶ their columns, looked up
//	totals    selection ──▶ choice ──▶ group: every entity is added to its group ──▶ groups, sorted
//
// In the first, columns are computed only for entities that are printed: looked up, or for very many in batches. In the second, all
// entities are asked and none is kept. Where totals are asked for, --sort is of the groups and the
// conditions are of the entities.

// queryDoc is what query --json prints.
type queryDoc struct {
	stateDoc
	Total   int        `json:"total"`          // Rows there are: entities that the filters leave, or groups.
	Columns []string   `json:"columns"`        // In order.
	Near    []string   `json:"near,omitempty"` // Percentiles and counts of distinct values that may be a little off.
	Rows    []cellsDoc `json:"rows"`           // As many as --limit allows.
}

// A cellsDoc is a row of a query: an object with a member for each column, in their
// order. The member has the name that columns says, which is the text of the expression
// or what stands behind "as" in it. It is a number, a boolean, a string (entities too)
// or, of a component or a list, a value; what is nothing is null.
type cellsDoc struct {
	columns []string
	answers []query.Answer
}

// MarshalJSON implements [json.Marshaler].
func (r cellsDoc) MarshalJSON() ([]byte, error) {
	return query.Record(r.columns, r.answers), nil
}

var queryCommand = command{
	use: "query STORE [EXPR]",
	doc: `Print expressions for the entities of which EXPR is true

Print a table of expressions, with a row for each entity of which EXPR is true,
or totals over these entities. With totals, --sort takes names of their columns.

A percentile, as in p95(Health), is the least value that is not below 95 percent of all.
It is exact up to 262,144 different values in all groups, and distinct(EXPR) up to 65,536
in each; of more they are near, within half a percent or about one, and that is said.

A list of more than 16,384 entities of a save is made in parts: the save is read again for every
524,288 values. Sorted by a number, it keeps 24 bytes for each entity.

` + expressionHelp,
	example: `  ecsdump query D 'Health < 10' --select 'entity, Position.X, Health * 2 as twice'
  ecsdump query D --count --avg Health --group-by 'has(Frozen)'
  ecsdump query D --group-by Team --total 'p95(Health), distinct(Target.Of)' --sort 'p95(Health)' --desc`,
	run: func(f flags) action {
		var q querier
		f.expressions(&q.selected, "select", `columns, each perhaps "… as NAME" (default entity)`)
		q.flags(f)
		q.totalFlags(f)
		f.limit(&q.limit, "rows")
		return f.showing(func(s *source, st *inspect.State) error {
			q.where = s.args[1:]
			return s.query(st, &q)
		})
	},
}

// A querier says what to print of a selection: a row for each entity, or totals over all of them
// or over groups. Either way the entities are asked one by one, and only what is printed is kept.
type querier struct {
	selection
	selected []string
	totals   []totalFlag // In the order of the command line.
	groupBy  []string

	printing bool  // Something may have been printed.
	broke    error // Why printing ended.
}

// A field is a column that a query prints. Of a panel only the name and whether it has numbers are
// set.
type field struct {
	name   string
	expr   *query.Swept
	number bool   // It has numbers, mostly.
	total  string // What it is the total of expr, or "".
	near   bool   // It may be a little off.
}

// query prints q for st. Two sweepers: the first asks all entities, what the second reads is looked
// up for those that are printed alone.
//
// Where a page cannot be read, it is called again with the whole state. By then nothing was printed: batches
// reads all pages before. If one could be read and cannot be read again, what was printed stands, and the error
// is told.
func (s *source) query(st *inspect.State, q *querier) error {
	if q.printing {
		return q.broke
	}
	if len(q.totals) > 0 || len(q.groupBy) > 0 {
		return s.groups(st, q)
	}
	c, err := q.choice(s.sweeper(st), "query")
	if err != nil {
		return err
	}
	if len(q.selected) == 0 {
		q.selected = []string{"entity"}
	}
	columns := s.sweeper(st)
	fields, err := columns.fields("--select", q.selected) // Of those chosen only.
	if err != nil {
		return err
	}
	// A document says how many there are in all; people are told only if that costs nothing.
	p, err := c.part(s.json)
	if err != nil {
		return err
	}
	exprs := exprsOf(fields)
	var rows walk[[]query.Answer]
	if !st.Whole() && len(p.entities) > keptLimit {
		rows, err = columns.batches(exprs, p.entities)
	} else {
		rows, err = kept(st, len(p.entities), func(i int) ([]query.Answer, error) {
			return query.Answers(exprs, func(x *query.Swept) (query.Answer, error) { return x.LookUp(p.entities[i]) })
		})
	}
	if err != nil {
		return err
	}
	q.printing = true
	q.broke = s.records(outline(st), fields, p, "entity", "entities", rows)
	return q.broke
}

// records prints the rows of a query: those of p, which are called one and many. Columns with
// totals that are near are named in the document, and told people beside the table.
func (s *source) records(im state, fields []field, p part, one, many string, rows walk[[]query.Answer]) error {
	names := namesOf(fields)
	records := mapped(rows, func(answers []query.Answer) (cellsDoc, error) { return cellsDoc{names, answers}, nil })
	g := s.Grid(describe.Listed(fields, field.heading)...)
	var about []string
	for _, f := range fields {
		if f.near {
			about = append(about, f.name)
			s.note("%s is near: there are more different values than are kept", f.name)
		}
	}
	err := list(s.app, queryDoc{im.doc(), p.total, names, about, []cellsDoc{}}, records, g, func(r cellsDoc) {
		row := make([]any, len(fields))
		for i, f := range fields {
			row[i] = f.expr.Text(f.total, r.answers[i])
		}
		g.Row(row...)
	})
	return s.rest(err, g, p, one, many)
}

// heading returns the name of f as that of a column.
func (f field) heading() string {
	if f.number {
		return ">" + f.name
	}
	return "<" + f.name
}

func namesOf(fields []field) []string {
	return describe.Listed(fields, func(f field) string { return f.name })
}

func exprsOf(fields []field) []*query.Swept {
	return describe.Listed(fields, func(f field) *query.Swept { return f.expr })
}

// fields compiles the columns that texts, the argument called what, name. A text is an expression,
// perhaps with "as NAME" behind it.
func (w *sweeper) fields(what string, texts []string) (fields []field, err error) {
	for _, text := range texts {
		text, name := query.SplitName(text)
		if text == "" {
			return nil, fail(exitUsage, "", "%s: an empty column in %q", what, strings.Join(texts, ","))
		}
		x, err := w.compile(what, text, query.WantValue)
		if err != nil {
			return nil, err
		}
		fields = append(fields, field{name: name, expr: x, number: x.Number})
	}
	return fields, distinct(what, fields)
}

// distinct returns an error if two of fields have the same name, by which rows are read. A program
// reads rows by names, so two would be one.
func distinct(what string, fields []field) error {
	names := namesOf(fields)
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return fail(exitUsage, "", "%s: two columns are called %s; write \"… as NAME\"", what, name)
		}
	}
	return nil
}

// A totalFlag is one of --count, --sum EXPR, --min EXPR, --max EXPR and --avg EXPR, or of the totals
// of --total. flag is the name that errors are told under, kind what is computed, text the
// expression, and as the name that somebody gave the column.
type totalFlag struct{ flag, kind, text, as string }

// name returns what the column of t is called, as people would write it in an expression.
func (t totalFlag) name() string {
	switch {
	case t.as != "":
		return t.as
	case t.kind == "count" && t.text == "true":
		return "count"
	}
	return t.kind + "(" + t.text + ")"
}

// totalOf reads "KIND(EXPR)", perhaps with "as NAME" behind it.
func totalOf(text string) (totalFlag, error) {
	total, name := query.SplitName(text)
	kind, expr, ok := query.SplitTotal(total)
	switch {
	// Only count may stand alone; it counts all.
	case !ok || expr == "" && kind != "count":
		return totalFlag{}, errTakes
	// SplitName returns the text as its own name where there is no "as".
	case name == total:
		name = ""
	}
	return totalFlag{"total", kind, cmp.Or(expr, "true"), name}, nil
}

// totalFlags declares the flags that ask for totals. Their order on the command line is that of the
// columns, so they all append to one list.
func (q *querier) totalFlags(f flags) {
	f.BoolFunc("count", "count the entities", func(text string) error {
		count, err := strconv.ParseBool(text)
		if count {
			q.totals = append(q.totals, totalFlag{flag: "count", kind: "count", text: "true"})
		}
		return err
	})
	for _, t := range []struct{ kind, help string }{
		{"sum", "sum up this expression"},
		{"min", "the least value of this expression"},
		{"max", "the greatest value of this expression"},
		{"avg", "the mean of this expression"},
	} {
		f.Func(t.kind, t.help+"; nothing does not count", func(text string) error {
			q.totals = append(q.totals, totalFlag{flag: t.kind, kind: t.kind, text: text})
			return nil
		})
	}
	f.Var(&value{kind: "totals", takes: "sum, min, max, avg, count, distinct or p0 to p100 of an expression, as in 'p95(Health), distinct(Team) as teams'", set: func(text string) error {
		for _, part := range query.Split(text) {
			t, err := totalOf(part)
			if err != nil {
				return err
			}
			q.totals = append(q.totals, t)
		}
		return nil
	}}, "total", "these totals: sum, min, max, avg, count, distinct(EXPR), and percentiles, as in p95(EXPR)")
	f.expressions(&q.groupBy, "group-by", "a row of totals for each value of this expression, or of these together")
}

// A group is the entities for which the expressions of --group-by give the same.
type group struct {
	keys   []query.Answer
	totals []*query.Total
}

// A grouping makes groups: each entity is added to that of its keys, which counts it, and is not
// kept. Entities are evaluated by several goroutines, span by span, and added by one, in the order
// of their indices: totals of floating point do not depend on how fast anybody was.
//
//	answers of an entity ──▶ groupOf: byKey, or byName ──▶ totals of the group
//
// byKey saves making a text for each entity where there is one plain key; several keys, or values,
// are compared by their text. Both lead to the same groups.
type grouping struct {
	by     []field // None: one group.
	keys   []*query.Swept
	totals []field
	kinds  []string
	nought func() []*query.Total // Of no entity.
	sort   []int                 // Columns, by which groups are ordered before their keys.
	groups []*group              // In the order in which they were met.
	byName map[string]*group
	byKey  map[query.Answer]*group // The same for a single key that is plain, which takes no text.
}

// maxGroups bounds what a grouping keeps: all of it, since the last entity may still belong
// to the first group.
const maxGroups = 1 << 20

// groups prints totals. --offset and --limit are of the groups as well, and are applied when they
// are printed.
func (s *source) groups(st *inspect.State, q *querier) error {
	switch {
	case len(q.selected) > 0:
		return fail(exitUsage, "", "--select prints entities; it does not go with totals")
	case len(q.totals) == 0:
		q.totals = []totalFlag{{kind: "count", text: "true"}}
	}
	w := s.sweeper(st)
	g, err := w.grouping(q)
	if err != nil {
		return err
	}
	filters := q.selection                                             // Of the entities: its conditions, without an order.
	filters.sort, filters.desc = nil, filters.desc && len(q.sort) == 0 // They are of the groups.
	c, err := filters.choice(w, "query")
	if err != nil {
		return err
	}
	if err := c.group(g); err != nil {
		return err
	}
	return g.print(s, outline(st), q)
}

// grouping compiles what q asks for.
func (w *sweeper) grouping(q *querier) (g *grouping, err error) {
	g = &grouping{byName: map[string]*group{}, byKey: map[query.Answer]*group{}}
	if g.by, err = w.fields("--group-by", q.groupBy); err != nil {
		return nil, err
	}
	g.keys = exprsOf(g.by)
	for _, t := range q.totals {
		x, err := w.compile("--"+t.flag, t.text, query.WantOf(t.kind))
		if err != nil {
			return nil, err
		}
		if slices.Contains(namesOf(g.totals), t.name()) {
			return nil, fail(exitUsage, "", "%s is asked for twice", t.name())
		}
		g.totals, g.kinds = append(g.totals, field{name: t.name(), expr: x, number: true, total: t.kind}), append(g.kinds, t.kind)
	}
	g.nought = query.NewTotals(g.kinds...)
	if g.sort, err = sortOf(q.sort, namesOf(g.fields())); err != nil {
		return nil, err
	}
	// Without --group-by there is one group of all.
	if len(g.by) == 0 {
		_, err = g.groupOf(nil) // It is there even if no entity is.
	}
	return g, cmp.Or(err, distinct("--group-by", g.fields()))
}

// sortOf returns which of the columns --sort names. Columns of groups have names, so a text is
// compared with these, and not compiled.
func sortOf(sort, columns []string) (numbers []int, err error) {
	for _, text := range sort {
		n := slices.Index(columns, strings.TrimSpace(text))
		if n < 0 {
			return nil, fail(exitUsage, "", "--sort: groups are sorted by their columns, which are %s: %q is none%s",
				strings.Join(columns, ", "), text, near.Hint(text, columns))
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// fields returns the columns: what groups have in common, then their totals.
func (g *grouping) fields() []field { return slices.Concat(g.by, g.totals) }

// A grouped is an entity with what its group and the totals of that are made of.
type grouped struct {
	e       ecs.Entity
	answers []query.Answer // What it is grouped by, then what is totaled.
}

// group makes the groups of all that the filters leave.
func (c *choice) group(g *grouping) error {
	exprs := exprsOf(g.fields())
	return query.Sweep(c.ctx, &c.Sweeper, func(at query.SweptEntity, found *[]grouped) error {
		ok, err := c.holds(at)
		if !ok || err != nil {
			return err
		}
		// Once for each span: room for all of its entities.
		if *found == nil {
			*found = make([]grouped, 0, len(at.Entities))
		}
		answers, err := query.Answers(exprs, func(x *query.Swept) (query.Answer, error) { return x.At(at) })
		if err == nil {
			*found = append(*found, grouped{at.Entity(), answers})
		}
		return err
	}, func(found []grouped, _ int) error {
		for _, f := range found {
			if err := g.add(f.e, f.answers); err != nil {
				return err
			}
		}
		return nil
	})
}

// add counts e, of which answers are the keys and then what is totaled. An error names the entity
// and the column that it is of.
func (g *grouping) add(e ecs.Entity, answers []query.Answer) error {
	of, err := g.groupOf(answers[:len(g.by)])
	if err != nil {
		return err
	}
	for i, v := range answers[len(g.by):] {
		if err := of.totals[i].Add(v); err != nil {
			return g.totals[i].expr.Wrong(e, err)
		}
	}
	return nil
}

// groupOf returns the group of those keys, a new one if none has them. Answers cannot be keys
// of a map: among them are lists and values, and numbers of several types that are the same.
func (g *grouping) groupOf(keys []query.Answer) (*group, error) {
	if len(keys) != 1 || !keys[0].Plain() {
		return g.groupNamed(keys)
	}
	of, err := g.byKey[keys[0]], error(nil)
	if of == nil {
		if of, err = g.groupNamed(keys); err == nil {
			g.byKey[keys[0]] = of
		}
	}
	return of, err
}

// groupNamed finds the group of those keys by what they are as text.
func (g *grouping) groupNamed(keys []query.Answer) (*group, error) {
	name := fmt.Sprintf("%q", describe.Listed(keys, query.Answer.Key)) // Quoted: two keys are not one with a blank.
	switch {
	case g.byName[name] != nil:
		return g.byName[name], nil
	case len(g.groups) == maxGroups:
		return nil, fail(exitUsage, "", "--group-by makes more than %d groups", maxGroups)
	}
	n := &group{keys, g.nought()}
	g.groups, g.byName[name] = append(g.groups, n), n
	return n, nil
}

// print prints the groups that --offset and --limit leave, in the order of --sort and then of
// their keys. Keys that are equal belong to one group, so the order is always the same.
func (g *grouping) print(s *source, im state, q *querier) error {
	rows := describe.Listed(g.groups, func(n *group) []query.Answer {
		return slices.Concat(n.keys, describe.Listed(n.totals, (*query.Total).Result))
	})
	slices.SortFunc(rows, func(a, b []query.Answer) int {
		for _, column := range g.sort {
			if c := q.order(a[column], b[column]); c != 0 {
				return c
			}
		}
		return slices.CompareFunc(a[:len(g.by)], b[:len(g.by)], query.Answer.Compare)
	})
	for i := range g.totals {
		// A column is near if it is so in any group.
		g.totals[i].near = slices.ContainsFunc(g.groups, func(n *group) bool { return n.totals[i].Near() })
	}
	first, end := q.of(len(rows))
	return s.records(im, g.fields(), part{total: len(rows), more: len(rows) - end}, "group", "groups", each(end-first, func(i int) ([]query.Answer, error) {
		return rows[first+i], nil
	}))
}
