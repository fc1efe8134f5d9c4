package main

import (
	"math/rand/v2"
	"slices"
)

// A link simulates one direction of a bad network. It loses some messages. Every other message
// takes at least 1 tick and at most l.delay ticks, so a later message can arrive first.
type link struct {
	rng    *rand.Rand
	loss   int // The loss, in percent.
	delay  int
	flying []flight
	lost   int
}

// A flight is a message under way.
type flight struct {
	arrives int
	message message
}

func newLink(seed, number uint64, loss, delay int) *link {
	return &link{rng: rand.New(rand.NewPCG(seed, number)), loss: loss, delay: delay}
}

// send sends a message at a tick.
func (l *link) send(now int, m message) {
	if l.rng.IntN(100) < l.loss {
		l.lost++
		return
	}
	l.flying = append(l.flying, flight{now + 1 + l.rng.IntN(l.delay), m})
}

// deliver calls f with each message that has arrived.
func (l *link) deliver(now int, f func(message)) {
	for _, a := range l.flying {
		if a.arrives <= now {
			f(a.message)
		}
	}
	l.flying = slices.DeleteFunc(l.flying, func(a flight) bool { return a.arrives <= now })
}
