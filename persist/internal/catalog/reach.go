package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// A state is loaded from a snapshot and the records after it:
//
//	CandidateSnapshots  snapshots on the path from the oldest record to seq, nearest first
//	Reach               loads the first readable snapshot and replays the ticks of Path
//	Base, At            the same for read-only callers; At returns what a program would see
//
// In a damaged store, three functions come first:
//
//	Newest    returns the record nearest to the head whose state is reachable
//	Usable    checks whether the store may be written at all
//	Missing   checks whether the store may continue from its head, or durable ticks may be lost
//
// A conversion writes a second snapshot of the same state, with the schema of the program. The
// journal has no tick for a conversion. SameSchemaPath, ConvertedImage and SnapshotUnder choose
// between the two snapshots.

// A Recovery describes how a state was loaded.
type Recovery struct {
	Snapshot SnapshotInfo
	Replayed int            // Number of ticks that were replayed.
	Skipped  []error        // Why newer snapshots were not used.
	Table    snap.PageTable // Page table of the snapshot. The next snapshot shares pages with it.
}

// At returns the state after record seq. 0 is the oldest state of the store. At loads the nearest
// snapshot among the ancestors.
//
// If the writing program removes files meanwhile, At tries other snapshots. If no snapshot remains,
// the error wraps [format.ErrNotFound].
func (c *Catalog) At(ctx context.Context, seq uint64) (*image.Image, error) {
	im, err := c.Base(ctx, seq)
	if err != nil {
		return nil, err
	}
	im.DropDead()
	return im, nil
}

// Base is like At, but returns a state to which further ticks can be applied. Later ticks may
// depend on the rows of dead entities in no-rewind components. So Base keeps these rows, and At
// removes them.
func (c *Catalog) Base(ctx context.Context, seq uint64) (im *image.Image, err error) {
	err = c.RetryOnChange(ctx, func() error {
		im, _, err = c.Reach(ctx, seq, false)
		return err
	})
	return im, err
}

// RetryOnChange calls f, and retries it if f fails and the directory has changed. In that case f
// may have read a file that was removed, and another snapshot may lead to the same state. A missing
// file counts as a change even if two listings are equal. RetryOnChange gives up after
// [MaxListings] retries, because a program may remove files faster than f reads them.
func (c *Catalog) RetryOnChange(ctx context.Context, f func() error) error {
	for try := 0; ; try++ {
		err := f()
		if err == nil || ctx.Err() != nil {
			return err
		}
		changed, e := c.Relist(ctx)
		changed = changed || errors.Is(err, fs.ErrNotExist)
		if e != nil || !changed || try == MaxListings {
			return Pruned(err)
		}
	}
}

// RefreshAndRetry calls f, which looks for the newest state. If f fails with ErrNotFound and files
// have changed, RefreshAndRetry refreshes c and calls f again. If all files in c still exist,
// RefreshAndRetry returns the error. It gives up after [MaxListings] retries.
//
// RefreshAndRetry is for callers that follow a store. Callers that need a certain state use
// RetryOnChange.
func (c *Catalog) RefreshAndRetry(ctx context.Context, f func() error) error {
	for try := 0; ; try++ {
		snapshots, segments := c.Snapshots, c.Log.Segments
		err := f()
		if !errors.Is(err, format.ErrNotFound) || try == MaxListings {
			return err
		}
		_, e := c.Refresh(ctx)
		sameSegments := slices.EqualFunc(segments, c.Log.Segments, func(a, b journal.Segment) bool { return a.Number == b.Number })
		if e != nil || sameSegments && sameSnapshots(snapshots, c.Snapshots) {
			return err
		}
	}
}

