package inspect_test

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// naiveDiff compares two images entity by entity, without code of [inspect.Diff]. It returns a
// line for each difference.
func naiveDiff(a, b *image.Image) map[string]string {
	lines := map[string]string{}
	older, newer := naiveState(a), naiveState(b)
	for key, old := range older {
		if old != newer[key] {
			lines[key] = old + " → " + newer[key]
		}
	}
	for key, now := range newer {
		if _, ok := older[key]; !ok {
			lines[key] = " → " + now
		}
	}
	return lines
}

// naiveState describes a state with a line for each row and each index of im.
func naiveState(im *image.Image) map[string]string {
	lines := map[string]string{}
	for row, e := range im.Registry {
		switch {
		case row < im.Alive:
			lines["alive "+e.String()] = fmt.Sprint("@", row)
		case row < im.Free:
			lines[fmt.Sprint("unused ", e.Index())] = fmt.Sprint("free ", e, "@", row)
		default:
			lines[fmt.Sprint("unused ", e.Index())] = fmt.Sprint("retired ", e, "@", row)
		}
	}
	for _, c := range im.Components {
		for row := range c.Len() {
			switch {
			case c.Resource:
				lines[c.Name+" 0v0"] = fmt.Sprintf("%x@%d", c.Row(row), row)
			case c.Entities[row] != ecs.Vacant:
				lines[c.Name+" "+c.Entities[row].String()] = fmt.Sprintf("%x@%d", c.Row(row), row)
			}
		}
	}
	return lines
}

// lines returns the differences in d in the form of naiveDiff. It leaves out free indices.
func lines(d *inspect.Diff, t require.TestingT) map[string]string {
	lines := map[string]string{}
	for _, e := range d.Registry.Created {
		lines["alive "+e.String()] = "created"
	}
	for _, e := range d.Registry.Destroyed {
		lines["alive "+e.String()] = "destroyed"
	}
	for _, m := range d.Registry.Moved {
		lines["alive "+m.Entity.String()] = fmt.Sprintf("@%d → @%d", m.OldRow, m.NewRow)
	}
	for _, c := range d.Components {
		require.True(t, slices.IsSortedFunc(c.Rows, func(a, b inspect.RowDiff) int { return inspect.CompareEntities(a.Entity, b.Entity) }))
		for _, r := range c.Rows {
			var older, newer string
			if !r.Added() {
				older = fmt.Sprintf("%x@%d", c.OldRow(r), r.OldRow)
			}
			if !r.Removed() {
				newer = fmt.Sprintf("%x@%d", c.NewRow(r), r.NewRow)
			}
			require.Equal(t, !r.Added() && !r.Removed() && string(c.OldRow(r)) != string(c.NewRow(r)), r.Changed)
			fields, err := c.Fields(r)
			require.NoError(t, err)
			require.Equal(t, r.Changed, len(fields) > 0)
			lines[c.Name+" "+r.Entity.String()] = older + " → " + newer
		}
	}
	return lines
}

// requireDiff requires that Diff returns the same differences as a naive comparison of both images.
func requireDiff(t require.TestingT, v *inspect.View, a uint64, u *inspect.View, b uint64) *inspect.Diff {
	d, err := v.DiffTo(storetest.Background, a, u, b)
	require.NoError(t, err)
	older, err := v.Catalog().At(storetest.Background, a)
	require.NoError(t, err)
	newer, err := u.Catalog().At(storetest.Background, b)
	require.NoError(t, err)
	want := naiveDiff(older, newer)
	// Indices that are unused in both states.
	unused := map[string]bool{}
	for key, line := range want {
		var index uint32
		if n, _ := fmt.Sscanf(key, "unused %d", &index); n == 1 {
			delete(want, key)
			if !isUsed(older, index) && !isUsed(newer, index) {
				unused[key] = true
			}
		} else if n, _ := fmt.Sscanf(key, "alive %s", new(string)); n == 1 {
			want[key] = aliveLine(line)
		}
	}
	require.Equal(t, want, lines(d, t), "records %d and %d", a, b)
	require.Equal(t, len(unused), d.Registry.Free)
	require.Equal(t, len(want)+len(unused)+len(d.Schema) == 0, d.Same())
	require.Equal(t, [2]uint64{older.Tick, newer.Tick}, [2]uint64{d.OldTick, d.NewTick})
	return d
}

