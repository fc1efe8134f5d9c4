package main

import (
	"fmt"
	"image/color"

	"github.com/hajimehoshi/ebiten/v2"
	"github.com/hajimehoshi/ebiten/v2/text/v2"
	"github.com/hajimehoshi/ebiten/v2/vector"
	"golang.org/x/image/font/basicfont"

	"github.com/stet-ecs/stet/examples/asteroids/game"
)

var (
	dark   = color.RGBA{8, 10, 18, 255}
	white  = color.RGBA{235, 240, 250, 255}
	grey   = color.RGBA{110, 118, 135, 255}
	red    = color.RGBA{235, 90, 80, 255}
	yellow = color.RGBA{250, 205, 90, 255}
	blue   = color.RGBA{90, 170, 250, 255}
)

var font = text.NewGoXFace(basicfont.Face7x13)

// Draw draws the world, the status and the time bar.
func (w *window) Draw(screen *ebiten.Image) {
	screen.Fill(dark)
	f := w.field()
	for _, row := range w.control.Game.Things.AllOptional() {
		f.thing(screen, row)
	}
	g := w.control.Game
	state := g.State.Get()
	w.write(screen, 12, 8, white, fmt.Sprintf("SCORE %d   HIGH %d   WAVE %d   SHIPS %d", state.Score, g.High.Get().Score, state.Wave, state.Lives))
	w.drawBar(screen)
	if w.pointer.touched {
		w.drawPads(screen)
	}
	for i, line := range w.messages() {
		w.write(screen, (w.width-len(line)*w.letter(len(line)))/2, w.height/2-60+i*32, yellow, line)
	}
}

// messages returns the lines in the middle of the screen.
func (w *window) messages() []string {
	c := w.control
	_, now, newest := c.Bar()
	state := c.Game.State.Get()
	switch {
	case c.Message != "":
		return []string{c.Message}
	case c.Speed() > 0:
		return []string{fmt.Sprintf("<< %dx   %.1f s", c.Speed(), float64(newest-now)/60)}
	case now > 0 && state.Lives == 0 && state.Wait == 0:
		return []string{"GAME OVER", "HOLD R TO GO BACK IN TIME", "FIRE FOR A NEW GAME"}
	case c.Waiting() && now == newest:
		return []string{"ARROWS STEER, SPACE FIRES", "HOLD R TO GO BACK IN TIME"}
	case c.Waiting():
		return []string{"STEER OR FIRE TO GO ON FROM HERE"}
	}
	return nil
}

// letter returns the width of a letter, so that a line of n letters fits into the window.
func (w *window) letter(n int) int {
	if n*14 > w.width-16 {
		return 7
	}
	return 14
}

// write writes a line of text.
func (w *window) write(screen *ebiten.Image, x, y int, c color.Color, line string) {
	op := &text.DrawOptions{}
	scale := float64(w.letter(len(line))) / 7
	op.GeoM.Scale(scale, scale)
	op.GeoM.Translate(float64(max(x, 4)), float64(y))
	op.ColorScale.ScaleWithColor(c)
	text.Draw(screen, line, font, op)
}

// A field maps points of the world to the screen.
type field struct{ x, y, scale float32 }

// field returns the largest field that fits between the status and the time bar.
func (w *window) field() field {
	top, bottom := 44, w.bar().y-16
	scale := min(float32(w.width)/game.Width, float32(bottom-top)/game.Height)
	return field{(float32(w.width) - scale*game.Width) / 2, float32(top) + (float32(bottom-top)-scale*game.Height)/2, scale}
}

// thing draws an entity.
func (f field) thing(screen *ebiten.Image, row game.Thing) {
	at, ship, rock, bullet := row.Get()
	x, y := f.x+float32(at.X)*f.scale, f.y+float32(at.Y)*f.scale
	switch {
	case ship != nil:
		f.ship(screen, x, y, ship)
	case rock != nil:
		f.rock(screen, x, y, rock)
	case bullet != nil:
		vector.DrawFilledCircle(screen, x, y, f.scale*0.7, yellow, true)
	default:
		vector.DrawFilledRect(screen, x, y, f.scale*0.5, f.scale*0.5, grey, false)
	}
}

