package main

import (
	"math/rand/v2"

	"github.com/stet-ecs/stet/ecs"
)

const (
	window     = 8   // Ticks that a peer may be ahead of what it knows.
	checkEvery = 20  // Ticks from one digest that is exchanged to the next.
	history    = 100 // Ticks that a world keeps: to roll back, and to look for the first that differs.
)

// A message is what a peer sends in every tick. Each one says again all that the
// other is not known to have, so that none must arrive.
type message struct {
	from    int    // The first tick
	buttons []byte // of these, counted from the beginning of the game.
	has     int    // Ticks of the other that have arrived.
	checked int    // The newest tick that has a digest and will not change any more; 0: none,
	digest  ecs.Digest
}

// A peer is one side of the match: a game of its own, and what it knows of the
// other. It goes on without waiting for the other's buttons, as GGPO and GGRS do:
//
//	receive    the other's buttons, of some ticks that are past already
//	rollBack   if one was not what we guessed: seek to before it, make the ticks since again
//	advance    make the next tick; the other presses what it pressed last, we guess
//	report     our buttons
//
// Ticks count from the beginning of the game here, which is a tick of its world
// too.
type peer struct {
	*game
	player int
	start  uint64 // The world's tick at the beginning.
	rng    *rand.Rand

	ours    []byte // Buttons by tick.
	theirs  []byte // Of the other: what has arrived,
	guessed []byte // and what the ticks were made with.
	right   int    // So many guesses are known to be right.
	has     int    // Ticks of ours that have arrived there.

	digests []ecs.Digest // Of every checkEvery-th tick as it came out last.
	agreed  int          // The last tick whose digest was the same on both sides.

	rollbacks, again, longest, waited, checks int // For the report.
}

func newPeer(player int, seed uint64, bug bool) *peer {
	g := newGame(history, seed, bug)
	return &peer{
		game: g, player: player, start: g.world.Tick(),
		rng: rand.New(rand.NewPCG(seed, uint64(10+player))), digests: make([]ecs.Digest, 1),
	}
}

// tick returns how many ticks the game has.
func (p *peer) tick() int { return int(p.world.Tick() - p.start) }

// final returns how many ticks will not change any more.
func (p *peer) final() int { return min(p.tick(), len(p.theirs)) }

// receive takes what the other side says of its buttons.
func (p *peer) receive(m message) {
	for i, buttons := range m.buttons {
		if m.from+i == len(p.theirs) { // The others have arrived before.
			p.theirs = append(p.theirs, buttons)
		}
	}
	p.has = max(p.has, m.has)
}

// rollBack makes the ticks again that were made with a wrong guess, and those after
// them.
func (p *peer) rollBack() error {
	now := p.tick()
	for p.right < p.final() && p.guessed[p.right] == p.theirs[p.right] {
		p.right++
	}
	if p.right >= p.final() {
		return nil
	}
	if err := p.seek(p.right); err != nil {
		return err
	}
	p.rollbacks++
	p.again += now - p.right
	p.longest = max(p.longest, now-p.right)
	for p.tick() < now {
		p.step()
	}
	p.right = p.final()
	return nil
}

// seek puts the game to a tick that it was at.
func (p *peer) seek(tick int) error { return p.world.History().Seek(p.start + uint64(tick)) }

// advance makes the next tick, unless the peer is too far ahead of what it knows.
func (p *peer) advance() {
	if p.tick()-len(p.theirs) >= window {
		p.waited++
		return
	}
	p.ours = append(p.ours, p.press())
	p.step()
}

// press returns what the player presses: mostly what it pressed before.
func (p *peer) press() byte {
	if n := len(p.ours); n > 0 && p.rng.IntN(6) > 0 {
		return p.ours[n-1]
	}
	return byte(p.rng.IntN(2 * pressFire))
}

// step makes a tick, with the best there is known of its buttons.
func (p *peer) step() {
	t := p.tick()
	guess := p.guess(t)
	p.guessed = append(p.guessed[:t], guess)
	var pressed Buttons
	pressed[p.player], pressed[1-p.player] = p.ours[t], guess
	p.stepper.Step(p.world, pressed)
	if n := (t + 1) / checkEvery; (t+1)%checkEvery == 0 {
		p.digests = append(p.digests[:n], p.world.Digest())
	}
}

// guess returns what the other presses in a tick: what it did press or, if that is
// not known yet, what it pressed last.
func (p *peer) guess(tick int) byte {
	switch n := len(p.theirs); {
	case tick < n:
		return p.theirs[tick]
	case n > 0:
		return p.theirs[n-1]
	}
	return 0
}

// report returns the next message to the other side.
func (p *peer) report() message {
	n := p.final() / checkEvery
	return message{
		from: p.has, buttons: append([]byte(nil), p.ours[p.has:]...), has: len(p.theirs),
		checked: n * checkEvery, digest: p.digests[n],
	}
}

// agrees reports whether a tick that m has a digest of, and that will not change any
// more on this side either, came out here as it did there.
func (p *peer) agrees(m message) bool {
	if m.checked <= p.agreed || m.checked > p.final() {
		return true // It has been compared, or it will come again.
	}
	if p.digests[m.checked/checkEvery] != m.digest {
		return false
	}
	p.agreed = m.checked
	p.checks++
	return true
}
