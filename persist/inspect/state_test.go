package inspect_test

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/deep"
	"github.com/stet-ecs/stet/internal/parallel"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/storetest"
	"github.com/stet-ecs/stet/persist/repair"
)

// read calls f with the state after record seq. It reports whether the whole state was in memory.
func read(t *testing.T, v *inspect.View, seq uint64, f func(*inspect.State) error) (whole bool, err error) {
	t.Helper()
	err = v.Read(t.Context(), seq, func(s *inspect.State) error {
		whole = s.Whole()
		return f(s)
	})
	return whole, err
}

// sameState requires that all methods of s return the values of im.
func sameState(t *testing.T, im *image.Image, s *inspect.State) {
	t.Helper()
	o := s.Outline()
	require.Equal(t, []any{im.Tick, im.Alive, im.Free, len(im.Registry), len(im.Registry)}, []any{o.Tick, o.Living, o.Free, o.Indices, s.Indices()})
	require.Equal(t, im.Digest(), s.Digest())
	require.Len(t, o.Components, len(im.Components))
	require.NoError(t, s.Count(t.Context()))
	entities := slices.Clone(im.Registry)
	for _, e := range im.Registry {
		entities = append(entities, ecs.NewEntity(e.Index(), e.Generation()+1), ecs.NewEntity(e.Index(), 0), ecs.NewEntity(e.Index()+uint32(len(im.Registry)), 1))
	}
	for _, e := range entities {
		require.Equal(t, im.IsAlive(e), s.IsAlive(e), "%v", e)
	}
	for n, c := range im.Components {
		sameRows(t, im, c, s, o.Components[n])
	}
	sameSweep(t, im, s)
}

// sameRows requires that component c of im has the same rows as the given component of s.
func sameRows(t *testing.T, im *image.Image, c *image.Component, s *inspect.State, of *inspect.Component) {
	t.Helper()
	require.Equal(t, []any{c.Name, c.Len()}, []any{of.Name, of.Len()})
	size := 0
	for row := range c.Len() {
		got, err := s.Row(of, row)
		require.NoError(t, err)
		require.Equal(t, string(c.Row(row)), string(got), "%s, row %d", c.Name, row)
		value, err := s.Value(of, row)
		require.NoError(t, err)
		require.Equal(t, storetest.ValueOf(t, c, row).String(), value.String())
		size += len(c.Row(row))
	}
	bytes, err := s.RowBytes(of)
	require.NoError(t, err)
	require.EqualValues(t, size, bytes)
	if c.Resource {
		return
	}
	for row := range c.Len() {
		holder, err := s.Holder(of, row)
		require.NoError(t, err)
		require.Equal(t, c.Entities[row], holder)
	}
	sparse := c.Sparse()
	span, err := s.Span(of)
	require.NoError(t, err)
	require.Equal(t, len(sparse), span, c.Name)
	for lo := range sparse {
		part, err := s.Sparse(of, lo, min(lo+3, span))
		require.NoError(t, err)
		require.Equal(t, sparse[lo:min(lo+3, span)], part)
	}
	for _, e := range im.Registry[:im.Alive] {
		row, err := s.Find(of, e)
		require.NoError(t, err)
		require.Equal(t, c.Find(e), row, "%s of %v", c.Name, e)
	}
	sameLookup(t, im, c, s, of)
}

// sameLookup requires that concurrent lookups in s, in any order, return the values in im.
func sameLookup(t *testing.T, im *image.Image, c *image.Component, s *inspect.State, of *inspect.Component) {
	t.Helper()
	lookup := s.Lookup(of)
	require.NoError(t, parallel.Do(t.Context(), 2*im.Alive, func(i int) error {
		e := im.Registry[i%im.Alive]
		row, has, err := lookup(e)
		want := ""
		if r := c.Find(e); r >= 0 {
			want = string(c.Row(r))
		}
		if err == nil && (has != (c.Find(e) >= 0) || string(row) != want) {
			err = fmt.Errorf("%v has %x, %v of %s, want %x", e, row, has, c.Name, want)
		}
		return err
	}))
}

