// Asteroids is the game in a terminal, with rewind. A player holds a key to go back in time, and
// continues from there. The game survives kill -9, has three slots, and can be replayed.
//
// In each frame, the game runs a tick with the buttons of the held keys, goes back by two ticks, or
// waits. A tick records its buttons in the store.
//
// Usage:
//
//	asteroids [-dir DIR]
//
// The keys are:
//
//	a d, arrows  turn the ship
//	w            thrust
//	space        fire
//	r            go back while held, up to 20 seconds; the next key continues from there
//	1 2 3        save the game in a slot
//	4 5 6        load the game from a slot
//	q            quit; the next run continues the game in DIR
//
// A terminal repeats a held key, but does not report its release. So a key counts as held for some
// ticks after each report.
//
// The exit code is 0, 1 after a failure, and 2 for wrong flags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/stet-ecs/stet/examples/asteroids/game"
	"github.com/stet-ecs/stet/persist"
)

func main() {
	dir := flag.String("dir", "asteroids.store", "keep the game in `DIR`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := play(ctx, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "asteroids:", err)
		os.Exit(1)
	}
}

// play plays the game in dir on the terminal, until the player quits or ctx ends.
func play(ctx context.Context, dir string) (err error) {
	stdin := int(os.Stdin.Fd())
	old, err := term.MakeRaw(stdin)
	if err != nil {
		return fmt.Errorf("the input is not a terminal: %w", err)
	}
	defer func() { _ = term.Restore(stdin, old) }()
	g, err := game.Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close(context.Background())) }()
	fmt.Print("\x1b[?1049h\x1b[?25l") // Switch to the alternate screen, and hide the cursor.
	defer fmt.Print("\x1b[m\x1b[?25h\x1b[?1049l")
	keys := make(chan rune, 100)
	go readKeys(keys)
	p := player{game: g, held: map[rune]int{}, waiting: 45}
	clock := time.Tick(time.Second / 60)
	for err == nil {
		select {
		case key := <-keys:
			if key == 'q' {
				return nil
			}
			err = p.press(ctx, key)
		case <-clock:
			err = p.frame()
			width, height, _ := term.GetSize(stdin)
			fmt.Print(p.screen.draw(width, height, g, p.messages()...))
		case <-ctx.Done():
			return nil
		}
	}
	return err
}

// readKeys sends the keys of the player. The end of the input and Control-C are the key q.
func readKeys(keys chan<- rune) {
	names := strings.NewReplacer("\x1b[A", "w", "\x1b[C", "d", "\x1b[D", "a", "\x03", "q")
	for b := make([]byte, 256); ; {
		n, err := os.Stdin.Read(b)
		if err != nil {
			keys <- 'q'
			return
		}
		for _, key := range names.Replace(string(b[:n])) {
			keys <- key
		}
	}
}

// buttons maps keys to buttons. ticks is how long a key counts as held after the terminal reports
// it.
var buttons = map[rune]struct {
	game.Buttons
	ticks int
}{'a': {game.Left, 4}, 'd': {game.Right, 4}, 'w': {game.Thrust, 12}, ' ': {game.Fire, 4}}

// A player turns keys into ticks.
type player struct {
	game      *game.Game
	screen    screen
	held      map[rune]int // For each key, the number of ticks for which it still counts as held.
	rewinding int          // The remaining frames of a rewind.
	waiting   int          // The remaining frames in which the game waits for a button.
	message   string       // What the last key did.
}

// press executes a key.
func (p *player) press(ctx context.Context, key rune) (err error) {
	p.message = ""
	switch {
	case buttons[key].ticks > 0:
		p.held[key], p.rewinding, p.waiting = buttons[key].ticks, 0, 0
	case key == 'r':
		// Wait longer than the half second after which a terminal repeats a held key.
		p.rewinding, p.waiting = 8, 45
	case '1' <= key && key <= '3':
		err = p.game.Save(ctx, int(key-'0'))
		p.message = fmt.Sprintf("saved slot %c", key)
	case '4' <= key && key <= '6':
		p.message, p.waiting = fmt.Sprintf("loaded slot %c", key-3), 45
		if err = p.game.Load(ctx, int(key-'3')); errors.Is(err, persist.ErrNotFound) {
			p.message, err = fmt.Sprintf("slot %c is empty", key-3), nil
		}
	}
	return err
}

// frame goes back by two ticks, waits, or runs a tick.
func (p *player) frame() error {
	switch {
	case p.rewinding > 0:
		p.rewinding--
		return p.game.Rewind(2)
	case p.waiting > 0:
		p.waiting--
		return nil
	}
	var all game.Buttons
	for key, ticks := range p.held {
		if ticks > 0 {
			all |= buttons[key].Buttons
			p.held[key]--
		}
	}
	return p.game.Step(all)
}

// messages returns the lines in the middle of the screen.
func (p *player) messages() (lines []string) {
	back := p.game.World.History().Newest() - p.game.World.Tick()
	switch {
	case p.message != "":
		return []string{p.message}
	case back > 0:
		return []string{fmt.Sprintf("<< %.1f s", float64(back)/60)}
	case p.game.State.Get().Lives > 0:
		return nil
	}
	for _, slot := range p.game.Store.Slots() {
		lines = append(lines, fmt.Sprintf("%s: %s", slot.Name, slot.Note))
	}
	return append(lines, "GAME OVER", "space: new game, r: rewind")
}
