package ecs

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stet-ecs/stet/ecs/raw"
)

// A patchedWorld gets all changes of a recorded world as patches of ticks. If the recorded world
// went back to an earlier tick, the patched world seeks to that tick.
type patchedWorld struct {
	*World
	rng *rand.Rand
	// The keys are names of storages. The value is true if a seek may have removed rows of the
	// storage: see loseExempt.
	lost map[string]bool
}

func newPatchedWorld(w *World) *patchedWorld {
	c := w.Clone()
	c.options = Options{History: 1 << 20}
	c.restart(seqs{})
	return &patchedWorld{c, rand.New(rand.NewPCG(1, 0x70)), map[string]bool{}}
}

// apply applies the recorded change c as a patch, and compares the patched world with the recorded
// world.
func (t *patchedWorld) apply(r *recorderModel, c *raw.Change) {
	// The seek below may remove NoRewind rows that the recorded world still has. The recorded world
	// may have restored a checkpoint, at which more entities were alive.
	if t.Raw().Seq() != c.Parent {
		t.loseExempt()
	}
	p := &raw.Patch{Tick: c.Tick, Seq: uint64(len(r.states)), Entities: c.Entities}
	rows, _, _ := r.w.Raw().Registry()
	p.Registry = named(rows, c.Entities.Rows)
	for _, s := range r.named {
		own, ok := t.names[s.Storage.Name()]
		// The storage was registered after the patched world was created, so start with a new
		// patched world.
		if !ok {
			*t = *newPatchedWorld(r.w)
			t.restart(seqs{first: p.Seq})
			return
		}
		patch := raw.StoragePatch{StorageChange: s, After: s.Storage.Rows(), Rows: s.Storage.AppendRanges(nil, s.Values)}
		if entities := s.Storage.Entities(); entities != nil {
			patch.Members = named(entities, s.Entities)
		}
		patch.Storage = own.Raw()
		delete(t.lost, s.Storage.Name())
		p.Storages = append(p.Storages, patch)
	}
	must := func(what string, err error) {
		if err != nil {
			failf("the patched world: %s: %v", what, err)
		}
	}
	if !t.known(r, c.Parent) {
		*t = *newPatchedWorld(r.w)
		t.restart(seqs{first: p.Seq})
		return
	}
	must("seek", t.History().Seek(r.states[c.Parent].tick))
	t.mustBe(r, c.Parent)
	must("apply", t.Raw().Apply(raw.Ticks(p)))
	must("check", t.check())
	if t.tick != c.Tick || t.Raw().Seq() != p.Seq || t.Raw().Dirty() {
		failf("the patched world is at tick %d, record %d, want %d, %d", t.tick, t.Raw().Seq(), c.Tick, p.Seq)
	}
	now, alive, free := t.Raw().Registry()
	if _, a, f := r.w.Raw().Registry(); !slices.Equal(now, rows) || alive != a || free != f {
		failf("the patched world has entities %v, want %v", now, rows)
	}
	for _, s := range r.w.Raw().Storages() {
		if own, ok := t.names[s.Name()]; ok && !t.lost[s.Name()] {
			mustEqualStore(own.Raw(), storeOf(s))
		}
	}
	for i, g := range r.w.groups {
		if i < len(t.groups) && t.groups[i].rows.Lengths != g.rows.Lengths {
			failf("the patched world has a group of %+v, want %+v", t.groups[i].rows.Lengths, g.rows.Lengths)
		}
	}
	// Sometimes seek back and forward again.
	if back := t.History().Oldest(); t.rng.IntN(4) == 0 && back < t.tick {
		// The patched world lacks ticks that the recorder has deferred. So seek to the nearest tick
		// that is retained.
		target, _ := t.History().Nearest(back + t.rng.Uint64N(t.tick-back))
		must("seek", t.History().Seek(target))
		must("check", t.check())
		if t.Raw().Seq() < uint64(len(r.states)) {
			t.mustBe(r, t.Raw().Seq())
		}
		must("seek", t.History().Seek(c.Tick))
		t.loseExempt()
		must("check", t.check())
	}
}

