package persist

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
)

// compacted is Compact to a new directory, which it returns.
func compacted(t testing.TB, path string, options CompactOptions) (string, CompactReport) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "compacted")
	r, err := openedReadOnly(t, path).Compact(background, out, options)
	require.NoError(t, err)
	return out, r
}

// digests returns the digest of every state that v can show, by its tick and where it
// is, seen from the newest.
func digests(t testing.TB, v *View, from, to uint64) (list []ecs.Digest) {
	t.Helper()
	path, err := v.Path(from, to)
	require.NoError(t, err)
	im, err := v.At(background, from)
	require.NoError(t, err)
	list = append(list, im.Digest())
	for _, e := range path {
		im, err := v.At(background, e.ID.Seq)
		require.NoError(t, err)
		require.Equal(t, e.Tick, im.Tick)
		list = append(list, im.Digest())
	}
	return list
}

func TestACompactedStoreHoldsTheNewestStateAlone(t *testing.T) {
	s := newSample(t)
	before := openedReadOnly(t, s.dir)
	out, r := compacted(t, s.dir, CompactOptions{})
	require.Equal(t, s.tree, readTree(t, s.dir))
	require.Equal(t, uint64(4), r.Tick)
	require.Equal(t, before.Head(), r.Seq)
	require.Equal(t, r.Tick, r.From)
	require.Zero(t, r.Ticks)
	require.Equal(t, 6, r.DroppedTicks)
	require.Equal(t, 2, r.DroppedRewound)
	require.Less(t, r.After, r.Before)
	require.Len(t, snapshots(t, out), 1)

	v := verified(t, out)
	require.Equal(t, before.Head(), v.Head())
	w := newTestWorld(0)
	store := open(t, out, w, Options{})
	require.True(t, store.Report().Clean)
	require.Equal(t, s.digest, persistent(w.World))
	require.Equal(t, s.values, w.values())
	w.fill(1)
	require.NoError(t, store.Commit())
	digest := persistent(w.World)
	closeStore(t, store)
	verified(t, out)
	again := newTestWorld(0)
	closeStore(t, open(t, out, again, Options{}))
	require.Equal(t, digest, persistent(again.World))
}

func TestACompactedStoreCanKeepTheWayFromAnyTick(t *testing.T) {
	s := newSample(t)
	v := openedReadOnly(t, s.dir)
	for _, keep := range []string{"@first", "1", "2", "3", "4"} {
		out, r := compacted(t, s.dir, CompactOptions{Keep: keep})
		from, err := v.Resolve(keep)
		require.NoError(t, err)
		kept := verified(t, out)
		require.Equal(t, digests(t, v, from, v.Head()), digests(t, kept, from, kept.Head()), keep)
		require.Equal(t, kept.Head(), r.Seq)
		oldest, err := kept.Resolve("@first")
		require.NoError(t, err)
		im, err := kept.At(background, oldest)
		require.NoError(t, err)
		require.Equal(t, r.From, im.Tick)
		for _, tick := range []string{keep, "@latest"} {
			seq, err := kept.Resolve(tick)
			require.NoError(t, err)
			if seq > 0 {
				w := newTestWorld(0)
				closeStore(t, open(t, copyDir(t, out), w, Options{At: tick}))
			}
		}
	}
	_, err := v.Compact(background, filepath.Join(t.TempDir(), "x"), CompactOptions{Keep: "seq:4"}) // It was rewound.
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorContains(t, err, "not on the way")
}

func TestAnyTickCanBeWhatACompactedStoreLeadsTo(t *testing.T) {
	s := newSample(t)
	v := openedReadOnly(t, s.dir)
	for seq := range v.Head() + 1 {
		at := "@first"
		if seq > 0 {
			at = "seq:" + string(rune('0'+seq))
		}
		out, r := compacted(t, s.dir, CompactOptions{At: at, Keep: "@first"})
		kept := verified(t, out)
		require.Equal(t, r.Seq, kept.Head())
		require.Equal(t, digests(t, v, 0, seq), digests(t, kept, 0, kept.Head()))
	}
}

