package main

import (
	"fmt"
	"strings"

	"github.com/stet-ecs/stet/examples/asteroids/game"
)

// These colours are parameters of the escape sequence that sets the style of text.
const white, grey, red, yellow, cyan = 0, 90, 91, 93, 96

// A cell is a character of the terminal.
type cell struct {
	rune
	colour int
}

// A screen draws a game on a terminal. The first line and the last line have text. A character of
// the field between them has 2 by 4 dots (Braille), so 80 by 24 characters have 160 by 88 dots.
type screen struct {
	width, height int
	cells         []cell
	lines         []string // The lines on the terminal.
}

// draw returns the text that shows a frame. It has only the lines that differ from the last frame.
func (s *screen) draw(width, height int, g *game.Game, messages ...string) string {
	var out strings.Builder
	if width, height = max(width, 1), max(height, 3); width != s.width || height != s.height {
		*s = screen{width, height, make([]cell, width*height), make([]string, height)}
		out.WriteString("\x1b[2J")
	}
	for i := range s.cells {
		s.cells[i] = cell{rune: ' '}
	}
	s.things(g)
	state := g.State.Get()
	s.text(1, 0, white, fmt.Sprintf("SCORE %-6d  HIGH %-6d  WAVE %-3d %s", state.Score, g.High.Get().Score, state.Wave, strings.Repeat(" ▲", int(state.Lives))))
	s.text(1, height-1, grey, "a d ←→ turn  w ↑ thrust  space fire  hold r rewind  123 save  456 load  q quit")
	for i, text := range messages {
		s.text((width-len(text))/2, (height-len(messages))/2+i, yellow, text)
	}
	for y := range s.lines {
		line, colour := fmt.Sprintf("\x1b[%d;1H", y+1), -1
		for _, c := range s.cells[y*width : (y+1)*width] {
			if c.colour != colour {
				line += fmt.Sprintf("\x1b[%dm", c.colour)
			}
			line, colour = line+string(c.rune), c.colour
		}
		if line != s.lines[y] {
			out.WriteString(line)
		}
		s.lines[y] = line
	}
	return out.String()
}

func (s *screen) text(x, y, colour int, text string) {
	for i, r := range []rune(text) {
		if x+i >= 0 && x+i < s.width && y >= 0 && y < s.height {
			s.cells[y*s.width+x+i] = cell{r, colour}
		}
	}
}

// things draws all entities.
func (s *screen) things(g *game.Game) {
	tick := int(g.World.Tick())
	for e, row := range g.Things.AllOptional() {
		at, ship, rock := g.Place(row), row.B, row.C
		switch {
		case rock != nil:
			radii := make([]float64, 12)
			for i := range radii {
				radii[i] = float64(rock.Radius() * (1 - float64(e.Index()*7>>(i%5)%4)/10))
			}
			// Every second rock rotates to the left.
			s.outline(at, white, tick/4*[]int{1, game.Headings - 1}[e.Index()%2], radii...)
		case ship != nil && ship.Shield/8%2 == 0: // A ship with a shield flickers.
			if ship.Thrust && tick/3%2 == 0 {
				s.outline(at, red, int(ship.Heading), 0, 0, 0, 2, 9, 2, 0, 0)
			}
			s.outline(at, cyan, int(ship.Heading), 6, 2.3, 2.2, 5, 2, 5, 2.2, 2.3)
		case row.D != nil:
			s.outline(at, yellow, 0, 0.5, 0.5, 0.5, 0.5)
		case row.E != nil:
			s.outline(at, red, 0, 0) // A mite.
		case ship == nil:
			s.outline(at, grey, 0, 0) // A spark.
		}
	}
}

// outline draws a closed polygon around a position. Its corners are at equal angles. The parameter
// radii has their distances from the position.
func (s *screen) outline(at game.Position, colour, heading int, radii ...float64) {
	scaleX, scaleY := float64(2*s.width)/game.Width, float64(4*(s.height-2))/game.Height
	corner := func(i int) (x, y float64) {
		i %= len(radii)
		d := game.Direction(uint8((heading + i*game.Headings/len(radii)) % game.Headings))
		return at.X + game.Width + float64(d.X*radii[i]), at.Y + game.Height + float64(d.Y*radii[i])
	}
	for i := range radii {
		x, y := corner(i)
		toX, toY := corner(i + 1)
		for step := range 24 {
			f := float64(step) / 24
			s.dot(int((x+float64((toX-x)*f))*scaleX), int((y+float64((toY-y)*f))*scaleY), colour)
		}
	}
}

// dot sets a dot of the field. A dot outside of the field appears on the other side.
func (s *screen) dot(x, y, colour int) {
	x, y = x%(2*s.width), y%(4*(s.height-2))
	c := &s.cells[(y/4+1)*s.width+x/2]
	bit := [4][2]rune{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}[y%4][x%2]
	*c = cell{max(c.rune, 0x2800) | bit, colour}
}
