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

// A Follower keeps a world at the newest state of a store that somebody else writes, another
// process or another part of this one: for spectators, for servers that only read, and for a
// standby that takes the store over.
//
//	owner      Commit ─▶ journal      Commit ─▶ journal      ends
//	                        │                      │           │
//	follower            Advance                Advance        Open ─▶ the world has the store
//
// A tick is applied in O(rows that it wrote), under the undo log of the world: indexes,
// masks, groups and changes learn of it, and with [ecs.Options.History] the world goes back
// and forth over the ticks that it was told, by [ecs.History.Seek]; Advance goes on from
// wherever it is. Nobody else may change it.
//
// Where types of the world are not those that are stored, the ticks are applied to an image,
// which is converted into the world at each Advance: O(rows that the world has). What they have
// no place for is left out, which [raw.World.Converted] tells.
//
// What a follower shows was committed, but need not be durable yet: if the machine of the
// owner fails, its last ticks may not come back.
//
// Its methods belong to the goroutine of the world.
type Follower struct {
	store *Store // The one that the world will have; it has no journal yet.
	cat   *catalog.Catalog
	typed image.Typed
	image *image.Image // The state that the world was converted from; nil: nothing was.
	state storedState  // That the world was last made or brought to by ticks.
	empty *raw.State   // What the world was.
	lost  bool         // The image is of no use: the next Advance loads.
	done  bool
}

// errAnew says that no tick leads on from where the world is: it must be loaded.
var errAnew = errors.New("persist: no tick leads on from the state of the world")

// Follow fills w, which has no entities, with the newest state of the store at dir, and
// returns what keeps it there. The store is only read; a program may have it open.
//
// Components that w has not registered are kept as rows of bytes. Register all others before.
// Errors are those of [Open], but for the lock; w is then as it was.
func Follow(ctx context.Context, dir string, w *ecs.World) (*Follower, error) {
	files, err := disk.Open(dir)
	if err != nil {
		return nil, err
	}
	f, err := follow(ctx, files, w)
	if err != nil {
		files.Close()
	}
	return f, err
}

// FollowFS follows the store at the top of files, as [Follow] does. files stay open when the
// follower is closed.
func FollowFS(ctx context.Context, files disk.FS, w *ecs.World) (*Follower, error) {
	return follow(ctx, disk.Sub(files, "."), w)
}

func follow(ctx context.Context, files disk.FS, w *ecs.World) (*Follower, error) {
	if n := w.Len(); n > 0 {
		return nil, fmt.Errorf("%w: it has %d; follow with an empty world", ErrNotEmpty, n)
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
		if err = cat.Pursue(ctx, func() error { return f.load(ctx, cat.Head()) }); err != nil {
			_ = f.world().Detach(f.store) // No checkpoint is held.
		}
	}
	if err != nil {
		_ = cat.Log.Close()
		return nil, err
	}
	return f, nil
}

// Advance brings the world to the newest state of the store, and reports whether that is
// another one than it was at. It reads what was written since: O(rows written), and some
// names of files if nothing was. Call it as often as the world is to be fresh.
//
// If the owner went back and on from there, so does the world: over its history, or by
// loading the newest state anew, as it does if [Options.Retain] removed what it had not read yet.
// The functions of [ecs.World.OnRestore] are called when the world is at another state: once
// for all that was read, and before where it went back.
//
// Errors: [ErrUncommitted] if the world was changed by somebody else; [ErrCorrupt],
// [ErrNotFound] if the store is gone; [ErrSchema] if it was converted to types that w cannot
// have; [raw.ErrCheckpointHeld], [ErrClosed], and that of ctx. The world is then at a
// tick of the store, as far as Advance came, and another Advance goes on from there.
func (f *Follower) Advance(ctx context.Context) (changed bool, err error) {
	if err := f.usable(); err != nil {
		return false, err
	}
	if _, err := f.cat.Refresh(ctx); err != nil {
		return false, err
	}
	at := f.at()
	err = f.cat.Pursue(ctx, func() error { return f.advance(ctx) })
	return f.at() != at, err
}

// advance is Advance to the head that the catalog knows.
func (f *Follower) advance(ctx context.Context) (err error) {
	head, at := f.cat.Head(), f.at()
	if e, ok := f.cat.Log.Find(head); head == at.Seq && !f.lost && (!ok || e.ID == at) {
		return nil
	}
	switch e, ok := f.cat.Log.Find(at.Seq); {
	case f.lost, ok && e.ID != at: // The state that was followed was lost with its machine.
		err = f.load(ctx, head)
	case f.image != nil:
		err = f.convert(ctx, head)
	default:
		err = f.apply(ctx, head)
	}
	if errors.Is(err, errAnew) || errors.Is(err, image.ErrUnlike) || errors.Is(err, ErrNotFound) { // Or it was removed meanwhile.
		err = f.load(ctx, head)
	}
	return err
}

