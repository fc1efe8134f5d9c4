package main

import (
	"fmt"
	"image"
	"image/color"
	"strings"
	"time"

	"github.com/hajimehoshi/ebiten/v2"
	"github.com/hajimehoshi/ebiten/v2/text/v2"
	"github.com/hajimehoshi/ebiten/v2/vector"
	"golang.org/x/image/font/basicfont"

	"github.com/stet-ecs/stet/examples/asteroids/game"
	"github.com/stet-ecs/stet/examples/asteroids/window/control"
)

var (
	dark   = color.RGBA{8, 10, 18, 255}
	shade  = color.RGBA{6, 8, 14, 200} // Darkens what is below a text.
	white  = color.RGBA{235, 240, 250, 255}
	grey   = color.RGBA{150, 158, 175, 255}
	faint  = color.RGBA{80, 88, 110, 255}
	red    = color.RGBA{235, 90, 80, 255}
	yellow = color.RGBA{250, 205, 90, 255}
	blue   = color.RGBA{90, 170, 250, 255}
	green  = color.RGBA{120, 210, 130, 255}
)

var font = text.NewGoXFace(basicfont.Face7x13)

// Draw draws the view, the status and the time bar. It is called once for each frame of the screen,
// which may be more often than Update.
func (w *window) Draw(screen *ebiten.Image) {
	screen.Fill(dark)
	v := &w.control.View
	f := w.field()
	sky := screen.SubImage(f.bounds()).(*ebiten.Image)
	f.stars(sky)
	if v.Playing {
		// ahead is the time since the last Update, as a fraction of a tick.
		f.ahead = min(float32(time.Since(w.updated).Seconds()*60), 1)
	}
	if v.Ghost != nil {
		x, y := f.at(v.Ghost.Place)
		f.outline(sky, x, y, v.Ghost.Heading, green)
	}
	f.sprites(sky, v.Sprites)
	for _, pose := range v.Future {
		x, y := f.at(pose.Place)
		vector.DrawFilledRect(screen, x-1, y-1, 2, 2, green, false)
	}
	status := fmt.Sprintf("SCORE %d   HIGH %d   WAVE %d   SHIPS %d", v.State.Score, v.High, v.State.Wave, v.State.Lives)
	w.write(screen, 12, 8, white, status)
	if free := w.width - 7*len(keyHelp) - 12; free > 12+14*len(status)+12 {
		w.small(screen, free, 12, grey, keyHelp)
	} else if !w.pointer.touched {
		w.small(screen, 12, 36, grey, keyHelp)
	}
	w.drawBar(screen)
	if w.pointer.touched {
		w.drawPads(screen)
	}
	for i, line := range w.lines() {
		width := len(line) * w.letter(len(line))
		x, y := (w.width-width)/2, w.height/4+i*32
		vector.DrawFilledRect(screen, float32(x-8), float32(y-3), float32(width+16), 32, shade, false)
		w.write(screen, x, y, yellow, line)
	}
}

const keyHelp = "R rewind   123 save   456 load   P replay   L link   F8 file"

// messages returns the lines in the middle of the screen.
func (w *window) messages() []string {
	c := w.control
	v := &c.View
	rewind, fire, steer := "Hold R to go back in time", "Space", "The arrows steer, the space bar fires"
	if w.pointer.touched {
		rewind, fire, steer = "Hold REWIND to go back in time", "FIRE", "Hold the buttons to steer and to fire"
	}
	over := v.State.Lives == 0 && v.State.Wait <= 1
	switch {
	case c.Message != "" && c.Waiting() && !c.Busy() && !over:
		return []string{c.Message, "Steer or fire to go on from here"}
	case c.Message != "":
		return []string{c.Message}
	case v.Watching:
		return []string{"The game is open elsewhere; you see what happens there", watchHelp}
	case c.Speed() > 0:
		return []string{fmt.Sprintf("<< %dx   %.1f s", c.Speed(), float64(v.Newest-v.Now)/60)}
	case v.Replaying:
		return []string{"Replay: steer or fire to end it"}
	case v.Now == 0:
		return []string{fire + " begins the game", steer, rewind}
	case over:
		return []string{"Game over", rewind, fire + " begins a new game"}
	case c.Waiting() && v.Now == v.Newest:
		return []string{steer, rewind}
	case c.Waiting():
		return []string{"Steer or fire to go on from here"}
	case v.State.Lives < 3 && v.State.Wait > 0:
		return []string{rewind}
	}
	return nil
}

