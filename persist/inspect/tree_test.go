package inspect_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/deep"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// The types below are components of every kind of storage and row that a tree can use.
type (
	childOf struct{ Parent ecs.Entity }
	// spring has rows of variable size.
	spring struct {
		Note string
		A    ecs.Entity
		Link struct {
			B    ecs.Entity
			Deep struct{ Most struct{ C, D ecs.Entity } }
		}
		Near []ecs.Entity
	}
	// socket is an indexed component with an entity in its default value, so gaps contain an
	// entity.
	socket struct{ On ecs.Entity }
	// last is a no-rewind component.
	last struct{ Seen ecs.Entity }
	// late is a component that only the second program registers.
	late struct{ Of ecs.Entity }
)

// A forest is a world with the components above.
type forest struct {
	*ecs.World
	children *ecs.Storage[childOf]
	owners   *ecs.Storage[ecs.Entity]
	springs  *ecs.Storage[spring]
	sockets  *ecs.Storage[socket]
	lasts    *ecs.Storage[last]
	lates    *ecs.Storage[late]
}

// newForest returns an empty world. The argument tells whether the world has the component late.
func newForest(lately bool) *forest {
	w := ecs.NewWorld(ecs.Options{History: 8})
	ecs.Must(ecs.RegisterResource(w, socket{}, ecs.Component[socket]{Name: "chosen"}))
	f := &forest{
		w, ecs.MustRegister[childOf](w), ecs.MustRegister(w, ecs.Component[ecs.Entity]{Name: "owner"}),
		ecs.MustRegister(w, ecs.Component[spring]{Clone: func(s spring) spring { return s }}),
		ecs.MustRegister(w, ecs.Component[socket]{Kind: ecs.Indexed, Default: socket{ecs.NewEntity(1, 1)}}),
		ecs.MustRegister(w, ecs.Component[last]{NoRewind: true}), nil,
	}
	if lately {
		f.lates = ecs.MustRegister[late](w)
	}
	return f
}

// forestFields are the fields that contain one entity.
var forestFields = [][2]string{
	{"childOf", "Parent"}, {"owner", ""}, {"spring", "A"}, {"spring", "Link.B"}, {"spring", "Link.Deep.Most.C"}, {"spring", "Link.Deep.Most.D"}, {"socket", "On"}, {"last", "Seen"}, {"late", "Of"},
}

// grow changes w at random. The last argument has every entity ever created, so many targets are
// dead.
func (w *forest) grow(rng *rand.Rand, all *[]ecs.Entity) {
	pick := func() ecs.Entity {
		if rng.IntN(8) == 0 || len(*all) == 0 {
			return 0
		}
		return (*all)[rng.IntN(len(*all))]
	}
	for range 6 {
		e := pick()
		if !w.Alive(e) {
			e = w.Create()
			*all = append(*all, e)
		}
		switch rng.IntN(10) {
		case 0, 1, 2:
			w.children.Set(e, childOf{pick()})
		case 3:
			w.owners.Set(e, pick())
		case 4, 5:
			s := spring{Note: "a spring"[:rng.IntN(8)], A: pick(), Near: []ecs.Entity{pick()}}
			s.Link.B, s.Link.Deep.Most.C, s.Link.Deep.Most.D = pick(), pick(), pick()
			w.springs.Set(e, s)
		case 6:
			w.sockets.Set(e, socket{pick()})
		case 7:
			w.lasts.Set(e, last{pick()})
			if w.lates != nil {
				w.lates.Set(e, late{pick()})
			}
		case 8:
			w.Destroy(e)
		case 9:
			w.children.Remove(e)
			w.sockets.Remove(e)
		}
	}
}

// A bond is a link of a naive tree.
type bond struct{ source, target ecs.Entity }