// sameSkip requires that a sweep after Skip visits all later entities, and skips at most n.
func sameSkip(t *testing.T, im *image.Image, s *inspect.State, n int) {
	t.Helper()
	all := slices.Clone(im.Registry[:im.Alive])
	slices.SortFunc(all, func(a, b ecs.Entity) int { return cmp.Compare(a.Index(), b.Index()) })
	from, skipped, err := s.Skip(t.Context(), n)
	require.NoError(t, err)
	var met []ecs.Entity
	require.NoError(t, s.Sweep(t.Context(), from, nil, func() func(*inspect.Span) (any, error) {
		return func(span *inspect.Span) (any, error) { return slices.Clone(span.Entities), nil }
	}, func(found any) error {
		met = append(met, found.([]ecs.Entity)...)
		return nil
	}))
	require.LessOrEqual(t, skipped, n)
	require.Less(t, min(n, len(all))-skipped, format.PageRows)
	require.True(t, slices.Equal(all[skipped:], met), "from %d, %d skipped of %d", from, skipped, n)
}

// sameSweep requires that a sweep visits all live entities by index, with their values in im.
func sameSweep(t *testing.T, im *image.Image, s *inspect.State) {
	t.Helper()
	components := s.Outline().Components
	type met struct {
		e ecs.Entity
		// next is the index at which the next span begins.
		next int
		has  []bool
		rows []string
	}
	sweep := func(from int) (all []met) {
		require.NoError(t, s.Sweep(t.Context(), from, components, func() func(*inspect.Span) (any, error) {
			return func(span *inspect.Span) (any, error) {
				var found []met
				for i, e := range span.Entities {
					m := met{e: e, next: span.Next}
					for n := range components {
						row, has, err := span.Row(n, i)
						if err != nil {
							return nil, err
						}
						if has != span.Has(n, i) {
							return nil, errors.New("Has and Row differ")
						}
						m.has, m.rows = append(m.has, has), append(m.rows, string(row))
					}
					found = append(found, m)
				}
				return found, nil
			}
		}, func(found any) error {
			all = append(all, found.([]met)...)
			return nil
		}))
		return all
	}
	all := sweep(0)
	for _, m := range all {
		// Start a second sweep at the end of every seventh span. It must visit the remaining
		// entities.
		if m.next%7 == 0 {
			i := slices.IndexFunc(all, func(behind met) bool { return int(behind.e.Index()) >= m.next })
			if i < 0 {
				i = len(all)
			}
			require.Equal(t, all[i:], append([]met{}, sweep(m.next)...))
			break
		}
	}
	require.Len(t, all, im.Alive)
	for i, m := range all {
		require.True(t, im.IsAlive(m.e) && (i == 0 || all[i-1].e.Index() < m.e.Index()), "%v", m.e)
		for n, c := range im.Components {
			row := c.Find(m.e)
			if c.Resource {
				row = c.Len() - 1
			}
			require.Equal(t, row >= 0, m.has[n], "%s of %v", c.Name, m.e)
			if row >= 0 {
				require.Equal(t, string(c.Row(row)), m.rows[n], "%s of %v", c.Name, m.e)
			}
		}
	}
}

func TestRead_PagesSameAsWholeState(t *testing.T) {
	t.Parallel()
	paged := 0
	for seed := range deep.Or[uint64](3, 6) {
		v := storetest.WildView(t, seed)
		for _, seq := range storetest.SeqsOf(v) {
			im := storetest.ImageAt(t, v, seq)
			whole, err := read(t, v, seq, func(s *inspect.State) error {
				require.Equal(t, seq, s.Seq)
				sameState(t, im, s)
				return nil
			})
			require.NoError(t, err)
			if !whole {
				paged++
			}
			file := filepath.Join(t.TempDir(), "w.save")
			require.NoError(t, repair.SaveImage(t.Context(), inspect.NewImage(im), file))
			whole, err = read(t, storetest.ViewOf(t, file), 0, func(s *inspect.State) error {
				sameState(t, im, s)
				return nil
			})
			require.NoError(t, err)
			require.False(t, whole)
		}
	}
	require.Greater(t, paged, 10, "snapshots of stores must be read by pages too")
}

