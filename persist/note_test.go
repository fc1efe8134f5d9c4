package persist

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/journal"
)

// notesOf returns the marks and inputs of each record in dir.
func notesOf(t testing.TB, dir string) (notes []simNotes) {
	t.Helper()
	commits, err := verified(t, dir).Commits(1, 1000)
	require.NoError(t, err)
	for _, c := range commits {
		notes = append(notes, simNotes{0, c.Marks, c.Inputs})
	}
	return notes
}

func TestMarksAndInputsComeBackWithTheirTick(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	s := open(t, dir, w, Options{})
	data := []byte{1, 2, 3}
	require.NoError(t, s.Input("fire", data))
	data[0] = 9 // It is a copy.
	require.NoError(t, s.Mark("boss"))
	require.NoError(t, s.Input("fire", nil))
	require.NoError(t, s.Mark("level 2"))
	require.NoError(t, s.Mark("boss")) // Once is enough.
	require.NoError(t, s.Commit())
	w.fill(1)
	require.NoError(t, s.Commit())
	require.NoError(t, s.Input("left", []byte("x")))
	w.fill(1)
	w.Commit() // By whomever.
	require.NoError(t, s.Mark("dropped: nothing is committed behind it"))
	closeStore(t, s)
	require.Equal(t, []simNotes{
		{0, []string{"boss", "level 2"}, []Input{{"fire", []byte{1, 2, 3}}, {"fire", []byte{}}}},
		{},
		{0, nil, []Input{{"left", []byte("x")}}},
	}, notesOf(t, dir))
	again := newTestWorld(0)
	s = open(t, dir, again, Options{})
	require.Equal(t, persistent(w.World), persistent(again.World))
	require.ErrorIs(t, s.Mark("3\x1b[0m"), ErrName)
	closeStore(t, s)
	require.ErrorIs(t, s.Mark("late"), ErrClosed)
	require.ErrorIs(t, s.Input("late", nil), ErrClosed)
}

func TestOnlyTicksWithNotesHaveTheNewFormat(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	s := open(t, dir, w, Options{})
	for _, note := range []func() error{
		func() error { return nil },
		func() error { return s.Mark("here") },
		func() error { return s.Input("x", nil) },
		func() error { return nil },
	} {
		require.NoError(t, note())
		w.fill(1)
		require.NoError(t, s.Commit())
	}
	closeStore(t, s)
	var formats []byte
	var flags []uint32
	log := verified(t, dir).log
	for _, e := range log.Entries {
		payload, err := log.Payload(e, nil)
		require.NoError(t, err)
		formats, flags = append(formats, payload[1]), append(flags, e.Flags)
	}
	require.Equal(t, []byte{1, 2, 2, 1}, formats)
	require.Equal(t, []uint32{0, flagMarks, 0, 0}, flags)
}

func TestNotesAreAboutTheTickThatContinuesThePresentOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(5)
	s := open(t, dir, w, Options{})
	for range 3 {
		w.fill(1)
		require.NoError(t, s.Commit())
	}
	require.NoError(t, s.Mark("of a tick that never was"))
	require.NoError(t, s.Input("old", nil))
	require.NoError(t, w.History().Rewind(2))
	require.NoError(t, s.Commit()) // 4
	require.NoError(t, s.Mark("of another"))
	require.NoError(t, w.History().Rewind(1))
	require.NoError(t, s.Mark("kept"))
	cp := w.Checkpoint()
	require.NoError(t, s.Input("kept too", nil))
	w.fill(1)
	w.Restore(cp)
	w.Release(cp)
	require.NoError(t, s.Commit()) // 5
	require.NoError(t, s.Commit()) // 6
	closeStore(t, s)
	notes := notesOf(t, dir)
	require.Equal(t, simNotes{}, notes[3])
	require.Equal(t, simNotes{0, []string{"kept"}, []Input{{"kept too", []byte{}}}}, notes[4])
	require.Equal(t, simNotes{}, notes[5])
}

func TestNotesStayWhenACommitIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHanging(t, Options{QueueBytes: 500, RefuseWhenFull: true, SnapshotBytes: -1})
		for h.Commit() == nil {
			h.world.fill(3)
		}
		require.NoError(t, h.Mark("first"))
		require.ErrorIs(t, h.Commit(), ErrBacklog)
		require.NoError(t, h.Mark("second"))
		require.NoError(t, h.Input("in", []byte{7}))
		require.ErrorIs(t, h.Commit(), ErrBacklog)
		close(h.leave)
		require.NoError(t, h.Sync(background))
		require.NoError(t, h.Commit())
		h.reopened(t)
		notes := notesOf(t, h.dir)
		require.Equal(t, simNotes{0, []string{"first", "second"}, []Input{{"in", []byte{7}}}}, notes[len(notes)-1])
	})
}

func TestNotesAreBounded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	s := open(t, dir, w, Options{})
	long := strings.Repeat("n", 255)
	for _, name := range []string{"", long + "n", " x", "a\nb", "\xff"} {
		require.ErrorIs(t, s.Mark(name), ErrName, "%q", name)
		require.ErrorIs(t, s.Input(name, nil), ErrName, "%q", name)
	}
	for i := range 256 {
		require.NoError(t, s.Mark(long[i:]+strings.Repeat("m", max(0, i))[:min(i, 254)]))
	}
	require.NoError(t, s.Mark(long), "it has that name already")
	require.ErrorIs(t, s.Mark("one more"), ErrName)
	big := make([]byte, 1000)
	require.NoError(t, s.Input("big", big))
	require.Greater(t, s.notes.size, len(s.notes.inputs.buf)+256*256)
	s.notes.size = maxNoted - 1000 // As if many had come before.
	require.ErrorIs(t, s.Input("big", big), journal.ErrTooLong)
	require.NoError(t, s.Input("small", big[:100]))
	require.NoError(t, s.Commit())
	require.NoError(t, s.Input("of the next tick", nil))
	closeStore(t, s)
	v, err := OpenReadOnly(background, dir)
	require.NoError(t, err)
	defer v.Close()
	marks, err := v.Marks(background)
	require.NoError(t, err)
	require.Len(t, marks, 256)
}

func TestNotesCostNoMemoryInTheSteadyState(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	s := open(t, dir, w, Options{})
	data := make([]byte, 100)
	note := func() {
		if s.Mark("here") != nil || s.Input("in", data) != nil || s.Input("in", data) != nil {
			t.Error("not noted")
		}
		s.notes.reset()
	}
	note()
	require.Zero(t, testing.AllocsPerRun(100, note))
	closeStore(t, s)
}

func TestAFailedStoreTakesNoNotes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	s, err := Open(background, dir, w.World, Options{})
	require.NoError(t, err)
	require.NoError(t, s.Mark("lost"))
	s.failed = journal.ErrTooLong
	require.ErrorIs(t, s.Mark("more"), journal.ErrTooLong)
	require.ErrorIs(t, s.Input("more", nil), journal.ErrTooLong)
	require.Error(t, s.Commit())
	require.True(t, s.notes.none())
	require.Error(t, s.Close(background))
}

// marked commits a tick of that name.
func (w *testWorld) marked(t testing.TB, s *Store, name string) {
	t.Helper()
	require.NoError(t, s.Mark(name))
	w.fill(1)
	require.NoError(t, s.Commit())
}

