package ecs

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stet-ecs/stet/ecs/raw"
)

func TestMaskModel_Checkpoints(t *testing.T) {
	t.Parallel()
	fresh := func() *maskModel { return newMaskModel(Options{}, false) }
	exploreMask(t, fresh, maskSteps([]int{0, 1}, 3, false), *depth+2)
	exploreMask(t, fresh, maskSteps([]int{0, 2, 3, 4}, 2, false), *depth+1)
}

func TestMaskModel_Ticks(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{}, {History: 1}, {History: 3}, {History: 3, HistoryBytes: 3000}} {
		for _, record := range []bool{false, true} {
			fresh := func() *maskModel { return newMaskModel(o, record) }
			exploreMask(t, fresh, maskSteps([]int{0, 3}, 1, true), *depth+1)
		}
	}
}

func TestMaskModel_RandomPrograms(t *testing.T) {
	all := maskSteps([]int{0, 1, 2, 3, 4, 5, 6}, 3, true)
	rapid.Check(t, func(t *rapid.T) {
		history := rapid.IntRange(0, 4).Draw(t, "history")
		p := newMaskModel(Options{History: history}, rapid.Bool().Draw(t, "record"))
		for _, s := range rapid.SliceOfN(rapid.IntRange(0, len(all)-1), 1, 100).Draw(t, "steps") {
			err := func() (err error) {
				defer catch(&err)
				all[s].do(p)
				p.check()
				return nil
			}()
			if err != nil {
				t.Fatalf("%s: %v", all[s].name, err)
			}
		}
		err := func() (err error) {
			defer catch(&err)
			p.checkDeeply()
			return nil
		}()
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestMaskModel_MaskedComponents(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: []kind{markedKind}, entities: 3, members: 2, maxGeneration: 3}
	explore(t, s, operations(create, destroys(4), clearAll, adds(0, 3), removes(0, 2), clearStore(0), checkpoints(2)), *depth+1)
	s = modelOptions{kinds: []kind{markedKind}, entities: 2, members: 1, history: 2, record: true}
	explore(t, s, operations(create, destroys(2), adds(0, 2), removes(0, 2), clearStore(0), ticks(), checkpoints(1)), *depth)
}

// If a restore removes entities, their NoRewind components are removed as well, and so are their
// bits in masks.
func TestMaskModel_MaskedNoRewind(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: []kind{keptKind, markedKind}, entities: 2, members: 1, history: 2}
	explore(t, s, operations(create, destroys(3), clearAll, adds(0, 3), adds(1, 1), removes(0, 2), clearStore(0), ticks(), checkpoints(1)), *depth)
}

// Pages that are added to a mask after a checkpoint are empty after a restore.
func TestMask_RestoreEmptiesNewPages(t *testing.T) {
	w := NewWorld(Options{})
	m := w.NewMask()
	m.Add(1)
	first := w.Checkpoint()
	m.Add(2)
	second := w.Checkpoint()
	const far = 100 << 18
	for i := uint32(0); i < far; i += 1000 {
		m.Add(i)
	}
	w.Restore(second)
	if got := slices.Collect(m.Indices()); !slices.Equal(got, []uint32{1, 2}) {
		t.Errorf("after the second restore: %v", got)
	}
	m.Add(far)
	w.Release(second)
	w.Restore(first)
	if got := slices.Collect(m.Indices()); !slices.Equal(got, []uint32{1}) {
		t.Errorf("after the first restore: %v", got)
	}
	if err := m.check(); err != nil {
		t.Error(err)
	}
}

func TestMask_EmptyAfterRestoreAndClear(t *testing.T) {
	w := NewWorld(Options{})
	m := w.NewMask()
	m.Add(5)
	cp := w.Checkpoint()
	m.Clear()
	m.Add(6)
	used := m.rows.Extra
	w.Restore(cp)
	m.Clear()
	if m.rows.Extra <= used {
		t.Errorf("the epoch is %d, after %d", m.rows.Extra, used)
	}
	if m.Has(5) || m.Has(6) || m.Any() {
		t.Errorf("a cleared mask holds %v", slices.Collect(m.Indices()))
	}
}

// The mask of a storage is up to date whenever a hook runs. It also stays up to date if a hook
// panics or changes the world.
func TestMask_UpToDateInHooks(t *testing.T) {
	w := NewWorld(Options{})
	checkAtEnd(t, w)
	a := MustRegister(w, Component[plain]{Masked: true})
	b := MustRegister(w, Component[marked]{Masked: true})
	e := w.Create()
	agree := func(when string) {
		t.Helper()
		if a.Mask().Has(e.Index()) != a.Has(e) || b.Mask().Has(e.Index()) != b.Has(e) {
			t.Errorf("%s: the masks have %v, %v, the storages %v, %v", when,
				a.Mask().Has(e.Index()), b.Mask().Has(e.Index()), a.Has(e), b.Has(e))
		}
	}
	attempt := func(f func()) {
		defer func() { recover() }()
		f()
	}
	onAdd, onRemove := func() {}, func() {}
	b.OnAdd(func(Entity, marked) { onAdd() })
	b.OnRemove(func(Entity, marked) { onRemove() })
	onAdd = func() { agree("added"); panic("stop") }
	attempt(func() { b.Set(e, marked{}) })
	agree("after a panic in added")
	onRemove = func() { agree("removing"); panic("stop") }
	attempt(func() { b.Remove(e) })
	agree("after a panic in removing")
	onRemove = func() { agree("removing"); a.Set(e, plain{}) }
	w.Destroy(e)
	agree("after Destroy, while another component was added")
	e = w.Create()
	onAdd, onRemove = func() { b.Remove(e) }, func() {}
	b.Set(e, marked{})
	agree("after it was removed while it was added")
	if w.Len() != 1 || b.Len() != 0 || a.Mask().Len() != 0 {
		t.Errorf("%d entities, %d and %d components", w.Len(), a.Len(), b.Len())
	}
}

func TestMask_CorrectAfterLoadAndClone(t *testing.T) {
	source := NewWorld(Options{})
	a := MustRegister(source, Component[plain]{Masked: true})
	b := MustRegister(source, Component[extra]{Masked: true, NoRewind: true})
	for i := range 200 {
		e := source.Create()
		if i%3 == 0 {
			a.Set(e, plain{})
		}
		if i%5 == 0 {
			b.Set(e, extra{})
		}
	}
	clone := source.Clone()
	loaded := NewWorld(Options{History: 2})
	la := MustRegister(loaded, Component[plain]{Masked: true})
	lb := MustRegister(loaded, Component[extra]{Masked: true, NoRewind: true})
	for range 300 {
		la.Set(loaded.Create(), plain{})
	}
	loaded.Commit()
	own := loaded.NewMask()
	own.Add(7)
	if err := loaded.Raw().Load(stateOf(source)); err != nil {
		t.Fatal(err)
	}
	if !own.Has(7) || own.Len() != 1 {
		t.Error("Load changed a mask that the program created")
	}
	for _, w := range []*World{source, clone, loaded} {
		if err := w.check(); err != nil {
			t.Error(err)
		}
	}
	for _, m := range []Bits{a.In(clone).Mask(), la.Mask()} {
		if got := slices.Collect(m.Indices()); len(got) != 67 || got[66] != 198 {
			t.Errorf("the mask holds %v", got)
		}
	}
	if a.In(clone).Mask() == a.Mask() || b.In(clone).Mask().Len() != 40 || lb.Mask().Len() != 40 {
		t.Error("a mask has the wrong storage")
	}
	a.In(clone).Remove(source.Entities()[0])
	if !a.Mask().Has(0) {
		t.Error("a clone shares a mask")
	}
}

func TestMask_UnmaskedComponentPanics(t *testing.T) {
	s := MustRegister[plain](NewWorld(Options{}))
	mustPanic(t, "register its component with Masked", func() { s.Mask() })
}

// The memory of a mask depends only on the size of the regions in use, not on their position.
func TestMask_MemoryOfDistantIndex(t *testing.T) {
	m := NewWorld(Options{}).NewMask()
	m.Add(1<<32 - 1)
	m.Add(0)
	if got := slices.Collect(m.Indices()); !slices.Equal(got, []uint32{0, 1<<32 - 1}) {
		t.Errorf("Indices = %v", got)
	}
	if words, pages := len(m.words.Live)+len(m.upper.Live), len(m.pages); words > 20_000 || pages != 1<<20 {
		t.Errorf("%d words, %d pages", words, pages)
	}
	if m.word(maskBlocks) != 0 || m.word(math.MaxInt) != 0 || m.nextWord(maskBlocks) != -1 || m.nextWord(math.MaxInt) != -1 {
		t.Error("there are words after the last index")
	}
	// If nextWord wrongly reads past the end of level 3, it finds this index.
	m.Add(255<<18 + 5*4096)
	for b := maskBlocks; b < 8*maskBlocks; b += 4096 {
		if got := m.nextWord(b); got != -1 {
			t.Fatalf("nextWord(%d) = %d, want -1", b, got)
		}
	}
}

// Clear saves no words. The first addition after a Clear saves one word per level, and further
// changes of these words save nothing.
func TestMask_ClearWritesNoUndo(t *testing.T) {
	w := NewWorld(Options{})
	m := w.NewMask()
	for i := range uint32(100_000) {
		m.Add(i)
	}
	cp := w.Checkpoint()
	m.Clear()
	if bytes := w.History().Bytes(); bytes != 0 || m.Len() != 0 {
		t.Errorf("Bytes() = %d after Clear, want 0", bytes)
	}
	m.Add(5)
	m.Add(6)
	m.Remove(5)
	if got := m.words.Log.SavedRows() + m.upper.Log.SavedRows(); got != maskLevels {
		t.Errorf("%d words are saved, want one per level", got)
	}
	w.Restore(cp)
	m.Remove(5)
	m.Add(5)
	if got := m.words.Log.SavedRows() + m.upper.Log.SavedRows(); got != 1 {
		t.Errorf("%d words are saved, want one", got)
	}
	m.Add(100_100)
	if got := m.words.Log.SavedRows() + m.upper.Log.SavedRows(); got != 3 {
		t.Errorf("%d words are saved, want three", got)
	}
	w.Restore(cp)
	if m.Len() != 100_000 || m.And().Len() != 100_000 {
		t.Errorf("Len() = %d, %d counted after Restore", m.Len(), m.And().Len())
	}
}

func TestMask_RecorderAloneSavesNoWords(t *testing.T) {
	w := NewWorld(Options{})
	m := w.NewMask()
	m.Add(1)
	w.Raw().Attach(recorderFunc(func(*raw.Change) uint64 { return 0 }), 0)
	m.Add(2)
	m.Remove(1)
	m.Clear()
	m.Add(3)
	if bytes := w.History().Bytes(); bytes != 0 {
		t.Errorf("Bytes() = %d, want 0", bytes)
	}
	w.Commit()
	cp := w.Checkpoint()
	m.Add(4)
	w.Restore(cp)
	if got := slices.Collect(m.Indices()); !slices.Equal(got, []uint32{3}) {
		t.Errorf("Indices = %v, want [3]", got)
	}
}

// A change without effect does not make the world dirty, so the undone ticks can still be redone.
func TestMask_ChangeWithoutEffectKeepsRedo(t *testing.T) {
	w := NewWorld(Options{History: 2})
	m, empty := w.NewMask(), w.NewMask()
	m.Add(1)
	w.Commit()
	m.Add(2)
	w.Commit()
	w.History().Rewind(1)
	m.Add(1)
	m.Remove(2)
	empty.Clear()
	if w.Raw().Dirty() || w.History().Newest() != 2 {
		t.Error("the undone ticks were dropped")
	}
	if w.History().Seek(2) != nil || m.Len() != 2 {
		t.Errorf("Len() = %d, want 2", m.Len())
	}
}

func TestMask_Allocations(t *testing.T) {
	w := NewWorld(Options{History: 4})
	a := MustRegister(w, Component[plain]{Masked: true})
	var entities []Entity
	for range 10_000 {
		e := w.Create()
		a.Set(e, plain{})
		entities = append(entities, e)
	}
	m, far := w.NewMask(), w.NewMask()
	both := m.Or(a.Mask()).And(w.AliveBits()).AndNot(far.Bits)
	sum := uint32(0)
	tick := func() {
		for i := uint32(0); i < 10_000; i += 7 {
			m.Add(i)
			far.Add(i * 100)
			a.Remove(entities[i])
		}
		for i := range both.Indices() {
			sum += i
		}
		for i := range m.Indices() {
			sum += i
		}
		sum += uint32(both.Len())
		for i := uint32(0); i < 10_000; i += 7 {
			m.Remove(i)
			a.Set(entities[i], plain{})
		}
		far.Clear()
		w.Try(func() error { m.Add(3); return errTried })
		w.Commit()
	}
	for range 20 {
		tick()
	}
	if allocs := allocations(t, 10, tick); allocs != 0 {
		t.Errorf("a tick allocates %v times, want 0", allocs)
	}
	if err := w.check(); err != nil {
		t.Error(err)
	}
}

// Has agrees with Indices, both in the first block of 64 indices and in later blocks.
func TestBits_HasAgreesWithIndices(t *testing.T) {
	w := NewWorld(Options{})
	a := MustRegister(w, Component[plain]{Masked: true})
	b := MustRegister(w, Component[extra]{Masked: true})
	for i, e := range w.CreateN(nil, 10_000) {
		if i%3 == 0 && i > 100 {
			a.Set(e, plain{})
		}
		if i%5 == 0 && i < 9000 {
			b.Set(e, extra{})
		}
	}
	for name, bits := range map[string]Bits{
		"a": a.Mask(), "a and b": a.Mask().And(b.Mask()), "a or b": a.Mask().Or(b.Mask()), "a without b": a.Mask().AndNot(b.Mask()), "alive": w.AliveBits(),
	} {
		in := map[uint32]bool{}
		for i := range bits.Indices() {
			in[i] = true
		}
		if len(in) == 0 {
			t.Errorf("%s: no index", name)
		}
		for i := range uint32(10_200) {
			if bits.Has(i) != in[i] {
				t.Errorf("%s: Has(%d) = %v, Indices has it: %v", name, i, bits.Has(i), in[i])
				break
			}
		}
	}
}
