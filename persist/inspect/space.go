package inspect

import (
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// Space is reported per file, and the parts of a file add up to its size. Bytes of unknown use
// count as Tree.
//
// Several snapshots can share a page. The page then counts for the file that contains it. A
// snapshot that refers to pages of other files has the total size of these pages in its field
// Shared.
//
// Only sizes are read, without contents and checksums.

// A Space says how the bytes of the files of a store or save are used.
type Space struct {
	Snapshots []SnapshotSpace // In the order of [View.Snapshots].
	Segments  []SegmentSpace  // Oldest first.
}

// A SnapshotSpace says how the bytes of a snapshot file are used. All fields except Shared add up
// to Size.
type SnapshotSpace struct {
	Name string
	Size int64
	// Err says why the file cannot be read; the other sizes are zero in that case.
	Err error

	Manifest int64
	// Entities is the registry: the live entities and their order.
	Entities   int64
	Components []ComponentSpace // Ordered by component number.
	// References is the size of the references to pages. An entry holds a reference instead of a
	// page if this file or another file already contains an equal page.
	References int64
	// Tree is the size of the keys, of the unused space between them, and of pages of unknown use.
	Tree int64
	// Free is unused space left over from writing. It contains no pages and no references.
	Free      int64
	Checksums int64

	// Shared is the size of the pages in other readable files that this file refers to.
	Shared int64
}

// A ComponentSpace says how many bytes each array of a component takes in a snapshot file.
type ComponentSpace struct {
	Name                string
	Sparse, Dense, Data int64
}

// A SegmentSpace says how the bytes of a journal file are used. Payloads, Rewound and Overhead
// add up to Size.
type SegmentSpace struct {
	Name     string
	Size     int64
	Records  int
	Payloads int64 // Payloads of the newest state and its ancestors.
	Rewound  int64 // Payloads of other records.
	// Overhead is the size of headers, padding, schemas, and an unfinished end.
	Overhead int64

	// Prunable says that a [persist.Retention] may remove the segment. All of its records are at
	// or before the newest snapshot on the path to the newest state.
	Prunable bool
}

// A sharedPage is a page and the number of the file that contains it.
type sharedPage struct {
	file uint32
	key  pagefile.Key
}

// pageSizes maps a page to its size in the file that contains it. It is nil if there is only one
// file.
type pageSizes map[sharedPage]int64

// snapshotSpace returns the space of a snapshot, without the field Shared, and the list of its
// shared pages. It adds the sizes of the pages in this file to sizes. The caller computes Shared
// after it has read all files, because only then the sizes of all pages are known.
func snapshotSpace(v *catalog.Catalog, info catalog.SnapshotInfo, sizes pageSizes) (SnapshotSpace, []sharedPage, error) {
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
		// A value is a page or a reference to a page. A value longer than MaxReference is a page.
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
		*s.array(r.Manifest, k) += size
		return nil
	})
	if err != nil {
		return s, nil, err
	}
	s.Tree += usage.Tree
	s.Free, s.Checksums = usage.Free, usage.Checksums
	return s, shared, nil
}

// array returns the counter for the bytes of page k. m is the manifest of the file. A page that no
// reader uses counts as Tree.
func (s *SnapshotSpace) array(m *format.Manifest, k pagefile.Key) *int64 {
	a, used := m.ArrayOf(k)
	switch {
	case k.Column == format.ManifestColumn:
		return &s.Manifest
	case k.Column == format.RegistryColumn:
		return &s.Entities
	case !used:
		return &s.Tree
	}
	c := &s.Components[a.Component]
	switch a.Kind {
	case format.SparseArray:
		return &c.Sparse
	case format.DenseArray:
		return &c.Dense
	}
	return &c.Data
}

// segmentSpaces returns the space of the journal. Overhead starts as the size of a segment, and
// each payload is subtracted from it. So the fields always add up to the size of the file.
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
	// The last segment is never prunable, since the program writes to it.
	for i := range max(0, len(spaces)-1) {
		// All records of segment i are before next.
		next := v.Log.Segments[i+1].First
		spaces[i].Prunable = next != 0 && next <= base+1
	}
	return spaces
}

// oldestAncestor returns the oldest known ancestor of the head. If the path to the head reaches the
// beginning of the history, the result is 0.
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
