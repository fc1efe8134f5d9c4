//go:build linux

package natslog_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
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

var (
	faults     = flag.Int("faults", 0, "how many faults TestFailover makes; 0: it is left out")
	partitions = flag.Int("partitions", 0, "how many partitions TestFailover makes behind them")
	faultSeed  = flag.Uint64("faultseed", 0, "the seed of TestFailover; 0: a new one")
)

// inNetwork is set for the process that has a network of its own.
const inNetwork = "NATSLOG_NETWORK"

// TestFailover has three servers and three machines, each a process with a network of its own if there can be, kills
// and stops the owner, some servers beside, and parts the network. What an owner said to be confirmed
// must be in the history at the end.
func TestFailover(t *testing.T) {
	if *faults+*partitions == 0 {
		t.Skip("no faults: see make failover")
	}
	runtime.LockOSThread() // The processes end with the thread that started them.
	defer runtime.UnlockOSThread()
	none := !namespaces()
	if none {
		t.Log("there are no network namespaces here: nobody is parted")
	} else if os.Getenv(inNetwork) == "" {
		cmd := exec.Command(os.Args[0], append(os.Args[1:], "-test.v", "-test.run=^TestFailover$")...)
		cmd.Env, cmd.SysProcAttr = append(os.Environ(), inNetwork+"=1"), (&network{}).process()
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		require.NoError(t, err)
		return
	}
	seed := *faultSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-faultseed %d", seed)
	s := newScene(t, newNetwork(t, none), rand.New(rand.NewPCG(seed, 1)))
	for i := range *faults {
		s.fault(i)
	}
	for i := range *partitions {
		if !none {
			s.partition(i)
		}
	}
	s.end()
}

// A node is a process of the scene.
type node struct {
	name, role, addr, dir string
	cmd                   *exec.Cmd
	in                    io.WriteCloser
}

// A scene is all processes, and what they said.
type scene struct {
	t        *testing.T
	rng      *rand.Rand
	net      *network
	servers  []*node
	machines []*node
	js       jetstream.JetStream
	hosts    string
	outages  map[string][]time.Duration
	parted   int

	mu        sync.Mutex
	commits   map[uint64]commit // By their sums.
	confirmed map[uint64]uint64 // The sums of ticks.
	greatest  uint64            // Of the ticks that are confirmed.
	forks     int
	owner     *node     // Who said last that it owns the world,
	term      int       // and how often anybody did.
	last      time.Time // When something was confirmed,
	lastTerm  int       // and by which of them.
	faulty    []string
}

type commit struct{ tick, before uint64 }

func newScene(t *testing.T, net *network, rng *rand.Rand) *scene {
	s := &scene{t: t, rng: rng, net: net, outages: map[string][]time.Duration{}, commits: map[uint64]commit{}, confirmed: map[uint64]uint64{}}
	dir := t.TempDir()
	for i := range 6 {
		n := &node{name: fmt.Sprintf("s%d", i), role: "server", addr: net.addr(i + 1)}
		if i >= 3 {
			n.name, n.role = string(rune('a'+i-3)), "machine"
		}
		n.dir = filepath.Join(dir, n.name)
		require.NoError(t, os.Mkdir(n.dir, 0o755))
		if i < 3 {
			s.servers, s.hosts = append(s.servers, n), s.hosts+n.addr+" "
		} else {
			s.machines = append(s.machines, n)
		}
	}
	free := freePorts(t, 2)
	t.Setenv(asPorts, fmt.Sprint(free[0], " ", free[1]))
	t.Setenv(asHosts, s.hosts)
	for _, n := range s.servers {
		s.start(n)
	}
	js, err := dial()
	require.NoError(t, err)
	t.Cleanup(js.Conn().Close)
	s.js = js
	s.until("a stream", func() bool { return natslog.Create(background, js, "WORLDS", natslog.Options{}) == nil })
	for _, n := range s.machines {
		s.start(n)
	}
	s.until("an owner", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.confirmed) > 10 })
	return s
}

