package ecs

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"unsafe"
)

// A Relation finds the entities whose component refers to a given entity, such as the children of
// a parent or the items in a chest. The entity with the component is the source. The entity that
// the component refers to is the target.
//
//	type ChildOf struct{ Parent ecs.Entity }
//	childOf := ecs.MustRegister[ChildOf](w)
//	parent := func(c ChildOf) ecs.Entity { return c.Parent }
//	children := ecs.NewRelation(childOf, parent, ecs.RelationOptions{Tree: true})
//
//	childOf.Set(wheel, ChildOf{car})
//	for e := range children.Of(car) { … }
//	w.Destroy(car) // And all entities below it.
//
// A relation is an [Index] whose key is the target. Look-ups are always up to date, whether a
// source changes its target by Set, through a pointer or by a restore. The relation is not saved.
// It visits sources in the order of their indices. A source whose target is the zero Entity has no
// target; [Relation.Of] with the zero Entity finds such sources.
//
// [RelationOptions] determine what happens to the sources when their target is destroyed, by
// [World.Destroy] or by a batch. [World.Clear], restores and loads ignore the policy.
//
// Hooks may create new sources of an entity that is being destroyed. The policy also applies to
// these sources, and to new sources of entities that are destroyed together with the target. The
// world looks for new sources after the last hook, until there are none. If hooks keep creating
// sources, Destroy panics after 1,000 rounds. With [Refuse], such late sources are detached.
// World.Clear also looks for new sources.
type Relation[T any] struct {
	sources   *Index[T, Entity]
	options   RelationOptions
	relations *relations
}

// RelationOptions are the options of a [Relation]. With the zero RelationOptions, sources are
// destroyed with their target.
type RelationOptions struct {
	Policy Policy

	// Tree declares that no entity is its own ancestor. [Relation.Set] returns an error if an
	// entity would become its own ancestor. Other ways to write the component do not check this.
	// Loops over ancestors and descendants always end, even in a cycle.
	Tree bool
}

// A Policy determines what happens to the sources of a destroyed target.
type Policy uint8

