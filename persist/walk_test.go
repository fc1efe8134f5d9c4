package persist_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// wandering returns a closed store with snapshots, branches, and NoRewind components.
func wandering(t *testing.T, rng *rand.Rand) string {
	dir := filepath.Join(t.TempDir(), "store")
	for range 2 {
		w := storetest.New(8)
		s := storetest.Open(t, dir, w, persist.Options{Sync: journal.SyncNever, SnapshotBytes: 6000})
		for range 12 {
			w.Do(storetest.RandomActions(rng, 8)...)
			w.ReleaseAll()
			require.NoError(t, s.Commit())
			if rng.IntN(4) == 0 {
				// Rewind fails if the history has no older tick.
				_ = w.History().Rewind(1 + rng.IntN(2))
			}
		}
		storetest.CloseStore(t, s)
	}
	return dir
}

// contents returns everything that an image shows.
func contents(im *image.Image) string {
	text := fmt.Sprint(im.Tick, im.ID, im.Registry, im.Alive, im.Free, im.Digest())
	for _, c := range im.Components {
		text += fmt.Sprintf("\n%s %v %x", c.Name, c.Entities, c.AppendRows(nil, 0, c.N))
		for row, e := range c.Entities {
			if e != ecs.Vacant && c.Find(e) != row {
				text += fmt.Sprintf(" %v is not found", e)
			}
		}
	}
	return text
}

func TestWalk_SameAsLoad(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		v := storetest.Verified(t, wandering(t, rand.New(rand.NewPCG(seed, 1))))
		for _, to := range v.Log().Entries {
			first := to.ID.Seq
			for e := range v.Log().Ancestors(to.ID.Seq) {
				first = e.Parent
			}
			want, err := v.Path(first, to.ID.Seq)
			require.NoError(t, err)
			begun := 0
			err = v.Walk(storetest.Background, first, to.ID.Seq, func(im *inspect.Image, c *inspect.Commit) error {
				if c == nil {
					require.Equal(t, first, im.Seq)
					begun++
				} else {
					require.Equal(t, want[0].ID, c.ID)
					require.Equal(t, want[0].Tick, c.Tick)
					require.Equal(t, c.Seq, im.Seq)
					want = want[1:]
				}
				loaded, err := v.Catalog().At(storetest.Background, im.Seq)
				require.NoError(t, err)
				require.Equal(t, contents(loaded), contents(im.Internal()), "seed %d, record %d", seed, im.Seq)
				return nil
			})
			require.NoError(t, err)
			require.Empty(t, want)
			require.Equal(t, 1, begun)
		}
	}
}

func TestCursor_SameAsLoad(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 2))
		v := storetest.Verified(t, wandering(t, rng))
		entries := v.Log().Entries
		c, err := v.Cursor(storetest.Background, v.Head())
		require.NoError(t, err)
		for range 60 {
			seq := entries[rng.IntN(len(entries))].ID.Seq
			require.NoError(t, c.Seek(storetest.Background, seq))
			require.Equal(t, seq, c.Seq())
			want, err := v.Catalog().At(storetest.Background, seq)
			require.NoError(t, err)
			require.Equal(t, contents(want), contents(c.Image().Internal()), "seed %d, record %d", seed, seq)
		}
		require.ErrorIs(t, c.Seek(storetest.Background, 1e6), persist.ErrNotFound)
		require.Nil(t, c.Image())
		require.NoError(t, c.Seek(storetest.Background, v.Head()))
	}
}

// A clone of a cursor moves independently: the original cursor stays at its position.
func TestCursor_CloneMovesIndependently(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 3))
		v := storetest.Verified(t, wandering(t, rng))
		entries := v.Log().Entries
		c, err := v.Cursor(storetest.Background, v.Head())
		require.NoError(t, err)
		for range 30 {
			here, there := entries[rng.IntN(len(entries))].ID.Seq, entries[rng.IntN(len(entries))].ID.Seq
			require.NoError(t, c.Seek(storetest.Background, here))
			before := contents(c.Image().Internal())
			d := c.Clone()
			require.Equal(t, here, d.Seq())
			require.Equal(t, before, contents(d.Image().Internal()))
			require.NoError(t, d.Seek(storetest.Background, there))
			want, err := v.Catalog().At(storetest.Background, there)
			require.NoError(t, err)
			require.Equal(t, contents(want), contents(d.Image().Internal()), "seed %d, from record %d to %d", seed, here, there)
			require.Equal(t, before, contents(c.Image().Internal()))
			if rng.IntN(2) == 0 {
				c = d
			}
		}
		require.ErrorIs(t, c.Seek(storetest.Background, 1e6), persist.ErrNotFound)
		require.Nil(t, c.Clone().Image(), "the clone of a cursor without a position has no image")
	}
}

