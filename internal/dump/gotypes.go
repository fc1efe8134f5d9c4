package dump

import (
	"bytes"
	"fmt"
	"go/format"
	"go/token"
	"strconv"
	"strings"
	"unicode"

	"github.com/stet-ecs/stet/ecs/layout"
)

// goTypes prints the components of im as Go types that have their layouts: a program
// that registers them under the stored names can load what was read.
func (a *app) goTypes(im state) error {
	var b bytes.Buffer
	b.WriteString("// Package types has the component types of a store, as ecsdump read them.\npackage types\n")
	for _, c := range im.Components {
		if holdsEntity(c.Layout) {
			b.WriteString("\nimport \"github.com/stet-ecs/stet/ecs\"\n")
			break
		}
	}
	names := goNames{"ecs": true}
	for _, c := range im.Components {
		name := names.unique(exported(goName(c.Name)))
		fmt.Fprintf(&b, "\n// %s is the %s that is stored as %q.\ntype %s %s\n", name, kind(c), c.Name, name, goSource(c.Layout))
	}
	source, err := format.Source(b.Bytes())
	if err != nil {
		return err
	}
	a.Print(string(source))
	return a.Broken()
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
	for _, f := range t.Fields { // Names that can stay are not for others.
		names[f.Name] = goName(f.Name) == f.Name
	}
	var b strings.Builder
	b.WriteString("struct {\n")
	for _, f := range t.Fields {
		name, tag := f.Name, ""
		if !names[f.Name] {
			name = names.unique(exported(goName(f.Name)))
			tag = goString("stet:" + strconv.Quote(f.Name))
		}
		fmt.Fprintf(&b, "%s %s %s\n", name, goSource(f.Type), tag)
	}
	return b.String() + "}"
}

// goString returns s as a Go literal.
func goString(s string) string {
	if strconv.CanBackquote(s) {
		return "`" + s + "`"
	}
	return strconv.Quote(s)
}

func holdsEntity(t *layout.Type) bool {
	if t == nil || t.Kind == layout.Entity {
		return t != nil
	}
	for _, f := range t.Fields {
		if holdsEntity(f.Type) {
			return true
		}
	}
	return holdsEntity(t.Elem) || holdsEntity(t.Key)
}

// goName returns a Go identifier that is, or is like, name.
func goName(name string) string {
	if token.IsIdentifier(name) && name != "_" {
		return name
	}
	var b strings.Builder
	for i, r := range name {
		switch {
		case r == '_' || unicode.IsLetter(r) || i > 0 && unicode.IsDigit(r):
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
	}
	return "X" + b.String() // Also of keywords, and of nothing.
}

// exported returns an identifier with a capital letter.
func exported(name string) string {
	first := []rune(name)
	first[0] = unicode.ToUpper(first[0])
	if !unicode.IsUpper(first[0]) {
		return "X" + name
	}
	return string(first)
}

// goNames are the identifiers that are taken.
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
