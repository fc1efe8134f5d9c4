package inspect

import (
	"math"
	"strconv"

	"github.com/stet-ecs/stet/ecs/layout"
)

// Two values of the same kind are compared recursively. Each row has a kind and the parts that are
// compared:
//
//	structs             the fields that both structs have, by name
//	maps                the entries, by key
//	arrays, slices      the elements if the lengths are equal; otherwise the whole values
//	pointers            the values that the pointers refer to
//	integers            the numbers, even if the integers have different sizes
//	floats              the numbers, even if the floats have different sizes
//	other kinds, nil    the whole values

// A FieldDiff is a field or element of a row that differs. Path is its path in Go syntax: "X",
// "Info.Range", "Slots[1]", "Counts[\"gold\"]", or "" for the whole row. Old or New is the zero
// Value if that side's map lacks the entry.
type FieldDiff struct {
	Path     string
	Old, New layout.Value
}

// Fields returns the fields in which the two rows of r differ, in declared order. In rows of
// different layouts it compares the fields that both layouts have. It returns nil for a row that
// was added, removed or only moved.
func (c *ComponentDiff) Fields(r RowDiff) ([]FieldDiff, error) {
	if !r.Changed {
		return nil, nil
	}
	return diffFields(c.Old, c.OldRow(r), c.New, c.NewRow(r))
}

// diffFields compares two encoded rows. The row older has the layout from, and the row newer has
// the layout to.
func diffFields(from *layout.Type, older []byte, to *layout.Type, newer []byte) ([]FieldDiff, error) {
	a, err := from.Value(older)
	if err != nil {
		return nil, err
	}
	b, err := to.Value(newer)
	if err != nil {
		return nil, err
	}
	var f fieldDiffs
	f.values("", a, b)
	return f, nil
}

// fieldDiffs collects differences.
type fieldDiffs []FieldDiff

// values compares the two values at path, a and b, whose types may differ. Integers of different
// sizes are compared by value, and so are floats. An integer never equals a float. So a row stays
// the same if only a field type becomes wider.
func (f *fieldDiffs) values(path string, a, b layout.Value) {
	switch {
	case a.Kind() != b.Kind():
		if !sameNumber(a, b) {
			f.add(path, a, b)
		}
	case a.IsNil() || b.IsNil(): // nil and empty are different values.
		if a.IsNil() != b.IsNil() {
			f.add(path, a, b)
		}
	case a.Kind() == layout.Struct:
		f.fields(path, a, b)
	case a.Kind() == layout.Map:
		f.entries(path, a, b)
	case a.Kind() == layout.Pointer:
		f.values(path, a.Index(0), b.Index(0))
	// Slices of different lengths differ as a whole: which elements were inserted is unknown.
	case (a.Kind() == layout.Array || a.Kind() == layout.Slice) && a.Len() == b.Len():
		for i := range a.Len() {
			f.values(path+"["+strconv.Itoa(i)+"]", a.Index(i), b.Index(i))
		}
	case !a.Equal(b):
		f.add(path, a, b)
	}
}

func (f *fieldDiffs) add(path string, a, b layout.Value) { *f = append(*f, FieldDiff{path, a, b}) }

// fields compares the fields that both structs a and b have.
func (f *fieldDiffs) fields(path string, a, b layout.Value) {
	if path != "" {
		path += "."
	}
	for i, field := range a.Type().Fields {
		// A field that only one struct has is a difference of schemas, not of rows.
		if other, ok := b.Field(field.Name); ok {
			f.values(path+field.Name, a.Index(i), other)
		}
	}
}

// entries compares two maps, in the order of the old map. Entries that only the new map has come
// last.
func (f *fieldDiffs) entries(path string, a, b layout.Value) {
	// Compare the texts of keys, since the key types may differ.
	at := make(map[string]int, b.Len())
	for i := range b.Len() {
		at[keyText(b.Key(i))] = i
	}
	for i := range a.Len() {
		key := keyText(a.Key(i))
		if k, ok := at[key]; ok {
			f.values(entryPath(path, a.Key(i)), a.Index(i), b.Index(k))
			delete(at, key)
		} else {
			f.add(entryPath(path, a.Key(i)), a.Index(i), layout.Value{})
		}
	}
	// The remaining keys in at[…] exist only in the new map.
	for i := range b.Len() {
		if _, ok := at[keyText(b.Key(i))]; ok {
			f.add(entryPath(path, b.Key(i)), layout.Value{}, b.Index(i))
		}
	}
}

// keyText returns the exact text of a scalar or string, for comparison across types.
func keyText(key layout.Value) string { return string(key.AppendExact(nil)) }

func entryPath(path string, key layout.Value) string { return path + "[" + key.String() + "]" }

// sameNumber reports whether a and b, which have different kinds, are the same number.
func sameNumber(a, b layout.Value) bool {
	switch isFloat, other := isFloat(a), isFloat(b); {
	case isFloat && other:
		return math.Float64bits(a.Float()) == math.Float64bits(b.Float())
	case isFloat || other || !isInteger(a) || !isInteger(b):
		return false
	}
	return keyText(a) == keyText(b)
}

func isFloat(v layout.Value) bool { return v.Kind() == layout.Float32 || v.Kind() == layout.Float64 }

func isInteger(v layout.Value) bool { return v.Kind() >= layout.Int8 && v.Kind() <= layout.Uint64 }
