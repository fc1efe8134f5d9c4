package persist_test

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// notesOf returns the marks and inputs of each record in dir.
func notesOf(t testing.TB, dir string) (notes []simNotes) {
	t.Helper()
	commits, err := storetest.Verified(t, dir).Commits(1, 1000)
	require.NoError(t, err)
	for _, c := range commits {
		notes = append(notes, simNotes{0, c.Marks, c.Inputs})
	}
	return notes
}

func TestMarksAndInputs_Recovered(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{})
	data := []byte{1, 2, 3}
	require.NoError(t, s.Input("fire", data))
	data[0] = 9 // Input has copied data, so this has no effect.
	require.NoError(t, s.Mark("boss"))
	require.NoError(t, s.Input("fire", nil))
	require.NoError(t, s.Mark("level 2"))
	require.NoError(t, s.Mark("boss")) // A repeated mark counts once.
	require.NoError(t, s.Commit())
	w.Fill(1)
	require.NoError(t, s.Commit())
	require.NoError(t, s.Input("left", []byte("x")))
	w.Fill(1)
	w.Commit() // World.Commit also ends the tick.
	require.NoError(t, s.Mark("dropped: nothing is committed behind it"))
	storetest.CloseStore(t, s)
	require.Equal(t, []simNotes{
		{0, []string{"boss", "level 2"}, []inspect.Input{{Name: "fire", Data: []byte{1, 2, 3}}, {Name: "fire", Data: []byte{}}}},
		{},
		{0, nil, []inspect.Input{{Name: "left", Data: []byte("x")}}},
	}, notesOf(t, dir))
	again := storetest.New(0)
	s = storetest.Open(t, dir, again, persist.Options{})
	require.Equal(t, storetest.Persistent(w.World), storetest.Persistent(again.World))
	require.ErrorIs(t, s.Mark("3\x1b[0m"), persist.ErrName)
	storetest.CloseStore(t, s)
	require.ErrorIs(t, s.Mark("late"), persist.ErrClosed)
	require.ErrorIs(t, s.Input("late", nil), persist.ErrClosed)
}

func TestMarksAndInputs_RecordFormat(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{})
	for _, note := range []func() error{
		func() error { return nil },
		func() error { return s.Mark("here") },
		func() error { return s.Input("x", nil) },
		func() error { return nil },
	} {
		require.NoError(t, note())
		w.Fill(1)
		require.NoError(t, s.Commit())
	}
	storetest.CloseStore(t, s)
	var formats []byte
	var flags []uint32
	log := storetest.Verified(t, dir).Log()
	for _, e := range log.Entries {
		payload, err := log.Payload(e, nil)
		require.NoError(t, err)
		formats, flags = append(formats, payload[1]), append(flags, e.Flags)
	}
	require.Equal(t, []byte{1, 2, 2, 1}, formats)
	require.Equal(t, []uint32{0, format.FlagMarks, 0, 0}, flags)
}

func TestMarksAndInputs_DroppedByRewind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(5)
	s := storetest.Open(t, dir, w, persist.Options{})
	for range 3 {
		w.Fill(1)
		require.NoError(t, s.Commit())
	}
	require.NoError(t, s.Mark("of a tick that never was"))
	require.NoError(t, s.Input("old", nil))
	require.NoError(t, w.History().Rewind(2))
	require.NoError(t, s.Commit()) // Record 4.
	require.NoError(t, s.Mark("of another"))
	require.NoError(t, w.History().Rewind(1))
	require.NoError(t, s.Mark("kept"))
	cp := w.Checkpoint()
	require.NoError(t, s.Input("kept too", nil))
	w.Fill(1)
	w.Restore(cp)
	w.Release(cp)
	require.NoError(t, s.Commit()) // Record 5.
	require.NoError(t, s.Commit()) // Record 6.
	storetest.CloseStore(t, s)
	notes := notesOf(t, dir)
	require.Equal(t, simNotes{}, notes[3])
	require.Equal(t, simNotes{0, []string{"kept"}, []inspect.Input{{Name: "kept too", Data: []byte{}}}}, notes[4])
	require.Equal(t, simNotes{}, notes[5])
}

func TestMarksAndInputs_RefusedCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHanging(t, persist.Options{QueueBytes: 500, RefuseWhenFull: true, SnapshotBytes: -1})
		for h.Commit() == nil {
			h.world.Fill(3)
		}
		require.NoError(t, h.Mark("first"))
		require.ErrorIs(t, h.Commit(), persist.ErrBacklog)
		require.NoError(t, h.Mark("second"))
		require.NoError(t, h.Input("in", []byte{7}))
		require.ErrorIs(t, h.Commit(), persist.ErrBacklog)
		close(h.leave)
		require.NoError(t, h.Sync(storetest.Background))
		require.NoError(t, h.Commit())
		h.reopened(t)
		notes := notesOf(t, h.dir)
		require.Equal(t, simNotes{0, []string{"first", "second"}, []inspect.Input{{Name: "in", Data: []byte{7}}}}, notes[len(notes)-1])
	})
}

