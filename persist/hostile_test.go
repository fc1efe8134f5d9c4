package persist

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

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/disk"
	"github.com/stet-ecs/stet/internal/pagefile"
	"github.com/stet-ecs/stet/journal"
)

// replayed applies a payload to the image of a small world and loads what comes
// out, if anything. It returns the first error.
func replayed(t testing.TB, payload []byte) error {
	t.Helper()
	im := imageOf(t, hostileBase(t))
	var err error
	bounded(t, len(payload), func() {
		var decoded *tick
		if decoded, err = decodeTick(payload); err != nil {
			return
		}
		decoded.parent = im.ID
		if err = im.apply(decoded, journal.ID{Epoch: 1, Seq: 1}); err != nil {
			return
		}
		im.Digest()
		w := newTestWorld(0)
		if err = im.fill(w.World, "payload"); err == nil {
			require.Equal(t, im.Digest(), persistent(w.World))
		}
	})
	return err
}

func TestTicksThatLieAreRefused(t *testing.T) {
	w := hostileBase(t)
	rows, alive, free := w.Registry()
	n, total := w.position.Len(), len(rows)
	const positions, bags, heats, rulesNumber = 0, 2, 5, 11
	e := rows[0]
	registry := func(change func(*registryPatch)) *tick {
		p := &registryPatch{alive: alive, free: free, total: total, ranges: all(total), rows: entityBytes(rows...)}
		change(p)
		return &tick{registry: p}
	}
	storage := func(p storagePatch) *tick { return &tick{storages: []storagePatch{p}} }
	row := w.position.AppendRows(nil, 0, 1)
	ops := func(kind ecs.OpKind, component, count int, entities ...int64) *tick {
		b := binary.AppendUvarint(nil, uint64(int(kind)+8*(component+1)))
		b = binary.AppendUvarint(b, uint64(count))
		for _, v := range entities {
			b = appendInt(b, v)
		}
		return &tick{ops: b}
	}
	for name, lie := range map[string]*tick{
		"more alive than there are":       registry(func(p *registryPatch) { p.alive = total + 1 }),
		"more free than there are":        registry(func(p *registryPatch) { p.free = total + 1 }),
		"fewer alive than operations say": registry(func(p *registryPatch) { p.alive-- }),
		"a registry that grows by nothing": registry(func(p *registryPatch) {
			p.total, p.free, p.ranges, p.rows = 1<<31, 1<<31, nil, nil
		}),
		"a registry that shrinks":           registry(func(p *registryPatch) { p.total, p.free, p.alive, p.ranges, p.rows = 1, 1, 1, nil, nil }),
		"rows that are not in the ranges":   registry(func(p *registryPatch) { p.ranges = all(2) }),
		"ranges past the end":               registry(func(p *registryPatch) { p.ranges = all(total + 1) }),
		"an entity past the end":            registry(func(p *registryPatch) { p.rows = entityBytes(slices.Concat(rows[1:], []ecs.Entity{1 << 20})...) }),
		"a registry that is no permutation": registry(func(p *registryPatch) { p.rows = entityBytes(slices.Concat(rows[:total-1], rows[:1])...) }),
		"a generation of zero": registry(func(p *registryPatch) {
			p.rows = entityBytes(slices.Concat([]ecs.Entity{ecs.NewEntity(e.Index(), 0)}, rows[1:])...)
		}),
		"a component without a number":         storage(storagePatch{number: 1000}),
		"rows before that were not":            storage(storagePatch{before: n + 1, after: n}),
		"rows from nowhere":                    storage(storagePatch{before: n, after: math.MaxUint32}),
		"an entity twice":                      storage(storagePatch{before: n, after: n, entityRanges: all(1), entities: entityBytes(rows[1])}),
		"an entity that is dead":               storage(storagePatch{before: n, after: n, entityRanges: all(1), entities: entityBytes(rows[total-1])}),
		"an entity that is not in the world":   storage(storagePatch{before: n, after: n, entityRanges: all(1), entities: entityBytes(1 << 30)}),
		"entities without a range":             storage(storagePatch{before: n, after: n, entities: entityBytes(e)}),
		"half an entity":                       storage(storagePatch{before: n, after: n, entityRanges: all(1), entities: []byte{1, 2, 3, 4}}),
		"values that are short":                storage(storagePatch{before: n, after: n, valueRanges: all(2), values: row}),
		"values that are long":                 storage(storagePatch{before: n, after: n, valueRanges: all(1), values: append(row, 0)}),
		"values without a range":               storage(storagePatch{before: n, after: n, values: row}),
		"a bool of 2":                          storage(storagePatch{number: 1, before: w.body.Len(), after: w.body.Len(), valueRanges: all(1), values: bytes.Repeat([]byte{2}, 16)}),
		"a string longer than all":             storage(storagePatch{number: bags, before: w.bag.Len(), after: w.bag.Len(), valueRanges: all(1), values: []byte{0x83, 0xa4, 'N', 'a', 'm', 'e', 0xdb, 0xff, 0xff, 0xff, 0xff}}),
		"a resource of no row":                 storage(storagePatch{number: rulesNumber, before: 1}),
		"a resource of two rows":               storage(storagePatch{number: rulesNumber, before: 1, after: 2}),
		"a resource with an entity":            storage(storagePatch{number: rulesNumber, before: 1, after: 1, entityRanges: all(1), entities: entityBytes(e)}),
		"rows more than operations say":        storage(storagePatch{before: n, after: n - 1}),
		"what does not rewind, of the dead":    storage(storagePatch{number: heats, after: 1, entityRanges: all(1), entities: entityBytes(rows[total-1]), valueRanges: all(1), values: []byte{1, 0, 0, 0}}),
		"created without a row":                ops(ecs.OpCreate, noComponent, 1, 90, 1),
		"destroyed and still there":            ops(ecs.OpDestroy, noComponent, 1, int64(e.Index()), 1),
		"added and not there":                  ops(ecs.OpAdd, bags, 1, int64(e.Index()), 1),
		"removed and still there":              ops(ecs.OpRemove, positions, 1, int64(e.Index()), 1),
		"cleared and still there":              ops(ecs.OpClear, positions, 1),
		"all cleared and still there":          ops(ecs.OpClear, noComponent, 1),
		"an operation that does not exist":     ops(7, positions, 1, 1, 1),
		"an operation on a resource":           ops(ecs.OpAdd, rulesNumber, 1, int64(e.Index()), 1),
		"operations of no entity":              ops(ecs.OpAdd, positions, 0),
		"operations of more entities than fit": ops(ecs.OpCreate, noComponent, 1<<40, 1, 1),
		"clears without end":                   ops(ecs.OpClear, positions, 1<<20),
		"an entity before the first":           ops(ecs.OpCreate, noComponent, 1, -1, 1),
		"a generation past the last":           ops(ecs.OpCreate, noComponent, 1, 1, 1<<32),
	} {
		t.Run(name, func(t *testing.T) {
			payload := lie.payload()
			err := replayed(t, payload)
			if name == "what does not rewind, of the dead" {
				require.ErrorIs(t, err, ErrCorrupt) // Refused by the world.
				return
			}
			require.Error(t, err)
		})
	}
	require.NoError(t, replayed(t, new(tick).payload()))
	require.NoError(t, replayed(t, registry(func(*registryPatch) {}).payload()))
}

