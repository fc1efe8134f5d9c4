package ecs

import (
	"fmt"
	"testing"
)

// bundleWorld is a world with components of every kind, which are added by bundles or one by one.
type bundleWorld struct {
	w      *World
	plain  *Storage[plain]
	padded *Storage[padded]
	list   *Storage[list]
	label  *Storage[label]
	index  *Storage[indexed]
	hashed *Storage[hashed]
	order  *Storage[ordered]
	word   *Storage[word]
}

func newBundleWorld() *bundleWorld {
	w := NewWorld(Options{History: 3})
	return &bundleWorld{
		w:      w,
		plain:  MustRegister[plain](w),
		padded: MustRegister[padded](w),
		list:   MustRegister(w, Component[list]{Clone: cloneList}),
		label:  MustRegister[label](w),
		index:  MustRegister(w, Component[indexed]{Kind: Indexed}),
		hashed: MustRegister(w, Component[hashed]{Kind: Hashed}),
		order:  MustRegister(w, Component[ordered]{Kind: Ordered}),
		word:   MustRegister[word](w),
	}
}

func (b *bundleWorld) bundle() *Bundle8[plain, padded, list, label, indexed, hashed, ordered, word] {
	return NewBundle8(b.plain, b.padded, b.list, b.label, b.index, b.hashed, b.order, b.word)
}

// one adds the components of the bundle to e, one by one.
func (b *bundleWorld) one(e Entity, v int) {
	b.plain.Set(e, plain{int32(v), 1})
	b.padded.Set(e, padded{B: int64(v)})
	b.list.Set(e, list{[]int{v}})
	b.label.Set(e, label{})
	b.index.Set(e, indexed{int16(v), 2})
	b.hashed.Set(e, hashed{v})
	b.order.Set(e, ordered{v})
	b.word.Set(e, word{fmt.Sprint(v)})
}

func TestBundle_SameAsSingleCalls(t *testing.T) {
	got, want := newBundleWorld(), newBundleWorld()
	all := got.bundle()
	create := func(v int) Entity {
		return all.Create(plain{int32(v), 1}, padded{B: int64(v)}, list{[]int{v}}, label{}, indexed{int16(v), 2}, hashed{v}, ordered{v}, word{fmt.Sprint(v)})
	}
	same := func(when string) {
		t.Helper()
		if got.w.Digest() != want.w.Digest() {
			t.Fatalf("%s: digests differ: %+v, want %+v", when, got.w.Digests(nil), want.w.Digests(nil))
		}
		if err := got.w.check(); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
	}
	var entities []Entity
	for v := range 100 {
		e := create(v)
		x := want.w.Create()
		want.one(x, v)
		if e != x {
			t.Fatalf("Create() = %v, want %v", e, x)
		}
		entities = append(entities, e)
	}
	same("created")
	cp, other := got.w.Checkpoint(), want.w.Checkpoint()
	before := got.w.Digest()
	for i := 0; i < 100; i += 3 {
		got.w.Destroy(entities[i])
		want.w.Destroy(entities[i])
	}
	many := all.CreateN(nil, 50, plain{7, 1}, padded{B: 7}, list{[]int{7}}, label{}, indexed{7, 2}, hashed{7}, ordered{7}, word{"7"})
	for _, e := range want.w.CreateN(nil, 50) {
		want.one(e, 7)
	}
	same("created many")
	got.list.Mut(many[0]).Items[0] = 8 // Each entity has a separate copy.
	want.list.Mut(many[0]).Items[0] = 8
	same("written")
	if !all.Remove(many[1]) || all.Remove(many[1]) || all.Remove(entities[0]) {
		t.Error("Remove returns the wrong result")
	}
	for _, s := range want.w.Storages() {
		if set := s.sparseSet(); set.row(many[1]) >= 0 {
			s.sparseSet().storage.discard(many[1], set.row(many[1]))
		}
	}
	same("removed")
	if all.Set(entities[0], plain{}, padded{}, list{}, label{}, indexed{}, hashed{}, ordered{}, word{}) {
		t.Error("Set of a dead entity = true")
	}
	if !all.Set(many[1], plain{7, 1}, padded{B: 7}, list{[]int{7}}, label{}, indexed{7, 2}, hashed{7}, ordered{7}, word{"7"}) {
		t.Error("Set = false")
	}
	want.one(many[1], 7)
	same("set again")
	got.w.Restore(cp)
	want.w.Restore(other)
	same("restored")
	if got.w.Digest() != before {
		t.Error("the restored world differs")
	}
}