// markedStore makes a store of these records:
//
//	record   1   2   3   4   5        6   7   8        9  10
//	mark     a   b   a   c   b (left) a~1     x (left) b
//	         1───2───3───4───5
//	             └───6───7───8
//	                     └─────────────────────────────9──10, the head
func markedStore(t testing.TB) string {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(5)
	now := time.Unix(1_000_000, 0)
	s := open(t, dir, w, Options{SnapshotBytes: -1, Now: func() time.Time { now = now.Add(time.Second); return now }})
	commit := func() { require.NoError(t, s.Commit()) }
	for _, name := range []string{"a", "b", "a", "c", "b"} {
		w.marked(t, s, name)
	}
	require.NoError(t, w.History().Rewind(3))
	w.marked(t, s, "a~1")
	commit()
	w.marked(t, s, "x")
	require.NoError(t, w.History().Rewind(1))
	w.marked(t, s, "b")
	w.fill(1)
	commit()
	closeStore(t, s)
	return dir
}

func TestMarksAndTipsArePointsInTime(t *testing.T) {
	v := verified(t, markedStore(t))
	for point, want := range map[string]uint64{
		"mark:a": 1, "mark:b": 9, "mark:c": 4, "mark:x": 8, // On the way to the head, the newest; else anywhere.
		"mark:a~1": 6, "mark:a~0": 1, "mark:a~1~1": 2, "mark:b~1": 7, "mark:b~2": 6, "mark:c~2": 2, "mark:x~3": 2,
		"mark:a~1~2": 1,
		"tip:1":      5, "tip:2": 8, "tip:3": 10, "tip:1~4": 1,
		"@latest~1": 9, "@latest~1~1": 7, "seq:5~1": 4, "3~1": 2, "snap:1~0": 0, "@first~0": 0, "@-2s~1": 6,
		"@+0s": 1, "@+1s": 2, "@+2s": 6, "@+5s": 6, "@+6s": 7, "@+9s": 10,
	} {
		got, err := v.Resolve(point)
		require.NoError(t, err, point)
		require.Equal(t, want, got, point)
	}
	for point, want := range map[string]string{
		"mark:A1":  `not found: mark "A1"; did you mean "a"`,
		"mark:zzz": `not found: mark "zzz"; there are ["a" "a~1" "b" "c" "x"]`,
		"mark:q~1": `not found: mark "q"`,
		"mark:a~2": `not found: mark:a has only 1 ticks before it`,
		"tip:4":    `not found: tip 4; there are 3`,
		"tip:0":    `not found: tip 0; there are 3`,
		"snap:s":   `not found: snapshot "s"; there are none`,
		"@+1h":     `not found: no tick on the way to the head is 1h0m0s newer than the oldest`,
		"@first~1": `not found: @first has only 0 ticks before it`,
	} {
		_, err := v.Resolve(point)
		require.ErrorIs(t, err, ErrNotFound, point)
		require.ErrorContains(t, err, want, point)
	}
	for _, point := range []string{"~1", "mark:", "mark: a", "tip:x", "tip:", "mark:\x1b~1", "@+", "@+5", "@+-5s", "a~1", "1~~", "~", "noon~1"} {
		_, err := v.Resolve(point)
		require.ErrorIs(t, err, ErrPoint, "%q", point)
	}
	marks, err := v.Marks(background)
	require.NoError(t, err)
	var got []Mark
	for _, m := range marks {
		m.Time = m.Time.Add(-1_000_000 * time.Second)
		got = append(got, m)
	}
	at := func(s int64) time.Time { return time.Unix(s, 0).UTC() }
	require.Equal(t, []Mark{
		{"a", 1, 1, at(1), true},
		{"b", 2, 2, at(2), true},
		{"a", 3, 3, at(3), false},
		{"c", 4, 4, at(4), false},
		{"b", 5, 5, at(5), false},
		{"a~1", 6, 3, at(6), true},
		{"x", 8, 5, at(8), false},
		{"b", 9, 5, at(9), true},
	}, got)
}