// bondsOf returns the bonds of a field in the whole state, ordered by the index of the source.
func bondsOf(t testing.TB, im *image.Image, component, field string) (bonds []bond) {
	t.Helper()
	c := im.Find(component)
	if c == nil {
		return nil
	}
	for row, e := range c.Entities {
		if e == ecs.Vacant {
			continue
		}
		v := storetest.ValueOf(t, c, row)
		for name := range strings.SplitSeq(field, ".") {
			if name != "" {
				v, _ = v.Field(name)
			}
		}
		bonds = append(bonds, bond{e, ecs.Entity(v.Uint())})
	}
	slices.SortFunc(bonds, func(a, b bond) int { return int(a.source.Index()) - int(b.source.Index()) })
	return bonds
}

// A naiveTree builds trees by searching all bonds at each step.
type naiveTree struct {
	alive func(ecs.Entity) bool
	bonds []bond
	met   map[ecs.Entity]bool
	nodes []inspect.TreeNode
}

func (n *naiveTree) target(e ecs.Entity) (named, alive ecs.Entity) {
	for _, b := range n.bonds {
		if b.source == e {
			if n.alive(b.target) {
				return b.target, b.target
			}
			return b.target, 0
		}
	}
	return 0, 0
}

func (n *naiveTree) sources(e ecs.Entity) (list []ecs.Entity) {
	for _, b := range n.bonds {
		if b.target == e && n.alive(e) {
			list = append(list, b.source)
		}
	}
	return list
}

// add adds e and the entities below it to the nodes, and returns how many entities it added.
func (n *naiveTree) add(e ecs.Entity, depth int, last bool) (entities int) {
	target, alive := n.target(e)
	if n.met[e] {
		n.nodes = append(n.nodes, inspect.TreeNode{Entity: e, Target: target, Depth: depth, Last: last, Again: true})
		return 0
	}
	n.met[e] = true
	at, sources := len(n.nodes), n.sources(e)
	n.nodes = append(n.nodes, inspect.TreeNode{
		Entity: e, Target: target, TargetDead: target != alive, Depth: depth, Sources: len(sources), Last: last,
	})
	for i, s := range sources {
		entities += n.add(s, depth+1, i == len(sources)-1)
	}
	n.nodes[at].Below = entities
	return entities + 1
}

// of returns the tree of e. If e is 0, it returns all trees and the rootless entities.
func (n *naiveTree) of(e ecs.Entity, all []ecs.Entity) (nodes []inspect.TreeNode, rootless []ecs.Entity) {
	n.met = map[ecs.Entity]bool{}
	if e != 0 {
		up := map[ecs.Entity]bool{e: true}
		for _, at := n.target(e); at != 0 && !up[at]; _, at = n.target(at) {
			up[at] = true
			target, alive := n.target(at)
			n.nodes = slices.Insert(n.nodes, 0, inspect.TreeNode{
				Entity: at, Target: target, TargetDead: target != alive, Depth: -1 - len(n.nodes), Sources: len(n.sources(at)),
			})
		}
		n.add(e, 0, true)
		return n.nodes, nil
	}
	isSource := func(e ecs.Entity) bool {
		return slices.ContainsFunc(n.bonds, func(b bond) bool { return b.source == e })
	}
	for _, e := range all {
		if _, target := n.target(e); target == 0 && (isSource(e) || len(n.sources(e)) > 0) {
			n.add(e, 0, true)
		}
	}
	for _, e := range all {
		if isSource(e) && !n.met[e] {
			rootless = append(rootless, e)
		}
	}
	return n.nodes, rootless
}

func TestTree_RandomWorlds(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for seed := range deep.Or[uint64](2, 4) {
		v := forestView(t, seed)
		for _, seq := range storetest.SeqsOf(v) {
			compareTrees(t, v, seq, seed, seen)
		}
	}
	for _, what := range []string{"cycles", "self", "dead", "rootless", "deep", "wide", "none", "recycled", "late"} {
		require.Greater(t, seen[what], 5, "%s: %v", what, seen)
	}
}

