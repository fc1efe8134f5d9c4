package persist

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// A Retention says how much of the past stays on the disk. What nothing that stays
// needs is removed after the next snapshot: files, and the oldest segments of the
// journal. The zero Retention keeps all of it up to a bound, see Bytes.
//
//	bytes   must stay   asked for   as much of the rest as Bytes lets
//	ticks   newest  <── Last, Ticks, Age <── older ones  ·Every · ·Every ·  names
//
// Whatever it says, these stay: snapshots with a name; the newest one and one
// before it that shares no file with it, so that a damaged file is not the end;
// what leads to the oldest tick of the world's history; and the journal behind
// these. If that is more than Bytes, it stays all the same, and [Keeping.Reason] tells
// what it is. Nothing is removed by a store if damage was found when it was opened.
type Retention struct {
	// Last, Ticks and Age ask for a past: so many of the newest snapshots; as much as
	// going back so many ticks takes; or so long a time, by the clock of the store.
	// With any of them given, what all of them can do without goes, and a branch
	// that was rewound with it. Default 0: they ask for nothing.
	Last  int
	Ticks int
	Age   time.Duration

	// Every keeps, of the older ones, the first of each such period by the clock of
	// the store. Their states can be read, not what lay between. Default 0: none.
	Every time.Duration

	// Bytes is what journal and snapshots are to stay within, whatever is asked for. A
	// quarter of it is left free for what comes until the next snapshot. What goes first
	// is what was not asked for; then snapshots of periods; then what was: the oldest of
	// each first. Segments are at most a 16th of it, and snapshots are taken and made
	// full often enough that 16 times a full snapshot can always be kept.
	//
	// Default: none if Last, Ticks or Age is given. Otherwise the larger of 1 GiB and 16
	// times the largest snapshot; but a store that was larger already when it was opened
	// is left as it is, as whoever kept it so may want it so: see [Report.Kept].
	//
	// Each opening begins a segment of the journal and reads those behind the last snapshot. So if
	// none of Last, Ticks and Age is given, a store has at most about 40 small segments, or one for
	// each MiB of its journal if that is more: the oldest go, however few bytes they have.
	Bytes int64

	// KeepAll keeps all, whatever the others say.
	KeepAll bool
}

const (
	// defaultBound is what a store is to stay within that nobody said anything of.
	defaultBound = 1 << 30

	// shares is how many parts a bound is cut into. One is for a full snapshot, one for
	// the journal between two snapshots, one for a segment of it, one for what is
	// journaled while a snapshot is copied. A bound of so many full snapshots can be kept.
	shares = 16

	// minShare is the least that a part is, however small the bound.
	minShare = 4 << 10

	// minChain is how many snapshots are made between two full ones that only what is
	// asked for makes due.
	minChain = 3

	defaultSegment = 64 << 20 // As in package journal.
	minSegment     = 1 << 20  // Of a store without a bound.
)

// asks reports whether r asks for a certain past, and so lets what is older go.
func (r Retention) asks() bool { return r.Last > 0 || r.Ticks > 0 || r.Age > 0 }

// unset reports whether the bound of r is the default one.
func (r Retention) unset() bool { return !r.asks() && r.Bytes <= 0 && !r.KeepAll }

// bound returns what a store whose largest snapshot has that many bytes is to stay
// within; 0: there is no bound.
func (o *Options) bound(largest int64) int64 {
	switch {
	case o.Retain.KeepAll:
		return 0
	case o.Retain.unset():
		return max(cmp.Or(o.leastBound, defaultBound), shares*largest)
	}
	return max(0, o.Retain.Bytes)
}

// A Keeping says what a store keeps, and why.
type Keeping struct {
	Bytes  int64  // Of journal and snapshots,
	Bound  int64  // which are to stay within this; 0: there is no bound.
	Record uint64 // Each state from this record on can be gone back to,
	Tick   uint64 // which is this tick.
	Reason string // Why this much is kept, for people; if it is more than Bound, why that.
}

// String returns what is kept, and why, in a line.
func (k Keeping) String() string {
	bound := ""
	if k.Bound > 0 {
		bound = " of " + size(k.Bound)
	}
	return fmt.Sprintf("%s%s, back to tick %d: %s", size(k.Bytes), bound, k.Tick, k.Reason)
}

// size returns a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}

