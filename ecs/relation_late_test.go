package ecs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/internal/deep"
)

// link is the component of the sources in these tests. It has two targets, for two relations.
type link struct{ To, Also Entity }

// lateWorld is a world with relations. Its hooks create late sources: sources of an entity while
// that entity is being destroyed.
type lateWorld struct {
	*World
	links     *Storage[link]
	parts     *Storage[plain]
	relations []*Relation[link]
	ended     []Entity // The arguments of the OnDestroy hook.
}

// newLateWorld returns a world with one relation of the given policy, whose target is link.To.
func newLateWorld(t *testing.T, policy Policy, o Options) *lateWorld {
	w := &lateWorld{World: NewWorld(o)}
	checkAtEnd(t, w.World)
	w.links, w.parts = MustRegister[link](w.World), MustRegister[plain](w.World)
	w.relations = append(w.relations, NewRelation(w.links, func(l link) Entity { return l.To }, RelationOptions{Policy: policy}))
	w.OnDestroy(func(e Entity) { w.ended = append(w.ended, e) })
	return w
}

// relateAlso adds a relation of the given policy, whose target is link.Also.
func (w *lateWorld) relateAlso(policy Policy) {
	w.relations = append(w.relations, NewRelation(w.links, func(l link) Entity { return l.Also }, RelationOptions{Policy: policy}))
}

// dangling returns the sources whose target is not alive.
func (w *lateWorld) dangling() (sources []string) {
	for e := range w.links.All() {
		for i, r := range w.relations {
			if target, ok := r.Target(e); ok && !w.Alive(target) {
				sources = append(sources, fmt.Sprintf("%v refers to %v by relation %d", e, target, i))
			}
		}
	}
	return sources
}

// destroyers are the different ways to destroy e.
var destroyers = map[string]func(w *lateWorld, e Entity){
	"Destroy":    func(w *lateWorld, e Entity) { w.Destroy(e) },
	"DestroyAll": func(w *lateWorld, e Entity) { w.DestroyAll([]Entity{w.Create(), e, w.Create()}) },
	"DestroyFound": func(w *lateWorld, e Entity) {
		w.parts.Set(e, plain{1, 1})
		w.DestroyFound(NewQuery1(Read(w.parts)))
	},
	"Clear": func(w *lateWorld, _ Entity) { w.Clear() },
	"Apply": func(w *lateWorld, e Entity) {
		var c Commands
		c.Destroy(e)
		w.Apply(&c)
	},
	"hook": func(w *lateWorld, e Entity) {
		other := w.Create()
		w.OnDestroy(func(dying Entity) {
			if dying == other {
				w.Destroy(e)
			}
		})
		w.Destroy(other)
	},
	"cascade": func(w *lateWorld, e Entity) {
		top := w.Create()
		w.links.Set(e, link{To: top})
		if w.relations[0].policy() != Cascade {
			w.Destroy(e)
		}
		w.Destroy(top)
	},
	"Move": func(w *lateWorld, e Entity) {
		there := NewWorld(Options{})
		MustRegister[link](there)
		MustRegister[plain](there)
		_, _ = there.Move(w.World, []Entity{e}, CopyOptions{})
	},
}

