package snap

import (
	"context"
	"fmt"
	"sync"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/digest"
	"github.com/stet-ecs/stet/internal/pagefile"
	"github.com/stet-ecs/stet/internal/parallel"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/progress"
)

// A saving is a world on its way to a save. Pages are encoded a batch at a time, by
// several goroutines, while the batch before is written:
//
//	encoding   | batch 0 | batch 1 | batch 2 |
//	writing              | batch 0 | batch 1 | batch 2 |
//	syncing                        | ...              (package pagefile)
type saving struct {
	Manifest format.Manifest
	pages    []savedPage // In the order of their keys.
	size     int64       // Of their rows, about.
	progress *progress.Meter
	buffers  sync.Pool
}

// A savedPage is a page that is still to be encoded.
type savedPage struct {
	key    pagefile.Key
	size   int64
	append func(dst []byte) []byte // Nothing: there is no such page.
}

// An encodedPage is the value of a page, in a buffer that is used again.
type encodedPage struct {
	head    []byte
	content *[]byte // nil: there is no such page.
}

// batchPages is how many pages are encoded before they are handed to the writer.
const batchPages = 32

// Saved returns the saving of w, which must not change until it is written.
func Saved(w *ecs.World) *saving {
	rows, alive, free := w.Raw().Registry()
	schema := format.SchemaOf(w)
	s := beginSaving(format.Manifest{Tick: w.Tick(), Schema: schema, Alive: alive, Free: free, Total: len(rows)}, raw.As[ecs.Entity](rows))
	registry := image.SumRows(len(rows), func(dst []byte, lo, hi int) []byte { return digest.AppendEntities(dst, rows[lo:hi]) })
	stored := make([]raw.Storage, len(schema.Components))
	for _, st := range w.Raw().Storages() {
		if st.Persistent() {
			stored[schema.Number(st)] = st
		}
	}
	var parts []digest.Part
	for n, st := range stored {
		s.component(n, savedRows{raw.As[ecs.Entity](st.Entities()), st.Rows(), st.Layout().Width(), st.AppendRows})
		if st.Rows() > 0 && schema.Rewinds(st) {
			parts = append(parts, digest.Part{Name: st.Name(), Sum: sumStorage(st)})
		}
	}
	s.Manifest.Digest = ecs.Digest(digest.World(w.Tick(), digest.RegistryOf(registry, alive, free), parts))
	return s
}

// SavedImage is Saved of im, under the schema that im has.
func SavedImage(im *image.Image) *saving {
	s := beginSaving(format.Manifest{
		ID: im.ID, Tick: im.Tick, Schema: im.Stored(), Digest: im.Digest(), Alive: im.Alive, Free: im.Free, Total: len(im.Registry),
	}, im.Registry)
	for n, c := range im.Components {
		s.component(n, savedRows{c.Entities, c.N, c.Width, c.AppendRows})
	}
	return s
}

// beginSaving returns a saving of the registry alone.
func beginSaving(m format.Manifest, registry []ecs.Entity) *saving {
	s := &saving{Manifest: m}
	s.buffers.New = func() any { return new([]byte) }
	s.Manifest.Components = make([]format.ComponentSize, len(m.Schema.Components))
	s.cut(format.RegistryColumn, len(registry), format.PageRows, 8, func(dst []byte, lo, hi int) []byte {
		return digest.AppendEntities(dst, registry[lo:hi])
	})
	return s
}

// sumStorage returns the sum of st.
func sumStorage(st raw.Storage) uint64 {
	entities := st.Entities()
	return image.SumRows(st.Rows(), func(dst []byte, lo, hi int) []byte {
		if entities != nil {
			dst = digest.AppendEntities(dst, entities[lo:hi])
		}
		return st.AppendRows(dst, lo, hi)
	})
}

// savedRows are the rows of a component or resource.
type savedRows struct {
	entities []ecs.Entity // None: a resource.
	n, width int          // Rows, and their bytes; -1: rows vary.
	append   func(dst []byte, lo, hi int) []byte
}

