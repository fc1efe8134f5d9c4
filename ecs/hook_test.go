package ecs

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/ecs/raw"
)

// A hookLog records the calls that the hooks of a model received.
type hookLog struct {
	deltas         []oracleDelta
	replaced       []oracleSet
	created, ended []Entity
	stores         []intStore
}

// An oracleSet is a call of Set for a component that the entity already had.
type oracleSet struct {
	store int
	oracleEdit
}

// listen registers hooks of w that record created and destroyed entities.
func (log *hookLog) listen(w *World) {
	w.OnCreate(func(e Entity) {
		for _, f := range log.stores {
			if f.has(e) || !w.Alive(e) {
				failf("OnCreate was called for %v, which is dead or has %s", e, f.name)
			}
		}
		log.created = append(log.created, e)
	})
	w.OnDestroy(func(e Entity) {
		for i, f := range log.stores {
			for _, gone := range log.deltas[i].removed {
				if gone.e == e || !w.Alive(e) {
					failf("OnDestroy was called for %v, which is dead or has lost %s", e, f.name)
				}
			}
		}
		log.ended = append(log.ended, e)
	})
}

// hookedKinds returns kinds with hooks. The hooks record their calls in log, and compare their
// arguments with the world.
func hookedKinds(kinds []kind, log *hookLog) []kind {
	hooked := slices.Clone(kinds)
	log.deltas = make([]oracleDelta, len(kinds))
	for i, k := range kinds {
		hooked[i].add = func(w *World) intStore {
			f := k.add(w)
			if i == 0 {
				log.stores = log.stores[:0]
				log.listen(w)
			}
			log.stores = append(log.stores, f)
			mustHave := func(e Entity, v int) {
				if got, ok := f.get(e); !ok || got != v || !w.Alive(e) {
					failf("%s: a hook was called with %v and %d; Get() = %d, %v", f.name, e, v, got, ok)
				}
			}
			store := &log.deltas[i]
			f.changes.hook(
				func(e Entity, v int) { mustHave(e, v); store.added = append(store.added, oracleEdit{e, 0, v}) },
				func(e Entity, v int) { mustHave(e, v); store.removed = append(store.removed, oracleEdit{e, v, 0}) },
				func(e Entity, old, now int) {
					mustHave(e, now)
					log.replaced = append(log.replaced, oracleSet{i, oracleEdit{e, old, now}})
				},
				func(e Entity, old, now int) {
					mustHave(e, now)
					store.changed = append(store.changed, oracleEdit{e, old, now})
				})
			return f
		}
	}
	return hooked
}

// expect calls the function do. Hooks must be called exactly for the changes that the oracle shows,
// or not at all if quiet is set. One call of do() must not both add and remove components.
func (log *hookLog) expect(p *model, quiet bool, do func() bool) bool {
	clear(log.deltas)
	log.replaced, log.created, log.ended, p.oracle.replaced = nil, nil, nil, nil
	before := p.oracle.oracleState.clone()
	boundary := p.oracle.newestBoundary()
	tick := p.oracle.tick
	done := do()
	for i := range log.deltas {
		var want oracleDelta
		switch {
		case quiet:
		case p.oracle.tick != tick:
			if !p.oracle.exempt[i] {
				want.changed = difference(&boundary.stores[i], &p.oracle.stores[i]).changed
			}
		default:
			want = difference(&before.stores[i], &p.oracle.stores[i])
			want.changed = nil
			slices.Reverse(want.removed)
		}
		// World.Clear calls the hooks in another order, by entity. So sort both lists.
		if len(p.oracle.alive) == 0 {
			slices.SortFunc(want.removed, byEntity)
			slices.SortFunc(log.deltas[i].removed, byEntity)
		}
		if got := log.deltas[i]; !reflect.DeepEqual(got, want) {
			failf("%s: the hook calls are %v, want %v", p.stores[i].name, got, want)
		}
	}
	created, ended := among(p.oracle.alive, before.alive), among(before.alive, p.oracle.alive)
	if quiet {
		created, ended = nil, nil
	}
	slices.Sort(ended)
	slices.Sort(log.ended)
	if !reflect.DeepEqual(log.replaced, p.oracle.replaced) || !slices.Equal(log.created, created) || !slices.Equal(log.ended, ended) {
		failf("hooks were called for sets %v, created %v, destroyed %v; want %v, %v, %v", log.replaced, log.created, log.ended, p.oracle.replaced, created, ended)
	}
	return done
}

