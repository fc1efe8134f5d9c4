package snap

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/digest"
	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/internal/pagefile"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// A snapshot of a store is made in three steps. Only the first one stands in the way of the program:
//
//	NewSnapshot, Advance   world's goroutine   copy the groups of rows that Dirty names
//	Assemble               one beside it       sum groups, cut them into pages, look each page up
//	Write                  one beside it       encode and write pages; the table for the next snapshot
//
// A page ends in one of three ways, none of which a reader of the state notices:
//
//	shared     the snapshot before has it: a reference to the file that holds its content
//	repeats    an array before has the same page: a reference to that array's column
//	written    its content
//
// What is not copied is taken from the snapshot before, its pages by the table and its digest by
// the sums. So table, sums and Dirty must all be relative to the same snapshot.

// MaxFiles is how many other files a snapshot may refer to; beyond, the next one
// is written in full. A recovery opens each of them, and none can be removed before the snapshot.
const MaxFiles = 8

// MaxChain is how many snapshots that share pages are made between two full ones. A full one
// shares nothing, so the files before it can go.
const MaxChain = 15

// A PageTable says where the pages of a snapshot lie, and what was in them. It stays in memory
// until the next snapshot, which looks each of its pages up: does some file have it already?
type PageTable map[pagefile.Key]tablePage

// A tablePage is what is known of a page that lies in a file.
type tablePage struct {
	// sum is that of the content. Pages of equal sum are taken as equal without a look at their
	// bytes, which are in a file: 128 bits make a collision by chance as good as impossible.
	sum  xxh3.Uint128
	Size uint32 // Bytes of the content; 0: another page of the snapshot has them.
	rows uint16 // How many rows make a page of its array.
	format.PageRef
}

// pageRows returns how many rows make a page of the data of component number n; 0: it has no such page.
func (t PageTable) pageRows(n int) int {
	return int(t[format.Key(format.Column(n, format.DataArray), 0)].rows)
}

// PageSums are the sums of the pages of 4096 rows that digests are made of: those
// of component number n at n, and of the registry at registryNumber.
type PageSums map[int][]uint64

// registryNumber stands for the registry where components have their numbers.
const registryNumber = -1

// A Snapshot is a state on its way to a file. It is copied in the world's
// goroutine, in one go or in steps, and made into pages and written in another
// one.
type Snapshot struct {
	pageList
	StateCopy
	previous PageTable // Of the snapshot before; nil: write all pages.
	before   PageSums  // Of the same.

	Sums  PageSums // Of this one, once it is assembled: those before of the next one.
	Bytes int64    // Of the pages that no other file has.
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
//
// It tells from about all rows that are not copied, so from saves fewer old values while the
// program goes on.
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
	// Columns are copied in this order: the registry, then components by number. The order of the
	// pages in the file is that of Manifest.Arrays, whatever was copied first.
	registry := &rowCopy{number: registryNumber, size: format.ComponentSize{Rows: total, PageRows: format.PageRows}, rows: base.Dirty.registry}
	registry.init(all)
	registry.skip(from)
	sn.columns = append(sn.columns, registry)
	stored := make([]raw.Storage, len(s.Components))
	for _, st := range w.Raw().Storages() {
		if keep(st) {
			stored[s.Number(st)] = st
		} else {
			from.Done(st, 0, from.Len(st))
		}
	}
	for n, st := range stored {
		if st != nil {
			sn.addComponent(w, from, n, st, &base, all)
		}
	}
	return sn
}

// addComponent adds component number n.
func (sn *Snapshot) addComponent(w *ecs.World, from past, n int, st raw.Storage, base *SnapshotBase, all bool) {
	entry := &sn.Manifest.Schema.Components[n]
	c := &rowCopy{number: n, storage: st, width: st.Layout().Width(), summed: st.Rewinds() && entry.Rewinds}
	// Whether from, which is a tick, has this storage. Resources and what does not rewind can be
	// written at any time, without a tick that says so: they are copied here and now, whole,
	// whatever d says of them.
	fixed := !st.IsResource() && st.Rewinds()
	if fixed {
		c.size.Rows = from.Len(st)
	} else {
		c.size.Rows = st.Rows()
	}
	c.size.PageRows = format.DataPageRows(c.width)
	// Pages can be shared only with those of as many rows. Groups must be whole pages.
	if shared := base.Table.pageRows(n); !all && shared > 0 {
		if all = format.PageRows%shared != 0; !all {
			c.size.PageRows = shared
		}
	}
	p := base.Dirty.component(n)
	c.rows = p.rows
	if !st.IsResource() && c.size.Rows > 0 {
		// Pages of a sparse array are made from the entities in the rows, wherever these lie: if
		// one is to be written, the entities of all rows are copied, 8 bytes each. Entities that
		// were destroyed may have been in any component, as the operation names none.
		c.sparse = p.sparse
		c.sparse.addAll(base.Dirty.destroyed)
		if all || p.cleared || !fixed {
			c.sparse = nil // Not the slice that Dirty has, to which these pages would be added.
			c.sparse.addRows(0, sn.Manifest.Total)
		}
		c.dense = len(c.sparse) > 0
	}
	c.init(all || !fixed)
	sn.Manifest.Components[n] = c.size
	sn.columns = append(sn.columns, c)
	if !fixed {
		c.take(&present{World: w}, 0, len(c.groups), sn.buffers)
		c.taken = true
	}
	c.skip(from)
}

