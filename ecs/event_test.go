package ecs

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
)

// addEvents registers events and a reader in the world of p.
func (p *model) addEvents() {
	p.events = Must(RegisterEvent(p.w, Component[list]{Name: "events", Clone: cloneList}))
	reader, err := p.events.Reader("reader")
	if err != nil {
		failf("Reader: %v", err)
	}
	p.reader = reader
}

// send sends n events.
func (p *model) send(n int) {
	for range n {
		p.lastValue++
		p.events.Send(list{[]int{p.lastValue}})
		p.oracle.forward = nil
		p.oracle.events.sent++
		p.oracle.events.now = append(p.oracle.events.now, p.lastValue)
	}
}

// read reads at most n events by the reader.
func (p *model) read(n int) {
	unread, missed := p.oracle.events.unread()
	want := unread[:min(n, len(unread))]
	got := []int{}
	if n > 0 {
		for v := range p.reader.All() {
			if got = append(got, v.Items[0]); len(got) == n {
				break
			}
		}
	}
	if len(want) > 0 {
		p.oracle.forward = nil
		p.oracle.events.read += missed + len(want)
	}
	if !slices.Equal(got, want) {
		failf("the reader reads %v, want %v", got, want)
	}
}

func (p *model) checkEvents() {
	items := func(all func(func(list) bool)) (got []int) {
		for v := range all {
			got = append(got, v.Items[0])
		}
		return got
	}
	e := &p.oracle.events
	unread, missed := e.unread()
	if got := items(p.events.All()); !slices.Equal(got, e.held()) || p.events.Len() != len(got) {
		failf("events %v, Len() = %d, want %v", got, p.events.Len(), e.held())
	}
	if got := items(p.events.Last()); !slices.Equal(got, e.last) {
		failf("events of the last tick %v, want %v", got, e.last)
	}
	if p.reader.Len() != len(unread) || p.reader.Missed() != uint64(missed) {
		failf("the reader has %d unread events and missed %d, want %d and %d", p.reader.Len(), p.reader.Missed(), len(unread), missed)
	}
}

func TestEvents_RemovedAfterNextTick(t *testing.T) {
	for _, noPersist := range []bool{false, true} {
		w := NewWorld(Options{History: 4})
		hits := Must(RegisterEvent(w, Component[plain]{NoPersist: noPersist}))
		expect := func(when string, want ...int32) {
			t.Helper()
			var got []int32
			for v := range hits.All() {
				got = append(got, v.X)
			}
			if !slices.Equal(got, want) {
				t.Errorf("NoPersist %v, %s: %v, want %v", noPersist, when, got, want)
			}
		}
		hits.Send(plain{1, 0})
		hits.Send(plain{2, 0})
		expect("in their tick", 1, 2)
		if w.Commit(); noPersist {
			expect("in the next tick")
			continue
		}
		expect("in the next tick", 1, 2)
		hits.Send(plain{3, 0})
		expect("beside later ones", 1, 2, 3)
		w.Commit()
		expect("in the tick after", 3)
		w.Commit()
		expect("after all of them")
		if err := w.History().Seek(1); err != nil {
			t.Fatal(err)
		}
		expect("back at tick 1", 1, 2)
	}
}

// A loop visits the events that exist when it starts. The next loop visits the events that the body
// sends. The body may also call Commit.
func TestEvents_ChangedInLoop(t *testing.T) {
	w := NewWorld(Options{History: 2})
	hits := Must(RegisterEvent[plain](w))
	for x := range int32(3) {
		hits.Send(plain{x, 0})
	}
	var got []string
	note := func(v plain) { got = append(got, fmt.Sprint(v.X)) }
	for v := range hits.All() {
		note(v)
		hits.Send(plain{v.X + 10, 0})
	}
	// The second Commit removes the events from the world. The loop still visits all of them.
	for v := range hits.All() {
		if note(v); v.X == 1 || v.X == 2 {
			w.Commit()
		}
	}
	if want := []string{"0", "1", "2", "0", "1", "2"}; !slices.Equal(got, want) {
		t.Errorf("visited %v, want %v", got, want)
	}
}

// A Commit in the loop may remove events that the reader has not reached. The loop then continues
// with the next event that still exists.
func TestEventReader_CommitInLoop(t *testing.T) {
	w := NewWorld(Options{})
	hits := Must(RegisterEvent[plain](w))
	reader, err := hits.Reader("reader")
	if err != nil {
		t.Fatal(err)
	}
	send := func(from, to int32) {
		for x := from; x < to; x++ {
			hits.Send(plain{x, 0})
		}
	}
	send(0, 3)
	w.Commit()
	send(3, 5)
	var got []int32
	for v := range reader.All() {
		if got = append(got, v.X); v.X == 0 {
			w.Commit() // Removes events 1 and 2.
			send(5, 6)
		}
	}
	if want := []int32{0, 3, 4}; !slices.Equal(got, want) || reader.Len() != 1 || reader.Missed() != 0 {
		t.Errorf("read %v, then %d unread and %d missed; want %v, 1, 0", got, reader.Len(), reader.Missed(), want)
	}
	for v := range reader.All() {
		if v.X != 5 {
			t.Errorf("read %d again", v.X)
		}
	}
}