// lines returns the messages, in lines that fit into the window.
func (w *window) lines() (all []string) {
	longest := max((w.width-32)/7, 10)
	for _, message := range w.messages() {
		message = strings.ToUpper(message[:1]) + message[1:]
		for len(message) > longest {
			end := max(strings.LastIndexByte(message[:longest], ' '), longest/2)
			all, message = append(all, message[:end]), strings.TrimSpace(message[end:])
		}
		all = append(all, message)
	}
	return all
}

// letter returns the width of a letter in a line of n letters. The letters are large if the line
// then fits into the window.
func (w *window) letter(n int) int {
	if n*14 > w.width-32 {
		return 7
	}
	return 14
}

// write writes a line of text, in large letters if it fits.
func (w *window) write(screen *ebiten.Image, x, y int, c color.Color, line string) {
	writeScaled(screen, x, y, float64(w.letter(len(line)))/7, c, line)
}

// small writes a line of text in small letters.
func (w *window) small(screen *ebiten.Image, x, y int, c color.Color, line string) {
	writeScaled(screen, x, y, 1, c, line)
}

func writeScaled(screen *ebiten.Image, x, y int, scale float64, c color.Color, line string) {
	op := &text.DrawOptions{}
	op.GeoM.Scale(scale, scale)
	op.GeoM.Translate(float64(max(x, 4)), float64(y))
	op.ColorScale.ScaleWithColor(c)
	text.Draw(screen, line, font, op)
}

// A field maps points of the world to the screen.
type field struct {
	x, y, scale float32
	ahead       float32 // The time since the last tick, as a fraction of a tick.
}

// field returns the largest field that fits between the status and the time bar.
func (w *window) field() field {
	top, bottom := 56, w.bar().top()-8
	scale := min(float32(w.width)/game.Width, float32(bottom-top)/game.Height)
	return field{x: (float32(w.width) - scale*game.Width) / 2, y: float32(top) + (float32(bottom-top)-scale*game.Height)/2, scale: scale}
}

// bounds returns the pixels of the field.
func (f field) bounds() image.Rectangle {
	return image.Rect(int(f.x), int(f.y), int(f.x+f.scale*game.Width)+1, int(f.y+f.scale*game.Height)+1)
}

// of returns the position of a sprite on the screen.
func (f field) of(s control.Sprite) (x, y float32) {
	x, y = f.at(s.Place)
	return x + float32(s.Velocity.X)*f.ahead*f.scale, y + float32(s.Velocity.Y)*f.ahead*f.scale
}

func (f field) at(p game.Position) (x, y float32) {
	return f.x + float32(p.X)*f.scale, f.y + float32(p.Y)*f.scale
}

// stars draws a sky that does not move, and the border of the world.
func (f field) stars(screen *ebiten.Image) {
	seed := uint32(1)
	next := func(n uint32) float32 {
		seed = seed*1664525 + 1013904223
		return float32((seed >> 8) % n)
	}
	for range 120 {
		x, y := f.x+next(game.Width)*f.scale, f.y+next(game.Height)*f.scale
		vector.DrawFilledRect(screen, x, y, 1, 1, faint, false)
	}
	vector.StrokeRect(screen, f.x, f.y, f.scale*game.Width, f.scale*game.Height, 1, faint, false)
}

// A batch draws many small squares in one call.
type batch struct {
	vertices []ebiten.Vertex
	indices  []uint16
}

var pixel = func() *ebiten.Image {
	i := ebiten.NewImage(3, 3)
	i.Fill(color.White)
	return i.SubImage(image.Rect(1, 1, 2, 2)).(*ebiten.Image)
}()

