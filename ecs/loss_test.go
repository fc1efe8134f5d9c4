package ecs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/deep"
)

type (
	lossItem  struct{ Count, Worn int8 }
	lossCount struct{ Count int8 }
	lossPos   struct{ X, Y float64 }
	lossTag   struct{}
	lossUnit  struct {
		HP, Shield int32
		At         lossPos
		Slots      [2]lossItem
	}
	lossBag struct {
		Items []lossItem
		Stock map[string]lossItem
		Best  *lossItem
	}
	lossEmbedding struct {
		lossPos
		HP int32
	}
)

// stateWith returns the state of a world that contains only v. v is a resource or the component of
// an entity.
func stateWith[T any](v T, resource bool, c Component[T]) *raw.State {
	w := NewWorld(Options{})
	c.Name, c.Clone = "it", func(v T) T { return v }
	if resource {
		Must(RegisterResource(w, v, c))
	} else {
		MustRegister(w, c).Set(w.Create(), v)
	}
	return stateOf(w)
}

// loaded loads the given state into a world that registers only c, and returns the loaded value. c
// becomes a component or a resource, as in the state. If Load fails, the world must not change, and
// Conversions must return the same error.
func loaded[T any](t *testing.T, state *raw.State, c Component[T]) (v T, converted []raw.Conversion, err error) {
	t.Helper()
	w := NewWorld(Options{})
	c.Name, c.Clone = "it", func(v T) T { return v }
	value := func() T { return v }
	if state.Storages[0].Resource {
		value = Must(RegisterResource(w, v, c)).Get
	} else if s := MustRegister(w, c); len(state.Storages[0].Entities) > 0 {
		value = func() T { v, _ := s.Get(Entity(state.Registry[0])); return v }
	}
	before := w.Digest()
	planned, refusal := w.Raw().Conversions(state.Storages)
	err = w.Raw().Load(state)
	if err != nil && (w.Digest() != before || refusal == nil || !strings.HasSuffix(err.Error(), refusal.Error())) {
		t.Errorf("Load = %v, Conversions = %v, and the world %v became %v", err, refusal, before, w.Digest())
	}
	if err == nil && !reflect.DeepEqual(w.Raw().Converted(), planned) {
		t.Errorf("converted %v, planned %v", w.Raw().Converted(), planned)
	}
	return value(), planned, err
}

// mustRefuse checks that a program with c refuses the given state until Dropped lists all fields
// that the error names. It also checks that a state marked as Lossy loads without Dropped.
func mustRefuse[T any](t *testing.T, name string, state *raw.State, c Component[T], want T, fields ...string) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		line := func(fields []string) string {
			list := strings.ReplaceAll(fmt.Sprintf("%q", fields), `" "`, `", "`)
			return fmt.Sprintf(`to drop: ecs.Component[%s]{Name: "it", Dropped: []string{%s}}; to convert: `, reflect.TypeFor[T]().Name(), list[1:len(list)-1])
		}
		for i := range fields {
			c.Dropped = slices.Delete(slices.Clone(fields), i, i+1)
			if _, _, err := loaded(t, state, c); !errors.Is(err, raw.ErrDropped) || !strings.Contains(err.Error(), line(fields[i:i+1])) {
				t.Errorf("without %s in Dropped: %v", fields[i], err)
			}
		}
		c.Dropped = nil
		_, planned, err := loaded(t, state, c)
		if !errors.Is(err, raw.ErrDropped) || !errors.Is(err, raw.ErrState) || !strings.Contains(err.Error(), line(fields)) {
			t.Errorf("Load = %v, want %s in it", err, line(fields))
		}
		shown := *state
		shown.Lossy = true
		for _, s := range []*raw.State{&shown, state} {
			v, converted, err := loaded(t, s, c)
			dropped := 0
			for _, change := range converted[0].Changes {
				if change.Dropped {
					dropped++
				}
			}
			if err != nil || !reflect.DeepEqual(v, want) || dropped != len(fields) || len(converted) != len(planned) {
				t.Errorf("Load = %v, %v, want %v\n%v", v, err, want, converted)
			}
			c.Dropped = fields
		}
	})
}