func TestATickOfWideRowsAllocatesNoMoreThanItHas(t *testing.T) {
	wide := &layout.Type{Kind: layout.Array, Len: 1 << 30, Elem: &layout.Type{Kind: layout.Uint8}}
	for _, asResource := range []bool{false, true} {
		im := imageOf(t, hostileBase(t))
		im.Components = append(im.Components, &Component{Name: "wide", Layout: wide, Resource: asResource, Rewinds: true, width: wide.Width()})
		p := storagePatch{number: len(im.Components) - 1, after: 1}
		if !asResource {
			p.after, p.entityRanges, p.entities = im.Alive, all(im.Alive), entityBytes(im.Registry[:im.Alive]...)
		}
		bounded(t, 0, func() { require.ErrorContains(t, im.applyStorage(&p), "but the values have 0 bytes") })
	}
}

func TestATickOfAnotherParentIsRefused(t *testing.T) {
	im := imageOf(t, hostileBase(t))
	err := im.apply(&tick{parent: journal.ID{Epoch: 1, Seq: 7, CRC: 9}}, journal.ID{Seq: 8})
	require.ErrorContains(t, err, "continues state 1/7/00000009")
}

func TestManyClearsInOneTickAreChecked(t *testing.T) {
	w := hostileBase(t)
	im := imageOf(t, w)
	var b []byte
	for range 200_000 {
		b = binary.AppendUvarint(b, uint64(ecs.OpClear)+8)
		b = binary.AppendUvarint(b, 1)
	}
	err := im.apply(&tick{ops: b}, journal.ID{})
	require.ErrorContains(t, err, "component position: operations lead to 0, patches to 7")
}

