package persist

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// A Follower keeps a world at the newest state of a store. Another process, or another part of this
// process, writes that store. Spectators, read-only servers and standby servers use a Follower.
//
// Each Advance reads the ticks that the writing program has committed since the last Advance, and
// applies them to the world. When the writing program has ended, [Follower.Open] makes the
// follower's world the world of the store.
//
// Applying a tick takes O(rows that the tick wrote). It updates the undo log, indexes, masks,
// groups and changes of the world. With [ecs.Options.History], [ecs.History.Seek] moves the world
// to any applied tick; Advance continues from there. Only the follower may change the world.
//
// If types of the world differ from the stored types, the ticks are applied to an image. Each
// Advance converts the image into the world: O(rows of the world). [raw.World.Converted] lists the
// stored values that the new types cannot hold.
//
// A follower shows committed ticks that may not be durable yet. If the owner's machine fails, its
// last ticks may be lost.
//
// Only the goroutine of the world may call the methods of a Follower.
type Follower struct {
	store *Store // The store that will own the world; it has no journal yet.
	cat   *catalog.Catalog
	typed image.Typed
	image *image.Image // The state before its conversion; nil means no conversion.
	// The state of the world after the last load or the last applied tick.
	state storedState
	empty *raw.State // The world before Follow, without entities.
	lost  bool
	done  bool
}

// errAnew reports that no ticks lead from the world's state to the newest one, so the newest state
// must be loaded.
var errAnew = errors.New("persist: no ticks lead from the world's state to the newest one")

// Follow fills w, which must have no entities, with the newest state of the store in dir. The
// returned Follower keeps w at the newest state. The store is only read; another program may have
// it open. The only option that applies is [FileOptions.Files].
//
// Register the components of the program before Follow. All other components are kept as rows of
// bytes. The errors are those of [Open], without [ErrLocked]. After an error w is unchanged.
func Follow(ctx context.Context, dir string, w *ecs.World, o ...FileOptions) (_ *Follower, err error) {
	var files disk.FS
	if in := onlyOptions(o).Files; in != nil {
		files = disk.Sub(in, dir)
	} else if files, err = disk.Open(dir); err != nil {
		return nil, err
	}
	f, err := follow(ctx, files, w)
	if err != nil {
		files.Close()
	}
	return f, err
}

func follow(ctx context.Context, files disk.FS, w *ecs.World) (*Follower, error) {
	if n := w.Len(); n > 0 {
		return nil, fmt.Errorf("%w: the world has %d entities; follow with an empty world", ErrNotEmpty, n)
	}
	cat, err := catalog.OpenFS(ctx, files, ".")
	if err != nil {
		return nil, err
	}
	f := &Follower{
		store: &Store{world: w, files: files, ids: make(map[uint64]journal.ID)},
		cat:   cat, typed: image.Typed{World: w.Raw()}, empty: image.WithoutEntities(w),
	}
	if err = f.world().Attach(f.store, 0); err == nil {
		if err = cat.RefreshAndRetry(ctx, func() error { return f.load(ctx, cat.Head()) }); err != nil {
			_ = f.world().Detach(f.store) // Detach fails only if a checkpoint is held; none is.
		}
	}
	if err != nil {
		_ = cat.Log.Close()
		return nil, err
	}
	return f, nil
}

// Advance brings the world to the newest state of the store, and reports whether the state changed.
// It reads the ticks since the last call: O(rows written). Without new ticks it reads only a few
// file names. Call it as often as the world must be updated.
//
// If the owner went back to an older tick and branched, the world moves to the new branch. If
// [Options.Retain] removed ticks that the follower had not read yet, Advance loads the newest
// state. Advance calls the functions of [ecs.World.OnRestore] once at the end. If it moves the
// world back first, it calls them after that move too.
//
// Advance returns [ErrUncommitted] if the program changed the world, and [ErrNotFound] if the store
// is gone. It returns [ErrSchema] if the store was converted to types that the world cannot have.
// Other errors: [ErrCorrupt], [raw.ErrCheckpointHeld], [ErrClosed], and the error of ctx. After an
// error the world is at a tick of the store, and another Advance continues from there.
func (f *Follower) Advance(ctx context.Context) (changed bool, err error) {
	if err := f.usable(); err != nil {
		return false, err
	}
	if _, err := f.cat.Refresh(ctx); err != nil {
		return false, err
	}
	at := f.at()
	err = f.cat.RefreshAndRetry(ctx, func() error { return f.advance(ctx) })
	return f.at() != at, err
}

// advance brings the world to the newest state of the store, as the catalog last read it.
func (f *Follower) advance(ctx context.Context) (err error) {
	head, at := f.cat.Head(), f.at()
	if e, ok := f.cat.Log.Find(head); head == at.Seq && !f.lost && (!ok || e.ID == at) {
		return nil
	}
	switch e, ok := f.cat.Log.Find(at.Seq); {
	case f.lost, ok && e.ID != at: // The followed tick was not durable and was lost in a crash.
		err = f.load(ctx, head)
	case f.image != nil:
		err = f.convert(ctx, head)
	default:
		err = f.apply(ctx, head)
	}
	// ErrNotFound means that the owner removed the base snapshot in the meantime.
	if errors.Is(err, errAnew) || errors.Is(err, image.ErrUnlike) || errors.Is(err, ErrNotFound) {
		err = f.load(ctx, head)
	}
	return err
}

