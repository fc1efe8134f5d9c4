package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/stet-ecs/stet/persist"
)

// A game is a [Life] that is journaled in a directory.
type game struct {
	*Life
	dir   string
	store *persist.Store
}

// open continues the world of the directory, or starts the pattern in an empty directory.
func (p *program) open(history int) (*game, error) {
	g := &game{Life: NewLife(history), dir: p.dir}
	if g.dir == "" {
		dir, err := os.MkdirTemp("", "stet-life-")
		if err != nil {
			return nil, err
		}
		g.dir = dir
	}
	g.Place(p.pattern)
	begun := g.origin.Get()
	options := persist.Options{Sync: p.sync, OnDurable: p.ack}

	var err error
	g.store, err = persist.Open(context.Background(), g.dir, g.World, options)
	if errors.Is(err, persist.ErrNotEmpty) { // The directory has a world already.
		g.Life = NewLife(history)
		g.store, err = persist.Open(context.Background(), g.dir, g.World, options)
	}
	if err != nil {
		return nil, err
	}
	if found := g.origin.Get(); found != begun && !p.anyOrigin {
		g.close()
		return nil, fmt.Errorf("%s holds another pattern, %s", g.dir, found.Pattern)
	}
	p.dir = g.dir         // The next call of open uses the same directory.
	p.ack(g.Generation()) // The opened state is durable.
	return g, nil
}

// ack prints that a generation is durable. The line is one write, so a reader sees the complete
// line or nothing when the process is killed. The store's goroutine calls ack.
func (p *program) ack(generation uint64) {
	if p.acks {
		fmt.Fprintf(p.stdout, "durable %d\n", generation)
	}
}

// found returns the recovery report of the store.
func (g *game) found() string { return g.store.Report().String() }

// isNew reports whether the directory was empty.
func (g *game) isNew() bool { return g.store.Report().Fresh }

// commit ends a generation.
func (g *game) commit() error { return g.store.Commit() }

// close makes all generations durable and closes the directory. The world can still be used in
// memory.
func (g *game) close() error {
	if g.store == nil {
		return nil
	}
	store := g.store
	g.store = nil
	return store.Close(context.Background())
}
