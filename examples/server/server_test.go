package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/schedule"
	"github.com/stet-ecs/stet/persist"
)

// A memoryConn is a connection that keeps what the server sends.
type memoryConn struct {
	net.Conn
	bytes.Buffer
	closed bool
}

func (c *memoryConn) SetWriteDeadline(time.Time) error { return nil }
func (c *memoryConn) Read(b []byte) (int, error)       { return c.Buffer.Read(b) }

func (c *memoryConn) Write(b []byte) (int, error) {
	if c.closed {
		return 0, net.ErrClosed
	}
	return c.Buffer.Write(b)
}

func (c *memoryConn) Close() error {
	c.closed = true
	return nil
}

// A client is a session without a network.
type client struct {
	*session
	server *server
	t      *testing.T
}

// start opens a server without a clock: the test runs its ticks.
func start(t *testing.T, dir string) *server {
	t.Helper()
	s, err := openServer(t.Context(), dir)
	require.NoError(t, err)
	return s
}

func (s *server) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, s.store.Close(t.Context()))
}

// connect joins a player.
func (s *server) connect(t *testing.T, name string) client {
	c := client{&session{player: name, conn: new(memoryConn)}, s, t}
	c.order("join")
	return c
}

func (c client) order(line string) {
	c.t.Helper()
	o, err := parseOrder(c.player, line)
	require.NoError(c.t, err)
	c.server.handle(c.session, o)
}

// received returns the lines that the client has not read yet.
func (c client) received() string {
	b := &c.conn.(*memoryConn).Buffer
	defer b.Reset()
	return b.String()
}

func (s *server) ticks(t *testing.T, n int) {
	t.Helper()
	for range n {
		require.NoError(t, s.tick())
	}
}

func (s *server) at(name string) Position {
	e, _ := s.game.byName.First(name)
	p, _ := s.game.Position.Get(e)
	return p
}

// gather moves all players to the corner 0, 0.
func (s *server) gather(t *testing.T, clients ...client) {
	t.Helper()
	for _, c := range clients {
		c.order("move -2000000000 -2000000000")
	}
	s.ticks(t, 6*size+15)
	for _, c := range clients {
		require.Equal(t, Position{}, s.at(c.player))
		c.received()
	}
}

// playRandomly runs ticks with random orders of some players.
func (s *server) playRandomly(t *testing.T, seed uint64, n int) {
	t.Helper()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range n {
		s.orders = append(s.orders, randomOrders(t, random)...)
		s.ticks(t, 1)
	}
}

func randomOrders(t *testing.T, random *rand.Rand) (orders []Order) {
	for range random.IntN(3) {
		lines := []string{"join", "leave", "say hello", "say", fmt.Sprintf("move %d %d", random.IntN(9)-4, random.IntN(9)-4)}
		o, err := parseOrder([]string{"ann", "bob", "cid"}[random.IntN(3)], lines[random.IntN(len(lines))])
		require.NoError(t, err)
		orders = append(orders, o)
	}
	return orders
}

func TestServer_PlayersSeeEachOther(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := start(t, dir)
	ann, bob := s.connect(t, "ann"), s.connect(t, "bob")
	s.gather(t, ann, bob)

	ann.order(fmt.Sprintf("move %d 0", sight))
	s.ticks(t, 100)
	require.Contains(t, bob.received(), "see ann@10,0 bob@0,0\n")
	ann.order("move 1 0")
	bob.order("say Are you there?")
	s.ticks(t, 1)
	require.Contains(t, ann.received(), "bob says \"Are you there?\"\n")
	s.ticks(t, 30)
	require.Contains(t, bob.received(), "see bob@0,0\n")
	require.Contains(t, ann.received(), "see ann@11,0\n")
	bob.order("say Hello?")
	bob.order("list")
	s.ticks(t, 1)
	require.NotContains(t, ann.received(), "Hello")
	require.Equal(t, "online: ann@11,0 bob@0,0\nbob says \"Hello?\"\n", bob.received())

	ann.order("leave")
	s.ticks(t, 1)
	ann.received()
	bob.order("list")
	require.Equal(t, "online: bob@0,0\n", bob.received())
	s.ticks(t, 15)
	require.Empty(t, ann.received())
	bob.order("say \xff\x00")
	s.ticks(t, 1)
	require.Equal(t, "bob says \"\\xff\\x00\"\n", bob.received())
	s.stop(t)
	require.NoError(t, replay(t.Context(), dir, newGame(ecs.Options{}), new(bytes.Buffer)))
}