// start starts a process.
func (s *scene) start(n *node) {
	s.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asRole+"="+n.role, asName+"="+n.name, asDir+"="+n.dir, asAddr+"="+n.addr)
	cmd.SysProcAttr = s.net.process()
	cmd.Stderr = os.Stderr
	var err error
	n.in, err = cmd.StdinPipe()
	require.NoError(s.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, cmd.Start())
	n.cmd = cmd
	s.net.join(cmd.Process.Pid, n.addr)
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			s.hear(n, lines.Text())
		}
	}()
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-heard
		_ = cmd.Wait()
	})
	_, err = io.WriteString(n.in, "go\n")
	require.NoError(s.t, err)
}

// kill ends a process at once.
func (s *scene) kill(n *node) {
	require.NoError(s.t, n.cmd.Process.Signal(syscall.SIGKILL))
	_, _ = n.cmd.Process.Wait()
}

// hear notes what a process says.
func (s *scene) hear(n *node, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var tick, sum, before uint64
	switch word, rest, _ := strings.Cut(line, " "); word {
	case "commit":
		fmt.Sscan(rest, &tick, &sum, &before)
		s.commits[sum] = commit{tick, before}
	case "confirmed":
		fmt.Sscan(rest, &tick, &sum)
		if old, known := s.confirmed[tick]; known && old != sum {
			s.forks++
		}
		s.confirmed[tick] = sum
		s.greatest = max(s.greatest, tick)
		if n == s.owner {
			s.last, s.lastTerm = time.Now(), s.term
		}
	case "own":
		fmt.Sscan(rest, &tick)
		if tick < s.greatest {
			s.faulty = append(s.faulty, fmt.Sprintf("%s begins at tick %d, and %d was confirmed", n.name, tick, s.greatest))
		}
		s.owner, s.term = n, s.term+1
	case "trouble":
		s.faulty = append(s.faulty, n.name+": "+rest)
	default:
		if testing.Verbose() && os.Getenv("NATSLOG_NOTES") != "" {
			fmt.Println(n.name, line)
		}
	}
}

func (s *scene) until(what string, f func() bool) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(2 * time.Millisecond) {
		require.True(s.t, time.Now().Before(end), "there never is %s", what)
	}
}

// quiet waits until all servers have all, and somebody owns the world and confirms.
func (s *scene) quiet() {
	s.t.Helper()
	s.until("a whole cluster", func() bool {
		ctx, done := context.WithTimeout(background, time.Second)
		defer done()
		stream, err := s.js.Stream(ctx, "WORLDS")
		if err != nil || stream.CachedInfo().Cluster == nil || len(stream.CachedInfo().Cluster.Replicas) != 2 {
			return false
		}
		return !slices.ContainsFunc(stream.CachedInfo().Cluster.Replicas, func(p *jetstream.PeerInfo) bool { return !p.Current || p.Offline })
	})
	time.Sleep(time.Duration(300+s.rng.IntN(500)) * time.Millisecond)
	s.confirms(time.Now(), -1)
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Empty(s.t, s.faulty)
	require.Zero(s.t, s.forks, "a tick was confirmed twice, and not as the same one")
}

// confirms waits until something is confirmed after a moment, by another owner than that of a term.
func (s *scene) confirms(after time.Time, term int) (outage time.Duration) {
	s.t.Helper()
	s.until("a tick that is confirmed", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		outage = s.last.Sub(after)
		return s.last.After(after) && s.lastTerm > term
	})
	return outage
}

// leader returns the server that leads the stream.
func (s *scene) leader() (n *node) {
	s.until("a leader", func() bool {
		ctx, done := context.WithTimeout(background, time.Second)
		defer done()
		stream, err := s.js.Stream(ctx, "WORLDS")
		if err != nil {
			return false
		}
		i := slices.IndexFunc(s.servers, func(n *node) bool { return n.name == stream.CachedInfo().Cluster.Leader })
		if i >= 0 {
			n = s.servers[i]
		}
		return n != nil
	})
	return n
}

func (s *scene) current() (*node, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owner, s.term
}

