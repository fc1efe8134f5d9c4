// Package storetest has shared helpers for the tests of persist and inspect. It has a world with
// one component of each sort, and random programs on that world and an oracle. It also has small
// stores to damage, and common checks.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Stores in testdata contain the names of the component types, so the types stay unexported. These
// aliases export them.
type (
	Armor    = armor
	Bag      = bag
	Body     = body
	Chase    = chase
	Clock    = clock
	Chunk    = chunk
	Crown    = crown
	Frozen   = frozen
	Heat     = heat
	Land     = land
	Mood     = mood
	Position = position
	Rank     = rank
	Rules    = rules
	Scroll   = scroll
	Seed     = seed
	Sprite   = sprite
	Trail    = trail
)

// Background is the context of tests that have no other.
var Background = context.Background()

// The components of the tests: one of each sort.
type (
	position struct{ X, Y float32 }
	body     struct { // Go adds padding to this struct.
		Awake bool
		Mass  float64
		kind  uint8
		Slots [3]int16
	}
	bag struct {
		Name   string
		Items  []string
		Counts map[string]int32
	}
	frozen struct{}
	chase  struct {
		Target ecs.Entity
		Weight int16
	}
	heat   struct{ Degrees int32 }   // NoRewind.
	sprite struct{ pixels *[4]byte } // NoPersist.

	armor struct{ Points int16 }      // Indexed, with a default.
	trail struct{ Places []string }   // Indexed, variable-size rows.
	mood  struct{ Level int8 }        // Indexed, NoRewind.
	crown struct{ Jewels [3]float32 } // Hashed.
	rank  struct{ Place uint8 }       // Ordered.

	chunk struct { // A large row, which Go pads.
		Owner ecs.Entity
		Tiles [60]struct {
			Kind   uint8
			Solid  bool
			Height int16
			Light  float64
		}
	}
	scroll struct { // A row that can be large.
		Lines  []string
		Pixels []byte
	}

	rules struct {
		Name  string
		Limit uint16
	}
	seed  uint64
	clock int64       // NoRewind.
	land  [1013]uint8 // A large row.
)

// CloneBag copies a bag.
func CloneBag(b Bag) Bag {
	b.Items, b.Counts = slices.Clone(b.Items), maps.Clone(b.Counts)
	return b
}

// CloneTrail copies a trail.
func CloneTrail(t Trail) Trail { return Trail{slices.Clone(t.Places)} }

// CloneSprite copies a sprite.
func CloneSprite(s Sprite) Sprite {
	if s.pixels != nil {
		pixels := *s.pixels
		s.pixels = &pixels
	}
	return s
}

// A World is a world with a component of each sort.
type World struct {
	*ecs.World
	Position *ecs.Storage[Position]
	Body     *ecs.Storage[Body]
	Bag      *ecs.Storage[Bag]
	Frozen   *ecs.Storage[Frozen]
	Chase    *ecs.Storage[Chase]
	Heat     *ecs.Storage[Heat]
	Sprite   *ecs.Storage[Sprite]
	Armor    *ecs.Storage[Armor]
	Trail    *ecs.Storage[Trail]
	Mood     *ecs.Storage[Mood]
	Crown    *ecs.Storage[Crown]
	Rank     *ecs.Storage[Rank]
	Chunk    *ecs.Storage[Chunk]
	Scroll   *ecs.Storage[Scroll]
	Land     *ecs.Resource[Land]
	Rules    *ecs.Resource[Rules]
	Seed     *ecs.Resource[Seed]
	Clock    *ecs.Resource[Clock]
	held     []ecs.Checkpoint
}

// New returns an empty world with a history of that length.
func New(history int) *World {
	w := ecs.NewWorld(ecs.Options{History: history})
	return &World{
		World:    w,
		Position: ecs.MustRegister[Position](w),
		Body:     ecs.MustRegister[Body](w),
		Bag:      ecs.MustRegister(w, ecs.Component[Bag]{Clone: CloneBag}),
		Frozen:   ecs.MustRegister[Frozen](w),
		Chase:    ecs.MustRegister[Chase](w),
		Heat:     ecs.MustRegister(w, ecs.Component[Heat]{NoRewind: true}),
		Sprite:   ecs.MustRegister(w, ecs.Component[Sprite]{NoPersist: true, Clone: CloneSprite}),
		Armor:    ecs.MustRegister(w, ecs.Component[Armor]{Kind: ecs.Indexed, Default: Armor{5}}),
		Trail:    ecs.MustRegister(w, ecs.Component[Trail]{Kind: ecs.Indexed, Clone: CloneTrail}),
		Mood:     ecs.MustRegister(w, ecs.Component[Mood]{Kind: ecs.Indexed, NoRewind: true}),
		Crown:    ecs.MustRegister(w, ecs.Component[Crown]{Kind: ecs.Hashed, Masked: true}),
		Rank:     ecs.MustRegister(w, ecs.Component[Rank]{Kind: ecs.Ordered}),
		Chunk:    ecs.MustRegister[Chunk](w),
		Scroll:   ecs.MustRegister[Scroll](w),
		Rules:    ecs.Must(ecs.RegisterResource(w, Rules{"none", 1})),
		Seed:     ecs.Must(ecs.RegisterResource(w, Seed(1))),
		Clock:    ecs.Must(ecs.RegisterResource(w, Clock(0), ecs.Component[Clock]{NoRewind: true})),
		Land:     ecs.Must(ecs.RegisterResource(w, Land{1012: 1})),
	}
}

