package repair

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/progress"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// Recovery first looks for the newest good state on the path to the wanted state. Then it writes
// this state, with as much of the earlier history as possible.
//
// An attempt loads a snapshot and replays ticks up to a target. The first target is the wanted
// state. The result of an attempt decides about the next step:
//
//   - A tick cannot be applied: The next target is the record before that tick.
//   - No snapshot can be used: The next target is an older record that a snapshot leads to.
//   - The target is reached: write() writes the states from the oldest good snapshot on.
//
// The fields s.bad and s.failed list damaged records and snapshots, so that later attempts skip
// them. Each attempt has an older target or fewer snapshots, so the attempts end. Recovery opens
// files without the lock of the store.

// RecoverOptions say what [Recover] saves.
type RecoverOptions struct {
	// At is the wanted state, in the syntax of [inspect.View.Resolve]. The default is the newest
	// state.
	At string

	// Files is the file system that contains path. path is "." for a store in the root directory,
	// or the name of a save. The default is the file system of the operating system.
	Files disk.FS

	// Partial allows an incomplete state. Recover restores it from the good pages of a damaged
	// snapshot, and applies the ticks after the snapshot. It does so only if no complete state is
	// as new. The result lacks the lost rows, so the store was never in that state.
	Partial bool
}

// A RecoverReport says what [Recover] saved, and what was lost.
type RecoverReport struct {
	// Tick and Seq identify the saved state in the damaged store.
	Tick, Seq uint64
	Wanted    uint64 // The seq of the wanted state.

	// Lost is the number of records after the saved state, up to the wanted state. If the path is
	// unknown, Lost is an upper limit. LostFrom is the first of these records. More is damage that
	// may have destroyed even newer ticks, or nil.
	Lost     int
	LostFrom uint64
	More     error

	// Snapshot is the snapshot file from which the saved state was reached.
	Snapshot string
	// Replayed is the number of ticks that were replayed after that snapshot.
	Replayed int

	// From is the tick of a state in the result. The result has every later tick up to the saved
	// state.
	From uint64
	// Ticks is the number of ticks after From in the result, including rewound branches.
	Ticks int

	// DroppedTicks is the number of readable ticks that the result lacks.
	DroppedTicks int
	// Tips are the ends of branches that are newer than the saved state.
	Tips []Tip
	// Names lists the named snapshots in the result.
	Names []string
	// DroppedNames lists the named snapshots that are not in the result.
	DroppedNames []string

	// Partial says that the saved state is incomplete, see RecoverOptions.Partial. The result has
	// no history, and belongs to a new world. Missing lists the rows that are known to be lost.
	// Entities is the number of live entities that are lost. Retired is the number of indices that
	// can never be reused, because their generations are lost.
	Partial bool
	// Pieces says that RecoverOptions.Partial may yield a newer state than the saved one.
	Pieces            bool
	Missing           []Missing
	Entities, Retired int

	Problems []error // The damage that was found.
}

// A Tip is the end of a branch.
type Tip struct{ Tick, Seq uint64 }

// Complete reports whether all of the wanted state was saved.
func (r *RecoverReport) Complete() bool { return r.Lost == 0 && r.More == nil && !r.Partial }

// Recover writes the good data of a damaged store to a new store, or of a save to a new save. It
// saves the newest reachable state on the path to the wanted state. It also saves as much
// consistent history as possible, before that state and on rewound branches. Without Partial, the
// saved state has the digest of its tick.
//
// Recover only reads path, without a lock. Nothing may exist at the path out. The result appears at
// this path only when it is complete and durable. Records keep their seqs, unless records between
// them are lost.
//
// If the path out is "", Recover writes nothing. The report then says which state it would save,
// and what is lost.
//
// If no state can be reached, the error wraps persist.ErrCorrupt and gives the reason. The report
// lists the damage. Recover replays the history twice, and needs memory for one world. Even if the
// path out is "", Recover opens the store and reads the journal.
func Recover(ctx context.Context, path, out string, options RecoverOptions) (RecoverReport, error) {
	if out != "" {
		if err := checkUnused(out); err != nil {
			return RecoverReport{}, err
		}
	}
	files, name := options.Files, path
	if files == nil {
		var err error
		if files, name, err = catalog.Locate(path); err != nil {
			return RecoverReport{Problems: []error{err}}, err
		}
		defer files.Close()
	}
	v, damage, err := openDamaged(ctx, disk.Sub(files, "."), name)
	if err != nil {
		return RecoverReport{Problems: damage}, err
	}
	defer v.Close()
	s := &salvage{Catalog: v, bad: map[uint64]bool{}, failed: map[uint32]bool{}}
	// Skip snapshots that come from the store of another world. Without a journal, the right world
	// is unknown, so use all snapshots.
	for _, sn := range v.Snapshots {
		if sn.Err == nil && (v.IsSave() || len(v.Log.Segments) == 0 || sn.World == v.Log.World) {
			s.ours = append(s.ours, sn)
		}
	}
	s.report.Problems = damage
	err = s.run(ctx, out, options)
	return s.report, err
}

