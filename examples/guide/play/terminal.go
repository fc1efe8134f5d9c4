//go:build !js

package play

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/stet-ecs/stet/disk"
)

// Run plays a game in the terminal, or prints its first frames. It ends the process if the game
// fails.
func Run(p Program) {
	ticks := flag.Int("ticks", 0, "run `N` ticks, print a frame after each of them, and end")
	keys := flag.String("keys", "", "with -ticks: press `KEYS`, one in each tick: \"right*5 up space\"")
	values := make([]int, len(p.Params))
	for i, param := range p.Params {
		flag.IntVar(&values[i], param.Name, *param.Value, fmt.Sprintf("a number from %d to %d", param.Min, param.Max))
	}
	flag.Parse()
	var err error
	for i, param := range p.Params {
		err = errors.Join(err, param.set(values[i]))
	}
	if err == nil {
		err = p.run(*ticks, *keys)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run begins a game, and plays or prints it.
func (p Program) run(ticks int, keys string) error {
	script, err := parseKeys(keys)
	if err != nil {
		return err
	}
	g, err := p.New()
	if err != nil {
		return err
	}
	if p.Rate > 0 && ticks == 0 && term.IsTerminal(int(os.Stdin.Fd())) {
		err = p.play(g)
	} else {
		err = g.print(os.Stdout, cmp.Or(ticks, 3), script)
	}
	if g.Close != nil {
		err = errors.Join(err, g.Close())
	}
	return err
}

// parseKeys returns the keys of each tick. The word "left*3" stands for three ticks with the key
// left. The word "wait" stands for no key.
func parseKeys(text string) (script []string, err error) {
	for _, word := range strings.Fields(text) {
		key, times, repeats := strings.Cut(word, "*")
		n := 1
		if repeats {
			if n, err = strconv.Atoi(times); err != nil {
				return nil, fmt.Errorf("-keys %s: %w", word, err)
			}
		}
		for range n {
			script = append(script, strings.TrimPrefix(key, "wait"))
		}
	}
	return script, nil
}

// print runs ticks with the keys of a script, and prints a frame after each tick.
func (g Game) print(out io.Writer, ticks int, script []string) error {
	for i := range ticks {
		var keys string
		if i < len(script) {
			keys = script[i]
		}
		if acted, err := g.act(keys); err != nil {
			return err
		} else if acted {
			keys = ""
		}
		if err := g.Tick(Keys(keys)); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "tick %d\n%s\n", g.World.Tick(), g.Draw()); err != nil {
			return err
		}
	}
	return nil
}

// act runs the action of a digit. It returns false for other keys.
func (g Game) act(key string) (acted bool, err error) {
	n, err := strconv.Atoi(key)
	if err != nil || n < 1 || n > len(g.Actions) {
		return false, nil
	}
	return true, g.Actions[n-1].Run()
}

// play runs a game at a fixed rate, until the player presses q or k.
func (p Program) play(g Game) error {
	if err := openScreen(); err != nil {
		return err
	}
	defer closeScreen()
	keys, stop := make(chan string), make(chan os.Signal, 1)
	go readKeys(keys)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	l := loop{program: p, game: g, clock: clock{time.Second / time.Duration(p.Rate), time.Now()}}
	for frames := time.Tick(time.Second / 30); ; {
		select {
		case key := <-keys:
			switch key {
			case "q":
				return nil
			case "k":
				return kill()
			}
			l.press(key)
		case now := <-frames:
			if err := l.frame(now); err != nil {
				return err
			}
		case <-stop:
			return nil
		}
	}
}

// closeScreen makes the terminal usable for other programs.
var closeScreen = func() {}

// openScreen switches the terminal to a screen without scrolling, which reports each key at once.
func openScreen() error {
	stdin := int(os.Stdin.Fd())
	old, err := term.MakeRaw(stdin)
	if err != nil {
		return err
	}
	fmt.Print("\x1b[?1049h\x1b[?25l")
	closeScreen = func() {
		fmt.Print("\x1b[?25h\x1b[?1049l")
		_ = term.Restore(stdin, old)
	}
	return nil
}

// keyNames maps what a terminal sends to names of keys. Control-C is the key q.
var keyNames = strings.NewReplacer("\x1b[A", "up ", "\x1b[B", "down ", "\x1b[C", "right ", "\x1b[D", "left ", " ", "space ", "\x03", "q ")

// readKeys sends the names of the pressed keys. The end of the input is the key q.
func readKeys(pressed chan<- string) {
	for b := make([]byte, 256); ; {
		n, err := os.Stdin.Read(b)
		if err != nil {
			pressed <- "q"
			return
		}
		for _, key := range strings.Fields(keyNames.Replace(string(b[:n]))) {
			pressed <- strings.ToLower(key)
		}
	}
}

// Dir returns where a program keeps a store: a directory of the operating system, for which files
// is nil. In a browser, it is a new directory in memory.
func Dir(name string) (dir string, files disk.FS) { return name + ".store", nil }

// kill ends the process as kill -9 does: it saves and closes nothing.
func kill() error {
	closeScreen()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	return self.Kill()
}
