package main

import (
	"errors"
	"math/rand/v2"

	"github.com/stet-ecs/stet/ecs/rollback"
)

const (
	window     = 8  // Ticks that a peer may be ahead of the buttons that it has.
	checkEvery = 20 // Ticks between two exchanged digests.
	// The ticks that a world keeps: to roll back, and to find the first that differs.
	history = 100
)

// A message is what a peer sends in every tick.
type message = rollback.Message[byte]

// A peer is one side of the match: a game of its own, and a session with the buttons of both sides.
// It continues without waiting for the other's buttons.
//
// Ticks count from the beginning of the game, which is a tick of its world too.
type peer struct {
	*game
	session *rollback.Session[byte]
	player  int
	start   uint64 // The world's tick at the beginning.
	rng     *rand.Rand

	ours    []byte // Buttons by tick.
	pressed bool   // The last of them is for the tick that comes next.

	rollbacks, longest, waited, checks int // For the report.
}

func newPeer(player int, c config) (*peer, error) {
	g := newGame(history, c)
	session, err := rollback.New(g.world, &g.stepper, rollback.Options[byte]{
		Peers: 2, Peer: player, Players: []int{0, 1}, Window: window, CheckEvery: checkEvery,
	})
	return &peer{
		game: g, session: session, player: player, start: g.world.Tick(), rng: rand.New(rand.NewPCG(c.seed, uint64(10+player))),
	}, err
}

// tick returns the number of ticks of the game.
func (p *peer) tick() int { return int(p.world.Tick() - p.start) }

// agreed returns the last tick with equal digests on both sides.
func (p *peer) agreed() int { return int(max(p.start, p.session.Agreed(1-p.player)) - p.start) }

// settle makes the ticks with a wrong guess, and all later ones, again. If the error wraps
// rollback.ErrDesync, the other side has another world.
func (p *peer) settle() error {
	agreed, remade := p.agreed(), p.session.Remade()
	err := p.session.Settle()
	if n := int(p.session.Remade() - remade); n > 0 {
		p.rollbacks++
		p.longest = max(p.longest, n)
	}
	if p.agreed() > agreed {
		p.checks++
	}
	return err
}

// advance makes the next tick, unless the peer is too far ahead.
func (p *peer) advance() error {
	if !p.pressed {
		p.ours, p.pressed = append(p.ours, p.press()), true
	}
	err := p.session.Advance(p.ours[len(p.ours)-1])
	if errors.Is(err, rollback.ErrAhead) {
		p.waited++
		return nil
	}
	p.pressed = false
	return err
}

// press returns the buttons of the player: mostly those of the previous tick.
func (p *peer) press() byte {
	if n := len(p.ours); n > 0 && p.rng.IntN(6) > 0 {
		return p.ours[n-1]
	}
	return byte(p.rng.IntN(2 * pressFire))
}

// report returns the next message to the other side.
func (p *peer) report() (m message, err error) {
	err = p.session.Report(1-p.player, &m)
	return m, err
}
