package rollback

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/build"
)

var (
	// ErrAhead says that a peer must wait: it is [Options.Window] ticks ahead of the last tick
	// whose inputs are all known.
	ErrAhead = errors.New("rollback: too far ahead of what is known")
	// ErrMessage says that a message is not valid in this game. The session is unchanged.
	ErrMessage = errors.New("rollback: bad message")
	// ErrDesync says that two peers have different worlds. See [DesyncError].
	ErrDesync = errors.New("rollback: peers disagree")
)

// A DesyncError reports the tick at which another peer has a different world.
type DesyncError struct {
	Peer int
	// The first tick that was compared and differs.
	Tick uint64
	// The last tick that was equal, or 0.
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

// An Input is a player's input in a tick. It does not say whether the value is predicted, because
// the world must not depend on that.
type Input[In comparable] struct {
	Value In
	Gone  bool // The player has left, and Value is [Options.Default].
}

// Inputs holds the inputs of a tick, by player. It belongs to the session and is valid for that
// tick only.
type Inputs[In comparable] []Input[In]

// Options describe the game. They must be equal on all peers, except for Peer and Delay.
type Options[In comparable] struct {
	// The number of peers, including spectators.
	Peers int
	// The index of this peer, from 0.
	Peer int
	// The peer of each player. A peer without a player is a spectator and never predicts.
	Players []int
	// The maximum number of ticks with predicted inputs, by default 8. The history must hold as
	// many.
	Window int
	// Ticks until local input takes effect.
	Delay int
	// The input before a player's first one, and of players that have left.
	Default In
	// Predict returns a guess from the last known input. By default it repeats that input.
	Predict func(player int, last In) In
	// Ticks between two digests, by default 20.
	CheckEvery int
	// Commit ends a tick. The default is [ecs.World.Commit].
	Commit func() error
}

// maxRun limits the number of a player's inputs in a message. It also limits how many ticks ahead
// of the world inputs are accepted.
const maxRun = 256

// heldDigests is the number of digests that a session keeps, the newest ones.
const heldDigests = 64

// A Session is one peer's side of a game. Its ticks are the world's ticks. The world starts at the
// same tick on all peers. A Session is not safe for concurrent use.
type Session[In comparable] struct {
	w       *ecs.World
	stepper *ecs.Stepper[Inputs[In]]
	o       Options[In]
	start   uint64
	tick    uint64
	// The last tick whose inputs agree with all known inputs.
	right   uint64
	players []player[In]
	peers   []peer
	local   int
	// The inputs that each tick used, indexed by tick modulo len(used).
	used    []Inputs[In]
	digests []checked
	again   uint64
	err     error
}

// A player holds the known inputs of a player, for the ticks first, first+1, ...
type player[In comparable] struct {
	first  uint64
	values []In
	last   In
	// The first tick after the player left. 0 means that the player is still there.
	gone uint64
}

func (p *player[In]) known() uint64 { return p.first + uint64(len(p.values)) - 1 }

// sure returns the last tick whose input is known. It is MaxUint64 if all later inputs are known,
// because the player has left.
func (p *player[In]) sure() uint64 {
	if p.gone > 0 && p.known()+1 >= p.gone {
		return math.MaxUint64
	}
	return p.known()
}

// A peer is the state that another peer reported.
type peer struct {
	// By player: the last tick whose input the peer has.
	has  []uint64
	tick uint64 // The tick of the peer's newest message.
	// How far this peer is ahead of the other, as computed here.
	ahead int
	// How far the other peer is ahead, as computed there.
	theirs int
	gone   bool   // The peer was dropped.
	plays  bool   // The peer has players.
	build  string // The peer's program and machine. "" means unknown.
	// The peer is known to have received a message with our build.
	told bool
	// The peer's digest, to be compared once the tick is confirmed here.
	pending checked
	agreed  uint64
}

// A checked is the digest of a tick.
type checked struct {
	// 0 means that there is no digest.
	tick   uint64
	digest ecs.Digest
}

// New returns a session that starts at the current tick of w, which must be committed.
func New[In comparable](w *ecs.World, stepper *ecs.Stepper[Inputs[In]], o Options[In]) (*Session[In], error) {
	o.Window, o.CheckEvery = cmp.Or(o.Window, 8), cmp.Or(o.CheckEvery, 20)
	if o.Commit == nil {
		o.Commit = func() error { w.Commit(); return nil }
	}
	switch {
	case w.Raw().Dirty():
		return nil, fmt.Errorf("rollback: session from tick %d: %w; commit what the game begins with", w.Tick(), raw.ErrDirty)
	case o.Window < 0 || o.CheckEvery < 0 || o.Delay < 0 || o.Delay >= maxRun || o.Window >= maxRun:
		return nil, fmt.Errorf("rollback: Window %d, CheckEvery %d, Delay %d: none may be negative, Window and Delay are below %d", o.Window, o.CheckEvery, o.Delay, maxRun)
	case o.Peer < 0 || o.Peer >= o.Peers || len(o.Players) == 0:
		return nil, fmt.Errorf("rollback: peer %d of %d with %d players", o.Peer, o.Peers, len(o.Players))
	}
	s := &Session[In]{w: w, stepper: stepper, o: o, start: w.Tick(), tick: w.Tick(), right: w.Tick(), digests: make([]checked, heldDigests)}
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
			return nil, fmt.Errorf("rollback: player %d is of peer %d, of %d", p, owner, o.Peers)
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

// Agreed returns the last tick for which a peer is known to have the same world, or 0.
func (s *Session[In]) Agreed(peer int) uint64 { return s.peers[peer].agreed }

// Known returns the last tick for which the inputs of all players of a peer are known. For a
// spectator it is the maximum uint64.
func (s *Session[In]) Known(peer int) uint64 {
	known := uint64(math.MaxUint64)
	for p, owner := range s.o.Players {
		if owner == peer {
			known = min(known, s.players[p].known())
		}
	}
	return known
}

// Build returns the description of a peer's program and machine, in one line, as the peer reported
// it:
//
//	go1.26.8 linux/arm64 fused math:e83c example.com/game@v1.2.3
//
// It is "" until the first message of the peer arrives. For [Options.Peer] it describes this
// program. A game between peers of different builds is allowed, because many games compute the same
// on all machines. Compare the descriptions to warn or to reject a peer.
//
// Builds that differ in fused, or in the digits after math, compute different floats. The safe form
// of docs/MACHINES.md avoids that.
func (s *Session[In]) Build(peer int) string {
	if peer == s.o.Peer {
		return build.Here()
	}
	return s.peers[peer].build
}

// known returns the last tick for which the inputs of all other peers are known.
func (s *Session[In]) known() uint64 {
	known := uint64(math.MaxUint64)
	for p, owner := range s.o.Players {
		if owner != s.o.Peer {
			known = min(known, s.players[p].sure())
		}
	}
	return known
}

// Ahead returns how many ticks this peer should wait for the others. It is negative if this peer is
// behind.
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

// Drop records that a peer has left. Its players have the input [Options.Default] from tick from
// on. All peers must pass the same tick: one after the largest [Session.Known] of the dropped peer
// on any of them. Peers that lack earlier inputs receive them from the others.
func (s *Session[In]) Drop(peer int, from uint64) error {
	if peer < 0 || peer >= len(s.peers) || peer == s.o.Peer || s.peers[peer].gone {
		return fmt.Errorf("rollback: drop peer %d: not another one that plays", peer)
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

// Advance runs the next tick. local holds the input of each local player, in order. It first calls
// [Session.Settle]. If the error is [ErrAhead], the tick was not run and local was not used.
func (s *Session[In]) Advance(local ...In) error {
	if len(local) != s.local {
		return fmt.Errorf("rollback: %d inputs for %d local players", len(local), s.local)
	}
	if err := s.Settle(); err != nil {
		return err
	}
	window := uint64(s.o.Window)
	if s.local == 0 {
		window = 0 // A spectator only runs ticks whose inputs are known.
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
		return s.fail(fmt.Errorf("rollback: the history begins at tick %d of %d; a window of %d takes ecs.Options.History of as many", s.w.History().Oldest(), s.tick, window))
	}
	s.trim()
	return nil
}

func (s *Session[In]) fail(err error) error {
	s.err = err
	return err
}

// Settle reruns the ticks with wrong predictions and compares digests. An error, which may be a
// [*DesyncError], ends the session: every later call returns it.
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

// holds reports whether the inputs used in tick t agree with the known inputs.
func (s *Session[In]) holds(t uint64) bool {
	for p, in := range s.used[t%uint64(len(s.used))] {
		if now, sure := s.input(p, t); sure && now != in {
			return false
		}
	}
	return true
}

// input returns the input of a player in a tick, and whether it is known. If not, it is predicted.
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

// step runs the next tick with known inputs, or predicted ones.
func (s *Session[In]) step() error {
	t := s.tick + 1
	in := s.used[t%uint64(len(s.used))]
	for p := range in {
		in[p], _ = s.input(p, t)
	}
	s.stepper.Run(s.w, in)
	if err := s.o.Commit(); err != nil {
		return fmt.Errorf("rollback: tick %d: %w", t, err)
	}
	s.tick = t
	if (t-s.start)%uint64(s.o.CheckEvery) == 0 {
		*s.digestAt(t) = checked{t, s.w.Digest()}
	}
	return nil
}

// digestAt returns the slot for the digest of the last tick up to t that has one.
func (s *Session[In]) digestAt(t uint64) *checked {
	return &s.digests[(t-s.start)/uint64(s.o.CheckEvery)%heldDigests]
}

// compare compares the digests of other peers for ticks that are confirmed here.
func (s *Session[In]) compare() error {
	for i := range s.peers {
		p := &s.peers[i]
		c := p.pending
		if c.tick == 0 || c.tick > s.Confirmed() {
			continue
		}
		p.pending = checked{}
		switch ours := s.digestAt(c.tick); {
		// The digest here was overwritten.
		case ours.tick != c.tick:
		case ours.digest != c.digest:
			return s.fail(&DesyncError{Peer: i, Tick: c.tick, Agreed: p.agreed, Ours: ours.digest, Theirs: c.digest, Build: p.build})
		default:
			p.agreed = c.tick
		}
	}
	return nil
}

// trim removes inputs that all other peers have.
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
