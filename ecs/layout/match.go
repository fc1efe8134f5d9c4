package layout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/internal/near"
)

// A Change is one difference between a stored layout and the program's layout. It also says what a
// [Conversion] does with the stored values.
type Change struct {
	Path string // The field: "Unit.HP", "Bag.Items[].Count".
	What string // "int16 became int64"
	// Set if the new layout has no field or element for the stored values.
	Dropped bool
	// Set if the stored values cannot be converted. Only a [ConversionError] has such changes.
	Refused bool

	// Renamed suggests renames for a dropped field, the most likely first. Each element declares an
	// added field that can take all stored values, with the tag to write: "Life int32
	// `stet:\",was=HP\"`".
	Renamed []string
}

// String returns the change as text: "Unit.HP: int16 became int64". It shows at most eight elements
// of Renamed.
func (c Change) String() string {
	const most = 8
	text := c.What
	if c.Path != "" {
		text = c.Path + ": " + text
	}
	for i, declared := range c.Renamed[:min(most, len(c.Renamed))] {
		text += []string{"; if it was renamed: ", ", or "}[min(i, 1)] + declared
	}
	if more := len(c.Renamed) - most; more > 0 {
		text += fmt.Sprintf(", or %d more", more)
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
	// For a struct: one match per stored field. An element is nil if its field is dropped.
	fields []*match
	// For a struct: the new index of each stored field. An element is -1 if its field is dropped.
	targets []int
}

// A matcher pairs two layouts and records their differences.
type matcher struct {
	changes []Change
	// Greater than 0 while the types inside a map key are paired.
	inKey int
	// Set while lossless() finds out whether a conversion would lose values. Renames are not needed
	// then.
	trial bool
}

// note records a difference.
func (m *matcher) note(path string, dropped bool, format string, args ...any) {
	m.changes = append(m.changes, Change{Path: path, What: fmt.Sprintf(format, args...), Dropped: dropped})
}

// refuse records a difference that cannot be converted. to: the new type, or nil if the field was
// removed.
func (m *matcher) refuse(path string, from, to *Type) {
	m.changes = append(m.changes, Change{Path: strings.TrimPrefix(path, "."), What: differs(from, to), Refused: true})
}

// match pairs two types at the given path. If the types cannot be converted, it records a refused
// change and returns an incomplete pair.
func (m *matcher) match(from, to *Type, path string) *match {
	pair := &match{from: from, to: to, same: from.Equal(to)}
	if text := moved(from.Constants, to.Constants); text != "" {
		m.note(path, false, "stored numbers mean other constants: %s", text)
	}
	switch {
	case from.Kind == Bytes && to.Kind == Slice && widens(Uint8, to.Elem.Kind):
		m.note(path, false, "bytes became %s", brief(to))
		return pair
	case from.Kind != to.Kind && widens(from.Kind, to.Kind):
		m.note(path, false, "%v became %v", from.Kind, to.Kind)
		return pair
	case from.Kind != to.Kind:
		m.refuse(path, from, to)
		return pair
	case from.Kind == Struct:
		m.fields(pair, path)
		return pair
	// Refuse a shorter array in a map key. Keys that differ only in the removed elements would
	// become equal.
	case from.Kind == Array && from.Len > to.Len && m.inKey > 0:
		m.refuse(path, from, to)
		return pair
	case from.Kind == Array && from.Len > to.Len:
		rest := &Type{Kind: Array, Len: from.Len - to.Len, Elem: from.Elem}
		m.note(fmt.Sprintf("%s[%d:]", path, to.Len), true, "dropped, was %s", brief(rest))
	case from.Kind == Array && from.Len < to.Len:
		m.note(path, false, "%d elements became %d, the new ones zero", from.Len, to.Len)
	case from.Kind == Map:
		m.inKey++
		pair.key = m.match(from.Key, to.Key, path+"[key]")
		m.inKey--
	}
	if from.Elem != nil {
		pair.elem = m.match(from.Elem, to.Elem, path+elemPart(from.Kind))
	}
	return pair
}

// fields pairs the fields of two structs by name, then by former names.
func (m *matcher) fields(pair *match, path string) {
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
		pair.fields[i] = m.match(from.Fields[i].Type, to.Fields[k].Type, path+"."+to.Fields[k].Name)
		pair.targets[i] = k
	}
	m.leftOver(pair, path)
}

