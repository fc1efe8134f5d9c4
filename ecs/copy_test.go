package ecs

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// kin has every kind of field that can refer to entities. Its Clone shares all memory, so a write
// to a clone would also change the original.
type kin struct {
	Name    string
	Parent  Entity
	Couples [2]struct{ A, B Entity }
	Friends []Entity
	Debts   map[Entity]int
	Heirs   map[string][]Entity
	Deep    []struct {
		Next *[1]Entity
		N    int
	}
	number  uint64 // A number that looks like an entity but is not an Entity.
	private Entity
}

// mapped returns the expected copy of k. to(e) is the copy of entity e.
func (k kin) mapped(to func(Entity) Entity) kin {
	c := k
	c.Parent, c.private = to(k.Parent), to(k.private)
	for i, p := range k.Couples {
		c.Couples[i].A, c.Couples[i].B = to(p.A), to(p.B)
	}
	c.Friends = slices.Clone(k.Friends)
	for i, e := range c.Friends {
		c.Friends[i] = to(e)
	}
	if k.Debts != nil {
		c.Debts = map[Entity]int{}
		for e, n := range k.Debts {
			if to(e) != 0 || e == 0 {
				c.Debts[to(e)] = n
			}
		}
	}
	if k.Heirs != nil {
		c.Heirs = map[string][]Entity{}
		for name, list := range k.Heirs {
			list = slices.Clone(list)
			for i, e := range list {
				list[i] = to(e)
			}
			c.Heirs[name] = list
		}
	}
	c.Deep = slices.Clone(k.Deep)
	for i := range c.Deep {
		if p := c.Deep[i].Next; p != nil {
			c.Deep[i].Next = &[1]Entity{to(p[0])}
		}
	}
	return c
}

// names returns every entity that k refers to.
func (k kin) names() (list []Entity) {
	k.mapped(func(e Entity) Entity { list = append(list, e); return e })
	return list
}

// randomKin returns a kin that refers to random entities. They can be alive, dead, zero, or never
// created. The entity that gets the kin can be one of them.
func randomKin(random *rand.Rand, entities []Entity) kin {
	pick := func() Entity {
		if k := random.IntN(len(entities) + 3); k < len(entities) {
			return entities[k]
		} else if k > len(entities) {
			return 0
		}
		return NewEntity(77, 7)
	}
	k := kin{Name: fmt.Sprint(random.IntN(9)), Parent: pick(), private: pick(), number: uint64(entities[0])}
	k.Couples[random.IntN(2)].B = pick()
	for range random.IntN(4) {
		k.Friends = append(k.Friends, pick())
		k.Deep = append(k.Deep, struct {
			Next *[1]Entity
			N    int
		}{&[1]Entity{pick()}, 1})
	}
	if random.IntN(2) == 0 {
		k.Debts, k.Heirs = map[Entity]int{pick(): 1, pick(): 2}, map[string][]Entity{"a": {pick()}, "b": nil}
		k.Deep = append(k.Deep, k.Deep...)
		k.Deep = append(k.Deep, struct {
			Next *[1]Entity
			N    int
		}{})
	}
	return k
}

// A referenceWorld is a world of entities that refer to each other.
type referenceWorld struct {
	w      *World
	kins   *Storage[kin]
	links  *Storage[Entity]
	plains *Storage[plain]
	lists  *Storage[list]
	tags   *Storage[label]
}

func newReferenceWorld(o Options) *referenceWorld {
	w := NewWorld(o)
	return &referenceWorld{w, MustRegister[kin](w), MustRegister(w, Component[Entity]{Name: "link"}),
		MustRegister[plain](w), MustRegister(w, Component[list]{Clone: cloneList}), MustRegister[label](w)}
}

func (f *referenceWorld) grow(random *rand.Rand, n int) {
	f.w.CreateN(nil, n)
	for range n / 3 {
		f.w.Destroy(f.w.Entities()[random.IntN(f.w.Len())])
	}
	f.w.CreateN(nil, n/4)
	all := slices.Clone(f.w.Entities())
	for i, e := range all {
		if random.IntN(3) > 0 {
			f.kins.Set(e, randomKin(random, all))
		}
		if random.IntN(2) > 0 {
			f.links.Set(e, all[random.IntN(len(all))])
			f.lists.Set(e, list{[]int{i}})
		}
		if random.IntN(2) > 0 {
			f.plains.Set(e, plain{int32(i), 1})
			f.tags.Set(e, label{})
		}
	}
}

