package part_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/deep"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
	"github.com/stet-ecs/stet/persist/part"
)

// A bond holds references of every form. The world of storetest has the other components.
type bond struct {
	Parent  ecs.Entity
	Friends []ecs.Entity
	Debts   map[ecs.Entity]int
	Name    string
}

// mapped returns the expected copy of b, written by hand.
func (b bond) mapped(to func(ecs.Entity) ecs.Entity) bond {
	c := bond{Parent: to(b.Parent), Name: b.Name}
	if b.Friends != nil {
		c.Friends = make([]ecs.Entity, len(b.Friends))
	}
	for i, e := range b.Friends {
		c.Friends[i] = to(e)
	}
	if b.Debts != nil {
		c.Debts = map[ecs.Entity]int{}
	}
	for e, n := range b.Debts {
		if to(e) != 0 || e == 0 {
			c.Debts[to(e)] = n
		}
	}
	return c
}

// A world has the components of storetest, and bonds.
type world struct {
	*storetest.World
	bonds *ecs.Storage[bond]
	chief *ecs.Resource[bond]
}

func newWorld(history int) *world {
	w := storetest.New(history)
	return &world{w, ecs.MustRegister[bond](w.World), ecs.Must(ecs.RegisterResource(w.World, bond{}, ecs.Component[bond]{Name: "chief"}))}
}

// grow carries out random actions, and creates bonds among all entities that live or have lived.
func (w *world) grow(random *rand.Rand, n int) {
	w.Do(storetest.RandomActions(random, n)...)
	w.ReleaseAll()
	all := slices.Clone(w.Entities())
	pick := func() ecs.Entity {
		switch k := random.IntN(len(all) + 3); {
		case k < len(all):
			return all[k]
		case k == len(all):
			return 0
		case k == len(all)+1 && len(all) > 0: // A dead entity, or one that never existed.
			return ecs.NewEntity(all[0].Index(), all[0].Generation()+7)
		}
		return ecs.NewEntity(1<<20, 1)
	}
	newBond := func(i int) bond {
		b := bond{Parent: pick(), Name: fmt.Sprint(i)}
		for range random.IntN(3) {
			b.Friends = append(b.Friends, pick())
		}
		if random.IntN(2) == 0 {
			b.Debts = map[ecs.Entity]int{pick(): 1, pick(): 2, pick(): 3}
		}
		return b
	}
	for i, e := range all {
		if random.IntN(3) > 0 {
			w.bonds.Set(e, newBond(i))
		}
	}
	w.chief.Set(newBond(-1))
}

// entities maps an entity and a component name to a saved component.
type entities map[ecs.Entity]map[string]any

func (w *world) entities() entities {
	all := entities{}
	for _, e := range w.Entities() {
		all[e] = map[string]any{}
		for _, s := range w.Storages() {
			if v, ok := s.GetAny(e); ok && !s.Raw().IsResource() && s.Raw().Persistent() {
				all[e][s.Name()] = v
			}
		}
	}
	return all
}

func (w *world) resources() map[string]any {
	all := map[string]any{}
	for _, s := range w.Storages() {
		if s.Raw().IsResource() {
			all[s.Name()], _ = s.GetAny(0)
		}
	}
	return all
}

// mappedTo returns the expected components after references were replaced.
func mappedTo(components map[string]any, to func(ecs.Entity) ecs.Entity) map[string]any {
	c := maps.Clone(components)
	for name, v := range c {
		switch v := v.(type) {
		case bond:
			c[name] = v.mapped(to)
		case storetest.Chase:
			v.Target = to(v.Target)
			c[name] = v
		case storetest.Chunk:
			v.Owner = to(v.Owner)
			c[name] = v
		}
	}
	return c
}

// sent returns p after a round trip through a file or a stream, or p itself.
func sent(t testing.TB, random *rand.Rand, p *part.Part, to *ecs.World) *part.Part {
	var err error
	ctx := storetest.Background
	switch random.IntN(4) {
	case 0:
		files := disk.Memory()
		require.NoError(t, p.Save(ctx, "level", persist.FileOptions{Files: files}))
		p, err = part.Load(ctx, "level", to, persist.FileOptions{Files: files})
	case 1:
		file := filepath.Join(t.TempDir(), "level")
		require.NoError(t, p.Save(ctx, file))
		p, err = part.Load(ctx, file, to)
	case 2:
		var out bytes.Buffer
		require.NoError(t, p.SaveTo(ctx, &out))
		p, err = part.LoadFrom(ctx, &out, to)
	}
	require.NoError(t, err)
	return p
}

// chosen returns some living entities in any order; some occur twice.
func chosen(random *rand.Rand, w *ecs.World) (list []ecs.Entity) {
	for range random.IntN(2*w.Len() + 1) {
		list = append(list, w.Entities()[random.IntN(w.Len())])
	}
	return list
}

// distinct returns a list without repeated entities.
func distinct(list []ecs.Entity) (once []ecs.Entity) {
	for _, e := range list {
		if !slices.Contains(once, e) {
			once = append(once, e)
		}
	}
	return once
}

// A merge of any part of any world, sent in any way, gives the same as a plain model. The copies
// have the components of the originals. References inside the part become references to the copies.
// The program handles all other references. Existing entities are unchanged.
func TestMerge_SameAsModel(t *testing.T) {
	for seed := range uint64(deep.Or(150, 2000)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			from, to := newWorld(2), newWorld(2)
			from.grow(random, 60)
			to.grow(random, 40)
			if seed%3 == 0 {
				to = from
			}
			mergeAsModelled(t, random, from, to)
		})
	}
}