// A hook may create a source of an entity while that entity is being destroyed. The policy of the
// relation applies to this source too.
func TestDestroy_HookCreatesSource(t *testing.T) {
	makers := map[string]func(w *lateWorld, e Entity, attach func(target Entity)){
		"OnDestroy": func(w *lateWorld, e Entity, attach func(Entity)) {
			w.OnDestroy(func(dying Entity) {
				if dying == e {
					attach(e)
				}
			})
		},
		"OnRemove": func(w *lateWorld, e Entity, attach func(Entity)) {
			w.parts.Set(e, plain{})
			w.parts.OnRemove(func(dying Entity, _ plain) {
				if dying == e {
					attach(e)
				}
			})
		},
		"OnRemove of a component that a hook adds": func(w *lateWorld, e Entity, attach func(Entity)) {
			w.OnDestroy(func(dying Entity) {
				if dying == e {
					w.parts.Set(e, plain{})
				}
			})
			w.parts.OnRemove(func(dying Entity, _ plain) {
				if dying == e {
					attach(e)
				}
			})
		},
		"OnDestroy of the late source": func(w *lateWorld, e Entity, attach func(Entity)) {
			levels := 5
			w.OnDestroy(func(dying Entity) {
				if levels > 0 && (dying == e || w.links.Has(dying)) {
					levels--
					attach(dying)
					attach(e)
				}
			})
		},
	}
	for _, policy := range []Policy{Cascade, Detach, Refuse} {
		for how, destroy := range destroyers {
			for when, hook := range makers {
				t.Run(fmt.Sprintf("%v, %s, %s", policy, how, when), func(t *testing.T) {
					w := newLateWorld(t, policy, Options{})
					e := w.Create()
					var late []Entity
					hook(w, e, func(target Entity) {
						if !w.Alive(target) {
							return
						}
						source := w.Create()
						w.links.Set(source, link{To: target})
						late = append(late, source)
					})
					cp, before := w.Checkpoint(), w.Digest()
					destroy(w, e)
					if w.Alive(e) || len(late) == 0 {
						t.Fatalf("alive: %v, %d sources were made", w.Alive(e), len(late))
					}
					if dangling := w.dangling(); len(dangling) > 0 {
						t.Error(dangling)
					}
					for _, source := range late {
						if alive := w.Alive(source); alive != (policy != Cascade) || w.links.Has(source) {
							t.Errorf("source %v: alive %v, attached %v", source, alive, w.links.Has(source))
						}
					}
					w.Restore(cp)
					if w.Digest() != before {
						t.Error("Restore is not exact")
					}
				})
			}
		}
	}
}

// Late sources are handled before the target is destroyed: they first lose their component or are
// destroyed.
func TestDestroy_NewSourcesEndBeforeTarget(t *testing.T) {
	for _, policy := range []Policy{Cascade, Detach, Refuse} {
		w := newLateWorld(t, policy, Options{})
		e := w.Create()
		calls := 0
		w.OnDestroy(func(dying Entity) {
			if dying == e {
				w.links.Set(w.Create(), link{To: e})
			}
		})
		w.links.OnRemove(func(source Entity, l link) {
			if calls++; l.To != e || !w.Alive(e) {
				t.Errorf("%v: %v loses %v, and %v is alive: %v", policy, source, l, e, w.Alive(e))
			}
		})
		if !w.Destroy(e) || calls != 1 {
			t.Errorf("%v: the hook was called %d times", policy, calls)
		}
	}
}

// An OnRemove hook can create a source during Destroy too. The policy applies to this source even
// if there is no OnDestroy hook.
func TestDestroy_OnRemoveHookCreatesSource(t *testing.T) {
	for _, policy := range []Policy{Cascade, Detach, Refuse} {
		w := newLateWorld(t, policy, Options{})
		w.hooks.destroy = nil
		w.updateObserved()
		e := w.Create()
		w.parts.Set(e, plain{})
		w.parts.OnRemove(func(dying Entity, _ plain) { w.links.Set(w.Create(), link{To: dying}) })
		if w.Destroy(e); w.links.Len() != 0 {
			t.Errorf("%v: %v", policy, w.dangling())
		}
	}
}

// If a hook of a late source adds a component to the target, Destroy removes the component again
// and calls its hooks. Destroy also handles sources that these hooks create.
func TestDestroy_HookOfNewSourceAddsComponent(t *testing.T) {
	for _, policy := range []Policy{Cascade, Detach, Refuse} {
		w := newLateWorld(t, policy, Options{})
		e := w.Create()
		var late Entity
		w.OnDestroy(func(dying Entity) {
			if dying == e {
				late = w.Create()
				w.links.Set(late, link{To: e})
			}
		})
		w.links.OnRemove(func(source Entity, _ link) {
			if source == late {
				w.parts.Set(e, plain{})
			}
		})
		calls := 0
		w.parts.OnRemove(func(dying Entity, _ plain) {
			if calls++; w.Alive(e) {
				w.links.Set(w.Create(), link{To: dying})
			}
		})
		if !w.Destroy(e) || calls != 1 || w.links.Len()+w.parts.Len() > 0 {
			t.Errorf("%v: the hook was called %d times; %v", policy, calls, w.dangling())
		}
	}
}

