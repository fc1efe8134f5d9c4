package persist

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/digest"
	"github.com/stet-ecs/stet/internal/disk"
	"github.com/stet-ecs/stet/internal/pagefile"
)

// maxFiles is how many other files a snapshot may refer to; beyond, the next one
// is written in full.
const maxFiles = 8

// maxChain is how many snapshots are made between two full ones.
const maxChain = 15

// A pageTable says where the pages of a snapshot lie, and what was in them.
type pageTable map[pagefile.Key]tablePage

type tablePage struct {
	sum  xxh3.Uint128 // Of the content. Pages of equal sum are taken as equal.
	size uint32       // Bytes of the content.
	pageRef
}

// pageSums are the sums of the pages of 4096 rows that digests are made of: those
// of component number n at n, and of the registry at registryNumber.
type pageSums map[int][]uint64

const registryNumber = -1

// A snapshot is a state on its way to a file. It is copied in the world's
// goroutine, in one go or in steps, and made into pages and written in another
// one.
type snapshot struct {
	manifest manifest
	stateCopy
	previous pageTable // Of the snapshot before; nil: write all pages.
	before   pageSums  // Of the same.

	pages []snapshotPage // In the order of their keys.
	sums  pageSums
	bytes int64 // Of the pages to be written.
}

type snapshotPage struct {
	key     pagefile.Key
	content []byte // nil: it is where tablePage says.
	tablePage
}

// A snapshotBase is what a snapshot shares pages with: the snapshot before, and
// what may have changed since.
type snapshotBase struct {
	table pageTable // nil: none.
	sums  pageSums
	dirty dirty
}

// newSnapshot returns a snapshot of from, a state of w, of the storages for which
// keep returns true. They must be in s. What does not rewind has no past and is
// copied at once; the rest is to be copied by advance.
func newSnapshot(w *ecs.World, from past, s *schema, base snapshotBase, keep func(ecs.AnyStorage) bool, buffers *bufferList) *snapshot {
	alive, free, total := from.Registry()
	sn := &snapshot{previous: base.table, before: base.sums, sums: pageSums{}}
	sn.manifest = manifest{
		tick:       w.Tick(),
		schema:     &schema{components: slices.Clip(s.components)}, // It may grow while this one is written.
		alive:      alive,
		free:       free,
		total:      total,
		components: make([]componentSize, len(s.components)),
	}
	for n := range sn.manifest.components {
		sn.manifest.components[n].pageRows = pageRows
	}
	sn.buffers = buffers
	all := base.dirty.all || base.table == nil
	registry := &rowCopy{number: registryNumber, size: componentSize{total, pageRows}, rows: base.dirty.registry}
	registry.init(all)
	registry.skip(from)
	sn.columns = append(sn.columns, registry)
	stored := make([]ecs.AnyStorage, len(s.components))
	for _, st := range w.Storages() {
		if keep(st) {
			stored[s.number(st)] = st
		}
	}
	for n, st := range stored {
		if st != nil {
			sn.addComponent(w, from, n, st, &base.dirty, all)
		}
	}
	return sn
}

// addComponent adds component number n.
func (sn *snapshot) addComponent(w *ecs.World, from past, n int, st ecs.AnyStorage, d *dirty, all bool) {
	entry := &sn.manifest.schema.components[n]
	c := &rowCopy{number: n, storage: st, width: st.Layout().Width(), summed: st.Rewinds() && entry.Rewinds}
	fixed := !st.IsResource() && st.Rewinds() // Else it may be another one than any tick says.
	if fixed {
		c.size.rows = from.Len(st)
	} else {
		c.size.rows = st.Rows()
	}
	c.size.pageRows = dataPageRows(c.width)
	p := d.component(n)
	c.rows = p.rows
	if !st.IsResource() && c.size.rows > 0 {
		c.sparse = p.sparse
		c.sparse.addAll(d.destroyed)
		if all || p.cleared || !fixed {
			c.sparse = nil
			c.sparse.addRows(0, sn.manifest.total)
		}
		c.dense = len(c.sparse) > 0
	}
	c.init(all || !fixed)
	sn.manifest.components[n] = c.size
	sn.columns = append(sn.columns, c)
	if !fixed {
		c.take(&present{World: w}, 0, len(c.groups), sn.buffers)
		c.taken = true
	}
	c.skip(from)
}

// init makes the groups of c, which are copied all or as c.rows says.
func (c *rowCopy) init(all bool) {
	c.groups = make([]rowGroup, (c.size.rows+pageRows-1)/pageRows)
	if all {
		c.rows = nil
		c.rows.addRows(0, c.size.rows)
	}
}

