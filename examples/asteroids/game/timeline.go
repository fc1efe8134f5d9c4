package game

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/stet-ecs/stet/disk/archive"
	"github.com/stet-ecs/stet/persist"
)

// A player can go to every tick that the store keeps. The current line is the sequence of ticks
// that leads to the newest tick. A Step from a past tick begins a new line. The later ticks of the
// old line become a branch.
//
// For example, a player goes from tick 100 back to tick 60, and plays on. The new line has the
// ticks 1 to 60, and then new ticks. The old ticks 61 to 100 are a branch.

// A Branch is the part of an earlier line after the tick From, up to the tick To. The store numbers
// its records, and Record is the number of the record with the tick To.
type Branch struct {
	From, To, Record uint64
	Start            Start
}

// A Start is the loaded state with which a line begins. It is zero if the line begins with the
// first tick of the game.
type Start struct{ Tick, Record uint64 }

// Branches is a resource with the newest branches and the start of the current line. A rewind does
// not restore it.
type Branches struct {
	All   []Branch
	Start Start
}

// maxBranches is the number of branches that a player can choose from.
const maxBranches = 12

// A line is identified by its newest tick and the record of this tick.
type line struct {
	newest, record uint64
	start          Start
}

// Line returns the oldest tick that the player can go to, and the newest tick of the line.
func (g *Game) Line() (oldest, newest uint64) {
	oldest = g.World.History().Oldest()
	if g.Store == nil {
		return oldest, g.World.Tick()
	}
	oldest = min(oldest, g.Store.Metrics().Kept.Tick)
	return max(oldest, g.line.start.Tick, min(1, g.line.newest)), g.line.newest
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
	return g.Store.Goto(ctx, fmt.Sprintf("%d@record:%d", tick, g.line.record))
}

// Point returns a name of the current state, such as "record:7". Visit goes to the state with this
// name.
func (g *Game) Point() string { return fmt.Sprintf("record:%d", g.World.Raw().Seq()) }

// Ends returns the names of the oldest and the newest state of the line. If the line begins with
// the first tick of the game, the first name is empty. An empty name stands for the oldest state in
// the store.
func (g *Game) Ends() (oldest, newest string) {
	if g.line.start != (Start{}) {
		oldest = fmt.Sprintf("record:%d", g.line.start.Record)
	}
	return oldest, fmt.Sprintf("record:%d", g.line.record)
}

// Visit goes to any point of the store. The state becomes the end of the current line, and the rest
// of the previous line becomes a branch.
func (g *Game) Visit(ctx context.Context, point string) error {
	return g.leave(func() error { return g.Store.Goto(ctx, point) })
}

// leave calls move, which goes to another state. Then it records the previous line as a branch.
func (g *Game) leave(move func() error) error {
	old, from := g.line, g.World.Tick()
	if err := move(); err != nil {
		return err
	}
	g.line = line{g.World.Tick(), g.World.Raw().Seq(), old.start}
	for _, b := range g.branches() {
		if b.Record == g.line.record {
			from, g.line.start = b.From, b.Start
		}
	}
	if old.record != g.line.record && old.newest > 0 {
		g.left = append(g.left, Branch{min(from, g.line.newest, old.newest-1), old.newest, old.record, old.start})
	}
	return nil
}

// branches returns the newest branches without duplicates, oldest first. When the player goes to
// the end of a branch, the branch becomes the current line. The result still has this branch.
func (g *Game) branches() (all []Branch) {
	left := append(slices.Clone(g.Branches.Get().All), g.left...)
	for i, b := range left {
		again := func(later Branch) bool { return later.Record == b.Record }
		if !slices.ContainsFunc(left[i+1:], again) {
			all = append(all, b)
		}
	}
	return all[max(0, len(all)-maxBranches):]
}

