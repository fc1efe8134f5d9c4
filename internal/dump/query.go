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

// The command query prints a table of expressions, in one of two modes. In both modes, filters
// select entities, see selection.go.
//
//   - Without totals, each selected entity has a row. Columns are computed only for the entities
//     that --offset and --limit select. If --sort names a column, its expression is also the key.
//   - With totals, each selected entity is added to its group, and each group has a row. The flag
//     --sort orders the groups.

// queryDoc is what query --json prints.
type queryDoc struct {
	stateDoc
	// Number of entities that pass the filters, or number of groups.
	Total   int      `json:"total"`
	Columns []string `json:"columns"` // Names of the columns, in order.
	// Columns with an approximate total: a percentile, or a count of distinct values.
	Near []string   `json:"near,omitempty"`
	Rows []cellsDoc `json:"rows"` // At most --limit.
}

// A cellsDoc is a row of a query: an object with a member for each column, in order. The name of a
// member is the expression, or NAME for "EXPR as NAME". The value is a number, a boolean or a
// string. An entity is a string, and a missing value is null. Components and lists have the form of
// values of a world.
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
	doc: `Print expressions for the entities that match a condition

Print a table of expressions, with a row for each entity for which EXPR is true, or
totals over these entities. --sort takes expressions and the names of columns, as in
--select 'Health * 2 as twice' --sort twice. With totals, it takes only such names.

The percentile p95(Health) is the least value for which at least 95 percent of all
values are not greater. Percentiles are exact if all groups together have at most
262,144 different values, and approximate to half a percent otherwise. distinct(EXPR)
counts exactly up to 65,536 different values per group, and approximates to about one
percent otherwise. The output says which columns are approximate.

To list more than 16,384 entities of a save, query reads the save again for every
524,288 values. Sorting them by a number takes 24 bytes of memory for each entity.

` + expressionHelp,
	example: `  ecsdump query D 'Health < 10' --select 'entity, Position.X, Health * 2 as twice'
  ecsdump query D --count --avg Health --group-by 'has(Frozen)'
  ecsdump query D --group-by Team --total 'p95(Health), distinct(Target.Of)' --sort 'p95(Health)' --desc`,
	run: func(f flags) action {
		var q queryCmd
		f.expressions(&q.selected, "select", `columns, as EXPR or "EXPR as NAME" (default entity)`)
		q.flags(f)
		q.totalFlags(f)
		f.limit(&q.limit, "rows")
		return f.withState(func(s *source, st *inspect.State) error {
			q.where = s.args[1:]
			return s.query(st, &q)
		})
	},
}

// A queryCmd holds the flags of the command query: which columns to print for each entity, or which
// totals for each group.
type queryCmd struct {
	selection
	selected []string
	totals   []totalFlag // In the order of the command line.
	groupBy  []string

	printing bool  // True once output may have been printed.
	broke    error // The error that ended printing, or nil if printing succeeded.
}

// A field is a column that a query prints.
type field struct {
	name   string
	expr   *query.Swept
	number bool   // True if most values are numbers.
	total  string // The kind of total over expr, or "".
	near   bool   // True if the total is approximate.
}

// query prints q for st. Columns are evaluated for the printed entities only.
//
// After a read error, the caller calls query() again with the whole state in memory. Rows may have
// been printed already. Then query must not print them twice, so it only returns the error of the
// first call.
func (s *source) query(st *inspect.State, q *queryCmd) error {
	if q.printing {
		return q.broke
	}
	if len(q.totals) > 0 || len(q.groupBy) > 0 {
		return s.groups(st, q)
	}
	if len(q.selected) == 0 {
		q.selected = []string{"entity"}
	}
	columns := s.sweeper(st)
	// The sweeper of the filters reads all entities. So columns have their own sweeper, which reads
	// only the printed entities.
	fields, err := columns.fields("--select", q.selected)
	if err != nil {
		return err
	}
	filters := q.selection
	filters.sort = describe.Listed(q.sort, q.sortKey)
	c, err := filters.choice(s.sweeper(st), "query")
	if err != nil {
		return err
	}
	// Only the JSON document needs the exact total.
	p, err := c.part(s.json)
	if err != nil {
		return err
	}
	exprs := exprsOf(fields)
	var rows walk[[]query.Answer]
	if !st.Whole() && len(p.entities) > loadLimit {
		rows, err = columns.batches(exprs, p.entities)
	} else {
		rows, err = loadedWalk(st, p.entities, func(e ecs.Entity) ([]query.Answer, error) {
			return describe.TryListed(exprs, func(x *query.Swept) (query.Answer, error) { return x.LookUp(e) })
		})
	}
	if err != nil {
		return err
	}
	q.printing = true
	q.broke = s.records(outline(st), fields, p, "entity", "entities", rows)
	return q.broke
}

