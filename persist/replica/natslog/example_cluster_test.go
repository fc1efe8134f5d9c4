package natslog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/replica"
	"github.com/stet-ecs/stet/persist/replica/natslog"
)

const exampleDir = "examples/cluster"

// exampleOptions loads the files of examples/cluster.
func exampleOptions(t testing.TB) (options []*server.Options) {
	t.Helper()
	for i := range 3 {
		o, err := server.ProcessConfigFile(fmt.Sprintf("%s/s%d.conf", exampleDir, i))
		require.NoError(t, err)
		options = append(options, o)
	}
	return options
}

// An exampleCluster is three servers in this process, as the files of examples/cluster configure
// them. Only ports and store directories differ.
type exampleCluster struct {
	t    testing.TB
	urls string

	mu     sync.Mutex
	denied []string // Requests that servers refused, by login.
}

func newExampleCluster(t testing.TB) *exampleCluster {
	t.Helper()
	c := &exampleCluster{t: t}
	options, ports, dir := exampleOptions(t), freePorts(t, 6), t.TempDir()
	free := map[string]int{} // Maps each route port in the files to the free port that replaces it.
	for i, o := range options {
		free[fmt.Sprint(o.Cluster.Port)] = ports[i]
	}
	for i, o := range options {
		var routes []*url.URL
		for _, route := range o.Routes {
			require.Contains(t, free, route.Port(), "no server listens on the port of a route")
			routes = append(routes, &url.URL{Scheme: route.Scheme, Host: fmt.Sprintf("%s:%d", route.Hostname(), free[route.Port()])})
		}
		o.Port, o.Cluster.Port, o.Routes = ports[3+i], ports[i], routes
		o.StoreDir, o.NoLog, o.NoSigs = filepath.Join(dir, fmt.Sprint(i)), true, true
		s, err := server.NewServer(o)
		require.NoError(t, err)
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		require.True(t, s.ReadyForConnections(20*time.Second))
		c.urls += fmt.Sprintf(",nats://127.0.0.1:%d", o.Port)
	}
	c.urls = c.urls[1:]
	return c
}

// connect connects with the key of a login of examples/cluster.
func (c *exampleCluster) connect(login string) *nats.Conn {
	c.t.Helper()
	key, err := nats.NkeyOptionFromSeed(filepath.Join(exampleDir, login+".nk"))
	require.NoError(c.t, err)
	nc, err := nats.Connect(c.urls, key, nats.MaxReconnects(-1), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if errors.Is(err, nats.ErrPermissionViolation) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.denied = append(c.denied, login+": "+err.Error())
		}
	}))
	require.NoError(c.t, err)
	c.t.Cleanup(nc.Close)
	return nc
}

// log opens the world of the example.
func (c *exampleCluster) log(nc *nats.Conn) *natslog.Log {
	c.t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(c.t, err)
	log, err := natslog.Open(background, js, "WORLDS", "europe", natslog.Options{})
	require.NoError(c.t, err)
	return log
}

