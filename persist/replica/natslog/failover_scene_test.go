//go:build linux

package natslog_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/replica"
	"github.com/stet-ecs/stet/persist/replica/natslog"
)

// A node is a process of the scene, which may not have started yet.
type node struct {
	name, addr, dir string
	command         func() *exec.Cmd
	cmd             *exec.Cmd // nil if the process does not run.
	in              io.WriteCloser
	// Closed when the process has ended and all of its lines are read.
	ended chan struct{}
}

// A scene is three servers, three machines and a reader, with the judge that reads their lines.
type scene struct {
	t        *testing.T
	rng      *rand.Rand
	net      *network
	judge    *judge
	servers  []*node
	machines []*node
	reader   *node
	client   int // The client port of all servers.
	js       jetstream.JetStream
	table    map[string]*tally
	fresh    []time.Duration // The time that each new follower needed until it was ready.
	// The number of servers that got an empty store because they did not catch up by themselves.
	renewed int
	excused int // Number of followers that were late for a reason that a machine reported.
	bits    int // The number of flipped bits.
	begun   time.Time
}

// A tally has the results of faults of one kind.
type tally struct {
	outages []time.Duration
	took    time.Duration
}

func newScene(t *testing.T, net *network, rng *rand.Rand) *scene {
	s := &scene{t: t, rng: rng, net: net, judge: newJudge(), table: map[string]*tally{}, begun: time.Now()}
	dir := t.TempDir()
	// NATSLOG_KEEP names a directory in which the files remain after the test.
	if keep := os.Getenv("NATSLOG_KEEP"); keep != "" {
		var err error
		dir, err = os.MkdirTemp(keep, "failover")
		require.NoError(t, err)
		t.Log(dir)
	}
	free := freePorts(t, 2)
	s.client = free[0]
	var addrs, urls []string
	for i, name := range []string{"s0", "s1", "s2", "a", "b", "c", "r"} {
		n := &node{name: name, addr: net.addr(i + 1), dir: filepath.Join(dir, name)}
		require.NoError(t, os.MkdirAll(n.dir, 0o755))
		switch {
		case i < 3:
			s.servers, addrs, urls = append(s.servers, n), append(addrs, n.addr), append(urls, s.url(n))
		case name == "r":
			s.reader = n
		default:
			n.command = machineCommand("machine", n, func() string { return strings.Join(urls, ",") })
			s.machines = append(s.machines, n)
		}
	}
	for _, n := range s.servers {
		config := writeConfig(t, n, s.client, free[1], addrs)
		n.command = func() *exec.Cmd { return serverCommand(config) }
	}
	t.Cleanup(func() {
		for _, n := range slices.Concat(s.machines, s.servers, []*node{s.reader}) {
			s.kill(n)
		}
	})
	for _, n := range s.servers {
		s.start(n)
	}
	js, err := dial(strings.Join(urls, ","), true)
	require.NoError(t, err)
	t.Cleanup(js.Conn().Close)
	s.js = js
	s.until("a stream", func() bool { return natslog.Create(background, js, "WORLDS", natslog.Options{}) == nil })
	checkServers(t, strings.Join(urls, ","))
	for _, n := range s.machines {
		s.start(n)
	}
	s.until("an owner", func() bool { return s.judge.newestConfirmed() > 10 })
	return s
}

func (s *scene) url(n *node) string { return fmt.Sprintf("nats://%s:%d", n.addr, s.client) }

// machineCommand returns a function that creates the command for this program as a machine or a
// reader.
func machineCommand(role string, n *node, servers func() string) func() *exec.Cmd {
	return func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), asRole+"="+role, asName+"="+n.name, asDir+"="+n.dir, asServers+"="+servers())
		return cmd
	}
}

// start starts a process.
func (s *scene) start(n *node) {
	s.t.Helper()
	cmd := n.command()
	cmd.SysProcAttr = s.net.process()
	cmd.Stderr = os.Stderr
	var err error
	n.in, err = cmd.StdinPipe()
	require.NoError(s.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, cmd.Start())
	n.cmd, n.ended = cmd, make(chan struct{})
	s.judge.began(n.name)
	s.net.join(cmd.Process.Pid, n.addr)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			line := lines.Text()
			s.judge.hear(n.name, line)
			if word, _, _ := strings.Cut(line, " "); !slices.Contains([]string{"commit", "confirmed", "shown"}, word) {
				s.note(n.name, line)
			}
		}
		_ = cmd.Wait()
		close(n.ended)
	}()
	s.order(n, "go")
}

// note prints an event, with the time since the scene began, if NATSLOG_NOTES is set.
func (s *scene) note(words ...any) {
	if os.Getenv("NATSLOG_NOTES") == "" {
		return
	}
	fmt.Printf("%8.3f %s", time.Since(s.begun).Seconds(), fmt.Sprintln(words...))
}

// order writes a line to a process.
func (s *scene) order(n *node, order string) {
	s.note(n.name, "gets the order", order)
	_, err := io.WriteString(n.in, order+"\n")
	require.NoError(s.t, err)
}

