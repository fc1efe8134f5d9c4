package rollback_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/ecs/rollback"
	"github.com/stet-ecs/stet/ecs/schedule"
)

var two = rollback.Options[int]{Peers: 2, Players: []int{0, 1}}

func TestReceive_BadMessage(t *testing.T) {
	w, s, _ := newSide(t, two, false)
	run := func(r ...rollback.Run[int]) rollback.Message[int] {
		return rollback.Message[int]{Has: []uint64{1, 1}, Runs: r}
	}
	good := run(rollback.Run[int]{Player: 1, From: 2, Values: []int{7, 8}})
	if err := s.Receive(1, &good); err != nil {
		t.Fatal(err)
	}
	for i, m := range []rollback.Message[int]{
		{},
		{Has: []uint64{9, 1}},
		{Has: []uint64{1, 1}, Checked: 7, Tick: 9},
		{Has: []uint64{1, 1}, Checked: 41, Tick: 9},
		{Has: []uint64{1, 1}, Tick: 1 << 60},
		run(rollback.Run[int]{Player: 0, From: 2, Values: []int{1}}),
		run(rollback.Run[int]{Player: 2, From: 2}),
		run(rollback.Run[int]{Player: -1, From: 2}),
		run(rollback.Run[int]{Player: 1, From: 5, Values: []int{1}}),
		run(rollback.Run[int]{Player: 1, From: 1, Values: []int{1}}),
		run(rollback.Run[int]{Player: 1, From: 4, Values: []int{1}}, rollback.Run[int]{Player: 1, From: 3, Values: []int{9}}),
		run(rollback.Run[int]{Player: 1, From: 4, Values: make([]int, 1000)}),
	} {
		if err := s.Receive(1, &m); !errors.Is(err, rollback.ErrMessage) {
			t.Errorf("message %d: Receive() = %v, want %v", i, err, rollback.ErrMessage)
		}
		if s.Known(1) != 3 || w.Tick() != 1 {
			t.Errorf("message %d: inputs are known to tick %d, want 3", i, s.Known(1))
		}
	}
	for _, from := range []int{-1, 0, 2} {
		if err := s.Receive(from, &good); !errors.Is(err, rollback.ErrMessage) {
			t.Errorf("Receive(%d) = %v, want %v", from, err, rollback.ErrMessage)
		}
	}
}

func TestDrop_LetsWaitingPeerAdvance(t *testing.T) {
	w, s, _ := newSide(t, two, false)
	for range 8 {
		if err := s.Advance(1); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Advance(1); !errors.Is(err, rollback.ErrAhead) || w.Tick() != 9 || s.Confirmed() != 1 {
		t.Fatalf("Advance() = %v at tick %d, confirmed %d", err, w.Tick(), s.Confirmed())
	}
	if err := s.Drop(1, 1); err == nil {
		t.Error("Drop discards a known input")
	}
	if err := s.Drop(1, 2); err != nil {
		t.Fatal(err)
	}
	if err := s.Advance(1); err != nil || s.Confirmed() != 9 || s.Remade() != 8 {
		t.Errorf("Advance() = %v, confirmed %d, repeated %d; want 9 and 8, because all peers have dropped the player", err, s.Confirmed(), s.Remade())
	}
}

// If two peers have received different numbers of inputs from a dropped peer, the peer with more
// inputs sends them to the other.
func TestDrop_InputsSentByOtherPeer(t *testing.T) {
	o := rollback.Options[int]{Peers: 3, Players: []int{0, 1, 2}}
	_, a, _ := newSide(t, o, false)
	o.Peer = 1
	_, b, _ := newSide(t, o, false)
	last := rollback.Message[int]{Has: []uint64{1, 1, 4}, Runs: []rollback.Run[int]{{Player: 2, From: 2, Values: []int{5, 6, 7}}}}
	if err := a.Receive(2, &last); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*rollback.Session[int]{a, b} {
		if err := s.Drop(2, 5); err != nil {
			t.Fatal(err)
		}
	}
	var m rollback.Message[int]
	if err := a.Report(1, &m); err != nil {
		t.Fatal(err)
	}
	if err := b.Receive(0, &m); err != nil || b.Known(2) != 4 {
		t.Errorf("Receive() = %v, known to tick %d, want 4", err, b.Known(2))
	}
}

func TestSession_Misuse(t *testing.T) {
	w, s, systems := newSide(t, two, false)
	if err := s.Advance(); err == nil {
		t.Error("Advance without an input for the local player: no error")
	}
	w.Create()
	if err := s.Advance(1); err == nil || !strings.Contains(err.Error(), "was written") {
		t.Errorf("Advance of a world that was written: %v", err)
	}
	if _, err := rollback.New(systems, two); !errors.Is(err, raw.ErrDirty) {
		t.Errorf("New() = %v, want %v", err, raw.ErrDirty)
	}
	for name, o := range map[string]rollback.Options[int]{
		"a window of 256":   {Peers: 2, Players: []int{0, 1}, Window: 256},
		"a delay of 256":    {Peers: 2, Players: []int{0, 1}, Delay: 256},
		"a negative window": {Peers: 2, Players: []int{0, 1}, Window: -1},
		"a negative delay":  {Peers: 2, Players: []int{0, 1}, Delay: -1},
		"a negative check":  {Peers: 2, Players: []int{0, 1}, CheckEvery: -1},
		"no peer":           {Peers: 2, Peer: 2, Players: []int{0, 1}},
		"no player":         {Peers: 2},
		"a foreign player":  {Peers: 2, Players: []int{0, 2}},
	} {
		if _, err := rollback.New(schedule.New[rollback.Inputs[int]](ecs.NewWorld(ecs.Options{History: 300})), o); err == nil {
			t.Errorf("New with %s: no error", name)
		}
	}
	short := ecs.NewWorld(ecs.Options{History: 2})
	s, err := rollback.New(schedule.New[rollback.Inputs[int]](short), two)
	for range 4 {
		if err == nil {
			err = s.Advance(1)
		}
	}
	if err == nil || !strings.Contains(err.Error(), "Options.History") {
		t.Errorf("a history of 2 for a window of 8: %v", err)
	}
}
