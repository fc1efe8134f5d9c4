package ecs

import (
	"slices"
	"testing"

	"github.com/stet-ecs/stet/ecs/raw"
)

// The tests below are about defects that other systems have had.

func TestEntity_ReuseOrderAfterLoad(t *testing.T) {
	w := NewWorld(Options{})
	w.entities.maxGeneration = 3
	var handles []Entity
	for i := range 40 {
		handles = append(handles, w.Create())
		if i%3 == 1 {
			w.Destroy(handles[i*7%len(handles)])
		}
		if i%5 == 4 {
			w.Destroy(handles[i-1])
		}
	}
	loaded := NewWorld(Options{})
	loaded.entities.maxGeneration = 3
	if err := loaded.Raw().Load(stateOf(w)); err != nil {
		t.Fatal(err)
	}
	clone := w.Clone()
	for i := range 200 {
		if i%4 == 3 {
			e := w.Entities()[i*13%w.Len()]
			w.Destroy(e)
			loaded.Destroy(e)
			clone.Destroy(e)
			continue
		}
		if a, b, c := w.Create(), loaded.Create(), clone.Create(); a != b || a != c {
			t.Fatalf("creation %d: %v, %v after Load, %v after Clone", i, a, b, c)
		}
	}
}

func TestEntity_StaleHandles(t *testing.T) {
	w := NewWorld(Options{History: 4})
	checkAtEnd(t, w)
	p := MustRegister[plain](w)
	dead := map[Entity]bool{}
	for round := range 50 {
		e := w.Create()
		p.Set(e, plain{int32(round), 0})
		w.Commit()
		w.Destroy(e)
		dead[e] = true
		switch round % 4 {
		case 1:
			w.Clear()
		case 2:
			w.Commit()
			if err := w.Raw().Load(stateOf(w)); err != nil {
				t.Fatal(err)
			}
		case 3:
			_ = w.Try(func() error { w.Create(); w.Create(); return errTried })
		}
		for e := range dead {
			if w.Alive(e) || p.Has(e) {
				t.Fatalf("round %d: %v is alive again", round, e)
			}
		}
	}
}

func TestEntity_GenerationsUsedUp(t *testing.T) {
	w := NewWorld(Options{History: 2})
	checkAtEnd(t, w)
	w.entities.maxGeneration = 4
	seen := map[Entity]bool{}
	for range 100 {
		a, b := w.Create(), w.Create()
		if seen[a] || seen[b] {
			t.Fatalf("%v or %v was created before", a, b)
		}
		seen[a], seen[b] = true, true
		_ = w.Try(func() error { w.Clear(); w.Create(); return errTried })
		w.Destroy(a)
		w.Commit()
		w.Destroy(b)
	}
	for e := range seen {
		if e.Generation() == 0 || e.Generation() > 4 {
			t.Errorf("%v was created", e)
		}
	}
	if _, alive, free := w.Raw().Registry(); alive != 0 || free != 2 {
		t.Errorf("%d alive, %d free, want 0 and 2", alive, free)
	}
}

// rangesRecorder stores which rows changed in the last tick, as ranges.
type rangesRecorder struct {
	entities raw.EntityChange
	storages map[string]raw.StorageChange
}

func (r *rangesRecorder) Record(c *raw.Change) uint64 {
	r.entities = c.Entities
	r.entities.Rows = slices.Clone(r.entities.Rows)
	r.storages = map[string]raw.StorageChange{}
	for _, changed := range c.Storages {
		s := c.Of(changed)
		s.Entities, s.Values = slices.Clone(s.Entities), slices.Clone(s.Values)
		r.storages[s.Storage.Name()] = s
	}
	return c.Tick
}

