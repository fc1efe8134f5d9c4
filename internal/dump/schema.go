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
	Kind    string     `json:"kind"`  // component, tag or resource.
	Width   int        `json:"width"` // Bytes of a row; -1: rows vary.
	Rows    int        `json:"rows"`
	Rewinds bool       `json:"rewinds"` // It is put back when the world is.
	Layout  string     `json:"layout"`  // In Go's notation.
	Fields  []fieldDoc `json:"fields"`  // Of a struct; else empty.

	Constants []constantsDoc `json:"constants,omitempty"` // Of the numbers in it that have names.
}

// A constantsDoc says what the numbers of a field are called.
type constantsDoc struct {
	Field string   `json:"field"` // As expressions name it, with [] for elements; "": all of it.
	Type  string   `json:"type"`  // Its name.
	Names []string `json:"names"` // Of 0, 1 and so on; "": that one has none.
}

// A fieldDoc describes a field of a struct.
type fieldDoc struct {
	Name string `json:"name"`
	Type string `json:"type"` // In Go's notation.
}

var schemaCommand = command{
	use: "schema STORE",
	doc: `List components and resources with their layouts`,
	example: `  ecsdump schema D
  ecsdump schema D --go >types.go`,
	run: func(f flags) action {
		var asGo bool
		f.BoolVar(&asGo, "go", false, "print Go types that have these layouts")
		show := f.showing(func(s *source, st *inspect.State) error {
			im := outline(st)
			if asGo {
				return s.goTypes(im)
			}
			return s.tell(schemaDocOf(im))
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

// constantsIn appends the constants of t, which is at path. Elements and keys of what has several
// have [] behind the path; what a pointer leads to has the path of the pointer.
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

// print prints a table. The layout comes last, as it may be long.
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

// printConstants prints what numbers are called, if any are.
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

// goTypes prints the components of im as Go types that have their layouts: a program
// that registers them under the stored names can load what was read. Names of components and fields
// may be anything, in any script; those that Go does not take become ones that it takes, and differ
// from all others.
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
	source, err := format.Source(b.Bytes()) // It also finds what would not compile.
	if err != nil {
		return err
	}
	a.Print(string(source))
	return nil
}

// goSource returns the Go type whose layout is t.
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

// goFields returns a struct type. Fields whose names Go does not have get a tag.
func goFields(t *layout.Type) string {
	if len(t.Fields) == 0 {
		return "struct{}"
	}
	names := goNames{}
	// First the names that can stay, so that none is taken by a field whose own cannot: a tag says
	// what such a field was called.
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

// holdsEntity reports whether a type needs package ecs to be written in Go.
func holdsEntity(t *layout.Type) bool {
	if t == nil || t.Kind == layout.Entity {
		return t != nil
	}
	inField := func(f layout.Field) bool { return holdsEntity(f.Type) }
	return slices.ContainsFunc(t.Fields, inField) || holdsEntity(t.Elem) || holdsEntity(t.Key)
}

// goName returns a Go identifier that is, or is like, name. X goes before what is none, keywords
// too, and what is no letter or digit becomes _.
func goName(name string) string {
	if token.IsIdentifier(name) && name != "_" {
		return name
	}
	first := true
	return "X" + strings.Map(func(r rune) rune { // Also of keywords, and of nothing.
		digits := !first
		if first = false; unicode.IsLetter(r) || digits && unicode.IsDigit(r) {
			return r
		}
		return '_'
	}, name)
}

// exported returns an identifier with a capital letter. Letters of scripts without capitals get
// an X before them: Go exports nothing else.
func exported(name string) string {
	first := []rune(name)
	first[0] = unicode.ToUpper(first[0])
	if !unicode.IsUpper(first[0]) {
		return "X" + name
	}
	return string(first)
}

// goNames are the identifiers that are taken, in a package or in a struct.
type goNames map[string]bool

// unique takes name, with a number behind it if it is taken.
func (n goNames) unique(name string) string {
	free := name
	for i := 2; n[free]; i++ {
		free = fmt.Sprintf("%s%d", name, i)
	}
	n[free] = true
	return free
}