func TestSnapshotsWithNamesOutliveACompaction(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(9)
	s := open(t, dir, w, Options{SnapshotBytes: -1})
	named := map[string]ecs.Digest{}
	tick := func(names ...string) {
		w.fill(2)
		require.NoError(t, s.Commit())
		for _, name := range names {
			_, err := s.SnapshotAs(background, name)
			require.NoError(t, err)
			named[name] = persistent(w.World)
		}
	}
	tick("early")
	tick()
	tick("abandoned")
	require.NoError(t, w.History().Rewind(1))
	tick("one", "same")
	tick("last")
	closeStore(t, s)
	for _, c := range []struct {
		CompactOptions
		names, dropped string
	}{
		{CompactOptions{}, "early one same last", "abandoned"},
		{CompactOptions{At: "snap:same"}, "early one same", "abandoned last"},
		{CompactOptions{Keep: "@first"}, "early one same last", "abandoned"},
		{CompactOptions{Keep: "snap:one"}, "early one same last", "abandoned"},
		{CompactOptions{NoNames: true, Keep: "@first"}, "", "early abandoned one same last"},
	} {
		out, r := compacted(t, dir, c.CompactOptions)
		require.Equal(t, strings.Fields(c.names), append([]string{}, r.Names...))
		require.Equal(t, strings.Fields(c.dropped), r.DroppedNames)
		v := verified(t, out)
		for _, name := range r.Names {
			seq, err := v.Resolve("snap:" + name)
			require.NoError(t, err)
			im, err := v.At(background, seq)
			require.NoError(t, err)
			require.Equal(t, named[name], im.Digest(), name)
		}
		closeStore(t, open(t, out, newTestWorld(0), Options{}))
	}
}

func TestAConvertedStoreIsCompactedWithWhatItWas(t *testing.T) {
	dir := olderCopy(t)
	w, s := openNewer(t, dir)
	w.unit.Set(w.Entities()[0], newerUnit{Team: 77})
	require.NoError(t, s.Commit())
	digest := persistent(w.World)
	closeStore(t, s)
	v := verified(t, dir)
	for _, options := range []CompactOptions{{}, {Keep: "@first"}, {Keep: "@latest~1"}, {Keep: "@latest~2"}} {
		out, _ := compacted(t, dir, options)
		kept := verified(t, out)
		from, err := v.Resolve(options.Keep)
		require.NoError(t, err)
		require.Equal(t, digests(t, v, from, v.Head()), digests(t, kept, from, kept.Head()))
		_, err = Open(background, out, newOlderWorld().World, Options{})
		require.ErrorIs(t, err, ErrNewer)
		again, s := openNewer(t, out)
		require.Nil(t, s.Report().Converted)
		require.Equal(t, digest, persistent(again.World))
		closeStore(t, s)
	}

	older := olderCopy(t) // Not converted yet.
	out, _ := compacted(t, older, CompactOptions{})
	again, s := openNewer(t, out)
	again.check(t)
	closeStore(t, s)
}

func TestACompactedSaveIsTheSameSave(t *testing.T) {
	for _, save := range []string{keptSave, olderSave} {
		v := openedReadOnly(t, save)
		out := filepath.Join(t.TempDir(), "compacted")
		r, err := v.Compact(background, out, CompactOptions{})
		require.NoError(t, err)
		require.Equal(t, v.Snapshots()[0].Tick, r.Tick)
		copied := openedReadOnly(t, out)
		report, err := copied.Verify(background)
		require.NoError(t, err)
		require.Empty(t, report.Problems)
		require.Equal(t, v.Snapshots()[0].Digest, copied.Snapshots()[0].Digest)
		require.Equal(t, v.Snapshots()[0].schema.encode(), copied.Snapshots()[0].schema.encode())
	}
}

func TestCompactTakesNoNameThatIsThere(t *testing.T) {
	s := newSample(t)
	v := openedReadOnly(t, s.dir)
	out := t.TempDir()
	_, err := v.Compact(background, out, CompactOptions{})
	require.ErrorIs(t, err, fs.ErrExist)
	require.Empty(t, readTree(t, out))
	out = filepath.Join(out, "missing", "out")
	_, err = v.Compact(background, out, CompactOptions{})
	require.ErrorIs(t, err, fs.ErrNotExist)
}