// sortKey returns the expression of the column that text names, or text if it names no column.
func (q *queryCmd) sortKey(text string) string {
	for _, selected := range q.selected {
		if expr, name := query.SplitName(selected); name == strings.TrimSpace(text) {
			return expr
		}
	}
	return text
}

// records prints the rows of a query, with a note for each approximate column. The texts one and
// many are the nouns for a row and for several rows.
func (s *source) records(im state, fields []field, p part, one, many string, rows walk[[]query.Answer]) error {
	names := namesOf(fields)
	records := mapped(rows, func(answers []query.Answer) (cellsDoc, error) { return cellsDoc{names, answers}, nil })
	g := s.Grid(describe.Listed(fields, field.heading)...)
	var about []string
	for _, f := range fields {
		if f.near {
			about = append(about, f.name)
			s.printNote("%s is approximate, because there are too many different values", f.name)
		}
	}
	err := list(s.app, queryDoc{im.doc(), p.total, names, about, []cellsDoc{}}, records, g, func(r cellsDoc) {
		row := make([]any, len(fields))
		for i, f := range fields {
			row[i] = f.expr.Text(f.total, r.answers[i])
		}
		g.Row(row...)
	})
	return s.printRest(err, g, p, one, many)
}

// heading returns the heading of column f for a grid.
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

// fields compiles texts, which are expressions with an optional "as NAME". In errors, the text what
// names the flag or argument of the expressions.
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
	return fields, checkDistinct(what, namesOf(fields))
}

// checkDistinct returns an error if two columns have the same name.
func checkDistinct(what string, names []string) error {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return fail(exitUsage, "", "%s: two columns are called %s; write \"… as NAME\"", what, name)
		}
	}
	return nil
}

// A totalFlag is a total on the command line, such as --count, --sum EXPR or --total "p95(EXPR)".
//
//	flag   the name of the flag, for errors
//	kind   count, sum, min, max, …
//	text   the expression
//	as     the NAME of "as NAME", or ""
type totalFlag struct{ flag, kind, text, as string }

// name returns the column name of t, in the syntax of an expression.
func (t totalFlag) name() string {
	switch {
	case t.as != "":
		return t.as
	case t.kind == "count" && t.text == "true":
		return "count"
	}
	return t.kind + "(" + t.text + ")"
}

// totalOf parses "KIND(EXPR)", optionally followed by "as NAME".
func totalOf(text string) (totalFlag, error) {
	total, name := query.SplitName(text)
	kind, expr, ok := query.SplitTotal(total)
	switch {
	// count without an expression counts all entities. The other totals need an expression.
	case !ok || expr == "" && kind != "count":
		return totalFlag{}, errTakes
	// SplitName returns the text itself if it has no "as NAME".
	case name == total:
		name = ""
	}
	return totalFlag{"total", kind, cmp.Or(expr, "true"), name}, nil
}

// totalFlags declares the flags for totals. They share one list, so the columns have the order of
// the command line.
func (q *queryCmd) totalFlags(f flags) {
	f.BoolFunc("count", "count the entities", func(text string) error {
		count, err := strconv.ParseBool(text)
		if count {
			q.totals = append(q.totals, totalFlag{flag: "count", kind: "count", text: "true"})
		}
		return err
	})
	for _, t := range []struct{ kind, help string }{
		{"sum", "the sum of this expression"},
		{"min", "the least value of this expression"},
		{"max", "the greatest value of this expression"},
		{"avg", "the mean of this expression"},
	} {
		f.Func(t.kind, t.help+"; entities without a value are ignored", func(text string) error {
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
	}}, "total", "totals: sum, min, max, avg, count, distinct(EXPR), and percentiles, as in p95(EXPR)")
	f.expressions(&q.groupBy, "group-by", "a row of totals for each value of this expression, or combination of values of several")
}

// A group is the set of entities with equal values of the --group-by expressions.
type group struct {
	keys   []query.Answer
	totals []*query.Total
}

// A grouping has the groups of a query. For each entity, groupOf finds the group, and add adds the
// values of the entity to the totals of the group.
//
// Several goroutines evaluate the entities. One goroutine adds the results in index order, so
// floating-point sums are reproducible.
type grouping struct {
	by     []field // The --group-by columns; if empty, one group has all entities.
	totals []field
	nought func() []*query.Total // Returns the totals of an empty group.
	sort   []int                 // Indices of the sort columns.
	groups []*group              // Groups in order of discovery.
	byName map[string]*group
	// The groups with one plain key, by this key, see [query.Answer.Plain]. A look-up here is
	// faster than in byName.
	byKey map[query.Answer]*group
}

// maxGroups is the largest number of groups, which are all in memory.
const maxGroups = 1 << 20

