package dump

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/stet-ecs/stet/ecs"
)

// A totalFlag is one of --count, --sum EXPR, --min EXPR, --max EXPR and --avg EXPR.
type totalFlag struct{ kind, text string }

func (t totalFlag) name() string {
	if t.kind == "count" {
		return "count"
	}
	return t.kind + "(" + t.text + ")"
}

// totalFlags gives cmd the flags that ask for totals.
func (q *query) totalFlags(cmd *cobra.Command) {
	cmd.Flags().BoolFunc("count", "count the entities", func(string) error {
		q.totals = append(q.totals, totalFlag{"count", "true"})
		return nil
	})
	for _, f := range []struct{ kind, help string }{
		{"sum", "sum up this expression"},
		{"min", "the least value of this expression"},
		{"max", "the greatest value of this expression"},
		{"avg", "the mean of this expression"},
	} {
		cmd.Flags().Func(f.kind, f.help+"; nothing does not count", func(text string) error {
			q.totals = append(q.totals, totalFlag{f.kind, text})
			return nil
		})
	}
	cmd.Flags().StringVar(&q.groupBy, "group-by", "", "a row of totals for each value of this expression")
}

// A group is the entities of which --group-by gives the same.
type group struct {
	key    answer
	totals []*total
}

// A grouping makes groups.
type grouping struct {
	by     *expression // Nil: one group.
	totals []field
	kinds  []string
	groups []*group // In the order in which they were met.
	byName map[string]*group
}

// maxGroups bounds what a grouping keeps.
const maxGroups = 1 << 20

// groups prints totals.
func (a *app) groups(ctx context.Context, s *source, im state, q *query) error {
	switch {
	case q.selected != "":
		return &failure{exitUsage, errors.New("--select prints entities; it does not go with totals"), ""}
	case q.sort != "" || q.desc:
		return &failure{exitUsage, errors.New("--sort orders entities; groups are in the order of --group-by"), ""}
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
	err = c.each(ctx, func(e ecs.Entity) (bool, error) { return true, g.add(e) })
	if err != nil {
		return err
	}
	return a.groupTable(im, q, g)
}

// grouping compiles what q asks for.
func (s *source) grouping(im state, q *query) (*grouping, error) {
	g := &grouping{byName: map[string]*group{}}
	var err error
	if q.groupBy != "" {
		if g.by, err = s.compile(im.Image, "--group-by", q.groupBy, wantValue); err != nil {
			return nil, err
		}
	}
	for _, t := range q.totals {
		x, err := s.compile(im.Image, "--"+t.kind, t.text, aggregateKinds[t.kind].want)
		if err != nil {
			return nil, err
		}
		if slices.Contains(namesOf(g.totals), t.name()) {
			return nil, &failure{exitUsage, fmt.Errorf("%s is asked for twice", t.name()), ""}
		}
		g.totals, g.kinds = append(g.totals, field{t.name(), x}), append(g.kinds, t.kind)
	}
	if q.groupBy == "" {
		g.begin("", answer{})
	}
	return g, nil
}

// begin adds a group.
func (g *grouping) begin(name string, key answer) *group {
	n := &group{key: key}
	for _, kind := range g.kinds {
		n.totals = append(n.totals, newTotal(kind))
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
		v, err := f.expr.of(e)
		if err != nil {
			return err
		}
		if err := of.totals[i].add(answer{v}); err != nil {
			return f.expr.failed(fmt.Errorf("%v: %w", e, err))
		}
	}
	return nil
}

// groupOf returns the group of e.
func (g *grouping) groupOf(e ecs.Entity) (*group, error) {
	if g.by == nil {
		return g.groups[0], nil
	}
	v, err := g.by.of(e)
	if err != nil {
		return nil, err
	}
	key := answer{v}.frozen()
	name := fmt.Sprint(rank(pointedTo(key.v)), key)
	switch {
	case g.byName[name] != nil:
		return g.byName[name], nil
	case len(g.groups) == maxGroups:
		return nil, &failure{exitUsage, fmt.Errorf("--group-by makes more than %d groups", maxGroups), ""}
	}
	return g.begin(name, key), nil
}

// groupTable prints the groups that --offset and --limit leave.
func (a *app) groupTable(im state, q *query, g *grouping) error {
	groups := g.groups
	slices.SortStableFunc(groups, func(a, b *group) int { return a.key.compare(b.key) })
	p := part{total: len(groups)}
	groups = groups[min(uint64(q.offset), uint64(len(groups))):]
	shown, more := q.limit.of(len(groups))
	p.more = more
	names := namesOf(g.totals)
	if g.by != nil {
		names = append([]string{q.groupBy}, names...)
	}
	var rows []recordDoc
	for _, n := range groups[:shown] {
		rows = append(rows, recordDoc{names, n.answers(g.by != nil)})
	}
	if a.json {
		return a.document(queryDoc{im.doc(), p.total, names, append([]recordDoc{}, rows...)})
	}
	table := a.Grid(g.headers(names)...)
	for _, r := range rows {
		rowOf(table, r.answers)
	}
	table.Flush()
	a.rest(p, "group", "groups")
	return nil
}

// headers returns names as headers: totals are numbers mostly.
func (g *grouping) headers(names []string) []string {
	headers := slices.Clone(names)
	for i := range headers {
		if i > 0 || g.by == nil || g.by.number {
			headers[i] = ">" + headers[i]
		}
	}
	return headers
}

func (n *group) answers(withKey bool) (answers []answer) {
	if withKey {
		answers = append(answers, n.key)
	}
	for _, t := range n.totals {
		answers = append(answers, t.result())
	}
	return answers
}
