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
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
)

// A snapshot of a store takes three steps. Only the first step delays the program:
//
//	NewSnapshot, Advance   world's goroutine   copies the groups of rows that Dirty names
//	Assemble               another goroutine   sums groups, splits them into pages, looks pages up
//	Write                  another goroutine   encodes and writes pages; returns the next table
//
// A page is stored in one of three ways. Readers of the state see no difference:
//
//	shared     the previous snapshot has it: a reference to the file with its content
//	repeats    an earlier array has the same page: a reference to that array's column
//	written    its content
//
// For rows that are not copied, the previous snapshot has the pages (in the table) and the
// checksums for the digest. So table, checksums and Dirty must refer to the same snapshot.

// MaxFiles is the maximum number of other files that a snapshot refers to. Beyond that, the next
// snapshot is full. Recovery opens each of these files, and none of them can be removed as long as
// the snapshot exists.
const MaxFiles = 8

// MaxChain is the maximum number of snapshots between two full ones. A full snapshot shares no
// pages, so the files before it can be removed.
const MaxChain = 15

// A PageTable has the position and checksum of each page of a snapshot. It stays in memory, so that
// the next snapshot can find the files that already have its pages.
type PageTable map[pagefile.Key]tablePage

// A tablePage describes a page in a file.
type tablePage struct {
	// sum is the checksum of the content. Pages with equal checksums count as equal without
	// comparing their bytes, which are in a file. With 128 bits, a collision by chance is
	// practically impossible.
	sum xxh3.Uint128
	// Size of the content in bytes. 0 if the page repeats another page of the file, which counts
	// the bytes.
	Size uint32
	rows uint16 // Number of rows in each page of the array.
	format.PageRef
}

// pageRows returns the number of rows in a data page of component number n, or 0 if there is none.
func (t PageTable) pageRows(n int) int {
	return int(t[format.Key(format.Column(n, format.DataArray), 0)].rows)
}

// PageSums are the checksums of groups of 4096 rows, from which digests are computed. The key is
// the component number, or registryNumber for the registry.
type PageSums map[int][]uint64

// registryNumber stands for the registry in place of a component number.
const registryNumber = -1

// A Snapshot writes a state to a file. The world's goroutine copies the state, in one go or in
// steps. Another goroutine makes pages of the copy and writes them.
type Snapshot struct {
	pageList
	StateCopy
	// Page table of the previous snapshot. Nil means that all pages are written.
	previous PageTable
	before   PageSums // Checksums of the previous snapshot.

	// Checksums of this snapshot, set by Assemble. The next snapshot has them in its field before.
	Sums  PageSums
	Bytes int64 // Size of the pages that no other file has.
}

// A SnapshotBase describes the previous snapshot, with which a new one shares pages. It also has
// the changes since that snapshot.
type SnapshotBase struct {
	Table PageTable // Nil means no previous snapshot.
	Sums  PageSums
	Dirty Dirty
}

// NewSnapshot returns a snapshot of a state of w. The parameter from reads that state. The snapshot
// covers the storages for which keep returns true; they must be in s. NewSnapshot immediately
// copies resources and storages that do not rewind. Advance copies all other storages.
//
// NewSnapshot calls from.Done for all rows that will not be copied, so the world keeps fewer old
// values while the program continues.
func NewSnapshot(w *ecs.World, from raw.Pin, s *format.Schema, base SnapshotBase, keep func(raw.Storage) bool, buffers *BufferList) *Snapshot {
	alive, free, total := from.Registry()
	sn := &Snapshot{previous: base.Table, before: base.Sums, Sums: PageSums{}}
	sn.Manifest = format.Manifest{
		Tick: w.Tick(),
		// Clip the slice, because s may grow while this snapshot is written.
		Schema:     &format.Schema{Components: slices.Clip(s.Components)},
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
	// Columns are copied in this order: the registry, then components by number. Pages in the file
	// have the order of Manifest.Arrays, independent of the copying.
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
			sn.addComponent(from, n, st, &base, all)
		}
	}
	return sn
}

