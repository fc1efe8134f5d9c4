package persist

import (
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
)

// chain returns snapshots, one for each string: the numbers of the files that it
// refers to, then "!" if it is on an abandoned branch, then its name.
func chain(texts ...string) (list []storedSnapshot) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, text := range texts {
		s := storedSnapshot{number: uint32(i + 1), seq: uint64(10 * i), time: start.Add(time.Duration(i) * time.Minute), onHead: true}
		for _, c := range text {
			switch {
			case c >= '1' && c <= '9':
				s.files = append(s.files, fileRef{number: uint32(c - '0')})
			case c == '!':
				s.onHead = false
			default:
				s.name += string(c)
			}
		}
		list = append(list, s)
	}
	return list
}

func TestWhatRetentionRemoves(t *testing.T) {
	const young = 1000 // All snapshots are older than the history.
	for _, c := range []struct {
		about   string
		r       Retention
		list    []storedSnapshot
		oldest  uint64
		files   []uint32
		journal uint64
	}{
		{"nothing by default", Retention{}, chain("", "", ""), young, nil, 0},
		{"a second one that shares nothing stays", Retention{Last: 1}, chain("", "", "", ""), young, []uint32{2, 1}, 21},
		{"the second one may be far back", Retention{Last: 1}, chain("", "", "2", "23", "2"), young, []uint32{4, 3}, 1},
		{"nothing without a second one", Retention{Last: 1}, chain("", "1", "12"), young, nil, 0},
		{"files that are referred to stay", Retention{Last: 1}, chain("", "", "", "2", "", "5"), young, []uint32{3, 1}, 31},
		{"as many as asked for", Retention{Last: 3}, chain("", "", "", "", ""), young, []uint32{2, 1}, 21},
		{"what leads to the oldest tick held", Retention{Last: 1}, chain("", "", "", "", ""), 15, []uint32{3, 1}, 11},
		{"nothing if nothing leads to it", Retention{Last: 1}, chain("!", "", "", ""), 5, nil, 0},
		{"files that those refer to stay as well", Retention{Last: 1}, chain("", "", "", "2", "", "4"), young, []uint32{3, 1}, 41},
		{"names stay", Retention{Last: 1}, chain("", "boss", "", "", ""), young, []uint32{3, 1}, 31},
		{"abandoned branches go", Retention{Last: 2}, chain("", "", "!", "!", ""), young, []uint32{4, 3, 1}, 11},
		{"the first of each period", Retention{Last: 1, Every: 2 * time.Minute}, chain("", "", "", "", "", "", ""), young, []uint32{4, 2}, 51},
	} {
		t.Run(c.about, func(t *testing.T) {
			p := c.r.plan(c.list, c.oldest)
			require.Equal(t, c.files, p.files)
			require.Equal(t, c.journal, p.journal)
		})
	}
}

// Whatever is removed, what stays can be read and recovered from.
func TestARunWithRetentionKeepsWhatItPromises(t *testing.T) {
	var removed atomic.Int64
	for seed := range uint64(3) {
		dir := filepath.Join(t.TempDir(), "store")
		rng := rand.New(rand.NewPCG(seed, 5))
		now := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
		options := Options{
			Sync: journal.SyncNever(), SnapshotBytes: 2000, Retain: Retention{Last: 2, Every: time.Hour},
			Now: func() time.Time { now = now.Add(time.Minute); return now },
			OnSnapshot: func(r SnapshotResult) {
				assert.NoError(t, r.RemoveErr)
				removed.Add(int64(len(r.Removed)))
			},
		}
		w := newTestWorld(8)
		w.fill(20)
		s := open(t, dir, w, options)
		digests := map[journal.ID]ecs.Digest{}
		named := map[string]ecs.Digest{}
		for i := range 250 {
			w.do(randomActions(rng, 4)...)
			require.NoError(t, s.Commit())
			digests[s.ids[w.Mark()]] = persistent(w.World)
			_, _ = s.written(background)
			if rng.IntN(10) == 0 {
				_ = w.History().Rewind(rng.IntN(8))
			}
			if i%100 == 50 {
				w.releaseAll()
				if w.Dirty() {
					require.NoError(t, s.Commit())
				}
				name := names[1+i/100]
				_, err := s.SnapshotAs(background, name)
				require.NoError(t, err)
				named[name] = persistent(w.World)
			}
			if i%90 == 89 {
				w.releaseAll()
				require.NoError(t, s.Commit())
				digests[s.ids[w.Mark()]] = persistent(w.World)
				closeStore(t, s)
				verified(t, dir)
				w = newTestWorld(8)
				s = open(t, dir, w, options)
			}
		}
		w.releaseAll()
		closeStore(t, s)
		verified(t, dir)
		v, err := OpenReadOnly(background, dir)
		require.NoError(t, err)
		for _, info := range v.Snapshots() {
			require.NoError(t, info.Err)
			if want, ok := digests[info.ID]; ok {
				require.Equal(t, want, info.Digest, info.Name)
			}
		}
		for name, want := range named {
			seq, err := v.Resolve("snap:" + name)
			require.NoError(t, err)
			im, err := v.At(background, seq)
			require.NoError(t, err)
			require.Equal(t, want, im.Digest())
		}
		require.Less(t, len(v.Snapshots()), 40)
		require.NoError(t, v.Close())
	}
	require.Greater(t, removed.Load(), int64(20))
}

