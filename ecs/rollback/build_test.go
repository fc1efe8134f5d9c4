package rollback_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/ecs/rollback"
)

// mac is the build string of a peer on another machine.
const mac = "go1.26.8 darwin/arm64 fused math:e83c example.com/game@v1.2.3"

func TestSession_ExchangesBuilds(t *testing.T) {
	for _, delay := range []int{0, 3} {
		o := two
		o.Delay = delay
		_, a, _ := newSide(t, o, false)
		o.Peer = 1
		_, b, _ := newSide(t, o, false)
		if a.Build(0) == "" || a.Build(0) != b.Build(1) {
			t.Fatalf("Build() of the local peer is %q and %q", a.Build(0), b.Build(1))
		}
		var m rollback.Message[int]
		send := func(from, to *rollback.Session[int], peer int, lost bool) string {
			t.Helper()
			if err := from.Report(peer, &m); err != nil {
				t.Fatal(err)
			}
			if !lost {
				if err := to.Receive(1-peer, &m); err != nil {
					t.Fatal(err)
				}
			}
			return m.Build
		}
		for range 3 { // The build string is sent again after a lost message.
			if err := errors.Join(a.Advance(1), b.Advance(2)); err != nil {
				t.Fatal(err)
			}
			if send(a, b, 1, true) != a.Build(0) || b.Build(0) != "" {
				t.Fatal("a lost message counts as received")
			}
		}
		if send(a, b, 1, false) != a.Build(0) || b.Build(0) != a.Build(0) {
			t.Errorf("delay %d: Build(0) = %q after the first message, want %q", delay, b.Build(0), a.Build(0))
		}
		send(b, a, 0, false)
		if got := send(a, b, 1, false); got != "" {
			t.Errorf("delay %d: the build %q is sent again to a peer that has it", delay, got)
		}
		if b.Build(0) != a.Build(0) {
			t.Errorf("delay %d: Build(0) = %q after a message without one", delay, b.Build(0))
		}
	}
}

// A desync between different builds names both builds. A desync between equal builds names no
// build.
func TestDesync_NamesBothBuilds(t *testing.T) {
	for _, said := range []string{mac, ""} {
		o := two
		o.CheckEvery = 1
		w, s, _ := newSide(t, o, false)
		if err := s.Advance(1); err != nil {
			t.Fatal(err)
		}
		m := rollback.Message[int]{
			Tick: 2, Has: []uint64{1, 2}, Checked: 2, Digest: w.Digest() + 1, Build: said,
			Runs: []rollback.Run[int]{{Player: 1, From: 2, Values: []int{5}}},
		}
		if said == "" {
			m.Build = s.Build(0)
		}
		if err := s.Receive(1, &m); err != nil {
			t.Fatal(err)
		}
		err := s.Settle()
		var desync *rollback.DesyncError
		if !errors.As(err, &desync) || desync.Build != m.Build {
			t.Fatalf("Settle() = %v", err)
		}
		text := err.Error()
		if named := strings.Contains(text, mac) && strings.Contains(text, s.Build(0)) && strings.Contains(text, "docs/MACHINES.md"); named != (said == mac) {
			t.Errorf("Settle() = %v", err)
		}
	}
}

func TestBuild_HostileText(t *testing.T) {
	_, s, _ := newSide(t, two, false)
	for _, text := range []string{strings.Repeat("x", 256), "go1.26\n", "\x1b[31m", "\xff\xfe"} {
		m := rollback.Message[int]{Has: []uint64{1, 1}, Build: text}
		if err := s.Receive(1, &m); !errors.Is(err, rollback.ErrMessage) || s.Build(1) != "" {
			t.Errorf("a build %q: Receive() = %v, and Build(1) = %q", text, err, s.Build(1))
		}
	}
}
