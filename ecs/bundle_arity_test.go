package ecs

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
)

// everyBundle returns a world and a bundle of each arity over its first storages.
func everyBundle() (*World, []any) {
	w := NewWorld(Options{History: 4})
	a, b, c, d := addNth[int8](w, "a"), addNth[int16](w, "b"), addNth[int32](w, "c"), addNth[int64](w, "d")
	e, f, g, h := addNth[uint8](w, "e"), addNth[uint16](w, "f"), addNth[uint32](w, "g"), addNth[uint64](w, "h")
	return w, []any{
		NewBundle2(a, b),
		NewBundle3(a, b, c),
		NewBundle4(a, b, c, d),
		NewBundle5(a, b, c, d, e),
		NewBundle6(a, b, c, d, e, f),
		NewBundle7(a, b, c, d, e, f, g),
		NewBundle8(a, b, c, d, e, f, g, h),
	}
}

// A bundleCaller calls the methods of a bundle of n components by name. One number v stands for the
// values of all n components: component k has the value 1000k+v.
type bundleCaller struct {
	w      *World
	bundle any
	n      int
}

// call calls a method of the bundle. The arguments are args, followed by the components for the
// number v.
func (b bundleCaller) call(method string, v int, args ...any) any {
	m := reflect.ValueOf(b.bundle).MethodByName(method)
	var in []reflect.Value
	for _, arg := range args {
		in = append(in, reflect.ValueOf(arg))
	}
	for k := len(in); k < m.Type().NumIn(); k++ {
		component := reflect.New(m.Type().In(k)).Elem()
		component.Field(0).SetInt(int64(1000*(k-len(args)) + v))
		in = append(in, component)
	}
	return m.Call(in)[0].Interface()
}

// set adds the components for the number v to e, one by one.
func (b bundleCaller) set(e Entity, v int) bool {
	for k, s := range b.w.Storages()[:b.n] {
		m := reflect.ValueOf(s).MethodByName("Set")
		component := reflect.New(m.Type().In(1)).Elem()
		component.Field(0).SetInt(int64(1000*k + v))
		m.Call([]reflect.Value{reflect.ValueOf(e), component})
	}
	return b.w.Alive(e)
}

// remove removes the components of e one by one, and reports whether e had any of them.
func (b bundleCaller) remove(e Entity) (some bool) {
	for _, s := range b.w.Storages()[:b.n] {
		some = reflect.ValueOf(s).MethodByName("Remove").Call([]reflect.Value{reflect.ValueOf(e)})[0].Bool() || some
	}
	return some
}

// For every arity, a bundle has the same effect as calls for each of its components. The cases are
// existing rows, new rows, new pages of entities, hooks, and several ticks.
func TestBundle_EveryAritySameAsSingleCalls(t *testing.T) {
	_, bundles := everyBundle()
	for i := range bundles {
		t.Run(fmt.Sprint(i+2), func(t *testing.T) {
			w, bundles := everyBundle()
			got := bundleCaller{w, bundles[i], i + 2}
			w, _ = everyBundle()
			want := bundleCaller{w, nil, i + 2}
			both := []bundleCaller{got, want}
			check := func(when string) {
				t.Helper()
				for k, s := range got.w.Storages() {
					if other := want.w.Storages()[k]; !slices.Equal(s.Entities(), other.Entities()) {
						t.Errorf("%s: %s has the rows of %d entities, want %d, or they are in another order", when, s.Name(), len(s.Entities()), len(other.Entities()))
					}
				}
				if got.w.Digest() != want.w.Digest() {
					t.Errorf("%s: the worlds differ", when)
				}
				if err := got.w.check(); err != nil {
					t.Errorf("%s: %v", when, err)
				}
			}
			create := func(n int) {
				for v := range n {
					e := got.call("Create", v).(Entity)
					if other := want.w.Create(); e != other || !want.set(other, v) {
						t.Fatalf("Create returns %v, want %v", e, other)
					}
				}
			}
			create(3)
			check("new storages")
			for _, b := range both {
				b.w.Commit()
				for _, s := range b.w.Storages() {
					reflect.ValueOf(s).MethodByName("Reserve").Call([]reflect.Value{reflect.ValueOf(3000)})
				}
			}
			create(2)
			check("a new tick")
			for _, b := range both {
				// The indices of later entities are in another page of the sparse arrays.
				b.w.CreateN(nil, 4000)
			}
			create(200)
			check("a new page")
			for _, b := range both {
				b.w.Commit()
			}
			all := got.call("CreateN", 7, []Entity(nil), 70).([]Entity)
			for k, e := range want.w.CreateN(nil, 70) {
				if want.set(e, 7); all[k] != e {
					t.Fatalf("CreateN returns %v, want %v", all[k], e)
				}
			}
			check("CreateN")
			dead, bare := all[0], got.w.Entities()[100]
			got.w.Destroy(dead)
			want.w.Destroy(dead)
			for v, e := range []Entity{dead, bare, all[5], bare} {
				if set, other := got.call("Set", v, e), want.set(e, v); set != other {
					t.Errorf("Set of %v = %v, want %v", e, set, other)
				}
				check("Set")
			}
			for _, b := range both { // Remove all components of all[10+n] except component n.
				storages := b.w.Storages()[:b.n]
				for k, s := range storages {
					for n := range storages {
						if n != k {
							reflect.ValueOf(s).MethodByName("Remove").Call([]reflect.Value{reflect.ValueOf(all[10+n])})
						}
					}
				}
			}
			for _, e := range append(slices.Clone(all[10:10+got.n]), dead, bare, bare, all[40]) {
				if removed, other := got.call("Remove", 0, e), want.remove(e); removed != other {
					t.Errorf("Remove of %v = %v, want %v", e, removed, other)
				}
			}
			check("Remove")
			for _, b := range both {
				b.w.Commit()
				b.w.OnCreate(func(Entity) {})
			}
			create(5)
			check("with a hook")
			for _, tick := range []uint64{1, 3, 2} {
				for _, b := range both {
					if err := b.w.History().Seek(tick); err != nil {
						t.Fatal(err)
					}
				}
				check(fmt.Sprint("back at tick ", tick))
			}
		})
	}
}
