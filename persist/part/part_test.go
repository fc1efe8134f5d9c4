package part_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
	"github.com/stet-ecs/stet/persist/part"
)

var ctx = context.Background()

// of is part.Of for valid arguments.
func of(t testing.TB, w *ecs.World, o part.Options, entities ...ecs.Entity) *part.Part {
	t.Helper()
	p, err := part.Of(w, entities, o)
	require.NoError(t, err)
	return p
}

// bytesOf returns the save of p.
func bytesOf(t testing.TB, p *part.Part) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, p.SaveTo(ctx, &out))
	return out.Bytes()
}

// loaded returns the part in data, with the types of w.
func loaded(t testing.TB, data []byte, w *ecs.World) *part.Part {
	t.Helper()
	p, err := part.LoadFrom(ctx, bytes.NewReader(data), w)
	require.NoError(t, err)
	return p
}

// chain creates n entities in w, each the parent of the next one. An entity outside is the parent
// of the first and a friend of the last.
func chain(w *world, n int) (outside ecs.Entity, list []ecs.Entity) {
	all := w.CreateN(nil, n+1)
	for i, e := range all[1:] {
		w.bonds.Set(e, bond{Parent: all[i]})
	}
	w.bonds.Mut(all[n]).Friends = []ecs.Entity{all[0]}
	return all[0], all[1:]
}

// A level that was removed and merged again has the same content under other IDs. It refers to the
// same entities outside.
func TestMerge_RestoresDestroyedEntities(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 9))
		w := newWorld(0)
		w.grow(random, 60)
		list := distinct(chosen(random, w.World.World))
		before := w.entities()
		data := bytesOf(t, of(t, w.World.World, part.Options{}, list...))
		w.DestroyAll(list)
		rest := w.entities()
		m, err := loaded(t, data, w.World.World).Merge(w.World.World, part.MergeOptions{Outside: part.Outside.Keep})
		if err != nil {
			require.ErrorContains(t, err, "two keys of a map become equal", "seed %d", seed)
			continue
		}
		now := w.entities()
		for i, e := range list {
			want := mappedTo(before[e], func(e ecs.Entity) ecs.Entity {
				if c, ok := m.Of(e); ok {
					return c
				} else if rest[e] != nil {
					return e
				}
				return 0
			})
			require.Equal(t, want, now[m.Entities[i]], "seed %d: %v", seed, e)
			delete(now, m.Entities[i])
		}
		require.Equal(t, rest, now, "seed %d", seed)
		if _, ok := m.Of(ecs.NewEntity(1<<30, 1)); ok {
			t.Error("somebody became of nobody")
		}
	}
}

// By default, a reference to a living entity outside the part is refused. A reference to a dead
// entity is cleared and reported.
func TestPart_RefusesReferenceOutside(t *testing.T) {
	w := newWorld(0)
	w.CreateN(nil, 5) // The IDs in the part differ from those in w.
	outside, list := chain(w, 2)
	p := of(t, w.World.World, part.Options{Name: func(e ecs.Entity) string { return "the cave" }}, list...)
	to := newWorld(1)
	to.Create()
	to.Commit()
	before := to.Digest()
	_, err := p.Merge(to.World.World, part.MergeOptions{})
	require.ErrorIs(t, err, part.ErrOutside)
	require.EqualError(t, err, `part: component bond of 6v1: Parent refers to 5v1, "the cave": the entity is outside the part; MergeOptions.Outside can replace it`)
	refusal := errors.New("who is that?")
	_, err = p.Merge(to.World.World, part.MergeOptions{Outside: func(o part.Outside) (ecs.Entity, error) {
		if o.Field == "Parent" {
			return o.Clear()
		}
		return 0, refusal
	}})
	require.ErrorIs(t, err, refusal)
	require.EqualError(t, err, `part: component bond of 7v1: Friends[] refers to 5v1, "the cave": who is that?`)
	require.Equal(t, before, to.Digest())
	require.False(t, to.Raw().Dirty())

	m, err := p.Merge(to.World.World, part.MergeOptions{Outside: part.Outside.Clear})
	require.NoError(t, err)
	require.Equal(t, []part.Outside{
		{From: list[0], Component: "bond", Field: "Parent", To: outside, Alive: true, Name: "the cave"},
		{From: list[1], Component: "bond", Field: "Friends[]", To: outside, Alive: true, Name: "the cave"},
	}, m.Cleared)

	w.Destroy(outside)
	m, err = of(t, w.World.World, part.Options{}, list...).Merge(to.World.World, part.MergeOptions{})
	require.NoError(t, err)
	require.Len(t, m.Cleared, 2)
	require.Equal(t, "component bond of 6v1: Parent refers to 5v1", m.Cleared[0].String())
}

