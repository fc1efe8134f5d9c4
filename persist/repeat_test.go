package persist_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/deep"
	"github.com/stet-ecs/stet/internal/golden"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
	"github.com/stet-ecs/stet/persist/internal/snap"
	"github.com/stet-ecs/stet/persist/internal/storetest"
	"github.com/stet-ecs/stet/persist/repair"
)

// Storages with rows in the same order and several pages each, so that some pages are duplicates.
type (
	first  int32
	second int16
	third  struct{}
)

type orderedWorld struct {
	*ecs.World
	a *ecs.Storage[first]
	b *ecs.Storage[second]
	c *ecs.Storage[third]
}

func newOrdered(n int) *orderedWorld {
	w := &orderedWorld{World: ecs.NewWorld(ecs.Options{History: 4})}
	w.a = ecs.MustRegister(w.World, ecs.Component[first]{Name: "first"})
	w.b = ecs.MustRegister(w.World, ecs.Component[second]{Name: "second"})
	w.c = ecs.MustRegister(w.World, ecs.Component[third]{Name: "third"})
	for i := range n {
		w.add(i)
	}
	return w
}

func (w *orderedWorld) add(i int) {
	e := w.Create()
	w.a.Set(e, first(i))
	w.b.Set(e, second(-i))
	w.c.Set(e, third{})
}

// step does a random action. Some actions give storages the same row order, and others give them
// different orders.
func (w *orderedWorld) step(rng *rand.Rand) {
	e := w.Entities()[rng.IntN(w.Len())]
	switch rng.IntN(9) {
	case 0:
		w.a.SortFunc(func(x, y first) int { return cmp.Compare(uint32(x)*2654435761, uint32(y)*2654435761) })
	case 1:
		w.b.SortLike(w.a)
	case 2:
		w.c.SortLike(w.a)
	case 3:
		w.a.SortFunc(func(x, y first) int { return cmp.Compare(x, y) })
		w.b.SortLike(w.a)
		w.c.SortLike(w.a)
	case 4:
		w.Destroy(e)
	case 5:
		w.add(rng.IntN(1 << 14))
	case 6:
		w.b.Remove(e)
	case 7:
		w.b.Set(e, 9)
		w.c.Set(e, third{})
	case 8:
		if w.a.Has(e) {
			w.a.Mut(e)
		}
	}
}

// requireNoTwice fails if a snapshot file holds the same page of entities twice. It counts three
// kinds of pages: those that repeat another page of the file, those that the file holds, and those
// that other files hold.
func requireNoTwice(t *testing.T, r *snap.Reader) (repeats, held, shared int) {
	t.Helper()
	dense := map[string]pagefile.Key{}
	for a := range r.Manifest.Arrays() {
		for page := range a.Pages() {
			content, ref, err := snap.ReadPage(r.File, r.Name, a.Key(page))
			require.NoError(t, err)
			if ref.Column != 0 {
				require.True(t, format.MayRepeat(a.Key(page).Column, ref.Column))
				require.True(t, r.Manifest.Repeats)
			}
			switch {
			case content != nil:
				held++
			case ref.File != 0:
				shared++
			case ref.Column != 0:
				repeats++
			}
			if a.Kind == format.DenseArray && len(content) >= 1024 {
				id := fmt.Sprint(page, string(content))
				require.NotContains(t, dense, id, "page %v equals page %v", a.Key(page), dense[id])
				dense[id] = a.Key(page)
			}
		}
	}
	return repeats, held, shared
}

// requireMoved requires that d lists each row that was added, removed, moved or changed.
func requireMoved(t *testing.T, d *inspect.Diff, older, newer *image.Image) {
	t.Helper()
	for n, c := range newer.Components {
		was := map[ecs.Entity]int{}
		for row, e := range older.Components[n].Entities {
			was[e] = row
		}
		changed := 0
		for row, e := range c.Entities {
			if at, ok := was[e]; !ok || at != row || string(c.AppendRows(nil, row, row+1)) != string(older.Components[n].AppendRows(nil, at, at+1)) {
				changed++
			}
			delete(was, e)
		}
		// On failure, require.Len would print all rows.
		require.Equal(t, changed+len(was), len(d.Components[n].Rows), c.Name)
	}
}

