//go:build !stetdebug

package chapters_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
)

// The chapter says what the wrong programs do without the debug build.
func TestPointers_WrongWrites(t *testing.T) {
	world := ecs.NewWorld(ecs.Options{History: 10})
	positions := ecs.MustRegister[Pos](world)
	hero := world.Create()
	positions.Set(hero, Pos{})
	p := positions.Mut(hero)
	for range 1000 { // The rows move when there is no room for another one.
		positions.Set(world.Create(), Pos{})
	}
	p.X = 5
	assert.Equal(t, Pos{}, positions.Values()[0], "the write is lost")
	world.Commit()

	p = positions.Mut(hero)
	world.Commit()
	p.X = 7
	world.Commit()
	require.NoError(t, world.History().Rewind(1))
	assert.Equal(t, Pos{X: 7}, positions.Values()[0], "the rewind does not undo the write")

	type Bag struct{ Items []string }
	bags := ecs.MustRegister[Bag](world)
	bags.Set(hero, Bag{[]string{"sword"}})
	world.Commit()
	bag, _ := bags.Get(hero)
	bag.Items[0] = "shield"
	bags.Set(hero, bag)
	world.Commit()
	require.NoError(t, world.History().Rewind(1))
	assert.Equal(t, []Bag{{[]string{"shield"}}}, bags.Values(), "the history has the new value")
}
