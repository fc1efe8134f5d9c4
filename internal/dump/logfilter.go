package dump

import (
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs/raw"
)

// A logFilter says which ticks to list: those in which one thing happened that all of
// its parts name. Empty parts name everything.
type logFilter struct {
	entities, components, ops []string
}

// flags declares the flags of a filter.
func (f *logFilter) flags(of flags) {
	of.StringSliceVar(&f.entities, "entity", nil, "only ticks that did something to one of these entities")
	of.StringSliceVar(&f.components, "component", nil, "only ticks that did something to one of these components or resources")
	of.StringSliceVar(&f.ops, "op", nil, "only ticks that did one of these: "+strings.Join(filterOps, ", "))
}

// parse checks the flags.
func (f *logFilter) parse(path string) error {
	for i, text := range f.entities {
		e, err := parseEntity(path, text)
		if err != nil {
			return err
		}
		f.entities[i] = e.String()
	}
	for _, op := range f.ops {
		if !slices.Contains(filterOps, op) {
			return fail(exitUsage, "ecsdump log --help", "%q is no operation; write %s", op, strings.Join(filterOps, ", "))
		}
	}
	return nil
}

// any reports whether f leaves anything out.
func (f *logFilter) any() bool { return len(f.entities)+len(f.components)+len(f.ops) > 0 }

// byValue reports whether operations do not tell what f asks: which rows were set, whose
// a clear took, and what those had that were destroyed.
func (f *logFilter) byValue() bool {
	switch {
	case len(f.ops)+len(f.entities) == 0:
		return false
	case f.op(setOp), f.op(opNames[raw.OpClear]) && len(f.entities)+len(f.components) > 0:
		return true
	}
	return f.op(opNames[raw.OpDestroy]) && len(f.components) > 0
}

// op, component and entity report whether f lets one through.
func (f *logFilter) op(name string) bool        { return among(f.ops, name) }
func (f *logFilter) component(name string) bool { return among(f.components, name) }
func (f *logFilter) entity(name string) bool    { return among(f.entities, name) }

// among reports whether name is chosen; nothing chosen is everything.
func among(chosen []string, name string) bool {
	return len(chosen) == 0 || slices.Contains(chosen, name)
}

// mayMatch reports whether a tick can be one that f lets through, by what can be known
// of it without the state that it changed.
func (f *logFilter) mayMatch(d *commitDoc) bool {
	if len(f.components) == 0 || d.Cleared > 0 || d.Destroyed > 0 {
		return true
	}
	return slices.ContainsFunc(d.Components, func(c changeDoc) bool { return f.component(c.Name) })
}

// matches reports whether f lets a tick through, whose values are needed if byValue
// says so.
func (f *logFilter) matches(d *commitDoc, ops []operationDoc, values []rowDoc) bool {
	if !f.any() {
		return true
	}
	if len(f.entities)+len(f.ops) == 0 { // Then what was merely written counts as well.
		return slices.ContainsFunc(d.Components, func(c changeDoc) bool { return f.component(c.Name) })
	}
	byOp := func(o operationDoc) bool { return f.op(o.Op) && f.component(o.Component) && f.entity(o.Entity) }
	byRow := func(v rowDoc) bool { return f.op(v.Op) && f.shows(v) }
	return slices.ContainsFunc(ops, byOp) || slices.ContainsFunc(values, byRow)
}

// shows reports whether f asks for the component and the entity of v.
func (f *logFilter) shows(v rowDoc) bool { return f.component(v.Component) && f.entity(v.Entity) }
