package chapters_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
)

// These types are those of the cheat sheet.
type (
	Pos     struct{ X, Y float64 }
	Vel     struct{ X, Y float64 }
	Frozen  struct{}
	Unit    struct{ Life int }
	ChildOf struct{ Parent ecs.Entity }
	Cell    struct{ X, Y int }
	Hit     struct {
		Target ecs.Entity
		Damage int
	}
)

// The cheat sheet uses these names: show prints values, and check ends the test after an error.
type (
	showFunc  func(values ...any)
	checkFunc func(err error)
)

func TestCheatsheet_Prints(t *testing.T) {
	var text strings.Builder
	show := func(values ...any) { fmt.Fprintln(&text, values...) }
	check := func(err error) { require.NoError(t, err) }
	printed := func(want string) {
		t.Helper()
		assert.Equal(t, want, text.String())
		text.Reset()
	}

	cheatQueries(show)
	printed("true true true false\n1 1 1 0\n[{2 0}] [{2 0}]\n")

	world := ecs.NewWorld(ecs.Options{History: 600})
	positions, velocities := ecs.MustRegister[Pos](world), ecs.MustRegister[Vel](world)
	ecs.MustRegister[Frozen](world)
	car, wheel := world.Create(), world.Create()
	positions.Set(car, Pos{})
	velocities.Set(car, Vel{X: 2})
	cheatThings(show, check, world, positions, car, wheel)
	printed("{0v1 5} 1\n1v1 true\n0v1 true\n")

	cheatSystems(check, world)
	assert.Equal(t, uint64(1), world.Tick())
	for range 9 {
		positions.Mut(car).X++
		world.Commit()
	}
	cheatTime(show, check, world, positions, car)
	printed("tick 10\ntick 10\nundone\ntick 7\ntick 9\n{12 0} true\n0v1 {12 0} {14 0}\ntrue\n")

	cheatStore(t.Context(), show, check, filepath.Join(t.TempDir(), "game"), world)
	printed("tick 10\ntick 10\ntick 10\n10\n[0v1] <nil>\n")
}