// hostileSave writes a save of these pages. Its checksums are right.
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

// direct returns the value of a page with that content.
func direct(content []byte) []byte {
	e := newEncoder()
	pageHead(e, content)
	return append(e.buf, content...)
}

// savePages returns the pages of a save of w, and its manifest.
func savePages(w *testWorld) (map[pagefile.Key][]byte, *manifest) {
	now := &present{World: w.World}
	sn := newSnapshot(w.World, now, schemaOf(w.World), snapshotBase{}, ecs.AnyStorage.Persistent, new(bufferList))
	sn.advance(now, unlimited)
	if err := sn.assemble(); err != nil {
		panic(err)
	}
	pages := map[pagefile.Key][]byte{key(manifestColumn, 0): direct(sn.manifest.encode())}
	for _, p := range sn.pages {
		pages[p.key] = direct(p.content)
	}
	return pages, &sn.manifest
}

// checkOrders fails if a file is loaded at once that would not be loaded in order, or
// with another result.
func checkOrders(t testing.TB, file string) {
	t.Helper()
	root, err := os.OpenRoot(filepath.Dir(file))
	require.NoError(t, err)
	defer root.Close()
	r, err := openSnapshot(disk.Dir(root), filepath.Base(file), snapshotName)
	if err != nil {
		return
	}
	defer r.close()
	for _, bare := range []bool{false, true} {
		table := pageTable{}
		got, err := r.loadAtOnce(background, table, bare)
		if err != nil {
			continue
		}
		inOrder := pageTable{}
		want, err := r.loadInOrder(background, inOrder)
		require.NoError(t, err, "loaded at once only")
		require.True(t, maps.Equal(inOrder, table))
		requireSameImage(t, want, got, bare)
	}
}

func requireSameImage(t testing.TB, want, got *Image, bare bool) {
	t.Helper()
	require.Equal(t, want.Digest(), got.Digest())
	require.Equal(t, [2]int{want.Alive, want.Free}, [2]int{got.Alive, got.Free})
	require.True(t, slices.Equal(want.Registry, got.Registry))
	for i, c := range want.Components {
		g := got.Components[i]
		require.Equal(t, []int{c.n, c.gaps}, []int{g.n, g.gaps})
		require.True(t, slices.Equal(c.Entities, g.Entities))
		require.True(t, bytes.Equal(c.appendRows(nil, 0, c.n), g.appendRows(nil, 0, g.n)))
		for _, e := range got.Registry {
			if !bare && (c.Find(e) != g.Find(e) || want.IsAlive(e) != got.IsAlive(e)) {
				t.Fatalf("%s: %v is at row %d and alive: %v, want %d, %v", c.Name, e, g.Find(e), got.IsAlive(e), c.Find(e), want.IsAlive(e))
			}
		}
	}
}

