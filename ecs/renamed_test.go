package ecs

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/deep"
)

// A renamedPair creates a random stored struct type, and a later version of it in which fields are
// removed, renamed and added.
type renamedPair struct{ *rand.Rand }

var renamedScalars = []reflect.Type{
	reflect.TypeFor[int8](), reflect.TypeFor[int16](), reflect.TypeFor[int32](), reflect.TypeFor[int](),
	reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](), reflect.TypeFor[uint64](),
	reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[bool](), reflect.TypeFor[string](),
	reflect.TypeFor[renamedWord](),
}

type renamedWord string

// fieldType returns a random type.
func (p renamedPair) fieldType(depth int) reflect.Type {
	scalar := func() reflect.Type { return renamedScalars[p.IntN(len(renamedScalars))] }
	if depth == 0 || p.IntN(2) == 0 {
		return scalar()
	}
	elem := p.fieldType(depth - 1)
	switch p.IntN(5) {
	case 0:
		return reflect.ArrayOf(1+p.IntN(2), elem)
	case 1:
		if elem.Kind() != reflect.Uint8 { // A slice of bytes has another JSON form.
			return reflect.SliceOf(elem)
		}
	case 2:
		return reflect.PointerTo(elem)
	case 3:
		return reflect.MapOf(renamedScalars[p.IntN(8)], elem)
	}
	var fields []reflect.StructField
	for i := range 1 + p.IntN(2) {
		fields = append(fields, reflect.StructField{Name: string(rune('A' + i)), Type: p.fieldType(depth - 1)})
	}
	return reflect.StructOf(fields)
}

// fields returns the fields of the stored struct and of the later struct.
func (p renamedPair) fields() (stored, current []reflect.StructField) {
	for i := range 1 + p.IntN(3) {
		f := reflect.StructField{Name: fmt.Sprint("Old", i), Type: p.fieldType(2)}
		if stored = append(stored, f); p.IntN(3) == 0 {
			current = append(current, f)
		}
	}
	for i := range 1 + p.IntN(3) {
		f := reflect.StructField{Name: fmt.Sprint("New", i), Type: p.fieldType(2)}
		if k := p.IntN(len(stored)); p.IntN(2) == 0 {
			f.Type = stored[k].Type
		}
		switch p.IntN(6) {
		case 0:
			f.Tag = reflect.StructTag(fmt.Sprintf(`stet:"as%d"`, i))
		case 1:
			f.Tag = reflect.StructTag(fmt.Sprintf(`stet:",was=Older%d"`, i))
		case 2:
			// The tag has the former names Old0 and Old1, and both may be stored. The field takes
			// the values of Old0. It also claims the name Old1, so no other field can take the
			// values of Old1.
			if i == 0 && len(current) == 0 {
				f.Tag = `stet:"as0,was=Older,was=Old0,was=Old1"`
				f.Type = stored[0].Type
			}
		}
		current = append(current, f)
	}
	p.Shuffle(len(current), func(i, j int) { current[i], current[j] = current[j], current[i] })
	return stored, current
}

