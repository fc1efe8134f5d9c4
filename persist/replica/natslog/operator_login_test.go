package natslog_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/persist/replica"
	"github.com/stet-ecs/stet/persist/replica/natslog"
)

// logsOf returns the log of a world on a connection to one server.
func logsOf(t testing.TB, c *cluster, nc *nats.Conn) *natslog.Log {
	t.Helper()
	js := c.js(nc)
	require.NoError(t, natslog.Create(background, js, "WORLDS", natslog.Options{Replicas: 1}))
	return openOne(t, js, "WORLDS")
}

// becomesOperator appends and reads until both calls return errors of the class Operator.
func becomesOperator(t testing.TB, c *cluster, log *natslog.Log, at replica.Position, words ...string) {
	t.Helper()
	var err error
	short := func(call func(context.Context) error) bool {
		ctx, done := context.WithTimeout(background, time.Second)
		defer done()
		err = call(ctx)
		return replica.ClassOf(err) == replica.Operator
	}
	c.until(func() bool {
		return short(func(ctx context.Context) error { _, err := log.Append(ctx, at, []byte("b")); return err })
	}, "an append has another error")
	isOperator(t, err, words...)
	require.ErrorIs(t, firstError(background, log, at), replica.ErrOperator)
}

func TestErrOperator_ConnectionClosed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	nc := c.connect("owner")
	log := logsOf(t, c, nc)
	at := add(t, log, 0, "a")
	nc.Close()
	_, err := log.Append(background, at, []byte("b"))
	isOperator(t, err, "connect again")
	require.ErrorIs(t, err, nats.ErrConnectionClosed)
	isOperator(t, firstError(background, log, at), "connect again")
}

// When credentials expire, the server ends the connection of the login and refuses new ones.
func TestErrOperator_CredentialsExpired(t *testing.T) {
	t.Parallel()
	key := func(create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
		pair, err := create()
		require.NoError(t, err)
		public, err := pair.PublicKey()
		require.NoError(t, err)
		return pair, public
	}
	operator, operatorName := key(nkeys.CreateOperator)
	accounts := &server.MemAccResolver{}
	account := func(jetstream bool) (nkeys.KeyPair, string) {
		pair, name := key(nkeys.CreateAccount)
		claims := jwt.NewAccountClaims(name)
		if jetstream {
			claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
		}
		text, err := claims.Encode(operator)
		require.NoError(t, err)
		require.NoError(t, accounts.Store(name, text))
		return pair, name
	}
	_, system := account(false)
	worlds, _ := account(true)
	user, userName := key(nkeys.CreateUser)
	claims := jwt.NewUserClaims(userName)
	claims.Expires = time.Now().Add(4 * time.Second).Unix()
	login, err := claims.Encode(worlds)
	require.NoError(t, err)

	c := &cluster{t: t, servers: make([]*server.Server, 1), options: []*server.Options{{
		ServerName: "s0", Host: "127.0.0.1", Port: freePorts(t, 1)[0], NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir(), SyncAlways: true,
		TrustedKeys: []string{operatorName}, AccountResolver: accounts, SystemAccount: system,
	}}}
	c.start(0)
	t.Cleanup(func() { c.stop(0) })
	for name, give := range map[string]nats.Option{"goes on": nats.IgnoreAuthErrorAbort(), "gives up": nats.MaxReconnects(-1)} {
		nc, err := nats.Connect(fmt.Sprintf("nats://127.0.0.1:%d", c.options[0].Port), nats.UserJWT(
			func() (string, error) { return login, nil }, user.Sign,
		), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), give,
			nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		log := logsOf(t, c, nc)
		_, at, err := log.Bounds(background)
		require.NoError(t, err)
		at = add(t, log, at, name)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.until(func() bool { return !nc.IsConnected() }, "the login does not expire")
			becomesOperator(t, c, log, at, "renew the credentials of the login")
		})
	}
}

// When the client reconnects, the certificate of the server has expired.
func TestErrOperator_CertificateExpired(t *testing.T) {
	t.Parallel()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	end := time.Now().Add(3 * time.Second).Truncate(time.Second)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "server"}, NotBefore: end.Add(-time.Hour), NotAfter: end,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	trusted := x509.NewCertPool()
	trusted.AddCert(cert)
	secure := &tls.Config{RootCAs: trusted}
	o := &server.Options{
		ServerName: "s0", Host: "127.0.0.1", Port: freePorts(t, 1)[0], NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir(), SyncAlways: true,
		TLS: true, TLSTimeout: 5, TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}}},
	}
	c := &cluster{t: t, servers: make([]*server.Server, 1), options: []*server.Options{o}}
	c.start(0)
	t.Cleanup(func() { c.stop(0) })
	p := newProxy(t, fmt.Sprintf("127.0.0.1:%d", o.Port))
	nc, err := nats.Connect("tls://"+p.Addr().String(), nats.Secure(secure), nats.UserInfo("owner", "x"), nats.MaxReconnects(-1),
		nats.ReconnectWait(50*time.Millisecond), nats.IgnoreDiscoveredServers(),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	require.NoError(t, err)
	defer nc.Close()
	log := logsOf(t, c, nc)
	at := add(t, log, 0, "a")
	time.Sleep(time.Until(end.Add(time.Second)))
	p.cut()
	becomesOperator(t, c, log, at, "renew the certificate of the server", "expired")
}
