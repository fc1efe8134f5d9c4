package ecs

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
)

// nthComponent is a generic type that gives each component its own Go type.
type nthComponent[K any] struct{ V int32 }

func addNth[K any](w *World, name string) *Storage[nthComponent[K]] {
	return MustRegister(w, Component[nthComponent[K]]{Name: name})
}

// Each method of a query of any arity finds the right entities and values, even if every storage
// has its rows in another order.
func TestQuery_FindsRowsForEveryArity(t *testing.T) {
	queries, entities, all := everyArity(func(k, i, n int) (int, bool) {
		i = (i + 11*k) % n
		return i, i%(20+k) != 0
	})
	for i, q := range queries {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			for _, name := range visiting {
				found := visitedBy(t, q, name, entities, i+1)
				for _, e := range entities {
					want := name != "First"
					for _, s := range all[:i+1] {
						want = want && s.sparseSet().Has(e)
					}
					if want && !found[e] || found[e] && !want && name != "First" {
						t.Errorf("%s: found %v: %v", name, e, found[e])
					}
				}
				if name == "First" && len(found) != 1 {
					t.Errorf("First finds %d", len(found))
				}
			}
		})
	}
}

// If the rows of all storages are in the same order, a query finds all rows as one run, and caches
// this run. The next loop, by any method, must still find all entities. After a filter was added,
// it must find none.
func TestQuery_SecondLoopForEveryArity(t *testing.T) {
	queries, entities, all := everyArity(func(_, i, _ int) (int, bool) { return i, true })
	for i, q := range queries {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			walk := func(name string) {
				want := len(entities)
				if name == "First" {
					want = 1
				}
				if found := visitedBy(t, q, name, entities, i+1); len(found) != want || !found[entities[0]] {
					t.Errorf("%s finds %d, want %d", name, len(found), want)
				}
				if got := q.AppendEntities(nil); q.Count() != len(entities) || !slices.Equal(got, entities) {
					t.Errorf("after %s: AppendEntities(nil) = %v, want %v", name, got, entities)
				}
			}
			for _, first := range visiting {
				for _, second := range visiting {
					walk(first)
					walk(second)
				}
			}
			q.base().exclude(all[:1])
			for _, name := range visiting {
				if name != "First" && len(visitedBy(t, q, name, entities, i+1)) > 0 {
					t.Errorf("%s finds entities, want none", name)
				}
			}
		})
	}
}

// everyArity returns a query of each arity, the entities, and the storages. For each component k,
// it calls at(k, i, n) for each i below n, the number of entities. The call returns the position of
// an entity, and whether the entity gets the component. So at decides which entities get component
// k, and in which order.
func everyArity(at func(k, i, n int) (int, bool)) ([]AnyQuery, []Entity, []AnyStorage) {
	w := NewWorld(Options{})
	a, b, c, d := addNth[int8](w, "a"), addNth[int16](w, "b"), addNth[int32](w, "c"), addNth[int64](w, "d")
	e, f, g, h := addNth[uint8](w, "e"), addNth[uint16](w, "f"), addNth[uint32](w, "g"), addNth[uint64](w, "h")
	entities := w.CreateN(nil, 150)
	for k, set := range []func(Entity, int32) bool{
		setNth(a), setNth(b), setNth(c), setNth(d), setNth(e), setNth(f), setNth(g), setNth(h),
	} {
		for i := range entities {
			if i, ok := at(k, i, len(entities)); ok {
				set(entities[i], int32(1000*k+i))
			}
		}
	}
	return []AnyQuery{
		NewQuery1(Read(a)),
		NewQuery2(Read(a), Read(b)),
		NewQuery3(Read(a), Read(b), Read(c)),
		NewQuery4(Read(a), Read(b), Read(c), Read(d)),
		NewQuery5(Read(a), Read(b), Read(c), Read(d), Read(e)),
		NewQuery6(Read(a), Read(b), Read(c), Read(d), Read(e), Read(f)),
		NewQuery7(Read(a), Read(b), Read(c), Read(d), Read(e), Read(f), Read(g)),
		NewQuery8(Read(a), Read(b), Read(c), Read(d), Read(e), Read(f), Read(g), Read(h)),
	}, entities, w.Storages()
}

// visiting lists the methods that visitAll can call.
var visiting = []string{"All", "AllOptional", "Runs", "Get", "First", "ParallelRuns"}

// visitedBy returns the entities that the named method of q finds. q has n components. The test
// fails if an entity has the values of another entity.
func visitedBy(t *testing.T, q any, name string, entities []Entity, n int) map[Entity]bool {
	found := map[Entity]bool{}
	visitAll(q, name, entities, func(e Entity, values []int) {
		found[e] = true
		for k, v := range values {
			if v != 1000*k+int(e.Index()) || len(values) != n {
				t.Fatalf("%s: %v has %v", name, e, values)
			}
		}
	})
	return found
}

func setNth[K any](s *Storage[nthComponent[K]]) func(Entity, int32) bool {
	return func(e Entity, v int32) bool { return s.Set(e, nthComponent[K]{v}) }
}

