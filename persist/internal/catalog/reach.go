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

	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// A state is reached from a snapshot, and the records behind it:
//
//	Bases     snapshots on the way from the oldest record to seq, nearest first
//	Reach     the first of them that loads whole, with the ticks of Path replayed on it
//	Load, At  the same as a program would see it, for who does not go on from there
//
// Where something is damaged, three questions come before that:
//
//	Newest    of which record, as near to the head as can be, is there still the state?
//	Usable    may the store be written at all?
//	Missing   may it be continued from its head, or can ticks be lost that were durable?
//
// What was converted since has states of two schemas: a snapshot before it and one of the same state
// after it, which no tick leads to. Leads, Across and SnapshotUnder choose between the two.

// A Found says how a state was reached.
type Found struct {
	Snapshot SnapshotInfo
	Replayed int            // Ticks.
	Skipped  []error        // Why newer snapshots were not used.
	Table    snap.PageTable // Of the snapshot, for the next one to share pages with.
}

// At returns the state after the record seq; 0 is the oldest state of the store.
// It is reached from the nearest snapshot among its ancestors.
//
// If the program that has the store open removed files since, At looks for other
// ways to the state; if there is none any more, the error wraps [format.ErrNotFound].
func (c *Catalog) At(ctx context.Context, seq uint64) (im *image.Image, err error) {
	err = c.Persevere(ctx, func() error {
		im, _, err = c.Load(ctx, seq, false)
		return err
	})
	return im, err
}

