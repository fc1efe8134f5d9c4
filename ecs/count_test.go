package ecs

import (
	"slices"
	"testing"
)

// permutations calls f for each order of entities[k:].
func permutations(entities []Entity, k int, f func()) {
	if k == len(entities) {
		f()
		return
	}
	for i := k; i < len(entities); i++ {
		entities[k], entities[i] = entities[i], entities[k]
		permutations(entities, k+1, f)
		entities[k], entities[i] = entities[i], entities[k]
	}
}

// DestroyAll and DestroyFound return the number of destroyed entities, whatever the order of their
// argument.
func TestDestroyAll_CountsInAnyOrder(t *testing.T) {
	for _, policy := range []Policy{Cascade, Detach} {
		w := newLateWorld(t, policy, Options{})
		all := w.CreateN(nil, 6)
		w.links.Set(all[0], link{})
		for i, e := range all[1:5] {
			w.links.Set(e, link{To: all[i/2]})
		}
		cp := w.Checkpoint()
		some := slices.Clone(all[:5])
		permutations(some, 0, func() {
			if n := w.DestroyAll(append(some, some[2], some[0], 0)); n != 5 || w.Len() != 1 {
				t.Errorf("%v: DestroyAll(%v) = %d, %d are left", policy, some, n, w.Len())
			}
			w.Restore(cp)
			w.links.SortEntities(func(a, b Entity) int { return slices.Index(some, a) - slices.Index(some, b) })
			if n := w.DestroyFound(NewQuery1(Read(w.links))); n != 5 || w.Len() != 1 {
				t.Errorf("%v: DestroyFound(%v) = %d, %d are left", policy, some, n, w.Len())
			}
			w.Restore(cp)
		})
		w.Destroy(all[3])
		if n := w.DestroyAll(all[3:]); n != 2 {
			t.Errorf("%v: DestroyAll of a dead entity and two others = %d", policy, n)
		}
	}
}

// DestroyAll does not count entities that a relation keeps alive. It does not count entities that
// are destroyed only because of a relation.
func TestDestroyAll_CountExcludesRefused(t *testing.T) {
	w := newLateWorld(t, Refuse, Options{})
	all := w.CreateN(nil, 4)
	w.links.Set(all[1], link{To: all[0]})
	cp := w.Checkpoint()
	for i, want := range []int{1, 2} {
		some := []Entity{all[0], all[1]}
		if i == 0 { // The target of the relation comes first.
			slices.Reverse(some)
		}
		if n := w.DestroyAll(some); n != want || w.Len() != 4-want {
			t.Errorf("DestroyAll(%v) = %d, want %d, %d are left", some, n, want, w.Len())
		}
		w.Restore(cp)
	}
	w = newLateWorld(t, Cascade, Options{})
	all = w.CreateN(nil, 4)
	w.links.Set(all[1], link{To: all[0]})
	if n := w.DestroyAll(all[:1]); n != 1 || w.Len() != 2 {
		t.Errorf("DestroyAll of a target = %d, %d are left", n, w.Len())
	}
}

// Hooks may destroy entities or remove components before the batch reaches them. The batch returns
// the same counts as without hooks.
func TestBatch_SameCountsWithHooks(t *testing.T) {
	w := newHookWorld(t, Options{})
	var all []Entity
	for i := range int32(5) {
		all = append(all, w.entity(i))
	}
	var ahead func(e Entity)
	w.OnDestroy(func(e Entity) { ahead(e) })
	w.a.OnRemove(func(e Entity, _ plain) { ahead(e) })
	cp := w.Checkpoint()
	for how, count := range map[string]func() int{
		"DestroyAll":   func() int { return w.DestroyAll(append(all, all...)) },
		"DestroyFound": func() int { return w.DestroyFound(NewQuery1(Read(w.a))) },
		"RemoveAll":    func() int { return w.a.RemoveAll(append(all, all...)) },
	} {
		for hook, f := range map[string]func(e Entity){
			"Destroy": func(Entity) { w.Destroy(all[1]) },
			"Remove":  func(Entity) { w.a.Remove(all[2]) },
			"all": func(e Entity) {
				if e != all[0] {
					w.DestroyAll(all[:4])
				} else {
					w.a.RemoveAll(all)
				}
			},
		} {
			ahead = f
			if n := count(); n != 5 {
				t.Errorf("%s with a hook that calls %s = %d", how, hook, n)
			}
			w.Restore(cp)
		}
	}
	ahead = func(Entity) { w.b.Remove(all[3]) }
	if n := w.KeepOnly(all[3]); n != 2 || w.a.Has(all[3]) || w.b.Has(all[3]) {
		t.Errorf("KeepOnly = %d", n)
	}
}

// A hook of an entity may destroy that entity during Destroy. Destroy still returns true, and Apply
// counts no skipped command.
func TestDestroy_HookDestroysSameEntity(t *testing.T) {
	for how, destroy := range map[string]func(w *lateWorld, e Entity) bool{
		"Destroy": func(w *lateWorld, e Entity) bool { return w.Destroy(e) },
		"Apply": func(w *lateWorld, e Entity) bool {
			var c Commands
			c.Destroy(e)
			return w.Apply(&c) == 0
		},
		"DestroyAll": func(w *lateWorld, e Entity) bool { return w.DestroyAll([]Entity{e}) == 1 },
	} {
		w := newLateWorld(t, Cascade, Options{})
		e, source := w.Create(), w.Create()
		w.links.Set(source, link{To: e})
		w.OnDestroy(func(dying Entity) {
			if dying == source {
				w.Destroy(e)
			}
		})
		if !destroy(w, e) || w.Len() != 0 {
			t.Errorf("%s finds the entity dead; %d are left", how, w.Len())
		}
		if destroy(w, e) {
			t.Errorf("%s finds the entity alive", how)
		}
	}
}

// Destroy returns false for a dead entity, with and without hooks.
func TestDestroy_DeadEntity(t *testing.T) {
	for _, hooked := range []bool{false, true} {
		w := NewWorld(Options{})
		if hooked {
			w.OnDestroy(func(Entity) {})
		}
		e := w.Create()
		if first, again := w.Destroy(e), w.Destroy(e); !first || again {
			t.Errorf("hooks: %v: Destroy returned %v, then %v", hooked, first, again)
		}
	}
}
