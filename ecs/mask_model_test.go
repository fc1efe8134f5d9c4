package ecs

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"
	"unsafe"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/raw"
)

// Components with masks.
type (
	marked struct{ V int32 }
	kept   struct{ V int32 }
)

var (
	markedKind = newKind(
		func(v int) marked { return marked{int32(v)} },
		func(m marked) int { return int(m.V) },
		func(m *marked) { m.V++ }, Component[marked]{Masked: true})
	keptKind = newKind(
		func(v int) kept { return kept{int32(v)} },
		func(k kept) int { return int(k.V) },
		func(k *kept) { k.V++ }, Component[kept]{Masked: true, NoRewind: true})
)

// checkMasks checks the masks of the storages, and all other masks that changed in a frame. It
// returns the memory size of their logs.
func (w *World) checkMasks() (bytes int64, err error) {
	var masks []*Mask
	for _, s := range w.sets {
		if s.mask == nil {
			continue
		}
		masks = append(masks, s.mask)
		if err := s.checkMask(); err != nil {
			return 0, err
		}
	}
	for _, list := range [2][]frame{w.frames, w.forward} {
		for _, f := range list {
			for _, t := range f.Touched {
				if m := w.maskOf(t); m != nil && !slices.Contains(masks, m) {
					masks = append(masks, m)
				}
			}
		}
	}
	for _, m := range masks {
		held, err := w.checkTracker(&m.rows, "mask")
		if err != nil {
			return 0, err
		}
		if err := m.check(); err != nil {
			return 0, fmt.Errorf("mask: %w", err)
		}
		bytes += held
	}
	return bytes, nil
}

// maskOf returns the mask that contains the tracker t. It returns nil if t is the tracker of the
// registry, of a storage or of a group. All other trackers belong to masks.
func (w *World) maskOf(t *track.Tracker) *Mask {
	known := t == &w.entities.rows
	for _, s := range w.Storages() {
		known = known || t == s.tracked()
	}
	for _, g := range w.groups {
		known = known || t == &g.rows
	}
	if known {
		return nil
	}
	return (*Mask)(unsafe.Add(unsafe.Pointer(t), -int(unsafe.Offsetof(Mask{}.rows))))
}

// checkMask compares the mask of s with the entities of s.
func (s *set) checkMask() error {
	for _, e := range s.dense.Live[:s.rows.N] {
		if e != Vacant && !s.mask.Has(e.Index()) {
			return fmt.Errorf("the mask of a storage lacks %v", e)
		}
	}
	if s.mask.Len() != s.Len() || s.mask.rows.Exempt != s.rows.Exempt {
		return fmt.Errorf("the mask has %d indices, the storage %d entities", s.mask.Len(), s.Len())
	}
	return nil
}

// check returns the first inconsistency inside m, or nil. Above level 0, each bit stands for a word
// of the level below. It must be set if that word is not 0, and unset otherwise.
func (m *Mask) check() error {
	if m.rows.Extra > m.epochs || m.rows.Extra < 1 {
		return fmt.Errorf("the epoch is %d, the newest %d", m.rows.Extra, m.epochs)
	}
	if need := max(len(m.words.Live), len(m.upper.Live)); m.rows.N != need {
		return fmt.Errorf("n is %d, want %d", m.rows.N, need)
	}
	n := 0
	below := map[int]uint64{} // The nonzero words of the level below, by number.
	for p, base := range m.pages {
		for b := p * maskPage; base != 0 && b < (p+1)*maskPage; b++ {
			if word := m.word(b); word != 0 {
				below[b] = word
				n += bits.OnesCount64(word)
			}
		}
	}
	if n != m.Len() {
		return fmt.Errorf("Len() = %d, but the mask has %d indices", m.Len(), n)
	}
	for level := 1; level < maskLevels; level++ {
		want := map[int]uint64{}
		for k := range below {
			want[k>>6] |= 1 << (k & 63)
		}
		for k := range min(len(m.pages)>>(6*level-6)+2, maskBlocks>>(6*level)+1) {
			if level == 1 && k < len(m.pages) && m.pages[k] == 0 {
				continue
			}
			if got := m.summary(level, k); got != want[k] {
				return fmt.Errorf("word %d of level %d is %#x, want %#x", k, level, got, want[k])
			}
		}
		below = want
	}
	for _, x := range m.words.Live[:maskPage+1] {
		if x != (maskWord{}) {
			return fmt.Errorf("the empty page holds %v", x)
		}
	}
	return nil
}

// maskIndices are the indices that the models add and remove. Some are neighbours. Others are in
// different words, pages and regions of higher levels. The last possible index is one of them.
var maskIndices = []uint32{0, 1, 64, 4096, 1 << 18, 4_000_000_000, 1<<32 - 1}

// A maskModel is a mask together with its expected content. The expected content is an array in a
// resource, so the world restores it too.
type maskModel struct {
	w    *World
	mask *Mask
	want *Resource[[7]bool]
	cps  []Checkpoint
}

var boolsSpec = func() typedSpec[[7]bool] {
	s, err := newSpec(NewWorld(Options{}), Component[[7]bool]{Name: "want"})
	if err != nil {
		panic(err)
	}
	return s
}()

func newMaskModel(o Options, record bool) *maskModel {
	w := NewWorld(o)
	r := newResource(w, boolsSpec, [7]bool{})
	w.resources = append(w.resources, r)
	if record {
		w.Raw().Attach(recorderFunc(func(*raw.Change) uint64 { return 0 }), 0)
	}
	return &maskModel{w: w, mask: w.NewMask(), want: r}
}

