package ecs

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"unsafe"
)

// A Relation finds the entities whose component refers to an entity: the children of a
// parent, what lies in a chest, who is aimed at. The one that holds the component is the
// source, the one referred to the target.
//
//	type ChildOf struct{ Parent ecs.Entity }
//	childOf := ecs.MustRegister[ChildOf](w)
//	children := ecs.NewRelation(childOf, func(c ChildOf) ecs.Entity { return c.Parent }, ecs.RelationOptions{Tree: true})
//
//	childOf.Set(wheel, ChildOf{car})
//	for e := range children.Of(car) { … }
//	w.Destroy(car) // And all below it.
//
// It is an [Index] whose key is the target: right whatever wrote the components, whether
// the source changes its target by Set, by a pointer or by a restore, and nothing of it
// saved. Sources are visited in the order of their indices. Its zero target is nobody: who
// has it is in no relation to anyone, and [Relation.Of] finds it by the zero Entity.
//
// What becomes of the sources when their target is destroyed, [RelationOptions] say. That
// holds for [World.Destroy] and all batches. [World.Clear] asks nobody, as it ends all, and
// neither does what puts a world back.
//
// Sources that hooks make of a dying entity, or of one that is destroyed with it, are treated
// like the others: the world looks again after the last hook, until there are none. So does
// World.Clear. Hooks that make further sources for those that they made run in rounds; after
// 1,000 of them Destroy panics. Under [Refuse] such late sources are detached.
type Relation[T any] struct {
	sources *Index[T, Entity]
	options RelationOptions
	bonds   *bonds
}

// RelationOptions say how a [Relation] behaves. The zero RelationOptions destroy sources
// with their target.
type RelationOptions struct {
	Policy Policy

	// Tree says that no entity may be below itself: [Relation.Set] refuses that. Other ways
	// to write the component do not ask; what walks up and down ends in any case.
	Tree bool
}

// A Policy says what becomes of sources whose target is destroyed.
type Policy uint8

const (
	// Cascade destroys them too, and theirs, from the farthest to the nearest. Call Destroy
	// behind a loop, or of [Commands], if they may be among those that the loop visits.
	Cascade Policy = iota

	// Detach takes the component away from them.
	Detach

	// Refuse keeps the target alive as long as it has any: Destroy does nothing and
	// returns false. Sources that would be destroyed with it do not count. A source that a
	// hook makes of an entity that is already being destroyed is detached.
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

// ErrCycle says that an entity would be below itself.
var ErrCycle = errors.New("a cycle")

// NewRelation returns the relation that a component of s stands for: target returns whom a
// component refers to. A program makes it once, as it does indexes; see [NewIndex] for cost.
// A clone has none, so nothing there goes with its target, until [Relation.In] makes one.
//
// The same function with the same options finds the relation that it made before. NewRelation
// panics if a relation of s finds the same targets and has another policy: only one of the two
// could hold.
func NewRelation[T any](s *Storage[T], target func(T) Entity, options RelationOptions) *Relation[T] {
	if target == nil {
		panic("ecs: NewRelation without a target; give it a function from the component to the entity that it refers to")
	}
	mustAgree(there(s), target, options.Policy)
	return relationOf(NewIndex(s, target), options)
}

// relationOf returns the relation of x with these options, which it makes if there is none.
func relationOf[T any](x *Index[T, Entity], options RelationOptions) *Relation[T] {
	b := bondsOf(x.s.w)
	for _, other := range b.all {
		if other, ok := other.(*Relation[T]); ok && other.sources == x && other.options == options {
			return other
		}
	}
	r := &Relation[T]{x, options, b}
	b.all = append(b.all, r)
	return r
}

// In returns the relation of the same storage in another world, such as a clone, which is
// made if there is none yet. It returns nil if that world has no such storage.
func (r *Relation[T]) In(w *World) *Relation[T] {
	x := r.sources.In(w)
	if x == nil {
		return nil
	}
	return relationOf(x, r.options)
}

// mustAgree panics if a relation of s with another policy finds the same target as target.
func mustAgree[T any](s *Storage[T], target func(T) Entity, policy Policy) {
	if s.w.bonds == nil {
		return
	}
	for _, other := range bondsOf(s.w).all {
		if other, ok := other.(*Relation[T]); ok && other.sources.s == s && other.options.Policy != policy && sameTarget(s, other.sources.key, target) {
			panic(fmt.Sprintf("ecs: NewRelation of %s with the policy %v: a relation that finds the same targets has the policy %v; give both the same one, or make the relation once and keep it",
				s.name, policy, other.options.Policy))
		}
	}
}

// sameTarget reports whether a and b find the same target in a component whose entities all
// differ.
func sameTarget[T any](s *Storage[T], a, b func(T) Entity) (same bool) {
	if closureOf(a) == closureOf(b) {
		return true
	}
	defer func() { _ = recover() }() // What a function needs to find a target may be missing here.
	var v T
	for i, p := range s.references().places {
		if p.kind == 0 {
			*(*Entity)(unsafe.Add(unsafe.Pointer(&v), p.offset)) = NewEntity(uint32(i), 1)
		}
	}
	target := a(v)
	return target != 0 && target == b(v)
}

// Close gives r up: its policy no longer holds, and a look-up panics unless another relation
// of the same function is open. See [Index.Close].
func (r *Relation[T]) Close() {
	r.bonds.all = slices.DeleteFunc(r.bonds.all, func(other relative) bool { return other == relative(r) })
	if !r.bonds.relates(r.sources) {
		r.sources.Close()
	}
}

// Of iterates over the sources of target, as [Index.Of] does.
func (r *Relation[T]) Of(target Entity) iter.Seq[Entity] { return r.sources.Of(target) }

// Len returns how many sources target has.
func (r *Relation[T]) Len(target Entity) int { return r.sources.Len(target) }

// First returns the source of target with the lowest index, and whether there is one.
func (r *Relation[T]) First(target Entity) (Entity, bool) { return r.sources.First(target) }

// Target returns whom e refers to, and whether it has the component and refers to somebody.
func (r *Relation[T]) Target(e Entity) (Entity, bool) {
	v, ok := r.sources.s.Get(e)
	if !ok {
		return 0, false
	}
	target := r.sources.key(v)
	return target, target != 0
}

// Set is [Storage.Set] for e, which must be alive, with a component whose target must be
// alive or nobody. Where there is to be a tree, an error that wraps [ErrCycle] says that e
// is the target or above it. After an error nothing has changed.
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
		panic(fmt.Sprintf("ecs: Relation.Set of %s of %v: a hook changed a target, so that the entity is below itself; let hooks leave targets alone, or change the component before Set", s.name, e))
	}
	return nil
}

