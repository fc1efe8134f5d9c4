package main

import (
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/examples/asteroids/game"
	"github.com/stet-ecs/stet/internal/golden"
)

func start(t *testing.T, dir string) *player {
	t.Helper()
	g, err := game.Open(t.Context(), dir, nil)
	require.NoError(t, err)
	return &player{game: g, held: map[rune]int{}}
}

func (p *player) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, p.game.Close(t.Context()))
}

// play presses keys, one in each frame, and draws each frame. A dot is a frame without a key.
func (p *player) play(t *testing.T, terminal *terminal, keys string) {
	t.Helper()
	for _, key := range keys {
		if key != '.' {
			require.NoError(t, p.press(t.Context(), key))
		}
		require.NoError(t, p.frame())
		terminal.print(t, p.screen.draw(terminal.width, terminal.height, p.game, p.messages()...))
	}
}

// A terminal executes the escape sequences of a screen.
type terminal struct {
	width, height int
	cells         [][]rune
}

func newTerminal(width, height int) *terminal {
	m := &terminal{width, height, make([][]rune, height)}
	for y := range m.cells {
		m.cells[y] = []rune(strings.Repeat("?", width))
	}
	return m
}

var sequence = regexp.MustCompile(`^\x1b\[(\??\d*)(?:;(\d+))?([HJmhl])`)

func (m *terminal) print(t *testing.T, text string) {
	t.Helper()
	x, y := 0, 0
	for text != "" {
		if text[0] == '\x1b' {
			found := sequence.FindStringSubmatch(text)
			require.NotNil(t, found, "%.20q", text)
			text = text[len(found[0]):]
			switch found[3] {
			case "H":
				require.Equal(t, "1", found[2])
				x, y = 0, 0
				for _, digit := range found[1] {
					y = 10*y + int(digit-'0')
				}
				y--
			case "J":
				*m = *newTerminal(m.width, m.height)
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(text)
		text = text[n:]
		if r < ' ' || x >= m.width || y >= m.height {
			require.Fail(t, "wrong output", "%q at %d, %d", r, x, y)
		}
		m.cells[y][x] = r
		x++
	}
}

func (m *terminal) String() string {
	var b strings.Builder
	for _, line := range m.cells {
		b.WriteString(strings.TrimRight(string(line), " ") + "\n")
	}
	return b.String()
}

// The test plays some seconds, and compares frames with golden files.
func TestScreen_FramesEqualGoldenFiles(t *testing.T) {
	for _, size := range []struct {
		name          string
		width, height int
	}{{"small", 80, 24}, {"large", 130, 40}} {
		m := newTerminal(size.width, size.height)
		p := start(t, filepath.Join(t.TempDir(), "store"))
		p.play(t, m, strings.Repeat("a a w.", 40))
		golden.Check(t, "testdata/play-"+size.name+".txt", m.String())
		p.play(t, m, "1rrrr....")
		golden.Check(t, "testdata/rewind-"+size.name+".txt", m.String())
		p.game.State.Set(game.State{Score: 1234, Wave: 5, Wait: 50})
		p.play(t, m, "d")
		golden.Check(t, "testdata/over-"+size.name+".txt", m.String())
		p.stop(t)
	}
}

// A terminal shows the same frame if the screen prints only changed lines, and after a resize.
func TestScreen_PrintsChangedLines(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "store"))
	m := newTerminal(80, 24)
	check := func() {
		t.Helper()
		full := newTerminal(m.width, m.height)
		full.print(t, new(screen).draw(m.width, m.height, p.game, p.messages()...))
		require.Equal(t, full.String(), m.String())
		require.NotContains(t, m.String(), "?")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		p.play(t, m, string("adw r....."[random.IntN(10)]))
		check()
	}
	for _, size := range [][2]int{{100, 30}, {20, 5}, {1, 3}, {80, 24}} {
		m = newTerminal(size[0], size[1])
		p.play(t, m, "....w")
		check()
	}
	require.Empty(t, p.screen.draw(80, 24, p.game, p.messages()...), "nothing has changed")
	require.NotPanics(t, func() { p.screen.draw(0, 0, p.game) }, "the size of the terminal is unknown")
	p.stop(t)
}