// The order of rows changes between snapshots. All snapshots and saves still have the state of the
// world, whether the test reads whole files or single pages.
func TestRepeatedPages_ChangingOrders(t *testing.T) {
	t.Parallel()
	repeats := 0
	for seed := range deep.Or[uint64](3, 6) {
		rng := rand.New(rand.NewPCG(seed, 3))
		dir := filepath.Join(t.TempDir(), "store")
		w := newOrdered(2*format.PageRows + 700)
		open := func() *persist.Store {
			s, err := persist.Open(storetest.Background, dir, w.World, persist.Options{SnapshotBytes: -1})
			require.NoError(t, err)
			return s
		}
		s := open()
		digests, counts, last := map[string]ecs.Digest{}, map[string][2]int{}, (*image.Image)(nil)
		for range 14 {
			for range 1 + rng.IntN(2) {
				w.step(rng)
			}
			require.NoError(t, s.Commit())
			made, err := s.Snapshot(storetest.Background)
			require.NoError(t, err)
			digests[made.Name], counts[made.Name] = w.Digest(), [2]int{made.Written, made.Shared}
			// After a reopening, the next snapshot compares the checksums of all pages.
			if rng.IntN(4) == 0 {
				require.NoError(t, s.Close(storetest.Background))
				before := w.Digest()
				w = newOrdered(0)
				s = open()
				require.Equal(t, before, w.Digest(), "seed %d", seed)
			}
		}
		require.NoError(t, s.Close(storetest.Background))
		files, err := disk.Open(dir)
		require.NoError(t, err)
		v := storetest.Verified(t, dir)
		for _, info := range v.Snapshots() {
			n, held, shared := requireRead(t, files, info.Name, digests)
			if want, ok := counts[info.Name]; ok {
				require.Equal(t, want, [2]int{held, shared}, info.Name)
			}
			repeats += n
			im, err := v.Catalog().At(storetest.Background, info.ID.Seq)
			require.NoError(t, err)
			if last != nil { // Compare the files page by page.
				d, err := v.Diff(storetest.Background, last.ID.Seq, im.ID.Seq)
				require.NoError(t, err)
				requireMoved(t, d, last, im)
			}
			last = im
		}
		require.NoError(t, persist.Save(storetest.Background, "save", w.World, persist.FileOptions{Files: files}))
		n, _, _ := requireRead(t, files, "save", map[string]ecs.Digest{"save": w.Digest()})
		repeats += n
		again := newOrdered(0)
		require.NoError(t, persist.Load(storetest.Background, "save", again.World, persist.FileOptions{Files: files}))
		require.Equal(t, w.Digest(), again.Digest())
		files.Close()
	}
	require.Greater(t, repeats, 100)
}

// requireRead reads a snapshot file in all ways. It returns the number of repeating pages, of pages
// that the file holds, and of references to other files.
func requireRead(t *testing.T, files disk.FS, name string, digests map[string]ecs.Digest) (repeats, held, shared int) {
	t.Helper()
	r, err := snap.Open(files, name, catalog.SnapshotName)
	require.NoError(t, err)
	defer r.Close()
	for _, bare := range []bool{false, true} {
		table := snap.PageTable{}
		im, err := r.Load(storetest.Background, table, bare)
		require.NoError(t, err)
		if want, ok := digests[name]; ok {
			require.Equal(t, want, im.Digest())
		}
		requirePages(t, r, im, table, bare)
	}
	return requireNoTwice(t, r)
}

// orderedSave returns the pages and the manifest of a save in which pages repeat others.
func orderedSave(t testing.TB) (map[pagefile.Key][]byte, *format.Manifest) {
	t.Helper()
	w := newOrdered(format.PageRows + 300)
	w.b.SortFunc(func(x, y second) int { return cmp.Compare(x, y) })
	w.c.SortLike(w.b)
	pages, m := savePages(&storetest.World{World: w.World})
	require.True(t, m.Repeats)
	return pages, m
}

// repeat returns the value of a page that has no content, but refers to a page in another column or
// file. crc is the checksum of the other page.
func repeat(file, column, crc uint32) []byte {
	e := format.NewEncoder()
	format.AppendReference(e, format.PageRef{File: file, Column: column, CRC: crc})
	return e.Buf
}

func sumOf(t testing.TB, value []byte) uint32 {
	t.Helper()
	_, ref, err := format.DecodePage(value)
	require.NoError(t, err)
	return ref.CRC
}

