package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stet-ecs/stet/persist/replica/natslog"
	"github.com/stet-ecs/stet/persist/replica/natslog/internal/login"
	"github.com/stet-ecs/stet/persist/replica/natslog/internal/ports"
)

// asChild is set in the environment of the child processes of a scene. A child process ends when
// its standard input ends.
const asChild = "SPECTATORS_CHILD"

// cluster starts three servers in this process. They listen on the loopback address only, and sync
// every message.
func cluster(dir string) (urls string, all []*server.Server, err error) {
	free, err := ports.Free(3)
	if err != nil {
		return "", nil, err
	}
	var routes []*url.URL
	for _, port := range free {
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", port)})
	}
	for i, port := range free {
		s, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprintf("s%d", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true,
			JetStream: true, StoreDir: filepath.Join(dir, fmt.Sprintf("server%d", i)), SyncAlways: true,
			Cluster: server.ClusterOpts{Name: "spectators", Host: "127.0.0.1", Port: port}, Routes: routes,
		})
		if err != nil {
			return "", all, err
		}
		all = append(all, s)
		s.Start()
		if !s.ReadyForConnections(20 * time.Second) {
			return "", all, fmt.Errorf("server %d does not start", i)
		}
		urls += "nats://" + s.Addr().String() + ","
	}
	return strings.TrimSuffix(urls, ","), all, nil
}

// A child is a process of the scene.
type child struct {
	name  string
	args  []string
	cmd   *exec.Cmd
	heard chan struct{} // Closed when the process prints no more lines.

	tick uint64        // The tick that the process shows as a spectator.
	lag  time.Duration // The time between computing and showing tick.
}

type made struct {
	tick, before uint64
	at           time.Time
}

// A scene is a group of child processes, and the lines that they printed.
type scene struct {
	settings
	out      io.Writer
	start    time.Time
	children []*child

	mu        sync.Mutex
	made      map[uint64]made   // Computed ticks, by checksum.
	sums      map[uint64]uint64 // Checksums of the ticks that the owner computed.
	confirmed map[uint64]uint64 // Checksums of the confirmed ticks.
	seen      map[uint64]uint64 // Checksums of the ticks that spectators showed.
	greatest  uint64            // The newest confirmed tick.
	last      time.Time         // When a tick was last confirmed.
	owner     *child
	// When the owner was killed. Zero after another owner has confirmed a tick.
	killed  time.Time
	outages []time.Duration
	wrong   []string
}

// all runs the whole scene.
func all(ctx context.Context, s settings, out io.Writer) (err error) {
	c := &scene{settings: s, out: out, start: time.Now(), made: map[uint64]made{}, sums: map[uint64]uint64{}, confirmed: map[uint64]uint64{}, seen: map[uint64]uint64{}}
	if s.servers == "" {
		urls, servers, err := cluster(s.dir)
		defer func() {
			for _, s := range servers {
				s.Shutdown()
				s.WaitForShutdown()
			}
		}()
		if err != nil {
			return err
		}
		c.servers = urls
		fmt.Fprintln(out, "three servers in this process:", urls)
	}
	if err := c.create(ctx); err != nil {
		return err
	}
	defer c.end()
	for _, name := range []string{"a", "b", "x", "y", "page"} {
		if err := c.add(name); err != nil {
			return err
		}
	}
	if err := c.play(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	c.end()
	return c.judge()
}

// create creates the stream, and retries until the servers allow it.
func (c *scene) create(ctx context.Context) error {
	nc, err := login.Connect(c.servers)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	for {
		err = natslog.Create(ctx, js, c.stream, natslog.Options{Replicas: c.replicas})
		if err == nil || time.Since(c.start) > 30*time.Second || ctx.Err() != nil {
			return err
		}
		pause(ctx, 200*time.Millisecond)
	}
}

// add starts a process. Machines are named a and b; all other processes are spectators.
func (c *scene) add(name string) error {
	n := &child{name: name, args: []string{"-watch", name}}
	switch name {
	case "a", "b":
		n.args = []string{"-play", name}
	case "page":
		n.args = append(n.args, "-page")
	}
	n.args = append(n.args, "-dir", filepath.Join(c.dir, name), "-stream", c.stream, "-world", c.world, "-replicas", fmt.Sprint(c.replicas), "-servers", c.servers)
	c.children = append(c.children, n)
	return c.run(n)
}

// run starts a child, or restarts it.
func (c *scene) run(n *child) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	n.cmd = exec.Command(program, n.args...)
	n.cmd.Env = append(os.Environ(), asChild+"=1")
	n.cmd.Stderr = os.Stderr
	if _, err = n.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := n.cmd.Start(); err != nil {
		return err
	}
	n.heard = make(chan struct{})
	go func(heard chan struct{}) {
		defer close(heard)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			c.hear(n, lines.Text())
		}
	}(n.heard)
	return nil
}

// kill ends a child immediately, like kill -9.
func (c *scene) kill(n *child) {
	_ = n.cmd.Process.Kill()
	<-n.heard
	_ = n.cmd.Wait()
}

// end ends all children.
func (c *scene) end() {
	for _, n := range c.children {
		if n.cmd.Process != nil && n.cmd.ProcessState == nil {
			c.kill(n)
		}
	}
}

// say prints a line with the time.
func (c *scene) say(format string, args ...any) {
	fmt.Fprintf(c.out, "%6.1f s  %s\n", time.Since(c.start).Seconds(), fmt.Sprintf(format, args...))
}

