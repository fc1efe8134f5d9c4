package natslog_test

import (
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/persist/replica"
)

// A partition is a cluster whose servers reach each other only through proxies, so that a test can
// cut a server off.
type partition struct {
	*cluster
	routes map[[2]int]*proxy // Proxies, by the connecting server and its target.
}

func newPartition(t testing.TB) *partition {
	ports := freePorts(t, 4)
	p := &partition{routes: map[[2]int]*proxy{}}
	for from := range 3 {
		for to := range 3 {
			if from != to {
				p.routes[[2]int{from, to}] = newProxy(t, fmt.Sprintf("127.0.0.1:%d", ports[to]))
			}
		}
	}
	n := 0
	p.cluster = newCluster(t, 3, func(o *server.Options) {
		// No server listens on the advertised address, so servers reach each other only through the
		// proxies.
		o.Cluster.Port, o.Cluster.Advertise = ports[n], fmt.Sprintf("127.0.0.1:%d", ports[3])
		o.Routes = nil
		for to := range 3 {
			if to != n {
				o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: p.routes[[2]int{n, to}].Addr().String()})
			}
		}
		n++
	})
	return p
}

// cutOff cuts a server off from the other servers, but not from its clients.
func (p *partition) cutOff(i int) {
	for pair, route := range p.routes {
		if pair[0] == i || pair[1] == i {
			route.refuse()
		}
	}
}

// follows returns the index of a server that does not lead a stream.
func (p *partition) follows(stream string) int { return (p.leader(stream) + 1) % 3 }

// connectFirst connects to a server, with the other servers in its list.
func (p *partition) connectFirst(i int) *nats.Conn {
	p.t.Helper()
	list := ""
	for n := range 3 {
		list += fmt.Sprintf("nats://127.0.0.1:%d,", p.options[(i+n)%3].Port)
	}
	nc, err := nats.Connect(list[:len(list)-1], nats.UserInfo("owner", "x"), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond),
		nats.ReconnectJitter(0, 0), nats.DontRandomize())
	require.NoError(p.t, err)
	p.t.Cleanup(nc.Close)
	return nc
}

// A server that is cut off sends heartbeats but no new entries to its clients. Clients on that
// server move to another server.
func TestEntries_ServerCutOff(t *testing.T) {
	t.Parallel()
	p := newPartition(t)
	owner := open(t, p.create("WORLDS", 3), "WORLDS", "one")
	at := add(t, owner, 0, "a")
	away := p.follows("WORLDS")
	stays := open(t, p.js(p.connect("owner", p.leader("WORLDS"))), "WORLDS", "one")
	nc := p.connectFirst(away)
	reader := open(t, p.js(nc), "WORLDS", "one")
	ctx, done := context.WithTimeout(background, time.Minute)
	defer done()
	var cut atomic.Int64
	var all []string
	for e, err := range reader.Entries(ctx, 0) {
		require.NoError(t, err)
		if all = append(all, string(e.Data)); len(all) == 2 {
			break
		}
		go func() {
			// In this time, the reader creates a consumer and waits.
			time.Sleep(500 * time.Millisecond)
			cut.Store(time.Now().UnixNano())
			p.cutOff(away)
			add(t, stays, at, "b")
		}()
	}
	assert.Equal(t, []string{"a", "b"}, all)
	t.Logf("the reader got the entry %v after the server was cut off", time.Since(time.Unix(0, cut.Load())))
	assert.EqualValues(t, 1, nc.Stats().Reconnects)
}

// If a server is cut off, an append through this server is confirmed through another server. This
// happens before the append times out.
func TestAppend_ServerCutOff(t *testing.T) {
	t.Parallel()
	p := newPartition(t)
	at := add(t, open(t, p.create("WORLDS", 3), "WORLDS", "one"), 0, "a")
	away := p.follows("WORLDS")
	nc := p.connectFirst(away)
	log, other := open(t, p.js(nc), "WORLDS", "one"), open(t, p.js(nc), "WORLDS", "two")
	p.cutOff(away)
	ctx, done := context.WithTimeout(background, time.Minute)
	defer done()
	errs := make(chan error, 2)
	for log, after := range map[replica.Log]replica.Position{log: at, other: 0} {
		go func() {
			_, err := log.Append(ctx, after, []byte("b"))
			errs <- err
		}()
	}
	require.NoError(t, <-errs)
	require.NoError(t, <-errs)
	assert.EqualValues(t, 1, nc.Stats().Reconnects, "all logs of a connection go together")
}

// A connection on which leaders answer remains on its server, even if a world has no new entries
// for a long time.
func TestEntries_StaysOnAnsweringServer(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	owner := open(t, c.create("WORLDS", 3), "WORLDS", "one")
	at := add(t, owner, 0, "a")
	nc := c.connect("owner")
	reader := open(t, c.js(nc), "WORLDS", "one")
	ctx, done := context.WithTimeout(background, 8*time.Second)
	defer done()
	for _, err := range reader.Entries(ctx, at) {
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	assert.Zero(t, nc.Stats().Reconnects)
}
