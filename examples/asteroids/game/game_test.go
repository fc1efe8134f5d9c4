package game

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// A bot returns the buttons of a player. It aims at the nearest rock or mite, fires at a near
// target, and sometimes thrusts. Equal seeds and worlds give equal buttons.
type bot struct{ random *rand.Rand }

func newBot(t testing.TB, seed uint64) bot {
	t.Logf("seed %d", seed)
	return bot{rand.New(rand.NewPCG(seed, 0))}
}

func (b bot) buttons(g *Game) (all Buttons) {
	if b.random.IntN(30) == 0 {
		all |= Thrust
	}
	if g.Ship.Len() == 0 {
		if g.Over() {
			all |= Fire
		}
		return all
	}
	// Get only reads the row. A loop over the query Ships would mark it as changed.
	at, _ := g.Position.Get(g.Ship.Entities()[0])
	ship := g.Ship.Values()[0]
	target, nearest := Position{}, Width
	for _, rock := range g.Rocks.All() {
		if d := Distance(at, *rock.A) - rock.C.Radius(); d < nearest {
			target, nearest = rock.A.plus(*rock.B, d/2.5), d
		}
	}
	for _, mite := range g.Mites.All() {
		if d := Distance(at, *mite.A); d < nearest {
			target, nearest = mite.A.plus(*mite.B, d/2.5), d
		}
	}
	best, heading := Width, ship.Heading
	for h := range uint8(Headings) {
		if d := Distance(at.plus(Direction(h), nearest), target); d < best {
			best, heading = d, h
		}
	}
	switch turn := (heading + Headings - ship.Heading) % Headings; {
	case turn == 0:
	case turn < Headings/2:
		all |= Right
	default:
		all |= Left
	}
	if nearest < 120 && b.random.IntN(4) > 0 {
		all |= Fire
	}
	return all
}

func open(t *testing.T, dir string) *Game {
	t.Helper()
	g, err := Open(t.Context(), dir, nil)
	require.NoError(t, err)
	return g
}

// play runs n ticks of a game with a store, and returns their buttons.
func (b bot) play(t *testing.T, g *Game, n int) (all []Buttons) {
	t.Helper()
	for range n {
		all = append(all, b.buttons(g))
		require.NoError(t, g.Step(all[len(all)-1]))
	}
	return all
}

// A random player plays many games. Each tick follows the rules.
func TestGame_RandomPlayFollowsRules(t *testing.T) {
	g, b := New(), newBot(t, rand.Uint64())
	last, games, crossed := State{Lives: 3}, 1, 0
	sides := map[ecs.Entity]bool{} // True if the entity was in the right half at the last tick.
	for i := range 25_000 {
		input := b.buttons(g)
		if i > 15_000 {
			// With random buttons, the player loses the ships and begins new games.
			input = Buttons(b.random.IntN(16))
		}
		g.Systems.Step(input)
		g.World.Commit()
		s := g.State.Get()
		if s.Lives > last.Lives {
			require.Equal(t, int32(0), last.Lives, "a new game begins only after the last ship")
			require.Equal(t, State{Lives: 3, Wave: 1}, s)
			games, last = games+1, s
		}
		require.LessOrEqual(t, last.Lives-s.Lives, int32(1))
		require.LessOrEqual(t, s.Wave-last.Wave, int32(1))
		require.GreaterOrEqual(t, s.Score, last.Score)
		require.GreaterOrEqual(t, g.High.Get().Score, s.Score)
		require.Positive(t, g.Rocks.Count(), "a wave begins when no rock is left")
		require.LessOrEqual(t, g.Ships.Count(), 1)
		require.Equal(t, g.World.Len(), g.Rock.Len()+g.Ship.Len()+g.Bullet.Len()+g.Mite.Len()+g.Spark.Len(), "each entity is of one kind")
		for e, row := range g.Moving.All() {
			p := *row.A
			require.True(t, p.X >= 0 && p.X < Width && p.Y >= 0 && p.Y < Height, "%v is outside", p)
			if right, known := sides[e]; known && right != (p.X > Width/2) && math.Abs(p.X-Width/2) > Width/4 {
				crossed++
			}
			sides[e] = p.X > Width/2
		}
		last = s
	}
	require.Greater(t, games, 1)
	require.Positive(t, crossed, "no entity left the world on one side")
	require.Greater(t, g.High.Get().Score, int32(1000))
}

// emptyGame returns a game after its first tick, without rocks and ships. State.Wait prevents a new
// ship.
func emptyGame() *Game {
	g := New()
	g.Systems.Step(0)
	g.World.Clear()
	g.State.Mut().Wait = 1000
	g.World.Commit()
	return g
}