// Reach returns the state after record seq, to which further ticks can be applied, and how it was
// loaded. It keeps NoRewind values of dead entities, because a later tick may refer to them. If
// bare is set and there are no ticks to replay, it returns a bare image, which cannot replay ticks.
//
// Reach tries the snapshots on the path, nearest first, and uses the first readable one. If the
// ticks after that snapshot do not lead to seq, Reach fails: older snapshots would need the same
// ticks. Reach also fails if files are removed in the meantime.
func (c *Catalog) Reach(ctx context.Context, seq uint64, bare bool) (*image.Image, *Recovery, error) {
	f := new(Recovery)
	for _, s := range c.CandidateSnapshots(seq) {
		if s.Err == nil && !c.SameSchemaPath(s, seq) {
			// Skip s: another snapshot has the same state with the schema of the later ticks.
			continue
		}
		im, table, err := c.LoadSnapshot(ctx, s, bare && s.ID.Seq == seq)
		if err == nil {
			f.Snapshot, f.Table = s, table
			f.Replayed, err = c.replay(ctx, im, seq)
			if err == nil {
				return im, f, nil
			}
			return nil, f, errors.Join(append(f.Skipped, err)...)
		}
		if ctx.Err() != nil || refused(err) {
			return nil, f, err // The snapshot is intact, so older snapshots are not tried.
		}
		f.Skipped = append(f.Skipped, err)
	}
	if len(f.Skipped) > 0 {
		return nil, f, errors.Join(f.Skipped...)
	}
	return nil, f, c.Unreachable(seq)
}

// OldestBase returns the oldest snapshot from which ticks lead to record seq.
func (c *Catalog) OldestBase(seq uint64) (s SnapshotInfo, ok bool) {
	for _, s := range slices.Backward(c.CandidateSnapshots(seq)) {
		if _, err := c.Log.Path(s.ID.Seq, seq); s.Err == nil && err == nil {
			return s, true
		}
	}
	return SnapshotInfo{}, false
}

// Removed returns the error for an object that was pruned, such as a record. The error also names
// the oldest remaining state. The parameter what is the beginning of its text, such as "record 7
// was". Removed returns nil if nothing was pruned. It also returns nil if the store is damaged,
// because the object may be missing for that reason.
func (c *Catalog) Removed(what string) error {
	oldest, ok := c.OldestBase(c.End())
	if !ok || oldest.ID.Seq == 0 || c.IsSave() || len(c.Damage()) > 0 {
		return nil
	}
	return fmt.Errorf("%w: %s pruned; the oldest is record %d, tick %d", format.ErrNotFound, what, oldest.ID.Seq, oldest.Tick)
}

// tooOld reports whether record seq is older than the oldest snapshot that leads to the newest
// state.
func (c *Catalog) tooOld(seq uint64) bool {
	oldest, ok := c.OldestBase(c.End())
	return ok && seq < oldest.ID.Seq
}

// Unreachable returns the error that no snapshot leads to record seq, and what is missing on the
// path.
func (c *Catalog) Unreachable(seq uint64) error {
	what := ""
	switch {
	case c.tooOld(seq):
		what = fmt.Sprintf("record %d was", seq)
	case c.tooOld(c.Oldest(seq)):
		what = fmt.Sprintf("what leads to record %d was", seq)
	}
	if err := c.Removed(what); what != "" && err != nil {
		return err
	}
	_, err := c.Log.Path(0, seq)
	return errors.Join(fmt.Errorf("%w: no snapshot leads to record %d", format.ErrNotFound, seq), err)
}

// StatesTo returns IDs of states on the path to record seq, as far back as the path is known. The
// result includes every state that has a snapshot. A readable record has the ID of its state. If
// the record is unreadable, StatesTo finds the ID in the next tick, in the header of the next
// segment, or in the snapshot.
func (c *Catalog) StatesTo(seq uint64) map[journal.ID]bool {
	onPath, stored := map[journal.ID]bool{}, map[uint64]bool{}
	for _, s := range c.Snapshots {
		stored[s.ID.Seq] = true
	}
	root := seq
	for e := range c.Log.Ancestors(seq) {
		if stored[e.ID.Seq] && !e.Lost() {
			onPath[e.ID] = true
		}
		if stored[e.Parent] {
			// Without the parent's record, its ID is in the payload of the next tick.
			if _, ok := c.Log.Find(e.Parent); !ok {
				if t, err := c.Read(e); err == nil {
					onPath[t.Parent] = true
				}
			}
		}
		root = e.Parent
	}
	if root == 0 {
		// The path leads back to the base, the first state of the store. Its ID is zero.
		onPath[journal.ID{}] = true
	}
	// For the record before the oldest segment, only the ID is known.
	for _, s := range c.Log.Segments {
		if s.Err == nil && s.Previous.Seq == root {
			onPath[s.Previous] = true
		}
	}
	if _, ok := c.Log.Find(seq); !ok { // The record is lost. Accept every snapshot with its seq.
		for _, s := range c.Snapshots {
			if s.ID.Seq == seq {
				onPath[s.ID] = true
			}
		}
	}
	return onPath
}

