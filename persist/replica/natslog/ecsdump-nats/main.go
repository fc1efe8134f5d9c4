// Ecsdump-nats is ecsdump for stores in files and for stores in a log on NATS:
//
//	ecsdump-nats info nats://localhost:4222/WORLDS/europe
//	ecsdump-nats serve nats://localhost:4222/WORLDS/europe     also shows new ticks
//
// The path of the URL is the stream and the world. The program reads the store from the log into
// memory. The login must have the rights of a follower. The URL may have a user name and a
// password, which are never printed. The scheme tls:// requests TLS. The environment variables of
// the command nats provide other settings:
//
//	NATS_CREDS     file with credentials
//	NATS_NKEY      file with the seed of an NKey
//	NATS_USER      user name if NATS_PASSWORD is set, otherwise a token
//	NATS_CA        file with certificates to verify the servers
//	NATS_CERT      file with a client certificate
//	NATS_KEY       file with the key of the certificate
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

// open follows the log that a URL names, and returns the files of its store.
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
	// The program only reads the log, so any number of replicas is enough.
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

// split returns the servers, the stream and the world of a URL.
func split(text string) (servers, stream, world string, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", "", "", login.Plain(err)
	}
	stream, world, _ = strings.Cut(strings.Trim(u.Path, "/"), "/")
	if u.Host == "" || stream == "" || world == "" || strings.Contains(world, "/") {
		return "", "", "", errors.New("the URL does not name a world: want nats://host:port/STREAM/WORLD")
	}
	u.Path = ""
	return u.String(), stream, world, nil
}

// A followed is the file system of a store that follows its log until it is closed.
type followed struct {
	disk.FS
	follower *replica.Follower
	nc       *nats.Conn
}

// Close stops following, and closes the connection.
func (f *followed) Close() error {
	err := f.follower.Close()
	f.nc.Close()
	return err
}