// value returns the JSON of a random value of t. Floats have few digits in base 2. So a float32 and
// the equal float64 have the same text.
func (p renamedPair) value(t reflect.Type) string {
	list := func(n int) string {
		var all []string
		for range n {
			all = append(all, p.value(t.Elem()))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	switch t.Kind() {
	case reflect.Bool:
		return fmt.Sprint(p.IntN(2) == 0)
	case reflect.String:
		return fmt.Sprintf("%q", fmt.Sprint("text", p.IntN(100)))
	case reflect.Float32, reflect.Float64:
		return fmt.Sprint(float64(p.IntN(1<<20)-1<<19) / 8)
	case reflect.Array:
		return list(t.Len())
	case reflect.Slice:
		return list(p.IntN(3))
	case reflect.Pointer:
		return list(1)
	case reflect.Map:
		return fmt.Sprintf(`{"%s":%s}`, p.value(t.Key()), p.value(t.Elem()))
	case reflect.Struct:
		var all []string
		for f := range t.Fields() {
			all = append(all, fmt.Sprintf("%q:%s", f.Name, p.value(f.Type)))
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	bits := t.Bits()
	if n := p.Uint64() >> (64 - bits); t.Kind() >= reflect.Uint {
		return fmt.Sprint(n)
	} else {
		return fmt.Sprint(int64(n<<(64-bits)) >> (64 - bits))
	}
}

// sameJSON reports whether a loaded value equals the stored value. Elements and fields that only
// the loaded value has must be zero. Numbers with the same value are equal.
func sameJSON(then, now any) bool {
	switch x := then.(type) {
	case json.Number:
		y, ok := now.(json.Number)
		a, okA := new(big.Rat).SetString(string(x))
		b, okB := new(big.Rat).SetString(string(y))
		return ok && okA && okB && a.Cmp(b) == 0
	case []any:
		y, ok := now.([]any)
		if !ok || len(y) < len(x) {
			return false
		}
		for i := range x {
			if !sameJSON(x[i], y[i]) {
				return false
			}
		}
		return !slices.ContainsFunc(y[len(x):], func(v any) bool { return !zeroJSON(v) })
	case map[string]any:
		y, ok := now.(map[string]any)
		for name, v := range y {
			if was, stored := x[name]; stored && !sameJSON(was, v) || !stored && !zeroJSON(v) {
				return false
			}
		}
		return ok && len(y) >= len(x)
	}
	return then == now
}

// zeroJSON reports whether v is the JSON of a zero value.
func zeroJSON(v any) bool {
	switch x := v.(type) {
	case json.Number:
		return strings.Trim(string(x), "-0.") == ""
	case []any:
		return !slices.ContainsFunc(x, func(v any) bool { return !zeroJSON(v) })
	case map[string]any:
		for _, v := range x {
			if !zeroJSON(v) {
				return false
			}
		}
		return true
	}
	return v == nil || v == false || v == ""
}

// loadJSON loads a row into a new world, and returns the loaded value. The row and the component of
// the new world have different layouts.
func loadJSON(t *testing.T, from, to *layout.Type, row []byte, dropped []string) (now map[string]any, lost typeFaults, err error) {
	e := []uint64{uint64(NewEntity(0, 1))}
	state := &raw.State{Registry: e, Alive: 1, Free: 1, Storages: []raw.StorageState{{Name: "it", Layout: from, Entities: e, Rows: row}}}
	w := NewWorld(Options{})
	known := w.newUnknown(&storageState{Name: "it", Layout: to})
	*known.about() = spec{name: "it", layout: to, tag: known.about().tag, pointers: true, kind: known.about().kind, evolution: &evolution{dropped: dropped}}
	w.adopt(known)
	if plans, _ := w.plan(state.Storages); plans != nil {
		lost = plans[0].faults
	}
	if err = w.Raw().Load(state); err != nil {
		return nil, lost, err
	}
	v, err := to.Value(known.Raw().AppendRows(nil, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	return decodeJSON(t, string(v.AppendExact(nil))), lost, nil
}

func decodeJSON(t *testing.T, text string) (v map[string]any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(text, err)
	}
	return v
}

// For random struct types, each tag that the error suggests works: the load succeeds, and the new
// field has the values of the stored field. Any other tag does not work: the type cannot be
// registered, or the load fails.
func TestLoad_SuggestedTagsWork(t *testing.T) {
	works, fails, invalid := 0, 0, 0
	for seed := range deep.Or(uint64(3000), 100000) {
		p := renamedPair{rand.New(rand.NewPCG(seed, 2))}
		storedFields, fields := p.fields()
		stored := reflect.StructOf(storedFields)
		from, err := layout.Of(stored)
		if err != nil {
			t.Fatal(err)
		}
		to, err := layout.Of(reflect.StructOf(fields))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		text := p.value(stored)
		row, err := from.AppendRow(nil, []byte(text))
		if err != nil {
			t.Fatalf("seed %d: %s: %v", seed, text, err)
		}
		then := decodeJSON(t, text)
		_, lost, _ := loadJSON(t, from, to, row, nil)
		for _, f := range lost {
			var others []string
			for _, other := range lost {
				if other.name != f.name {
					others = append(others, other.name)
				}
			}
			if _, isStored := then[f.name]; !isStored {
				// f.name can be the path to a part of a stored field. Skip such a part.
				continue
			}
			for k, g := range fields {
				head := g.Name + " "
				offered := slices.IndexFunc(f.change.Renamed, func(r string) bool { return strings.HasPrefix(r, head) })
				tagged := slices.Clone(fields)
				name, formers, _ := strings.Cut(g.Tag.Get("stet"), ",")
				if formers != "" {
					formers += ","
				}
				tag := fmt.Sprintf(`stet:"%s,%swas=%s"`, name, formers, f.name)
				if offered >= 0 {
					if got := strings.Split(f.change.Renamed[offered], "`")[1]; got != tag {
						t.Fatalf("seed %d: %v: the tag is %s, want %s", seed, f.change, got, tag)
					}
				}
				tagged[k].Tag = reflect.StructTag(tag)
				renamed, err := layout.Of(reflect.StructOf(tagged))
				if err != nil {
					if invalid++; offered >= 0 {
						t.Fatalf("seed %d: %v: %v", seed, f.change, err)
					}
					continue
				}
				now, _, err := loadJSON(t, from, renamed, row, others)
				if offered < 0 {
					if fails++; !errors.Is(err, raw.ErrState) {
						t.Fatalf("seed %d: %v to %v: %s on %s is not suggested by %v, but works", seed, stored, fields, tag, g.Name, f.change)
					}
					continue
				}
				if name == "" {
					name = g.Name
				}
				if works++; err != nil || !sameJSON(then[f.name], now[name]) {
					t.Fatalf("seed %d: %s of %v to %v with %v: %v, %v", seed, text, stored, fields, f.change.Renamed[offered], now, err)
				}
			}
		}
	}
	if min(works, fails, invalid) < 100 {
		t.Errorf("%d tags work, %d fail, %d are invalid", works, fails, invalid)
	}
}
