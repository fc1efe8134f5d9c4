package snap

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"math"
	"slices"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
)

// A salvage fills an image with the pages of a damaged file. It searches the bytes of the files for
// pages. It does not use the tree of keys, which may be damaged. So anything that looks like a page
// and has a correct checksum counts as a page.
type salvage struct {
	*Filling
	// Pages that were found twice with different contents, or whose content is impossible. No copy
	// of such a page is used.
	unusable map[pagefile.Key]*part
}

// SalvageManifest searches a snapshot file for its manifest. The file may be damaged anywhere.
func SalvageManifest(ctx context.Context, files disk.FS, name string) (*format.Manifest, error) {
	var found *format.Manifest
	err := pagefile.Salvage(ctx, files, name, func(k pagefile.Key, value []byte) {
		if k != format.Key(format.ManifestColumn, 0) || found != nil {
			return
		}
		if content, _, err := format.DecodePage(value); err == nil && content != nil {
			found, _ = format.DecodeManifest(slices.Clone(content))
		}
	})
	if err == nil && found == nil {
		err = corrupt(name, "no manifest is left in it")
	}
	return found, err
}

// Salvage collects the pages of a damaged snapshot from its file and the files that it refers to. m
// is the manifest of that snapshot, and nameOf returns the names of the files. Rows of missing
// pages are missing; their entities are [ecs.Vacant]. A page from another file must have the
// checksum in the reference, because that file may have been replaced.
func Salvage(ctx context.Context, files disk.FS, name string, m *format.Manifest, nameOf func(number uint32) string) (*Filling, error) {
	if err := checkClaims(ctx, files, name, m, nameOf); err != nil {
		return nil, err
	}
	f, err := newFilling(ctx, name, m, math.MaxInt64, false)
	if err != nil {
		return nil, err
	}
	for _, c := range f.Image.Components {
		for i := range c.Entities {
			c.Entities[i] = ecs.Vacant
		}
	}
	s := &salvage{f, map[pagefile.Key]*part{}}
	if err := pagefile.Salvage(ctx, files, name, s.visit); err != nil {
		return nil, err
	}
	for _, number := range slices.Sorted(maps.Keys(s.references)) {
		wanted, file := s.references[number], name
		if number != m.Number {
			file = nameOf(number)
		}
		err := pagefile.Salvage(ctx, files, file, func(k pagefile.Key, value []byte) {
			readReferred(wanted[k], value, func(r reference, content []byte) { s.take(r.part, r.key, content, r.ref) })
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	s.dropUnusable()
	f.countGaps()
	return f, nil
}

// visit handles a page of the file itself.
func (s *salvage) visit(k pagefile.Key, value []byte) {
	if p, content, ref, err := s.read(k, value); p != nil && err == nil {
		s.take(p, k, content, ref)
	}
}

// take handles the content of a page.
func (s *salvage) take(p *part, k pagefile.Key, content []byte, ref format.PageRef) {
	crc, placed := s.crcs[k]
	switch {
	case s.unusable[k] != nil:
	case placed && crc == ref.CRC: // The same content is already in place.
	case placed || s.put(p, int(k.Page), content, ref.CRC) != nil:
		s.unusable[k] = p
	}
}

// dropUnusable treats unusable pages as missing. If a page of a sparse array is missing, it is
// unknown which of the indices in its range have rows.
func (s *salvage) dropUnusable() {
	for k, p := range s.unusable {
		p.met.remove(int(k.Page))
	}
	s.sparse = slices.DeleteFunc(s.sparse, func(page SparsePage) bool { return !page.met.has(page.Page) })
}

// salvageFactor limits the rows that a damaged snapshot may claim. The limit is this factor times
// the rows that fit into the files, because the files may be truncated. Without a limit, a false
// manifest could make the program allocate any amount of memory.
const salvageFactor = 16

// checkClaims returns an error if m claims more rows than fit into the file and the files that it
// refers to, times salvageFactor.
func checkClaims(ctx context.Context, files disk.FS, name string, m *format.Manifest, nameOf func(number uint32) string) error {
	names := []string{name}
	for _, f := range m.Files {
		names = append(names, nameOf(f.Number))
	}
	room := int64(64 << 10)
	for _, name := range names {
		if f, err := files.Open(name); err == nil {
			size, _ := f.Size()
			room += salvageFactor * m.Room(size)
			f.Close()
		}
	}
	if m.Repeats {
		_ = pagefile.Salvage(ctx, files, name, func(_ pagefile.Key, value []byte) {
			if len(value) <= format.MaxReference {
				room += salvageFactor * format.MaxRepeated
			}
		})
	}
	if !plausible(m, room) {
		return corrupt(name, "its manifest claims %d entities and more rows than the file can hold", m.Total)
	}
	return nil
}