// fault kills or stops the owner, and in one of three cases kills servers.
func (s *scene) fault(i int) {
	s.quiet()
	leader := s.leader()
	var down []*node
	what := "the owner"
	if i%3 == 2 {
		down = slices.Clone(s.servers)
		s.rng.Shuffle(3, func(i, j int) { down[i], down[j] = down[j], down[i] })
		down = down[:1+s.rng.IntN(2)]
		if what = fmt.Sprintf("the owner and servers, %d", len(down)); slices.Contains(down, leader) {
			what += ", the leader among them"
		}
	}
	owner, term := s.current()
	stop, wait := s.rng.IntN(2) == 0, time.Duration(500+s.rng.IntN(1500))*time.Millisecond
	at := time.Now()
	for _, n := range down {
		s.kill(n)
	}
	if stop {
		require.NoError(s.t, owner.cmd.Process.Signal(syscall.SIGSTOP))
	} else {
		s.kill(owner)
	}
	if len(down) > 0 {
		time.Sleep(wait)
		for _, n := range down {
			s.start(n)
		}
	}
	outage := s.confirms(at, term)
	s.outages[what] = append(s.outages[what], outage)
	time.Sleep(time.Until(at.Add(wait)))
	if stop {
		require.NoError(s.t, owner.cmd.Process.Signal(syscall.SIGCONT))
	} else {
		s.start(owner)
	}
	s.t.Logf("%3d %s, stopped: %v: %v", i, what, stop, outage.Round(time.Millisecond))
}

// partition parts the owner, with or without servers, or servers alone, from the others.
func (s *scene) partition(i int) {
	s.quiet()
	leader := s.leader()
	owner, _ := s.current()
	sides := map[string][]string{
		"the owner": {owner.addr}, "the leader": {leader.addr}, "the owner and the leader": {owner.addr, leader.addr},
		"the owner and two servers": {owner.addr, leader.addr, s.servers[(slices.Index(s.servers, leader)+1)%3].addr},
	}
	what := []string{"the owner", "the leader", "the owner and the leader", "the owner and two servers"}[i%4]
	at, wait := time.Now(), time.Duration(3000+s.rng.IntN(5000))*time.Millisecond
	s.net.part(sides[what]...)
	time.Sleep(wait)
	s.net.heal(sides[what]...)
	s.confirms(at.Add(wait), -1)
	s.parted++
	s.t.Logf("%3d parted from the others for %v: %s", i, wait, what)
}

// end kills all machines and compares the history with what was confirmed.
func (s *scene) end() {
	s.quiet()
	for _, n := range s.machines {
		s.kill(n)
	}
	time.Sleep(100 * time.Millisecond) // What they said is heard.
	log, err := natslog.Open(background, s.js, "WORLDS", "one", natslog.Options{})
	require.NoError(s.t, err)
	f, err := replica.Follow(background, log, disk.Memory(), replica.Options{})
	require.NoError(s.t, err)
	defer f.Close()
	c := newChain()
	shown, err := persist.FollowFS(background, f.Files(), c.World)
	require.NoError(s.t, err)
	defer shown.Close()

	s.mu.Lock()
	defer s.mu.Unlock()
	history := map[uint64]uint64{}
	for sum := c.sum.Get(); sum != 0; {
		made, known := s.commits[sum]
		require.True(s.t, known, "nobody made what the history has at tick %d", c.Tick()-uint64(len(history)))
		history[made.tick], sum = sum, made.before
	}
	require.Len(s.t, history, int(c.Tick()))
	lost := 0
	for tick, sum := range s.confirmed {
		if history[tick] != sum {
			lost++
		}
	}
	for what, all := range s.outages {
		slices.Sort(all)
		s.t.Logf("%s: %d times, the outage %v in the median, %v at most", what, len(all), all[len(all)/2].Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond))
	}
	s.t.Logf("%d faults and %d partitions, %d owners: %d ticks confirmed, %d lost, %d forked", *faults, s.parted, s.term, len(s.confirmed), lost, s.forks)
	require.Zero(s.t, lost)
	require.Zero(s.t, s.forks)
	require.Empty(s.t, s.faulty)
}
