package persist

import (
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
)

var background = context.Background()

// The components of the tests: one of each sort.
type (
	position struct{ X, Y float32 }
	body     struct { // Go pads it.
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
	trail struct{ Places []string }   // Indexed, rows vary.
	mood  struct{ Level int8 }        // Indexed, NoRewind.
	crown struct{ Jewels [3]float32 } // Hashed.
	rank  struct{ Place uint8 }       // Ordered.

	rules struct {
		Name  string
		Limit uint16
	}
	seed  uint64
	clock int64 // NoRewind.
)

func cloneBag(b bag) bag {
	b.Items, b.Counts = slices.Clone(b.Items), maps.Clone(b.Counts)
	return b
}

func cloneTrail(t trail) trail { return trail{slices.Clone(t.Places)} }

func cloneSprite(s sprite) sprite {
	if s.pixels != nil {
		pixels := *s.pixels
		s.pixels = &pixels
	}
	return s
}

// A testWorld is a world with a component of each sort.
type testWorld struct {
	*ecs.World
	position *ecs.Storage[position]
	body     *ecs.Storage[body]
	bag      *ecs.Storage[bag]
	frozen   *ecs.Storage[frozen]
	chase    *ecs.Storage[chase]
	heat     *ecs.Storage[heat]
	sprite   *ecs.Storage[sprite]
	armor    *ecs.Storage[armor]
	trail    *ecs.Storage[trail]
	mood     *ecs.Storage[mood]
	crown    *ecs.Storage[crown]
	rank     *ecs.Storage[rank]
	rules    *ecs.Resource[rules]
	seed     *ecs.Resource[seed]
	clock    *ecs.Resource[clock]
	held     []ecs.Checkpoint
}

func newTestWorld(history int) *testWorld {
	w := ecs.NewWorld(ecs.Options{History: history})
	return &testWorld{
		World:    w,
		position: ecs.MustRegister[position](w),
		body:     ecs.MustRegister[body](w),
		bag:      ecs.MustRegister[bag](w, ecs.CloneWith(cloneBag)),
		frozen:   ecs.MustRegister[frozen](w),
		chase:    ecs.MustRegister[chase](w),
		heat:     ecs.MustRegister[heat](w, ecs.NoRewind()),
		sprite:   ecs.MustRegister[sprite](w, ecs.NoPersist(), ecs.CloneWith(cloneSprite)),
		armor:    ecs.MustRegister[armor](w, ecs.Stored(ecs.Indexed), ecs.Default(armor{5})),
		trail:    ecs.MustRegister[trail](w, ecs.Stored(ecs.Indexed), ecs.CloneWith(cloneTrail)),
		mood:     ecs.MustRegister[mood](w, ecs.Stored(ecs.Indexed), ecs.NoRewind()),
		crown:    ecs.MustRegister[crown](w, ecs.Stored(ecs.Hashed), ecs.Masked()),
		rank:     ecs.MustRegister[rank](w, ecs.Stored(ecs.Ordered)),
		rules:    ecs.MustRegisterResource(w, rules{"none", 1}),
		seed:     ecs.MustRegisterResource(w, seed(1)),
		clock:    ecs.MustRegisterResource(w, clock(0), ecs.NoRewind()),
	}
}

// An action is one thing done to a world. What it does depends on nothing but
// its numbers and the world, so it does the same to equal worlds.
type action struct {
	Kind    int
	A, B, C uint32
}

const actions = 30

func randomActions(rng *rand.Rand, n int) []action {
	list := make([]action, n)
	for i := range list {
		list[i] = action{rng.IntN(actions), rng.Uint32(), rng.Uint32(), rng.Uint32()}
	}
	return list
}

func (w *testWorld) do(list ...action) {
	for _, a := range list {
		w.act(a)
	}
}

// pick returns an entity that is alive, or, for one number in eight, a stale one.
func (w *testWorld) pick(n uint32) ecs.Entity {
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

func (w *testWorld) act(a action) {
	e := w.pick(a.A)
	switch a.Kind {
	case 0, 1, 2, 3:
		w.create(a)
	case 4, 5:
		w.Destroy(e)
	case 6:
		w.position.Set(e, position{float32(a.B), float32(a.C)})
	case 7:
		w.position.Remove(e)
	case 8:
		if p := w.position.Mut(e); p != nil {
			p.X++
		}
	case 9:
		w.body.Set(e, body{a.B&1 == 1, float64(a.B), uint8(a.C), [3]int16{int16(a.C), -1, 5}})
	case 10:
		w.body.Remove(e)
	case 11:
		w.bag.Set(e, newBag(a))
	case 12:
		if b := w.bag.Mut(e); b != nil {
			b.Items = append(b.Items, "more")
		}
	case 13:
		w.bag.Remove(e)
	case 14:
		w.frozen.Set(e, frozen{})
	case 15:
		w.frozen.Remove(e)
	case 16:
		w.chase.Set(e, chase{w.pick(a.B), int16(a.C)})
	case 17:
		w.heat.Set(e, heat{int32(a.B)})
		w.sprite.Set(e, sprite{&[4]byte{1, 2, byte(a.B)}})
	case 18:
		w.heat.Remove(e)
		w.sprite.Remove(e)
	case 19:
		*w.seed.Mut() = *w.seed.Mut()*6364136223846793005 + 1442695040888963407
		*w.clock.Mut()++
	case 20:
		w.rules.Set(rules{names[a.B%uint32(len(names))], uint16(a.C)})
	case 21:
		w.clear(a)
	case 22:
		w.armor.Set(e, armor{int16(a.B)})
		w.mood.Set(e, mood{int8(a.C)})
	case 23:
		w.trail.Set(e, trail{[]string{names[a.B%5]}})
		w.crown.Set(e, crown{[3]float32{float32(a.C), 1}})
		w.rank.Set(e, rank{uint8(a.C)})
	case 24:
		w.armor.Remove(e)
		w.crown.Remove(e)
	case 25:
		w.trail.Remove(e)
		w.rank.Remove(e)
		w.mood.Remove(e)
	default:
		w.checkpoints(a)
	}
}

var names = []string{"", "a", "north", "Łódź", "a name that is longer than thirty-one bytes"}

func newBag(a action) bag {
	b := bag{Name: names[a.B%5]}
	if a.B&16 != 0 {
		b.Items = []string{names[a.C%5], "x"}
	}
	if a.B&32 != 0 {
		b.Counts = map[string]int32{"b": int32(a.C), "a": -1, names[a.C%5]: 3}
	}
	return b
}

func (w *testWorld) create(a action) {
	e := w.Create()
	if a.B&1 != 0 {
		w.position.Set(e, position{1, float32(a.C)})
	}
	if a.B&2 != 0 {
		w.body.Set(e, body{Mass: 2})
	}
	if a.B&12 == 4 {
		w.bag.Set(e, newBag(a))
	}
	if a.B&12 == 8 {
		w.heat.Set(e, heat{int32(a.C)})
	}
}

func (w *testWorld) clear(a action) {
	switch a.B % 8 {
	case 0:
		w.World.Clear()
	case 1:
		w.position.Clear()
	case 2:
		w.bag.Clear()
	case 3:
		w.frozen.Clear()
	case 4:
		w.heat.Clear()
		w.crown.Clear()
	case 5:
		w.armor.Clear()
	case 6:
		w.trail.Clear()
		w.mood.Clear()
	}
}

// checkpoints makes, restores or releases one, or fails a Try.
func (w *testWorld) checkpoints(a action) {
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
			w.position.Clear()
			return os.ErrInvalid
		})
	}
}

