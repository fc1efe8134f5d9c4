package layout

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// A constant such as Red is stored as its number. The description of its type also holds the names
// that the String method returns for the numbers 0 to 63. So a program can detect that a stored
// number has another meaning now. In the description, the names follow the name of the type:
//
//	Colour{Red Green Blue}    0 is Red, 1 is Green, 2 is Blue
//	Month{_ January February} 0 has no name
//
// The name of time.Duration contains its package in a description. No other type has a package in
// its name.

// namedNumbers is the number of values, starting at 0, for which String is called.
const namedNumbers = 64

// constantsOf returns the names that the String method of t, an integer type, returns for the
// numbers 0, 1, 2 and so on. A name is "" if it is not an identifier or belongs to several numbers.
// The result is nil if no number has a name.
func constantsOf(t reflect.Type) (names []string) {
	if !t.Implements(reflect.TypeFor[fmt.Stringer]()) {
		return nil
	}
	numbers := map[string]int{}
	for i := range namedNumbers {
		name := nameOfNumber(t, i)
		names = append(names, name)
		numbers[name]++
	}
	for i, name := range names {
		if numbers[name] > 1 || !validFieldName(name) {
			names[i] = ""
		}
	}
	return trimmed(names)
}

// nameOfNumber returns the result of String for the number i, or "" if String panics.
func nameOfNumber(t reflect.Type, i int) (name string) {
	defer func() {
		if recover() != nil {
			name = ""
		}
	}()
	v := reflect.New(t).Elem()
	if v.CanInt() {
		v.SetInt(int64(i))
	} else {
		v.SetUint(uint64(i))
	}
	return v.Interface().(fmt.Stringer).String()
}

// trimmed returns names without empty names at the end, or nil if all names are empty.
func trimmed(names []string) []string {
	for len(names) > 0 && names[len(names)-1] == "" {
		names = names[:len(names)-1]
	}
	if len(names) == 0 {
		return nil
	}
	return names
}

// setFullName splits a name like "Colour{Red Green}" into the type name and the constants. If the
// text in braces is not a valid list of constants, it stays in the name.
func (t *Type) setFullName(name string) {
	t.Name = name
	open := strings.LastIndexByte(name, '{')
	if open < 0 || !t.Kind.signed() && !t.Kind.unsigned() {
		return
	}
	with := Type{Name: name[:open], Constants: strings.Split(strings.TrimSuffix(name[open+1:], "}"), " ")}
	for i, c := range with.Constants {
		if c == "_" {
			with.Constants[i] = ""
		} else if !validFieldName(c) {
			return
		}
	}
	if with.Constants = trimmed(with.Constants); with.fullName() == name {
		t.Name, t.Constants = with.Name, with.Constants
	}
}

// moved lists the constants that have different numbers in the two lists, as text. It returns "" if
// no number differs.
func moved(from, to []string) string {
	const most = 3
	var all []string
	for was, name := range from {
		if now := slices.Index(to, name); name != "" && now >= 0 && now != was {
			all = append(all, fmt.Sprintf("%s was %d, is %d", name, was, now))
		}
	}
	if more := len(all) - most; more > 0 {
		all = append(all[:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(all, ", ")
}

// duration is the only type name that a description stores with its package. Types named Duration
// in other packages can have another unit.
const duration = "time.Duration"

func (t *Type) isDuration() bool { return t.Kind == Int64 && t.Name == duration }
