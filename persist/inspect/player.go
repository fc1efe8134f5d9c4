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

// PlayerOptions say what a [Player] plays and how. The zero value is useful.
type PlayerOptions struct {
	// Files is the file system that has the store. The path of the store is relative to its root.
	// The default is the file system of the operating system. Close does not close Files.
	Files disk.FS

	// From and To are points in time in the syntax of [View.Resolve]. The player plays from From,
	// an ancestor of To, up to To. By default, it plays from the oldest reachable state to the
	// newest state. [Player.Refresh] looks for newer states only if To is empty.
	From, To string

	// Step runs the simulation of one tick again. w is in the state before the tick. Step changes w
	// as the program did with these inputs, and must not call Commit. The inputs are valid until
	// Step returns.
	//
	// A record can have several ticks: see [persist.Options.CommitEvery]. In this case the player
	// calls Step for each tick, and compares the world only after the last one.
	//
	// Without a Step, the player applies the recorded tick, in O(rows that the tick wrote). It
	// loads the whole state for each tick if the types of w differ from the recorded ones. In a
	// world with a history, the applied ticks become part of the history. Only the player may
	// change the world.
	Step func(w *ecs.World, tick uint64, inputs []Input) error
}

// A Player plays back a recorded store in a world, tick by tick. Without a Step it applies the
// recorded ticks: for a replay, a spectator or a tool. With a Step it runs the simulation again on
// the inputs that [persist.Store.Input] journaled.
//
// A Player with a Step also applies each recorded tick to an image. It then compares the digests of
// the image and the world. [Player.Diverged] returns the first tick that differs.
//
// The player only reads the store. A program may have the store open at the same time.
type Player struct {
	view  *catalog.Catalog
	world *ecs.World
	// typed accesses world through its Go types.
	typed image.Typed
	step  func(*ecs.World, uint64, []Input) error
	// empty is a state without entities, which resets the world.
	empty *raw.State
	// newest says that the player follows the newest state.
	newest bool
	// start is the record of the state in which playing begins.
	start uint64
	// path holds the records after start.
	path []playable
	// played is the number of records of path that have been played.
	played int
	// recorded is a cursor at the recorded state of the world's current tick.
	recorded *Cursor
	// schema is the last schema that checkTypes accepted.
	schema *format.Schema
	// err says why the world is unusable.
	err error

	diverged bool
	// tick is the first tick that differs from the record.
	tick uint64
	// storage is the first storage that differs in that tick.
	storage string
}

// A playable is a record that can be played. It does not store where the record is in a file,
// because that may change in a refresh.
type playable struct {
	seq, tick uint64
	repeats   bool // The record repeats the tick of the record before it.
}

// playables returns the records of a path.
func playables(path []journal.Entry) []playable {
	list := make([]playable, len(path))
	for i, e := range path {
		list[i] = playable{e.ID.Seq, e.Tick, e.Flags&format.FlagRepeats != 0}
	}
	return list
}

// OpenPlayer opens the store at path for reading, and loads the first state into w. Like
// [OpenReadOnly], it also accepts a zip file of [persist.Store.BackupTo]. w must have no entities.
//
// Components that are not registered in w stay in the world as encoded rows. Values that the types
// of w cannot represent are dropped: see [raw.World.Converted]. This loses no data, because a
// player never writes to the store.
//
// Errors are those of [OpenReadOnly], [View.Resolve] and [View.At], and [persist.ErrNotEmpty]. If
// types do not fit, now or in a later step, the error wraps [persist.ErrSchema]. With a Step, no
// type may need a conversion, because a simulation with other types would compute other ticks.
func OpenPlayer(ctx context.Context, path string, w *ecs.World, options PlayerOptions) (*Player, error) {
	if n := w.Len(); n > 0 {
		return nil, fmt.Errorf("%w: the world has %d entities; play in an empty world", format.ErrNotEmpty, n)
	}
	open := OpenReadOnly
	if options.Files != nil {
		open = func(ctx context.Context, name string) (*View, error) { return OpenFS(ctx, options.Files, name) }
	}
	v, err := open(ctx, path)
	if err != nil {
		return nil, err
	}
	return openPlayer(ctx, v.cat, w, options)
}

// openPlayer opens a player of v, and takes ownership of v.
func openPlayer(ctx context.Context, v *catalog.Catalog, w *ecs.World, options PlayerOptions) (*Player, error) {
	p := &Player{view: v, world: w, typed: image.Typed{World: w.Raw()}, step: options.Step, newest: options.To == "", empty: image.WithoutEntities(w)}
	if err := v.RefreshAndRetry(ctx, func() error { return p.open(ctx, options) }); err != nil {
		v.Close()
		return nil, err
	}
	return p, nil
}

