//go:build linux

package natslog_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/replica"
	"github.com/stet-ecs/stet/persist/replica/natslog"
)

// Environment variables of the processes of TestFailover. A process begins when it can read a line
// from standard input. Each further line is an order. The process ends when its standard input
// ends.
const (
	asRole    = "NATSLOG_ROLE" // "machine" or "reader".
	asName    = "NATSLOG_NAME"
	asDir     = "NATSLOG_DIR"
	asServers = "NATSLOG_SERVERS" // URLs, separated by commas.
	// "older" for the older program; any other value is the current program.
	asVersion = "NATSLOG_VERSION"
)

// The orders that a machine accepts.
const (
	orderIdle  = "idle"  // The owner makes no ticks until orderTicks.
	orderTicks = "ticks" // The owner makes 60 ticks a second, which is the default.
	// The machine follows a log that lost entries; see replica.Options.Forget.
	orderForget = "forget"
	orderRebase = "rebase" // The owner sends all files again.
	orderClaim  = "claim"  // The machine claims, although the owner still appends entries.
)

func TestMain(m *testing.M) {
	role := map[string]func(*machine){"machine": (*machine).play, "reader": (*machine).watch}[os.Getenv(asRole)]
	if role == nil {
		os.Exit(m.Run())
	}
	in := bufio.NewScanner(os.Stdin)
	if !in.Scan() {
		os.Exit(1)
	}
	p := &machine{name: os.Getenv(asName)}
	go func() {
		for in.Scan() {
			p.obey(in.Text())
		}
		os.Exit(1) // The parent process has ended.
	}()
	if err := p.open(os.Getenv(asRole) == "reader"); err != nil {
		say("failed", err)
		return
	}
	role(p)
}

// say prints a line for the judge.
func say(words ...any) {
	fmt.Fprintln(os.Stdout, strings.ReplaceAll(strings.TrimSuffix(fmt.Sprintln(words...), "\n"), "\n", " "))
}

// dial connects to servers. With pings, it notices within 1.5 s that a server does not answer.
func dial(servers string, pings bool) (jetstream.JetStream, error) {
	options := []nats.Option{
		nats.UserInfo("owner", "x"), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(50 * time.Millisecond),
		nats.ReconnectJitter(0, 0), nats.Timeout(time.Second), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}
	if pings {
		options = append(options, nats.PingInterval(500*time.Millisecond), nats.MaxPingsOutstanding(2))
	}
	nc, err := nats.Connect(servers, options...)
	if err != nil {
		return nil, err
	}
	return jetstream.New(nc)
}

// A chain is a world in which each tick has a sum of all ticks before it.
type chain struct {
	*ecs.World
	sum *ecs.Resource[uint64]
}

func newChain() *chain {
	w := ecs.NewWorld(ecs.Options{})
	return &chain{w, ecs.Must(ecs.RegisterResource(w, uint64(0), ecs.Component[uint64]{Name: "sum"}))}
}

// A machine follows, claims when the owner is silent, and makes ticks while it owns the world. A
// reader is a machine that only follows.
type machine struct {
	name   string
	log    replica.Log
	files  disk.FS
	idle   atomic.Bool
	forget atomic.Bool
	rebase atomic.Bool
	claim  atomic.Bool

	mu   sync.Mutex
	sums map[uint64]uint64 // Sums of the ticks that this owner committed.
}