// init makes the groups of c, all of which are copied, or those that c.rows names.
func (c *rowCopy) init(all bool) {
	c.groups = make([]rowGroup, (c.size.Rows+format.PageRows-1)/format.PageRows)
	if all {
		c.rows = nil
		c.rows.addRows(0, c.size.Rows)
	}
}

// Assemble makes pages of what was copied: references for those that are as they
// were in the snapshot before. It needs neither the world nor what it was copied from.
func (sn *Snapshot) Assemble() error {
	if err := sn.sum(); err != nil {
		return err
	}
	columns := map[int]*rowCopy{}
	for _, c := range sn.columns {
		if err := sn.fitPages(c); err != nil {
			return err
		}
		columns[c.number] = c
	}
	for a := range sn.Manifest.Arrays() {
		if a.Pages() == 0 {
			continue
		}
		if err := sn.addArray(&a, columns[a.Component]); err != nil {
			return err
		}
	}
	return nil
}

// ErrPagesShared reports a snapshot whose pages had to be cut again, while an older file has some
// of them. One that shares no pages with older files can be written.
var ErrPagesShared = errors.New("pages became too large, and some are shared with older snapshots; the next snapshot is a full one with smaller pages")

// fitPages gives the pages of c fewer rows if one is too large for a value. That takes all rows.
func (sn *Snapshot) fitPages(c *rowCopy) error {
	largest := 0
	for g := range c.groups {
		for i := range c.groups[g].ends {
			largest = max(largest, len(c.groups[g].page(i)))
		}
	}
	if format.Fits(largest) {
		return nil
	}
	entry := &sn.Manifest.Schema.Components[c.number]
	if err := c.cutAnew(entry); err != nil {
		return fmt.Errorf("component %s: %w", naming.Shown(entry.Name), err)
	}
	sn.Manifest.Components[c.number] = c.size
	return nil
}

// cutAnew chooses how many rows make a page, and cuts the groups into pages of that many.
func (c *rowCopy) cutAnew(entry *format.Entry) error {
	sizes := make([][]int, len(c.groups))
	for g := range c.groups {
		group := &c.groups[g]
		if !group.whole {
			return ErrPagesShared
		}
		first := g * format.PageRows
		rows := make([][]byte, min(format.PageRows, c.size.Rows-first))
		if err := image.CutRows(entry.Layout, rows, group.bytes[group.entities:]); err != nil {
			return fmt.Errorf("rows from %d: %w", first, err)
		}
		for i, row := range rows {
			if err := format.CheckRow(first+i, len(row)); err != nil {
				return err
			}
			sizes[g] = append(sizes[g], len(row))
		}
		c.size.PageRows = format.FewerRows(sizes[g], c.size.PageRows)
	}
	for g := range c.groups {
		group := &c.groups[g]
		end := group.entities
		group.ends = group.ends[:0]
		for page := range slices.Chunk(sizes[g], c.size.PageRows) {
			for _, n := range page {
				end += n
			}
			group.ends = append(group.ends, end)
		}
	}
	return nil
}

// sum makes the digest of the whole state, from the sums of the groups that were copied
// and, for the others, from those that the snapshot before was made with. So it costs what
// was copied, not what there is.
func (sn *Snapshot) sum() error {
	var parts []digest.Part
	var registry uint64
	for _, c := range sn.columns {
		sums, err := sn.sumGroups(c)
		if err != nil {
			return err
		}
		sn.Sums[c.number] = sums
		if sum := digest.Storage(c.size.Rows, sums); c.number == registryNumber {
			registry = digest.RegistryOf(sum, sn.Manifest.Alive, sn.Manifest.Free)
		} else if c.summed && c.size.Rows > 0 {
			parts = append(parts, digest.Part{Name: sn.Manifest.Schema.Components[c.number].Name, Sum: sum})
		}
	}
	sn.Manifest.Digest = ecs.Digest(digest.World(sn.Manifest.Tick, registry, parts))
	return nil
}

// sumGroups returns the sums of the groups of c. The last one may have fewer rows than before: then it is
// dirty, so its sum is never taken from there.
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
			return nil, fmt.Errorf("column %d: rows from %d are neither copied nor in the snapshot before", c.number, g*format.PageRows)
		}
	}
	return sums, nil
}

