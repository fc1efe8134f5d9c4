package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/replica"
	"github.com/stet-ecs/stet/persist/replica/natslog"
)

// An issuer issues certificates.
type issuer struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issue writes a certificate and its key to two files. The first call writes the issuer's own
// certificate.
func (i *issuer) issue(name string) (cert, key string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(i.t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: i.cert == nil,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if i.cert == nil {
		i.cert, i.key = c, private
	}
	der, err := x509.CreateCertificate(rand.Reader, c, i.cert, &private.PublicKey, i.key)
	require.NoError(i.t, err)
	secret, err := x509.MarshalECPrivateKey(private)
	require.NoError(i.t, err)
	write := func(file, kind string, b []byte) string {
		file = filepath.Join(i.dir, file)
		require.NoError(i.t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600))
		return file
	}
	return write(name+".pem", "CERTIFICATE", der), write(name+".key", "EC PRIVATE KEY", secret)
}

// followerMay has the documented rights for a login that follows WORLDS.one.
var followerMay = &server.Permissions{
	Publish: &server.SubjectPermission{Allow: []string{
		"$JS.API.STREAM.INFO.WORLDS", "$JS.API.STREAM.MSG.GET.WORLDS", "$JS.API.CONSUMER.CREATE.WORLDS.*.WORLDS.one", "$JS.API.CONSUMER.MSG.NEXT.WORLDS.*",
	}},
	Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
}

// A read-only login can read from servers that require TLS, client certificates, and passwords or
// keys.
func TestLogin_PasswordKeyAndTLS(t *testing.T) {
	dir := t.TempDir()
	ca := &issuer{t: t, dir: dir}
	caFile, _ := ca.issue("ca")
	serverCert, serverKey := ca.issue("server")
	clientCert, clientKey := ca.issue("client")
	pair, err := tls.LoadX509KeyPair(serverCert, serverKey)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	text, err := os.ReadFile(caFile)
	require.NoError(t, err)
	require.True(t, pool.AppendCertsFromPEM(text))
	user, err := nkeys.CreateUser()
	require.NoError(t, err)
	public, err := user.PublicKey()
	require.NoError(t, err)
	seed, err := user.Seed()
	require.NoError(t, err)
	seedFile := filepath.Join(dir, "reader.nk")
	require.NoError(t, os.WriteFile(seedFile, seed, 0o600))

	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir(),
		TLS: true, TLSVerify: true, TLSTimeout: 5, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert},
		Users: []*server.User{{Username: "owner", Password: "hidden1"}, {Username: "reader", Password: "hidden2", Permissions: followerMay}},
		Nkeys: []*server.NkeyUser{{Nkey: public, Permissions: followerMay}},
	})
	require.NoError(t, err)
	s.Start()
	defer s.Shutdown()
	require.True(t, s.ReadyForConnections(20*time.Second))
	host := s.Addr().String()

	nc, err := nats.Connect("tls://owner:hidden1@"+host, nats.RootCAs(caFile), nats.ClientCert(clientCert, clientKey))
	require.NoError(t, err)
	defer nc.Close()
	found(t, nc)

	world := func(login string) string { return "tls://" + login + host + "/WORLDS/one" }
	certs := []string{"NATS_CA=" + caFile, "NATS_CERT=" + clientCert, "NATS_KEY=" + clientKey}
	for name, c := range map[string]struct {
		url  string
		env  []string
		fail bool
	}{
		"a password in the URL":         {world("reader:hidden2@"), certs, false},
		"a password in the environment": {world(""), append(certs, "NATS_USER=reader", "NATS_PASSWORD=hidden2"), false},
		"a key":                         {world(""), append(certs, "NATS_NKEY="+seedFile), false},
		"by the server's wish":          {"nats://reader:hidden2@" + host + "/WORLDS/one", certs, false},
		"a wrong password":              {world("reader:hidden3@"), certs, true},
		"no certificate":                {world("reader:hidden2@"), certs[:1], true},
		"an unknown server":             {world("reader:hidden2@"), certs[1:], true},
		"half a certificate":            {world("reader:hidden2@"), certs[:2], true},
		"no such key":                   {world(""), append(certs, "NATS_NKEY="+caFile+"x"), true},
		"no URL":                        {"tls://reader:hidden2@" + host + "x/WORLDS/one", certs, true},
		"a host that is none":           {"tls://reader:hidden2@[::1/WORLDS/one", certs, true},
	} {
		for _, command := range [][]string{{"info", c.url}, {"show", c.url, "0v1"}, {"ls", c.url, "--json"}} {
			out, err := dumped(c.env, command...)
			assert.Equal(t, c.fail, err != nil, "%s: %s", name, out)
			assert.NotContains(t, out, "hidden", name)
			if command[0] == "show" && !c.fail {
				assert.Contains(t, out, "1234567", name)
			}
		}
	}
}

// found creates a world with an entity.
func found(t *testing.T, nc *nats.Conn) {
	ctx := context.Background()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	require.NoError(t, natslog.Create(ctx, js, "WORLDS", natslog.Options{Replicas: 1}))
	log, err := natslog.Open(ctx, js, "WORLDS", "one", natslog.Options{Replicas: 1})
	require.NoError(t, err)
	f, err := replica.Follow(ctx, log, disk.Memory(), replica.Options{})
	require.NoError(t, err)
	o, err := f.Claim(ctx)
	require.NoError(t, err)
	w := ecs.NewWorld(ecs.Options{})
	gold := ecs.MustRegister(w, ecs.Component[int64]{Name: "gold"})
	store, err := o.Open(ctx, w, persist.Options{})
	require.NoError(t, err)
	gold.Set(w.Create(), 1234567)
	require.NoError(t, store.Commit())
	require.NoError(t, store.Close(ctx))
	require.NoError(t, o.Close())
}
