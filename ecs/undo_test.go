package ecs

import (
	"testing"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/raw"
)

// saved returns the number of rows in the logs of s: entities, sparse entries, and values.
func saved(s AnyStorage) (rows [3]int) {
	copy(rows[:], s.tracked().SavedRows())
	return rows
}

func TestUndo_RemovesAddedRows(t *testing.T) {
	w, a, b, _ := members(100, Options{})
	checkAtEnd(t, w)
	before := w.Digest()
	cp := w.Checkpoint()
	for range 10_000 { // The new entities need new sparse pages too.
		e := w.Create()
		a.Set(e, plain{1, 1})
		b.Set(e, padded{})
		a.Mut(e).X++
	}
	if bytes := w.History().Bytes(); bytes != 0 {
		t.Errorf("Bytes() = %d after adding, want 0", bytes)
	}
	w.Restore(cp)
	w.Clear()
	if bytes := w.History().Bytes(); bytes != 0 {
		t.Errorf("Bytes() = %d after clearing, want 0", bytes)
	}
	w.Restore(cp)
	if w.Digest() != before {
		t.Error("Restore is not exact")
	}
}

func TestUndo_RowsSavedOnce(t *testing.T) {
	w, a, _, entities := members(1000, Options{})
	checkAtEnd(t, w)
	q := NewQuery1(Write(a))
	w.Checkpoint()
	for range 3 {
		for i := 0; i < 1000; i += 3 {
			a.Mut(entities[i]).X++
		}
		for range q.All() {
		}
		for range q.Runs() {
		}
	}
	if got, want := saved(a), [3]int{0, 0, 1000}; got != want {
		t.Errorf("%v rows are saved, want %v", got, want)
	}
}

// If only a recorder needs the frames, rows are marked but their values are not saved. Sparse
// entries are not even marked, because they can be derived from the entities.
func TestUndo_RecorderWithoutHistory(t *testing.T) {
	w, a, _, entities := members(10_000, Options{})
	checkAtEnd(t, w)
	if err := w.Raw().Attach(recorderFunc(func(*raw.Change) uint64 { return 0 }), 0); err != nil {
		t.Fatal(err)
	}
	w.Commit()
	for _, p := range NewQuery1(Write(a)).All() {
		p.X++
	}
	for _, e := range entities[:1000] {
		a.Remove(e)
		a.Set(e, plain{})
	}
	if bytes := w.History().Bytes(); bytes > 20_000 {
		t.Errorf("Bytes() = %d", bytes)
	}
	if got := saved(a); got[0] == 0 || got[1] != 0 || got[2] != 10_000 {
		t.Errorf("%v rows are marked, want some entities, no sparse entries, all values", got)
	}
}

func TestUndo_LogCompacted(t *testing.T) {
	const n = 5000
	w, a, _, entities := members(n, Options{})
	checkAtEnd(t, w)
	w.Checkpoint()
	for range NewQuery1(Write(a)).All() {
	}
	largest, compactions, size := 0, 0, n
	for i := range 4 * n {
		w.Release(w.Checkpoint()) // The next write saves its row again in a new frame.
		a.Mut(entities[i%n]).X++
		next := saved(a)[2]
		if next < size {
			compactions++
		}
		size, largest = next, max(largest, next)
	}
	if largest > 2*n+1024+1 || compactions < 1 || compactions > 4 {
		t.Errorf("a log of %d rows grew to %d and was compacted %d times", n, largest, compactions)
	}
}

// A tick is undone, other ticks are evicted, and the tick is redone. Then rows must be protected
// only for the ticks that are still retained.
func TestUndo_RedoAfterEviction(t *testing.T) {
	w, a, _, entities := members(100, Options{History: 5})
	w.Commit()
	for _, e := range entities[1:] {
		a.Remove(e)
	}
	w.Commit()
	a.Mut(entities[0]).X++
	w.Commit()
	after := w.Digest()
	if err := w.History().Rewind(1); err != nil {
		t.Fatal(err)
	}
	w.options.HistoryBytes = 1
	w.Release(w.Checkpoint())
	if w.History().Oldest() != 2 {
		t.Fatalf("Oldest() = %d, want 2", w.History().Oldest())
	}
	if err := w.History().Seek(3); err != nil || w.Digest() != after {
		t.Errorf("Seek(3) = %v", err)
	}
	if err := w.check(); err != nil {
		t.Error(err)
	}
}