// loseExempt records that NoRewind storages may have lost rows in a seek. A seek removes the rows
// of entities that are not alive at its target tick.
func (t *patchedWorld) loseExempt() {
	for _, s := range t.Raw().Storages() {
		t.lost[s.Name()] = !s.Rewinds()
	}
}

// known reports whether t still retains a recorded state, so that it can seek there. The parameter
// mark is the number that Record returned for the state.
func (t *patchedWorld) known(r *recorderModel, mark uint64) bool {
	for i := range t.frames {
		if f := &t.frames[i]; f.tick && f.seq.first == mark && f.at == r.states[mark].tick {
			return true
		}
	}
	return false
}

// mustBe compares t with a recorded state, except for NoRewind storages. The parameter mark is the
// number that Record returned for the state.
func (t *patchedWorld) mustBe(r *recorderModel, mark uint64) {
	s := &r.states[mark]
	if rows, alive, free := t.Raw().Registry(); !slices.Equal(raw.As[Entity](rows), s.rows) || alive != s.alive || free != s.free {
		failf("the patched world has entities %v at mark %d, want %v", rows, mark, s.rows)
	}
	for name, want := range s.stores {
		if own, ok := t.names[name]; ok {
			mustEqualStore(own.Raw(), want)
		}
	}
}

func mustEqualStore(s raw.Storage, want recordedStore) {
	got := storeOf(s)
	if !slices.Equal(got.entities, want.entities) || !slices.EqualFunc(got.rows, want.rows, bytes.Equal) {
		failf("the patched world has %s %v %v, want %v %v", s.Name(), got.entities, got.rows, want.entities, want.rows)
	}
}

// named returns the entities in the given ranges of rows, encoded as in raw.Patch.Registry.
func named(rows []uint64, ranges []raw.Range) (some []byte) {
	for _, r := range ranges {
		for _, e := range rows[r.First : r.First+r.N] {
			some = binary.LittleEndian.AppendUint64(some, e)
		}
	}
	return some
}

// CheckRanges returns an error for ranges of rows that the world does not have.
func TestCheckRanges_RowsDoNotExist(t *testing.T) {
	for _, c := range []struct {
		name                 string
		ranges               []raw.Range
		given, before, after int
		ok                   bool
	}{
		{"none", nil, 0, 3, 3, true},
		{"fewer rows", nil, 0, 3, 1, true},
		{"rows and a new one", []raw.Range{{First: 0, N: 1}, {First: 2, N: 2}}, 3, 3, 4, true},
		{"up to the last row", []raw.Range{{First: 1, N: 2}}, 2, 3, 3, true},
		{"behind the last row", []raw.Range{{First: 2, N: 2}}, 2, 3, 3, false},
		{"an overflow", []raw.Range{{First: math.MaxInt, N: 1}}, 1, 3, 3, false},
		{"no rows", []raw.Range{{First: 1, N: 0}}, 0, 3, 3, false},
		{"a negative number", []raw.Range{{First: 2, N: -1}}, -1, 3, 3, false},
		{"a row twice", []raw.Range{{First: 0, N: 2}, {First: 1, N: 1}}, 3, 3, 3, false},
		{"falling", []raw.Range{{First: 2, N: 1}, {First: 0, N: 1}}, 2, 3, 3, false},
		{"a new row that is missing", []raw.Range{{First: 3, N: 1}}, 1, 3, 5, false},
		{"fewer values", []raw.Range{{First: 0, N: 2}}, 1, 3, 3, false},
		{"more values", []raw.Range{{First: 0, N: 2}}, 3, 3, 3, false},
	} {
		if err := checkRanges(c.ranges, c.given, c.before, c.after); (err == nil) != c.ok {
			t.Errorf("%s: error %v, want an error: %v", c.name, err, !c.ok)
		}
	}
}
