package image

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
)

// A naiveSet is an opSet implemented with a map.
type naiveSet map[ecs.Entity]bool

func TestOpSet_EqualsMap(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		state := naiveSet{} // The state at the end of a tick.
		s := opSet{before: func(e ecs.Entity) bool { return state[e] }}
		for range 30 {
			after := naiveSet{}
			for e := range state {
				after[e] = true
			}
			s.begin(len(state))
			for range rng.IntN(1 << rng.IntN(12)) {
				if rng.IntN(500) == 0 {
					after = naiveSet{}
					s.clear()
					continue
				}
				e := ecs.NewEntity(rng.Uint32N(300), rng.Uint32N(3))
				now := rng.IntN(2) == 0
				s.set(e, now)
				if delete(after, e); now {
					after[e] = true
				}
				require.Equal(t, len(after), s.n, "seed %d", seed)
			}
			state = after
			require.NoError(t, s.compare(len(state)), "seed %d", seed)
			checkDifferences(t, rng, &s, state)
		}
	}
}

// checkDifferences changes state, which equals s, and expects s to detect each change.
func checkDifferences(t *testing.T, rng *rand.Rand, s *opSet, state naiveSet) {
	require.Error(t, s.compare(len(state)+1))
	if len(s.known.entries) == 0 {
		return
	}
	e := s.known.entries[rng.IntN(len(s.known.entries))]
	if delete(state, e.entity); !e.in {
		state[e.entity] = true
	}
	require.ErrorContains(t, s.compare(s.n), e.entity.String())
	if delete(state, e.entity); e.in {
		state[e.entity] = true
	}
}

func TestOpCheck_AllocatesNothing(t *testing.T) {
	var s opSet
	s.before = func(ecs.Entity) bool { return false }
	tick := func() {
		s.begin(0)
		for i := range uint32(1000) {
			s.set(ecs.NewEntity(i, 1), true)
		}
	}
	tick()
	require.Zero(t, testing.AllocsPerRun(10, tick))
}

func TestEntityMap_FewSlotsAfterClear(t *testing.T) {
	var m entityMap
	for i := range uint32(10_000) {
		e := ecs.NewEntity(i, 1)
		require.Nil(t, m.find(e))
		m.add(e, true)
	}
	m.clear()
	for i := range uint32(10) {
		e := ecs.NewEntity(i, 1)
		require.Nil(t, m.find(e))
		m.add(e, true)
		require.NotNil(t, m.find(e))
	}
	require.Len(t, m.slots, firstSlots)
	m.clear()
	for _, slot := range m.slots[:cap(m.slots)] {
		require.Zero(t, slot, "all slots must be empty")
	}
}