// addComponent adds component number n.
func (sn *Snapshot) addComponent(from raw.Pin, n int, st raw.Storage, base *SnapshotBase, all bool) {
	entry := &sn.Manifest.Schema.Components[n]
	c := &rowCopy{number: n, storage: st, width: st.Layout().Width(), summed: st.Rewinds() && entry.Rewinds}
	// fixed says whether the parameter from has this storage. It is a state at the end of a tick,
	// without resources and storages that do not rewind. These can change without a tick. So they
	// are copied completely and immediately, whatever Dirty contains.
	fixed := !st.IsResource() && st.Rewinds()
	if fixed {
		c.size.Rows = from.Len(st)
	} else {
		c.size.Rows = st.Rows()
	}
	c.size.PageRows = format.DataPageRows(c.width)
	// Two snapshots can share a page only if it has the same rows in both. So keep the number of
	// rows that the previous snapshot had in a page. It must divide 4096, the rows of a group.
	if shared := base.Table.pageRows(n); !all && shared > 0 {
		if all = format.PageRows%shared != 0; !all {
			c.size.PageRows = shared
		}
	}
	p := base.Dirty.component(n)
	c.rows = p.rows
	if !st.IsResource() && c.size.Rows > 0 {
		// A page of a sparse array is made from the entities of all rows. If such a page must be
		// written, all entities are copied, 8 bytes each. The operation that destroys an entity
		// does not name its components. So every component writes the sparse pages of destroyed
		// entities.
		c.sparse = p.sparse
		c.sparse.addAll(base.Dirty.destroyed)
		if all || p.cleared || !fixed {
			c.sparse = nil // c.sparse must not share memory with Dirty, so begin with a nil slice.
			c.sparse.addRows(0, sn.Manifest.Total)
		}
		c.dense = len(c.sparse) > 0
	}
	c.init(all || !fixed)
	sn.Manifest.Components[n] = c.size
	sn.columns = append(sn.columns, c)
	if !fixed {
		for g := range c.groups {
			c.takeGroup(presentRows{st}, g, sn.buffers)
		}
		c.taken = true
	}
	c.skip(from)
}

// init creates the groups of c. If all is set, all groups are copied, otherwise those in c.rows.
func (c *rowCopy) init(all bool) {
	c.groups = make([]rowGroup, (c.size.Rows+format.PageRows-1)/format.PageRows)
	if all {
		c.rows = nil
		c.rows.addRows(0, c.size.Rows)
	}
}

// Assemble makes pages of the copied rows. Pages that are unchanged since the previous snapshot
// become references. Assemble needs neither the world nor the copied state.
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

// ErrPagesShared reports a snapshot that cannot be written: its pages became too large, and an
// older file has some of them. A full snapshot can be written instead.
var ErrPagesShared = errors.New("pages became too large, and some are shared with older snapshots; the next snapshot is a full one with smaller pages")

// fitPages reduces the rows per page of c if a page is too large for a file. All rows are then
// needed for new pages. If some rows were not copied, fitPages returns [ErrPagesShared].
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

// cutAnew chooses a new number of rows per page and splits the groups again.
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

// sum computes the digest of the whole state. It uses the checksums of the copied groups. For the
// other groups, it uses the checksums of the previous snapshot. So it costs O(copied bytes).
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

// sumGroups returns the checksums of the groups of c. It takes the checksum of a group that was not
// copied from the previous snapshot. A group that has lost rows since then is dirty, so it was
// copied.
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

// addArray adds the pages of a, an array of c. Dense and data pages are byte ranges of copied
// groups. Sparse pages are computed from the entities of all rows.
func (sn *Snapshot) addArray(a *format.Array, c *rowCopy) error {
	var sparse []uint32
	if a.Kind == format.SparseArray && c.dense {
		sparse = format.SparseOf(c.entities(), a.Rows)
	}
	for number := range a.Pages() {
		k := a.Key(number)
		lo, hi := a.Span(number)
		// A sparse array may have more pages than the component has groups. Sparse pages do not use
		// the variable group, so any group will do.
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
			// If the previous snapshot has no such page, the page has no entries and is not stored.
			sn.share(a, k)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addCopied adds a page of a. If the page was not copied, it is taken from the previous snapshot.
func (sn *Snapshot) addCopied(a *format.Array, k pagefile.Key, copied bool, content []byte) error {
	if copied {
		sn.addPage(a, k, content)
	} else if !sn.share(a, k) {
		return fmt.Errorf("page %v is neither copied nor in the snapshot before", k)
	}
	return nil
}

// share adds a page of the previous snapshot and reports whether that snapshot has the page. The
// reference always names the file with the content, so references never form a chain.
func (sn *Snapshot) share(a *format.Array, k pagefile.Key) bool {
	was, ok := sn.previous[k]
	if ok {
		sn.add(a.Kind, int(was.Size), page{key: k, tablePage: was})
	}
	return ok
}

// addPage adds a page. If the page equals that of the previous snapshot, it becomes a reference.
// This happens if ticks wrote the same values again, or after a rewind.
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

// Shared returns how many pages are stored in other files, and how many will be written. Neither
// number includes pages that repeat a written page.
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

// References returns the files that the pages refer to, each once. crcs has their checksums by file
// number. A page that repeats a shared page does not add a file, because both are in the same file.
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

// Write writes sn to a file. The file gets its name once it is complete, durable and verified, and
// beforePublish has returned nil. Write returns the table for the next snapshot, because the
// positions of pages are known only after writing.
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