func TestBundle_HookDestroysEntity(t *testing.T) {
	w := newBundleWorld()
	checkAtEnd(t, w.w)
	two := NewBundle2(w.plain, w.padded)
	w.plain.OnAdd(func(e Entity, v plain) {
		switch v.X {
		case 1:
			w.w.Destroy(e)
		case 2:
			w.padded.Set(e, padded{B: 9})
		}
	})
	if e := two.Create(plain{X: 1}, padded{}); w.w.Alive(e) || w.padded.Len() != 0 {
		t.Errorf("%v is alive, %d components", e, w.padded.Len())
	}
	two.Create(plain{X: 2}, padded{B: 1})
	two.CreateN(nil, 3, plain{X: 2}, padded{B: 1})
	two.CreateN(nil, 3, plain{X: 1}, padded{B: 1})
	if w.padded.Len() != 4 || w.w.Len() != 4 {
		t.Errorf("%d components, %d entities, want 4", w.padded.Len(), w.w.Len())
	}
	if e := w.w.Create(); !two.Set(e, plain{X: 1}, padded{}) || w.w.Alive(e) || w.padded.Has(e) {
		t.Error("Bundle.Set and Storage.Set differ for an entity that a hook destroys")
	}
	if e := w.w.Create(); !w.plain.Set(e, plain{X: 1}) || w.w.Alive(e) {
		t.Error("Storage.Set of an entity that a hook destroys")
	}
	if stale := w.w.Create(); !w.w.Destroy(stale) || two.Set(stale, plain{X: 2}, padded{}) || w.w.Len() != 4 {
		t.Error("Bundle.Set of an entity that is not alive")
	}
}

// Create of a bundle reuses the index of a destroyed entity, and overwrites the sparse entry of
// this index. If a restore needs the old entry, Create must save it, even if the new row needs no
// save. In this test, the old entry names a row that already belongs to another entity.
func TestBundle_RestoreAfterIndexIsReused(t *testing.T) {
	w := NewWorld(Options{})
	as, bs := MustRegister[plain](w), MustRegister[padded](w)
	two := NewBundle2(as, bs)
	e, other := two.Create(plain{X: 1}, padded{B: 1}), w.Create()
	as.Reserve(8)
	bs.Reserve(8)
	cp := w.Checkpoint()
	w.Destroy(e)
	as.Set(other, plain{X: 2})
	bs.Set(other, padded{B: 2})
	if again := two.Create(plain{X: 3}, padded{B: 3}); again.Index() != e.Index() {
		t.Fatalf("created %v, want the index of %v", again, e)
	}
	w.Restore(cp)
	if a, ok := as.Get(e); !ok || a.X != 1 {
		t.Errorf("after the restore plain is %v, %v", a, ok)
	}
	if b, ok := bs.Get(e); !ok || b.B != 1 {
		t.Errorf("after the restore padded is %v, %v", b, ok)
	}
}

func TestBundle_Misuse(t *testing.T) {
	v, w := newBundleWorld(), newBundleWorld()
	mustPanic(t, "different worlds", func() { NewBundle2(v.plain, w.padded) })
	mustPanic(t, "twice", func() { NewBundle3(v.plain, v.padded, v.plain) })
}

func TestBundle_Allocations(t *testing.T) {
	w := newBundleWorld()
	two := NewBundle2(w.plain, w.padded)
	entities := two.CreateN(nil, 100, plain{}, padded{})
	n := allocations(t, 10, func() {
		w.w.DestroyAll(entities)
		entities = two.CreateN(entities[:0], 50, plain{}, padded{})
		for range 50 {
			entities = append(entities, two.Create(plain{}, padded{}))
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func ExampleBundle2() {
	type Position struct{ X, Y float64 }
	type Velocity struct{ X, Y float64 }
	w := NewWorld(Options{})
	ball := NewBundle2(MustRegister[Position](w), MustRegister[Velocity](w))
	e := ball.Create(Position{1, 2}, Velocity{0, -1})
	more := ball.CreateN(nil, 3, Position{}, Velocity{1, 0})
	fmt.Println(e, more, w.Len())
	// Output: 0v1 [1v1 2v1 3v1] 4
}