// If the program returns a dead entity for a reference, the reference is cleared. Otherwise the
// reference could name an entity that is created later.
func TestMerge_ReferenceToDeadEntity(t *testing.T) {
	from, to := newWorld(0), newWorld(0)
	_, list := chain(from, 1)
	p := of(t, from.World.World, part.Options{}, list...)
	for _, policy := range []func(part.Outside) (ecs.Entity, error){
		part.Outside.Keep,
		// This entity does not exist yet, but the next Create returns its ID.
		func(part.Outside) (ecs.Entity, error) { return ecs.NewEntity(0, 1), nil },
	} {
		w := newWorld(0)
		m, err := p.Merge(w.World.World, part.MergeOptions{Outside: policy})
		require.NoError(t, err)
		b, _ := w.bonds.Get(m.Entities[0])
		require.Equal(t, bond{Friends: []ecs.Entity{0}}, b)
		require.Len(t, m.Cleared, 2)
	}
	friend := to.Create() // friend gets the ID of the entity outside the part.
	m, err := p.Merge(to.World.World, part.MergeOptions{Outside: part.Outside.Keep})
	require.NoError(t, err)
	b, _ := to.bonds.Get(m.Entities[0])
	require.Equal(t, friend, b.Parent)
	require.Empty(t, m.Cleared)
}

// A resource is merged if both the part and the merge name it. References in the resource are
// handled.
func TestPart_ResourcesMergedByName(t *testing.T) {
	from := newWorld(0)
	outside, list := chain(from, 1)
	from.chief.Set(bond{Parent: list[0], Friends: []ecs.Entity{outside}})
	from.Rules.Set(storetest.Rules{Name: "house"})
	for _, name := range []string{"nothing", "bond", "sprite"} {
		_, err := part.Of(from.World.World, list, part.Options{Resources: []string{name}})
		require.ErrorContains(t, err, "part: no resource "+name)
	}
	data := bytesOf(t, of(t, from.World.World, part.Options{Resources: []string{"chief"}}, list...))
	to := newWorld(0)
	to.Rules.Set(storetest.Rules{Name: "own"})
	p := loaded(t, data, to.World.World)
	before := to.Digest()
	for _, name := range []string{"nothing", "bond", "rules"} {
		_, err := p.Merge(to.World.World, part.MergeOptions{Outside: part.Outside.Clear, Resources: []string{name}})
		require.EqualError(t, err, "part: it has no resource "+name)
	}
	_, err := p.Merge(to.World.World, part.MergeOptions{Resources: []string{"chief"}, Outside: func(o part.Outside) (ecs.Entity, error) {
		if o.From == 0 {
			return o.Refuse()
		}
		return o.Clear()
	}})
	require.ErrorContains(t, err, "part: resource chief: Friends[] refers to 0v1: the entity is outside")
	require.Equal(t, before, to.Digest())
	m, err := p.Merge(to.World.World, part.MergeOptions{Outside: part.Outside.Clear, Resources: []string{"chief"}})
	require.NoError(t, err)
	require.Equal(t, bond{Parent: m.Entities[0], Friends: []ecs.Entity{0}}, to.chief.Get())
	require.Equal(t, "own", to.Rules.Get().Name)
	_, err = p.Merge(to.World.World, part.MergeOptions{Outside: part.Outside.Clear})
	require.NoError(t, err)
	require.Equal(t, m.Entities[0], to.chief.Get().Parent, "the resource was not requested")
}

// If the world lacks a component, Merge returns an error or leaves the component out.
func TestMerge_MissingComponents(t *testing.T) {
	from := newWorld(0)
	e := from.Create()
	from.Rank.Set(e, storetest.Rank{Place: 3})
	from.Position.Set(e, storetest.Position{X: 1})
	data := bytesOf(t, of(t, from.World.World, part.Options{}, e))
	w := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister(w, ecs.Component[storetest.Position]{Name: "position"})
	p := loaded(t, data, w)
	before := w.Digest()
	_, err := p.Merge(w, part.MergeOptions{})
	require.ErrorContains(t, err, "does not have rank")
	require.Equal(t, before, w.Digest())
	m, err := p.Merge(w, part.MergeOptions{SkipMissing: true})
	require.NoError(t, err)
	require.Equal(t, []storetest.Position{{X: 1}}, positions.Values())
	require.Len(t, w.Storages(), 1)
	require.Len(t, m.Entities, 1)

	kept := of(t, from.World.World, part.Options{Keep: func(s ecs.AnyStorage) bool { return s.Name() == "position" }}, e)
	_, err = kept.Merge(w, part.MergeOptions{})
	require.NoError(t, err, "a component outside the part cannot be missing")
}