// A walk takes 6 ticks a step, and ends at the border.
func TestWalk_SixTicksPerStep(t *testing.T) {
	s := start(t, filepath.Join(t.TempDir(), "store"))
	ann := s.connect(t, "ann")
	s.gather(t, ann)
	for s.game.world.Tick()%6 > 0 {
		s.ticks(t, 1)
	}
	ann.order("move 3 1")
	for i, want := range []Position{{0, 0}, {1, 1}, {2, 1}, {3, 1}, {3, 1}} {
		require.Equal(t, want, s.at("ann"), i)
		s.ticks(t, 6)
	}
	require.Zero(t, s.game.Goal.Len())
	ann.order(fmt.Sprintf("move %d 0", math.MaxInt32))
	s.ticks(t, 6)
	require.Equal(t, Position{4, 1}, s.at("ann"), "the distance must not overflow")
	s.stop(t)
}

// A new connection of a player replaces the old one. Orders of the old connection are ignored.
func TestJoin_SecondConnection(t *testing.T) {
	s := start(t, filepath.Join(t.TempDir(), "store"))
	old := s.connect(t, "ann")
	s.gather(t, old)
	again := s.connect(t, "ann")
	require.True(t, old.conn.(*memoryConn).closed)
	old.order("move 5 5")
	old.order("leave")
	s.ticks(t, 100)
	require.Equal(t, "see ann@0,0\n", again.received())
	require.Equal(t, 1, s.game.world.Len())
	s.stop(t)
}

// After a crash, no player is online. A player that joins again is the same entity.
func TestOpenServer_AfterCrash(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := start(t, dir)
	ann := s.connect(t, "ann")
	s.connect(t, "bob")
	ann.order("move 7 7")
	s.ticks(t, 20)
	e, _ := s.game.byName.First("ann")
	place, digest := s.at("ann"), s.game.world.Digest()
	s.stop(t) // Players are online in the closed world, as after a crash.

	s = start(t, dir)
	require.Equal(t, digest, s.game.world.Digest())
	ann = s.connect(t, "ann")
	s.ticks(t, 15)
	require.Equal(t, "see "+fmt.Sprintf("ann@%d,%d\n", place.X, place.Y), ann.received())
	found, _ := s.game.byName.First("ann")
	require.Equal(t, e, found)
	require.Equal(t, 1, s.game.Online.Len())
	s.stop(t)
	require.NoError(t, replay(t.Context(), dir, newGame(ecs.Options{}), new(bytes.Buffer)))
}

// The last tick has all messages that arrive before the server stops.
func TestRun_LastTickHasAllMessages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := start(t, dir)
	ann := s.connect(t, "ann")
	for i := range 500 {
		o, err := parseOrder("ann", fmt.Sprintf("say %d", i))
		require.NoError(t, err)
		s.mail <- message{ann.session, o}
	}
	close(s.mail)
	require.NoError(t, s.run(nil))
	s.stop(t)

	s = start(t, dir)
	require.EqualValues(t, 1, s.game.world.Tick())
	require.Equal(t, 500, s.game.Said.Len())
	require.True(t, s.store.Report().Clean, s.store.Report())
	s.stop(t)
}

func TestSend_DisconnectsSlowClient(t *testing.T) {
	s := start(t, filepath.Join(t.TempDir(), "store"))
	near, far := net.Pipe() // The client does not read during the ticks.
	c := client{&session{player: "ann", conn: near}, s, t}
	c.order("join")
	s.ticks(t, 15)
	_, err := far.Read(make([]byte, 1))
	require.Error(t, err)
	s.stop(t)
}

func TestFollow_SameDigests(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := start(t, dir)
	g := newGame(ecs.Options{})
	f, err := persist.Follow(t.Context(), dir, g.world)
	require.NoError(t, err)
	for i := range 10 {
		s.playRandomly(t, uint64(i), 20)
		require.NoError(t, s.store.Sync(t.Context()))
		changed, err := f.Advance(t.Context())
		require.NoError(t, err)
		require.True(t, changed)
		require.Equal(t, s.game.world.Tick(), g.world.Tick())
		require.Equal(t, s.game.world.Digest(), g.world.Digest())
	}
	require.NoError(t, f.Close())
	s.stop(t)
}