// A newestState is the result of [Catalog.Newest].
type newestState struct {
	seq uint64
	err error
}

// Newest returns the record of the newest reachable state. In an intact store, this is the head. If
// the path to the head is damaged, it may be an earlier record. If the journal was cut short, it
// may be the state of a snapshot after the end of the journal. The error is nil only if no newer
// state can be missing or unreachable.
//
// Newest caches its result until files change. In a damaged store it walks all records.
func (c *Catalog) Newest() (seq uint64, err error) {
	c.mu.Lock()
	known := c.newest
	c.mu.Unlock()
	if known == nil {
		seq, err := c.findNewest()
		known = &newestState{seq, err}
		c.setNewest(known)
	}
	return known.seq, known.err
}

// setNewest caches the result of Newest. Nil clears the cache.
func (c *Catalog) setNewest(n *newestState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newest = n
}

// End returns the last record in the journal on the path to the newest state. If the newest state
// is a snapshot after the end of the journal, End returns the head.
func (c *Catalog) End() uint64 {
	newest, _ := c.Newest()
	if _, known := c.Log.Known(newest); known || newest <= c.Log.Last {
		return newest
	}
	return c.Head()
}

// findNewest computes the result of Newest.
func (c *Catalog) findNewest() (seq uint64, err error) {
	head := c.Head()
	if c.IsSave() || len(c.Faults()) == 0 {
		return head, nil
	}
	// Search backwards from target for a state that can be reached. whole has the states with a
	// usable snapshot. If the path ends at an unknown record, LastReachableBefore returns an older
	// target.
	whole, target := map[uint64]bool{}, head
	var usable []SnapshotInfo
	for _, s := range c.Snapshots {
		// If beyond is set, the journal was cut short: this state is newer than all records.
		beyond := c.aheadOfJournal(s)
		if s.Err != nil || !beyond && c.Misfit(s) != nil {
			continue
		}
		if whole[s.ID.Seq], usable = true, append(usable, s); beyond {
			target = max(target, s.ID.Seq)
		}
	}
	last := max(target, c.Log.Last)
	for {
		seq, ok := c.newestOn(target, whole)
		if ok && seq == head && len(c.Log.Segments) > 0 && c.Missing(SnapshotInfo{ID: journal.ID{Seq: seq}}) == nil {
			return head, nil
		}
		if ok && (seq == head || seq == last) {
			return seq, fmt.Errorf("%w: newer states than record %d may be missing", format.ErrCorrupt, seq)
		}
		if ok {
			return seq, fmt.Errorf("%w: of %d records, the newest whose state can be reached is %d", format.ErrCorrupt, last, seq)
		}
		if target, ok = c.LastReachableBefore(target, usable, nil); !ok {
			return head, nil // The caller gets the reason when it loads the head.
		}
	}
}

// LastReachableBefore returns an older record to try if no snapshot leads to record target:
//
//   - If the path back from target has a lost record, the result is the parent of that record.
//   - Otherwise the path ends at an unknown record. The result is the newest earlier record or
//     snapshot whose tick is before the tick of the unknown record. Records in the map bad do not
//     count.
func (c *Catalog) LastReachableBefore(target uint64, snapshots []SnapshotInfo, bad map[uint64]bool) (seq uint64, ok bool) {
	// hole is the unknown record at which the path back from target ends. ticks is the tick of that
	// record plus 1, or MaxUint64 if its tick is unknown. A record has the tick after its parent's
	// tick, or the same tick if it only adds marks.
	hole, ticks := target, uint64(math.MaxUint64)
	for e := range c.Log.Ancestors(target) {
		if e.Lost() {
			return e.Parent, true
		}
		if hole, ticks = e.Parent, e.Tick; e.Flags&format.FlagRepeats != 0 {
			ticks++
		}
	}
	consider := func(at, tick uint64) {
		if at < hole && !bad[at] && (ticks == math.MaxUint64 || tick+2 <= ticks) && (!ok || at > seq) {
			seq, ok = at, true
		}
	}
	for _, e := range c.Log.Entries {
		consider(e.ID.Seq, e.Tick)
	}
	for _, s := range snapshots {
		consider(s.ID.Seq, s.Tick)
	}
	return seq, ok
}

