//go:build js

package play

import (
	"cmp"
	"errors"
	"fmt"
	"syscall/js"

	"github.com/stet-ecs/stet/disk"
)

// Run gives the functions of the game to the page, which calls them. Run does not return.
func Run(p Program) {
	b := &browser{program: p, values: map[string]int{}}
	for _, param := range p.Params {
		b.values[param.Name] = *param.Value
	}
	if err := b.restart(); err != nil {
		panic(err)
	}
	js.Global().Call("stetReady", map[string]any{
		"title":   p.Title,
		"rate":    cmp.Or(p.Rate, 6),
		"params":  function(func(arguments) any { return b.params() }),
		"set":     function(func(a arguments) any { return text(b.set(a.text(0), int(a.number(1)))) }),
		"restart": function(func(arguments) any { return text(b.restart()) }),
		"step":    function(func(a arguments) any { return text(b.step(Keys(a.text(0)))) }),
		"tick":    function(func(arguments) any { return b.game.World.Tick() }),
		"oldest":  function(func(arguments) any { return b.game.World.History().Oldest() }),
		"newest":  function(func(arguments) any { return b.game.World.History().Newest() }),
		"seek":    function(func(a arguments) any { return text(b.game.Seek(uint64(max(0, a.number(0))))) }),
		"view":    function(func(arguments) any { return b.view() }),
		"actions": function(func(arguments) any { return b.actions() }),
		"act":     function(func(a arguments) any { return text(b.act(a.text(0))) }),
	})
	select {}
}

// A browser is the game that the page runs.
type browser struct {
	program Program
	game    Game
	values  map[string]int // The values of the parameters for the next restart.
	err     error          // The error of the last tick.
}

// restart begins the game with the current values of the parameters.
func (b *browser) restart() (err error) {
	if b.game.Close != nil {
		err = b.game.Close()
	}
	for _, param := range b.program.Params {
		err = errors.Join(err, param.set(b.values[param.Name]))
	}
	if err != nil {
		return err
	}
	game, err := b.program.New()
	if err != nil {
		return err
	}
	if game.Seek == nil {
		game.Seek = func(tick uint64) error { return game.World.History().Seek(tick) }
	}
	b.game, b.err = game, nil
	return nil
}

// set checks the value of a parameter, and keeps it for the next restart.
func (b *browser) set(name string, value int) error {
	for _, param := range b.program.Params {
		if param.Name == name {
			check := param
			check.Value = new(int)
			if err := check.set(value); err != nil {
				return err
			}
			b.values[name] = value
			return nil
		}
	}
	return fmt.Errorf("there is no parameter %q", name)
}

func (b *browser) step(keys Keys) error {
	b.err = b.game.Tick(keys)
	return b.err
}

// view returns the state as text, with the error of the last tick.
func (b *browser) view() string {
	if b.err != nil {
		return b.game.Draw() + b.err.Error() + "\n"
	}
	return b.game.Draw()
}

func (b *browser) act(name string) error {
	for _, action := range b.game.Actions {
		if action.Name == name {
			return action.Run()
		}
	}
	return fmt.Errorf("there is no action %q", name)
}

func (b *browser) params() string {
	all := []any{}
	for _, p := range b.program.Params {
		all = append(all, map[string]any{"name": p.Name, "value": b.values[p.Name], "min": p.Min, "max": p.Max, "step": 1})
	}
	return toJSON(all)
}

func (b *browser) actions() string {
	all := []any{}
	for _, action := range b.game.Actions {
		all = append(all, action.Name)
	}
	return toJSON(all)
}

func toJSON(all []any) string { return js.Global().Get("JSON").Call("stringify", all).String() }

// arguments are the arguments of a call by the page.
type arguments []js.Value

// text returns an argument, or "" if it is not a string.
func (a arguments) text(i int) string {
	if i >= len(a) || a[i].Type() != js.TypeString {
		return ""
	}
	return a[i].String()
}

// number returns an argument, or 0 if it is not a number.
func (a arguments) number(i int) float64 {
	if i >= len(a) || a[i].Type() != js.TypeNumber {
		return 0
	}
	return a[i].Float()
}

// function returns a function that the page can call.
func function(f func(arguments) any) js.Func {
	return js.FuncOf(func(_ js.Value, args []js.Value) any { return f(args) })
}

// text returns the text of an error, or "".
func text(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// Dir returns where a program keeps a store: a new directory in memory.
func Dir(string) (dir string, files disk.FS) { return ".", disk.Memory() }
