package ecs

import (
	"math/rand/v2"
	"testing"
)

// A boundaryWorld is a world whose loops set boundaries in their bodies. It records the digests at
// the boundaries.
type boundaryWorld struct {
	w    *World
	a    *Storage[plain]
	b    *Storage[padded]
	o    *Storage[extra]
	rng  *rand.Rand
	held []savedDigest
	left int // Number of actions until the end.
}

type savedDigest struct {
	cp     Checkpoint
	digest Digest
}

func newBoundaryWorld(seed uint64) *boundaryWorld {
	w := NewWorld(Options{History: 3})
	h := &boundaryWorld{w: w, a: MustRegister[plain](w), b: MustRegister[padded](w), o: MustRegister(w, Component[extra]{Kind: Ordered}), rng: rand.New(rand.NewPCG(seed, 4)), left: 60}
	entities := w.CreateN(nil, 200)
	for i, e := range entities {
		h.a.Set(e, plain{X: int32(i)})
	}
	h.rng.Shuffle(len(entities), func(i, k int) { entities[i], entities[k] = entities[k], entities[i] })
	for i, e := range entities[:120] {
		h.b.Set(e, padded{B: int64(i)})
		h.o.Set(e, extra{})
	}
	w.Commit()
	return h
}

// act may set a boundary in the body of a loop. The function write writes the current row of the
// loop.
func (h *boundaryWorld) act(t *testing.T, write func()) {
	if h.left--; h.left < 0 || h.rng.IntN(4) > 0 {
		return
	}
	if h.rng.IntN(2) == 0 {
		write()
	}
	switch k := len(h.held) - 1; h.rng.IntN(6) {
	case 0, 1:
		h.held = append(h.held, savedDigest{h.w.Checkpoint(), 0})
		h.held[len(h.held)-1].digest = h.w.Digest()
	case 2:
		if k >= 0 {
			h.w.Release(h.held[k].cp)
			h.held = h.held[:k]
		}
	case 3:
		if k >= 0 {
			h.putBack(t)
		}
	case 4:
		h.w.Commit()
	case 5:
		before := h.w.Digest()
		_ = h.w.Try(func() error { write(); return errTried })
		if h.w.Digest() != before {
			t.Error("a Try that failed left changes")
		}
	}
	if h.rng.IntN(3) > 0 {
		write()
	}
}

// putBack restores the newest checkpoint and compares the digest.
func (h *boundaryWorld) putBack(t *testing.T) {
	last := h.held[len(h.held)-1]
	h.w.Restore(last.cp)
	if h.w.Digest() != last.digest {
		t.Error("the restored world differs from the checkpoint")
	}
}