// among returns the elements of entities that are not in others.
func among(entities, others []Entity) []Entity {
	return slices.DeleteFunc(slices.Clone(entities), func(e Entity) bool { return slices.Contains(others, e) })
}

func byEntity(a, b oracleEdit) int { return cmp.Compare(a.e, b.e) }

// listened returns the operations extended by a check of the hook calls.
func listened(all []operation, log *hookLog) []operation {
	list := slices.Clone(all)
	for i, o := range all {
		quiet := false
		for _, verb := range []string{"rewind", "forward", "restore", "release", "checkpoint"} {
			quiet = quiet || strings.HasPrefix(o.name, verb)
		}
		list[i].do = func(p *model) bool { return log.expect(p, quiet, func() bool { return o.do(p) }) }
	}
	return list
}

func TestHookModel_Ticks(t *testing.T) {
	t.Parallel()
	for _, s := range []modelOptions{
		{kinds: []kind{listKind}, history: 2},
		{kinds: []kind{plainKind}, record: true},
		{kinds: []kind{plainKind}},
	} {
		t.Run(fmt.Sprintf("history %d, recorded %v", s.history, s.record), func(t *testing.T) {
			var log hookLog
			s.kinds, s.entities, s.members = hookedKinds(s.kinds, &log), 2, 2
			all := operations(adds(0, 2), sets(0, 1), removes(0, 2), writes(0, 2), clearStore(0), ticks(), checkpoints(1))
			explore(t, s, listened(all, &log), max(3, *depth-1))
		})
	}
}

func TestHookModel_CreateDestroy(t *testing.T) {
	t.Parallel()
	var log hookLog
	s := modelOptions{kinds: hookedKinds([]kind{plainKind, extraKind, labelKind}, &log), entities: 2, members: 2, history: 2}
	all := operations(destroys(3), create, clearAll, adds(0, 3), adds(1, 2), removes(0, 1), writes(1, 1), clearStore(1), ticks(), checkpoints(1))
	explore(t, s, listened(all, &log), max(3, *depth-1))
}

// hookWorld is a world with hooks that log their calls.
type hookWorld struct {
	*World
	a, b *Storage[plain]
	log  []string
}

func newHookWorld(t *testing.T, o Options) *hookWorld {
	w := &hookWorld{World: NewWorld(o)}
	checkAtEnd(t, w.World)
	w.a, w.b = MustRegister(w.World, Component[plain]{Name: "a"}), MustRegister(w.World, Component[plain]{Name: "b"})
	return w
}

func (w *hookWorld) logCall(what string, e Entity, v plain) {
	w.log = append(w.log, fmt.Sprint(what, " ", e, " ", v.X))
}

// listen registers hooks that log added and removed components of both storages.
func (w *hookWorld) listen() {
	for _, s := range []*Storage[plain]{w.a, w.b} {
		s.OnAdd(func(e Entity, v plain) { w.logCall("+"+s.name, e, v) })
		s.OnRemove(func(e Entity, v plain) { w.logCall("-"+s.name, e, v) })
	}
}

// entity creates an entity with both components.
func (w *hookWorld) entity(v int32) Entity {
	e := w.Create()
	w.a.Set(e, plain{v, 0})
	w.b.Set(e, plain{-v, 0})
	return e
}

func (w *hookWorld) expect(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(w.log, want) {
		t.Errorf("the hook calls are\n%q, want\n%q", w.log, want)
	}
	w.log = nil
	if err := w.check(); err != nil {
		t.Error(err)
	}
}

