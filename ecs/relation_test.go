package ecs

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/internal/deep"
)

type (
	childOf struct{ Parent Entity }
	aimsAt  struct{ Who Entity }
	guardOf struct{ What Entity }
)

// A relationWorld is a world with a relation of each policy. Maps hold the expected relations.
type relationWorld struct {
	t        *testing.T
	rng      *rand.Rand
	w        *World
	children *Relation[childOf]
	aims     *Relation[aimsAt]
	keepers  *Relation[guardOf]

	relationOracle
	back map[uint64]relationOracle // The expected relations at the end of each tick.
}

type relationOracle struct {
	alive               []Entity // The alive entities, in any order.
	parent, aim, guards map[Entity]Entity
}

func (n relationOracle) clone() relationOracle {
	return relationOracle{slices.Clone(n.alive), maps.Clone(n.parent), maps.Clone(n.aim), maps.Clone(n.guards)}
}

func newRelationWorld(t *testing.T, seed uint64, history int) *relationWorld {
	f := &relationWorld{t: t, rng: rand.New(rand.NewPCG(seed, 7)), w: NewWorld(Options{History: history}), back: map[uint64]relationOracle{}}
	f.children = NewRelation(MustRegister[childOf](f.w), func(c childOf) Entity { return c.Parent }, RelationOptions{Tree: true})
	f.aims = NewRelation(MustRegister[aimsAt](f.w), func(c aimsAt) Entity { return c.Who }, RelationOptions{Policy: Detach})
	f.keepers = NewRelation(MustRegister[guardOf](f.w), func(c guardOf) Entity { return c.What }, RelationOptions{Policy: Refuse})
	f.relationOracle = relationOracle{parent: map[Entity]Entity{}, aim: map[Entity]Entity{}, guards: map[Entity]Entity{}}
	f.back[0] = f.relationOracle.clone()
	return f
}

func (f *relationWorld) pickEntity() Entity {
	if len(f.alive) == 0 || f.rng.IntN(12) == 0 {
		e := f.w.Create()
		f.alive = append(f.alive, e)
		return e
	}
	return f.alive[f.rng.IntN(len(f.alive))]
}

func sourcesOf(of map[Entity]Entity, target Entity) (sources []Entity) {
	for source, t := range of {
		if t == target {
			sources = append(sources, source)
		}
	}
	slices.SortFunc(sources, byIndex)
	return sources
}

// below returns the descendants of e, in depth-first order.
func (n *relationOracle) below(e Entity) (all []Entity) {
	for _, child := range sourcesOf(n.parent, e) {
		all = append(append(all, child), n.below(child)...)
	}
	return all
}

// destroy makes the changes that Destroy must make. It returns false if e is not destroyed.
func (n *relationOracle) destroy(e Entity) bool {
	if !slices.Contains(n.alive, e) {
		return false
	}
	doomed := append(n.below(e), e)
	for source, target := range n.guards {
		if slices.Contains(doomed, target) && !slices.Contains(doomed, source) {
			return false
		}
	}
	maps.DeleteFunc(n.aim, func(_, target Entity) bool { return slices.Contains(doomed, target) })
	for _, d := range doomed {
		delete(n.parent, d)
		delete(n.aim, d)
		delete(n.guards, d)
	}
	n.alive = slices.DeleteFunc(n.alive, func(e Entity) bool { return slices.Contains(doomed, e) })
	return true
}

func (f *relationWorld) step() {
	a, b := f.pickEntity(), f.pickEntity()
	switch f.rng.IntN(18) {
	case 0, 1, 2, 3:
		err := f.children.Set(a, childOf{b})
		if a == b || slices.Contains(f.below(a), b) {
			require.ErrorIs(f.t, err, ErrCycle)
			return
		}
		require.NoError(f.t, err)
		f.parent[a] = b
	case 4:
		if p := f.children.sources.s.Mut(a); p != nil && a != b && !slices.Contains(f.below(a), b) {
			p.Parent = b
			f.parent[a] = b
		}
	case 5, 6:
		require.NoError(f.t, f.aims.Set(a, aimsAt{b}))
		f.aim[a] = b
	case 7:
		f.keepers.sources.s.Set(a, guardOf{b})
		f.guards[a] = b
	case 8:
		f.keepers.sources.s.Remove(a)
		delete(f.guards, a)
	case 9:
		f.children.sources.s.Remove(a)
		delete(f.parent, a)
	case 10, 11:
		require.Equal(f.t, f.destroy(a), f.w.Destroy(a))
	case 12:
		some := []Entity{a, b, f.pickEntity(), a}
		before := slices.Clone(f.alive)
		for _, e := range slices.Backward(some) {
			f.destroy(e)
		}
		ended := among(before, f.alive)
		require.Equal(f.t, len(ended)-len(among(ended, some)), f.w.DestroyAll(some))
	case 13:
		f.w.Commit()
		f.back[f.w.Tick()] = f.relationOracle.clone()
	case 14:
		tick := f.w.Tick() - min(f.w.Tick(), uint64(f.rng.IntN(3)))
		if f.w.History().Seek(tick) == nil {
			f.relationOracle = f.back[tick].clone()
		}
	case 15:
		if f.rng.IntN(20) == 0 {
			f.w.Clear()
			f.relationOracle = relationOracle{nil, map[Entity]Entity{}, map[Entity]Entity{}, map[Entity]Entity{}}
		}
	case 16:
		if len(f.alive) < 40 {
			f.copySubtree(a)
		}
	case 17:
		f.move([]Entity{a, b, f.pickEntity(), a}[:f.rng.IntN(5)])
	}
}