// above reports whether e is above below.
func (r *Relation[T]) above(below, e Entity) bool {
	for a := range r.Ancestors(below) {
		if a == e {
			return true
		}
	}
	return false
}

// To returns a filter of queries that keeps the sources of target:
//
//	NewQuery1(Write(positions)).With(children.To(car))
//
// The sources are found when an iteration begins, in O(sources) besides what [Relation.Of]
// costs; of others the iteration sees no more than a bit for 64 rows. Targets that the loop
// changes may count or not.
func (r *Relation[T]) To(target Entity) Filter { return &towards[T]{r: r, target: target} }

// towards keeps the sources of a target.
type towards[T any] struct {
	r      *Relation[T]
	target Entity
	found  []Entity
}

func (f *towards[T]) narrow(q narrowed) {
	q.include(&f.r.sources.s.set)
	q.filter(f)
}

func (f *towards[T]) begin() {}

func (f *towards[T]) keeps(e Entity) bool {
	v, _ := f.r.sources.s.Get(e)
	return f.r.sources.key(v) == f.target
}

func (f *towards[T]) kept() []Entity {
	f.found = slices.AppendSeq(f.found[:0], f.r.sources.Of(f.target))
	return f.found
}

// Ancestors iterates over the target of e, the target's target and so on, up to one
// without a target. In a cycle it visits each entity once; e is the last one if it is in the
// cycle.
func (r *Relation[T]) Ancestors(e Entity) iter.Seq[Entity] {
	return func(yield func(Entity) bool) {
		var near [16]Entity // The first ones: most chains are short.
		n := 0
		var far *visited
		for at, ok := r.Target(e); ok && !slices.Contains(near[:n], at); at, ok = r.Target(at) {
			if n < len(near) {
				near[n] = at
				n++
			} else {
				if far == nil {
					far = r.bonds.takeVisited()
				}
				if r.bonds.w.entities.alive(at) && !far.add(at) {
					break
				}
			}
			if !yield(at) {
				break
			}
		}
		if far != nil {
			r.bonds.dropVisited(far)
		}
	}
}

// Root returns the last of the ancestors of e: e itself, if it has none.
func (r *Relation[T]) Root(e Entity) Entity {
	for a := range r.Ancestors(e) {
		e = a
	}
	return e
}

