// Ecsdump-nats is ecsdump that reads stores out of their log on NATS, too:
//
//	ecsdump-nats info nats://localhost:4222/WORLDS/europe
//	ecsdump-nats serve nats://localhost:4222/WORLDS/europe     and shows what comes
//
// The path is the stream and the world. What the log has of the store is read into memory. A login
// that may follow suffices. Name and password may be in the URL, and are not printed; a URL that
// begins with tls:// asks for TLS. All else is told by the environment, in the variables of the
// command nats:
//
//	NATS_CREDS     a file with credentials
//	NATS_NKEY      a file with the seed of an NKey
//	NATS_USER      a name, with NATS_PASSWORD; alone it is a token
//	NATS_CA        a file with certificates that servers are known by
//	NATS_CERT      a file with a certificate for servers, with NATS_KEY
package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/internal/dump"
	"github.com/stet-ecs/stet/persist/replica"
	"github.com/stet-ecs/stet/persist/replica/natslog"
	"github.com/stet-ecs/stet/persist/replica/natslog/internal/login"
)

func main() { os.Exit(run()) }

func run() int { return dump.Main(map[string]dump.Opener{"nats": open, "tls": open}) }

// open follows the log that a URL names.
func open(ctx context.Context, text string) (files disk.FS, name string, err error) {
	servers, stream, world, err := split(text)
	if err != nil {
		return nil, "", err
	}
	nc, err := login.Connect(servers)
	if err != nil {
		return nil, "", err
	}
	f, err := follow(ctx, nc, stream, world)
	if err != nil {
		nc.Close()
		return nil, "", err
	}
	return &followed{f.Files(), f, nc}, ".", nil
}

func follow(ctx context.Context, nc *nats.Conn, stream, world string) (*replica.Follower, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	// It is only read.
	log, err := natslog.Open(ctx, js, stream, world, natslog.Options{Replicas: 1})
	if err != nil {
		return nil, err
	}
	f, err := replica.Follow(ctx, log, disk.Memory(), replica.Options{})
	if err != nil {
		return nil, err
	}
	if !f.Ready() {
		return nil, errors.Join(fmt.Errorf("stream %s has no store of world %s", stream, world), f.Close())
	}
	return f, nil
}

// split returns what a URL says: where servers are, and whose log it is.
func split(text string) (servers, stream, world string, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", "", "", login.Plain(err)
	}
	stream, world, _ = strings.Cut(strings.Trim(u.Path, "/"), "/")
	if u.Host == "" || stream == "" || world == "" || strings.Contains(world, "/") {
		return "", "", "", errors.New("it does not name a world: want nats://host:port/STREAM/WORLD")
	}
	u.Path = ""
	return u.String(), stream, world, nil
}

// A followed is the files of a store that follow its log until they are closed.
type followed struct {
	disk.FS
	follower *replica.Follower
	nc       *nats.Conn
}

// Close stops following.
func (f *followed) Close() error {
	err := f.follower.Close()
	f.nc.Close()
	return err
}