// groups prints the totals of the groups that --offset and --limit select. Without these flags, it
// prints all groups.
func (s *source) groups(st *inspect.State, q *queryCmd) error {
	switch {
	case len(q.selected) > 0:
		return fail(exitUsage, "", "--select prints entities, so it cannot be used with totals")
	case len(q.totals) == 0:
		q.totals = []totalFlag{{kind: "count", text: "true"}}
	}
	w := s.sweeper(st)
	g, err := w.grouping(q)
	if err != nil {
		return err
	}
	// --sort orders the groups, not the entities. So remove it from the selection of entities.
	filters := q.selection
	filters.sort, filters.desc = nil, filters.desc && len(q.sort) == 0
	c, err := filters.choice(w, "query")
	if err != nil {
		return err
	}
	if err := c.group(g); err != nil {
		return err
	}
	return g.print(s, outline(st), q)
}

// grouping compiles the keys and totals of q.
func (w *sweeper) grouping(q *queryCmd) (g *grouping, err error) {
	g = &grouping{byName: map[string]*group{}, byKey: map[query.Answer]*group{}}
	if g.by, err = w.fields("--group-by", q.groupBy); err != nil {
		return nil, err
	}
	var kinds []string
	for _, t := range q.totals {
		x, err := w.compile("--"+t.flag, t.text, query.WantOf(t.kind))
		if err != nil {
			return nil, err
		}
		if slices.Contains(namesOf(g.totals), t.name()) {
			return nil, fail(exitUsage, "", "%s is given twice", t.name())
		}
		g.totals, kinds = append(g.totals, field{name: t.name(), expr: x, number: true, total: t.kind}), append(kinds, t.kind)
	}
	g.nought = query.NewTotals(kinds...)
	if g.sort, err = sortOf(q.sort, namesOf(g.fields())); err != nil {
		return nil, err
	}
	// Without --group-by, one group holds all entities.
	if len(g.by) == 0 {
		// This group exists even if no entity passes the filters.
		_, err = g.groupOf(nil)
	}
	return g, cmp.Or(err, checkDistinct("--group-by", namesOf(g.fields())))
}

// sortOf returns the indices of the columns that --sort names.
func sortOf(sort, columns []string) (numbers []int, err error) {
	for _, text := range sort {
		n := slices.Index(columns, strings.TrimSpace(text))
		if n < 0 {
			return nil, fail(exitUsage, "", "--sort: %q is not one of the columns %s%s",
				text, strings.Join(columns, ", "), near.Hint(text, columns))
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// fields returns the columns: the keys, then the totals.
func (g *grouping) fields() []field { return slices.Concat(g.by, g.totals) }

// A groupedEntity is an entity with the values of its key and total columns.
type groupedEntity struct {
	e ecs.Entity
	// The values of the --group-by expressions, then the values to sum or count.
	answers []query.Answer
}

// group adds all entities that pass the filters to the groups of g.
func (c *choice) group(g *grouping) error {
	exprs := exprsOf(g.fields())
	return query.Sweep(c.ctx, &c.Sweeper, func(at query.SweptEntity, found *[]groupedEntity) error {
		ok, err := c.Holds(at)
		if !ok || err != nil {
			return err
		}
		// This is the first selected entity of the span. Allocate for all entities of the span.
		if *found == nil {
			*found = make([]groupedEntity, 0, len(at.Entities))
		}
		answers, err := describe.TryListed(exprs, func(x *query.Swept) (query.Answer, error) { return x.At(at) })
		if err == nil {
			*found = append(*found, groupedEntity{at.Entity(), answers})
		}
		return err
	}, func(found []groupedEntity, _ int) error {
		for _, f := range found {
			if err := g.add(f.e, f.answers); err != nil {
				return err
			}
		}
		return nil
	})
}

// add adds the values of entity e to its group. The second argument has the keys, and then the
// values for the totals.
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

// groupOf returns the group of keys, and creates it if necessary. It finds a single plain key in
// byKey, if the key was seen before. All other keys are looked up by their text. For example, the
// int 1 and the float 1 have the same text, so they have the same group.
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

// groupNamed returns the group with these keys, and creates it if necessary. It compares keys by
// their text.
func (g *grouping) groupNamed(keys []query.Answer) (*group, error) {
	// Quote each key, so that keys with blanks stay distinct.
	name := fmt.Sprintf("%q", describe.Listed(keys, query.Answer.Key))
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

// print prints the groups within --offset and --limit, ordered by --sort and then by their keys.
func (g *grouping) print(s *source, im state, q *queryCmd) error {
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
		// A column is approximate if it is approximate in any group.
		g.totals[i].near = slices.ContainsFunc(g.groups, func(n *group) bool { return n.totals[i].Near() })
	}
	first, end := q.of(len(rows))
	return s.records(im, g.fields(), part{total: len(rows), more: len(rows) - end}, "group", "groups", each(end-first, func(i int) ([]query.Answer, error) {
		return rows[first+i], nil
	}))
}
