package persist

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"github.com/zeebo/xxh3"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/disk"
	"github.com/stet-ecs/stet/internal/pagefile"
)

// A snapshotReader reads a snapshot file and those it refers to.
type snapshotReader struct {
	name     string
	file     *pagefile.File
	manifest *manifest

	files  disk.FS
	nameOf func(number uint32) string
	others map[uint32]*pagefile.File
}

// openSnapshot opens a snapshot file and reads its manifest. nameOf gives the
// names of files that it refers to.
func openSnapshot(files disk.FS, name string, nameOf func(uint32) string) (*snapshotReader, error) {
	f, err := pagefile.Open(files, name)
	if err != nil {
		return nil, fileError(name, err)
	}
	r := &snapshotReader{name: name, file: f, files: files, nameOf: nameOf, others: map[uint32]*pagefile.File{}}
	content, err := r.page(key(manifestColumn, 0))
	if err == nil && content == nil {
		err = fmt.Errorf("%w: no manifest", ErrForeign)
	}
	if err == nil {
		r.manifest, err = decodeManifest(content)
	}
	if err != nil {
		r.close()
		return nil, r.damage(err)
	}
	return r, nil
}

func (r *snapshotReader) close() {
	r.file.Close()
	for _, f := range r.others {
		f.Close()
	}
}

// fileError makes an error of package pagefile one of this package.
func fileError(name string, err error) error {
	var damage *pagefile.DamageError
	switch {
	case errors.As(err, &damage) && errors.Is(err, pagefile.ErrCorrupt):
		return &DamageError{name, damage.Offset, damage.Length, damage.Reason, ErrCorrupt}
	case errors.Is(err, pagefile.ErrForeign):
		return fmt.Errorf("%w: %w", ErrForeign, err)
	case errors.Is(err, pagefile.ErrNewer):
		return fmt.Errorf("%w: %w", ErrNewer, err)
	}
	return err
}

// damage makes err, if it has no place yet, damage of the file.
func (r *snapshotReader) damage(err error) error {
	var placed *DamageError
	if errors.As(err, &placed) || errors.Is(err, ErrNewer) || errors.Is(err, ErrForeign) {
		return err
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		return err
	}
	return &DamageError{r.name, -1, 0, err.Error(), ErrCorrupt}
}

// page returns the content of a page, or nil if there is none.
func (r *snapshotReader) page(k pagefile.Key) ([]byte, error) {
	content, _, err := r.find(k)
	return content, err
}

// find returns the content of a page and where it lies.
func (r *snapshotReader) find(k pagefile.Key) ([]byte, pageRef, error) {
	content, ref, err := readPage(r.file, r.name, k)
	if err != nil || content != nil || ref.file == 0 {
		ref.file = r.number()
		return content, ref, err
	}
	f, err := r.other(ref.file)
	if err != nil {
		return nil, ref, err
	}
	name := r.nameOf(ref.file)
	content, held, err := readPage(f, name, k)
	if err == nil && (content == nil || held.crc != ref.crc) {
		err = &DamageError{name, -1, 0, fmt.Sprintf("page %v is not the one that %s refers to", k, r.name), ErrCorrupt}
	}
	return content, ref, err
}

func (r *snapshotReader) number() uint32 {
	if r.manifest == nil {
		return 0
	}
	return r.manifest.number
}

// readPage returns the content of a page of f, or the reference it holds, or
// neither.
func readPage(f *pagefile.File, name string, k pagefile.Key) ([]byte, pageRef, error) {
	value, ok, err := f.Get(k)
	if err != nil || !ok {
		return nil, pageRef{}, fileError(name, err)
	}
	content, ref, err := decodePage(value)
	if err != nil {
		return nil, ref, &DamageError{name, -1, 0, fmt.Sprintf("page %v: %v", k, err), ErrCorrupt}
	}
	return content, ref, nil
}

// other opens a file that r refers to and checks that it is the one meant.
func (r *snapshotReader) other(number uint32) (*pagefile.File, error) {
	if f, ok := r.others[number]; ok {
		return f, nil
	}
	for _, ref := range r.manifest.files {
		if ref.number != number {
			continue
		}
		name := r.nameOf(number)
		f, err := pagefile.Open(r.files, name)
		if errors.Is(err, fs.ErrNotExist) {
			err = &DamageError{name, -1, 0, "missing", ErrCorrupt}
		}
		if err != nil {
			return nil, fmt.Errorf("%s refers to %s: %w", r.name, name, fileError(name, err))
		}
		if f.Info().CRC != ref.crc {
			f.Close()
			return nil, &DamageError{name, -1, 0, "it is not the file that " + r.name + " refers to", ErrCorrupt}
		}
		r.others[number] = f
		return f, nil
	}
	return nil, &DamageError{r.name, -1, 0, fmt.Sprintf("it refers to file %d, which its manifest does not list", number), ErrCorrupt}
}

// load checks the whole file and returns the state it holds. It notes in table,
// if that is not nil, where the pages lie. A bare image has only what a world is
// filled with: it cannot be asked for single rows or replay ticks.
func (r *snapshotReader) load(ctx context.Context, table pageTable, bare bool) (*Image, error) {
	im, err := r.loadAtOnce(ctx, table, bare)
	if err == nil || ctx.Err() != nil {
		return im, ctx.Err()
	}
	clear(table)
	return r.loadInOrder(ctx, table)
}

