package ecs

import (
	"math/rand/v2"
	"testing"

	"github.com/stet-ecs/stet/internal/deep"
)

// A checkpointRun runs a random program on a model that holds 8 to 64 checkpoints. In one of four
// seeds, the model holds at most one checkpoint. The checkpoints are in several ticks of a history,
// or all in one tick.
//
// The program releases neighbouring checkpoints, and restores checkpoints while pins read the
// world. Meanwhile storages grow, shrink and are cleared.
type checkpointRun struct {
	pinProgram
	r               *rand.Rand
	wantCheckpoints int // The approximate number of checkpoints to hold.
}

func newCheckpointRun(seed uint64) *checkpointRun {
	r := rand.New(rand.NewPCG(seed, 9))
	h := &checkpointRun{r: r, wantCheckpoints: 8 + r.IntN(57)}
	// With at most one checkpoint, the history can evict ticks, even while a pin reads them.
	if seed%4 == 3 {
		h.wantCheckpoints = r.IntN(2)
	}
	h.pinProgram = pinProgram{programRunner: programRunner{model: newModel(modelOptions{
		kinds:     []kind{plainKind, largeKind, listKind, gapKind, hashedKind, orderedKind, extraKind},
		resources: 2, history: []int{0, 1, 3, 30, 60}[r.IntN(5)], historyDense: r.IntN(2) * 5,
		record: r.IntN(3) > 0, maxGeneration: 5, entities: 12, members: 8,
	})}}
	return h
}

func (h *checkpointRun) checkpoints() (n int) {
	for _, f := range h.oracle.frames {
		if !f.tick {
			n++
		}
	}
	return n
}

func (h *checkpointRun) hold() {
	cp := h.w.Checkpoint()
	h.cps = append(h.cps, cp)
	h.oracle.checkpoint(cp)
}

// grow adds components to entities, and creates up to 30 entities.
func (h *checkpointRun) grow() {
	for range 1 + h.r.IntN(6) {
		if h.w.Len() < 30 {
			h.create()
		}
	}
	for range 1 + h.r.IntN(30) {
		h.set(h.r.IntN(len(h.stores)), h.any())
	}
}

// any returns a random entity, or 0 if none is alive.
func (h *checkpointRun) any() Entity {
	if n := h.w.Len(); n > 0 {
		return h.w.Entities()[h.r.IntN(n)]
	}
	return 0
}

func (h *checkpointRun) shrink() {
	for range 1 + h.r.IntN(10) {
		switch e := h.any(); h.r.IntN(4) {
		case 0:
			h.destroy(e)
		case 1:
			h.increase(h.r.IntN(len(h.stores)), e)
		default:
			h.remove(h.r.IntN(len(h.stores)), e)
		}
	}
}

// releaseInTheMiddle releases up to four neighbouring checkpoints.
func (h *checkpointRun) releaseInTheMiddle() {
	k := h.r.IntN(h.checkpoints())
	for range 1 + h.r.IntN(4) {
		h.model.release(min(k, h.checkpoints()-1))
		h.checkInvariants()
	}
}

// back restores the n-th newest checkpoint, counted from 0.
func (h *checkpointRun) back(n int) {
	if i := h.checkpoints() - 1 - n; i >= 0 {
		h.wentBack(h.oracle.frames[h.checkpointAt(i)].cp.id, never)
		h.model.restore(i)
	}
}

func (h *checkpointRun) step() {
	switch n := h.r.IntN(42); {
	case n < 12 && h.checkpoints() < h.wantCheckpoints:
		h.hold()
	case n < 17:
		h.grow()
	case n < 22:
		h.shrink()
	case n < 24:
		h.clear(h.r.IntN(len(h.stores)))
	case n < 25:
		h.clearAll()
	case n < 29:
		h.commit()
	case n < 32 && h.checkpoints() > h.wantCheckpoints/2:
		h.releaseInTheMiddle()
	case n < 33 && h.checkpoints() > h.wantCheckpoints/2:
		h.model.release(0)
	case n < 34:
		h.increaseResource(h.r.IntN(2))
	case n < 36:
		h.back(h.r.IntN(5))
	// Seek rarely, because it releases the checkpoints after its target.
	case n < 37:
		h.seek(h.oracle.tick - min(h.oracle.tick, uint64(h.r.IntN(3))))
	case n < 38:
		h.seek(h.oracle.tick + uint64(h.r.IntN(3)))
	case n < 39:
		h.commit()
		h.pinProgram.pin()
	case n < 41:
		h.w.Shrink()
	default:
		h.pinProgram.release(h.r.IntN(3))
	}
}

// checkInvariants checks the invariants of the world.
func (h *checkpointRun) checkInvariants() {
	if err := h.w.check(); err != nil {
		failf("%v", err)
	}
}

func (h *checkpointRun) checkAll() {
	h.check()
	for _, d := range h.pins {
		d.check(7)
	}
}

// run makes n steps. Then it restores each checkpoint, the newest first, and the oldest tick.
func (h *checkpointRun) run(n int) (err error) {
	defer catch(&err)
	for i := range n {
		h.step()
		h.checkInvariants()
		if i%25 == 24 {
			h.checkAll()
		}
	}
	for h.checkpoints() > 0 {
		h.back(0)
		h.checkAll()
		if h.r.IntN(3) == 0 {
			h.shrink()
		}
		h.back(0)
		h.model.release(h.checkpoints() - 1)
	}
	h.seek(h.oracle.oldest())
	h.checkAll()
	return nil
}

func TestCheckpoint_ReleaseInMiddle(t *testing.T) {
	t.Parallel()
	for seed := range uint64(deep.Or(60, 600)) {
		if err := newCheckpointRun(seed).run(250); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// The remaining checkpoints can be restored after a Clear, a release of some neighbouring
// checkpoints, and writes to all rows.
func TestCheckpoint_ReleaseAfterClear(t *testing.T) {
	for first := 1; first < 9; first++ {
		for n := 1; first+n <= 9; n++ {
			if err := clearedBehind(first, n); err != nil {
				t.Errorf("checkpoints %d to %d released: %v", first, first+n-1, err)
			}
		}
	}
}

func clearedBehind(first, n int) (err error) {
	defer catch(&err)
	p := newModel(modelOptions{kinds: []kind{plainKind, listKind}, entities: 40, members: 40})
	hold := func() { p.oracle.checkpoint(p.w.Checkpoint()) }
	for i := range 10 {
		hold()
		if i == 0 {
			p.clear(0)
			p.clear(1)
		}
		p.set(i%2, p.handles[i])
	}
	for range n {
		p.release(first)
	}
	hold()
	for _, e := range p.handles {
		p.set(0, e)
		p.set(1, e)
	}
	for i := len(p.oracle.frames) - 1; i >= 0; i-- {
		p.restore(i)
		p.check()
	}
	return nil
}
