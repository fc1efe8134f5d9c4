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

// Answers have the Go types of columns (see column), or types that package expr derives from them.
// Printing and comparing must not depend on the type: an int 1 equals a uint64 1 and a float64 1.
// Numbers compare exactly, which float64 cannot do beyond 2^53.

// An Answer is the result of an expression for an entity, as text and as JSON. An answer without a
// value is "-" as text and null as JSON. Other values are written as in package layout, but a
// single text has no quotes.
type Answer struct{ v any }

// String returns a as text on one line.
func (a Answer) String() string {
	// The most frequent types are handled without reflection.
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

// unnamed is used as the type of a value that is not a field. In such a value, numbers have no
// names.
var unnamed = &layout.Type{}

// goText returns v in the syntax of package layout. The result of an expression may combine
// several values, so it need not have a layout.
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
		// If the expression created this struct, the types of its fields are unknown.
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

// named returns the text of an integer v, which equals n. The text is the name that the type t has
// for n, such as the constant "Running" or the duration "1.5s". Without a name, the text is the
// number.
func named(v reflect.Value, t *layout.Type, n int64) string {
	if name := t.NameOf(n); name != "" {
		return name
	}
	return fmt.Sprint(v.Interface())
}

// elem returns the element type of t, or unnamed if t has none, such as for a list that an
// expression created.
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

// dereferenced returns a copy of the value that v points to, or v itself if it is not a pointer. It
// returns nil for a nil pointer.
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

// sortedKeys returns the keys of a map in a fixed order, so that equal states print the same.
func sortedKeys(v reflect.Value) []reflect.Value {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int {
		return Answer{dereferenced(a.Interface())}.Compare(Answer{dereferenced(b.Interface())})
	})
	return keys
}

// MarshalJSON implements [json.Marshaler].
func (a Answer) MarshalJSON() ([]byte, error) { return []byte(jsonText(reflect.ValueOf(a.v))), nil }

// jsonText returns v as package layout would write it: numbers are exact, and missing values are
// null.
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
	// All other values are scalars, bytes, and nil slices and maps. Bytes become base64, nil
	// becomes null.
	b, err := Marshal(v.Interface())
	// A value without a JSON form, such as NaN, becomes text.
	if err != nil {
		b, _ = Marshal(fmt.Sprint(v.Interface()))
	}
	return string(b)
}

// jsonObject returns an object of n members in their order. Package json would change the order.
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
// last. Equal numbers of different types compare as equal, although they are distinct answers.
func (a Answer) Compare(b Answer) int {
	if c := cmp.Compare(a.rank(), b.rank()); c != 0 {
		return c
	}
	if c, ok := ordered(a.v, b.v); ok && c != unordered {
		return c
	}
	return strings.Compare(a.String(), b.String())
}

// Key returns a text that is equal for equal answers, for grouping and counting. The rank
// distinguishes the number 1 from the text "1".
func (a Answer) Key() string { return strconv.Itoa(a.rank()) + " " + a.String() }

// Float returns a as a number, with 1 for true and 0 for false. It returns false if a is not a
// number or boolean.
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

// Plain reports whether a has one of the most frequent types: nil, bool, int, string or float64.
// Plain answers that are == have the same [Answer.Key].
func (a Answer) Plain() bool {
	switch v := a.v.(type) {
	case nil, bool, int, string:
		return true
	case float64:
		// 0 equals -0, but their keys differ, so 0 is not plain.
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

// rank returns the position of the type of a in the order of answers. An expression may return
// numbers for some entities and text for others, so rank defines an order of all types.
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

// ordered compares two numbers exactly, or two texts. ok is false for other types.
func ordered(a, b any) (c int, ok bool) {
	if a, ok := a.(string); ok {
		b, ok := b.(string)
		return cmp.Compare(a, b), ok
	}
	// Most pairs have one of these types. Only pairs of different types need big numbers.
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

// exact returns a number with all its digits, or nil for NaN. A big.Float has the precision of its
// value: 64 bits or more for integers, 53 for a float.
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

// Types of answers. Answers of different types can compare as equal and still be distinct: 1 as an
// integer and 1 as a float. If such answers are the smallest or largest, min and max return the
// answer of the first entity.
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