// differs compares c, the copy of e, with the expected copy. It returns the difference as text, or
// "" if they are equal.
func (f *referenceWorld) differs(from *referenceWorld, e, c Entity, to func(Entity) Entity) string {
	k, ok := from.kins.Get(e)
	if got, there := f.kins.Get(c); there != ok || !reflect.DeepEqual(got, k.mapped(to)) {
		return fmt.Sprintf("kin %+v, %v, want %+v, %v", got, there, k.mapped(to), ok)
	}
	l, ok := from.links.Get(e)
	if got, there := f.links.Get(c); there != ok || got != to(l) {
		return fmt.Sprintf("link %v, %v, want %v, %v", got, there, to(l), ok)
	}
	p, ok := from.plains.Get(e)
	if got, there := f.plains.Get(c); there != ok || got != p || f.tags.Has(c) != from.tags.Has(e) {
		return fmt.Sprintf("plain %v, %v, want %v, %v", got, there, p, ok)
	}
	s, ok := from.lists.Get(e)
	if got, there := f.lists.Get(c); there != ok || !slices.Equal(got.Items, s.Items) || ok && &got.Items[0] == &s.Items[0] {
		return fmt.Sprintf("list %v, %v, want a copy of %v, %v", got, there, s, ok)
	}
	return ""
}

func TestCopy_RemapsEntityReferences(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		from, to := newReferenceWorld(Options{History: 2}), newReferenceWorld(Options{History: 2})
		from.grow(random, 12)
		to.grow(random, 6)
		if seed%3 == 0 {
			to = from
		}
		checkAtEnd(t, to.w)
		to.w.Commit()
		cp := to.w.Checkpoint()
		source, before := fmt.Sprint(from.kins.Values(), from.links.Values()), to.w.Digest()
		length := from.kins.Len()

		var picked []Entity
		for range random.IntN(12) {
			picked = append(picked, from.w.Entities()[random.IntN(from.w.Len())])
		}
		o := CopyOptions{Times: int(seed % 4)}
		if seed%2 == 1 {
			o.Outside = Reference.Keep
		}
		times := max(1, o.Times)
		// originals is a copy of the state before Copy, because source and target can be the same
		// world.
		originals := newReferenceWorld(Options{})
		*originals = *from
		originals.w = from.w.Clone()
		originals.kins, originals.links = from.kins.In(originals.w), from.links.In(originals.w)
		copies, err := to.w.Copy(from.w, picked, o)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(copies) != times*len(picked) {
			t.Fatalf("seed %d: Copy(%v) = %v", seed, picked, copies)
		}
		all := map[Entity]bool{}
		for k := range times {
			become, round := map[Entity]Entity{0: 0}, copies[k*len(picked):]
			for i, e := range picked {
				become[e] = round[i]
				all[round[i]] = true
			}
			if len(slices.Collect(maps.Values(become))) != len(become) || len(all) != (k+1)*(len(become)-1) {
				t.Fatalf("seed %d: Copy(%v) = %v", seed, picked, copies)
			}
			name := func(e Entity) Entity {
				if c, ok := become[e]; ok || o.Outside == nil {
					return c
				}
				return e
			}
			for i, e := range picked {
				if d := to.differs(from, e, round[i], name); d != "" {
					t.Fatalf("seed %d: the copy %v of %v has %s", seed, round[i], e, d)
				}
			}
		}
		if got := fmt.Sprint(from.kins.Values()[:length], from.links.Values()[:originals.links.Len()]); to != from && got != source {
			t.Fatalf("seed %d: the source changed from\n%s to\n%s", seed, source, got)
		}
		after := to.w.Digest()
		to.w.Restore(cp)
		if to.w.Digest() != before {
			t.Fatalf("seed %d: Restore is not exact", seed)
		}
		again, err := to.w.Copy(from.w, picked, o)
		if err != nil || !slices.Equal(again, copies) || to.w.Digest() != after {
			t.Fatalf("seed %d: Copy after Restore = %v, %v, want %v and the same digest", seed, again, err, copies)
		}
		to.w.Release(cp)
		to.w.Commit()
		if err := to.w.History().Rewind(1); err != nil || to.w.Digest() != before {
			t.Fatalf("seed %d: Rewind(1) = %v, not exact", seed, err)
		}
	}
}

