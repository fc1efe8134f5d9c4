package pagefile_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"testing"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
)

// FuzzPatchedFile changes some numbers of a valid file and recomputes all checksums. Reading must
// end with pages that fit into the file, or with an error of this package. bbolt must be able to
// read every file that this package accepts.
//
// A patch has 13 bytes: an offset, a number, and how many bytes of the number are written.
func FuzzPatchedFile(f *testing.F) {
	root := pagefile.OpenRoot(f)
	bases := [][]byte{
		create(f, root, numbered(600, 20)),
		create(f, root, numbered(8, 9000)),
		create(f, root, numbered(5, 50)),
	}
	for i, base := range bases {
		forged := forge(base)
		f.Add(byte(i), []byte{})
		for _, id := range []uint64{0, 1, forged.bucket, max(forged.top, 2), forged.leaf(max(forged.top, 2))} {
			for _, at := range []uint64{8, 10, 12, 16, 20, 24, 28, 32, 37} {
				f.Add(byte(i), patch(id*pageSize+at, id, 8))
			}
		}
	}
	f.Fuzz(func(t *testing.T, base byte, patches []byte) {
		good := bases[int(base)%len(bases)]
		b := bytes.Clone(body(good))
		for len(patches) >= 13 {
			apply(b, patches)
			patches = patches[13:]
		}
		resealMetas(b)
		data := sealed(b, pagesOf(good))
		writeFile(t, root, "f", data)
		readAnything(t, root, len(data))
		pages, err := scan(root)
		if _, checkErr := pagefile.Check(t.Context(), disk.Dir(root), "f"); (err == nil) != (checkErr == nil) {
			t.Errorf("Scan = %v, Check = %v", err, checkErr)
		}
		if err == nil {
			checkContent(t, root, pages)
			checkBolt(t, root, pages)
		}
	})
}

// patch returns a patch that writes value at offset, as a number of the given size in bytes.
func patch(offset, value uint64, size byte) []byte {
	p := binary.LittleEndian.AppendUint32(nil, uint32(offset))
	p = binary.LittleEndian.AppendUint64(p, value)
	return append(p, size)
}

// apply applies the patch at the start of patches to b.
func apply(b, patches []byte) {
	at := int(binary.LittleEndian.Uint32(patches)) % len(b)
	size := int(patches[12]) % 9
	copy(b[at:], patches[4:4+size])
}

// FuzzOpen reads arbitrary bytes as a file.
func FuzzOpen(f *testing.F) {
	good := create(f, pagefile.OpenRoot(f), numbered(5, 50))
	f.Add([]byte{})
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(body(good))
	f.Add(good[len(body(good)):])
	f.Add(sealed(nil, 0))
	f.Add(sealed(make([]byte, 3*pageSize), 1))
	root := pagefile.OpenRoot(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		writeFile(t, root, "f", data)
		readAnything(t, root, len(data))
	})
}

// readAnything reads the file in every way. Reading must allocate at most a constant factor times
// the file size, plus the fixed buffers of each reader.
func readAnything(t *testing.T, root *os.Root, size int) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	defer func() {
		runtime.ReadMemStats(&after)
		if used, limit := after.TotalAlloc-before.TotalAlloc, uint64(8<<20+100*size); used > limit {
			t.Errorf("for %d bytes it allocated %d, at most %d", size, used, limit)
		}
	}()
	if _, err := pagefile.Check(context.Background(), disk.Dir(root), "f"); err != nil && !known(err) {
		t.Errorf("Check = %v", err)
	}
	pages, err := scan(root)
	if err != nil && !known(err) {
		t.Errorf("Scan = %v", err)
	}
	total := 0
	for i, p := range pages {
		total += len(p.value)
		if i > 0 && p.key.Compare(pages[i-1].key) <= 0 {
			t.Errorf("Scan gave %v after %v", p.key, pages[i-1].key)
		}
	}
	if total > size {
		t.Errorf("Scan gave %d bytes from a file of %d", total, size)
	}
	checkReadAll(t, root)
	file, err := pagefile.Open(disk.Dir(root), "f")
	if err != nil {
		return
	}
	defer file.Close()
	if u, err := file.Usage(64, func(pagefile.Key, int64, []byte) error { return nil }); err != nil && !known(err) || u.Values > int64(size) {
		t.Errorf("Usage = %+v, %v", u, err)
	}
	for i := range uint32(40) {
		if _, _, err := file.Get(pagefile.Key{Column: 1, Page: i * 16}); err != nil && !known(err) {
			t.Errorf("Get = %v", err)
		}
	}
}

// FuzzSalvage searches for pages in files with arbitrary damage. A patch has the format of
// FuzzPatchedFile, but the checksums of the file stay invalid. The search must end, and its values
// must fit into the file. It may read and allocate at most a constant factor times the file's size.
func FuzzSalvage(f *testing.F) {
	root := pagefile.OpenRoot(f)
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
	root := pagefile.OpenRoot(t)
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
	root := pagefile.OpenRoot(t)
	data := create(t, root, numbered(8, 9000))
	// Every page becomes a leaf of 100 large values, so the leaves overlap.
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
