package ecs

import (
	"slices"
	"testing"
)

type tie struct{ To Entity }

func tieTo(c tie) Entity { return c.To }

// A loop can start from the zero Entity or from a dead entity. It also visits a source that has the
// same index as this entity.
func TestDescendants_OfZeroOrDeadEntity(t *testing.T) {
	w := NewWorld(Options{})
	ties := MustRegister[tie](w)
	r := NewRelation(ties, tieTo, RelationOptions{Policy: Detach})
	dead := w.Create()
	w.Destroy(dead)
	// Three entities have index 0: the zero Entity, dead and e[0].
	e := w.CreateN(nil, 4)
	if e[0].Index() != 0 || dead.Index() != 0 {
		t.Fatalf("%v, %v", e[0], dead)
	}
	for name, from := range map[string]Entity{"zero": 0, "dead": dead} {
		ties.Set(e[0], tie{from})
		ties.Set(e[1], tie{e[0]})
		ties.Set(e[2], tie{from})
		ties.Set(e[3], tie{e[2]})
		if got, want := slices.Collect(r.Descendants(from)), []Entity{e[0], e[1], e[2], e[3]}; !slices.Equal(got, want) {
			t.Errorf("%s: Descendants = %v, want %v", name, got, want)
		}
		if got, want := r.Subtree(from), []Entity{from, e[0], e[1], e[2], e[3]}; !slices.Equal(got, want) {
			t.Errorf("%s: Subtree = %v, want %v", name, got, want)
		}
		var levels []Entity
		for depth, e := range r.Levels(from) {
			levels = append(levels, NewEntity(e.Index(), uint32(depth)))
		}
		if want := []Entity{NewEntity(0, 1), NewEntity(2, 1), NewEntity(1, 2), NewEntity(3, 2)}; !slices.Equal(levels, want) {
			t.Errorf("%s: Levels = %v, want %v", name, levels, want)
		}
	}
}

// Ancestors visits each entity once, whatever the lengths of the path and the cycle.
func TestAncestors_VisitsEachEntityOnce(t *testing.T) {
	for tail := range 70 {
		for _, cycle := range []int{0, 1, 2, 3, 7, 64, 65} {
			w := NewWorld(Options{})
			ties := MustRegister[tie](w)
			r := NewRelation(ties, tieTo, RelationOptions{Policy: Detach})
			entities := w.CreateN(nil, 1+tail+cycle)
			for i, e := range entities[:len(entities)-1] {
				ties.Set(e, tie{entities[i+1]})
			}
			want := slices.Clone(entities[1:])
			if cycle > 0 {
				ties.Set(entities[len(entities)-1], tie{entities[1+tail]})
				// The path to the cycle is empty, so the first entity is in the cycle.
				if tail == 0 {
					ties.Set(entities[len(entities)-1], tie{entities[0]})
					want = append(want, entities[0])
				}
			}
			var got []Entity
			for a := range r.Ancestors(entities[0]) {
				if got = append(got, a); len(got) > len(want) {
					break
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("tail %d, cycle %d: %d ancestors %v, want %d", tail, cycle, len(got), got, len(want))
			}
		}
	}
}

// Ancestors ends with a dead ancestor, even if another entity has its index.
func TestAncestors_EndsAtDeadEntity(t *testing.T) {
	for _, n := range []int{2, 16, 17, 18, 40} {
		w := NewWorld(Options{})
		ties := MustRegister[tie](w)
		var gone []Entity
		for _, e := range w.CreateN(nil, n) {
			gone = append(gone, e)
			w.Destroy(e)
		}
		for _, dead := range gone {
			e := w.CreateN(nil, n)
			r := NewRelation(ties, tieTo, RelationOptions{Policy: Detach})
			for i := range e[1:] {
				ties.Set(e[i], tie{e[i+1]})
			}
			ties.Set(e[n-1], tie{dead})
			if got, want := slices.Collect(r.Ancestors(e[0])), append(slices.Clone(e[1:]), dead); !slices.Equal(got, want) {
				t.Errorf("Ancestors = %v, want %v", got, want)
			}
			w.DestroyAll(e)
			r.Close()
		}
	}
}