// newestOn returns the newest record on the path to seq whose state can be loaded. The map whole
// has the states with a complete snapshot. newestOn walks back from record seq to the first of
// these states. Records after a lost one are unreachable. If the path has no state with a snapshot,
// newestOn returns the parent of the oldest known record of the path, and false.
//
// In these examples, an arrow leads to the parent of a record, and S marks the states with a
// snapshot. In the last example, record 4 and its parent are unknown:
//
//	1S ◀─ 2 ◀─ 3 ◀─ 4 lost ◀─ 5  ◀─ 6       newestOn(6) is 3, true
//	1S ◀─ 2 ◀─ 3 ◀─ 4 lost ◀─ 5S ◀─ 6       newestOn(6) is 6, true
//	1S ◀─ 2 ◀─ 3    4 unknown ◀─ 5 ◀─ 6     newestOn(6) is 4, false
func (c *Catalog) newestOn(seq uint64, whole map[uint64]bool) (newest uint64, ok bool) {
	stored, root := map[uint64]bool{}, seq
	for id := range c.StatesTo(seq) {
		stored[id.Seq] = whole[id.Seq]
	}
	if newest = seq; stored[seq] {
		return seq, true
	}
	for e := range c.Log.Ancestors(seq) {
		if e.Lost() || c.schemaUnknown(e) {
			newest = e.Parent
		}
		if root = e.Parent; stored[root] {
			return newest, true
		}
	}
	return root, false
}

// schemaUnknown reports whether the schema of e is lost. This needs two conditions: damage hides
// the preamble before e, and the parent of e is in another segment. Otherwise [Catalog.SchemaAfter]
// can use the schema of the parent.
func (c *Catalog) schemaUnknown(e journal.Entry) bool {
	if _, ok := c.Log.PreambleAt(e); ok || c.Log.Hidden(e) == nil {
		return false
	}
	parent, ok := c.Log.Find(e.Parent)
	return !ok || parent.Segment != e.Segment
}

// aheadOfJournal reports whether s is a state after the end of the journal. This is the case if the
// journal was cut short and s does not contradict the rest of it.
func (c *Catalog) aheadOfJournal(s SnapshotInfo) bool {
	return s.ID.Seq > c.Log.Last && (len(c.Log.Segments) == 0 || s.World == c.Log.World)
}

// CandidateSnapshots returns the snapshots from which record seq can be reached, nearest first. It
// includes unreadable snapshots with their errors, so that they are reported.
func (c *Catalog) CandidateSnapshots(seq uint64) []SnapshotInfo {
	onPath := c.StatesTo(seq)
	var bases []SnapshotInfo
	for _, s := range slices.Backward(c.Snapshots) {
		if s.Err == nil && len(c.Log.Segments) > 0 && (s.ID.Seq != seq || !c.aheadOfJournal(s)) {
			s.Err = c.Misfit(s)
		}
		if s.Err != nil || onPath[s.ID] {
			bases = append(bases, s)
		}
	}
	return bases
}

// LoadSnapshot loads the state in s. A bare image contains only what filling a world needs.
func (c *Catalog) LoadSnapshot(ctx context.Context, s SnapshotInfo, bare bool) (*image.Image, snap.PageTable, error) {
	if s.Err != nil {
		return nil, nil, s.Err
	}
	r, err := snap.Open(c.Files, s.Name, SnapshotName)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	table := snap.PageTable{}
	im, err := r.Load(ctx, table, bare)
	return im, table, err
}

// replay applies ticks to im up to record seq, and returns the number of ticks on the path.
func (c *Catalog) replay(ctx context.Context, im *image.Image, seq uint64) (n int, err error) {
	path, err := c.Path(im.ID.Seq, seq)
	if err != nil {
		return 0, err
	}
	err = c.Records(ctx, path, func(_ context.Context, r *Record) error {
		if err := c.Describe(r, im.ID, im.Stored); err != nil {
			return err
		}
		return c.Advance(im, r)
	})
	return len(path), err
}

