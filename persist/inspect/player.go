package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/internal/shell"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/progress"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// PlayerOptions say what a [Player] plays. The zero PlayerOptions are useful.
type PlayerOptions struct {
	// From and To are points in time, as [View.Resolve] takes them. The player goes
	// from the one, which the other must come from, to the other. Default: from the
	// oldest state that can be reached to the newest, which [Player.Refresh] looks for again.
	From, To string

	// Step makes a tick again: it changes w, which is at the tick before, as the
	// program did when it was given these inputs, and leaves Commit to the player. The
	// inputs are valid until it returns. Default: the recorded tick is applied, in O(rows that
	// it wrote); if types must be converted the world is filled anew. A world with a history
	// holds the ticks applied. Nobody else may change it.
	Step func(w *ecs.World, tick uint64, inputs []Input) error
}

// A Player plays what a store recorded, tick by tick, in a world: either what the
// ticks led to, for a replay, a spectator or a tool; or, with a Step, by running the
// simulation again on the inputs that were journaled with [persist.Store.Input]. Then it
// compares each tick with the record, and finds the first that comes out otherwise:
//
//	record   journal ──patches──▶ image    ─┐
//	                 └─inputs──┐            ├─ same digests? else Diverged
//	world                      Step, Commit ┘
//
// The store is only read; a program may have it open.
type Player struct {
	view     *catalog.Catalog
	world    *ecs.World
	typed    image.Typed // The same.
	step     func(*ecs.World, uint64, []Input) error
	empty    *raw.State     // What the world is filled from.
	newest   bool           // Playing ends at the newest state.
	start    uint64         // The record that playing begins after,
	path     []playable     // those behind it,
	played   int            // of which so many have been played.
	recorded *Cursor        // The same tick as the world.
	schema   *format.Schema // The last that the world was found to fit.
	err      error          // Why the world is of no use.

	diverged bool
	tick     uint64 // The first tick that came out otherwise,
	storage  string // and where.
}

// A playable is a record that can be played. Where it lies may change.
type playable struct{ seq, tick uint64 }

// playables returns what a player keeps of a path: entries say where records lie, which a refresh may
// change.
func playables(path []journal.Entry) []playable {
	list := make([]playable, len(path))
	for i, e := range path {
		list[i] = playable{e.ID.Seq, e.Tick}
	}
	return list
}

// OpenPlayer opens the store at path for reading and fills w, which has no entities,
// with the state to begin with. Components that w does not have registered are
// kept as rows of bytes. What their types have no place for is left out, which
// [raw.World.Converted] tells, as a player keeps nothing.
//
// Errors are those of [OpenReadOnly], [View.Resolve] and [View.At], and
// [persist.ErrNotEmpty]; an error, of a later step too, wraps [persist.ErrSchema] if types do not
// fit, and also if they would have to be converted though there is a Step: what was
// recorded was made by other types then.
func OpenPlayer(ctx context.Context, path string, w *ecs.World, options PlayerOptions) (*Player, error) {
	if n := w.Len(); n > 0 {
		return nil, fmt.Errorf("%w: it has %d; play in an empty world", format.ErrNotEmpty, n)
	}
	v, err := catalog.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	return openPlayer(ctx, v, w, options)
}

// openPlayer opens a player of v, which is the player's then.
func openPlayer(ctx context.Context, v *catalog.Catalog, w *ecs.World, options PlayerOptions) (*Player, error) {
	p := &Player{view: v, world: w, typed: image.Typed{World: w.Raw()}, step: options.Step, newest: options.To == "", empty: image.WithoutEntities(w)}
	if err := v.Pursue(ctx, func() error { return p.open(ctx, options) }); err != nil {
		v.Close()
		return nil, err
	}
	return p, nil
}

// open finds the way to play and goes to its beginning.
func (p *Player) open(ctx context.Context, options PlayerOptions) error {
	end, err := p.view.Resolve(options.To)
	if err != nil {
		return err
	}
	p.start = end // If it cannot be reached, the cursor tells.
	if oldest, ok := p.view.OldestBase(end); ok {
		p.start = oldest.ID.Seq
	}
	if options.From != "" {
		if p.start, err = p.view.Resolve(options.From); err != nil {
			return err
		}
	}
	path, err := p.view.Path(p.start, end)
	if errors.Is(err, journal.ErrNotAncestor) {
		return fmt.Errorf("%w: no ticks lead from %s to %s", format.ErrNotFound, naming.Shown(options.From), naming.Shown(cmp.Or(options.To, "@latest")))
	}
	if err != nil {
		return err
	}
	p.path = playables(path)
	if p.recorded, err = newCursor(ctx, p.view, p.start); err != nil {
		return err
	}
	return p.fill()
}

