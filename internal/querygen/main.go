// Command querygen writes the queries and bundles of package ecs, which differ
// only in how many components they have.
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

// kinds are the templates, each of which makes a file, and how many components
// there can be.
var kinds = map[string]int{"query": 8, "bundle": 12}

func main() {
	dir := flag.String("o", ".", "the directory to write to")
	flag.Parse()
	for kind := range kinds {
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

// generate returns the source text of all that kind stands for.
func generate(kind string) ([]byte, error) {
	t, err := template.ParseFS(templates, kind+".tmpl")
	if err != nil {
		return nil, err
	}
	var queries []query
	for n := 1; n <= kinds[kind]; n++ {
		queries = append(queries, newQuery(n))
	}
	var b bytes.Buffer
	if err := t.Execute(&b, queries); err != nil {
		return nil, err
	}
	return format.Source(b.Bytes())
}

// A query is what a template has to know of one, or of a bundle.
type query struct {
	N          int
	Count      string // "two".
	Components []component
}

type component struct {
	Type  string // A, of its components; the name of the field in rows, too.
	Field string // a, of its access.
	Index int
}

func newQuery(n int) query {
	q := query{N: n, Count: strings.Fields("zero one two three four five six seven eight nine ten eleven twelve")[n]}
	for i := range n {
		letter := string(rune('a' + i))
		q.Components = append(q.Components, component{strings.ToUpper(letter), letter, i})
	}
	return q
}

// Types returns A, B.
func (q query) Types() string { return q.join(func(c component) string { return c.Type }) }

// Accesses returns a Access[A], b Access[B].
func (q query) Accesses() string {
	return q.join(func(c component) string { return c.Field + " Access[" + c.Type + "]" })
}

// Fields returns a, b.
func (q query) Fields() string { return q.join(func(c component) string { return c.Field }) }

// Joined returns a.joined(), b.joined().
func (q query) Joined() string {
	return q.join(func(c component) string { return c.Field + ".joined()" })
}

// At returns the row at the rows of an entity.
func (q query) At() string {
	return q.rowOf(func(c component) string { return fmt.Sprintf("q.%s.at(rows[%d])", c.Field, c.Index) })
}

// Pointers returns the row r rows behind the first ones.
func (q query) Pointers() string {
	return q.rowOf(func(c component) string { return "rowAfter(" + c.Field + ", r)" })
}

func (q query) rowOf(f func(component) string) string {
	if q.N == 1 {
		return f(q.Components[0])
	}
	return q.Row() + "{" + q.join(f) + "}"
}

// Row returns the type of a row: the pointer itself if there is but one.
func (q query) Row() string {
	if q.N == 1 {
		return "*A"
	}
	return fmt.Sprintf("Row%d[%s]", q.N, q.Types())
}

// NoRow returns the row of an entity that is not found.
func (q query) NoRow() string {
	if q.N == 1 {
		return "nil"
	}
	return q.Row() + "{}"
}

// Run returns the type of a run.
func (q query) Run() string { return fmt.Sprintf("Run%d[%s]", q.N, q.Types()) }

// Type returns the type of the query.
func (q query) Type() string { return fmt.Sprintf("Query%d[%s]", q.N, q.Types()) }

func (q query) join(f func(component) string) string {
	var parts []string
	for _, c := range q.Components {
		parts = append(parts, f(c))
	}
	return strings.Join(parts, ", ")
}

// Bundle returns the type of the bundle.
func (q query) Bundle() string { return fmt.Sprintf("Bundle%d[%s]", q.N, q.Types()) }

// Storages returns a *Storage[A], b *Storage[B].
func (q query) Storages() string {
	return q.join(func(c component) string { return c.Field + " *Storage[" + c.Type + "]" })
}

// Values returns a A, b B.
func (q query) Values() string {
	return q.join(func(c component) string { return c.Field + " " + c.Type })
}
