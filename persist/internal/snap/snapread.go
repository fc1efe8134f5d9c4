package snap

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"github.com/zeebo/xxh3"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/pagefile"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// A Reader reads a snapshot file and those it refers to.
type Reader struct {
	Name     string
	File     *pagefile.File
	Manifest *format.Manifest

	files  disk.FS
	nameOf func(number uint32) string
	Others map[uint32]*pagefile.File
}

// Open opens a snapshot file and reads its manifest. nameOf gives the
// names of files that it refers to.
func Open(files disk.FS, name string, nameOf func(uint32) string) (*Reader, error) {
	f, err := pagefile.Open(files, name)
	if err != nil {
		return nil, FileError(name, err)
	}
	r := &Reader{Name: name, File: f, files: files, nameOf: nameOf, Others: map[uint32]*pagefile.File{}}
	content, err := r.Page(format.Key(format.ManifestColumn, 0))
	if err == nil && content == nil {
		err = fmt.Errorf("%w: no manifest", format.ErrForeign)
	}
	if err == nil {
		r.Manifest, err = format.DecodeManifest(content)
	}
	if err != nil {
		r.Close()
		return nil, r.Damage(err)
	}
	return r, nil
}

// Close lets go of the file and of those it refers to.
func (r *Reader) Close() {
	r.File.Close()
	for _, f := range r.Others {
		f.Close()
	}
}

// FileError makes an error of package pagefile one that names the file.
func FileError(name string, err error) error {
	var damage *pagefile.DamageError
	switch {
	case errors.As(err, &damage) && errors.Is(err, pagefile.ErrCorrupt):
		return &format.DamageError{File: name, Offset: damage.Offset, Length: damage.Length, Reason: damage.Reason, Err: format.ErrCorrupt}
	case errors.Is(err, pagefile.ErrForeign):
		return fmt.Errorf("%w: %w", format.ErrForeign, err)
	case errors.Is(err, pagefile.ErrNewer):
		return fmt.Errorf("%w: %w", format.ErrNewer, err)
	}
	return err
}

// Damage makes err, if it has no place yet, damage of the file.
func (r *Reader) Damage(err error) error {
	var placed *format.DamageError
	if errors.As(err, &placed) || errors.Is(err, format.ErrNewer) || errors.Is(err, format.ErrForeign) {
		return err
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		return err
	}
	return &format.DamageError{File: r.Name, Offset: -1, Length: 0, Reason: err.Error(), Err: format.ErrCorrupt}
}

// Page returns the content of a page, or nil if there is none.
func (r *Reader) Page(k pagefile.Key) ([]byte, error) {
	content, _, err := r.find(k)
	return content, err
}

// find returns the content of a page and where it lies.
func (r *Reader) find(k pagefile.Key) ([]byte, format.PageRef, error) {
	content, ref, err := ReadPage(r.File, r.Name, k)
	if err != nil || content != nil || ref.File == 0 {
		ref.File = r.Number()
		return content, ref, err
	}
	f, err := r.other(ref.File)
	if err != nil {
		return nil, ref, err
	}
	name := r.nameOf(ref.File)
	content, held, err := ReadPage(f, name, k)
	if err == nil && (content == nil || held.CRC != ref.CRC) {
		err = &format.DamageError{File: name, Offset: -1, Length: 0, Reason: fmt.Sprintf("page %v is not the one that %s refers to", k, r.Name), Err: format.ErrCorrupt}
	}
	return content, ref, err
}

// Number returns the number of the file.
func (r *Reader) Number() uint32 {
	if r.Manifest == nil {
		return 0
	}
	return r.Manifest.Number
}

// ReadPage returns the content of a page of f, or the reference it holds, or
// neither.
func ReadPage(f *pagefile.File, name string, k pagefile.Key) ([]byte, format.PageRef, error) {
	value, ok, err := f.Get(k)
	if err != nil || !ok {
		return nil, format.PageRef{}, FileError(name, err)
	}
	content, ref, err := format.DecodePage(value)
	if err != nil {
		return nil, ref, &format.DamageError{File: name, Offset: -1, Length: 0, Reason: fmt.Sprintf("page %v: %v", k, err), Err: format.ErrCorrupt}
	}
	return content, ref, nil
}

// other opens a file that r refers to and checks that it is the one meant.
func (r *Reader) other(number uint32) (*pagefile.File, error) {
	if f, ok := r.Others[number]; ok {
		return f, nil
	}
	for _, ref := range r.Manifest.Files {
		if ref.Number != number {
			continue
		}
		name := r.nameOf(number)
		f, err := pagefile.Open(r.files, name)
		if errors.Is(err, fs.ErrNotExist) {
			err = &format.DamageError{File: name, Offset: -1, Length: 0, Reason: "missing", Err: format.ErrCorrupt}
		}
		if err != nil {
			return nil, fmt.Errorf("%s refers to %s: %w", r.Name, name, FileError(name, err))
		}
		if f.Info().CRC != ref.CRC {
			f.Close()
			return nil, &format.DamageError{File: name, Offset: -1, Length: 0, Reason: "it is not the file that " + r.Name + " refers to", Err: format.ErrCorrupt}
		}
		r.Others[number] = f
		return f, nil
	}
	return nil, &format.DamageError{File: r.Name, Offset: -1, Length: 0, Reason: fmt.Sprintf("it refers to file %d, which its manifest does not list", number), Err: format.ErrCorrupt}
}

