package ecs

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stet-ecs/stet/ecs/raw"
)

func TestRecorder_ParentIsReturnedNumber(t *testing.T) {
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
		first, newest := w.Raw().Held(r)
		if got := marks[len(marks)-1]; got != parent || newest != next || w.Raw().Seq() != next || first != oldest {
			t.Errorf("parent %d, mark %d and %d, oldest %d, want %d, %d, %d", got, newest, w.Raw().Seq(), first, parent, next, oldest)
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
	commit(102, 101) // This commit begins a new branch.
	cp := w.Checkpoint()
	commit(104, 102)
	commit(105, 104)
	w.Restore(cp)
	commit(104, 104)
	plainWorld := NewWorld(Options{})
	if oldest, newest := plainWorld.Raw().Held(r); plainWorld.Raw().Seq()+oldest+newest != 0 {
		t.Error("a world without ticks has marks")
	}
}

// recorderFunc returns a recorder whose Record calls f.
func recorderFunc(f func(c *raw.Change) uint64) raw.Recorder { return &calledRecorder{f} }

type calledRecorder struct{ f func(c *raw.Change) uint64 }

func (r *calledRecorder) Record(c *raw.Change) uint64 { return r.f(c) }

func TestRawDirty_TrueAfterChange(t *testing.T) {
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

func TestStorages_ComponentsBeforeResources(t *testing.T) {
	w := NewWorld(Options{})
	r := Must(RegisterResource(w, word{"x"}))
	p := MustRegister[plain](w)
	l := MustRegister(w, Component[label]{NoRewind: true, NoPersist: true})
	if got, want := w.Storages(), []AnyStorage{p, l, r}; !slices.Equal(got, want) {
		t.Errorf("Storages() = %v, want %v", got, want)
	}
	if !r.Raw().IsResource() || p.Raw().IsResource() || !p.Raw().Rewinds() || l.Raw().Rewinds() || !p.Raw().Persistent() || l.Raw().Persistent() || r.Len() != 1 || r.Entities() != nil {
		t.Error("a storage returns wrong properties")
	}
}

func TestDetach_StopsRecording(t *testing.T) {
	w := NewWorld(Options{})
	n := 0
	r := recorderFunc(func(*raw.Change) uint64 { n++; return 0 })
	if err := w.Raw().Attach(r, 0); err != nil {
		t.Fatal(err)
	}
	w.Commit()
	if err := w.Raw().Detach(r); err != nil {
		t.Fatal(err)
	}
	w.Create()
	w.Commit()
	if n != 1 || len(w.frames) != 0 || w.History().Bytes() != 0 {
		t.Errorf("%d ticks recorded, %d frames and %d bytes retained, want 1, 0, 0", n, len(w.frames), w.History().Bytes())
	}
}

// Each operation is recorded once. The history does not store operations.
func TestRecorder_RecordsOperationsOnce(t *testing.T) {
	w := NewWorld(Options{History: 100})
	recorded := 0
	count := recorderFunc(func(c *raw.Change) uint64 {
		recorded += len(c.Ops)
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
	// This record has three operations: again the one before the checkpoint, and the two new ones.
	w.Commit()
	w.Release(cp)
	for range 50 {
		w.Create()
		w.Commit()
	}
	if recorded != 2+3+50 {
		t.Errorf("%d operations were recorded, want 55", recorded)
	}
	kept := 0
	for i := range w.frames {
		kept += len(w.frames[i].ops)
	}
	if kept > 1 {
		t.Errorf("%d operations are stored, want at most the one before the checkpoint", kept)
	}
}

// If a long tick saves the same rows many times, its log is compacted. This also happens if only a
// recorder needs the log. The log must still have all changed rows afterwards.
func TestRecorder_CompactsLogOfLongTick(t *testing.T) {
	t.Run("its log has no values", func(t *testing.T) { longRecordedTick(t, true) })
	t.Run("its log was that of a checkpoint", func(t *testing.T) { longRecordedTick(t, false) })
}

func longRecordedTick(t *testing.T, bare bool) {
	w, a, _, entities := members(2000, Options{})
	checkAtEnd(t, w)
	model := newRecorderModel(w)
	model.expect(&oracleState{})
	if err := w.Raw().Attach(model, 0); err != nil {
		t.Fatal(err)
	}
	if bare { // This write is before the first checkpoint of the tick.
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
		t.Errorf("%d of 2000 rows are recorded", rows)
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

// Several recorders assign different numbers to the same tick. On every branch, each recorder must
// get its own number as the Parent. This must hold even if other recorders are attached and
// detached.
func TestRecorder_EachGetsItsOwnParent(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 91))
		w := NewWorld(Options{History: 1 + rng.IntN(6)})
		state, last := 0, 0 // The numbers of the current state and of the newest state.
		type numbered struct {
			raw.Recorder
			numbers map[int]uint64 // For each state, its number in the recorder.
		}
		var all []*numbered
		// For each tick, the number of its state. The map has the ticks up to the current state,
		// and the undone ticks after it.
		stateAt := map[uint64]int{}
		attach := func() {
			r := &numbered{numbers: map[int]uint64{}}
			r.Recorder = recorderFunc(func(c *raw.Change) uint64 {
				if want, ok := r.numbers[state]; !ok || c.Parent != want {
					t.Fatalf("seed %d: parent %d, want %d", seed, c.Parent, want)
				}
				n := rng.Uint64()
				r.numbers[last+1] = n
				return n
			})
			n := rng.Uint64()
			if err := w.Raw().Attach(r, n); err != nil {
				t.Fatal(err)
			}
			r.numbers[state] = n
			all = append(all, r)
			// Attaching or detaching restarts the history.
			stateAt = map[uint64]int{w.Tick(): state}
		}
		for range 60 {
			switch k := rng.IntN(10); {
			case k < 5:
				w.Create()
				if len(all) > 0 {
					if err := w.Raw().Attach(&numbered{}, 1); !errors.Is(err, raw.ErrDirty) {
						t.Fatalf("seed %d: Attach in a dirty world: %v", seed, err)
					}
				}
				w.Commit()
				last++
				state = last
				stateAt[w.Tick()] = state
			case k < 7:
				oldest := w.History().Oldest()
				tick := oldest + rng.Uint64N(w.History().Newest()-oldest+1)
				if err := w.History().Seek(tick); err != nil {
					t.Fatal(err)
				}
				state = stateAt[tick]
			case k < 8 && len(all) < 4:
				attach()
			case k < 9 && len(all) > 0:
				i := rng.IntN(len(all))
				if err := w.Raw().Detach(all[i]); err != nil {
					t.Fatal(err)
				}
				if all = slices.Delete(all, i, i+1); len(all) == 0 {
					stateAt = map[uint64]int{w.Tick(): state}
				}
			}
			for _, r := range all {
				oldest, newest := w.Raw().Held(r)
				if newest != r.numbers[state] || oldest != r.numbers[stateAt[w.History().Oldest()]] {
					t.Fatalf("seed %d: Held() = %d, %d, want %d, %d", seed, oldest, newest, r.numbers[stateAt[w.History().Oldest()]], r.numbers[state])
				}
			}
			if len(all) > 0 && w.Raw().Seq() != all[0].numbers[state] {
				t.Fatalf("seed %d: Seq() is not the number of the first recorder", seed)
			}
			if err := w.Raw().Load(stateOf(w)); len(all) > 0 && !errors.Is(err, raw.ErrAttached) {
				t.Fatalf("seed %d: loaded: %v", seed, err)
			} else if len(all) == 0 {
				stateAt = map[uint64]int{w.Tick(): state}
			}
		}
	}
}

// seqs has one number per recorder for a tick. without removes the number of one of the recorders.
func TestSeqsWithout_RemovesOneRecorder(t *testing.T) {
	three := seqs{}.with(0, 7).with(1, 8).with(2, 9)
	for k, want := range [][]uint64{{8, 9, 0}, {7, 9, 0}, {7, 8, 0}, {7, 8, 9}} {
		n := three.without(k)
		if got := []uint64{n.of(0), n.of(1), n.of(2)}; !slices.Equal(got, want) {
			t.Errorf("without recorder %d: %v, want %v", k, got, want)
		}
	}
	if n := (seqs{first: 7}).without(0); n.first != 0 || len(n.others) != 0 {
		t.Errorf("without the only recorder: %v", n)
	}
	if three.of(0) != 7 || three.of(1) != 8 || three.of(2) != 9 {
		t.Errorf("without changed %v", three)
	}
}
