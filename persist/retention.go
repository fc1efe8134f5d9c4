package persist

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// A Retention says which snapshots stay. What nothing that stays needs is
// removed after the next snapshot: files, and the oldest segments of the journal.
// The zero Retention keeps everything, so that any tick can be gone back to.
//
// Whatever it says, these stay: snapshots with a name; the newest one and one
// before it that shares no file with it, so that a damaged file is not the end;
// what leads to the oldest tick of the world's history; and the journal behind
// these. Nothing is removed by a store that was damaged when it was opened.
type Retention struct {
	// Last is how many of the newest snapshots stay, with the journal behind
	// them. Default 0: all.
	Last int

	// Every keeps, of the older ones, the first of each such period by the clock of
	// the store. Their states can be read, not what lay between. Default 0: none.
	Every time.Duration
}

// A storedSnapshot is what a store knows of one of its snapshot files.
type storedSnapshot struct {
	catalog.SnapshotInfo
	onHead bool // The newest state comes from it.
}

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

// A pruning is what may be removed once a snapshot has its name.
type pruning struct {
	files   []uint32 // Newest first: what refers goes before what is referred to.
	journal uint64   // Records before this one; 0: none.
}

// plan returns what r lets be removed of list, which ends with the newest
// snapshot. oldest is the record of the oldest tick that the world can go back to.
func (r Retention) plan(list []storedSnapshot, oldest uint64) pruning {
	if r.Last <= 0 {
		return pruning{}
	}
	var heads []*storedSnapshot // Newest first.
	for i := range slices.Backward(list) {
		if list[i].onHead {
			heads = append(heads, &list[i])
		}
	}
	bases := r.bases(heads, oldest)
	if bases == nil {
		return pruning{}
	}
	kept := slices.Concat(bases, r.ofPeriods(heads))
	for i := range list {
		if list[i].Label != "" {
			kept = append(kept, &list[i])
		}
	}
	p := pruning{journal: bases[0].ID.Seq}
	for _, s := range bases {
		p.journal = min(p.journal, s.ID.Seq)
	}
	p.journal++
	for i, s := range slices.Backward(list) {
		if slices.ContainsFunc(kept, func(k *storedSnapshot) bool { return k.names(s.Number) }) {
			kept = append(kept, &list[i]) // For its pages; it stays a snapshot that can be read.
		} else {
			p.files = append(p.files, s.Number)
		}
	}
	return p
}

// bases returns the snapshots that stay with the journal behind them; nil if one
// that must be there is not.
func (r Retention) bases(heads []*storedSnapshot, oldest uint64) []*storedSnapshot {
	second := slices.IndexFunc(heads, func(s *storedSnapshot) bool { return s.apart(heads[0]) })
	past := slices.IndexFunc(heads, func(s *storedSnapshot) bool { return s.ID.Seq <= oldest })
	if second < 0 || past < 0 {
		return nil
	}
	return append(slices.Clone(heads[:min(r.Last, len(heads))]), heads[second], heads[past])
}

// ofPeriods returns the first snapshot of each period.
func (r Retention) ofPeriods(heads []*storedSnapshot) (first []*storedSnapshot) {
	if r.Every <= 0 {
		return nil
	}
	last := time.Time{}
	for _, s := range slices.Backward(heads) {
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
		if err := files.SyncDir(catalog.SnapshotDir); err != nil {
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

// storedSnapshots returns what a store knows of the snapshots in c. The state that
// was recovered comes from those of the records onHead.
func storedSnapshots(c *catalog.Catalog, onHead map[uint64]bool) (list []storedSnapshot) {
	for _, s := range c.Snapshots {
		if s.Err == nil && c.Misfit(s) == nil {
			list = append(list, storedSnapshot{s, onHead[s.ID.Seq]})
		}
	}
	return list
}

// branched notes that the next record continues an older one than the last.
func (s *snapshotter) branched(parent uint64) {
	for i := range s.list {
		if s.list[i].ID.Seq > parent {
			s.list[i].onHead = false
		}
	}
	for _, c := range []*copying{s.copying, s.handed} {
		if c != nil && c.Manifest.ID.Seq > parent {
			c.offHead = true
		}
	}
}

// removeTemps removes snapshot files that were never finished.
func removeTemps(files disk.FS) error {
	entries, err := files.ReadDir(catalog.SnapshotDir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), catalog.SnapshotType+catalog.TempType) && e.Type().IsRegular() {
			if err := files.Remove(catalog.SnapshotDir + "/" + e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
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
