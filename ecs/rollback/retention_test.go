package rollback_test

import (
	"errors"
	"testing"

	"github.com/stet-ecs/stet/ecs/rollback"
)

// A session keeps inputs until all peers have them. A dropped peer does not count, so the game
// continues in bounded memory.
func TestDrop_ReleasesRetainedInputs(t *testing.T) {
	o := rollback.Options[int]{Peers: 3, Players: []int{0, 1, 2}}
	_, a, _ := newSide(t, o, false)
	o.Peer = 1
	_, b, _ := newSide(t, o, false)
	// kept returns how many inputs of a player the first session retains.
	kept := func() (most int) {
		var m rollback.Message[int]
		if err := a.Report(2, &m); err != nil {
			t.Fatal(err)
		}
		for _, r := range m.Runs {
			most = max(most, len(r.Values))
		}
		return most
	}
	advance(t, a, 5, 1)
	advance(t, b, 5, 1)
	send(t, a, b, 0, 1)
	send(t, b, a, 1, 0)
	if got := kept(); got != 5 {
		t.Errorf("%d inputs are kept for a peer that lacks all 5", got)
	}
	if err := errors.Join(a.Drop(2, 2), b.Drop(2, 2)); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		advance(t, a, 1, 1)
		advance(t, b, 1, 1)
		send(t, a, b, 0, 1)
		send(t, b, a, 1, 0)
	}
	if got := kept(); got > 10 {
		t.Errorf("%d inputs are kept for a dropped peer, want only inputs that the other peers lack", got)
	}
	if a.Confirmed() < 200 {
		t.Errorf("tick %d is confirmed, want 200 at least", a.Confirmed())
	}
}

// The digest of a tick with predicted inputs is neither compared nor sent.
func TestDigests_UnconfirmedTickNotSent(t *testing.T) {
	o := two
	o.CheckEvery = 4
	_, a, _ := newSide(t, o, false)
	o.Peer = 1
	_, b, _ := newSide(t, o, false)
	var fromA, fromB rollback.Message[int]
	for tick := range 6 {
		if err := a.Advance(1); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(a.Report(1, &fromA), b.Receive(0, &fromA), b.Advance(7)); err != nil {
			t.Fatal(err)
		}
		if fromA.Checked != 0 {
			t.Errorf("after %d ticks a sends the digest of tick %d, but only %d is confirmed", tick+1, fromA.Checked, a.Confirmed())
		}
	}
	if err := errors.Join(b.Settle(), b.Report(0, &fromB)); err != nil {
		t.Fatal(err)
	}
	if fromB.Checked != 5 || b.Confirmed() != 7 {
		t.Fatalf("b sends the digest of tick %d, and %d is confirmed; want 5 and 7", fromB.Checked, b.Confirmed())
	}
	digest := fromB
	digest.Runs = nil // The inputs are lost on the way.
	if err := errors.Join(a.Receive(1, &digest), a.Settle()); err != nil || a.Agreed(1) != 0 {
		t.Errorf("tick %d agrees, and Settle returns %v, although a has predicted all ticks", a.Agreed(1), err)
	}
	if err := errors.Join(a.Receive(1, &fromB), a.Settle()); err != nil || a.Agreed(1) != 5 || a.Remade() == 0 {
		t.Errorf("tick %d agrees and Settle returns %v, want 5 after the inputs arrived", a.Agreed(1), err)
	}
}

// Digests are stored in a ring. The digest of a predicted tick may overwrite the digest of an older
// tick. The new digest must not be sent as the digest of the older tick.
func TestDigests_PredictedTickOverwritesOlder(t *testing.T) {
	o := two
	o.CheckEvery, o.Window = 1, 100
	w, s, _ := newSide(t, o, false)
	var m rollback.Message[int]
	for w.Tick() < 90 {
		advance(t, s, 1, 1)
		if err := s.Report(1, &m); err != nil {
			t.Fatal(err)
		}
		if m.Checked > s.Confirmed() {
			t.Fatalf("at tick %d the digest of tick %d is sent, but only %d is confirmed", w.Tick(), m.Checked, s.Confirmed())
		}
	}
}