// The program's types have no field for some stored values, so Load fails. The error names the
// fields and their types. It also suggests a line of code. With this line in the program, Load
// succeeds.
func TestLoad_RefusesDataLoss(t *testing.T) {
	it := lossUnit{5, 6, lossPos{1, 2}, [2]lossItem{{3, 4}, {7, 8}}}
	unit := stateWith(it, false, Component[lossUnit]{})

	type removed struct {
		HP    int32
		At    lossPos
		Slots [2]lossItem
	}
	rest := removed{5, it.At, it.Slots}
	mustRefuse(t, "a removed field", unit, Component[removed]{}, rest, "Shield")
	mustRefuse(t, "of a resource", stateWith(it, true, Component[lossUnit]{}), Component[removed]{}, rest, "Shield")
	mustRefuse(t, "with gaps", stateWith(it, false, Component[lossUnit]{Kind: Indexed, Default: it}), Component[removed]{Kind: Indexed, Default: removed{HP: 1}}, rest, "Shield")
	empty := *unit
	empty.Storages = slices.Clone(unit.Storages)
	empty.Storages[0].Entities, empty.Storages[0].Rows = nil, nil
	mustRefuse(t, "of a storage without rows", &empty, Component[removed]{}, removed{}, "Shield")

	type nested struct {
		HP, Shield int32
		At         struct{ Y float64 }
		Slots      [3]lossCount
	}
	mustRefuse(t, "nested", unit, Component[nested]{}, nested{5, 6, struct{ Y float64 }{2}, [3]lossCount{{3}, {7}}}, "At.X", "Slots[].Worn")
	type lesser struct {
		Items []lossCount
		Stock map[string]lossCount
		Best  *lossCount
	}
	bag := stateWith(lossBag{[]lossItem{{1, 2}}, map[string]lossItem{"a": {3, 4}}, &lossItem{5, 6}}, false, Component[lossBag]{})
	mustRefuse(t, "behind references", bag, Component[lesser]{}, lesser{[]lossCount{{1}}, map[string]lossCount{"a": {3}}, &lossCount{5}},
		"Items[].Worn", "Stock[value].Worn", "Best.Worn")

	type shrunk struct {
		HP, Shield int32
		At         lossPos
		Slots      [1]lossItem
	}
	pos := stateWith(lossPos{1, 2}, false, Component[lossPos]{})
	mustRefuse(t, "an embedded struct", pos, Component[lossEmbedding]{}, lossEmbedding{}, "X", "Y")
	mustRefuse(t, "a struct no longer embedded", stateWith(lossEmbedding{lossPos{1, 2}, 3}, false, Component[lossEmbedding]{}), Component[lossPos]{}, lossPos{}, "lossPos", "HP")
	mustRefuse(t, "a struct become a tag", pos, Component[lossTag]{}, lossTag{}, "X", "Y")
	mustRefuse(t, "all fields, where there are others", pos, Component[lossCount]{}, lossCount{}, "X", "Y")
	mustRefuse(t, "an array that is shorter", unit, Component[shrunk]{}, shrunk{5, 6, it.At, [1]lossItem{{3, 4}}}, "Slots[1:]")
	mustRefuse(t, "elements that are structs", stateWith([2]lossItem{{1, 2}, {3, 4}}, false, Component[[2]lossItem]{Name: "it"}), Component[lossRow]{}, lossRow{{1}, {3}}, "[].Worn")

	mustRefuse(t, "a migration that takes less", unit, Component[lossPos]{Version: 1, Migrations: []Migration{
		Migrate(0, func(old struct{ HP int32 }) lossPos { return lossPos{X: float64(old.HP)} }),
	}}, lossPos{X: 5}, "Shield", "At", "Slots")
	for _, m := range []Migration{
		Migrate(0, func(old lossUnit) lossPos { return lossPos{X: float64(old.HP)} }),
		Migrate(0, func(layout.Value) lossPos { return lossPos{X: 5} }),
	} {
		v, _, err := loaded(t, unit, Component[lossPos]{Version: 1, Migrations: []Migration{m}})
		if err != nil || v.X != 5 {
			t.Errorf("with a migration: %v, %v", v, err)
		}
	}
}