// noneDenied checks that servers refused no request, including optional requests.
func (c *exampleCluster) noneDenied(connections ...*nats.Conn) {
	c.t.Helper()
	for _, nc := range connections {
		// The servers answer a flush after they have sent all errors.
		require.NoError(c.t, nc.Flush())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	assert.Empty(c.t, c.denied)
}

func TestExampleCluster_OwnerAndFollowers(t *testing.T) {
	t.Parallel()
	ctx, done := context.WithTimeout(background, time.Minute)
	defer done()
	c := newExampleCluster(t)
	require.Eventually(t, func() bool {
		js, err := jetstream.New(c.connect("admin"))
		require.NoError(t, err)
		return natslog.Create(ctx, js, "WORLDS", natslog.Options{}) == nil
	}, 40*time.Second, 100*time.Millisecond)
	require.NoError(t, natslog.CheckServers(ctx, c.connect("system")))

	owner, follower := c.connect("owner"), c.connect("follower")
	f := follow(t, c.log(owner), replica.Options{Name: "a"})
	g, o, store := own(t, f)
	g.play(t, store, 3)
	early := follow(t, c.log(follower), replica.Options{Name: "early"})
	standby := follow(t, c.log(owner), replica.Options{Name: "standby"})
	for range 5 { // Both followers catch up and wait, and get the next tick from a consumer.
		require.NoError(t, early.Wait(ctx, o.Position()))
		require.NoError(t, standby.Wait(ctx, o.Position()))
		time.Sleep(100 * time.Millisecond)
		g.play(t, store, 1)
	}
	_, err := store.Snapshot(ctx)
	require.NoError(t, err)
	require.NoError(t, o.Rebase(ctx))
	g.play(t, store, 1)

	late := follow(t, c.log(follower), replica.Options{Name: "late"})
	for name, reader := range map[string]*replica.Follower{"early": early, "late": late, "standby": standby} {
		require.NoError(t, reader.Wait(ctx, o.Position()), name)
		shown := newGame()
		p, err := persist.Follow(ctx, ".", shown.World, persist.FileOptions{Files: reader.Files()})
		require.NoError(t, err, name)
		assert.EqualValues(t, 9, shown.score.Get(), name)
		require.NoError(t, p.Close())
		require.NoError(t, reader.Close())
	}
	require.NoError(t, store.Close(ctx))
	position := o.Position()
	require.NoError(t, o.Close())
	c.noneDenied(owner, follower)

	_, err = c.log(follower).Append(ctx, position, []byte("refused"))
	isOperator(t, err, "the login lacks a right", `Publish to "WORLDS.europe"`)
	isOperator(t, c.log(follower).Trim(ctx, position), `"$JS.API.STREAM.PURGE.WORLDS"`)
}

// The logins of the example have exactly the rights that the documentation of this package lists.
func TestExampleCluster_RightsOfLogins(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	var follower []string
	for _, line := range regexp.MustCompile(`(?m)^//\t(\$JS\.API\.\S+)`).FindAllStringSubmatch(string(doc), -1) {
		follower = append(follower, line[1])
	}
	require.Len(t, follower, 6)
	want := map[string][]string{
		"admin": nil, "system": nil, "follower": follower,
		"owner": append([]string{"WORLDS.europe", "$JS.API.STREAM.PURGE.WORLDS"}, follower...),
	}
	for login, rights := range want {
		seed, err := os.ReadFile(filepath.Join(exampleDir, login+".nk"))
		require.NoError(t, err)
		pair, err := nkeys.FromSeed(bytes.TrimSpace(seed))
		require.NoError(t, err)
		public, err := pair.PublicKey()
		require.NoError(t, err)
		for i, o := range exampleOptions(t) {
			require.Len(t, o.Nkeys, len(want), "server %d", i)
			require.Empty(t, o.Users, "server %d", i)
			found := false
			for _, user := range o.Nkeys {
				if user.Nkey != public {
					continue
				}
				found = true
				account := map[bool]string{true: "SYS", false: "WORLDS"}[login == "system"]
				assert.Equal(t, account, user.Account.GetName())
				require.Equal(t, rights != nil, user.Permissions != nil, "%s has limited rights", login)
				if rights == nil {
					continue
				}
				require.NotNil(t, user.Permissions.Publish, login)
				require.NotNil(t, user.Permissions.Subscribe, login)
				assert.ElementsMatch(t, rights, user.Permissions.Publish.Allow, login)
				assert.Equal(t, []string{"_INBOX.>"}, user.Permissions.Subscribe.Allow, login)
			}
			assert.True(t, found, "server %d has no login %s", i, login)
		}
	}
}

// The single server of examples/spectators has the settings that a log needs, like the servers of
// examples/cluster.
func TestExampleServer_SettingsForLog(t *testing.T) {
	one, err := server.ProcessConfigFile("examples/spectators/one.conf")
	require.NoError(t, err)
	for _, o := range append(exampleOptions(t), one) {
		assert.True(t, o.SyncAlways, o.ConfigFile)
		assert.EqualValues(t, 1<<20, o.MaxPayload, o.ConfigFile)
		assert.Equal(t, "127.0.0.1", o.Host, o.ConfigFile)
		assert.False(t, filepath.IsAbs(o.StoreDir), o.ConfigFile)
	}
}
