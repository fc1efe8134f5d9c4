package dump

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser/lexer"
	"github.com/spf13/cobra"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/term"
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
	answers []answer
}

// MarshalJSON implements [json.Marshaler].
func (r recordDoc) MarshalJSON() ([]byte, error) {
	return appendObject(nil, len(r.columns), func(i int) (string, reflect.Value) {
		return r.columns[i], reflect.ValueOf(r.answers[i].v)
	}), nil
}

func newQuery(a *app) *cobra.Command {
	var at point
	var q query
	cmd := &cobra.Command{
		Use:   "query STORE [EXPR]",
		Short: "Print expressions for the entities of which EXPR is true",
		Long: `Print a table of expressions, with a row for each entity of which EXPR is true,
or totals over these entities.

` + expressionHelp,
		Example: `  ecsdump query D 'Health < 10' --select 'entity, Position.X, Health * 2 as twice'
  ecsdump query D --count --avg Health --group-by 'has(Frozen)'`,
		Args: positional(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.where = strings.Join(args[1:], "")
			return a.read(cmd.Context(), args[0], func(s *source) error {
				im, err := s.state(cmd.Context(), at)
				if err != nil {
					return err
				}
				return a.query(cmd.Context(), s, im, &q)
			})
		},
	}
	cmd.Flags().StringVar(&q.selected, "select", "", `columns: expressions with commas between, each perhaps "… as NAME" (default entity)`)
	q.flags(cmd)
	q.totalFlags(cmd)
	at.flag(cmd)
	q.limit.flag(cmd, 0, "rows")
	return cmd
}

// A query says what to print of a selection.
type query struct {
	selection
	selected string
	totals   []totalFlag // In the order of the command line.
	groupBy  string
}

// A field is a column that a query prints.
type field struct {
	name string
	expr *expression
}

// query prints q for im.
func (a *app) query(ctx context.Context, s *source, im state, q *query) error {
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
	names := namesOf(fields)
	if !a.json {
		return a.queryTable(fields, names, p)
	}
	doc := queryDoc{im.doc(), p.total, names, []recordDoc{}}
	return stream(a, doc, func(yield func(recordDoc, error) bool) {
		for _, e := range p.entities {
			answers, err := answersOf(fields, e)
			if !yield(recordDoc{names, answers}, err) {
				return
			}
		}
	})
}

func (a *app) queryTable(fields []field, names []string, p part) error {
	headers := slices.Clone(names)
	for i, f := range fields {
		if f.expr.number {
			headers[i] = ">" + headers[i]
		}
	}
	g := a.Grid(headers...)
	for _, e := range p.entities {
		answers, err := answersOf(fields, e)
		if err != nil {
			g.Flush()
			return err
		}
		rowOf(g, answers)
	}
	g.Flush()
	a.rest(p, "entity", "entities")
	return nil
}

func rowOf(g *term.Grid, answers []answer) {
	cells := make([]any, len(answers))
	for i, v := range answers {
		cells[i] = v
	}
	g.Row(cells...)
}

func namesOf(fields []field) (names []string) {
	for _, f := range fields {
		names = append(names, f.name)
	}
	return names
}

func answersOf(fields []field, e ecs.Entity) ([]answer, error) {
	answers := make([]answer, len(fields))
	for i, f := range fields {
		v, err := f.expr.of(e)
		if err != nil {
			return nil, err
		}
		answers[i] = answer{v}.frozen()
	}
	return answers, nil
}

// fields compiles the columns that --select names.
func (s *source) fields(im state, selected string) ([]field, error) {
	if strings.TrimSpace(selected) == "" {
		selected = "entity"
	}
	var fields []field
	for _, text := range splitList(selected) {
		text, name := splitName(text)
		if text == "" {
			return nil, &failure{exitUsage, fmt.Errorf("--select: an empty column in %q", selected), ""}
		}
		for _, f := range fields {
			if f.name == name {
				return nil, &failure{exitUsage, fmt.Errorf("--select: two columns are called %s; write \"… as NAME\"", name), ""}
			}
		}
		x, err := s.compile(im.Image, "--select", text, wantValue)
		if err != nil {
			return nil, err
		}
		fields = append(fields, field{name, x})
	}
	return fields, nil
}

// splitList splits expressions at the commas that are in no brackets. Text that is no
// list of words is one expression, for the compiler to say what is wrong.
func splitList(text string) (parts []string) {
	tokens, err := lexer.Lex(file.NewSource(text))
	if err != nil {
		return []string{text}
	}
	runes := []rune(text)
	first, depth := 0, 0
	for _, t := range tokens {
		switch {
		case t.Is(lexer.Bracket, "(", "[", "{"):
			depth++
		case t.Is(lexer.Bracket):
			depth--
		case depth == 0 && t.Is(lexer.Operator, ","):
			parts = append(parts, string(runes[first:t.From]))
			first = t.To
		}
	}
	return append(parts, string(runes[first:]))
}

// splitName splits "EXPR as NAME"; without a name, the text is its own.
func splitName(text string) (expr, name string) {
	text = strings.TrimSpace(text)
	tokens, err := lexer.Lex(file.NewSource(text))
	if n := len(tokens) - 3; err == nil && n > 0 && tokens[n].Is(lexer.Identifier, "as") && tokens[n+1].Kind == lexer.Identifier {
		return strings.TrimSpace(string([]rune(text)[:tokens[n].From])), tokens[n+1].Value
	}
	return text, text
}