// rock draws a polygon whose corners have different distances from its center.
func (f field) rock(screen *ebiten.Image, x, y float32, rock *game.Rock) {
	const corners = 11
	radius := float32(rock.Radius()) * f.scale
	var last [2]float32
	for i := range corners + 1 {
		d := game.Direction(uint8(i % corners * game.Headings / corners))
		r := radius * (0.82 + 0.18*float32((i%corners*7)%5)/4)
		next := [2]float32{x + float32(d.X)*r, y + float32(d.Y)*r}
		if i > 0 {
			vector.StrokeLine(screen, last[0], last[1], next[0], next[1], 2, white, true)
		}
		last = next
	}
}

func (f field) ship(screen *ebiten.Image, x, y float32, ship *game.Ship) {
	d := game.Direction(ship.Heading)
	point := func(along, across float32) [2]float32 {
		return [2]float32{x + (float32(d.X)*along-float32(d.Y)*across)*f.scale, y + (float32(d.Y)*along+float32(d.X)*across)*f.scale}
	}
	line := func(a, b [2]float32, c color.Color) { vector.StrokeLine(screen, a[0], a[1], b[0], b[1], 2, c, true) }
	bow, left, right := point(5, 0), point(-3, -3), point(-3, 3)
	line(bow, left, blue)
	line(bow, right, blue)
	line(left, right, blue)
	if ship.Thrust {
		line(point(-3, -1.5), point(-6, 0), red)
		line(point(-3, 1.5), point(-6, 0), red)
	}
	if ship.Shield > 0 {
		vector.StrokeCircle(screen, x, y, 7*f.scale, 1, grey, true)
	}
}

// A bar is the time bar: a rectangle with a place for each tick that the player can go to.
type bar struct {
	x, y, width, height int
	oldest, newest      uint64
}

func (w *window) bar() bar {
	oldest, _, newest := w.control.Bar()
	y := w.height - 40
	if w.pointer.touched {
		y -= w.padSize()
	}
	return bar{24, y, w.width - 48, 20, oldest, newest}
}

// tickAt returns the tick at a column of the screen.
func (b bar) tickAt(x int) uint64 {
	x = min(max(x-b.x, 0), b.width)
	return b.oldest + (b.newest-b.oldest)*uint64(x)/uint64(b.width)
}

func (b bar) column(tick uint64) float32 {
	return float32(b.x) + float32(b.width)*float32(tick-b.oldest)/float32(max(b.newest-b.oldest, 1))
}

// drawBar draws the past in blue, and the future that a rewind has left in grey.
func (w *window) drawBar(screen *ebiten.Image) {
	b := w.bar()
	_, now, newest := w.control.Bar()
	x, y, height := b.column(now), float32(b.y), float32(b.height)
	vector.DrawFilledRect(screen, float32(b.x), y, x-float32(b.x), height, blue, false)
	vector.DrawFilledRect(screen, x, y, float32(b.x+b.width)-x, height, grey, false)
	vector.DrawFilledRect(screen, x-2, y-5, 4, height+10, white, false)
	w.write(screen, b.x, b.y-34, grey, fmt.Sprintf("%.1f s", float64(now)/60))
	if now < newest {
		label := fmt.Sprintf("%.1f s", float64(newest)/60)
		w.write(screen, b.x+b.width-len(label)*14, b.y-34, grey, label)
	}
}

func (w *window) drawPads(screen *ebiten.Image) {
	width, height := w.width/len(pads), w.padSize()
	for i, pad := range pads {
		x, y := i*width, w.height-height
		vector.StrokeRect(screen, float32(x+6), float32(y+6), float32(width-12), float32(height-12), 2, grey, false)
		w.write(screen, x+width/2-7, y+height/2-13, white, pad.label)
	}
}