func isUsed(im *image.Image, index uint32) bool {
	return slices.ContainsFunc(im.Registry[:im.Alive], func(e ecs.Entity) bool { return e.Index() == index })
}

func aliveLine(line string) string {
	switch {
	case line[0] == ' ':
		return "created"
	case line[0] == '@' && line[len(line)-1] == ' ':
		return "destroyed"
	}
	return line
}

// newRewindingWorld returns a world like storetest.New, but without no-rewind components.
func newRewindingWorld(history int) *storetest.World {
	r := ecs.NewWorld(ecs.Options{History: history})
	return &storetest.World{
		World:    r,
		Position: ecs.MustRegister[storetest.Position](r),
		Body:     ecs.MustRegister[storetest.Body](r),
		Bag:      ecs.MustRegister(r, ecs.Component[storetest.Bag]{Clone: storetest.CloneBag}),
		Frozen:   ecs.MustRegister[storetest.Frozen](r),
		Chase:    ecs.MustRegister[storetest.Chase](r),
		Heat:     ecs.MustRegister[storetest.Heat](r),
		Sprite:   ecs.MustRegister(r, ecs.Component[storetest.Sprite]{NoPersist: true, Clone: storetest.CloneSprite}),
		Armor:    ecs.MustRegister(r, ecs.Component[storetest.Armor]{Kind: ecs.Indexed, Default: storetest.Armor{Points: 5}}),
		Trail:    ecs.MustRegister(r, ecs.Component[storetest.Trail]{Kind: ecs.Indexed, Clone: storetest.CloneTrail}),
		Mood:     ecs.MustRegister(r, ecs.Component[storetest.Mood]{Kind: ecs.Indexed}),
		Crown:    ecs.MustRegister(r, ecs.Component[storetest.Crown]{Kind: ecs.Hashed, Masked: true}),
		Rank:     ecs.MustRegister(r, ecs.Component[storetest.Rank]{Kind: ecs.Ordered}),
		Chunk:    ecs.MustRegister[storetest.Chunk](r),
		Scroll:   ecs.MustRegister[storetest.Scroll](r),
		Land:     ecs.Must(ecs.RegisterResource(r, storetest.Land{})),
		Rules:    ecs.Must(ecs.RegisterResource(r, storetest.Rules{Name: "none", Limit: 1})),
		Seed:     ecs.Must(ecs.RegisterResource(r, storetest.Seed(1))),
		Clock:    ecs.Must(ecs.RegisterResource(r, storetest.Clock(0))),
	}
}

func TestDiff_SameAsEntityByEntity(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		build := storetest.New
		if rapid.Bool().Draw(rt, "all rewinds") {
			build = newRewindingWorld
		}
		s := storetest.NewSessionOf(rt, 8, build)
		s.Do(storetest.AnyFill(rt)...)
		for range rapid.IntRange(1, 15).Draw(rt, "steps") {
			s.Step(rt)
		}
		v := s.View()
		defer v.Close()
		seqs := slices.Sorted(maps.Keys(s.States))
		for range 4 {
			a := rapid.SampledFrom(seqs).Draw(rt, "a")
			b := rapid.SampledFrom(seqs).Draw(rt, "b")
			requireDiff(rt, v, a, v, b)
		}
	})
}

