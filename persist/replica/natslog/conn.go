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

// A connection is what all logs on one connection know of its server. A server that is cut off from
// the others keeps its clients: it sends heartbeats, and its copy of a stream stands still. Only
// the leader of a stream tells that a server still reaches the others, so the connection moves to
// another server when no leader answers.
type connection struct {
	mu       sync.Mutex
	answered time.Time // When the leader of a stream last answered a request.
	moved    time.Time // When the connection was last told to try another server.
	denied   string    // The beginning of a subject that the login may not publish to.
}

// connections has the connection of each [nats.Conn] by a weak pointer, so that it does not keep it
// in memory.
var connections sync.Map

// connectionOf returns what the logs on nc share.
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

// mayRemove reports whether the login may remove consumers, as far as it is known: false once the
// servers said so of a subject that begins as this one.
func (c *connection) mayRemove(nc *nats.Conn, subject string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := nc.LastError(); errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `"`+subject) {
		c.denied = subject
	}
	return c.denied != subject
}

// leave makes nc try another server if its server has not passed on an answer of a leader for the
// time unheard, nor an entry to the caller since then. It reports whether it did. Of all logs on
// nc, one does it for all, and only after the last new server had the same time.
func (c *connection) leave(nc *nats.Conn, since time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(latest(since, c.answered, c.moved)) < unheard || !nc.IsConnected() {
		return false
	}
	c.moved = time.Now()
	return nc.ForceReconnect() == nil // The next of its servers comes first.
}

func latest(a time.Time, more ...time.Time) time.Time {
	for _, b := range more {
		if b.After(a) {
			a = b
		}
	}
	return a
}