// loaded loads a save that may be hostile, and reads it without types.
func loaded(t testing.TB, file string) error {
	t.Helper()
	checkOrders(t, file)
	info, err := os.Stat(file)
	require.NoError(t, err)
	w := newTestWorld(0)
	w.fill(1)
	before := w.Digest()
	bounded(t, int(info.Size()), func() {
		if err = Load(background, file, w.World); err != nil {
			require.Equal(t, before, w.Digest(), "a failed Load changed the world")
		}
	})
	bounded(t, int(info.Size()), func() {
		if v, e := OpenReadOnly(background, file); e == nil {
			r, e := v.Verify(background)
			require.NoError(t, e)
			if err == nil {
				require.Empty(t, r.Problems)
			}
			v.Close()
		}
	})
	return err
}

func TestSavesThatLieAreRefused(t *testing.T) {
	wide := &layout.Type{Kind: layout.Array, Len: 1 << 30, Elem: &layout.Type{Kind: layout.Uint8}}
	require.NoError(t, wide.Validate())
	const positions, bags, rulesNumber = 0, 2, 11
	base := hostileBase(t)
	rows := slices.Repeat([]uint32{noRow}, base.Len()+1)
	for row, e := range base.position.Entities() {
		rows[e.Index()] = uint32(row)
	}
	rows[0], rows[1] = rows[1], rows[0]
	swapped, _ := appendSparsePage(nil, rows)
	for name, lie := range map[string]func(map[pagefile.Key][]byte, *manifest){
		"more alive than there are": func(_ map[pagefile.Key][]byte, m *manifest) { m.alive = m.total + 1 },
		"more entities than rows":   func(_ map[pagefile.Key][]byte, m *manifest) { m.total = math.MaxUint32 },
		"fewer entities than rows":  func(_ map[pagefile.Key][]byte, m *manifest) { m.total, m.free, m.alive = 2, 2, 2 },
		"more rows than there are":  func(_ map[pagefile.Key][]byte, m *manifest) { m.components[positions].rows = math.MaxUint32 },
		"fewer rows than there are": func(_ map[pagefile.Key][]byte, m *manifest) { m.components[positions].rows-- },
		"another digest":            func(_ map[pagefile.Key][]byte, m *manifest) { m.digest++ },
		"another tick":              func(_ map[pagefile.Key][]byte, m *manifest) { m.tick++ },
		"a resource of many rows":   func(_ map[pagefile.Key][]byte, m *manifest) { m.components[rulesNumber].rows = 5 },
		"a component less":          func(_ map[pagefile.Key][]byte, m *manifest) { m.components = m.components[1:] },
		"pages of no rows":          func(_ map[pagefile.Key][]byte, m *manifest) { m.components[bags].pageRows = 0 },
		"pages of a million rows":   func(_ map[pagefile.Key][]byte, m *manifest) { m.components[bags].pageRows = 1 << 20 },
		"an unknown row of 1 GiB": func(_ map[pagefile.Key][]byte, m *manifest) {
			m.schema.components[positions] = schemaEntry{Name: "wide", Layout: wide, Rewinds: true}
		},
		"an unknown world of 1 GiB": func(_ map[pagefile.Key][]byte, m *manifest) {
			m.schema.components[rulesNumber] = schemaEntry{Name: "wide", Layout: wide, Resource: true, Rewinds: true}
		},
		"a component without a name": func(_ map[pagefile.Key][]byte, m *manifest) { m.schema.components[positions].Name = "" },
		"a component twice":          func(_ map[pagefile.Key][]byte, m *manifest) { m.schema.components[positions].Name = "bag" },
		"a reference to itself": func(p map[pagefile.Key][]byte, m *manifest) {
			e := newEncoder()
			appendReference(e, pageRef{1, 1})
			p[key(registryColumn, 0)] = e.buf
			m.files = []fileRef{{1, 1}}
		},
		"a reference to an unlisted file": func(p map[pagefile.Key][]byte, _ *manifest) {
			e := newEncoder()
			appendReference(e, pageRef{9, 1})
			p[key(registryColumn, 0)] = e.buf
		},
		"no registry":     func(p map[pagefile.Key][]byte, _ *manifest) { delete(p, key(registryColumn, 0)) },
		"no dense array":  func(p map[pagefile.Key][]byte, _ *manifest) { delete(p, key(column(positions, denseArray), 0)) },
		"no sparse array": func(p map[pagefile.Key][]byte, _ *manifest) { delete(p, key(column(positions, sparseArray), 0)) },
		"no data":         func(p map[pagefile.Key][]byte, _ *manifest) { delete(p, key(column(positions, dataArray), 0)) },
		"another sparse array": func(p map[pagefile.Key][]byte, _ *manifest) {
			p[key(column(positions, sparseArray), 0)] = p[key(column(bags, sparseArray), 0)]
		},
		"a sparse array of other rows": func(p map[pagefile.Key][]byte, _ *manifest) {
			p[key(column(positions, sparseArray), 0)] = direct(swapped)
		},
		"half a registry":     func(p map[pagefile.Key][]byte, _ *manifest) { p[key(registryColumn, 0)] = direct(make([]byte, 28)) },
		"a registry of zeros": func(p map[pagefile.Key][]byte, _ *manifest) { p[key(registryColumn, 0)] = direct(make([]byte, 64)) },
		"data that is too long": func(p map[pagefile.Key][]byte, _ *manifest) {
			p[key(column(positions, dataArray), 0)] = direct(make([]byte, 8*8))
		},
		"data that is no data": func(p map[pagefile.Key][]byte, _ *manifest) {
			p[key(column(bags, dataArray), 0)] = direct([]byte{0xc1, 0xc1})
		},
		"a page that is no page":  func(p map[pagefile.Key][]byte, _ *manifest) { p[key(registryColumn, 0)] = []byte{0x93} },
		"a page of another kind":  func(p map[pagefile.Key][]byte, _ *manifest) { p[key(registryColumn, 0)] = []byte{0x93, 2, 0, 0xc4, 0} },
		"a page with a wrong sum": func(p map[pagefile.Key][]byte, _ *manifest) { p[key(registryColumn, 0)][3] ^= 1 },
		"bytes behind a page": func(p map[pagefile.Key][]byte, _ *manifest) {
			p[key(registryColumn, 0)] = append(p[key(registryColumn, 0)], 0)
		},
		"a sparse page of garbage": func(p map[pagefile.Key][]byte, _ *manifest) {
			p[key(column(positions, sparseArray), 0)] = direct([]byte{0xff, 0xff, 0xff})
		},
	} {
		t.Run(name, func(t *testing.T) {
			pages, m := savePages(hostileBase(t))
			lie(pages, m)
			pages[key(manifestColumn, 0)] = direct(m.encode())
			require.ErrorIs(t, loaded(t, hostileSave(t, pages)), ErrCorrupt)
		})
	}
	pages, _ := savePages(hostileBase(t))
	require.NoError(t, loaded(t, hostileSave(t, pages)))
	delete(pages, key(manifestColumn, 0))
	require.ErrorIs(t, loaded(t, hostileSave(t, pages)), ErrForeign)
}