func TestDiffFields_PathsOfChanges(t *testing.T) {
	nan := math.Float64frombits(0x7ff8000000000123)
	type point struct{ X, Y float32 }
	type everything struct {
		F      float64
		At     [2]point
		Slots  []int16
		Counts map[string]int64
		By     map[point2]bool
		Next   *point
		Name   string
		Raw    []byte
	}
	base := func() everything {
		return everything{Slots: []int16{1, 2}, Counts: map[string]int64{"gold": 1, "tin": 2}, Next: &point{1, 2}, Raw: []byte{}}
	}
	for want, change := range map[string]func(*everything){
		"F: 0 → -0":                               func(e *everything) { e.F = math.Copysign(0, -1) },
		"F: 0 → NaN":                              func(e *everything) { e.F = nan },
		"At[1].Y: 0 → 3":                          func(e *everything) { e.At[1].Y = 3 },
		"Slots[1]: 2 → 5":                         func(e *everything) { e.Slots[1] = 5 },
		"Slots: [1 2] → [1 2 3]":                  func(e *everything) { e.Slots = append(e.Slots, 3) },
		"Slots: [1 2] → nil":                      func(e *everything) { e.Slots = nil },
		"Counts[\"gold\"]: 1 → 9":                 func(e *everything) { e.Counts["gold"] = 9 },
		"Counts[\"gold\"]: 1 → nil":               func(e *everything) { delete(e.Counts, "gold") },
		"Counts[\"lead\"]: nil → 0":               func(e *everything) { e.Counts["lead"] = 0 },
		"Counts: map[\"tin\":2 \"gold\":1] → nil": func(e *everything) { e.Counts = nil },
		"By: nil → map[]":                         func(e *everything) { e.By = map[point2]bool{} },
		"Next.X: 1 → 4":                           func(e *everything) { e.Next.X = 4 },
		"Next: &{X:1 Y:2} → nil":                  func(e *everything) { e.Next = nil },
		"Name: \"\" → \"x\"":                      func(e *everything) { e.Name = "x" },
		"Raw: 0x → nil":                           func(e *everything) { e.Raw = nil },
	} {
		codec, err := layout.NewCodec(reflect.TypeFor[everything]())
		require.NoError(t, err)
		changed := base()
		change(&changed)
		older, newer := layout.Append(codec, nil, []everything{base()}), layout.Append(codec, nil, []everything{changed})
		fields, err := inspect.DiffFields(codec.Type(), older, codec.Type(), newer)
		require.NoError(t, err)
		require.Len(t, fields, 1, want)
		require.Equal(t, want, fmt.Sprintf("%s: %v → %v", fields[0].Path, fields[0].Old, fields[0].New))
		fields, err = inspect.DiffFields(codec.Type(), newer, codec.Type(), newer)
		require.NoError(t, err)
		require.Empty(t, fields)
	}
}

type point2 struct{ X, Y int8 }

func TestDiffFields_CommonFields(t *testing.T) {
	type before struct {
		Now  int16
		Heat float32
		Gone bool
		Name string
	}
	type after struct {
		New  uint8
		Heat float64
		Now  int64
		Name []byte
	}
	diff := func(b before, a after) (lines []string) {
		from, err := layout.NewCodec(reflect.TypeFor[before]())
		require.NoError(t, err)
		to, err := layout.NewCodec(reflect.TypeFor[after]())
		require.NoError(t, err)
		fields, err := inspect.DiffFields(from.Type(), layout.Append(from, nil, []before{b}), to.Type(), layout.Append(to, nil, []after{a}))
		require.NoError(t, err)
		for _, f := range fields {
			lines = append(lines, fmt.Sprintf("%s: %v → %v", f.Path, f.Old, f.New))
		}
		return lines
	}
	require.Equal(t, []string{`Name: "" → nil`}, diff(before{7, 1.5, true, ""}, after{9, 1.5, 7, nil}))
	require.Equal(t, []string{"Now: -1 → 65535", "Heat: 0.1 → 0.1", `Name: "a" → 0x61`}, diff(before{-1, 0.1, true, "a"}, after{9, 0.1, 65535, []byte("a")}))
}