// Recoverable returns the report that [Recover] would give for the store or save of v. It writes
// nothing. It asks for the newest state, without RecoverOptions.Partial.
func Recoverable(ctx context.Context, v *inspect.View) (RecoverReport, error) {
	c := v.Catalog()
	return Recover(ctx, cmp.Or(c.Save, "."), "", RecoverOptions{Files: c.Files})
}

// openDamaged opens a store or save, and searches for the manifests of damaged snapshots. It also
// returns the damage.
func openDamaged(ctx context.Context, files disk.FS, name string) (*catalog.Catalog, []error, error) {
	v, err := catalog.OpenFS(ctx, files, name)
	if err == nil {
		err = v.ReadJournal(ctx)
	}
	if err == nil {
		damage := v.Faults()
		for i := range v.Snapshots {
			mend(ctx, v, &v.Snapshots[i])
		}
		return v, damage, ctx.Err()
	}
	if name == "." || !errors.Is(err, format.ErrCorrupt) {
		return nil, []error{err}, err
	}
	v = catalog.New(files)
	v.Save = name
	v.Snapshots = []catalog.SnapshotInfo{{Name: v.Save, Err: err}}
	if mend(ctx, v, &v.Snapshots[0]); v.Snapshots[0].Err != nil {
		v.Close()
		return nil, []error{err}, cmp.Or(ctx.Err(), err)
	}
	return v, []error{err}, ctx.Err()
}

// mend searches for the manifest of a snapshot that cannot be opened. It ignores a snapshot in a
// newer format: such a snapshot is not damaged, and the meaning of its manifest is unknown.
func mend(ctx context.Context, v *catalog.Catalog, s *catalog.SnapshotInfo) {
	if s.Err == nil || errors.Is(s.Err, format.ErrNewer) {
		return
	}
	m, err := snap.SalvageManifest(ctx, v.Files, s.Name)
	if err != nil || m.Number != s.Number {
		return
	}
	s.Tick, s.ID, s.Digest, s.Time, s.Given, s.Err = m.Tick, m.ID, m.Digest, m.Time, m.Name, nil
	s.Note = m.Note()
	catalog.NameSnapshots(v)
	s.Files, s.Refs, s.World, s.Schema = len(m.Files), m.Files, m.World, m.Schema
}

// load is like LoadSnapshot, but also accepts a damaged snapshot if its readable pages are enough
// to restore the whole state. For example, a lost sparse page can be restored from a dense page.
func (s *salvage) load(ctx context.Context, sn catalog.SnapshotInfo) (*image.Image, error) {
	im, _, err := s.LoadSnapshot(ctx, sn, false)
	if err == nil || ctx.Err() != nil {
		return im, err
	}
	if p, e := gather(ctx, s.Catalog, sn.Name); e == nil {
		if im := p.restored(); im != nil {
			s.note(err)
			return im, nil
		}
	}
	return nil, err
}

// A salvage is one call of Recover.
type salvage struct {
	*catalog.Catalog
	// ours has the snapshots of the journal's world whose manifests can be read.
	ours   []catalog.SnapshotInfo
	wanted uint64
	// bad has the records whose ticks cannot be applied, even with correct checksums.
	bad map[uint64]bool
	// failed has the snapshots that cannot be loaded.
	failed map[uint32]bool
	report RecoverReport

	reached uint64
	digest  ecs.Digest
}

