package benchmarks

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/stet-ecs/stet/ecs"
)

// lengths returns the number of entities that have each component of w.
func lengths(w *ecs.World) (n []int) {
	for _, s := range w.Storages() {
		n = append(n, s.Len())
	}
	return n
}

func TestDefinitions_EntityCounts(t *testing.T) {
	assert.Equal(t, []int{32 * 11, 32}, lengths(query2comp(32).world))
	assert.Equal(t, []int{32, 32, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0}, lengths(query32arch(32).world))
	assert.Equal(t, []int{64 * 5, 64, 128, 128, 128, 128, 128, 128, 128, 128, 0, 0}, lengths(query256arch(64).world))
	assert.Equal(t, []int{7, 0, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}, lengths(addRemoveLarge(7).world))

	ten := create10comp(7)
	ten.once()
	assert.Equal(t, slices.Repeat([]int{7}, 10), lengths(ten.world))
	ended := delete10comp(7)
	ended.prepare()
	assert.Equal(t, slices.Repeat([]int{7}, 10), lengths(ended.world))

	b := newBodyWorld()
	b.insert(7, identity())
	assert.Equal(t, []int{7, 7, 7, 7}, lengths(b.world))
	w, _ := fragments()
	assert.Equal(t, append([]int{520}, slices.Repeat([]int{20}, 26)...), lengths(w))
	assert.Equal(t, []int{40_000, 40_000, 30_000, 10_000, 10_000}, lengths(newScheduleWorld().world))
}

func TestShuffle_ReordersEntities(t *testing.T) {
	m := newMovers()
	for range 100 {
		m.entities = append(m.entities, m.place())
	}
	shuffle(m.entities)
	assert.NotEqual(t, m.positions.Entities(), m.entities)
	assert.ElementsMatch(t, m.positions.Entities(), m.entities)
}

func TestInvert_RotatesVector(t *testing.T) {
	m, v := turned(1.2), vector{1, 2, 3}
	want := m.turn(v)
	invert(&m, &v)
	assert.InDeltaSlice(t, []float32{want.X, want.Y, want.Z}, []float32{v.X, v.Y, v.Z}, 1e-3)
}

func TestVectorAdd_AddsEachElement(t *testing.T) {
	v := vector{1, 2, 3}
	v.add(vector{10, 20, 30})
	assert.Equal(t, vector{11, 22, 33}, v)
}
