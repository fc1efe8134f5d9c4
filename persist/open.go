package persist

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/disk"
	"github.com/stet-ecs/stet/journal"
)

// A Report says what Open found and did.
type Report struct {
	Fresh    bool   // The directory was empty; the world given is the base.
	Tick     uint64 // Of the state recovered, or of the base.
	Snapshot string // The file recovery began with.
	Replayed int    // Ticks replayed behind it.
	Clean    bool   // The store had been closed; nothing can be missing.

	// Torn is the unfinished end of the journal, which nobody was told was
	// durable; nil: none.
	Torn error

	// Disowned counts the unfinished ends that earlier openings left behind.
	Disowned int

	// Skipped says why newer snapshots were not used, and which damage does not
	// concern the state recovered. Nothing was deleted.
	Skipped []error

	// Converted says how components were made those that the program registered. A
	// snapshot has the result; the one before is kept.
	Converted []ecs.Conversion

	// Unknown lists the stored components that the program did not register. They
	// are kept.
	Unknown []string
}

// String returns the report for people, in one or a few lines.
func (r Report) String() string {
	if r.Fresh {
		return fmt.Sprintf("new store, base at tick %d", r.Tick)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "recovered tick %d: %s and %d replayed ticks", r.Tick, r.Snapshot, r.Replayed)
	if r.Clean {
		b.WriteString("; it had been closed cleanly")
	} else {
		b.WriteString("; it had not been closed")
	}
	if r.Torn != nil {
		fmt.Fprintf(&b, "\nunfinished end, not acknowledged: %v", r.Torn)
	}
	for _, err := range r.Skipped {
		fmt.Fprintf(&b, "\nskipped: %v", err)
	}
	for _, c := range r.Converted {
		for _, line := range strings.Split(c.String(), "\n") {
			fmt.Fprintf(&b, "\nconverted: %s", line)
		}
	}
	if len(r.Unknown) > 0 {
		fmt.Fprintf(&b, "\nnot registered, kept: %s", strings.Join(r.Unknown, ", "))
	}
	return b.String()
}

// Open makes dir keep w. In an empty or missing directory, w as it is becomes the
// base, which is durable when Open returns. Otherwise w must be empty and is
// filled with the newest state that can be recovered: the newest good snapshot
// among the ancestors of the journal's head, and the ticks after it. Register all
// components before. [Options.At] asks for an older state.
//
// Components that are no longer what was stored are converted, see package
// [github.com/stet-ecs/stet/ecs], [ecs.FormerName] and [ecs.Migrate]; the Report
// tells which. The result is durable, as a full snapshot, before Open returns, and
// what it was made of is kept. From then on a program with the older types is
// refused.
//
// From then on every [ecs.World.Commit] is journaled. The history of w starts
// anew.
//
// Recovering can take long: if ctx ends, so does Open, with its error. See
// [WithProgress].
//
// Nothing in the directory is cut off or deleted. Errors: [ErrLocked] with the
// process that has it open, [ErrSchema] naming the field that does not fit,
// [ErrNotEmpty], [ErrForeign], [ErrNewer], [ErrPoint] and [ErrNotFound] for
// [Options.At], and [ErrCorrupt] with file and offset if something that was
// durable cannot be read; w is then as it was.
func Open(ctx context.Context, dir string, w *ecs.World, options Options) (*Store, error) {
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	files := disk.Dir(root)
	if err := ours(files, dir); err != nil {
		files.Close()
		return nil, err
	}
	l, err := acquire(files)
	if err != nil {
		files.Close()
		return nil, err
	}
	s, err := openFiles(ctx, files, l, w, options)
	if err != nil {
		l.undo()
		files.Close()
	}
	return s, err
}

// openFiles opens the store that lies in files, which l keeps others out of.
func openFiles(ctx context.Context, files disk.FS, l *lock, w *ecs.World, options Options) (*Store, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.QueueBytes <= 0 {
		options.QueueBytes = defaultQueueBytes
	}
	s := &Store{world: w, options: options, files: files, lock: l, ids: make(map[uint64]journal.ID)}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	v := newView(s.files)
	defer func() { _ = v.log.Close() }()
	err := v.scan(ctx)
	switch {
	case errors.Is(err, ErrForeign) && len(v.log.Segments) == 0 || err == nil && v.unfinished():
		if s.options.At != "" {
			return fmt.Errorf("%w: a new store has no state %q", ErrNotFound, s.options.At)
		}
		return s.create(ctx, v.log)
	case err != nil:
		return err
	}
	before := withoutEntities(s.world)
	if err := s.recover(ctx, v); err != nil {
		return err
	}
	if s.report.Converted != nil {
		return s.convert(ctx, v.log, before)
	}
	if err := s.openJournal(v.log); err != nil {
		_ = s.world.Load(before) // It fitted before.
		return err
	}
	return s.world.Attach(s, s.head)
}