// open finds the path to play and loads its first state.
func (p *Player) open(ctx context.Context, options PlayerOptions) error {
	end, err := p.view.Resolve(options.To)
	if err != nil {
		return err
	}
	// If no snapshot leads to the last record, newCursor below returns the error.
	p.start = end
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

// Close closes the store. It does not change the world.
func (p *Player) Close() error { return p.view.Close() }

// Tick returns the tick of the world.
func (p *Player) Tick() uint64 { return p.tickAt(p.played) }

// First returns the tick at which playing begins.
func (p *Player) First() uint64 { return p.tickAt(0) }

// End returns the last tick that can be played.
func (p *Player) End() uint64 { return p.tickAt(len(p.path)) }

// tickAt returns the tick after n records have been played.
func (p *Player) tickAt(n int) uint64 {
	if n > 0 {
		return p.path[n-1].tick
	}
	if e, ok := p.view.Log.Known(p.start); ok {
		return e.Tick
	}
	// The record of the first state was pruned, but its snapshot has the tick.
	for i := range p.view.Snapshots {
		if s := &p.view.Snapshots[i]; s.Err == nil && s.ID.Seq == p.start {
			return s.Tick
		}
	}
	if len(p.path) > 0 {
		return p.path[0].tick - 1
	}
	return p.world.Tick()
}

// Recorded returns the recorded state at the tick of the world. It is valid until the player
// changes its tick.
func (p *Player) Recorded() *Image { return p.recorded.Image() }

// Step plays one tick. It returns [io.EOF] if no tick is left. With a [PlayerOptions.Step], a
// call takes the time of that function, and O(rows) to compare. Step continues after a tick that
// differs from the record. After any other error the world is unusable until Seek or Restart.
func (p *Player) Step(ctx context.Context) error {
	if p.err != nil {
		return p.err
	}
	err := io.EOF
	for p.played < len(p.path) && (err != nil || p.path[p.played].repeats) {
		next := p.path[p.played]
		if err := p.play(ctx, next.seq); err != nil {
			return p.fail(err)
		}
		if p.played++; !next.repeats {
			err = nil
		}
	}
	return err
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
	if err := p.checkTypes(); err != nil {
		return err
	}
	if p.step == nil || c.Tick == p.world.Tick() && e.Flags&format.FlagRepeats == 0 {
		return p.apply(r, converted)
	}
	if e.Flags&format.FlagRepeats != 0 {
		p.compare(c.Tick)
		return nil
	}
	if e.Flags&format.FlagSeveral != 0 {
		// The record has several ticks. Only the last one has inputs.
		for tick := p.world.Tick() + 1; tick < c.Tick; tick++ {
			if err := p.run(ctx, tick, nil); err != nil {
				return err
			}
		}
	}
	if err := p.run(ctx, c.Tick, c.Inputs); err != nil {
		return err
	}
	p.compare(c.Tick)
	return nil
}

// run calls the program's function for a tick, and ends the tick.
func (p *Player) run(ctx context.Context, tick uint64, inputs []Input) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := p.step(p.world, tick, inputs); err != nil {
		return fmt.Errorf("persist: playing tick %d: %w", tick, err)
	}
	p.world.Commit()
	if got := p.world.Tick(); got != tick {
		return fmt.Errorf("persist: playing tick %d: the world is at tick %d; a Step must not call Commit", tick, got)
	}
	return nil
}

// fail records that the world is unusable, and why.
func (p *Player) fail(err error) error {
	p.err = fmt.Errorf("persist: playing stopped; call Seek or Restart to continue: %w", err)
	return err
}

// apply applies r to the world. In two cases it loads the whole recorded state instead, in
// O(rows): the recorded state was converted, or the program has changed the world.
func (p *Player) apply(r *catalog.Record, converted bool) error {
	w := p.world
	onward := r.Tick > w.Tick() || r.Entry.Flags&format.FlagRepeats != 0
	if converted || w.Tick() != p.Tick() || !onward || w.Raw().Dirty() {
		return p.load()
	}
	patch, err := p.typed.Patch(r.Decoded, r.Schema, r.ID)
	switch {
	// The types of the world differ from the stored types, so loading converts them.
	case errors.Is(err, image.ErrUnlike):
		return p.load()
	case err == nil:
		err = w.Raw().Apply(raw.Ticks(patch))
	}
	if err != nil && !errors.Is(err, raw.ErrCheckpointHeld) {
		return p.view.EntryError(r.Entry, err)
	}
	return err
}

