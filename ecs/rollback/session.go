package rollback

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/ecs/schedule"
	"github.com/stet-ecs/stet/internal/build"
)

var (
	// ErrAhead reports that this peer must wait. It is [Options.Window] ticks ahead of the last
	// tick for which it knows all inputs.
	ErrAhead = errors.New("rollback: too far ahead of the known inputs")
	// ErrMessage reports a message that is not valid in this game. The session is unchanged.
	ErrMessage = errors.New("rollback: bad message")
	// ErrDesync reports that two peers have different worlds. See [DesyncError].
	ErrDesync = errors.New("rollback: peers disagree")
)

// A DesyncError reports the tick at which another peer has a different world.
type DesyncError struct {
	Peer int
	// The oldest compared tick at which the digests differ.
	Tick uint64
	// The newest compared tick at which the digests were equal, or 0.
	Agreed       uint64
	Ours, Theirs ecs.Digest
	// The other peer's program and machine, in the form of [Session.Build].
	Build string
}

func (e *DesyncError) Error() string {
	before := "none before was compared"
	if e.Agreed > 0 {
		before = fmt.Sprintf("tick %d was the same", e.Agreed)
	}
	text := fmt.Sprintf("rollback: peer %d has digest %v of tick %d, here it is %v; %s", e.Peer, e.Theirs, e.Tick, e.Ours, before)
	if differ := build.Differ(build.Here(), e.Build); differ != "" {
		text += fmt.Sprintf("; it is built as %s, and floats may differ: see docs/MACHINES.md", differ)
	}
	return text
}

// Unwrap returns [ErrDesync].
func (e *DesyncError) Unwrap() error { return ErrDesync }

// An Input is a player's input in a tick. Predicted and real inputs look the same, so the world
// cannot depend on the difference.
type Input[In comparable] struct {
	Value In
	Gone  bool // The player has left, and Value is [Options.Default].
}

// Inputs has the inputs of a tick, one for each player. The session owns the slice, which is valid
// only during that tick.
type Inputs[In comparable] []Input[In]

// Options describe the game. They must be equal on all peers, except for Peer and Delay.
type Options[In comparable] struct {
	// The number of peers, including spectators.
	Peers int
	// The index of this peer, from 0.
	Peer int
	// The peer of each player. A peer without a player is a spectator, which runs no tick with
	// predicted inputs.
	Players []int
	// The maximum number of ticks with predicted inputs, by default 8. The history must retain at
	// least as many ticks.
	Window int
	// The number of ticks after which a local input takes effect.
	Delay int
	// The input before a player's first input, and after the player has left.
	Default In
	// Predict returns a predicted input. last is the last known input of the player, which is also
	// the default prediction.
	Predict func(player int, last In) In
	// The number of ticks between two digests, by default 20.
	CheckEvery int
	// Commit ends a tick. The default is [ecs.World.Commit].
	Commit func() error
}

// maxRun is the maximum number of a player's inputs in a message. It is also the maximum number of
// ticks by which accepted inputs may be ahead of the world.
const maxRun = 256

// heldDigests is the number of newest digests that a session keeps.
const heldDigests = 64

// A Session is the state of a game on one peer. Its ticks are the ticks of the world. The world
// starts at the same tick on all peers. A Session is not safe for concurrent use.
type Session[In comparable] struct {
	w       *ecs.World
	systems *schedule.Schedule[Inputs[In]]
	o       Options[In]
	start   uint64
	tick    uint64
	// The newest tick up to which all ticks have run with the real inputs.
	right   uint64
	players []player[In]
	peers   []peer
	local   int
	// The inputs that recent ticks used. Tick t is at position t modulo len(used).
	used    []Inputs[In]
	digests []checked
	again   uint64
	err     error
}

// A player has the known inputs of one player. values[i] is the input for tick first+i.
type player[In comparable] struct {
	first  uint64
	values []In
	last   In
	// The first tick after the player left, or 0 if the player has not left.
	gone uint64
}

func (p *player[In]) known() uint64 { return p.first + uint64(len(p.values)) - 1 }

