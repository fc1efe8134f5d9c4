package benchmarks

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/stet-ecs/stet/ecs"
)

func TestDefinition_FormsBuildSameWorld(t *testing.T) {
	for _, d := range goSuite {
		for _, n := range []int{1, 4, 300} {
			for _, f := range d.forms {
				testForm(t, fmt.Sprintf("%s/%s/%d", d.name, f.name, n), d, f, n)
			}
		}
	}
	for _, d := range rustSuite {
		for _, f := range d.forms {
			testForm(t, d.name+"/"+f.name, d, f, d.sizes[0])
		}
	}
}

func testForm(t *testing.T, name string, d definition, f form, n int) {
	for _, tracked := range []bool{false, true} {
		if tracked && d.untracked {
			continue
		}
		k := f.make(n)
		if tracked {
			k.tracked()
		}
		for times := 1; times <= 3; times++ {
			k.once()
			assert.True(t, k.check(times), "%s, tracked %t, after %d", name, tracked, times)
		}
	}
}

func TestRenewal_RestoreUndoesRepetition(t *testing.T) {
	m := query2comp(10)
	k := queries(func(int) *movers { return m })[0].make(10)
	r := renewal{world: m.world}
	k.checkpoint = r.renew
	k.tracked()
	k.once()
	k.once()
	m.world.Restore(r.cp)
	assert.True(t, k.check(1))
}

func TestRenew_ReleasesOlderCheckpoint(t *testing.T) {
	r := renewal{world: ecs.NewWorld(ecs.Options{})}
	r.renew()
	older := r.cp
	r.renew()
	assert.False(t, older.Valid())
	assert.True(t, r.cp.Valid())
}

func TestMatrixInverse_ProductIsIdentity(t *testing.T) {
	m := matrix{2, -1, 0, 3, 4, 1, 5, -2, 0, 7, 1, 1, 3, 3, -6, 2}
	inv, ok := m.inverse()
	assert.True(t, ok)
	left, right := m.times(&inv), inv.times(&m)
	assert.True(t, left.near(identity()), "%v", left)
	assert.True(t, right.near(identity()), "%v", right)
}

func TestMatrixInverse_DependentRows(t *testing.T) {
	m := matrix{1, 2, 3, 4, 2, 4, 6, 8, 0, 7, 1, 1, 3, 3, -6, 2}
	_, ok := m.inverse()
	assert.False(t, ok)
}

func TestMatrix_RotatesAboutFirstAxis(t *testing.T) {
	m := turned(math.Pi / 2)
	v := m.turn(vector{1, 1, 0})
	assert.InDeltaSlice(t, []float32{1, 0, 1}, []float32{v.X, v.Y, v.Z}, 1e-6)
}

func TestDefinition_SizesUpToLimit(t *testing.T) {
	d := definition{}
	assert.Equal(t, []int{1, 4, 16, 64}, d.sizesUpTo(255))
	assert.Equal(t, goSizes, d.sizesUpTo(1_000_000))
	d.sizes = []int{1}
	assert.Equal(t, []int{1}, d.sizesUpTo(1_000_000))
	for n, want := range map[int]string{1: "1", 1024: "1k", 16_000: "16k", 1_000_000: "1M"} {
		assert.Equal(t, want, sizeName(n))
	}
}
