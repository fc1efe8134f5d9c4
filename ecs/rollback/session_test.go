package rollback_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/rollback"
	"github.com/stet-ecs/stet/ecs/schedule"
)

type total struct{ N, Last int64 }

// newSide returns the world, session and schedule of a peer. In its game, each player inputs one
// number.
func newSide(t *testing.T, o rollback.Options[int], bug bool) (*ecs.World, *rollback.Session[int], *schedule.Schedule[rollback.Inputs[int]]) {
	w := ecs.NewWorld(ecs.Options{History: max(16, o.Window)})
	totals := ecs.MustRegister[total](w)
	for range o.Players {
		totals.Set(w.Create(), total{})
	}
	w.Commit()
	calls := int64(0)
	systems := schedule.New[rollback.Inputs[int]](w)
	systems.Add("add", ecs.Write(totals), func(tick *schedule.Tick[rollback.Inputs[int]]) {
		calls++
		for i, e := range totals.Entities() {
			v := totals.Mut(e)
			v.N = v.N*31 + int64(tick.Input[i].Value)
			if bug {
				v.Last = calls
			}
		}
	})
	s, err := rollback.New(systems, o)
	if err != nil {
		t.Fatal(err)
	}
	return w, s, systems
}

type flight struct {
	at, from, to int
	m            rollback.Message[int]
}

func clone(m rollback.Message[int]) rollback.Message[int] {
	m.Has = append([]uint64(nil), m.Has...)
	m.Runs = append([]rollback.Run[int](nil), m.Runs...)
	for i := range m.Runs {
		m.Runs[i].Values = append([]int(nil), m.Runs[i].Values...)
	}
	return m
}

// play runs a game of several peers over a network that loses, delays, reorders and duplicates
// messages. The last peer is a spectator. Every peer must reach tick 300 with the same digest as a
// world that had the true inputs from the start.
func play(t *testing.T, seed uint64, peers int, bug bool) error {
	rng := rand.New(rand.NewPCG(seed, 1))
	const end = 300
	var players []int
	for i := range peers - 1 {
		players = append(players, i)
	}
	players = append(players, 0) // The first peer has two players.
	worlds, sessions := make([]*ecs.World, peers), make([]*rollback.Session[int], peers)
	truth := make([][]int, len(players))
	for i := range peers {
		worlds[i], sessions[i], _ = newSide(t, rollback.Options[int]{Peers: peers, Peer: i, Players: players, Delay: i}, bug)
	}
	for p, owner := range players {
		// The peer's inputs take effect after a delay: see Delay above. Before that, the inputs are
		// 0.
		truth[p] = make([]int, owner)
	}
	var flying []flight
	for now := 0; now < 20000; now++ {
		done := true
		for i, s := range sessions {
			for _, f := range flying {
				if f.at == now && f.to == i {
					if err := s.Receive(f.from, &f.m); err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
				}
			}
			err := s.Settle()
			if err == nil && worlds[i].Tick() < end {
				var in []int
				for _, owner := range players {
					if owner == i {
						in = append(in, rng.IntN(3))
					}
				}
				if err = s.Advance(in...); err == nil {
					n := 0
					for p, owner := range players {
						if owner == i {
							truth[p] = append(truth[p], in[n])
							n++
						}
					}
				}
			}
			if err != nil && !errors.Is(err, rollback.ErrAhead) {
				return err
			}
			done = done && s.Confirmed() == end
			for to := range sessions {
				if to == i {
					continue
				}
				var m rollback.Message[int]
				if err := s.Report(to, &m); err != nil {
					t.Fatal(err)
				}
				for range rng.IntN(3) {
					flying = append(flying, flight{now + 1 + rng.IntN(8), i, to, clone(m)})
				}
			}
		}
		if done {
			break
		}
	}
	plain, _, systems := newSide(t, rollback.Options[int]{Peers: peers, Players: players}, false)
	for i := range end - 1 {
		in := make(rollback.Inputs[int], len(players))
		for p := range in {
			in[p].Value = truth[p][i]
		}
		systems.Step(in)
		plain.Commit()
	}
	for i, w := range worlds {
		if sessions[i].Confirmed() != end || w.Digest() != plain.Digest() {
			t.Errorf("seed %d: peer %d of %d: tick %d, confirmed %d, digest %v, want %v", seed, i, peers, w.Tick(), sessions[i].Confirmed(), w.Digest(), plain.Digest())
		}
	}
	return nil
}

func TestSession_LossyNetwork(t *testing.T) {
	for seed := range uint64(6) {
		if err := play(t, seed, 3+int(seed%3), false); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

func TestSession_ReportsDesync(t *testing.T) {
	var desync *rollback.DesyncError
	if err := play(t, 1, 3, true); !errors.As(err, &desync) || desync.Tick == 0 {
		t.Errorf("play() = %v, want a DesyncError", err)
	}
}
