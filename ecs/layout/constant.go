package layout

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Constants are numbers in memory and on disk. What the String method of their type
// calls them stands in the description, so that somebody notices when a number that was
// stored means another one:
//
//	Colour{Red Green Blue}    0 is Red, 1 is Green, 2 is Blue
//	Month{_ January February} 0 has no name
//
// That is part of the name that the description holds, for people as all of it. A
// time.Duration is described by that name, with its package, which no other type has.

// namedNumbers is how many numbers, from 0 on, String is asked about.
const namedNumbers = 64

// constantsOf returns what the String method of t, an integer, calls the numbers from 0
// on: "" for what is no plain name or that of several numbers, nil if there are none.
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

// nameOfNumber returns String of the number i, or "" if it panics.
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

// trimmed returns names without those at the end that are "", nil if nothing is left.
func trimmed(names []string) []string {
	for len(names) > 0 && names[len(names)-1] == "" {
		names = names[:len(names)-1]
	}
	if len(names) == 0 {
		return nil
	}
	return names
}

// setFullName is fullName the other way round. A name that constants do not explain is
// one without.
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

// moved lists the constants that have other numbers in to than in from, for people; ""
// if there are none.
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

// duration is the name of the one type that is described with its package: of another
// Duration nobody knows what it counts.
const duration = "time.Duration"

func (t *Type) isDuration() bool { return t.Kind == Int64 && t.Name == duration }