func TestDiffSchemas_ListsChangedTypes(t *testing.T) {
	type inner struct{ A int8 }
	type before struct {
		Same, Gone bool
		In         inner
	}
	type widened struct{ A int16 }
	type after struct {
		Same bool
		In   widened
		New  string
	}
	image := func(register func(w *ecs.World)) *image.Image {
		w := ecs.NewWorld(ecs.Options{})
		register(w)
		return storetest.ImageOf(t, &storetest.World{World: w})
	}
	older := image(func(w *ecs.World) {
		ecs.MustRegister(w, ecs.Component[before]{Name: "Thing"})
		ecs.MustRegister(w, ecs.Component[inner]{Name: "OnlyOld"})
		ecs.MustRegister(w, ecs.Component[int32]{Name: "Level"})
		ecs.Must(ecs.RegisterResource(w, int8(1), ecs.Component[int8]{Name: "Either"}))
	})
	newer := image(func(w *ecs.World) {
		ecs.Must(ecs.RegisterResource(w, uint8(3), ecs.Component[uint8]{Name: "OnlyNew"}))
		ecs.MustRegister(w, ecs.Component[int8]{Name: "Either"})
		ecs.MustRegister(w, ecs.Component[int32]{Name: "Level", Version: 2, Kind: ecs.Indexed})
		ecs.MustRegister(w, ecs.Component[after]{Name: "Thing"})
	})
	d, err := inspect.DiffImages(storetest.Background, older, newer)
	require.NoError(t, err)
	require.Equal(t, []inspect.SchemaDiff{
		{Component: "Thing", Field: "Gone", Old: "bool", New: ""},
		{Component: "Thing", Field: "In.A", Old: "int8", New: "int16"},
		{Component: "Thing", Field: "New", Old: "", New: "string"},
		{Component: "OnlyOld", Field: "", Old: "component struct{A int8}", New: ""},
		{Component: "Level", Field: "", Old: "component", New: "component indexed version 2"},
		{Component: "Either", Field: "", Old: "resource", New: "component"},
		{Component: "OnlyNew", Field: "", Old: "", New: "resource uint8"},
	}, d.Schema)
	require.False(t, d.Same())
	var names []string
	for _, c := range d.Components {
		for range c.Rows {
			names = append(names, c.Name)
		}
	}
	// Only the removed and the added resource have rows that differ.
	require.Equal(t, []string{"Either", "OnlyNew"}, names)
}

// countedFS counts the bytes that are read from files.
type countedFS struct {
	disk.FS
	read *atomic.Int64
}

type countedFile struct {
	disk.File
	read *atomic.Int64
}

func (c countedFS) Open(name string) (disk.File, error) {
	f, err := c.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return countedFile{f, c.read}, nil
}

func (c countedFile) ReadAt(p []byte, off int64) (int, error) {
	c.read.Add(int64(len(p)))
	return c.File.ReadAt(p, off)
}

func TestDiff_SkipsSharedPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := ecs.NewWorld(ecs.Options{})
	cells := ecs.MustRegister(w, ecs.Component[[8]int64]{Name: "Cell"})
	names := ecs.MustRegister(w, ecs.Component[string]{Name: "Name"})
	const n = 20_000
	for i := range n {
		e := w.Create()
		cells.Set(e, [8]int64{int64(i), 1, 2, 3, 4, 5, 6, 7})
		if i%2 == 0 {
			names.Set(e, fmt.Sprint("cell number ", i))
		}
	}
	s := storetest.Open(t, dir, &storetest.World{World: w}, persist.Options{SnapshotBytes: -1, Sync: journal.SyncNever})
	require.NoError(t, s.Commit())
	storetest.SnapshotOf(t, s)
	cells.Mut(w.Entities()[10_000])[3]++
	names.Set(w.Entities()[8], "another name")
	names.Remove(w.Entities()[20])
	require.NoError(t, s.Commit())
	storetest.SnapshotOf(t, s)
	storetest.CloseStore(t, s)

	v, err := inspect.OpenReadOnly(storetest.Background, dir)
	require.NoError(t, err)
	defer v.Close()
	var counted countedFS
	v.CountReads(func(files disk.FS) disk.FS {
		counted = countedFS{files, new(atomic.Int64)}
		return counted
	})
	for _, seqs := range [][2]uint64{{1, 2}, {2, 1}} {
		counted.read.Store(0)
		d, err := v.Diff(storetest.Background, seqs[0], seqs[1])
		require.NoError(t, err)
		rows := map[string]int{}
		for _, c := range d.Components {
			rows[c.Name] = len(c.Rows)
		}
		require.Equal(t, map[string]int{"Cell": 1, "Name": 3}, rows)
		require.Less(t, counted.read.Load(), v.Snapshots()[0].Size, "the diff must read less than half of the two states")
		requireDiff(t, v, seqs[0], v, seqs[1])
	}
}