// Older types are converted or refused, as by Load.
func TestMerge_OlderTypes(t *testing.T) {
	type Old struct{ X, Lost int32 }
	type New struct{ X, Added int64 }
	old := ecs.NewWorld(ecs.Options{})
	e := old.Create()
	ecs.MustRegister(old, ecs.Component[Old]{Name: "old"}).Set(e, Old{5, 6})
	data := bytesOf(t, of(t, old, part.Options{}, e))

	now := ecs.NewWorld(ecs.Options{})
	ecs.MustRegister(now, ecs.Component[New]{Name: "new", FormerNames: []string{"old"}})
	_, err := part.LoadFrom(ctx, bytes.NewReader(data), now)
	require.ErrorIs(t, err, raw.ErrDropped)
	require.ErrorIs(t, err, persist.ErrSchema)

	now = ecs.NewWorld(ecs.Options{})
	s := ecs.MustRegister(now, ecs.Component[New]{Name: "new", FormerNames: []string{"old"}, Dropped: []string{"Lost"}})
	_, err = loaded(t, data, now).Merge(now, part.MergeOptions{})
	require.NoError(t, err)
	require.Equal(t, []New{{X: 5}}, s.Values())

	other := ecs.NewWorld(ecs.Options{})
	ecs.MustRegister(other, ecs.Component[string]{Name: "old"})
	_, err = part.LoadFrom(ctx, bytes.NewReader(data), other)
	require.ErrorIs(t, err, persist.ErrSchema)
}

// A save of a whole world is a part that has all entities. A part is a save that can be loaded,
// inspected and split into parts.
func TestPart_LoadsAsSave(t *testing.T) {
	w := newWorld(0)
	w.Fill(8)
	outside, list := chain(w, 3)
	w.Destroy(list[1])
	var save bytes.Buffer
	require.NoError(t, persist.SaveTo(ctx, &save, w.World.World))
	to := newWorld(0)
	p := loaded(t, save.Bytes(), to.World.World)
	require.Equal(t, w.Entities(), p.Entities())
	m, err := p.Merge(to.World.World, part.MergeOptions{Resources: []string{"seed"}})
	require.NoError(t, err)
	require.Equal(t, w.Len(), to.Len())
	require.EqualValues(t, 8, to.Seed.Get())
	require.Len(t, m.Cleared, 1, "the entity in the middle was dead")
	first, _ := m.Of(outside)
	b, _ := to.bonds.Get(m.Entities[slices.Index(p.Entities(), list[0])])
	require.Equal(t, first, b.Parent)

	dir := t.TempDir()
	file := filepath.Join(dir, "two.part")
	require.NoError(t, of(t, w.World.World, part.Options{}, list[2], list[0]).Save(ctx, file))
	v := storetest.ViewOf(t, file)
	im := storetest.ImageAt(t, v, 0)
	require.Equal(t, 2, im.Find("part.origin").Len())
	require.Equal(t, 2, im.Find("part.outside").Len(), "the entity in the middle, and who is outside")
	require.Nil(t, im.Find("seed"), "no resource was named")
	require.Zero(t, im.Find("position").Len())
	report, err := v.Verify(ctx)
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	whole := newWorld(0)
	require.NoError(t, persist.Load(ctx, file, whole.World.World))
	require.Equal(t, 4, whole.Len())

	again := of(t, whole.World.World, part.Options{}, whole.Entities()[0])
	m, err = again.Merge(whole.World.World, part.MergeOptions{Outside: part.Outside.Keep})
	require.NoError(t, err, "parts can be taken from and merged into a world loaded from a part")
	require.Equal(t, 5, whole.Len())
	require.Len(t, m.Entities, 1)
}

// If a component in a save has the fields of an origin, it is not mistaken for an origin.
func TestPart_ComponentLikeOrigin(t *testing.T) {
	type version struct{ Index, Generation uint32 }
	w := ecs.NewWorld(ecs.Options{})
	e := w.Create()
	ecs.MustRegister[version](w).Set(e, version{7, 7})
	var save bytes.Buffer
	require.NoError(t, persist.SaveTo(ctx, &save, w))
	to := ecs.NewWorld(ecs.Options{})
	p := loaded(t, save.Bytes(), to)
	require.Equal(t, []ecs.Entity{e}, p.Entities())
	_, err := p.Merge(to, part.MergeOptions{SkipMissing: true})
	require.NoError(t, err)
}