// kill ends a running process immediately.
func (s *scene) kill(n *node) {
	if n.cmd == nil {
		return
	}
	_ = n.cmd.Process.Kill()
	<-n.ended
	n.cmd = nil
	s.judge.killed(n.name)
}

// stop suspends processes. Their connections remain open. resume() continues the processes.
func (s *scene) stop(nodes ...*node) {
	for _, n := range nodes {
		require.NoError(s.t, n.cmd.Process.Signal(syscall.SIGSTOP))
	}
}

func (s *scene) resume(nodes ...*node) {
	for _, n := range nodes {
		require.NoError(s.t, n.cmd.Process.Signal(syscall.SIGCONT))
	}
}

// between returns a random duration between least and most.
func (s *scene) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.rng.Int64N(int64(most-least)))
}

func (s *scene) chance() bool { return s.rng.IntN(2) == 0 }

// until waits until f returns true, for a minute at most.
func (s *scene) until(what string, f func() bool) {
	s.t.Helper()
	if !within(time.Minute, f) {
		s.fail("no %s within a minute: %q", what, s.judge.reasons())
	}
}

// within waits up to d until f returns true, and reports whether it did.
func within(d time.Duration, f func() bool) bool {
	for end := time.Now().Add(d); !f(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// fail ends the test, and prints the last log lines of the servers.
func (s *scene) fail(format string, args ...any) {
	s.t.Helper()
	for _, n := range s.servers {
		b, _ := os.ReadFile(filepath.Join(n.dir, "server.log"))
		lines := strings.Split(string(b), "\n")
		s.t.Logf("%s:\n%s", n.name, strings.Join(lines[max(0, len(lines)-25):], "\n"))
	}
	s.t.Fatalf(format, args...)
}

// stream returns the servers' information about the stream, or nil if no server answers.
func (s *scene) stream() *jetstream.StreamInfo {
	ctx, done := context.WithTimeout(background, time.Second)
	defer done()
	stream, err := s.js.Stream(ctx, "WORLDS")
	if err != nil || stream.CachedInfo().Cluster == nil {
		return nil
	}
	return stream.CachedInfo()
}

// leader returns the server that leads the stream, or nil if no server names one.
func (s *scene) leader() *node {
	info := s.stream()
	if info == nil {
		return nil
	}
	return s.named(info.Cluster.Leader)
}

// named returns the process with a name, or nil if no process has it.
func (s *scene) named(name string) *node {
	for _, n := range slices.Concat(s.servers, s.machines) {
		if n.name == name {
			return n
		}
	}
	return nil
}

// lead makes a server the leader of the stream.
func (s *scene) lead(n *node) {
	s.until(n.name+" as the leader", func() bool {
		if s.leader() == n {
			return true
		}
		ctx, done := context.WithTimeout(background, 2*time.Second)
		defer done()
		request, _ := json.Marshal(map[string]any{"placement": map[string]any{"preferred": n.name}})
		_, _ = s.js.Conn().RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN.WORLDS", request)
		within(2*time.Second, func() bool { return s.leader() == n })
		return false
	})
}

// owner returns the machine that owns the world, and the number of its term.
func (s *scene) owner() (*node, int) {
	name, term := s.judge.ownership()
	return s.named(name), term
}

// confirms waits until a tick is confirmed after a point in time, in a later term than the given
// one.
func (s *scene) confirms(after time.Time, term int) {
	s.t.Helper()
	s.until("a tick that is confirmed", func() bool { return s.judge.confirmedSince(after, term) })
}

// whole waits until all servers have all messages of the stream.
func (s *scene) whole() {
	s.t.Helper()
	s.until("a cluster in which every server has all messages", s.isWhole)
}

func (s *scene) isWhole() bool { return s.leader() != nil && s.behind() == nil }

// behind returns a server that does not have all messages of the stream. It returns nil if every
// server has them, or if the stream has no leader.
func (s *scene) behind() *node {
	info := s.stream()
	if info == nil || s.named(info.Cluster.Leader) == nil {
		return nil
	}
	for _, n := range s.servers {
		if n.name == info.Cluster.Leader {
			continue
		}
		if !slices.ContainsFunc(info.Cluster.Replicas, func(p *jetstream.PeerInfo) bool { return p.Name == n.name && p.Current && !p.Offline }) {
			return n
		}
	}
	return nil
}

// round makes a fault, and the judge then compares the lines of the machines with the log.
func (s *scene) round(i int, k kind) {
	s.whole()
	time.Sleep(s.between(300*time.Millisecond, 800*time.Millisecond))
	s.confirms(time.Now(), -1)
	s.judge.watch()
	begun := time.Now()
	what := k.fault(s)
	s.confirms(time.Now(), -1)
	outage := s.judge.outage()
	s.whole()
	s.examine()
	took := time.Since(begun)
	line := s.table[what]
	if line == nil {
		line = &tally{}
		s.table[what] = line
	}
	line.outages, line.took = append(line.outages, outage), line.took+took
	s.t.Logf("%3d %-8s %s: no tick for %v; total time %v", i, k.name, what, outage.Round(time.Millisecond), took.Round(time.Millisecond))
}

// examine reads the log through each server with a new follower. The judge compares the shown ticks
// with the confirmed ticks.
func (s *scene) examine() {
	for _, n := range s.servers {
		s.examineBy(n)
	}
	s.demand()
}

// demand ends the test if a promise was broken.
func (s *scene) demand() {
	if broken := s.judge.takeViolations(); len(broken) > 0 {
		s.fail("%s", strings.Join(broken, "\n"))
	}
}

// freshLimit is the time limit for a new follower to be ready. A longer time is accepted if a
// machine reports why no tick is confirmed.
const freshLimit = 10 * time.Second

// examineBy reads the log through one server with a new follower. If the follower is not ready in
// time, a machine must have reported a reason. The owner then calls Rebase, and a second new
// follower must be ready in time.
func (s *scene) examineBy(n *node) {
	upto := s.judge.newestConfirmed()
	head, took, err := s.freshFollower(n, upto)
	if err != nil {
		reasons := append(s.judge.reasons(), err.Error())
		if len(reasons) == 1 && strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
			s.fail("a new follower is not ready in %v, and no machine reports a reason: %v", freshLimit, err)
		}
		s.t.Logf("a new follower is not ready: %q", reasons)
		s.excused++
		owner, _ := s.owner()
		s.order(owner, orderRebase)
		time.Sleep(time.Second)
		if head, _, err = s.freshFollower(n, upto); err != nil {
			s.fail("a new follower is not ready after all files were sent again: %v; %q", err, s.judge.reasons())
		}
	} else {
		s.fresh = append(s.fresh, took)
	}
	if !within(5*time.Second, func() bool { return s.judge.knows(head) }) {
		s.fail("the log has ticks that no machine made")
	}
	s.judge.verdict(upto, head)
}

// freshFollower reads the log through one server with a new follower, until the follower shows the
// given tick. It returns the sum of the last shown tick.
func (s *scene) freshFollower(n *node, upto uint64) (head uint64, took time.Duration, err error) {
	begun := time.Now()
	js, err := dial(s.url(n), true)
	require.NoError(s.t, err)
	defer js.Conn().Close()
	ctx, done := context.WithTimeout(background, freshLimit)
	defer done()
	log, err := natslog.Open(ctx, js, "WORLDS", "one", natslog.Options{})
	if err != nil {
		return 0, 0, err
	}
	f, err := replica.Follow(ctx, log, disk.Memory(), replica.Options{})
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	for c := newChain(); ; time.Sleep(5 * time.Millisecond) {
		if f.Ready() {
			shown, err := persist.Follow(ctx, ".", c.World, persist.FileOptions{Files: f.Files()})
			if err != nil {
				return 0, 0, err
			}
			if err := shown.Close(); err != nil {
				return 0, 0, err
			}
			if c.Tick() >= upto {
				return c.sum.Get(), time.Since(begun), nil
			}
			c = newChain()
		}
		if ctx.Err() != nil {
			if err := f.Err(); err != nil {
				return 0, 0, err
			}
			if _, err := f.Stuck(); err != nil {
				return 0, 0, err
			}
			return 0, 0, fmt.Errorf("the follower is at tick %d and position %d, and tick %d was confirmed: %w", c.Tick(), f.Position(), upto, ctx.Err())
		}
	}
}

// end kills the machines, compares the history with all confirmed ticks, and prints the
// measurements.
func (s *scene) end() {
	s.whole()
	s.confirms(time.Now(), -1)
	for _, n := range s.machines {
		s.kill(n)
	}
	s.examine()
	j := s.judge
	for _, what := range slices.Sorted(maps.Keys(s.table)) {
		line := s.table[what]
		median, worst := middle(line.outages)
		s.t.Logf("%s: %d times, no tick for %v in the median, %v at most; %v each in all", what, len(line.outages), median, worst, (line.took / time.Duration(len(line.outages))).Round(100*time.Millisecond))
	}
	median, worst := middle(s.fresh)
	s.t.Logf("%d new followers were ready after %v in the median, %v at most; %d were late, and a machine reported a reason", len(s.fresh), median, worst, s.excused)
	s.t.Logf("%d bits were flipped; the engine lost confirmed ticks %d times, %d in total; owners appended entries again %d times; %d followers had such a tick and did not report it; %d servers needed an empty store",
		s.bits, j.losses, j.forgotten, j.again, j.quiet, s.renewed)
	faults := 0
	for _, line := range s.table {
		faults += len(line.outages)
	}
	s.t.Logf("%d faults, %d owners: %d ticks confirmed, %d lost, %d forked", faults, j.term, len(j.confirmed), j.lost, j.forks)
}

// middle sorts durations, and returns the median and the longest.
func middle(all []time.Duration) (median, worst time.Duration) {
	if len(all) == 0 {
		return 0, 0
	}
	slices.Sort(all)
	return all[len(all)/2].Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond)
}
