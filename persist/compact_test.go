package persist_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
	"github.com/stet-ecs/stet/persist/repair"
)

// compacted runs Compact to a new directory and returns it.
func compacted(t testing.TB, path string, options repair.CompactOptions) (string, repair.CompactReport) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "compacted")
	r, err := repair.Compact(storetest.Background, storetest.ViewOf(t, path), out, options)
	require.NoError(t, err)
	return out, r
}

// digests returns the digests of the states on the path between two records, including both.
func digests(t testing.TB, v *inspect.View, from, to uint64) (list []ecs.Digest) {
	t.Helper()
	path, err := v.Path(from, to)
	require.NoError(t, err)
	im, err := v.At(storetest.Background, from)
	require.NoError(t, err)
	list = append(list, im.Digest())
	for _, e := range path {
		im, err := v.At(storetest.Background, e.ID.Seq)
		require.NoError(t, err)
		require.Equal(t, e.Tick, im.Tick)
		list = append(list, im.Digest())
	}
	return list
}

func TestCompact_NewestStateOnly(t *testing.T) {
	s := storetest.NewSample(t)
	before := storetest.ViewOf(t, s.Dir)
	out, r := compacted(t, s.Dir, repair.CompactOptions{})
	require.Equal(t, s.Tree, storetest.ReadTree(t, s.Dir))
	require.Equal(t, uint64(4), r.Tick)
	require.Equal(t, before.Head(), r.Seq)
	require.Equal(t, r.Tick, r.From)
	require.Zero(t, r.Ticks)
	require.Equal(t, 6, r.DroppedTicks)
	require.Equal(t, 2, r.DroppedRewound)
	require.Less(t, r.After, r.Before)
	require.Len(t, storetest.Snapshots(t, out), 1)

	v := storetest.Verified(t, out)
	require.Equal(t, before.Head(), v.Head())
	w := storetest.New(0)
	store := storetest.Open(t, out, w, persist.Options{})
	require.True(t, store.Report().Clean)
	require.Equal(t, s.Digest, storetest.Persistent(w.World))
	require.Equal(t, s.Values, w.Values())
	w.Fill(1)
	require.NoError(t, store.Commit())
	digest := storetest.Persistent(w.World)
	storetest.CloseStore(t, store)
	storetest.Verified(t, out)
	again := storetest.New(0)
	storetest.CloseStore(t, storetest.Open(t, out, again, persist.Options{}))
	require.Equal(t, digest, storetest.Persistent(again.World))
}

func TestCompact_KeepFromAnyTick(t *testing.T) {
	t.Parallel()
	s := storetest.NewSample(t)
	v := storetest.ViewOf(t, s.Dir)
	for _, keep := range []string{"@first", "1", "2", "3", "4"} {
		out, r := compacted(t, s.Dir, repair.CompactOptions{Keep: keep})
		from, err := v.Resolve(keep)
		require.NoError(t, err)
		kept := storetest.Verified(t, out)
		require.Equal(t, digests(t, v, from, v.Head()), digests(t, kept, from, kept.Head()), keep)
		require.Equal(t, kept.Head(), r.Seq)
		oldest, err := kept.Resolve("@first")
		require.NoError(t, err)
		im, err := kept.At(storetest.Background, oldest)
		require.NoError(t, err)
		require.Equal(t, r.From, im.Tick)
		for _, tick := range []string{keep, "@latest"} {
			seq, err := kept.Resolve(tick)
			require.NoError(t, err)
			if seq > 0 {
				w := storetest.New(0)
				storetest.CloseStore(t, storetest.Open(t, storetest.CopyDir(t, out), w, persist.Options{At: tick}))
			}
		}
	}
	// The record was abandoned by a rewind.
	_, err := repair.Compact(storetest.Background, v, filepath.Join(t.TempDir(), "x"), repair.CompactOptions{Keep: "record:4"})
	require.ErrorIs(t, err, persist.ErrNotFound)
	require.ErrorContains(t, err, "is not an ancestor")
}

func TestCompact_AtAnyTick(t *testing.T) {
	s := storetest.NewSample(t)
	v := storetest.ViewOf(t, s.Dir)
	for seq := range v.Head() + 1 {
		at := "@first"
		if seq > 0 {
			at = "record:" + string(rune('0'+seq))
		}
		out, r := compacted(t, s.Dir, repair.CompactOptions{At: at, Keep: "@first"})
		kept := storetest.Verified(t, out)
		require.Equal(t, r.Seq, kept.Head())
		require.Equal(t, digests(t, v, 0, seq), digests(t, kept, 0, kept.Head()))
	}
}