// A registry that is no permutation passes all checksums if its digest is right:
// the world itself must refuse it.
func TestARegistryThatIsNoPermutationIsRefusedByTheWorld(t *testing.T) {
	for name, change := range map[string]func([]ecs.Entity){
		"an index twice":      func(rows []ecs.Entity) { rows[7] = rows[0] },
		"a generation of 0":   func(rows []ecs.Entity) { rows[7] = ecs.NewEntity(rows[7].Index(), 0) },
		"dead and alive":      func(rows []ecs.Entity) { rows[0], rows[7] = rows[7], rows[0] },
		"another generation":  func(rows []ecs.Entity) { rows[0] += 1 << 32 },
		"alive without cause": nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := hostileBase(t)
			im := imageOf(t, w)
			if change == nil {
				im.Alive = 3
			} else {
				change(im.Registry)
			}
			pages, m := savePages(w)
			pages[key(registryColumn, 0)] = direct(entityBytes(im.Registry...))
			m.digest, m.alive = im.Digest(), im.Alive
			pages[key(manifestColumn, 0)] = direct(m.encode())
			err := loaded(t, hostileSave(t, pages))
			require.ErrorIs(t, err, ErrCorrupt)
			require.ErrorContains(t, err, "ecs: bad state")
		})
	}
}