// While an entity is being destroyed, a hook may make it the target of an existing component, by
// any kind of write. The policy applies to this component too.
func TestDestroy_HookRetargetsSource(t *testing.T) {
	for how, turn := range map[string]func(w *lateWorld, source, target Entity){
		"Set":          func(w *lateWorld, source, target Entity) { w.links.Set(source, link{To: target}) },
		"Mut":          func(w *lateWorld, source, target Entity) { w.links.Mut(source).To = target },
		"MutValues":    func(w *lateWorld, _, target Entity) { w.links.MutValues()[0].To = target },
		"Relation.Set": func(w *lateWorld, source, target Entity) { _ = w.relations[0].Set(source, link{To: target}) },
		"Apply": func(w *lateWorld, source, target Entity) {
			var c Commands
			w.links.Later(&c).Set(source, link{To: target})
			w.Apply(&c)
		},
	} {
		for _, policy := range []Policy{Cascade, Detach, Refuse} {
			w := newLateWorld(t, policy, Options{})
			source, e := w.Create(), w.Create()
			w.links.Set(source, link{})
			w.OnDestroy(func(dying Entity) {
				if dying == e {
					turn(w, source, e)
				}
			})
			if !w.Destroy(e) || w.links.Len() != 0 || w.Alive(source) != (policy != Cascade) {
				t.Errorf("%s, %v: %v, source alive: %v", how, policy, w.dangling(), w.Alive(source))
			}
		}
	}
}

// If two relations use one component, a late source is handled by the relation that finds it.
func TestDestroy_NewSourceOfTwoRelations(t *testing.T) {
	for _, also := range []Policy{Detach, Refuse} {
		for i, want := range []bool{false, true} {
			w := newLateWorld(t, Cascade, Options{})
			w.relateAlso(also)
			e := w.Create()
			source := w.Create()
			w.OnDestroy(func(dying Entity) {
				if dying == e && i == 0 {
					w.links.Set(source, link{To: e})
				} else if dying == e {
					w.links.Set(source, link{Also: e})
				}
			})
			w.Destroy(e)
			if w.Alive(source) != want || w.links.Len() != 0 {
				t.Errorf("%v, target %d: alive %v, want %v, %d links", also, i, w.Alive(source), want, w.links.Len())
			}
		}
	}
}

// If hooks in a cascade create sources of every entity in the cascade, Destroy handles all these
// sources.
func TestDestroy_HookInCascadeCreatesSources(t *testing.T) {
	for _, late := range []Policy{Cascade, Detach, Refuse} {
		w := newLateWorld(t, Cascade, Options{})
		w.relateAlso(late)
		all := w.CreateN(nil, 6)
		for i, e := range all[1:] {
			w.links.Set(e, link{To: all[i]})
		}
		made := 0
		w.OnDestroy(func(dying Entity) {
			if !slices.Contains(all, dying) {
				return
			}
			for _, target := range all { // Attach sources to alive and to dead entities.
				made++
				w.links.Set(w.Create(), link{Also: target})
			}
		})
		if !w.Destroy(all[0]) || made != 36 || w.links.Len() != 0 {
			t.Errorf("%v: %d sources were made, left are %v", late, made, w.dangling())
		}
		if want := 36; late == Cascade && w.Len() != 0 || late != Cascade && w.Len() != want {
			t.Errorf("%v: %d entities are left", late, w.Len())
		}
	}
}

// While a source is being detached, its hook creates another source of the same target. Destroy
// handles this source too.
func TestDestroy_DetachHookCreatesSource(t *testing.T) {
	for _, late := range []Policy{Cascade, Detach, Refuse} {
		w := newLateWorld(t, Detach, Options{})
		w.relateAlso(late)
		e, source := w.Create(), w.Create()
		w.links.Set(source, link{To: e})
		w.links.OnRemove(func(dying Entity, _ link) {
			if dying == source {
				w.links.Set(w.Create(), link{Also: e})
			}
		})
		if w.Destroy(e); w.links.Len() != 0 || !w.Alive(source) {
			t.Errorf("%v: %v", late, w.dangling())
		}
	}
}