// An Action is one change of a world. Its effect depends only on its numbers and the world, so it
// is the same on equal worlds.
type Action struct {
	Kind    int
	A, B, C uint32
}

const actions = 36

// RandomActions returns n actions.
func RandomActions(rng *rand.Rand, n int) []Action {
	list := make([]Action, n)
	for i := range list {
		list[i] = Action{rng.IntN(actions), rng.Uint32(), rng.Uint32(), rng.Uint32()}
	}
	return list
}

// Do carries out actions.
func (w *World) Do(list ...Action) {
	for _, a := range list {
		w.act(a)
	}
}

// pick returns a living entity, or, for one number in eight, a stale one.
func (w *World) pick(n uint32) ecs.Entity {
	alive := w.Entities()
	if len(alive) == 0 {
		return 0
	}
	e := alive[int(n>>3)%len(alive)]
	if n&7 == 7 {
		return ecs.NewEntity(e.Index(), e.Generation()-1)
	}
	return e
}

func (w *World) act(a Action) {
	e := w.pick(a.A)
	switch a.Kind {
	case 0, 1, 2, 3:
		w.create(a)
	case 4, 5:
		w.Destroy(e)
	case 6:
		w.Position.Set(e, Position{float32(a.B), float32(a.C)})
	case 7:
		w.Position.Remove(e)
	case 8:
		if p := w.Position.Mut(e); p != nil {
			p.X++
		}
	case 9:
		w.Body.Set(e, Body{a.B&1 == 1, float64(a.B), uint8(a.C), [3]int16{int16(a.C), -1, 5}})
	case 10:
		w.Body.Remove(e)
	case 11:
		w.Bag.Set(e, newBag(a))
	case 12:
		if b := w.Bag.Mut(e); b != nil {
			b.Items = append(b.Items, "more")
		}
	case 13:
		w.Bag.Remove(e)
	case 14:
		w.Frozen.Set(e, Frozen{})
	case 15:
		w.Frozen.Remove(e)
	case 16:
		w.Chase.Set(e, Chase{w.pick(a.B), int16(a.C)})
	case 17:
		w.Heat.Set(e, Heat{int32(a.B)})
		w.Sprite.Set(e, Sprite{&[4]byte{1, 2, byte(a.B)}})
	case 18:
		w.Heat.Remove(e)
		w.Sprite.Remove(e)
	case 19:
		*w.Seed.Mut() = *w.Seed.Mut()*6364136223846793005 + 1442695040888963407
		*w.Clock.Mut()++
	case 20:
		w.Rules.Set(Rules{Names[a.B%uint32(len(Names))], uint16(a.C)})
	case 21:
		w.clear(a)
	case 22:
		w.Armor.Set(e, Armor{int16(a.B)})
		w.Mood.Set(e, Mood{int8(a.C)})
	case 23:
		w.Trail.Set(e, Trail{[]string{Names[a.B%5]}})
		w.Crown.Set(e, Crown{[3]float32{float32(a.C), 1}})
		w.Rank.Set(e, Rank{uint8(a.C)})
	case 24:
		w.Armor.Remove(e)
		w.Crown.Remove(e)
	case 25:
		w.Trail.Remove(e)
		w.Rank.Remove(e)
		w.Mood.Remove(e)
	case 30, 31, 34:
		w.tile(owner(w.Chunk, e, a), a)
	case 32, 35:
		w.write(owner(w.Scroll, e, a), a)
	case 33:
		w.dig(a)
	default:
		w.checkpoints(a)
	}
}

// Names are the names that random programs use.
var Names = []string{"", "a", "north", "Łódź", "a name that is longer than thirty-one bytes"}