// A restore reverts the writes since its checkpoint, so a recorder must not get these rows. It gets
// only rows that were written before the checkpoint or after the restore.
func TestRecorder_OmitsRestoredRows(t *testing.T) {
	for _, history := range []int{0, 3} {
		w, a, b, entities := members(1000, Options{History: history})
		checkAtEnd(t, w)
		var r rangesRecorder
		if err := w.Raw().Attach(&r, 0); err != nil {
			t.Fatal(err)
		}
		commit := func(text string, want map[string][]raw.Range) {
			t.Helper()
			w.Commit()
			if len(r.entities.Rows) != 0 {
				t.Errorf("%s: changed entities are %v, want none", text, r.entities.Rows)
			}
			if len(r.storages) != len(want) {
				t.Errorf("%s: changed storages are %v, want %v", text, r.storages, want)
			}
			for name, ranges := range want {
				if got := r.storages[name]; !slices.Equal(got.Values, ranges) || len(got.Entities) != 0 {
					t.Errorf("%s: %s: %+v, want values %v", text, name, got, ranges)
				}
			}
		}
		disturb := func() {
			for _, p := range NewQuery1(Write(a)).All() {
				p.X++
			}
			b.Remove(entities[500])
			w.Destroy(entities[3])
			w.Create()
		}

		cp := w.Checkpoint()
		disturb()
		w.Restore(cp)
		w.Release(cp)
		commit("after a restore", nil)

		a.Mut(entities[7]).X++
		cp = w.Checkpoint()
		disturb()
		w.Restore(cp)
		a.Mut(entities[9]).X++
		w.Release(cp)
		commit("beside a restore", map[string][]raw.Range{"plain": {{First: 7, N: 1}, {First: 9, N: 1}}})

		_ = w.Try(func() error { disturb(); return errTried })
		commit("after a try that failed", nil)

		if history == 0 {
			continue
		}
		disturb()
		w.Commit()
		if err := w.History().Rewind(1); err != nil {
			t.Fatal(err)
		}
		commit("after a rewind", nil)

		disturb()
		if err := w.History().Rewind(0); err != nil {
			t.Fatal(err)
		}
		b.Mut(entities[5]).B++
		commit("after throwing a tick away", map[string][]raw.Range{"padded": {{First: 5, N: 1}}})
	}
}

func TestRecorder_RangesOfAppendedRows(t *testing.T) {
	w, a, _, entities := members(200, Options{})
	var r rangesRecorder
	if err := w.Raw().Attach(&r, 0); err != nil {
		t.Fatal(err)
	}
	for i := 199; i >= 0; i -= 2 { // Write more than 64 ranges, in descending order.
		a.Mut(entities[i]).X++
	}
	young := w.Create()
	a.Set(young, plain{})
	a.Mut(young).X++
	w.Commit()
	got := r.storages["plain"]
	if len(got.Values) != 100 || got.Before != 200 {
		t.Fatalf("%+v, want 100 ranges", got)
	}
	for i, values := range got.Values[:99] {
		if values != (raw.Range{First: 2*i + 1, N: 1}) {
			t.Errorf("range %d is %v", i, values)
		}
	}
	if want := []raw.Range{{First: 200, N: 1}}; got.Values[99] != (raw.Range{First: 199, N: 2}) || !slices.Equal(got.Entities, want) || !slices.Equal(r.entities.Rows, want) {
		t.Errorf("the last values are %v, entities %v and %v", got.Values[99], got.Entities, r.entities.Rows)
	}
}

func TestHistory_RowOrderAfterRewind(t *testing.T) {
	w, a, b, entities := members(100, Options{History: 9})
	w.Commit()
	step := func() {
		k := int(w.Tick()) - 1
		a.Remove(a.Entities()[k*7%a.Len()])
		w.Destroy(w.Entities()[k*5%w.Len()])
		e := w.Create()
		b.Set(e, padded{B: int64(k)})
		a.Set(e, plain{int32(k), 0})
		a.Set(entities[k], plain{})
		w.Commit()
	}
	var digests []Digest
	for range 8 {
		step()
		digests = append(digests, w.Digest())
	}
	for n := 1; n <= 8; n++ {
		if err := w.History().Rewind(n); err != nil {
			t.Fatal(err)
		}
		for k := 8 - n; k < 8; k++ {
			if step(); w.Digest() != digests[k] {
				t.Fatalf("after %d ticks back and forward: tick %d differs", n, k+2)
			}
		}
	}
}

