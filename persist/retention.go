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

// A Retention says how much old data stays on the disk. After each snapshot, the store removes the
// snapshot files and the oldest journal segments that are not needed. The zero Retention keeps
// everything up to a bound, see Bytes.
//
// Last, Ticks and Age request the newest data, and the store removes older data. Without a request,
// all data up to Bytes stays. In both cases, single older snapshots stay: slots, and one snapshot
// for each period of Every.
//
// Some data always stays, whatever the Retention says:
//
//   - slots: see [Store.SaveSlot]
//   - the newest snapshot, and an older one that shares no file with it, so that one damaged file
//     is not fatal
//   - the base of the oldest tick of the world's history
//   - the journal after these snapshots
//
// If this data takes more than Bytes, it stays nevertheless, and [RetentionStatus.Reason] says why.
// A store that was found damaged when it was opened is not pruned.
type Retention struct {
	// Last, Ticks and Age request old data. Last is a number of newest snapshots, Ticks a number of
	// newest ticks, and Age a duration by the clock of the store. If any of them is set, the store
	// keeps what they request and removes older data, with abandoned branches. The default 0 means
	// no request.
	Last  int
	Ticks int
	Age   time.Duration

	// Every is a period by the clock of the store. The store keeps the first snapshot of each
	// period, however old it is. These states can be read, but not the ticks between them. The
	// default 0 means no periods.
	Every time.Duration

	// Bytes bounds the journal and the snapshots together, whatever the other fields request. A
	// quarter of Bytes stays free for the data until the next snapshot. Data is removed in this
	// order: data that was not requested, snapshots of periods, requested data. Of each kind, the
	// oldest data is removed first.
	//
	// Bytes also determines the size of segments and the time between snapshots. A segment has at
	// most a 16th of Bytes. A store can always stay within Bytes if Bytes is the size of 16 full
	// snapshots or more.
	//
	// By default, there is no bound if Last, Ticks or Age is set. Otherwise the default is the
	// larger of 1 GiB and 16 times the largest snapshot. A store that is above the default when it
	// is opened is not pruned: see [Report.Kept].
	//
	// Each opening begins a segment of the journal and reads the segments after the last snapshot.
	// A store without Last, Ticks and Age keeps at most about 40 small segments, or one per MiB
	// of its journal if that is more. It removes the oldest ones, even if they have few bytes.
	Bytes int64

	// KeepAll keeps everything, whatever the other fields say.
	KeepAll bool
}

const (
	// defaultBound is the bound of a store without a configured bound.
	defaultBound = 1 << 30

	// shares is the number of equal shares of a bound. Each of the following may use one share: a
	// full snapshot, the journal between two snapshots, one segment, the ticks journaled during a
	// copy.
	shares = 16

	// minShare is the smallest number of bytes that share returns, even for a tiny bound.
	minShare = 4 << 10

	// minChain is how many snapshots must follow a full one before Last, Ticks or Age can cause the
	// next full one. The bound can cause a full snapshot earlier.
	minChain = 3

	defaultSegment = 64 << 20 // Size of a segment in bytes, the default of package journal.
	minSegment     = 1 << 20  // Smallest size of a segment if the store has no bound.
)

// asks reports whether r requests old data by Last, Ticks or Age.
func (r Retention) asks() bool { return r.Last > 0 || r.Ticks > 0 || r.Age > 0 }

// unset reports whether r uses the default bound.
func (r Retention) unset() bool { return !r.asks() && r.Bytes <= 0 && !r.KeepAll }

// bound returns the bound of a store in bytes; 0 means no bound. largest is the size of its largest
// snapshot.
func (o *Options) bound(largest int64) int64 {
	switch {
	case o.Retain.KeepAll:
		return 0
	case o.Retain.unset():
		return max(cmp.Or(o.leastBound, defaultBound), shares*largest)
	}
	return max(0, o.Retain.Bytes)
}

// A storedSnapshot is the store's entry for one of its snapshot files.
type storedSnapshot struct {
	catalog.SnapshotInfo
	lineage
}