func newBag(a Action) Bag {
	b := Bag{Name: Names[a.B%5]}
	if a.B&16 != 0 {
		b.Items = []string{Names[a.C%5], "x"}
	}
	if a.B&32 != 0 {
		b.Counts = map[string]int32{"b": int32(a.C), "a": -1, Names[a.C%5]: 3}
	}
	return b
}

// owner returns an entity for an action on s: usually an entity that has a component in s. If s is
// empty, it returns e. If s has one or two entities, it returns e in one case of four.
func owner[T any](s *ecs.Storage[T], e ecs.Entity, a Action) ecs.Entity {
	if n := s.Len(); n > 2 || n > 0 && a.A&3 > 0 {
		return s.Entities()[int(a.A>>3)%n]
	}
	return e
}

// tile writes a large row. It changes a few tiles, all tiles, or none.
func (w *World) tile(e ecs.Entity, a Action) {
	c := w.Chunk.Mut(e)
	if c == nil || a.B%8 == 7 {
		w.Chunk.Set(e, Chunk{Owner: e})
		return
	}
	if a.B%16 == 1 {
		w.Chunk.Remove(w.pick(a.C))
		return
	}
	for i := range [...]int{0, 1, 1, 2, 5, len(c.Tiles)}[a.B%6] {
		tile := &c.Tiles[(i+int(a.C))%len(c.Tiles)]
		tile.Kind, tile.Solid, tile.Height, tile.Light = uint8(a.B>>8), a.B&64 != 0, tile.Height+1, float64(a.B>>16)
	}
}

// write writes a variable-size row: it replaces the row, or makes it longer, or changes one byte.
func (w *World) write(e ecs.Entity, a Action) {
	s, ok := w.Scroll.Get(e)
	switch {
	case !ok || a.B%8 == 0:
		s = Scroll{[]string{Names[a.C%5]}, bytes.Repeat([]byte{byte(a.C)}, int(a.B>>8%900))}
	case a.B%8 < 3 && len(s.Pixels) > 0:
		s.Pixels = slices.Clone(s.Pixels)
		s.Pixels[int(a.C)%len(s.Pixels)]++
	case a.B%8 < 5:
		at := int(a.C) % (len(s.Pixels) + 1)
		s.Pixels = slices.Insert(slices.Clone(s.Pixels), at, byte(a.C), 7)
	default:
		s.Lines = append(slices.Clone(s.Lines), Names[a.C%5])
	}
	w.Scroll.Set(e, s)
}

// dig writes the large resource.
func (w *World) dig(a Action) {
	land := w.Land.Mut()
	for i := range [...]int{1, 1, 2, 40, len(land)}[a.B%5] {
		land[(int(a.C)+i*int(1+a.B>>8%100))%len(land)] ^= byte(a.B >> 16)
	}
}

func (w *World) create(a Action) {
	e := w.newEntity(a)
	if a.B&1 != 0 {
		w.Position.Set(e, Position{1, float32(a.C)})
	}
	if a.B&2 != 0 {
		w.Body.Set(e, Body{Mass: 2})
	}
	if a.B&12 == 4 {
		w.Bag.Set(e, newBag(a))
	}
	if a.B&12 == 8 {
		w.Heat.Set(e, Heat{int32(a.C)})
	}
}

// newEntity creates an entity. One action in sixteen chooses its index, if that index is free.
func (w *World) newEntity(a Action) ecs.Entity {
	if e := ecs.NewEntity(a.C>>4%64, 1+a.B>>8%4); a.C%16 == 0 && w.CreateAt(e) == nil {
		return e
	}
	return w.Create()
}

func (w *World) clear(a Action) {
	switch a.B % 8 {
	case 0:
		w.World.Clear()
	case 1:
		w.Position.Clear()
	case 2:
		w.Bag.Clear()
	case 3:
		w.Frozen.Clear()
	case 4:
		w.Heat.Clear()
		w.Crown.Clear()
	case 5:
		w.Armor.Clear()
	case 6:
		w.Trail.Clear()
		w.Mood.Clear()
	}
}

// checkpoints creates, restores or releases a checkpoint, or calls Try with a function that fails.
func (w *World) checkpoints(a Action) {
	w.held = slices.DeleteFunc(w.held, func(cp ecs.Checkpoint) bool { return !cp.Valid() })
	n := len(w.held)
	switch {
	case a.B%4 == 0 && n < 3:
		w.held = append(w.held, w.Checkpoint())
	case a.B%4 == 1 && n > 0:
		w.Restore(w.held[int(a.C)%n])
	case a.B%4 == 2 && n > 0:
		i := int(a.C) % n
		w.Release(w.held[i])
		w.held = slices.Delete(w.held, i, i+1)
	case a.B%4 == 3:
		_ = w.Try(func() error {
			w.create(a)
			w.Destroy(w.pick(a.C))
			w.Position.Clear()
			return os.ErrInvalid
		})
	}
}