// forestView returns a store that two programs wrote. The second program continued from a past
// tick.
func forestView(t *testing.T, seed uint64) *inspect.View {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 62))
	dir := filepath.Join(t.TempDir(), "store")
	for round := range 2 {
		w, at, all := newForest(round > 0), "", []ecs.Entity{}
		if round > 0 {
			at = "record:4"
		}
		s := storetest.Open(t, dir, &storetest.World{World: w.World}, persist.Options{At: at, Sync: journal.SyncNever, SnapshotBytes: -1})
		all = append(all, w.Entities()...)
		for n := range 24 {
			w.grow(rng, &all)
			require.NoError(t, s.Commit())
			if rng.IntN(5) == 0 {
				_ = w.History().Rewind(1 + rng.IntN(2))
			}
			if n%9 == 5 {
				storetest.SnapshotOf(t, s)
			}
		}
		storetest.CloseStore(t, s)
	}
	return storetest.ViewOf(t, dir)
}

// compareTrees compares all trees after record seq with naive trees.
func compareTrees(t *testing.T, v *inspect.View, seq, seed uint64, seen map[string]int) {
	t.Helper()
	im := storetest.ImageAt(t, v, seq)
	all := slices.Clone(im.Registry[:im.Alive])
	slices.SortFunc(all, func(a, b ecs.Entity) int { return int(a.Index()) - int(b.Index()) })
	compareLiving(t, v, im, seq)
	for _, f := range forestFields {
		bonds := bondsOf(t, im, f[0], f[1])
		for _, e := range append([]ecs.Entity{0}, all...) {
			want, lost := (&naiveTree{alive: im.IsAlive, bonds: bonds}).of(e, all)
			got, rootless, err := v.Tree(storetest.Background, e, f[0], f[1], seq)
			if im.Find(f[0]) == nil {
				require.ErrorIs(t, err, persist.ErrNotFound)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, want, got, "seed %d, %v by %v at record %d", seed, e, f, seq)
			require.Equal(t, lost, rootless, "seed %d, by %v at record %d", seed, f, seq)
			noteTree(seen, e, got)
			seen["rootless"] += len(rootless)
			if f[0] == "late" {
				seen["late"] += len(got)
			}
		}
	}
}

// compareLiving compares the result of Living with im, for entities of several generations.
func compareLiving(t *testing.T, v *inspect.View, im *image.Image, seq uint64) {
	t.Helper()
	var some []ecs.Entity
	want := map[ecs.Entity]bool{}
	for index := range uint32(40) {
		for generation := range uint32(4) {
			e := ecs.NewEntity(index, generation)
			some, want[e] = append(some, e), im.IsAlive(e)
		}
	}
	got, err := v.Living(storetest.Background, some, seq)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// noteTree counts the cases that occur in the trees, so the test can require that every case
// occurs.
func noteTree(seen map[string]int, e ecs.Entity, nodes []inspect.TreeNode) {
	note := func(what string, is bool) {
		if is {
			seen[what]++
		}
	}
	for _, n := range nodes {
		note("cycles", n.Again && n.Target != n.Entity)
		note("self", n.Again && n.Target == n.Entity)
		note("dead", n.TargetDead)
		note("deep", n.Depth > 3)
		note("wide", n.Sources > 2)
		note("none", e == 0 && n.Depth == 0 && n.Target == 0 && n.Sources == 0)
		note("recycled", n.Entity.Generation() > 1)
	}
}

func TestTree_InSaveFile(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 63))
		w, all := newForest(true), []ecs.Entity{}
		for range 20 {
			w.grow(rng, &all)
		}
		w.Commit()
		file := filepath.Join(t.TempDir(), "save")
		require.NoError(t, persist.Save(storetest.Background, file, w.World))
		compareTrees(t, storetest.ViewOf(t, file), 0, seed, seen)
	}
	require.Greater(t, seen["dead"], 5)
	require.Positive(t, seen["cycles"])
}

