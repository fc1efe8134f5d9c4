package ecs

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/internal/deep"
)

// A requiredWorld is a world in which the component plain requires the component list, and list
// requires the component word. Maps hold the expected components.
type requiredWorld struct {
	w     *World
	plain *Storage[plain]
	list  *Storage[list]
	word  *Storage[word]
	born  *Bundle2[plain, list]
	late  *Bundle2[list, plain]

	requiredOracle
}

type requiredOracle struct {
	alive  []Entity
	plains map[Entity]int32
	lists  map[Entity]int
	words  map[Entity]string
}

const someItem = 41

func newRequiredWorld() *requiredWorld {
	w := NewWorld(Options{})
	c := &requiredWorld{w: w, plain: MustRegister[plain](w), list: MustRegister(w, Component[list]{Clone: cloneList}), word: MustRegister[word](w),
		requiredOracle: requiredOracle{plains: map[Entity]int32{}, lists: map[Entity]int{}, words: map[Entity]string{}}}
	v := list{[]int{someItem}}
	c.list.RequiredBy(c.plain, v)
	v.Items[0] = -1 // This write changes only the caller's copy.
	c.word.RequiredBy(c.list, word{"hired"})
	c.born, c.late = NewBundle2(c.plain, c.list), NewBundle2(c.list, c.plain)
	c.plain.OnAdd(func(e Entity, _ plain) {
		if !c.list.Has(e) {
			failf("OnAdd of plain is called for %v, which has no list", e)
		}
	})
	c.list.OnAdd(func(e Entity, _ list) {
		if !c.word.Has(e) {
			failf("OnAdd of list is called for %v, which has no word", e)
		}
	})
	return c
}

func (n *requiredOracle) setWord(e Entity, s string) { n.words[e] = s }

func (n *requiredOracle) setList(e Entity, v int) {
	_, had := n.lists[e]
	if n.lists[e] = v; !had && n.words[e] == "" {
		n.setWord(e, "hired")
	}
}

func (n *requiredOracle) setPlain(e Entity, v int32) {
	_, had := n.plains[e]
	n.plains[e] = v
	if _, there := n.lists[e]; !had && !there {
		n.setList(e, someItem)
	}
}

func (c *requiredWorld) check(t *testing.T) {
	require.ElementsMatch(t, c.alive, c.w.Entities())
	for _, e := range c.alive {
		p, ok := c.plain.Get(e)
		v, want := c.plains[e]
		require.Equal(t, want, ok)
		require.Equal(t, v, p.X)
		l, ok := c.list.Get(e)
		k, want := c.lists[e]
		require.Equal(t, want, ok)
		if ok {
			require.Equal(t, []int{k}, l.Items)
		}
		s, _ := c.word.Get(e)
		require.Equal(t, c.words[e], s.S)
	}
}