// Close lets go of the store. The world stays as it is.
func (p *Player) Close() error { return p.view.Close() }

// Tick returns the tick that has been played to.
func (p *Player) Tick() uint64 { return p.tickAt(p.played) }

// First returns the tick that playing begins at.
func (p *Player) First() uint64 { return p.tickAt(0) }

// End returns the last tick that can be played.
func (p *Player) End() uint64 { return p.tickAt(len(p.path)) }

// tickAt returns the tick after n records have been played.
func (p *Player) tickAt(n int) uint64 {
	switch {
	case n > 0:
		return p.path[n-1].tick
	case len(p.path) > 0: // A tick is one more than the one that it continues.
		return p.path[0].tick - 1
	}
	return p.world.Tick()
}

// Recorded returns the state of the store at the tick of the world. It is valid
// until the player goes on.
func (p *Player) Recorded() *Image { return p.recorded.Image() }

// Step plays one tick, and returns [io.EOF] if there is none left. With a
// [PlayerOptions.Step] it costs that, and O(rows) for comparing; it goes on behind a
// tick that came out otherwise. After another error the world is of no use until
// Seek or Restart.
func (p *Player) Step(ctx context.Context) error {
	if p.err != nil {
		return p.err
	}
	if p.played == len(p.path) {
		return io.EOF
	}
	if err := p.play(ctx, p.path[p.played].seq); err != nil {
		return p.fail(err)
	}
	p.played++
	return nil
}

// play plays the tick of record seq.
func (p *Player) play(ctx context.Context, seq uint64) error {
	e, ok := p.view.Log.Known(seq)
	if !ok {
		return p.view.Unreachable(seq)
	}
	c, r, converted, err := p.recorded.next(ctx, e)
	if err != nil {
		return err
	}
	if err := p.fits(); err != nil {
		return err
	}
	if p.step == nil {
		return p.apply(r, converted)
	}
	// From here on the world is made again by the program; recorded is what it is compared with.
	if err := p.step(p.world, c.Tick, c.Inputs); err != nil {
		return fmt.Errorf("persist: playing tick %d: %w", c.Tick, err)
	}
	p.world.Commit()
	if got := p.world.Tick(); got != c.Tick {
		return fmt.Errorf("persist: playing tick %d: the world is at tick %d; a Step leaves Commit to the player", c.Tick, got)
	}
	p.compare(c.Tick)
	return nil
}

// fail notes that the world is of no use.
func (p *Player) fail(err error) error {
	p.err = fmt.Errorf("persist: playing stopped, Seek or Restart goes on: %w", err)
	return err
}

// apply makes the world what r says, which continues its state, unless that was converted
// before, or the world is not where the player left it: somebody committed in it, went back, or wrote to
// it. Then it is filled anew with the recorded state, which is the same in O(rows).
func (p *Player) apply(r *catalog.Record, converted bool) error {
	w := p.world
	if converted || w.Tick() != p.Tick() || r.Tick <= w.Tick() || w.Raw().Dirty() {
		return p.load()
	}
	patch, err := p.typed.Patch(r.Says, r.Schema, r.ID)
	switch {
	case errors.Is(err, image.ErrUnlike): // Types of the world are not those stored: it takes a conversion.
		return p.load()
	case err == nil:
		err = w.Raw().Apply(raw.Ticks(patch))
	}
	if err != nil && !errors.Is(err, raw.ErrCheckpointHeld) {
		return p.view.EntryError(r.Entry, err)
	}
	return err
}

// next is Seek to the record that continues the state that c is at. It returns what
// the record says, and whether the state was converted before.
func (c *Cursor) next(ctx context.Context, e journal.Entry) (says *Commit, r *catalog.Record, converted bool, err error) {
	w := walk{Catalog: c.view, before: func(_ context.Context, was, im *Image, read *catalog.Record) error {
		r, converted = read, was != im
		return nil
	}, after: func(_ context.Context, im *Image, r *catalog.Record) error {
		c.shown, says = im.Settled(), describeTick(c.view, e, r.Says, r.Schema)
		return nil
	}}
	im := c.image
	c.image, c.shown, c.seq = nil, nil, e.ID.Seq // The step changes im in place: after an error c is nowhere.
	c.image, err = w.step(progress.Quiet(ctx), im, c.view.Record(e))
	return says, r, converted, err
}