// copySubtree makes two copies of e and its descendants.
func (f *relationWorld) copySubtree(e Entity) {
	tree := f.children.Subtree(e)
	require.Equal(f.t, append([]Entity{e}, f.below(e)...), tree)
	copies, err := f.w.Copy(f.w, tree, CopyOptions{Times: 2, Outside: Reference.Keep})
	require.NoError(f.t, err)
	require.Len(f.t, copies, 2*len(tree))
	for round := range slices.Chunk(copies, len(tree)) {
		f.alive = append(f.alive, round...)
		for _, of := range []map[Entity]Entity{f.parent, f.aim, f.guards} {
			for i, e := range tree {
				if target, ok := of[e]; ok {
					if k := slices.Index(tree, target); k >= 0 {
						target = round[k]
					}
					of[round[i]] = target
				}
			}
		}
	}
}

// move moves entities to another world. References between these entities must be kept, and other
// references must become zero. If a source stays behind that keeps its target alive, the move must
// fail and change nothing.
func (f *relationWorld) move(entities []Entity) {
	there := newRelationWorld(f.t, 1, 0)
	there.w.CreateN(nil, 3)
	doomed := slices.Clone(entities)
	for _, e := range entities {
		doomed = append(doomed, f.below(e)...)
	}
	refused := false
	for source, target := range f.guards {
		refused = refused || slices.Contains(doomed, target) && !slices.Contains(doomed, source)
	}
	before, digest := f.relationOracle.clone(), f.w.Digest()
	moved, err := there.w.Move(f.w, entities, CopyOptions{})
	if refused {
		require.ErrorContains(f.t, err, "a relation keeps one of the entities alive")
		require.Equal(f.t, 3, there.w.Len())
		require.Equal(f.t, digest, f.w.Digest())
		return
	}
	require.NoError(f.t, err)
	become := func(e Entity) Entity {
		if k := slices.Index(entities, e); k >= 0 {
			return moved[k]
		}
		return 0
	}
	for i, e := range entities {
		for of, r := range map[*map[Entity]Entity]func(Entity) (Entity, bool){
			&before.parent: there.children.Target, &before.aim: there.aims.Target, &before.guards: there.keepers.Target,
		} {
			target, ok := r(moved[i])
			require.Equal(f.t, become((*of)[e]), target)
			require.Equal(f.t, target != 0, ok)
		}
	}
	require.Equal(f.t, 3+len(slices.Compact(slices.Sorted(slices.Values(entities)))), there.w.Len())
	// If a source keeps one of these entities alive, the source has moved, too. In the oracle,
	// remove all such references first, so that destroy does not refuse.
	for _, e := range doomed {
		for source, target := range f.guards {
			if target == e {
				delete(f.guards, source)
			}
		}
	}
	for _, e := range doomed {
		f.destroy(e)
		require.False(f.t, f.w.Alive(e))
	}
}

func (f *relationWorld) check() {
	t := f.t
	require.ElementsMatch(t, f.alive, f.w.Entities())
	for _, e := range append(slices.Clone(f.alive), 0) {
		require.Equal(t, sourcesOf(f.parent, e), slices.Collect(f.children.Of(e)))
		require.Equal(t, sourcesOf(f.aim, e), slices.Collect(f.aims.Of(e)))
		require.Equal(t, len(sourcesOf(f.guards, e)), f.keepers.Len(e))
		aiming := NewQuery1(Read(f.children.sources.s)).With(f.aims.To(e)).AppendEntities(nil)
		require.ElementsMatch(t, slices.DeleteFunc(sourcesOf(f.aim, e), func(s Entity) bool { return f.parent[s] == 0 }), aiming)
		target, ok := f.children.Target(e)
		require.Equal(t, f.parent[e], target)
		require.Equal(t, target != 0, ok)
		below := f.below(e)
		require.Equal(t, below, slices.Collect(f.children.Descendants(e)))
		var levels []Entity
		depth := 1
		for d, e := range f.children.Levels(e) {
			require.GreaterOrEqual(t, d, depth)
			depth = d
			levels = append(levels, e)
		}
		require.ElementsMatch(t, below, levels)
		var above []Entity
		for at := f.parent[e]; at != 0; at = f.parent[at] {
			above = append(above, at)
		}
		require.Equal(t, above, slices.Collect(f.children.Ancestors(e)))
		root := e
		if len(above) > 0 {
			root = above[len(above)-1]
		}
		require.Equal(t, root, f.children.Root(e))
	}
}

