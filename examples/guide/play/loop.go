//go:build !js

package play

import (
	"fmt"
	"strings"
	"time"
)

// A loop is the state of a game in the terminal.
type loop struct {
	program Program
	game    Game
	clock   clock
	held    heldKey
	message error // The error of the last action.
}

// press runs the action of a key, or holds the key.
func (l *loop) press(key string) {
	acted, err := l.game.act(key)
	if l.message = err; !acted {
		l.held.press(key, time.Now())
	}
}

// frame runs the ticks that are due, and draws the state after the last one.
func (l *loop) frame(now time.Time) error {
	for range l.clock.due(now) {
		if err := l.game.Tick(l.held.keys(now)); err != nil {
			return err
		}
	}
	l.show()
	return nil
}

// show draws the game, the keys and the message.
func (l *loop) show() {
	help := ""
	for i, action := range l.game.Actions {
		help += fmt.Sprintf("%d %s  ", i+1, action.Name)
	}
	text := fmt.Sprintf("%s, tick %d\n\n%s\n%sq quit  k kill -9\n", l.program.Title, l.game.World.Tick(), l.game.Draw(), help)
	if l.message != nil {
		text += l.message.Error()
	}
	fmt.Print("\x1b[H", strings.ReplaceAll(text, "\n", "\x1b[K\r\n"), "\x1b[J")
}

// maxDue is the largest number of ticks that run between two frames.
const maxDue = 5

// A clock divides time into ticks of equal length.
type clock struct {
	step time.Duration
	last time.Time // The end of the last tick.
}

// due returns how many ticks must run now, at most maxDue. More ticks are due after the program was
// suspended, or if it is too slow. These ticks are dropped, so the game does not run faster later.
func (c *clock) due(now time.Time) int {
	n := now.Sub(c.last) / c.step
	c.last = c.last.Add(n * c.step)
	return min(int(n), maxDue)
}

// A heldKey is the last pressed key. A terminal repeats a held key, but does not report its
// release. So a key counts as held until the next key, or until the next repetition is late.
type heldKey struct {
	name  string
	until time.Time
}

func (h *heldKey) press(name string, now time.Time) {
	pause := 600 * time.Millisecond
	if name == h.name && now.Before(h.until) {
		pause = 150 * time.Millisecond // The terminal repeats the key, at short intervals.
	}
	h.name, h.until = name, now.Add(pause)
}

func (h *heldKey) keys(now time.Time) Keys {
	if now.After(h.until) {
		return ""
	}
	return Keys(h.name)
}
