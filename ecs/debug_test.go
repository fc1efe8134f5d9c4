//go:build stetdebug

package ecs

import (
	"slices"
	"testing"

	"github.com/stet-ecs/stet/ecs/internal/system"
)

// In a debug build, every kind of boundary detects a stray write.
func TestDebug_BoundaryDetectsStrayWrite(t *testing.T) {
	boundaries := map[string]func(w *World, cp Checkpoint){
		"Checkpoint": func(w *World, _ Checkpoint) { w.Checkpoint() },
		"Restore":    func(w *World, cp Checkpoint) { w.Restore(cp) },
		"Release":    func(w *World, cp Checkpoint) { w.Release(cp) },
		"Commit":     func(w *World, _ Checkpoint) { w.Commit() },
		"Rewind":     func(w *World, _ Checkpoint) { _ = w.History().Rewind(0) },
		"Attach": func(w *World, cp Checkpoint) {
			// Attach needs a world without checkpoints, so turn the checkpoint into a tick.
			w.frames[len(w.frames)-1].tick, w.ticks = true, w.ticks+1
			_ = w.Raw().Attach(recorderFunc(nil), 0)
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
			// A proper write of another row in the same block of 64 rows must not hide the stray
			// write.
			a.Mut(entities[70]).X = 1
			for e, p := range NewQuery1(Read(a)).All() {
				if e == entities[71] {
					p.X = 99
				}
			}
			mustPanic(t, "ecs: plain of 71v1, row 71, was written in the tick after 1 without", func() { boundary(w, cp) })
		})
	}
}

