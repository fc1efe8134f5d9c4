package ecs

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// A party is a resource with references to entities.
type party struct {
	Leader  Entity
	Members []Entity
	Roles   map[string]map[Entity]int
}

// The option Outside decides about references to entities that are not copied. Copy calls it once
// for each component, field and referenced entity, even if it makes several copies. All copies get
// the same results. The order of the calls does not depend on the order of maps.
func TestCopyOutside_CalledOncePerField(t *testing.T) {
	from, to := newReferenceWorld(Options{}), newReferenceWorld(Options{})
	Must(RegisterResource(to.w, party{}))
	parties := Must(RegisterResource(from.w, party{}))
	e := from.w.CreateN(nil, 9)
	from.kins.Set(e[1], kin{
		Parent: e[8], private: e[8], Couples: [2]struct{ A, B Entity }{{A: e[7], B: e[0]}, {A: e[6], B: e[7]}},
		Friends: []Entity{e[5], e[1], e[5], e[4]}, Debts: map[Entity]int{e[8]: 8, e[3]: 3, e[0]: 1},
		Heirs: map[string][]Entity{"a": {e[7]}, "b": {e[3], e[7]}},
		Deep: []struct {
			Next *[1]Entity
			N    int
		}{{&[1]Entity{e[4]}, 1}, {}},
	})
	from.links.Set(e[0], e[5])
	from.links.Set(e[1], e[0])
	parties.Set(party{e[0], []Entity{e[5]}, map[string]map[Entity]int{"x": {e[2]: 1, e[0]: 2}}})
	want := []string{
		"kin 1v1 Parent 8v1", "kin 1v1 Couples[].A 6v1", "kin 1v1 Couples[].A 7v1", "kin 1v1 Couples[].B 7v1", "kin 1v1 Friends[] 4v1", "kin 1v1 Friends[] 5v1",
		"kin 1v1 Debts[key] 3v1", "kin 1v1 Debts[key] 8v1", "kin 1v1 Heirs[value][] 3v1", "kin 1v1 Heirs[value][] 7v1", "kin 1v1 Deep[].Next[] 4v1", "kin 1v1 private 8v1",
		"link 0v1  5v1", "party 0v0 Members[] 5v1", "party 0v0 Roles[value][key] 2v1",
	}
	become := func(n Entity) Entity { return NewEntity(100+n.Index(), 2) }
	for range 20 {
		var calls []string
		copies, err := to.w.Copy(from.w, e[:2], CopyOptions{Times: 3, Resources: []string{"party"}, Outside: func(r Reference) (Entity, error) {
			calls = append(calls, fmt.Sprint(r.Storage.Name(), " ", r.From, " ", r.Field, " ", r.To))
			return become(r.To), nil
		}})
		if err != nil || !slices.Equal(calls, want) {
			t.Fatalf("Copy = %v, calls %q, want %q", err, calls, want)
		}
		for k := range 3 {
			name := func(n Entity) Entity {
				if i := slices.Index(e[:2], n); i >= 0 {
					return copies[2*k+i]
				} else if n == 0 {
					return 0
				}
				return become(n)
			}
			for i := range 2 {
				if d := to.differs(from, e[i], copies[2*k+i], name); d != "" {
					t.Fatalf("copy %d of %v has %s", k, e[i], d)
				}
			}
		}
		got := to.w.names["party"].(*Resource[party]).Get()
		if want := (party{copies[0], []Entity{become(e[5])}, map[string]map[Entity]int{"x": {become(e[2]): 1, copies[0]: 2}}}); !reflect.DeepEqual(got, want) {
			t.Fatalf("the resource is %v, want %v", got, want)
		}
	}
	if got := parties.Get(); got.Leader != e[0] || got.Members[0] != e[5] || got.Roles["x"][e[2]] != 1 {
		t.Errorf("the source's resource became %v", got)
	}
}

// Outside may return different results for different components and fields.
func TestCopyOutside_ResultDependsOnField(t *testing.T) {
	from, to := newReferenceWorld(Options{}), newReferenceWorld(Options{})
	e := from.w.CreateN(nil, 3)
	from.kins.Set(e[0], kin{Parent: e[1], Friends: []Entity{e[1]}})
	copies, err := to.w.Copy(from.w, e[:1], CopyOptions{Outside: func(r Reference) (Entity, error) {
		if r.Field == "Parent" {
			return NewEntity(7, 7), nil
		}
		return 0, nil
	}})
	if k, _ := to.kins.Get(copies[0]); err != nil || k.Parent != NewEntity(7, 7) || k.Friends[0] != 0 {
		t.Errorf("Copy = %v, %v", k, err)
	}
	refusal, before := errors.New("unknown entity"), to.w.Digest()
	_, err = to.w.Copy(from.w, e[:1], CopyOptions{Outside: func(r Reference) (Entity, error) { return 0, refusal }})
	if !errors.Is(err, refusal) || err.Error() != "ecs: cannot copy: component kin: Parent of 0v1 refers to 1v1: unknown entity" || to.w.Digest() != before {
		t.Errorf("Copy = %v", err)
	}
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "CopyOptions.Outside and Keep must not") {
			t.Errorf("with a function that creates entities: %q", text)
		}
	}()
	_, _ = to.w.Copy(from.w, e[:1], CopyOptions{Outside: func(Reference) (Entity, error) { return to.w.Create(), nil }})
}

