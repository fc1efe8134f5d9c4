//go:build stetdebug

package ecs

import "testing"

// In a debug build, Commit panics if a component was written through a stale pointer. A pointer is
// stale after entities were added, removed or moved.
func TestDebugPointer_StaleWritePanics(t *testing.T) {
	for name, change := range map[string]func(w *World, a *Storage[plain], e Entity){
		"grow":    func(w *World, a *Storage[plain], _ Entity) { a.Reserve(1000) },
		"append":  func(w *World, a *Storage[plain], _ Entity) { a.Set(w.Create(), plain{}) },
		"remove":  func(w *World, a *Storage[plain], e Entity) { a.Remove(e) },
		"destroy": func(w *World, _ *Storage[plain], e Entity) { w.Destroy(e) },
		"clear":   func(w *World, a *Storage[plain], _ Entity) { a.Clear() },
		"batch":   func(w *World, a *Storage[plain], _ Entity) { a.SetAll(w.CreateN(nil, 3), plain{}) },
		"tail":    func(w *World, a *Storage[plain], _ Entity) { a.RemoveAll(a.Entities()[8:]) },
		"bundle":  func(w *World, a *Storage[plain], _ Entity) { NewBundle1(a).Create(plain{}) },
		"bundles": func(w *World, a *Storage[plain], _ Entity) { NewBundle1(a).CreateN(nil, 3, plain{}) },
		"sort": func(w *World, a *Storage[plain], _ Entity) {
			a.SortFunc(func(a, b plain) int { return int(b.X - a.X) })
		},
	} {
		for how, point := range map[string]func(a *Storage[plain], e Entity) *plain{
			"Mut":       func(a *Storage[plain], e Entity) *plain { return a.Mut(e) },
			"MutValues": func(a *Storage[plain], e Entity) *plain { return &a.MutValues()[a.row(e)] },
			"MutEach": func(a *Storage[plain], e Entity) (p *plain) {
				for _, p = range a.MutEach([]Entity{e}) {
				}
				return p
			},
			"Get": func(a *Storage[plain], e Entity) *plain { p, _ := NewQuery1(Write(a)).Get(e); return p },
			"All": func(a *Storage[plain], e Entity) *plain {
				q := NewQuery1(Write(a))
				// Save all rows, so that the second loop returns pointers to rows that are already
				// saved.
				for range q.All() {
				}
				for other, p := range q.All() {
					if other == e {
						return p
					}
				}
				return nil
			},
		} {
			for _, options := range []Options{{}, {History: 2}} {
				w, a, _, entities := members(10, options)
				// With this capacity, an append moves no rows in a build without stetdebug.
				a.Reserve(20)
				w.Commit()
				p := point(a, entities[3])
				p.X = 7
				change(w, a, entities[3])
				p.X = 8
				mustPanic(t, "ecs: plain of 3v1 was written through a pointer from before an entity was added", w.Commit)
				if t.Failed() {
					t.Fatalf("%s, %s, %+v", name, how, options)
				}
				w.Commit() // The write is reported only once.
			}
		}
	}
}

// A debug build also detects a write through a pointer from an earlier tick.
func TestDebugPointer_WriteInLaterTickPanics(t *testing.T) {
	w, a, _, entities := members(10, Options{})
	p := a.Mut(entities[3])
	w.Destroy(entities[0])
	w.Commit()
	w.Commit()
	p.X = 8
	mustPanic(t, "ecs: plain of 3v1 was written through a pointer", w.Commit)
}

func TestDebugPointer_AllowedWrites(t *testing.T) {
	w, a, b, entities := members(10, Options{})
	p := a.Mut(entities[3])
	// This changes another storage, so p is not stale.
	b.Remove(entities[3])
	p.X = 7
	a.Set(entities[4], plain{}) // This adds no entity, so p is not stale.
	p.X = 8
	w.Create()
	p.X = 9
	a.Set(entities[0], plain{})
	w.Destroy(entities[5])
	p = a.Mut(entities[3])
	p.X++
	for e, row := range NewQuery1(Write(a)).All() {
		if row.X++; e.Index()%2 == 0 {
			w.Destroy(e)
		}
	}
	w.Commit()
	if v, _ := a.Get(entities[3]); v.X != 11 {
		t.Errorf("%d, want 11", v.X)
	}
}

// A world without history saves no rows. A look-up still makes pointers stale in a debug build.
func TestDebugPointer_StalePanicsWithoutHistory(t *testing.T) {
	w, a, _, entities := members(10, Options{})
	x := NewIndex(a, func(p plain) int32 { return p.X })
	x.Len(0)
	p, q := a.Mut(entities[3]), a.Mut(entities[4])
	x.Len(0)
	// The look-up above makes all pointers stale except the newest one. So a write through q is
	// allowed, and a write through p is not.
	q.X = 70
	x.Len(0)
	p.X = 71
	text := "ecs: plain of 3v1, row 3, was written in the tick after 0 without the world's knowledge"
	mustPanic(t, text, func() { a.Set(entities[5], plain{}); x.Len(0) })
	mustPanic(t, text, w.Commit)
	p.X = 3
	w.Commit()
	p = a.Mut(entities[3])
	w.Commit()
	p.X = 5 // No look-up happens between Mut and this write.
	if x.Len(5) == 0 {
		t.Error("the index lacks the written value")
	}
}
