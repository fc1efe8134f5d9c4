// Spectators shows a world that survives the death of its owner. It starts an owner, a standby and
// three spectators, each in its own process. One spectator is the page of ecsdump serve. The owner
// is killed, and the standby continues.
//
//	spectators                   the whole scene, with three NATS servers in this process
//	spectators -servers URLS     the whole scene, on running servers
//	spectators -kills 0          no process is killed; kill some yourself, until you interrupt it
//
// With running servers, each process can also run in its own terminal:
//
//	spectators -servers URLS -create                create the stream; the login needs that right
//	spectators -servers URLS -play NAME -dir DIR    a machine that owns the world, or stands by
//	spectators -servers URLS -watch NAME [-page]    a spectator
//
// URLS are separated by commas. All processes listen on the loopback address only. For logins and
// TLS, set the environment variables that ecsdump-nats uses. The exit code is 0, or 1 if a tick was
// lost or something failed, or 2 for wrong arguments.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist/replica/natslog"
	"github.com/stet-ecs/stet/persist/replica/natslog/internal/login"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// settings are the values of the flags.
type settings struct {
	servers, dir, stream, world string
	replicas, kills             int
	every                       time.Duration
	play, watch                 string
	create, page                bool
}

// run implements main.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	var s settings
	flags := flag.NewFlagSet("spectators", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.servers, "servers", "", "use the NATS servers at `URLS`, joined by commas, instead of three in this process")
	flags.StringVar(&s.stream, "stream", "SPECTATORS", "keep worlds in the stream `NAME`")
	flags.StringVar(&s.world, "world", "balls", "call the world `NAME`")
	flags.IntVar(&s.replicas, "replicas", 3, "ask that `N` servers keep the stream")
	flags.StringVar(&s.dir, "dir", "", "keep files in `DIR`, instead of one that is removed at the end")
	flags.IntVar(&s.kills, "kills", 3, "kill the owner `N` times")
	flags.DurationVar(&s.every, "every", 4*time.Second, "kill it `TIME` after the one before")
	flags.BoolVar(&s.create, "create", false, "create the stream only")
	flags.StringVar(&s.play, "play", "", "be the machine `NAME` only, which owns the world or stands by")
	flags.StringVar(&s.watch, "watch", "", "be the spectator `NAME` only")
	flags.BoolVar(&s.page, "page", false, "with -watch: serve the page")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	alone := s.create || s.play != "" || s.watch != ""
	if flags.NArg() > 0 || s.kills < 0 || s.every <= 0 || alone && s.servers == "" {
		fmt.Fprintln(stderr, "spectators: wants no arguments, -kills from 0 on, and -servers with -create, -play and -watch")
		return 2
	}
	err := inDirectory(&s, func() error {
		if alone {
			return one(ctx, s, stdout)
		}
		return all(ctx, s, stdout)
	})
	if err != nil {
		fmt.Fprintln(stderr, "spectators:", err)
		return 1
	}
	return 0
}

// inDirectory calls f with s.dir set to an existing directory, by default a temporary one.
func inDirectory(s *settings, f func() error) error {
	if s.dir != "" {
		return errors.Join(os.MkdirAll(s.dir, 0o755), f())
	}
	dir, err := os.MkdirTemp("", "stet-spectators-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s.dir = dir
	return f()
}

// one creates the stream, or runs one machine or spectator until ctx ends.
func one(ctx context.Context, s settings, stdout io.Writer) error {
	t := &teller{to: stdout, brief: os.Getenv(asChild) == ""}
	if !t.brief {
		go func() {
			_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
			os.Exit(1) // The parent process has ended.
		}()
	}
	nc, err := login.Connect(s.servers)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	options := natslog.Options{Replicas: s.replicas}
	if s.create {
		return natslog.Create(ctx, js, s.stream, options)
	}
	log, err := natslog.Open(ctx, js, s.stream, s.world, options)
	if s.play != "" && errors.Is(err, jetstream.ErrStreamNotFound) {
		if err = natslog.Create(ctx, js, s.stream, options); err == nil {
			log, err = natslog.Open(ctx, js, s.stream, s.world, options)
		}
	}
	if err != nil {
		return err
	}
	files, err := disk.Open(s.dir)
	if err != nil {
		return err
	}
	m := &machine{name: s.play + s.watch, log: log, files: files, tell: t, page: s.page}
	if s.play != "" {
		return m.play(ctx)
	}
	return m.watch(ctx)
}

// A teller prints the lines of a machine. The parent process gets all lines. On a terminal,
// frequent lines are printed once a second.
type teller struct {
	to    io.Writer
	brief bool

	mu   sync.Mutex
	last map[string]time.Time
}

func (t *teller) say(words ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintln(t.to, words...)
}

// often prints a line of a frequent kind. On a terminal, most of these lines are dropped.
func (t *teller) often(words ...any) {
	if t.brief {
		t.mu.Lock()
		if t.last == nil {
			t.last = map[string]time.Time{}
		}
		word := fmt.Sprint(words[0])
		now := time.Now()
		skip := word == "made" || now.Sub(t.last[word]) < time.Second
		if !skip {
			t.last[word] = now
		}
		t.mu.Unlock()
		if skip {
			return
		}
	}
	t.say(words...)
}
