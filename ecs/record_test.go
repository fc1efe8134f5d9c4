package ecs

import (
	"slices"
	"testing"

	"github.com/stet-ecs/stet/ecs/raw"
)

func TestMarksNameTheTicksThatAreHeld(t *testing.T) {
	w := NewWorld(Options{History: 2})
	var marks []uint64
	next := uint64(100)
	r := recorderFunc(func(c *raw.Change) uint64 {
		marks = append(marks, c.Parent)
		if c.World != w.Raw() {
			t.Error("World() is another world")
		}
		next++
		return next
	})
	if err := w.Raw().Attach(r, 100); err != nil {
		t.Fatal(err)
	}
	commit := func(parent, oldest uint64) {
		t.Helper()
		w.Commit()
		if got := marks[len(marks)-1]; got != parent || w.Raw().Seq() != next || w.Raw().OldestSeq() != oldest {
			t.Errorf("parent %d, mark %d, oldest %d, want %d, %d, %d", got, w.Raw().Seq(), w.Raw().OldestSeq(), parent, next, oldest)
		}
	}
	commit(100, 100)
	commit(101, 100)
	commit(102, 101)
	if err := w.History().Rewind(2); err != nil {
		t.Fatal(err)
	}
	if w.Raw().Seq() != 101 {
		t.Errorf("Seq() = %d after a rewind, want 101", w.Raw().Seq())
	}
	if err := w.History().Seek(2); err != nil || w.Raw().Seq() != 102 {
		t.Errorf("Seq() = %d after going forward (%v), want 102", w.Raw().Seq(), err)
	}
	commit(102, 101) // A new branch.
	cp := w.Checkpoint()
	commit(104, 102)
	commit(105, 104)
	w.Restore(cp)
	commit(104, 104)
	if plainWorld := NewWorld(Options{}); plainWorld.Raw().Seq() != 0 || plainWorld.Raw().OldestSeq() != 0 {
		t.Error("a world without ticks has marks")
	}
}

type recorderFunc func(c *raw.Change) uint64

func (f recorderFunc) Record(c *raw.Change) uint64 { return f(c) }

func TestDirtyTellsWhetherSomethingIsToBeCommitted(t *testing.T) {
	w, a, _, entities := members(3, Options{History: 1})
	steps := []struct {
		name string
		do   func()
		want bool
	}{
		{"commit", w.Commit, false},
		{"a write", func() { a.Mut(entities[0]).X++ }, true},
		{"commit", w.Commit, false},
		{"a checkpoint", func() { w.Release(w.Checkpoint()) }, false},
		{"an entity", func() { w.Create() }, true},
		{"throwing away", func() { _ = w.History().Rewind(0) }, false},
		{"a try that fails", func() { _ = w.Try(func() error { w.Create(); return errTried }) }, false},
		{"a try", func() { _ = w.Try(func() error { w.Create(); return nil }) }, true},
		{"rewind", func() { _ = w.History().Rewind(1) }, false},
	}
	for _, step := range steps {
		if step.do(); w.Raw().Dirty() != step.want {
			t.Errorf("after %s: Dirty() = %v, want %v", step.name, w.Raw().Dirty(), step.want)
		}
	}
}

func TestStoragesComeInTheOrderOfRegistration(t *testing.T) {
	w := NewWorld(Options{})
	r := MustRegisterResource(w, word{"x"})
	p := MustRegister[plain](w)
	l := MustRegister(w, Component[label]{NoRewind: true, NoPersist: true})
	if got, want := w.Storages(), []AnyStorage{p, l, r}; !slices.Equal(got, want) {
		t.Errorf("Storages() = %v, want %v", got, want)
	}
	if !r.Raw().IsResource() || p.Raw().IsResource() || !p.Raw().Rewinds() || l.Raw().Rewinds() || !p.Raw().Persistent() || l.Raw().Persistent() || r.Len() != 1 || r.Entities() != nil {
		t.Error("a storage says something wrong of itself")
	}
}

func TestDetachingEndsTheRecord(t *testing.T) {
	w := NewWorld(Options{})
	n := 0
	if err := w.Raw().Attach(recorderFunc(func(*raw.Change) uint64 { n++; return 0 }), 0); err != nil {
		t.Fatal(err)
	}
	w.Commit()
	if err := w.Raw().Attach(nil, 0); err != nil {
		t.Fatal(err)
	}
	w.Create()
	w.Commit()
	if n != 1 || len(w.frames) != 0 || w.History().Bytes() != 0 {
		t.Errorf("%d ticks recorded, %d frames and %d bytes held, want 1, 0, 0", n, len(w.frames), w.History().Bytes())
	}
}

// Operations are told once. The history does not keep them, whatever it holds.
func TestOperationsThatWereToldAreForgotten(t *testing.T) {
	w := NewWorld(Options{History: 100})
	told := 0
	count := recorderFunc(func(c *raw.Change) uint64 {
		told += len(c.Ops)
		return 0
	})
	if err := w.Raw().Attach(count, 0); err != nil {
		t.Fatal(err)
	}
	w.Create()
	cp := w.Checkpoint()
	w.Create()
	w.Commit()
	w.Commit()
	w.Restore(cp)
	w.Create()
	w.Create()
	w.Commit() // Again the first operation, and the two new ones.
	w.Release(cp)
	for range 50 {
		w.Create()
		w.Commit()
	}
	if told != 2+3+50 {
		t.Errorf("%d operations were told, want 55", told)
	}
	kept := 0
	for i := range w.frames {
		kept += len(w.frames[i].ops)
	}
	if kept > 1 {
		t.Errorf("%d operations are kept, want that before the checkpoint at most", kept)
	}
}

// The log of a frame that is only recorded is compacted too, and still names all
// that differs.
func TestALongTickThatIsOnlyRecordedStaysShort(t *testing.T) {
	t.Run("its log has no values", func(t *testing.T) { longRecordedTick(t, true) })
	t.Run("its log was that of a checkpoint", func(t *testing.T) { longRecordedTick(t, false) })
}

func longRecordedTick(t *testing.T, bare bool) {
	w, a, _, entities := members(2000, Options{})
	checkAtEnd(t, w)
	model := newRecorderModel(w)
	model.expect(&naiveState{})
	if err := w.Raw().Attach(model, 0); err != nil {
		t.Fatal(err)
	}
	if bare { // Written before the first checkpoint of the tick.
		a.Remove(entities[0])
		a.Set(entities[0], plain{})
	}
	for i := range 20_000 {
		_ = w.Try(func() error {
			a.Mut(entities[i*7%2000]).X++
			if i%5 == 0 {
				a.Remove(entities[i*3%2000])
				a.Set(entities[i*3%2000], plain{})
			}
			return nil
		})
	}
	if rows := saved(a)[2]; rows > 2*2000+1024+2 {
		t.Errorf("%d rows are noted of 2000", rows)
	}
	var err error
	func() {
		defer catch(&err)
		w.Commit()
	}()
	if err != nil {
		t.Error(err)
	}
}