func TestDebug_WriteThroughStalePointer(t *testing.T) {
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

func TestDebug_StrayWriteErrorNamesData(t *testing.T) {
	w, a, _, entities := members(10, Options{History: 2})
	l := MustRegister(w, Component[list]{Clone: cloneList})
	r := Must(RegisterResource(w, plain{}, Component[plain]{Name: "score"}))
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

// In a world without history and checkpoints, a program may write a row directly, because no
// restore needs it. With a recorder, such a write would be missing in the record. So a debug build
// reports it.
func TestDebug_StrayWriteAllowedUntilAttach(t *testing.T) {
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
	// The row is new in this tick, so the recorder gets it anyway.
	a.Values()[10].X = 5
	w.Commit()
	p := a.Mut(entities[3])
	w.Commit()
	p.X = 8
	mustPanic(t, "plain of 3v1", w.Commit)
}

// A debug build panics if the program changed a slice in a row before the world saved the row.
// Otherwise the world would save the changed value as the old value.
func TestDebug_SliceChangedBeforeSetPanics(t *testing.T) {
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

// A row that was already written in the frame may be written again in any way. A write to a private
// copy of the slice is allowed too.
func TestDebug_SecondWriteInTickIsAllowed(t *testing.T) {
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

func TestDebug_DetectsShallowClone(t *testing.T) {
	for want, clone := range map[string]func(l bag) bag{
		"Component.Clone of bag is not a deep copy: bag.Items shares memory": func(b bag) bag { return b },
		"bag.Name differs from the original":                                 func(b bag) bag { return bag{} },
		"bag.Items[0] shares memory":                                         func(b bag) bag { b.Items = append([][]int(nil), b.Items...); return b },
	} {
		w := NewWorld(Options{History: 2})
		s := MustRegister(w, Component[bag]{Clone: clone})
		e := w.Create()
		s.Set(e, newBag(1))
		w.Commit()
		mustPanic(t, want, func() { s.Mut(e) })
	}
}

// A loop over a slice that Entities returned panics at the first position that now has another
// entity.
func TestDebug_LoopOverMovedEntitiesPanics(t *testing.T) {
	const text = "ecs: a slice of Entities was read at a position"
	newWorld := func() (w *World, a *Storage[plain], g *Group) {
		w, a, b, _ := members(10, Options{})
		return w, a, Must(w.NewGroup(a, b))
	}
	w, _, _ := newWorld()
	mustPanic(t, text, func() {
		for _, e := range w.Entities() {
			w.Destroy(e)
		}
	})
	if w.Len() != 5 {
		t.Errorf("%d entities are left, want 5, in the rows of the first half", w.Len())
	}
	w, a, g := newWorld()
	for _, misuse := range []func(){
		func() {
			for _, e := range a.Entities() {
				a.Remove(e)
			}
		},
		func() {
			for _, e := range g.Entities() {
				a.Remove(e)
			}
		},
		func() {
			for _, e := range a.Entities() {
				if p, ok := a.Get(e); ok && p.X%2 == 0 {
					w.Destroy(e)
				}
			}
		},
		func() {
			for _, e := range w.Entities() {
				w.Clear()
				w.Alive(e)
			}
		},
		func() {
			entities := a.Entities()
			a.SortFunc(func(a, b plain) int { return int(b.X - a.X) })
			a.Has(entities[0])
		},
		func() {
			w.Create()
			entities := w.Entities()
			w.Restore(w.Checkpoint())
			cp := w.Checkpoint()
			w.Destroy(entities[2])
			a.Get(w.Entities()[2])
			w.Restore(cp)
			w.Alive(entities[2])
		},
	} {
		cp := w.Checkpoint()
		mustPanic(t, text, misuse)
		w.Restore(cp)
	}
}

func TestDebug_AcceptsLegalLoops(t *testing.T) {
	w, a, _, entities := members(10, Options{History: 1})
	kept := slices.Clone(entities)
	for _, e := range slices.Backward(w.Entities()) {
		if e.Index()%3 > 0 {
			w.Destroy(e)
		}
	}
	for _, e := range w.Entities() {
		w.Create() // Create moves no entity.
		a.Set(e, plain{X: 7})
		w.Release(w.Checkpoint())
	}
	w.DestroyAll(w.Entities())
	if w.Len() != 0 {
		t.Errorf("%d entities are left", w.Len())
	}
	for _, e := range kept {
		if w.Alive(e) {
			t.Errorf("%v is alive", e)
		}
	}
	for w.Create(); w.Len() > 0; {
		w.Destroy(w.Entities()[0])
	}
}

// runSystem runs a system on w.
func runSystem(w *World, name string, run func()) {
	rawWorld{w}.RunSystem(&system.System{Name: name, Alone: true}, run)
}

func TestDebug_SystemWritesOtherWorld(t *testing.T) {
	w, a, b, entities := members(10, Options{})
	r := Must(RegisterResource(w, plain{}, Component[plain]{Name: "score"}))
	query := NewQuery2(Write(a), Read(b))
	for name, run := range map[string]func(){
		"set":     func() { a.Set(entities[0], plain{}) },
		"mut":     func() { a.Mut(entities[0]).X++ },
		"remove":  func() { a.Remove(entities[0]) },
		"values":  func() { a.MutValues() },
		"setall":  func() { a.SetAll(entities, plain{}) },
		"clear":   func() { a.Clear() },
		"sort":    func() { a.SortFunc(func(a, b plain) int { return 0 }) },
		"create":  func() { w.Create() },
		"createn": func() { w.CreateN(nil, 2) },
		"destroy": func() { w.Destroy(entities[0]) },
		"all":     func() { w.DestroyAll(entities) },
		"reset":   func() { w.Clear() },
		"score":   func() { r.Mut().X++ },
		"query": func() {
			for range query.All() {
				return
			}
		},
	} {
		clone := w.Clone()
		before, digest := clone.Digest(), w.Digest()
		mustPanic(t, `ecs: the system "`+name+`" runs on one world and writes another`, func() { runSystem(clone, name, run) })
		if clone.Digest() != before || w.Digest() != digest {
			t.Errorf("%s: a world was written", name)
		}
		cp := w.Checkpoint()
		runSystem(w, name, run) // The system runs on the world that it writes.
		run()                   // This write is outside of any step.
		w.Restore(cp)
	}
	if stepsByGoroutine.n.Load() != 0 || len(stepsByGoroutine.by) != 0 {
		t.Errorf("%d steps are still registered", stepsByGoroutine.n.Load())
	}
}

// A system may read other worlds. It may create a world, such as a clone, and write and step it.
// But the systems that run in a step of the clone must not write the world of the outer system.
func TestDebug_SystemMayStepItsClone(t *testing.T) {
	prefabs, _, _, models := members(3, Options{})
	w, a, _, entities := members(10, Options{})
	ahead := func(w *World) {
		runSystem(w, "walk", func() { a.In(w).Mut(entities[0]).X += 2 })
		w.Commit()
	}
	step := func(w *World) {
		runSystem(w, "think", func() {
			c := w.Clone()
			for range 3 {
				ahead(c)
			}
			a.In(c).Mut(entities[1]).X++
			p, _ := a.In(c).Get(entities[0])
			a.In(w).Set(entities[2], p)
			if _, err := w.Copy(prefabs, models, CopyOptions{}); err != nil {
				t.Error(err)
			}
		})
		w.Commit()
	}
	done := make(chan bool)
	// Another goroutine may write a world of its own at the same time.
	go func() {
		defer close(done)
		other, b, _, mine := members(10, Options{})
		for range 200 {
			b.Mut(mine[0]).X++
			ahead(other)
		}
	}()
	for range 200 {
		step(w)
		step(w.Clone())
		a.Mut(entities[5]).X++
	}
	<-done
	wrong := func() {
		// The inner system writes the world of the outer system.
		runSystem(w.Clone(), "astray", func() { a.Mut(entities[0]).X++ })
	}
	mustPanic(t, `the system "astray" runs on one world`, func() { runSystem(w, "think", wrong) })
}