// Descendants iterates over the sources of e and theirs, each before its own, as they are
// when the loop begins: depth first, sources of one target in the order of their indices.
// Each is visited once, and e is not. The zero Entity has the sources without a
// target, and a dead entity those that still refer to it.
func (r *Relation[T]) Descendants(e Entity) iter.Seq[Entity] {
	return func(yield func(Entity) bool) {
		for _, e := range r.descendants(e)[1:] {
			if !yield(e) {
				return
			}
		}
	}
}

// Subtree returns e and its descendants, e first: what [World.Copy] is given to copy all of
// it, or [World.DestroyAll] to destroy it whatever the policy.
func (r *Relation[T]) Subtree(e Entity) []Entity { return r.descendants(e) }

// descendants returns e and those below it, depth first.
func (r *Relation[T]) descendants(e Entity) (found []Entity) {
	seen := r.bonds.takeVisited()
	defer r.bonds.dropVisited(seen)
	r.bonds.addAlive(seen, e)
	for open := []Entity{e}; len(open) > 0; {
		e, open = open[len(open)-1], open[:len(open)-1]
		found = append(found, e)
		first := len(open)
		open = r.appendNew(open, e, seen)
		slices.Reverse(open[first:])
	}
	return found
}

// Levels iterates over what [Relation.Descendants] does, breadth first: all sources of e,
// which are at depth 1, then theirs.
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

// levels returns e and those below it, breadth first.
func (r *Relation[T]) levels(e Entity) (found []Entity, depths []int) {
	seen := r.bonds.takeVisited()
	defer r.bonds.dropVisited(seen)
	r.bonds.addAlive(seen, e)
	found, depths = append(found, e), append(depths, 0)
	for i := 0; i < len(found); i++ {
		found = r.appendNew(found, found[i], seen)
		for len(depths) < len(found) {
			depths = append(depths, depths[i]+1)
		}
	}
	return found, depths
}

// addAlive adds e to m if it is alive. Another entity may have its index if it is not, and be
// one of its sources.
func (b *bonds) addAlive(m *visited, e Entity) {
	if b.w.entities.alive(e) {
		m.add(e)
	}
}

// takeVisited returns an empty set, which dropVisited must get back.
func (b *bonds) takeVisited() *visited {
	if b.w.parallel { // In goroutines each has its own.
		return new(visited)
	}
	return b.w.spare.take()
}

func (b *bonds) dropVisited(m *visited) {
	if !b.w.parallel {
		b.w.spare.drop(m)
	}
}

