package ecs

import (
	"fmt"
	"slices"
	"testing"
)

func TestQueriesFindWhatChangedSinceTheCommit(t *testing.T) {
	w, a, b, entities := members(200, Options{History: 2})
	added := NewQuery1(Read(a)).With(Added(a))
	changed := NewQuery2(Read(a), Write(b)).With(Changed(a))
	removed := NewQuery1(Read(a)).With(Removed(b))
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
	b.Remove(entities[7])
	look("in a tick", []Entity{young}, []Entity{entities[3], entities[64], entities[199]}, []Entity{entities[7]})
	for e, row := range changed.All() {
		row.B.B = int64(e.Index())
		a.Mut(entities[9]).X++ // Comes too late for this loop.
	}
	look("behind a loop", []Entity{young}, []Entity{entities[3], entities[9], entities[64], entities[199]}, []Entity{entities[7]})
	if changed.Has(entities[5]) || !changed.Has(entities[64]) {
		t.Error("Has does not ask the filter")
	}
	w.Restore(cp)
	look("after a restore", nil, nil, nil)
	a.Mut(entities[1]).X++
	w.Commit()
	look("after the next commit", nil, nil, nil)
}

func ExampleChanged() {
	type Health struct{ Points int }
	w := NewWorld(Options{})
	health := MustRegister[Health](w)
	hurt := NewQuery1(Read(health)).With(Changed(health))
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
