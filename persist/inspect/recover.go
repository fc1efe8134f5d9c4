package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/progress"
)

// Recovery of a damaged store looks for the newest good state on the way to the one that
// is wanted, and only then for how much of the history can be written with it:
//
//	wanted ──attempt──▶ a tick does not fit ──▶ the record before it is the next target
//	                    no snapshot is good ──▶ the next older record that one leads to
//	                    reached             ──▶ write, from the oldest good base to it
//
// What was found to be damaged is remembered (bad, failed), so that no attempt trusts it
// again, and each attempt has an older target or fewer snapshots: so they end. Files are
// opened as they are, without the lock of the store.

// RecoverOptions say what [Recover] is to save.
type RecoverOptions struct {
	// At is the state wanted, as [View.Resolve] takes it. Default: the newest.
	At string

	// Files is where path is a name: "." for a store at its top, or that of a save.
	// Default: the operating system's, by path.
	Files disk.FS

	// Partial lets Recover put a state together from the good pages of a damaged
	// snapshot, and the ticks behind it, if that reaches further than any state that is
	// whole. Rows that are lost are missing in it: the store was never in that state.
	Partial bool
}

// A RecoverReport says what [Recover] saved and what it did not.
type RecoverReport struct {
	Tick, Seq uint64 // The state saved, as the damaged store names it.
	Wanted    uint64 // The seq of the state that was wanted.

	// Lost is how many of the records between the two, from LostFrom on, cannot be saved;
	// if the way between them is not known, at most as many. More says that there may
	// have been others behind that, and where.
	Lost     int
	LostFrom uint64
	More     error

	Snapshot string // The file that the state was reached from.
	Replayed int    // Ticks replayed behind it.

	From  uint64 // The tick of the oldest state in the result that ticks follow,
	Ticks int    // and how many follow it, rewound branches among them.

	DroppedTicks int      // Readable ones that the result lacks: nothing good leads to them.
	Tips         []Tip    // Where branches end that reach further than what was saved.
	Names        []string // The snapshots with names in the result.
	DroppedNames []string // Those that it lacks.

	// Partial says that the state is one put together from pieces. It has no history, and
	// belongs to a world of its own. Missing tells what is known to be lost in it,
	// Entities how many entities that were alive, and Retired how many entity indices are
	// never used again, since it is not known which generation they had.
	Partial           bool
	Pieces            bool // It is not, but RecoverOptions.Partial would reach further.
	Missing           []Missing
	Entities, Retired int

	Problems []error // What is damaged.
}

// A Tip is the end of a branch.
type Tip struct{ Tick, Seq uint64 }

// Complete reports whether nothing of what was wanted is lost.
func (r *RecoverReport) Complete() bool { return r.Lost == 0 && r.More == nil && !r.Partial }