func TestDigest_DetectsDifferences(t *testing.T) {
	build := func(change func(w *World, a *Storage[plain], r *Resource[word], entities []Entity)) Digest {
		w, a, _, entities := members(4, Options{})
		r := Must(RegisterResource(w, word{"x"}))
		change(w, a, r, entities)
		return w.Digest()
	}
	digests := map[Digest]string{}
	for name, change := range map[string]func(w *World, a *Storage[plain], r *Resource[word], entities []Entity){
		"nothing": func(*World, *Storage[plain], *Resource[word], []Entity) {},
		"swapped values": func(_ *World, a *Storage[plain], _ *Resource[word], e []Entity) {
			x, _ := a.Get(e[0])
			y, _ := a.Get(e[1])
			a.Set(e[0], y)
			a.Set(e[1], x)
		},
		"swapped rows": func(_ *World, a *Storage[plain], _ *Resource[word], e []Entity) {
			last, _ := a.Get(e[3])
			x, _ := a.Get(e[2])
			a.Remove(e[2])
			a.Set(e[2], x)
			a.Set(e[3], last)
		},
		"a removed component": func(_ *World, a *Storage[plain], _ *Resource[word], e []Entity) { a.Remove(e[3]) },
		"a resource":          func(_ *World, _ *Storage[plain], r *Resource[word], _ []Entity) { r.Set(word{"y"}) },
		"a tick":              func(w *World, _ *Storage[plain], _ *Resource[word], _ []Entity) { w.Commit() },
		"a new entity":        func(w *World, _ *Storage[plain], _ *Resource[word], _ []Entity) { w.Create() },
		"a dead entity":       func(w *World, _ *Storage[plain], _ *Resource[word], _ []Entity) { w.Destroy(w.Create()) },
		"two dead entities": func(w *World, _ *Storage[plain], _ *Resource[word], _ []Entity) {
			a, b := w.Create(), w.Create()
			w.Destroy(a)
			w.Destroy(b)
		},
		"another reuse order": func(w *World, _ *Storage[plain], _ *Resource[word], _ []Entity) {
			a, b := w.Create(), w.Create()
			w.Destroy(b)
			w.Destroy(a)
		},
		"a reused entity": func(w *World, _ *Storage[plain], _ *Resource[word], _ []Entity) { w.Destroy(w.Create()); w.Create() },
	} {
		d := build(change)
		if other, taken := digests[d]; taken {
			t.Errorf("%q and %q have the same digest", name, other)
		}
		digests[d] = name
	}
}

// The digest must not depend on state that a restore does not change: rows past the end,
// capacities, padding, and the order of registration.
func TestDigest_SameForEqualWorlds(t *testing.T) {
	w, a, b, entities := members(50, Options{History: 3})
	v, _, _, _ := members(50, Options{})
	extraFirst := NewWorld(Options{})
	MustRegister(extraFirst, Component[extra]{NoRewind: true})
	MustRegister[padded](extraFirst)
	MustRegister[plain](extraFirst)
	if err := extraFirst.Raw().Load(stateOf(v)); err != nil {
		t.Fatal(err)
	}
	cp := w.Checkpoint()
	for range 200 {
		a.Set(w.Create(), plain{1, 1})
	}
	for _, e := range entities {
		w.Destroy(e)
	}
	b.Clear()
	w.Restore(cp)
	if w.Digest() != v.Digest() || extraFirst.Digest() != v.Digest() {
		t.Errorf("digests %v, %v and %v, want equal ones", w.Digest(), v.Digest(), extraFirst.Digest())
	}
	x := MustRegister(w, Component[extra]{NoRewind: true})
	x.Set(entities[0], extra{5})
	if w.Digest() != v.Digest() {
		t.Error("the digest contains a component that does not rewind")
	}
	only := w.Digests(func(s raw.Storage) bool { return s.Name() == "padded" })
	all := v.Digests(nil)
	if len(only.Storages) != 1 || len(all.Storages) != 2 || only.Storages[0] != all.Storages[0] || only.Registry != all.Registry {
		t.Errorf("digests of one storage %+v, of all %+v", only, all)
	}
	if got := Digest(0xabc).String(); got != "0000000000000abc" {
		t.Errorf("String() = %q", got)
	}
}
