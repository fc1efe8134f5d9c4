package inspect

import (
	"github.com/stet-ecs/stet/internal/pagefile"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// Where the bytes go is told file by file, so that sums are the sizes of files: every byte is
// counted once, by what it is for, and what nobody knows belongs to the tree. A page that several
// snapshots have is counted for the file that it lies in; Shared says how much a snapshot has that
// lies elsewhere. Sizes are read, not what they are the sizes of, nor the checksums over it.

// A Space says what the bytes of the files of a store or save are for.
type Space struct {
	Snapshots []SnapshotSpace // As [View.Snapshots] lists them.
	Segments  []SegmentSpace  // Oldest first.
}

// A SnapshotSpace says what the bytes of a snapshot file are for: the sizes of all
// members but Shared add up to Size.
type SnapshotSpace struct {
	Name string
	Size int64
	Err  error // Why it cannot be read; the rest is zero then.

	Manifest   int64
	Entities   int64            // Which are alive, and in what order.
	Components []ComponentSpace // By number.
	References int64            // What says where a page lies that is not written again.
	Tree       int64            // Keys, and what is left empty between them.
	Free       int64            // Left by the writing; nothing refers to it.
	Checksums  int64

	Shared int64 // Of pages of this state that lie in other files that can be read.
}

// A ComponentSpace says how much of a snapshot file holds which array of a component.
type ComponentSpace struct {
	Name                string
	Sparse, Dense, Data int64
}

// A SegmentSpace says what the bytes of a file of the journal are for: Payloads,
// Rewound and Overhead add up to Size.
type SegmentSpace struct {
	Name     string
	Size     int64
	Records  int
	Payloads int64 // Of the records that the newest state comes from.
	Rewound  int64 // Payloads of other records.
	Overhead int64 // Headers, padding, schemas, and what an unfinished end takes.

	// Prunable: none of its records is behind the newest snapshot that the newest
	// state comes from, so that a [persist.Retention] may let it go.
	Prunable bool
}

// A sharedPage is a page and the number of the file that holds it.
type sharedPage struct {
	file uint32
	key  pagefile.Key
}

// pageSizes has how many bytes each page takes in the file that holds it, by number of the file; nil: no
// other file can share it.
type pageSizes map[sharedPage]int64

// snapshotSpace returns the space of a snapshot and the pages that it shares. It
// notes the sizes of those that it holds. How large the shared ones are, the files say that hold them: so
// Shared is added up when all were looked at.
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
		if size <= format.MaxReference { // A longer value is a page.
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

// array returns what counts the bytes of the page k. From FirstColumn on, a component has four columns:
// one for each of its arrays, and one that is not used.
func (s *SnapshotSpace) array(k pagefile.Key) *int64 {
	number, array := (int64(k.Column)-format.FirstColumn)/4, (int64(k.Column)-format.FirstColumn)%4
	switch {
	case k.Column == format.ManifestColumn:
		return &s.Manifest
	case k.Column == format.RegistryColumn:
		return &s.Entities
	case k.Column < format.FirstColumn || number >= int64(len(s.Components)):
		return &s.Tree // No reader looks for it.
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

// segmentSpaces returns the space of the journal. All of a segment counts as overhead at first, and each
// payload is taken out of it: so what is added up is the size of the file, whatever lies between.
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
	for i := range max(0, len(spaces)-1) { // Never the last one, which is written to.
		next := v.Log.Segments[i+1].First // One more than the last record of segment i, or above.
		spaces[i].Prunable = next != 0 && next <= base+1
	}
	return spaces
}

// oldestAncestor returns the record where the way back from the head ends at one
// that cannot be read: of older ones nobody knows whether the head comes from them.
// It is 0 if the way ends at the beginning.
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

// newestBase returns the record of the newest snapshot that the head comes from.
func newestBase(v *catalog.Catalog, onHead map[uint64]bool) (seq uint64) {
	for _, s := range v.Snapshots {
		if s.Err == nil && onHead[s.ID.Seq] {
			seq = max(seq, s.ID.Seq)
		}
	}
	return seq
}