// withNewest appends the newest snapshot to the list. If it has a name, an older snapshot with the
// same name loses that name.
func withNewest(list []storedSnapshot, newest storedSnapshot) []storedSnapshot {
	list = append(list, newest)
	catalog.LoseNames(list, func(o *storedSnapshot) *catalog.SnapshotInfo { return &o.SnapshotInfo })
	return list
}

// A lineage says where a snapshot is relative to the newest state.
type lineage struct {
	onHead bool // The snapshot is an ancestor of the newest state.
	// next is the record that continues the snapshot on the path to the newest state. For example,
	// it is 12 for a snapshot of record 8 if records 9 to 11 were abandoned. 0 means the record
	// right after the snapshot's record, which may not exist yet.
	next uint64
}

// branch updates the lineage of the snapshot at record seq. The next record is last+1. It continues
// record parent, which may be older than last.
func (l *lineage) branch(seq, parent, last uint64) {
	switch {
	case seq > parent:
		l.onHead = false
	case seq == parent:
		l.next = last + 1
	}
}

// from returns the first record that continues s. To replay ticks after s, the journal must have
// this record and all later ones.
func (s *storedSnapshot) from() uint64 { return max(s.next, s.ID.Seq+1) }

// names reports whether file number n contains the snapshot or some of its pages.
func (s *storedSnapshot) names(n uint32) bool {
	return s.Number == n || slices.ContainsFunc(s.Refs, func(f format.FileRef) bool { return f.Number == n })
}

// apart reports whether s and other share no file and have the same schema.
func (s *storedSnapshot) apart(other *storedSnapshot) bool {
	if s.Schema != nil && other.Schema != nil && s.Schema.Differs(other.Schema) != nil {
		return false
	}
	return !other.names(s.Number) && !slices.ContainsFunc(s.Refs, func(f format.FileRef) bool { return other.names(f.Number) })
}

// A past holds the snapshots and segments that retention chooses from.
type past struct {
	list    []storedSnapshot // Snapshots in the order of their creation.
	newest  uint64           // The record of the state that the next tick continues.
	oldest  uint64           // The record of the oldest tick that the world can go back to.
	journal []segmentSize
	small   int64 // Segments with fewer bytes are small.
}

// A segmentSize describes a journal segment for retention.
type segmentSize struct {
	first uint64 // The seq of the segment's first record; 0 means unknown.
	bytes int64
}

// sizesOf returns the segments of the journal, oldest first.
func sizesOf(j *journal.Journal) (sizes []segmentSize) {
	for first, bytes := range j.Segments() {
		sizes = append(sizes, segmentSize{first, bytes})
	}
	return sizes
}

// since returns the segments from the one with record seq on.
func (p *past) since(seq uint64) []segmentSize {
	for i := len(p.journal) - 1; i > 0; i-- {
		if first := p.journal[i].first; first > 0 && first <= seq {
			return p.journal[i:]
		}
	}
	return p.journal
}

// bytesOf returns the total bytes of segments.
func bytesOf(segments []segmentSize) (bytes int64) {
	for _, s := range segments {
		bytes += s.bytes
	}
	return bytes
}

// bases returns the snapshots that are ancestors of the newest state, newest first.
func (p *past) bases() (bases []*storedSnapshot) {
	for i := range slices.Backward(p.list) {
		if s := &p.list[i]; s.onHead && !p.ahead(s) {
			bases = append(bases, s)
		}
	}
	slices.SortStableFunc(bases, func(a, b *storedSnapshot) int { return cmp.Compare(b.ID.Seq, a.ID.Seq) })
	return bases
}

// ahead reports whether s is newer than the state that the next tick continues. This happens if the
// world went back. Until a tick continues the older state, a recovery after a crash still needs s.
func (p *past) ahead(s *storedSnapshot) bool {
	return s.onHead && s.ID.Seq > p.newest
}

// largest returns the size of the largest snapshot.
func (p *past) largest() (bytes int64) {
	for i := range p.list {
		bytes = max(bytes, p.list[i].Size)
	}
	return bytes
}