// Refresh looks for what was committed since the store was opened or refreshed, and reports
// whether there is more to play, so that a player that has come to the end goes on as the
// store grows. It reads what is new; without anything new it reads some names of files.
//
// If the program went back and on from there, so does a player that has gone further: to the
// last tick that both have. If [persist.Retention] removed what comes next, it goes to the oldest
// state that there is; so does one whose last step failed for that. A player whose To was given
// plays what it was given.
func (p *Player) Refresh(ctx context.Context) (more bool, err error) {
	if !p.newest {
		return false, nil
	}
	if changed, err := p.view.Refresh(ctx); err != nil || !changed && p.err == nil {
		return false, err
	}
	err = p.view.Pursue(ctx, func() error {
		more, err = p.goOn(ctx)
		return err
	})
	if err != nil {
		return false, p.fail(err)
	}
	return more, nil
}

// goOn makes the way that is played lead to the head that the catalog knows, and reports whether there is
// more on it than there was. The world goes elsewhere only if it is not on that way.
func (p *Player) goOn(ctx context.Context) (more bool, err error) {
	head, last := p.view.Head(), p.seqAt(len(p.path))
	// If the new head continues the end of the way, and the next to play is still there, the way only
	// grows.
	path, err := p.view.Log.Path(last, head)
	if err != nil || p.err != nil || p.played < len(p.path) && p.gone(p.path[p.played].seq) {
		return true, p.turn(ctx, head)
	}
	p.path = append(p.path, playables(path)...)
	return len(path) > 0, nil
}

// gone reports whether record seq was removed.
func (p *Player) gone(seq uint64) bool {
	_, ok := p.view.Log.Known(seq)
	return !ok
}

// turn makes the way that is played that to record head. It looks back from where it is for the last
// record that both ways have; if that is where it is, the world stays as it is.
func (p *Player) turn(ctx context.Context, head uint64) error {
	oldest, ok := p.view.OldestBase(head)
	if !ok {
		return p.view.Unreachable(head)
	}
	start := max(p.start, oldest.ID.Seq) // What was pruned cannot be played from any more.
	path, err := p.view.Log.Path(start, head)
	if err != nil {
		start = oldest.ID.Seq
		if path, err = p.view.Path(start, head); err != nil {
			return err
		}
	}
	places := map[uint64]int{start: 0} // How many records of the new way lead to each state on it.
	for i, e := range path {
		places[e.ID.Seq] = i + 1
	}
	place, stays := 0, false
	for n := p.played; n >= 0; n-- {
		if at, ok := places[p.seqAt(n)]; ok {
			place, stays = at, n == p.played && p.err == nil
			break
		}
	}
	p.start, p.path, p.played = start, playables(path), place
	if stays {
		return nil
	}
	return p.seek(ctx, place)
}

// seqAt returns the record of the state after n records have been played.
func (p *Player) seqAt(n int) uint64 {
	if n > 0 {
		return p.path[n-1].seq
	}
	return p.start
}

// Restart goes back to where playing began.
func (p *Player) Restart(ctx context.Context) error { return p.seek(ctx, 0) }

// Seek makes the world what the store recorded of a tick, without running the ticks
// between: from the nearest snapshot, or along the journal. From there on
// [Player.Diverged] starts anew. An error wraps [persist.ErrNotFound] if the tick is not
// between First and End; the world is then as it was.
func (p *Player) Seek(ctx context.Context, tick uint64) error {
	n := slices.IndexFunc(p.path, func(e playable) bool { return e.tick == tick })
	if n < 0 && tick != p.First() {
		oldest, ok := p.view.OldestBase(p.start)
		if err := p.view.Removed(fmt.Sprintf("tick %d was", tick)); err != nil && ok && tick < oldest.Tick {
			return err
		}
		return fmt.Errorf("%w: tick %d; the player has ticks %d to %d", format.ErrNotFound, tick, p.First(), p.End())
	}
	return p.seek(ctx, n+1)
}

// seek goes to where n records have been played.
func (p *Player) seek(ctx context.Context, n int) error {
	seq := p.seqAt(n)
	p.diverged, p.tick, p.storage = false, 0, ""
	err := p.recorded.Seek(ctx, seq)
	if err == nil {
		err = p.fill()
	}
	if err != nil {
		return p.fail(err)
	}
	p.played, p.err = n, nil
	return nil
}