func (p *maskModel) add(i int) bool {
	if got, want := p.mask.Add(maskIndices[i]), !p.want.Get()[i]; got != want {
		failf("Add(%d) = %v, want %v", maskIndices[i], got, want)
	}
	if p.want.Get()[i] {
		return false
	}
	p.want.Mut()[i] = true
	return true
}

func (p *maskModel) remove(i int) bool {
	if got, want := p.mask.Remove(maskIndices[i]), p.want.Get()[i]; got != want {
		failf("Remove(%d) = %v, want %v", maskIndices[i], got, want)
	}
	if !p.want.Get()[i] {
		return false
	}
	p.want.Mut()[i] = false
	return true
}

func (p *maskModel) clear() bool {
	p.mask.Clear()
	if p.want.Get() == [7]bool{} {
		return false
	}
	p.want.Set([7]bool{})
	return true
}

func (p *maskModel) checkpoint() bool {
	if len(p.valid()) == 3 {
		return false
	}
	p.cps = append(p.cps, p.w.Checkpoint())
	return true
}

// valid returns the checkpoints that are still valid.
func (p *maskModel) valid() []Checkpoint {
	p.cps = slices.DeleteFunc(p.cps, func(cp Checkpoint) bool { return !cp.Valid() })
	return p.cps
}

func (p *maskModel) restore(i int) bool {
	if i >= len(p.valid()) {
		return false
	}
	p.w.Restore(p.cps[i])
	return true
}

func (p *maskModel) release(i int) bool {
	if i >= len(p.valid()) {
		return false
	}
	p.w.Release(p.cps[i])
	return true
}

func (p *maskModel) commit() bool          { p.w.Commit(); return true }
func (p *maskModel) rewind(n int) bool     { return p.w.History().Rewind(n) == nil }
func (p *maskModel) forward(n uint64) bool { return p.w.History().Seek(p.w.Tick()+n) == nil }

func (p *maskModel) check() {
	want := p.want.Get()
	var indices []uint32
	for i, in := range want {
		if in {
			indices = append(indices, maskIndices[i])
		}
		if got := p.mask.Has(maskIndices[i]); got != in {
			failf("Has(%d) = %v, want %v", maskIndices[i], got, in)
		}
		if p.mask.Has(maskIndices[i] ^ 2) {
			failf("Has(%d) = true", maskIndices[i]^2)
		}
	}
	if got := slices.Collect(p.mask.Indices()); !slices.Equal(got, indices) || p.mask.Len() != len(indices) {
		failf("Indices = %v, Len() = %d, want %v", got, p.mask.Len(), indices)
	}
}

// checkDeeply does the same as check, and also checks all invariants.
func (p *maskModel) checkDeeply() {
	p.check()
	if err := p.w.check(); err != nil {
		failf("%v", err)
	}
	if _, err := p.mask.w.checkTracker(&p.mask.rows, "mask"); err != nil {
		failf("%v", err)
	}
	if err := p.mask.check(); err != nil {
		failf("%v", err)
	}
}

type maskStep struct {
	name string
	do   func(p *maskModel) bool
}

// maskSteps returns the steps that use the given indices.
func maskSteps(indices []int, checkpoints int, ticks bool) []maskStep {
	var steps []maskStep
	numbered := func(verb string, i int, do func(*maskModel, int) bool) {
		steps = append(steps, maskStep{fmt.Sprint(verb, " ", i), func(p *maskModel) bool { return do(p, i) }})
	}
	for _, i := range indices {
		numbered("add", i, (*maskModel).add)
		numbered("remove", i, (*maskModel).remove)
	}
	steps = append(steps, maskStep{"clear", (*maskModel).clear})
	if checkpoints > 0 {
		steps = append(steps, maskStep{"checkpoint", (*maskModel).checkpoint})
	}
	for i := range checkpoints {
		numbered("restore", i, (*maskModel).restore)
		numbered("release", i, (*maskModel).release)
	}
	if ticks {
		steps = append(steps, maskStep{"commit", (*maskModel).commit})
		numbered("rewind", 0, (*maskModel).rewind)
		numbered("rewind", 1, (*maskModel).rewind)
		steps = append(steps, maskStep{"forward", func(p *maskModel) bool { return p.forward(1) }})
	}
	return steps
}

// exploreMask tries every sequence of up to n steps. It skips steps that have no effect.
func exploreMask(t *testing.T, fresh func() *maskModel, steps []maskStep, n int) {
	t.Helper()
	tried := 0
	var sequence []int
	run := func() (applied bool, err error) {
		defer catch(&err)
		p := fresh()
		for _, s := range sequence {
			applied = steps[s].do(p)
		}
		if !applied {
			return false, nil
		}
		if tried++; tried%64 == 0 || len(sequence) < n {
			p.checkDeeply()
		} else {
			p.check()
		}
		return true, nil
	}
	var extend func(n int)
	extend = func(n int) {
		for s := range steps {
			if n == 0 || t.Failed() {
				return
			}
			sequence = append(sequence, s)
			applied, err := run()
			if err != nil {
				var names []string
				for _, s := range sequence {
					names = append(names, steps[s].name)
				}
				t.Errorf("%v: %v", names, err)
				return
			}
			if applied {
				extend(n - 1)
			}
			sequence = sequence[:len(sequence)-1]
		}
	}
	extend(n)
	if tried < 100 {
		t.Errorf("only %d sequences were tried", tried)
	}
	t.Logf("%d sequences of up to %d steps", tried, n)
}