// second returns the index of the newest base that shares no file with bases[0], or -1.
func second(bases []*storedSnapshot) int {
	return slices.IndexFunc(bases, func(s *storedSnapshot) bool { return s.apart(bases[0]) })
}

// asked returns the index of the oldest base that r requests. If r requests more data than all
// bases have, asked returns len(bases).
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

// A pruning says which data may be removed after a snapshot, and describes the data that stays.
type pruning struct {
	// Numbers of snapshot files, newest first: a file is removed before the files it refers to.
	files   []uint32
	journal uint64 // Segments before this record are removed. 0 means that all segments stay.
	keeping RetentionStatus
}

// A choice lists the ways to prune a store, as numbered steps. Step 0 keeps the requested data, or
// all data if nothing is requested. Each further step keeps less, and the last step keeps only
// required data.
//
// If nothing is requested, the steps first remove bases, and then snapshots of periods. Otherwise
// they first remove snapshots of periods, and then bases. Of each kind, the oldest are removed
// first.
type choice struct {
	past
	bases   []*storedSnapshot // Ancestors of the newest state, newest first.
	oldest  int               // Step 0 keeps bases[:oldest+1].
	musts   []*storedSnapshot // Snapshots that must stay, with the journal after them.
	periods []*storedSnapshot // The first snapshot of each period, oldest first.
	all     bool              // Nothing is requested, so all data within the bound stays.
}

// steps returns the number of the last step. The first step is step 0.
func (c *choice) steps() int { return c.oldest + len(c.periods) }

// at returns which data a step keeps: the numbers of the snapshot files, and the first journal
// record. A file that other snapshots share pages with stays too.
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
			for _, f := range s.Refs { // A snapshot is readable only with the files it refers to.
				kept[f.Number] = true
			}
		}
	}
	return kept, from
}

// bytes returns how many bytes stay on the disk at a step.
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

// fits reports whether a step leaves a quarter of the bound free and keeps few small segments.
// Requested data may have any number of segments.
func (c *choice) fits(step int, bound int64) bool {
	_, from := c.at(step)
	return c.bytes(step) <= bound-bound/4 && (!c.all || !tooMany(c.since(from), c.small, maxSegments))
}

// plan returns which snapshots and segments of p retention may remove, and describes those that
// stay. bound is the maximum total size; 0 means no bound.
func (r Retention) plan(p past, bound int64) pruning {
	bases := p.bases()
	if len(bases) == 0 {
		return pruning{keeping: RetentionStatus{Bound: bound, Reason: "no snapshot leads to the newest state"}}
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
		pruned.keeping.Reason = "all data that exists, because Retain requests more"
	}
	return pruned
}

// whole returns the pruning that keeps all data. asked and apart decide only the Reason. asked is
// true if Retention.KeepAll is set. apart is negative if each base shares a file with the newest
// base.
func (c *choice) whole(bound int64, asked bool, apart int) pruning {
	c.all, c.oldest = true, len(c.bases)-1
	k := c.keeping(0, bound)
	switch {
	case asked:
		k.Reason = "all data, because Retain.KeepAll is set"
	case apart < 0:
		k.Reason = "all data, because no two snapshots without a shared file exist yet"
	// Ticks were pruned, but the store is far below its bound. So there were too many segments.
	case k.Record > 0 && k.Bytes < bound/2:
		k.Reason = asMany
	case k.Record > 0 && bound > 0:
		k.Reason = asMuch
	default:
		k.Reason = "all data that exists"
	}
	return pruning{keeping: k}
}

// withoutEmpty takes a pruning that keeps all data. If the journal has many small segments, it adds
// the segments before the oldest snapshot to the pruning. Openings without a Commit leave such
// segments.
func (c *choice) withoutEmpty(p pruning) pruning {
	if _, from := c.at(0); tooMany(c.journal, c.small, segmentsBehind) && len(c.since(from)) < len(c.journal) {
		p.journal = from
	}
	return p
}

