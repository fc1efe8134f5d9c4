package persist_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/golden"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/storetest"
	"github.com/stet-ecs/stet/persist/repair"
)

type (
	// A tileMap is a large resource of fixed size.
	tileMap struct{ Cells [256][256]uint8 }

	// A sheet is a large row whose size varies.
	sheet struct {
		Name   string
		Pixels []uint8
	}
)

// A mapWorld is a world of large rows, with a store in memory.
type mapWorld struct {
	*ecs.World
	tiles  *ecs.Resource[tileMap]
	sheet  *ecs.Resource[sheet]
	chunks *ecs.Storage[[4096]uint8]
	mem    *disktest.Mem
	store  *persist.Store
}

func newMapWorld(history int) *mapWorld {
	w := ecs.NewWorld(ecs.Options{History: history})
	return &mapWorld{
		World: w, tiles: ecs.Must(ecs.RegisterResource(w, tileMap{})),
		sheet:  ecs.Must(ecs.RegisterResource(w, sheet{"a sheet", make([]uint8, 64<<10)})),
		chunks: ecs.MustRegister(w, ecs.Component[[4096]uint8]{Name: "chunk"}),
	}
}

func openMapWorld(t testing.TB, mem *disktest.Mem, options persist.Options) *mapWorld {
	w := newMapWorld(options.History)
	w.mem = mem
	if options.SnapshotBytes == 0 {
		options.SnapshotBytes = -1
	}
	var err error
	w.store, err = persist.Open(storetest.Background, ".", w.World, storetest.In(mem, options))
	require.NoError(t, err)
	return w
}

// commit ends a tick and returns the size of its payload.
func (w *mapWorld) commit(t testing.TB) int {
	t.Helper()
	require.NoError(t, w.store.Commit())
	return w.last(t).Bytes
}

// last returns the newest record.
func (w *mapWorld) last(t testing.TB) *inspect.Commit {
	t.Helper()
	require.NoError(t, w.store.Sync(storetest.Background))
	v, err := inspect.OpenFS(storetest.Background, w.mem, ".")
	require.NoError(t, err)
	defer v.Close()
	commits, err := v.Commits(w.Raw().Seq(), w.Raw().Seq())
	require.NoError(t, err)
	return &commits[0]
}

// reopened closes the store, checks every state of it, and opens it for another world.
func (w *mapWorld) reopened(t testing.TB, options persist.Options) *mapWorld {
	t.Helper()
	digest := w.Digest()
	require.NoError(t, w.store.Close(storetest.Background))
	requireSound(t, w.mem)
	again := openMapWorld(t, w.mem, options)
	require.Equal(t, digest, again.Digest())
	return again
}

func (w *mapWorld) close(t testing.TB) {
	t.Helper()
	digest := w.Digest()
	require.NoError(t, w.store.Close(storetest.Background))
	v := requireSound(t, w.mem)
	im, err := v.At(storetest.Background, v.Head())
	require.NoError(t, err)
	require.Equal(t, digest, im.Digest())
}

func requireSound(t testing.TB, mem *disktest.Mem) *inspect.View {
	t.Helper()
	v, err := inspect.OpenFS(storetest.Background, mem, ".")
	require.NoError(t, err)
	t.Cleanup(func() { v.Close() })
	r, err := v.Verify(storetest.Background)
	require.NoError(t, err)
	require.Empty(t, r.Problems)
	return v
}

func TestEdits_OneByteChanged(t *testing.T) {
	for _, history := range []int{0, 5} {
		w := openMapWorld(t, disktest.New(), persist.Options{History: history})
		var entities []ecs.Entity
		for range 100 {
			e := w.Create()
			w.chunks.Set(e, [4096]uint8{1})
			entities = append(entities, e)
		}
		// These ticks write both resources in full. Then the storage of sheets, whose size varies,
		// counts as large.
		for range 2 {
			w.tiles.Mut().Cells[0][0]++
			w.sheet.Mut().Pixels[0]++
			w.commit(t)
		}
		w.sheet.Mut().Pixels[0]++
		w.commit(t)
		for tick := range 4 {
			w.tiles.Mut().Cells[100][tick] = 7
			require.Less(t, w.commit(t), 100)
			w.sheet.Mut().Pixels[30_000+tick] = 7
			require.Less(t, w.commit(t), 100)
			s := w.sheet.Mut()
			s.Pixels = slices.Insert(s.Pixels, 1000, 1, 2, 3)
			require.Less(t, w.commit(t), 100)
			for _, e := range entities {
				w.chunks.Mut(e)[tick*100]++
			}
			require.Less(t, w.commit(t), 100*10+100)
		}
		w.tiles.Set(tileMap{}) // The whole map is set, but only five bytes differ.
		require.Less(t, w.commit(t), 100)
		w.close(t)
	}
}

