package inspect_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// forked returns a store whose branches have branches. Each branch has a snapshot.
func forked(t testing.TB) *inspect.View {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(9)
	s := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1})
	tick := func() {
		w.Fill(2)
		require.NoError(t, s.Commit())
	}
	snapshot := func() {
		_, err := s.Snapshot(storetest.Background)
		require.NoError(t, err)
	}
	for _, back := range []int{0, 1, 3, 2, 1} {
		require.NoError(t, w.History().Rewind(back))
		tick()
		tick()
		snapshot()
		tick()
	}
	storetest.CloseStore(t, s)
	return storetest.ViewOf(t, dir)
}

func TestVerify_EveryBranch(t *testing.T) {
	v := forked(t)
	r, err := v.Verify(storetest.Background)
	require.NoError(t, err)
	require.Empty(t, r.Problems)
	require.Equal(t, len(v.Log().Entries), r.Records)
	require.Equal(t, r.Records, r.Replayed+r.Rewound)
	require.Greater(t, r.Rewound, 5)
	require.Positive(t, r.Bytes)

	snapshots := v.Catalog().Snapshots
	for i := range snapshots {
		if snapshots[i].ID.Seq == 0 {
			// Replay begins at the oldest state, so it does not compare the digest of that state.
			continue
		}
		good := snapshots[i].Digest
		snapshots[i].Digest++
		problems, records, err := v.Replayed(storetest.Background, nil)
		require.NoError(t, err)
		require.Len(t, problems, 1)
		require.ErrorIs(t, problems[0], persist.ErrCorrupt)
		require.ErrorContains(t, problems[0], "replay gives digest "+good.String())
		require.ErrorContains(t, problems[0], snapshots[i].Name)
		require.Equal(t, len(v.Log().Entries), records, "records after the wrong digest must be replayed")
		snapshots[i].Digest = good
	}
}

func TestReplay_LeavesCopiesUnchanged(t *testing.T) {
	v := forked(t)
	im, err := v.Catalog().Base(storetest.Background, 0)
	require.NoError(t, err)
	before := im.Clone()
	digest := before.Digest()
	problems, _, err := v.Replayed(storetest.Background, im)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.NotEqual(t, digest, im.Digest())
	require.Equal(t, digest, before.Digest())
}

func TestVerifyChecksums_FlippedBits(t *testing.T) {
	s := storetest.NewSample(t)
	d := s.Damaged(t)
	for _, name := range []string{"snapshots/00000001.snap", "snapshots/00000003.snap", "journal/00000001.seg"} {
		data := s.Tree[name]
		d.With(name, storetest.Flip(data, len(data)/2, 3), func() {
			r, err := storetest.ViewOf(t, d.Dir).VerifyChecksums(storetest.Background)
			require.NoError(t, err)
			require.NotEmpty(t, r.Problems)
			require.ErrorContains(t, r.Problems[0], name)
		})
	}
	r, err := storetest.ViewOf(t, d.Dir).VerifyChecksums(storetest.Background)
	require.NoError(t, err)
	require.Empty(t, r.Problems)
	require.Equal(t, 3, r.Snapshots)
	require.Equal(t, 6, r.Records)
}

func TestImageUnsound_FindsEachFault(t *testing.T) {
	v := forked(t)
	good, err := v.Catalog().At(storetest.Background, v.Head())
	require.NoError(t, err)
	require.NoError(t, good.Unsound(storetest.Background))
	dead := ecs.NewEntity(0, 99)
	for says, spoil := range map[string]func(im *image.Image){
		"there twice":             func(im *image.Image) { im.Registry[1] = im.Registry[0] },
		"out of range":            func(im *image.Image) { im.Registry[1] = ecs.NewEntity(1<<20, 1) },
		"holds 0v0":               func(im *image.Image) { im.Registry[0] = 0 },
		"with free ones":          func(im *image.Image) { im.Free = im.Alive - 1 },
		"not alive":               func(im *image.Image) { im.Find("position").Entities[1] = dead },
		"two rows":                func(im *image.Image) { c := im.Find("position"); c.Entities[1] = c.Entities[0] },
		"another index":           func(im *image.Image) { c := im.Find("armor"); c.Entities[1] = im.Registry[2] },
		"not contain the default": func(im *image.Image) { c := im.Find("armor"); c.Packed[1*c.Width]++ },
	} {
		im := good.Clone()
		spoil(im)
		require.ErrorContains(t, im.Unsound(storetest.Background), says)
	}
}
