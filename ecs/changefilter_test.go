package ecs

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestQueriesFindWhatChangedSinceTheCommit(t *testing.T) {
	w, a, b, entities := members(200, Options{History: 2})
	added := NewQuery1(Read(a)).With(a.Added())
	changed := NewQuery2(Read(a), Write(b)).With(a.Changed())
	removed := NewQuery1(Read(a)).With(b.Removed())
	look := func(when string, wantAdded, wantChanged, wantRemoved []Entity) {
		t.Helper()
		for i, q := range []AnyQuery{added, changed, removed} {
			want := [][]Entity{wantAdded, wantChanged, wantRemoved}[i]
			if got := q.AppendEntities(nil); !slices.Equal(got, want) || q.Count() != len(want) {
				t.Errorf("%s: query %d finds %v, want %v", when, i, got, want)
			}
		}
	}
	w.Commit()
	look("after a commit", nil, nil, nil)
	cp := w.Checkpoint()
	young := w.Create()
	a.Set(young, plain{1, 1})
	for _, i := range []int{3, 64, 199} {
		a.Mut(entities[i]).X += 7
	}
	a.Mut(entities[5]).X += 0 // Written, and the same.
	b.Remove(entities[7])     // Now b drives, and its last row lies here.
	look("in a tick", []Entity{young}, []Entity{entities[3], entities[199], entities[64]}, []Entity{entities[7]})
	for e, row := range changed.All() {
		row.B.B = int64(e.Index())
		a.Mut(entities[9]).X++ // Comes too late for this loop.
	}
	look("behind a loop", []Entity{young}, []Entity{entities[3], entities[199], entities[9], entities[64]}, []Entity{entities[7]})
	if changed.Has(entities[5]) || !changed.Has(entities[64]) {
		t.Error("Has does not ask the filter")
	}
	w.Restore(cp)
	look("after a restore", nil, nil, nil)
	a.Mut(entities[1]).X++
	w.Commit()
	look("after the next commit", nil, nil, nil)
}

func TestChangeFiltersCompareWithEarlierTicks(t *testing.T) {
	w, a, _, entities := members(10, Options{History: 2})
	w.Commit()
	since := a.Changed()
	q := NewQuery1(Read(a)).With(since)
	found := func(want ...Entity) {
		t.Helper()
		if got := q.AppendEntities(nil); !slices.Equal(got, want) {
			t.Errorf("found %v, want %v", got, want)
		}
	}
	for i := range 2 {
		a.Mut(entities[i]).X++
		w.Commit()
	}
	found()
	if err := since.Since(1); err != nil {
		t.Fatal(err)
	}
	found(entities[:2]...)
	if err := since.Since(2); err != nil {
		t.Fatal(err)
	}
	a.Mut(entities[5]).X++
	found(entities[1], entities[5])
	if err := since.Since(99); !errors.Is(err, ErrNotHeld) {
		t.Errorf("Since(99) = %v", err)
	}
	found(entities[1], entities[5])
	w.Commit()
	w.Commit()
	w.Commit()
	mustPanic(t, "tick not held", func() { q.Count() })
	if err := since.Since(w.Tick()); err != nil {
		t.Fatal(err)
	}
	found()
}

func ExampleStorage_Changed() {
	type Health struct{ Points int }
	w := NewWorld(Options{})
	health := MustRegister[Health](w)
	hurt := NewQuery1(Read(health)).With(health.Changed())
	a, b := w.Create(), w.Create()
	health.Set(a, Health{10})
	health.Set(b, Health{10})
	w.Commit()
	health.Mut(b).Points--
	for e, h := range hurt.All() {
		fmt.Println(e, *h)
	}
	// Output: 1v1 {9}
}