func TestEdits_NewOrChangedRowsInFull(t *testing.T) {
	w := openMapWorld(t, disktest.New(), persist.Options{})
	for i := range w.tiles.Get().Cells {
		for j := range w.tiles.Get().Cells[i] {
			w.tiles.Mut().Cells[i][j] ^= 0xff
		}
	}
	require.Greater(t, w.commit(t), 1<<16)
	e, o := w.Create(), w.Create()
	w.chunks.Set(e, [4096]uint8{1})
	w.chunks.Set(o, [4096]uint8{2})
	require.Greater(t, w.commit(t), 2*4096) // New rows are written in full.
	w.chunks.Remove(e)                      // Another entity takes the row.
	require.Greater(t, w.commit(t), 4096)
	w.close(t)
}

// Records without edits keep the older format, which the previous release can read.
func TestEdits_OlderFormatWithoutEdits(t *testing.T) {
	forms := func(mem *disktest.Mem) (forms []byte) {
		v := requireSound(t, mem)
		for _, e := range v.Log().Entries {
			payload, err := v.Log().Payload(e, nil)
			require.NoError(t, err)
			forms = append(forms, payload[1])
		}
		return forms
	}
	w := openMapWorld(t, disktest.New(), persist.Options{})
	w.chunks.Set(w.Create(), [4096]uint8{})
	w.commit(t)
	all := bytes.Repeat([]byte{9}, 4096)
	w.chunks.Set(w.Entities()[0], [4096]uint8(all))
	w.commit(t)
	require.NoError(t, w.store.Mark("a"))
	w.commit(t)
	w.chunks.Mut(w.Entities()[0])[5]++
	w.commit(t)
	require.NoError(t, w.store.Mark("b"))
	w.chunks.Mut(w.Entities()[0])[5]++
	w.commit(t)
	require.Equal(t, []string{"b"}, w.last(t).Marks)
	w.close(t)
	require.Equal(t, []byte{1, 1, 2, 3, 3}, forms(w.mem))
}

// A program may change a stored value through its slice, and set the value only then. The undo log
// does not have the old bytes, but the journal records the change.
func TestEdits_WriteThroughSlice(t *testing.T) {
	for _, history := range []int{0, 5} {
		w := openMapWorld(t, disktest.New(), persist.Options{History: history})
		for i := range 8 {
			s := w.sheet.Get()
			s.Pixels[i*100] = 200
			w.sheet.Set(s)
			w.commit(t)
		}
		w = w.reopened(t, persist.Options{})
		require.Equal(t, uint8(200), w.sheet.Get().Pixels[700])
		w.close(t)
	}
}

func TestEdits_AfterRewindsAndGotos(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0xed))
			w := openMapWorld(t, disktest.New(), persist.Options{History: 6 * int(seed%2)})
			for range 60 {
				w.step(t, rng)
			}
			w.close(t)
		})
	}
}

// step changes the state at random, or commits a tick.
func (w *mapWorld) step(t testing.TB, rng *rand.Rand) {
	switch rng.IntN(14) {
	case 0:
		_ = w.History().Rewind(1 + rng.IntN(3))
	case 1:
		_ = w.store.Goto(storetest.Background, fmt.Sprint("@latest~", rng.IntN(4)))
	case 2:
		other := newMapWorld(0)
		other.tiles.Mut().Cells[rng.IntN(256)][0] = 3
		other.sheet.Mut().Pixels[rng.IntN(1000)] = 3
		var b bytes.Buffer
		require.NoError(t, persist.SaveTo(storetest.Background, &b, other.World))
		require.NoError(t, w.store.LoadFrom(storetest.Background, &b))
	case 3:
		*w = *w.reopened(t, persist.Options{History: rng.IntN(4)})
	case 4:
		_, err := w.store.Snapshot(storetest.Background)
		require.NoError(t, err)
	case 5:
		cp := w.Checkpoint()
		w.change(rng)
		inner := w.Checkpoint()
		w.change(rng)
		if rng.IntN(2) == 0 {
			w.Restore(inner)
		}
		if rng.IntN(2) == 0 {
			w.Restore(cp)
		}
		w.Release(cp)
		if inner.Valid() {
			w.Release(inner)
		}
		w.commit(t)
	default:
		w.change(rng)
		w.commit(t)
	}
}

