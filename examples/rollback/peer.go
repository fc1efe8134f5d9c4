package main

import (
	"errors"
	"math/rand/v2"

	"github.com/stet-ecs/stet/ecs/rollback"
)

const (
	window     = 8  // A peer may run this many ticks beyond the newest received buttons.
	checkEvery = 20 // The number of ticks between two exchanged digests.
	// Length of the history of a world, in ticks, for rollbacks and the search for the first
	// difference.
	history = 100
)

// A message is sent to the other peer in every tick.
type message = rollback.Message[byte]

// A peer is one side of the match. It has its own game and a session with the buttons of both
// players. It continues without waiting for the other player's buttons.
//
// Ticks of a peer are counted from the start of the game. The field start is the world's tick at
// that time.
type peer struct {
	*game
	session *rollback.Session[byte]
	player  int
	start   uint64 // The world's tick at the beginning of the game.
	rng     *rand.Rand

	ours    []byte // The buttons of this player, by tick.
	pressed bool   // True if p.ours already has the buttons of the next tick.

	rollbacks, longest, waited, checks int // Numbers for the final report.
}

func newPeer(player int, c config) (*peer, error) {
	g := newGame(history, c)
	session, err := rollback.New(g.systems, rollback.Options[byte]{
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

// settle reruns the ticks with wrong guesses, and all ticks after them. If the error wraps
// rollback.ErrDesync, the worlds of the peers differ.
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

// advance runs the next tick, unless the peer is too far ahead.
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

// press returns the buttons of the player. Mostly, these are the buttons of the previous tick.
func (p *peer) press() byte {
	if n := len(p.ours); n > 0 && p.rng.IntN(6) > 0 {
		return p.ours[n-1]
	}
	return byte(p.rng.IntN(2 * pressFire))
}

// report returns the next message to the other peer.
func (p *peer) report() (m message, err error) {
	err = p.session.Report(1-p.player, &m)
	return m, err
}