// fill makes the world the recorded state, whatever it was before. It is emptied first: loading
// leaves resources alone that the state does not have.
func (p *Player) fill() error {
	if err := p.fits(); err != nil {
		return err
	}
	if err := p.world.Raw().Load(p.empty); err != nil { // Resources that the state does not have.
		return err
	}
	return p.load()
}

// load makes the world the recorded state.
func (p *Player) load() error {
	state := p.Recorded().State()
	state.Seq, state.Owned, state.Lossy = p.recorded.Seq(), false, true
	if err := p.world.Raw().Load(state); err != nil {
		return fmt.Errorf("persist: tick %d: %w", p.Recorded().Tick, err)
	}
	p.typed.Forget()
	return nil
}

// fits returns why the types of the world are not those of the recorded state, or
// nil.
func (p *Player) fits() error {
	im := p.Recorded()
	if im.Schema == p.schema && p.schema != nil {
		return nil
	}
	conversions, err := image.Conversions(im.Stored(), p.world)
	if err != nil && !errors.Is(err, raw.ErrDropped) {
		return err
	}
	k := slices.IndexFunc(conversions, func(c raw.Conversion) bool { return len(c.Changes) > 0 })
	if p.step != nil && k >= 0 {
		return fmt.Errorf("%w: what was recorded of tick %d was made by other types: %v", format.ErrSchema, im.Tick, conversions[k])
	}
	p.schema = im.Schema
	return nil
}

// compare compares the world with the recorded state of the same tick. Once they differ, later ticks
// follow from that, and say nothing.
func (p *Player) compare(tick uint64) {
	if p.diverged {
		return
	}
	recorded, played := p.Recorded().Digests(), p.world.Digests(raw.Storage.Persistent)
	if recorded.World != played.World {
		p.diverged, p.tick, p.storage = true, tick, firstDifference(&recorded, &played)
	}
}

// firstDifference returns the first storage or resource, by name, in which worlds
// that are not the same differ; "" if it is their entities.
func firstDifference(a, b *ecs.Digests) string {
	if a.Registry != b.Registry {
		return ""
	}
	byName := func(a, b ecs.StorageDigest) int { return cmp.Compare(a.Name, b.Name) }
	for x, y := range matched(a.Storages, b.Storages, byName) {
		if x == nil || y == nil || *x != *y {
			return cmp.Or(x, y).Name
		}
	}
	return "" // Which no two worlds of one tick are.
}

// Diverged returns the first tick, since playing began or the last Seek, that came
// out otherwise than it was recorded, and the first storage or resource that
// differs, by name: "" if it is the entities themselves. What does not rewind is not
// compared.
func (p *Player) Diverged() (tick uint64, storage string, ok bool) {
	return p.tick, p.storage, p.diverged
}

// Build describes the program and the machine that recorded the tick of the world, in the form that
// rollback.Session.Build has; "" is unknown. If ticks come out otherwise than those of another
// machine, this is the first thing to compare: see docs/MACHINES.md.
func (p *Player) Build() string { return p.view.Build(p.recorded.Seq()) }

// SaveBoth saves what was recorded and what was played of the present tick to two
// files in dir, which it makes, and returns the command, for a shell, that shows
// how they differ: "ecsdump diff RECORDED PLAYED". Files of the same names are replaced. Each says
// which build it is of: the one that recorded the tick, and that of this program.
func (p *Player) SaveBoth(ctx context.Context, dir string) (command string, err error) {
	if p.err != nil {
		return "", p.err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("persist: save what was played: %w", err)
	}
	name := func(which string) string { return filepath.Join(dir, fmt.Sprintf("tick%d-%s.save", p.Tick(), which)) }
	if err := errors.Join(p.saveRecorded(ctx, name("recorded")), persist.Save(ctx, name("played"), p.world, persist.SaveOptions{Build: true})); err != nil {
		return "", err
	}
	return shell.Command("ecsdump", "diff", name("recorded"), name("played")), nil
}

// saveRecorded saves what was recorded of the present tick.
func (p *Player) saveRecorded(ctx context.Context, file string) error {
	return inDirectory(filepath.Dir(file), func(files disk.FS) error {
		s := snap.SavedImage(p.Recorded())
		s.Manifest.ID = journal.ID{} // A save belongs to no journal.
		if text := p.Build(); text != "" {
			s.Manifest.SetBuild(text)
		}
		_, err := s.Create(ctx, files, filepath.Base(file))
		return err
	})
}