// assemble makes pages of what was copied: references for those that are as they
// were in the snapshot before.
func (sn *snapshot) assemble() error {
	var parts []digest.Part
	var registry uint64
	var scratch []uint32
	for _, c := range sn.columns {
		sums, err := sn.sumGroups(c)
		if err != nil {
			return err
		}
		sn.sums[c.number] = sums
		if c.number == registryNumber {
			registry = digest.RegistryOf(digest.Storage(c.size.rows, sums), sn.manifest.alive, sn.manifest.free)
			err = sn.addGroups(c, registryColumn, 0)
		} else {
			if c.summed && c.size.rows > 0 {
				parts = append(parts, digest.Part{Name: sn.manifest.schema.components[c.number].Name, Sum: digest.Storage(c.size.rows, sums)})
			}
			scratch = sn.addSparse(c, scratch)
			err = sn.addGroups(c, column(c.number, denseArray), column(c.number, dataArray))
		}
		if err != nil {
			return err
		}
	}
	sn.manifest.digest = ecs.Digest(digest.World(sn.manifest.tick, registry, parts))
	return nil
}

// sumGroups returns the sums of the groups of c.
func (sn *snapshot) sumGroups(c *rowCopy) ([]uint64, error) {
	before := sn.before[c.number]
	sums := make([]uint64, len(c.groups))
	for g := range c.groups {
		switch {
		case c.groups[g].whole:
			sums[g] = digest.Page(c.groups[g].bytes)
		case g < len(before):
			sums[g] = before[g]
		default:
			return nil, fmt.Errorf("persist: column %d: rows from %d are neither copied nor in the snapshot before", c.number, g*pageRows)
		}
	}
	return sums, nil
}

// addGroups adds the pages of entities and rows of c.
func (sn *snapshot) addGroups(c *rowCopy, dense, data uint32) error {
	for g := range c.groups {
		if group := &c.groups[g]; !c.resource() {
			if err := sn.add(key(dense, g), group.whole, group.bytes[:group.entities]); err != nil {
				return err
			}
		}
	}
	if c.storage == nil || c.width == 0 {
		return nil
	}
	for lo := 0; lo < c.size.rows; lo += c.size.pageRows {
		group := &c.groups[lo/pageRows]
		if err := sn.add(key(data, lo/c.size.pageRows), group.whole, group.page(lo%pageRows/c.size.pageRows)); err != nil {
			return err
		}
	}
	return nil
}

// add adds a page: its content if it was copied, else as it was before.
func (sn *snapshot) add(k pagefile.Key, copied bool, content []byte) error {
	if copied {
		sn.addPage(k, content)
		return nil
	}
	was, ok := sn.previous[k]
	if !ok {
		return fmt.Errorf("persist: page %v is neither copied nor in the snapshot before", k)
	}
	sn.pages = append(sn.pages, snapshotPage{key: k, tablePage: was})
	return nil
}

// addPage adds a page: a reference if it is as it was in the previous snapshot.
func (sn *snapshot) addPage(k pagefile.Key, content []byte) {
	p := snapshotPage{key: k}
	if was, ok := sn.previous[k]; ok && was.sum == xxh3.Hash128(content) {
		p.tablePage = was
	} else {
		p.content, p.sum, p.size = content, xxh3.Hash128(content), uint32(len(content))
		sn.bytes += int64(len(content))
	}
	sn.pages = append(sn.pages, p)
}

// addSparse adds the pages of the sparse array of c that have entries. It returns
// scratch.
func (sn *snapshot) addSparse(c *rowCopy, scratch []uint32) []uint32 {
	if c.size.rows == 0 || c.resource() {
		return scratch
	}
	if c.dense {
		scratch = c.sparseArray(scratch, sn.manifest.total)
	}
	for page := 0; page*pageRows < sn.manifest.total; page++ {
		k := key(column(c.number, sparseArray), page)
		if !c.sparse.has(page) {
			if was, ok := sn.previous[k]; ok {
				sn.pages = append(sn.pages, snapshotPage{key: k, tablePage: was})
			}
			continue
		}
		content, found := appendSparsePage(make([]byte, 0, 2*pageRows), scratch[page*pageRows:min((page+1)*pageRows, len(scratch))])
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
		scratch[i] = noRow
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

// references returns the files that the pages refer to.
func (sn *snapshot) references(crcs map[uint32]uint32) (files []fileRef) {
	named := map[uint32]bool{}
	for _, p := range sn.pages {
		if p.content == nil && !named[p.file] {
			named[p.file] = true
			files = append(files, fileRef{p.file, crcs[p.file]})
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
		manifest := sn.manifest.encode()
		pageHead(e, manifest)
		if err := w.Put(key(manifestColumn, 0), e.buf, manifest); err != nil {
			return err
		}
		for _, p := range sn.pages {
			if err := sn.put(w, &p, e); err != nil {
				return err
			}
			table[p.key] = p.tablePage
		}
		return nil
	})
	if err != nil {
		return info, nil, fmt.Errorf("persist: snapshot of tick %d: %w", sn.manifest.tick, err)
	}
	return info, table, nil
}

// put puts a page into the file, and notes in p where it lies.
func (sn *snapshot) put(w *pagefile.Writer, p *snapshotPage, e *encoder) error {
	if p.content == nil {
		e.buf = e.buf[:0]
		appendReference(e, p.pageRef)
		return w.Put(p.key, e.buf)
	}
	p.pageRef = pageRef{sn.manifest.number, pageHead(e, p.content)}
	return w.Put(p.key, e.buf, p.content)
}
