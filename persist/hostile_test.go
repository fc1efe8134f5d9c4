package persist_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
	"github.com/stet-ecs/stet/persist/internal/snap"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// hostileSave writes a save of the given pages with correct checksums.
func hostileSave(t testing.TB, pages map[pagefile.Key][]byte) string {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	require.NoError(t, err)
	defer root.Close()
	keys := slices.SortedFunc(func(yield func(pagefile.Key) bool) {
		for k := range pages {
			if !yield(k) {
				return
			}
		}
	}, pagefile.Key.Compare)
	_, err = pagefile.Create(disk.Dir(root), "save", func(w *pagefile.Writer) error {
		for _, k := range keys {
			if err := w.Put(k, pages[k]); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
	return filepath.Join(root.Name(), "save")
}

// direct returns the value of an uncompressed page with the given content.
func direct(content []byte) []byte {
	e := format.NewEncoder()
	format.PageHead(e, content)
	return append(e.Buf, content...)
}

// savePages returns the pages of a save of w, and its manifest.
func savePages(w *storetest.World) (pages map[pagefile.Key][]byte, m *format.Manifest) {
	files := disk.Memory()
	if err := persist.Save(storetest.Background, "save", w.World, persist.FileOptions{Files: files}); err != nil {
		panic(err)
	}
	r, err := snap.Open(files, "save", catalog.SnapshotName)
	if err != nil {
		panic(err)
	}
	defer r.Close()
	pages = map[pagefile.Key][]byte{}
	err = r.File.Scan(func(k pagefile.Key, value []byte) error {
		pages[k] = value
		return nil
	})
	if err != nil {
		panic(err)
	}
	return pages, r.Manifest
}

// checkPages fails if a file can be loaded but its pages, read one by one, contain something else.
func checkPages(t testing.TB, file string) {
	t.Helper()
	root, err := os.OpenRoot(filepath.Dir(file))
	require.NoError(t, err)
	defer root.Close()
	r, err := snap.Open(disk.Dir(root), filepath.Base(file), catalog.SnapshotName)
	if err != nil {
		return
	}
	defer r.Close()
	for _, bare := range []bool{false, true} {
		table := snap.PageTable{}
		if got, err := r.Load(storetest.Background, table, bare); err == nil {
			requirePages(t, r, got, table, bare)
		}
	}
}

// requirePages requires that the image im has the content of all pages of r. The map table must
// list exactly the pages that are not empty.
func requirePages(t testing.TB, r *snap.Reader, im *image.Image, table snap.PageTable, bare bool) {
	t.Helper()
	require.NoError(t, r.File.Verify(storetest.Background))
	require.Equal(t, r.Manifest.Digest, im.Digest())
	require.Equal(t, [3]int{r.Manifest.Alive, r.Manifest.Free, r.Manifest.Total}, [3]int{im.Alive, im.Free, len(im.Registry)})
	pages := 0
	for a := range r.Manifest.Arrays() {
		for page := range a.Pages() {
			content, err := r.Page(a, page)
			require.NoError(t, err)
			if _, noted := table[a.Key(page)]; noted {
				pages++
			} else {
				require.Nil(t, content)
			}
			lo, hi := a.Span(page)
			switch {
			case a.Component < 0:
				require.Equal(t, storetest.EntityBytes(im.Registry[lo:hi]...), content)
			case a.Kind == format.DenseArray:
				require.Equal(t, storetest.EntityBytes(im.Components[a.Component].Entities[lo:hi]...), content)
			case a.Kind == format.DataArray:
				require.True(t, bytes.Equal(content, im.Components[a.Component].AppendRows(nil, lo, hi)))
			default:
				requireSparse(t, im.Components[a.Component], lo, hi, content)
			}
		}
	}
	require.Len(t, table, pages)
	for _, c := range im.Components {
		for row, e := range c.Entities {
			if !bare && e != ecs.Vacant && c.Find(e) != row {
				t.Fatalf("%s: %v is at row %d, want %d", c.Name, e, c.Find(e), row)
			}
		}
	}
	last := map[uint32]int{} // A hostile registry may have an index twice.
	for row, e := range im.Registry {
		last[e.Index()] = row
	}
	for row, e := range im.Registry {
		if !bare && last[e.Index()] == row && im.IsAlive(e) != (row < im.Alive) {
			t.Fatalf("%v is alive: %v", e, im.IsAlive(e))
		}
	}
}

// requireSparse requires that entries [lo, hi) of the sparse array of c equal those of a page.
func requireSparse(t testing.TB, c *image.Component, lo, hi int, page []byte) {
	t.Helper()
	want := map[int]int{}
	for row, e := range c.Entities {
		if i := int(e.Index()); e != ecs.Vacant && i >= lo && i < hi {
			want[i-lo] = row
		}
	}
	got := map[int]int{}
	require.NoError(t, format.DecodeSparsePage(page, func(i int, row uint32, n int) error {
		for k := range n {
			got[i+k] = int(row) + k
		}
		return nil
	}))
	require.True(t, maps.Equal(want, got))
}

// loaded loads a save that may be hostile, and reads it without types.
func loaded(t testing.TB, file string) error {
	t.Helper()
	checkPages(t, file)
	info, err := os.Stat(file)
	require.NoError(t, err)
	w := storetest.New(0)
	w.Fill(1)
	before := w.Digest()
	storetest.Bounded(t, int(info.Size()), func() {
		if err = persist.Load(storetest.Background, file, w.World); err != nil {
			require.Equal(t, before, w.Digest(), "a failed Load changed the world")
		}
	})
	storetest.Bounded(t, int(info.Size()), func() {
		if v, e := inspect.OpenReadOnly(storetest.Background, file); e == nil {
			r, e := v.Verify(storetest.Background)
			require.NoError(t, e)
			if err == nil {
				require.Empty(t, r.Problems)
			}
			readTrees(t, v, 0, err == nil)
			v.Close()
		}
	})
	return err
}

// readTrees reads the trees of all entity fields in the state after record seq. If good is set, no
// read may fail.
func readTrees(t testing.TB, v *inspect.View, seq uint64, good bool) {
	t.Helper()
	state, err := v.Peek(storetest.Background, ecs.NewEntity(0, 1), seq)
	for n := 0; err == nil && n < len(state.Components); n++ {
		c := &state.Components[n]
		for _, field := range c.EntityFields() {
			if _, _, err := v.Tree(storetest.Background, 0, c.Name, field, seq); good && !c.Resource {
				require.NoError(t, err)
			}
		}
	}
	if good {
		require.NoError(t, err)
	}
}

func TestLoad_HostileSaves(t *testing.T) {
	t.Parallel()
	wide := &layout.Type{Kind: layout.Array, Len: 1 << 30, Elem: &layout.Type{Kind: layout.Uint8}}
	require.NoError(t, wide.Validate())
	const positions, bags, rulesNumber = 0, 2, 13
	base := storetest.HostileBase(t)
	rows := slices.Repeat([]uint32{format.NoRow}, base.Len()+1)
	for row, e := range base.Position.Entities() {
		rows[e.Index()] = uint32(row)
	}
	rows[0], rows[1] = rows[1], rows[0]
	swapped, _ := format.AppendSparsePage(nil, rows)
	for name, lie := range map[string]func(map[pagefile.Key][]byte, *format.Manifest){
		"more living entities than exist": func(_ map[pagefile.Key][]byte, m *format.Manifest) { m.Alive = m.Total + 1 },
		"more entities than rows":         func(_ map[pagefile.Key][]byte, m *format.Manifest) { m.Total = math.MaxInt32 },
		"fewer entities than rows":        func(_ map[pagefile.Key][]byte, m *format.Manifest) { m.Total, m.Free, m.Alive = 2, 2, 2 },
		"more rows than stored":           func(_ map[pagefile.Key][]byte, m *format.Manifest) { m.Components[positions].Rows = math.MaxInt32 },
		"fewer rows than stored":          func(_ map[pagefile.Key][]byte, m *format.Manifest) { m.Components[positions].Rows-- },
		"another digest":                  func(_ map[pagefile.Key][]byte, m *format.Manifest) { m.Digest++ },
		"another tick":                    func(_ map[pagefile.Key][]byte, m *format.Manifest) { m.Tick++ },
		"a resource of many rows":         func(_ map[pagefile.Key][]byte, m *format.Manifest) { m.Components[rulesNumber].Rows = 5 },
		"a component less":                func(_ map[pagefile.Key][]byte, m *format.Manifest) { m.Components = m.Components[1:] },
		"pages of no rows":                func(_ map[pagefile.Key][]byte, m *format.Manifest) { m.Components[bags].PageRows = 0 },
		"pages of a million rows":         func(_ map[pagefile.Key][]byte, m *format.Manifest) { m.Components[bags].PageRows = 1 << 20 },
		"an unknown row of 1 GiB": func(_ map[pagefile.Key][]byte, m *format.Manifest) {
			m.Schema.Components[positions] = format.Entry{Name: "wide", Layout: wide, Rewinds: true}
		},
		"an unknown world of 1 GiB": func(_ map[pagefile.Key][]byte, m *format.Manifest) {
			m.Schema.Components[rulesNumber] = format.Entry{Name: "wide", Layout: wide, Resource: true, Rewinds: true}
		},
		"a component without a name": func(_ map[pagefile.Key][]byte, m *format.Manifest) { m.Schema.Components[positions].Name = "" },
		"a component twice":          func(_ map[pagefile.Key][]byte, m *format.Manifest) { m.Schema.Components[positions].Name = "bag" },
		"a reference to itself": func(p map[pagefile.Key][]byte, m *format.Manifest) {
			e := format.NewEncoder()
			format.AppendReference(e, format.PageRef{File: 1, CRC: 1})
			p[format.Key(format.RegistryColumn, 0)] = e.Buf
			m.Files = []format.FileRef{{Number: 1, CRC: 1}}
		},
		"a reference to an unlisted file": func(p map[pagefile.Key][]byte, _ *format.Manifest) {
			e := format.NewEncoder()
			format.AppendReference(e, format.PageRef{File: 9, CRC: 1})
			p[format.Key(format.RegistryColumn, 0)] = e.Buf
		},
		"no registry": func(p map[pagefile.Key][]byte, _ *format.Manifest) { delete(p, format.Key(format.RegistryColumn, 0)) },
		"no dense array": func(p map[pagefile.Key][]byte, _ *format.Manifest) {
			delete(p, format.Key(format.Column(positions, format.DenseArray), 0))
		},
		"no sparse array": func(p map[pagefile.Key][]byte, _ *format.Manifest) {
			delete(p, format.Key(format.Column(positions, format.SparseArray), 0))
		},
		"no data": func(p map[pagefile.Key][]byte, _ *format.Manifest) {
			delete(p, format.Key(format.Column(positions, format.DataArray), 0))
		},
		"another sparse array": func(p map[pagefile.Key][]byte, _ *format.Manifest) {
			p[format.Key(format.Column(positions, format.SparseArray), 0)] = p[format.Key(format.Column(bags, format.SparseArray), 0)]
		},
		"a sparse array of other rows": func(p map[pagefile.Key][]byte, _ *format.Manifest) {
			p[format.Key(format.Column(positions, format.SparseArray), 0)] = direct(swapped)
		},
		"half a registry": func(p map[pagefile.Key][]byte, _ *format.Manifest) {
			p[format.Key(format.RegistryColumn, 0)] = direct(make([]byte, 28))
		},
		"a registry of zeros": func(p map[pagefile.Key][]byte, _ *format.Manifest) {
			p[format.Key(format.RegistryColumn, 0)] = direct(make([]byte, 64))
		},
		"data that is too long": func(p map[pagefile.Key][]byte, _ *format.Manifest) {
			p[format.Key(format.Column(positions, format.DataArray), 0)] = direct(make([]byte, 8*8))
		},
		"invalid data": func(p map[pagefile.Key][]byte, _ *format.Manifest) {
			p[format.Key(format.Column(bags, format.DataArray), 0)] = direct([]byte{0xc1, 0xc1})
		},
		"an invalid page": func(p map[pagefile.Key][]byte, _ *format.Manifest) {
			p[format.Key(format.RegistryColumn, 0)] = []byte{0x93}
		},
		"a page of another kind": func(p map[pagefile.Key][]byte, _ *format.Manifest) {
			p[format.Key(format.RegistryColumn, 0)] = []byte{0x93, 2, 0, 0xc4, 0}
		},
		"a page with a wrong sum": func(p map[pagefile.Key][]byte, _ *format.Manifest) { p[format.Key(format.RegistryColumn, 0)][3] ^= 1 },
		"bytes behind a page": func(p map[pagefile.Key][]byte, _ *format.Manifest) {
			p[format.Key(format.RegistryColumn, 0)] = append(p[format.Key(format.RegistryColumn, 0)], 0)
		},
		"a sparse page of garbage": func(p map[pagefile.Key][]byte, _ *format.Manifest) {
			p[format.Key(format.Column(positions, format.SparseArray), 0)] = direct([]byte{0xff, 0xff, 0xff})
		},
	} {
		t.Run(name, func(t *testing.T) {
			pages, m := savePages(storetest.HostileBase(t))
			lie(pages, m)
			pages[format.Key(format.ManifestColumn, 0)] = direct(m.Encode())
			require.ErrorIs(t, loaded(t, hostileSave(t, pages)), persist.ErrCorrupt)
		})
	}
	pages, _ := savePages(storetest.HostileBase(t))
	require.NoError(t, loaded(t, hostileSave(t, pages)))
	delete(pages, format.Key(format.ManifestColumn, 0))
	require.ErrorIs(t, loaded(t, hostileSave(t, pages)), persist.ErrForeign)
}

// Each save here has an inconsistent registry, but correct checksums and a correct digest. So only
// the world itself can find the fault, and must refuse the save.
func TestLoad_RegistryNotAPermutation(t *testing.T) {
	for name, change := range map[string]func([]ecs.Entity){
		"an index twice":      func(rows []ecs.Entity) { rows[7] = rows[0] },
		"a generation of 0":   func(rows []ecs.Entity) { rows[7] = ecs.NewEntity(rows[7].Index(), 0) },
		"dead and alive":      func(rows []ecs.Entity) { rows[0], rows[7] = rows[7], rows[0] },
		"another generation":  func(rows []ecs.Entity) { rows[0] += 1 << 32 },
		"alive without cause": nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := storetest.HostileBase(t)
			im := storetest.ImageOf(t, w)
			if change == nil {
				im.Alive = 3
			} else {
				change(im.Registry)
			}
			pages, m := savePages(w)
			pages[format.Key(format.RegistryColumn, 0)] = direct(storetest.EntityBytes(im.Registry...))
			m.Digest, m.Alive = im.Digest(), im.Alive
			pages[format.Key(format.ManifestColumn, 0)] = direct(m.Encode())
			err := loaded(t, hostileSave(t, pages))
			require.ErrorIs(t, err, persist.ErrCorrupt)
			require.ErrorContains(t, err, "ecs: bad state")
		})
	}
}

func TestOpen_NewerFormats(t *testing.T) {
	t.Parallel()
	s := storetest.NewSample(t)
	d := s.Damaged(t)
	newerFile := func(data string) string { // A page file of the next version.
		b := []byte(data)
		footer := b[len(b)-64:]
		binary.LittleEndian.PutUint32(footer[8:], 2)
		binary.LittleEndian.PutUint32(footer[60:], crc32.Checksum(footer[:60], crc32.MakeTable(crc32.Castagnoli)))
		return string(b)
	}
	newerSegment := func(data string) string {
		b := []byte(data)
		for _, c := range [][]byte{b[:128], b[128:256]} {
			binary.LittleEndian.PutUint32(c[8:], 3)
			binary.LittleEndian.PutUint32(c[124:], crc32.Checksum(c[8:124], crc32.MakeTable(crc32.Castagnoli)))
		}
		return string(b)
	}
	for name, change := range map[string]func(string) string{
		"snapshots/00000003.snap": newerFile,
		"snapshots/00000001.snap": newerFile,
		"journal/00000001.seg":    newerSegment,
		"journal/00000002.seg":    newerSegment,
	} {
		tree := storetest.ReadTree(t, d.Dir)
		tree[name] = change(tree[name])
		_, err := d.Opened(tree)
		require.ErrorIs(t, err, persist.ErrNewer, name)
		require.ErrorContains(t, err, filepath.Base(name))
	}
	file := filepath.Join(t.TempDir(), "save")
	require.NoError(t, os.WriteFile(file, []byte(newerFile(s.Tree["snapshots/00000001.snap"])), 0o600))
	require.ErrorIs(t, persist.Load(storetest.Background, file, storetest.New(0).World), persist.ErrNewer)
	_, err := inspect.OpenReadOnly(storetest.Background, file)
	require.ErrorIs(t, err, persist.ErrNewer)

	pages, m := savePages(storetest.HostileBase(t))
	newer := bytes.Clone(m.Encode())
	newer[1] = 5
	pages[format.Key(format.ManifestColumn, 0)] = direct(newer)
	require.ErrorIs(t, loaded(t, hostileSave(t, pages)), persist.ErrNewer)
}

// If one tick was written by a later version, Open returns ErrNewer. It does not skip the tick.
func TestOpen_TickWrittenByNewerVersion(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{})
	w.Fill(1)
	require.NoError(t, s.Commit())
	payload := storetest.Payload((&format.Tick{Parent: s.IDs()[1], Tick: 2}))
	payload[1] = 4
	_, err := s.Journal().Append(1, 2, 0, payload)
	require.NoError(t, err)
	require.NoError(t, s.Journal().Sync(storetest.Background))
	crashed := storetest.CopyDir(t, dir)
	storetest.CloseStore(t, s)
	before := storetest.ReadTree(t, crashed)
	_, err = persist.Open(storetest.Background, crashed, storetest.New(0).World, persist.Options{})
	require.ErrorIs(t, err, persist.ErrNewer)
	require.Equal(t, before, storetest.ReadTree(t, crashed))
}