// The body of a loop may write the current row after it set a boundary. A restore then restores the
// value at the boundary.
func TestLoop_WriteAfterBoundary(t *testing.T) {
	loops := map[string]func(h *boundaryWorld, act func(write func())){
		"alone": func(h *boundaryWorld, act func(func())) {
			for _, p := range NewQuery1(Write(h.a)).All() {
				act(func() { p.X++ })
			}
		},
		"scattered": func(h *boundaryWorld, act func(func())) {
			for _, row := range NewQuery2(Read(h.a), Write(h.b)).All() {
				act(func() { row.B.B++ })
			}
		},
		"two of them": func(h *boundaryWorld, act func(func())) {
			for _, row := range NewQuery2(Write(h.a), Write(h.b)).All() {
				act(func() { row.A.X++; row.B.B++ })
			}
		},
		"optional": func(h *boundaryWorld, act func(func())) {
			for _, row := range NewQuery2(Write(h.a), Optional(Write(h.b))).AllOptional() {
				act(func() {
					row.A.X++
					if row.B != nil {
						row.B.B++
					}
				})
			}
		},
		"by index": func(h *boundaryWorld, act func(func())) {
			for _, row := range NewQuery2(Write(h.o), Write(h.b)).All() {
				act(func() { row.A.V++; row.B.B++ })
			}
		},
		"filtered": func(h *boundaryWorld, act func(func())) {
			for i := range 100 {
				e := h.w.Create()
				h.a.Set(e, plain{})
				if i%3 > 0 {
					h.b.Set(e, padded{})
				}
			}
			q := NewQuery2(Write(h.a), Write(h.b)).With(h.a.Added())
			for _, row := range q.All() {
				act(func() { row.A.X++; row.B.B++ })
			}
		},
		"runs": func(h *boundaryWorld, act func(func())) {
			for run := range NewQuery2(Write(h.a), Write(h.b)).Runs() {
				for i := range run.A {
					act(func() { run.A[i].X++; run.B[i].B++ })
				}
			}
		},
		"Get of others": func(h *boundaryWorld, act func(func())) {
			q := NewQuery2(Write(h.a), Write(h.b))
			for e, row := range q.All() {
				q.Has(h.w.Entities()[0])
				q.First()
				act(func() { row.A.X++; row.B.B++; q.Get(e) })
			}
		},
		"nested": func(h *boundaryWorld, act func(func())) {
			q, one := NewQuery2(Write(h.a), Write(h.b)), NewQuery1(Write(h.a))
			for _, outer := range q.All() {
				for _, inner := range q.All() {
					act(func() { outer.A.X++; inner.B.B++; inner.A.Y++ })
					for _, p := range one.All() {
						act(func() { p.Y++; outer.B.B-- })
						if h.rng.IntN(10) == 0 {
							break
						}
					}
					if h.rng.IntN(10) == 0 {
						break
					}
				}
				act(func() { outer.A.X++ })
				if h.left < 0 {
					break
				}
			}
		},
		"after panics": func(h *boundaryWorld, act func(func())) {
			q := NewQuery2(Write(h.a), Write(h.b))
			for _, outer := range q.All() {
				func() {
					defer func() { _ = recover() }()
					for _, inner := range q.All() {
						act(func() { outer.A.X++; inner.B.B++ })
						if h.rng.IntN(10) == 0 {
							panic(errTried)
						}
					}
				}()
				act(func() { outer.A.X++ })
				if h.left < 0 {
					break
				}
			}
		},
	}
	for name, loop := range loops {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(40) {
				h := newBoundaryWorld(seed)
				loop(h, func(write func()) { h.act(t, write) })
				if len(h.w.activeCursors) > 0 {
					t.Errorf("seed %d: %d loops are still registered, want none", seed, len(h.w.activeCursors))
				}
				for ; len(h.held) > 0; h.held = h.held[:len(h.held)-1] {
					h.putBack(t)
				}
				if err := h.w.check(); err != nil {
					t.Error(err)
				}
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

// A loop that panicked leaves its cursor in the world. After the rows of the loop have moved, the
// next boundary removes the cursor.
func TestPanicInLoop_ReleasesCursor(t *testing.T) {
	w, a, _, _ := members(100, Options{})
	q := NewQuery1(Write(a))
	for range 50 {
		func() {
			defer func() { _ = recover() }()
			for range q.All() {
				panic(errTried)
			}
		}()
		for range NewQuery1(Write(a)).All() {
			break
		}
		if len(w.activeCursors) > 50 {
			t.Fatalf("%d active cursors", len(w.activeCursors))
		}
	}
	a.Set(w.Create(), plain{})
	w.Checkpoint()
	if len(w.activeCursors) > 0 {
		t.Errorf("%d cursors are left", len(w.activeCursors))
	}
}

// The body of a loop may write the current row after a Seek, which is a boundary too. A second Seek
// reverts the write.
func TestLoop_WriteAfterSeek(t *testing.T) {
	for to := uint64(1); to < 5; to++ {
		w := NewWorld(Options{History: 8})
		s := MustRegister[plain](w)
		s.SetAll(w.CreateN(nil, 10), plain{X: 1})
		for range 4 {
			w.Commit()
			for _, e := range s.Entities() {
				s.Mut(e).X++
			}
		}
		w.Commit()
		for _, p := range NewQuery1(Write(s)).All() {
			if err := w.History().Seek(to); err != nil {
				t.Fatal(err)
			}
			before := w.Digest()
			p.X = 100
			if w.Digest() == before {
				t.Errorf("tick %d: the written row has no entity", to)
			}
			w.Commit()
			if err := w.History().Seek(to); err != nil {
				t.Fatal(err)
			}
			if w.Digest() != before {
				t.Errorf("tick %d: the write after the Seek is not reverted", to)
			}
			break
		}
	}
}