// While a source is being removed, its hook destroys the target. Destroy must destroy the target,
// although the removal of its source has not ended.
func TestDestroy_CalledByHookOfSource(t *testing.T) {
	for _, policy := range []Policy{Cascade, Detach} {
		for how, end := range map[string]func(w *lateWorld, source Entity){
			"Destroy": func(w *lateWorld, source Entity) { w.Destroy(source) },
			"Remove":  func(w *lateWorld, source Entity) { w.links.Remove(source) },
			"Clear":   func(w *lateWorld, _ Entity) { w.links.Clear() },
		} {
			w := newLateWorld(t, policy, Options{})
			e, source := w.Create(), w.Create()
			w.links.Set(source, link{To: e})
			w.links.OnRemove(func(dying Entity, _ link) {
				if dying == source && !w.Destroy(e) {
					t.Errorf("%v, %s: Destroy of the target = false", policy, how)
				}
			})
			end(w, source)
			if w.Alive(e) || w.links.Len() > 0 || len(w.hooks.destroying)+len(w.links.hooks.removing) > 0 {
				t.Errorf("%v, %s: target alive %v, %d links", policy, how, w.Alive(e), w.links.Len())
			}
		}
	}
}

// Destroy removes sources in rounds. Hooks may create new sources, which the next round removes. If
// hooks create a new source for every removed one, Destroy would never end. So it panics after 1000
// rounds.
func TestDestroy_EndlessHooksPanic(t *testing.T) {
	const text = "1v1 is being destroyed, and after 1000 rounds hooks still add sources"
	for _, policy := range []Policy{Cascade, Detach, Refuse} {
		w := newLateWorld(t, policy, Options{})
		e := w.CreateN(nil, 2)[1]
		w.OnDestroy(func(dying Entity) { w.links.Set(w.Create(), link{To: dying}) })
		w.links.OnRemove(func(_ Entity, l link) {
			if policy != Cascade {
				w.links.Set(w.Create(), link{To: l.To})
			}
		})
		cp, before := w.Checkpoint(), w.Digest()
		mustPanic(t, text, func() { w.Destroy(e) })
		if len(w.hooks.destroying)+len(w.hooks.notifiedSets)+len(w.links.hooks.removing) > 0 || w.released || len(w.spare) == 0 {
			t.Error("a removal is still registered")
		}
		w.Restore(cp)
		if w.Digest() != before {
			t.Error("Restore is not exact")
		}
		mustPanic(t, " is being destroyed, and after 1000 rounds", w.Clear)
	}
}

// Hooks may create thousands of sources of one entity. They may also create a long chain, in which
// each new source refers to the entity that is being destroyed.
func TestDestroy_HooksCreateManySources(t *testing.T) {
	w := newLateWorld(t, Cascade, Options{})
	e := w.Create()
	w.OnDestroy(func(dying Entity) {
		if n := len(w.ended); dying == e {
			for range 3000 {
				w.links.Set(w.Create(), link{To: e})
			}
		} else if n < 3900 && n > 3000 {
			w.links.Set(w.Create(), link{To: dying})
		}
	})
	if !w.Destroy(e) || w.Len() != 0 || len(w.ended) != 3900 {
		t.Errorf("%d entities are left, %d were destroyed", w.Len(), len(w.ended))
	}
}

// If a hook in a cascade restores the world, the destroyed entity may have sources again. Destroy
// handles them too.
func TestDestroy_HookRestoresSources(t *testing.T) {
	for _, policy := range []Policy{Cascade, Detach} {
		w := newLateWorld(t, policy, Options{})
		all := w.CreateN(nil, 4)
		for _, e := range all[1:] {
			w.links.Set(e, link{To: all[0]})
		}
		cp := w.Checkpoint()
		back := 2
		w.OnDestroy(func(dying Entity) {
			if back > 0 && dying == all[0] {
				back--
				w.Restore(cp)
			}
		})
		w.links.OnRemove(func(dying Entity, _ link) {
			if back > 0 && dying == all[2] {
				back--
				w.Restore(cp)
			}
		})
		if !w.Destroy(all[0]) || w.Alive(all[0]) || len(w.dangling()) > 0 {
			t.Errorf("%v: alive %v, %v", policy, w.Alive(all[0]), w.dangling())
		}
	}
}

