// Metrics shows the metrics of a store while its world runs. The page /metrics calls Store.Metrics,
// and has the format of Prometheus. A log gets the same metrics each minute, and the result of each
// snapshot from Options.OnSnapshot. The program needs only the standard library.
//
// Usage:
//
//	metrics [-addr HOST:PORT] [-ticks N] [-dir DIR]
//
// The program moves a thousand entities 60 times a second until an interrupt, or for N ticks. The
// store is in DIR, or in a directory that is removed at the end. The exit code is 0, 1 if the store
// failed, and 2 for wrong flags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stderr))
}

// settings are the values of the flags.
type settings struct {
	addr, dir string
	ticks     int // The number of ticks. If 0, the run lasts until ctx ends.
}

// run implements main.
func run(ctx context.Context, args []string, stderr io.Writer) (code int) {
	var s settings
	flags := flag.NewFlagSet("metrics", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.addr, "addr", "localhost:8080", "serve on `HOST:PORT`")
	flags.StringVar(&s.dir, "dir", "", "keep the store in `DIR`")
	flags.IntVar(&s.ticks, "ticks", 0, "stop after `N` ticks")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if flags.NArg() > 0 || s.ticks < 0 {
		fmt.Fprintln(stderr, "metrics: wants -ticks from 0 on, and no arguments")
		return 2
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	if err := play(ctx, s, log); err != nil {
		log.Error("stopped", "error", err)
		return 1
	}
	return 0
}

type place struct{ X, Y float32 }

// play runs ticks of a world, writes them to a store, and logs the store's metrics.
func play(ctx context.Context, s settings, log *slog.Logger) (err error) {
	if s.dir == "" {
		temp, err := os.MkdirTemp("", "stet-metrics-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(temp) }()
		s.dir = filepath.Join(temp, "world")
	}
	w := ecs.NewWorld(ecs.Options{})
	places := ecs.MustRegister[place](w)
	store, err := persist.Open(ctx, s.dir, w, persist.Options{OnSnapshot: func(r persist.SnapshotResult) { tell(log, r) }})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close(context.WithoutCancel(ctx))) }()
	log.Info("open", "report", store.Report().String())
	stop, err := serve(s.addr, store, log)
	if err != nil {
		return err
	}
	defer stop()
	for w.Len() < 1000 {
		places.Set(w.Create(), place{})
	}
	return tick(ctx, s.ticks, func() error {
		for i, rows := 0, places.MutValues(); i < len(rows); i++ {
			rows[i].X++
		}
		return store.Commit()
	})
}

// tell logs the result of a snapshot.
func tell(log *slog.Logger, r persist.SnapshotResult) {
	if r.Err != nil || r.RemoveErr != nil {
		log.Warn("snapshot", "snapshot", r)
		return
	}
	log.Info("snapshot", "snapshot", r)
}

// serve serves the page of metrics until stop() is called.
func serve(addr string, store *persist.Store, log *slog.Logger) (stop func(), err error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	pages := http.NewServeMux()
	pages.Handle("/metrics", Page{"world": store})
	ctx, cancel := context.WithCancel(context.Background())
	go watch(ctx, store, log)
	server := &http.Server{Handler: pages, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("serve", "error", err)
		}
	}()
	log.Info("serving", "url", "http://"+listener.Addr().String()+"/metrics")
	return func() {
		cancel()
		_ = server.Close()
	}, nil
}

// watch logs the metrics of store each minute until ctx ends.
func watch(ctx context.Context, store *persist.Store, log *slog.Logger) {
	clock := time.NewTicker(time.Minute)
	defer clock.Stop()
	for {
		select {
		case <-clock.C:
			log.Info("store", "metrics", store.Metrics())
		case <-ctx.Done():
			return
		}
	}
}

// tick calls f 60 times a second until f fails or ctx ends. If n is not 0, it ends after n calls.
func tick(ctx context.Context, n int, f func() error) error {
	clock := time.NewTicker(time.Second / 60)
	defer clock.Stop()
	for i := 0; n == 0 || i < n; i++ {
		if err := f(); err != nil {
			return err
		}
		select {
		case <-clock.C:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}