// A storedSnapshot is what a store knows of one of its snapshot files.
type storedSnapshot struct {
	catalog.SnapshotInfo
	onHead bool   // The newest state comes from it.
	next   uint64 // The record that continues it on the way there; 0: the one behind it, if any.
}

// from returns the record that the journal has to begin with, at the latest, if ticks are
// to lead on from s.
func (s *storedSnapshot) from() uint64 { return max(s.next, s.ID.Seq+1) }

// names reports whether file number n has the snapshot or pages of it.
func (s *storedSnapshot) names(n uint32) bool {
	return s.Number == n || slices.ContainsFunc(s.Refs, func(f format.FileRef) bool { return f.Number == n })
}

// apart reports whether s and other have no file in common, and s is no state from
// before a conversion: ticks do not lead across that.
func (s *storedSnapshot) apart(other *storedSnapshot) bool {
	if s.Schema != nil && other.Schema != nil && s.Schema.Differs(other.Schema) != nil {
		return false
	}
	return !other.names(s.Number) && !slices.ContainsFunc(s.Refs, func(f format.FileRef) bool { return other.names(f.Number) })
}

// A past is what there is to choose from.
type past struct {
	list    []storedSnapshot // In the order in which they were made.
	newest  uint64           // The record of the state to go on from,
	oldest  uint64           // and of the oldest tick that the world can go back to.
	journal []segmentSize
	small   int64 // Segments of fewer bytes are small.
}

// A segmentSize is what a choice has to know of a segment of the journal.
type segmentSize struct {
	first uint64 // The seq that it begins with; 0: not known.
	bytes int64
}

// sizesOf returns what the journal consists of, oldest first.
func sizesOf(j *journal.Journal) (sizes []segmentSize) {
	for first, bytes := range j.Segments() {
		sizes = append(sizes, segmentSize{first, bytes})
	}
	return sizes
}

// since returns the segments that stay if all is removed that is older than record seq.
func (p *past) since(seq uint64) []segmentSize {
	for i := len(p.journal) - 1; i > 0; i-- {
		if first := p.journal[i].first; first > 0 && first <= seq {
			return p.journal[i:]
		}
	}
	return p.journal
}

// bytesOf returns how many bytes segments have.
func bytesOf(segments []segmentSize) (bytes int64) {
	for _, s := range segments {
		bytes += s.bytes
	}
	return bytes
}

// bases returns the snapshots of states that the newest one comes from, newest first.
func (p *past) bases() (bases []*storedSnapshot) {
	for i := range slices.Backward(p.list) {
		if s := &p.list[i]; s.onHead && !p.ahead(s) {
			bases = append(bases, s)
		}
	}
	slices.SortStableFunc(bases, func(a, b *storedSnapshot) int { return cmp.Compare(b.ID.Seq, a.ID.Seq) })
	return bases
}

// ahead reports whether s is of a state that the world went back from, but did not go on
// from yet: it is still what a crash leads to.
func (p *past) ahead(s *storedSnapshot) bool {
	return s.onHead && s.ID.Seq > p.newest
}

// largest returns how many bytes the largest snapshot has.
func (p *past) largest() (bytes int64) {
	for i := range p.list {
		bytes = max(bytes, p.list[i].Size)
	}
	return bytes
}

// second returns the index of the newest of bases that shares no file with the first;
// -1: there is none.
func second(bases []*storedSnapshot) int {
	return slices.IndexFunc(bases, func(s *storedSnapshot) bool { return s.apart(bases[0]) })
}

// asked returns the index of the oldest of bases that r asks for, which is beyond the last
// one if r asks for more than there is.
func (r Retention) asked(bases []*storedSnapshot) (oldest int) {
	if !r.asks() {
		return len(bases) - 1
	}
	newest := bases[0]
	need := func(enough func(s *storedSnapshot) bool) {
		i := slices.IndexFunc(bases, enough)
		if i < 0 {
			i = len(bases)
		}
		oldest = max(oldest, i)
	}
	if r.Last > 0 {
		oldest = min(r.Last-1, len(bases))
	}
	if r.Ticks > 0 {
		need(func(s *storedSnapshot) bool { return s.Tick+uint64(r.Ticks) <= newest.Tick })
	}
	if r.Age > 0 {
		need(func(s *storedSnapshot) bool { return newest.Time.Sub(s.Time) >= r.Age })
	}
	return oldest
}

