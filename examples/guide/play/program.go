package play

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs"
)

// A Program describes a game to Run.
type Program struct {
	Title  string
	Rate   int     // Ticks in a second. With 0, Run prints some frames and ends.
	Params []Param // Numbers that the player can change.

	// New begins a game with the current values of Params.
	New func() (Game, error)
}

// A Game is a running game. Actions, Seek and Close may be nil.
type Game struct {
	World   *ecs.World
	Tick    func(keys Keys) error // Runs a tick and commits it.
	Draw    func() string         // Returns the state as text.
	Actions []Action
	Seek    func(tick uint64) error // Goes to a past tick. The default is History.Seek of World.
	Close   func() error
}

// A Param is a number that the player can change before a game begins.
type Param struct {
	Name     string
	Value    *int
	Min, Max int
}

// set changes the value, if it is in the range.
func (p Param) set(value int) error {
	if value < p.Min || value > p.Max {
		return fmt.Errorf("%s is from %d to %d", p.Name, p.Min, p.Max)
	}
	*p.Value = value
	return nil
}

// An Action is a function that the player can call between two ticks.
type Action struct {
	Name string
	Run  func() error
}

// Keys are the names of the pressed keys, separated by spaces: "left space". The names are left,
// right, up, down, space, and lower-case letters except q and k.
type Keys string

// Names returns the names of the pressed keys.
func (k Keys) Names() []string { return strings.Fields(string(k)) }

// Has reports whether the key with the given name is pressed.
func (k Keys) Has(name string) bool { return slices.Contains(k.Names(), name) }