func TestWalk_Errors(t *testing.T) {
	dir, _ := Branching(t)
	v := storetest.Verified(t, dir)
	enough, n := errors.New("enough"), 0
	err := v.Walk(storetest.Background, 2, 9, func(_ *inspect.Image, c *inspect.Commit) error {
		if n++; n == 4 {
			require.Equal(t, uint64(5), c.Seq)
			return enough
		}
		return nil
	})
	require.ErrorIs(t, err, enough)
	ctx, cancel := context.WithCancel(storetest.Background)
	err = v.Walk(ctx, 2, 9, func(*inspect.Image, *inspect.Commit) error { cancel(); return nil })
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, v.Walk(storetest.Background, 9, 2, nil), journal.ErrNotAncestor)
	require.ErrorIs(t, v.Walk(storetest.Background, 2, 99, nil), persist.ErrNotFound)
}

// A record of MarkLast has the tick of its parent, and says so.
func TestWalk_MarkedTickRepeats(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "game")
	w := ecs.NewWorld(ecs.Options{})
	score := ecs.Must(ecs.RegisterResource(w, 0, ecs.Component[int]{Name: "Score"}))
	s, err := persist.Open(storetest.Background, dir, w, persist.Options{})
	require.NoError(t, err)
	for tick := range 3 {
		*score.Mut()++
		require.NoError(t, s.Commit())
		if tick > 0 {
			require.NoError(t, s.MarkLast(fmt.Sprint("mark ", tick)))
		}
	}
	storetest.CloseStore(t, s)
	v := storetest.Verified(t, dir)
	var ticks []string
	require.NoError(t, v.Walk(storetest.Background, 0, v.Head(), func(im *inspect.Image, c *inspect.Commit) error {
		if c != nil {
			ticks = append(ticks, fmt.Sprint(im.Tick, c.Repeats, c.Marks))
		}
		return nil
	}))
	require.Equal(t, []string{"1 false []", "2 false []", "2 true [mark 1]", "3 false []", "3 true [mark 2]"}, ticks)
}

func TestWalk_AcrossConversion(t *testing.T) {
	dir := olderCopy(t)
	w, s := openNewer(t, dir)
	before := w.Raw().Seq()
	w.unit.Set(w.Entities()[0], newerUnit{Team: 77})
	require.NoError(t, s.Commit())
	head, digest := w.Raw().Seq(), storetest.Persistent(w.World)
	storetest.CloseStore(t, s)
	v := storetest.Verified(t, dir)
	var last ecs.Digest
	require.NoError(t, v.Walk(storetest.Background, before-1, head, func(im *inspect.Image, c *inspect.Commit) error {
		last = im.Digest()
		return nil
	}))
	require.Equal(t, digest, last)
	c, err := v.Cursor(storetest.Background, before)
	require.NoError(t, err)
	require.NoError(t, c.Seek(storetest.Background, head))
	require.Equal(t, digest, c.Image().Digest())
}

func TestImageWorld_IndependentOfImage(t *testing.T) {
	dir, digests := Branching(t)
	v := storetest.Verified(t, dir)
	im, err := v.Catalog().At(storetest.Background, 5)
	require.NoError(t, err)
	before := contents(im)
	w, err := im.World(ecs.Options{})
	require.NoError(t, err)
	require.Equal(t, digests[5], w.Digest())
	w.Destroy(im.Registry[0])
	require.Equal(t, before, contents(im))
}

func TestNoRewind_UnknownComponent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "w.save")
	known := storetest.New(0)
	known.Fill(20)
	require.NoError(t, persist.Save(storetest.Background, file, known.World))
	w := ecs.NewWorld(ecs.Options{History: 4})
	require.NoError(t, persist.Load(storetest.Background, file, w))
	require.Equal(t, known.Digest(), w.Digest())
	exempt := 0
	for _, s := range w.Raw().Storages() {
		if !s.Rewinds() {
			exempt++
		}
	}
	require.Positive(t, exempt)
	w.Clear()
	w.Commit()
	require.NoError(t, w.History().Rewind(1))
	require.Equal(t, known.Digest(), w.Digest())
	for _, s := range w.Raw().Storages() {
		if !s.Rewinds() && !s.IsResource() {
			require.Zero(t, s.Rows(), s.Name())
		}
	}
}
