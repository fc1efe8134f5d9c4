//go:build linux

package natslog_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// A kind is a kind of fault. Its function makes one fault, later repairs it, and returns a
// description. Results of faults with equal descriptions are counted together.
type kind struct {
	name  string
	fault func(*scene) (what string)
}

// kinds are all kinds of faults. The comment of judge lists what must hold after a fault.
var kinds = []kind{
	{"kill", (*scene).killOwner}, // The owner is killed.
	// The owner is stopped, and continues when another machine owns the world.
	{"stop", (*scene).stopOwner},
	{"servers", (*scene).killServers}, // The owner and one or two servers are killed.
	// The owner, servers or both are cut off from the other processes for some seconds.
	{"partition", (*scene).partition},
	// Bits of one server's messages are flipped while this server is down.
	{"flip", (*scene).flipBitsOfServer},
	// The leader of the stream is stopped until another server leads. A reader is connected to the
	// old leader.
	{"stale", (*scene).deposeLeader},
	{"forget", (*scene).forgetEntries}, // Two servers get older copies of their stores.
	// The stream is at its limit of bytes. The owner must report that.
	{"full", (*scene).fillStream},
	// A machine claims the world while its owner makes ticks.
	{"claim", (*scene).claimFromOwner},
	// A machine with an older program claims. Its claim must be refused.
	{"older", (*scene).claimByOlderProgram},
	// The owner makes no ticks for ten seconds. No other machine may claim.
	{"idle", (*scene).idleOwner},
}

// chosenKinds returns the kinds with the given names, which are separated by commas. Without names,
// it returns all kinds.
func chosenKinds(names string) (chosen []kind, err error) {
	if names == "" {
		return kinds, nil
	}
	for _, name := range strings.Split(names, ",") {
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-kinds: unknown kind %q", name)
		}
		chosen = append(chosen, kinds[i])
	}
	return chosen, nil
}

// schedule returns the kinds of n faults. It repeats all kinds, each time in another order.
func (s *scene) schedule(chosen []kind, n int) (order []kind) {
	for len(order) < n {
		next := slices.Clone(chosen)
		s.rng.Shuffle(len(next), func(i, j int) { next[i], next[j] = next[j], next[i] })
		order = append(order, next...)
	}
	return order[:n]
}

func (s *scene) killOwner() string {
	owner, term := s.owner()
	at := time.Now()
	s.kill(owner)
	s.confirms(at, term)
	time.Sleep(time.Until(at.Add(s.between(500*time.Millisecond, 2*time.Second))))
	s.start(owner)
	return "the owner killed"
}

func (s *scene) stopOwner() string {
	owner, term := s.owner()
	at := time.Now()
	s.stop(owner)
	s.confirms(at, term)
	time.Sleep(time.Until(at.Add(s.between(500*time.Millisecond, 2*time.Second))))
	s.resume(owner)
	return "the owner stopped"
}

func (s *scene) killServers() string {
	leader := s.leader()
	down := slices.Clone(s.servers)
	s.rng.Shuffle(3, func(i, j int) { down[i], down[j] = down[j], down[i] })
	down = down[:1+s.rng.IntN(2)]
	what := fmt.Sprintf("the owner and %d servers killed", len(down))
	if slices.Contains(down, leader) {
		what += ", the leader among them"
	}
	owner, term := s.owner()
	stopped, at := s.chance(), time.Now()
	for _, n := range down {
		s.kill(n)
	}
	if stopped {
		s.stop(owner)
	} else {
		s.kill(owner)
	}
	time.Sleep(s.between(500*time.Millisecond, 2*time.Second))
	for _, n := range down {
		s.start(n)
	}
	s.confirms(at, term)
	if stopped {
		s.resume(owner)
	} else {
		s.start(owner)
	}
	return what
}

func (s *scene) partition() string {
	if s.net.none {
		return "no partition, for want of network namespaces"
	}
	leader := s.leader()
	if leader == nil {
		leader = s.servers[0]
	}
	owner, _ := s.owner()
	second := s.servers[(slices.Index(s.servers, leader)+1)%3]
	sides := []struct {
		what  string
		nodes []*node
	}{
		{"the owner", []*node{owner}},
		{"the leader", []*node{leader}},
		{"the owner and the leader", []*node{owner, leader}},
		{"the owner and two servers", []*node{owner, leader, second}},
	}
	side := sides[s.rng.IntN(len(sides))]
	s.net.part(side.nodes...)
	time.Sleep(s.between(3*time.Second, 8*time.Second))
	s.net.heal(side.nodes...)
	s.confirms(time.Now(), -1)
	return "partition: " + side.what
}