// A Copy that fails does not change the target world. Undone ticks of the target can still be
// redone.
func TestCopy_Errors(t *testing.T) {
	type hidden struct{ Any any }
	type tree struct {
		Owner    Entity
		Children []*tree
	}
	type node struct { // The type is recursive, but contains no entities.
		N    int
		Next *node
	}
	from, to := newReferenceWorld(Options{}), newReferenceWorld(Options{History: 2})
	hides := MustRegister(from.w, Component[hidden]{NoPersist: true, Clone: func(h hidden) hidden { return h }})
	trees := MustRegister(from.w, Component[struct{ T tree }]{Name: "tree", NoPersist: true, Clone: func(h struct{ T tree }) struct{ T tree } { return h }})
	nodes := MustRegister(from.w, Component[struct {
		E Entity
		N node
	}]{Name: "node", NoPersist: true, Clone: func(h struct {
		E Entity
		N node
	}) struct {
		E Entity
		N node
	} {
		return h
	}})
	MustRegister(to.w, Component[hidden]{NoPersist: true, Clone: func(h hidden) hidden { return h }})
	MustRegister(to.w, Component[struct{ T tree }]{Name: "tree", NoPersist: true, Clone: func(h struct{ T tree }) struct{ T tree } { return h }})
	nodesThere := MustRegister(to.w, Component[struct {
		E Entity
		N node
	}]{Name: "node", NoPersist: true, Clone: func(h struct {
		E Entity
		N node
	}) struct {
		E Entity
		N node
	} {
		return h
	}})
	MustRegister[word](from.w)
	MustRegister[padded](from.w)
	MustRegister(from.w, Component[plain]{Name: "other"})
	MustRegister(to.w, Component[word]{Name: "other"})
	MustRegister(from.w, Component[extra]{Name: "singleton"})
	Must(RegisterResource(to.w, extra{}, Component[extra]{Name: "singleton"}))
	e := from.w.CreateN(nil, 9)
	from.kins.Set(e[0], kin{Debts: map[Entity]int{e[2]: 1, e[3]: 2, e[1]: 5}})
	hides.Set(e[1], hidden{})
	trees.Set(e[2], struct{ T tree }{})
	nodes.Set(e[3], struct {
		E Entity
		N node
	}{E: e[3]})
	from.w.names["word"].(*Storage[word]).Set(e[4], word{})
	from.w.names["padded"].(*Storage[padded]).Set(e[4], padded{})
	from.w.names["other"].(*Storage[plain]).Set(e[5], plain{})
	from.w.names["singleton"].(*Storage[extra]).Set(e[6], extra{})
	// The copy of e[7] gets the id 0v2. The map also has the key 0v2, which Outside does not
	// change. So two keys of the copied map become equal.
	from.kins.Set(e[7], kin{Debts: map[Entity]int{e[7]: 1, NewEntity(0, 2): 2}})
	from.w.Destroy(e[8])

	to.w.Create()
	to.w.Commit()
	to.w.Clear()
	to.w.Commit()
	if err := to.w.History().Rewind(0); err != nil {
		t.Fatal(err)
	}
	_ = to.w.History().Rewind(1)
	_ = to.w.History().Seek(2)
	to.w.Commit()
	_ = to.w.History().Rewind(1)
	before := to.w.Digest()
	refuse := CopyOptions{Outside: Reference.Refuse}
	for range 20 { // The result must not depend on the random order of a map.
		if _, err := to.w.Copy(from.w, e[:1], refuse); err == nil || !strings.Contains(err.Error(), "refers to 1v1") {
			t.Fatalf("Copy(%v) = %v, want the smallest entity that is not copied", e[0], err)
		}
	}
	for _, test := range []struct {
		entity  Entity
		options CopyOptions
		want    string
	}{
		{e[0], refuse, "component kin: Debts[key] of 0v1 refers to 1v1: it is not copied"},
		{e[1], CopyOptions{}, "component hidden: ecs.hidden.Any is of kind interface"},
		{e[2], CopyOptions{}, "Children is of a recursive type"},
		{e[4], CopyOptions{}, "does not have word, padded"},
		{e[5], CopyOptions{}, "component other: "},
		{e[6], CopyOptions{}, "component singleton: one of stored and registered is a resource"},
		{e[7], CopyOptions{Outside: Reference.Keep}, "two keys of a map become equal"},
		{e[8], CopyOptions{}, "entity 8v1 is not alive"},
		{0, CopyOptions{SkipMissing: true}, "is not alive"},
		{e[0], CopyOptions{Times: -1}, "CopyOptions.Times is -1"},
	} {
		copies, err := to.w.Copy(from.w, []Entity{test.entity}, test.options)
		if err == nil || !strings.HasPrefix(err.Error(), "ecs: cannot copy: ") || !strings.Contains(err.Error(), test.want) || copies != nil {
			t.Errorf("Copy(%v) = %v, %v, want %q", test.entity, copies, err, test.want)
		}
		if to.w.Digest() != before || to.w.Raw().Dirty() || to.w.History().Newest() != 3 {
			t.Fatalf("Copy(%v) failed and changed the world", test.entity)
		}
	}
	for _, test := range []struct {
		entity  Entity
		options CopyOptions
	}{
		{e[3], CopyOptions{}},
		{e[4], CopyOptions{SkipMissing: true}},
		{e[1], CopyOptions{Keep: func(s AnyStorage) bool { return s.Name() != "hidden" }}},
		{e[0], CopyOptions{}},
	} {
		copies, err := to.w.Copy(from.w, []Entity{test.entity}, test.options)
		if err != nil || len(copies) != 1 || !to.w.Alive(copies[0]) {
			t.Errorf("Copy(%v) = %v, %v", test.entity, copies, err)
		}
		if test.entity == e[3] {
			if v, _ := nodesThere.Get(copies[0]); v.E != copies[0] {
				t.Errorf("the copy refers to %v, want %v", v.E, copies[0])
			}
		}
		if err := to.w.check(); err != nil {
			t.Error(err)
		}
	}
}

