package query

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/stet-ecs/stet/ecs/layout"
)

// Printing and comparing answers does not depend on their Go types: an int 1 equals a uint64 1 and
// a float64 1. Numbers compare exactly, even beyond 2^53.

// An Answer is the result of an expression for an entity. An answer without a value is "-" as text
// and null as JSON. Other values are written as in package layout, but a string that is the whole
// answer has no quotes.
type Answer struct{ v any }

// String returns a as text on one line.
func (a Answer) String() string {
	// The most frequent types need no reflection.
	switch v := a.v.(type) {
	case nil:
		return "-"
	case string:
		return v
	case int:
		return strconv.Itoa(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return goText(reflect.ValueOf(a.v), unnamed)
}

// unnamed is the layout of a computed value, which is no field. Its numbers have no names.
var unnamed = &layout.Type{}

// goText returns v in the syntax of package layout. If t is the type of a field, numbers are
// written by their names, such as Running or 1.5s. For a computed value, t is unnamed.
func goText(v reflect.Value, t *layout.Type) string {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		return "&" + goText(v.Elem(), elem(t))
	}
	v = concrete(v)
	switch v.Kind() {
	case reflect.Invalid:
		return "nil"
	case reflect.Int:
		return named(v, t, v.Int())
	case reflect.Uint64:
		return named(v, t, int64(v.Uint()))
	case reflect.String:
		return strconv.Quote(v.String())
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	case reflect.Struct:
		if n, ok := v.Interface().(big.Int); ok {
			return n.String()
		}
		// The expression may have created the struct. Then t is unnamed, and fieldType returns
		// unnamed.
		return parts("{", v.NumField(), " ", "}", func(i int) string { return fieldName(v, i) + ":" + goText(v.Field(i), fieldType(t, i)) })
	case reflect.Slice:
		if v.IsNil() {
			return "nil"
		}
		if b, ok := v.Interface().([]byte); ok {
			return fmt.Sprintf("0x%x", b)
		}
		return parts("[", v.Len(), " ", "]", func(i int) string { return goText(v.Index(i), elem(t)) })
	case reflect.Map:
		keys := sortedKeys(v)
		return parts("map[", len(keys), " ", "]", func(i int) string { return goText(keys[i], key(t)) + ":" + goText(v.MapIndex(keys[i]), elem(t)) })
	}
	return fmt.Sprint(v.Interface())
}

// named returns the text of an integer v: the name that type t gives to it, such as "Running" or
// "1.5s", or else the number. The parameter n is v as an int64.
func named(v reflect.Value, t *layout.Type, n int64) string {
	if name := t.NameOf(n); name != "" {
		return name
	}
	return fmt.Sprint(v.Interface())
}

// elem returns the element type of t. If t has no element type, it returns unnamed.
func elem(t *layout.Type) *layout.Type { return cmp.Or(t.Elem, unnamed) }

// key returns the key type of t.
func key(t *layout.Type) *layout.Type { return cmp.Or(t.Key, unnamed) }

// fieldType returns the type of field i of t.
func fieldType(t *layout.Type, i int) *layout.Type {
	if i < len(t.Fields) {
		return t.Fields[i].Type
	}
	return unnamed
}

// parts returns the text before + part(0) + sep + part(1) + … + part(n-1) + after.
func parts(before string, n int, sep, after string, part func(i int) string) string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = part(i)
	}
	return before + strings.Join(texts, sep) + after
}

// dereferenced returns a copy of the target of the pointer v. It returns nil for a nil pointer, and
// v if v is no pointer.
func dereferenced(v any) any {
	r := concrete(reflect.ValueOf(v))
	if !r.IsValid() {
		return nil
	}
	return r.Interface()
}

// concrete returns the value inside interfaces and pointers, or the zero Value for nil.
func concrete(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v
}

// fieldName returns the name of field i in the layout.
func fieldName(v reflect.Value, i int) string { return v.Type().Field(i).Tag.Get("expr") }

// sortedKeys returns the keys of a map in a fixed order.
func sortedKeys(v reflect.Value) []reflect.Value {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int {
		return Answer{dereferenced(a.Interface())}.Compare(Answer{dereferenced(b.Interface())})
	})
	return keys
}

// MarshalJSON implements [json.Marshaler].
func (a Answer) MarshalJSON() ([]byte, error) { return []byte(jsonText(reflect.ValueOf(a.v))), nil }

// jsonText returns v as JSON in the format of package layout: numbers are exact, and missing values
// are null.
func jsonText(v reflect.Value) string {
	v = concrete(v)
	switch v.Kind() {
	case reflect.Invalid:
		return "null"
	case reflect.Struct:
		if n, ok := v.Interface().(big.Int); ok {
			return n.String()
		}
		return jsonObject(v.NumField(), func(i int) (string, any) { return fieldName(v, i), v.Field(i).Interface() })
	case reflect.Slice:
		if _, isBytes := v.Interface().([]byte); !isBytes && !v.IsNil() {
			return parts("[", v.Len(), ",", "]", func(i int) string { return jsonText(v.Index(i)) })
		}
	case reflect.Map:
		if !v.IsNil() {
			keys := sortedKeys(v)
			return jsonObject(len(keys), func(i int) (string, any) {
				return Answer{dereferenced(keys[i].Interface())}.String(), v.MapIndex(keys[i]).Interface()
			})
		}
	}
	// The other kinds are scalars, bytes, and nil slices and maps.
	b, err := Marshal(v.Interface())
	// A value that JSON lacks, such as NaN, becomes text.
	if err != nil {
		b, _ = Marshal(fmt.Sprint(v.Interface()))
	}
	return string(b)
}

