package layout

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Of describes a Go type. The error is a [*TypeError] that names the first field that cannot be
// stored.
//
// A type is an [Entity] if it is a uint64 with the methods Index and Generation, both returning
// uint32. Index must return the low 32 bits. Of does not use encoding methods of the type. For an
// integer, it calls the String method to fill [Type.Constants].
func Of(t reflect.Type) (*Type, error) {
	if t == nil {
		return nil, &TypeError{Path: "nil", Reason: "interface values cannot be stored"}
	}
	d := describer{root: t, open: map[reflect.Type]bool{}}
	typ, err := d.describe(t, rootPath(t), 1)
	if err != nil {
		return nil, err
	}
	if fault := typ.validate(); fault != nil {
		return nil, &TypeError{Type: t, Path: cmp.Or(fault.Path, t.String()), Reason: fault.Reason}
	}
	if len(typ.Append(nil)) > maxDescription {
		return nil, d.fault(rootPath(t), fmt.Sprintf("description is larger than %d bytes", maxDescription))
	}
	return typ, nil
}

// rootPath returns the start of all paths into t: its name or, if it has none, its notation.
func rootPath(t reflect.Type) string { return cmp.Or(typeName(t), t.String()) }

// A describer describes one Go type.
type describer struct {
	root reflect.Type
	// Types that are being described. A type that occurs inside itself is recursive.
	open map[reflect.Type]bool
	// Number of types described so far, including repeated ones.
	parts int
}

// fault returns the error for the field at path.
func (d *describer) fault(path, reason string) *TypeError {
	return &TypeError{Type: d.root, Path: path, Reason: reason}
}

// describe describes t at the given path. depth is the nesting depth of t, from 1.
func (d *describer) describe(t reflect.Type, path string, depth int) (*Type, *TypeError) {
	if reason := d.refusal(t, depth); reason != "" {
		return nil, d.fault(path, reason)
	}
	d.parts++
	d.open[t] = true
	defer delete(d.open, t)

	typ := &Type{Kind: kindOf(t), Name: typeName(t)}
	var err *TypeError
	switch typ.Kind {
	case Struct:
		return typ, d.fields(typ, t, path, depth)
	case Array:
		typ.Len = t.Len()
	case Map:
		if typ.Key, err = d.describe(t.Key(), path+"[key]", depth+1); err != nil {
			return nil, err
		}
	case Slice, Pointer:
	default:
		if typ.Kind.signed() || typ.Kind.unsigned() {
			// Omit the constants if the name with all of them would be too long.
			if typ.Constants = constantsOf(t); !validTypeName(typ.fullName()) {
				typ.Constants = nil
			}
		}
		return typ, nil
	}
	typ.Elem, err = d.describe(t.Elem(), path+elemPart(typ.Kind), depth+1)
	return typ, err
}

// fields adds the fields of the struct t to typ. It skips fields named _.
func (d *describer) fields(typ *Type, t reflect.Type, path string, depth int) *TypeError {
	for f := range t.Fields() {
		if f.Name == "_" {
			continue
		}
		name, former, fault := parseTag(f)
		if fault != "" {
			return d.fault(path+"."+f.Name, fault)
		}
		described, err := d.describe(f.Type, path+"."+f.Name, depth+1)
		if err != nil {
			return err
		}
		typ.Fields = append(typ.Fields, Field{name, described})
		if former != nil {
			if typ.Former == nil {
				typ.Former = make(map[string][]string)
			}
			typ.Former[name] = former
		}
		if source := sourceOf(f); source != (fieldSource{name + " " + plainSource(described), ""}) {
			if typ.sources == nil {
				typ.sources = make(map[string]fieldSource)
			}
			typ.sources[name] = source
		}
	}
	if fault := typ.formerFault(); fault != "" {
		return d.fault(path, fault)
	}
	return nil
}

// refusal returns the reason why t cannot be stored, or "".
func (d *describer) refusal(t reflect.Type, depth int) string {
	switch {
	case d.open[t]:
		return "recursive types cannot be stored"
	case depth > maxDepth:
		return fmt.Sprintf("nested more than %d deep", maxDepth)
	case d.parts >= maxParts:
		return fmt.Sprintf("more than %d fields", maxParts)
	case kindOf(t) == 0:
		return kindNames[t.Kind()] + " values cannot be stored"
	}
	return cmp.Or(refusedTypes[t.PkgPath()+"."+t.Name()], refusedPackages[t.PkgPath()])
}

