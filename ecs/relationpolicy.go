package ecs

import (
	"fmt"
	"slices"
)

// A Policy determines what happens to the sources of a destroyed target.
type Policy uint8

const (
	// Cascade destroys the sources, the sources of the sources, and so on, from the farthest to the
	// nearest. In a loop that may visit sources, use [Commands], or call Destroy after the loop.
	Cascade Policy = iota

	// Detach removes the component from the sources.
	Detach

	// Refuse keeps the target alive as long as it has sources: Destroy does nothing and returns
	// false. Sources that are destroyed together with the target do not count. A source that a hook
	// adds during the destruction is detached.
	Refuse
)

// String returns the name of p.
func (p Policy) String() string {
	switch p {
	case Cascade:
		return "Cascade"
	case Detach:
		return "Detach"
	case Refuse:
		return "Refuse"
	}
	return fmt.Sprintf("Policy(%d)", uint8(p))
}

// anyRelation is a relation of any component type.
type anyRelation interface {
	Len(target Entity) int
	policy() Policy
	each(target Entity, f func(source Entity))
	appendNew(to []Entity, target Entity, seen *visited) []Entity
	detach(source Entity) bool
	hasAny() bool
	version() uint64
	uses(x follower) bool
}

func (r *Relation[T]) policy() Policy { return r.options.Policy }

func (r *Relation[T]) hasAny() bool { return r.sources.s.Len() > 0 }

// detach removes the component from the given source. It returns false if the source still has the
// component. This happens in a hook that runs because of the same removal.
func (r *Relation[T]) detach(source Entity) bool {
	r.sources.s.Remove(source)
	return !r.sources.s.Has(source)
}

// version increases when a target gains or loses a source.
func (r *Relation[T]) version() uint64 {
	r.sources.refresh()
	return r.sources.version
}

func (r *Relation[T]) each(target Entity, f func(Entity)) {
	for source := range r.Of(target) {
		f(source)
	}
}

// appendNew appends the sources of target that are not in the set seen. It adds these sources to
// seen.
func (r *Relation[T]) appendNew(to []Entity, target Entity, seen *visited) []Entity {
	l := r.sources.find(target)
	if l == nil {
		return to
	}
	to = slices.Grow(to, l.Len())
	for i := range l.Chunks() {
		for _, source := range l.Chunk(i) {
			if seen.add(source) {
				to = append(to, source)
			}
		}
	}
	return to
}

func (r *Relation[T]) uses(x follower) bool { return follower(r.sources) == x }

// relations has all relations of a world.
type relations struct {
	w   *World
	all []anyRelation
}

// relationsOf returns the relations of w, and creates them if w has none.
func relationsOf(w *World) *relations {
	if w.relations == nil {
		w.relations = &relations{w: w}
		w.updateObserved()
	}
	return w.relations.(*relations)
}

// addAlive adds e to m if e is alive. The set m compares only indices, so a dead e would hide an
// alive source with the same index.
func (b *relations) addAlive(m *visited, e Entity) {
	if b.w.entities.alive(e) {
		m.add(e)
	}
}

// takeVisited returns an empty set. The caller returns the set with dropVisited().
func (b *relations) takeVisited() *visited {
	if b.w.parallel { // Each goroutine needs a separate set.
		return new(visited)
	}
	return b.w.spare.take()
}

func (b *relations) dropVisited(m *visited) {
	if !b.w.parallel {
		b.w.spare.drop(m)
	}
}

// onDestroy applies the policies before e is destroyed. It returns the entities that it destroyed,
// and whether e may be destroyed.
func (b *relations) onDestroy(e Entity) (destroyed, bool) {
	switch {
	case b.hasSources(e):
		return b.applyPolicies([]Entity{e}, 1)
	case b.w.hooked:
		return destroyed{version: b.version()}, true
	}
	return destroyed{}, true
}

// afterHooks applies the policies to sources that hooks have added to e or to the destroyed
// entities s. It returns false if hooks have added no sources.
func (b *relations) afterHooks(e Entity, s destroyed) (destroyed, bool) {
	switch v := b.version(); {
	case v == s.version:
		return s, false
	case s.entities != nil:
	case b.hasSources(e):
		s.entities = []Entity{e}
	default:
		s.version = v
		return s, false
	}
	return b.reapplyPolicies(s.entities, 1)
}

// onClear runs at the end of World.Clear, with the entities that Clear destroyed. Hooks may have
// created sources of these entities: onClear applies the policies to the sources.
func (b *relations) onClear(cleared []Entity) {
	if slices.ContainsFunc(b.all, anyRelation.hasAny) {
		b.reapplyPolicies(slices.Clip(cleared), 0)
	}
}

// destroyTogether destroys distinct entities and the sources that the policy Cascade destroys with
// them. Under the policy Refuse, none of them may have a source that stays alive. Otherwise
// destroyTogether destroys nothing and returns false.
func (b *relations) destroyTogether(entities []Entity) bool {
	_, done := b.applyPolicies(slices.Clone(entities), 0)
	return done
}

// mayDestroy reports whether destroyTogether would destroy the entities.
func (b *relations) mayDestroy(entities []Entity) bool {
	seen := b.takeVisited()
	defer b.dropVisited(seen)
	_, free := b.gather(slices.Clone(entities), seen)
	return free
}