// loadInOrder is load page by page, in the order of their keys. It judges files that
// cannot be loaded at once, and names the first thing that is wrong.
func (r *snapshotReader) loadInOrder(ctx context.Context, table pageTable) (*Image, error) {
	if err := r.file.Verify(ctx); err != nil {
		return nil, fileError(r.name, err)
	}
	m := r.manifest
	im := newImage(m.schema)
	im.Tick, im.ID = m.tick, m.id
	if err := r.loadRegistry(im, table); err != nil {
		return nil, r.damage(fmt.Errorf("entities: %w", err))
	}
	for n, c := range im.Components {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := r.loadComponent(im, n, table); err != nil {
			return nil, r.damage(fmt.Errorf("component %s: %w", c.Name, err))
		}
	}
	if d := im.Digest(); d != m.digest {
		return nil, r.damage(fmt.Errorf("digest %v, recorded as %v", d, m.digest))
	}
	return im, nil
}

// rows calls page with the content of each page of a column of n rows.
func (r *snapshotReader) rows(column uint32, n, rows int, table pageTable, page func(lo, hi int, content []byte) error) error {
	for lo := 0; lo < n; lo += rows {
		k := key(column, lo/rows)
		content, ref, err := r.find(k)
		if err != nil {
			return err
		}
		if content == nil {
			return fmt.Errorf("page %v is missing", k)
		}
		table.note(k, content, ref)
		if err := page(lo, min(lo+rows, n), content); err != nil {
			return fmt.Errorf("page %v: %w", k, err)
		}
	}
	return nil
}

func (t pageTable) note(k pagefile.Key, content []byte, ref pageRef) {
	if t != nil {
		t[k] = tablePage{xxh3.Hash128(content), uint32(len(content)), ref}
	}
}

// reservable returns how much of n rows of this size to make room for at once:
// not more than the file could hold, whatever its manifest says.
func (r *snapshotReader) reservable(n, size int) int {
	return min(n, int(r.file.Info().Size)/max(1, size))
}

func (r *snapshotReader) loadRegistry(im *Image, table pageTable) error {
	m := r.manifest
	if m.alive > m.free || m.free > m.total {
		return fmt.Errorf("%d alive, %d with free ones, %d in all", m.alive, m.free, m.total)
	}
	im.Registry = make([]ecs.Entity, 0, r.reservable(m.total, 8))
	err := r.rows(registryColumn, m.total, pageRows, table, func(lo, hi int, content []byte) error {
		if len(content) != 8*(hi-lo) {
			return errRanges
		}
		for ; len(content) > 0; content = content[8:] {
			im.Registry = append(im.Registry, ecs.Entity(binary.LittleEndian.Uint64(content)))
		}
		return nil
	})
	if err != nil {
		return err
	}
	im.Alive, im.Free = m.alive, m.free
	im.index = make([]uint32, m.total)
	for row, e := range im.Registry {
		if int(e.Index()) >= m.total {
			return fmt.Errorf("row %d holds %v of %d", row, e, m.total)
		}
		im.index[e.Index()] = uint32(row)
	}
	return nil
}

func (r *snapshotReader) loadComponent(im *Image, n int, table pageTable) error {
	c, size := im.Components[n], r.manifest.components[n]
	if c.Resource {
		if size.rows > 1 {
			return fmt.Errorf("resource of %d rows", size.rows)
		}
	} else {
		c.reserve(r.reservable(size.rows, 8+max(c.width, 0)))
		if err := r.loadDense(c, n, size, table); err != nil {
			return err
		}
	}
	c.n = size.rows
	if c.width == 0 {
		return nil
	}
	return r.rows(column(n, dataArray), size.rows, size.pageRows, table, func(lo, hi int, content []byte) error {
		if c.width > 0 && len(content) != (hi-lo)*c.width {
			return errRanges
		}
		c.resizeRows(hi)
		rest, err := c.setRows(lo, hi-lo, content)
		if err == nil && len(rest) > 0 {
			err = errRanges
		}
		return err
	})
}

func (r *snapshotReader) loadDense(c *Component, n int, size componentSize, table pageTable) error {
	err := r.rows(column(n, denseArray), size.rows, pageRows, table, func(lo, hi int, content []byte) error {
		if len(content) != 8*(hi-lo) {
			return errRanges
		}
		c.Entities = resized(c.Entities, hi)
		return c.setEntities(lo, content, r.manifest.total)
	})
	if err != nil {
		return err
	}
	return r.checkSparse(c, n, table)
}

// checkSparse compares the stored sparse array with the one that follows from
// dense.
func (r *snapshotReader) checkSparse(c *Component, n int, table pageTable) error {
	found := 0
	for page := 0; page*pageRows < len(c.sparse); page++ {
		k := key(column(n, sparseArray), page)
		content, ref, err := r.find(k)
		if err != nil {
			return err
		}
		if content == nil {
			continue
		}
		table.note(k, content, ref)
		entries, err := c.checkSparse(page, content)
		if err != nil {
			return fmt.Errorf("page %v: %w", k, err)
		}
		found += entries
	}
	if want := len(c.Entities) - c.gaps; found != want {
		return fmt.Errorf("%d sparse entries for %d entities", found, want)
	}
	return nil
}