type lossRow [2]lossCount

// If a field was dropped and a field of the same type was added, the field was probably renamed. If
// a stored and a registered component have equal fields, the component was probably renamed. In
// both cases, the error suggests a line of code. With this line in the program, Load succeeds.
func TestLoad_SuggestsRename(t *testing.T) {
	refused := func(name, want string, err error) {
		t.Helper()
		if !errors.Is(err, raw.ErrDropped) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", name, err, want)
		}
	}
	unit := stateWith(lossUnit{HP: 5, Shield: 6, At: lossPos{1, 2}}, false, Component[lossUnit]{})
	type swapped struct {
		Life, Armor int32
		Team        int16
		Place       lossPos `stet:",was=Where"`
		Slots       [2]lossItem
	}
	_, _, err := loaded(t, unit, Component[swapped]{})
	refused("three fields", ":\ncomponent it:\n"+
		"    swapped.HP: dropped, was int32; if it was renamed: Life int32 `stet:\",was=HP\"`, or Armor int32 `stet:\",was=HP\"`\n"+
		"    swapped.Shield: dropped, was int32; if it was renamed: Armor int32 `stet:\",was=Shield\"`, or Life int32 `stet:\",was=Shield\"`\n"+
		"    swapped.At: dropped, was struct{X float64; Y float64}; if it was renamed: Place lossPos `stet:\",was=Where,was=At\"`\n"+
		"    to drop: ", err)
	type renamed struct {
		Life  int32 `stet:",was=HP"`
		Armor int32 `stet:",was=Shield"`
		Team  int16
		Place lossPos `stet:",was=Where,was=At"`
		Slots [2]lossItem
	}
	if v, _, err := loaded(t, unit, Component[renamed]{}); err != nil || v != (renamed{Life: 5, Armor: 6, Place: lossPos{1, 2}}) {
		t.Errorf("with the tags: %v, %v", v, err)
	}
	_, converted, err := loaded(t, unit, Component[swapped]{Dropped: []string{"HP", "Shield", "At"}})
	if err != nil || strings.Contains(fmt.Sprint(converted), "renamed") {
		t.Errorf("a dropped component counts as renamed: %v, %v", converted, err)
	}
	type wordy struct{ Bytes []byte }
	type wordier struct{ Text []byte }
	_, _, err = loaded(t, stateWith(wordy{}, false, Component[wordy]{}), Component[wordier]{})
	refused("bytes", "if it was renamed: Text []byte `stet:\",was=Bytes\"`;", err)

	try := func(state *raw.State, register func(w *World)) (*World, error) {
		w := NewWorld(Options{})
		register(w)
		return w, w.Raw().Load(state)
	}
	type other struct{ Y, X float64 }
	pos := stateWith(lossPos{1, 2}, false, Component[lossPos]{})
	_, err = try(pos, func(w *World) { MustRegister(w, Component[other]{Name: "place"}) })
	refused("a component", `component place: nothing is stored of it, but it, which is not registered, has its fields; `+
		`if it was renamed: ecs.Component[other]{Name: "place", FormerNames: []string{"it"}}; if not: ecs.Component[other]{Name: "place", FormerNames: []string{}}`, err)
	_, err = try(stateWith(lossPos{1, 2}, true, Component[lossPos]{}), func(w *World) { Must(RegisterResource(w, lossPos{})) })
	refused("a resource", `ecs.Component[lossPos]{FormerNames: []string{"it"}}`, err)
	w, err := try(pos, func(w *World) { MustRegister(w, Component[other]{FormerNames: []string{"it"}}) })
	if err != nil || !strings.Contains(fmt.Sprint(w.Raw().Converted()), "was it") {
		t.Errorf("with its former name: %v, %v", w.Raw().Converted(), err)
	}

	for name, register := range map[string]func(w *World){
		"another, it says":   func(w *World) { MustRegister(w, Component[other]{FormerNames: []string{}}) },
		"what is not stored": func(w *World) { MustRegister(w, Component[other]{NoPersist: true}) },
		"a resource":         func(w *World) { Must(RegisterResource(w, other{})) },
		"other fields":       func(w *World) { MustRegister[lossItem](w) },
		"fewer fields":       func(w *World) { MustRegister[lossOne](w) },
		"a number":           func(w *World) { MustRegister[lossNumber](w) },
		"nothing":            func(*World) {},
		"it is there":        func(w *World) { MustRegister(w, Component[lossPos]{Name: "it"}); MustRegister[other](w) },
	} {
		if w, err := try(pos, register); err != nil || w.Len() != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, state := range map[string]*raw.State{"a tag": stateWith(lossTag{}, false, Component[lossTag]{}), "a number": stateWith(lossNumber(1), false, Component[lossNumber]{})} {
		if _, err := try(state, func(w *World) { MustRegister[label](w); MustRegister[lossNumber](w) }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type (
	lossNumber int32
	lossOne    struct{ X float64 }
)

// Converted lists stored data that the program does not register, and registered components that
// are not stored. It omits components that are the same on both sides.
func TestRawConverted_ListsUnmatchedComponents(t *testing.T) {
	w := NewWorld(Options{})
	p := MustRegister[lossPos](w)
	MustRegister[lossItem](w)
	Must(RegisterResource(w, word{"rules"}))
	p.Set(w.Create(), lossPos{1, 2})
	later := NewWorld(Options{})
	MustRegister[lossPos](later)
	MustRegister[label](later)
	MustRegister(later, Component[lossTag]{NoPersist: true})
	Must(RegisterResource(later, lossNumber(3)))
	// The second load replaces the components of the first load. The result is the same.
	for range 2 {
		if err := later.Raw().Load(stateOf(w)); err != nil {
			t.Fatal(err)
		}
		want := "lossItem: not registered, kept|word: not registered, kept|label: registered, nothing is stored|lossNumber: registered, nothing is stored"
		var got []string
		for _, c := range later.Raw().Converted() {
			got = append(got, c.String())
		}
		if strings.Join(got, "|") != want {
			t.Errorf("Converted = %v, want %v", got, want)
		}
	}
	if err := w.Raw().Load(stateOf(w)); err != nil || w.Raw().Converted() != nil {
		t.Errorf("Converted = %v, %v", w.Raw().Converted(), err)
	}
}

// A lossPair creates a random stored type, a changed version of the type for the program, and rows
// of the stored type. All numbers in a row differ.
type lossPair struct {
	*rand.Rand
	next  int
	drops bool // Set if the change drops a field without a successor.
	keyed bool // Set if the dropped field is in a key of a map, where Load must refuse it.
}

// stored returns a random type, and the JSON of one of its values.
func (p *lossPair) stored(depth int, key bool) (*layout.Type, string) {
	kind := []layout.Kind{layout.Int16, layout.Int32, layout.Uint16, layout.Struct, layout.Struct, layout.Struct, layout.Array, layout.Slice, layout.Map, layout.Pointer}[p.IntN(10)]
	if depth == 0 && kind >= layout.Struct {
		kind = layout.Int32
	}
	if key && kind > layout.Array {
		kind = layout.Struct
	}
	t := &layout.Type{Kind: kind}
	elem := func() (v string) { t.Elem, v = p.stored(depth-1, key); return v }
	text := ""
	switch kind {
	case layout.Struct:
		for i := range 1 + p.IntN(3) {
			f, v := p.stored(depth-1, key)
			t.Fields = append(t.Fields, layout.Field{Name: string(rune('A' + i)), Type: f})
			text += fmt.Sprintf(",%q:%s", t.Fields[i].Name, v)
		}
		text = "{" + text[1:] + "}"
	case layout.Array, layout.Slice, layout.Pointer:
		if kind == layout.Array {
			t.Len = 1 + p.IntN(2)
		}
		text = elem()
		if t.Len == 2 {
			text += "," + p.renumbered(text)
		}
		text = "[" + text + "]"
	case layout.Map:
		t.Key, text = p.stored(depth-1, true)
		text = "[[" + text + "," + elem() + "]]"
	default:
		p.next++
		text = strconv.Itoa(p.next)
	}
	return t, text
}

// renumbered returns text with other numbers.
func (p *lossPair) renumbered(text string) string {
	return regexp.MustCompile(`\d+`).ReplaceAllStringFunc(text, func(string) string {
		p.next++
		return strconv.Itoa(p.next)
	})
}

// changed returns a changed version of t. Numbers become wider and arrays longer. Fields are added,
// removed, moved and renamed. key reports whether t is in a key of a map.
func (p *lossPair) changed(t *layout.Type, key bool) *layout.Type {
	u := *t
	switch wide := p.IntN(2) == 0; {
	case t.Kind == layout.Struct:
		p.changeFields(&u, key)
	case t.Kind == layout.Array:
		if u.Len += p.IntN(3) - 1; u.Len < t.Len {
			p.drops, p.keyed = true, p.keyed || key
		}
	case t.Kind == layout.Int16 && wide:
		u.Kind = layout.Int64
	case t.Kind == layout.Uint16 && wide:
		u.Kind = layout.Int32
	}
	if t.Key != nil {
		u.Key = p.changed(t.Key, true)
	}
	if t.Elem != nil {
		u.Elem = p.changed(t.Elem, key)
	}
	return &u
}

func (p *lossPair) changeFields(t *layout.Type, key bool) {
	before := t.Fields
	t.Fields, t.Former = nil, map[string][]string{}
	for _, f := range before {
		gone := func() { p.drops, p.keyed = true, p.keyed || key }
		switch p.IntN(12) {
		case 0:
			gone()
			continue
		case 1:
			gone()
			f.Name = "New" + f.Name
		case 2:
			t.Former["New"+f.Name] = []string{"Z", f.Name}
			f.Name, f.Type = "New"+f.Name, p.changed(f.Type, key)
		default:
			f.Type = p.changed(f.Type, key)
		}
		t.Fields = append(t.Fields, f)
	}
	if p.IntN(4) == 0 {
		t.Fields = append(t.Fields, layout.Field{Name: "Added", Type: &layout.Type{Kind: layout.Int32}})
	}
	if p.IntN(4) == 0 {
		p.Shuffle(len(t.Fields), func(i, j int) { t.Fields[i], t.Fields[j] = t.Fields[j], t.Fields[i] })
	}
}

// numbers appends the numbers in v to all.
func numbers(all []int64, v layout.Value) []int64 {
	switch v.Kind() {
	case layout.Uint16:
		return append(all, int64(v.Uint()))
	case layout.Int16, layout.Int32, layout.Int64:
		return append(all, v.Int())
	}
	for i := range v.Len() {
		if v.Kind() == layout.Map {
			all = numbers(all, v.Key(i))
		}
		all = numbers(all, v.Index(i))
	}
	return all
}

// loadPair loads a row into a world whose component has another layout. It returns the numbers that
// the loaded row still contains.
func loadPair(t *testing.T, from, to *layout.Type, row []byte, lossy bool, dropped []string) (found []int64, lost typeFaults, err error) {
	e := []uint64{uint64(NewEntity(0, 1))}
	state := &raw.State{Registry: e, Alive: 1, Free: 1, Lossy: lossy, Storages: []raw.StorageState{{Name: "it", Layout: from, Entities: e, Rows: row}}}
	w := NewWorld(Options{})
	known := w.newUnknown(&storageState{Name: "it", Layout: to})
	*known.about() = spec{name: "it", layout: to, tag: known.about().tag, pointers: true, kind: known.about().kind, evolution: &evolution{dropped: dropped}}
	w.adopt(known)
	if plans, _ := w.plan(state.Storages); plans != nil {
		lost = plans[0].faults
	}
	if err = w.Raw().Load(state); err == nil {
		v, err := to.Value(known.Raw().AppendRows(nil, 0, 1))
		if err != nil {
			t.Fatal(err)
		}
		found = numbers(nil, v)
	}
	return found, lost, err
}

// For random types before and after a change, Load refuses the state exactly if a stored value
// would be lost. The error lists the lost values.
func TestLoad_RandomTypeChanges(t *testing.T) {
	lossless, lossy, keyed := 0, 0, 0
	for seed := range deep.Or(uint64(4000), 200000) {
		p := &lossPair{Rand: rand.New(rand.NewPCG(seed, 1))}
		from, text := p.stored(4, false)
		to := p.changed(from, false)
		row, err := from.AppendRow(nil, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		_, lost, err := loadPair(t, from, to, row, false, nil)
		if p.keyed {
			if keyed++; !errors.Is(err, layout.ErrConversion) {
				t.Fatalf("seed %d: %v to %v, in a key: %v", seed, from, to, err)
			}
			continue
		}
		found, _, shown := loadPair(t, from, to, row, true, nil)
		carried := shown == nil
		for n := range p.next {
			carried = carried && slices.Contains(found, int64(n+1))
		}
		if shown != nil || carried == p.drops || errors.Is(err, raw.ErrDropped) == carried || carried && err != nil {
			t.Fatalf("seed %d: %s of %v to %v: found %v, %v; Load = %v", seed, text, from, to, found, shown, err)
		}
		if lossless++; carried {
			continue
		}
		lossless, lossy = lossless-1, lossy+1
		var names []string
		for _, f := range lost {
			names = append(names, f.name)
		}
		if agreed, _, err := loadPair(t, from, to, row, false, names); err != nil || !slices.Equal(agreed, found) {
			t.Fatalf("seed %d: %v to %v without %v: %v, %v", seed, from, to, names, agreed, err)
		}
		one := p.IntN(len(names))
		if _, left, err := loadPair(t, from, to, row, false, slices.Delete(slices.Clone(names), one, one+1)); !errors.Is(err, raw.ErrDropped) || len(left) != 1 || left[0].name != names[one] {
			t.Fatalf("seed %d: %v to %v: the lost value %v is not reported: %v", seed, from, to, names[one], err)
		}
	}
	if min(lossless, lossy, keyed) < 100 {
		t.Errorf("%d pairs lose no values, %d lose values, %d lose values in a key", lossless, lossy, keyed)
	}
}

// The error for a lost field suggests a migration. It must have the right versions, for the stored
// rows and for the program. In the last two cases, the program has a migration already.
func TestLoad_ErrorHasMigrationToPaste(t *testing.T) {
	type old struct{ A, B int }
	type newer struct{ A int }
	type middle struct{ A, C int }
	drop := func(v old) middle { return middle{v.A, v.B} }
	for _, tt := range []struct {
		name   string
		stored uint32
		c      Component[newer]
		want   string
	}{
		{"no version", 0, Component[newer]{}, `to convert: ecs.Component[newer]{Name: "it", Version: 1, Migrations: []ecs.Migration{ecs.Migrate(0, func(v oldNewer) newer { … })}}`},
		{"a version", 3, Component[newer]{Version: 3}, "Version: 4, Migrations: []ecs.Migration{ecs.Migrate(3, "},
		{"a later version of the program", 3, Component[newer]{Version: 5}, "Version: 5, Migrations: []ecs.Migration{ecs.Migrate(3, "},
		{"lost before a migration", 1, Component[newer]{Version: 2, Migrations: []Migration{Migrate(1, func(v newer) newer { return v })}}, "before the migration from version 1: newer.B: dropped, was int64; to drop: ecs.Component[newer]{Name: \"it\", Dropped: []string{\"B\"}}; to convert: add the field to the parameter type of ecs.Migrate(1, …)"},
		{"lost after a migration", 1, Component[newer]{Version: 2, Migrations: []Migration{Migrate(1, drop)}}, "ecs: bad version"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			state := stateWith(old{1, 2}, false, Component[old]{})
			state.Storages[0].Version, tt.c.Name = tt.stored, "it"
			w := NewWorld(Options{})
			_, err := Register(w, tt.c)
			if err == nil {
				err = w.Raw().Load(state)
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q in it", err, tt.want)
			}
		})
	}
}