// unfinished reports whether the creation of the store was cut short, once or
// several times: there is a journal, but the base never got its name.
func (v *View) unfinished() bool {
	l := v.log
	bad := func(s journal.Segment) bool { return s.Err != nil }
	return len(v.snapshots) == 0 && len(l.Segments) > 0 && !slices.ContainsFunc(l.Segments, bad) && l.Last == 0 && !l.Clean
}

// create makes the present world the base of a new store. The journal is begun
// when the base is complete and before it has its name, so that a snapshot
// without a journal is always damage.
func (s *Store) create(ctx context.Context, log *journal.Log) error {
	if s.id = log.World; s.id == [16]byte{} {
		rand.Read(s.id[:]) // Never fails.
	}
	if err := s.world.Attach(s, 0); err != nil {
		return err
	}
	s.schema = schemaOf(s.world)
	s.encoder = newTickEncoder(s.schema)
	s.encoder.dirty, s.encoder.notes = &s.dirty, &s.notes
	for _, st := range s.world.Storages() {
		s.encoder.whole.add(st, 0)
	}
	err := makeDirs(s.files)
	if err == nil {
		var r SnapshotResult
		r, err = s.snapshot(context.WithoutCancel(ctx), "", func(context.Context) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return s.openJournal(log)
		})
		s.report = Report{Fresh: true, Tick: s.world.Tick(), Snapshot: r.Name, Clean: true}
	}
	if err != nil {
		_ = s.world.Attach(nil, 0) // No checkpoint is held.
		if s.journal != nil {
			s.journal.Abandon() // A seal would say that this is a store.
		}
	}
	return err
}

// withoutEntities returns the state of w, which has no entities.
func withoutEntities(w *ecs.World) *ecs.State {
	state := &ecs.State{Tick: w.Tick()}
	for _, st := range w.Storages() {
		if st.IsResource() && st.Layout() != nil {
			state.Storages = append(state.Storages, ecs.StorageState{
				Name: st.Name(), Version: st.Version(), Layout: st.Layout(), Resource: true, Rows: st.AppendRows(nil, 0, 1),
			})
		}
	}
	return state
}

// recover fills the world with the newest state of the store.
func (s *Store) recover(ctx context.Context, v *View) error {
	if rows, _, _ := s.world.Registry(); len(rows) > 0 {
		return fmt.Errorf("%w: open with an empty world", ErrNotEmpty)
	}
	if err := v.usable(); err != nil {
		return err
	}
	head, err := v.Resolve(s.options.At)
	if err != nil {
		return err
	}
	s.head = head
	im, f, err := v.at(ctx, s.head, true)
	if err != nil {
		return fmt.Errorf("persist: recovering %s: %w", cmp.Or(s.options.At, "the newest state"), errors.Join(append([]error{err}, v.problems()...)...))
	}
	if err := v.missing(f.snapshot); err != nil && s.options.At == "" { // Else what follows is given up anyway.
		return err
	}
	stored := im.stored()
	if s.report.Converted, err = stored.conversions(s.world); err != nil {
		return err
	}
	s.report.Converted = stored.rewindChanges(s.world, s.report.Converted)
	s.schema = stored.evolved(s.world)
	s.encoder = newTickEncoder(s.schema)
	s.encoder.dirty, s.encoder.notes = &s.dirty, &s.notes
	s.report.Skipped = append(f.skipped, v.problems()...)
	if s.damaged = len(s.report.Skipped) > 0; !s.damaged {
		if err := removeTemps(s.files); err != nil {
			return err
		}
	}
	if err := im.fill(s.world, f.snapshot.Name); err != nil {
		return err
	}
	for _, st := range s.world.Storages() {
		if st.Unknown() {
			s.report.Unknown = append(s.report.Unknown, st.Name())
		}
		given := uint64(neverGiven)
		if n, ok := stored.find(st); ok && im.Components[n].n > 0 {
			given = 0
		}
		s.encoder.whole.add(st, given)
		if st.Persistent() {
			s.schema.number(st)
		}
	}
	s.adoptFiles(v, f)
	s.ids[s.head] = im.ID
	if e, ok := v.log.Find(s.head); ok {
		if t, _, err := v.tick(e); err == nil {
			s.committedAt = t.time
		}
	}
	s.report.Tick, s.report.Snapshot, s.report.Replayed = im.Tick, f.snapshot.Name, f.replayed
	s.report.Clean, s.report.Disowned = v.log.Clean, len(v.log.Disowned)
	if v.log.Torn != nil {
		s.report.Torn = journalDamage(v.log.Torn)
	}
	return nil
}

