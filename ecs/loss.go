package ecs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/naming"
)

// A load does not lose stored values silently. A field that the program's type lacks would be lost,
// unless Component.Dropped names it or a migration converts it. A component that was probably
// renamed would lose all its values. In both cases the load fails. The error says how to correct
// the program: declare the former name, or permit the loss.

// droppedFields are the fields that a conversion would drop without permission.
type droppedFields []droppedField

// A droppedField is a field that would be dropped.
type droppedField struct {
	name   string // The name as in Component.Dropped.
	change layout.Change
}

// checkDropped returns the changes to a type named root, and the fields that would be lost because
// dropped does not name them. If dropped names a field, checkDropped clears the hint that the field
// may have been renamed.
func checkDropped(changes []layout.Change, root string, dropped []string) (judged []layout.Change, lost droppedFields) {
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

// String returns the list of fields as text.
func (l droppedFields) String() string {
	texts := make([]string, len(l))
	for i, f := range l {
		texts[i] = f.change.String()
	}
	return strings.Join(texts, "; ")
}

// errorText returns the error text for a component: the fields that would be lost, and how to
// permit it.
func (l droppedFields) errorText(name, goType string) string {
	names := make([]string, len(l))
	for i, f := range l {
		names[i] = fmt.Sprintf("%q", f.name)
	}
	return fmt.Sprintf("component %s: %v; to drop: %s; to convert: a Version and ecs.Migrate",
		naming.Shown(name), l, componentLiteral(name, goType, "Dropped: []string{"+strings.Join(names, ", ")+"}"))
}

// probablyRenamed returns the error text for a component that was probably renamed. The component
// has no stored values, and an unregistered stored component has the same fields.
func probablyRenamed(name, goType, stored string) string {
	return fmt.Sprintf("component %s: nothing is stored of it, but %s, which is not registered, has its fields; if it was renamed: %s; if not: %s",
		naming.Shown(name), naming.Shown(stored), componentLiteral(name, goType, fmt.Sprintf("FormerNames: []string{%q}", stored)), componentLiteral(name, goType, "FormerNames: []string{}"))
}

// componentLiteral returns the Go source of a Component literal for a type. The literal has member,
// and a name if the component's name differs from that of the type.
func componentLiteral(name, goType, member string) string {
	if name != goType {
		member = fmt.Sprintf("Name: %q, %s", name, member)
	}
	if goType == "" {
		goType = "T"
	}
	return "ecs.Component[" + goType + "]{" + member + "}"
}

// sameFields reports whether two layouts are structs with the same fields, in any order. It returns
// false if they have no fields.
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