// Recover writes what is good in a damaged store to a new one, or that of a save to
// a new save: the newest state on the way to the one wanted that can be reached as
// it was, from whatever snapshot is whole and with whatever ticks follow it, and as
// much of the history before it and of rewound branches as hangs together. It
// never yields a state that the store was not in; each digest is that of the tick.
//
// What is at path is only read, without a lock. Nothing may be called out yet; it
// has its name once it is whole and durable. Records keep their seqs unless some
// between them are lost.
//
// If out is empty, nothing is written: the report says which state would be saved, and what is lost.
//
// An error wraps [persist.ErrCorrupt] if no state can be reached, and says why; the report says what is
// damaged. It costs replaying the history twice, and memory for a world. If out is empty, it costs
// what opening the store does, and reading all of the journal.
func Recover(ctx context.Context, path, out string, options RecoverOptions) (RecoverReport, error) {
	if out != "" {
		if err := unused(out); err != nil {
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
	// A snapshot that somebody copied here from the store of another world may have the
	// number and the seq that ours has. Without a journal nothing says which world is ours.
	for _, sn := range v.Snapshots {
		if sn.Err == nil && (v.IsSave() || len(v.Log.Segments) == 0 || sn.World == v.Log.World) {
			s.ours = append(s.ours, sn)
		}
	}
	s.report.Problems = damage
	err = s.run(ctx, out, options)
	return s.report, err
}

// openDamaged is OpenFS where manifests are looked for if need be. It returns what is
// wrong as well.
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
	v.Snapshots = []SnapshotInfo{{Name: v.Save, Err: err}}
	if mend(ctx, v, &v.Snapshots[0]); v.Snapshots[0].Err != nil {
		v.Close()
		return nil, []error{err}, cmp.Or(ctx.Err(), err)
	}
	return v, []error{err}, ctx.Err()
}

// mend reads the manifest of a snapshot that cannot be opened, wherever it is in the file.
// A format newer than ours is not damage: what its manifest means is not known.
func mend(ctx context.Context, v *catalog.Catalog, s *SnapshotInfo) {
	if s.Err == nil || errors.Is(s.Err, format.ErrNewer) {
		return
	}
	m, err := salvagedManifest(ctx, v, s.Name)
	if err != nil || m.Number != s.Number {
		return
	}
	s.Tick, s.ID, s.Digest, s.Time, s.Label, s.Err = m.Tick, m.ID, m.Digest, m.Time, m.Name, nil
	s.Files, s.Refs, s.World, s.Schema = len(m.Files), m.Files, m.World, m.Schema
}

// load is LoadSnapshot of files that may be damaged where it does not matter: the tree of
// keys, arrays that follow from others. What is put together from pages found one by one
// counts only if it has the digest that was recorded, see pieces.whole.
func (s *salvage) load(ctx context.Context, sn SnapshotInfo) (*Image, error) {
	im, _, err := s.LoadSnapshot(ctx, sn, false)
	if err == nil || ctx.Err() != nil {
		return im, err
	}
	if p, e := gather(ctx, s.Catalog, sn.Name); e == nil {
		if im := p.whole(); im != nil {
			s.note(err)
			return im, nil
		}
	}
	return nil, err
}

// A salvage is a call of Recover.
type salvage struct {
	*catalog.Catalog
	ours   []SnapshotInfo // Those of the same world as the journal that have a manifest.
	wanted uint64
	bad    map[uint64]bool // Records whose ticks do not fit, whatever their checksums say.
	failed map[uint32]bool // Snapshots that cannot be loaded.
	report RecoverReport

	reached uint64
	digest  ecs.Digest
}

// run looks for the nearest state, or for pieces that reach further if these are wanted, and writes what
// was found. The report is filled on the way, so that it says what is damaged even if nothing is saved.
func (s *salvage) run(ctx context.Context, out string, options RecoverOptions) (err error) {
	if s.wanted, err = s.Resolve(options.At); err != nil {
		return s.because(err)
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
	if err != nil { // No whole state; and pieces were not wanted, or there are none.
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

// note adds a problem to the report, once: several attempts meet the same damage.
func (s *salvage) note(err error) {
	if !slices.ContainsFunc(s.report.Problems, func(p error) bool { return p.Error() == err.Error() }) {
		s.report.Problems = append(s.report.Problems, err)
	}
}

// because returns err, and with it all that is wrong.
func (s *salvage) because(err error) error {
	return errors.Join(slices.Insert(slices.Clone(s.report.Problems), 0, err)...)
}

// newest returns the record of the newest state that the store had, even if nothing
// of it can be read.
func (s *salvage) newest() uint64 {
	newest := s.Head()
	if _, readable := s.Log.Find(s.Log.Last); !s.Log.Clean && !readable {
		newest = max(newest, s.Log.Last)
	}
	for _, sn := range s.ours { // The end of the journal may be gone: a snapshot is published behind its record.
		if sn.ID.Seq > s.Log.Last {
			newest = max(newest, sn.ID.Seq)
		}
	}
	return newest
}

// nearest returns the newest state on the way to the one wanted that can be reached.
func (s *salvage) nearest(ctx context.Context) (*Image, error) {
	for target := s.wanted; ; {
		im, next, err := s.attempt(ctx, target)
		if err != nil || im != nil {
			return im, err
		}
		if next == target { // No snapshot is left for it: an older one that has one.
			var ok bool
			if next, ok = s.Before(target, s.loadable(), s.bad); !ok {
				return nil, s.because(s.unreachable())
			}
		}
		target = next
	}
}

// unreachable says why no state can be reached as it was.
func (s *salvage) unreachable() error {
	readable, loadable := len(s.ours), len(s.loadable())
	switch {
	case readable == 0:
		return fmt.Errorf("%w: no state can be reached as it was: no snapshot can be read", format.ErrCorrupt)
	case loadable == 0 && s.IsSave():
		return fmt.Errorf("%w: no state can be reached as it was: the save cannot be loaded", format.ErrCorrupt)
	case loadable == 0:
		return fmt.Errorf("%w: no state can be reached as it was: no snapshot can be loaded, of %d", format.ErrCorrupt, readable)
	}
	return fmt.Errorf("%w: no state can be reached as it was: no snapshot leads to record %d or to one before it", format.ErrCorrupt, s.wanted)
}

// attempt returns the state after record target. If that cannot be reached, im is
// nil: next is the record before the first tick that does not fit, or target itself
// if no snapshot leads there. An error is that of ctx.
func (s *salvage) attempt(ctx context.Context, target uint64) (im *Image, next uint64, err error) {
	for _, sn := range s.whole(target) {
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
			s.note(s.JournalError(err)) // A converted state that does not lead on, or the like.
			continue
		}
		im, n, err := (&walk{Catalog: s.Catalog}).along(ctx, im, path)
		if ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		if err != nil { // The n before it fitted. Whichever snapshot leads here, this one does not.
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

// loadable returns the snapshots but for those that could not be loaded.
func (s *salvage) loadable() []SnapshotInfo {
	return slices.DeleteFunc(slices.Clone(s.ours), func(sn SnapshotInfo) bool { return s.failed[sn.Number] })
}

// whole returns the snapshots that record target may be reached from, nearest first,
// but for those that could not be loaded.
func (s *salvage) whole(target uint64) (bases []SnapshotInfo) {
	states := s.StatesTo(target)
	for _, sn := range slices.Backward(s.ours) {
		if states[sn.ID] && !s.failed[sn.Number] {
			bases = append(bases, sn)
		}
	}
	return bases
}

// countLost says what lies between the state reached and the one wanted.
func (s *salvage) countLost(newest bool) {
	r := &s.report
	// Seqs between are an upper bound: some may be of branches. A path says exactly.
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
		if e.Tick > r.Tick && len(s.whole(e.ID.Seq)) > 0 && e.ID.Seq != s.wanted {
			r.Tips = append(r.Tips, Tip{e.Tick, e.ID.Seq})
		}
	}
}

// beyondEnd returns the damage that ticks newer than all that is known may have been
// lost in, or nil.
func (s *salvage) beyondEnd() error {
	for _, sn := range s.Snapshots {
		if err := s.Misfit(sn); errors.Is(err, format.ErrCorrupt) { // The end of the journal is gone.
			return err
		}
	}
	err := s.Missing(SnapshotInfo{ID: journal.ID{Seq: s.reached}})
	if damage, ok := errors.AsType[*format.DamageError](err); ok {
		return damage
	}
	return err
}

// write writes the store, with the longest history that leads to the state reached: from
// the oldest base. Where ticks between two bases are damaged, a later one is tried. Each
// try makes the directory anew. An error that is not damage (a full disk) ends it.
func (s *salvage) write(ctx context.Context, out string) error {
	bases := s.whole(s.reached)
	for _, base := range slices.Backward(bases) {
		r, err := s.writeFrom(ctx, out, base)
		if err == nil {
			s.took(r, base)
			_, s.report.Names, s.report.DroppedNames, err = r.written(ctx, out)
			return err
		}
		if ctx.Err() != nil || !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrForeign) && !errors.Is(err, format.ErrNotFound) {
			return err
		}
		s.note(err)
	}
	return fmt.Errorf("%w: what was read before cannot be read again", format.ErrCorrupt)
}

// writeFrom writes a store whose base is the state of a snapshot. A snapshot with a name that cannot be
// loaded is left out.
func (s *salvage) writeFrom(ctx context.Context, out string, base SnapshotInfo) (*rewrite, error) {
	im, err := s.load(ctx, base)
	if err != nil {
		return nil, err
	}
	r := newRewrite(s.Catalog, s.ours, func(ctx context.Context, sn SnapshotInfo) (*Image, error) {
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

// fill writes the states and ticks to a store whose base is im.
func (s *salvage) fill(ctx context.Context, r *rewrite, im *Image) error {
	base := im.ID.Seq
	older := func(sn SnapshotInfo) (journal.ID, bool) { return sn.ID, sn.ID.Seq < base }
	if err := r.named(progress.Quiet(ctx), older); err != nil {
		return err
	}
	if err := r.begin(ctx, im); err != nil {
		return err
	}
	last, err := r.to(ctx, im, s.reached)
	if err != nil {
		return err
	}
	// The state was reached from the nearest snapshot before, now from an older one. That
	// both ways agree proves the ticks between them.
	if d := last.Settled().Digest(); d != s.digest {
		return fmt.Errorf("%w: replay from record %d gives digest %v, not %v", format.ErrCorrupt, base, d, s.digest)
	}
	// Snapshots with names of rewound branches come last: only now is it known which of
	// their records were written, and what these are called here.
	way := s.Ancestors(s.reached)
	aside := func(sn SnapshotInfo) (journal.ID, bool) {
		e, readable := s.Log.Find(sn.ID.Seq)
		there, ok := r.ids[sn.ID.Seq]
		return there, ok && readable && e.ID == sn.ID && !way[sn.ID.Seq]
	}
	if err := r.named(progress.Quiet(ctx), aside); err != nil {
		return err
	}
	return r.end(ctx, s.reached)
}

// took notes what is in the result. What is there of branches is not lost.
func (s *salvage) took(r *rewrite, base SnapshotInfo) {
	s.report.From, s.report.Ticks = base.Tick, r.ticks
	for seq := s.report.LostFrom; seq <= s.wanted && s.report.Lost > 0; seq++ {
		if _, ok := r.ids[seq]; !ok { // From here on they are lost.
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

// partial writes a state made of pieces if that reaches further than im, the newest
// one that is whole; nil: there is none. If it is not wanted, it only notes that it would.
func (s *salvage) partial(ctx context.Context, im *Image, out string, wanted bool) (done bool, err error) {
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
		p, n, err := s.piecedTo(ctx, sn) // The newest snapshot first, so the first that has pieces is taken.
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

// piecedTo returns the pieces of a snapshot, with the ticks behind it as far as they
// go: how many. What is wrong with the next is noted; err is of the snapshot.
func (s *salvage) piecedTo(ctx context.Context, sn SnapshotInfo) (p *pieces, n int, err error) {
	path, _ := s.Log.Path(sn.ID.Seq, s.wanted) // None: the state of the snapshot is all there is.
	for {
		if p, err = gather(ctx, s.Catalog, sn.Name); err != nil {
			return nil, 0, err
		}
		var e error
		if n, e = p.forward(ctx, s.Catalog, path); e == nil || ctx.Err() != nil {
			return p, n, cmp.Or(ctx.Err(), err)
		}
		s.note(e)
		path = path[:n] // Half a tick may have been applied: begin again without it.
	}
}

// writePieces writes a state that the store was never in.
func (s *salvage) writePieces(ctx context.Context, im *Image, out string) error {
	im.ID = journal.ID{} // It continues nothing: the store is of a world of its own.
	im.DropDead()
	if err := im.Link(ctx); err != nil {
		return err
	}
	if s.IsSave() {
		_, err := saveImage(ctx, im, out, s.Snapshots[0].Compressed)
		return err
	}
	return SaveStore(ctx, im, out)
}
