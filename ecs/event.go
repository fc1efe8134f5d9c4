package ecs

import (
	"cmp"
	"iter"
	"reflect"
)

// Events are what happened: hits, deaths, doors that opened. Who sends one does not know
// who reads it, and several may, in the order in which they were sent.
//
//	hits := ecs.MustRegisterEvent[Hit](w)
//	hits.Send(Hit{arrow, orc, 7})
//	for hit := range hits.All() { … }
//
// An event is there from Send to the end of the next tick: the second [World.Commit] lets it
// go. So a system that runs each tick misses none, wherever it stands in the order of
// systems. One that is to see each event once asks for [Events.Last], a tick later, or reads
// with an [EventReader].
//
// Events are state, a resource that bears their name: put back by a restore, journaled,
// saved, in the digest, there after Open and in a clone. Those of a NoPersist type end with
// their tick, so that at its end, which is what a store keeps, there are none.
//
// [RegisterEvent] makes them. In a loop over events more may be sent: they are visited by
// the next loop.
type Events[T any] struct{ queue *Resource[eventQueue[T]] }

// An eventQueue is the value of the resource.
type eventQueue[T any] struct {
	Sent uint64 // How many were ever sent.
	Last []T    // Those of the last tick,
	Now  []T    // and those of this one. Neither is ever nil, as that would be another value.
}

// held returns how many there are.
func (q *eventQueue[T]) held() int { return len(q.Last) + len(q.Now) }

// first returns the number of the oldest one: they are numbered as they are sent, from 0.
func (q *eventQueue[T]) first() uint64 { return q.Sent - uint64(q.held()) }

// at returns event n, if it is there.
func (q *eventQueue[T]) at(n uint64) (v T, ok bool) {
	k, last := n-q.first(), uint64(len(q.Last)) // k wraps to a large number if it is gone.
	switch {
	case k < last:
		return q.Last[k], true
	case k-last < uint64(len(q.Now)):
		return q.Now[k-last], true
	}
	return v, false
}

// emptyQueue returns one to which no event was ever sent.
func emptyQueue[T any]() (q eventQueue[T]) {
	q.clear()
	return q
}

func (q *eventQueue[T]) clear() { *q = eventQueue[T]{Last: []T{}, Now: []T{}} }

// idle reports whether there are none.
func (q *eventQueue[T]) idle() bool { return q.held() == 0 }

// endTick makes this tick's events those of the last one, and lets that one's go.
func (q *eventQueue[T]) endTick(keep bool) {
	clear(q.Last) // They may hold memory.
	if q.Last, q.Now = q.Now, q.Last[:0]; !keep {
		clear(q.Last)
		q.Last = q.Last[:0]
	}
}

// RegisterEvent gives w events of type T. They are a resource named as T, unless its
// [Component] has another name; the rules are those of [Register]. Of a Component the name,
// former names, dropped fields, Clone, NoRewind and NoPersist count.
func RegisterEvent[T any](w *World, c ...Component[T]) (*Events[T], error) {
	said := the(c)
	queue := Component[eventQueue[T]]{
		Name: cmp.Or(said.Name, defaultName(reflect.TypeFor[T]())), NoRewind: said.NoRewind, NoPersist: said.NoPersist, FormerNames: said.FormerNames,
	}
	for _, field := range said.Dropped {
		queue.Dropped = append(queue.Dropped, "Last[]."+field, "Now[]."+field)
	}
	if clone := said.Clone; clone != nil {
		queue.Clone = func(q eventQueue[T]) eventQueue[T] {
			return eventQueue[T]{q.Sent, cloneAll(q.Last, clone), cloneAll(q.Now, clone)}
		}
	}
	r, err := RegisterResource(w, emptyQueue[T](), queue)
	if err != nil {
		return nil, err
	}
	return &Events[T]{r}, nil
}