// open opens the files and the log. A reader has its files in memory. Its connection has no pings,
// so that it stays on a server that does not answer.
func (p *machine) open(reader bool) (err error) {
	if p.files = disk.Memory(); !reader {
		if p.files, err = disk.Open(os.Getenv(asDir)); err != nil {
			return err
		}
	}
	js, err := dial(os.Getenv(asServers), !reader)
	if err != nil {
		return err
	}
	for {
		if p.log, err = natslog.Open(background, js, "WORLDS", "one", natslog.Options{}); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (p *machine) obey(order string) {
	switch order {
	case orderIdle, orderTicks:
		p.idle.Store(order == orderIdle)
	case orderClaim:
		p.claim.Store(true)
	case orderForget:
		p.forget.Store(true)
	case orderRebase:
		p.rebase.Store(true)
	}
}

// play follows, owns and loses the world repeatedly.
func (p *machine) play() {
	for {
		if err := p.turn(); err != nil {
			p.report("troubled", err)
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// report prints an error. It also prints whether the log lost entries, or the store is lost.
func (p *machine) report(word string, err error) {
	say(word, err)
	if errors.Is(err, persist.ErrLost) {
		say("lost", err)
	}
	if errors.Is(err, replica.ErrLogShorter) {
		say("shorter", err)
	}
}

// version returns the version of the program. The older program cannot open the store of the
// current program.
func version() replica.Version {
	if os.Getenv(asVersion) == "older" {
		return replica.Version{Program: "older", Reads: 1, Writes: 1}
	}
	return replica.Version{Program: "current", Reads: 2, Writes: 2}
}

// follow calls replica.Follow. If the log seems to have lost entries, Follow retries for 15 s.
func (p *machine) follow() (*replica.Follower, error) {
	ctx, done := context.WithTimeout(background, 40*time.Second)
	defer done()
	again := func(err *replica.ShorterError) { say("again", err) }
	f, err := replica.Follow(ctx, p.log, p.files, replica.Options{Name: p.name, Version: version(), Forget: p.forget.Load(), OnShorter: again})
	if err == nil {
		p.forget.Store(false)
		_, aside := f.Aside()
		say("follows", f.Position(), aside)
	}
	return f, err
}

// turn follows, owns and loses the world once.
func (p *machine) turn() error {
	f, err := p.follow()
	if err != nil {
		return err
	}
	c := newChain()
	o, shown, err := p.standBy(f, c)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	err = p.own(o, shown, c)
	return errors.Join(err, o.Close())
}

// show advances the world to the newest tick of the follower, and prints the tick if it changed.
func (c *chain) show(f *replica.Follower, shown **persist.Follower) (err error) {
	before := c.sum.Get()
	if *shown == nil {
		*shown, err = persist.Follow(background, ".", c.World, persist.FileOptions{Files: f.Files()})
	} else {
		_, err = (*shown).Advance(background)
	}
	if sum := c.sum.Get(); err == nil && sum != before {
		say("shown", c.Tick(), sum)
	}
	return err
}

// standBy shows the world until the owner was silent for a while, and then claims the world.
func (p *machine) standBy(f *replica.Follower, c *chain) (o *replica.Owner, shown *persist.Follower, err error) {
	tried, trouble := time.Now(), ""
	patience := 300*time.Millisecond + rand.N(200*time.Millisecond)
	for {
		time.Sleep(10 * time.Millisecond)
		_, stuck := f.Stuck()
		if err := f.Err(); err != nil && (stuck == nil || !errors.Is(err, replica.ErrHole)) {
			return nil, nil, err
		}
		if stuck != nil && stuck.Error() != trouble {
			trouble = stuck.Error()
			say("troubled", replica.ClassOf(stuck), stuck)
		}
		if f.Ready() {
			if err := c.show(f, &shown); err != nil {
				return nil, nil, err
			}
		}
		ordered := p.claim.Load()
		if min(f.Overdue(), time.Since(tried)) < patience && !ordered {
			continue
		}
		say("claims", "overdue", f.Overdue(), "last entry", time.Since(f.Fresh()), "position", f.Position())
		// This is longer than the time for which a claim retries after lost entries.
		ctx, done := context.WithTimeout(background, 20*time.Second)
		o, err := f.Claim(ctx)
		done()
		// A live owner often appends its entry before the claim, so the claim is tried again.
		if ordered && !errors.Is(err, replica.ErrTaken) {
			p.claim.Store(false)
		}
		if err == nil {
			return o, shown, nil
		}
		if errors.Is(err, replica.ErrLogShorter) {
			return nil, nil, err
		}
		if errors.Is(err, persist.ErrNewer) {
			say("refused", err)
		} else if !errors.Is(err, replica.ErrTaken) {
			say("troubled", err)
		}
		tried = time.Now()
	}
}

// own makes 60 ticks a second until the world is lost.
func (p *machine) own(o *replica.Owner, shown *persist.Follower, c *chain) error {
	options := persist.Options{Epoch: o.Epoch(), Sync: journal.SyncAlways, OnDurable: func(tick uint64) {
		p.mu.Lock()
		defer p.mu.Unlock()
		say("confirmed", tick, p.sums[tick])
	}}
	p.sums = map[uint64]uint64{}
	var store *persist.Store
	var err error
	if shown != nil {
		store, err = shown.Open(background, options)
	} else {
		store, err = o.Open(background, c.World, options)
	}
	if err != nil {
		return err
	}
	say("own", c.Tick(), c.sum.Get(), o.Term())
	go p.tend(o)
	for o.Err() == nil && err == nil {
		time.Sleep(time.Second / 60)
		if p.idle.Load() {
			continue
		}
		before := c.sum.Get()
		sum := chained(before, c.Tick()+1, p.name, o.Term())
		p.mu.Lock()
		p.sums[c.Tick()+1] = sum
		p.mu.Unlock()
		say("commit", c.Tick()+1, sum, before)
		c.sum.Set(sum)
		err = store.Commit()
	}
	ctx, done := context.WithTimeout(background, time.Second)
	defer done()
	_ = store.Close(ctx)
	return errors.Join(o.Err(), err)
}

// tend reports why no tick is confirmed, until the owner has lost the world. It calls Rebase when
// ordered. For a random half of the owners, it also calls Rebase every two seconds.
func (p *machine) tend(o *replica.Owner) {
	often := rand.N(2) == 0
	reason := ""
	rebased := make(chan struct{}, 1)
	rebased <- struct{}{}
	for begun := time.Now(); o.Err() == nil; time.Sleep(50 * time.Millisecond) {
		_, err := o.Stuck()
		if err == nil {
			reason = ""
		} else if err.Error() != reason {
			reason = err.Error()
			say("stuck", replica.ClassOf(err), reason)
		}
		if p.rebase.CompareAndSwap(true, false) || often && time.Since(begun) > 2*time.Second {
			begun = time.Now()
			select {
			case <-rebased:
				go func() { _ = o.Rebase(background); rebased <- struct{}{} }()
			default: // The last Rebase is still running.
			}
		}
	}
}

// watch follows repeatedly, for one or two seconds each time, and shows the ticks of the log.
func (p *machine) watch() {
	for {
		f, err := p.follow()
		if err != nil {
			p.report("troubled", err)
			continue
		}
		c := newChain()
		var shown *persist.Follower
		for end := time.Now().Add(time.Second + rand.N(time.Second)); err == nil && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if err = f.Err(); err == nil && f.Ready() {
				err = c.show(f, &shown)
			}
		}
		if err != nil {
			p.report("troubled", err)
			err = nil
		}
		if shown != nil {
			err = shown.Close()
		}
		if err := errors.Join(err, f.Close()); err != nil {
			say("failed", err)
		}
	}
}

// chained returns the sum of a tick, which depends on all ticks before it and on the owner of the
// tick.
func chained(before, tick uint64, name string, term uint64) uint64 {
	b := binary.LittleEndian.AppendUint64([]byte(name), before)
	b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, tick), term)
	sum := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(sum[:])
}