func TestHook_CalledByAddAndRemove(t *testing.T) {
	w := newHookWorld(t, Options{})
	w.listen()
	e, f, g := w.entity(1), w.entity(2), w.entity(3)
	w.expect(t, "+a 0v1 1", "+b 0v1 -1", "+a 1v1 2", "+b 1v1 -2", "+a 2v1 3", "+b 2v1 -3")
	w.a.Set(e, plain{9, 0})
	w.a.Remove(e)
	w.a.Remove(e)
	w.Destroy(f)
	w.Destroy(f)
	w.expect(t, "-a 0v1 9", "-a 1v1 2", "-b 1v1 -2")
	w.b.Clear()
	w.b.Clear()
	w.expect(t, "-b 2v1 -3", "-b 0v1 -1")
	w.b.Set(e, plain{5, 0})
	w.World.Clear()
	w.World.Clear()
	w.expect(t, "+b 0v1 5", "-a 2v1 3", "-b 0v1 5")
	if w.Len()+w.a.Len()+w.b.Len() > 0 || w.Alive(g) {
		t.Error("entities or components are left")
	}
}

func TestHook_CalledBySetCreateAndDestroy(t *testing.T) {
	w := newHookWorld(t, Options{History: 1})
	e := w.entity(1)
	w.OnCreate(func(e Entity) { w.log = append(w.log, fmt.Sprint("+ ", e, " ", w.a.Has(e))) })
	w.OnDestroy(func(e Entity) { w.log = append(w.log, fmt.Sprint("- ", e, " ", w.a.Has(e))) })
	w.listen()
	w.a.OnSet(func(e Entity, old, now plain) { w.log = append(w.log, fmt.Sprint("=a ", e, " ", old.X, " ", now.X)) })
	w.b.OnSet(func(e Entity, old, now plain) { w.log = append(w.log, fmt.Sprint("=b ", e, " ", old.X, " ", now.X)) })

	w.a.Set(e, plain{1, 0})
	w.expect(t, "=a 0v1 1 1")
	w.a.Mut(e).X = 2
	row, _ := NewQuery1(Write(w.a)).Get(e)
	row.X = 3
	for _, p := range w.a.MutEach([]Entity{e}) {
		p.X = 4
	}
	w.a.MutValues()[0].X = 5
	w.expect(t)
	w.a.SetAll([]Entity{e, e, 77}, plain{6, 0})
	w.a.SetEach([]Entity{e}, []plain{{7, 0}})
	w.expect(t, "=a 0v1 5 6", "=a 0v1 6 6", "=a 0v1 6 7")
	NewBundle2(w.a, w.b).Set(e, plain{8, 0}, plain{9, 0})
	w.expect(t, "=a 0v1 7 8", "=b 0v1 -1 9")
	var c Commands
	w.a.Later(&c).Set(e, plain{9, 0})
	c.Create()
	w.Apply(&c)
	w.expect(t, "=a 0v1 8 9", "+ 1v1 false")
	many := w.CreateN(nil, 2)
	w.expect(t, "+ 2v1 false", "+ 3v1 false")
	NewBundle1(w.a).Create(plain{1, 0})
	NewBundle1(w.b).CreateN(nil, 2, plain{2, 0})
	w.expect(t, "+ 4v1 false", "+a 4v1 1", "+ 5v1 false", "+ 6v1 false", "+b 5v1 2", "+b 6v1 2")
	w.CloneEntity(e)
	w.expect(t, "+ 7v1 false", "+a 7v1 9", "+b 7v1 9")
	if _, err := w.Copy(w.World, []Entity{e, many[0]}, CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "+ 8v1 false", "+ 9v1 false", "+a 8v1 9", "+b 8v1 9")
	w.DestroyAll(many)
	w.Destroy(e)
	w.expect(t, "- 3v1 false", "- 2v1 false", "- 0v1 true", "-a 0v1 9", "-b 0v1 9")
	w.Commit()
	w.Clear()
	if w.expect(t, "- 6v1 false", "-b 6v1 2", "- 5v1 false", "-b 5v1 2", "- 4v1 true", "-a 4v1 1", "- 9v1 false",
		"- 8v1 true", "-a 8v1 9", "-b 8v1 9", "- 1v1 false", "- 7v1 true", "-a 7v1 9", "-b 7v1 9"); w.Len() != 0 {
		t.Errorf("%d entities after Clear", w.Len())
	}
	if err := w.History().Rewind(0); err != nil {
		t.Fatal(err)
	}
	w.expect(t)
	if w.Clone().Create(); len(w.log) > 0 {
		t.Errorf("a clone called hooks: %q", w.log)
	}
}