// If the Go types differ, or the program does not register them, components are matched by their
// layout.
func TestCopy_MatchesComponentsByLayout(t *testing.T) {
	type one struct{ Of, To Entity }
	type two struct{ Of, To Entity }
	from, to := NewWorld(Options{}), NewWorld(Options{})
	ones := MustRegister(from, Component[one]{Name: "pair"})
	words := MustRegister[word](from)
	twos := MustRegister(to, Component[two]{Name: "pair"})
	wordsThere := MustRegister[word](to)
	e := from.CreateN(nil, 2)
	ones.Set(e[0], one{e[1], e[0]})
	words.Set(e[1], word{"w"})
	to.Create()

	loaded := NewWorld(Options{}) // This world registers no types.
	if err := loaded.Raw().Load(stateOf(from)); err != nil {
		t.Fatal(err)
	}
	for _, source := range []*World{from, loaded} {
		copies, err := to.Copy(source, e, CopyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if v, _ := twos.Get(copies[0]); v != (two{copies[1], copies[0]}) {
			t.Errorf("the copy is %v, want %v and %v", v, copies[1], copies[0])
		}
		if v, _ := wordsThere.Get(copies[1]); v.S != "w" {
			t.Errorf("the copy is %v", v)
		}
	}
	if _, err := loaded.Copy(from, e[1:], CopyOptions{}); err != nil {
		t.Errorf("Copy of an unregistered type without entities inside: %v", err)
	}
	before := loaded.Digest()
	for _, source := range []*World{from, loaded} {
		if _, err := loaded.Copy(source, e[:1], CopyOptions{}); err == nil || !strings.Contains(err.Error(), "not registered") {
			t.Errorf("Copy = %v, want an error that names the unregistered component", err)
		}
	}
	if loaded.Digest() != before {
		t.Error("a Copy that failed changed the world")
	}
}

func TestReferences_FindsComponentsWithEntity(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 2))
		f := newReferenceWorld(Options{})
		f.grow(random, 10)
		for _, e := range append(slices.Clone(f.w.Entities()), 0, NewEntity(77, 7), NewEntity(99, 1)) {
			var got, want []string
			for holder, s := range f.w.References(e) {
				got = append(got, fmt.Sprint(holder, s.Name()))
			}
			for holder, k := range f.kins.All() {
				if e != 0 && slices.Contains(k.names(), e) {
					want = append(want, fmt.Sprint(holder, "kin"))
				}
			}
			for holder, l := range f.links.All() {
				if l == e {
					want = append(want, fmt.Sprint(holder, "link"))
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: References(%v) = %v, want %v", seed, e, got, want)
			}
			for range f.w.References(e) {
				break
			}
		}
	}
}