// next advances c by record e, which must continue the state of c. It returns the commit and the
// record, and whether the state was converted before the tick.
func (c *Cursor) next(ctx context.Context, e journal.Entry) (says *Commit, r *catalog.Record, converted bool, err error) {
	w := catalog.Walk{Catalog: c.view, Before: func(_ context.Context, was, im *image.Image, read *catalog.Record) error {
		r, converted = read, was != im
		return nil
	}, After: func(_ context.Context, im *image.Image, r *catalog.Record) error {
		c.settled, says = im.Settled(), describeTick(c.view, e, r.Decoded, r.Schema)
		return nil
	}}
	im := c.image
	// The step changes the image in place. If the step fails, the cursor must have no state.
	c.image, c.settled, c.shown, c.seq = nil, nil, nil, e.ID.Seq
	c.image, err = w.Step(progress.Quiet(ctx), im, c.view.Record(e))
	return says, r, converted, err
}

// Refresh looks for ticks that were committed after the store was opened or last refreshed. It
// reports whether more ticks can be played, so a player can follow a growing store. It reads only
// new data. If nothing has changed, it only lists some file names.
//
// The program may have rolled back to another branch. A player on the old branch then goes back to
// the last tick that both branches have. If [persist.Retention] has removed the next tick to play,
// the player goes to the oldest state. It does so too if a step failed for this reason. If
// [PlayerOptions] set To, Refresh does nothing.
func (p *Player) Refresh(ctx context.Context) (more bool, err error) {
	if !p.newest {
		return false, nil
	}
	if changed, err := p.view.Refresh(ctx); err != nil || !changed && p.err == nil {
		return false, err
	}
	err = p.view.RefreshAndRetry(ctx, func() error {
		more, err = p.extendPath(ctx)
		return err
	})
	if err != nil {
		return false, p.fail(err)
	}
	return more, nil
}

// extendPath extends the path to the current head, and reports whether there are more ticks to
// play. If the state of the world is not on the new path, extendPath loads a state that is on this
// path.
func (p *Player) extendPath(ctx context.Context) (more bool, err error) {
	head, last := p.view.Head(), p.seqAt(len(p.path))
	// Append to the path if the new head continues it and the next record to play still exists.
	path, err := p.view.Log.Path(last, head)
	if err != nil || p.err != nil || p.played < len(p.path) && p.wasRemoved(p.path[p.played].seq) {
		return true, p.switchPath(ctx, head)
	}
	p.path = append(p.path, playables(path)...)
	return slices.ContainsFunc(path, func(e journal.Entry) bool { return e.Flags&format.FlagRepeats == 0 }), nil
}

// wasRemoved reports whether record seq was removed.
func (p *Player) wasRemoved(seq uint64) bool {
	_, ok := p.view.Log.Known(seq)
	return !ok
}