// A pruning is what may be removed once a snapshot has its name, and why the rest stays.
type pruning struct {
	files   []uint32 // Newest first: what refers goes before what is referred to.
	journal uint64   // Records before this one; 0: none.
	keeping Keeping
}

// A choice is what stays of a past. Less and less can be chosen, one step after the other,
// until only what must stay is left:
//
//	step   0 ............. surplus ........... periods ............ steps
//	       all              what was asked      without periods      what must stay
type choice struct {
	past
	bases   []*storedSnapshot // Newest first.
	oldest  int               // Index of the oldest base at step 0.
	musts   []*storedSnapshot // With the journal behind them.
	periods []*storedSnapshot // Oldest first.
	all     bool              // Nothing is asked for: all stays that can.
}

// steps returns how many steps there are.
func (c *choice) steps() int { return c.oldest + len(c.periods) }

// at returns what stays at a step: snapshots that are kept as they are or for their
// pages, by their number, and the first record that the journal is kept from.
func (c *choice) at(step int) (kept map[uint32]bool, from uint64) {
	bases, periods := min(step, c.oldest), max(0, step-c.oldest)
	if !c.all {
		periods = min(step, len(c.periods))
		bases = step - periods
	}
	oldest := c.bases[c.oldest-bases]
	stay := slices.Concat(c.bases[:c.oldest-bases+1], c.musts)
	kept, from = make(map[uint32]bool), oldest.from()
	for _, s := range stay {
		kept[s.Number], from = true, min(from, s.from())
	}
	for _, s := range c.periods[periods:] {
		kept[s.Number] = true
	}
	for i := range slices.Backward(c.list) {
		s := &c.list[i]
		if s.Label != "" || c.ahead(s) || c.all && (step == 0 || s.ID.Seq >= oldest.from()) {
			kept[s.Number] = true
		}
		if kept[s.Number] {
			for _, f := range s.Refs { // It stays a snapshot that can be read.
				kept[f.Number] = true
			}
		}
	}
	return kept, from
}

// bytes returns what stays on the disk at a step.
func (c *choice) bytes(step int) int64 {
	kept, from := c.at(step)
	bytes := bytesOf(c.since(from))
	for i := range c.list {
		if kept[c.list[i].Number] {
			bytes += c.list[i].Size
		}
	}
	return bytes
}

// fits reports whether what stays at a step leaves a quarter of the bound free and has few
// segments. What was asked for may have any number of segments.
func (c *choice) fits(step int, bound int64) bool {
	_, from := c.at(step)
	return c.bytes(step) <= bound-bound/4 && (!c.all || !tooMany(c.since(from), c.small, maxSegments))
}

// plan returns what r lets be removed of p, and what is kept then.
func (r Retention) plan(p past, bound int64) pruning {
	bases := p.bases()
	if len(bases) == 0 {
		return pruning{keeping: Keeping{Bound: bound, Reason: "no snapshot leads to the newest state"}}
	}
	asked := r.asked(bases)
	c := &choice{past: p, bases: bases, oldest: min(asked, len(bases)-1), all: !r.asks()}
	apart := second(bases)
	lead := slices.IndexFunc(bases, func(s *storedSnapshot) bool { return s.ID.Seq <= p.oldest })
	if r.KeepAll || lead < 0 {
		return c.whole(bound, r.KeepAll, apart)
	}
	if apart < 0 {
		return c.withoutEmpty(c.whole(bound, false, apart))
	}
	c.musts, c.periods = []*storedSnapshot{bases[apart], bases[lead]}, r.ofPeriods(bases)
	step := 0
	if bound > 0 {
		step = sort.Search(c.steps(), func(step int) bool { return c.fits(step, bound) })
	}
	if step == 0 && c.all {
		return c.withoutEmpty(c.whole(bound, false, apart))
	}
	kept, from := c.at(step)
	pruned := pruning{journal: from}
	for _, s := range slices.Backward(p.list) {
		if !kept[s.Number] {
			pruned.files = append(pruned.files, s.Number)
		}
	}
	pruned.keeping = c.keeping(step, bound)
	pruned.keeping.Reason = c.reason(step, &pruned.keeping)
	if step == 0 && (asked == len(bases) || pruned.keeping.Record > bases[asked].ID.Seq) {
		pruned.keeping.Reason = "all there is, as Retain asks for more"
	}
	return pruned
}