// A run of saved sparse entries must end at the end of its page.
func TestUndo_SparseEntriesOfTwoPages(t *testing.T) {
	w, a, _, entities := members(2*track.PageSize, Options{History: 1})
	checkAtEnd(t, w)
	border := []Entity{entities[track.PageSize], entities[track.PageSize-1]}
	// Put these two entities into the last two rows. Their sparse entries are in different pages.
	// Each removal below moves the entity in the last row, the lower index first.
	for _, e := range border {
		a.Remove(e)
	}
	for _, e := range border {
		a.Set(e, plain{})
	}
	w.Commit()
	before := w.Digest()
	a.Remove(entities[0])
	a.Remove(entities[1])
	w.Commit()
	after := w.Digest()
	for _, step := range []struct {
		tick uint64
		want Digest
	}{{1, before}, {2, after}, {1, before}} {
		if err := w.History().Seek(step.tick); err != nil {
			t.Fatal(err)
		}
		if w.Digest() != step.want {
			t.Errorf("tick %d is not exact", step.tick)
		}
		if err := w.check(); err != nil {
			t.Error(err)
		}
	}
	cp := w.Checkpoint()
	a.Remove(entities[0])
	a.Remove(entities[1])
	w.Restore(cp)
	if w.Digest() != before {
		t.Error("Restore is not exact")
	}
}

func TestUndo_RevertsWritesThroughRuns(t *testing.T) {
	w := NewWorld(Options{History: 1})
	checkAtEnd(t, w)
	l := MustRegister(w, Component[list]{Clone: cloneList})
	for i := range 100 {
		l.Set(w.Create(), list{[]int{i}})
	}
	w.Commit()
	before := w.Digest()
	for run := range NewQuery1(Write(l)).Runs() {
		for i := range run.A {
			run.A[i].Items[0] = -1
		}
	}
	if err := w.History().Rewind(0); err != nil {
		t.Fatal(err)
	}
	if w.Digest() != before {
		t.Error("Rewind did not revert the writes in place")
	}
}

// The body removes and adds a component at every row. The loop must look up only the changed
// entities, and not search the whole chunk of rows again.
func TestLoop_ChangesEveryRow(t *testing.T) {
	w, a, b, _ := members(64, Options{})
	q := NewQuery2(Read(a), Read(b))
	q.Count()
	found := &q.join.caches[0]
	epoch, n := found.epoch, 0
	for e := range q.All() {
		if n++; n <= 64 {
			b.Remove(e)
			b.Set(e, padded{})
		}
		if found.epoch != epoch {
			t.Fatalf("row %d: the whole chunk was searched again", n)
		}
	}
	if err := w.check(); err != nil || n != 64 {
		t.Errorf("%d rows were visited, want 64 (%v)", n, err)
	}
}

// Saving a range of rows works, whatever rows of the same blocks are already saved.
func TestUndo_OverlappingRanges(t *testing.T) {
	w, a, _, entities := members(300, Options{})
	checkAtEnd(t, w)
	before := w.Digest()
	cp := w.Checkpoint()
	written := func(lo, hi int) {
		a.Mut(entities[lo]) // Mut opens the tracker of the storage.
		a.data.TouchRange(lo, hi)
		for i := lo; i < hi; i++ {
			a.data.Live[i].X = -1
		}
	}
	borders := []int{0, 1, 10, 63, 64, 65, 127, 128, 190, 256, 299, 300}
	for _, lo := range borders {
		for _, hi := range borders {
			for _, first := range [][2]int{{0, 64}, {64, 128}, {0, 1}, {63, 64}, {5, 9}, {100, 200}, {0, 300}} {
				if lo >= hi {
					continue
				}
				written(first[0], first[1])
				written(lo, hi)
				if got, limit := saved(a)[2], first[1]-first[0]+hi-lo; got > limit {
					t.Fatalf("[%d, %d) after %v: %d rows are saved, want at most %d", lo, hi, first, got, limit)
				}
				w.Restore(cp)
				if w.Digest() != before {
					t.Fatalf("[%d, %d) after %v is not restored", lo, hi, first)
				}
			}
		}
	}
}
