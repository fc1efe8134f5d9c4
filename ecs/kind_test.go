package ecs

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/internal/deep"
)

// A kindWorld is a world with one component of each kind. All of these components get the same
// changes. Other models test the Sparse component. The test compares the other kinds with it.
type kindWorld struct {
	w       *World
	sparse  *Storage[plain]
	others  []*Storage[plain]
	handles []Entity
}

func newKindWorld(t *testing.T, grouped bool) *kindWorld {
	c := &kindWorld{w: NewWorld(Options{History: 4})}
	c.sparse = MustRegister[plain](c.w)
	for _, k := range []Kind{Indexed, Hashed, Ordered} {
		c.others = append(c.others, MustRegister(c.w, Component[plain]{Kind: k, Name: k.String()}))
	}
	if grouped {
		Must(c.w.NewGroup(c.sparse, c.others[1], c.others[2]))
	}
	// The indices fill six pages. Some handles have the same position in different pages.
	const spread = 6 * track.PageSize
	for range spread {
		c.w.Create()
	}
	for i, e := range c.w.Entities() {
		if i%track.PageSize < 3 || i%1000 == 0 {
			c.handles = append(c.handles, e)
		}
	}
	require.Greater(t, len(c.handles), 30)
	return c
}

func (c *kindWorld) each(f func(s *Storage[plain]) bool) bool {
	ok := f(c.sparse)
	for _, s := range c.others {
		if f(s) != ok {
			failf("%s returns %v, %s returns %v", s.Name(), !ok, c.sparse.Name(), ok)
		}
	}
	return ok
}

// check compares the members and values of all storages. For kinds with the same order of rows, it
// also compares the order.
func (c *kindWorld) check() {
	if err := c.w.check(); err != nil {
		failf("%v", err)
	}
	for _, s := range c.others {
		if s.Len() != c.sparse.Len() {
			failf("%s: Len() = %d, want %d", s.Name(), s.Len(), c.sparse.Len())
		}
		for _, e := range c.handles {
			got, has := s.Get(e)
			want, member := c.sparse.Get(e)
			if got != want || has != member || s.Has(e) != has {
				failf("%s: Get(%v) = %v, %v, want %v, %v", s.Name(), e, got, has, want, member)
			}
		}
		entities, values := s.Entities(), s.Values()
		if s.Kind() != Hashed {
			inOrder(s)
		}
		if s.Kind() == Indexed {
			members := slices.DeleteFunc(slices.Clone(entities), func(e Entity) bool { return e == Vacant })
			if !slices.IsSortedFunc(members, func(a, b Entity) int { return cmp.Compare(a.Index(), b.Index()) }) {
				failf("%s: not in the order of indices", s.Name())
			}
			continue
		}
		if !slices.Equal(entities, c.sparse.Entities()) || !slices.Equal(values, c.sparse.Values()) {
			failf("%s: order differs: %v, want %v", s.Name(), entities, c.sparse.Entities())
		}
	}
}

// inOrder fails unless a loop over s visits entities by ascending index.
func inOrder(s *Storage[plain]) {
	last, n := -1, 0
	for e, v := range s.All() {
		if want, has := s.Get(e); int(e.Index()) <= last || !has || v != want {
			failf("%s: All() yields %v %v after index %d", s.Name(), e, v, last)
		}
		last = int(e.Index())
		n++
	}
	last = -1
	for e := range NewQuery1(Read(s)).All() {
		if int(e.Index()) <= last {
			failf("%s: a query yields %v after index %d", s.Name(), e, last)
		}
		last = int(e.Index())
		n--
	}
	if n != 0 {
		failf("%s: All() and a query differ by %d entities", s.Name(), n)
	}
}

func (c *kindWorld) step(rng *rand.Rand, cps *[]Checkpoint) {
	i := rng.IntN(len(c.handles))
	e := c.handles[i]
	v := plain{rng.Int32N(1000), 1}
	switch rng.IntN(16) {
	case 0, 1, 2, 3, 4:
		c.each(func(s *Storage[plain]) bool { return s.Set(e, v) })
	case 5, 6, 7:
		c.each(func(s *Storage[plain]) bool { return s.Remove(e) })
	case 8:
		c.each(func(s *Storage[plain]) bool {
			p := s.Mut(e)
			if p != nil {
				p.Y++
			}
			return p != nil
		})
	case 9:
		if c.w.Destroy(e) {
			c.handles[i] = c.w.Create()
		}
	case 10:
		if rng.IntN(4) == 0 {
			c.each(func(s *Storage[plain]) bool { s.Clear(); return true })
		}
	case 11:
		c.w.Commit()
	case 12:
		_ = c.w.History().Seek(c.w.Tick() + uint64(rng.IntN(4)) - 2)
		c.refresh()
	case 13:
		if len(*cps) < 3 {
			*cps = append(*cps, c.w.Checkpoint())
		}
	case 14:
		c.end(rng, cps, c.w.Restore)
		c.refresh()
	case 15:
		c.end(rng, cps, c.w.Release)
	}
}

// refresh replaces each handle by the alive entity with the same index.
func (c *kindWorld) refresh() {
	for i, e := range c.handles {
		c.handles[i] = c.w.entities.dense.Live[c.w.entities.sparse[e.Index()]]
	}
}

