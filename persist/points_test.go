package persist

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
)

func TestPointsInTime(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(10)
	s := open(t, dir, w, Options{Now: func() time.Time { now = now.Add(time.Second); return now }})
	for range 6 {
		w.fill(1)
		require.NoError(t, s.Commit())
	}
	snapshotOf(t, s)
	require.NoError(t, w.History().Rewind(3))
	for range 2 { // Records 7 and 8 are ticks 4 and 5.
		w.fill(1)
		require.NoError(t, s.Commit())
	}
	closeStore(t, s)
	v := verified(t, dir)
	for point, want := range map[string]uint64{
		"": 8, "@latest": 8, "@latest~0": 8, "@latest~1": 7, "@latest~2": 3, "@latest~5": 0, "@first": 0,
		"5": 8, "4": 7, "3": 3, "0": 0, "seq:5": 5, "seq:8": 8, "seq:0": 0, "snap:1": 0, "snap:2": 6,
		"@-0s": 8, "@-1s": 7, "@-2s": 3, "@-5s": 3, "@-6s": 2,
	} {
		got, err := v.Resolve(point)
		require.NoError(t, err, "%q", point)
		require.Equal(t, want, got, "%q", point)
		_, err = v.At(background, got)
		require.NoError(t, err, "%q", point)
	}
	for _, point := range []string{"6", "seq:9", "snap:3", "@latest~6", "@-1h", "18446744073709551615"} {
		_, err := v.Resolve(point)
		require.ErrorIs(t, err, ErrNotFound, "%q", point)
	}
	for _, point := range []string{"yesterday", "-1", "seq:", "seq:x", "snap:-1", "@latest~", "@latest~-1", "@-", "@-5", "@--5s", "1.5", "@"} {
		_, err := v.Resolve(point)
		require.ErrorIs(t, err, ErrPoint, "%q", point)
	}
	_, err := v.At(background, 99)
	require.ErrorIs(t, err, ErrNotFound)
	commits, err := v.Commits(3, 7)
	require.NoError(t, err)
	var onHead []bool
	for _, c := range commits {
		onHead = append(onHead, c.OnHead)
	}
	require.Equal(t, []bool{true, false, false, false, true}, onHead)
	require.Equal(t, time.Unix(1_000_003, 0).UTC(), commits[0].Time)
}

func TestOperationsAreThoseThatWereCalled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	s := open(t, dir, w, Options{})
	a, b := w.Create(), w.Create()
	w.position.Set(b, position{})
	w.sprite.Set(a, sprite{}) // Not persistent.
	w.position.Set(b, position{1, 1})
	w.frozen.Set(a, frozen{})
	w.frozen.Clear()
	_ = w.Try(func() error { w.Destroy(a); return ErrClosed }) // Undone.
	w.position.Remove(b)
	w.Destroy(b)
	w.Clear()
	c := w.Create()
	require.NoError(t, s.Commit())
	closeStore(t, s)
	commits, err := verified(t, dir).Commits(0, 10)
	require.NoError(t, err)
	ops, err := commits[0].Ops()
	require.NoError(t, err)
	type op struct {
		kind      ecs.OpKind
		component string
		entity    ecs.Entity
	}
	var got []op
	for _, o := range ops {
		got = append(got, op{o.Kind, commits[0].Component(o.Component), o.Entity})
	}
	require.Equal(t, []op{
		{ecs.OpCreate, "", a},
		{ecs.OpCreate, "", b},
		{ecs.OpAdd, "position", b},
		{ecs.OpAdd, "frozen", a},
		{ecs.OpClear, "frozen", 0},
		{ecs.OpRemove, "position", b},
		{ecs.OpDestroy, "", b},
		{ecs.OpClear, "", 0},
		{ecs.OpCreate, "", c},
	}, got)
}

func TestIdentitiesAreKeptAsFarBackAsTheHistoryReaches(t *testing.T) {
	for _, history := range []int{2, 1500} {
		dir := filepath.Join(t.TempDir(), "store")
		w := newTestWorld(history)
		s := open(t, dir, w, Options{Sync: journal.SyncNever(), SnapshotBytes: -1})
		for range 2600 {
			*w.seed.Mut()++
			require.NoError(t, s.Commit())
		}
		require.Less(t, len(s.IDs()), history+1100)
		require.NoError(t, w.History().Rewind(history))
		w.fill(1)
		require.NoError(t, s.Commit())
		closeStore(t, s)
		verified(t, dir)
		again := newTestWorld(0)
		s = open(t, dir, again, Options{})
		require.Equal(t, w.Digest(), again.Digest())
		closeStore(t, s)
	}
}

// A segment of the journal ends at 64 MiB; the next one begins with the schema
// as it is then.
func TestTicksGoOnInANewSegment(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := ecs.NewWorld(ecs.Options{})
	positions, _ := known(w)
	blobs := ecs.MustRegister[[1 << 20]byte](w, ecs.Named("blob"))
	s, err := Open(background, dir, w, Options{Sync: journal.SyncNever(), SnapshotBytes: -1})
	require.NoError(t, err)
	e := w.Create()
	for i := range 70 {
		if i == 3 {
			late := ecs.MustRegister[bag](w, ecs.CloneWith(cloneBag))
			late.Set(e, bag{Name: "late"})
		}
		positions.Set(e, position{float32(i), 0})
		blobs.Set(e, [1 << 20]byte{byte(i)})
		require.NoError(t, s.Commit())
	}
	closeStore(t, s)
	require.Len(t, segments(t, dir), 2)
	v := verified(t, dir)
	im, err := v.At(background, v.Head())
	require.NoError(t, err)
	require.Equal(t, w.Digest(), im.Digest())
}
