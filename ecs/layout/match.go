package layout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Change is one difference between a stored layout and the program's layout. It also says what a
// [Conversion] does with the stored values.
type Change struct {
	Path string // The field: "Unit.HP", "Bag.Items[].Count".
	What string // "int16 became int64"
	// Set if the new layout has no field or element for the stored values.
	Dropped bool

	// Renamed is set if the field was dropped and a field of the same type was added. It shows how
	// to declare the added field as a new name of the dropped one: "Life int32 `stet:\",was=HP\"`".
	Renamed string
}

// String returns the change as text: "Unit.HP: int16 became int64".
func (c Change) String() string {
	text := c.What
	if c.Path != "" {
		text = c.Path + ": " + text
	}
	if c.Renamed != "" {
		text += "; if it was renamed: " + c.Renamed
	}
	return text
}

// A match pairs a type inside a stored layout with the corresponding type of the program's layout.
type match struct {
	from, to *Type
	// Set if both types have the same encoding.
	same bool
	key  *match
	elem *match
	// For a struct: one match per field of from. It is nil if the field is dropped.
	fields []*match
	// For a struct: the index in to of each field of from. It is -1 if the field is dropped.
	targets []int
}

// A matcher pairs two layouts and records their differences.
type matcher struct {
	changes []Change
	// Nesting depth in keys of maps. It is 0 outside keys.
	inKey int
}

// note records a difference.
func (m *matcher) note(path string, dropped bool, format string, args ...any) {
	m.changes = append(m.changes, Change{Path: path, What: fmt.Sprintf(format, args...), Dropped: dropped})
}

// match pairs from and to at the given path. The error is the first difference that a Conversion
// cannot convert, or nil.
func (m *matcher) match(from, to *Type, path string) (*match, *ConversionError) {
	pair := &match{from: from, to: to, same: from.Equal(to)}
	if text := moved(from.Constants, to.Constants); text != "" {
		m.note(path, false, "stored numbers mean other constants: %s", text)
	}
	var err *ConversionError
	switch {
	case from.Kind == Bytes && to.Kind == Slice && widens(Uint8, to.Elem.Kind):
		m.note(path, false, "bytes became %s", brief(to))
		return pair, nil
	case from.Kind != to.Kind && widens(from.Kind, to.Kind):
		m.note(path, false, "%v became %v", from.Kind, to.Kind)
		return pair, nil
	case from.Kind != to.Kind:
		return nil, refuse(path, from, to)
	case from.Kind == Struct:
		return pair, m.fields(pair, path)
	// Without the removed elements, different keys could become equal.
	case from.Kind == Array && from.Len > to.Len && m.inKey > 0:
		return nil, refuse(path, from, to)
	case from.Kind == Array && from.Len > to.Len:
		rest := &Type{Kind: Array, Len: from.Len - to.Len, Elem: from.Elem}
		m.note(fmt.Sprintf("%s[%d:]", path, to.Len), true, "dropped, was %s", brief(rest))
	case from.Kind == Array && from.Len < to.Len:
		m.note(path, false, "%d elements became %d, the new ones zero", from.Len, to.Len)
	case from.Kind == Map:
		m.inKey++
		pair.key, err = m.match(from.Key, to.Key, path+"[key]")
		if m.inKey--; err != nil {
			return nil, err
		}
	}
	if from.Elem != nil {
		pair.elem, err = m.match(from.Elem, to.Elem, path+elemPart(from.Kind))
	}
	return pair, err
}

// fields pairs the fields of two structs by name, then by former names.
func (m *matcher) fields(pair *match, path string) *ConversionError {
	from, to := pair.from, pair.to
	n := len(from.Fields)
	pair.fields, pair.targets = make([]*match, n), make([]int, n)
	for i := range pair.targets {
		pair.targets[i] = -1
	}
	stored := make(map[string]int, n)
	for i, f := range from.Fields {
		stored[f.Name] = i
	}
	sources := make([]int, len(to.Fields))
	for k, g := range to.Fields {
		if i, ok := stored[g.Name]; ok {
			sources[k] = i
			delete(stored, g.Name)
		} else {
			sources[k] = -1
		}
	}
	for k, g := range to.Fields {
		if sources[k] < 0 {
			sources[k] = m.heir(to, g.Name, stored, path)
		}
	}
	for k, i := range sources {
		if i < 0 {
			m.note(path+"."+to.Fields[k].Name, false, "added, zero")
			continue
		}
		var err *ConversionError
		if pair.fields[i], err = m.match(from.Fields[i].Type, to.Fields[k].Type, path+"."+to.Fields[k].Name); err != nil {
			return err
		}
		pair.targets[i] = k
	}
	return m.leftOver(pair, path)
}

// heir returns the index of the stored field that the field name of to replaces, by its former
// names. It returns -1 if none is stored. It removes the field from stored.
func (m *matcher) heir(to *Type, name string, stored map[string]int, path string) int {
	for _, former := range to.Former[name] {
		if i, ok := stored[former]; ok {
			delete(stored, former)
			m.note(path+"."+name, false, "was %s", former)
			return i
		}
	}
	return -1
}

// leftOver records dropped fields and a changed order. For each dropped field, it suggests a rename
// to the first added field of the same type that has no suggestion yet.
func (m *matcher) leftOver(pair *match, path string) *ConversionError {
	kept, added := pair.kept(), []Field(nil)
	for k, g := range pair.to.Fields {
		if !slices.Contains(kept, k) {
			added = append(added, g)
		}
	}
	for i, k := range pair.targets {
		f := pair.from.Fields[i]
		switch {
		case k < 0 && m.inKey > 0: // Without the field, different keys could become equal.
			return refuse(path+"."+f.Name, f.Type, nil)
		case k < 0:
			m.note(path+"."+f.Name, true, "dropped, was %s", brief(f.Type))
			if a := slices.IndexFunc(added, func(g Field) bool { return g.Type.Equal(f.Type) }); a >= 0 {
				m.changes[len(m.changes)-1].Renamed = renamed(added[a], pair.to.Former[added[a].Name], f.Name)
				added = slices.Delete(added, a, a+1)
			}
		}
	}
	if !slices.IsSorted(kept) {
		m.note(path, false, "fields in another order")
	}
	return nil
}

// renamed returns the declaration of g, with stored added to its former names.
func renamed(g Field, former []string, stored string) string {
	name := cmp.Or(g.Type.Name, brief(g.Type))
	if name == Bytes.String() {
		name = "[]byte"
	}
	return fmt.Sprintf("%s %s `%s:\",was=%s\"`", g.Name, name, tagKey, strings.Join(append(slices.Clip(former), stored), ",was="))
}

// kept returns the new indices of the fields that are not dropped.
func (pair *match) kept() []int {
	return slices.DeleteFunc(slices.Clone(pair.targets), func(k int) bool { return k < 0 })
}

// refuse returns the error for a difference that cannot be converted. to is nil if the field was
// removed.
func refuse(path string, from, to *Type) *ConversionError {
	return &ConversionError{strings.TrimPrefix(path, "."), differs(from, to)}
}

// widens reports whether kind to can represent every value of kind from.
func widens(from, to Kind) bool {
	switch {
	case from.signed() && to.signed(), from.unsigned() && (to.unsigned() || to.signed()):
		return from.bits() < to.bits()
	// An integer must fit exactly into the 24 or 53 bits of a float's significand.
	case from.signed() || from.unsigned():
		return to == Float32 && from.bits() <= 16 || to == Float64 && from.bits() <= 32
	}
	return from == Float32 && to == Float64 || from == Complex64 && to == Complex128
}