// Advance applies the tick of r to im. The caller has set the schema of r by Describe.
func (c *Catalog) Advance(im *image.Image, r *Record) error {
	if err := im.Adopt(r.Schema); err != nil {
		return c.EntryError(r.Entry, err)
	}
	if err := im.Apply(r.Decoded, r.ID); err != nil {
		return c.EntryError(r.Entry, err)
	}
	return nil
}

// SameSchemaPath reports whether the records from s to seq use the schema of s. It returns false if
// the store was converted in the state of s: the records then use the schema of another snapshot of
// that state.
func (c *Catalog) SameSchemaPath(s SnapshotInfo, seq uint64) bool {
	if !c.converted() {
		return true
	}
	path, err := c.Log.Path(s.ID.Seq, seq)
	if err != nil || len(path) == 0 {
		return true // The caller gets the error when it replays the path.
	}
	next, err := c.SchemaAt(path[0])
	return err != nil || s.Schema.Differs(next) == nil
}

// converted reports whether the store was converted, that is, whether two snapshots have
// incompatible schemas.
func (c *Catalog) converted() bool {
	var last *format.Schema
	for _, s := range c.Snapshots {
		if s.Schema == nil {
			continue
		}
		if last != nil && last.Differs(s.Schema) != nil {
			return true
		}
		last = s.Schema
	}
	return false
}

// ConvertedImage returns the state to which record e can be applied. This is im if e uses the
// schema of im. Otherwise the store was converted before e, and ConvertedImage loads the snapshot
// with the converted state. If no such snapshot exists, it returns im.
func (c *Catalog) ConvertedImage(ctx context.Context, im *image.Image, e journal.Entry) (*image.Image, error) {
	next, err := c.SchemaAt(e)
	if err != nil || im.Schema == next || im.Stored().Differs(next) == nil {
		return im, nil // The caller gets the error when it applies the tick.
	}
	if s, ok := c.SnapshotUnder(im.ID, next); ok {
		converted, _, err := c.LoadSnapshot(ctx, s, false)
		return converted, err
	}
	return im, nil
}

// SnapshotUnder returns the newest snapshot of state id whose schema is compatible with s. Two
// schemas are compatible if they are equal, or if only one of them has additional components.
func (c *Catalog) SnapshotUnder(id journal.ID, s *format.Schema) (SnapshotInfo, bool) {
	for _, info := range slices.Backward(c.Snapshots) {
		if info.Err == nil && info.ID == id && info.Schema.Differs(s) == nil {
			return info, true
		}
	}
	return SnapshotInfo{}, false
}

// AllDamage returns all damage that is known after a state was loaded: f.Skipped, other unreadable
// snapshots, and [Catalog.Problems].
func (c *Catalog) AllDamage(f *Recovery) []error {
	errs := slices.Clip(f.Skipped)
	for _, s := range c.Snapshots {
		told := func(err error) bool { return strings.Contains(err.Error(), s.Err.Error()) }
		if s.Err != nil && !slices.ContainsFunc(f.Skipped, told) {
			errs = append(errs, s.Err)
		}
	}
	return append(errs, c.Problems()...)
}

// Problems returns irregular names in the store, damage to the journal, and missing snapshots that
// the journal lists.
func (c *Catalog) Problems() (errs []error) {
	errs = append(errs, c.irregular...)
	for _, p := range c.Log.Problems {
		errs = append(errs, p.In(JournalDir))
	}
	return append(errs, c.missingSnapshots()...)
}