func TestOnSet_HookRemovesComponent(t *testing.T) {
	for _, take := range []func(w *hookWorld, e Entity){
		func(w *hookWorld, e Entity) { w.a.Remove(e) },
		func(w *hookWorld, e Entity) { w.Destroy(e) },
	} {
		w := newHookWorld(t, Options{History: 1})
		e := w.entity(1)
		w.a.OnSet(func(e Entity, _, now plain) {
			w.logCall("first", e, now)
			take(w, e)
		})
		w.a.OnSet(func(e Entity, _, now plain) { w.logCall("second", e, now) })
		if !w.a.Set(e, plain{2, 0}) {
			t.Error("Set = false")
		}
		w.expect(t, "first 0v1 2")
	}
}

func TestHook_NotCalledWhenTryReverts(t *testing.T) {
	w := newHookWorld(t, Options{})
	w.listen()
	_ = w.Try(func() error { w.entity(1); return errTried })
	w.expect(t, "+a 0v1 1", "+b 0v1 -1")
}

func TestHook_NotCalledByLoadOrClone(t *testing.T) {
	w := newHookWorld(t, Options{History: 2})
	w.entity(1)
	state := stateOf(w.World)
	w.listen()
	w.a.OnChange(func(e Entity, _, now plain) { w.logCall("~a", e, now) })
	w.a.Mut(w.Entities()[0]).X = 7
	if err := w.Raw().Load(state); err != nil {
		t.Fatal(err)
	}
	w.Commit()
	c := w.Clone()
	c.Clear()
	w.expect(t)
	w.a.Mut(w.Entities()[0]).X = 8
	w.Commit()
	w.expect(t, "~a 0v1 8")
}

// The tests below are about the calls that hooks may make.

func TestHook_RegisteredInHookRunsNextTime(t *testing.T) {
	w := newHookWorld(t, Options{})
	first := true
	w.a.OnAdd(func(e Entity, v plain) {
		w.logCall("first", e, v)
		if first {
			first = false
			w.a.OnAdd(func(e Entity, v plain) { w.logCall("third", e, v) })
			w.a.OnRemove(func(e Entity, v plain) { w.logCall("gone", e, v) })
			w.a.OnChange(func(e Entity, _, v plain) {
				w.logCall("changed", e, v)
				if v.X == 1 {
					w.a.OnChange(func(e Entity, _, v plain) { w.logCall("changed too", e, v) })
				}
			})
		}
	})
	w.a.OnAdd(func(e Entity, v plain) { w.logCall("second", e, v) })
	e := w.entity(0)
	w.expect(t, "first 0v1 0", "second 0v1 0")
	w.a.Remove(e)
	w.a.Set(e, plain{})
	w.expect(t, "gone 0v1 0", "first 0v1 0", "second 0v1 0", "third 0v1 0")
	w.Commit()
	for x := range int32(2) {
		w.a.Set(e, plain{x + 1, 0})
		w.Commit()
	}
	w.expect(t, "changed 0v1 1", "changed 0v1 2", "changed too 0v1 2")
}