// whole is the pruning that removes nothing.
func (c *choice) whole(bound int64, asked bool, apart int) pruning {
	c.all, c.oldest = true, len(c.bases)-1
	k := c.keeping(0, bound)
	switch {
	case asked:
		k.Reason = "all, as Retain.KeepAll says"
	case apart < 0:
		k.Reason = "all, as there are no two snapshots yet that share no file"
	case k.Record > 0 && k.Bytes < bound/2: // Older ticks went before, and not for their bytes.
		k.Reason = asMany
	case k.Record > 0 && bound > 0:
		k.Reason = asMuch
	default:
		k.Reason = "all there is"
	}
	return pruning{keeping: k}
}

// withoutEmpty adds to a pruning that removes nothing the segments before the oldest snapshot, if
// there are many: openings without a tick leave such.
func (c *choice) withoutEmpty(p pruning) pruning {
	if _, from := c.at(0); tooMany(c.journal, c.small, segmentsBehind) && len(c.since(from)) < len(c.journal) {
		p.journal = from
	}
	return p
}

// keeping says what stays at a step, but not why.
func (c *choice) keeping(step int, bound int64) Keeping {
	k := Keeping{Bytes: c.bytes(step), Bound: bound}
	kept, from := c.at(step)
	segments := c.since(from)
	for _, s := range slices.Backward(c.bases) {
		if kept[s.Number] && (len(segments) == 0 || segments[0].first <= s.from()) {
			k.Record, k.Tick = s.ID.Seq, s.Tick
			break
		}
	}
	return k
}

// reason says why that much is kept at a step.
func (c *choice) reason(step int, k *Keeping) string {
	switch {
	case k.Bound == 0 || step == 0:
		return "what Retain asks for"
	case k.Bytes <= k.Bound && c.all && c.bytes(step-1) <= k.Bound-k.Bound/4:
		return asMany
	case k.Bytes <= k.Bound:
		return asMuch
	}
	named := *c
	named.list = slices.Clone(c.list)
	for i := range named.list {
		named.list[i].Label = ""
	}
	apart, lead := c.musts[0], c.musts[1]
	switch {
	case named.bytes(step) <= k.Bound:
		return "snapshots with a name stay, whatever the bound"
	case lead.ID.Seq < apart.ID.Seq && k.Bytes-bytesOf(c.since(lead.from()))+bytesOf(c.since(apart.from())) <= k.Bound:
		return "what leads to the oldest tick of the world's history stays, whatever the bound"
	}
	return "two snapshots that share no file stay, with the journal behind them, whatever the bound"
}

// ofPeriods returns the first snapshot of each period.
func (r Retention) ofPeriods(bases []*storedSnapshot) (first []*storedSnapshot) {
	if r.Every <= 0 {
		return nil
	}
	last := time.Time{}
	for _, s := range slices.Backward(bases) {
		if period := s.Time.Truncate(r.Every); first == nil || !period.Equal(last) {
			first, last = append(first, s), period
		}
	}
	return first
}

// promise returns what the journal says of the snapshots in list that stay.
func (p *pruning) promise(list []storedSnapshot) []byte {
	var stay []catalog.SnapshotInfo
	for _, s := range list {
		if !slices.Contains(p.files, s.Number) {
			stay = append(stay, s.SnapshotInfo)
		}
	}
	return catalog.Promise(stay)
}

// prune removes what p says, each removal durable before the next, for as long as
// the store is the one's whose lock that is.
func (p *pruning) prune(files disk.FS, j *journal.Journal, l *catalog.Lock) (removed []string, err error) {
	for _, number := range p.files {
		name := catalog.SnapshotName(number)
		if err := l.Check(); err != nil {
			return removed, fmt.Errorf("persist: prune %s: %w", name, err)
		}
		if err := files.Remove(name); err != nil {
			return removed, fmt.Errorf("persist: prune: %w", err)
		}
		removed = append(removed, name)
		if err := disk.SyncDir(files, catalog.SnapshotDir); err != nil {
			return removed, fmt.Errorf("persist: prune %s: %w", name, err)
		}
	}
	if p.journal == 0 {
		return removed, nil
	}
	segments, err := j.Prune(p.journal)
	for _, name := range segments {
		removed = append(removed, catalog.JournalDir+"/"+name)
	}
	return removed, err
}