// run finds the nearest reachable state and writes it. If a partial state is allowed and newer,
// run writes the partial state. It fills the report step by step, so the report lists the damage
// even if nothing is saved.
func (s *salvage) run(ctx context.Context, out string, options RecoverOptions) (err error) {
	if s.wanted, err = s.Resolve(options.At); err != nil {
		return s.withProblems(err)
	}
	if options.At == "" {
		s.wanted = s.newest()
	}
	s.report.Wanted = s.wanted
	im, err := s.nearest(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if im == nil || im.ID.Seq != s.wanted {
		if done, err := s.partial(ctx, im, out, options.Partial); done || err != nil {
			return err
		}
	}
	// No complete state exists, and a partial state is not allowed or not possible.
	if err != nil {
		return err
	}
	s.reached, s.digest = im.ID.Seq, im.Digest()
	s.report.Tick, s.report.Seq = im.Tick, im.ID.Seq
	s.countLost(options.At == "")
	if out == "" {
		return nil
	}
	if s.IsSave() {
		_, err = saveImage(ctx, im, out, s.Snapshots[0].Compressed)
		return err
	}
	return s.write(ctx, out)
}

// note adds a problem to the report. Several attempts may find the same problem; note adds it
// once.
func (s *salvage) note(err error) {
	if !slices.ContainsFunc(s.report.Problems, func(p error) bool { return p.Error() == err.Error() }) {
		s.report.Problems = append(s.report.Problems, err)
	}
}

// withProblems joins err and all problems.
func (s *salvage) withProblems(err error) error {
	return errors.Join(slices.Insert(slices.Clone(s.report.Problems), 0, err)...)
}

// newest returns the record of the newest state that the store ever had, even if that state
// cannot be read.
func (s *salvage) newest() uint64 {
	newest := s.Head()
	if _, readable := s.Log.Find(s.Log.Last); !s.Log.Clean && !readable {
		newest = max(newest, s.Log.Last)
	}
	// If the end of the journal is missing, a snapshot may be newer than the last record.
	for _, sn := range s.ours {
		if sn.ID.Seq > s.Log.Last {
			newest = max(newest, sn.ID.Seq)
		}
	}
	return newest
}

// nearest returns the newest reachable state on the path to the wanted state.
func (s *salvage) nearest(ctx context.Context) (*image.Image, error) {
	for target := s.wanted; ; {
		im, next, err := s.attempt(ctx, target)
		if err != nil || im != nil {
			return im, err
		}
		// No snapshot leads to target, so continue with an older record that a snapshot leads to.
		if next == target {
			var ok bool
			if next, ok = s.LastReachableBefore(target, s.loadable(), s.bad); !ok {
				return nil, s.withProblems(s.unreachable())
			}
		}
		target = next
	}
}

// unreachable returns the error if no complete state can be reached. The error names the reason.
func (s *salvage) unreachable() error {
	readable, loadable := len(s.ours), len(s.loadable())
	switch {
	case readable == 0:
		return fmt.Errorf("%w: no complete state can be reached: no snapshot can be read", format.ErrCorrupt)
	case loadable == 0 && s.IsSave():
		return fmt.Errorf("%w: no complete state can be reached: the save cannot be loaded", format.ErrCorrupt)
	case loadable == 0:
		return fmt.Errorf("%w: no complete state can be reached: 0 of %d snapshots can be loaded", format.ErrCorrupt, readable)
	}
	return fmt.Errorf("%w: no complete state can be reached: no snapshot leads to record %d or to an earlier one", format.ErrCorrupt, s.wanted)
}

// attempt returns the state after record target. If the state is unreachable, the image is nil, and
// next is one of these records:
//
//   - If a tick cannot be applied, next is the record before this tick.
//   - If no snapshot leads to target, next is target itself.
//
// attempt returns an error only if ctx ends.
func (s *salvage) attempt(ctx context.Context, target uint64) (im *image.Image, next uint64, err error) {
	for _, sn := range s.basesOf(target) {
		im, err := s.load(ctx, sn)
		if ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		if err != nil {
			s.failed[sn.Number] = true
			s.note(err)
			continue
		}
		path, err := s.Log.Path(sn.ID.Seq, target)
		if err != nil {
			// No ticks lead from the snapshot to target. For example, a conversion is between the
			// two.
			s.note(s.JournalError(err))
			continue
		}
		im, n, err := (&catalog.Walk{Catalog: s.Catalog}).Along(ctx, im, path)
		if ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		// The first n ticks were applied. The next tick is damaged, so no other snapshot can help.
		if err != nil {
			s.bad[path[n].ID.Seq] = true
			s.note(err)
			return nil, path[n].Parent, nil
		}
		im.DropDead()
		s.report.Snapshot, s.report.Replayed = sn.Name, n
		return im, target, nil
	}
	return nil, target, nil
}

// loadable returns the snapshots in s.ours, except those that failed to load.
func (s *salvage) loadable() []catalog.SnapshotInfo {
	return slices.DeleteFunc(slices.Clone(s.ours), func(sn catalog.SnapshotInfo) bool { return s.failed[sn.Number] })
}

// basesOf returns the snapshots that may lead to record target, nearest first. It leaves out
// snapshots that failed to load.
func (s *salvage) basesOf(target uint64) (bases []catalog.SnapshotInfo) {
	states := s.StatesTo(target)
	for _, sn := range slices.Backward(s.ours) {
		if states[sn.ID] && !s.failed[sn.Number] {
			bases = append(bases, sn)
		}
	}
	return bases
}

// countLost reports the records between the reached state and the wanted state as lost.
func (s *salvage) countLost(newest bool) {
	r := &s.report
	// The path may be unknown. Then this number is an upper limit, because some of these records
	// may be on other branches.
	r.Lost, r.LostFrom = int(s.wanted-s.reached), s.reached+1
	if path, err := s.Log.Path(s.reached, s.wanted); err == nil && len(path) > 0 {
		r.Lost, r.LostFrom = len(path), path[0].ID.Seq
	}
	if newest && !s.IsSave() {
		r.More = s.beyondEnd()
	}
	if r.Lost == 0 {
		r.LostFrom = 0
	}
	if r.Complete() {
		return
	}
	for _, e := range s.Log.Tips() {
		if e.Tick > r.Tick && len(s.basesOf(e.ID.Seq)) > 0 && e.ID.Seq != s.wanted {
			r.Tips = append(r.Tips, Tip{e.Tick, e.ID.Seq})
		}
	}
}

// beyondEnd returns the damage that may have destroyed ticks newer than all known ticks, or nil.
func (s *salvage) beyondEnd() error {
	for _, sn := range s.Snapshots {
		// The snapshot is newer than the journal, so the end of the journal is missing.
		if err := s.Misfit(sn); errors.Is(err, format.ErrCorrupt) {
			return err
		}
	}
	err := s.Missing(catalog.SnapshotInfo{ID: journal.ID{Seq: s.reached}})
	if damage, ok := errors.AsType[*format.DamageError](err); ok {
		return damage
	}
	return err
}

// write writes a store that ends at the reached state. It begins at the oldest snapshot. If a file
// that it needs is damaged or missing, it starts again with a later snapshot. After any other
// error, such as a full disk, it returns that error.
func (s *salvage) write(ctx context.Context, out string) error {
	bases := s.basesOf(s.reached)
	for _, base := range slices.Backward(bases) {
		r, err := s.writeFrom(ctx, out, base)
		if err == nil {
			s.reportResult(r, base)
			_, s.report.Names, s.report.DroppedNames, err = r.summary(ctx, out)
			return err
		}
		if ctx.Err() != nil || !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrForeign) && !errors.Is(err, format.ErrNotFound) {
			return err
		}
		s.note(err)
	}
	return fmt.Errorf("%w: data that could be read before cannot be read again", format.ErrCorrupt)
}