// Open makes the follower's world the owner of the store, if no other process has the store open.
// It locks the store and brings the world to the newest state. Then it opens the store like the
// function Open, but without reading that state again. The world keeps its history, handles,
// queries and indexes. The follower must not be used afterwards.
//
// The first snapshot is a full one. In three cases Open instead reads the state again, with a new
// history of [Options.History] ticks:
//
//   - [Options.At] names another state;
//   - types must be converted;
//   - the store is damaged.
//
// Errors are those of the function Open, including [ErrLocked], and of [Follower.Advance]. After an
// error the follower can still be used.
func (f *Follower) Open(ctx context.Context, options Options) (*Store, error) {
	if err := f.usable(); err != nil {
		return nil, err
	}
	l, err := catalog.Acquire(f.store.files)
	if err != nil {
		return nil, err
	}
	s, err := f.own(ctx, l, options)
	if err != nil {
		l.Undo()
		return nil, err
	}
	f.done = true
	_ = f.cat.Log.Close()
	return s, nil
}

// usable returns an error unless the follower can continue.
func (f *Follower) usable() error {
	switch {
	case f.done:
		return ErrClosed
	case f.store.failed != nil:
		return f.store.failed
	case f.world().Dirty():
		return uncommittedError(f.world(), "the program changed the world of the follower, or calls Advance in a system")
	}
	return nil
}

// own makes the follower's world the world of an open store. The caller holds the lock l on the
// store. Normally it reads no part of the journal again.
func (f *Follower) own(ctx context.Context, l *catalog.Lock, options Options) (*Store, error) {
	cat := f.cat
	if _, err := cat.Refresh(ctx); err != nil {
		return nil, err
	}
	if options.At == "" && f.image == nil && len(cat.Faults()) == 0 {
		if err := f.advance(ctx); err != nil {
			return nil, err
		}
	}
	bases := cat.CandidateSnapshots(cat.Head())
	if f.at().Seq != cat.Head() || f.image != nil || len(bases) == 0 {
		return f.reread(ctx, l, options)
	}
	s := f.store
	// If the program moved the world back over its history, f.state.id is still the newer ID.
	f.state.id = f.at()
	s.options, s.lock = options.resolved(s.files), l
	if err := s.takeOver(f.state, cat, &catalog.Recovery{Snapshot: bases[0]}); err != nil {
		return nil, err
	}
	return s, nil
}

// takeOver begins to journal a world that is already at a state of the store. If takeOver fails,
// the follower can continue.
func (s *Store) takeOver(state storedState, c *catalog.Catalog, f *catalog.Recovery) error {
	if err := s.removeTemps(); err != nil {
		return err
	}
	conversions, err := conversionsOf(state.schema, s.world)
	if err != nil {
		return err
	}
	held := s.ids
	s.ids = maps.Clone(held)
	s.report = Report{}
	s.report.types(conversions)
	s.schema = state.schema
	s.continueAt(c, state, f)
	maps.Copy(s.ids, held)
	s.reportOf(c)
	if err := s.openJournal(c.Log); err != nil {
		s.ids = held
		return err
	}
	s.finishOpen()
	return nil
}

// reread empties the world and opens the store as the function Open does.
func (f *Follower) reread(ctx context.Context, l *catalog.Lock, options Options) (*Store, error) {
	w := f.store.world
	err := f.world().Detach(f.store)
	if err == nil {
		err = f.world().Load(f.empty)
	}
	if err != nil {
		return nil, err
	}
	s, err := openFiles(ctx, f.store.files, l, w, options)
	if err != nil {
		_ = f.world().Attach(f.store, 0) // No checkpoint is held, so Attach succeeds.
		return nil, errors.Join(err, f.load(context.WithoutCancel(ctx), f.cat.Head()))
	}
	return s, nil
}

// Close closes the files of the store. The world keeps its state.
func (f *Follower) Close() error {
	if f.done {
		return ErrClosed
	}
	if err := f.world().Detach(f.store); err != nil {
		return err
	}
	f.done = true
	return f.cat.Close()
}

func (f *Follower) world() raw.World { return f.typed.World }

// at returns the ID of the world's state. The program may have moved the world back over its
// history.
func (f *Follower) at() journal.ID {
	if f.image != nil {
		return f.image.ID
	}
	return f.store.ids[f.store.seq()]
}