func TestTree_DeadEntities(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newForest(true)
	s := storetest.Open(t, dir, &storetest.World{World: w.World}, persist.Options{SnapshotBytes: -1})
	first, second, third := w.Create(), w.Create(), w.Create()
	require.NoError(t, s.Commit())
	w.Destroy(first)
	require.NoError(t, s.Commit())
	require.NoError(t, w.History().Seek(1))
	w.lasts.Set(first, last{second})
	w.lasts.Set(third, last{first})
	storetest.SnapshotOf(t, s)
	require.NoError(t, w.History().Seek(2))
	storetest.CloseStore(t, s)
	v := storetest.ViewOf(t, dir)
	got, _, err := v.Tree(storetest.Background, 0, "last", "Seen", 1)
	require.NoError(t, err)
	require.Len(t, got, 3)
	got, _, err = v.Tree(storetest.Background, 0, "last", "Seen", 2)
	require.NoError(t, err)
	require.Equal(t, []inspect.TreeNode{{Entity: third, Target: first, TargetDead: true, Last: true}}, got)
	compareTrees(t, v, 2, 0, map[string]int{})
}

func TestEntityFields_ListsPaths(t *testing.T) {
	w := newForest(true)
	w.Commit()
	file := filepath.Join(t.TempDir(), "save")
	require.NoError(t, persist.Save(storetest.Background, file, w.World))
	v := storetest.ViewOf(t, file)
	state, err := v.Peek(storetest.Background, ecs.NewEntity(0, 1), 0)
	require.NoError(t, err)
	var fields [][2]string
	for _, c := range state.Components {
		if c.Resource {
			require.Equal(t, []string{"On"}, c.EntityFields())
			continue
		}
		for _, path := range c.EntityFields() {
			fields = append(fields, [2]string{c.Name, path})
		}
	}
	require.ElementsMatch(t, forestFields, fields)
	for _, f := range [][2]string{{"nothing", ""}, {"spring", "Near"}, {"spring", ""}, {"spring", "Note"}, {"chosen", "On"}} {
		_, _, err := v.Tree(storetest.Background, 0, f[0], f[1], 0)
		require.ErrorIs(t, err, persist.ErrNotFound, "%v", f)
	}
	ctx, cancel := context.WithCancel(storetest.Background)
	cancel()
	_, _, err = v.Tree(ctx, 0, "childOf", "Parent", 0)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, persist.ErrCorrupt)
}

func TestTree_LongChainOrManySources(t *testing.T) {
	const n = 100_000
	dir := filepath.Join(t.TempDir(), "store")
	w := newForest(true)
	s := storetest.Open(t, dir, &storetest.World{World: w.World}, persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1})
	root := w.Create()
	above := root
	for i := range n {
		e := w.Create()
		w.children.Set(e, childOf{above})
		w.owners.Set(e, root)
		if i == n/2 {
			require.NoError(t, s.Commit())
			storetest.SnapshotOf(t, s)
		}
		above = e
	}
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)
	v := storetest.ViewOf(t, dir)

	chain, _, err := v.Tree(storetest.Background, 0, "childOf", "Parent", 2)
	require.NoError(t, err)
	require.Len(t, chain, n+1)
	for i, node := range chain {
		require.Equal(t, i, node.Depth)
		require.Equal(t, n-i, node.Below)
	}
	tip, _, err := v.Tree(storetest.Background, above, "childOf", "Parent", 2)
	require.NoError(t, err)
	require.Len(t, tip, n+1)
	require.Equal(t, root, tip[0].Entity)
	require.Equal(t, -n, tip[0].Depth)

	crowd, _, err := v.Tree(storetest.Background, root, "owner", "", 2)
	require.NoError(t, err)
	require.Len(t, crowd, n+1)
	require.Equal(t, n, crowd[0].Sources)
	require.True(t, slices.IsSortedFunc(crowd, func(a, b inspect.TreeNode) int { return int(a.Entity.Index()) - int(b.Entity.Index()) }))
}

