package natslog_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/persist/replica/natslog"
	"github.com/stet-ecs/stet/persist/replica/natslog/internal/ports"
)

var background = context.Background()

// A cluster is three servers in this process.
type cluster struct {
	t       testing.TB
	options []*server.Options
	servers []*server.Server
}

// newCluster starts servers whose stores lie in a directory of the test. Change, if not nil, sees
// their options before.
func newCluster(t testing.TB, n int, change func(*server.Options)) *cluster {
	t.Helper()
	dir := t.TempDir()
	c := &cluster{t: t}
	var routes []*url.URL
	free := freePorts(t, 2*n)
	for _, port := range free[:n] {
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", port)})
	}
	for i := range n {
		o := &server.Options{
			ServerName: fmt.Sprintf("s%d", i), Host: "127.0.0.1", Port: free[n+i], NoLog: true, NoSigs: true,
			JetStream: true, StoreDir: filepath.Join(dir, fmt.Sprint(i)), SyncAlways: true,
		}
		if n > 1 {
			o.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: free[i]}
			o.Routes = routes
		}
		if change != nil {
			change(o)
		}
		c.options, c.servers = append(c.options, o), append(c.servers, nil)
		c.start(i)
	}
	t.Cleanup(func() {
		for i := range c.servers {
			c.stop(i)
		}
	})
	c.ready()
	return c
}

// freePorts returns ports for servers to be started.
func freePorts(t testing.TB, n int) []int {
	t.Helper()
	free, err := ports.Free(n)
	require.NoError(t, err)
	return free
}

// logins are the account of the worlds, with a user who may do all and one who may follow
// WORLDS.one as the documentation says, and the system account. Servers read them as from a file:
// an account that is given JetStream once its server runs may have missed what streams the others
// know it to have, and its copy of one stands alone from then on.
const logins = `
	accounts {
		WORLDS { jetstream: enabled, users: [
			{ user: owner, password: x }
			{ user: follower, password: x, permissions: {
				publish: [
					"$JS.API.STREAM.INFO.WORLDS", "$JS.API.STREAM.MSG.GET.WORLDS", "$JS.API.DIRECT.GET.WORLDS"
					"$JS.API.CONSUMER.CREATE.WORLDS.*.WORLDS.one", "$JS.API.CONSUMER.MSG.NEXT.WORLDS.*"
				]
				subscribe: "_INBOX.>"
			} }
			{ user: reader, password: x, permissions: {
				publish: [
					"$JS.API.STREAM.INFO.WORLDS", "$JS.API.STREAM.MSG.GET.WORLDS"
					"$JS.API.CONSUMER.CREATE.WORLDS.*.WORLDS.one", "$JS.API.CONSUMER.MSG.NEXT.WORLDS.*"
				]
				subscribe: "_INBOX.>"
			} }
		] }
		OTHER { users: [ { user: stranger, password: x } ] }
		SYS { users: [ { user: system, password: x } ] }
	}
	system_account: SYS`

// start starts a server, also one that was stopped.
func (c *cluster) start(i int) {
	c.t.Helper()
	o := c.options[i].Clone()
	if o.TrustedKeys == nil {
		require.NoError(c.t, o.ProcessConfigString(logins))
	}
	s, err := server.NewServer(o)
	require.NoError(c.t, err)
	s.Start()
	require.True(c.t, s.ReadyForConnections(20*time.Second), "server %d does not start", i)
	c.servers[i] = s
}

func (c *cluster) stop(i int) {
	if c.servers[i] != nil {
		c.servers[i].Shutdown()
		c.servers[i].WaitForShutdown()
		c.servers[i] = nil
	}
}

// ready waits until JetStream answers.
func (c *cluster) ready() {
	c.t.Helper()
	js := c.js(c.connect("owner"))
	c.until(func() bool {
		ctx, done := context.WithTimeout(background, time.Second)
		defer done()
		_, err := js.AccountInfo(ctx)
		return err == nil
	}, "JetStream does not answer")
}

func (c *cluster) until(f func() bool, text string) {
	c.t.Helper()
	for end := time.Now().Add(30 * time.Second); !f(); time.Sleep(10 * time.Millisecond) {
		require.True(c.t, time.Now().Before(end), text)
	}
}

// connect connects as a user to all servers, or to one.
func (c *cluster) connect(user string, to ...int) *nats.Conn {
	c.t.Helper()
	list := ""
	for i, o := range c.options {
		if len(to) == 0 || to[0] == i {
			list += fmt.Sprintf("nats://127.0.0.1:%d,", o.Port)
		}
	}
	nc, err := nats.Connect(list[:len(list)-1], nats.UserInfo(user, "x"), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond),
		nats.ReconnectJitter(0, 0), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	require.NoError(c.t, err)
	c.t.Cleanup(nc.Close)
	return nc
}

func (c *cluster) js(nc *nats.Conn) jetstream.JetStream {
	js, err := jetstream.New(nc)
	require.NoError(c.t, err)
	return js
}

// create makes a stream, and returns what speaks with it.
func (c *cluster) create(stream string, replicas int) jetstream.JetStream {
	c.t.Helper()
	js := c.js(c.connect("owner"))
	require.NoError(c.t, natslog.Create(background, js, stream, natslog.Options{Replicas: replicas}))
	return js
}

func open(t testing.TB, js jetstream.JetStream, stream, world string) *natslog.Log {
	t.Helper()
	log, err := natslog.Open(background, js, stream, world, natslog.Options{})
	require.NoError(t, err)
	return log
}

// leader returns which server leads a stream.
func (c *cluster) leader(stream string) (leader int) {
	c.t.Helper()
	c.until(func() bool {
		for i, s := range c.servers {
			if s != nil && s.JetStreamIsStreamLeader("WORLDS", stream) {
				leader = i
				return true
			}
		}
		return false
	}, "the stream has no leader")
	return leader
}

// A proxy is a way to a server that can be cut.
type proxy struct {
	net.Listener
	to string

	mu    sync.Mutex
	conns []net.Conn
	mute  bool // What servers answer does not come through.
	shut  bool // Connections end at once.
}

func newProxy(t testing.TB, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{Listener: l, to: to}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", p.to)
			if err != nil {
				in.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, in, out)
			if p.shut {
				in.Close()
				out.Close()
			}
			p.mu.Unlock()
			go p.copy(out, in, false)
			go p.copy(in, out, true)
		}
	}()
	t.Cleanup(func() { l.Close(); p.cut() })
	return p
}

func (p *proxy) copy(to, from net.Conn, answers bool) {
	defer to.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		p.mu.Lock()
		mute := p.mute && answers
		p.mu.Unlock()
		if !mute {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
	}
}

// cut ends all connections; others may be made.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns, p.mute = nil, false
}

// silence loses what servers answer, until the connections are cut.
func (p *proxy) silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mute = true
}

// refuse ends all connections, and those that are made later.
func (p *proxy) refuse() {
	p.mu.Lock()
	p.shut = true
	p.mu.Unlock()
	p.cut()
}
