package snap

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/digest"
	"github.com/stet-ecs/stet/internal/pagefile"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// MaxFiles is how many other files a snapshot may refer to; beyond, the next one
// is written in full.
const MaxFiles = 8

// MaxChain is how many snapshots are made between two full ones.
const MaxChain = 15

// A PageTable says where the pages of a snapshot lie, and what was in them.
type PageTable map[pagefile.Key]tablePage

type tablePage struct {
	sum  xxh3.Uint128 // Of the content. Pages of equal sum are taken as equal.
	Size uint32       // Bytes of the content.
	format.PageRef
}

// PageSums are the sums of the pages of 4096 rows that digests are made of: those
// of component number n at n, and of the registry at registryNumber.
type PageSums map[int][]uint64

const registryNumber = -1

// A Snapshot is a state on its way to a file. It is copied in the world's
// goroutine, in one go or in steps, and made into pages and written in another
// one.
type Snapshot struct {
	Manifest format.Manifest
	StateCopy
	previous PageTable // Of the snapshot before; nil: write all pages.
	before   PageSums  // Of the same.

	Pages []snapshotPage // In the order of their keys.
	Sums  PageSums
	Bytes int64 // Of the pages to be written.
}

type snapshotPage struct {
	Key     pagefile.Key
	Content []byte // nil: it is where tablePage says.
	tablePage
}

// A SnapshotBase is what a snapshot shares pages with: the snapshot before, and
// what may have changed since.
type SnapshotBase struct {
	Table PageTable // nil: none.
	Sums  PageSums
	Dirty Dirty
}

// NewSnapshot returns a snapshot of from, a state of w, of the storages for which
// keep returns true. They must be in s. What does not rewind has no past and is
// copied at once; the rest is to be copied by Advance.
func NewSnapshot(w *ecs.World, from past, s *format.Schema, base SnapshotBase, keep func(raw.Storage) bool, buffers *BufferList) *Snapshot {
	alive, free, total := from.Registry()
	sn := &Snapshot{previous: base.Table, before: base.Sums, Sums: PageSums{}}
	sn.Manifest = format.Manifest{
		Tick:       w.Tick(),
		Schema:     &format.Schema{Components: slices.Clip(s.Components)}, // It may grow while this one is written.
		Alive:      alive,
		Free:       free,
		Total:      total,
		Components: make([]format.ComponentSize, len(s.Components)),
	}
	for n := range sn.Manifest.Components {
		sn.Manifest.Components[n].PageRows = format.PageRows
	}
	sn.buffers = buffers
	all := base.Dirty.All || base.Table == nil
	registry := &rowCopy{number: registryNumber, size: format.ComponentSize{Rows: total, PageRows: format.PageRows}, rows: base.Dirty.registry}
	registry.init(all)
	registry.skip(from)
	sn.columns = append(sn.columns, registry)
	stored := make([]raw.Storage, len(s.Components))
	for _, st := range w.Raw().Storages() {
		if keep(st) {
			stored[s.Number(st)] = st
		}
	}
	for n, st := range stored {
		if st != nil {
			sn.addComponent(w, from, n, st, &base.Dirty, all)
		}
	}
	return sn
}

// addComponent adds component number n.
func (sn *Snapshot) addComponent(w *ecs.World, from past, n int, st raw.Storage, d *Dirty, all bool) {
	entry := &sn.Manifest.Schema.Components[n]
	c := &rowCopy{number: n, storage: st, width: st.Layout().Width(), summed: st.Rewinds() && entry.Rewinds}
	fixed := !st.IsResource() && st.Rewinds() // Else it may be another one than any tick says.
	if fixed {
		c.size.Rows = from.Len(st)
	} else {
		c.size.Rows = st.Rows()
	}
	c.size.PageRows = format.DataPageRows(c.width)
	p := d.component(n)
	c.rows = p.rows
	if !st.IsResource() && c.size.Rows > 0 {
		c.sparse = p.sparse
		c.sparse.addAll(d.destroyed)
		if all || p.cleared || !fixed {
			c.sparse = nil
			c.sparse.addRows(0, sn.Manifest.Total)
		}
		c.dense = len(c.sparse) > 0
	}
	c.init(all || !fixed)
	sn.Manifest.Components[n] = c.size
	sn.columns = append(sn.columns, c)
	if !fixed {
		c.take(&Present{World: w}, 0, len(c.groups), sn.buffers)
		c.taken = true
	}
	c.skip(from)
}