func (w *mapWorld) change(rng *rand.Rand) {
	for range 1 + rng.IntN(4) {
		entities := w.chunks.Entities()
		switch rng.IntN(9) {
		case 0:
			w.tiles.Mut().Cells[rng.IntN(256)][rng.IntN(256)]++
		case 1:
			clear(w.tiles.Mut().Cells[rng.IntN(256)][:])
		case 2:
			s := w.sheet.Get()
			s.Pixels = slices.Clone(s.Pixels)
			s.Pixels[rng.IntN(len(s.Pixels))]++
			w.sheet.Set(s)
		case 3:
			s := w.sheet.Get()
			at := rng.IntN(len(s.Pixels))
			s.Pixels = append(slices.Clone(s.Pixels[:at]), s.Pixels[min(at+rng.IntN(3), len(s.Pixels)):]...)
			w.sheet.Set(s)
		case 4:
			s := w.sheet.Get()
			s.Pixels = slices.Insert(slices.Clone(s.Pixels), rng.IntN(len(s.Pixels)), 4, 4)
			w.sheet.Set(s)
		case 5:
			w.chunks.Set(w.Create(), [4096]uint8{uint8(rng.IntN(9))})
		case 6:
			if len(entities) > 3 {
				w.Destroy(entities[rng.IntN(len(entities))])
			}
		default:
			if len(entities) > 0 {
				e := entities[rng.IntN(len(entities))]
				w.chunks.Mut(e)[rng.IntN(4096)]++
			}
		}
	}
}

// An edit records only the changed bytes of a row. The random stores of storetest.WildView have
// edits of chunk and land rows, because tests of entities, columns and references need them.
func TestRandomStores_HaveEdits(t *testing.T) {
	t.Parallel()
	edited := map[string]int{}
	for seed := range uint64(4) {
		v := storetest.WildView(t, seed)
		for _, e := range v.Log().Entries {
			payload, err := v.Log().Payload(e, nil)
			require.NoError(t, err)
			tick, err := format.DecodeTick(payload)
			require.NoError(t, err)
			s := storetest.ImageAt(t, v, e.ID.Seq).Components
			for _, p := range tick.Storages {
				edited[s[p.Number].Name] += format.CountRows(p.EditRanges)
			}
		}
	}
	require.Greater(t, edited["chunk"], 5, "%v", edited)
	require.Greater(t, edited["land"], 5, "%v", edited)
}

func TestEdits_TraceListsEachChange(t *testing.T) {
	w := openMapWorld(t, disktest.New(), persist.Options{})
	e := w.Create()
	w.chunks.Set(w.Create(), [4096]uint8{})
	w.chunks.Set(e, [4096]uint8{})
	w.commit(t)
	for i := range 5 {
		w.chunks.Mut(e)[i*10] = uint8(i + 1)
		w.commit(t)
	}
	w.chunks.Mut(e) // The row is marked as written but keeps its value.
	w.commit(t)
	w.close(t)
	v := requireSound(t, w.mem)
	var kinds []inspect.TraceKind
	require.NoError(t, v.Trace(storetest.Background, e, 0, v.Head(), func(ev *inspect.TraceEvent) error {
		if ev.Component != "" {
			kinds = append(kinds, ev.Kind)
		}
		if ev.Kind == inspect.TraceSet {
			require.Len(t, ev.Fields(), 1)
		}
		return nil
	}))
	set := slices.Repeat([]inspect.TraceKind{inspect.TraceSet}, 5)
	require.Equal(t, slices.Concat([]inspect.TraceKind{inspect.TraceAdded}, set, []inspect.TraceKind{inspect.TraceWritten}), kinds)
	commits, err := v.Commits(v.Head(), v.Head())
	require.NoError(t, err)
	require.Equal(t, 1, commits[0].Rows[0].Written)
	require.Equal(t, 1, commits[0].Rows[0].Values[0].First)
}