func TestCompact_NamedSnapshotsStay(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(9)
	s := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1})
	named := map[string]ecs.Digest{}
	tick := func(names ...string) {
		w.Fill(2)
		require.NoError(t, s.Commit())
		for _, name := range names {
			_, err := s.SaveSlot(storetest.Background, name, "")
			require.NoError(t, err)
			named[name] = storetest.Persistent(w.World)
		}
	}
	tick("early")
	tick()
	tick("abandoned")
	require.NoError(t, w.History().Rewind(1))
	tick("one", "same")
	tick("last")
	storetest.CloseStore(t, s)
	for _, c := range []struct {
		repair.CompactOptions
		names, dropped string
	}{
		{repair.CompactOptions{}, "early one same last", "abandoned"},
		{repair.CompactOptions{At: "snap:same"}, "early one same", "abandoned last"},
		{repair.CompactOptions{Keep: "@first"}, "early one same last", "abandoned"},
		{repair.CompactOptions{Keep: "snap:one"}, "early one same last", "abandoned"},
		{repair.CompactOptions{NoNames: true, Keep: "@first"}, "", "early abandoned one same last"},
	} {
		out, r := compacted(t, dir, c.CompactOptions)
		require.Equal(t, strings.Fields(c.names), append([]string{}, r.Names...))
		require.Equal(t, strings.Fields(c.dropped), r.DroppedNames)
		v := storetest.Verified(t, out)
		for _, name := range r.Names {
			seq, err := v.Resolve("snap:" + name)
			require.NoError(t, err)
			im, err := v.At(storetest.Background, seq)
			require.NoError(t, err)
			require.Equal(t, named[name], im.Digest(), name)
		}
		storetest.CloseStore(t, storetest.Open(t, out, storetest.New(0), persist.Options{}))
	}
}

func TestCompact_ConvertedStore(t *testing.T) {
	t.Parallel()
	dir := olderCopy(t)
	w, s := openNewer(t, dir)
	w.unit.Set(w.Entities()[0], newerUnit{Team: 77})
	require.NoError(t, s.Commit())
	digest := storetest.Persistent(w.World)
	storetest.CloseStore(t, s)
	v := storetest.Verified(t, dir)
	for _, options := range []repair.CompactOptions{{}, {Keep: "@first"}, {Keep: "@latest~1"}, {Keep: "@latest~2"}} {
		out, _ := compacted(t, dir, options)
		kept := storetest.Verified(t, out)
		from, err := v.Resolve(options.Keep)
		require.NoError(t, err)
		require.Equal(t, digests(t, v, from, v.Head()), digests(t, kept, from, kept.Head()))
		_, err = persist.Open(storetest.Background, out, newOlderWorld().World, persist.Options{})
		require.ErrorIs(t, err, persist.ErrNewer)
		again, s := openNewer(t, out)
		require.Nil(t, s.Report().Converted)
		require.Equal(t, digest, storetest.Persistent(again.World))
		storetest.CloseStore(t, s)
	}

	older := olderCopy(t) // A store that is not converted yet.
	out, _ := compacted(t, older, repair.CompactOptions{})
	again, s := openNewer(t, out)
	again.check(t)
	storetest.CloseStore(t, s)
}

func TestCompact_SaveFile(t *testing.T) {
	for _, save := range []string{keptSave, olderSave} {
		v := storetest.ViewOf(t, save)
		out := filepath.Join(t.TempDir(), "compacted")
		r, err := repair.Compact(storetest.Background, v, out, repair.CompactOptions{})
		require.NoError(t, err)
		require.Equal(t, v.Snapshots()[0].Tick, r.Tick)
		copied := storetest.ViewOf(t, out)
		report, err := copied.Verify(storetest.Background)
		require.NoError(t, err)
		require.Empty(t, report.Problems)
		require.Equal(t, v.Snapshots()[0].Digest, copied.Snapshots()[0].Digest)
		require.Equal(t, v.Catalog().Snapshots[0].Schema.Encode(), copied.Catalog().Snapshots[0].Schema.Encode())
	}
}

func TestCompact_TargetExists(t *testing.T) {
	s := storetest.NewSample(t)
	v := storetest.ViewOf(t, s.Dir)
	out := t.TempDir()
	_, err := repair.Compact(storetest.Background, v, out, repair.CompactOptions{})
	require.ErrorIs(t, err, fs.ErrExist)
	require.Empty(t, storetest.ReadTree(t, out))
	out = filepath.Join(out, "missing", "out")
	_, err = repair.Compact(storetest.Background, v, out, repair.CompactOptions{})
	require.ErrorIs(t, err, fs.ErrNotExist)
}
