// Server is a small game server. Its world survives kill -9, and every run can be replayed. Players
// walk over a field of 64 by 64 places, and talk.
//
// Clients send orders. A tick executes the orders, and records them in a store. Clients get views
// of the world. The pages /metrics and /backup read the store while the server runs.
//
// Usage:
//
//	server [-dir DIR] [-addr HOST:PORT] [-admin HOST:PORT]
//	server -follow DIR
//	server -replay DIR
//
// Without -follow and -replay, the program serves the world in DIR, until SIGTERM or an interrupt.
// With -follow, it prints the players of a running server whenever they move. With -replay, it runs
// the recorded orders again, and compares each tick with the record.
//
// The exit code is 0, 1 after a failure or if a replay differs, and 2 for wrong flags.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

func main() {
	dir := flag.String("dir", "world.store", "keep the world in `DIR`")
	addr := flag.String("addr", "localhost:4000", "serve clients on `HOST:PORT`")
	admin := flag.String("admin", "localhost:4001", "serve metrics and backups on `HOST:PORT`")
	following := flag.String("follow", "", "print the players of the server that runs in `DIR`")
	replayed := flag.String("replay", "", "run the orders in `DIR` again, and compare")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case *following != "":
		err = follow(ctx, *following, os.Stdout)
	case *replayed != "":
		err = replay(ctx, *replayed, newGame(ecs.Options{}), os.Stdout)
	default:
		err = serve(ctx, *dir, *addr, *admin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

// serve runs the server until ctx ends.
func serve(ctx context.Context, dir, addr, admin string, out io.Writer) (err error) {
	clients, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	pages, err := net.Listen("tcp", admin)
	if err != nil {
		return err
	}
	s, err := openServer(ctx, dir)
	if err != nil {
		return err
	}
	// Close makes the last tick durable.
	defer func() { err = errors.Join(err, s.store.Close(context.Background())) }()
	fmt.Fprintf(out, "%v\nclients: %v, admin: http://%v\n", s.store.Report(), clients.Addr(), pages.Addr())
	web := &http.Server{Handler: adminPages(s.store, dir), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = web.Serve(pages) }()
	defer web.Close()
	go s.accept(ctx, clients)
	return s.run(time.Tick(time.Second / 60))
}

// adminPages serves the metrics of the store, and makes backups of it. The handlers run in other
// goroutines than the ticks, and delay no tick.
func adminPages(store *persist.Store, dir string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(store.Metrics())
	})
	mux.HandleFunc("POST /backup", func(w http.ResponseWriter, r *http.Request) {
		to := fmt.Sprintf("%s-backup-%d", dir, store.Metrics().Tick)
		if err := store.Backup(r.Context(), to); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, to)
	})
	return http.NewCrossOriginProtection().Handler(mux) // Other web pages must not start backups.
}

// follow prints the players of a running server whenever they move. It only reads the store.
func follow(ctx context.Context, dir string, out io.Writer) error {
	g := newGame(ecs.Options{})
	f, err := persist.Follow(ctx, dir, g.world)
	if err != nil {
		return err
	}
	defer f.Close()
	last := ""
	for ctx.Err() == nil {
		if view := g.view(g.Player.Has); view != last {
			last = view
			fmt.Fprintf(out, "tick %d:%s\n", g.world.Tick(), view)
		}
		time.Sleep(50 * time.Millisecond)
		if _, err := f.Advance(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// replay runs the recorded orders again. It returns an error if a tick differs from the record.
func replay(ctx context.Context, dir string, g *game, out io.Writer) error {
	step := func(_ *ecs.World, _ uint64, inputs []inspect.Input) error {
		var orders []Order
		for _, in := range inputs {
			o, err := parseOrder(in.Name, string(in.Data))
			if err != nil {
				return err
			}
			orders = append(orders, o)
		}
		g.systems.Step(orders)
		return nil
	}
	p, err := inspect.OpenPlayer(ctx, dir, g.world, inspect.PlayerOptions{Step: step})
	if err != nil {
		return err
	}
	defer p.Close()
	for err == nil {
		if tick, storage, differs := p.Diverged(); differs {
			command, err := p.SaveBoth(ctx, dir+"-diverged")
			return errors.Join(fmt.Errorf("tick %d differs from the record in %q; show it: %s", tick, storage, command), err)
		}
		err = p.Step(ctx)
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	fmt.Fprintf(out, "ticks %d to %d agree with the record, digest %v\n", p.First()+1, p.Tick(), g.world.Digest())
	return nil
}