func TestEvents_Errors(t *testing.T) {
	w := NewWorld(Options{})
	hits := Must(RegisterEvent[plain](w))
	var fault *RegisterError
	if _, err := RegisterEvent[plain](w); !errors.As(err, &fault) {
		t.Errorf("events registered twice: %v", err)
	}
	if _, err := RegisterEvent[chan int](w); !errors.As(err, &fault) {
		t.Errorf("events of a channel: %v", err)
	}
	if _, err := hits.Reader("sounds"); err != nil {
		t.Error(err)
	}
	if _, err := hits.Reader("sounds"); !errors.As(err, &fault) {
		t.Errorf("reader created twice: %v", err)
	}
	if other := NewWorld(Options{}); hits.In(other) != nil {
		t.Error("In found events in a world without them")
	}
}

func TestEvents_Allocations(t *testing.T) {
	if debug {
		t.Skip("a debug build allocates")
	}
	w := NewWorld(Options{})
	hits := Must(RegisterEvent[plain](w))
	tick := func() {
		for x := range int32(100) {
			hits.Send(plain{x, 0})
		}
		for range hits.All() {
		}
		w.Commit()
	}
	tick()
	tick()
	if got := testing.AllocsPerRun(20, tick); got > 0 {
		t.Errorf("%v allocations a tick, want none", got)
	}
}

// xOf returns the X of each event.
func xOf(events iter.Seq[plain]) (xs []int32) {
	for v := range events {
		xs = append(xs, v.X)
	}
	return xs
}

// A new reader begins with the oldest event that still exists. Removed events do not count as
// missed.
func TestEventReader_CreatedAfterEvents(t *testing.T) {
	w := NewWorld(Options{})
	hits := Must(RegisterEvent[plain](w))
	send := func(x int32) { hits.Send(plain{X: x}) }
	send(1)
	w.Commit()
	w.Commit() // Removes event 1.
	send(2)
	w.Commit()
	send(3)
	r, err := hits.Reader("late")
	if err != nil {
		t.Fatal(err)
	}
	if r.Len() != 2 || r.Missed() != 0 {
		t.Errorf("%d events are unread and %d are missed, want 2 and 0", r.Len(), r.Missed())
	}
	if got := xOf(r.All()); !slices.Equal(got, []int32{2, 3}) {
		t.Errorf("the reader reads %v, want [2 3]", got)
	}
	if r.Len() != 0 || xOf(r.All()) != nil {
		t.Error("the reader reads an event twice")
	}
}

// Last visits each event once, in the tick after the event was sent.
func TestEventsLast_VisitsEachEventOnce(t *testing.T) {
	w := NewWorld(Options{})
	hits := Must(RegisterEvent[plain](w))
	var got []int32
	for tick := range int32(4) {
		hits.Send(plain{X: 10 * tick})
		last := xOf(hits.Last())
		hits.Send(plain{X: 10*tick + 1})
		if again := xOf(hits.Last()); !slices.Equal(again, last) {
			t.Errorf("tick %d: Last visits %v, and %v after Send", tick, last, again)
		}
		got = append(got, last...)
		w.Commit()
	}
	if want := []int32{0, 1, 10, 11, 20, 21}; !slices.Equal(got, want) {
		t.Errorf("Last visits %v, want %v", got, want)
	}
}

// A seek in either direction restores the events, their number, and the position of each reader.
func TestEvents_RestoredBySeek(t *testing.T) {
	w := NewWorld(Options{History: 8})
	hits := Must(RegisterEvent[plain](w))
	r, err := hits.Reader("reader")
	if err != nil {
		t.Fatal(err)
	}
	type state struct {
		all, last   []int32
		len, unread int
		missed      uint64
	}
	look := func() state { return state{xOf(hits.All()), xOf(hits.Last()), hits.Len(), r.Len(), r.Missed()} }
	same := func(a, b state) bool {
		return slices.Equal(a.all, b.all) && slices.Equal(a.last, b.last) && a.len == b.len && a.unread == b.unread && a.missed == b.missed
	}
	states := []state{look()}
	for tick := range int32(6) {
		for x := range tick % 3 {
			hits.Send(plain{X: 10*tick + x})
		}
		if tick == 2 || tick == 5 {
			xOf(r.All())
		}
		w.Commit()
		states = append(states, look())
	}
	for _, tick := range []uint64{5, 2, 0, 1, 4, 6, 3} {
		if err := w.History().Seek(tick); err != nil {
			t.Fatal(err)
		}
		if got := look(); !same(got, states[tick]) {
			t.Errorf("back at tick %d: %v, want %v", tick, got, states[tick])
		}
	}
	cp := w.Checkpoint()
	before := look()
	hits.Send(plain{X: 99})
	xOf(r.All())
	w.Restore(cp)
	if got := look(); !same(got, before) {
		t.Errorf("after Restore: %v, want %v", got, before)
	}
	hits.Send(plain{X: 100})
	if got, want := xOf(hits.All()), append(before.all, 100); !slices.Equal(got, want) {
		t.Errorf("after Restore and Send: %v, want %v", got, want)
	}
}