func TestOnAdd_HookRemovesComponent(t *testing.T) {
	for name, undo := range map[string]func(w *hookWorld, e Entity){
		"Remove":      func(w *hookWorld, e Entity) { w.a.Remove(e) },
		"Destroy":     func(w *hookWorld, e Entity) { w.Destroy(e) },
		"Clear":       func(w *hookWorld, _ Entity) { w.a.Clear() },
		"World.Clear": func(w *hookWorld, _ Entity) { w.World.Clear() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newHookWorld(t, Options{History: 1})
			w.a.OnAdd(func(e Entity, v plain) {
				w.logCall("+", e, v)
				undo(w, e)
			})
			w.a.OnAdd(func(e Entity, v plain) { w.logCall("late", e, v) })
			w.a.OnRemove(func(e Entity, v plain) { w.logCall("-", e, v) })
			e := w.Create()
			if !w.a.Set(e, plain{1, 0}) || w.a.Has(e) {
				t.Errorf("Has(%v) = %v after its hook", e, w.a.Has(e))
			}
			w.expect(t, "+ 0v1 1", "- 0v1 1")
		})
	}
}

// The hook tries every call that could remove the component a second time.
func TestOnRemove_CalledOncePerRemoval(t *testing.T) {
	undo := map[string]func(w *hookWorld, e Entity){
		"nothing": func(*hookWorld, Entity) {},
		"Remove": func(w *hookWorld, e Entity) {
			if !w.a.Remove(e) || !w.a.Has(e) {
				w.log = append(w.log, "Remove of what goes did not leave it")
			}
		},
		"Destroy":     func(w *hookWorld, e Entity) { w.Destroy(e) },
		"Clear":       func(w *hookWorld, _ Entity) { w.a.Clear() },
		"World.Clear": func(w *hookWorld, _ Entity) { w.World.Clear() },
		"Set":         func(w *hookWorld, e Entity) { w.a.Set(e, plain{9, 9}) },
		"Mut":         func(w *hookWorld, e Entity) { w.a.Mut(e).X = 9 },
	}
	do := map[string]func(w *hookWorld, e Entity){
		"Remove":      func(w *hookWorld, e Entity) { w.a.Remove(e) },
		"Destroy":     func(w *hookWorld, e Entity) { w.Destroy(e) },
		"Clear":       func(w *hookWorld, _ Entity) { w.a.Clear() },
		"World.Clear": func(w *hookWorld, _ Entity) { w.World.Clear() },
	}
	for outer, do := range do {
		for inner, undo := range undo {
			t.Run(inner+" in "+outer, func(t *testing.T) {
				w := newHookWorld(t, Options{History: 1})
				e := w.entity(1)
				w.Commit()
				before := w.Digest()
				w.a.OnRemove(func(e Entity, v plain) {
					w.logCall("-a", e, v)
					undo(w, e)
				})
				w.a.OnRemove(func(e Entity, v plain) {
					if v.X = 1; w.a.Has(e) && w.Alive(e) {
						w.logCall("again", e, v)
					}
				})
				w.b.OnRemove(func(e Entity, v plain) { w.logCall("-b", e, v) })
				cp := w.Checkpoint()
				do(w, e)
				if w.a.Has(e) {
					t.Errorf("%v still has the component", e)
				}
				destroyed := strings.Contains(outer+inner, "Destroy") || strings.Contains(outer+inner, "World.Clear")
				if w.Alive(e) == destroyed {
					t.Errorf("Alive(%v) = %v", e, !destroyed)
				}
				count := map[string]int{}
				for _, call := range w.log {
					count[call]++
				}
				if count["-a 0v1 1"] != 1 || count["-b 0v1 -1"] != 0 != destroyed || count["-b 0v1 -1"] > 1 {
					t.Errorf("the hook calls are %q", w.log)
				}
				w.Restore(cp)
				w.Release(cp)
				if w.Digest() != before {
					t.Error("Restore is not exact")
				}
				if len(w.hooks.destroying)+len(w.hooks.notifiedSets)+len(w.hooks.members)+len(w.a.hooks.removing)+len(w.b.hooks.removing) > 0 {
					t.Error("a removal is still registered")
				}
			})
		}
	}
}