// sizes returns the numbers of rocks of the sizes 1, 2 and 3.
func (g *Game) sizes() (n [3]int) {
	for _, row := range g.Rocks.All() {
		n[row.C.Size-1]++
	}
	return n
}

func TestMove_WrapsAround(t *testing.T) {
	g := emptyGame()
	for _, c := range []struct{ from, want Position }{
		{Position{Width - 1, 7}, Position{1, 7}},
		{Position{7, Height - 1}, Position{9, 1}},
		{Position{0.5, 0.5}, Position{2.5, 0.5}},
	} {
		v := Velocity{X: 2}
		if c.want.Y != c.from.Y {
			v.Y = 2
		}
		e := g.NewRock.Create(c.from, v, Rock{3})
		back := g.NewRock.Create(c.want, Velocity{-v.X, -v.Y}, Rock{3})
		g.Systems.Step(0)
		g.World.Commit()
		p, _ := g.Position.Get(e)
		require.Equal(t, c.want, p)
		p, _ = g.Position.Get(back)
		require.Equal(t, c.from, p)
	}
	tiny := wrap(-1e-300, Width)
	require.True(t, tiny >= 0 && tiny < Width)
	require.Equal(t, 4.0, Distance(Position{Width - 1, 0}, Position{3, 0}))
	require.Equal(t, 4.0, Distance(Position{0, 3}, Position{0, Height - 1}))
}

func TestHit_SplitsRocks(t *testing.T) {
	for _, c := range []struct {
		bullets int
		size    uint8
		want    [3]int
		score   int32
		left    int // The number of bullets that are left.
	}{
		{1, 3, [3]int{0, 2, 0}, 20, 0},
		{1, 2, [3]int{2, 0, 0}, 50, 0},
		{2, 3, [3]int{2, 1, 0}, 70, 0},  // The second bullet hits a piece of the first rock.
		{7, 3, [3]int{0, 0, 0}, 520, 0}, // Seven hits destroy a rock with all its pieces.
		{9, 3, [3]int{0, 0, 0}, 520, 2},
		{0, 3, [3]int{0, 0, 1}, 0, 0},
	} {
		g := emptyGame()
		g.NewRock.Create(Position{50, 50}, Velocity{}, Rock{3})
		g.NewRock.Create(Position{150, 50}, Velocity{}, Rock{3}) // Too far away for the bullets.
		if c.size != 3 {
			first, _, _ := g.Rocks.First()
			g.Rock.Set(first, Rock{c.size})
		}
		for range c.bullets {
			g.NewBullet.Create(Position{51, 50}, Velocity{}, Bullet{}, Life{9})
		}
		g.Systems.Step(0)
		c.want[2]++
		require.Equal(t, c.want, g.sizes(), "%+v", c)
		require.Equal(t, c.score, g.State.Get().Score, "%+v", c)
		require.Equal(t, c.score, g.High.Get().Score, "%+v", c)
		require.Equal(t, c.left, g.Bullet.Len(), "%+v", c)
	}
}

func TestHit_LastRockBeginsWave(t *testing.T) {
	g := emptyGame()
	g.NewRock.Create(Position{50, 50}, Velocity{}, Rock{1})
	g.NewBullet.Create(Position{50, 50}, Velocity{}, Bullet{}, Life{9})
	ship := Position{10, 10}
	g.NewShip.Create(ship, Velocity{}, Ship{Shield: 9})
	g.Systems.Step(0)
	require.Equal(t, int32(2), g.State.Get().Wave)
	require.Equal(t, [3]int{0, 0, 4}, g.sizes())
	for _, row := range g.Rocks.All() {
		require.GreaterOrEqual(t, Distance(ship, *row.A), farAway)
	}
}

func TestCrash_UntilGameOver(t *testing.T) {
	g := emptyGame()
	g.NewRock.Create(Position{9, 9}, Velocity{}, Rock{1}) // The rock keeps the wave from ending.
	for lives := int32(2); lives >= 0; lives-- {
		g.State.Mut().Wait = 1
		g.Systems.Step(Fire)
		require.Zero(t, g.Ships.Count(), "the ship comes when the wait is over")
		g.World.Commit()
		g.Systems.Step(Fire)
		require.Equal(t, 1, g.Ships.Count())
		g.World.Commit()
		rock := g.NewRock.Create(Position{Width / 2, Height/2 + 5}, Velocity{}, Rock{2})
		for range shieldTime {
			g.Systems.Step(0)
			g.World.Commit()
		}
		require.Equal(t, 1, g.Ships.Count(), "a shield protects a new ship")
		require.True(t, g.World.Alive(rock))
		g.Systems.Step(0)
		require.Zero(t, g.Ships.Count())
		require.False(t, g.World.Alive(rock))
		require.Equal(t, State{Lives: lives, Wave: 1, Wait: shipDelay - 1}, g.State.Get())
		g.World.Commit()
	}
	for range 2 * shipDelay { // The player holds Fire.
		g.Systems.Step(Fire)
		g.World.Commit()
		require.Zero(t, g.State.Get().Lives)
		require.False(t, g.Over())
	}
	g.Systems.Step(Left)
	g.World.Commit()
	require.True(t, g.Over())
	g.Systems.Step(Fire)
	require.Equal(t, State{Lives: 3, Wave: 1}, g.State.Get())
	require.Equal(t, [3]int{0, 0, 3}, g.sizes())
}