// Open makes the world the owner's, once nobody has the store open: it takes the lock, brings
// the world to the newest state, and opens the store, as the function Open does, without reading
// that state again. The history of the world, its handles, queries and indexes stay. The
// follower is done.
//
// The first snapshot is a full one. The state is read again, with an empty history,
// if [Options.At] names another one, if types must be converted or if something in the store
// is damaged. [Options.History] counts then only.
//
// Errors are those of the function Open, [ErrLocked] among them, and of [Follower.Advance]. The
// follower goes on then.
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

// usable returns an error unless the follower can go on.
func (f *Follower) usable() error {
	switch {
	case f.done:
		return ErrClosed
	case f.store.failed != nil:
		return f.store.failed
	case f.world().Dirty():
		return ErrUncommitted
	}
	return nil
}

// own opens the store, which l keeps others out of. What was read of the journal is not read again.
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
	bases := cat.Bases(cat.Head())
	if f.at().Seq != cat.Head() || f.image != nil || len(bases) == 0 {
		return f.reread(ctx, l, options)
	}
	s := f.store
	f.state.id = f.at() // The owner may have gone back to it.
	s.options, s.lock = options.resolved(s.files), l
	if err := s.takeOver(f.state, cat, &catalog.Found{Snapshot: bases[0]}); err != nil {
		return nil, err
	}
	return s, nil
}

// takeOver begins to journal a world that is at a state of the store already. If that fails,
// the world is followed as before.
func (s *Store) takeOver(state storedState, c *catalog.Catalog, f *catalog.Found) error {
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
	s.first = s.journal.Next()
	s.beginIfCrowded()
	return nil
}

// reread opens the store by reading it.
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
		_ = f.world().Attach(f.store, 0) // No checkpoint is held.
		return nil, errors.Join(err, f.load(context.WithoutCancel(ctx), f.cat.Head()))
	}
	return s, nil
}

// Close lets go of the files. The world stays as it is.
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

// at returns the state that the world is at: with a history, somebody may have gone back.
func (f *Follower) at() journal.ID {
	if f.image != nil {
		return f.image.ID
	}
	return f.store.ids[f.store.seq()]
}

// apply applies the ticks that lead to record head.
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
		if e.Tick <= tick {
			return errAnew // A save was loaded.
		}
		tick = e.Tick
	}
	maps.DeleteFunc(f.state.given, func(_ int, seq uint64) bool { return seq > f.at().Seq })
	if err = f.world().Apply(f.ticks(ctx, path)); errors.Is(err, raw.ErrState) {
		err = fmt.Errorf("%w: following: %w", ErrCorrupt, err)
	}
	return err
}

// ticks returns the ticks of path, which begin at the state that the world is at.
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

// back goes to the newest state that the world holds on the way to record head, and reports
// whether there is one.
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

// read reads the tick of e, which continues the world's state.
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
	case r.Says.Parent != at:
		return nil, nil, f.cat.EntryError(e, fmt.Errorf("tick %d continues state %v, not %v", e.Tick, r.Says.Parent, at))
	case f.state.schema.Differs(r.Schema) != nil:
		return nil, nil, errAnew // Something was converted.
	}
	return r.Says, r.Schema, nil
}

// note notes that t, which is record id under schema, follows.
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

// convert brings the image to record head, and makes the world that.
func (f *Follower) convert(ctx context.Context, head uint64) error {
	path, err := f.cat.Log.Path(f.image.ID.Seq, head)
	if err != nil {
		return errAnew
	}
	im := f.image
	for _, e := range path {
		if im, err = f.cat.Across(ctx, im, e); err == nil {
			err = f.cat.Step(im, e)
		}
		if err != nil {
			f.lost = true
			return errors.Join(errAnew, err) // Loading tells why.
		}
	}
	return f.fill(im, false)
}

// load makes the world the state after record seq, whatever it was.
func (f *Follower) load(ctx context.Context, seq uint64) (err error) {
	return f.cat.Persevere(ctx, func() error {
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
		f.image, _, err = f.cat.Reach(ctx, seq, false) // A bare one is of no use for ticks.
		return err
	})
}

// fill makes the world what im is. A bare image is the world's then.
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