func TestDestroy_HookDestroysAgain(t *testing.T) {
	w := newHookWorld(t, Options{})
	e := w.entity(1)
	w.a.OnRemove(func(e Entity, _ plain) {
		if w.Destroy(e) || !w.Alive(e) || !w.a.Has(e) || !w.b.Has(e) {
			t.Error("the hook's Destroy = true")
		}
	})
	if !w.Destroy(e) || w.Alive(e) {
		t.Error("the entity was not destroyed")
	}
}

// If hooks add components to an entity during its Destroy, these components are removed as well,
// with calls of their hooks.
func TestDestroy_HookAddsComponent(t *testing.T) {
	w := newHookWorld(t, Options{History: 1})
	c := MustRegister(w.World, Component[plain]{Name: "c"})
	w.listen()
	w.b.OnRemove(func(e Entity, v plain) {
		w.a.Set(e, plain{v.X + 1, 0})
		c.Set(e, v) // c has no hooks.
	})
	e := w.Create()
	w.b.Set(e, plain{1, 0})
	w.Destroy(e)
	w.expect(t, "+b 0v1 1", "-b 0v1 1", "+a 0v1 2", "-a 0v1 2")
	if w.a.Len()+w.b.Len()+c.Len() > 0 {
		t.Error("rows are left")
	}
	f := w.Create()
	w.b.Set(f, plain{1, 0})
	w.b.Remove(f)
	w.expect(t, "+b 0v2 1", "-b 0v2 1", "+a 0v2 2")
}

func TestClear_HookAddsComponents(t *testing.T) {
	w := newHookWorld(t, Options{})
	e, f := w.entity(1), w.entity(2)
	spawn := true
	w.a.OnRemove(func(Entity, plain) {
		if spawn {
			w.entity(7)
		}
	})
	w.a.Clear()
	if w.a.Len() != 2 || w.a.Has(e) || w.a.Has(f) || w.Len() != 4 {
		t.Errorf("%d components are left, want the 2 that a hook added", w.a.Len())
	}
	w.World.Clear()
	if w.Len() != 2 || w.a.Len() != 2 || w.b.Len() != 2 {
		t.Errorf("%d entities are left, want the 2 that a hook created", w.Len())
	}
	spawn = false
	w.World.Clear()
	if w.Len() != 0 {
		t.Errorf("%d entities are left", w.Len())
	}
}

// If one hook removes another entity during Clear, the hook for that entity is still called only
// once.
func TestClear_HookRemovesOtherEntity(t *testing.T) {
	for name, empty := range map[string]func(w *hookWorld){
		"Clear":       func(w *hookWorld) { w.a.Clear() },
		"World.Clear": func(w *hookWorld) { w.World.Clear() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newHookWorld(t, Options{History: 1})
			var entities []Entity
			for i := range int32(5) {
				entities = append(entities, w.entity(i))
			}
			w.a.OnRemove(func(e Entity, v plain) {
				w.logCall("-", e, v)
				if e == entities[4] {
					w.a.Remove(entities[1])
					w.Destroy(entities[3])
				}
			})
			empty(w)
			w.expect(t, "- 4v1 4", "- 1v1 1", "- 3v1 3", "- 2v1 2", "- 0v1 0")
		})
	}
}

func TestHook_RestoresWorld(t *testing.T) {
	for name, do := range map[string]func(w *hookWorld, e Entity){
		"Set":         func(w *hookWorld, _ Entity) { w.b.Set(w.Create(), plain{}) },
		"Remove":      func(w *hookWorld, e Entity) { w.a.Remove(e) },
		"Destroy":     func(w *hookWorld, e Entity) { w.Destroy(e) },
		"Clear":       func(w *hookWorld, _ Entity) { w.a.Clear() },
		"World.Clear": func(w *hookWorld, _ Entity) { w.World.Clear() },
		"Commit":      func(w *hookWorld, e Entity) { w.a.Mut(e).X = 7; w.Commit() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newHookWorld(t, Options{History: 3})
			cp := w.Checkpoint()
			e := w.entity(1)
			w.Commit()
			calls := 0
			back := func() {
				calls++
				w.Restore(cp)
			}
			w.a.OnRemove(func(Entity, plain) { back() })
			w.b.OnAdd(func(Entity, plain) { back() })
			w.a.OnChange(func(_ Entity, _, _ plain) { back() })
			do(w, e)
			if calls != 1 || w.Alive(e) || w.a.Len() != 0 {
				t.Errorf("%d calls, then Alive(%v) = %v, %d components", calls, e, w.Alive(e), w.a.Len())
			}
			w.expect(t)
		})
	}
}