// Entities that a hook creates during Clear remain, unless they are sources of a cleared entity.
func TestClear_HookCreatesSources(t *testing.T) {
	for _, policy := range []Policy{Cascade, Detach, Refuse} {
		w := newLateWorld(t, policy, Options{})
		entities := w.CreateN(nil, 3)
		for _, e := range entities[1:] {
			w.links.Set(e, link{To: entities[0]})
		}
		var alone, late []Entity
		w.OnDestroy(func(dying Entity) {
			if !slices.Contains(entities, dying) {
				return
			}
			source, other := w.Create(), w.Create()
			w.links.Set(source, link{To: dying})
			w.links.Set(other, link{To: other})
			alone, late = append(alone, other), append(late, source)
		})
		w.Clear()
		if len(alone) != 3 || w.links.Len() != 3 || len(w.dangling()) > 0 {
			t.Errorf("%v: %d were made, %d links are left: %v", policy, len(alone), w.links.Len(), w.dangling())
		}
		for i, source := range late {
			if w.Alive(source) != (policy != Cascade) || !w.Alive(alone[i]) {
				t.Errorf("%v: source alive %v, other alive %v", policy, w.Alive(source), w.Alive(alone[i]))
			}
		}
	}
}

// If a hook restores the world during Clear, the restored entities remain.
func TestClear_HookRestoresWorld(t *testing.T) {
	w := newLateWorld(t, Cascade, Options{})
	all := w.CreateN(nil, 3)
	w.links.Set(all[2], link{To: all[1]})
	cp := w.Checkpoint()
	w.OnDestroy(func(dying Entity) {
		if dying == all[0] {
			w.Restore(cp)
		}
	})
	w.Clear()
	if !slices.Equal(w.Entities(), all[1:]) && w.Len() != 2 || w.links.Len() != 1 {
		t.Errorf("%v are left, with %d links", w.Entities(), w.links.Len())
	}
}

// A randomHookWorld is a world whose hooks create sources, destroy entities and restore the world
// at random.
type randomHookWorld struct {
	*lateWorld
	rng    *rand.Rand
	cp     Checkpoint
	budget int      // Number of further actions that the hooks may take in this step.
	faults []string // The checks that failed in this step.
}

func newRandomHookWorld(t *testing.T, seed uint64) *randomHookWorld {
	rng := rand.New(rand.NewPCG(seed, 11))
	w := &randomHookWorld{lateWorld: &lateWorld{World: NewWorld(Options{History: rng.IntN(3)})}, rng: rng}
	checkAtEnd(t, w.World)
	kinds := []Kind{Sparse, Indexed, Hashed, Ordered}
	w.parts = MustRegister[plain](w.World)
	w.links = MustRegister(w.World, Component[link]{Kind: kinds[rng.IntN(len(kinds))]})
	policies := []Policy{Cascade, Detach, Refuse}
	w.relations = append(w.relations, NewRelation(w.links, func(l link) Entity { return l.To }, RelationOptions{Policy: policies[rng.IntN(3)]}))
	if rng.IntN(3) > 0 {
		w.relateAlso(policies[rng.IntN(3)])
	}
	if rng.IntN(3) == 0 && w.links.Kind() != Indexed {
		Must(w.NewGroup(w.links, w.parts))
	}
	if rng.IntN(4) > 0 {
		w.OnDestroy(func(e Entity) { w.act(e) })
	}
	w.links.OnRemove(func(e Entity, l link) { w.act(e); w.act(l.To) })
	if rng.IntN(2) == 0 {
		w.parts.OnRemove(func(e Entity, _ plain) { w.act(e) })
	}
	if rng.IntN(3) == 0 {
		w.links.OnAdd(func(e Entity, _ link) {
			if w.rng.IntN(4) == 0 {
				w.act(e)
			}
		})
	}
	return w
}

// some returns a random alive entity, or 0 if none is alive.
func (w *randomHookWorld) some() Entity {
	if w.Len() == 0 {
		return 0
	}
	return w.Entities()[w.rng.IntN(w.Len())]
}

// attach makes the source refer to the target, if both are alive.
func (w *randomHookWorld) attach(source, target Entity) {
	if !w.Alive(source) || !w.Alive(target) {
		return
	}
	if len(w.relations) > 1 && w.rng.IntN(2) == 0 {
		l, _ := w.links.Get(source)
		l.Also = target
		w.links.Set(source, l)
	} else if p := w.links.Mut(source); p != nil && w.rng.IntN(2) == 0 {
		p.To = target
	} else {
		w.links.Set(source, link{To: target})
	}
}

