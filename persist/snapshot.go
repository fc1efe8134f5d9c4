package persist

import (
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/digest"
	"github.com/stet-ecs/stet/internal/disk"
	"github.com/stet-ecs/stet/internal/pagefile"
	"github.com/stet-ecs/stet/journal"
)

// maxFiles is how many other files a snapshot may refer to; beyond, the next one
// is written in full.
const maxFiles = 8

// A pageTable says where the pages of a snapshot lie, and what was in them.
type pageTable map[pagefile.Key]tablePage

type tablePage struct {
	sum xxh3.Uint128 // Of the content. Pages of equal sum are taken as equal.
	pageRef
}

// A snapshot is a copy of a state, page by page, on its way to a file. It is
// taken in the world's goroutine and written in another one.
type snapshot struct {
	manifest manifest
	pages    []snapshotPage // In the order of their keys.
	previous pageTable      // Of the snapshot before; nil: write all pages.
	bytes    int64          // Of the pages to be written.
}

type snapshotPage struct {
	key     pagefile.Key
	sum     xxh3.Uint128
	content []byte // nil: as before, see ref.
	ref     pageRef
}

// takeSnapshot copies the pages of w that differ from the previous snapshot, of
// the storages for which keep returns true. They must be in s.
func takeSnapshot(w *ecs.World, s *schema, id journal.ID, number uint32, previous pageTable, keep func(ecs.AnyStorage) bool) *snapshot {
	rows, alive, free := w.Registry()
	sn := &snapshot{previous: previous, manifest: manifest{
		number: number,
		id:     id,
		tick:   w.Tick(),
		schema: &schema{components: slices.Clip(s.components)}, // It may grow while this one is written.
		digest: w.Digests(func(st ecs.AnyStorage) bool { return keep(st) && s.rewinds(st) }).World,
		alive:  alive,
		free:   free,
		total:  len(rows),
	}}
	sn.cut(registryColumn, len(rows), pageRows, func(dst []byte, lo, hi int) []byte {
		return digest.AppendEntities(dst, rows[lo:hi])
	})
	sn.manifest.components = make([]componentSize, len(s.components))
	stored := make([]ecs.AnyStorage, len(s.components))
	for _, st := range w.Storages() {
		if keep(st) {
			stored[s.number(st)] = st
		}
	}
	var sparse []uint32
	for n, st := range stored {
		sn.manifest.components[n].pageRows = pageRows
		if st != nil {
			sparse = sn.component(n, st, sparse, len(rows))
		}
	}
	return sn
}

// component copies the arrays of component number n. It returns scratch.
func (sn *snapshot) component(n int, st ecs.AnyStorage, scratch []uint32, indices int) []uint32 {
	size := componentSize{st.Rows(), dataPageRows(st.Layout().Width())}
	sn.manifest.components[n] = size
	entities := st.Entities()
	if len(entities) > 0 {
		scratch = sparseOf(scratch, entities, indices)
		sn.sparse(column(n, sparseArray), scratch)
		sn.cut(column(n, denseArray), len(entities), pageRows, func(dst []byte, lo, hi int) []byte {
			return digest.AppendEntities(dst, entities[lo:hi])
		})
	}
	if st.Layout().Width() != 0 {
		sn.cut(column(n, dataArray), size.rows, size.pageRows, st.AppendRows)
	}
	return scratch
}

// sparseOf returns the sparse array that belongs to entities.
func sparseOf(scratch []uint32, entities []ecs.Entity, indices int) []uint32 {
	if cap(scratch) < indices {
		scratch = make([]uint32, indices)
	}
	scratch = scratch[:indices]
	for i := range scratch {
		scratch[i] = noRow
	}
	for r, e := range entities {
		if e != ecs.Vacant {
			scratch[e.Index()] = uint32(r)
		}
	}
	return scratch
}

func (sn *snapshot) sparse(column uint32, rows []uint32) {
	for lo := 0; lo < len(rows); lo += pageRows {
		content, found := appendSparsePage(nil, rows[lo:min(lo+pageRows, len(rows))])
		if found {
			sn.add(key(column, lo/pageRows), content)
		}
	}
}

// cut cuts n rows into pages.
func (sn *snapshot) cut(column uint32, n, rows int, appendRows func(dst []byte, lo, hi int) []byte) {
	for lo := 0; lo < n; lo += rows {
		sn.add(key(column, lo/rows), appendRows(nil, lo, min(lo+rows, n)))
	}
}

// add adds a page: a reference if it is as it was in the previous snapshot.
func (sn *snapshot) add(k pagefile.Key, content []byte) {
	p := snapshotPage{key: k, sum: xxh3.Hash128(content)}
	if was, ok := sn.previous[k]; ok && was.sum == p.sum {
		p.ref = was.pageRef
	} else {
		p.content = content
		sn.bytes += int64(len(content))
	}
	sn.pages = append(sn.pages, p)
}

// references returns the files that the pages refer to.
func (sn *snapshot) references(crcs map[uint32]uint32) (files []fileRef) {
	named := map[uint32]bool{}
	for _, p := range sn.pages {
		if p.content == nil && !named[p.ref.file] {
			named[p.ref.file] = true
			files = append(files, fileRef{p.ref.file, crcs[p.ref.file]})
		}
	}
	return files
}

// write writes sn to a file, which has its name only once it is complete,
// durable and verified, and beforePublish has returned nil. It returns the table
// for the next snapshot.
func (sn *snapshot) write(files disk.FS, name string, beforePublish func() error) (pagefile.Info, pageTable, error) {
	table := make(pageTable, len(sn.pages))
	e := newEncoder()
	info, err := pagefile.CreateWith(files, name, pagefile.Options{BeforePublish: beforePublish}, func(w *pagefile.Writer) error {
		appendDirect(e, sn.manifest.encode())
		if err := w.Put(key(manifestColumn, 0), e.buf); err != nil {
			return err
		}
		for _, p := range sn.pages {
			e.buf = e.buf[:0]
			if p.content == nil {
				appendReference(e, p.ref)
			} else {
				p.ref = pageRef{sn.manifest.number, appendDirect(e, p.content)}
			}
			table[p.key] = tablePage{p.sum, p.ref}
			if err := w.Put(p.key, e.buf); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return info, nil, fmt.Errorf("persist: snapshot of tick %d: %w", sn.manifest.tick, err)
	}
	return info, table, nil
}