func TestTreeColumn_RefusesInvalidTicks(t *testing.T) {
	w := storetest.HostileBase(t)
	im, id := storetest.ImageOf(t, w), journal.ID{}
	chase := im.Find("chase")
	n, rows, row := slices.Index(im.Components, chase), chase.Len(), chase.Row(0)
	behind := []raw.Range{{First: rows, N: 1}}
	storage := func(p format.StoragePatch) *format.Tick {
		p.Number = n
		return &format.Tick{Storages: []format.StoragePatch{p}}
	}
	good := storage(format.StoragePatch{Before: rows, After: rows + 1, EntityRanges: behind, Entities: storetest.EntityBytes(w.Entities()[2]), ValueRanges: behind, Values: row})
	require.NoError(t, inspect.ColumnOf(t, im.Clone(), "chase", "Target").Apply(t.Context(), good, id))
	require.Error(t, inspect.ColumnOf(t, im.Clone(), "chase", "Target").Apply(t.Context(), good, journal.ID{Epoch: 1, Seq: 1}))
	for name, tick := range map[string]*format.Tick{
		"a row cut short":     storage(format.StoragePatch{Before: rows, After: rows, ValueRanges: storetest.All(1), Values: row[1:]}),
		"bytes behind a row":  storage(format.StoragePatch{Before: rows, After: rows, ValueRanges: storetest.All(1), Values: append(slices.Clone(row), 0)}),
		"other rows before":   storage(format.StoragePatch{Before: rows + 1, After: rows}),
		"rows of noMember":    storage(format.StoragePatch{Before: rows, After: 1 << 20}),
		"entities cut short":  storage(format.StoragePatch{Before: rows, After: rows, EntityRanges: storetest.All(1), Entities: []byte{1}}),
		"indices of noMember": {Registry: &format.RegistryPatch{Alive: 9, Free: 9, Total: 1 << 20}},
		"a registry too long": {Registry: &format.RegistryPatch{Alive: 7, Free: 7, Total: 7, Ranges: storetest.All(1), Rows: []byte{1}}},
		"more alive than are": {Registry: &format.RegistryPatch{Alive: 9, Free: 8, Total: 8}},
	} {
		require.Error(t, inspect.ColumnOf(t, im.Clone(), "chase", "Target").Apply(t.Context(), tick, id), name)
	}
}

// FuzzColumnTick applies a tick to a column. If the tick leads to a valid state, the column
// must have the rows of that state.
func FuzzColumnTick(f *testing.F) {
	for _, payload := range storetest.Payloads(f) {
		f.Add(payload)
	}
	w := storetest.HostileBase(f)
	f.Fuzz(func(t *testing.T, payload []byte) {
		tick, err := format.DecodeTick(payload)
		if err != nil {
			return
		}
		im := storetest.ImageOf(t, w)
		c := inspect.ColumnOf(t, im.Clone(), "chase", "Target")
		id := tick.Parent
		storetest.BoundedTightly(t, len(payload), func() { err = c.Apply(t.Context(), tick, id) })
		require.Error(t, c.Apply(t.Context(), tick, journal.ID{Epoch: 9, Seq: 9}))
		tick.Parent = journal.ID{}
		if im.Apply(tick, journal.ID{Epoch: 1, Seq: 1}) != nil {
			return
		}
		require.NoError(t, err)
		chase := im.Find("chase")
		var targets []ecs.Entity
		for row := range chase.Len() {
			target, _ := storetest.ValueOf(t, chase, row).Field("Target")
			targets = append(targets, ecs.Entity(target.Uint()))
		}
		gotOwners, gotTargets := c.Rows()
		require.True(t, slices.Equal(chase.Entities, gotOwners))
		require.True(t, slices.Equal(targets, gotTargets))
	})
}