// mayPrune reports whether what Retain lets go may be removed now. Damage is not made worse.
// Where Open or Goto went to an older state and nothing continues it yet, a crash leads to the
// newest one: what leads there is not known to be needed, and stays.
func (s *Store) mayPrune() bool {
	return !s.damaged && !s.asFound && (!s.older || s.first > 0 && s.journal.Next() > s.first)
}

// pruneNow removes what Retain lets go of a store that was just opened, without waiting for
// the next snapshot.
func (s *Store) pruneNow() {
	if !s.mayPrune() {
		return
	}
	from := past{s.list, s.head, s.head, sizesOf(s.journal), s.smallSegment()}
	p := s.options.Retain.plan(from, s.options.bound(from.largest()))
	var removed []string
	err := s.journal.KeepNote(p.promise(s.list))
	if err == nil {
		s.watch.expect(sizesByNumber(s.list, p.files...))
		removed, err = p.prune(s.files, s.journal, s.lock)
	}
	if err != nil {
		p.keeping.Reason = removeFailed
	}
	s.pruned(bytesAmong(s.list, removed), &p.keeping)
	s.forget(removed, &p.keeping)
}

// forget takes the files that were removed from what the store knows; k is what is kept
// since, nil if nothing was decided.
func (s *snapshotter) forget(removed []string, k *Keeping) {
	s.list = slices.DeleteFunc(s.list, func(o storedSnapshot) bool { return o.among(removed) })
	if k != nil {
		s.bound = k.Bound
	}
}

// among reports whether files have that of s.
func (s *storedSnapshot) among(files []string) bool {
	return slices.Contains(files, catalog.SnapshotName(s.Number))
}

// bytesAmong returns how many bytes those of list have that are among files.
func bytesAmong(list []storedSnapshot, files []string) (bytes int64) {
	for i := range list {
		if list[i].among(files) {
			bytes += list[i].Size
		}
	}
	return bytes
}

// branched notes that the next record continues an older one than the last.
func (s *Store) branched(parent, last uint64) {
	s.parted(parent, last)
	for i := range s.list {
		switch seq := s.list[i].ID.Seq; {
		case seq > parent:
			s.list[i].onHead = false
		case seq == parent:
			s.list[i].next = last + 1
		}
	}
	for _, c := range []*copying{s.copying, s.handed} {
		switch {
		case c == nil:
		case c.Manifest.ID.Seq > parent:
			c.offHead = true
		case c.Manifest.ID.Seq == parent:
			c.next = last + 1
		}
	}
}

// storedSnapshots returns what a store whose newest state is that of record head knows of
// the snapshots in c.
func storedSnapshots(c *catalog.Catalog, head uint64) (list []storedSnapshot) {
	stored, next := map[uint64]bool{}, map[uint64]uint64{head: 0} // By the record that it continues.
	for _, s := range c.Snapshots {
		stored[s.ID.Seq] = true
	}
	for e := range c.Log.Ancestors(head) {
		if stored[e.Parent] {
			next[e.Parent] = e.ID.Seq
		}
	}
	for _, s := range c.Snapshots {
		if s.Err == nil && c.Misfit(s) == nil {
			seq, onHead := next[s.ID.Seq]
			list = append(list, storedSnapshot{SnapshotInfo: s, onHead: onHead, next: seq})
		}
	}
	return list
}

// removeTemps removes snapshot files whose writers have ended before they were complete.
func (s *Store) removeTemps() error {
	if err := s.lock.Check(); err != nil { // Else the files may be those of the new owner.
		return err
	}
	return disk.RemoveTemps(s.files, catalog.SnapshotDir, func(temp string) bool {
		name, ok := disk.TempOf(temp)
		if !ok { // An earlier version called it so.
			name, ok = strings.CutSuffix(temp, catalog.TempType)
		}
		return ok && strings.HasSuffix(name, catalog.SnapshotType)
	})
}

// free returns an error if a snapshot has that name.
func (s *snapshotter) free(name string) error {
	for _, o := range s.list {
		if o.Label == name {
			return fmt.Errorf("%w: snapshot %d is called %q already", ErrName, o.Number, name)
		}
	}
	return nil
}