// init makes the groups of c, which are copied all or as c.rows says.
func (c *rowCopy) init(all bool) {
	c.groups = make([]rowGroup, (c.size.Rows+format.PageRows-1)/format.PageRows)
	if all {
		c.rows = nil
		c.rows.addRows(0, c.size.Rows)
	}
}

// Assemble makes pages of what was copied: references for those that are as they
// were in the snapshot before.
func (sn *Snapshot) Assemble() error {
	var parts []digest.Part
	var registry uint64
	var scratch []uint32
	for _, c := range sn.columns {
		sums, err := sn.sumGroups(c)
		if err != nil {
			return err
		}
		sn.Sums[c.number] = sums
		if c.number == registryNumber {
			registry = digest.RegistryOf(digest.Storage(c.size.Rows, sums), sn.Manifest.Alive, sn.Manifest.Free)
			err = sn.addGroups(c, format.RegistryColumn, 0)
		} else {
			if c.summed && c.size.Rows > 0 {
				parts = append(parts, digest.Part{Name: sn.Manifest.Schema.Components[c.number].Name, Sum: digest.Storage(c.size.Rows, sums)})
			}
			scratch = sn.addSparse(c, scratch)
			err = sn.addGroups(c, format.Column(c.number, format.DenseArray), format.Column(c.number, format.DataArray))
		}
		if err != nil {
			return err
		}
	}
	sn.Manifest.Digest = ecs.Digest(digest.World(sn.Manifest.Tick, registry, parts))
	return nil
}

// sumGroups returns the sums of the groups of c.
func (sn *Snapshot) sumGroups(c *rowCopy) ([]uint64, error) {
	before := sn.before[c.number]
	sums := make([]uint64, len(c.groups))
	for g := range c.groups {
		switch {
		case c.groups[g].whole:
			sums[g] = digest.Page(c.groups[g].bytes)
		case g < len(before):
			sums[g] = before[g]
		default:
			return nil, fmt.Errorf("persist: column %d: rows from %d are neither copied nor in the snapshot before", c.number, g*format.PageRows)
		}
	}
	return sums, nil
}

// addGroups adds the pages of entities and rows of c.
func (sn *Snapshot) addGroups(c *rowCopy, dense, data uint32) error {
	for g := range c.groups {
		if group := &c.groups[g]; !c.resource() {
			if err := sn.add(format.Key(dense, g), group.whole, group.bytes[:group.entities]); err != nil {
				return err
			}
		}
	}
	if c.storage == nil || c.width == 0 {
		return nil
	}
	for lo := 0; lo < c.size.Rows; lo += c.size.PageRows {
		group := &c.groups[lo/format.PageRows]
		if err := sn.add(format.Key(data, lo/c.size.PageRows), group.whole, group.page(lo%format.PageRows/c.size.PageRows)); err != nil {
			return err
		}
	}
	return nil
}

// add adds a page: its content if it was copied, else as it was before.
func (sn *Snapshot) add(k pagefile.Key, copied bool, content []byte) error {
	if copied {
		sn.addPage(k, content)
		return nil
	}
	was, ok := sn.previous[k]
	if !ok {
		return fmt.Errorf("persist: page %v is neither copied nor in the snapshot before", k)
	}
	sn.Pages = append(sn.Pages, snapshotPage{Key: k, tablePage: was})
	return nil
}

