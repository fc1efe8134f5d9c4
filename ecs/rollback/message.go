package rollback

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/build"
)

// A Message is sent from one peer to another.
type Message[In comparable] struct {
	// The sender's current tick.
	Tick uint64
	// The number of ticks by which the sender is ahead of the receiver, as the sender computed it.
	Ahead int
	// For each player, the last tick whose input the sender has.
	Has []uint64
	// The inputs that the receiver has not confirmed yet.
	Runs []Run[In]
	// The confirmed tick that Digest belongs to, or 0 if there is no digest.
	Checked uint64
	// The digest of tick Checked.
	Digest ecs.Digest
	// The sender's program and machine, as in [Session.Build]. It is "" after the receiver has
	// confirmed it.
	Build string
}

// A Run has a player's inputs for the ticks From, From+1, ...
type Run[In comparable] struct {
	Player int
	From   uint64
	Values []In
}

// Report fills m with the next message to a peer. It reuses the slices of m.
func (s *Session[In]) Report(to int, m *Message[In]) error {
	if to < 0 || to >= len(s.peers) || to == s.o.Peer {
		return fmt.Errorf("rollback: report to peer %d: not another peer", to)
	}
	other := &s.peers[to]
	m.Tick, m.Ahead, m.Has = s.tick, other.ahead, m.Has[:0]
	runs := m.Runs[:cap(m.Runs)]
	n := 0
	for i := range s.players {
		p := &s.players[i]
		m.Has = append(m.Has, p.known())
		owner := s.o.Players[i]
		if owner == to || owner != s.o.Peer && other.plays && !s.peers[owner].gone {
			continue
		}
		from := max(other.has[i]+1, p.first)
		if from > p.known() {
			continue
		}
		if n == len(runs) {
			runs = append(runs, Run[In]{})
		}
		values := p.values[from-p.first:]
		runs[n] = Run[In]{i, from, append(runs[n].Values[:0], values[:min(len(values), maxRun)]...)}
		n++
	}
	m.Runs = runs[:n]
	m.Build = ""
	if !other.told {
		m.Build = build.Here()
	}
	m.Checked, m.Digest = 0, 0
	if c := s.digestAt(s.Confirmed()); c.tick > 0 && c.tick <= s.Confirmed() {
		m.Checked, m.Digest = c.tick, c.digest
	}
	return nil
}

// Receive processes a message from a peer. It keeps no reference to m. An error wraps [ErrMessage].
// The inputs take effect at the next [Session.Advance] or [Session.Settle].
func (s *Session[In]) Receive(from int, m *Message[In]) error {
	if from < 0 || from >= len(s.peers) || from == s.o.Peer {
		return fmt.Errorf("%w: from peer %d: not another peer", ErrMessage, from)
	}
	other := &s.peers[from]
	if other.gone {
		return nil
	}
	if err := s.check(m); err != nil {
		return fmt.Errorf("%w of peer %d: %w", ErrMessage, from, err)
	}
	for _, r := range m.Runs {
		s.take(from, r)
	}
	if m.Build != "" {
		other.build = m.Build
	}
	for p, has := range m.Has {
		if s.o.Players[p] == s.o.Peer && has > s.start {
			// The other peer has an input of this peer, so it has also received this peer's build.
			// For a spectator this is uncertain: it may have received the input from a third peer.
			// So only a peer with players counts.
			other.told = other.told || other.plays
		}
		other.has[p] = max(other.has[p], min(has, s.players[p].known()))
	}
	if m.Tick > other.tick {
		other.tick, other.ahead, other.theirs = m.Tick, int(int64(s.tick-m.Tick)), m.Ahead
	}
	if other.pending.tick == 0 && m.Checked > other.agreed {
		other.pending = checked{m.Checked, m.Digest}
	}
	return nil
}

// check returns an error if m is not a valid message.
func (s *Session[In]) check(m *Message[In]) error {
	if err := build.Check(m.Build); err != nil {
		return err
	}
	if len(m.Has) != len(s.players) || len(m.Runs) > len(s.players) {
		return fmt.Errorf("%d ticks and %d runs for %d players", len(m.Has), len(m.Runs), len(s.players))
	}
	if k := uint64(s.o.CheckEvery); m.Checked > 0 && (m.Checked < s.start || (m.Checked-s.start)%k != 0) || m.Checked > m.Tick {
		return fmt.Errorf("a digest of tick %d at tick %d; digests are %d ticks apart", m.Checked, m.Tick, k)
	}
	if m.Tick > s.tick+1<<20 || m.Ahead > 1<<20 || m.Ahead < -1<<20 {
		return fmt.Errorf("tick %d, %d ahead, but this peer is at tick %d", m.Tick, m.Ahead, s.tick)
	}
	for p, has := range m.Has {
		if s.o.Players[p] == s.o.Peer && has > s.players[p].known() {
			return fmt.Errorf("has tick %d of player %d, whose last known tick is %d", has, p, s.players[p].known())
		}
	}
	for _, r := range m.Runs {
		if r.Player < 0 || r.Player >= len(s.players) || s.o.Players[r.Player] == s.o.Peer {
			return fmt.Errorf("inputs of player %d", r.Player)
		}
		p := &s.players[r.Player]
		if r.From <= s.start || r.From > p.known()+1 || len(r.Values) > maxRun {
			return fmt.Errorf("%d inputs of player %d from tick %d; the last known tick is %d", len(r.Values), r.Player, r.From, p.known())
		}
		for i, v := range r.Values {
			if t := r.From + uint64(i); t >= p.first && t <= p.known() && p.values[t-p.first] != v {
				return fmt.Errorf("the input of player %d in tick %d differs from an earlier message", r.Player, t)
			}
		}
	}
	return nil
}

// take adds the new inputs of r. The parameter from is the peer that sent them. A peer with players
// accepts the inputs of an active player only from the player's own peer. A spectator accepts them
// from every peer.
func (s *Session[In]) take(from int, r Run[In]) {
	owner, p := s.o.Players[r.Player], &s.players[r.Player]
	if owner != from && s.local > 0 && !s.peers[owner].gone {
		return
	}
	for i, v := range r.Values {
		t := r.From + uint64(i)
		if t != p.known()+1 {
			continue
		}
		if p.gone > 0 && t >= p.gone || t > s.tick+maxRun {
			return
		}
		p.values, p.last = append(p.values, v), v
	}
}