func TestRelation_SameAsModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(deep.Or(20, 200)) {
		f := newRelationWorld(t, seed, int(seed%4))
		for i := range 300 {
			if f.step(); f.rng.IntN(4) == 0 || i == 299 {
				f.check()
			}
		}
		if c := f.w.Clone(); seed%3 == 0 {
			f.w, f.children, f.aims, f.keepers = c, f.children.In(c), f.aims.In(c), f.keepers.In(c)
			f.back = map[uint64]relationOracle{c.Tick(): f.relationOracle.clone()}
			for range 50 {
				f.step()
				f.check()
			}
		}
	}
}

func TestRelation_LargeCascades(t *testing.T) {
	t.Parallel()
	for name, parent := range map[string]func(all []Entity, i int) Entity{
		"chain": func(all []Entity, i int) Entity { return all[i-1] },
		"crowd": func(all []Entity, _ int) Entity { return all[0] },
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWorld(Options{History: 1})
			s := MustRegister[childOf](w)
			r := NewRelation(s, func(c childOf) Entity { return c.Parent }, RelationOptions{Tree: true})
			all := w.CreateN(nil, 100_000)
			for i := 1; i < len(all); i++ {
				s.Set(all[i], childOf{parent(all, i)})
			}
			w.Commit()
			require.Equal(t, all[0], r.Root(all[len(all)-1]))
			require.Equal(t, all[1:], slices.Collect(r.Descendants(all[0])))
			require.True(t, w.Destroy(all[0]))
			require.Empty(t, w.Entities())
			require.Zero(t, r.Len(all[0]))
			require.NoError(t, w.History().Rewind(0))
			require.Len(t, w.Entities(), len(all))
			require.Equal(t, all[1:], slices.Collect(r.Descendants(all[0])))
		})
	}
}

// If a hook creates a source of an entity during its Destroy, the source is destroyed too.
func TestRelation_HookAttachesInDestroy(t *testing.T) {
	w := NewWorld(Options{})
	s := MustRegister[childOf](w)
	r := NewRelation(s, func(c childOf) Entity { return c.Parent }, RelationOptions{})
	parent, child := w.Create(), w.Create()
	s.Set(child, childOf{parent})
	more := 3
	s.OnRemove(func(e Entity, c childOf) {
		if more--; more > 0 {
			s.Set(w.Create(), childOf{parent})
			s.Set(w.Create(), childOf{e})
		}
	})
	require.True(t, w.Destroy(parent))
	require.Empty(t, w.Entities())
	require.Zero(t, r.Len(parent))
}

// A cascade calls the hooks of the entities that it destroys. If a hook destroys another entity,
// the policies apply to that entity too.
func TestRelation_HookDestroysOtherEntity(t *testing.T) {
	w := NewWorld(Options{})
	s := MustRegister[childOf](w)
	NewRelation(s, func(c childOf) Entity { return c.Parent }, RelationOptions{})
	all := w.CreateN(nil, 5)
	s.Set(all[1], childOf{all[0]})
	s.Set(all[3], childOf{all[2]})
	s.Set(all[4], childOf{all[3]})
	var removed []Entity
	s.OnRemove(func(e Entity, _ childOf) {
		if removed = append(removed, e); e == all[1] {
			w.Destroy(all[2])
		}
	})
	require.True(t, w.Destroy(all[0]))
	require.Equal(t, []Entity{all[1], all[4], all[3]}, removed)
	require.Empty(t, w.Entities())
}

func TestRelation_CascadeDetachesOtherSources(t *testing.T) {
	w := NewWorld(Options{})
	aims, children := MustRegister[aimsAt](w), MustRegister[childOf](w)
	r := NewRelation(aims, func(a aimsAt) Entity { return a.Who }, RelationOptions{Policy: Detach})
	NewRelation(children, func(c childOf) Entity { return c.Parent }, RelationOptions{})
	all := w.CreateN(nil, 4)
	children.Set(all[1], childOf{all[0]})
	aims.Set(all[2], aimsAt{all[1]}) // Entity 2 refers to a descendant of the destroyed entity.
	aims.Set(all[3], aimsAt{all[0]}) // Entity 3 refers to the destroyed entity.
	require.True(t, w.Destroy(all[0]))
	require.Zero(t, aims.Len())
	require.Zero(t, r.Len(all[0])+r.Len(all[1]))
	require.ElementsMatch(t, all[2:], w.Entities())
}