// The columns have several pages, and their rows are not in the order of entities.
func TestState_ManyPages(t *testing.T) {
	for _, o := range []struct {
		// If every is 3, manyPages destroys about a third of the entities.
		every int
		persist.FileOptions
	}{{every: 3}, {every: 400}, {every: 3, FileOptions: persist.FileOptions{Compress: true}}} {
		w := manyPages(t, 3*format.PageRows+77, o.every)
		file := filepath.Join(t.TempDir(), "w.save")
		require.NoError(t, persist.Save(t.Context(), file, w, o.FileOptions))
		v := storetest.ViewOf(t, file)
		im := storetest.ImageAt(t, v, 0)
		whole, err := read(t, v, 0, func(s *inspect.State) error {
			sameSweep(t, im, s)
			for _, n := range []int{0, 1, 3000, format.PageRows, 2 * format.PageRows, im.Alive - 1, im.Alive, im.Alive + 1} {
				sameSkip(t, im, s, n)
			}
			for n, c := range im.Components {
				of, span := s.Outline().Components[n], len(c.Sparse())
				sameLookup(t, im, c, s, of)
				sparse, err := s.Sparse(of, 0, span)
				require.NoError(t, err)
				require.Equal(t, c.Sparse(), sparse)
			}
			return nil
		})
		require.NoError(t, err)
		require.False(t, whole)
	}
}

// manyPages creates n entities, and destroys n/every of them at random. Each destroyed entity's row
// is filled by the last row. So if few entities are destroyed, most rows are in the order of
// indices, with a few exceptions on each page.
func manyPages(t *testing.T, n, every int) *ecs.World {
	t.Helper()
	type place struct{ X, Y float64 }
	type label struct{ Text string }
	type tag struct{}
	type slot struct{ N uint16 }
	w := ecs.NewWorld(ecs.Options{})
	places, labels, tags := ecs.MustRegister[place](w), ecs.MustRegister[label](w), ecs.MustRegister[tag](w)
	slots := ecs.MustRegister(w, ecs.Component[slot]{Kind: ecs.Indexed})
	rng := rand.New(rand.NewPCG(5, 5))
	for i := range n {
		e := w.Create()
		switch places.Set(e, place{float64(i), 1}); i % 4 {
		case 0:
			labels.Set(e, label{string(make([]byte, i%50))})
		case 1:
			tags.Set(e, tag{})
		case 2:
			slots.Set(e, slot{uint16(i)})
		}
	}
	for range n / every {
		w.Destroy(w.Entities()[rng.IntN(w.Len())])
	}
	return w
}

func TestRead_DamagedSave(t *testing.T) {
	w := manyPages(t, 2*format.PageRows, 3)
	file := filepath.Join(t.TempDir(), "w.save")
	require.NoError(t, persist.Save(t.Context(), file, w))
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	im := storetest.ImageAt(t, storetest.ViewOf(t, file), 0)
	missed, told := 0, 0
	for at := 8 << 10; at < len(data)-(8<<10); at += 40 << 10 {
		require.NoError(t, os.WriteFile(file, []byte(storetest.Flip(string(data), at, 3)), 0o600))
		v, err := inspect.OpenReadOnly(t.Context(), file)
		if err != nil {
			// The manifest itself is damaged, so the save cannot be opened.
			continue
		}
		calls := 0
		err = v.Read(t.Context(), 0, func(s *inspect.State) error {
			calls++
			row, err := s.Row(s.Outline().Components[0], 5000)
			if err == nil {
				require.Equal(t, string(im.Components[0].Row(5000)), string(row))
			}
			return err
		})
		if err == nil {
			require.Equal(t, 1, calls)
			missed++
		} else {
			require.ErrorIs(t, err, persist.ErrCorrupt)
			require.Equal(t, 1, calls, "Read must not call f again if the whole state cannot be read")
			told++
		}
		require.NoError(t, v.Close())
	}
	require.Positive(t, missed)
	require.Positive(t, told)
}