// visitAll calls visit for each entity that the named method of a query finds.
func visitAll(q any, name string, entities []Entity, visit func(Entity, []int)) {
	method := reflect.ValueOf(q).MethodByName(name)
	row := func(e, row reflect.Value) {
		var values []int
		if row.Kind() == reflect.Pointer {
			values = []int{int(row.Elem().Field(0).Int())}
		} else {
			for k := range row.NumField() {
				values = append(values, int(row.Field(k).Elem().Field(0).Int()))
			}
		}
		visit(e.Interface().(Entity), values)
	}
	run := func(run reflect.Value) {
		for i := range run.Field(0).Len() {
			var values []int
			for k := 1; k < run.NumField(); k++ {
				values = append(values, int(run.Field(k).Index(i).Field(0).Int()))
			}
			visit(run.Field(0).Index(i).Interface().(Entity), values)
		}
	}
	switch name {
	case "All", "AllOptional":
		for e, r := range method.Call(nil)[0].Seq2() {
			row(e, r)
		}
	case "Runs":
		for r := range method.Call(nil)[0].Seq() {
			run(r)
		}
	case "ParallelRuns":
		method.Call([]reflect.Value{reflect.ValueOf(1), reflect.MakeFunc(method.Type().In(1), func(args []reflect.Value) []reflect.Value {
			run(args[0])
			return nil
		})})
	case "Get":
		for _, e := range entities {
			if got := method.Call([]reflect.Value{reflect.ValueOf(e)}); got[1].Bool() {
				row(reflect.ValueOf(e), got[0])
			}
		}
	case "First":
		if got := method.Call(nil); got[2].Bool() {
			row(got[0], got[1])
		}
	}
}

// For every arity, the query returns the optional component of each entity, or nil if the entity
// has none.
func TestQuery_OptionalForEveryArity(t *testing.T) {
	w := NewWorld(Options{})
	a, b, c, d := addNth[int8](w, "a"), addNth[int16](w, "b"), addNth[int32](w, "c"), addNth[int64](w, "d")
	e, f, g, h := addNth[uint8](w, "e"), addNth[uint16](w, "f"), addNth[uint32](w, "g"), addNth[uint64](w, "h")
	has := func(k, i int) bool { return k == 0 || (i*7+k*k)%(k+2) > 0 }
	entities := w.CreateN(nil, 150)
	for k, set := range []func(Entity, int32) bool{
		setNth(a), setNth(b), setNth(c), setNth(d), setNth(e), setNth(f), setNth(g), setNth(h),
	} {
		for i := range entities {
			if i = (i + 11*k) % len(entities); has(k, i) {
				set(entities[i], int32(1000*k+i))
			}
		}
	}
	for n, q := range []any{
		NewQuery2(Read(a), Optional(Read(b))),
		NewQuery3(Read(a), Optional(Read(b)), Optional(Read(c))),
		NewQuery4(Read(a), Optional(Read(b)), Optional(Read(c)), Optional(Read(d))),
		NewQuery5(Read(a), Optional(Read(b)), Optional(Read(c)), Optional(Read(d)), Optional(Read(e))),
		NewQuery6(Read(a), Optional(Read(b)), Optional(Read(c)), Optional(Read(d)), Optional(Read(e)), Optional(Read(f))),
		NewQuery7(Read(a), Optional(Read(b)), Optional(Read(c)), Optional(Read(d)), Optional(Read(e)), Optional(Read(f)), Optional(Read(g))),
		NewQuery8(Read(a), Optional(Read(b)), Optional(Read(c)), Optional(Read(d)), Optional(Read(e)), Optional(Read(f)), Optional(Read(g)), Optional(Read(h))),
	} {
		visited := 0
		check := func(entity, row reflect.Value) {
			visited++
			i := int(entity.Interface().(Entity).Index())
			for k := range row.NumField() {
				v := row.Field(k)
				if v.IsNil() == has(k, i) || !v.IsNil() && v.Elem().Field(0).Int() != int64(1000*k+i) {
					t.Errorf("arity %d: entity %d has component %d: %v, want it to have one: %v", n+2, i, k, v, has(k, i))
				}
			}
		}
		for entity, row := range reflect.ValueOf(q).MethodByName("AllOptional").Call(nil)[0].Seq2() {
			check(entity, row)
		}
		for _, entity := range entities {
			if got := reflect.ValueOf(q).MethodByName("Get").Call([]reflect.Value{reflect.ValueOf(entity)}); got[1].Bool() {
				check(reflect.ValueOf(entity), got[0])
			}
		}
		if visited != 2*len(entities) {
			t.Errorf("arity %d: %d entities are visited, want all twice", n+2, visited)
		}
	}
}

// Get of a row returns the pointers in the order of the fields.
func TestRowGet_PointersInFieldOrder(t *testing.T) {
	type p = plain
	for _, row := range []any{
		&Row2[p, p]{}, &Row3[p, p, p]{}, &Row4[p, p, p, p]{}, &Row5[p, p, p, p, p]{}, &Row6[p, p, p, p, p, p]{},
		&Row7[p, p, p, p, p, p, p]{}, &Row8[p, p, p, p, p, p, p, p]{},
	} {
		v := reflect.ValueOf(row).Elem()
		for i := range v.NumField() {
			v.Field(i).Set(reflect.ValueOf(&plain{X: int32(i)}))
		}
		got := v.MethodByName("Get").Call(nil)
		for i := range v.NumField() {
			if got[i].Pointer() != v.Field(i).Pointer() {
				t.Errorf("%T: result %d is not field %d", row, i, i)
			}
		}
	}
}