// A function that is given to Do calls MarkLast, whose record fills the queue. Commit then refuses
// the tick instead of waiting.
func TestMarkLast_FillsQueueBeforeCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHanging(t, persist.Options{QueueBytes: 1, RefuseWhenFull: true, SnapshotBytes: -1})
		done := make(chan error, 1)
		var marked error
		mark := func(*ecs.World) { marked = h.MarkLast("boss") }
		go func() { done <- h.Do(storetest.Background, mark) }()
		synctest.Wait()
		require.ErrorIs(t, h.Commit(), persist.ErrBacklog)
		require.NoError(t, <-done)
		require.NoError(t, marked)
		require.EqualValues(t, 1, h.world.Tick())
		close(h.leave)
		require.NoError(t, h.Sync(storetest.Background))
		require.NoError(t, h.Commit())
		h.reopened(t)
	})
}

func TestMarksAndInputs_Limits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{})
	long := strings.Repeat("n", 255)
	for _, name := range []string{"", long + "n", " x", "a\nb", "\xff"} {
		require.ErrorIs(t, s.Mark(name), persist.ErrName, "%q", name)
		require.ErrorIs(t, s.Input(name, nil), persist.ErrName, "%q", name)
	}
	for i := range 256 {
		require.NoError(t, s.Mark(long[i:]+strings.Repeat("m", max(0, i))[:min(i, 254)]))
	}
	require.NoError(t, s.Mark(long), "it has that name already")
	require.ErrorIs(t, s.Mark("one more"), persist.ErrName)
	big := make([]byte, 1000)
	require.NoError(t, s.Input("big", big))
	require.ErrorIs(t, s.Input("too big", make([]byte, 256<<20)), journal.ErrTooLong)
	require.NoError(t, s.Input("small", big[:100]))
	require.NoError(t, s.Commit())
	require.NoError(t, s.Input("of the next tick", nil))
	storetest.CloseStore(t, s)
	v, err := inspect.OpenReadOnly(storetest.Background, dir)
	require.NoError(t, err)
	defer v.Close()
	marks, err := v.Marks(storetest.Background)
	require.NoError(t, err)
	require.Len(t, marks, 256)
}

func TestMarksAndInputs_NoAllocations(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{})
	data := make([]byte, 100)
	note := func() {
		if s.Mark("here") != nil || s.Input("in", data) != nil || s.Input("in", data) != nil {
			t.Error("Mark or Input failed")
		}
		s.Notes().Reset()
	}
	note()
	require.Zero(t, testing.AllocsPerRun(100, note))
	storetest.CloseStore(t, s)
}

func TestMarksAndInputs_RefusedAfterFailure(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s, err := persist.Open(storetest.Background, dir, w.World, persist.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Mark("lost"))
	s.Fail(journal.ErrTooLong)
	require.ErrorIs(t, s.Mark("more"), journal.ErrTooLong)
	require.ErrorIs(t, s.Input("more", nil), journal.ErrTooLong)
	require.Error(t, s.Commit())
	require.True(t, s.Notes().None())
	require.Error(t, s.Close(storetest.Background))
}

// marked commits a tick that has one mark with the given name.
func marked(t testing.TB, w *storetest.World, s *persist.Store, name string) {
	t.Helper()
	require.NoError(t, s.Mark(name))
	w.Fill(1)
	require.NoError(t, s.Commit())
}

// markedStore creates a store of ten records. Each entry below is the number of a record and its
// mark, if any. Record 10 is the head.
//
//	1 a ── 2 b ── 3 a ── 4 c ── 5 b
//	       └───── 6 a~1 ── 7 ── 8 x
//	                       └─── 9 b ── 10
func markedStore(t testing.TB) string {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(5)
	now := time.Unix(1_000_000, 0)
	s := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1, Now: func() time.Time { now = now.Add(time.Second); return now }})
	commit := func() { require.NoError(t, s.Commit()) }
	for _, name := range []string{"a", "b", "a", "c", "b"} {
		marked(t, w, s, name)
	}
	require.NoError(t, w.History().Rewind(3))
	marked(t, w, s, "a~1")
	commit()
	marked(t, w, s, "x")
	require.NoError(t, w.History().Rewind(1))
	marked(t, w, s, "b")
	w.Fill(1)
	commit()
	storetest.CloseStore(t, s)
	return dir
}

