// Ecsdump-nats is ecsdump that reads stores out of their log on NATS, too:
//
//	ecsdump-nats info nats://localhost:4222/WORLDS/europe
//	ecsdump-nats serve nats://localhost:4222/WORLDS/europe     and shows what comes
//
// The path is the stream and the world. What the log has of the store is read into memory. Name and password
// may be in the URL, which is printed; NATS_CREDS names a file with credentials. A login that may follow suffices.
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
)

func main() { os.Exit(run()) }

func run() int { return dump.Main(map[string]dump.Opener{"nats": open, "tls": open}) }

// open follows the log that a URL names.
func open(ctx context.Context, text string) (files disk.FS, name string, err error) {
	servers, stream, world, err := split(text)
	if err != nil {
		return nil, "", err
	}
	var options []nats.Option
	if file := os.Getenv("NATS_CREDS"); file != "" {
		options = append(options, nats.UserCredentials(file))
	}
	nc, err := nats.Connect(servers, append(options, nats.MaxReconnects(-1))...)
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
	log, err := natslog.Open(ctx, js, stream, world, natslog.Options{Replicas: 1}) // It is only read.
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
		return "", "", "", err
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