// Load checks the whole file and returns the state it holds. It notes in table,
// if that is not nil, where the pages lie. A bare image has only what a world is
// filled with: it cannot be asked for single rows or replay ticks.
func (r *Reader) Load(ctx context.Context, table PageTable, bare bool) (*image.Image, error) {
	im, err := r.LoadAtOnce(ctx, table, bare)
	if err == nil || ctx.Err() != nil {
		return im, ctx.Err()
	}
	clear(table)
	return r.LoadInOrder(ctx, table)
}

// LoadInOrder is [Reader.Load] page by page, in the order of their keys. It judges files that
// cannot be loaded at once, and names the first thing that is wrong.
func (r *Reader) LoadInOrder(ctx context.Context, table PageTable) (*image.Image, error) {
	if err := r.File.Verify(ctx); err != nil {
		return nil, FileError(r.Name, err)
	}
	m := r.Manifest
	im := image.New(m.Schema)
	im.Tick, im.ID = m.Tick, m.ID
	if err := r.loadRegistry(im, table); err != nil {
		return nil, r.Damage(fmt.Errorf("entities: %w", err))
	}
	for n, c := range im.Components {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := r.loadComponent(im, n, table); err != nil {
			return nil, r.Damage(fmt.Errorf("component %s: %w", c.Name, err))
		}
	}
	if d := im.Digest(); d != m.Digest {
		return nil, r.Damage(fmt.Errorf("digest %v, recorded as %v", d, m.Digest))
	}
	return im, nil
}

// Rows calls page with the content of each page of a column of n rows.
func (r *Reader) Rows(column uint32, n, rows int, table PageTable, page func(lo, hi int, content []byte) error) error {
	for lo := 0; lo < n; lo += rows {
		k := format.Key(column, lo/rows)
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

func (t PageTable) note(k pagefile.Key, content []byte, ref format.PageRef) {
	if t != nil {
		t[k] = tablePage{xxh3.Hash128(content), uint32(len(content)), ref}
	}
}

// reservable returns how much of n rows of this size to make room for at once:
// not more than the file could hold, whatever its manifest says.
func (r *Reader) reservable(n, size int) int {
	return min(n, int(r.File.Info().Size)/max(1, size))
}

func (r *Reader) loadRegistry(im *image.Image, table PageTable) error {
	m := r.Manifest
	if m.Alive > m.Free || m.Free > m.Total {
		return fmt.Errorf("%d alive, %d with free ones, %d in all", m.Alive, m.Free, m.Total)
	}
	im.Registry = make([]ecs.Entity, 0, r.reservable(m.Total, 8))
	err := r.Rows(format.RegistryColumn, m.Total, format.PageRows, table, func(lo, hi int, content []byte) error {
		if len(content) != 8*(hi-lo) {
			return image.ErrRanges
		}
		for ; len(content) > 0; content = content[8:] {
			im.Registry = append(im.Registry, ecs.Entity(binary.LittleEndian.Uint64(content)))
		}
		return nil
	})
	if err != nil {
		return err
	}
	im.Alive, im.Free = m.Alive, m.Free
	im.Index = make([]uint32, m.Total)
	for row, e := range im.Registry {
		if int(e.Index()) >= m.Total {
			return fmt.Errorf("row %d holds %v of %d", row, e, m.Total)
		}
		im.Index[e.Index()] = uint32(row)
	}
	return nil
}

func (r *Reader) loadComponent(im *image.Image, n int, table PageTable) error {
	c, size := im.Components[n], r.Manifest.Components[n]
	if c.Resource {
		if size.Rows > 1 {
			return fmt.Errorf("resource of %d rows", size.Rows)
		}
	} else {
		c.Reserve(r.reservable(size.Rows, 8+max(c.Width, 0)))
		if err := r.loadDense(c, n, size, table); err != nil {
			return err
		}
	}
	c.N = size.Rows
	if c.Width == 0 {
		return nil
	}
	return r.Rows(format.Column(n, format.DataArray), size.Rows, size.PageRows, table, func(lo, hi int, content []byte) error {
		if c.Width > 0 && len(content) != (hi-lo)*c.Width {
			return image.ErrRanges
		}
		c.ResizeRows(hi)
		rest, err := c.SetRows(lo, hi-lo, content)
		if err == nil && len(rest) > 0 {
			err = image.ErrRanges
		}
		return err
	})
}

func (r *Reader) loadDense(c *image.Component, n int, size format.ComponentSize, table PageTable) error {
	err := r.Rows(format.Column(n, format.DenseArray), size.Rows, format.PageRows, table, func(lo, hi int, content []byte) error {
		if len(content) != 8*(hi-lo) {
			return image.ErrRanges
		}
		c.Entities = image.Resized(c.Entities, hi)
		return c.SetEntities(lo, content, r.Manifest.Total)
	})
	if err != nil {
		return err
	}
	return r.checkSparse(c, n, table)
}

// checkSparse compares the stored sparse array with the one that follows from
// dense.
func (r *Reader) checkSparse(c *image.Component, n int, table PageTable) error {
	found := 0
	for page := 0; page*format.PageRows < len(c.Pointers); page++ {
		k := format.Key(format.Column(n, format.SparseArray), page)
		content, ref, err := r.find(k)
		if err != nil {
			return err
		}
		if content == nil {
			continue
		}
		table.note(k, content, ref)
		entries, err := c.CheckSparse(page, content)
		if err != nil {
			return fmt.Errorf("page %v: %w", k, err)
		}
		found += entries
	}
	if want := len(c.Entities) - c.Gaps; found != want {
		return fmt.Errorf("%d sparse entries for %d entities", found, want)
	}
	return nil
}