func TestDiff_DamagedSnapshot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newRewindingWorld(0)
	s := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1, Sync: journal.SyncNever})
	for range 3 {
		w.Fill(300)
		require.NoError(t, s.Commit())
		storetest.SnapshotOf(t, s)
	}
	storetest.CloseStore(t, s)
	v := storetest.Verified(t, dir)
	want := lines(requireDiff(t, v, 2, v, 3), t)
	name := filepath.Join(dir, v.Snapshots()[3].Name)
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	for at := 12288; at < len(content)-8192; at += 4096 {
		content[at] ^= 1
	}
	require.NoError(t, os.WriteFile(name, content, 0o600))
	require.Equal(t, want, lines(requireDiff(t, v, 2, v, 3), t))
}

func TestChanges_SameAsDiffOfTwoStates(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := storetest.NewSessionOf(rt, 8, newRewindingWorld)
		s.Do(storetest.AnyFill(rt)...)
		for range rapid.IntRange(1, 10).Draw(rt, "steps") {
			s.Step(rt)
		}
		v := s.View()
		defer v.Close()
		to := rapid.SampledFrom(slices.Sorted(maps.Keys(s.States))).Draw(rt, "to")
		from := v.Way(to)[0]
		var seqs []uint64
		require.NoError(rt, v.Changes(storetest.Background, from, to, func(d *inspect.Diff, c *inspect.Commit) error {
			seqs = append(seqs, c.Seq)
			want := requireDiff(rt, v, c.Parent, v, c.Seq)
			require.Equal(rt, lines(want, rt), lines(d, rt), "record %d", c.Seq)
			require.Equal(rt, want.Registry, d.Registry)
			require.Equal(rt, [2]uint64{want.OldTick, want.NewTick}, [2]uint64{d.OldTick, d.NewTick})
			return nil
		}))
		require.Len(rt, seqs, len(v.Way(to))-1)
	})
}

// With another layout, equal bytes are different values, even if a whole page is equal.
func TestDiff_DifferentLayouts(t *testing.T) {
	dir := t.TempDir()
	save := func(name string, register func(w *ecs.World) (set func(e ecs.Entity, i int))) *inspect.View {
		w := ecs.NewWorld(ecs.Options{})
		set := register(w)
		for i, e := range w.CreateN(nil, 10) {
			set(e, i)
		}
		path := filepath.Join(dir, name)
		require.NoError(t, persist.Save(storetest.Background, path, w))
		return storetest.ViewOf(t, path)
	}
	signed := save("a", func(w *ecs.World) func(ecs.Entity, int) {
		s := ecs.MustRegister(w, ecs.Component[int32]{Name: "v"})
		return func(e ecs.Entity, i int) { s.Set(e, int32(-(i % 2))) }
	})
	unsigned := save("b", func(w *ecs.World) func(ecs.Entity, int) {
		s := ecs.MustRegister(w, ecs.Component[uint32]{Name: "v"})
		return func(e ecs.Entity, i int) { s.Set(e, uint32(-(i % 2))) }
	})
	d, err := signed.DiffTo(storetest.Background, signed.Head(), unsigned, unsigned.Head())
	require.NoError(t, err)
	require.Len(t, d.Components, 1)
	_, _, changed, _ := d.Components[0].Count()
	require.Equal(t, 5, changed, "0 equals 0, but -1 differs from 4294967295")
}