// addPage adds a page: a reference if it is as it was in the previous snapshot.
func (sn *Snapshot) addPage(k pagefile.Key, content []byte) {
	p := snapshotPage{Key: k}
	if was, ok := sn.previous[k]; ok && was.sum == xxh3.Hash128(content) {
		p.tablePage = was
	} else {
		p.Content, p.sum, p.Size = content, xxh3.Hash128(content), uint32(len(content))
		sn.Bytes += int64(len(content))
	}
	sn.Pages = append(sn.Pages, p)
}

// addSparse adds the pages of the sparse array of c that have entries. It returns
// scratch.
func (sn *Snapshot) addSparse(c *rowCopy, scratch []uint32) []uint32 {
	if c.size.Rows == 0 || c.resource() {
		return scratch
	}
	if c.dense {
		scratch = c.sparseArray(scratch, sn.Manifest.Total)
	}
	for page := 0; page*format.PageRows < sn.Manifest.Total; page++ {
		k := format.Key(format.Column(c.number, format.SparseArray), page)
		if !c.sparse.has(page) {
			if was, ok := sn.previous[k]; ok {
				sn.Pages = append(sn.Pages, snapshotPage{Key: k, tablePage: was})
			}
			continue
		}
		content, found := format.AppendSparsePage(make([]byte, 0, 2*format.PageRows), scratch[page*format.PageRows:min((page+1)*format.PageRows, len(scratch))])
		if found {
			sn.addPage(k, content)
		}
	}
	return scratch
}

// sparseArray returns the sparse array that belongs to the entities of c.
func (c *rowCopy) sparseArray(scratch []uint32, indices int) []uint32 {
	scratch = slices.Grow(scratch[:0], indices)[:indices]
	for i := range scratch {
		scratch[i] = format.NoRow
	}
	row := uint32(0)
	for g := range c.groups {
		for b := c.groups[g].bytes[:c.groups[g].entities]; len(b) > 0; b, row = b[8:], row+1 {
			if e := ecs.Entity(binary.LittleEndian.Uint64(b)); e != ecs.Vacant {
				scratch[e.Index()] = row
			}
		}
	}
	return scratch
}

// References returns the files that the pages refer to.
func (sn *Snapshot) References(crcs map[uint32]uint32) (files []format.FileRef) {
	named := map[uint32]bool{}
	for _, p := range sn.Pages {
		if p.Content == nil && !named[p.File] {
			named[p.File] = true
			files = append(files, format.FileRef{Number: p.File, CRC: crcs[p.File]})
		}
	}
	return files
}

// Write writes sn to a file, which has its name only once it is complete,
// durable and verified, and beforePublish has returned nil. It returns the table
// for the next snapshot.
func (sn *Snapshot) Write(files disk.FS, name string, beforePublish func() error) (pagefile.Info, PageTable, error) {
	table := make(PageTable, len(sn.Pages))
	e := format.NewEncoder()
	info, err := pagefile.CreateWith(files, name, pagefile.Options{BeforePublish: beforePublish}, func(w *pagefile.Writer) error {
		manifest := sn.Manifest.Encode()
		format.PageHead(e, manifest)
		if err := w.Put(format.Key(format.ManifestColumn, 0), e.Buf, manifest); err != nil {
			return err
		}
		for _, p := range sn.Pages {
			if err := sn.put(w, &p, e); err != nil {
				return err
			}
			table[p.Key] = p.tablePage
		}
		return nil
	})
	if err != nil {
		return info, nil, fmt.Errorf("persist: snapshot of tick %d: %w", sn.Manifest.Tick, err)
	}
	return info, table, nil
}

// put puts a page into the file, and notes in p where it lies.
func (sn *Snapshot) put(w *pagefile.Writer, p *snapshotPage, e *format.Encoder) error {
	if p.Content == nil {
		e.Buf = e.Buf[:0]
		format.AppendReference(e, p.PageRef)
		return w.Put(p.Key, e.Buf)
	}
	p.PageRef = format.PageRef{File: sn.Manifest.Number, CRC: format.PageHead(e, p.Content)}
	return w.Put(p.Key, e.Buf, p.Content)
}
