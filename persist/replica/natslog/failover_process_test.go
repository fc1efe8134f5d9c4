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
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/replica"
	"github.com/stet-ecs/stet/persist/replica/natslog"
)

// What the processes of TestFailover are told by their environment. They begin when they can read a line,
// and end when there is no more.
const (
	asRole  = "NATSLOG_ROLE" // "server" or "machine".
	asName  = "NATSLOG_NAME"
	asDir   = "NATSLOG_DIR"
	asAddr  = "NATSLOG_ADDR"
	asHosts = "NATSLOG_HOSTS" // Of all servers.
	asPorts = "NATSLOG_PORTS" // On which they listen to clients, and to each other.
)

func TestMain(m *testing.M) {
	role := map[string]func(){"server": serve, "machine": play}[os.Getenv(asRole)]
	if role == nil {
		os.Exit(m.Run())
	}
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		os.Exit(1)
	}
	go func() {
		_, _ = in.ReadString('\n')
		os.Exit(1) // Whoever started it is gone.
	}()
	role()
}

// say tells whoever started the process something, as a line.
func say(words ...any) { fmt.Fprintln(os.Stdout, words...) }

// ports returns those of servers.
func ports() (client, route int) {
	_, _ = fmt.Sscan(os.Getenv(asPorts), &client, &route)
	return client, route
}

// hosts returns the URLs of all servers.
func hosts(port int) (all []*url.URL) {
	for _, addr := range strings.Fields(os.Getenv(asHosts)) {
		all = append(all, &url.URL{Scheme: "nats", Host: fmt.Sprintf("%s:%d", addr, port)})
	}
	return all
}

// serve is a server.
func serve() {
	addr := os.Getenv(asAddr)
	client, route := ports()
	s, err := server.NewServer(&server.Options{
		ServerName: os.Getenv(asName), Host: addr, Port: client, NoLog: true, NoSigs: true, JetStream: true, StoreDir: os.Getenv(asDir),
		SyncAlways: true, Cluster: server.ClusterOpts{Name: "test", Host: addr, Port: route}, Routes: hosts(route),
	})
	if err != nil {
		say("trouble", err)
		return
	}
	s.Start()
	s.WaitForShutdown()
}

// dial connects to the servers.
func dial() (jetstream.JetStream, error) {
	var list []string
	client, _ := ports()
	for _, u := range hosts(client) {
		list = append(list, u.String())
	}
	nc, err := nats.Connect(strings.Join(list, ","), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond),
		nats.ReconnectJitter(0, 0), nats.Timeout(time.Second), nats.PingInterval(500*time.Millisecond), nats.MaxPingsOutstanding(2))
	if err != nil {
		return nil, err
	}
	return jetstream.New(nc)
}

// A chain is a world in which each tick has a sum of all before it.
type chain struct {
	*ecs.World
	sum *ecs.Resource[uint64]
}

func newChain() *chain {
	w := ecs.NewWorld(ecs.Options{})
	return &chain{w, ecs.MustRegisterResource(w, uint64(0), ecs.Component[uint64]{Name: "sum"})}
}

// A player is a machine: it follows, claims when the owner is silent, and makes ticks as long as it owns
// the world.
type player struct {
	name  string
	log   replica.Log
	files disk.FS

	mu   sync.Mutex
	sums map[uint64]uint64 // By ticks that this owner has committed.
}

func play() {
	js, err := dial()
	if err != nil {
		say("trouble", err)
		return
	}
	p := &player{name: os.Getenv(asName)}
	if p.files, err = disk.Open(os.Getenv(asDir)); err != nil {
		say("trouble", err)
		return
	}
	for {
		log, err := natslog.Open(background, js, "WORLDS", "one", natslog.Options{})
		if err == nil {
			p.log = log
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	for {
		if err := p.turn(); err != nil {
			say("note", strings.ReplaceAll(err.Error(), "\n", " "))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// turn follows, owns and loses the world once.
func (p *player) turn() error {
	ctx, done := context.WithTimeout(background, 20*time.Second)
	defer done()
	f, err := replica.Follow(ctx, p.log, p.files, replica.Options{Name: p.name})
	if errors.Is(err, replica.ErrLogShorter) {
		say("trouble", err)
	}
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

// standBy shows the world until its owner has been silent for a while, and it is claimed.
func (p *player) standBy(f *replica.Follower, c *chain) (*replica.Owner, *persist.Follower, error) {
	var shown *persist.Follower
	tried := time.Now()
	patience := 300*time.Millisecond + rand.N(200*time.Millisecond)
	for {
		time.Sleep(10 * time.Millisecond)
		if err := f.Err(); err != nil {
			return nil, nil, err
		}
		if f.Ready() {
			var err error
			if shown == nil {
				shown, err = persist.FollowFS(background, f.Files(), c.World)
			} else {
				_, err = shown.Advance(background)
			}
			if err != nil {
				return nil, nil, err
			}
		}
		if min(f.Overdue(), time.Since(tried)) < patience {
			continue
		}
		ctx, done := context.WithTimeout(background, 3*time.Second)
		o, err := f.Claim(ctx)
		done()
		if err == nil {
			return o, shown, nil
		}
		if errors.Is(err, replica.ErrLogShorter) {
			return nil, nil, err
		}
		tried = time.Now()
	}
}

// own makes ticks, 60 a second, until the world is lost.
func (p *player) own(o *replica.Owner, shown *persist.Follower, c *chain) error {
	options := persist.Options{Epoch: o.Epoch(), Sync: journal.SyncAlways(), OnDurable: func(tick uint64) {
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
	rebased := make(chan struct{}, 1)
	rebased <- struct{}{}
	for o.Err() == nil && err == nil {
		time.Sleep(time.Second / 60)
		before := c.sum.Get()
		sum := chained(before, c.Tick()+1, p.name, o.Term())
		p.mu.Lock()
		p.sums[c.Tick()+1] = sum
		p.mu.Unlock()
		say("commit", c.Tick()+1, sum, before)
		c.sum.Set(sum)
		if err = store.Commit(); err == nil && c.Tick()%100 == 0 {
			select {
			case <-rebased:
				go func() { _ = o.Rebase(background); rebased <- struct{}{} }()
			default:
			}
		}
	}
	ctx, done := context.WithTimeout(background, time.Second)
	defer done()
	_ = store.Close(ctx)
	return errors.Join(o.Err(), err)
}

// chained returns the sum of a tick: of all before it, and of who made it.
func chained(before, tick uint64, name string, term uint64) uint64 {
	b := binary.LittleEndian.AppendUint64([]byte(name), before)
	b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, tick), term)
	sum := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(sum[:])
}