func TestRead_NeedWholeLoadsState(t *testing.T) {
	file := filepath.Join(t.TempDir(), "w.save")
	require.NoError(t, persist.Save(t.Context(), file, manyPages(t, 9, 3)))
	v := storetest.ViewOf(t, file)
	var whole []bool
	require.NoError(t, v.Read(t.Context(), 0, func(s *inspect.State) error {
		whole = append(whole, s.Whole())
		return s.NeedWhole()
	}))
	require.Equal(t, []bool{false, true}, whole)

	calls, own := 0, errors.New("its own")
	err := v.Read(t.Context(), 0, func(*inspect.State) error { calls++; return own })
	require.ErrorIs(t, err, own)
	require.Equal(t, 1, calls, "Read must not load the state after another error")
}

func TestSweep_MemoryOfRowsInIndexOrder(t *testing.T) {
	type wide struct{ Values [64]uint64 }
	w := ecs.NewWorld(ecs.Options{})
	storage := ecs.MustRegister[wide](w)
	for range 20 * format.PageRows {
		storage.Set(w.Create(), wide{})
	}
	file := filepath.Join(t.TempDir(), "w.save")
	require.NoError(t, persist.Save(t.Context(), file, w))
	held := 0
	_, err := read(t, storetest.ViewOf(t, file), 0, func(s *inspect.State) error {
		err := s.Sweep(t.Context(), 0, s.Outline().Components, func() func(*inspect.Span) (any, error) {
			return func(span *inspect.Span) (any, error) {
				for i := range span.Entities {
					if _, _, err := span.Row(0, i); err != nil {
						return nil, err
					}
				}
				return span.Held(0), nil
			}
		}, func(n any) error {
			held = max(held, n.(int))
			return nil
		})
		require.Positive(t, held)
		return err
	})
	require.NoError(t, err)
	// Pages of values per span. The sweep holds the pages of only a few spans.
	a := format.PageRows / format.DataPageRows(512)
	require.LessOrEqual(t, held, min(3*parallel.Workers(), 19)*a)
}

// The sweep visits only the last entities. Some of their rows have moved to pages that have mostly
// rows of earlier entities. The sweep must keep only the needed rows of such pages in memory.
func TestSweep_FromMiddleKeepsNeededRowsOnly(t *testing.T) {
	type wide struct{ Values [64]uint64 }
	w := ecs.NewWorld(ecs.Options{})
	storage := ecs.MustRegister[wide](w)
	const spans = 30
	for i := range spans * format.PageRows {
		storage.Set(w.Create(), wide{[64]uint64{uint64(i)}})
	}
	random := rand.New(rand.NewPCG(1, 1))
	// Destroy moves the last row into the place of the destroyed entity's row.
	for range 2000 {
		w.Destroy(ecs.NewEntity(uint32(random.IntN((spans-1)*format.PageRows)), 1))
	}
	file := filepath.Join(t.TempDir(), "w.save")
	require.NoError(t, persist.Save(t.Context(), file, w))
	v := storetest.ViewOf(t, file)
	whole, err := read(t, v, 0, func(s *inspect.State) error {
		sameSweep(t, storetest.ImageAt(t, v, 0), s)
		held, met := 0, 0
		err := s.Sweep(t.Context(), (spans-1)*format.PageRows, s.Outline().Components, func() func(*inspect.Span) (any, error) {
			return func(span *inspect.Span) (any, error) {
				for i, e := range span.Entities {
					if row, _, err := span.Row(0, i); err != nil || binary.LittleEndian.Uint64(row) != uint64(e.Index()) {
						return nil, fmt.Errorf("%v has %v, %w", e, row, err)
					}
				}
				met += len(span.Entities)
				held = span.HeldWhole(0)
				return nil, nil
			}
		}, func(any) error { return nil })
		require.Equal(t, format.PageRows, met, "the sweep must visit all entities of one span")
		a := format.PageRows / format.DataPageRows(512)
		require.Less(t, held, spans*a/2)
		require.LessOrEqual(t, held, (4+2*parallel.Workers())*a)
		return err
	})
	require.NoError(t, err)
	require.False(t, whole)
}