// keeping describes the data that a step keeps, without the reason.
func (c *choice) keeping(step int, bound int64) RetentionStatus {
	k := RetentionStatus{Bytes: c.bytes(step), Bound: bound}
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

// reason returns why the data of a step is kept.
func (c *choice) reason(step int, k *RetentionStatus) string {
	switch {
	case k.Bound == 0 || step == 0:
		return "the data that Retain requests"
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
		return "slots stay, whatever the bound"
	case lead.ID.Seq < apart.ID.Seq && k.Bytes-bytesOf(c.since(lead.from()))+bytesOf(c.since(apart.from())) <= k.Bound:
		return "the data for the oldest tick of the world's history stays, whatever the bound"
	}
	return "two snapshots that share no file stay, with the journal after them, whatever the bound"
}

// ofPeriods returns the first snapshot of each period of r.Every, oldest first.
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

// promise returns the note for the journal that lists the snapshots that stay. A later Open reports
// a listed snapshot that is missing. The parameter list has all snapshots before the pruning.
func (p *pruning) promise(list []storedSnapshot) []byte {
	var stay []catalog.SnapshotInfo
	for _, s := range list {
		if !slices.Contains(p.files, s.Number) {
			stay = append(stay, s.SnapshotInfo)
		}
	}
	return catalog.EncodeSnapshotList(stay)
}

// prune removes the planned files. It stops if the store no longer holds the lock l. Each removal
// is durable before the next one.
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

// mayPrune reports whether data may be removed now. A damaged store is not pruned, so that the
// damage does not grow. After a store went to an older state, it is not pruned until a tick
// continues that state. Until then, a recovery returns the newest state.
func (s *Store) mayPrune() bool {
	return s.block == blockNone && (!s.older || s.first > 0 && s.journal.Next() > s.first)
}

// pruneNow prunes a store that was just opened, without waiting for the next snapshot.
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

// forget removes the entries of deleted files from s. k describes the data that is still kept; nil
// means that retention did not run.
func (s *snapshotter) forget(removed []string, k *RetentionStatus) {
	s.list = slices.DeleteFunc(s.list, func(o storedSnapshot) bool { return o.among(removed) })
	if k != nil {
		s.bound = k.Bound
	}
}

// among reports whether files contains the file of s.
func (s *storedSnapshot) among(files []string) bool {
	return slices.Contains(files, catalog.SnapshotName(s.Number))
}

// bytesAmong returns the total size of the snapshots in list whose files are in files.
func bytesAmong(list []storedSnapshot, files []string) (bytes int64) {
	for i := range list {
		if list[i].among(files) {
			bytes += list[i].Size
		}
	}
	return bytes
}

// branched updates the lineages of all snapshots. The next record is last+1. It continues record
// parent, which may be older than last.
func (s *Store) branched(parent, last uint64) {
	s.observeBranch(parent, last)
	for i := range s.list {
		s.list[i].branch(s.list[i].ID.Seq, parent, last)
	}
	if c := s.underWay; c != nil {
		c.branch(c.Manifest.ID.Seq, parent, last)
	}
}

// storedSnapshots returns the entries for the snapshots in c. The newest state of the store is that
// of the record with seq head.
func storedSnapshots(c *catalog.Catalog, head uint64) (list []storedSnapshot) {
	// next maps a record to the record that continues it.
	stored, next := map[uint64]bool{}, map[uint64]uint64{head: 0}
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
			list = append(list, storedSnapshot{s, lineage{onHead, seq}})
		}
	}
	return list
}

// removeTemps removes incomplete snapshot files of earlier writers.
func (s *Store) removeTemps() error {
	// If the store is lost, the files may be those of the new owner.
	if err := s.lock.Check(); err != nil {
		return err
	}
	return disk.RemoveTemps(s.files, catalog.SnapshotDir, func(temp string) bool {
		name, ok := disk.TempOf(temp)
		if !ok { // Earlier versions gave unfinished files this suffix.
			name, ok = strings.CutSuffix(temp, catalog.TempType)
		}
		return ok && strings.HasSuffix(name, catalog.SnapshotType)
	})
}