// heir finds the stored field that was renamed to the field called name. It looks for the former
// names of that field. It removes the stored field from the map and returns its index. If there is
// no such field, it returns -1.
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

// leftOver records dropped fields and a changed order. For each dropped field, it suggests the
// added fields that can take its values.
func (m *matcher) leftOver(pair *match, path string) {
	kept, added := pair.kept(), []int(nil)
	for k := range pair.to.Fields {
		if !slices.Contains(kept, k) {
			added = append(added, k)
		}
	}
	for i, k := range pair.targets {
		f := pair.from.Fields[i]
		if k >= 0 {
			continue
		}
		if m.inKey > 0 { // Keys that differ only in this field would become equal.
			m.refuse(path+"."+f.Name, f.Type, nil)
		} else {
			m.note(path+"."+f.Name, true, "dropped, was %s", brief(f.Type))
		}
		m.changes[len(m.changes)-1].Renamed = m.renamed(pair, i, added)
	}
	if !slices.IsSorted(kept) {
		m.note(path, false, "fields in another order")
	}
}

// renamed returns the declarations of the added fields that can take all values of the stored field
// i. Fields of the same type come first, then fields with a similar name, then fields at a nearby
// position.
func (m *matcher) renamed(pair *match, i int, added []int) (declared []string) {
	stored, to := pair.from.Fields[i], pair.to
	isFormer := func(g Field) bool { return slices.Contains(to.Former[g.Name], stored.Name) }
	// If a field already has the stored name as a former name, no other field can have it.
	if m.trial || slices.ContainsFunc(to.Fields, isFormer) {
		return nil
	}
	takers := slices.DeleteFunc(slices.Clone(added), func(k int) bool { return !m.lossless(stored.Type, to.Fields[k].Type) })
	names := make([]string, len(takers))
	for n, k := range takers {
		names[n] = to.Fields[k].Name
	}
	similar := near.Names(stored.Name, names)
	rank := func(k int) [3]int {
		g := to.Fields[k]
		r := [3]int{2, slices.Index(similar, g.Name), max(k-i, i-k)}
		if g.Type.Equal(stored.Type) {
			if r[0] = 1; g.Type.Name == stored.Type.Name {
				r[0] = 0
			}
		}
		if r[1] < 0 {
			r[1] = len(similar)
		}
		return r
	}
	slices.SortStableFunc(takers, func(i, j int) int {
		x, y := rank(i), rank(j)
		return slices.Compare(x[:], y[:])
	})
	for _, k := range takers {
		declared = append(declared, to.declaration(to.Fields[k], stored.Name))
	}
	return declared
}

// lossless reports whether a conversion between the two types keeps all values.
func (m *matcher) lossless(from, to *Type) bool {
	trial := matcher{inKey: m.inKey, trial: true}
	trial.match(from, to, "")
	return !slices.ContainsFunc(trial.changes, func(c Change) bool { return c.Dropped || c.Refused })
}

// declaration returns the Go declaration of the field g. Its tag lists stored as an additional
// former name.
func (t *Type) declaration(g Field, stored string) string {
	source, ok := t.sources[g.Name]
	if !ok {
		source = fieldSource{g.Name + " " + plainSource(g.Type), ""}
	}
	names := append(slices.Clip(t.Former[g.Name]), stored)
	return fmt.Sprintf("%s `%s:\"%s,was=%s\"`", source.declared, tagKey, source.tagged, strings.Join(names, ",was="))
}

// plainSource returns Go notation for t, derived from the description alone.
func plainSource(t *Type) string {
	name := cmp.Or(t.Name, brief(t))
	if name == Bytes.String() {
		name = "[]byte"
	}
	return name
}

// kept returns the new indices of the fields that are not dropped.
func (pair *match) kept() []int {
	return slices.DeleteFunc(slices.Clone(pair.targets), func(k int) bool { return k < 0 })
}

// widens reports whether the kind to can represent every value of the kind from.
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
