package main

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
)

// check tests the rules of possession: a thing is on the floor or has an owner, and no bag is in a
// bag. The relation must agree with the components.
func (g *game) check(t *testing.T) {
	t.Helper()
	held := map[ecs.Entity][]ecs.Entity{}
	for e, in := range g.Inside.All() {
		require.True(t, g.world.Alive(in.Holder), "the holder of %v", e)
		held[in.Holder] = append(held[in.Holder], e)
	}
	for e := range g.Look.All() {
		list := held[e]
		slices.SortFunc(list, func(a, b ecs.Entity) int { return int(a.Index()) - int(b.Index()) })
		require.True(t, slices.Equal(list, slices.Collect(g.contents.Of(e))), "the things of %v", e)
		require.NotEqual(t, g.Position.Has(e), g.Inside.Has(e), "%v is in one place", e)
	}
	for depth := range g.contents.Levels(g.Hero.Get().Entity) {
		require.LessOrEqual(t, depth, 2)
	}
}

func TestUndo_RestoresEachTurn(t *testing.T) {
	const turns, seed = 20_000, 1
	g, err := newGame(seed, turns)
	require.NoError(t, err)
	key := player(seed)
	states := []ecs.Digest{g.world.Digest()}
	happened := map[string]int{}
	together := 0 // The number of things that burned together with their container.
	for range turns {
		g.turn(key())
		g.check(t)
		states = append(states, g.world.Digest())
		burnt := 0
		for event := range g.Events.Last() {
			happened[event.What]++
			if event.What == "burnt" {
				burnt++
			}
		}
		together += max(0, burnt-1)
	}
	t.Log(happened, together)
	assert.ElementsMatch(t, slices.Collect(maps.Keys(happened)), []string{"grabbed", "packed", "taken out", "dropped", "stolen", "slain", "burnt"})
	assert.Positive(t, together)
	require.ErrorContains(t, g.undo(turns+1), "20001 turns cannot be undone: 20000 were taken")
	for k := range slices.Backward(states[:turns]) {
		require.NoError(t, g.undo(1))
		require.Equal(t, states[k], g.world.Digest(), "after turn %d", k)
		g.check(t)
	}
	// After all turns are undone, the same keys lead to the same states.
	key = player(seed)
	for k := range 100 {
		g.turn(key())
		require.Equal(t, states[k+1], g.world.Digest())
	}
}

// packed returns a game with only the hero and a bag. The hero has the bag, with a ring in it.
func packed(t *testing.T) (g *game, hero, bag, ring ecs.Entity) {
	g, err := newGame(1, 100)
	require.NoError(t, err)
	hero = g.Hero.Get().Entity
	for e := range g.Look.All() {
		if e != hero && !g.Fire.Has(e) {
			g.world.Destroy(e)
		}
	}
	bag, ring = g.place(Position{2, 2}, Look{'(', "bag"}), g.place(Position{2, 2}, Look{'=', "ring"})
	g.Bag.Set(bag, Bag{})
	g.grab(hero)
	g.pack(hero)
	require.Equal(t, []ecs.Entity{bag, ring}, slices.Collect(g.contents.Descendants(hero)))
	g.world.Commit()
	return g, hero, bag, ring
}

func TestDrop_BagIntoFire(t *testing.T) {
	g, hero, bag, ring := packed(t)
	before := g.world.Digest()
	g.Position.Set(hero, Position{width / 2, height / 2})
	g.turn('d')
	assert.False(t, g.world.Alive(bag))
	assert.False(t, g.world.Alive(ring))
	assert.Contains(t, g.String(), "ring: burnt\nbag: burnt\n")
	require.NoError(t, g.undo(1))
	assert.Equal(t, before, g.world.Digest())
	assert.Equal(t, []ecs.Entity{ring}, slices.Collect(g.contents.Of(bag)))
}

func TestThief_StealsFromBag(t *testing.T) {
	g, hero, bag, ring := packed(t)
	before := g.world.Digest()
	thief := g.place(Position{3, 2}, Look{'T', "thief"})
	g.Thief.Set(thief, Thief{})
	// Repeat until the thief steals the ring.
	for dice := uint64(0); g.contents.Len(bag) > 0; dice++ {
		g.Inside.Set(bag, Inside{hero})
		g.Dice.Seed(dice, 0)
		g.steal(hero, thief)
	}
	assert.Equal(t, []ecs.Entity{ring}, slices.Collect(g.contents.Of(thief)))
	assert.Equal(t, []ecs.Entity{bag}, slices.Collect(g.contents.Of(hero)))
	g.turn('l') // The hero kills the thief on this place.
	assert.False(t, g.world.Alive(thief))
	p, _ := g.Position.Get(ring)
	assert.Equal(t, Position{3, 2}, p)
	assert.True(t, g.world.Alive(ring))
	require.NoError(t, g.undo(1))
	assert.Equal(t, before, g.world.Digest())
}

func TestRun_ReadsKeys(t *testing.T) {
	var out, errs bytes.Buffer
	require.Zero(t, run(nil, strings.NewReader("l\nuu\nxq"), &out, &errs))
	assert.Contains(t, out.String(), "turn 1\n")
	assert.Contains(t, out.String(), "1 turns cannot be undone: 0 were taken\n")
	assert.Contains(t, out.String(), "no such key: 'x'; the keys are hjklgptd.u and q\n")
	out.Reset()
	require.Zero(t, run([]string{"-play", "300"}, nil, &out, &errs))
	assert.Contains(t, out.String(), "turn 300\n")
	assert.Contains(t, out.String(), "undid all 300 turns: the dungeon is unchanged.\n")
	assert.Equal(t, 2, run([]string{"-play", "-1"}, nil, &out, &errs))
	assert.Equal(t, 2, run([]string{"more"}, nil, &out, &errs))
	assert.Equal(t, "roguelike: wants -play from 0 to 100000, and no arguments\nroguelike: wants -play from 0 to 100000, and no arguments\n", errs.String())
}
