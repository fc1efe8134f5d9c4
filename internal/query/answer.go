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

// Answers are of the Go types that columns have (see column), or whatever package expr makes of
// these. How they print and compare must not depend on which: the number 1 is the same as int, uint64
// and float64, and numbers compare exactly, which no conversion to float64 would do beyond 2^53.

// An Answer is what an expression gives for an entity, for people and as JSON.
// Nothing is "-" and null; everything else is as package layout writes it, but text
// is not quoted if it stands alone.
type Answer struct{ v any }

// String returns a for people, on one line.
func (a Answer) String() string {
	switch v := a.v.(type) { // What most are, without a look at its type.
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

// unnamed is the type of what is not a field.
var unnamed = &layout.Type{}

// goText returns v as package layout writes it. That package writes values of a layout; what an
// expression gives may be put together from several, or be a list that it made: it has none.
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
		// v may have been made by an expression, and t be unnamed: then fields have no types.
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

// named returns the number n of t, which is v: the name of a constant or a duration if it is one, as
// "Running" or "1.5s", else its digits.
func named(v reflect.Value, t *layout.Type, n int64) string {
	if name := t.NameOf(n); name != "" {
		return name
	}
	return fmt.Sprint(v.Interface())
}

// elem returns the type of what is in t: unnamed if t is, as of a list that an expression made.
func elem(t *layout.Type) *layout.Type { return cmp.Or(t.Elem, unnamed) }

// key returns the type of the keys of t.
func key(t *layout.Type) *layout.Type { return cmp.Or(t.Key, unnamed) }

// fieldType returns the type of field i of t.
func fieldType(t *layout.Type, i int) *layout.Type {
	if i < len(t.Fields) {
		return t.Fields[i].Type
	}
	return unnamed
}

// parts returns n parts with brackets around and sep between.
func parts(before string, n int, sep, after string, part func(i int) string) string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = part(i)
	}
	return before + strings.Join(texts, sep) + after
}

// followed returns what v leads to, if it is a pointer: a copy, which stays as it is; nil
// for a nil one.
func followed(v any) any {
	r := concrete(reflect.ValueOf(v))
	if !r.IsValid() {
		return nil
	}
	return r.Interface()
}

// concrete returns what interfaces and pointers around v hold; the zero Value for a nil one.
func concrete(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v
}

// fieldName returns the name that field i had in the layout.
func fieldName(v reflect.Value, i int) string { return v.Type().Field(i).Tag.Get("expr") }

// sortedKeys returns the keys of a map in one order, so that the same state prints the same.
func sortedKeys(v reflect.Value) []reflect.Value {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int {
		return Answer{followed(a.Interface())}.Compare(Answer{followed(b.Interface())})
	})
	return keys
}

// MarshalJSON implements [json.Marshaler].
func (a Answer) MarshalJSON() ([]byte, error) { return []byte(jsonText(reflect.ValueOf(a.v))), nil }

// jsonText returns v as package layout would write it: exact numbers, and null for what is
// not there.
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
				return Answer{followed(keys[i].Interface())}.String(), v.MapIndex(keys[i]).Interface()
			})
		}
	}
	// Scalars are left, and bytes and nil slices and maps: base64 and null.
	b, err := Marshal(v.Interface())
	if err != nil { // JSON has no notation for it, as for NaN.
		b, _ = Marshal(fmt.Sprint(v.Interface()))
	}
	return string(b)
}

// jsonObject returns an object of n members, in their order, which package json would not keep.
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

// Marshal returns v as JSON, with <, > and & as they are.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Compare orders answers: false, true, numbers, text, everything else as it prints,
// NaN and at last nothing. Equal numbers of two types compare as equal, though they are two answers.
func (a Answer) Compare(b Answer) int {
	if c := cmp.Compare(a.rank(), b.rank()); c != 0 {
		return c
	}
	if c, ok := ordered(a.v, b.v); ok && c != unordered {
		return c
	}
	return strings.Compare(a.String(), b.String())
}

// Key returns a text that answers have in common that are the same: one to group and count by. The
// rank tells the number 1 from the text "1".
func (a Answer) Key() string { return strconv.Itoa(a.rank()) + " " + a.String() }

// Float returns a as a number: 1 and 0 for true and false. It is false for what is none.
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

// Plain reports whether a is a number, a truth, text or nothing, of one of the types that most
// are: two that are == have the same [Answer.Key].
func (a Answer) Plain() bool {
	switch v := a.v.(type) {
	case nil, bool, int, string:
		return true
	case float64:
		return v != 0 && !math.IsNaN(v) // 0 == -0.
	}
	return false
}

// Text returns a if it is text.
func (a Answer) Text() (text string, ok bool) {
	text, ok = a.v.(string)
	return text, ok
}

// Nothing reports whether there is no answer.
func (a Answer) Nothing() bool { return a.v == nil }

// rank returns where answers of the kind of a come among others: an order for all of them, since
// an expression may give numbers for some entities and text for others.
//
//	0 false   1 true   2 numbers   3 text   4 structs, lists and maps   5 NaN   6 nothing
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

// unordered is how numbers compare of which one is NaN.
const unordered = 2

// ordered compares two numbers exactly, or two texts; ok is false for anything else.
func ordered(a, b any) (c int, ok bool) {
	if a, ok := a.(string); ok {
		b, ok := b.(string)
		return cmp.Compare(a, b), ok
	}
	if a, ok := a.(int); ok { // Nearly all; big numbers are for those of two types.
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

// exact returns a number with all its digits; nil for NaN. A big.Float takes the precision of what
// it is set to: 64 bits for integers, more for larger ones, 53 for a float.
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

// Kinds of answers, as far as it matters whether two can be equal that are not the same: the integer
// 1 and the float 1 compare as equal, and a minimum must tell which of them it is.
const (
	noAnswer = iota
	intAnswer
	wideAnswer
	floatAnswer
	textAnswer
	truthAnswer
	otherAnswer
)

// kindOf returns the kind of a, by its Go type.
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
