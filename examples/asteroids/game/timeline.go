package game

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/disk/archive"
	"github.com/stet-ecs/stet/persist"
)

// A player can go to every tick that the store keeps:
//
//	line      oldest ──────── fork ──── now ┄┄┄┄ newest      the ticks that lead to the newest one
//	branch                      └──────────▶ To              a future that the player left
//
// The next Step after a move continues from there. The later ticks of the line become a branch.

// A Branch is a future that the player left: the ticks after From, up to To. The record of To in
// the store has the number Record.
type Branch struct{ From, To, Record uint64 }

// Branches is a resource with the newest branches. It is not restored by a rewind.
type Branches struct{ All []Branch }

// maxBranches is the number of branches that a player can choose from.
const maxBranches = 12

// A line is a sequence of ticks, named by its last tick and the record of that tick.
type line struct{ newest, record uint64 }

// Line returns the oldest tick that the player can go to, and the newest tick of the line.
func (g *Game) Line() (oldest, newest uint64) {
	oldest = g.World.History().Oldest()
	if g.Store == nil {
		return oldest, g.World.Tick()
	}
	oldest = min(oldest, g.Store.Metrics().Kept.Tick)
	return max(oldest, min(1, g.line.newest)), g.line.newest
}

// Near reports whether GoTo can go to a tick of the line at once, without reading the store.
func (g *Game) Near(tick uint64) bool {
	h := g.World.History()
	return h.Oldest() <= tick && tick <= h.Newest()
}

// GoTo goes to a tick of the line. It reads the store if the history does not have the tick.
func (g *Game) GoTo(ctx context.Context, tick uint64) error {
	oldest, newest := g.Line()
	tick = min(max(tick, oldest), newest)
	if g.Near(tick) {
		return g.World.History().Seek(tick)
	}
	// Usually a tick has one record. A mark or an end of the program may have added others.
	for back := newest - tick; ; back += g.World.Tick() - tick {
		if err := g.Store.Goto(ctx, fmt.Sprintf("record:%d~%d", g.line.record, back)); err != nil || g.World.Tick() <= tick {
			return err
		}
	}
}

// Point returns the name of the present state, for Visit.
func (g *Game) Point() string { return fmt.Sprintf("record:%d", g.World.Raw().Seq()) }

// Visit goes to a point of the store, which ends the line until the next Step. If it is the end of
// a branch, the line becomes a branch instead.
func (g *Game) Visit(ctx context.Context, point string) error {
	return g.leave(func() error { return g.Store.Goto(ctx, point) })
}

// leave calls move, which goes to a state that may be on another line.
func (g *Game) leave(move func() error) error {
	old, from := g.line, g.World.Tick()
	if err := move(); err != nil {
		return err
	}
	g.line = line{g.World.Tick(), g.World.Raw().Seq()}
	for _, b := range g.branches() {
		if b.Record == g.line.record {
			from = b.From
		}
	}
	if old.record != g.line.record && old.newest > 0 {
		g.left = append(g.left, Branch{min(from, g.line.newest, old.newest-1), old.newest, old.record})
	}
	return nil
}

// branches returns the futures that the player left, oldest first. The branch that the player
// visits is not one of them.
func (g *Game) branches() []Branch {
	all := append(slices.Clone(g.Branches.Get().All), g.left...)
	return all[max(0, len(all)-maxBranches):]
}

// OtherLines returns the branches that the player can visit, oldest first.
func (g *Game) OtherLines() []Branch {
	return slices.DeleteFunc(g.branches(), func(b Branch) bool { return b.Record == g.line.record })
}

// fork stores the branches. If the world is in the past of the line, the line becomes a branch. The
// caller then ends a tick or closes the store.
func (g *Game) fork() {
	all := g.OtherLines() // A branch that the player visited is the line now.
	if now := g.World.Tick(); now < g.line.newest {
		all = append(all, Branch{now, g.line.newest, g.line.record})
	}
	if g.left = nil; !slices.Equal(all, g.Branches.Get().All) {
		g.Branches.Set(Branches{all})
	}
}

// Run writes the whole run as a zip file. Its content is a store: see persist.Store.BackupTo. Any
// goroutine may call Run.
func (g *Game) Run(ctx context.Context) ([]byte, error) {
	var b bytes.Buffer
	err := g.Store.BackupTo(ctx, &b)
	return b.Bytes(), err
}

// LoadFile goes to the state in a file: the last state of a run that Run wrote, or a save.
func (g *Game) LoadFile(ctx context.Context, file []byte) error {
	in := bytes.NewReader(file)
	if archive.Is(in) {
		files, err := archive.Read(ctx, in, in.Size())
		if err != nil {
			return err
		}
		other := New()
		f, err := persist.Follow(ctx, ".", other.World, persist.FileOptions{Files: files})
		if err != nil {
			return err
		}
		var save bytes.Buffer
		if err := persist.SaveTo(ctx, &save, other.World); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		in = bytes.NewReader(save.Bytes())
	}
	return g.leave(func() error { return g.Store.LoadFrom(ctx, in) })
}