// ReleaseAll releases the checkpoints.
func (w *World) ReleaseAll() {
	for _, cp := range w.held {
		if cp.Valid() {
			w.Release(cp)
		}
	}
	w.held = nil
}

// Persistent returns the digest of the persistent values.
func Persistent(w *ecs.World) ecs.Digest {
	return w.Digests(raw.Storage.Persistent).World
}

// Fill creates n entities with components of every sort.
func (w *World) Fill(n int) {
	for i := range n {
		e := w.Create()
		w.Position.Set(e, Position{float32(i), -1})
		switch i % 4 {
		case 0:
			w.Body.Set(e, Body{true, float64(i), 9, [3]int16{1, 2, 3}})
		case 1:
			w.Bag.Set(e, Bag{"sack", []string{"rope", ""}, map[string]int32{"gold": int32(i), "tin": 0}})
		case 2:
			w.Frozen.Set(e, Frozen{})
			w.Chase.Set(e, Chase{w.Entities()[i/2], int16(i)})
		case 3:
			w.Heat.Set(e, Heat{int32(i)})
			w.Crown.Set(e, Crown{})
			w.Rank.Set(e, Rank{uint8(i)})
		}
		if i%3 == 0 {
			w.Armor.Set(e, Armor{int16(i)})
			w.Trail.Set(e, Trail{[]string{"home"}})
			w.Mood.Set(e, Mood{int8(i)})
		}
	}
	w.Seed.Set(Seed(n))
}

// Open opens dir for w. At the end of the test it closes the store unless the test has closed it.
func Open(t testing.TB, dir string, w *World, options persist.Options) *persist.Store {
	t.Helper()
	s, err := persist.Open(Background, dir, w.World, options)
	require.NoError(t, err)
	t.Cleanup(func() {
		w.ReleaseAll()
		if err := s.Close(Background); !errors.Is(err, persist.ErrClosed) {
			require.NoError(t, err)
		}
	})
	return s
}

// CloseStore closes a store. Its world may have uncommitted changes.
func CloseStore(t require.TestingT, s *persist.Store) {
	require.NoError(t, Closed(s.Close(Background)))
}

// Closed returns err, the result of a Close. It returns nil if the store only had uncommitted
// changes.
func Closed(err error) error {
	if errors.Is(err, persist.ErrUncommitted) {
		return nil
	}
	return err
}

// Verified opens dir for reading and checks all of it.
func Verified(t testing.TB, dir string) *inspect.View {
	t.Helper()
	v := ViewOf(t, dir)
	r, err := v.Verify(Background)
	require.NoError(t, err)
	require.Empty(t, r.Problems)
	return v
}

// CopyDir returns a copy of dir, as after a crash that loses no written bytes.
func CopyDir(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	WriteTree(t, to, ReadTree(t, dir))
	return to
}

// ReadTree returns the files below dir by their slash-separated names. The names of directories end
// with a slash.
func ReadTree(t testing.TB, dir string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if d.IsDir() {
			tree[filepath.ToSlash(name)+"/"] = ""
			return nil
		}
		data, err := os.ReadFile(path)
		tree[filepath.ToSlash(name)] = string(data)
		return err
	})
	require.NoError(t, err)
	return tree
}

// WriteTree writes files, by name, below a directory.
func WriteTree(t testing.TB, dir string, tree map[string]string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	for name, data := range tree {
		path := filepath.Join(dir, name)
		if name[len(name)-1] == '/' {
			require.NoError(t, os.MkdirAll(path, 0o700))
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
	}
}

// Segments returns the names of the journal's files, in order.
func Segments(t testing.TB, dir string) []string { return FilesOf(t, dir, "journal/*.seg") }

// Snapshots returns the names of the snapshot files, in order.
func Snapshots(t testing.TB, dir string) []string { return FilesOf(t, dir, "snapshots/*") }

// FilesOf lists the files below a directory that match pattern.
func FilesOf(t testing.TB, dir, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	require.NoError(t, err)
	slices.Sort(paths)
	for i, p := range paths {
		name, _ := filepath.Rel(dir, p)
		paths[i] = filepath.ToSlash(name)
	}
	return paths
}

// SnapshotOf writes a snapshot.
func SnapshotOf(t testing.TB, s *persist.Store) persist.SnapshotResult {
	t.Helper()
	r, err := s.Snapshot(Background)
	require.NoError(t, err)
	return r
}

// Flat returns the errors that err joins, or err alone.
func Flat(err error) []error {
	if err == nil {
		return nil
	}
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	return []error{err}
}
