package natslog

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/nats-io/nats.go"
)

// A connection is the state that all logs on one [nats.Conn] share. It finds out whether its server
// can reach the leaders of streams, and moves to another server if not. A server that is cut off
// from the other servers still serves its clients. It sends heartbeats, but its copy of a stream
// does not grow. Only an answer of a stream's leader shows that a server reaches the others.
type connection struct {
	mu       sync.Mutex
	answered time.Time // Time of the last answer from the leader of a stream.
	moved    time.Time // Time of the last move of the connection by leave().
	denied   string    // The first part of a subject that the login may not publish to.
}

// connections maps each [nats.Conn] to its connection. The keys are weak pointers, so unused
// connections can be garbage collected.
var connections sync.Map

// connectionOf returns the state that the logs on nc share.
func connectionOf(nc *nats.Conn) *connection {
	key := weak.Make(nc)
	if c, ok := connections.Load(key); ok {
		return c.(*connection)
	}
	c, loaded := connections.LoadOrStore(key, &connection{})
	if !loaded {
		runtime.AddCleanup(nc, func(key weak.Pointer[nats.Conn]) { connections.Delete(key) }, key)
	}
	return c.(*connection)
}

// heard records that the leader of a stream answered.
func (c *connection) heard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered = time.Now()
}

// mayRemove reports whether the login may remove consumers. The parameter subject is the beginning
// of the subject of such requests. mayRemove returns true until a server has denied one of them.
func (c *connection) mayRemove(nc *nats.Conn, subject string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := nc.LastError(); errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `"`+subject) {
		c.denied = subject
	}
	return c.denied != subject
}

// leave moves nc to another server if no leader has answered for a while (the constant unheard).
// Time before the last move, or before the parameter since, does not count. leave reports whether
// it moved nc. The move affects all logs on nc.
func (c *connection) leave(nc *nats.Conn, since time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	silent := min(time.Since(since), time.Since(c.answered), time.Since(c.moved))
	if silent < unheard || !nc.IsConnected() {
		return false
	}
	c.moved = time.Now()
	return nc.ForceReconnect() == nil // nats.go connects to the next server of its list.
}