// kindNames names the kinds of Go types that cannot be stored.
var kindNames = map[reflect.Kind]string{
	reflect.Chan:          "chan",
	reflect.Func:          "func",
	reflect.Interface:     "interface",
	reflect.UnsafePointer: "unsafe.Pointer",
}

// refusedTypes and refusedPackages list types whose kinds could be stored, but whose values would
// be useless or wrong after a load.
var (
	refusedTypes = map[string]string{
		"time.Time":     "a time.Time points to a time zone and cannot be stored; keep UnixNano (of years from 1678 to 2261) or UnixMilli in an int64",
		"time.Location": "a time.Location cannot be stored; keep its name",
	}
	refusedPackages = map[string]string{
		"sync":   "locks and other values of package sync cannot be stored",
		"unique": "values of package unique cannot be stored; keep what they stand for",
	}
)

// kindOf returns the kind that describes t, or 0 if t cannot be stored.
func kindOf(t reflect.Type) Kind {
	if t.Kind() == reflect.Uint64 && t.Implements(entityType) {
		return Entity
	}
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return Bytes
	}
	return goKinds[t.Kind()]
}

var entityType = reflect.TypeFor[interface {
	Index() uint32
	Generation() uint32
}]()

// goKinds maps the kinds of reflect to the kinds of this package.
var goKinds = map[reflect.Kind]Kind{
	reflect.Bool:       Bool,
	reflect.Int:        Int64,
	reflect.Int8:       Int8,
	reflect.Int16:      Int16,
	reflect.Int32:      Int32,
	reflect.Int64:      Int64,
	reflect.Uint:       Uint64,
	reflect.Uint8:      Uint8,
	reflect.Uint16:     Uint16,
	reflect.Uint32:     Uint32,
	reflect.Uint64:     Uint64,
	reflect.Uintptr:    Uint64,
	reflect.Float32:    Float32,
	reflect.Float64:    Float64,
	reflect.Complex64:  Complex64,
	reflect.Complex128: Complex128,
	reflect.String:     String,
	reflect.Struct:     Struct,
	reflect.Array:      Array,
	reflect.Slice:      Slice,
	reflect.Map:        Map,
	reflect.Pointer:    Pointer,
}

// typeName returns the name of t without package names, also in type arguments. It returns "" for
// predeclared types like int, and for types without a name.
func typeName(t reflect.Type) string {
	switch {
	case t.PkgPath() == "":
		return ""
	case t == reflect.TypeFor[time.Duration]():
		return duration
	}
	if short := withoutPackages(t.Name()); validTypeName(short) {
		return short
	}
	return ""
}

// sourceOf returns the Go source of f, without package names.
func sourceOf(f reflect.StructField) fieldSource {
	const most = 80
	declared := cmp.Or(typeName(f.Type), withoutPackages(f.Type.String()))
	if len(declared) > most || !validTypeName(declared) {
		declared = "…"
	}
	if !f.Anonymous {
		declared = f.Name + " " + declared
	}
	tagged, _, _ := strings.Cut(f.Tag.Get(tagKey), ",")
	return fieldSource{strings.ReplaceAll(declared, "[]uint8", "[]byte"), tagged}
}

// withoutPackages removes the package names from the notation of a type.
func withoutPackages(name string) string {
	var b strings.Builder
	// The index at which the current word starts.
	word := 0
	for i, r := range name {
		if strings.ContainsRune("[], *;{}()", r) {
			b.WriteString(withoutPackage(name[word:i]))
			b.WriteRune(r)
			word = i + len(string(r))
		}
	}
	b.WriteString(withoutPackage(name[word:]))
	return b.String()
}

// withoutPackage returns the part of the parameter word after the last ".". It drops the number
// that the compiler adds to types declared in functions.
func withoutPackage(word string) string {
	word, _, _ = strings.Cut(word, "·")
	return word[strings.LastIndexByte(word, '.')+1:]
}