func (c *kindWorld) end(rng *rand.Rand, cps *[]Checkpoint, f func(Checkpoint)) {
	*cps = slices.DeleteFunc(*cps, func(cp Checkpoint) bool { return !cp.Valid() })
	if len(*cps) > 0 {
		f((*cps)[rng.IntN(len(*cps))])
	}
}

func TestKind_EveryKindHasSameContent(t *testing.T) {
	t.Parallel()
	for seed := range uint64(deep.Or(6, 12)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			c := newKindWorld(t, seed%3 == 2)
			rng := rand.New(rand.NewPCG(seed, 1))
			var cps []Checkpoint
			var err error
			func() {
				defer catch(&err)
				for range 300 {
					c.step(rng, &cps)
					c.check()
				}
			}()
			require.NoError(t, err)
		})
	}
}

func TestKind_HashedStorageSharesPages(t *testing.T) {
	w := NewWorld(Options{})
	s := MustRegister(w, Component[plain]{Kind: Hashed})
	const blocks = 64
	// The indices are divided into blocks of one page. Each slice gets one entity of each block. In
	// the slice some, their positions in the blocks differ, so they can share one page. In the
	// slice same, their positions are equal, so each needs its own page.
	var some, same []Entity
	for i := range blocks * track.PageSize {
		e := w.Create()
		if i&pageMask == i>>pageBits*7 {
			some = append(some, e)
		}
		if i&pageMask == 5 {
			same = append(same, e)
		}
	}
	for _, e := range some {
		s.Set(e, plain{})
	}
	require.Len(t, s.shared, 1)
	for i, e := range same {
		s.Set(e, plain{int32(i), 0})
	}
	require.Len(t, s.shared, blocks)
	for i, e := range same {
		v, ok := s.Get(e)
		require.True(t, ok)
		require.Equal(t, int32(i), v.X)
	}
	require.NoError(t, w.check())
}

func TestKind_IndexedStorageKeepsRows(t *testing.T) {
	w := NewWorld(Options{})
	s := MustRegister(w, Component[plain]{Kind: Indexed, Default: plain{-1, -1}})
	a, b, c := w.Create(), w.Create(), w.Create()
	s.Set(c, plain{3, 0})
	s.Set(a, plain{1, 0})
	require.Equal(t, []Entity{a, Vacant, c}, s.Entities())
	require.Equal(t, []plain{{1, 0}, {-1, -1}, {3, 0}}, s.Values())
	at := s.Mut(c)
	s.Set(b, plain{2, 0})
	s.Remove(a)
	require.Same(t, at, s.Mut(c))
	require.Equal(t, []plain{{-1, -1}, {2, 0}, {3, 0}}, s.Values())
	require.Equal(t, 2, s.Len())
	require.Equal(t, 3, s.Raw().Rows())
	require.False(t, s.Has(Vacant))
	require.False(t, s.Has(0))
	s.Clear()
	require.Zero(t, s.Raw().Rows())
	s.Set(b, plain{4, 4})
	require.Equal(t, []Entity{Vacant, b}, s.Entities())
	require.Equal(t, []plain{{-1, -1}, {4, 4}}, s.Values())
}

func TestKind_RegisterErrors(t *testing.T) {
	for name, register := range map[string]func(w *World) error{
		"a default without gaps": func(w *World) error { _, err := Register(w, Component[plain]{Default: plain{X: 1}}); return err },
		"a tag with values":      func(w *World) error { _, err := Register(w, Component[plain]{Kind: Tag}); return err },
		"no kind":                func(w *World) error { _, err := Register(w, Component[plain]{Kind: 200}); return err },
	} {
		err := register(NewWorld(Options{}))
		require.ErrorIs(t, err, errKind, name)
	}
	w := NewWorld(Options{})
	require.Equal(t, Tag, MustRegister[label](w).Kind())
	require.Equal(t, Sparse, MustRegister[plain](w).Kind())
	require.Equal(t, Indexed, MustRegister(w, Component[label]{Kind: Indexed, Name: "flags"}).Kind())
}

// Load arranges rows in the order that the registered kind requires.
func TestKind_LoadOrdersRows(t *testing.T) {
	from := NewWorld(Options{})
	kinds := []Kind{Sparse, Indexed, Hashed, Ordered}
	stored := make([]*Storage[plain], len(kinds))
	for i, k := range kinds {
		stored[i] = MustRegister(from, Component[plain]{Kind: k, Name: k.String()})
	}
	for i := range 10 {
		e := from.Create()
		for _, s := range stored {
			if i%3 > 0 {
				s.Set(e, plain{int32(i), 2})
			}
		}
	}
	for _, k := range kinds {
		w := NewWorld(Options{})
		for _, s := range stored {
			MustRegister(w, Component[plain]{Kind: k, Name: s.Name()})
		}
		require.NoError(t, w.Raw().Load(stateOf(from)))
		require.NoError(t, w.check())
		for _, s := range stored {
			loaded := s.In(w)
			require.Equal(t, s.Len(), loaded.Len())
			for _, e := range from.Entities() {
				got, has := loaded.Get(e)
				want, member := s.Get(e)
				require.Equal(t, want, got)
				require.Equal(t, member, has)
			}
		}
	}
}