func TestReplay_EqualsRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	var out bytes.Buffer
	for run := range 3 {
		s := start(t, dir)
		s.playRandomly(t, rand.Uint64(), 100)
		digest := s.game.world.Digest()
		s.stop(t)
		out.Reset()
		require.NoError(t, replay(t.Context(), dir, newGame(ecs.Options{}), &out))
		require.Equal(t, fmt.Sprintf("ticks 1 to %d agree with the record, digest %v\n", 100*(run+1), digest), out.String())
	}
}

// If a system has changed since the record, the error of replay names the first tick and the
// component that differ.
func TestReplay_ChangedSystem(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := start(t, dir)
	s.connect(t, "ann")
	s.ticks(t, 100)
	s.stop(t)
	g := newGame(ecs.Options{})
	g.systems.Add("drift", g.Position, func(t *tick) {
		if t.Number >= 57 {
			g.Position.MutValues()[0].X ^= 1
		}
	})
	err := replay(t.Context(), dir, g, new(bytes.Buffer))
	require.ErrorContains(t, err, `tick 57 differs from the record in "Position"; show it: ecsdump diff `)
	saves, err := filepath.Glob(dir + "-diverged/*")
	require.NoError(t, err)
	require.Len(t, saves, 2)
}

// syncTest plays random orders. It runs each tick again with other permitted orders of the systems,
// and compares the results.
func syncTest(t *testing.T, g *game) error {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	test, err := g.systems.SyncTest(4)
	require.NoError(t, err)
	test.Shuffle(seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		if err := test.Step(randomOrders(t, random)); err != nil {
			return err
		}
	}
	return nil
}

func TestSystems_Deterministic(t *testing.T) {
	require.NoError(t, syncTest(t, newGame(ecs.Options{History: 4})))
}

// If a system counts in a Go variable, which a rewind does not restore, SyncTest names the system.
func TestSystems_StateOutsideWorld(t *testing.T) {
	g := newGame(ecs.Options{History: 4})
	steps := int32(0)
	g.systems.Add("drift", g.Position, func(*tick) {
		for i := range g.Position.MutValues() {
			steps++
			g.Position.MutValues()[i].X = steps
		}
	})
	var d *schedule.Divergence
	require.ErrorAs(t, syncTest(t, g), &d)
	assert.Equal(t, "drift", d.System)
	assert.Equal(t, "Position", d.Storage)
}

func TestAdminPages_Backup(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := start(t, dir)
	s.playRandomly(t, 1, 50)
	pages := adminPages(s.store, dir)
	request := func(method, path string, header ...string) (code int, body string) {
		r := httptest.NewRequest(method, path, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	code, body := request("GET", "/metrics")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, `"tick":50,`)
	code, _ = request("GET", "/backup")
	require.Equal(t, http.StatusMethodNotAllowed, code)
	code, _ = request("POST", "/backup", "Sec-Fetch-Site", "cross-site")
	require.Equal(t, http.StatusForbidden, code)
	code, body = request("POST", "/backup")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, dir+"-backup-50\n", body)
	code, body = request("POST", "/backup")
	require.Equal(t, http.StatusInternalServerError, code)
	require.Contains(t, body, "backup-50")

	digest := s.game.world.Digest()
	s.playRandomly(t, 2, 50)
	s.stop(t)
	s = start(t, dir+"-backup-50")
	require.Equal(t, digest, s.game.world.Digest())
	s.stop(t)
}

func TestParseOrder_ValidAndInvalid(t *testing.T) {
	for _, line := range []string{"move 1 -2", "say", "say a b", "list", "leave", "join"} {
		o, err := parseOrder("ann", line)
		require.NoError(t, err, line)
		assert.Equal(t, line, strings.TrimSpace(o.Verb+" "+o.Text))
	}
	for _, line := range []string{"", "dance", "move", "move 1", "move a b", "move 1 99999999999"} {
		_, err := parseOrder("ann", line)
		assert.ErrorContains(t, err, fmt.Sprintf("want move DX DY, say TEXT, list or leave, not %q", line))
	}
}