// apply applies to the world the ticks up to the record with seq head.
func (f *Follower) apply(ctx context.Context, head uint64) error {
	path, err := f.cat.Log.Path(f.at().Seq, head)
	if err != nil {
		if !f.back(head) {
			return errAnew
		}
		if path, err = f.cat.Path(f.at().Seq, head); err != nil {
			return err
		}
	}
	tick := f.store.world.Tick()
	for _, e := range path {
		if repeats := e.Flags&format.FlagRepeats != 0; e.Tick <= tick && !(repeats && e.Tick == tick) {
			return errAnew // The owner loaded a save.
		}
		tick = e.Tick
	}
	maps.DeleteFunc(f.state.given, func(_ int, seq uint64) bool { return seq > f.at().Seq })
	if err = f.world().Apply(f.ticks(ctx, path)); errors.Is(err, raw.ErrState) {
		err = fmt.Errorf("%w: following: %w", ErrCorrupt, err)
	}
	return err
}

// ticks iterates over the ticks of path, as patches for the world. path starts at the world's
// state.
func (f *Follower) ticks(ctx context.Context, path []journal.Entry) iter.Seq2[*raw.Patch, error] {
	return func(yield func(*raw.Patch, error) bool) {
		for _, e := range path {
			t, schema, err := f.read(ctx, e)
			if err != nil {
				yield(nil, err)
				return
			}
			p, err := f.typed.Patch(t, schema, e.ID)
			if err != nil && !errors.Is(err, image.ErrUnlike) {
				err = f.cat.EntryError(e, err)
			}
			if !yield(p, err) || err != nil {
				return
			}
			f.store.remember(e.ID)
			f.state.note(t, schema, e.ID)
		}
	}
}

// back moves the world to the newest tick of its history that is an ancestor of the record with seq
// head. It returns false if there is no such tick.
func (f *Follower) back(head uint64) bool {
	w, oldest := f.store.world, f.store.oldestSeq()
	for e := range f.cat.Log.Ancestors(head) {
		if e.ID.Seq < oldest {
			break
		}
		if f.store.ids[e.ID.Seq] == e.ID && w.History().Seek(e.Tick) == nil && f.at() == e.ID {
			return true
		}
	}
	return false
}

// read reads the tick of the journal entry e. That tick must continue the world's state.
func (f *Follower) read(ctx context.Context, e journal.Entry) (*format.Tick, *format.Schema, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	at := f.at()
	r := f.cat.Record(e)
	err := f.cat.Describe(r, at, func() *format.Schema { return f.state.schema })
	switch {
	case err != nil:
		return nil, nil, err
	case r.Decoded.Parent != at:
		return nil, nil, f.cat.EntryError(e, fmt.Errorf("tick %d continues state %v, not %v", e.Tick, r.Decoded.Parent, at))
	case f.state.schema.Differs(r.Schema) != nil:
		return nil, nil, errAnew // Components were converted.
	}
	return r.Decoded, r.Schema, nil
}

// note updates s after the tick t was applied. The other parameters are the schema of t and the ID
// of its record.
func (s *storedState) note(t *format.Tick, schema *format.Schema, id journal.ID) {
	s.id = id
	if len(schema.Components) > len(s.schema.Components) {
		s.schema = schema
	}
	for i := range t.Storages {
		n := t.Storages[i].Number
		if _, has := s.given[n]; !has || !schema.Components[n].Rewinds {
			s.given[n] = id.Seq
		}
	}
}

// convert applies the ticks up to the record with seq head to the image, and fills the world with
// the image's converted state.
func (f *Follower) convert(ctx context.Context, head uint64) error {
	path, err := f.cat.Log.Path(f.image.ID.Seq, head)
	if err != nil {
		return errAnew
	}
	im, walk := f.image, catalog.Walk{Catalog: f.cat}
	for _, e := range path {
		if im, err = walk.Step(ctx, im, f.cat.Record(e)); err != nil {
			f.lost = true
			return errors.Join(errAnew, err)
		}
	}
	return f.fill(im, false)
}

// load fills the world with the state after record seq.
func (f *Follower) load(ctx context.Context, seq uint64) (err error) {
	return f.cat.RetryOnChange(ctx, func() error {
		bare := f.image == nil
		im, _, err := f.cat.Reach(ctx, seq, bare)
		if err != nil {
			return err
		}
		if _, err := image.Conversions(im.Stored(), f.store.world); err != nil && !errors.Is(err, raw.ErrDropped) {
			return err
		}
		if err := f.fill(im, bare); err != nil || f.image == nil || !bare {
			return err
		}
		// The follower applies later ticks to the image. A bare image cannot be used for that.
		f.image, _, err = f.cat.Reach(ctx, seq, false)
		return err
	})
}

// fill loads the image im into the world. If bare is set, the world takes over the memory of im.
func (f *Follower) fill(im *image.Image, bare bool) error {
	held := stateOf(im)
	state := im.Settled().State()
	state.Recorder, state.Seq, state.Owned, state.Lossy = f.store, im.ID.Seq, bare, true
	if err := image.Put(f.store.world, state, ""); err != nil {
		return err
	}
	clear(f.store.ids)
	f.store.ids[im.ID.Seq] = im.ID
	f.typed.Forget()
	f.state, f.image, f.lost = held, im, false
	if f.typed.Fits(held.schema) {
		f.image = nil
	}
	return nil
}