// Persevere calls f again if it fails and the files that there are have changed: what f
// was reading may have been removed, and another snapshot may lead to the same state. A file
// that vanished between two listings is a change that they do not show. After
// [MaxListings] it gives up, as a program may remove files faster than f reads them.
func (c *Catalog) Persevere(ctx context.Context, f func() error) error {
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

// Pursue calls f, which goes to what is newest, again if it does not find something and the files that
// there are have changed: what f was going to read may have been removed, and c is brought up to date
// then, so that f finds its way anew. Where all files that c knew are still there, what is missing is
// missing. After [MaxListings] it gives up.
//
// That is for who follows a store. Who asks for a certain state perseveres.
func (c *Catalog) Pursue(ctx context.Context, f func() error) error {
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

// Load returns the state after record seq as a program would see it, and how it got
// there; if files vanish meanwhile, it fails. If bare is set and no ticks are to be
// replayed, the image is a bare one.
func (c *Catalog) Load(ctx context.Context, seq uint64, bare bool) (*image.Image, *Found, error) {
	im, f, err := c.Reach(ctx, seq, bare)
	if err == nil {
		im.DropDead()
	}
	return im, f, err
}

// Reach returns the state after record seq for ticks to follow: dead entities still have
// what does not rewind, which a later tick may name. It tries the snapshots on the way,
// nearest first. The first that loads is the one: if the ticks behind it do not lead to
// seq, no older one would help, since the same ticks follow it.
func (c *Catalog) Reach(ctx context.Context, seq uint64, bare bool) (*image.Image, *Found, error) {
	f := new(Found)
	for _, s := range c.Bases(seq) {
		if s.Err == nil && !c.Leads(s, seq) {
			continue // The same state is there a second time, under the schema of the ticks behind it.
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
			return nil, f, err // The snapshot is none the worse for it.
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
	for _, s := range slices.Backward(c.Bases(seq)) {
		if _, err := c.Log.Path(s.ID.Seq, seq); s.Err == nil && err == nil {
			return s, true
		}
	}
	return SnapshotInfo{}, false
}

// Removed says that what a text describes was removed, as retention asked, and what the
// oldest state is that is still there; nil if nothing was. Of a damaged store nobody
// knows.
func (c *Catalog) Removed(what string) error {
	oldest, ok := c.OldestBase(c.End())
	if !ok || oldest.ID.Seq == 0 || c.IsSave() || len(c.Damage()) > 0 {
		return nil
	}
	return fmt.Errorf("%w: %s pruned; the oldest is record %d, tick %d", format.ErrNotFound, what, oldest.ID.Seq, oldest.Tick)
}

// tooOld reports whether record seq is older than all that leads to the newest state.
func (c *Catalog) tooOld(seq uint64) bool {
	oldest, ok := c.OldestBase(c.End())
	return ok && seq < oldest.ID.Seq
}

// Unreachable says that no snapshot leads to record seq, and what is missing on
// the way.
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

// StatesTo returns the states on the way to record seq that there are snapshots of, as far
// back as the way is known. They go by their IDs, not by seqs alone, of which a damaged
// journal may have given one twice.
//
// Where the record of a state cannot be read, its ID is taken from who else knows it: the payload
// of the tick that continues it, the header of the segment behind it, or the snapshot itself.
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
			if _, ok := c.Log.Find(e.Parent); !ok { // Damaged: who continued it knew its ID.
				if t, err := c.Read(e); err == nil {
					onPath[t.Parent] = true
				}
			}
		}
		root = e.Parent
	}
	if root == 0 {
		onPath[journal.ID{}] = true // The base, unless the way to it was pruned.
	}
	for _, s := range c.Log.Segments { // The record before the oldest segment is known by its ID only.
		if s.Err == nil && s.Previous.Seq == root {
			onPath[s.Previous] = true
		}
	}
	if _, ok := c.Log.Find(seq); !ok { // The journal holds nothing to compare with.
		for _, s := range c.Snapshots {
			if s.ID.Seq == seq {
				onPath[s.ID] = true
			}
		}
	}
	return onPath
}

// A newestState is what [Catalog.Newest] returns.
type newestState struct {
	seq uint64
	err error
}

// Newest returns the record of the newest state that can be reached: the head, unless what
// leads there is damaged, or a whole snapshot of a newer state, if the journal was cut short.
// The error says that newer ones cannot be reached, or only shown; nil: it is the head.
//
// It is found once, and again after the files have changed. Of a damaged store that takes a walk
// through the records.
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

// setNewest keeps what Newest found; nil: it has to be found again.
func (c *Catalog) setNewest(n *newestState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newest = n
}

// End returns the record at which the way to the newest state ends, as far as the journal has it: the
// newest state, or the head if the journal was cut short before the newest state.
func (c *Catalog) End() uint64 {
	newest, _ := c.Newest()
	if _, known := c.Log.Known(newest); known || newest <= c.Log.Last {
		return newest
	}
	return c.Head()
}

// findNewest finds what Newest returns.
func (c *Catalog) findNewest() (seq uint64, err error) {
	head := c.Head()
	if c.IsSave() || len(c.Faults()) == 0 {
		return head, nil
	}
	// From target backwards: newestOn looks as far as the way is known, and Before finds where to go
	// on behind a hole. Either finds one or goes further back, so the loop ends.
	whole, target := map[uint64]bool{}, head
	var usable []SnapshotInfo
	for _, s := range c.Snapshots {
		beyond := c.beyond(s) // The journal was cut short: this state is newer than all it has.
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
		if target, ok = c.Before(target, usable, nil); !ok {
			return head, nil // Asking for it tells why.
		}
	}
}

// Before returns the record to try when nothing leads to record target, always an older one: the
// parent of the first record on the way back from it that is lost. If that is not known, it is the
// last one before it that can have been: the tick that the lost one had is known, and its parent has the tick
// before, or an older one. States of snapshots count as well. It is none of bad.
func (c *Catalog) Before(target uint64, snapshots []SnapshotInfo, bad map[uint64]bool) (seq uint64, ok bool) {
	// hole is the first record of which nothing is known, ticks the tick of the one behind it.
	hole, ticks := target, uint64(math.MaxUint64)
	for e := range c.Log.Ancestors(target) {
		if e.Lost() {
			return e.Parent, true
		}
		hole, ticks = e.Parent, e.Tick
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

// newestOn returns the newest record on the way to seq that one of the snapshots leads to,
// or else the record that the way begins behind. It goes from seq back to the first of whole,
// and on the way, each record that cannot be replayed makes its parent the newest: what comes
// behind a hole is not reached, whatever of it can be read.
//
//	1S ◀─ 2 ◀─ 3 ◀─ 4 lost ◀─ 5  ◀─ 6    newestOn(6) is 3; S is a whole snapshot of that state
//	1S ◀─ 2 ◀─ 3 ◀─ 4 lost ◀─ 5S ◀─ 6    is 6
//	1S ◀─ 2 ◀─ 3    (4)       5  ◀─ 6    is none, as nothing is known of 4; Before(6) is 3
func (c *Catalog) newestOn(seq uint64, whole map[uint64]bool) (newest uint64, ok bool) {
	stored, root := map[uint64]bool{}, seq
	for id := range c.StatesTo(seq) {
		stored[id.Seq] = whole[id.Seq]
	}
	if newest = seq; stored[seq] {
		return seq, true
	}
	for e := range c.Log.Ancestors(seq) {
		if e.Lost() || c.opaque(e) {
			newest = e.Parent
		}
		if root = e.Parent; stored[root] {
			return newest, true
		}
	}
	return root, false
}

// opaque reports whether no schema of e is left, and none of a state before it in its segment,
// see [Catalog.SchemaAfter].
func (c *Catalog) opaque(e journal.Entry) bool {
	if _, ok := c.Log.PreambleAt(e); ok || c.Log.Hidden(e) == nil {
		return false
	}
	parent, ok := c.Log.Find(e.Parent)
	return !ok || parent.Segment != e.Segment
}

// beyond reports whether s is of a state that the journal had and has no longer, so that
// nothing can be said against it but that.
func (c *Catalog) beyond(s SnapshotInfo) bool {
	return s.ID.Seq > c.Log.Last && (len(c.Log.Segments) == 0 || s.World == c.Log.World)
}

// Bases returns the snapshots that record seq can be reached from, nearest
// first; those that cannot be read come in order, so that they are reported.
func (c *Catalog) Bases(seq uint64) []SnapshotInfo {
	onPath := c.StatesTo(seq)
	var bases []SnapshotInfo
	for _, s := range slices.Backward(c.Snapshots) {
		if s.Err == nil && len(c.Log.Segments) > 0 && (s.ID.Seq != seq || !c.beyond(s)) {
			s.Err = c.Misfit(s)
		}
		if s.Err != nil || onPath[s.ID] {
			bases = append(bases, s)
		}
	}
	return bases
}

// LoadSnapshot loads the state in s. A bare image has what filling a world takes, and no
// more.
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

// replay brings im forward to record seq.
func (c *Catalog) replay(ctx context.Context, im *image.Image, seq uint64) (n int, err error) {
	path, err := c.Path(im.ID.Seq, seq)
	if err != nil {
		return 0, err
	}
	err = c.Records(ctx, path, func(_ context.Context, r *Record) error { return c.step(im, r) })
	return len(path), err
}

// Step applies the tick of record e to im.
func (c *Catalog) Step(im *image.Image, e journal.Entry) error { return c.step(im, c.Record(e)) }

// step applies the tick of r to im.
func (c *Catalog) step(im *image.Image, r *Record) error {
	if err := c.Describe(r, im.ID, im.Stored); err != nil {
		return err
	}
	return c.Advance(im, r)
}

// Advance applies the tick of r, which was described, to im.
func (c *Catalog) Advance(im *image.Image, r *Record) error {
	if err := im.Adopt(r.Schema); err != nil {
		return c.EntryError(r.Entry, err)
	}
	if err := im.Apply(r.Says, r.ID); err != nil {
		return c.EntryError(r.Entry, err)
	}
	return nil
}

// Leads reports whether the records that lead from s to seq continue its schema.
// Those of a state that was converted afterwards, or before, do not.
func (c *Catalog) Leads(s SnapshotInfo, seq uint64) bool {
	if !c.converted() {
		return true
	}
	path, err := c.Log.Path(s.ID.Seq, seq)
	if err != nil || len(path) == 0 {
		return true // Replay tells.
	}
	next, err := c.SchemaAt(path[0])
	return err != nil || s.Schema.Differs(next) == nil
}

// converted reports whether the snapshots of the store have schemas that do not continue
// each other.
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

// Across returns im if record e continues its schema, and otherwise the snapshot
// of the same state that was converted to the schema of e, if there is one.
func (c *Catalog) Across(ctx context.Context, im *image.Image, e journal.Entry) (*image.Image, error) {
	next, err := c.SchemaAt(e)
	if err != nil || im.Schema == next || im.Stored().Differs(next) == nil {
		return im, nil // The step tells.
	}
	if s, ok := c.SnapshotUnder(im.ID, next); ok {
		converted, _, err := c.LoadSnapshot(ctx, s, false)
		return converted, err
	}
	return im, nil
}

// SnapshotUnder returns the newest snapshot of a state whose schema and s continue
// each other.
func (c *Catalog) SnapshotUnder(id journal.ID, s *format.Schema) (SnapshotInfo, bool) {
	for _, info := range slices.Backward(c.Snapshots) {
		if info.Err == nil && info.ID == id && info.Schema.Differs(s) == nil {
			return info, true
		}
	}
	return SnapshotInfo{}, false
}

// AllDamage returns all damage that is known once a state was reached by f: what led to f.Skipped,
// snapshots that were not needed and cannot be read, and [Catalog.Problems].
func (c *Catalog) AllDamage(f *Found) []error {
	errs := slices.Clip(f.Skipped)
	for _, s := range c.Snapshots {
		told := func(err error) bool { return strings.Contains(err.Error(), s.Err.Error()) }
		if s.Err != nil && !slices.ContainsFunc(f.Skipped, told) {
			errs = append(errs, s.Err)
		}
	}
	return append(errs, c.Problems()...)
}

// Problems returns what is a link in the place of a file or directory of the store, the damage to the
// journal, and the snapshots that it says are missing.
func (c *Catalog) Problems() (errs []error) {
	errs = append(errs, c.irregular...)
	for _, p := range c.Log.Problems {
		errs = append(errs, p.In(JournalDir))
	}
	return append(errs, c.missed()...)
}

// Continued returns the state that a program which opens the store goes on from: that of the
// head, or of the point at. The error says why the store must not be continued, or not from
// there.
func (c *Catalog) Continued(ctx context.Context, at string) (*image.Image, *Found, error) {
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
	im, f, err := c.Load(ctx, head, true)
	if err != nil { // Who is told that the state is lost is told of the damage as well, each once.
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
	if err := c.Missing(f.Snapshot); err != nil && at == "" { // Else what follows is given up anyway.
		return nil, nil, err
	}
	return im, f, nil
}

// Refusal returns why opening the store to go on from its newest state would be refused, if
// nobody has it open and the program has its types; nil: it would not be. It costs what
// opening does. An error of ctx says nothing of the store.
func (c *Catalog) Refusal(ctx context.Context) error {
	if c.Unfinished() {
		return nil
	}
	if _, _, err := c.Continued(ctx, ""); err != nil {
		return err
	}
	if err := c.Log.Continuable(); err != nil {
		return c.JournalError(err)
	}
	return nil
}

// Unfinished reports whether the creation of the store was cut short, once or
// several times: there is a journal, but the base never got its name. Nobody was told
// that there is a store, so that it may be created again over what is left.
func (c *Catalog) Unfinished() bool {
	l := c.Log
	bad := func(s journal.Segment) bool { return s.Err != nil }
	return len(c.Snapshots) == 0 && len(l.Segments) > 0 && !slices.ContainsFunc(l.Segments, bad) && l.Last == 0 && !l.Clean
}

// Usable returns why the store must not be continued, whatever can be recovered:
// something in it is newer than this program or of another world, or its journal
// lost what was durable.
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

// Missing returns the damage to the journal that something newer than the
// snapshot and the head may have been lost in. Damage is harmless if the next segment
// begins no later than behind the snapshot, which then has all that was lost, or if the
// head was chosen after it.
//
//	segment 7  | 80 | 81 | damage |   segment 8  | 90 | 91 | …
//	snapshot of 89 or later: what was lost is no newer than that; of 88: 89 may be lost
//
// Of a store that is closed in good order, or whose head lies behind the damage, the program itself
// said afterwards what is its newest state.
func (c *Catalog) Missing(base SnapshotInfo) error {
	if d := c.Log.Unsure; d != nil {
		return fmt.Errorf("persist: newer ticks that were durable may be missing; Options.At goes on without them: %w", d.In(JournalDir))
	}
	for _, p := range c.Log.Problems {
		next := slices.IndexFunc(c.Log.Segments, func(s journal.Segment) bool { return s.After(p.File) })
		covered := next >= 0 && c.Log.Segments[next].First > 0 && c.Log.Segments[next].First <= base.ID.Seq+1
		if !covered && !c.headBehind(p) {
			return fmt.Errorf("persist: ticks that were durable cannot be read; Options.At goes on without them: %w", p.In(JournalDir))
		}
	}
	return nil
}

// headBehind reports whether the head was chosen after what p concerns was
// written. If the way to the head can be read, what was lost there was rewound.
func (c *Catalog) headBehind(p *journal.DamageError) bool {
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