func TestNewerFormatsAreRefusedAsNewer(t *testing.T) {
	s := newSample(t)
	d := s.damaged(t)
	newerFile := func(data string) string { // A page file of the next version.
		b := []byte(data)
		footer := b[len(b)-64:]
		binary.LittleEndian.PutUint32(footer[8:], 2)
		binary.LittleEndian.PutUint32(footer[60:], crc32.Checksum(footer[:60], castagnoli))
		return string(b)
	}
	newerSegment := func(data string) string {
		b := []byte(data)
		for _, c := range [][]byte{b[:128], b[128:256]} {
			binary.LittleEndian.PutUint32(c[8:], 2)
			binary.LittleEndian.PutUint32(c[124:], crc32.Checksum(c[8:124], castagnoli))
		}
		return string(b)
	}
	for name, change := range map[string]func(string) string{
		"snapshots/00000003.snap": newerFile,
		"snapshots/00000001.snap": newerFile,
		"journal/00000001.seg":    newerSegment,
		"journal/00000002.seg":    newerSegment,
	} {
		tree := readTree(t, d.dir)
		tree[name] = change(tree[name])
		_, err := d.opened(tree)
		require.ErrorIs(t, err, ErrNewer, name)
		require.ErrorContains(t, err, filepath.Base(name))
	}
	file := filepath.Join(t.TempDir(), "save")
	require.NoError(t, os.WriteFile(file, []byte(newerFile(s.tree["snapshots/00000001.snap"])), 0o600))
	require.ErrorIs(t, Load(background, file, newTestWorld(0).World), ErrNewer)
	_, err := OpenReadOnly(background, file)
	require.ErrorIs(t, err, ErrNewer)

	pages, m := savePages(hostileBase(t))
	newer := bytes.Clone(m.encode())
	newer[1] = storeManifest + 1
	pages[key(manifestColumn, 0)] = direct(newer)
	require.ErrorIs(t, loaded(t, hostileSave(t, pages)), ErrNewer)
	schema := m.schema.encode()
	schema[1] = evolvedSchema + 1
	_, err = decodeSchema(schema)
	require.ErrorIs(t, err, ErrNewer)
	payload := new(tick).payload()
	payload[1] = notedTick + 1
	_, err = decodeTick(payload)
	require.ErrorIs(t, err, ErrNewer)
}

// A tick of a later version among those of this one is not skipped.
func TestATickOfALaterVersionIsRefusedAsNewer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	s := open(t, dir, w, Options{})
	w.fill(1)
	require.NoError(t, s.Commit())
	payload := (&tick{parent: s.IDs()[1], tick: 2}).payload()
	payload[1] = notedTick + 1
	_, err := s.Journal().Append(1, 2, 0, payload)
	require.NoError(t, err)
	require.NoError(t, s.Journal().Sync(background))
	crashed := copyDir(t, dir)
	closeStore(t, s)
	before := readTree(t, crashed)
	_, err = Open(background, crashed, newTestWorld(0).World, Options{})
	require.ErrorIs(t, err, ErrNewer)
	require.Equal(t, before, readTree(t, crashed))
}