// flipBitsOfServer flips bits in the messages of one server. The other two servers have good
// copies. In half of the cases, the damaged server then becomes the leader.
func (s *scene) flipBitsOfServer() string {
	n := s.servers[s.rng.IntN(3)]
	what := "bits flipped in a server"
	s.kill(n)
	blocks, err := messageBlocks(n.dir)
	require.NoError(s.t, err)
	bits, err := flipBits(s.rng, blocks, 1+s.rng.IntN(16))
	require.NoError(s.t, err)
	s.bits += bits
	time.Sleep(s.between(500*time.Millisecond, 2*time.Second))
	s.start(n)
	if s.chance() {
		what += " that leads later"
		s.whole()
		s.lead(n)
	}
	return what
}

// deposeLeader cuts the leader of the stream off until another server leads, and then reconnects
// it. For a while the old leader still acts as the leader. A reader that is connected only to the
// old leader gets stale answers.
func (s *scene) deposeLeader() string {
	leader := s.leader()
	if leader == nil {
		leader = s.servers[0]
	}
	s.reader.command = machineCommand("reader", s.reader, func() string { return s.url(leader) })
	s.start(s.reader)
	time.Sleep(s.between(300*time.Millisecond, time.Second))
	cut := s.chance() && !s.net.none
	what := "the leader stopped until another leads"
	if cut {
		what = "the leader and a reader parted until another leads"
		s.net.part(leader, s.reader)
	} else {
		s.stop(leader)
	}
	s.until("another leader", func() bool { l := s.leader(); return l != nil && l != leader })
	time.Sleep(s.between(0, 3*time.Second))
	if cut {
		s.net.heal(leader, s.reader)
	} else {
		s.resume(leader)
	}
	time.Sleep(s.between(time.Second, 3*time.Second))
	s.kill(s.reader)
	return what
}

// forgetEntries makes the log lose recently acknowledged entries: while no server runs, two of
// three servers get older copies of their stores. At random, some of these happen too:
//   - The third server gets an empty store.
//   - The owner is killed.
//   - A standby is stopped before the copies are made. This standby never had the lost entries, so
//     it can claim.
func (s *scene) forgetEntries() string {
	owner, _ := s.owner()
	killed, wiped := s.chance(), s.chance()
	var unaware *node
	if s.chance() {
		unaware = s.standby()
	}
	order := slices.Clone(s.servers)
	s.rng.Shuffle(3, func(i, j int) { order[i], order[j] = order[j], order[i] })

	if unaware != nil {
		s.stop(unaware)
	}
	s.stop(s.servers...)
	for _, n := range order[:2] {
		require.NoError(s.t, replaceDir(n.copy(), n.store()))
	}
	s.resume(s.servers...)
	time.Sleep(s.between(time.Second, 3*time.Second))

	for _, n := range s.servers {
		s.kill(n)
	}
	if killed {
		s.kill(owner)
	}
	// Wait until the judge has read all lines that the machines have printed.
	time.Sleep(200 * time.Millisecond)
	s.judge.forget()
	for _, n := range order[:2] {
		require.NoError(s.t, replaceDir(n.store(), n.copy()))
	}
	if wiped {
		require.NoError(s.t, replaceDir(order[2].store(), filepath.Join(order[2].dir, "none")))
	}
	for _, n := range s.servers {
		s.start(n)
	}
	if unaware != nil {
		s.resume(unaware)
	}
	if killed {
		s.start(owner)
	}
	what := "two servers with older copies"
	if wiped {
		what += ", the third wiped"
	}
	if killed {
		what += ", the owner killed"
	}
	if s.settle() > 0 {
		what += ": ticks lost"
	}
	return what
}

func (n *node) store() string { return filepath.Join(n.dir, "store") }
func (n *node) copy() string  { return filepath.Join(n.dir, "copy") }

// settle acts like the operator of a log that lost entries. If all machines report the loss, it
// orders one machine to continue with the shorter log, and then the other machines. It returns the
// number of confirmed ticks that were lost.
func (s *scene) settle() (forgotten int) {
	begun := time.Now()
	out := func(n *node) bool { return s.judge.reported(n.name) && !s.judge.follows(n.name) }
	chosen := s.machines[s.rng.IntN(3)]
	for ordered := false; !within(500*time.Millisecond, func() bool { return s.judge.confirmedSince(begun, -1) }); {
		if !ordered && !slices.ContainsFunc(s.machines, func(n *node) bool { return !s.judge.reported(n.name) }) {
			s.order(chosen, orderForget)
			ordered = true
		}
		if time.Since(begun) > 2*time.Minute {
			s.fail("no tick is confirmed after the log lost entries: %q", s.judge.reasons())
		}
	}
	for ordered := map[*node]bool{}; slices.ContainsFunc(s.machines, func(n *node) bool { return !s.judge.follows(n.name) }); time.Sleep(10 * time.Millisecond) {
		for _, n := range s.machines {
			if out(n) && !ordered[n] {
				s.order(n, orderForget)
				ordered[n] = true
			}
		}
		if time.Since(begun) > 3*time.Minute {
			s.fail("a machine does not follow after the log lost entries: %q", s.judge.reasons())
		}
	}
	s.repairServers()
	upto := s.judge.newestConfirmed()
	var head uint64
	s.until("a new follower after the log lost entries", func() (ok bool) {
		var err error
		head, _, err = s.freshFollower(s.servers[0], upto)
		return err == nil && s.judge.knows(head)
	})
	return s.judge.verdict(upto, head)
}