// An edit records only the changed bytes of a row. If the page with the row is lost, edits of the
// row are useless until a tick writes it in full.
func TestEdits_BaseRowDamaged(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	w := newMapWorld(0)
	rng := rand.New(rand.NewPCG(5, 5))
	random := func(b []byte) {
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
	}
	entities := w.CreateN(nil, 64)
	for _, e := range entities {
		w.chunks.Set(e, [4096]uint8{})
		random(w.chunks.Mut(e)[:])
	}
	s, err := persist.Open(storetest.Background, dir, w.World, persist.Options{SnapshotBytes: -1, Sync: journal.SyncNever})
	require.NoError(t, err)
	for i, e := range entities {
		w.chunks.Mut(e)[i]++
	}
	w.tiles.Mut().Cells[3][3]++
	require.NoError(t, s.Commit())
	random(w.chunks.Mut(entities[9])[:])
	w.tiles.Mut().Cells[3][4]++
	require.NoError(t, s.Commit())
	require.NoError(t, s.Close(storetest.Background))
	whole, name := stateAt(t, dir), "snapshots/00000001.snap"
	size, lost, kept := int64(len(storetest.ReadTree(t, dir)[name])), 0, 0
	for at := size / 16; at < size; at += size / 8 {
		damaged := storetest.CopyDir(t, dir)
		spoil(t, filepath.Join(damaged, name), at, 512)
		out := filepath.Join(t.TempDir(), "out")
		r, err := repair.Recover(storetest.Background, damaged, out, repair.RecoverOptions{Partial: true})
		require.NoError(t, err)
		got := stateAt(t, out)
		requireMissing(t, whole, got, r)
		require.GreaterOrEqual(t, got.Find("chunk").Find(entities[9]), 0, "the row was written in full")
		require.Equal(t, 2, r.Replayed)
		lost += whole.Find("chunk").Len() - got.Find("chunk").Len()
		kept += got.Find("chunk").Len()
	}
	require.Positive(t, lost)
	require.Positive(t, kept)
}

// Under testdata is a store that the first version of Stet with edits wrote. It is never rewritten.
const (
	keptEdits     = "testdata/edits-1"
	keptEditsText = "testdata/edits-1.txt"
)

func TestEdits_ReadsStoreOfFirstVersion(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(keptEdits); *golden.Update && os.IsNotExist(err) {
		writeKeptEdits(t)
	}
	dir := filepath.Join(t.TempDir(), "store")
	storetest.WriteTree(t, dir, storetest.ReadTree(t, keptEdits))
	golden.Kept(t, keptEditsText, describe(t, dir))
	agree(t, dir)
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{})
	w.Chunk.Mut(w.Entities()[0]).Tiles[1].Kind = 1
	require.NoError(t, s.Commit()) // The store accepts more ticks.
	storetest.CloseStore(t, s)
	storetest.Verified(t, dir)
}

func writeKeptEdits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(4)
	s := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1, Sync: journal.SyncNever})
	entities := w.CreateN(nil, 3)
	for i, e := range entities {
		w.Chunk.Set(e, storetest.Chunk{Owner: e})
		w.Scroll.Set(e, storetest.Scroll{Lines: []string{"first"}, Pixels: bytes.Repeat([]byte{byte(i)}, 300)})
	}
	require.NoError(t, s.Commit())
	for i, e := range []ecs.Entity{entities[0], entities[2], entities[1], entities[0]} {
		w.Chunk.Mut(e).Tiles[i].Height = int16(-i)
		w.Chunk.Mut(e).Tiles[50].Solid = true
		scroll := w.Scroll.Mut(entities[0])
		scroll.Pixels[i*50] = 99
		if i > 1 {
			scroll.Lines = append(scroll.Lines, "more")
		}
		w.Land.Mut()[i*100] = 7
		require.NoError(t, s.Commit())
		if i == 2 {
			require.NoError(t, w.History().Rewind(1))
		}
	}
	storetest.CloseStore(t, s)
	tree := storetest.ReadTree(t, dir)
	delete(tree, "LOCK")
	storetest.WriteTree(t, keptEdits, tree)
	require.NoError(t, os.WriteFile(keptEditsText, []byte(describe(t, dir)), 0o600))
}
