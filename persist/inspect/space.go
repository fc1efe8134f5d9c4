package inspect

import (
	"github.com/stet-ecs/stet/internal/pagefile"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// Space is reported per file, so that the sums are the file sizes. Every byte counts once, by its
// use. Bytes of unknown use count for the tree. A page that several snapshots share counts for
// the file that contains it, and Shared is the size of the shared pages of a snapshot. Only sizes
// are read, without contents and checksums.

// A Space says what the bytes of the files of a store or save are used for.
type Space struct {
	Snapshots []SnapshotSpace // In the order of [View.Snapshots].
	Segments  []SegmentSpace  // Oldest first.
}

// A SnapshotSpace says what the bytes of a snapshot file are used for. All members except Shared
// add up to Size.
type SnapshotSpace struct {
	Name string
	Size int64
	// Err says why the file cannot be read; the other sizes are then zero.
	Err error

	Manifest int64
	// Entities is the registry: the live entities and their order.
	Entities   int64
	Components []ComponentSpace // By number.
	// References to pages in other places.
	References int64
	// Keys and unused space between them.
	Tree int64
	// Space left over from writing, without references.
	Free      int64
	Checksums int64

	// Shared is the size of the pages of this state in other readable files.
	Shared int64
}

// A ComponentSpace says how many bytes of a snapshot file each array of a component takes.
type ComponentSpace struct {
	Name                string
	Sparse, Dense, Data int64
}

// A SegmentSpace says what the bytes of a journal file are used for. Payloads, Rewound and
// Overhead add up to Size.
type SegmentSpace struct {
	Name     string
	Size     int64
	Records  int
	Payloads int64 // Payloads of the newest state and its ancestors.
	Rewound  int64 // Payloads of other records.
	// Headers, padding, schemas, and an unfinished end.
	Overhead int64

	// Prunable says that a [persist.Retention] may remove the segment: none of its records is
	// after the newest snapshot on the path to the newest state.
	Prunable bool
}

// A sharedPage is a page and the number of the file that contains it.
type sharedPage struct {
	file uint32
	key  pagefile.Key
}

// pageSizes has the size of each page in the file that contains it, by file number. It is nil if
// there is only one file.
type pageSizes map[sharedPage]int64

// snapshotSpace returns the space of a snapshot and its shared pages. It adds the sizes of the
// snapshot's own pages to sizes. Sizes of shared pages come from other files, so the caller adds
// up Shared at the end.
func snapshotSpace(v *catalog.Catalog, info SnapshotInfo, sizes pageSizes) (SnapshotSpace, []sharedPage, error) {
	s := SnapshotSpace{Name: info.Name, Size: info.Size}
	r, err := snap.Open(v.Files, info.Name, catalog.SnapshotName)
	if err != nil {
		return s, nil, err
	}
	defer r.Close()
	for _, c := range r.Manifest.Schema.Components {
		s.Components = append(s.Components, ComponentSpace{Name: c.Name})
	}
	var shared []sharedPage
	usage, err := r.File.Usage(format.MaxReference, func(k pagefile.Key, size int64, value []byte) (err error) {
		var ref format.PageRef
		// A longer value is a page.
		if size <= format.MaxReference {
			if _, ref, err = snap.DecodePage(r.Name, k, value); err != nil {
				return err
			}
		}
		if ref.Elsewhere() {
			s.References += size
			if ref.File != 0 {
				shared = append(shared, sharedPage{ref.File, ref.Of(k)})
			}
			return nil
		}
		if sizes != nil {
			sizes[sharedPage{info.Number, k}] = size
		}
		*s.array(k) += size
		return nil
	})
	if err != nil {
		return s, nil, err
	}
	s.Tree += usage.Tree
	s.Free, s.Checksums = usage.Free, usage.Checksums
	return s, shared, nil
}

// array returns the counter for the bytes of page k. From FirstColumn on, a component has four
// columns: one per array, and an unused one.
func (s *SnapshotSpace) array(k pagefile.Key) *int64 {
	number, array := (int64(k.Column)-format.FirstColumn)/4, (int64(k.Column)-format.FirstColumn)%4
	switch {
	case k.Column == format.ManifestColumn:
		return &s.Manifest
	case k.Column == format.RegistryColumn:
		return &s.Entities
	case k.Column < format.FirstColumn || number >= int64(len(s.Components)):
		// No reader uses this page.
		return &s.Tree
	}
	c := &s.Components[number]
	switch array {
	case format.SparseArray:
		return &c.Sparse
	case format.DenseArray:
		return &c.Dense
	case format.DataArray:
		return &c.Data
	}
	return &s.Tree
}

// segmentSpaces returns the space of the journal. A segment begins as overhead only, and each
// payload is subtracted. So the parts always add up to the size of the file.
func segmentSpaces(v *catalog.Catalog) []SegmentSpace {
	spaces := make([]SegmentSpace, len(v.Log.Segments))
	for i, s := range v.Log.Segments {
		spaces[i] = SegmentSpace{Name: catalog.JournalDir + "/" + s.Name, Size: s.Size, Overhead: s.Size, Records: s.Records}
	}
	onHead := v.Ancestors(v.Log.Head)
	oldest := oldestAncestor(v)
	for _, e := range v.Log.Entries {
		s, length := &spaces[e.Segment], int64(e.Length)
		s.Overhead -= length
		if onHead[e.ID.Seq] || e.ID.Seq < oldest {
			s.Payloads += length
		} else {
			s.Rewound += length
		}
	}
	base := newestBase(v, onHead)
	// The last segment is never prunable, since it is written to.
	for i := range max(0, len(spaces)-1) {
		// next is greater than the last record of segment i.
		next := v.Log.Segments[i+1].First
		spaces[i].Prunable = next != 0 && next <= base+1
	}
	return spaces
}

// oldestAncestor returns the oldest known ancestor of the head if the path back ends at a record
// that cannot be read. For older records it is unknown whether they are ancestors. It returns 0
// if the path reaches the beginning.
func oldestAncestor(v *catalog.Catalog) uint64 {
	last := journal.Entry{}
	for e := range v.Log.Ancestors(v.Log.Head) {
		last = e
	}
	if last.Parent == 0 {
		return 0
	}
	return last.ID.Seq
}

// newestBase returns the record of the newest snapshot on the path to the head.
func newestBase(v *catalog.Catalog, onHead map[uint64]bool) (seq uint64) {
	for _, s := range v.Snapshots {
		if s.Err == nil && onHead[s.ID.Seq] {
			seq = max(seq, s.ID.Seq)
		}
	}
	return seq
}