// writeFrom writes a store with the state of a snapshot as its base. It leaves out named
// snapshots that cannot be loaded.
func (s *salvage) writeFrom(ctx context.Context, out string, base catalog.SnapshotInfo) (*rewrite, error) {
	im, err := s.load(ctx, base)
	if err != nil {
		return nil, err
	}
	r := newRewrite(s.Catalog, s.ours, func(ctx context.Context, sn catalog.SnapshotInfo) (*image.Image, error) {
		im, err := s.load(ctx, sn)
		if err != nil && ctx.Err() == nil {
			s.note(err)
			return nil, nil
		}
		return im, err
	})
	r.branches, r.bad = true, s.bad
	return r, r.store(out, func() error { return s.fill(ctx, r, im) })
}

// fill writes states and ticks to the new store. im is its base.
func (s *salvage) fill(ctx context.Context, r *rewrite, im *image.Image) error {
	base := im.ID.Seq
	older := func(sn catalog.SnapshotInfo) (journal.ID, bool) { return sn.ID, sn.ID.Seq < base }
	if err := r.writeNamed(progress.Quiet(ctx), older); err != nil {
		return err
	}
	if err := r.begin(ctx, im); err != nil {
		return err
	}
	last, err := r.writeTo(ctx, im, s.reached)
	if err != nil {
		return err
	}
	// nearest() has reached the same state from a later snapshot. If the digests differ, some ticks
	// before that snapshot are wrong.
	if d := last.Settled().Digest(); d != s.digest {
		return fmt.Errorf("%w: replay from record %d gives digest %v, not %v", format.ErrCorrupt, base, d, s.digest)
	}
	// Now that all records are written, write the named snapshots of rewound branches.
	way := s.Ancestors(s.reached)
	aside := func(sn catalog.SnapshotInfo) (journal.ID, bool) {
		e, readable := s.Log.Find(sn.ID.Seq)
		there, ok := r.ids[sn.ID.Seq]
		return there, ok && readable && e.ID == sn.ID && !way[sn.ID.Seq]
	}
	if err := r.writeNamed(progress.Quiet(ctx), aside); err != nil {
		return err
	}
	return r.end(ctx, s.reached)
}