// If a hook panics, the world has either the whole change that called the hook, or no part of it.
func TestHook_PanicLeavesNoPartialChange(t *testing.T) {
	w := newHookWorld(t, Options{History: 2})
	e := w.entity(1)
	w.Commit()
	broken := true
	boom := func(Entity, plain) {
		if broken {
			panic("boom")
		}
	}
	w.a.OnAdd(boom)
	w.b.OnRemove(boom)
	w.a.OnChange(func(e Entity, before, _ plain) { boom(e, before) })
	before := w.Digest()
	mustBoom := func(f func()) {
		t.Helper()
		defer func() {
			if r := recover(); r != "boom" {
				t.Errorf("panicked with %v", r)
			}
			if err := w.check(); err != nil {
				t.Error(err)
			}
			if len(w.hooks.destroying)+len(w.hooks.notifiedSets)+len(w.hooks.members)+len(w.a.hooks.removing)+len(w.b.hooks.removing) > 0 || w.hooks.changing {
				t.Error("a removal is still registered")
			}
		}()
		f()
	}
	mustBoom(func() { w.b.Remove(e) })
	mustBoom(func() { w.b.Clear() })
	mustBoom(func() { w.Destroy(e) })
	mustBoom(func() { w.World.Clear() })
	mustBoom(func() { _ = w.Try(func() error { w.Destroy(e); return nil }) })
	if w.Digest() != before {
		t.Error("a change that a panic stopped was made")
	}
	f := w.Create()
	mustBoom(func() { w.a.Set(f, plain{4, 0}) })
	if !w.a.Has(f) {
		t.Error("Set was reverted")
	}
	w.a.Mut(e).X = 5
	tick := w.Tick()
	mustBoom(w.Commit)
	if w.Tick() != tick {
		t.Error("the tick was committed")
	}
	broken = false
	w.Commit()
	w.b.Remove(e)
	w.Destroy(e)
	if w.Tick() != tick+1 || w.Alive(e) || w.b.Len() != 0 {
		t.Error("the world did not continue")
	}
}

func TestOnChange_WritesInHook(t *testing.T) {
	w := newHookWorld(t, Options{History: 2})
	e, f := w.entity(1), w.entity(2)
	w.a.OnChange(func(e Entity, before, now plain) {
		w.logCall("a", e, now)
		w.b.Mut(e).X += now.X - before.X
		w.a.Mut(e).Y++     // A write in an OnChange hook calls no further hook.
		w.a.Mut(f).X += 10 // The call for f gets the value that f had before this write.
	})
	w.b.OnChange(func(e Entity, _, now plain) { w.logCall("b", e, now) })
	w.Commit()
	w.a.Mut(e).X += 4
	w.a.Mut(f).X += 5
	w.Commit()
	w.expect(t, "a 0v1 5", "a 1v1 7", "b 0v1 3", "b 1v1 3")
	if v, _ := w.a.Get(f); v.X != 27 {
		t.Errorf("f has %v", v)
	}
	w.Commit()
	w.expect(t)
	if err := w.History().Rewind(1); err != nil {
		t.Fatal(err)
	}
	if v, _ := w.b.Get(e); v.X != 3 {
		t.Errorf("after the tick b is %v", v)
	}
	w.expect(t)
}

