package ecs

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// mustPanicWith runs f and returns the value that it panicked with, as an error.
func mustPanicWith(t *testing.T, f func()) (err error) {
	t.Helper()
	defer func() {
		t.Helper()
		var ok bool
		if err, ok = recover().(error); !ok {
			t.Error("no panic with an error")
		}
	}()
	f()
	return nil
}

func TestTry_FunctionRestoresToBeforeTry(t *testing.T) {
	const tooFar = "ecs: the function given to Try restored a checkpoint or tick from before Try"
	backs := map[string]func(w *World, outer Checkpoint){
		"restore": func(w *World, outer Checkpoint) { w.Restore(outer) },
		"rewind": func(w *World, _ Checkpoint) {
			if err := w.History().Rewind(1); err != nil {
				panic(err)
			}
		},
	}
	for name, back := range backs {
		t.Run(name, func(t *testing.T) {
			newWorld := func() (*World, *Storage[plain], Checkpoint) {
				w, a, _, _ := members(10, Options{History: 3})
				w.Commit()
				w.Commit()
				return w, a, w.Checkpoint()
			}
			w, a, outer := newWorld()
			err := w.Try(func() error { a.Clear(); back(w, outer); return errTried })
			if !errors.Is(err, errTried) || !strings.Contains(err.Error(), tooFar) {
				t.Errorf("Try = %v, want both errors", err)
			}
			w, a, outer = newWorld()
			err = mustPanicWith(t, func() { _ = w.Try(func() error { a.Clear(); back(w, outer); panic(errTried) }) })
			if !errors.Is(err, errTried) || !strings.Contains(err.Error(), tooFar) {
				t.Errorf("Try panicked with %v, want both errors", err)
			}
			w, a, outer = newWorld()
			err = mustPanicWith(t, func() { _ = w.Try(func() error { a.Clear(); back(w, outer); panic("no error") }) })
			if !strings.Contains(err.Error(), "no error") || !strings.Contains(err.Error(), tooFar) {
				t.Errorf("Try panicked with %v, want both", err)
			}
			w, _, outer = newWorld()
			err = mustPanicWith(t, func() { _ = w.Try(func() error { back(w, outer); return nil }) })
			if !strings.Contains(err.Error(), tooFar) {
				t.Errorf("Try panicked with %v", err)
			}
			if w.Len() != 10 || a.Len() != 10 {
				t.Error("the world differs from the restored state")
			}
			if err := w.check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// If the function of a Try calls Goexit, the goroutine ends without a panic. This holds even if the
// function has made the checkpoint of the Try invalid before.
func TestTry_GoexitInFunction(t *testing.T) {
	for _, far := range []bool{false, true} {
		w, a, _, _ := members(10, Options{})
		outer := w.Checkpoint()
		reason, ended := any(nil), make(chan bool)
		go func() {
			defer close(ended)
			defer func() { reason = recover() }()
			_ = w.Try(func() error {
				a.Clear()
				if far {
					w.Restore(outer)
				}
				runtime.Goexit()
				return nil
			})
		}()
		<-ended
		if reason != nil || a.Len() != 10 {
			t.Errorf("far %v: panic with %v, %d components", far, reason, a.Len())
		}
	}
}

// changedInParallelRuns returns the text with which ParallelRuns panics if its body adds or removes
// components or entities. A debug build has another text, because it panics at the write itself.
func changedInParallelRuns() string {
	if debug {
		return "ecs: the world is written in the body of ParallelRuns"
	}
	return "ecs: the world's structure changed in ParallelRuns"
}

func TestParallelRuns_CreateOrDestroyPanics(t *testing.T) {
	text := changedInParallelRuns()
	w, a, _, entities := members(10, Options{})
	bare := w.CreateN(nil, 5) // The entities have no components, so no storage changes.
	w.Destroy(entities[3])
	q := NewQuery1(Read(a))
	for name, change := range map[string]func(){
		"create":             func() { w.Create() },
		"create many":        func() { w.CreateN(nil, 20) },
		"destroy":            func() { w.Destroy(bare[0]) },
		"create and destroy": func() { w.Destroy(w.Create()) },
		"destroy and create": func() { w.Destroy(bare[1]); w.Create() },
		"two and two": func() {
			w.Destroy(bare[2])
			w.Destroy(bare[3])
			w.Create()
			w.Create()
		},
	} {
		cp := w.Checkpoint()
		once := false
		mustPanic(t, text, func() {
			q.ParallelRuns(1, func(Run1[plain]) {
				if !once {
					once = true
					change()
				}
			})
		})
		if !once {
			t.Errorf("%s: the body did not run", name)
		}
		w.Restore(cp)
		w.Release(cp)
	}
	q.ParallelRuns(1, func(run Run1[plain]) {
		w.Alive(run.Entities[0])
		a.Get(run.Entities[0])
	})
}

func TestQuery_SameComponentTwice(t *testing.T) {
	_, a, b, _ := members(3, Options{})
	const text = "ecs: a query writes plain and names it twice"
	mustPanic(t, text, func() { NewQuery2(Write(a), Read(a)) })
	mustPanic(t, text, func() { NewQuery2(Read(a), Write(a)) })
	mustPanic(t, text, func() { NewQuery3(Write(a), Read(b), Write(a)) })
	mustPanic(t, text, func() { NewQuery2(Write(a), Optional(Read(a))) })
	// Both columns of a row point to the same component.
	for _, row := range NewQuery2(Read(a), Read(a)).All() {
		if row.A != row.B {
			t.Error("the two columns of a row have different addresses")
		}
	}
}

func TestNilStorage_EveryUsePanics(t *testing.T) {
	w, a, b, _ := members(3, Options{})
	var none *Storage[plain]
	for what, misuse := range map[string]func(){
		"a nil storage of ecs.plain": func() { NewQuery1(Read(none)) },
		"nil storage of ecs.plain":   func() { NewQuery2(Write(a.In(NewWorld(Options{}))), Read(b)) },
		"With with a nil storage":    func() { NewQuery1(Read(a)).With(none) },
		"Without with a nil storage": func() { NewQuery1(Read(a)).Without(none) },
		"Or with a nil storage":      func() { NewQuery1(Read(a)).Or(b, nil) },
		"SortLike with a nil":        func() { a.SortLike(none) },
		"a bundle with a nil":        func() { NewBundle2(none, b) },
		"storage 1 is nil":           func() { panicText(func(s ...AnyStorage) *Group { return Must(w.NewGroup(s...)) }, b, none) },
	} {
		mustPanic(t, what, misuse)
	}
}

// panicText calls f, which must panic with an error, and panics with the text of this error.
func panicText(f func(...AnyStorage) *Group, storages ...AnyStorage) {
	defer func() { panic(recover().(error).Error()) }()
	f(storages...)
}

func TestRegister_PointerType(t *testing.T) {
	_, err := Register[*plain](NewWorld(Options{}))
	var refused *RegisterError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "register ecs.plain and not a pointer to it") {
		t.Errorf("Register[*plain]: %v", err)
	}
}

func TestResourceRead_DoesNotCopy(t *testing.T) {
	w := NewWorld(Options{History: 2})
	type chart struct{ Heights [64 << 10]byte }
	r := Must(RegisterResource(w, chart{}))
	w.Commit()
	height := r.Read()
	r.Mut().Heights[7] = 1
	if height.Heights[7] != 1 {
		t.Error("Read does not return the written value")
	}
	w.Commit()
	if r.rows.Span == w.clock.Span {
		t.Error("Read counts as a write in a new tick")
	}
	if n := testing.AllocsPerRun(10, func() { _ = r.Read().Heights[7] }); n != 0 || r.rows.Span == w.clock.Span {
		t.Errorf("%v allocations; Read must not write", n)
	}
	if err := w.History().Rewind(1); err != nil || height.Heights[7] != 0 || r.Read() != height {
		t.Errorf("after a rewind Read returns %d, error %v", height.Heights[7], err)
	}
}

func TestSortLike_UsesRowsOfOrderedStorage(t *testing.T) {
	w := NewWorld(Options{})
	ordered := MustRegister(w, Component[plain]{Kind: Ordered})
	s := MustRegister[padded](w)
	entities := w.CreateN(nil, 3)
	for _, i := range []int{2, 0, 1} {
		ordered.Set(entities[i], plain{})
	}
	for _, e := range entities {
		s.Set(e, padded{})
	}
	s.SortLike(ordered)
	if got, want := s.Entities(), ordered.Entities(); got[0] != entities[2] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("sorted like %v: %v", want, got)
	}
}

// After a restore, the world may use the same id for a different entity. A program detects this by
// Restores.
func TestWorldRestores_DetectsReusedEntity(t *testing.T) {
	w := NewWorld(Options{History: 2})
	w.Create()
	w.Commit()
	cp := w.Checkpoint()
	w.Clear()
	a, noted := w.Create(), w.Restores()
	w.Restore(cp)
	w.Clear()
	if b := w.Create(); a != b || !w.Alive(a) || w.Restores() == noted {
		t.Errorf("%v and %v, which is alive: %v; %d restores, then %d", a, b, w.Alive(a), noted, w.Restores())
	}
	w.Release(cp)
	w.Commit()
	bare := *stateOf(w)
	for name, back := range map[string]func() error{
		"Rewind": func() error { return w.History().Rewind(1) },
		"Seek":   func() error { return w.History().Seek(w.History().Newest()) },
		"Try":    func() error { _ = w.Try(func() error { return errTried }); return nil },
		"Load":   func() error { return w.Raw().Load(&bare) },
	} {
		before := w.Restores()
		if err := back(); err != nil || w.Restores() != before+1 {
			t.Errorf("%s: %d restores after %d, error %v", name, w.Restores(), before, err)
		}
		w.Commit()
	}
	before := w.Restores()
	w.Clear()
	w.Commit()
	_ = w.History().Seek(99)
	_ = w.Try(func() error { return nil })
	w.Release(w.Checkpoint())
	if w.Restores() != before || w.Clone().Restores() != 0 {
		t.Errorf("%d restores after %d, a clone has %d", w.Restores(), before, w.Clone().Restores())
	}
}

func TestCheckpoints_ListsValidCheckpoints(t *testing.T) {
	w, a, b, entities := members(1000, Options{History: 3})
	list := func() (s []string) {
		for cp := range w.Checkpoints() {
			if !cp.Valid() {
				t.Error("a listed checkpoint is not valid")
			}
			s = append(s, fmt.Sprint(cp.Name(), " ", cp.Tick()))
		}
		return s
	}
	same := func(want ...string) {
		t.Helper()
		if got := list(); !slices.Equal(got, want) {
			t.Errorf("the checkpoints are %q, want %q", got, want)
		}
		m, sum := w.MemoryUsage(), int64(0)
		for cp := range w.Checkpoints() {
			sum += cp.Bytes()
		}
		if m.Checkpoints != sum || sum > w.History().Bytes() {
			t.Errorf("MemoryUsage has %d bytes for checkpoints, the checkpoints have %d of %d", m.Checkpoints, sum, w.History().Bytes())
		}
	}
	same()
	first := w.CheckpointAs("first")
	a.MutValues()
	w.Commit()
	second := w.Checkpoint()
	b.Mut(entities[3]).B++
	third := w.CheckpointAs("third")
	same("first 0", " 1", "third 1")
	if big, small, none := first.Bytes(), second.Bytes(), third.Bytes(); big < 1000*8 || small == 0 || small > big || none != 0 {
		t.Errorf("%d, %d and %d bytes", big, small, none)
	}
	w.Release(second)
	same("first 0", "third 1")
	if third.Name() != "third" || second.Name() != "" || second.Tick() != 0 || second.Bytes() != 0 {
		t.Error("a released checkpoint has a name, a tick or bytes")
	}
	// The new checkpoint reuses a frame that belonged to a checkpoint with a name.
	w.Checkpoint()
	w.Restore(first)
	cp := w.Checkpoint()
	same("first 0", " 0")
	w.Release(cp)
	w.Release(first)
	same()
	if (Checkpoint{}).Name() != "" {
		t.Error("the zero Checkpoint has a name")
	}
}

func TestCreateAt_Errors(t *testing.T) {
	w := NewWorld(Options{})
	a, b := w.Create(), w.Create()
	w.Destroy(b)
	b = w.Create()
	w.Destroy(b)
	var created []Entity
	w.OnCreate(func(e Entity) { created = append(created, e) })
	for e, want := range map[Entity]string{
		0:                       "ecs: CreateAt(0v0): generations begin with 1",
		NewEntity(7, 0):         "ecs: CreateAt(7v0): generations begin with 1",
		NewEntity(1<<32-1, 1):   fmt.Sprintf("ecs: CreateAt(4294967295v1): a world has at most %d entity indices", maxIndices),
		a:                       "ecs: CreateAt(0v1): the index is taken: 0v1 is alive",
		NewEntity(a.Index(), 9): "ecs: CreateAt(0v9): the index is taken: 0v1 is alive",
		NewEntity(b.Index(), 1): "ecs: CreateAt(1v1): the name is taken: the index was given out since, last as 1v2",
	} {
		err := w.CreateAt(e)
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if errors.Is(err, ErrTaken) != strings.Contains(want, "taken") {
			t.Errorf("%v is ErrTaken: %t", err, errors.Is(err, ErrTaken))
		}
	}
	if w.Len() != 1 || len(created) != 0 {
		t.Errorf("after errors %d entities are alive, and hooks were called for %v", w.Len(), created)
	}
	for _, e := range []Entity{b, NewEntity(4, 3)} {
		if err := w.CreateAt(e); err != nil || !w.Alive(e) {
			t.Error(err)
		}
	}
	if !slices.Equal(created, []Entity{b, NewEntity(4, 3)}) {
		t.Errorf("hooks were called for %v", created)
	}
	if e := w.Create(); e != NewEntity(3, 2) {
		t.Errorf("Create with a skipped index = %v, want 3v2", e)
	}
}

func keyOfPlain(p plain) int32 { return p.X }

func TestNewIndex_SameFunctionSameIndex(t *testing.T) {
	w, a, _, _ := members(3, Options{})
	x := NewIndex(a, keyOfPlain)
	for range 2 * maxPerLiteral {
		if NewIndex(a, keyOfPlain) != x || NewIndex(a, func(p plain) int32 { return p.Y }) == x {
			t.Fatal("NewIndex returns another index for the same function, or the same for another function")
		}
	}
	if len(a.indexes) != 2 {
		t.Errorf("%d indexes, want 2", len(a.indexes))
	}
	c := w.Clone()
	if y := x.In(c); y == x || y != NewIndex(a.In(c), keyOfPlain) || y != x.In(c) || x.In(w) != x {
		t.Error("In and NewIndex differ")
	}
}

func TestNewIndex_TooManyIndexesPanics(t *testing.T) {
	w, a, _, entities := members(3, Options{})
	by := func(size int32) *Index[plain, int32] {
		return NewIndex(a, func(p plain) int32 { return p.X / size })
	}
	// A program that closes its indexes may create any number of them.
	for size := range int32(10 * maxPerLiteral) {
		x := by(size + 1)
		x.Len(0)
		x.Close()
		x.Close()
	}
	if len(a.indexes) != 0 {
		t.Errorf("%d indexes are left", len(a.indexes))
	}
	a.Mut(entities[0]).X = 3
	if err := w.check(); err != nil {
		t.Error(err)
	}
	mustPanic(t, "ecs: NewIndex of plain: a function literal that captures variables has created 64 indexes", func() {
		for size := range int32(maxPerLiteral + 1) {
			by(size + 1)
		}
	})
	if NewIndex(a, keyOfPlain); len(a.indexes) != maxPerLiteral+1 {
		t.Errorf("%d indexes, want %d", len(a.indexes), maxPerLiteral+1)
	}
}

func TestIndexClose_LaterLookupPanics(t *testing.T) {
	w, a, _, entities := members(300, Options{History: 2})
	x, kept := NewIndex(a, keyOfPlain), NewIndex(a, func(p plain) int32 { return p.Y })
	if x.Len(7) == 0 {
		t.Error("the index is empty")
	}
	w.Commit()
	a.Mut(entities[0]).X++
	before := a.rows.Prot
	x.Close()
	for _, look := range []func(){func() { x.Len(1) }, func() { x.First(1) }, func() { _ = x.Set(entities[0], plain{}) }} {
		mustPanic(t, "ecs: a look-up in an index of plain that is closed", look)
	}
	a.Mut(entities[0]).Y = 1000
	if kept.Len(1000) != 1 || before == 0 {
		t.Error("another index lacks the written value")
	}
	kept.Close()
	if err := w.check(); err != nil {
		t.Error(err)
	}
	if NewIndex(a, keyOfPlain).Len(7) == 0 {
		t.Error("an index that was created again is empty")
	}
	mustPanic(t, "that is closed", func() {
		y := NewIndex(a, func(plain) int { return 1 })
		for range y.Of(1) {
			y.Close()
		}
	})
}

func TestIndexSet_HookChangesKey(t *testing.T) {
	for name, hook := range map[string]func(a *Storage[plain], e, other Entity){
		"own key":   func(a *Storage[plain], e, other Entity) { a.Mut(e).X = 2 },
		"other key": func(a *Storage[plain], e, other Entity) { a.Mut(other).X = 9 },
	} {
		for op, set := range map[string]func(x *Index[plain, int32], e Entity, v plain){
			"Set":     func(x *Index[plain, int32], e Entity, v plain) { _ = x.Set(e, v) },
			"Replace": func(x *Index[plain, int32], e Entity, v plain) { x.Replace(e, v) },
		} {
			for _, added := range []bool{false, true} {
				w, a, _, entities := members(3, Options{})
				x := NewIndex(a, keyOfPlain)
				e := entities[1]
				if added {
					a.Remove(e)
				}
				a.OnSet(func(Entity, plain, plain) { hook(a, e, entities[2]) })
				a.OnAdd(func(Entity, plain) { hook(a, e, entities[2]) })
				mustPanic(t, "ecs: Index."+op+" of plain of 1v1: a hook changed a key, so that 1v1 and 2v1 have the same", func() { set(x, e, plain{X: 9}) })
				if t.Failed() {
					t.Fatal(name, added)
				}
				_ = w
			}
		}
	}
	_, a, _, entities := members(3, Options{})
	x := NewIndex(a, keyOfPlain)
	// The hook changes the key to a new key.
	a.OnSet(func(e Entity, _, _ plain) { a.Mut(e).X *= 100 })
	if err := x.Set(entities[1], plain{X: 5}); err != nil || x.Len(500) != 1 {
		t.Error(err)
	}
}

func TestRelationSet_HookMakesCycle(t *testing.T) {
	w := NewWorld(Options{})
	s := MustRegister[childOf](w)
	r := NewRelation(s, func(c childOf) Entity { return c.Parent }, RelationOptions{Tree: true})
	a, b := w.Create(), w.Create()
	s.OnAdd(func(e Entity, _ childOf) { s.Mut(e).Parent = e })
	mustPanic(t, "ecs: Relation.Set of childOf of 0v1: a hook changed a target", func() { _ = r.Set(a, childOf{Parent: b}) })
}

func parentOf(c childOf) Entity { return c.Parent }

func TestNewRelation_ConflictingPolicyPanics(t *testing.T) {
	type edge struct{ From, To Entity }
	w := NewWorld(Options{})
	s := MustRegister[childOf](w)
	r := NewRelation(s, parentOf, RelationOptions{})
	if NewRelation(s, parentOf, RelationOptions{}) != r || NewRelation(s, parentOf, RelationOptions{Tree: true}) == r {
		t.Error("NewRelation does not identify a relation by its function and options")
	}
	text := "ecs: NewRelation of childOf with the policy Detach: a relation that finds the same targets has the policy Cascade"
	mustPanic(t, text, func() { NewRelation(s, parentOf, RelationOptions{Policy: Detach}) })
	mustPanic(t, text, func() {
		NewRelation(s, func(c childOf) Entity { return c.Parent }, RelationOptions{Policy: Detach})
	})
	// These two relations find different targets, so their policies may differ.
	edges := MustRegister[edge](w)
	NewRelation(edges, func(e edge) Entity { return e.From }, RelationOptions{})
	NewRelation(edges, func(e edge) Entity { return e.To }, RelationOptions{Policy: Refuse})
	// To find equal target functions, NewRelation calls them with a sample edge that has both ends.
	// The two functions below return a target only for an edge with one end. So both return None
	// for the sample, and count as different.
	for from, policy := range map[bool]Policy{true: Detach, false: Refuse} {
		NewRelation(edges, func(e edge) Entity {
			if from && e.To == 0 {
				return e.From
			} else if !from && e.From == 0 {
				return e.To
			}
			return 0
		}, RelationOptions{Policy: policy})
	}
	NewRelation(s, func(childOf) Entity { panic("no target") }, RelationOptions{Policy: Detach})
}

func TestRelationClose_EndsPolicy(t *testing.T) {
	w := NewWorld(Options{})
	s := MustRegister[childOf](w)
	r, tree := NewRelation(s, parentOf, RelationOptions{}), NewRelation(s, parentOf, RelationOptions{Tree: true})
	parent, child := w.Create(), w.Create()
	s.Set(child, childOf{Parent: parent})
	mustPanic(t, "that a Relation uses; close the relation", NewIndex(s, parentOf).Close)
	r.Close()
	if tree.Len(parent) != 1 {
		t.Error("the other relation lost its sources")
	}
	tree.Close()
	w.Destroy(parent)
	if !w.Alive(child) {
		t.Error("the policy of a closed relation still applies")
	}
	mustPanic(t, "that is closed", func() { tree.Len(parent) })
	NewRelation(s, parentOf, RelationOptions{Policy: Detach})
}