// Every call that adds a component also adds the components that it requires. Calls that only write
// a component add no other components.
func TestRequiredBy_RandomChanges(t *testing.T) {
	t.Parallel()
	for seed := range uint64(deep.Or(30, 300)) {
		rng := rand.New(rand.NewPCG(seed, 11))
		c := newRequiredWorld()
		pick := func() Entity {
			if len(c.alive) == 0 || rng.IntN(6) == 0 {
				c.alive = append(c.alive, c.w.Create())
			}
			return c.alive[rng.IntN(len(c.alive))]
		}
		for i := range 200 {
			e, v := pick(), i
			switch rng.IntN(14) {
			case 0:
				c.plain.Set(e, plain{X: int32(v)})
				c.setPlain(e, int32(v))
			case 1:
				c.list.Set(e, list{[]int{v}})
				c.setList(e, v)
			case 2:
				some := []Entity{pick(), pick(), e}
				c.plain.SetAll(some, plain{X: int32(v)})
				for _, e := range some {
					c.setPlain(e, int32(v))
				}
			case 3:
				some := c.born.CreateN(nil, 2, plain{X: int32(v)}, list{[]int{v}})
				some = append(some, c.late.Create(list{[]int{v}}, plain{X: int32(v)}), c.born.Create(plain{X: int32(v)}, list{[]int{v}}))
				for c.alive = append(c.alive, some...); len(some) > 0; some = some[1:] {
					c.setPlain(some[0], int32(v))
					c.setList(some[0], v)
				}
			case 4:
				var later Commands
				c.plain.Later(&later).Set(e, plain{X: int32(v)})
				c.w.Apply(&later)
				c.setPlain(e, int32(v))
			case 5:
				if len(c.alive) < 60 {
					twin, _ := c.w.CloneEntity(e)
					c.copied(e, twin)
				}
			case 6:
				c.plain.Remove(e)
				delete(c.plains, e)
			case 7, 8:
				c.list.Remove(e)
				delete(c.lists, e)
			case 9:
				c.word.Remove(e)
				delete(c.words, e)
			case 10:
				c.w.Destroy(e)
				c.alive = slices.DeleteFunc(c.alive, func(a Entity) bool { return a == e })
			// A write through a pointer adds no components.
			case 11:
				if p := c.list.Mut(e); p != nil {
					p.Items[0] = v
					c.lists[e] = v
				}
			case 12:
				cp, before := c.w.Checkpoint(), c.w.Digest()
				c.list.Clear()
				c.plain.SetAll(c.alive, plain{})
				c.w.Restore(cp)
				c.w.Release(cp)
				require.Equal(t, before, c.w.Digest(), "seed %d", seed)
			case 13:
				// The entity of the other world has only the component plain.
				other := newRequiredWorld()
				alone := other.w.Create()
				other.plain.Set(alone, plain{X: int32(v)})
				other.list.Remove(alone)
				other.word.Remove(alone)
				copies, err := c.w.Copy(other.w, []Entity{alone}, CopyOptions{})
				require.NoError(t, err)
				c.alive = append(c.alive, copies[0])
				c.setPlain(copies[0], int32(v))
			}
			c.check(t)
		}
	}
}

// copied adds twin to the oracle. twin is a new copy of e, with all components of e.
func (n *requiredOracle) copied(e, twin Entity) {
	n.alive = append(n.alive, twin)
	if v, ok := n.plains[e]; ok {
		n.setPlain(twin, v)
	}
	if v, ok := n.lists[e]; ok {
		n.setList(twin, v)
	}
	if s, ok := n.words[e]; ok {
		n.setWord(twin, s)
	}
}

func TestRequiredBy_Errors(t *testing.T) {
	w, other := NewWorld(Options{}), NewWorld(Options{})
	s := MustRegister[plain](w)
	for name, as := range map[string]AnyStorage{"word": MustRegister[word](other), "list": Must(RegisterResource(w, list{}))} {
		assert.PanicsWithValue(t, "ecs: RequiredBy with "+name+", which is no component of this world; give it another storage of it",
			func() { s.RequiredBy(as, plain{}) })
	}
	assert.PanicsWithValue(t, "ecs: RequiredBy of plain with itself; give it the storage of another component",
		func() { s.RequiredBy(s, plain{}) })
	mustPanic(t, "a nil storage", func() { s.RequiredBy((*Storage[word])(nil), plain{}) })
}

// RequiredBy adds the default value, and the bundle then sets the value that it was given.
func TestRequiredBy_BundleSetsGivenValue(t *testing.T) {
	c := newRequiredWorld()
	var values []int
	c.list.OnAdd(func(_ Entity, l list) { values = append(values, l.Items[0]) })
	c.list.OnSet(func(_ Entity, old, now list) { values = append(values, -old.Items[0], now.Items[0]) })
	c.born.Create(plain{}, list{[]int{1}})
	c.late.Create(list{[]int{2}}, plain{})
	assert.Equal(t, []int{someItem, -someItem, 1, 2}, values)
}