func mergeAsModelled(t *testing.T, random *rand.Rand, from, to *world) {
	to.Commit()
	list := chosen(random, from.World.World)
	once, source := distinct(list), from.entities()
	resources := []string{"chief", "rules"}[:random.IntN(3)]
	chief, before := from.chief.Get(), from.Digest()
	p, err := part.Of(from.World.World, list, part.Options{Resources: resources, Name: func(e ecs.Entity) string { return "n" + e.String() }})
	require.NoError(t, err)
	require.Equal(t, before, from.Digest(), "Of changed the source")
	p = sent(t, random, p, to.World.World)
	require.Equal(t, once, append([]ecs.Entity(nil), p.Entities()...))

	there, values, tick, digest := to.entities(), to.resources(), to.Tick(), to.Digest()
	stranger := ecs.Entity(0)
	if to.Len() > 0 {
		stranger = to.Entities()[random.IntN(to.Len())]
	}
	policy := random.IntN(3)
	// became returns the entity that replaces an entity outside the part.
	became := func(e ecs.Entity) ecs.Entity {
		switch {
		case policy == 0 && there[e] != nil:
			return e
		case policy == 1:
			return stranger
		}
		return 0
	}
	times := 1 + random.IntN(3)
	outside := map[ecs.Entity]bool{}
	merged, err := p.Merge(to.World.World, part.MergeOptions{Resources: resources, Times: times, Outside: func(o part.Outside) (ecs.Entity, error) {
		require.Equal(t, "n"+o.To.String(), o.Name)
		require.Equal(t, source[o.To] != nil, o.Alive)
		require.NotContains(t, once, o.To)
		if o.From == 0 {
			require.Equal(t, "chief", o.Component)
		} else {
			require.Contains(t, source[o.From], o.Component)
		}
		outside[o.To] = true
		if policy == 0 {
			return o.Keep()
		}
		return became(o.To), nil
	}})
	if err != nil { // A merge can make two keys of a map equal.
		require.ErrorContains(t, err, "two keys of a map become equal")
		require.NotEqual(t, 2, policy)
		require.Equal(t, digest, to.Digest())
		return
	}
	require.Len(t, merged.Entities, times*len(once))
	now := to.entities()
	follow := func(round int) func(e ecs.Entity) ecs.Entity {
		return func(e ecs.Entity) ecs.Entity {
			if k := slices.Index(once, e); k >= 0 {
				return merged.Entities[round*len(once)+k]
			} else if e == 0 {
				return 0
			}
			require.True(t, outside[e], "Outside was not called for %v", e)
			return became(e)
		}
	}
	for k, e := range merged.Entities {
		original, round := once[k%len(once)], k/len(once)
		require.Equal(t, mappedTo(source[original], follow(round)), now[e], "%v became %v", original, e)
		require.False(t, to.Sprite.Has(e), "a part has no NoPersist components, even without a file")
		if round == 0 {
			first, ok := merged.Of(original)
			require.True(t, ok && first == e, "Of(%v) = %v", original, first)
		}
		delete(now, e)
	}
	require.Equal(t, there, now, "existing entities are unchanged")
	for name, v := range to.resources() {
		want := values[name]
		if slices.Contains(resources, name) {
			want = from.resources()[name]
			if name == "chief" {
				want = chief.mapped(follow(0))
			}
		}
		require.True(t, reflect.DeepEqual(want, v), "%s is %v, want %v", name, v, want)
	}
	for _, o := range merged.Cleared {
		require.Zero(t, became(o.To), o)
	}
	require.Equal(t, tick, to.Tick())
	to.Commit()
	require.NoError(t, to.History().Rewind(1))
	require.Equal(t, digest, to.Digest(), "a merge is taken back like any change")
}

// A merge is journaled like a program's changes: after a reopening, the store has the merged
// entities.
func TestMerge_IntoWorldOfStore(t *testing.T) {
	for seed := range uint64(deep.Or(12, 200)) {
		random := rand.New(rand.NewPCG(seed, 8))
		from, to := newWorld(0), newWorld(2)
		from.grow(random, 60)
		dir := t.TempDir()
		s, err := persist.Open(storetest.Background, dir, to.World.World, persist.Options{})
		require.NoError(t, err)
		to.grow(random, 30)
		require.NoError(t, s.Commit())
		for range 3 {
			p, err := part.Of(from.World.World, chosen(random, from.World.World), part.Options{Resources: []string{"rules"}})
			require.NoError(t, err)
			_, err = sent(t, random, p, to.World.World).Merge(to.World.World, part.MergeOptions{Outside: part.Outside.Clear, Resources: []string{"rules"}})
			require.NoError(t, err)
			require.NoError(t, s.Commit())
		}
		storetest.CloseStore(t, s)
		storetest.Verified(t, dir)
		again := newWorld(2)
		s, err = persist.Open(storetest.Background, dir, again.World.World, persist.Options{})
		require.NoError(t, err)
		require.Equal(t, storetest.Persistent(to.World.World), storetest.Persistent(again.World.World), "seed %d", seed)
		require.Equal(t, to.entities(), again.entities(), "seed %d", seed)
		storetest.CloseStore(t, s)
	}
}