// destroyAll calls DestroyAll for entities and checks the result.
func (w *randomHookWorld) destroyAll(entities []Entity) {
	w.counting("DestroyAll", entities, w.DestroyAll)
}

// counting calls destroy for entities, and checks the count that destroy returns.
func (w *randomHookWorld) counting(how string, entities []Entity, destroy func([]Entity) int) {
	before := slices.Clone(entities)
	slices.Sort(before)
	before = slices.DeleteFunc(slices.Compact(before), func(e Entity) bool { return !w.Alive(e) })
	n := destroy(entities)
	if want := len(slices.DeleteFunc(before, w.Alive)); n != want {
		w.faults = append(w.faults, fmt.Sprintf("%s = %d, want %d", how, n, want))
	}
}

// act makes a random action in a hook that was called for e.
func (w *randomHookWorld) act(e Entity) {
	if w.budget <= 0 {
		return
	}
	w.budget--
	switch w.rng.IntN(12) {
	case 0, 1, 2:
		w.attach(w.Create(), e)
	case 3:
		w.attach(w.some(), e)
	case 4:
		w.attach(w.some(), w.some())
	case 5:
		w.Destroy(w.some())
	case 6:
		w.parts.Set(w.some(), plain{})
	case 7:
		w.parts.Set(e, plain{})
	case 8:
		w.links.Remove(w.some())
	case 9:
		if w.cp.Valid() && w.rng.IntN(2) == 0 {
			w.Restore(w.cp)
		} else {
			_ = w.Try(func() error {
				w.Destroy(w.some())
				w.attach(w.Create(), e)
				return errTried
			})
		}
	case 10:
		if w.rng.IntN(6) == 0 {
			w.Clear()
		} else {
			w.destroyAll([]Entity{w.some(), e, w.some()})
		}
	}
}

// step makes one random change, outside of hooks.
func (w *randomHookWorld) step() {
	w.budget = w.rng.IntN(30)
	a, b := w.some(), w.some()
	switch w.rng.IntN(14) {
	case 0, 1, 2, 3:
		w.attach(w.Create(), a)
	case 4, 5:
		w.attach(a, b)
	case 6:
		w.parts.Set(a, plain{})
	case 7, 8:
		w.Destroy(a)
	case 9:
		w.destroyAll([]Entity{a, b, w.some(), a})
	case 10:
		w.counting("DestroyFound", slices.Clone(w.parts.Entities()), func([]Entity) int { return w.DestroyFound(NewQuery1(Read(w.parts))) })
	case 11:
		if w.rng.IntN(4) == 0 {
			w.Clear()
		} else {
			w.links.Clear()
		}
	case 12:
		var c Commands
		c.Destroy(a)
		source := c.Create()
		w.links.Later(&c).Set(source, link{To: source})
		c.Destroy(b)
		w.Apply(&c)
	case 13:
		w.links.RemoveAll([]Entity{a, b})
	}
}

// After any actions of hooks, no source has a dead target, and a restore is exact.
func TestDestroy_RandomHooks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(deep.Or(1000, 20_000)) {
		w := newRandomHookWorld(t, seed)
		for range w.rng.IntN(40) {
			w.attach(w.Create(), w.some())
		}
		for i := range 60 {
			w.cp = w.Checkpoint()
			before := w.Digest()
			w.step()
			if faults := append(w.faults, w.dangling()...); len(faults) > 0 {
				t.Fatalf("seed %d, step %d: %s", seed, i, strings.Join(faults, ", "))
			}
			h := &w.hooks
			if len(h.destroying)+len(h.notifiedSets)+len(h.members)+len(w.links.hooks.removing) > 0 || w.released {
				t.Fatalf("seed %d, step %d: a removal is still registered", seed, i)
			}
			if err := w.check(); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, i, err)
			}
			if w.rng.IntN(3) == 0 {
				w.Restore(w.cp)
				if w.Digest() != before {
					t.Fatalf("seed %d, step %d: Restore is not exact", seed, i)
				}
			}
			w.Release(w.cp)
			if w.rng.IntN(8) == 0 {
				w.Commit()
			}
		}
	}
}