const (
	// Cascade destroys the sources, and their sources, from the farthest to the nearest. If a loop
	// may visit such sources, call Destroy after the loop, or use [Commands].
	Cascade Policy = iota

	// Detach removes the component from the sources.
	Detach

	// Refuse keeps the target alive as long as it has sources: Destroy does nothing and returns
	// false. Sources that would be destroyed together with the target do not count. If a hook adds
	// a source to an entity that is already being destroyed, that source is detached.
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

// ErrCycle is the error of a change that would make an entity its own ancestor.
var ErrCycle = errors.New("a cycle")

// NewRelation returns the relation of a component. target returns the entity that a component
// refers to. Create a relation once and keep it, like an index; see [NewIndex] for the cost. A
// clone of the world has no relations. Their policies do not apply there until the program calls
// [Relation.In].
//
// If a relation with the same function and options exists, NewRelation returns that relation.
// NewRelation panics if a relation of s with the same targets has another policy.
func NewRelation[T any](s *Storage[T], target func(T) Entity, options RelationOptions) *Relation[T] {
	if target == nil {
		panic("ecs: NewRelation without a target; give it a function from the component to the entity that it refers to")
	}
	mustAgree(mustNonNil(s), target, options.Policy)
	return relationOf(NewIndex(s, target), options)
}

// relationOf returns the relation of x with these options. It creates the relation if necessary.
func relationOf[T any](x *Index[T, Entity], options RelationOptions) *Relation[T] {
	b := relationsOf(x.s.w)
	for _, other := range b.all {
		if other, ok := other.(*Relation[T]); ok && other.sources == x && other.options == options {
			return other
		}
	}
	r := &Relation[T]{x, options, b}
	b.all = append(b.all, r)
	return r
}

// In returns the relation of the same storage in another world, such as a clone. It creates the
// relation if necessary. It returns nil if that world has no such storage.
func (r *Relation[T]) In(w *World) *Relation[T] {
	x := r.sources.In(w)
	if x == nil {
		return nil
	}
	return relationOf(x, r.options)
}

// mustAgree panics if s has a relation with the same targets and another policy.
func mustAgree[T any](s *Storage[T], target func(T) Entity, policy Policy) {
	if s.w.relations == nil {
		return
	}
	for _, other := range relationsOf(s.w).all {
		if other, ok := other.(*Relation[T]); ok && other.sources.s == s && other.options.Policy != policy && sameTarget(s, other.sources.key, target) {
			panic(fmt.Sprintf("ecs: NewRelation of %s with the policy %v: a relation that finds the same targets has the policy %v; give both the same one, or make the relation once and keep it",
				s.name, policy, other.options.Policy))
		}
	}
}

// sameTarget compares the functions a and b. It calls them with a component whose entities are all
// different, and reports whether both return the same entity.
func sameTarget[T any](s *Storage[T], a, b func(T) Entity) (same bool) {
	if closureOf(a) == closureOf(b) {
		return true
	}
	defer func() { _ = recover() }() // A function may panic for this incomplete component.
	var v T
	for i, p := range s.references().places {
		if p.kind == 0 {
			*(*Entity)(unsafe.Add(unsafe.Pointer(&v), p.offset)) = NewEntity(uint32(i), 1)
		}
	}
	target := a(v)
	return target != 0 && target == b(v)
}

// Close removes r, so that its policy no longer applies. Later look-ups panic, unless another
// relation with the same function is open. See [Index.Close].
func (r *Relation[T]) Close() {
	r.relations.all = slices.DeleteFunc(r.relations.all, func(other anyRelation) bool { return other == anyRelation(r) })
	if !r.relations.relates(r.sources) {
		r.sources.Close()
	}
}

// Of iterates over the sources of target, as [Index.Of] does.
func (r *Relation[T]) Of(target Entity) iter.Seq[Entity] { return r.sources.Of(target) }

// Len returns the number of sources of target.
func (r *Relation[T]) Len(target Entity) int { return r.sources.Len(target) }

// First returns the source of target with the lowest index. The second result is false if target
// has no sources.
func (r *Relation[T]) First(target Entity) (Entity, bool) { return r.sources.First(target) }

// Target returns the entity that e refers to. The second result is false if e does not have the
// component, or refers to no entity.
func (r *Relation[T]) Target(e Entity) (Entity, bool) {
	v, ok := r.sources.s.Get(e)
	if !ok {
		return 0, false
	}
	target := r.sources.key(v)
	return target, target != 0
}

// Set is like [Storage.Set], but e must be alive. The target in v must be alive or zero. If the
// relation is a tree, and e is the target or one of its ancestors, the error wraps [ErrCycle]. An
// error leaves the world unchanged.
func (r *Relation[T]) Set(e Entity, v T) error {
	w, target := r.sources.s.w, r.sources.key(v)
	switch {
	case !w.Alive(e):
		return fmt.Errorf("ecs: %s of %v: the entity is not alive", r.sources.s.name, e)
	case target != 0 && !w.Alive(target):
		return fmt.Errorf("ecs: %s of %v: its target %v is not alive", r.sources.s.name, e, target)
	case r.options.Tree && target == e:
		return fmt.Errorf("ecs: %s of %v: %w, as it is its own target", r.sources.s.name, e, ErrCycle)
	case r.options.Tree && r.above(target, e):
		return fmt.Errorf("ecs: %s of %v: %w, as its target %v is below it", r.sources.s.name, e, ErrCycle, target)
	}
	s := r.sources.s
	s.Set(e, v)
	if r.options.Tree && (s.hooks != nil || len(s.onSet) > 0) && r.above(e, e) {
		panic(fmt.Sprintf("ecs: Relation.Set of %s of %v: a hook changed a target, so that the entity is below itself; do not change targets in hooks, or change the component before Set", s.name, e))
	}
	return nil
}

// above reports whether e is an ancestor of below.
func (r *Relation[T]) above(below, e Entity) bool {
	for a := range r.Ancestors(below) {
		if a == e {
			return true
		}
	}
	return false
}

// To returns a filter for queries that keeps the sources of target:
//
//	NewQuery1(Write(positions)).With(children.To(car))
//
// An iteration finds the sources at its start. This costs O(sources) in addition to the cost of
// [Relation.Of]. For other entities, the iteration only reads one bit per 64 rows. If the loop
// changes the target of an entity, it is undefined whether the loop visits the entity.
func (r *Relation[T]) To(target Entity) Filter { return &relationTarget[T]{r: r, target: target} }

// relationTarget is the filter that keeps the sources of a target.
type relationTarget[T any] struct {
	r      *Relation[T]
	target Entity
	found  []Entity
}

func (f *relationTarget[T]) narrow(q narrowed) {
	q.include(&f.r.sources.s.set)
	q.filter(f)
}

func (f *relationTarget[T]) begin() {}

func (f *relationTarget[T]) keeps(e Entity) bool {
	v, _ := f.r.sources.s.Get(e)
	return f.r.sources.key(v) == f.target
}

func (f *relationTarget[T]) kept() []Entity {
	f.found = slices.AppendSeq(f.found[:0], f.r.sources.Of(f.target))
	return f.found
}

// Ancestors iterates over the target of e, the target of that target, and so on, up to an entity
// without a target. In a cycle, it visits each entity once. If e is in the cycle, e comes last.
func (r *Relation[T]) Ancestors(e Entity) iter.Seq[Entity] {
	return func(yield func(Entity) bool) {
		var near [16]Entity // The first ancestors. Most chains are short.
		n := 0
		var far *visited
		for at, ok := r.Target(e); ok && !slices.Contains(near[:n], at); at, ok = r.Target(at) {
			if n < len(near) {
				near[n] = at
				n++
			} else {
				if far == nil {
					far = r.relations.takeVisited()
				}
				if r.relations.w.entities.alive(at) && !far.add(at) {
					break
				}
			}
			if !yield(at) {
				break
			}
		}
		if far != nil {
			r.relations.dropVisited(far)
		}
	}
}

// Root returns the last of the ancestors of e. If e has none, it returns e.
func (r *Relation[T]) Root(e Entity) Entity {
	for a := range r.Ancestors(e) {
		e = a
	}
	return e
}

// Descendants iterates over the sources of e, their sources, and so on. The order is depth first;
// the sources of one target are in the order of their indices. The loop visits the descendants that
// exist at its start. It visits each entity once, and does not visit e. If e is the zero Entity, it
// begins with the sources without a target. If e is dead, it begins with the sources that still
// refer to e.
func (r *Relation[T]) Descendants(e Entity) iter.Seq[Entity] {
	return func(yield func(Entity) bool) {
		for _, e := range r.descendants(e)[1:] {
			if !yield(e) {
				return
			}
		}
	}
}

// Subtree returns e and its descendants, e first. Pass the result to [World.Copy] to copy a whole
// tree, or to [World.DestroyAll] to destroy it under any policy.
func (r *Relation[T]) Subtree(e Entity) []Entity { return r.descendants(e) }

// descendants returns e and its descendants, depth first.
func (r *Relation[T]) descendants(e Entity) (found []Entity) {
	seen := r.relations.takeVisited()
	defer r.relations.dropVisited(seen)
	r.relations.addAlive(seen, e)
	for open := []Entity{e}; len(open) > 0; {
		e, open = open[len(open)-1], open[:len(open)-1]
		found = append(found, e)
		first := len(open)
		open = r.appendNew(open, e, seen)
		slices.Reverse(open[first:])
	}
	return found
}

// Levels iterates over the entities of [Relation.Descendants] with their depth, breadth first. It
// begins with all sources of e, which have depth 1.
func (r *Relation[T]) Levels(e Entity) iter.Seq2[int, Entity] {
	return func(yield func(int, Entity) bool) {
		found, depths := r.levels(e)
		for i := 1; i < len(found); i++ {
			if !yield(depths[i], found[i]) {
				return
			}
		}
	}
}

// levels returns e and its descendants, breadth first.
func (r *Relation[T]) levels(e Entity) (found []Entity, depths []int) {
	seen := r.relations.takeVisited()
	defer r.relations.dropVisited(seen)
	r.relations.addAlive(seen, e)
	found, depths = append(found, e), append(depths, 0)
	for i := 0; i < len(found); i++ {
		found = r.appendNew(found, found[i], seen)
		for len(depths) < len(found) {
			depths = append(depths, depths[i]+1)
		}
	}
	return found, depths
}

// addAlive adds e to m if e is alive. A dead e is left out, because another entity with the same
// index may be one of its sources.
func (b *relations) addAlive(m *visited, e Entity) {
	if b.w.entities.alive(e) {
		m.add(e)
	}
}

// takeVisited returns an empty set. The caller returns the set by dropVisited.
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
func (r *Relation[T]) hasAny() bool   { return r.sources.s.Len() > 0 }

// detach removes the component from source. If a hook of the same removal calls detach, source
// keeps the component for now, and detach returns false.
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

// appendNew appends the sources of target that are not in seen, and adds them to seen.
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

// onDestroy applies the policies to the sources of e before e is destroyed. It returns the entities
// that it destroyed, and whether e may be destroyed.
func (b *relations) onDestroy(e Entity) (destroyed, bool) {
	switch {
	case b.hasSources(e):
		return b.applyPolicies([]Entity{e}, 1)
	case b.w.hooked:
		return destroyed{version: b.version()}, true
	}
	return destroyed{}, true
}

// afterHooks applies the policies to sources that hooks have added: sources of e, or of the
// entities that s lists as destroyed with e. It returns false if hooks have added none.
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

// onClear applies the policies to sources that hooks of World.Clear have added to cleared entities.
func (b *relations) onClear(cleared []Entity) {
	if slices.ContainsFunc(b.all, anyRelation.hasAny) {
		b.reapplyPolicies(slices.Clip(cleared), 0)
	}
}

// destroyTogether destroys distinct entities and the sources that the policies destroy with them.
// If the policy of another source refuses, it destroys nothing and returns false.
func (b *relations) destroyTogether(entities []Entity) bool {
	_, done := b.applyPolicies(slices.Clone(entities), 0)
	return done
}

// mayDestroy reports whether destroyTogether would destroy entities.
func (b *relations) mayDestroy(entities []Entity) bool {
	seen := b.takeVisited()
	defer b.dropVisited(seen)
	_, free := b.gather(slices.Clone(entities), seen)
	return free
}

// gather returns entities and the sources that the policies destroy with them. It adds all of them
// to seen. free is false if the policy of another source refuses.
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

// applyPolicies applies the policies to the sources of doomed. Then it destroys the entities from
// position from on. If the policy of another source refuses, it destroys nothing and returns false.
func (b *relations) applyPolicies(doomed []Entity, from int) (destroyed, bool) {
	seen := b.takeVisited()
	defer b.dropVisited(seen)
	doomed, free := b.gather(doomed, seen)
	if !free {
		return destroyed{}, false
	}
	if !b.w.hooked { // Without hooks, nothing changes during the destruction.
		b.detach(doomed, seen)
		b.w.destroyAll(doomed[from:])
		return destroyed{}, true
	}
	s, _ := b.carryOut(doomed, from, from, seen)
	return s, true
}

// reapplyPolicies applies the policies to new sources of doomed. The first from entities are not
// destroyed yet; the others are.
func (b *relations) reapplyPolicies(doomed []Entity, from int) (destroyed, bool) {
	seen := b.takeVisited()
	defer b.dropVisited(seen)
	doomed = b.withoutRevived(doomed, from, seen)
	n := len(doomed)
	return b.carryOut(b.doomed(doomed, seen), n, from, seen)
}

// maxRounds is the maximum number of rounds in which hooks add sources to entities that are being
// destroyed.
const maxRounds = 1000

// carryOut detaches the sources of doomed, and destroys the entities from position n on. If hooks
// add more sources, carryOut repeats this until there are none. The caller destroys the first from
// entities. did reports whether carryOut detached or destroyed anything.
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

// withoutRevived returns doomed without entities that hooks have revived. Only entities from
// position from on can be revived. It sets seen to the returned entities that are still alive,
// because their destruction has not ended. It leaves dead ones out of seen, because their indices
// may belong to new entities.
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

// doomed returns entities, followed by the entities that Cascade destroys with them. Each entity
// comes after its target. doomed also adds the new entities to seen.
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

// holds reports whether target has a source in r that is not in doomed.
func holds(r anyRelation, target Entity, doomed *visited) (held bool) {
	r.each(target, func(source Entity) { held = held || !doomed.has(source) })
	return held
}

// detach detaches the sources of doomed that are not in seen. It returns false if there are none.
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
