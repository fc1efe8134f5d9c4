package persist

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
)

// wandering returns a closed store with snapshots, branches, and components that
// do not rewind.
func wandering(t *testing.T, rng *rand.Rand) string {
	dir := filepath.Join(t.TempDir(), "store")
	for range 2 {
		w := newTestWorld(8)
		s := open(t, dir, w, Options{Sync: journal.SyncNever(), SnapshotBytes: 6000})
		for range 12 {
			w.do(randomActions(rng, 8)...)
			w.releaseAll()
			require.NoError(t, s.Commit())
			if rng.IntN(4) == 0 {
				_ = w.History().Rewind(1 + rng.IntN(2)) // There may be no tick to go back to.
			}
		}
		closeStore(t, s)
	}
	return dir
}

// contents returns all that an image shows.
func contents(im *Image) string {
	text := fmt.Sprint(im.Tick, im.ID, im.Registry, im.Alive, im.Free, im.Digest())
	for _, c := range im.Components {
		text += fmt.Sprintf("\n%s %v %x", c.Name, c.Entities, c.appendRows(nil, 0, c.n))
		for row, e := range c.Entities {
			if e != ecs.Vacant && c.Find(e) != row {
				text += fmt.Sprintf(" %v is not found", e)
			}
		}
	}
	return text
}

func TestWalkingShowsEveryStateAsLoadingItDoes(t *testing.T) {
	for seed := range uint64(8) {
		v := verified(t, wandering(t, rand.New(rand.NewPCG(seed, 1))))
		for _, to := range v.Log().Entries {
			first := to.ID.Seq
			for e := range v.Log().Ancestors(to.ID.Seq) {
				first = e.Parent
			}
			want, err := v.Path(first, to.ID.Seq)
			require.NoError(t, err)
			err = v.Walk(background, first, to.ID.Seq, func(im *Image, c *Commit) error {
				require.Equal(t, want[0].ID, c.ID)
				require.Equal(t, want[0].Tick, c.Tick)
				loaded, err := v.At(background, c.Seq)
				require.NoError(t, err)
				require.Equal(t, contents(loaded), contents(im), "seed %d, record %d", seed, c.Seq)
				want = want[1:]
				return nil
			})
			require.NoError(t, err)
			require.Empty(t, want)
		}
	}
}

func TestACursorShowsWhatLoadingDoesWhereverItComesFrom(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 2))
		v := verified(t, wandering(t, rng))
		entries := v.Log().Entries
		c, err := v.Cursor(background, v.Head())
		require.NoError(t, err)
		for range 60 {
			seq := entries[rng.IntN(len(entries))].ID.Seq
			require.NoError(t, c.Seek(background, seq))
			require.Equal(t, seq, c.Seq())
			want, err := v.At(background, seq)
			require.NoError(t, err)
			require.Equal(t, contents(want), contents(c.Image()), "seed %d, record %d", seed, seq)
		}
		require.ErrorIs(t, c.Seek(background, 1e6), ErrNotFound)
		require.Nil(t, c.Image())
		require.NoError(t, c.Seek(background, v.Head()))
	}
}

func TestAWalkEndsWithTheErrorOfItsFunctionOrContext(t *testing.T) {
	dir, _ := branching(t)
	v := verified(t, dir)
	enough, n := errors.New("enough"), 0
	err := v.Walk(background, 2, 9, func(_ *Image, c *Commit) error {
		if n++; n == 3 {
			require.Equal(t, uint64(5), c.Seq)
			return enough
		}
		return nil
	})
	require.ErrorIs(t, err, enough)
	ctx, cancel := context.WithCancel(background)
	err = v.Walk(ctx, 2, 9, func(*Image, *Commit) error { cancel(); return nil })
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, v.Walk(background, 9, 2, nil), journal.ErrNotAncestor)
	require.ErrorIs(t, v.Walk(background, 2, 99, nil), ErrNotFound)
}

func TestAWalkGoesOnWhereAStoreWasConverted(t *testing.T) {
	dir := olderCopy(t)
	w, s := openNewer(t, dir)
	before := w.Mark()
	w.unit.Set(w.Entities()[0], newerUnit{Team: 77})
	require.NoError(t, s.Commit())
	head, digest := w.Mark(), persistent(w.World)
	closeStore(t, s)
	v := verified(t, dir)
	var last ecs.Digest
	require.NoError(t, v.Walk(background, before-1, head, func(im *Image, c *Commit) error {
		last = im.Digest()
		return nil
	}))
	require.Equal(t, digest, last)
	c, err := v.Cursor(background, before)
	require.NoError(t, err)
	require.NoError(t, c.Seek(background, head))
	require.Equal(t, digest, c.Image().Digest())
}

func TestAnImageMakesAWorldOfItsOwn(t *testing.T) {
	dir, digests := branching(t)
	v := verified(t, dir)
	im, err := v.At(background, 5)
	require.NoError(t, err)
	before := contents(im)
	w, err := im.World(ecs.Options{})
	require.NoError(t, err)
	require.Equal(t, digests[5], w.Digest())
	w.Destroy(im.Registry[0])
	require.Equal(t, before, contents(im))
}

func TestWhatDoesNotRewindStaysSoWhereNobodyKnowsIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "w.save")
	known := newTestWorld(0)
	known.fill(20)
	require.NoError(t, Save(background, file, known.World))
	w := ecs.NewWorld(ecs.Options{History: 4})
	require.NoError(t, Load(background, file, w))
	require.Equal(t, known.Digest(), w.Digest())
	exempt := 0
	for _, s := range w.Storages() {
		if !s.Rewinds() {
			exempt++
		}
	}
	require.Positive(t, exempt)
	w.Clear()
	w.Commit()
	require.NoError(t, w.History().Rewind(1))
	require.Equal(t, known.Digest(), w.Digest())
	for _, s := range w.Storages() {
		if !s.Rewinds() && !s.IsResource() {
			require.Zero(t, s.Rows(), s.Name())
		}
	}
}