func TestMove_Errors(t *testing.T) {
	from, to := newReferenceWorld(Options{}), newReferenceWorld(Options{})
	e := from.w.CreateN(nil, 2)
	from.links.Set(e[0], e[1])
	before, there := from.w.Digest(), to.w.Digest()
	for _, test := range []struct {
		to   *World
		o    CopyOptions
		want string
	}{
		{to.w, CopyOptions{Outside: Reference.Refuse}, "ecs: cannot move: component link: 0v1 refers to 1v1: it is not copied"},
		{from.w, CopyOptions{}, "ecs: cannot move: both worlds are the same"},
	} {
		moved, err := test.to.Move(from.w, e[:1], test.o)
		if err == nil || err.Error() != test.want || moved != nil {
			t.Errorf("Move = %v, %v, want %q", moved, err, test.want)
		}
		if from.w.Digest() != before || to.w.Digest() != there {
			t.Fatal("Move failed and changed a world")
		}
	}
	moved, err := to.w.Move(from.w, e, CopyOptions{Outside: Reference.Refuse})
	if l, _ := to.links.Get(moved[0]); err != nil || l != moved[1] || from.w.Len() != 0 || to.w.Len() != 2 {
		t.Errorf("Move = %v, %v; the link is to %v", moved, err, l)
	}
}

// Hooks of the source and of the target world may change the other world while entities move.
func TestMove_HooksChangeOtherWorld(t *testing.T) {
	from, to := newReferenceWorld(Options{}), newReferenceWorld(Options{})
	held := NewRelation(from.links, func(e Entity) Entity { return e }, RelationOptions{Policy: Refuse})
	e := from.w.CreateN(nil, 3)
	from.links.Set(e[0], e[1])
	var made []Entity
	from.w.OnDestroy(func(Entity) { made = append(made, to.w.Create()) })
	moved, err := to.w.Move(from.w, e[:2], CopyOptions{})
	if l, _ := to.links.Get(moved[0]); err != nil || l != moved[1] || from.w.Len() != 1 || to.w.Len() != 4 ||
		len(made) != 2 || slices.ContainsFunc(moved, func(e Entity) bool { return slices.Contains(made, e) }) {
		t.Errorf("Move = %v, %v; the link is to %v, and a hook made %v", moved, err, l, made)
	}
	to.w.OnCreate(func(Entity) { from.links.Set(from.w.Create(), e[2]) })
	moved, err = to.w.Move(from.w, e[2:], CopyOptions{})
	if want := "ecs: copied, but the originals stay: after the hooks ran, " + errHeld.Error(); err == nil || err.Error() != want {
		t.Errorf("Move = %v, want %q", err, want)
	}
	if len(moved) != 1 || !to.w.Alive(moved[0]) || !from.w.Alive(e[2]) || held.Len(e[2]) != 1 {
		t.Errorf("Move = %v; the original has %d sources", moved, held.Len(e[2]))
	}
}