func TestRepeatedPages_HostileSave(t *testing.T) {
	t.Parallel()
	dense := func(n, page int) pagefile.Key { return format.Key(format.Column(n, format.DenseArray), page) }
	sparse := func(n, page int) pagefile.Key { return format.Key(format.Column(n, format.SparseArray), page) }
	registry := format.Key(format.RegistryColumn, 0)
	good, _ := orderedSave(t)
	require.Equal(t, repeat(0, format.RegistryColumn, sumOf(t, good[registry])), good[dense(0, 0)], "the order of the registry")
	require.Equal(t, repeat(0, dense(1, 0).Column, sumOf(t, good[dense(1, 0)])), good[dense(2, 0)], "the order of the second")
	require.Equal(t, repeat(0, sparse(1, 0).Column, sumOf(t, good[sparse(1, 0)])), good[sparse(2, 0)])
	type pages = map[pagefile.Key][]byte
	for name, c := range map[string]struct {
		lie  func(p pages, m *format.Manifest)
		want string
	}{
		"of a missing page": {func(p pages, _ *format.Manifest) { delete(p, dense(1, 0)) }, "page 13/0 is missing"},
		"of a column that no component has": {func(p pages, _ *format.Manifest) {
			p[dense(2, 0)] = repeat(0, format.Column(7, format.DenseArray), sumOf(t, p[dense(2, 0)]))
		}, "cannot repeat one of column 37"},
		"of itself": {func(p pages, _ *format.Manifest) {
			p[dense(2, 0)] = repeat(0, dense(2, 0).Column, sumOf(t, p[dense(2, 0)]))
		}, "cannot repeat"},
		"in a circle": {func(p pages, _ *format.Manifest) {
			p[dense(1, 0)] = repeat(0, dense(2, 0).Column, sumOf(t, p[dense(1, 0)]))
		}, "cannot repeat"},
		"of a repeat": {func(p pages, _ *format.Manifest) {
			p[dense(2, 0)] = repeat(0, dense(0, 0).Column, sumOf(t, p[dense(0, 0)]))
		}, "repeats"},
		"of data": {func(p pages, _ *format.Manifest) { p[dense(1, 0)] = repeat(0, format.Column(0, format.DataArray), 1) }, "cannot repeat"},
		"by data": {func(p pages, _ *format.Manifest) {
			p[format.Key(format.Column(1, format.DataArray), 0)] = repeat(0, format.Column(0, format.DataArray), 1)
		}, "cannot repeat"},
		"of dense by sparse": {func(p pages, _ *format.Manifest) {
			p[sparse(2, 0)] = repeat(0, dense(1, 0).Column, sumOf(t, p[dense(1, 0)]))
		}, "cannot repeat"},
		"of the registry by sparse": {func(p pages, _ *format.Manifest) { p[sparse(2, 0)] = repeat(0, registry.Column, sumOf(t, p[registry])) }, "cannot repeat"},
		"by the registry":           {func(p pages, _ *format.Manifest) { p[registry] = repeat(0, registry.Column, sumOf(t, p[registry])) }, "cannot repeat"},
		"of the manifest":           {func(p pages, _ *format.Manifest) { p[dense(2, 0)] = []byte{0x93, 2, 0, 0x92, 0, 0} }, "reference to column 0"},
		"with another checksum": {func(p pages, _ *format.Manifest) {
			p[dense(2, 0)] = repeat(0, dense(1, 0).Column, 1+sumOf(t, p[dense(1, 0)]))
		}, "repeats"},
		"in a file that the manifest does not list": {func(p pages, _ *format.Manifest) {
			p[dense(2, 0)] = repeat(3, dense(1, 0).Column, sumOf(t, p[dense(1, 0)]))
		}, "does not list"},
		// The page refers to the registry, whose entities have another order than the sparse array.
		"of another order": {func(p pages, _ *format.Manifest) {
			p[dense(2, 0)] = repeat(0, registry.Column, sumOf(t, p[registry]))
		}, "of another entity"},
		"of another sparse array": {func(p pages, _ *format.Manifest) {
			p[sparse(2, 0)] = repeat(0, sparse(0, 0).Column, sumOf(t, p[sparse(0, 0)]))
		}, "of another entity"},
		"of a page that is longer": {func(_ pages, m *format.Manifest) { m.Components[2].Rows -= 17 }, "differ in length"},
		"without the feature":      {func(_ pages, m *format.Manifest) { m.Repeats = false }, "cannot repeat"},
		"of more rows than exist":  {func(_ pages, m *format.Manifest) { m.Components[2].Rows = 1<<31 - 1 }, "component third"},
		"by the manifest":          {nil, "page 0/0 cannot repeat"},
	} {
		t.Run(name, func(t *testing.T) {
			p, m := orderedSave(t)
			if c.lie != nil {
				c.lie(p, m)
				p[format.Key(format.ManifestColumn, 0)] = direct(m.Encode())
			} else {
				p[format.Key(format.ManifestColumn, 0)] = repeat(0, 5, 1)
			}
			err := loaded(t, hostileSave(t, p))
			require.ErrorIs(t, err, persist.ErrCorrupt)
			require.ErrorContains(t, err, c.want)
		})
	}
	p, m := orderedSave(t)
	p[format.Key(format.ManifestColumn, 0)] = direct(m.Encode())
	require.NoError(t, loaded(t, hostileSave(t, p)))
	e := format.NewEncoder()
	format.AppendReference(e, format.PageRef{File: 1, CRC: 1})
	p[format.Key(format.ManifestColumn, 0)] = e.Buf
	require.ErrorIs(t, loaded(t, hostileSave(t, p)), persist.ErrCorrupt)
}