// hear records a line of a child.
func (c *scene) hear(n *child, line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var tick, sum, before, term uint64
	var pid int
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "made":
		_, _ = fmt.Sscan(rest, &tick, &sum, &before)
		c.made[sum], c.sums[tick] = made{tick, before, time.Now()}, sum
	case "confirmed":
		_, _ = fmt.Sscan(rest, &tick)
		c.confirm(n, tick)
	case "own":
		_, _ = fmt.Sscan(rest, &term, &tick, &sum, &pid)
		c.owner = n
		c.say("%s owns the world, which is at tick %d: term %d, process %d", n.name, tick, term, pid)
		if tick < c.greatest {
			c.wrong = append(c.wrong, fmt.Sprintf("%s continues from tick %d, but tick %d was confirmed", n.name, tick, c.greatest))
		}
	case "sees":
		_, _ = fmt.Sscan(rest, &tick, &sum)
		n.tick, c.seen[tick] = tick, sum
		n.lag = time.Since(c.made[sum].at)
	case "aside":
		c.say("%s follows again: %s bytes that were never confirmed are set aside", n.name, strings.Fields(rest)[0])
	case "page":
		c.say("the page: %s", rest)
	default:
		c.say("%s: %s", n.name, line)
	}
}

// confirm records that a tick is confirmed.
func (c *scene) confirm(n *child, tick uint64) {
	c.greatest = max(c.greatest, tick)
	c.confirmed[tick] = c.sums[tick]
	c.last = time.Now()
	if !c.killed.IsZero() && n == c.owner {
		outage := time.Since(c.killed)
		c.outages, c.killed = append(c.outages, outage), time.Time{}
		c.say("a tick is confirmed again, %d: none was confirmed for %.2f s", tick, outage.Seconds())
	}
}

// locked calls f with the mutex locked.
func (c *scene) locked(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// play prints the status each second, and kills the owner from time to time.
func (c *scene) play(ctx context.Context) error {
	if err := c.until(ctx, "an owner", func() bool { return len(c.confirmed) > 10 && c.tick("page") > 0 }); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for ; watching.Err() == nil; pause(watching, time.Second) {
			c.locked(c.status)
		}
	}()
	if c.kills == 0 {
		<-ctx.Done()
		return nil
	}
	for range c.kills {
		pause(ctx, c.every)
		var owner *child
		var before uint64
		c.locked(func() { owner, before = c.owner, c.greatest })
		c.kill(owner)
		c.locked(func() {
			c.killed, c.owner = time.Now(), nil
			c.say("kill -9 of %s, which owned the world", owner.name)
		})
		err := c.until(ctx, "another owner, and spectators with its ticks", func() bool {
			return c.killed.IsZero() && min(c.tick("x"), c.tick("y"), c.tick("page")) > before+60
		})
		if err == nil {
			err = c.run(owner)
		}
		if err != nil {
			return err
		}
	}
	pause(ctx, min(c.every, time.Second))
	return nil
}

// tick returns the tick that a spectator shows.
func (c *scene) tick(name string) uint64 {
	return c.children[slices.IndexFunc(c.children, func(n *child) bool { return n.name == name })].tick
}

// status prints the state of all processes.
func (c *scene) status() {
	line := "the world has no owner"
	if c.owner != nil {
		line = c.owner.name + " owns the world"
	}
	line = fmt.Sprintf("%-22s confirmed %6d   seen by", line, c.greatest)
	for _, n := range c.children[2:] {
		line += fmt.Sprintf(" %s %6d (%3d ms)", n.name, n.tick, n.lag.Milliseconds())
	}
	c.say("%s", line)
}

// until waits until f returns true, for a minute at most.
func (c *scene) until(ctx context.Context, what string, f func() bool) error {
	for end := time.Now().Add(time.Minute); ; pause(ctx, 5*time.Millisecond) {
		done := false
		c.locked(func() { done = f() })
		switch {
		case done:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(end):
			return errors.New("no " + what + " within a minute")
		}
	}
}

// judge compares the confirmed and the shown ticks with the final history.
func (c *scene) judge() error {
	history := map[uint64]uint64{}
	for sum := c.confirmed[c.greatest]; ; {
		m, known := c.made[sum]
		if !known {
			// An earlier run has made this tick, so the ticks before it are unknown.
			break
		}
		history[m.tick], sum = sum, m.before
	}
	lost, unseen := 0, 0
	for tick, sum := range c.confirmed {
		if history[tick] != sum {
			lost++
		}
	}
	for tick, sum := range c.seen {
		if now, known := history[tick]; known && now != sum {
			unseen++
		}
	}
	slices.Sort(c.outages)
	median := time.Duration(0)
	if n := len(c.outages); n > 0 {
		median = c.outages[n/2]
	}
	fmt.Fprintf(c.out, "the owner was killed %d times: no tick for %.2f s in the median; of %d confirmed ticks %d were lost, and of %d that were seen %d\n",
		len(c.outages), median.Seconds(), len(c.confirmed), lost, len(c.seen), unseen)
	return errors.Join(bad(lost+unseen > 0, "ticks were lost"), bad(len(c.wrong) > 0, cmp.Or(strings.Join(c.wrong, "; "), "-")))
}

// bad returns an error with this text if the condition is true.
func bad(is bool, text string) error {
	if is {
		return errors.New(text)
	}
	return nil
}
