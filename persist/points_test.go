package persist_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

func TestPoints_Syntax(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(10)
	s := storetest.Open(t, dir, w, persist.Options{Now: func() time.Time { now = now.Add(time.Second); return now }})
	for range 6 {
		w.Fill(1)
		require.NoError(t, s.Commit())
	}
	storetest.SnapshotOf(t, s)
	require.NoError(t, w.History().Rewind(3))
	for range 2 { // Records 7 and 8 are ticks 4 and 5.
		w.Fill(1)
		require.NoError(t, s.Commit())
	}
	storetest.CloseStore(t, s)
	v := storetest.Verified(t, dir)
	for point, want := range map[string]uint64{
		"": 8, "@latest": 8, "@latest~0": 8, "@latest~1": 7, "@latest~2": 3, "@latest~5": 0, "@first": 0,
		"5": 8, "4": 7, "3": 3, "0": 0, "record:5": 5, "record:8": 8, "record:0": 0, "snap:1": 0, "snap:2": 6,
		"@-0s": 8, "@-1s": 7, "@-2s": 3, "@-5s": 3, "@-6s": 2,
		"@1970-01-12T13:46:48Z": 8, "@1970-01-12T14:46:48+01:00": 8, "@1970-01-12T13:46:47.999Z": 7, "@1970-01-12T13:46:46Z": 3, "@1970-01-12T13:46:43": 3,
		"@1970-01-12T13:46:41Z": 1, "@1970-01-12T13:46:47Z~1": 3, "@2262-01-01": 8, "@13:46:48": 8, "@13:46:47": 7, "@13:46:41": 1,
	} {
		got, err := v.Resolve(point)
		require.NoError(t, err, "%q", point)
		require.Equal(t, want, got, "%q", point)
		_, err = v.At(storetest.Background, got)
		require.NoError(t, err, "%q", point)
	}
	for _, point := range []string{"6", "record:9", "snap:3", "@latest~6", "@-1h", "@13:47", "@13:47:00", "@1970-01-12", "@1970-01-12T13:46:40.5Z", "18446744073709551615"} {
		_, err := v.Resolve(point)
		require.ErrorIs(t, err, persist.ErrNotFound, "%q", point)
	}
	for _, point := range []string{"yesterday", "-1", "record:", "record:x", "snap:-1", "@latest~", "@latest~-1", "@-", "@-5", "@--5s", "1.5", "@", "@25:00", "@2026-13-01", "@2026-11-24T02:47:10+", "@now"} {
		_, err := v.Resolve(point)
		require.ErrorIs(t, err, persist.ErrPoint, "%q", point)
	}
	_, err := v.Resolve("@13:47")
	require.ErrorContains(t, err, "1970-01-11T13:47:00Z is before the first tick, which was committed at 1970-01-12T13:46:41Z")
	_, err = v.At(storetest.Background, 99)
	require.ErrorIs(t, err, persist.ErrNotFound)
	commits, err := v.Commits(3, 7)
	require.NoError(t, err)
	var onHead []bool
	for _, c := range commits {
		onHead = append(onHead, c.OnHead)
	}
	require.Equal(t, []bool{true, false, false, false, true}, onHead)
	require.Equal(t, time.Unix(1_000_003, 0).UTC(), commits[0].Time)
}

func TestOperations_RecordedInCallOrder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{})
	a, b := w.Create(), w.Create()
	w.Position.Set(b, storetest.Position{})
	w.Sprite.Set(a, storetest.Sprite{}) // Not persistent.
	w.Position.Set(b, storetest.Position{X: 1, Y: 1})
	w.Frozen.Set(a, storetest.Frozen{})
	w.Frozen.Clear()
	// Try undoes the destruction.
	_ = w.Try(func() error { w.Destroy(a); return persist.ErrClosed })
	w.Position.Remove(b)
	w.Destroy(b)
	w.Clear()
	c := w.Create()
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)
	commits, err := storetest.Verified(t, dir).Commits(0, 10)
	require.NoError(t, err)
	ops, err := commits[0].Ops()
	require.NoError(t, err)
	type op struct {
		kind      raw.OpKind
		component string
		entity    ecs.Entity
	}
	var got []op
	for _, o := range ops {
		got = append(got, op{o.Kind, commits[0].Component(o.Component), o.Entity})
	}
	require.Equal(t, []op{
		{raw.OpCreate, "", a},
		{raw.OpCreate, "", b},
		{raw.OpAdd, "position", b},
		{raw.OpAdd, "frozen", a},
		{raw.OpClear, "frozen", 0},
		{raw.OpRemove, "position", b},
		{raw.OpDestroy, "", b},
		{raw.OpClear, "", 0},
		{raw.OpCreate, "", c},
	}, got)
}

func TestHistory_CommitAfterLongRewind(t *testing.T) {
	t.Parallel()
	for _, history := range []int{2, 1500} {
		dir := filepath.Join(t.TempDir(), "store")
		w := storetest.New(history)
		s := storetest.Open(t, dir, w, persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1})
		for range 2600 {
			*w.Seed.Mut()++
			require.NoError(t, s.Commit())
		}
		require.Less(t, len(s.IDs()), history+1100)
		require.NoError(t, w.History().Rewind(history))
		w.Fill(1)
		require.NoError(t, s.Commit())
		storetest.CloseStore(t, s)
		storetest.Verified(t, dir)
		again := storetest.New(0)
		s = storetest.Open(t, dir, again, persist.Options{})
		require.Equal(t, w.Digest(), again.Digest())
		storetest.CloseStore(t, s)
	}
}

// A segment of the journal ends at 64 MiB. The next segment begins with the present schema.
func TestJournal_SegmentEndsAt64MiB(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	w := ecs.NewWorld(ecs.Options{})
	positions, _ := known(w)
	blobs := ecs.MustRegister(w, ecs.Component[[1 << 20]byte]{Name: "blob"})
	s, err := persist.Open(storetest.Background, dir, w, persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1})
	require.NoError(t, err)
	e := w.Create()
	var blob [1 << 20]byte
	for i := range 70 {
		for k := range blob {
			blob[k]++ // All bytes change, so the tick writes the whole value.
		}
		if i == 3 {
			late := ecs.MustRegister(w, ecs.Component[storetest.Bag]{Clone: storetest.CloneBag})
			late.Set(e, storetest.Bag{Name: "late"})
		}
		positions.Set(e, storetest.Position{X: float32(i), Y: 0})
		blobs.Set(e, blob)
		require.NoError(t, s.Commit())
	}
	storetest.CloseStore(t, s)
	require.Len(t, storetest.Segments(t, dir), 2)
	v := storetest.Verified(t, dir)
	im, err := v.At(storetest.Background, v.Head())
	require.NoError(t, err)
	require.Equal(t, w.Digest(), im.Digest())
}