// OtherLines returns the branches that the player can visit, oldest first.
func (g *Game) OtherLines() []Branch {
	all := slices.DeleteFunc(g.branches(), func(b Branch) bool { return b.Record == g.line.record })
	slices.SortFunc(all, func(a, b Branch) int { return cmp.Compare(a.Record, b.Record) })
	return all
}

// fork updates the resource Branches before a tick or Close. If the world is at a past tick, the
// later ticks of the line become a branch.
func (g *Game) fork() {
	all := g.OtherLines()
	if now := g.World.Tick(); now < g.line.newest {
		all = append(all, Branch{now, g.line.newest, g.line.record, g.line.start})
	}
	old := g.Branches.Get()
	if g.left = nil; !slices.Equal(all, old.All) || old.Start != g.line.start {
		g.Branches.Set(Branches{all, g.line.start})
	}
}

// Run returns the whole run as a zip file, which contains a store: see persist.Store.BackupTo. Any
// goroutine may call Run.
func (g *Game) Run(ctx context.Context) ([]byte, error) {
	var b bytes.Buffer
	err := g.Store.BackupTo(ctx, &pausing{Writer: &b})
	return b.Bytes(), err
}

// A pausing writer pauses every ten milliseconds. In a browser, the program has one thread, and
// frames are drawn only while all goroutines wait.
type pausing struct {
	io.Writer
	last time.Time // The end of the last pause.
}

func (p *pausing) Write(b []byte) (int, error) {
	if time.Since(p.last) > 10*time.Millisecond {
		time.Sleep(time.Millisecond)
		p.last = time.Now()
	}
	return p.Writer.Write(b)
}

// maxFile is the maximum size of an unpacked run, in bytes. A browser has little memory.
const maxFile = 1 << 30

// LoadFile goes to the state in a file. The file is a save, or a result of Run. Of a run, it loads
// the last state. A new line begins there. If the rules cannot produce the state, LoadFile returns
// an error and changes nothing.
func (g *Game) LoadFile(ctx context.Context, file []byte) error {
	other := New()
	if err := other.read(ctx, bytes.NewReader(file)); err != nil {
		return err
	}
	if err := other.check(); err != nil {
		return fmt.Errorf("the file: %w", err)
	}
	var save bytes.Buffer
	if err := persist.SaveTo(ctx, &save, other.World); err != nil {
		return err
	}
	if err := g.leave(func() error { return g.Store.LoadFrom(ctx, &save) }); err != nil {
		return err
	}
	g.line.start = Start{g.line.newest, g.line.record}
	return nil
}

// read reads the last state of a run, or a save.
func (g *Game) read(ctx context.Context, file *bytes.Reader) error {
	if !archive.Is(file) {
		return persist.LoadFrom(ctx, file, g.World)
	}
	files, err := archive.Read(ctx, file, file.Size(), maxFile)
	if err != nil {
		return err
	}
	f, err := persist.Follow(ctx, ".", g.World, persist.FileOptions{Files: files})
	if err != nil {
		return err
	}
	return f.Close()
}

// check returns an error if a row has values that the rules never write. Such values could make
// the game fail.
func (g *Game) check() error {
	for e, row := range g.Things.AllOptional() {
		at, ship, rock, _, _, spark := row.Get()
		v, _ := g.Velocity.Get(e)
		if spark != nil {
			v = spark.Velocity
		}
		switch {
		case !(at.X >= 0 && at.X < Width && at.Y >= 0 && at.Y < Height):
			return fmt.Errorf("entity %v is outside of the world", e)
		case !(v.length() < Width):
			return fmt.Errorf("entity %v is too fast", e)
		case ship != nil && ship.Heading >= Headings, rock != nil && (rock.Size < 1 || rock.Size > 3):
			return fmt.Errorf("entity %v has a wrong heading or size", e)
		// The numbers are unsigned. So the difference is large if the spark is born in the future.
		case spark != nil && g.World.Tick()-uint64(spark.Born) > sparkLife:
			return fmt.Errorf("entity %v is from another time", e)
		}
	}
	return nil
}