// MustRegisterEvent is [RegisterEvent], panicking on an error.
func MustRegisterEvent[T any](w *World, c ...Component[T]) *Events[T] {
	return must(RegisterEvent(w, c...))
}

// In returns the events of the same name and type in another world, or nil.
func (e *Events[T]) In(w *World) *Events[T] {
	if queue := e.queue.In(w); queue != nil {
		return &Events[T]{queue}
	}
	return nil
}

// Send adds an event behind the others. Slices, maps and pointers in v are the world's from
// then on.
func (e *Events[T]) Send(v T) {
	q := e.queue.Mut()
	q.Now = append(q.Now, v)
	q.Sent++
}

// All iterates over the events of the last tick and those of this one up to now, in the
// order in which they were sent. What is in them is to be read only.
func (e *Events[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		q := e.queue.Read()
		for _, v := range e.numbered(q.first(), q.Sent) {
			if !yield(v) {
				return
			}
		}
	}
}

// Last iterates over the events of the last tick, in the order in which they were sent: in
// every tick of others, so that each is visited once, a tick after the one that sent it.
func (e *Events[T]) Last() iter.Seq[T] {
	return func(yield func(T) bool) {
		q := e.queue.Read()
		for _, v := range e.numbered(q.first(), q.Sent-uint64(len(q.Now))) {
			if !yield(v) {
				return
			}
		}
	}
}

// Len returns how many events All visits.
func (e *Events[T]) Len() int { return e.queue.Read().held() }

// numbered iterates over the events with numbers [from, to), as far as they are there. The
// body may send more, end the tick, and put the world back.
func (e *Events[T]) numbered(from, to uint64) iter.Seq2[uint64, T] {
	return func(yield func(uint64, T) bool) {
		q := e.queue.Read()
		for n := from; n < to; n++ {
			if v, ok := q.at(n); ok && !yield(n, v) {
				return
			}
		}
	}
}

// An EventReader reads each event once. How far it is, is state as well, so after going back
// it reads the same events again. [Events.Reader] makes one.
type EventReader[T any] struct {
	events *Events[T]
	next   *Resource[uint64] // The number of the first event that it has not read.
}

// Reader gives the world a reader, which begins with the events that are there. It is a
// resource named as the events and name, such as "Hit.sounds", journaled and saved if these
// are. An error is a [*RegisterError]: a name that is taken.
func (e *Events[T]) Reader(name string) (*EventReader[T], error) {
	q := e.queue
	said := Component[uint64]{Name: q.name + "." + name, NoRewind: q.noRewind, NoPersist: q.noPersist}
	for _, former := range q.past().former {
		said.FormerNames = append(said.FormerNames, former+"."+name)
	}
	next, err := RegisterResource(q.w, q.Read().first(), said)
	if err != nil {
		return nil, err
	}
	return &EventReader[T]{e, next}, nil
}

// In returns the reader of the same name in another world, or nil.
func (r *EventReader[T]) In(w *World) *EventReader[T] {
	events, next := r.events.In(w), r.next.In(w)
	if events == nil || next == nil {
		return nil
	}
	return &EventReader[T]{events, next}
}

// All iterates over the events that r has not read, and counts each as read when it is
// visited. Those that went before r came to them it never reads: see [EventReader.Missed].
func (r *EventReader[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		q := r.events.queue.Read()
		for n, v := range r.events.numbered(max(r.next.Get(), q.first()), q.Sent) {
			if r.next.Set(n + 1); !yield(v) {
				return
			}
		}
	}
}

// Len returns how many events All would visit.
func (r *EventReader[T]) Len() int {
	q := r.events.queue.Read()
	return int(min(q.Sent-min(r.next.Get(), q.Sent), uint64(q.held())))
}

// Missed returns how many events went before r read them, since those that it read last. They
// no longer count as missed once it has read others.
func (r *EventReader[T]) Missed() uint64 {
	q := r.events.queue.Read()
	return q.first() - min(q.first(), r.next.Get())
}