// jsonObject returns a JSON object of n members in the given order.
func jsonObject(n int, member func(i int) (name string, v any)) string {
	return parts("{", n, ",", "}", func(i int) string {
		name, v := member(i)
		return jsonText(reflect.ValueOf(name)) + ":" + jsonText(reflect.ValueOf(v))
	})
}

// Record returns answers with these names as a JSON object.
func Record(names []string, answers []Answer) []byte {
	return []byte(jsonObject(len(names), func(i int) (string, any) { return names[i], answers[i].v }))
}

// Marshal returns v as JSON without escaping <, > and &.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Compare orders answers: false, true, numbers, text, other values by their text, NaN, and nil
// last. Numbers compare by value, even if their types differ.
func (a Answer) Compare(b Answer) int {
	if c := cmp.Compare(a.rank(), b.rank()); c != 0 {
		return c
	}
	if c, ok := ordered(a.v, b.v); ok && c != unordered {
		return c
	}
	return strings.Compare(a.String(), b.String())
}

// Key returns a text that identifies an answer, for grouping and counting. It distinguishes the
// number 1 from the text "1".
func (a Answer) Key() string { return strconv.Itoa(a.rank()) + " " + a.String() }

// Float returns a as a number: true is 1, and false is 0. It returns false for other types.
func (a Answer) Float() (float64, bool) {
	if b, ok := a.v.(bool); ok {
		if b {
			return 1, true
		}
		return 0, true
	}
	if x, ok := exact(a.v); ok && x != nil {
		f, _ := x.Float64()
		return f, true
	}
	return math.NaN(), false
}

// Plain reports whether a can be a map key. Plain answers are nil, booleans, ints, strings, and
// floats other than 0 and NaN. If two plain answers are equal under ==, they have the same
// [Answer.Key].
func (a Answer) Plain() bool {
	switch v := a.v.(type) {
	case nil, bool, int, string:
		return true
	case float64:
		// 0 and -0 have different keys, although they are equal under ==.
		return v != 0 && !math.IsNaN(v)
	}
	return false
}

// Text returns a if it is text.
func (a Answer) Text() (text string, ok bool) {
	text, ok = a.v.(string)
	return text, ok
}

// Nothing reports whether a has no value.
func (a Answer) Nothing() bool { return a.v == nil }

// rank returns the position of the type of a in the order of answers.
//
//	0 false   1 true   2 numbers   3 text   4 structs, lists and maps   5 NaN   6 nil
func (a Answer) rank() int {
	switch v := a.v.(type) {
	case nil:
		return 6
	case bool:
		if v {
			return 1
		}
		return 0
	case float64:
		if math.IsNaN(v) {
			return 5
		}
		return 2
	case int, uint8, uint64, big.Int:
		return 2
	case string:
		return 3
	}
	return 4
}

// unordered is the result of comparing a number with NaN.
const unordered = 2

// ordered compares two numbers exactly, or two texts. ok is false for all other types.
func ordered(a, b any) (c int, ok bool) {
	if a, ok := a.(string); ok {
		b, ok := b.(string)
		return cmp.Compare(a, b), ok
	}
	// Only numbers of different types need a big.Float.
	if a, ok := a.(int); ok {
		if b, ok := b.(int); ok {
			return cmp.Compare(a, b), true
		}
	}
	if a, ok := a.(float64); ok {
		if b, ok := b.(float64); ok && !math.IsNaN(a) && !math.IsNaN(b) {
			return cmp.Compare(a, b), true
		}
	}
	x, ok := exact(a)
	y, ok2 := exact(b)
	switch {
	case !ok || !ok2:
		return 0, false
	case x == nil || y == nil:
		return unordered, true
	}
	return x.Cmp(y), true
}

// exact returns a number as a big.Float with all its digits. It returns nil for NaN, and false for
// other types.
func exact(v any) (*big.Float, bool) {
	switch v := v.(type) {
	case int:
		return new(big.Float).SetInt64(int64(v)), true
	case uint8:
		return new(big.Float).SetUint64(uint64(v)), true
	case uint64:
		return new(big.Float).SetUint64(v), true
	case big.Int:
		return new(big.Float).SetInt(&v), true
	case float64:
		if math.IsNaN(v) {
			return nil, true
		}
		return new(big.Float).SetFloat64(v), true
	}
	return nil, false
}

// Types of answers. Answers of different types may compare as equal but are distinct: 1 as an
// integer and 1 as a float.
const (
	noAnswer = iota
	intAnswer
	wideAnswer
	floatAnswer
	textAnswer
	truthAnswer
	otherAnswer
)

// kindOf returns the type of a as one of these constants.
func kindOf(a Answer) int {
	switch a.v.(type) {
	case nil:
		return noAnswer
	case int:
		return intAnswer
	case uint64:
		return wideAnswer
	case float64:
		return floatAnswer
	case string:
		return textAnswer
	case bool:
		return truthAnswer
	}
	return otherAnswer
}