// RecoverHead returns the state from which a program continues the store. The parameter at is a
// point in time; "" means the head. The error says why the store must not be continued from that
// state, or from any state.
func (c *Catalog) RecoverHead(ctx context.Context, at string) (*image.Image, *Recovery, error) {
	if err := c.Usable(); err != nil {
		return nil, nil, err
	}
	head := c.Head()
	if at != "" {
		var err error
		if head, err = c.Resolve(at); err != nil {
			return nil, nil, err
		}
	}
	im, f, err := c.Reach(ctx, head, true)
	if err != nil { // Add journal damage that is not mentioned yet.
		state := "the newest state"
		if at != "" {
			state = naming.Shown(at)
		}
		for _, p := range c.Problems() {
			if !strings.Contains(err.Error(), p.Error()) {
				err = errors.Join(err, p)
			}
		}
		return nil, nil, fmt.Errorf("persist: recovering %s: %w", state, err)
	}
	// If at is set, the program abandons all records after that point, so lost records among them
	// do not matter.
	if err := c.Missing(f.Snapshot); err != nil && at == "" {
		return nil, nil, err
	}
	im.DropDead()
	return im, f, nil
}

// CheckOpenable returns the error with which opening the store at its newest state would fail. It
// assumes that the store is not in use and that the program has the right types. It returns nil if
// opening would succeed. It costs as much as opening. If the error is that of ctx, the state of the
// store is unknown.
func (c *Catalog) CheckOpenable(ctx context.Context) error {
	if c.Unfinished() {
		return nil
	}
	if _, _, err := c.RecoverHead(ctx, ""); err != nil {
		return err
	}
	if err := c.Log.Continuable(); err != nil {
		return c.JournalError(err)
	}
	return nil
}

// Unfinished reports whether the creation of the store was interrupted: the journal exists, but the
// base snapshot never got its name. The creation was never acknowledged, so the store may be
// created again over the remains.
func (c *Catalog) Unfinished() bool {
	l := c.Log
	bad := func(s journal.Segment) bool { return s.Err != nil }
	return len(c.Snapshots) == 0 && len(l.Segments) > 0 && !slices.ContainsFunc(l.Segments, bad) && l.Last == 0 && !l.Clean
}

// Usable returns why the store must not be continued, even if its states are readable. Possible
// reasons are a file that is newer than this program, a file of another world, and a journal that
// lost durable records.
func (c *Catalog) Usable() error {
	for _, p := range c.Log.Problems {
		if errors.Is(p, journal.ErrForeign) || errors.Is(p, journal.ErrNewer) {
			return p.In(JournalDir)
		}
	}
	for _, s := range c.Snapshots {
		if err := c.Misfit(s); errors.Is(s.Err, format.ErrNewer) || errors.Is(err, format.ErrCorrupt) {
			return cmp.Or(s.Err, err)
		}
	}
	return nil
}

// Missing returns an error if damage to the journal may hide records that are newer than the
// snapshot and the head. Damage is harmless in two cases:
//
//   - The lost records are not newer than the snapshot. This is certain if the next segment begins
//     at most one record after the snapshot.
//   - The head was written after the damaged bytes, see headBehind.
//
// In this example, records 82 to 89 are lost. A snapshot of record 89 has all of them, but a
// snapshot of record 88 may lack record 89:
//
//	segment 7  | 80 | 81 | damage |   segment 8  | 90 | 91 | …
func (c *Catalog) Missing(base SnapshotInfo) error {
	if d := c.Log.Unsure; d != nil {
		return fmt.Errorf("persist: newer ticks that were durable may be missing; set Options.At to continue without them: %w", d.In(JournalDir))
	}
	for _, p := range c.Log.Problems {
		next := slices.IndexFunc(c.Log.Segments, func(s journal.Segment) bool { return s.After(p.File) })
		covered := next >= 0 && c.Log.Segments[next].First > 0 && c.Log.Segments[next].First <= base.ID.Seq+1
		if !covered && !c.headBehind(p) {
			return fmt.Errorf("persist: ticks that were durable cannot be read; set Options.At to continue without them: %w", p.In(JournalDir))
		}
	}
	return nil
}

// headBehind reports whether the head was written after the damaged bytes of p. The lost records
// are then ancestors of the head, or a rewind has abandoned them. headBehind returns true if the
// head is a readable record after the damage. It also returns true if the store was closed cleanly,
// because the journal then has its final head.
func (c *Catalog) headBehind(p *disk.DamageError) bool {
	if c.Log.Clean {
		return true
	}
	e, ok := c.Log.Find(c.Head())
	if !ok {
		return false
	}
	s := &c.Log.Segments[e.Segment]
	return s.After(p.File) || s.Name == p.File && e.Offset > p.Offset
}
