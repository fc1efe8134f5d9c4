package dump

import (
	"bytes"
	"fmt"
	"go/format"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist/inspect"
)

// schemaDoc is what schema --json prints.
type schemaDoc struct {
	stateDoc
	Components []componentDoc `json:"components"`
}

// A componentDoc describes a component, tag or resource.
type componentDoc struct {
	Name    string     `json:"name"`
	Kind    string     `json:"kind"`  // Component, tag or resource.
	Width   int        `json:"width"` // Bytes of a row; -1 if the size varies.
	Rows    int        `json:"rows"`
	Rewinds bool       `json:"rewinds"` // True if a restore of the world also restores it.
	Layout  string     `json:"layout"`  // In Go syntax.
	Fields  []fieldDoc `json:"fields"`  // Fields of a struct; empty for other types.

	// Named constants of number types in the layout.
	Constants []constantsDoc `json:"constants,omitempty"`
}

// A constantsDoc lists the named constants of a type.
type constantsDoc struct {
	// Path as in expressions, with [] for elements; "" for the whole value.
	Field string   `json:"field"`
	Type  string   `json:"type"`  // Name of the type.
	Names []string `json:"names"` // Names of 0, 1 and so on; "" for a number without a name.
}

// A fieldDoc describes a field of a struct.
type fieldDoc struct {
	Name string `json:"name"`
	Type string `json:"type"` // In Go syntax.
}

var schemaCommand = command{
	use: "schema STORE",
	doc: `List components and resources with their layouts`,
	example: `  ecsdump schema D
  ecsdump schema D --go >types.go`,
	run: func(f flags) action {
		var asGo bool
		f.BoolVar(&asGo, "go", false, "print Go types that have these layouts")
		show := f.withState(func(s *source, st *inspect.State) error {
			im := outline(st)
			if asGo {
				return s.goTypes(im)
			}
			return s.printReport(schemaDocOf(im))
		})
		return func(c *call) error {
			if asGo && c.json {
				return c.misused("give either --go or --json")
			}
			return show(c)
		}
	},
}

// schemaDocOf describes the components of im in the order of their numbers.
func schemaDocOf(im state) *schemaDoc {
	field := func(f layout.Field) fieldDoc { return fieldDoc{f.Name, f.Type.String()} }
	return &schemaDoc{im.doc(), describe.Listed(im.Components, func(c *inspect.Component) componentDoc {
		return componentDoc{c.Name, describe.Kind(c.Layout, c.Resource), c.Layout.Width(), c.Len(), c.Rewinds, c.Layout.String(), describe.Listed(c.Layout.Fields, field), constantsIn(nil, "", c.Layout)}
	})}
}

// constantsIn appends the constants of t, and of all types in t. The path of an element or a key
// ends in []. A pointer and its target have the same path.
func constantsIn(docs []constantsDoc, path string, t *layout.Type) []constantsDoc {
	if t == nil {
		return docs
	}
	if len(t.Constants) > 0 {
		docs = append(docs, constantsDoc{path, t.Name, t.Constants})
	}
	for _, f := range t.Fields {
		docs = constantsIn(docs, joined(".", path, f.Name), f.Type)
	}
	if t.Kind != layout.Pointer {
		path += "[]"
	}
	return constantsIn(constantsIn(docs, path, t.Key), path, t.Elem)
}

// print prints a table of the components.
func (d *schemaDoc) print(a *app) {
	term.Table(a.Out, d.Components, func(c componentDoc) []any {
		var width any = c.Width
		if c.Width < 0 {
			width = "vary"
		}
		return []any{c.Name, c.Kind, c.Rows, width, c.Layout}
	}, "COMPONENT", "KIND", ">ROWS", ">BYTES", "~LAYOUT")
	d.printConstants(a)
}

// printConstants prints the named constants, if any.
func (d *schemaDoc) printConstants(a *app) {
	var all []constantsDoc
	for _, c := range d.Components {
		for _, of := range c.Constants {
			all = append(all, constantsDoc{c.Name + describe.Dotted(of.Field), of.Type, of.Names})
		}
	}
	if len(all) == 0 {
		return
	}
	a.Line("")
	term.Table(a.Out, all, func(c constantsDoc) []any {
		var names []string
		for n, name := range c.Names {
			if name != "" {
				names = append(names, fmt.Sprintf("%d %s", n, name))
			}
		}
		return []any{c.Field, c.Type, strings.Join(names, ", ")}
	}, "FIELD", "TYPE", "~CONSTANTS")
}

