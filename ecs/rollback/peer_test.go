package rollback_test

import (
	"errors"
	"testing"

	"github.com/stet-ecs/stet/ecs/rollback"
)

// send moves a message from one session to another. a and b are the indices of the peers.
func send(t *testing.T, from, to *rollback.Session[int], a, b int) {
	t.Helper()
	var m rollback.Message[int]
	if err := errors.Join(from.Report(b, &m), to.Receive(a, &m)); err != nil {
		t.Fatal(err)
	}
}

func advance(t *testing.T, s *rollback.Session[int], n, in int) {
	t.Helper()
	for range n {
		if err := s.Advance(in); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSessionAhead_OfSlowerPeer(t *testing.T) {
	_, a, _ := newSide(t, two, false)
	o := two
	o.Peer = 1
	_, b, _ := newSide(t, o, false)
	if a.Ahead() != 0 {
		t.Errorf("before the first message: %d ahead", a.Ahead())
	}
	advance(t, a, 6, 1)
	send(t, b, a, 1, 0)
	send(t, a, b, 0, 1)
	send(t, b, a, 1, 0)
	advance(t, b, 2, 1)
	send(t, b, a, 1, 0)
	send(t, a, b, 0, 1)
	if a.Ahead() <= 0 || b.Ahead() >= 0 || a.Ahead() > 6 || b.Ahead() < -6 {
		t.Errorf("a, at tick 7, is %d ahead; b, at tick 3, %d", a.Ahead(), b.Ahead())
	}
}

func TestSessionPredict_CalledForMissingInputs(t *testing.T) {
	guessed := map[int]int{}
	o := two
	o.Predict = func(player, last int) int {
		guessed[player]++
		return last + 4
	}
	w, s, _ := newSide(t, o, false)
	advance(t, s, 3, 1)
	was := w.Digest()
	sure := rollback.Message[int]{Has: []uint64{1, 1}, Runs: []rollback.Run[int]{{Player: 1, From: 2, Values: []int{4, 4, 4}}}}
	if err := errors.Join(s.Receive(1, &sure), s.Settle()); err != nil {
		t.Fatal(err)
	}
	if s.Remade() != 0 || w.Digest() != was || guessed[1] == 0 || guessed[0] != 0 {
		t.Errorf("%d ticks repeated after correct predictions, %v predictions by player", s.Remade(), guessed)
	}
}

// While a player is active, inputs of that player are ignored if another peer sends them. After the
// player is dropped, such inputs are accepted for ticks before the drop.
func TestReceive_InputsOfDroppedPlayer(t *testing.T) {
	o := rollback.Options[int]{Peers: 3, Players: []int{0, 1, 2}}
	_, s, _ := newSide(t, o, false)
	said := rollback.Message[int]{Has: []uint64{1, 1, 1}, Runs: []rollback.Run[int]{{Player: 2, From: 2, Values: []int{5, 6, 7}}}}
	if err := s.Receive(1, &said); err != nil || s.Known(2) != 1 {
		t.Errorf("Receive() = %v, inputs of an active player are known to tick %d, want 1", err, s.Known(2))
	}
	if err := errors.Join(s.Drop(2, 4), s.Receive(1, &said)); err != nil || s.Known(2) != 3 {
		t.Errorf("Receive() = %v, inputs of a player dropped at 4 are known to tick %d, want 3", err, s.Known(2))
	}
}

func TestAdvance_CommitError(t *testing.T) {
	full := errors.New("full")
	o := two
	o.Commit = func() error { return full }
	_, s, _ := newSide(t, o, false)
	for range 2 {
		if err := s.Advance(1); !errors.Is(err, full) {
			t.Errorf("Advance() = %v, want %v", err, full)
		}
	}
}

// Inputs for ticks far ahead are ignored, so a peer cannot fill the memory of another peer.
func TestReceive_InputsFarAhead(t *testing.T) {
	w, s, _ := newSide(t, two, false)
	for from := uint64(2); from < 4000; from += 256 {
		m := rollback.Message[int]{Has: []uint64{1, 1}, Runs: []rollback.Run[int]{{Player: 1, From: min(from, s.Known(1)+1), Values: make([]int, 256)}}}
		if err := s.Receive(1, &m); err != nil {
			t.Fatal(err)
		}
	}
	if known := s.Known(1); known != w.Tick()+256 {
		t.Errorf("known to tick %d at tick %d", known, w.Tick())
	}
}
