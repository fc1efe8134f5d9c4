package ecs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/naming"
)

// Stored values are not lost by silence. A field that the program's type has no place
// for is lost unless Component.Dropped names it or a migration takes it; a component
// that was probably renamed would lose all of its values. Either refuses the load, and
// the text has what to write: the former name, or that the values are given up.

// A loss is what a conversion would drop without leave.
type loss []droppedField

// A droppedField is one field of a loss.
type droppedField struct {
	name   string // As Component.Dropped has it.
	change layout.Change
}

// judge returns what changes to a type named root do, and what of it is lost as it is
// not among the fields that may be dropped. Nobody needs to be told what a field that
// may be dropped could have become.
func judge(changes []layout.Change, root string, dropped []string) (judged []layout.Change, lost loss) {
	judged = slices.Clone(changes)
	for i := range judged {
		c := &judged[i]
		if !c.Dropped {
			continue
		}
		name := strings.TrimPrefix(strings.TrimPrefix(c.Path, root), ".")
		if slices.Contains(dropped, name) {
			c.Renamed = ""
		} else {
			lost = append(lost, droppedField{name, *c})
		}
	}
	return judged, lost
}

// String lists the fields.
func (l loss) String() string {
	texts := make([]string, len(l))
	for i, f := range l {
		texts[i] = f.change.String()
	}
	return strings.Join(texts, "; ")
}

// refusal says of the component called name, a Go type, what it loses and how to
// agree to that.
func (l loss) refusal(name, goType string) string {
	names := make([]string, len(l))
	for i, f := range l {
		names[i] = fmt.Sprintf("%q", f.name)
	}
	return fmt.Sprintf("component %s: %v; to drop: %s; to convert: a Version and ecs.Migrate",
		naming.Shown(name), l, said(name, goType, "Dropped: []string{"+strings.Join(names, ", ")+"}"))
}

// probablyRenamed says of a component of which nothing is stored that it has the fields of
// one that is stored and not registered.
func probablyRenamed(name, goType, stored string) string {
	return fmt.Sprintf("component %s: nothing is stored of it, but %s, which is not registered, has its fields; if it was renamed: %s; if not: %s",
		naming.Shown(name), naming.Shown(stored), said(name, goType, fmt.Sprintf("FormerNames: []string{%q}", stored)), said(name, goType, "FormerNames: []string{}"))
}

// said returns the Component of a Go type, with its name if it has another, and a
// member of it.
func said(name, goType, member string) string {
	if name != goType {
		member = fmt.Sprintf("Name: %q, %s", name, member)
	}
	if goType == "" {
		goType = "T"
	}
	return "ecs.Component[" + goType + "]{" + member + "}"
}

// sameFields reports whether two layouts are structs of the same fields, in any order.
// What has no fields says nothing by them.
func sameFields(a, b *layout.Type) bool {
	if a.Kind != layout.Struct || b.Kind != layout.Struct || len(a.Fields) == 0 || len(a.Fields) != len(b.Fields) {
		return false
	}
	for _, f := range a.Fields {
		if !slices.ContainsFunc(b.Fields, func(g layout.Field) bool { return g.Name == f.Name && g.Type.Equal(f.Type) }) {
			return false
		}
	}
	return true
}
