package ecs

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

// Each case has the name of a shortcut that an undo log could take. The case fails if an undo log
// takes it. At the beginning, e0, e1 and e2 are in a storage.
func TestHistory_ShortcutsInUndoLogsFail(t *testing.T) {
	type steps []func(p *model) bool
	var (
		checkpoint = (*model).checkpoint
		removeE0   = func(p *model) bool { return p.remove(0, p.handle(0)) }
		addE0      = func(p *model) bool { return p.set(0, p.handle(0)) }
		addE1      = func(p *model) bool { return p.set(0, p.handle(1)) }
		destroyE0  = func(p *model) bool { return p.destroy(p.handle(0)) }
		removeE2   = func(p *model) bool { return p.remove(0, p.handle(2)) }
		writeE2    = func(p *model) bool { return p.increase(0, p.handle(2)) }
		restore    = func(i int) func(p *model) bool { return func(p *model) bool { return p.restore(i) } }
		release    = func(i int) func(p *model) bool { return func(p *model) bool { return p.release(i) } }
		rewind     = func(n int) func(p *model) bool { return func(p *model) bool { return p.rewind(n) } }
		clear0     = func(p *model) bool { return p.clear(0) }
		seek       = func(tick uint64) func(p *model) bool { return func(p *model) bool { return p.seek(tick) } }
	)
	tests := []struct {
		shortcut string
		setting  modelOptions
		steps    steps
	}{
		{"protecting the length of the newest frame only", modelOptions{},
			steps{checkpoint, removeE0, checkpoint, addE0, restore(0)}},
		{"protecting entities by the number alive, not of all ids made", modelOptions{},
			steps{destroyE0, checkpoint, (*model).create, restore(0)}},
		{"keeping the span over a restore", modelOptions{},
			steps{checkpoint, removeE0, restore(0), removeE0, restore(0)}},
		{"dropping the log at a release", modelOptions{},
			steps{checkpoint, removeE0, checkpoint, addE0, release(1), restore(0)}},
		{"repairing sparse from dense instead of saving it", modelOptions{},
			steps{checkpoint, removeE0, restore(0)}},
		{"saving only rows that mean something", modelOptions{},
			steps{clear0, addE0, addE1, checkpoint, clear0, addE0, restore(0)}},
		{"trusting that a log without merges names no row twice", modelOptions{},
			steps{checkpoint, removeE0, checkpoint, release(1), removeE2, restore(0)}},
		{"pointing the registry to rows past its end", modelOptions{maxGeneration: 1},
			steps{destroyE0, checkpoint, (*model).create, checkpoint, (*model).create, restore(0)}},
		{"pointing the registry, on redo, only to rows that a log holds", modelOptions{maxGeneration: 1, history: 3},
			steps{destroyE0, (*model).commit, (*model).create, (*model).commit, rewind(1), seek(2)}},
		{"counting undone frames as ticks", modelOptions{history: 1},
			steps{checkpoint, (*model).commit, (*model).commit, rewind(2), seek(1), seek(2)}},
		{"leaving alone the rows a merged log puts back past the end", modelOptions{},
			steps{removeE2, checkpoint, func(p *model) bool { return p.set(0, p.handle(2)) }, checkpoint, writeE2, release(1), removeE2, restore(0), release(0)}},
	}
	for _, tt := range tests {
		t.Run(tt.shortcut, func(t *testing.T) {
			tt.setting.kinds, tt.setting.entities, tt.setting.members = []kind{listKind}, 3, 3
			var err error
			func() {
				defer catch(&err)
				p := newModel(tt.setting)
				p.digest = true
				for _, step := range tt.steps {
					step(p)
					p.check()
				}
			}()
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// A row keeps its value after its entity has left the storage, as long as a restore or a redo needs
// it. Afterwards, Seek must clear the row. In this test, a checkpoint needs the row. Rewind removes
// the checkpoint, and Seek discards the undone frames that needed the row.
func TestHistory_SeekClearsUnneededRow(t *testing.T) {
	w := NewWorld(Options{History: 4})
	s := MustRegister[*int](w, Component[*int]{Name: "pointer", NoPersist: true})
	entities := w.CreateN(nil, 2)
	s.Set(entities[0], new(int))
	w.Commit()
	s.Set(entities[1], new(int))
	w.Checkpoint()
	s.Clear()
	w.Commit()
	w.Commit()
	// Rewind undoes tick 3 first, and then tick 2.
	if err := w.History().Rewind(2); err != nil {
		t.Fatal(err)
	}
	if err := w.History().Seek(3); err != nil {
		t.Fatal(err)
	}
	if err := w.check(); err != nil {
		t.Error(err)
	}
}

func TestCheckpoint_UseAfterRelease(t *testing.T) {
	const gone = " of a checkpoint that is no longer valid: it was released, or an older checkpoint or tick was restored; check Checkpoint.Valid first"
	w := NewWorld(Options{History: 2})
	released := w.Checkpoint()
	w.Release(released)
	outer := w.Checkpoint()
	inner := w.Checkpoint()
	w.Restore(outer)
	for _, cp := range []Checkpoint{released, inner} {
		mustPanic(t, "ecs: Restore"+gone, func() { w.Restore(cp) })
		mustPanic(t, "ecs: Release"+gone, func() { w.Release(cp) })
	}
	w.Commit()
	if err := w.History().Rewind(1); err != nil {
		t.Fatal(err)
	}
	mustPanic(t, "ecs: Restore"+gone, func() { w.Restore(outer) })
	mustPanic(t, "ecs: Restore of a checkpoint of another world", func() { w.Restore(NewWorld(Options{}).Checkpoint()) })
	mustPanic(t, "ecs: Release of the zero Checkpoint", func() { w.Release(Checkpoint{}) })
	if (Checkpoint{}).Valid() {
		t.Error("the zero Checkpoint is valid")
	}
}

// In a world without history, each error says which option to set.
func TestHistory_ErrorWithoutHistory(t *testing.T) {
	w := NewWorld(Options{})
	w.Commit()
	h := w.History()
	for what, err := range map[string]error{
		"Seek":         h.Seek(0),
		"Rewind":       h.Rewind(1),
		"rewind far":   h.Rewind(7),
		"At":           second(h.At(0)),
		"SinceCommit":  second(w.SinceCommit()),
		"negative":     h.Rewind(-1),
		"seek forward": h.Seek(2),
	} {
		if !errors.Is(err, ErrNotHeld) || !strings.Contains(err.Error(), "because ecs.Options.History is 0: set it to") {
			t.Errorf("%s = %v, want ErrNotHeld and the option to set", what, err)
		}
	}
	// With a history, the error names ticks and no option.
	if err := NewWorld(Options{History: 1}).History().Rewind(2); !strings.HasSuffix(err.Error(), "the oldest retained tick is 0, the newest 0") {
		t.Errorf("Rewind(2) = %v", err)
	}
}

func TestHistory_TickNotHeld(t *testing.T) {
	w, a, _, entities := members(3, Options{History: 2})
	for range 5 {
		a.Mut(entities[0]).X++
		w.Commit()
	}
	a.Mut(entities[0]).X = 50
	before := w.Digest()
	h := w.History()
	for _, tick := range []uint64{0, 2, 6, 1 << 63} {
		if err := h.Seek(tick); !errors.Is(err, ErrNotHeld) {
			t.Errorf("Seek(%d) = %v, want ErrNotHeld", tick, err)
		}
	}
	for _, n := range []int{-1, 3, 6, math.MaxInt} {
		if err := h.Rewind(n); !errors.Is(err, ErrNotHeld) {
			t.Errorf("Rewind(%d) = %v, want ErrNotHeld", n, err)
		}
	}
	if w.Digest() != before || h.Oldest() != 3 || h.Newest() != 5 {
		t.Errorf("the world changed, or its history: %d to %d, want 3 to 5", h.Oldest(), h.Newest())
	}
}

func TestHistory_ByteLimit(t *testing.T) {
	const budget = 100_000
	w, a, _, entities := members(2000, Options{History: 50, HistoryBytes: budget})
	checkAtEnd(t, w)
	h := w.History()
	for tick := range 100 {
		for range NewQuery1(Write(a)).All() {
		}
		w.Commit()
		if h.Bytes() > budget {
			t.Fatalf("tick %d: Bytes() = %d, want at most %d", tick, h.Bytes(), budget)
		}
	}
	// Each tick saves 16 KB of rows. Its log needs somewhat more memory, because chunks have fixed
	// sizes.
	if held := h.Newest() - h.Oldest(); held < 2 || held > 6 {
		t.Errorf("%d ticks are retained", held)
	}
	// A checkpoint is held, so the history cannot drop the rows that a restore of cp needs. It
	// merges the ticks after cp instead.
	cp, before := w.Checkpoint(), w.Digest()
	for range 20 {
		for _, e := range entities {
			a.Mut(e).X++
			// The released checkpoint began a new frame, so the next write of a row saves it again.
			w.Release(w.Checkpoint())
		}
		w.Commit()
	}
	w.Restore(cp)
	if w.Digest() != before {
		t.Error("the checkpoint is not restored exactly")
	}
	w.Release(cp)
	if h.Bytes() > budget {
		t.Errorf("Bytes() = %d after the checkpoint is released, want at most %d", h.Bytes(), budget)
	}
}

func TestHistory_LogBoundedWithinTick(t *testing.T) {
	loops := map[string]func(w *World, write func()){
		"try":                 func(w *World, write func()) { _ = w.Try(func() error { write(); return nil }) },
		"write, then try":     func(w *World, write func()) { write(); _ = w.Try(func() error { return nil }) },
		"write, then fail":    func(w *World, write func()) { write(); _ = w.Try(func() error { write(); return errTried }) },
		"checkpoint, restore": func(w *World, write func()) { write(); cp := w.Checkpoint(); w.Restore(cp); w.Release(cp) },
		"fail inside that try": func(w *World, write func()) {
			_ = w.Try(func() error { write(); return w.Try(func() error { write(); return nil }) })
		},
	}
	for name, loop := range loops {
		t.Run(name, func(t *testing.T) {
			for _, history := range []int{0, 1} {
				w, a, _, entities := members(100, Options{History: history})
				checkAtEnd(t, w)
				if err := w.Raw().Attach(newRecorderModel(w), 0); err != nil {
					t.Fatal(err)
				}
				outer := w.Checkpoint()
				for i := range 20_000 {
					loop(w, func() {
						a.Mut(entities[i%100]).X++
						a.Remove(entities[(i+1)%100])
						a.Set(entities[(i+1)%100], plain{})
					})
				}
				// Ignore the operations for the recorder. Their list grows with every operation of
				// a tick.
				w.ops = nil
				if bytes := w.History().Bytes(); bytes > 200_000 {
					t.Errorf("Bytes() = %d after writing 100 rows 20000 times", bytes)
				}
				w.setOpenFrame()
				w.Restore(outer)
				for i, e := range entities {
					if v, _ := a.Get(e); v.X != int32(i) {
						t.Fatalf("row %d is %d, want %d", i, v.X, i)
					}
				}
			}
		})
	}
}

// Checkpoints are released in any order. Each release merges two undo logs. Afterwards, restores
// must still be exact. The cases have logs of a few hundred rows, and larger logs, which a merge
// also compacts.
func TestHistory_LogsMergedInEveryOrder(t *testing.T) {
	for _, n := range []int{100, 400, 10_000} {
		t.Run(fmt.Sprint(n, " rows"), func(t *testing.T) { mergeInEveryOrder(t, n) })
	}
}

func mergeInEveryOrder(t *testing.T, n int) {
	w, a, _, entities := members(n, Options{History: 3})
	checkAtEnd(t, w)
	all, some := NewQuery1(Write(a)), func(step int, by int32) {
		for i := step; i < n; i += 2*step + 1 {
			a.Mut(entities[i]).X += by
		}
	}
	w.Commit()
	first := w.Digest()
	for round := range 6 {
		some(round, 1)
		cp := w.Checkpoint()
		for _, p := range all.All() {
			p.X += 10
		}
		cp2 := w.Checkpoint()
		some(3, 100)
		middle := w.Digest()
		for _, p := range all.All() {
			p.X += 10
		}
		switch round % 3 {
		case 0:
			w.Release(cp2)
			w.Release(cp)
		case 1:
			w.Release(cp)
			some(1, 5)
			w.Release(cp2)
		case 2:
			w.Restore(cp2)
			some(3, 100)
			if w.Digest() != middle {
				t.Fatal("Restore is not exact")
			}
			w.Release(cp2)
			some(0, 7)
			w.Release(cp)
		}
		w.Commit()
		last := w.Digest()
		if err := w.History().Rewind(1); err != nil {
			t.Fatal(err)
		}
		if w.Digest() != first {
			t.Fatalf("round %d: Rewind is not exact", round)
		}
		if err := w.History().Seek(w.Tick() + 1); err != nil {
			t.Fatal(err)
		}
		if w.Digest() != last {
			t.Fatalf("round %d: Seek forward is not exact", round)
		}
		first = last
		if err := w.check(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOnRestore_CalledByEveryRestore(t *testing.T) {
	w, a, _, entities := members(3, Options{History: 2})
	x := MustRegister(w, Component[extra]{NoRewind: true})
	calls := 0
	w.OnRestore(func() {
		calls++
		if err := w.check(); err != nil {
			t.Error(err)
		}
	})
	cp := w.Checkpoint()
	young := w.Create()
	x.Set(young, extra{1})
	a.Remove(entities[0])
	w.Restore(cp)
	w.Release(cp)
	w.Commit()
	_ = w.History().Rewind(1)
	_ = w.History().Seek(1)
	_ = w.History().Seek(9)
	_ = w.Try(func() error { return nil })
	_ = w.Try(func() error { return errTried })
	if calls != 4 {
		t.Errorf("%d calls, want 4: Restore, Rewind, Seek, Try that failed", calls)
	}
}

func TestRewind_ErrorNamesRemedy(t *testing.T) {
	w := NewWorld(Options{History: 3})
	for range 10 {
		w.Commit()
	}
	const want = "ecs: tick not held: rewind 5 ticks from tick 10; the oldest retained tick is 7, the newest 10; " +
		"set a larger ecs.Options.History, or use Store.Goto for older ticks; a load begins the history again"
	err := w.History().Rewind(5)
	if !errors.Is(err, ErrNotHeld) || err.Error() != want {
		t.Errorf("Rewind = %v, want %s", err, want)
	}
	mustPanic(t, "ecs: Restore of the zero Checkpoint; get one from World.Checkpoint", func() { w.Restore(Checkpoint{}) })
}
