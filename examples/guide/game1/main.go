// Game1 is the first step of the game in the guide: a world with two entities.
package main

import (
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/examples/guide/play"
)

const width, height = 18, 12

type (
	Position struct{ X, Y int }
	Velocity struct{ X, Y int }
	Glyph    byte // The character on the screen.
)

func newGame() (play.Game, error) {
	world := ecs.NewWorld(ecs.Options{History: 600})
	positions := ecs.MustRegister[Position](world)
	velocities := ecs.MustRegister[Velocity](world)
	glyphs := ecs.MustRegister[Glyph](world)
	moving := ecs.NewQuery2(ecs.Write(positions), ecs.Read(velocities))
	visible := ecs.NewQuery2(ecs.Read(positions), ecs.Read(glyphs))

	tick := func(play.Keys) error {
		if world.Tick() == 0 {
			hero, coin := world.Create(), world.Create()
			positions.Set(hero, Position{2, 6})
			velocities.Set(hero, Velocity{1, 0})
			glyphs.Set(hero, '@')
			positions.Set(coin, Position{9, 6})
			glyphs.Set(coin, '$')
		}
		for _, row := range moving.All() {
			at, v := row.Get()
			at.X, at.Y = (at.X+v.X+width)%width, (at.Y+v.Y+height)%height
		}
		world.Commit()
		return nil
	}
	return play.Game{World: world, Tick: tick, Draw: func() string { return draw(visible) }}, nil
}

func draw(visible *ecs.Query2[Position, Glyph]) string {
	screen := []byte(strings.Repeat(strings.Repeat(". ", width-1)+".\n", height))
	for _, row := range visible.All() {
		at, glyph := row.Get()
		screen[2*(at.Y*width+at.X)] = byte(*glyph)
	}
	return string(screen)
}

func main() {
	play.Run(play.Program{Title: "Step 1", New: newGame})
}