func TestState_SingleRowsTakeLittleMemory(t *testing.T) {
	type wide struct{ Values [64]uint64 }
	w := ecs.NewWorld(ecs.Options{})
	storage := ecs.MustRegister[wide](w)
	for range 10 * format.PageRows {
		storage.Set(w.Create(), wide{})
	}
	file := filepath.Join(t.TempDir(), "w.save")
	require.NoError(t, persist.Save(t.Context(), file, w))
	v := storetest.ViewOf(t, file)
	storetest.BoundedBy(t, 6<<20, 20<<20, func() {
		whole, err := read(t, v, 0, func(s *inspect.State) error {
			c := s.Outline().Components[0]
			require.Equal(t, w.Len(), c.Len())
			require.Equal(t, storetest.Persistent(w), s.Digest())
			for row := 30_000; row < 30_020; row++ {
				if _, err := s.Value(c, row); err != nil {
					return err
				}
				if _, err := s.Holder(c, row); err != nil {
					return err
				}
			}
			if _, err := s.Span(c); err != nil {
				return err
			}
			if _, has, err := s.Lookup(c)(w.Entities()[30_000]); err != nil || !has {
				return fmt.Errorf("looked up: %v, %w", has, err)
			}
			return nil
		})
		require.NoError(t, err)
		require.False(t, whole)
	})
}

func TestState_DropsRowsOfDeadEntities(t *testing.T) {
	type heat struct{ N uint32 }
	w := ecs.NewWorld(ecs.Options{})
	heats := ecs.MustRegister(w, ecs.Component[heat]{NoRewind: true})
	for n := range 3 * format.PageRows {
		heats.Set(w.Create(), heat{uint32(n)})
	}
	file := filepath.Join(t.TempDir(), "w.save")
	require.NoError(t, persist.Save(t.Context(), file, w))
	im := storetest.ImageAt(t, storetest.ViewOf(t, file), 0)
	// Turn the last live entities into dead ones, but leave their rows.
	im.Alive -= 5000
	file += "2"
	require.NoError(t, repair.SaveImage(t.Context(), inspect.NewImage(im), file))
	v := storetest.ViewOf(t, file)
	im = storetest.ImageAt(t, v, 0)
	require.Equal(t, im.Alive, im.Components[0].Len())
	require.NoError(t, v.ReadAsStore(t.Context(), func(s *inspect.State) error {
		require.Equal(t, im.Alive, s.Outline().Components[0].Len())
		sameSweep(t, im, s)
		return nil
	}))
}

// If a page is damaged, Read must call the function again with the whole state.
func TestRead_DamagedSnapshot(t *testing.T) {
	w := storetest.New(0)
	dir := filepath.Join(t.TempDir(), "store")
	store := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1})
	w.Fill(3000)
	require.NoError(t, store.Commit())
	storetest.SnapshotOf(t, store)
	storetest.CloseStore(t, store)
	file := filepath.Join(dir, storetest.Snapshots(t, dir)[1])
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	again := 0
	for at := 70 << 10; at < len(data)-(8<<10); at += 64 << 10 {
		require.NoError(t, os.WriteFile(file, []byte(storetest.Flip(string(data), at, 3)), 0o600))
		v, err := inspect.OpenReadOnly(t.Context(), dir)
		require.NoError(t, err)
		var whole []bool
		require.NoError(t, v.Read(t.Context(), v.Head(), func(s *inspect.State) error {
			whole = append(whole, s.Whole())
			for _, c := range s.Outline().Components {
				for row := range c.Len() {
					if _, err := s.Row(c, row); err != nil {
						return err
					}
				}
			}
			return nil
		}))
		if len(whole) == 2 && !whole[0] && whole[1] {
			again++
		}
		require.NoError(t, v.Close())
	}
	require.Positive(t, again)
}
