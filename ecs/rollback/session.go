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
	// ErrAhead says that a peer must wait: it is [Options.Window] ticks ahead of what it knows.
	ErrAhead = errors.New("rollback: too far ahead of what is known")
	// ErrMessage says that a message cannot be of this game. It changed nothing.
	ErrMessage = errors.New("rollback: bad message")
	// ErrDesync says that two peers have different worlds. See [DesyncError].
	ErrDesync = errors.New("rollback: peers disagree")
)

// A DesyncError names a tick that another peer has a different world of.
type DesyncError struct {
	Peer         int
	Tick         uint64 // The first that was compared and differs;
	Agreed       uint64 // the last that was the same, 0 if none was.
	Ours, Theirs ecs.Digest
	Build        string // The other peer's program and machine, as [Session.Build] has it.
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

// An Input is what a player does in a tick. It does not tell whether it is a guess: the
// world must not depend on that.
type Input[In comparable] struct {
	Value In
	Gone  bool // The player has left, and Value is [Options.Default].
}

// Inputs are those of a tick, by player. They are the session's, good for that tick.
type Inputs[In comparable] []Input[In]

// Options say who plays. They must be the same on all peers but for Peer and Delay.
type Options[In comparable] struct {
	Peers      int                          // How many, spectators among them.
	Peer       int                          // Which one this is, from 0.
	Players    []int                        // The peer of each player. A peer without one is a spectator and never guesses.
	Window     int                          // Ticks that may be made of guesses; default 8. The history must hold as many.
	Delay      int                          // Ticks until local input takes effect.
	Default    In                           // Input before the first, and of players who have left.
	Predict    func(player int, last In) In // Guesses from the last input known; default: the same.
	CheckEvery int                          // Ticks from one digest to the next, from the first on; default 20.
	Commit     func() error                 // Ends a tick; default [ecs.World.Commit].
}

// maxRun is how many inputs of a player a message holds, and how many ticks ahead of the
// world are taken in.
const maxRun = 256

// heldDigests is how many of the newest digests a session holds.
const heldDigests = 64

// A Session is one peer's side of a game. Ticks are those of the world, which begins at
// the same one on all peers. It is not safe for concurrent use.
type Session[In comparable] struct {
	w       *ecs.World
	stepper *ecs.Stepper[Inputs[In]]
	o       Options[In]
	start   uint64
	tick    uint64
	right   uint64 // Made of inputs that agree with all that is known, up to here.
	players []player[In]
	peers   []peer
	local   int
	used    []Inputs[In] // By tick modulo: what the ticks were made with.
	digests []checked
	again   uint64
	err     error
}

// A player is what is known of one: the inputs of the ticks first, first+1, ...
type player[In comparable] struct {
	first  uint64
	values []In
	last   In
	gone   uint64 // The first tick without; 0: not yet.
}

func (p *player[In]) known() uint64 { return p.first + uint64(len(p.values)) - 1 }

// sure returns up to which tick the inputs are known.
func (p *player[In]) sure() uint64 {
	if p.gone > 0 && p.known()+1 >= p.gone {
		return math.MaxUint64
	}
	return p.known()
}

// A peer is what another one said.
type peer struct {
	has     []uint64 // By player: up to which tick it has the inputs.
	tick    uint64   // Of its newest message.
	ahead   int      // As we see us,
	theirs  int      // and as they see themselves.
	gone    bool     // It was dropped.
	plays   bool     // It has players.
	build   string   // Its program and machine; "": unknown.
	told    bool     // It is known to have had a message with our build.
	pending checked  // To be compared once the tick is confirmed here.
	agreed  uint64
}

// A checked is the digest of a tick.
type checked struct {
	tick   uint64 // 0: none.
	digest ecs.Digest
}

// New returns a session that goes on from the tick of w, which must be committed.
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

// Confirmed returns the last tick that will not change any more.
func (s *Session[In]) Confirmed() uint64 { return min(s.right, s.known()) }

// Remade returns how many ticks have been made again.
func (s *Session[In]) Remade() uint64 { return s.again }

// Agreed returns the last tick that a peer is known to have the same world of; 0: none.
func (s *Session[In]) Agreed(peer int) uint64 { return s.peers[peer].agreed }

// Known returns up to which tick the inputs of a peer's players are known; a spectator
// has none, and the largest there is.
func (s *Session[In]) Known(peer int) uint64 {
	known := uint64(math.MaxUint64)
	for p, owner := range s.o.Players {
		if owner == peer {
			known = min(known, s.players[p].known())
		}
	}
	return known
}

// Build describes the program and the machine of a peer in one line, as it said itself:
//
//	go1.26.8 linux/arm64 fused math:e83c example.com/game@v1.2.3
//
// It is "" until the peer's first message. That of [Options.Peer] is this program's. A game between
// peers of different builds is played, as many compute only what is the same on all: compare the
// descriptions to warn or refuse. Two that differ in fused, or in the digits behind math, have
// different results of floats, unless the game is in the safe form of docs/MACHINES.md.
func (s *Session[In]) Build(peer int) string {
	if peer == s.o.Peer {
		return build.Here()
	}
	return s.peers[peer].build
}

// known returns up to which tick all inputs of the others are known.
func (s *Session[In]) known() uint64 {
	known := uint64(math.MaxUint64)
	for p, owner := range s.o.Players {
		if owner != s.o.Peer {
			known = min(known, s.players[p].sure())
		}
	}
	return known
}

// Ahead returns how many ticks this peer should let others catch up; below 0, it is behind.
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

// Drop says that a peer has left: from the tick from on, its players' inputs are
// [Options.Default]. All peers must be given the same tick, one after the newest
// [Session.Known] of it among them; what some lack of the ticks before the others send.
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

// Advance makes the next tick; local is the input of each local player, in order. It
// settles before, see [Session.Settle]. [ErrAhead] says that the tick was not made and
// local not taken.
func (s *Session[In]) Advance(local ...In) error {
	if len(local) != s.local {
		return fmt.Errorf("rollback: %d inputs for %d local players", len(local), s.local)
	}
	if err := s.Settle(); err != nil {
		return err
	}
	window := uint64(s.o.Window)
	if s.local == 0 {
		window = 0 // A spectator knows.
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

// Settle makes ticks again that were made with wrong guesses, and compares digests. An
// error, which may be a [*DesyncError], ends the session: it is returned ever after.
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

// holds reports whether tick t was made with what is known of it.
func (s *Session[In]) holds(t uint64) bool {
	for p, in := range s.used[t%uint64(len(s.used))] {
		if now, sure := s.input(p, t); sure && now != in {
			return false
		}
	}
	return true
}

// input returns what a player does in a tick, and whether that is sure.
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

// step makes a tick with the best there is known.
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

// digestAt returns where the digest lies of the last tick up to t that has one.
func (s *Session[In]) digestAt(t uint64) *checked {
	return &s.digests[(t-s.start)/uint64(s.o.CheckEvery)%heldDigests]
}

// compare compares what others said of ticks that are confirmed here.
func (s *Session[In]) compare() error {
	for i := range s.peers {
		p := &s.peers[i]
		c := p.pending
		if c.tick == 0 || c.tick > s.Confirmed() {
			continue
		}
		p.pending = checked{}
		switch ours := s.digestAt(c.tick); {
		case ours.tick != c.tick: // Too long ago.
		case ours.digest != c.digest:
			return s.fail(&DesyncError{Peer: i, Tick: c.tick, Agreed: p.agreed, Ours: ours.digest, Theirs: c.digest, Build: p.build})
		default:
			p.agreed = c.tick
		}
	}
	return nil
}

// trim forgets inputs that everyone has.
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