// FuzzRepeatedPages loads saves with correct checksums. One page repeats another page, by a
// reference that may be invalid.
func FuzzRepeatedPages(f *testing.F) {
	pages, m := orderedSave(f)
	for column := range uint32(20) {
		f.Add(column+1, uint32(1), uint32(0), column, true)
	}
	f.Fuzz(func(t *testing.T, at, page, file, column uint32, sound bool) {
		p := maps.Clone(pages)
		crc := uint32(7)
		if value, ok := p[format.Key(column, int(page))]; sound && ok {
			crc = sumOf(t, value)
		}
		p[format.Key(at%20+1, int(page))] = repeat(file, column, crc)
		p[format.Key(format.ManifestColumn, 0)] = direct(m.Encode())
		_ = loaded(t, hostileSave(t, p))
	})
}

// Recovery of a damaged snapshot also handles pages that repeat others.
func TestRecover_SnapshotWithRepeatedPages(t *testing.T) {
	w := newOrdered(format.PageRows + 300)
	w.a.SortFunc(func(x, y first) int { return cmp.Compare(y, x) })
	w.b.SortLike(w.a)
	w.c.SortLike(w.a)
	save := filepath.Join(t.TempDir(), "save")
	require.NoError(t, persist.Save(storetest.Background, save, w.World))
	pages, _ := savePages(&storetest.World{World: w.World})
	data, err := os.ReadFile(save)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		column uint32
		whole  bool
	}{
		// Recovery can derive a lost sparse array from the dense array.
		"a sparse array that others repeat": {format.Column(0, format.SparseArray), true},
		// Recovery can derive a lost dense array from the sparse array.
		"a dense array that others repeat": {format.Column(0, format.DenseArray), true},
		"data":                             {format.Column(0, format.DataArray), false},
	} {
		t.Run(name, func(t *testing.T) {
			at := strings.Index(string(data), string(pages[format.Key(c.column, 0)]))
			require.Positive(t, at)
			damaged := filepath.Join(t.TempDir(), "damaged")
			require.NoError(t, os.WriteFile(damaged, []byte(storetest.Flip(string(data), at+1500, 1)), 0o600))
			require.ErrorIs(t, persist.Load(storetest.Background, damaged, newOrdered(0).World), persist.ErrCorrupt)
			out := filepath.Join(t.TempDir(), "out")
			report, err := repair.Recover(storetest.Background, damaged, out, repair.RecoverOptions{Partial: !c.whole})
			require.NoError(t, err)
			require.Equal(t, c.whole, report.Complete())
			v := storetest.ViewOf(t, out)
			im, err := v.Catalog().At(storetest.Background, v.Head())
			require.NoError(t, err)
			if c.whole {
				require.Equal(t, w.Digest(), im.Digest())
			}
			require.Equal(t, w.b.Entities(), im.Components[1].Entities)
			require.Equal(t, w.c.Entities(), im.Components[2].Entities)
		})
	}
}

const (
	keptRepeats     = "testdata/repeats-1"
	keptRepeatsText = "testdata/repeats-1.txt"
)

// Later versions can read a save of the first version with repeats. The file is never rewritten.
func TestLoad_FirstSaveWithRepeatedPages(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(keptRepeats); *golden.Update && os.IsNotExist(err) {
		w := newOrdered(300)
		w.b.SortFunc(func(x, y second) int { return cmp.Compare(x, y) })
		w.c.SortLike(w.b)
		require.NoError(t, persist.Save(storetest.Background, keptRepeats, w.World))
		require.NoError(t, os.WriteFile(keptRepeatsText, []byte(describeOrdered(t)), 0o600))
	}
	golden.Kept(t, keptRepeatsText, describeOrdered(t))
	agree(t, keptRepeats)
}

// describeOrdered describes the contents of the kept save, and which pages repeat others.
func describeOrdered(t *testing.T) string {
	t.Helper()
	w := newOrdered(0)
	require.NoError(t, persist.Load(storetest.Background, keptRepeats, w.World))
	r := openedSnapshot(t, keptRepeats)
	var b strings.Builder
	fmt.Fprintf(&b, "digest %v, %d of first, %v of second, %d of third\n", w.Digest(), w.a.Len(), w.b.Entities()[:3], w.c.Len())
	for a := range r.Manifest.Arrays() {
		for page := range a.Pages() {
			content, ref, err := snap.ReadPage(r.File, r.Name, a.Key(page))
			require.NoError(t, err)
			fmt.Fprintf(&b, "page %v has %d bytes, repeats column %d\n", a.Key(page), len(content), ref.Column)
		}
	}
	return b.String()
}
