package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// joinLine matches the first line of a client.
var joinLine = regexp.MustCompile(`^join ([a-zA-Z0-9]{1,16})$`)

// A session is the connection of a player.
type session struct {
	player string
	conn   net.Conn
	view   string // The last view that was sent.
}

// A message is an order of a session. The last message of a session has the verb "leave".
type message struct {
	from  *session
	order Order
}

// A server runs the game. Connections send messages to the channel mail. Only the goroutine of the
// loop uses the other fields, so the world needs no locks.
type server struct {
	game     *game
	store    *persist.Store
	mail     chan message
	sessions map[string]*session // The sessions by the name of their player.
	orders   []Order             // The orders of the next tick.
}

// openServer continues the world in dir, or creates a new one.
func openServer(ctx context.Context, dir string) (*server, error) {
	g := newGame(ecs.Options{})
	store, err := persist.Open(ctx, dir, g.world, persist.Options{})
	if err != nil {
		return nil, err
	}
	s := &server{game: g, store: store, mail: make(chan message, 1000), sessions: map[string]*session{}}
	for _, row := range g.online.All() { // After kill -9, online players have no connection.
		s.orders = append(s.orders, Order{Player: row.A.Name, Line: "leave", Verb: "leave"})
	}
	return s, nil
}

// accept serves the clients of l until ctx ends. It closes the channel mail after the last message.
func (s *server) accept(ctx context.Context, l net.Listener) {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	var clients sync.WaitGroup
	for ctx.Err() == nil {
		if conn, err := l.Accept(); err == nil {
			clients.Go(func() { s.serve(ctx, conn) })
		} else {
			// An error can be temporary, such as too many open files.
			time.Sleep(10 * time.Millisecond)
		}
	}
	clients.Wait()
	close(s.mail)
}

// serve sends the orders of a client to the loop, until the client leaves or ctx ends.
func (s *server) serve(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	lines := bufio.NewScanner(conn)
	lines.Buffer(make([]byte, 512), 512) // A longer line ends the connection.
	lines.Scan()
	first := joinLine.FindStringSubmatch(strings.TrimSpace(lines.Text()))
	if first == nil {
		fmt.Fprintln(conn, "error: want join NAME, with 1 to 16 letters and digits")
		return
	}
	c := &session{player: first[1], conn: conn}
	s.mail <- message{c, Order{Player: c.player, Line: "join", Verb: "join"}}
	for lines.Scan() {
		o, err := parseOrder(c.player, strings.TrimSpace(lines.Text()))
		if err != nil {
			c.send("error: " + err.Error())
		} else if o.Verb == "leave" || o.Verb == "join" {
			break
		} else {
			s.mail <- message{c, o}
		}
	}
	s.mail <- message{c, Order{Player: c.player, Line: "leave", Verb: "leave"}}
}

// send sends a line to the client. If the client has not read the earlier lines, send waits for at
// most a millisecond, and then closes the connection. So a slow client does not delay the ticks.
func (c *session) send(line string) {
	_ = c.conn.SetWriteDeadline(time.Now().Add(time.Millisecond))
	if _, err := fmt.Fprintln(c.conn, line); err != nil {
		c.conn.Close()
	}
}

// run runs a tick for each value of clock. When the channel mail is closed, it runs the last tick.
func (s *server) run(clock <-chan time.Time) error {
	for {
		select {
		case m, open := <-s.mail:
			if !open {
				return s.tick()
			}
			s.handle(m.from, m.order)
		case <-clock:
			if err := s.tick(); err != nil {
				return err
			}
		}
	}
}

// tick runs one tick with the orders that have arrived. It records the orders, so that a replay can
// run the same tick again.
func (s *server) tick() error {
	for _, o := range s.orders {
		if err := s.store.Input(o.Player, []byte(o.Line)); err != nil {
			return err
		}
	}
	s.game.systems.Step(s.orders)
	s.orders = s.orders[:0]
	if err := s.store.Commit(); err != nil {
		return err
	}
	s.push()
	return nil
}

// handle answers an order immediately, or queues it for the next tick.
func (s *server) handle(c *session, o Order) {
	old := s.sessions[c.player]
	switch {
	case o.Verb == "list":
		c.send("online:" + s.game.view(s.game.Player.Has))
		return
	case o.Verb == "join" && old != c:
		if old != nil {
			old.conn.Close() // Replace the old connection of the player.
		}
		s.sessions[c.player] = c
	case o.Verb == "leave" && old == c:
		delete(s.sessions, c.player)
	case old != c:
		return // Ignore the orders of a replaced connection.
	}
	s.orders = append(s.orders, o)
}

// push sends to each player what was said in the last tick and, four times a second, what the
// player sees.
func (s *server) push() {
	g := s.game
	for player, c := range s.sessions {
		me, _ := g.byName.First(player)
		visible := func(e ecs.Entity) bool { return g.sees(me, e) }
		for said := range g.Said.Last() {
			if p, _ := g.Player.Get(said.Player); visible(said.Player) {
				c.send(fmt.Sprintf("%s says %q", p.Name, said.Text))
			}
		}
		if g.world.Tick()%15 > 0 {
			continue
		}
		if view := g.view(visible); view != c.view {
			c.view = view
			c.send("see" + view)
		}
	}
}