func (p *player) ship(t *testing.T) game.Ship {
	t.Helper()
	require.Equal(t, 1, p.game.Ship.Len())
	return p.game.Ship.Values()[0]
}

func TestPlayer_HoldsKeys(t *testing.T) {
	p, m := start(t, filepath.Join(t.TempDir(), "store")), newTerminal(80, 24)
	p.play(t, m, ".")
	heading := p.ship(t).Heading
	p.play(t, m, "d......")
	require.Equal(t, heading+4, p.ship(t).Heading, "a key counts as held for some ticks")
	p.play(t, m, "d.d.d.d......")
	require.Equal(t, heading+4+10, p.ship(t).Heading, "a repeated key is held")
	p.play(t, m, "a.......")
	require.Equal(t, heading+10, p.ship(t).Heading)
	p.play(t, m, "w...........")
	require.True(t, p.ship(t).Thrust)
	p.play(t, m, ".")
	require.False(t, p.ship(t).Thrust)
	p.play(t, m, " ...")
	require.Equal(t, 1, p.game.Bullet.Len())
	p.stop(t)
}

// The rewind goes on while the player holds the key r. Then the game waits for the next key, and
// continues.
func TestPlayer_HoldsRewind(t *testing.T) {
	p, m := start(t, filepath.Join(t.TempDir(), "store")), newTerminal(80, 24)
	p.play(t, m, strings.Repeat(".", 100))
	digest := p.game.World.Digest()
	p.play(t, m, strings.Repeat("a..", 100))
	tick := p.game.World.Tick()
	p.play(t, m, "r"+strings.Repeat(".", 30)) // The terminal does not repeat the key yet.
	require.Equal(t, tick-16, p.game.World.Tick())
	p.play(t, m, strings.Repeat("r.", 10)+strings.Repeat(".", 20))
	require.Equal(t, tick-16-2*26, p.game.World.Tick())
	require.Contains(t, m.String(), "<< 1.1 s")
	p.play(t, m, strings.Repeat("r", 200))
	require.Equal(t, uint64(1), p.game.World.Tick(), "the first tick")
	require.NoError(t, p.game.World.History().Seek(100))
	require.Equal(t, digest, p.game.World.Digest())
	p.play(t, m, "d")
	require.Equal(t, uint64(101), p.game.World.Tick(), "a button ends the wait")
	require.NotContains(t, m.String(), "<<")
	require.Equal(t, uint64(101), p.game.World.History().Newest(), "the undone ticks are on another branch")
	p.play(t, m, "r"+strings.Repeat(".", 8+45-1+3))
	require.Equal(t, uint64(101-16+3), p.game.World.Tick(), "the wait ends")
	p.stop(t)
}

func TestPlayer_SavesAndLoadsSlots(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	p, m := start(t, dir), newTerminal(80, 24)
	p.play(t, m, strings.Repeat("a..", 30)+"2")
	require.Contains(t, m.String(), "saved slot 2")
	// The last frame saved the slot, and then ran one more tick.
	tick := p.game.World.Tick() - 1
	p.play(t, m, strings.Repeat("d..", 30))
	require.NotContains(t, m.String(), "slot")
	p.play(t, m, "4")
	require.Contains(t, m.String(), "slot 1 is empty")
	p.stop(t)
	p = start(t, dir)
	p.play(t, m, "5")
	require.Equal(t, tick, p.game.World.Tick())
	require.Contains(t, m.String(), "loaded slot 2")
	p.play(t, m, "x")
	require.Equal(t, tick, p.game.World.Tick(), "the game waits for a button")
	p.play(t, m, "w")
	require.Equal(t, tick+1, p.game.World.Tick())
	p.stop(t)
}