// add adds a square with the center x, y.
func (b *batch) add(screen *ebiten.Image, x, y, size float32, c color.RGBA) {
	if len(b.vertices)+4 > 1<<16 {
		b.draw(screen)
	}
	first := uint16(len(b.vertices))
	for _, corner := range [4][2]float32{{-1, -1}, {1, -1}, {-1, 1}, {1, 1}} {
		b.vertices = append(b.vertices, ebiten.Vertex{
			DstX: x + corner[0]*size/2, DstY: y + corner[1]*size/2, SrcX: 1, SrcY: 1,
			ColorR: float32(c.R) / 255, ColorG: float32(c.G) / 255, ColorB: float32(c.B) / 255, ColorA: 1,
		})
	}
	b.indices = append(b.indices, first, first+1, first+2, first+1, first+2, first+3)
}

// draw draws the squares and empties the batch.
func (b *batch) draw(screen *ebiten.Image) {
	screen.DrawTriangles(b.vertices, b.indices, pixel, nil)
	b.vertices, b.indices = b.vertices[:0], b.indices[:0]
}

var squares batch

// sprites draws the sprites: first the squares, then the lines.
func (f field) sprites(screen *ebiten.Image, all []control.Sprite) {
	for _, s := range all {
		x, y := f.of(s)
		switch s.Kind {
		case control.Spark:
			squares.add(screen, x, y, f.scale*0.5, sparkColors[s.Index%uint32(len(sparkColors))])
		case control.Bullet:
			squares.add(screen, x, y, f.scale*1.2, yellow)
		case control.Mite:
			c := red
			if s.Burning {
				c = white
			}
			squares.add(screen, x, y, f.scale*2, c)
		}
	}
	squares.draw(screen)
	for _, s := range all {
		x, y := f.of(s)
		switch s.Kind {
		case control.Rock:
			// A rock that leaves the field on one side comes in on the other side.
			for _, dx := range [3]float32{0, game.Width, -game.Width} {
				for _, dy := range [3]float32{0, game.Height, -game.Height} {
					f.rock(screen, x+dx*f.scale, y+dy*f.scale, float32(s.Size)*f.scale, s.Index)
				}
			}
		case control.Ship:
			f.ship(screen, x, y, s.Ship)
		}
	}
}

var sparkColors = []color.RGBA{yellow, {240, 150, 70, 255}, {250, 230, 180, 255}, red}

// rock draws a polygon whose corners have different distances from its center.
func (f field) rock(screen *ebiten.Image, x, y, radius float32, index uint32) {
	const corners = 11
	if !image.Rect(int(x-radius), int(y-radius), int(x+radius), int(y+radius)).Overlaps(screen.Bounds()) {
		return
	}
	var last [2]float32
	for i := range corners + 1 {
		d := game.Direction(uint8(i % corners * game.Headings / corners))
		r := radius * (0.82 + 0.18*float32((i%corners*7+int(index))%5)/4)
		next := [2]float32{x + float32(d.X)*r, y + float32(d.Y)*r}
		if i > 0 {
			vector.StrokeLine(screen, last[0], last[1], next[0], next[1], 2, white, true)
		}
		last = next
	}
}

// along returns a point near x, y. The point is some distance ahead in the direction of the
// heading, and some distance to the right.
func (f field) along(x, y float32, heading uint8, ahead, right float32) (float32, float32) {
	d := game.Direction(heading)
	return x + (float32(d.X)*ahead-float32(d.Y)*right)*f.scale, y + (float32(d.Y)*ahead+float32(d.X)*right)*f.scale
}

// outline draws the outline of a ship.
func (f field) outline(screen *ebiten.Image, x, y float32, heading uint8, c color.Color) {
	points := [4][2]float32{{5, 0}, {-3, -3}, {-3, 3}, {5, 0}}
	for i := range 3 {
		x0, y0 := f.along(x, y, heading, points[i][0], points[i][1])
		x1, y1 := f.along(x, y, heading, points[i+1][0], points[i+1][1])
		vector.StrokeLine(screen, x0, y0, x1, y1, 2, c, true)
	}
}

func (f field) ship(screen *ebiten.Image, x, y float32, ship game.Ship) {
	f.outline(screen, x, y, ship.Heading, blue)
	if ship.Shield > 0 {
		vector.StrokeCircle(screen, x, y, 7*f.scale, 1, grey, true)
	}
}

// A bar is the time bar. Each column of its rectangle stands for a tick. Above the rectangle is a
// thin line for each branch.
type bar struct {
	x, y, width, height int
	oldest, newest      uint64
	branches            []game.Branch
	rows                int // The maximum number of branches that fit.
}

