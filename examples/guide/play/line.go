package play

import "iter"

// A Line simulates one direction of a bad network.
type Line[T any] struct {
	Delay int // The number of ticks that a message takes.
	Loss  int // The percentage of messages that are lost.

	sent, lost int
	flying     []*T // The messages on the way, oldest first. A lost message is nil.
}

// Send sends a message. With a Loss of 20, it loses every fifth message. It uses no random numbers,
// so all runs are equal.
func (l *Line[T]) Send(message T) {
	l.sent++
	if l.sent*l.Loss/100 > l.lost {
		l.lost++
		l.flying = append(l.flying, nil)
		return
	}
	l.flying = append(l.flying, &message)
}

// Receive returns the messages that have arrived. Call it before Send, once in each tick.
func (l *Line[T]) Receive() iter.Seq[T] {
	return func(yield func(T) bool) {
		for len(l.flying) > max(0, l.Delay-1) {
			message := l.flying[0]
			l.flying = l.flying[1:]
			if message != nil && !yield(*message) {
				return
			}
		}
	}
}