// Who looks for a mark reads the ticks that have any, and no others.
func TestDamageElsewhereDoesNotKeepAMarkFromBeingFound(t *testing.T) {
	dir := markedStore(t)
	v := verified(t, dir)
	plain, _ := v.log.Find(7)
	marked, _ := v.log.Find(9)
	v.log.Entries[6].Length = 1 // As if record 7 could not be read.
	seq, err := v.Resolve("mark:b")
	require.NoError(t, err)
	require.Equal(t, uint64(9), seq)
	seq, err = v.Resolve("mark:a")
	require.NoError(t, err, "%v is not read", plain)
	require.Equal(t, uint64(1), seq)
	v.log.Entries[8].Length--
	_, err = v.Resolve("mark:a")
	require.ErrorIs(t, err, ErrCorrupt, "%v might have it", marked)
}

func TestNotesThatLieAreRefused(t *testing.T) {
	encode := func(f func(e *encoder)) []byte {
		plain := new(tick).payload()
		e := &encoder{buf: plain[:len(plain)-2], Encoder: newEncoder().Encoder}
		e.Encoder.ResetWriter(e)
		e.UseCompactInts(true)
		e.buf[1] = notedTick
		f(e)
		return e.buf
	}
	ops := func(e *encoder) { e.array(3); e.bin(nil) }
	for name, lie := range map[string]func(e *encoder){
		"operations alone":      func(e *encoder) { e.bin(nil) },
		"nothing noted":         func(e *encoder) { ops(e); e.array(0); e.array(0) },
		"no inputs":             func(e *encoder) { e.array(2); e.bin(nil); e.array(1); e.string("a") },
		"more marks than bytes": func(e *encoder) { ops(e); e.array(1 << 30) },
		"too many marks": func(e *encoder) {
			ops(e)
			e.array(257)
			for range 257 {
				e.string("a")
			}
			e.array(0)
		},
		"a mark of bytes":       func(e *encoder) { ops(e); e.array(1); e.bin([]byte("a")); e.array(0) },
		"a mark without a name": func(e *encoder) { ops(e); e.array(1); e.string(""); e.array(0) },
		"a mark nobody sees":    func(e *encoder) { ops(e); e.array(1); e.string("\x1b[2J"); e.array(0) },
		"an input nobody sees": func(e *encoder) {
			ops(e)
			e.array(0)
			e.array(1)
			e.array(2)
			e.string("\x00")
			e.bin(nil)
		},
		"an input of three": func(e *encoder) {
			ops(e)
			e.array(0)
			e.array(1)
			e.array(3)
			e.string("a")
			e.bin(nil)
			e.nil()
		},
		"an input that is nil": func(e *encoder) {
			ops(e)
			e.array(0)
			e.array(1)
			e.array(2)
			e.string("a")
			e.nil()
		},
		"an input cut short": func(e *encoder) {
			ops(e)
			e.array(0)
			e.array(1)
			e.array(2)
			e.string("a")
			e.binLen(5)
		},
		"something behind inputs": func(e *encoder) { ops(e); e.array(1); e.string("a"); e.array(0); e.array(0) },
	} {
		payload := encode(lie)
		boundedTightly(t, len(payload), func() {
			_, err := decodeTick(payload)
			require.Error(t, err, name)
			require.NotErrorIs(t, err, ErrNewer, name)
		})
	}
	good, err := decodeTick(encode(func(e *encoder) { ops(e); e.array(1); e.string("a"); e.array(0) }))
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, good.marks)
}

func TestMarksThatTheHeaderDoesNotKnowOfAreDamage(t *testing.T) {
	for flags, marks := range map[uint32][]string{0: {"a"}, flagMarks: nil} {
		dir := filepath.Join(t.TempDir(), "store")
		w := newTestWorld(0)
		s := open(t, dir, w, Options{})
		require.NoError(t, s.Commit())
		_, err := s.journal.Append(1, 2, flags, (&tick{parent: s.ids[1], tick: 2, marks: marks}).payload())
		require.NoError(t, err)
		require.NoError(t, s.Sync(background))
		crashed := copyDir(t, dir)
		closeStore(t, s)
		_, err = Open(background, crashed, newTestWorld(0).World, Options{})
		require.ErrorIs(t, err, ErrCorrupt)
		require.ErrorContains(t, err, "marks in the payload, flags")
	}
}