// branchHeight is the distance between the lines of two branches, in pixels.
const branchHeight = 9

func (w *window) bar() bar {
	v := &w.control.View
	y := w.height - 40 - w.padHeight()
	rows := w.height / 120
	branches := v.Branches[max(0, len(v.Branches)-rows):]
	newest := v.Newest
	for _, b := range branches {
		newest = max(newest, b.To)
	}
	return bar{24, y, w.width - 48, 20, v.Oldest, newest, branches, rows}
}

// top returns the first row of pixels that the bar or its branches can use.
func (b bar) top() int { return b.y - 8 - branchHeight*b.rows }

// tickAt returns the tick at a column of the screen.
func (b bar) tickAt(x int) uint64 {
	x = min(max(x-b.x, 0), b.width)
	return b.oldest + (b.newest-b.oldest)*uint64(x)/uint64(b.width)
}

func (b bar) column(tick uint64) float32 {
	tick = max(tick, b.oldest)
	return float32(b.x) + float32(b.width)*float32(tick-b.oldest)/float32(max(b.newest-b.oldest, 1))
}

// row returns the y coordinate of the line of a branch.
func (b bar) row(branch int) float32 {
	return float32(b.y - 4 - branchHeight*(len(b.branches)-branch) + branchHeight/2)
}

// branchAt returns the branch whose line is at a point of the screen, or -1.
func (b bar) branchAt(x, y int) int {
	const near = 10 // A click up to this many pixels left or right of the line hits it.
	for i, branch := range b.branches {
		row := b.row(i)
		if float32(y) >= row-branchHeight/2 && float32(y) < row+branchHeight/2+1 &&
			float32(x) > b.column(branch.From)-near && float32(x) < b.column(branch.To)+near {
			return i
		}
	}
	return -1
}

// drawBar draws the past in blue, and the rest of the line in grey. Branches are green.
func (w *window) drawBar(screen *ebiten.Image) {
	b, v := w.bar(), &w.control.View
	x, y, height := b.column(v.Now), float32(b.y), float32(b.height)
	vector.DrawFilledRect(screen, float32(b.x), y, float32(b.width), height, color.RGBA{24, 28, 40, 255}, false)
	vector.DrawFilledRect(screen, float32(b.x), y, x-float32(b.x), height, blue, false)
	vector.DrawFilledRect(screen, x, y, b.column(v.Newest)-x, height, grey, false)
	pointed := b.branchAt(ebiten.CursorPosition())
	for i, branch := range b.branches {
		row, c := b.row(i), green
		if i == pointed {
			c = white
		}
		from, to := b.column(branch.From), b.column(branch.To)
		vector.StrokeLine(screen, from, y, from, row, 1, c, false)
		vector.StrokeLine(screen, from, row, to, row, 3, c, false)
		vector.DrawFilledRect(screen, to-3, row-3, 6, 6, c, false)
	}
	vector.DrawFilledRect(screen, x-2, y-5, 4, height+10, white, false)
	label := func(x float32, tick uint64, c color.Color) (right int) {
		text := fmt.Sprintf("%.1f s", float64(tick)/60)
		left := min(max(int(x)-7*len(text)/2, b.x), b.x+b.width-7*len(text))
		w.small(screen, left, b.y+b.height+4, c, text)
		return left + 7*len(text)
	}
	right := label(x, v.Now, white)
	if end := b.column(v.Newest); v.Now < v.Newest && end-40 > float32(right) {
		label(end, v.Newest, grey)
	}
}

func (w *window) drawPads(screen *ebiten.Image) {
	for i, pad := range pads {
		r := w.padAt(i).Inset(4)
		x, y, width, height := float32(r.Min.X), float32(r.Min.Y), float32(r.Dx()), float32(r.Dy())
		vector.DrawFilledRect(screen, x, y, width, height, color.RGBA{20, 24, 36, 140}, false)
		vector.StrokeRect(screen, x, y, width, height, 2, faint, false)
		w.small(screen, r.Min.X+(r.Dx()-7*len(pad.label))/2, r.Min.Y+r.Dy()/2-7, white, pad.label)
	}
}