// sure returns the last tick for which the session need not predict the player's input. This is the
// last tick whose input is known. But if the player has left and all its inputs are known, it is
// MaxUint64.
func (p *player[In]) sure() uint64 {
	if p.gone > 0 && p.known()+1 >= p.gone {
		return math.MaxUint64
	}
	return p.known()
}

// A peer is what this session knows about another peer.
type peer struct {
	// For each player, the last tick whose input the peer has.
	has  []uint64
	tick uint64 // The tick of the peer's newest message.
	// The number of ticks by which the session is ahead of the other peer, as the session computed
	// it.
	ahead int
	// The number of ticks by which the other peer is ahead of the session, as the other peer
	// computed it.
	theirs int
	gone   bool   // The peer was dropped.
	plays  bool   // The peer has players.
	build  string // The peer's program and machine, or "" if unknown.
	// The other peer has confirmed a message that contained this program's build.
	told bool
	// The peer's newest digest, to be compared when its tick is confirmed here.
	pending checked
	agreed  uint64
}

// A checked is the digest of a tick.
type checked struct {
	// The tick of the digest, or 0 if there is no digest.
	tick   uint64
	digest ecs.Digest
}

// New returns a session of the world of systems. It starts at the current tick, which must be
// committed.
func New[In comparable](systems *schedule.Schedule[Inputs[In]], o Options[In]) (*Session[In], error) {
	w := systems.World()
	o.Window, o.CheckEvery = cmp.Or(o.Window, 8), cmp.Or(o.CheckEvery, 20)
	if o.Commit == nil {
		o.Commit = func() error { w.Commit(); return nil }
	}
	switch {
	case w.Raw().Dirty():
		return nil, fmt.Errorf("rollback: session from tick %d: %w; commit before New", w.Tick(), raw.ErrDirty)
	case o.Window < 0 || o.CheckEvery < 0 || o.Delay < 0 || o.Delay >= maxRun || o.Window >= maxRun:
		return nil, fmt.Errorf("rollback: Window %d, CheckEvery %d, Delay %d: none may be negative, Window and Delay are below %d", o.Window, o.CheckEvery, o.Delay, maxRun)
	case o.Peer < 0 || o.Peer >= o.Peers || len(o.Players) == 0:
		return nil, fmt.Errorf("rollback: peer %d of %d with %d players", o.Peer, o.Peers, len(o.Players))
	}
	s := &Session[In]{w: w, systems: systems, o: o, start: w.Tick(), tick: w.Tick(), right: w.Tick(), digests: make([]checked, heldDigests)}
	s.peers = make([]peer, o.Peers)
	for i := range s.peers {
		s.peers[i].has = make([]uint64, len(o.Players))
		for p := range o.Players {
			s.peers[i].has[p] = s.start
		}
	}
	s.players = make([]player[In], len(o.Players))
	for p, owner := range o.Players {
		if owner < 0 || owner >= o.Peers {
			return nil, fmt.Errorf("rollback: player %d belongs to peer %d, but there are %d peers", p, owner, o.Peers)
		}
		s.peers[owner].plays = true
		s.players[p] = player[In]{first: s.start + 1, last: o.Default}
		if owner == o.Peer {
			s.local++
			for range o.Delay {
				s.players[p].values = append(s.players[p].values, o.Default)
			}
		}
	}
	for range o.Window + 1 {
		s.used = append(s.used, make(Inputs[In], len(o.Players)))
	}
	return s, nil
}

// Confirmed returns the last tick that will not change again.
func (s *Session[In]) Confirmed() uint64 { return min(s.right, s.known()) }

// Remade returns the number of ticks that were run again.
func (s *Session[In]) Remade() uint64 { return s.again }

// Agreed returns the last tick for which the peer reported the same digest, or 0.
func (s *Session[In]) Agreed(peer int) uint64 { return s.peers[peer].agreed }