// repairServers gives an empty store to each server that does not catch up with the leader. A
// server cannot repair a copy with entries that the leader never had.
func (s *scene) repairServers() {
	for !within(8*time.Second, s.isWhole) {
		n := s.behind()
		if n == nil {
			continue
		}
		s.note(n.name, "gets an empty store")
		s.kill(n)
		require.NoError(s.t, os.RemoveAll(n.store()))
		s.start(n)
		if s.renewed++; s.renewed > 100 {
			s.fail("the servers do not get all messages of the stream")
		}
	}
}

// fillStream makes the stream refuse entries until the owner reports the full stream. It then
// allows the stream to grow again.
func (s *scene) fillStream() string {
	limit := func(of func(bytes int64) int64) {
		s.until("a new limit", func() bool {
			info := s.stream()
			if info == nil {
				return false
			}
			config := info.Config
			config.MaxBytes = of(int64(info.State.Bytes))
			ctx, done := context.WithTimeout(background, 5*time.Second)
			defer done()
			_, err := s.js.UpdateStream(ctx, config)
			return err == nil
		})
	}
	// Leave less room than a claim needs.
	extra := 1 + s.rng.Int64N(256)
	for try := 0; ; try++ {
		limit(func(bytes int64) int64 { return max(bytes>>try+extra, 1) })
		full := func() bool {
			owner, _ := s.judge.ownership()
			return strings.HasPrefix(s.judge.stuckReason(owner), "operator ")
		}
		if within(20*time.Second, full) {
			break
		}
		// An owner that has trimmed the stream in time reports nothing, so try again.
		if try == 3 {
			s.fail("the owner does not report that the stream is full: %q", s.judge.reasons())
		}
	}
	time.Sleep(s.between(0, 3*time.Second))
	limit(func(int64) int64 { return -1 })
	return "the stream full until the owner reports it"
}

// idleTime is the length of time in which the owner makes no ticks.
const idleTime = 10 * time.Second

func (s *scene) idleOwner() string {
	owner, term := s.owner()
	s.order(owner, orderIdle)
	time.Sleep(idleTime)
	_, after := s.owner()
	s.order(owner, orderTicks)
	if after != term {
		s.fail("%d machines claimed the world while its owner made no ticks", after-term)
	}
	return "the owner without ticks"
}

// standby returns a machine that does not own the world.
func (s *scene) standby() *node {
	owner, _ := s.owner()
	return s.machines[(slices.Index(s.machines, owner)+1+s.rng.IntN(2))%3]
}

func (s *scene) claimFromOwner() string {
	_, term := s.owner()
	n := s.standby()
	s.until(n.name+" as a follower", func() bool { return s.judge.follows(n.name) })
	at := time.Now()
	s.order(n, orderClaim)
	s.confirms(at, term)
	return "the world claimed while its owner makes ticks"
}

// claimByOlderProgram restarts a standby with an older program, which cannot open the current
// store, and orders it to claim.
func (s *scene) claimByOlderProgram() string {
	n := s.standby()
	current := n.command
	n.command = func() *exec.Cmd {
		cmd := current()
		cmd.Env = append(cmd.Env, asVersion+"=older")
		return cmd
	}
	s.kill(n)
	s.start(n)
	n.command = current
	s.until(n.name+" as a follower", func() bool { return s.judge.follows(n.name) })
	_, term := s.owner()
	s.order(n, orderClaim)
	s.until("a refusal of an older program", func() bool { return s.judge.refused(n.name) })
	s.confirms(time.Now(), -1)
	owner, after := s.owner()
	if after != term {
		s.fail("the world changed its owner, now %s, while an older program claimed it", owner.name)
	}
	if s.chance() { // Even after the owner's death, the older program must not claim.
		s.kill(owner)
		s.confirms(time.Now(), term)
		if next, _ := s.owner(); next == n {
			s.fail("an older program claimed the world")
		}
		s.start(owner)
	}
	s.kill(n)
	s.start(n)
	return "an older program claims"
}