// component adds the arrays of component number n.
func (s *saving) component(n int, rows savedRows) {
	indices, entities := s.Manifest.Total, rows.entities
	size := format.ComponentSize{Rows: rows.n, PageRows: format.DataPageRows(rows.width)}
	s.Manifest.Components[n] = size
	if len(entities) > 0 {
		sparse := sync.OnceValue(func() []uint32 { return sparseOf(entities, indices) })
		s.cut(format.Column(n, format.SparseArray), indices, format.PageRows, 0, func(dst []byte, lo, hi int) []byte {
			dst, _ = format.AppendSparsePage(dst, sparse()[lo:hi])
			return dst
		})
		s.cut(format.Column(n, format.DenseArray), len(entities), format.PageRows, 8, func(dst []byte, lo, hi int) []byte {
			return digest.AppendEntities(dst, entities[lo:hi])
		})
	}
	if rows.width != 0 {
		s.cut(format.Column(n, format.DataArray), size.Rows, size.PageRows, max(rows.width, 1), rows.append)
	}
}

// cut cuts n rows into pages.
func (s *saving) cut(column uint32, n, rows, width int, appendRows func(dst []byte, lo, hi int) []byte) {
	for lo := 0; lo < n; lo += rows {
		hi := min(lo+rows, n)
		size := int64(width) * int64(hi-lo)
		s.size += size
		s.pages = append(s.pages, savedPage{format.Key(column, lo/rows), size, func(dst []byte) []byte { return appendRows(dst, lo, hi) }})
	}
}

// Create writes a file of that name.
func (s *saving) Create(ctx context.Context, files disk.FS, name string) (pagefile.Info, error) {
	s.progress = progress.Start(ctx, progress.PhaseWrite, s.size)
	info, err := pagefile.Create(files, name, func(out *pagefile.Writer) error { return s.write(ctx, out) })
	if err != nil {
		return info, fmt.Errorf("persist: save of tick %d: %w", s.Manifest.Tick, err)
	}
	s.progress.Finish()
	return info, nil
}

// write puts all pages into a file.
func (s *saving) write(ctx context.Context, out *pagefile.Writer) error {
	e := format.NewEncoder()
	manifest := s.Manifest.Encode()
	format.PageHead(e, manifest)
	if err := out.Put(format.Key(format.ManifestColumn, 0), e.Buf, manifest); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	batches := make(chan []encodedPage)
	done := make(chan struct{})
	defer func() { cancel(); <-done }()
	go func() {
		defer close(done)
		defer close(batches)
		s.encode(ctx, batches)
	}()
	pages := s.pages
	for batch := range batches {
		for i, p := range batch {
			if err := s.put(out, pages[i], p); err != nil {
				return err
			}
		}
		clear(pages[:len(batch)]) // With the sparse arrays that they hold.
		pages = pages[len(batch):]
	}
	return ctx.Err()
}

func (s *saving) put(out *pagefile.Writer, page savedPage, p encodedPage) error {
	s.progress.Add(page.size)
	if p.content == nil {
		return nil
	}
	defer s.buffers.Put(p.content)
	return out.Put(page.key, p.head, *p.content)
}

// encode encodes all pages, batch by batch, until ctx ends.
func (s *saving) encode(ctx context.Context, batches chan<- []encodedPage) {
	for pages := s.pages; len(pages) > 0; {
		batch := make([]encodedPage, min(batchPages, len(pages)))
		err := parallel.Do(ctx, len(batch), func(i int) error {
			batch[i] = s.encodePage(pages[i])
			return nil
		})
		if err != nil {
			return
		}
		pages = pages[len(batch):]
		select {
		case batches <- batch:
		case <-ctx.Done():
			return
		}
	}
}

func (s *saving) encodePage(page savedPage) encodedPage {
	buf := s.buffers.Get().(*[]byte)
	*buf = page.append((*buf)[:0])
	if len(*buf) == 0 {
		s.buffers.Put(buf)
		return encodedPage{}
	}
	e := format.NewEncoder()
	format.PageHead(e, *buf)
	return encodedPage{e.Buf, buf}
}

// sparseOf returns the sparse array that belongs to entities.
func sparseOf(entities []ecs.Entity, indices int) []uint32 {
	sparse := make([]uint32, indices)
	for i := range sparse {
		sparse[i] = format.NoRow
	}
	for row, e := range entities {
		if e != ecs.Vacant {
			sparse[e.Index()] = uint32(row)
		}
	}
	return sparse
}
