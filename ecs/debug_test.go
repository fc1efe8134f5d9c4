//go:build stetdebug

package ecs

import "testing"

// A stray write is found at the next boundary, whichever it is.
func TestADebugBuildReportsStrayWritesAtEveryBoundary(t *testing.T) {
	boundaries := map[string]func(w *World, cp Checkpoint){
		"Checkpoint": func(w *World, _ Checkpoint) { w.Checkpoint() },
		"Restore":    func(w *World, cp Checkpoint) { w.Restore(cp) },
		"Release":    func(w *World, cp Checkpoint) { w.Release(cp) },
		"Commit":     func(w *World, _ Checkpoint) { w.Commit() },
		"Rewind":     func(w *World, _ Checkpoint) { _ = w.History().Rewind(0) },
		"Attach": func(w *World, cp Checkpoint) {
			w.frames[len(w.frames)-1].tick, w.ticks = true, w.ticks+1 // No checkpoint.
			_ = w.Raw().Attach(nil, 0)
		},
		"Load": func(w *World, cp Checkpoint) {
			w.frames[len(w.frames)-1].tick, w.ticks = true, w.ticks+1
			_ = w.Raw().Load(stateOf(w))
		},
	}
	for name, boundary := range boundaries {
		t.Run(name, func(t *testing.T) {
			w, a, _, entities := members(100, Options{History: 2})
			w.Commit()
			cp := w.Checkpoint()
			a.Mut(entities[70]).X = 1 // In the same block.
			for e, p := range NewQuery1(Read(a)).All() {
				if e == entities[71] {
					p.X = 99
				}
			}
			mustPanic(t, "ecs: plain of 71v1, row 71, was written in the tick after 1 without", func() { boundary(w, cp) })
		})
	}
}

func TestADebugBuildReportsStalePointers(t *testing.T) {
	stale := map[string]func(w *World, cp Checkpoint){
		"Checkpoint": func(w *World, _ Checkpoint) { w.Checkpoint() },
		"Restore":    func(w *World, cp Checkpoint) { w.Restore(cp) },
		"Commit":     func(w *World, _ Checkpoint) { w.Commit() },
		"Rewind":     func(w *World, _ Checkpoint) { _ = w.History().Rewind(0) },
	}
	for name, boundary := range stale {
		t.Run(name, func(t *testing.T) {
			w, a, _, entities := members(100, Options{History: 2})
			w.Commit()
			cp := w.Checkpoint()
			p := a.Mut(entities[3])
			p.X = 1
			boundary(w, cp)
			p.X = 2
			mustPanic(t, "plain of 3v1, row 3,", w.Commit)
		})
	}
}

func TestADebugBuildLooksAtEverythingThatIsTracked(t *testing.T) {
	w, a, _, entities := members(10, Options{History: 2})
	l := MustRegister(w, Component[list]{Clone: cloneList})
	r := MustRegisterResource(w, plain{}, Component[plain]{Name: "score"})
	u := MustRegister[word](w)
	l.Set(entities[2], list{[]int{1}})
	u.Set(entities[2], word{"x"})
	w.Commit()
	for _, test := range []struct {
		want        string
		write, undo func()
	}{
		{"resource score", func() { r.data.Live[0].X = 1 }, func() { r.data.Live[0].X = 0 }},
		{"list of 2v1", func() { l.Values()[0].Items[0] = 2 }, func() { l.Values()[0].Items[0] = 1 }},
		{"word of 2v1", func() { u.Values()[0].S = "longer" }, func() { u.Values()[0].S = "x" }},
		{"row 4 of the entities of the plain", func() { a.Entities()[4]++ }, func() { a.Entities()[4]-- }},
		{"row 5 of the entities of the registry", func() { w.Entities()[5]++ }, func() { w.Entities()[5]-- }},
	} {
		test.write()
		mustPanic(t, test.want, w.Commit)
		test.undo()
		w.Commit()
	}
}

// Rows that no frame protects are nobody's loss; the world of a recorder loses
// them.
func TestADebugBuildLetsRowsBeWrittenThatNothingProtects(t *testing.T) {
	w, a, _, entities := members(10, Options{})
	a.Values()[3].X = 7
	w.Commit()
	if err := w.Raw().Attach(&markRecorder{}, 0); err != nil {
		t.Fatal(err)
	}
	e := w.Create()
	a.Set(e, plain{})
	cp := w.Checkpoint()
	w.Release(cp)
	a.Values()[10].X = 5 // Appended in this tick: it is told whole.
	w.Commit()
	p := a.Mut(entities[3])
	w.Commit()
	p.X = 8
	mustPanic(t, "plain of 3v1", w.Commit)
}

// Get, change a slice, Set: the value that the world would save is changed already.
func TestADebugBuildReportsRowsWrittenBeforeTheyAreSaved(t *testing.T) {
	for name, write := range map[string]func(s *Storage[list], e Entity){
		"Get, Set": func(s *Storage[list], e Entity) { v, _ := s.Get(e); v.Items[0] = 99; s.Set(e, v) },
		"Get, Mut": func(s *Storage[list], e Entity) { v, _ := s.Get(e); v.Items[0] = 99; s.Mut(e).Items = nil },
		"Values":   func(s *Storage[list], e Entity) { s.Values()[1].Items[0] = 99; s.MutValues() },
		"Remove":   func(s *Storage[list], e Entity) { v, _ := s.Get(e); v.Items[0] = 99; s.Remove(e) },
		"All, Set": func(s *Storage[list], e Entity) {
			for e, v := range s.All() {
				v.Items[0] = 99
				s.Set(e, v)
				break
			}
		},
		"what is set": func(s *Storage[list], e Entity) {
			v := list{[]int{5}}
			s.Set(e, v)
			s.w.Commit()
			v.Items[0] = 99
			s.Set(e, v)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWorld(Options{History: 2})
			s := MustRegister[list](w)
			es := w.CreateN(nil, 3)
			for i, e := range es {
				s.Set(e, list{[]int{i, i}})
			}
			w.Commit()
			w.Checkpoint()
			mustPanic(t, "ecs: list of", func() { write(s, es[1]); t.Error("not seen") })
			mustPanic(t, "before the world could save it", func() { write(s, es[1]) })
		})
	}
}

// What is written in the frame already may be written again in any way, and a copy of
// one's own is right.
func TestADebugBuildLetsAFrameWriteItsOwnRows(t *testing.T) {
	w := NewWorld(Options{History: 2})
	s := MustRegister[list](w)
	e := w.Create()
	s.Set(e, list{[]int{1}})
	w.Commit()
	for range 3 {
		v, _ := s.Get(e)
		v.Items = append([]int{9}, v.Items...)
		s.Set(e, v)
		v.Items[0] = 8
		w.Commit()
	}
}

func TestADebugBuildComparesWhatACloneReturns(t *testing.T) {
	for want, clone := range map[string]func(l bag) bag{
		"Component.Clone of bag is no deep copy: bag.Items shares memory": func(b bag) bag { return b },
		"bag.Name is not what it was":                                     func(b bag) bag { return bag{} },
		"bag.Items[0] shares memory":                                      func(b bag) bag { b.Items = append([][]int(nil), b.Items...); return b },
	} {
		w := NewWorld(Options{History: 2})
		s := MustRegister(w, Component[bag]{Clone: clone})
		e := w.Create()
		s.Set(e, newBag(1))
		w.Commit()
		mustPanic(t, want, func() { s.Mut(e) })
	}
}