// goTypes prints the components of im as Go types with the same layouts. Stored names that are
// invalid in Go are replaced. A program that registers these types under the stored names can load
// the state.
func (a *app) goTypes(im state) error {
	var b bytes.Buffer
	b.WriteString("// Package types has the component types of a store, as ecsdump read them.\npackage types\n")
	if slices.ContainsFunc(im.Components, func(c *inspect.Component) bool { return holdsEntity(c.Layout) }) {
		b.WriteString("\nimport \"github.com/stet-ecs/stet/ecs\"\n")
	}
	names := goNames{"ecs": true}
	for _, c := range im.Components {
		name := names.unique(exported(goName(c.Name)))
		fmt.Fprintf(&b, "\n// %s is the %s that is stored as %q.\ntype %s %s\n", name, describe.Kind(c.Layout, c.Resource), c.Name, name, goSource(c.Layout))
	}
	source, err := format.Source(b.Bytes())
	if err != nil {
		return err
	}
	a.Print(string(source))
	return nil
}

// goSource returns the Go type with the layout t.
func goSource(t *layout.Type) string {
	switch t.Kind {
	case layout.Entity:
		return "ecs.Entity"
	case layout.Bytes:
		return "[]byte"
	case layout.Struct:
		return goFields(t)
	case layout.Array:
		return fmt.Sprintf("[%d]%s", t.Len, goSource(t.Elem))
	case layout.Slice:
		return "[]" + goSource(t.Elem)
	case layout.Map:
		return "map[" + goSource(t.Key) + "]" + goSource(t.Elem)
	case layout.Pointer:
		return "*" + goSource(t.Elem)
	}
	return t.Kind.String()
}

// goFields returns a struct type in Go syntax. Fields without a valid Go name get a tag.
func goFields(t *layout.Type) string {
	if len(t.Fields) == 0 {
		return "struct{}"
	}
	names := goNames{}
	// Reserve the valid names first, so that no replacement equals one of them.
	for _, f := range t.Fields {
		names[f.Name] = goName(f.Name) == f.Name
	}
	var b strings.Builder
	b.WriteString("struct {\n")
	for _, f := range t.Fields {
		name, tag := f.Name, ""
		if !names[f.Name] {
			name = names.unique(exported(goName(f.Name)))
			tag = fmt.Sprintf("%#q", "stet:"+strconv.Quote(f.Name))
		}
		fmt.Fprintf(&b, "%s %s %s\n", name, goSource(f.Type), tag)
	}
	return b.String() + "}"
}

// holdsEntity reports whether a type contains an entity, so that its Go source needs package ecs.
func holdsEntity(t *layout.Type) bool {
	if t == nil || t.Kind == layout.Entity {
		return t != nil
	}
	inField := func(f layout.Field) bool { return holdsEntity(f.Type) }
	return slices.ContainsFunc(t.Fields, inField) || holdsEntity(t.Elem) || holdsEntity(t.Key)
}

// goName returns name as a Go identifier. An invalid name, or a keyword, gets a leading X, and
// characters other than letters and digits become _.
func goName(name string) string {
	if token.IsIdentifier(name) && name != "_" {
		return name
	}
	first := true
	return "X" + strings.Map(func(r rune) rune { // A keyword or the empty name gets the X too.
		digits := !first
		if first = false; unicode.IsLetter(r) || digits && unicode.IsDigit(r) {
			return r
		}
		return '_'
	}, name)
}

// exported returns an identifier that begins with a capital letter. If the first letter has no
// capital form, the result begins with X.
func exported(name string) string {
	first := []rune(name)
	first[0] = unicode.ToUpper(first[0])
	if !unicode.IsUpper(first[0]) {
		return "X" + name
	}
	return string(first)
}

// goNames is the set of identifiers in use, in a package or in a struct.
type goNames map[string]bool

// unique reserves name, with a number appended if it is in use.
func (n goNames) unique(name string) string {
	free := name
	for i := 2; n[free]; i++ {
		free = fmt.Sprintf("%s%d", name, i)
	}
	n[free] = true
	return free
}