func TestCloneEntity_CopiesComponents(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 3))
	f := newReferenceWorld(Options{})
	checkAtEnd(t, f.w)
	f.grow(random, 20)
	cp, before := f.w.Checkpoint(), f.w.Digest()
	for _, e := range slices.Clone(f.w.Entities()) {
		c, ok := f.w.CloneEntity(e)
		if d := f.differs(f, e, c, func(e Entity) Entity { return e }); !ok || d != "" {
			t.Errorf("CloneEntity(%v) = %v, %v, with %s", e, c, ok, d)
		}
	}
	f.w.Restore(cp)
	if f.w.Digest() != before {
		t.Error("Restore is not exact")
	}
	if c, ok := f.w.CloneEntity(NewEntity(3, 99)); ok || c != 0 || f.w.Digest() != before {
		t.Errorf("CloneEntity of a dead entity = %v, %v", c, ok)
	}
}

func TestCopy_UnregisteredComponents(t *testing.T) {
	load := func(register func(w *World, e Entity)) *World {
		w := NewWorld(Options{})
		register(w, w.Create())
		loaded := NewWorld(Options{})
		if err := loaded.Raw().Load(stateOf(w)); err != nil {
			t.Fatal(err)
		}
		return loaded
	}
	a := load(func(w *World, e Entity) { MustRegister(w, Component[plain]{Name: "x"}).Set(e, plain{}) })
	b := load(func(w *World, e Entity) { MustRegister(w, Component[word]{Name: "x"}).Set(e, word{}) })
	if _, err := a.Copy(b, b.Entities(), CopyOptions{}); err == nil || !strings.HasPrefix(err.Error(), "ecs: cannot copy: ") {
		t.Errorf("Copy between different layouts = %v", err)
	}
	if c, err := a.Copy(a, a.Entities(), CopyOptions{}); err != nil || a.Len() != 2 || a.Storages()[0].Len() != 2 {
		t.Errorf("Copy = %v, %v", c, err)
	}
}

// If a key of a map refers to an entity that becomes zero, at any depth in the key, the copy omits
// the map entry.
func TestCopy_OmitsClearedMapKeys(t *testing.T) {
	type inner struct{ M map[Entity]int }
	for range 20 {
		v := map[*inner]int{{map[Entity]int{1: 1, 2: 2, 3: 3}}: 1, {map[Entity]int{1: 1}}: 2}
		n := renaming{name: func(_ *place, e Entity) Entity {
			if e == 1 {
				return e
			}
			return 0
		}}
		referencesOf(reflect.TypeFor[map[*inner]int]()).rename(unsafe.Pointer(&v), &n)
		if got := slices.Collect(maps.Values(v)); !slices.Equal(got, []int{2}) || !n.cleared {
			t.Fatalf("entries %v are left, want only 2", got)
		}
	}
}

// Copy refuses to copy between different versions of a type, because the same fields may have
// another meaning. It copies to another Go type of the same version.
func TestCopy_RefusesOtherTypeVersion(t *testing.T) {
	type metres struct{ V int64 }
	type feet struct{ V int64 }
	from := NewWorld(Options{})
	old := MustRegister(from, Component[metres]{Name: "length", Version: 1})
	Must(RegisterResource(from, metres{3}, Component[metres]{Name: "rules", Version: 1}))
	e := from.Create()
	old.Set(e, metres{7})
	for version := range uint32(4) {
		to := NewWorld(Options{})
		s := MustRegister(to, Component[feet]{Name: "length", Version: version})
		r := Must(RegisterResource(to, feet{}, Component[feet]{Name: "rules", Version: version}))
		before := to.Digest()
		copies, err := to.Copy(from, []Entity{e}, CopyOptions{})
		if version == 1 {
			if v, _ := s.Get(copies[0]); err != nil || v.V != 7 {
				t.Errorf("Copy to the same version = %v, %v, want 7", v, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), "stored version 1, here ") || to.Digest() != before {
			t.Errorf("Copy to version %d: %v, want an error and no change", version, err)
		}
		before = to.Digest()
		_, err = to.Copy(from, nil, CopyOptions{Resources: []string{"rules"}})
		if version == 1 {
			if v := r.Get(); err != nil || v.V != 3 {
				t.Errorf("Copy of a resource to the same version = %v, %v, want 3", v, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), "stored version 1, here ") || to.Digest() != before {
			t.Errorf("Copy of a resource to version %d: %v, want an error and no change", version, err)
		}
	}
}
