package ecs

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/stet-ecs/stet/ecs/layout"
)

// A Migration converts values of a component from one version to the next: see [Migrate].
type Migration struct {
	from uint32
	// Layout of the old type. Nil if the old type is layout.Value, so that any stored row fits.
	source *layout.Type
	target *layout.Type
	fault  error // The reason why a type of the migration cannot be stored, or nil.

	// run converts n rows from the stored layout to the layout in target. Rows for which skip
	// returns true become zero.
	run func(rows []byte, stored *layout.Type, n int, skip func(int) bool) ([]byte, error)
}

// Migrate converts values of one version into values of the next version. The argument from is the
// earlier version. Use Migrate for changes beyond a conversion of fields by name:
//
//	type speedV1 struct{ Text string } // The old type.
//
//	ecs.Register(w, ecs.Component[Speed]{Version: 2, Migrations: []ecs.Migration{
//		ecs.Migrate(1, func(old speedV1) Speed { … }),
//	}})
//
// The world converts stored values to the type From by field name, calls f, and converts the result
// by field name to the next type. Fields that the next type lacks are lost; see Component.Dropped.
// From may also be [layout.Value]: f then receives the stored row unconverted.
//
// The world calls f for each row of an entity, in dense order. The result of f must depend only on
// its argument. The gaps of an [Indexed] storage get the component's current default, without a
// call of f.
func Migrate[From, To any](from uint32, f func(From) To) Migration {
	m := Migration{from: from}
	target, err := layout.NewCodec(reflect.TypeFor[To]())
	if err != nil {
		m.fault = err
		return m
	}
	m.target = target.Type()
	var source *layout.Codec
	onValues := reflect.TypeFor[From]() == reflect.TypeFor[layout.Value]()
	if !onValues {
		if source, m.fault = layout.NewCodec(reflect.TypeFor[From]()); m.fault != nil {
			return m
		}
		m.source = source.Type()
	}
	m.run = func(rows []byte, stored *layout.Type, n int, skip func(int) bool) (_ []byte, err error) {
		values := make([]From, n)
		if onValues {
			err = decodeValues(stored, rows, any(values).([]layout.Value), skip)
		} else {
			err = layout.Decode(source, rows, values)
		}
		if err != nil {
			return nil, err
		}
		out := make([]To, n)
		for i := range values {
			if !skip(i) {
				out[i] = f(values[i])
			}
		}
		return layout.Append(target, nil, out), nil
	}
	return m
}

// decodeValues decodes rows to generic values. It leaves out rows for which skip returns true.
func decodeValues(stored *layout.Type, rows []byte, values []layout.Value, skip func(int) bool) error {
	for i := range values {
		row, rest, err := stored.Next(rows)
		if err != nil {
			return err
		}
		if rows = rest; skip(i) {
			continue
		}
		if values[i], err = stored.Value(row); err != nil {
			return err
		}
	}
	return nil
}

// An evolution describes the former versions of a component or resource, as the program gave them.
type evolution struct {
	version    uint32
	former     []string    // Former names, the latest name first. May be nil.
	dropped    []string    // Stored fields that the program allows a load to drop.
	migrations []Migration // Sorted by version.
}

var noEvolution evolution

// past returns e, or an empty evolution if e is nil.
func (e *evolution) past() *evolution {
	if e == nil {
		return &noEvolution
	}
	return e
}

// newEvolution checks what the program said about former versions, and returns a copy. It returns
// nil if the program said nothing. current is the layout of the component, or nil.
func newEvolution(said evolution, current *layout.Type) (*evolution, error) {
	if said.version == 0 && said.former == nil && said.dropped == nil && said.migrations == nil {
		return nil, nil
	}
	e := &evolution{said.version, slices.Clone(said.former), slices.Clone(said.dropped), slices.Clone(said.migrations)}
	sort.SliceStable(e.migrations, func(i, j int) bool { return e.migrations[i].from < e.migrations[j].from })
	var before *layout.Type
	for i, m := range e.migrations {
		switch {
		case m.fault != nil:
			return nil, fmt.Errorf("the migration from version %d: %w", m.from, m.fault)
		case m.from >= e.version:
			return nil, fmt.Errorf("a migration from version %d, but it is of version %d; give it a later one as Component.Version", m.from, e.version)
		case i > 0 && e.migrations[i-1].from == m.from:
			return nil, fmt.Errorf("two migrations from version %d", m.from)
		}
		if err := e.checkStep(before, m.source); err != nil {
			return nil, fmt.Errorf("the migration from version %d does not accept the result of the one before: %w", m.from, err)
		}
		before = m.target
	}
	if err := e.checkStep(before, current); err != nil {
		return nil, fmt.Errorf("the result of the last migration does not fit the component: %w", err)
	}
	return e, nil
}

// checkStep returns an error if rows cannot be converted from one layout to the next. It returns
// nil if one of the layouts is nil.
func (e *evolution) checkStep(before, next *layout.Type) error {
	if before == nil || next == nil {
		return nil
	}
	_, _, faults := conversion(before, next, e.dropped)
	if len(faults) == 0 {
		return nil
	}
	return wrapText(faults.refused(), strings.Join(faults.lines(), "; "))
}