// reportResult completes the report after the result is written. countLost has counted all records
// after the reached state as lost. The result may have some of these records on a branch, so
// reportResult subtracts them.
func (s *salvage) reportResult(r *rewrite, base catalog.SnapshotInfo) {
	s.report.From, s.report.Ticks = base.Tick, r.ticks
	for seq := s.report.LostFrom; seq <= s.wanted && s.report.Lost > 0; seq++ {
		// Stop at the first record that the result lacks.
		if _, ok := r.ids[seq]; !ok {
			break
		}
		s.report.Lost--
		s.report.LostFrom++
	}
	for _, e := range s.Log.Entries {
		if _, ok := r.ids[e.ID.Seq]; !ok {
			s.report.DroppedTicks++
		}
	}
}

// partial writes a partial state if one can be newer than im. im is the newest complete state, or
// nil if there is none. If the last argument is false, partial only reports that a partial state
// exists.
func (s *salvage) partial(ctx context.Context, im *image.Image, out string, wanted bool) (done bool, err error) {
	for _, sn := range slices.Backward(s.ours) {
		if sn.ID.Seq > s.wanted || im != nil && sn.ID.Seq <= im.ID.Seq {
			continue
		}
		if !wanted {
			if _, err := gather(ctx, s.Catalog, sn.Name); err == nil {
				s.report.Pieces = true
				return false, nil
			}
			continue
		}
		p, n, err := s.piecedTo(ctx, sn)
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil {
			s.note(err)
		}
		if p == nil {
			continue
		}
		r := &s.report
		r.Partial, r.Snapshot, r.Replayed = true, sn.Name, n
		r.Tick, r.Seq, s.reached = p.im.Tick, p.im.ID.Seq, p.im.ID.Seq
		s.countLost(true)
		r.DroppedTicks, r.From = len(s.Log.Entries), r.Tick
		r.Missing, r.Entities, r.Retired = p.mended()
		if out == "" {
			return true, nil
		}
		return true, s.writePieces(ctx, p.im, out)
	}
	return false, nil
}

// piecedTo restores what it can from the pages of a damaged snapshot, and applies the ticks after
// the snapshot up to the first damage. It returns the number of applied ticks. It reports damaged
// ticks. If nothing can be restored, err has the reason.
func (s *salvage) piecedTo(ctx context.Context, sn catalog.SnapshotInfo) (p *pieces, n int, err error) {
	// If no path leads from the snapshot to the wanted state, use only the snapshot.
	path, _ := s.Log.Path(sn.ID.Seq, s.wanted)
	for {
		if p, err = gather(ctx, s.Catalog, sn.Name); err != nil {
			return nil, 0, err
		}
		var e error
		if n, e = p.forward(ctx, s.Catalog, path); e == nil || ctx.Err() != nil {
			return p, n, cmp.Or(ctx.Err(), err)
		}
		s.note(e)
		// The failed tick may be half applied. Restore the snapshot again, and stop before that
		// tick.
		path = path[:n]
	}
}

// writePieces writes a partial state, which was restored from the undamaged parts of files.
func (s *salvage) writePieces(ctx context.Context, im *image.Image, out string) error {
	// The store was never in this state, so it becomes the first state of a new world.
	im.ID = journal.ID{}
	im.DropDead()
	if err := im.Link(ctx); err != nil {
		return err
	}
	if s.IsSave() {
		_, err := saveImage(ctx, im, out, s.Snapshots[0].Compressed)
		return err
	}
	return SaveStore(ctx, inspect.NewImage(im), out)
}