// gather returns the given entities and the sources that the policy Cascade destroys with them. It
// adds all of these entities to seen. The result free is false if one of them must not be
// destroyed: it has a source that stays alive, and the policy is Refuse.
func (b *relations) gather(entities []Entity, seen *visited) (doomed []Entity, free bool) {
	for _, e := range entities {
		seen.add(e)
	}
	doomed = b.doomed(entities, seen)
	for _, d := range doomed {
		for _, r := range b.all {
			if r.policy() == Refuse && holds(r, d, seen) {
				return doomed, false
			}
		}
	}
	return doomed, true
}

// applyPolicies applies the policies to the sources of the entities in doomed, and then destroys
// doomed[from:]. The caller destroys doomed[:from]. If gather reports that an entity must not be
// destroyed, applyPolicies changes nothing and returns false.
func (b *relations) applyPolicies(doomed []Entity, from int) (destroyed, bool) {
	seen := b.takeVisited()
	defer b.dropVisited(seen)
	doomed, free := b.gather(doomed, seen)
	if !free {
		return destroyed{}, false
	}
	// A fast path: without hooks, nothing else changes during the destruction.
	if !b.w.hooked {
		b.detach(doomed, seen)
		b.w.destroyAll(doomed[from:])
		return destroyed{}, true
	}
	s, _ := b.carryOut(doomed, from, from, seen)
	return s, true
}

// maxRounds is the maximum number of rounds in which hooks add sources to entities that are being
// destroyed.
const maxRounds = 1000

// reapplyPolicies applies the policies to sources that hooks have added to the entities in doomed.
// The entities doomed[from:] are already destroyed.
func (b *relations) reapplyPolicies(doomed []Entity, from int) (destroyed, bool) {
	seen := b.takeVisited()
	defer b.dropVisited(seen)
	doomed = b.withoutRevived(doomed, from, seen)
	n := len(doomed)
	return b.carryOut(b.doomed(doomed, seen), n, from, seen)
}

// carryOut destroys entities whose hooks may add sources to other entities in doomed:
//
//	doomed[:from]     entities that the caller destroys
//	doomed[from:n]    entities that are already destroyed
//	doomed[n:]        entities that carryOut destroys
//
// It works in rounds. A round detaches sources, and destroys doomed[n:]. Then it appends to doomed
// the sources that hooks have added. The last round finds no such sources. The result did reports
// whether carryOut detached or destroyed anything.
func (b *relations) carryOut(doomed []Entity, n, from int, seen *visited) (s destroyed, did bool) {
	for round := 0; b.detach(doomed, seen) || n < len(doomed); round++ {
		if round == maxRounds {
			panic(fmt.Sprintf("ecs: %v is being destroyed, and after %d rounds hooks still add sources to it or to entities destroyed with it; a hook must not add sources to the sources that it added itself",
				doomed[0], maxRounds))
		}
		did = true
		b.destroy(doomed[n:])
		doomed = b.withoutRevived(doomed, from, seen)
		n = len(doomed)
		doomed = b.doomed(doomed, seen)
	}
	return destroyed{doomed, b.version()}, did
}

// withoutRevived removes from doomed[from:] the entities that hooks have created again by CreateAt.
// It returns the rest of doomed. Afterwards the set seen has those of the returned entities that
// are still alive.
func (b *relations) withoutRevived(doomed []Entity, from int, seen *visited) []Entity {
	seen.clear()
	kept := doomed[:0]
	for i, e := range doomed {
		if b.w.entities.alive(e) {
			if i >= from && !b.w.hooks.isDestroying(e) {
				continue
			}
			seen.add(e)
		}
		kept = append(kept, e)
	}
	return kept
}

// version increases when a target of any relation gains or loses a source.
func (b *relations) version() (sum uint64) {
	for _, r := range b.all {
		sum += r.version()
	}
	return sum
}

// relates reports whether x is the index of a relation.
func (b *relations) relates(x follower) bool {
	return slices.ContainsFunc(b.all, func(r anyRelation) bool { return r.uses(x) })
}

func (b *relations) hasSources(e Entity) bool {
	for _, r := range b.all {
		if r.Len(e) > 0 {
			return true
		}
	}
	return false
}

// doomed returns the given entities and all entities that Cascade destroys with them, targets
// before their sources. It adds the entities that were not given to the parameter seen.
func (b *relations) doomed(entities []Entity, seen *visited) []Entity {
	for i := 0; i < len(entities); i++ {
		for _, r := range b.all {
			if r.policy() == Cascade {
				entities = r.appendNew(entities, entities[i], seen)
			}
		}
	}
	return entities
}

// holds reports whether target has a source in r that is not doomed.
func holds(r anyRelation, target Entity, doomed *visited) (held bool) {
	r.each(target, func(source Entity) { held = held || !doomed.has(source) })
	return held
}

// detach detaches the sources of the entities in doomed, except the sources in the parameter seen.
// It reports whether it detached a source.
func (b *relations) detach(doomed []Entity, seen *visited) (did bool) {
	var free []Entity
	for _, r := range b.all {
		if r.policy() == Cascade {
			continue
		}
		free = free[:0]
		add := func(source Entity) {
			if !seen.has(source) {
				free = append(free, source)
			}
		}
		for _, d := range doomed {
			r.each(d, add)
		}
		for _, e := range free {
			did = r.detach(e) || did
		}
	}
	return did
}

// destroy destroys entities, from the last to the first.
func (b *relations) destroy(entities []Entity) {
	for _, e := range slices.Backward(entities) {
		b.w.destroyReleased(e)
	}
}