func TestSteer_TurnsAndThrusts(t *testing.T) {
	g := emptyGame()
	e := g.NewShip.Create(Position{}, Velocity{}, Ship{})
	// The rock keeps the wave from ending.
	g.NewRock.Create(Position{Width / 2, Height / 2}, Velocity{}, Rock{1})
	step := func(b Buttons) (Ship, Velocity) {
		g.Systems.Step(b)
		g.World.Commit()
		s, _ := g.Ship.Get(e)
		v, _ := g.Velocity.Get(e)
		return s, v
	}
	s, _ := step(Left)
	require.Equal(t, uint8(Headings-1), s.Heading)
	step(Right)
	for range Headings / 4 {
		s, _ = step(Right)
	}
	require.Equal(t, uint8(Headings/4), s.Heading)
	s, v := step(Thrust)
	require.True(t, s.Thrust)
	require.InDelta(t, 0, v.X, 1e-9)
	require.Positive(t, v.Y, "a quarter to the right of 0 is down")
	s, slower := step(0)
	require.False(t, s.Thrust)
	require.Less(t, slower.Y, v.Y)
	for range cooldown + 1 {
		step(Fire)
	}
	require.Equal(t, 2, g.Bullet.Len(), "the gun has a cooldown")
	for range bulletLife {
		step(0)
	}
	require.Zero(t, g.Bullet.Len())
	d := Direction(Headings / 8)
	require.InDelta(t, math.Sqrt2/2, d.X, 1e-12)
	require.InDelta(t, math.Sqrt2/2, d.Y, 1e-12)
}

func TestGame_Deterministic(t *testing.T) {
	a, b, seed := New(), New(), rand.Uint64()
	player := newBot(t, seed)
	for range 5000 {
		input := player.buttons(a)
		for _, g := range []*Game{a, b} {
			g.Systems.Step(input)
			g.World.Commit()
		}
	}
	require.Equal(t, a.World.Digest(), b.World.Digest())

	test, err := b.Systems.SyncTest(4)
	require.NoError(t, err)
	test.Shuffle(seed)
	for range 500 {
		require.NoError(t, test.Step(player.buttons(b)))
	}
}

// After a rewind, the same buttons lead to the same state, and other buttons lead to another state
// on a new branch.
func TestRewind_ContinuesOnNewBranch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	g, b := open(t, dir), newBot(t, rand.Uint64())
	b.play(t, g, 300)
	start, state := g.World.Digest(), g.State.Get()
	require.NoError(t, g.Rewind(1_000_000), "as far as possible")
	require.Equal(t, uint64(1), g.World.Tick())
	require.NoError(t, g.World.History().Seek(300))
	buttons := b.play(t, g, 900)
	end, high := g.World.Digest(), g.High.Get()
	require.Greater(t, high.Score, state.Score)
	for range 300 {
		require.NoError(t, g.Rewind(3))
	}
	require.Equal(t, uint64(300), g.World.Tick())
	require.Equal(t, start, g.World.Digest())
	require.Equal(t, state, g.State.Get())
	require.Equal(t, high, g.High.Get(), "a rewind does not change the high score")
	for _, input := range buttons {
		require.NoError(t, g.Step(input))
	}
	require.Equal(t, end, g.World.Digest())

	require.NoError(t, g.Rewind(900))
	for range 1000 {
		require.NoError(t, g.Step(Left))
	}
	require.NotEqual(t, end, g.World.Digest())
	branch := g.World.Digest()
	require.NoError(t, g.Rewind(1_000_000), "as far as possible")
	require.Equal(t, uint64(1300-history), g.World.Tick())
	require.NoError(t, g.Store.Goto(t.Context(), "@latest"))
	require.Equal(t, branch, g.World.Digest())
	require.NoError(t, g.Close(t.Context()))

	// After a restart, the history has the ticks of the previous run.
	g = open(t, dir)
	require.Equal(t, branch, g.World.Digest())
	require.Equal(t, high, g.High.Get())
	require.NoError(t, g.Rewind(1))
	require.Equal(t, uint64(1299), g.World.Tick())
	require.NoError(t, g.Close(t.Context()))
}

