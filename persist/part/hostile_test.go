package part_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/deep"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
	"github.com/stet-ecs/stet/persist/part"
)

// These types equal origin and outside of package part, so a test can save any content.
type (
	origin  struct{ Index, Generation uint32 }
	outside struct {
		Index, Generation uint32
		Alive             bool
		Name              string
	}
)

// A save may contain anything. After a merge, existing entities keep their components, and
// references lead only to new entities and to living ones. A refused merge changes nothing.
func TestMerge_HostileSave(t *testing.T) {
	refused := 0
	for seed := range uint64(deep.Or(100, 2000)) {
		random := rand.New(rand.NewPCG(seed, 10))
		from := newWorld(0)
		origins := ecs.MustRegister(from.World.World, ecs.Component[origin]{Name: "part.origin"})
		others := ecs.MustRegister(from.World.World, ecs.Component[outside]{Name: "part.outside"})
		from.grow(random, 40)
		number := func() uint32 { return [...]uint32{0, 1, 1, 2, 3, 1<<32 - 1}[random.IntN(6)] }
		for _, e := range from.Entities() {
			if random.IntN(2) == 0 {
				origins.Set(e, origin{number(), number()})
			}
			if random.IntN(int(20+seed)) == 0 {
				others.Set(e, outside{number(), number(), random.IntN(2) == 0, "x\x00\xff"})
			}
		}
		for range random.IntN(4) {
			others.Set(from.Create(), outside{number(), number(), random.IntN(2) == 0, ""})
		}
		var save bytes.Buffer
		require.NoError(t, persist.SaveTo(ctx, &save, from.World.World))
		to := newWorld(1)
		to.grow(random, 30)
		to.Commit()
		digest, before := to.Digest(), to.Len()
		p, err := part.LoadFrom(ctx, &save, to.World.World)
		if err != nil {
			require.ErrorIs(t, err, persist.ErrCorrupt, "seed %d", seed)
			require.ErrorContains(t, err, "stands for an entity outside the part, but has a component")
			refused++
			continue
		}
		for _, policy := range []func(part.Outside) (ecs.Entity, error){nil, part.Outside.Keep, part.Outside.Clear} {
			m, err := p.Merge(to.World.World, part.MergeOptions{Outside: policy})
			if err != nil {
				require.Equal(t, digest, to.Digest(), "seed %d", seed)
				continue
			}
			require.Len(t, m.Entities, from.Len()-others.Len())
			require.Equal(t, before+len(m.Entities), to.Len())
			for _, e := range m.Entities {
				b, _ := to.bonds.Get(e)
				for _, held := range append(b.Friends, b.Parent) {
					require.True(t, held == 0 || to.Alive(held), "seed %d: %v refers to %v", seed, e, held)
				}
			}
			digest, before = to.Digest(), to.Len()
		}
	}
	require.Positive(t, refused)
}

// LoadFrom either returns an error for changed bytes, or returns a part. A merge of that part adds
// all its entities.
func FuzzLoadFrom(f *testing.F) {
	w := newWorld(0)
	_, list := chain(w, 2)
	f.Add(bytesOf(f, of(f, w.World.World, part.Options{}, list...)))
	f.Add(bytesOf(f, of(f, w.World.World, part.Options{})))
	f.Fuzz(func(t *testing.T, data []byte) {
		storetest.Bounded(t, len(data), func() {
			to := newWorld(0)
			to.Create()
			p, err := part.LoadFrom(ctx, bytes.NewReader(data), to.World.World)
			if err != nil {
				require.Equal(t, 1, to.Len())
				return
			}
			if m, err := p.Merge(to.World.World, part.MergeOptions{Outside: part.Outside.Clear, SkipMissing: true}); err == nil {
				require.Equal(t, 1+len(m.Entities), to.Len())
			}
		})
	})
}

// Every byte of a part is covered by a checksum.
func TestPart_EveryFlippedByte(t *testing.T) {
	w := newWorld(0)
	_, list := chain(w, 2)
	data := bytesOf(t, of(t, w.World.World, part.Options{}, list...))
	random := rand.New(rand.NewPCG(1, 11))
	for range deep.Or(60, 2000) {
		at := random.IntN(len(data))
		changed := bytes.Clone(data)
		changed[at] ^= 1 << random.IntN(8)
		_, err := part.LoadFrom(ctx, bytes.NewReader(changed), w.World.World)
		require.Error(t, err, fmt.Sprint("offset ", at))
	}
}

// If two entities have the same origin, the first one counts.
func TestPart_DuplicateOrigin(t *testing.T) {
	from, to := newWorld(0), newWorld(0)
	origins := ecs.MustRegister(from.World.World, ecs.Component[origin]{Name: "part.origin"})
	origins.SetAll(from.CreateN(nil, 2), origin{7, 1})
	var save bytes.Buffer
	require.NoError(t, persist.SaveTo(ctx, &save, from.World.World))
	m, err := loaded(t, save.Bytes(), to.World.World).Merge(to.World.World, part.MergeOptions{})
	require.NoError(t, err)
	e, ok := m.Of(ecs.NewEntity(7, 1))
	require.True(t, ok)
	require.Equal(t, m.Entities[0], e)
}
