package ecs

import (
	"fmt"
	"testing"
)

func TestMutValues_RestoreUndoesWrites(t *testing.T) {
	for _, k := range []Kind{Sparse, Indexed, Hashed, Ordered} {
		w := NewWorld(Options{History: 2})
		checkAtEnd(t, w)
		s := MustRegister(w, Component[list]{Kind: k, Clone: cloneList})
		for i, e := range w.CreateN(nil, 200) {
			if i%3 > 0 {
				s.Set(e, list{[]int{i}})
			}
		}
		w.Commit()
		before := w.Digest()
		cp := w.Checkpoint()
		for i, v := range s.MutValues() {
			if s.Entities()[i] != Vacant {
				// Writes an element of the slice. The saved row must not share this element.
				v.Items[0] = -1
			}
		}
		if got := len(s.MutValues()); got != s.Raw().Rows() {
			t.Errorf("%v: %d values of %d rows", k, got, s.Raw().Rows())
		}
		if w.Digest() == before {
			t.Errorf("%v: nothing was written", k)
		}
		w.Restore(cp)
		if w.Digest() != before {
			t.Errorf("%v: the restored world differs", k)
		}
	}
}

func ExampleStorage_MutValues() {
	type Heat struct{ Degrees float64 }
	w := NewWorld(Options{})
	heat := MustRegister[Heat](w)
	heat.SetAll(w.CreateN(nil, 3), Heat{20})
	cp := w.Checkpoint()
	values := heat.MutValues()
	for i := range values {
		values[i].Degrees += float64(i)
	}
	fmt.Println(heat.Values())
	w.Restore(cp)
	fmt.Println(heat.Values())
	// Output:
	// [{20} {21} {22}]
	// [{20} {20} {20}]
}