// releaseAll gives up the checkpoints.
func (w *testWorld) releaseAll() {
	for _, cp := range w.held {
		if cp.Valid() {
			w.Release(cp)
		}
	}
	w.held = nil
}

// persistent is the digest of what belongs on disk.
func persistent(w *ecs.World) ecs.Digest {
	return w.Digests(ecs.AnyStorage.Persistent).World
}

// fill makes n entities with components of every sort.
func (w *testWorld) fill(n int) {
	for i := range n {
		e := w.Create()
		w.position.Set(e, position{float32(i), -1})
		switch i % 4 {
		case 0:
			w.body.Set(e, body{true, float64(i), 9, [3]int16{1, 2, 3}})
		case 1:
			w.bag.Set(e, bag{"sack", []string{"rope", ""}, map[string]int32{"gold": int32(i), "tin": 0}})
		case 2:
			w.frozen.Set(e, frozen{})
			w.chase.Set(e, chase{w.Entities()[i/2], int16(i)})
		case 3:
			w.heat.Set(e, heat{int32(i)})
			w.crown.Set(e, crown{})
			w.rank.Set(e, rank{uint8(i)})
		}
		if i%3 == 0 {
			w.armor.Set(e, armor{int16(i)})
			w.trail.Set(e, trail{[]string{"home"}})
			w.mood.Set(e, mood{int8(i)})
		}
	}
	w.seed.Set(seed(n))
}

// open opens dir for w and closes the store at the end of the test unless the
// test did.
func open(t testing.TB, dir string, w *testWorld, options Options) *Store {
	t.Helper()
	s, err := Open(background, dir, w.World, options)
	require.NoError(t, err)
	t.Cleanup(func() {
		w.releaseAll()
		if err := s.Close(background); !errors.Is(err, ErrClosed) {
			require.NoError(t, err)
		}
	})
	return s
}

func closeStore(t testing.TB, s *Store) {
	t.Helper()
	require.NoError(t, s.Close(background))
}

// verified opens dir for reading and checks all of it.
func verified(t testing.TB, dir string) *View {
	t.Helper()
	v, err := OpenReadOnly(background, dir)
	require.NoError(t, err)
	t.Cleanup(func() { v.Close() })
	r, err := v.Verify(background)
	require.NoError(t, err)
	require.Empty(t, r.Problems)
	return v
}

// copyDir returns a copy of dir, as a crash that loses nothing of what was
// written would leave it.
func copyDir(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	writeTree(t, to, readTree(t, dir))
	return to
}

// readTree returns the files below dir by their slash-separated names.
// Directories are there with a slash at the end.
func readTree(t testing.TB, dir string) map[string]string {
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

func writeTree(t testing.TB, dir string, tree map[string]string) {
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

// segments returns the names of the journal's files, in order.
func segments(t testing.TB, dir string) []string { return filesOf(t, dir, "journal/*") }

// snapshots returns the names of the snapshot files, in order.
func snapshots(t testing.TB, dir string) []string { return filesOf(t, dir, "snapshots/*") }

func filesOf(t testing.TB, dir, pattern string) []string {
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

func snapshotOf(t testing.TB, s *Store) SnapshotResult {
	t.Helper()
	r, err := s.Snapshot(background)
	require.NoError(t, err)
	return r
}

// flat returns the errors that err joins, or err alone.
func flat(err error) []error {
	if err == nil {
		return nil
	}
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	return []error{err}
}