// Copy finds resources by name, and copies them even between different Go types with the same
// layout.
func TestCopy_MatchesResourcesByName(t *testing.T) {
	type pair struct{ Of, To Entity }
	type other struct{ Of, To Entity }
	from, to := NewWorld(Options{}), NewWorld(Options{History: 1})
	e := from.CreateN(nil, 2)
	source := Must(RegisterResource(from, pair{e[1], e[0]}, Component[pair]{Name: "pair"}))
	target := Must(RegisterResource(to, other{}, Component[other]{Name: "pair"}))
	Must(RegisterResource(from, extra{}, Component[extra]{Name: "only here"}))
	Must(RegisterResource(to, extra{}, Component[extra]{Name: "only there"}))
	MustRegister(from, Component[plain]{Name: "component"})
	Must(RegisterResource(from, 1, Component[int]{Name: "n"}))
	Must(RegisterResource(to, "", Component[string]{Name: "n"}))
	to.Create()
	to.Commit()
	before := to.Digest()
	for name, want := range map[string]string{
		"only here": `resource "only here": the target has no such resource`, "only there": "the source has no such resource",
		"component": "resource component: the source has no such resource", "n": "resource n: ",
	} {
		_, err := to.Copy(from, e, CopyOptions{Resources: []string{"pair", name}})
		if err == nil || !strings.Contains(err.Error(), want) || to.Digest() != before {
			t.Errorf("Copy of the resource %s = %v, want %q and no change", name, err, want)
		}
	}
	copies, err := to.Copy(from, e, CopyOptions{Resources: []string{"pair"}})
	if got := target.Get(); err != nil || got != (other{copies[1], copies[0]}) {
		t.Errorf("Copy = %v; the resource is %v, want %v", err, got, copies)
	}
	to.Commit()
	if err := to.History().Rewind(1); err != nil || to.Digest() != before {
		t.Errorf("Rewind = %v, or the resource was not restored", err)
	}
	source.Set(pair{NewEntity(9, 9), e[0]})
	if _, err := to.Copy(from, nil, CopyOptions{Resources: []string{"pair"}}); err != nil || target.Get() != (other{}) || to.Len() != 1 {
		t.Errorf("Copy of a resource alone = %v, %v", err, target.Get())
	}
}

// A blank world has the types of the original world, but no entities.
func TestBlankWorld_HasTypesAndNoEntities(t *testing.T) {
	f := newReferenceWorld(Options{History: 3})
	parties := Must(RegisterResource(f.w, party{Leader: 1}))
	indexed := MustRegister(f.w, Component[extra]{Kind: Indexed, Default: extra{7}})
	NewIndex(f.links, func(e Entity) Entity { return e })
	added := 0
	f.links.OnAdd(func(Entity, Entity) { added++ })
	f.w.CreateN(nil, 3)
	f.links.Set(f.w.Entities()[0], 1)
	f.w.Commit()
	before := f.w.Digest()
	b := f.w.Blank(nil)
	checkAtEnd(t, b)
	if b.Len() != 0 || b.Tick() != 1 || len(b.Storages()) != len(f.w.Storages()) || parties.In(b).Get().Leader != 0 {
		t.Errorf("Blank = %d entities at tick %d, %d storages, %v", b.Len(), b.Tick(), len(b.Storages()), parties.In(b).Get())
	}
	e := b.CreateN(nil, 2)
	f.links.In(b).Set(e[1], e[0])
	indexed.In(b).Set(e[1], extra{1})
	if got := indexed.In(b).Values(); got[0] != (extra{7}) {
		t.Errorf("the gap has %v, want the default", got[0])
	}
	if added != 1 || f.w.Digest() != before {
		t.Errorf("hooks were called %d times, or the world changed", added)
	}
	if b := f.w.Blank(func(s AnyStorage) bool { return s.Name() == "link" }); len(b.Storages()) != 1 || f.links.In(b) == nil || parties.In(b) != nil {
		t.Errorf("Blank(link) has %v", b.Storages())
	}
	saved := stateOf(f.w)
	loaded := NewWorld(Options{})
	if err := loaded.Raw().Load(saved); err != nil {
		t.Fatal(err)
	}
	again := NewWorld(Options{})
	if err := again.Raw().Load(stateOf(loaded.Blank(nil))); err != nil || again.Len() != 0 || len(again.Storages()) != len(loaded.Storages()) {
		t.Errorf("a blank world without registered types cannot be saved: %v", err)
	}
}