// addArray adds the pages of a, an array of c. Dense and data pages are parts of what was copied of
// a group, byte for byte. Sparse pages are made: c copies none, since the entities of all rows tell
// what is in them.
func (sn *Snapshot) addArray(a *format.Array, c *rowCopy) error {
	var sparse []uint32
	if a.Kind == format.SparseArray && c.dense {
		sparse = format.SparseOf(c.entities(), a.Rows)
	}
	for number := range a.Pages() {
		k := a.Key(number)
		lo, hi := a.Span(number)
		// A sparse array has one entry for each index, so it may have more pages than the component
		// has groups; it has no use for the group.
		group := &c.groups[min(lo/format.PageRows, len(c.groups)-1)]
		var err error
		switch {
		case a.Kind == format.DenseArray:
			err = sn.addCopied(a, k, group.whole, group.bytes[:group.entities])
		case a.Kind == format.DataArray:
			err = sn.addCopied(a, k, group.whole, group.page(lo%format.PageRows/a.PageRows))
		case c.sparse.has(number):
			if content, found := format.AppendSparsePage(make([]byte, 0, 2*format.PageRows), sparse[lo:hi]); found {
				sn.addPage(a, k, content)
			}
		default:
			sn.share(a, k) // If that has none, there is none: a page without entries is left out.
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addCopied adds a page of a: its content if it was copied, else as it was before.
func (sn *Snapshot) addCopied(a *format.Array, k pagefile.Key, copied bool, content []byte) error {
	if copied {
		sn.addPage(a, k, content)
	} else if !sn.share(a, k) {
		return fmt.Errorf("page %v is neither copied nor in the snapshot before", k)
	}
	return nil
}

// share adds a page of the snapshot before, and reports whether that has it. The reference names
// the file that holds the content, however many snapshots ago that was written: references never
// form a chain.
func (sn *Snapshot) share(a *format.Array, k pagefile.Key) bool {
	was, ok := sn.previous[k]
	if ok {
		sn.add(a.Kind, int(was.Size), page{key: k, tablePage: was})
	}
	return ok
}

// addPage adds a page: a reference if it is as it was in the previous snapshot, which a page
// that ticks wrote may well be: they wrote the values that it had, or went back.
func (sn *Snapshot) addPage(a *format.Array, k pagefile.Key, content []byte) {
	sum := xxh3.Hash128(content)
	if was, ok := sn.previous[k]; ok && was.sum == sum {
		sn.share(a, k)
		return
	}
	sn.add(a.Kind, len(content), page{key: k, content: content, tablePage: tablePage{sum: sum, Size: uint32(len(content)), rows: uint16(a.PageRows)}})
	sn.Bytes += int64(len(content))
}

// entities returns the entities of c, all of which were copied.
func (c *rowCopy) entities() []ecs.Entity {
	entities := make([]ecs.Entity, 0, c.size.Rows)
	for g := range c.groups {
		for i := range c.groups[g].entities / 8 {
			entities = append(entities, format.EntityAt(c.groups[g].bytes, i))
		}
	}
	return entities
}

// Shared returns how many pages other files have, and how many are to be written. Those
// that repeat one to be written are neither.
func (sn *Snapshot) Shared() (shared, written int) {
	for i := range sn.pages {
		switch p := &sn.pages[i]; {
		case p.shared(), p.repeats != nil && sn.pages[*p.repeats].shared():
			shared++
		case p.repeats == nil:
			written++
		}
	}
	return shared, written
}

// References returns the files that the pages refer to, each once, with their checksums from crcs,
// which are by number. Pages that repeat a shared one lie in the file that this one names.
func (sn *Snapshot) References(crcs map[uint32]uint32) (files []format.FileRef) {
	named := map[uint32]bool{}
	for i := range sn.pages {
		if p := &sn.pages[i]; p.shared() && !named[p.File] {
			named[p.File] = true
			files = append(files, format.FileRef{Number: p.File, CRC: crcs[p.File]})
		}
	}
	return files
}

// Write writes sn to a file, which has its name only once it is complete,
// durable and verified, and beforePublish has returned nil. It returns the table
// for the next snapshot. Only once pages are written does each know in which file it is.
func (sn *Snapshot) Write(files disk.FS, name string, beforePublish func() error) (pagefile.Info, PageTable, error) {
	info, err := sn.write(context.Background(), files, name, pagefile.Options{BeforePublish: beforePublish, NoReplace: true, Bolt: true})
	if err != nil {
		return info, nil, fmt.Errorf("persist: snapshot of tick %d: %w", sn.Manifest.Tick, err)
	}
	table := make(PageTable, len(sn.pages))
	for i := range sn.pages {
		table[sn.pages[i].key] = sn.pages[i].tablePage
	}
	return info, table, nil
}