// switchPath replaces the path with the path to the given record. The world goes back to the newest
// record that is on both paths. A world that is already at this record does not change.
func (p *Player) switchPath(ctx context.Context, head uint64) error {
	oldest, ok := p.view.OldestBase(head)
	if !ok {
		return p.view.Unreachable(head)
	}
	// Records before the oldest snapshot can no longer be played.
	start := max(p.start, oldest.ID.Seq)
	path, err := p.view.Log.Path(start, head)
	if err != nil {
		start = oldest.ID.Seq
		if path, err = p.view.Path(start, head); err != nil {
			return err
		}
	}
	// places[seq] is the number of records to play on the new path to reach the state after record
	// seq.
	places := map[uint64]int{start: 0}
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

// seqAt returns the seq of the last record after n records have been played. For n = 0 this is the
// record of the first state.
func (p *Player) seqAt(n int) uint64 {
	if n > 0 {
		return p.path[n-1].seq
	}
	return p.start
}

// Restart loads the first state of the player's path.
func (p *Player) Restart(ctx context.Context) error { return p.seek(ctx, 0) }

// Seek loads the recorded state of a tick into the world, without running the ticks before it. It
// loads the nearest snapshot or follows the journal, and resets [Player.Diverged]. If the tick is
// before First or after End, the error wraps [persist.ErrNotFound] and the world stays the same.
func (p *Player) Seek(ctx context.Context, tick uint64) error {
	n := slices.IndexFunc(p.path, func(e playable) bool { return e.tick == tick })
	if n < 0 && tick != p.First() {
		oldest, ok := p.view.OldestBase(p.start)
		if err := p.view.Removed(fmt.Sprintf("tick %d was", tick)); err != nil && ok && tick < oldest.Tick {
			return err
		}
		return fmt.Errorf("%w: tick %d; the player has ticks %d to %d", format.ErrNotFound, tick, p.First(), p.End())
	}
	for n++; n < len(p.path) && p.path[n].repeats; {
		n++
	}
	return p.seek(ctx, n)
}

// seek goes to the state after n played records.
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

// fill replaces the world with the recorded state. It first empties the world, because load() does
// not remove resources that the state lacks.
func (p *Player) fill() error {
	if err := p.checkTypes(); err != nil {
		return err
	}
	// Loading the empty state removes all resources.
	if err := p.world.Raw().Load(p.empty); err != nil {
		return err
	}
	return p.load()
}

// load loads the recorded state into the world.
func (p *Player) load() error {
	state := p.recorded.settled.State()
	state.Seq, state.Owned, state.Lossy = p.recorded.Seq(), false, true
	if err := p.world.Raw().Load(state); err != nil {
		return fmt.Errorf("persist: tick %d: %w", p.recorded.settled.Tick, err)
	}
	p.typed.Forget()
	return nil
}

// checkTypes returns an error if the types of the world do not fit the recorded state.
func (p *Player) checkTypes() error {
	im := p.recorded.settled
	if im.Schema == p.schema && p.schema != nil {
		return nil
	}
	conversions, err := image.Conversions(im.Stored(), p.world)
	if err != nil && !errors.Is(err, raw.ErrDropped) {
		return err
	}
	k := slices.IndexFunc(conversions, func(c raw.Conversion) bool { return len(c.Changes) > 0 })
	if p.step != nil && k >= 0 {
		return fmt.Errorf("%w: tick %d was recorded with other types: %v", format.ErrSchema, im.Tick, conversions[k])
	}
	p.schema = im.Schema
	return nil
}

// compare compares the world with the recorded state of the same tick. After the first difference
// it skips the comparison: later differences may only be consequences.
func (p *Player) compare(tick uint64) {
	if p.diverged {
		return
	}
	recorded, played := p.recorded.settled.Digests(), p.world.Digests(raw.Storage.Persistent)
	if recorded.World != played.World {
		p.diverged, p.tick, p.storage = true, tick, firstDifference(&recorded, &played)
	}
}

// firstDifference returns the first storage or resource that differs, in the order of names. It
// returns "" if only the entities differ.
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
	// Unreachable: worlds of the same tick differ in the registry or in a storage.
	return ""
}

// Diverged returns the first tick that differs from the record, since playing began or the last
// Seek. storage is the first storage or resource that differs, in the order of names. It is "" if
// only the entities differ. Components that do not rewind are not compared.
func (p *Player) Diverged() (tick uint64, storage string, ok bool) {
	return p.tick, p.storage, p.diverged
}

// Build describes the program and the machine that recorded the current tick, like
// rollback.Session.Build; "" if unknown. If two machines compute different ticks, compare their
// builds first: see docs/MACHINES.md.
func (p *Player) Build() string { return p.view.Build(p.recorded.Seq()) }

// SaveBoth saves the recorded and the played state of the current tick to two files in dir. It
// creates dir and overwrites existing files. It returns a shell command that shows the differences:
// "ecsdump diff RECORDED PLAYED". Each file names the build that computed its state: that of the
// recording program, or of this program.
func (p *Player) SaveBoth(ctx context.Context, dir string) (command string, err error) {
	if p.err != nil {
		return "", p.err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("persist: save the played state: %w", err)
	}
	name := func(which string) string { return filepath.Join(dir, fmt.Sprintf("tick%d-%s.save", p.Tick(), which)) }
	if err := errors.Join(p.saveRecorded(ctx, name("recorded")), persist.Save(ctx, name("played"), p.world, persist.FileOptions{Build: true})); err != nil {
		return "", err
	}
	return shell.Command("ecsdump", "diff", name("recorded"), name("played")), nil
}

// saveRecorded saves the recorded state of the current tick.
func (p *Player) saveRecorded(ctx context.Context, file string) error {
	files, err := disk.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer files.Close()
	s := snap.SavedImage(p.recorded.settled)
	// A save belongs to no journal.
	s.Manifest.ID = journal.ID{}
	if text := p.Build(); text != "" {
		s.Manifest.SetBuild(text)
	}
	_, err = s.Create(ctx, files, filepath.Base(file))
	return err
}