// problems returns the damage to the journal.
func (v *View) problems() (errs []error) {
	for _, p := range v.log.Problems {
		errs = append(errs, journalDamage(p))
	}
	return errs
}

// usable returns why the store must not be continued whatever can be recovered:
// something in it is newer than this program or of another world, or its journal
// lost what was durable.
func (v *View) usable() error {
	for _, p := range v.log.Problems {
		if errors.Is(p, journal.ErrForeign) || errors.Is(p, journal.ErrNewer) {
			return journalDamage(p)
		}
	}
	for _, s := range v.snapshots {
		if err := v.misfit(s); errors.Is(s.Err, ErrNewer) || errors.Is(err, ErrCorrupt) {
			return cmp.Or(s.Err, err)
		}
	}
	return nil
}

// missing returns the damage to the journal that something newer than the
// snapshot and the head may have been lost in.
func (v *View) missing(base SnapshotInfo) error {
	for _, p := range v.log.Problems {
		next := slices.IndexFunc(v.log.Segments, func(s journal.Segment) bool { return s.Name > p.File })
		covered := next >= 0 && v.log.Segments[next].First > 0 && v.log.Segments[next].First <= base.ID.Seq+1
		if !covered && !v.headBehind(p) {
			return fmt.Errorf("persist: ticks that were durable cannot be read; Options.At goes on without them: %w", journalDamage(p))
		}
	}
	return nil
}

// headBehind reports whether the head was chosen after what p concerns was
// written. If the way to the head can be read, what was lost there was rewound.
func (v *View) headBehind(p *journal.DamageError) bool {
	if v.log.Clean {
		return true
	}
	e, ok := v.log.Find(v.Head())
	if !ok {
		return false
	}
	s := &v.log.Segments[e.Segment]
	return s.Name > p.File || s.Name == p.File && e.Offset > p.Offset
}

// stored returns the schema of im.
func (im *Image) stored() *schema {
	s := newSchema()
	for _, c := range im.Components {
		s.add(schemaEntry{c.Name, c.Layout, c.Resource, c.Rewinds, c.Indexed, c.gap, c.version, c.former})
	}
	return s
}

// adoptFiles makes the next snapshot share the pages of the one found.
func (s *Store) adoptFiles(v *View, f *found) {
	s.id = f.snapshot.world
	onHead := v.ancestors(s.head)
	s.table = f.table
	s.list = v.storedSnapshots(func(seq uint64) bool { return onHead[seq] })
	s.dirty.all, s.since = true, s.head // The ticks replayed were not looked at for it.
	s.held = make(map[uint32]fileSize)
	for _, sn := range v.snapshots {
		s.tally.snapshotBytes += sn.Size
		s.number = max(s.number, sn.Number)
		s.fullSize = max(s.fullSize, sn.Size)
	}
	held := map[uint32]bool{}
	for _, p := range f.table {
		held[p.file] = true
	}
	for _, sn := range v.snapshots {
		if held[sn.Number] && sn.Err == nil {
			s.held[sn.Number] = fileSize{sn.crc, sn.Size}
		}
	}
	if len(s.held) != len(held) {
		s.table = nil // A file it refers to has no readable manifest: share nothing.
	}
	for _, e := range v.log.Entries {
		if e.ID.Seq > f.snapshot.ID.Seq {
			s.grown += int64(e.Length)
		}
	}
}

// openJournal continues the journal, or begins it.
func (s *Store) openJournal(log *journal.Log) (err error) {
	s.announced = len(s.schema.components)
	options := journal.Options{
		World:       s.id,
		Sync:        s.options.Sync,
		QueueSize:   s.options.QueueBytes,
		SegmentSize: s.options.segmentSize,
		FirstSeq:    s.head + 1,
		Preamble:    func() []byte { return s.schema.encode() },
	}
	if s.options.OnDurable != nil {
		options.OnDurable = s.durable
	}
	s.journal, err = journal.Open(disk.Sub(s.files, journalDir), log, options)
	return err
}
