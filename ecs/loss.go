package ecs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/naming"
)

// A load never loses stored values silently. It fails in these cases:
//
//   - The program's type lacks a stored field. Component.Dropped permits this; a migration can
//     convert the field.
//   - A stored field cannot be converted to the field of the program.
//   - A component was probably renamed, so that all its values would be lost.
//
// The error lists all these faults, and says how to correct the program.

// typeFaults are the stored fields that a program cannot load.
type typeFaults []typeFault

// A typeFault is a stored field that would be dropped without permission, or that cannot be
// converted.
type typeFault struct {
	name   string // The field's name, as used in Component.Dropped.
	change layout.Change
}

// conversion returns the conversion between two layouts, its changes, and the fields that the
// program cannot load. The conversion is nil if the layouts cannot be converted.
//
// The parameter dropped is the list Component.Dropped. A change may suggest that a missing field
// was renamed. For a field in the list, conversion removes this suggestion.
func conversion(from, to *layout.Type, dropped []string) (c *layout.Conversion, changes []layout.Change, faults typeFaults) {
	c, err := layout.NewConversion(from, to)
	if refusal, ok := errors.AsType[*layout.ConversionError](err); ok {
		changes = slices.Clone(refusal.Changes)
	} else {
		changes = slices.Clone(c.Changes())
	}
	for i := range changes {
		change := &changes[i]
		name := strings.TrimPrefix(strings.TrimPrefix(change.Path, cmp.Or(to.Name, from.Name)), ".")
		switch {
		case change.Dropped && slices.Contains(dropped, name):
			change.Renamed = nil
		case change.Dropped, change.Refused:
			faults = append(faults, typeFault{name, *change})
		}
	}
	return c, changes, faults
}

// refused reports whether any field cannot be converted. If not, a load would only drop values.
func (f typeFaults) refused() bool {
	return slices.ContainsFunc(f, func(f typeFault) bool { return f.change.Refused })
}

// wrapText returns an error with the given text. It wraps layout.ErrConversion if refused is true,
// and raw.ErrDropped otherwise. If the text has several lines, the error has a line break before
// the text.
func wrapText(refused bool, text string) error {
	kind, space := raw.ErrDropped, " "
	if refused {
		kind = layout.ErrConversion
	}
	if strings.Contains(text, "\n") {
		space = "\n"
	}
	return fmt.Errorf("%w:%s%s", kind, space, text)
}

// lines returns a line for each fault.
func (f typeFaults) lines() (all []string) {
	for _, fault := range f {
		all = append(all, fault.change.String())
	}
	return all
}

// remedy returns a line that says how to change the program so that it loads the fields. The
// parameter convert says how to convert the fields.
func (f typeFaults) remedy(name, goType, convert string) string {
	var names []string
	for _, fault := range f {
		if fault.change.Dropped {
			names = append(names, fmt.Sprintf("%q", fault.name))
		}
	}
	convert = "to convert: " + convert
	if names == nil {
		return convert
	}
	return "to drop: " + componentLiteral(name, goType, "Dropped: []string{"+strings.Join(names, ", ")+"}") + "; " + convert
}

// migrationLiteral returns the Go expression of a component with a migration. The parameters from
// and now are the stored version and the program's version.
func migrationLiteral(name, goType string, from, now uint32) string {
	old := "old" // Instances of generic types have no short name.
	if goType != "" && !strings.Contains(goType, "[") {
		old += strings.ToUpper(goType[:1]) + goType[1:]
	}
	if goType == "" {
		goType = "T"
	}
	return componentLiteral(name, goType, fmt.Sprintf("Version: %d, Migrations: []ecs.Migration{ecs.Migrate(%d, func(v %s) %s { … })}", max(now, from+1), from, old, goType))
}

// A faultList builds the error text for the components that a program cannot load.
type faultList struct {
	text    []string // The texts, one for each component.
	shown   int
	more    int  // The number of faults that the text leaves out.
	refused bool // Some values cannot be converted. If false, values would only be lost.
}

// maxFaults is the maximum number of faults in an error.
const maxFaults = 20

// take returns how many of n faults of a component still fit into the error.
func (l *faultList) take(n int) int {
	k := min(n, maxFaults-l.shown)
	l.shown, l.more = l.shown+k, l.more+n-k
	return k
}

// addFields adds the faults of a component's fields. The parameter before is empty, or says that
// the fields are needed before a certain migration. The parameter convert says how to convert the
// fields.
func (l *faultList) addFields(name, goType, before, convert string, faults typeFaults) {
	l.refused = l.refused || faults.refused()
	faults = faults[:l.take(len(faults))]
	if len(faults) == 0 {
		return
	}
	lines := append(faults.lines(), faults.remedy(name, goType, convert))
	space, between := " ", "; "
	if len(faults) > 1 {
		space, between = "\n    ", "\n    "
	}
	l.text = append(l.text, fmt.Sprintf("component %s:%s%s%s", naming.Shown(name), before, space, strings.Join(lines, between)))
}

// addComponent adds a fault of a whole component.
func (l *faultList) addComponent(name, text string) {
	if l.take(1) > 0 {
		l.text = append(l.text, fmt.Sprintf("component %s: %s", naming.Shown(name), text))
	}
}

// err returns the list as an error, or nil if it is empty.
func (l *faultList) err() error {
	if l.text == nil {
		return nil
	}
	if l.more > 0 {
		l.text = append(l.text, fmt.Sprintf("and %d more", l.more))
	}
	return wrapText(l.refused, strings.Join(l.text, "\n"))
}

// probablyRenamed returns the error text for a component that the program has probably renamed. The
// registered component is called name, and has no stored values. The component called stored has
// values and the same fields, but is not registered.
func probablyRenamed(name, goType, stored string) string {
	return fmt.Sprintf("nothing is stored of it, but %s, which is not registered, has its fields; if it was renamed: %s; if not: %s",
		naming.Shown(stored), componentLiteral(name, goType, fmt.Sprintf("FormerNames: []string{%q}", stored)), componentLiteral(name, goType, "FormerNames: []string{}"))
}

// componentLiteral returns the Go source of a Component literal with the given member. It adds a
// name if the component's name differs from that of its type.
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
