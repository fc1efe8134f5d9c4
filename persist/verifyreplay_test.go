package persist

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
)

// forked is a store with branches of branches, a snapshot on each.
func forked(t testing.TB) *View {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(9)
	s := open(t, dir, w, Options{SnapshotBytes: -1})
	tick := func() {
		w.fill(2)
		require.NoError(t, s.Commit())
	}
	snapshot := func() {
		_, err := s.Snapshot(background)
		require.NoError(t, err)
	}
	for _, back := range []int{0, 1, 3, 2, 1} {
		require.NoError(t, w.History().Rewind(back))
		tick()
		tick()
		snapshot()
		tick()
	}
	closeStore(t, s)
	return openedReadOnly(t, dir)
}

func TestReplayIsComparedOnEveryBranch(t *testing.T) {
	v := forked(t)
	r, err := v.Verify(background)
	require.NoError(t, err)
	require.Empty(t, r.Problems)
	require.Equal(t, len(v.Log().Entries), r.Records)
	require.Equal(t, r.Records, r.Replayed+r.Rewound)
	require.Greater(t, r.Rewound, 5)
	require.Positive(t, r.Bytes)

	for i := range v.Snapshots() {
		if v.Snapshots()[i].ID.Seq == 0 {
			continue // No replay leads there.
		}
		good := v.Snapshots()[i].Digest
		v.Snapshots()[i].Digest++
		problems, records, err := v.Replayed(background, nil)
		require.NoError(t, err)
		require.Len(t, problems, 1)
		require.ErrorIs(t, problems[0], ErrCorrupt)
		require.ErrorContains(t, problems[0], "replay gives digest "+good.String())
		require.ErrorContains(t, problems[0], v.Snapshots()[i].Name)
		require.Equal(t, len(v.Log().Entries), records, "what is behind it was not replayed")
		v.Snapshots()[i].Digest = good
	}
}

func TestBranchesAreReplayedOnCopies(t *testing.T) {
	v := forked(t)
	im, err := v.Base(background)
	require.NoError(t, err)
	before := im.clone()
	digest := before.Digest()
	problems, _, err := v.Replayed(background, im)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.NotEqual(t, digest, im.Digest())
	require.Equal(t, digest, before.Digest())
}

func TestChecksumsAloneTellOfFlippedBits(t *testing.T) {
	s := newSample(t)
	d := s.damaged(t)
	for _, name := range []string{"snapshots/00000001.snap", "snapshots/00000003.snap", "journal/00000001.seg"} {
		data := s.tree[name]
		d.with(name, flip(data, len(data)/2, 3), func() {
			r, err := openedReadOnly(t, d.dir).VerifyChecksums(background)
			require.NoError(t, err)
			require.NotEmpty(t, r.Problems)
			require.ErrorContains(t, r.Problems[0], name)
		})
	}
	r, err := openedReadOnly(t, d.dir).VerifyChecksums(background)
	require.NoError(t, err)
	require.Empty(t, r.Problems)
	require.Equal(t, 3, r.Snapshots)
	require.Equal(t, 6, r.Records)
}

func TestAStateNoWorldCanBeInIsUnsound(t *testing.T) {
	v := forked(t)
	good, err := v.At(background, v.Head())
	require.NoError(t, err)
	require.NoError(t, good.unsound(background))
	dead := ecs.NewEntity(0, 99)
	for says, spoil := range map[string]func(im *Image){
		"there twice":          func(im *Image) { im.Registry[1] = im.Registry[0] },
		"out of range":         func(im *Image) { im.Registry[1] = ecs.NewEntity(1<<20, 1) },
		"holds 0v0":            func(im *Image) { im.Registry[0] = 0 },
		"with free ones":       func(im *Image) { im.Free = im.Alive - 1 },
		"not alive":            func(im *Image) { im.Find("position").Entities[1] = dead },
		"two rows":             func(im *Image) { c := im.Find("position"); c.Entities[1] = c.Entities[0] },
		"another index":        func(im *Image) { c := im.Find("armor"); c.Entities[1] = im.Registry[2] },
		"not hold the default": func(im *Image) { c := im.Find("armor"); c.packed[1*c.width]++ },
	} {
		im := good.clone()
		spoil(im)
		require.ErrorContains(t, im.unsound(background), says)
	}
}