func TestNamesOfSnapshots(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	s := open(t, dir, w, Options{})
	for _, bad := range []string{"", "12", "-1", " x", "a\nb", "\xff", strings.Repeat("x", 256)} {
		_, err := s.SnapshotAs(background, bad)
		require.ErrorIs(t, err, ErrName, "%q", bad)
	}
	r, err := s.SnapshotAs(background, "before the boss")
	require.NoError(t, err)
	_, err = s.SnapshotAs(background, "before the boss")
	require.ErrorIs(t, err, ErrName)
	require.ErrorContains(t, err, "snapshot 2")
	require.NoError(t, s.Commit())
	snapshotOf(t, s)
	closeStore(t, s)
	s = open(t, dir, newTestWorld(0), Options{})
	_, err = s.SnapshotAs(background, "before the boss")
	require.ErrorIs(t, err, ErrName, "after opening again")
	snapshotOf(t, s)
	closeStore(t, s)
	v, err := OpenReadOnly(background, dir)
	require.NoError(t, err)
	defer v.Close()
	require.Equal(t, "before the boss", v.Snapshots()[1].Label)
	require.Equal(t, r.Name, v.Snapshots()[1].Name)
	require.True(t, v.Snapshots()[0].Time.IsZero(), "no tick was committed")
	require.WithinDuration(t, time.Now(), v.Snapshots()[2].Time, time.Hour)
	require.Equal(t, v.Snapshots()[2].Time, v.Snapshots()[3].Time, "that of the tick, not of the opening")
	_, err = v.Resolve("snap:nothing")
	require.ErrorIs(t, err, ErrNotFound)
}

func TestADamagedStoreRemovesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	s := open(t, dir, w, Options{SnapshotBytes: -1})
	for range 5 {
		w.fill(5)
		require.NoError(t, s.Commit())
		snapshotOf(t, s)
	}
	closeStore(t, s)
	tree := readTree(t, dir)
	damaged := []byte(tree["snapshots/00000006.snap"])
	damaged[len(damaged)/2] ^= 1
	tree["snapshots/00000006.snap"] = string(damaged)
	tree["snapshots/00000090.snap.tmp"] = "unfinished"
	writeTree(t, dir, tree)
	w = newTestWorld(0)
	s = open(t, dir, w, Options{SnapshotBytes: -1, Retain: Retention{Last: 1}})
	require.NotEmpty(t, s.Report().Skipped)
	for range 12 {
		w.fill(2)
		require.NoError(t, s.Commit())
		s.table, s.sums = nil, nil // In full: none needs those before.
		require.Empty(t, snapshotOf(t, s).Removed)
	}
	closeStore(t, s)
	require.Subset(t, slices.Sorted(maps.Keys(readTree(t, dir))), slices.Sorted(maps.Keys(tree)))
}

func TestOpeningRemovesSnapshotsThatWereNeverFinished(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, dir, newTestWorld(0), Options{})
	closeStore(t, s)
	before := slices.Sorted(maps.Keys(readTree(t, dir)))
	tree := readTree(t, dir)
	tree["snapshots/00000007.snap.tmp"] = "unfinished"
	writeTree(t, dir, tree)
	s = open(t, dir, newTestWorld(0), Options{})
	require.NotContains(t, readTree(t, dir), "snapshots/00000007.snap.tmp")
	closeStore(t, s)
	require.Subset(t, slices.Sorted(maps.Keys(readTree(t, dir))), before)
}

// A page that never changes must not hold all files for ever.
func TestAWorldThatHardlyChangesIsPrunedAsWell(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	w.fill(50)
	s := open(t, dir, w, Options{SnapshotBytes: -1, Sync: journal.SyncNever(), Retain: Retention{Last: 1}})
	removed := 0
	for i := range 60 {
		w.seed.Set(seed(i))
		require.NoError(t, s.Commit())
		removed += len(snapshotOf(t, s).Removed)
	}
	require.Greater(t, removed, 20)
	require.Less(t, len(s.list), 40)
	closeStore(t, s)
	verified(t, dir)
}

func TestStatesFromBeforeAConversionAreNoSecondBase(t *testing.T) {
	before, after := schemaOf(component[rules]().world()), schemaOf(component[clock]().world())
	require.Error(t, before.differs(after))
	list := chain("", "", "", "")
	list[0].schema, list[1].schema, list[2].schema, list[3].schema = before, before, after, after
	require.Empty(t, Retention{Last: 1}.plan(list[:3], 1000).files)
	require.Equal(t, []uint32{2, 1}, Retention{Last: 1}.plan(list, 1000).files)
}

func TestSnapshotsThatWereRewoundAreNotKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(5)
	s := open(t, dir, w, Options{SnapshotBytes: -1, Retain: Retention{Last: 1}})
	var removed []string
	for i := range 3 {
		w.fill(1)
		require.NoError(t, s.Commit())
		if i == 1 {
			require.NoError(t, w.History().Rewind(2))
			continue
		}
		s.table, s.sums = nil, nil // In full.
		removed = snapshotOf(t, s).Removed
	}
	require.Equal(t, []string{"snapshots/00000002.snap"}, removed)
	closeStore(t, s)
	verified(t, dir)
}