func TestPoints_MarksAndTips(t *testing.T) {
	v := storetest.Verified(t, markedStore(t))
	for point, want := range map[string]uint64{
		// Each mark leads to its newest tick on the path to the head. A mark that is not on that
		// path leads to its newest tick on any branch.
		"mark:a": 1, "mark:b": 9, "mark:c": 4, "mark:x": 8,
		"mark:a~1": 6, "mark:a~0": 1, "mark:a~1~1": 2, "mark:b~1": 7, "mark:b~2": 6, "mark:c~2": 2, "mark:x~3": 2,
		"mark:a~1~2": 1,
		"tip:1":      5, "tip:2": 8, "tip:3": 10, "tip:1~4": 1,
		"@latest~1": 9, "@latest~1~1": 7, "record:5~1": 4, "3~1": 2, "snap:1~0": 0, "@first~0": 0, "@-2s~1": 6,
		"@+0s": 1, "@+1s": 2, "@+2s": 6, "@+5s": 6, "@+6s": 7, "@+9s": 10,
		// Records 3 and 6 both have tick 3. The text after the first @ selects the path.
		"3@tip:1": 3, "3@tip:2": 6, "3@record:4": 3, "2@@latest": 2, "5@mark:x": 8, "4@@latest~1": 7, "2@4@tip:2": 2,
		"5@tip:2~0": 8, "0@tip:1": 0,
	} {
		got, err := v.Resolve(point)
		require.NoError(t, err, point)
		require.Equal(t, want, got, point)
	}
	for point, want := range map[string]string{
		"mark:A1":  `not found: mark "A1"; did you mean "a"`,
		"mark:zzz": `not found: mark "zzz"; there are ["a" "a~1" "b" "c" "x"]`,
		"mark:q~1": `not found: mark "q"`,
		"mark:a~2": `not found: mark:a has only 1 records before it`,
		"tip:4":    `not found: tip 4; there are 3`,
		"tip:0":    `not found: tip 0; there are 3`,
		"snap:s":   `not found: slot "s"; there are none`,
		"@+1h":     `not found: no tick on the path to the newest state is 1h0m0s newer than the oldest`,
		"9":        `not found: tick 9; the path to the newest state ends with tick 6`,
		"9@tip:1":  `not found: tick 9; the path to tip:1 ends with tick 5`,
		"1@tip:9":  `not found: tip 9`,
		"@first~1": `not found: @first has only 0 records before it`,
	} {
		_, err := v.Resolve(point)
		require.ErrorIs(t, err, persist.ErrNotFound, point)
		require.ErrorContains(t, err, want, point)
	}
	for _, point := range []string{"~1", "mark:", "mark: a", "tip:x", "tip:", "mark:\x1b~1", "@+", "@+5", "@+-5s", "a~1", "1~~", "~", "noon~1", "x@tip:1", "1@", "1@noon", "@1@tip:1"} {
		_, err := v.Resolve(point)
		require.ErrorIs(t, err, persist.ErrPoint, "%q", point)
	}
	marks, err := v.Marks(storetest.Background)
	require.NoError(t, err)
	var got []inspect.Mark
	for _, m := range marks {
		m.Time = m.Time.Add(-1_000_000 * time.Second)
		got = append(got, m)
	}
	at := func(s int64) time.Time { return time.Unix(s, 0).UTC() }
	require.Equal(t, []inspect.Mark{
		{Name: "a", Seq: 1, Tick: 1, Time: at(1), OnHead: true},
		{Name: "b", Seq: 2, Tick: 2, Time: at(2), OnHead: true},
		{Name: "a", Seq: 3, Tick: 3, Time: at(3), OnHead: false},
		{Name: "c", Seq: 4, Tick: 4, Time: at(4), OnHead: false},
		{Name: "b", Seq: 5, Tick: 5, Time: at(5), OnHead: false},
		{Name: "a~1", Seq: 6, Tick: 3, Time: at(6), OnHead: true},
		{Name: "x", Seq: 8, Tick: 5, Time: at(8), OnHead: false},
		{Name: "b", Seq: 9, Tick: 5, Time: at(9), OnHead: true},
	}, got)
}

// A search for a mark reads only ticks that have marks. So a damaged tick without a mark does not
// matter.
func TestMark_FoundDespiteDamage(t *testing.T) {
	dir := markedStore(t)
	v := storetest.Verified(t, dir)
	plain, _ := v.Log().Find(7)
	marked, _ := v.Log().Find(9)
	v.Log().Entries[6].Length = 1 // Record 7 becomes unreadable.
	seq, err := v.Resolve("mark:b")
	require.NoError(t, err)
	require.Equal(t, uint64(9), seq)
	seq, err = v.Resolve("mark:a")
	require.NoError(t, err, "%v is not read", plain)
	require.Equal(t, uint64(1), seq)
	v.Log().Entries[8].Length--
	_, err = v.Resolve("mark:a")
	require.ErrorIs(t, err, persist.ErrCorrupt, "%v might have it", marked)
}

func TestMark_HeaderDiffersFromPayload(t *testing.T) {
	for flags, marks := range map[uint32][]string{0: {"a"}, format.FlagMarks: nil} {
		dir := filepath.Join(t.TempDir(), "store")
		w := storetest.New(0)
		s := storetest.Open(t, dir, w, persist.Options{})
		require.NoError(t, s.Commit())
		_, err := s.Journal().Append(1, 2, flags, storetest.Payload((&format.Tick{Parent: s.IDs()[1], Tick: 2, Marks: marks})))
		require.NoError(t, err)
		require.NoError(t, s.Sync(storetest.Background))
		crashed := storetest.CopyDir(t, dir)
		storetest.CloseStore(t, s)
		_, err = persist.Open(storetest.Background, crashed, storetest.New(0).World, persist.Options{})
		require.ErrorIs(t, err, persist.ErrCorrupt)
		require.ErrorContains(t, err, "marks in the payload, flags")
	}
}