// Saving a part twice gives the same bytes, in any order of map iteration.
func TestPart_SameBytesEachTime(t *testing.T) {
	w := newWorld(0)
	w.grow(rand.New(rand.NewPCG(3, 3)), 80)
	list := slices.Clone(w.Entities()[:w.Len()/2])
	debts := map[ecs.Entity]int{}
	for i, e := range w.CreateN(nil, 8) {
		debts[e] = i
	}
	holder := w.Create()
	w.bonds.Set(holder, bond{Debts: debts})
	list = append(list, holder)
	want := bytesOf(t, of(t, w.World.World, part.Options{}, list...))
	for range 10 {
		require.True(t, bytes.Equal(want, bytesOf(t, of(t, w.World.World, part.Options{}, list...))))
	}
}

// Hooks, relations, indexes, groups and required components see a merge as creations.
func TestMerge_RunsHooksOfCreation(t *testing.T) {
	from, to := newWorld(0), newWorld(0)
	outside, list := chain(from, 4)
	children := ecs.NewRelation(to.bonds, func(b bond) ecs.Entity { return b.Parent }, ecs.RelationOptions{})
	names := ecs.NewIndex(to.bonds, func(b bond) string { return b.Name })
	to.Frozen.RequiredBy(to.bonds, storetest.Frozen{})
	var created, added []ecs.Entity
	to.OnCreate(func(e ecs.Entity) { created = append(created, e) })
	to.bonds.OnAdd(func(e ecs.Entity, _ bond) { added = append(added, e) })
	root := to.Create()
	created = nil
	m, err := of(t, from.World.World, part.Options{}, list...).Merge(to.World.World, part.MergeOptions{Outside: func(o part.Outside) (ecs.Entity, error) {
		require.Equal(t, outside, o.To)
		return root, nil
	}})
	require.NoError(t, err)
	require.Equal(t, m.Entities, created)
	require.Equal(t, m.Entities, added)
	require.Equal(t, m.Entities[:1], slices.Collect(children.Of(root)))
	require.Equal(t, 4, names.Len(""))
	require.Equal(t, 4, to.Frozen.Len())
}

// Load refuses invalid input with an error.
func TestLoad_RefusesInvalidPart(t *testing.T) {
	w := newWorld(0)
	e := w.Create()
	w.Destroy(e)
	_, err := part.Of(w.World.World, []ecs.Entity{e}, part.Options{})
	require.ErrorContains(t, err, "entity 0v1 is not alive")

	_, err = of(t, w.World.World, part.Options{}).Merge(w.World.World, part.MergeOptions{Times: -1})
	require.ErrorContains(t, err, "Times is -1")

	own := ecs.NewWorld(ecs.Options{})
	ecs.MustRegister(own, ecs.Component[int]{Name: "part.origin"})
	_, err = part.Of(own, nil, part.Options{})
	require.ErrorContains(t, err, "the world has a component part.origin")
	_, err = part.LoadFrom(ctx, bytes.NewReader(bytesOf(t, of(t, w.World.World, part.Options{}))), own)
	require.ErrorContains(t, err, "the world has a component part.origin")

	_, err = part.LoadFrom(ctx, bytes.NewReader([]byte("no part")), w.World.World)
	require.Error(t, err)
	_, err = part.Load(ctx, "nothing", w.World.World, persist.FileOptions{Files: disk.Memory()})
	require.ErrorContains(t, err, "nothing")
	_, err = part.Load(ctx, filepath.Join(t.TempDir(), "nothing"), w.World.World)
	require.ErrorContains(t, err, "nothing")
}

// A tick of a store can be read with types, and some of its entities can be restored.
func TestPart_RestoresEntitiesOfOlderTick(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(0)
	s, err := persist.Open(ctx, dir, w.World.World, persist.Options{})
	require.NoError(t, err)
	outside, list := chain(w, 2)
	require.NoError(t, s.Commit())
	w.DestroyAll(list)
	require.NoError(t, s.Commit())
	require.NoError(t, s.Sync(ctx))
	v, err := inspect.OpenReadOnly(ctx, dir)
	require.NoError(t, err)
	defer v.Close()
	seq, err := v.Resolve("@latest~1")
	require.NoError(t, err)
	past := newWorld(0)
	require.NoError(t, v.Fill(ctx, seq, past.World.World))
	m, err := of(t, past.World.World, part.Options{}, list...).Merge(w.World.World, part.MergeOptions{Outside: part.Outside.Keep})
	require.NoError(t, err)
	b, _ := w.bonds.Get(m.Entities[0])
	require.Equal(t, outside, b.Parent)
	storetest.CloseStore(t, s)
}