// If the player quits after a rewind, the high score remains, although its tick was undone.
func TestClose_AfterRewind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	g, b := open(t, dir), newBot(t, rand.Uint64())
	b.play(t, g, 1000)
	high := g.High.Get()
	require.Positive(t, high.Score)
	require.NoError(t, g.Rewind(950))
	require.NoError(t, g.Close(t.Context()))
	g = open(t, dir)
	require.True(t, g.Store.Report().Clean)
	require.Equal(t, uint64(50), g.World.Tick())
	require.Equal(t, high, g.High.Get())
	require.NoError(t, g.Close(t.Context()))
}

func TestLoad_KeepsHighScore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	g, b := open(t, dir), newBot(t, rand.Uint64())
	digests, states := map[int]ecs.Digest{}, map[int]State{}
	for slot := 1; slot <= 3; slot++ {
		b.play(t, g, 1000)
		require.NoError(t, g.Save(t.Context(), slot))
		digests[slot], states[slot] = g.World.Digest(), g.State.Get()
	}
	b.play(t, g, 1000)
	high := g.High.Get()
	require.Greater(t, high.Score, states[3].Score)
	require.ErrorIs(t, g.Load(t.Context(), 4), persist.ErrNotFound)
	for _, slot := range []int{2, 1, 3, 1} {
		require.NoError(t, g.Load(t.Context(), slot))
		require.Equal(t, digests[slot], g.World.Digest())
		require.Equal(t, states[slot], g.State.Get())
		require.Equal(t, high, g.High.Get())
		b.play(t, g, 10)
	}
	require.NoError(t, g.Save(t.Context(), 2))
	replaced, state := g.World.Digest(), g.State.Get()
	require.NoError(t, g.Close(t.Context()))

	g = open(t, dir)
	require.Equal(t, high, g.High.Get())
	notes := map[string]string{}
	for _, slot := range g.Store.Slots() {
		notes[slot.Name] = slot.Note
	}
	require.Equal(t, map[string]string{
		"slot 1": fmt.Sprintf("score %d, wave %d", states[1].Score, states[1].Wave),
		"slot 2": fmt.Sprintf("score %d, wave %d", state.Score, state.Wave),
		"slot 3": fmt.Sprintf("score %d, wave %d", states[3].Score, states[3].Wave),
	}, notes)
	require.NoError(t, g.Load(t.Context(), 2))
	require.Equal(t, replaced, g.World.Digest())
	require.Equal(t, high, g.High.Get())
	require.NoError(t, g.Close(t.Context()))
}

// replay runs the recorded buttons of a store again. It returns the first tick that differs from
// the record, or 0.
func replay(t *testing.T, dir string, g *Game) (differs uint64) {
	t.Helper()
	step := func(_ *ecs.World, _ uint64, inputs []inspect.Input) error {
		g.Systems.Step(Buttons(inputs[0].Data[0]))
		return nil
	}
	p, err := inspect.OpenPlayer(t.Context(), dir, g.World, inspect.PlayerOptions{Step: step})
	require.NoError(t, err)
	defer p.Close()
	for err == nil {
		if tick, _, differs := p.Diverged(); differs {
			return tick
		}
		err = p.Step(t.Context())
	}
	require.ErrorIs(t, err, io.EOF)
	return 0
}

// A game with rewinds, loads and several runs is played again from the journal.
func TestReplay_EqualsRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	b := newBot(t, rand.Uint64())
	for range 3 {
		g := open(t, dir)
		b.play(t, g, 300)
		require.NoError(t, g.Save(t.Context(), 1))
		b.play(t, g, 300)
		require.NoError(t, g.Rewind(100))
		b.play(t, g, 300)
		require.NoError(t, g.Load(t.Context(), 1))
		b.play(t, g, 100)
		require.NoError(t, g.Close(t.Context()))
		again := New()
		require.Zero(t, replay(t, dir, again))
		require.Equal(t, g.World.Digest(), again.World.Digest())
		require.Equal(t, g.World.Tick(), again.World.Tick())
	}
	changed := New()
	changed.Systems.Add("drift", nil, func(t *tick) {
		if t.Number == 777 {
			changed.State.Mut().Score++
		}
	})
	require.Equal(t, uint64(777), replay(t, dir, changed))
}
