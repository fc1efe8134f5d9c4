package ecs

import (
	"cmp"
	"iter"
	"reflect"
)

// Events are a queue of things that happened: hits, deaths, opened doors. Senders and readers are
// independent. Any number of readers may read the same events, in the order of sending.
//
//	hits := ecs.Must(ecs.RegisterEvent[Hit](w))
//	hits.Send(Hit{arrow, orc, 7})
//	for hit := range hits.All() { … }
//
// An event stays in the queue until the end of the next tick: the second [World.Commit] after
// Send removes it. So a system that runs each tick sees every event, at any place in the order of
// systems. To see each event once, use [Events.Last], which is one tick late, or an
// [EventReader].
//
// Events are part of the world's state, as a resource with their name. So they are restored,
// journaled, saved, cloned and included in the digest. Events of a NoPersist type are removed at
// the end of their tick, so a store keeps no such events.
//
// [RegisterEvent] creates an Events. A loop over events may send more; the next loop visits them.
type Events[T any] struct{ queue *Resource[eventQueue[T]] }

// An eventQueue is the value of the resource of an [Events].
type eventQueue[T any] struct {
	Sent uint64 // Number of events ever sent.
	// Events of the last tick. Never nil, because nil and an empty slice have different digests.
	Last []T
	Now  []T // Events of this tick. Never nil.
}

// held returns the number of events in the queue.
func (q *eventQueue[T]) held() int { return len(q.Last) + len(q.Now) }

// first returns the number of the oldest event. Events are numbered from 0 in order of sending.
func (q *eventQueue[T]) first() uint64 { return q.Sent - uint64(q.held()) }

// at returns event n, if the queue still has it.
func (q *eventQueue[T]) at(n uint64) (v T, ok bool) {
	// If the event was removed, k wraps to a number that is too large for both slices.
	k, last := n-q.first(), uint64(len(q.Last))
	switch {
	case k < last:
		return q.Last[k], true
	case k-last < uint64(len(q.Now)):
		return q.Now[k-last], true
	}
	return v, false
}

// emptyQueue returns a queue without any events sent.
func emptyQueue[T any]() (q eventQueue[T]) {
	q.clear()
	return q
}

func (q *eventQueue[T]) clear() { *q = eventQueue[T]{Last: []T{}, Now: []T{}} }

// idle reports whether the queue is empty.
func (q *eventQueue[T]) idle() bool { return q.held() == 0 }

// endTick removes the events of the last tick. The events of this tick become those of the last
// tick. If keep is false, endTick removes all events.
func (q *eventQueue[T]) endTick(keep bool) {
	clear(q.Last) // Release the memory that the removed events refer to.
	if q.Last, q.Now = q.Now, q.Last[:0]; !keep {
		clear(q.Last)
		q.Last = q.Last[:0]
	}
}

// RegisterEvent adds events of type T to w. They are a resource with the name of T, or with the
// name in c; the rules are those of [Register]. RegisterEvent uses only these fields of the
// [Component]: Name, FormerNames, Dropped, Clone, NoRewind and NoPersist.
func RegisterEvent[T any](w *World, c ...Component[T]) (*Events[T], error) {
	said := optional(c)
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

// In returns the events with the same name and type in another world, or nil.
func (e *Events[T]) In(w *World) *Events[T] {
	if queue := e.queue.In(w); queue != nil {
		return &Events[T]{queue}
	}
	return nil
}

// Send appends an event. From then on, slices, maps and pointers in v belong to the world.
func (e *Events[T]) Send(v T) {
	q := e.queue.Mut()
	q.Now = append(q.Now, v)
	q.Sent++
}

// All iterates over the events of the last tick and of this one, in the order of sending. The
// loop must not modify memory that the events refer to. Events sent during the loop are not
// visited.
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

// Last iterates over the events of the last tick, in the order of sending. A loop over Last in
// every tick visits each event once, one tick after it was sent.
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

// Len returns the number of events that All visits.
func (e *Events[T]) Len() int { return e.queue.Read().held() }

// numbered iterates over the events with numbers [from, to) that the queue still has. The body
// may send events, end the tick and restore the world.
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

// An EventReader reads each event once. Its position is part of the world's state, so after a
// rollback it reads the same events again. [Events.Reader] creates an EventReader.
type EventReader[T any] struct {
	events *Events[T]
	next   *Resource[uint64] // Number of the first unread event.
}

// Reader adds a reader to the world, which starts at the oldest event in the queue. The reader is a
// resource. Its name is the name of the events, a dot, and name: "Hit.sounds". The reader is
// journaled and saved if the events are. The error is a [*RegisterError], for example for a name
// that is in use.
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

// In returns the reader with the same name in another world, or nil.
func (r *EventReader[T]) In(w *World) *EventReader[T] {
	events, next := r.events.In(w), r.next.In(w)
	if events == nil || next == nil {
		return nil
	}
	return &EventReader[T]{events, next}
}

// All iterates over the unread events. Each event counts as read when it is visited. Events that
// were removed before r read them are skipped: see [EventReader.Missed].
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

// Len returns the number of events that All would visit.
func (r *EventReader[T]) Len() int {
	q := r.events.queue.Read()
	return int(min(q.Sent-min(r.next.Get(), q.Sent), uint64(q.held())))
}

// Missed returns the number of events that were removed unread since r last read an event. When r
// reads another event, Missed becomes 0 again.
func (r *EventReader[T]) Missed() uint64 {
	q := r.events.queue.Read()
	return q.first() - min(q.first(), r.next.Get())
}
