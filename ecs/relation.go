package ecs

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"unsafe"

	"github.com/stet-ecs/stet/ecs/raw"
)

// A Relation finds the entities whose component refers to a given entity, such as the children of a
// parent or the items in a chest. The entity with the component is the source. The entity that the
// component refers to is the target.
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
// A relation is an [Index] whose key is the target. Look-ups are always up to date, however the
// program changes a target. Sources are visited in the order of their indices. A source whose
// target is [None] has no target; [Relation.Of] with None finds such sources. The relation is not
// saved.
//
// # Policies
//
// [RelationOptions] have the policy for the sources of a target that is destroyed, by
// [World.Destroy] or by a batch. [World.Clear], restores and loads ignore the policy.
//
// A hook may create new sources of an entity that is being destroyed. The policy then applies to
// these sources after the last hook, also in World.Clear. With [Refuse], such sources are detached.
// If hooks keep creating sources, Destroy panics after 1,000 rounds.
type Relation[T any] struct {
	sources   *Index[T, Entity]
	options   RelationOptions
	relations *relations
}

// RelationOptions are the options of a [Relation]. With the zero RelationOptions, sources are
// destroyed with their target.
type RelationOptions struct {
	Policy Policy

	// Tree declares that no entity is its own ancestor. [Relation.Set] returns an error for a
	// change that would break this rule. Other ways to write the component do not check it. Loops
	// over ancestors and descendants always end, even in a cycle.
	Tree bool
}

// ErrCycle is the error of a change that would make an entity its own ancestor.
var ErrCycle = errors.New("a cycle")

// NewRelation returns the relation of a component. The function target returns the entity that a
// component refers to. Create a relation once and keep it, like an index; see [NewIndex] for the
// cost. A clone of the world has no relations until the program calls [Relation.In].
//
// If s already has a relation with the same function and options, NewRelation returns that
// relation. It panics if a relation of s with the same targets has another policy.
func NewRelation[T any](s *Storage[T], target func(T) Entity, options RelationOptions) *Relation[T] {
	if target == nil {
		panic("ecs: NewRelation without a target; give it a function from the component to the entity that it refers to")
	}
	mustAgree(mustNonNil(s), target, options.Policy)
	return relationOf(NewIndex(s, target), options)
}

// relationOf returns the relation of x with the given options. It creates the relation if
// necessary.
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

// mustAgree panics if a relation of s with the same targets has another policy.
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

// sameTarget reports whether two target functions are the same function, or return the same entity
// of a sample component. All entities in the sample differ.
func sameTarget[T any](s *Storage[T], a, b func(T) Entity) (same bool) {
	if closureOf(a) == closureOf(b) {
		return true
	}
	defer func() { _ = recover() }() // A target function may panic for the sample.
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
// component, or refers to [None].
func (r *Relation[T]) Target(e Entity) (Entity, bool) {
	v, ok := r.sources.s.Get(e)
	if !ok {
		return 0, false
	}
	target := r.sources.key(v)
	return target, target != 0
}

// Set is like [Storage.Set], but returns an error if e is not alive, or if the target in v is
// neither alive nor zero. In a tree, the error wraps [ErrCycle] if e would become its own ancestor.
// An error leaves the world unchanged.
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

// above reports whether e is an ancestor of another entity. below: the other entity.
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
// An iteration finds the sources when it begins, in O(sources). It skips the other entities 64 rows
// at a time. If the loop changes the target of an entity, it is undefined whether the loop visits
// the entity.
func (r *Relation[T]) To(target Entity) Filter { return &relationTarget[T]{r: r, target: target} }

// relationTarget is the filter that keeps the sources of a target.
type relationTarget[T any] struct {
	r      *Relation[T]
	target Entity
	found  []Entity
}

func (f *relationTarget[T]) uses() []raw.Use { return f.r.Uses() }

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
		var near [16]Entity // The first ancestors. Few entities have more than 16.
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

// Root returns the last ancestor of e. It returns e if e has no ancestors.
func (r *Relation[T]) Root(e Entity) Entity {
	for a := range r.Ancestors(e) {
		e = a
	}
	return e
}

// Descendants iterates over the sources of e, their sources, and so on, depth first. Sources of the
// same target come in the order of their indices. The loop visits the descendants that exist when
// it begins, each one once.
//
// If e is [None], the loop begins with the sources without a target. If e is dead, it begins with
// the sources that still refer to e.
func (r *Relation[T]) Descendants(e Entity) iter.Seq[Entity] {
	return func(yield func(Entity) bool) {
		for _, e := range r.descendants(e)[1:] {
			if !yield(e) {
				return
			}
		}
	}
}

// Subtree returns e and its descendants, e first. [World.Copy] can copy the result, and
// [World.DestroyAll] can destroy it under any policy.
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

// Levels iterates over the entities of [Relation.Descendants] with their depth, breadth first. The
// sources of e have depth 1.
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
