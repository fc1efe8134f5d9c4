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

// newCluster starts servers, with their data in a directory of the test. If change is not nil,
// newCluster first calls it with the options of each server.
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

// freePorts returns free ports for servers.
func freePorts(t testing.TB, n int) []int {
	t.Helper()
	free, err := ports.Free(n)
	require.NoError(t, err)
	return free
}

// logins has the accounts of the servers, in the syntax of a configuration file. The user
// "follower" has the documented rights to follow WORLDS.one. The user "reader" lacks the optional
// rights. JetStream is enabled from the start: if it is enabled on a running server, the server may
// miss existing streams.
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

// start starts or restarts a server.
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

// connect connects as a user to all servers, or to the given servers only.
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

// create creates a stream, and returns a JetStream client.
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

// leader returns the server that leads a stream.
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

// A proxy forwards connections to a server, and can cut these connections.
type proxy struct {
	net.Listener
	to string

	mu    sync.Mutex
	conns []net.Conn
	mute  bool // Whether the proxy drops answers of the server.
	shut  bool // Whether the proxy closes connections immediately.
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

// cut closes all connections. New connections remain possible.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns, p.mute = nil, false
}

// silence drops answers of the server until the connections are cut.
func (p *proxy) silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mute = true
}

// refuse closes all current and later connections.
func (p *proxy) refuse() {
	p.mu.Lock()
	p.shut = true
	p.mu.Unlock()
	p.cut()
}
