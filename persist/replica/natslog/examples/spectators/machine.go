package main

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/inspect/web"
	"github.com/stet-ecs/stet/persist/replica"
)

type ball struct{ X, Y, VX, VY float64 }

// A game is balls in a box, and a checksum. The checksum identifies a tick and all ticks before it.
type game struct {
	*ecs.World
	balls *ecs.Storage[ball]
	sum   *ecs.Resource[uint64]
}

func newGame() *game {
	w := ecs.NewWorld(ecs.Options{})
	return &game{w, ecs.MustRegister(w, ecs.Component[ball]{Name: "Ball"}), ecs.Must(ecs.RegisterResource(w, uint64(0), ecs.Component[uint64]{Name: "sum"}))}
}

// step computes the next tick on the machine called name. It returns the checksums before and after
// the tick.
func (g *game) step(name string) (before, after uint64) {
	for i := g.Len(); i < 200; i++ {
		g.balls.Set(g.Create(), ball{VX: float64(i%17) - 8, VY: float64(i%13) - 6})
	}
	rows := g.balls.MutValues()
	for i := range rows {
		b := &rows[i]
		b.X, b.VX = moved(b.X, b.VX)
		b.Y, b.VY = moved(b.Y, b.VY)
	}
	before = g.sum.Get()
	h := fnv.New64a()
	for n := before ^ g.Tick(); n > 0; n >>= 8 {
		_, _ = h.Write([]byte{byte(n)})
	}
	_, _ = h.Write([]byte(name))
	after = h.Sum64()
	g.sum.Set(after)
	return before, after
}

// moved returns the position and the speed of a ball after a tick. At a wall, the ball changes
// direction.
func moved(at, speed float64) (float64, float64) {
	if at += speed / 10; at < -100 || at > 100 {
		speed = -speed
	}
	return at, speed
}

// A machine has a copy of the world. It prints these lines:
//
//	own TERM TICK SUM PID       it owns the world, which is at TICK
//	made TICK SUM BEFORE        it computed a tick, after the tick with checksum BEFORE
//	confirmed TICK              the tick is confirmed
//	aside BYTES DIR             its unconfirmed bytes were moved to quarantine in DIR
//	sees TICK SUM               as a spectator, it shows TICK
//	page URL                    it serves the page at URL
//	lost REASON                 it no longer owns the world
type machine struct {
	name  string
	log   replica.Log
	files disk.FS
	tell  *teller
	page  bool
}

// play follows the world, and owns it when possible, until ctx ends.
func (m *machine) play(ctx context.Context) error {
	for ctx.Err() == nil {
		err := m.turn(ctx)
		if replica.ClassOf(err) == replica.Operator {
			return err // The error would remain after a retry.
		}
		if err != nil && ctx.Err() == nil {
			m.tell.say("lost", err)
		}
		pause(ctx, 100*time.Millisecond)
	}
	return nil
}

// turn follows the world, owns it, and returns when the machine has lost it.
func (m *machine) turn(ctx context.Context) error {
	f, err := replica.Follow(ctx, m.log, m.files, replica.Options{Name: m.name})
	if err != nil {
		return err
	}
	if dir, bytes := f.Aside(); dir != "" {
		m.tell.say("aside", bytes, dir)
	}
	g := newGame()
	o, shown, err := m.standBy(ctx, f, g)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(m.own(ctx, o, shown, g), o.Close())
}

// standBy follows a world, and claims it when possible. It tries when the owner offers the world,
// or when an entry of the owner is overdue.
func (m *machine) standBy(ctx context.Context, f *replica.Follower, g *game) (*replica.Owner, *persist.Follower, error) {
	var shown *persist.Follower
	tried, silence := time.Now(), 300*time.Millisecond+rand.N(200*time.Millisecond)
	for {
		offered := false
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-f.Offered():
			offered = true
		case <-time.After(10 * time.Millisecond):
		}
		if err := f.Err(); err != nil {
			return nil, nil, err
		}
		if err := m.show(ctx, f, g, &shown); err != nil {
			return nil, nil, err
		}
		if !offered && min(f.Overdue(), time.Since(tried)) < silence {
			continue
		}
		if o, err := f.Claim(ctx); err == nil {
			return o, shown, nil
		}
		tried = time.Now() // The claim failed: another machine was faster, or no server answers.
	}
}

// show advances the world to the newest tick in the files, if the files have a store.
func (m *machine) show(ctx context.Context, f *replica.Follower, g *game, shown **persist.Follower) (err error) {
	switch {
	case !f.Ready():
	case *shown == nil:
		*shown, err = persist.Follow(ctx, ".", g.World, persist.FileOptions{Files: f.Files()})
		if errors.Is(err, persist.ErrForeign) || errors.Is(err, persist.ErrNotFound) {
			*shown, err = nil, nil // The store has no state yet.
		}
	default:
		_, err = (*shown).Advance(ctx)
	}
	return err
}

// own computes and commits ticks until the machine has lost the world.
func (m *machine) own(ctx context.Context, o *replica.Owner, shown *persist.Follower, g *game) (err error) {
	options := persist.Options{Epoch: o.Epoch(), Sync: journal.SyncAlways, OnDurable: func(tick uint64) { m.tell.often("confirmed", tick) }}
	var store *persist.Store
	if shown != nil {
		store, err = shown.Open(ctx, options)
	} else {
		store, err = o.Open(ctx, g.World, options)
	}
	if err != nil {
		return err
	}
	m.tell.say("own", o.Term(), g.Tick(), g.sum.Get(), os.Getpid())
	clock := time.NewTicker(time.Second / 60)
	defer clock.Stop()
	for err == nil && ctx.Err() == nil {
		if err = o.Err(); err != nil {
			break
		}
		before, sum := g.step(m.name)
		m.tell.often("made", g.Tick()+1, sum, before)
		<-clock.C
		for err = store.Commit(); errors.Is(err, persist.ErrBacklog) && ctx.Err() == nil; err = store.Commit() {
			pause(ctx, 100*time.Millisecond) // The log accepts no entries at the moment.
		}
	}
	ending, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer done()
	return errors.Join(err, store.Close(ending))
}

// watch prints the ticks of the world until ctx ends.
func (m *machine) watch(ctx context.Context) error {
	f, err := replica.Follow(ctx, m.log, disk.Memory(), replica.Options{Name: m.name})
	if err != nil {
		return err
	}
	defer f.Close()
	g := newGame()
	var shown *persist.Follower
	served := !m.page
	for last := uint64(0); ctx.Err() == nil; pause(ctx, 20*time.Millisecond) {
		if err := errors.Join(f.Err(), m.show(ctx, f, g, &shown)); err != nil {
			return err
		}
		if shown != nil && !served {
			stop, err := m.serve(ctx, f.Files())
			if err != nil {
				return err
			}
			defer stop()
			served = true
		}
		if tick := g.Tick(); tick != last {
			last = tick
			m.tell.often("sees", tick, g.sum.Get())
		}
	}
	return nil
}

// serve shows the files in a browser on this machine, as ecsdump serve does.
func (m *machine) serve(ctx context.Context, files disk.FS) (stop func(), err error) {
	open := func(ctx context.Context) (*inspect.View, error) { return inspect.OpenFS(ctx, files, ".") }
	h, err := web.New(ctx, open, web.Options{Name: m.name})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	m.tell.say("page", "http://"+listener.Addr().String()+h.Path())
	return func() { _ = errors.Join(server.Close(), h.Close()) }, nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
