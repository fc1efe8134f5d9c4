// Command querygen writes the queries and bundles of package ecs, which differ only in the number
// of components.
package main

import (
	"bytes"
	"embed"
	"flag"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed *.tmpl
var templates embed.FS

// kinds are the templates. Each generates one file.
var kinds = []string{"query", "bundle"}

// maxComponents is the maximum number of components of a query or a bundle.
const maxComponents = 8

func main() {
	dir := flag.String("o", ".", "the directory to write to")
	flag.Parse()
	for _, kind := range kinds {
		source, err := generate(kind)
		if err == nil {
			err = os.WriteFile(filepath.Join(*dir, kind+"_gen.go"), source, 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "querygen:", err)
			os.Exit(1)
		}
	}
}

// generate returns the source text of one kind, for all numbers of components.
func generate(kind string) ([]byte, error) {
	t, err := template.ParseFS(templates, kind+".tmpl")
	if err != nil {
		return nil, err
	}
	var queries []query
	for n := 1; n <= maxComponents; n++ {
		queries = append(queries, newQuery(n))
	}
	var b bytes.Buffer
	if err := t.Execute(&b, queries); err != nil {
		return nil, err
	}
	return format.Source(b.Bytes())
}

// A query has the values that a template needs for a query or a bundle with N components.
type query struct {
	N          int
	Count      string // N as a word, such as "two".
	Components []component
}

type component struct {
	Type  string // The type parameter, such as A. It is also the name of the field in rows.
	Field string // The name of the parameter and the field for this component, such as a.
	Index int
}

func newQuery(n int) query {
	q := query{N: n, Count: strings.Fields("zero one two three four five six seven eight")[n]}
	for i := range n {
		letter := string(rune('a' + i))
		q.Components = append(q.Components, component{strings.ToUpper(letter), letter, i})
	}
	return q
}

// Types returns the type parameters, such as "A, B".
func (q query) Types() string { return q.join(func(c component) string { return c.Type }) }

// Accesses returns the parameters of the constructor, such as "a Access[A], b Access[B]".
func (q query) Accesses() string {
	return q.join(func(c component) string { return c.Field + " Access[" + c.Type + "]" })
}

// Fields returns the names of the fields, such as "a, b".
func (q query) Fields() string { return q.join(func(c component) string { return c.Field }) }

// Joined returns the arguments "a.joined(), b.joined()".
func (q query) Joined() string {
	return q.join(func(c component) string { return c.Field + ".joined()" })
}

// At returns the expression for the result of an entity, such as "Row2[A, B]{q.a.at(rows[0]),
// q.b.at(rows[1])}". rows[0] is the entity's row number in the first storage.
func (q query) At() string {
	return q.rowOf(func(c component) string { return fmt.Sprintf("q.%s.at(rows[%d])", c.Field, c.Index) })
}

// Pointers returns the expression for the result at row r, such as "Row2[A, B]{rowAfter(a, r),
// rowAfter(b, r)}". The variables a and b point to the first rows.
func (q query) Pointers() string {
	return q.rowOf(func(c component) string { return "rowAfter(" + c.Field + ", r)" })
}

func (q query) rowOf(f func(component) string) string {
	if q.N == 1 {
		return f(q.Components[0])
	}
	return q.Row() + "{" + q.join(f) + "}"
}

// Row returns the type of the result for one entity, such as "Row2[A, B]". For a query of one
// component, this is "*A".
func (q query) Row() string {
	if q.N == 1 {
		return "*A"
	}
	return fmt.Sprintf("Row%d[%s]", q.N, q.Types())
}

// RowTypes returns the types of the fields of a row, such as "*A, *B".
func (q query) RowTypes() string { return q.join(func(c component) string { return "*" + c.Type }) }

// RowFields returns the fields of a row, such as "row.A, row.B".
func (q query) RowFields() string { return q.join(func(c component) string { return "row." + c.Type }) }

// NoRow returns the zero value of the type Row, such as "Row2[A, B]{}" or "nil".
func (q query) NoRow() string {
	if q.N == 1 {
		return "nil"
	}
	return q.Row() + "{}"
}

// Run returns the name of the run type.
func (q query) Run() string { return fmt.Sprintf("Run%d[%s]", q.N, q.Types()) }

// Type returns the name of the query type.
func (q query) Type() string { return fmt.Sprintf("Query%d[%s]", q.N, q.Types()) }

func (q query) join(f func(component) string) string {
	var parts []string
	for _, c := range q.Components {
		parts = append(parts, f(c))
	}
	return strings.Join(parts, ", ")
}

// Bundle returns the name of the bundle type.
func (q query) Bundle() string { return fmt.Sprintf("Bundle%d[%s]", q.N, q.Types()) }

// Storages returns the parameters with all storages, such as "a *Storage[A], b *Storage[B]".
func (q query) Storages() string {
	return q.join(func(c component) string { return c.Field + " *Storage[" + c.Type + "]" })
}

// Values returns the parameters with all values, such as "a A, b B".
func (q query) Values() string {
	return q.join(func(c component) string { return c.Field + " " + c.Type })
}