func TestRelation_LookupsInParallelRuns(t *testing.T) {
	w := NewWorld(Options{})
	s := MustRegister[childOf](w)
	r := NewRelation(s, func(c childOf) Entity { return c.Parent }, RelationOptions{})
	all := w.CreateN(nil, 5000)
	for i, e := range all[1:] {
		s.Set(e, childOf{all[i/2]})
	}
	// This loop leaves scratch space that later loops could reuse.
	below := slices.Collect(r.Descendants(all[0]))
	NewQuery1(Read(s)).ParallelRuns(4, func(run Run1[childOf]) {
		assert.Equal(t, below, slices.Collect(r.Descendants(all[0])))
		n := 0
		for range r.Levels(all[1]) {
			n++
		}
		assert.NotZero(t, n)
	})
}

func TestRelationIn_OtherWorld(t *testing.T) {
	w, other := NewWorld(Options{}), NewWorld(Options{})
	r := NewRelation(MustRegister[childOf](w), func(c childOf) Entity { return c.Parent }, RelationOptions{})
	assert.Nil(t, r.In(other))
	assert.False(t, other.watched)
	assert.Same(t, r, r.In(w))
	c := w.Clone()
	assert.Same(t, r.In(c), r.In(c))
	assert.NotSame(t, r, r.In(c))
}

func TestRelation_WalkAndDestroyInCycle(t *testing.T) {
	w := NewWorld(Options{})
	s := MustRegister[childOf](w)
	r := NewRelation(s, func(c childOf) Entity { return c.Parent }, RelationOptions{Tree: true})
	all := w.CreateN(nil, 40)
	// The last 30 entities are a cycle, and the others are a path to the cycle.
	for i, e := range all {
		next := i + 1
		if next == len(all) {
			next = 10
		}
		s.Set(e, childOf{all[next]})
	}
	for i, e := range all {
		ancestors := slices.Collect(r.Ancestors(e))
		assert.LessOrEqual(t, len(ancestors), 2*len(all))
		for k := range all[10:] {
			if i < 10 || k+10 != i {
				assert.Contains(t, ancestors, all[10+k])
			}
		}
	}
	assert.Len(t, slices.Collect(r.Descendants(all[20])), len(all)-1)
	require.True(t, w.Destroy(all[20]))
	assert.Empty(t, w.Entities())
}

func TestRelationSet_Errors(t *testing.T) {
	w := NewWorld(Options{})
	s := MustRegister[childOf](w)
	r := NewRelation(s, func(c childOf) Entity { return c.Parent }, RelationOptions{Tree: true})
	a, b, dead := w.Create(), w.Create(), w.Create()
	w.Destroy(dead)
	require.NoError(t, r.Set(b, childOf{a}))
	for _, c := range []struct {
		source, target Entity
		says           string
	}{
		{dead, a, "ecs: childOf of 2v1: the entity is not alive"},
		{a, dead, "ecs: childOf of 0v1: its target 2v1 is not alive"},
		{a, a, "ecs: childOf of 0v1: a cycle, as it is its own target"},
		{a, b, "ecs: childOf of 0v1: a cycle, as its target 1v1 is below it"},
	} {
		err := r.Set(c.source, childOf{c.target})
		assert.EqualError(t, err, c.says)
		assert.Equal(t, errors.Is(err, ErrCycle), c.target != dead && c.source != dead)
	}
	assert.Equal(t, 1, s.Len())
	require.NoError(t, r.Set(b, childOf{}))
	_, ok := r.Target(b)
	assert.False(t, ok)
}

// A source may have the target None, which is never alive. The source then has no target, but
// First(None) finds it.
func TestRelation_SourceWithoutTarget(t *testing.T) {
	f := newRelationWorld(t, 1, 0)
	s, e, parent := f.children.sources.s, f.w.Create(), f.w.Create()
	for _, target := range []Entity{None, parent, None} {
		s.Set(e, childOf{target})
		got, ok := f.children.Target(e)
		if ok != (target != None) || got != target {
			t.Errorf("the target is %v, %v, want %v", got, ok, target)
		}
	}
	if got, ok := f.children.First(None); got != e || !ok || f.w.Alive(None) || f.w.Destroy(None) || s.Set(None, childOf{}) {
		t.Errorf("first source without a target: %v, %v; None alive: %v", got, ok, f.w.Alive(None))
	}
}