// Known returns the last tick for which this session knows the inputs of all players of the given
// peer. For a spectator it returns the maximum uint64.
func (s *Session[In]) Known(peer int) uint64 {
	known := uint64(math.MaxUint64)
	for p, owner := range s.o.Players {
		if owner == peer {
			known = min(known, s.players[p].known())
		}
	}
	return known
}

// Build returns one line that describes a peer's program and machine. Messages carry this line:
//
//	go1.26.8 linux/arm64 fused math:e83c example.com/game@v1.2.3
//
// The line is "" until the first message of the peer arrives. For [Options.Peer] it describes this
// program.
//
// Peers of different builds may play together. A program can compare the lines to warn or to reject
// a peer. Builds that differ in "fused", or in the digits after "math:", can compute different
// floats: see docs/MACHINES.md.
func (s *Session[In]) Build(peer int) string {
	if peer == s.o.Peer {
		return build.Here()
	}
	return s.peers[peer].build
}

// known returns the last tick for which this peer knows the inputs of all other peers.
func (s *Session[In]) known() uint64 {
	known := uint64(math.MaxUint64)
	for p, owner := range s.o.Players {
		if owner != s.o.Peer {
			known = min(known, s.players[p].sure())
		}
	}
	return known
}

// Ahead returns the number of ticks that this peer should wait for the others. It is negative if
// this peer is behind.
func (s *Session[In]) Ahead() int {
	ahead, known := math.MinInt, false
	for i := range s.peers {
		if p := &s.peers[i]; i != s.o.Peer && p.plays && !p.gone && p.tick > 0 {
			ahead, known = max(ahead, (p.ahead-p.theirs)/2), true
		}
	}
	if !known {
		return 0
	}
	return ahead
}

// Drop tells the session that a peer has left. The parameter from is the first tick without its
// inputs: its players then have the input [Options.Default]. All remaining peers must pass the same
// tick:
//
//	from = 1 + the maximum of Known(peer) over the remaining peers
//
// A peer that lacks earlier inputs receives them from the others.
func (s *Session[In]) Drop(peer int, from uint64) error {
	if peer < 0 || peer >= len(s.peers) || peer == s.o.Peer || s.peers[peer].gone {
		return fmt.Errorf("rollback: drop peer %d: not another active peer", peer)
	}
	for p, owner := range s.o.Players {
		if known := s.players[p].known(); owner == peer && from <= known {
			return fmt.Errorf("rollback: drop peer %d from tick %d: the input of tick %d is known", peer, from, known)
		}
	}
	s.peers[peer].gone = true
	for p, owner := range s.o.Players {
		if owner == peer {
			s.players[p].gone = from
		}
	}
	return nil
}

// Advance runs the next tick with the given inputs, one for each local player. It first calls
// [Session.Settle]. After the error [ErrAhead], the tick has not run, and the inputs are not used.
func (s *Session[In]) Advance(local ...In) error {
	if len(local) != s.local {
		return fmt.Errorf("rollback: %d inputs for %d local players", len(local), s.local)
	}
	if err := s.Settle(); err != nil {
		return err
	}
	window := uint64(s.o.Window)
	if s.local == 0 {
		window = 0 // A spectator runs only ticks whose inputs are known.
	}
	if known := s.known(); s.tick >= known && s.tick-known >= window {
		return ErrAhead
	}
	for p, owner := range s.o.Players {
		if owner == s.o.Peer {
			s.players[p].values = append(s.players[p].values, local[0])
			local = local[1:]
		}
	}
	if err := s.step(); err != nil {
		return s.fail(err)
	}
	if s.local > 0 && s.w.History().Oldest() > max(s.start, s.tick-min(s.tick, window)) {
		return s.fail(fmt.Errorf("rollback: the history begins at tick %d, the world is at tick %d; a window of %d ticks needs ecs.Options.History of at least as many", s.w.History().Oldest(), s.tick, window))
	}
	s.trim()
	return nil
}

func (s *Session[In]) fail(err error) error {
	s.err = err
	return err
}