// A relative is a relation of any type.
type relative interface {
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

// detach takes the component away from source. It reports whether source is without it now:
// not if its removal is under way already, in a hook of which this is called.
func (r *Relation[T]) detach(source Entity) bool {
	r.sources.s.Remove(source)
	return !r.sources.s.Has(source)
}

// version rises when a target gets or loses a source.
func (r *Relation[T]) version() uint64 {
	r.sources.look()
	return r.sources.version
}

func (r *Relation[T]) each(target Entity, f func(Entity)) {
	for source := range r.Of(target) {
		f(source)
	}
}

// appendNew appends those of target's sources that are not in seen, and adds them to it.
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

// Bonds are all relations of a world.
type bonds struct {
	w   *World
	all []relative
}

// bondsOf returns those of w, which has some from now on.
func bondsOf(w *World) *bonds {
	if w.bonds == nil {
		w.bonds = &bonds{w: w}
		w.settleObserved()
	}
	return w.bonds.(*bonds)
}

// sever does with the sources of e, which is about to be destroyed, what their policies
// say, and returns what it destroyed. It reports whether e may be destroyed.
func (b *bonds) sever(e Entity) (severed, bool) {
	switch {
	case b.hasSources(e):
		return b.end([]Entity{e}, 1)
	case b.w.hooked:
		return severed{version: b.version()}, true
	}
	return severed{}, true
}

// severLate does that with the sources that hooks made since, of e or of what s says was
// destroyed with it. It reports whether there were any.
func (b *bonds) severLate(e Entity, s severed) (severed, bool) {
	switch v := b.version(); {
	case v == s.version:
		return s, false
	case s.doomed != nil:
	case b.hasSources(e):
		s.doomed = []Entity{e}
	default:
		s.version = v
		return s, false
	}
	return b.lookAgain(s.doomed, 1)
}

// severAll does that with the sources that hooks of World.Clear made of cleared.
func (b *bonds) severAll(cleared []Entity) {
	if slices.ContainsFunc(b.all, relative.hasAny) {
		b.lookAgain(slices.Clip(cleared), 0)
	}
}

// destroyTogether destroys entities, no two of which are the same, with those who go along. It
// reports whether it did: not if one is held by a source that stays.
func (b *bonds) destroyTogether(entities []Entity) bool {
	_, done := b.end(slices.Clone(entities), 0)
	return done
}

// mayEnd reports whether destroyTogether would destroy entities.
func (b *bonds) mayEnd(entities []Entity) bool {
	seen := b.takeVisited()
	defer b.dropVisited(seen)
	_, free := b.gather(slices.Clone(entities), seen)
	return free
}

// gather returns entities and who is destroyed with them, all of whom it adds to seen, and
// reports whether none of them must stay alive.
func (b *bonds) gather(entities []Entity, seen *visited) (doomed []Entity, free bool) {
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

// end does with the sources of doomed what their policies say, and destroys those of doomed
// from that position on. It reports whether it did: not if one must stay alive.
func (b *bonds) end(doomed []Entity, from int) (severed, bool) {
	seen := b.takeVisited()
	defer b.dropVisited(seen)
	doomed, free := b.gather(doomed, seen)
	if !free {
		return severed{}, false
	}
	if !b.w.hooked { // Nobody is told, so nobody does anything meanwhile.
		b.detach(doomed, seen)
		b.w.destroyAll(doomed[from:])
		return severed{}, true
	}
	s, _ := b.carryOut(doomed, from, from, seen)
	return s, true
}

// lookAgain does what carryOut does with sources of doomed, which are destroyed already but
// for the first from.
func (b *bonds) lookAgain(doomed []Entity, from int) (severed, bool) {
	seen := b.takeVisited()
	defer b.dropVisited(seen)
	doomed = b.withoutRevived(doomed, from, seen)
	n := len(doomed)
	return b.carryOut(b.doomed(doomed, seen), n, from, seen)
}

// maxRounds is how often hooks may make more sources of what is being destroyed.
const maxRounds = 1000

// carryOut detaches sources from doomed, destroys those of doomed from position n on, and
// does the same again with the sources that hooks made meanwhile, until there are none. The
// first from entities are destroyed by the caller. It reports whether there was anything to
// do.
func (b *bonds) carryOut(doomed []Entity, n, from int, seen *visited) (s severed, did bool) {
	for round := 0; b.detach(doomed, seen) || n < len(doomed); round++ {
		if round == maxRounds {
			panic(fmt.Sprintf("ecs: %v is being destroyed, and after %d rounds hooks still make sources of it or of what is destroyed with it; let a hook make none for the sources that it made itself",
				doomed[0], maxRounds))
		}
		did = true
		b.destroy(doomed[n:])
		doomed = b.withoutRevived(doomed, from, seen)
		n = len(doomed)
		doomed = b.doomed(doomed, seen)
	}
	return severed{doomed, b.version()}, did
}

// withoutRevived returns doomed without those from position from on that hooks brought back
// to life, and makes seen those that are alive because they are still being destroyed. Their
// indices are taken. Those of dead ones may be given to others, which are not seen.
func (b *bonds) withoutRevived(doomed []Entity, from int, seen *visited) []Entity {
	seen.clear()
	kept := doomed[:0]
	for i, e := range doomed {
		if b.w.entities.alive(e) {
			if i >= from && !b.w.hooks.isDying(e) {
				continue
			}
			seen.add(e)
		}
		kept = append(kept, e)
	}
	return kept
}

// version rises when the sources of any target change.
func (b *bonds) version() (sum uint64) {
	for _, r := range b.all {
		sum += r.version()
	}
	return sum
}

// relates reports whether x is the index of a relation.
func (b *bonds) relates(x follower) bool {
	return slices.ContainsFunc(b.all, func(r relative) bool { return r.uses(x) })
}

func (b *bonds) hasSources(e Entity) bool {
	for _, r := range b.all {
		if r.Len(e) > 0 {
			return true
		}
	}
	return false
}

// doomed returns entities and, behind them, who is destroyed with them: everybody behind
// the target. Those who are added are added to seen.
func (b *bonds) doomed(entities []Entity, seen *visited) []Entity {
	for i := 0; i < len(entities); i++ {
		for _, r := range b.all {
			if r.policy() == Cascade {
				entities = r.appendNew(entities, entities[i], seen)
			}
		}
	}
	return entities
}

// holds reports whether target has a source by r that is not doomed.
func holds(r relative, target Entity, doomed *visited) (held bool) {
	r.each(target, func(source Entity) { held = held || !doomed.has(source) })
	return held
}

// detach frees those that are not doomed from those that are, and reports whether there were
// any.
func (b *bonds) detach(doomed []Entity, seen *visited) (did bool) {
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
func (b *bonds) destroy(entities []Entity) {
	for _, e := range slices.Backward(entities) {
		b.w.destroyReleased(e)
	}
}