func TestHook_Misuse(t *testing.T) {
	w := NewWorld(Options{})
	x := MustRegister(w, Component[extra]{NoRewind: true})
	a := MustRegister[plain](w)
	mustPanic(t, "NoRewind", func() { x.OnChange(func(_ Entity, _, _ extra) {}) })
	mustPanic(t, "NoRewind", func() { x.Added() })
	cp := w.Checkpoint()
	mustPanic(t, "while a checkpoint is held", func() { a.OnChange(func(_ Entity, _, _ plain) {}) })
	w.Release(cp)
	rec := &markRecorder{}
	if err := w.Raw().Attach(rec, 1); err != nil {
		t.Fatal(err)
	}
	e := w.Create()
	a.Set(e, plain{})
	mustPanic(t, "add it after Commit", func() { a.Changed() })
	w.Commit()
	a.OnChange(func(_ Entity, _, _ plain) { w.Commit() })
	a.Mut(e).X++
	mustPanic(t, "Commit in an OnChange hook", w.Commit)
	if err := w.check(); err != nil {
		t.Error(err)
	}
}

type markRecorder struct{ n uint64 }

func (r *markRecorder) Record(*raw.Change) uint64 { r.n++; return r.n }

// After Attach, Detach and Load, the world still has the values of the last tick, which an OnChange
// hook needs.
func TestOnChange_AfterAttachDetachLoad(t *testing.T) {
	w := newHookWorld(t, Options{})
	w.a.OnChange(func(e Entity, _, now plain) { w.logCall("~", e, now) })
	e := w.entity(0)
	w.Commit()
	first := &markRecorder{}
	for i, change := range []func() error{
		func() error { return w.Raw().Attach(first, 0) },
		func() error { return w.Raw().Detach(first) },
		func() error { return w.Raw().Attach(&markRecorder{}, 0) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		w.a.Mut(e).X = int32(i + 1)
		w.Commit()
	}
	w.expect(t, "~ 0v1 1", "~ 0v1 2", "~ 0v1 3")
	w.a.Mut(e).X = 99
	if err := w.History().Rewind(0); err != nil {
		t.Fatal(err)
	}
	if v, _ := w.a.Get(e); v.X != 3 {
		t.Errorf("the last commit had %v", v)
	}
}

func TestHook_Allocations(t *testing.T) {
	if debug {
		t.Skip("a debug build allocates")
	}
	w, a, b, entities := members(200, Options{History: 1})
	n := 0
	a.OnAdd(func(Entity, plain) { n++ })
	a.OnRemove(func(Entity, plain) { n++ })
	b.OnRemove(func(Entity, padded) { n++ })
	a.OnChange(func(_ Entity, _, _ plain) { n++ })
	tick := func() {
		for _, e := range entities[:50] {
			a.Remove(e)
			a.Set(e, plain{})
			a.Mut(e).X = int32(n)
		}
		e := w.Create()
		a.Set(e, plain{})
		b.Set(e, padded{})
		w.Destroy(e)
		a.Clear()
		for _, e := range entities {
			a.Set(e, plain{})
		}
		w.Commit()
	}
	for range 50 {
		tick()
	}
	if got := testing.AllocsPerRun(20, tick); got > 0 {
		t.Errorf("%v allocations a tick, want none", got)
	}
}

// If an OnRemove hook removes the same component again, the removal is recorded once.
func TestRemove_HookRemovesSameComponent(t *testing.T) {
	w := NewWorld(Options{})
	a := MustRegister[plain](w)
	removed, seq := 0, uint64(0)
	if err := w.Raw().Attach(recorderFunc(func(c *raw.Change) uint64 {
		for _, op := range c.Ops {
			if op.Kind == raw.OpRemove {
				removed++
			}
		}
		seq++
		return seq
	}), 0); err != nil {
		t.Fatal(err)
	}
	e := w.CreateN(nil, 3)
	a.SetAll(e, plain{})
	calls := 0
	a.OnRemove(func(e Entity, _ plain) {
		if calls++; calls == 1 && !a.Remove(e) {
			t.Error("Remove in a hook = false for an existing component")
		}
	})
	w.Commit()
	a.Remove(e[1])
	w.Commit()
	if removed != 1 || a.Has(e[1]) || a.Len() != 2 {
		t.Errorf("%d removals are recorded, %d components are left, want 1 and 2", removed, a.Len())
	}
}