// Settle repeats the ticks that used wrong predictions, and compares digests. An error ends the
// session, for instance a [*DesyncError]: later calls of Settle and Advance return the same error.
//
// Settle also returns an error if the program has changed the world since the last tick. That error
// does not end the session.
func (s *Session[In]) Settle() error {
	if s.err != nil {
		return s.err
	}
	if s.w.Tick() != s.tick || s.w.Raw().Dirty() {
		return fmt.Errorf("rollback: the world is at tick %d, or was written there; the session left it at the end of tick %d", s.w.Tick(), s.tick)
	}
	now, sure := s.tick, min(s.tick, s.known())
	for t := s.right + 1; t <= now; t++ {
		if !s.holds(t) {
			if err := s.w.History().Seek(t - 1); err != nil {
				return s.fail(fmt.Errorf("rollback: go back to tick %d: %w", t-1, err))
			}
			s.tick = t - 1
			for s.tick < now {
				s.again++
				if err := s.step(); err != nil {
					return s.fail(err)
				}
			}
			break
		}
	}
	s.right = max(s.right, sure)
	return s.compare()
}

// holds reports whether the inputs that tick t used equal the known inputs.
func (s *Session[In]) holds(t uint64) bool {
	for p, in := range s.used[t%uint64(len(s.used))] {
		if now, sure := s.input(p, t); sure && now != in {
			return false
		}
	}
	return true
}

// input returns the input of a player in tick t. If the input is not known, it returns a prediction
// and false.
func (s *Session[In]) input(player int, t uint64) (in Input[In], sure bool) {
	p := &s.players[player]
	switch {
	case p.gone > 0 && t >= p.gone:
		return Input[In]{s.o.Default, true}, true
	case t <= p.known():
		return Input[In]{p.values[t-p.first], false}, true
	case s.o.Predict != nil:
		return Input[In]{s.o.Predict(player, p.last), false}, false
	}
	return Input[In]{p.last, false}, false
}

// step runs the next tick. It predicts the inputs that are not known.
func (s *Session[In]) step() error {
	t := s.tick + 1
	in := s.used[t%uint64(len(s.used))]
	for p := range in {
		in[p], _ = s.input(p, t)
	}
	s.systems.Step(in)
	if err := s.o.Commit(); err != nil {
		return fmt.Errorf("rollback: tick %d: %w", t, err)
	}
	s.tick = t
	if (t-s.start)%uint64(s.o.CheckEvery) == 0 {
		*s.digestAt(t) = checked{t, s.w.Digest()}
	}
	return nil
}

// digestAt returns the slot for the digest of tick t. The slots form a ring, so the slot may
// contain the digest of another tick. If t has no digest, digestAt returns the slot of the last
// tick before t that has one.
func (s *Session[In]) digestAt(t uint64) *checked {
	return &s.digests[(t-s.start)/uint64(s.o.CheckEvery)%heldDigests]
}

// compare compares the received digests of other peers for ticks that are confirmed here.
func (s *Session[In]) compare() error {
	for i := range s.peers {
		p := &s.peers[i]
		c := p.pending
		if c.tick == 0 || c.tick > s.Confirmed() {
			continue
		}
		p.pending = checked{}
		switch ours := s.digestAt(c.tick); {
		// The digest of a newer tick has overwritten ours.
		case ours.tick != c.tick:
		case ours.digest != c.digest:
			return s.fail(&DesyncError{Peer: i, Tick: c.tick, Agreed: p.agreed, Ours: ours.digest, Theirs: c.digest, Build: p.build})
		default:
			p.agreed = c.tick
		}
	}
	return nil
}

// trim removes the inputs that are confirmed here and that all other peers have.
func (s *Session[In]) trim() {
	for i := range s.players {
		p := &s.players[i]
		keep := s.Confirmed()
		for j := range s.peers {
			if j != s.o.Peer && !s.peers[j].gone {
				keep = min(keep, s.peers[j].has[i])
			}
		}
		if keep < p.first {
			continue
		}
		n := int(min(keep, p.known()) + 1 - p.first)
		if n > 0 && n >= len(p.values)/2 {
			p.values = p.values[:copy(p.values, p.values[n:])]
			p.first += uint64(n)
		}
	}
}
