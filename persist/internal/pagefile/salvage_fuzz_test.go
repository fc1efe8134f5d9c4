package pagefile_test

import (
	"bytes"
	"errors"
	"runtime"
	"testing"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
)

// FuzzSalvage searches for pages in files with arbitrary damage. A patch has the format of
// FuzzPatchedFile, but the checksums of the file stay invalid. The search must end, and its values
// must fit into the file. It may read and allocate at most a constant factor times the file's size.
func FuzzSalvage(f *testing.F) {
	root := openRoot(f)
	bases := [][]byte{
		create(f, root, numbered(600, 20)),
		create(f, root, numbered(8, 9000)),
		create(f, root, numbered(5, 50)),
		nil,
	}
	for i, base := range bases {
		f.Add(byte(i), []byte{})
		for page := range uint64(min(len(base)/pageSize, 8)) {
			for _, at := range []uint64{8, 10, 16, 20, 24, 28, 32, 36, 40} {
				f.Add(byte(i), patch(page*pageSize+at, 1<<32-1, 4))
				f.Add(byte(i), patch(page*pageSize+at, 2, 2))
			}
		}
	}
	f.Fuzz(func(t *testing.T, base byte, patches []byte) {
		data := bytes.Clone(bases[int(base)%len(bases)])
		if len(data) == 0 {
			data = patches
		}
		for len(data) > len(patches) && len(patches) >= 13 {
			apply(data, patches)
			patches = patches[13:]
		}
		writeFile(t, root, "f", data)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		visited := 0
		err := pagefile.Salvage(t.Context(), disk.Dir(root), "f", func(_ pagefile.Key, value []byte) { visited += len(value) })
		runtime.ReadMemStats(&after)
		if err != nil && !known(err) {
			t.Errorf("Salvage = %v", err)
		}
		if visited > 4*len(data) {
			t.Errorf("Salvage gave %d bytes of a file of %d", visited, len(data))
		}
		if used, limit := after.TotalAlloc-before.TotalAlloc, uint64(1<<20+5*len(data)); used > limit {
			t.Errorf("for %d bytes it allocated %d, at most %d", len(data), used, limit)
		}
	})
}

func TestSalvage_ValidAndTruncatedFile(t *testing.T) {
	root := openRoot(t)
	for _, pages := range [][]page{numbered(600, 20), numbered(8, 9000), numbered(5, 50)} {
		data := create(t, root, pages)
		for _, cut := range []int{0, footerSize, len(data) / 2} {
			writeFile(t, root, "f", data[:len(data)-cut])
			found := map[pagefile.Key]string{}
			err := pagefile.Salvage(t.Context(), disk.Dir(root), "f", func(k pagefile.Key, value []byte) { found[k] = string(value) })
			if err != nil || len(found) > len(pages) {
				t.Errorf("Salvage = %v, and %d pages of %d", err, len(found), len(pages))
			}
			for _, p := range pages {
				if value, ok := found[p.key]; ok && value != string(p.value) || !ok && cut <= footerSize {
					t.Errorf("%d bytes cut off: %v is %x, want %x", cut, p.key, value, p.value)
				}
			}
		}
	}
}

func TestSalvage_OverlappingLeaves(t *testing.T) {
	root := openRoot(t)
	data := create(t, root, numbered(8, 9000))
	// Every page becomes a leaf of 100 large values.
	for at := 0; at+pageSize <= len(data); at += pageSize {
		copy(data[at+8:], []byte{2, 0, 100, 0})
		for i := range 100 {
			copy(data[at+16+16*i:], []byte{0, 0, 0, 0, 0, 1, 0, 0, 8, 0, 0, 0, 0, 64, 0, 0})
		}
	}
	writeFile(t, root, "f", data)
	visited := 0
	err := pagefile.Salvage(t.Context(), disk.Dir(root), "f", func(_ pagefile.Key, value []byte) { visited += len(value) })
	if !errors.Is(err, disk.ErrCorrupt) || visited == 0 || visited > 4*len(data) {
		t.Errorf("Salvage = %v, and %d bytes of a file of %d", err, visited, len(data))
	}
}
