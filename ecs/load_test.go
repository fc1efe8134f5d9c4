package ecs

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
)

// loadable returns a world with all kinds of data that a state can have.
func loadable(t *testing.T) (*World, *Storage[plain]) {
	w := NewWorld(Options{History: 3})
	p := MustRegister[plain](w)
	l := MustRegister(w, Component[list]{Clone: cloneList})
	d := MustRegister[label](w)
	r := Must(RegisterResource(w, word{"rules"}))
	for i := range 6 {
		e := w.Create()
		p.Set(e, plain{int32(i), 0})
		l.Set(e, list{[]int{i}})
		if i%2 == 0 {
			d.Set(e, label{})
		}
	}
	w.Destroy(w.Entities()[1])
	w.Destroy(w.Entities()[2])
	r.Set(word{"new rules"})
	w.Commit()
	checkAtEnd(t, w)
	return w, p
}

// checkAtEnd checks w at the end of the test.
func checkAtEnd(t *testing.T, w *World) {
	t.Helper()
	t.Cleanup(func() {
		if err := w.check(); err != nil {
			t.Error(err)
		}
	})
}

// unregistered renames storage i to a name that the program does not register. It also sets Lossy.
// Otherwise Load could refuse the state, because it looks for components that were renamed.
func unregistered(s *raw.State, i int) *raw.StorageState {
	s.Lossy, s.Storages[i].Name = true, "x"
	return &s.Storages[i]
}

func TestLoad_Errors(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(s *raw.State)
		text  string
	}{
		{"negative alive", func(s *raw.State) { s.Alive = -1 }, "entities: -1 alive"},
		{"more alive than alive and free", func(s *raw.State) { s.Alive = s.Free + 1 }, "7 alive, 6 with free ones"},
		{"more free than there are", func(s *raw.State) { s.Free = 7 }, "7 with free ones, 6 in all"},
		{"index out of range", func(s *raw.State) { s.Registry[2] = uint64(NewEntity(6, 1)) }, "row 2 holds 6v1"},
		{"huge index", func(s *raw.State) { s.Registry[0] = raw.Vacant }, "row 0 holds"},
		{"index twice", func(s *raw.State) { s.Registry[5] = uint64(NewEntity(uint32(s.Registry[4]), 7)) }, "row 5 holds"},
		{"generation 0", func(s *raw.State) { s.Registry[5] = uint64(NewEntity(uint32(s.Registry[5]), 0)) }, "row 5 holds"},
		{"a name twice", func(s *raw.State) { s.Storages[1].Name = "plain" }, "component plain occurs twice"},
		{"no name", func(s *raw.State) { s.Storages[2].Name = "" }, "it has no name"},
		{"no layout", func(s *raw.State) { s.Storages[0].Layout = nil }, "component plain: "},
		{"no layout, unknown", func(s *raw.State) { s.Storages[0].Name, s.Storages[0].Layout = "x", nil }, "component x: "},
		{"invalid layout", func(s *raw.State) { s.Storages[0].Layout = &layout.Type{Kind: layout.Array, Len: -1} }, "component plain: "},
		{"entity not alive", func(s *raw.State) { s.Storages[0].Entities[1] = s.Registry[s.Alive] }, "component plain: row 1 belongs to"},
		{"entity retired", func(s *raw.State) { s.Free, s.Storages[0].Entities[1] = s.Alive, s.Registry[5] }, "component plain: row 1 belongs to"},
		{"stale entity", func(s *raw.State) { s.Storages[0].Entities[1] += 1 << 32 }, "component plain: row 1 belongs to"},
		{"entity out of range", func(s *raw.State) { s.Storages[0].Entities[1] = raw.Vacant }, "component plain: row 1 belongs to"},
		{"entity zero", func(s *raw.State) { s.Storages[0].Entities[1] = 0 }, "component plain: row 1 belongs to"},
		{"entity twice", func(s *raw.State) { s.Storages[1].Entities[1] = s.Storages[1].Entities[0] }, "component list: 0v1 has two rows"},
		{"a component become a resource", func(s *raw.State) { s.Storages[0].Resource, s.Storages[0].Entities = true, nil }, "component plain: one of stored and registered is a resource"},
		{"a resource become a component", func(s *raw.State) { s.Storages[3].Resource = false }, "component word: one of stored and registered is a resource"},
		{"a resource with entities", func(s *raw.State) { s.Storages[3].Entities = s.Registry[:1] }, "component word: a resource has no entities"},
		{"another layout", func(s *raw.State) { s.Storages[0].Layout = s.Storages[1].Layout }, "component plain: plain.Items: dropped, was []int64"},
		{"a type that cannot be encoded", func(s *raw.State) { s.Storages[0].Name = "opaque" }, "component opaque: the registered type cannot be encoded"},
		{"too few bytes", func(s *raw.State) { s.Storages[0].Rows = s.Storages[0].Rows[1:] }, "component plain: "},
		{"too many bytes", func(s *raw.State) { s.Storages[1].Rows = append(s.Storages[1].Rows, 0) }, "component list: "},
		{"bytes of a tag", func(s *raw.State) { s.Storages[2].Rows = []byte{1} }, "component label: "},
		{"a name that commands a terminal", func(s *raw.State) { unregistered(s, 1).Name, s.Storages[1].Rows[0] = "x\x1b[31m\n", 0xc1 }, `component "x\x1b[31m\n": `},
		{"too few bytes, unknown", func(s *raw.State) { unregistered(s, 0).Rows = s.Storages[0].Rows[1:] }, "component x: "},
		{"bad bytes, unknown", func(s *raw.State) { unregistered(s, 1).Rows[0] = 0xc1 }, "component x: "},
		{"a resource of two rows", func(s *raw.State) { s.Storages[3].Rows = append(s.Storages[3].Rows, s.Storages[3].Rows...) }, "component word: "},
		{"a resource of no row", func(s *raw.State) { s.Storages[3].Rows = nil }, "component word: "},
		{"an unknown resource of no row", func(s *raw.State) { unregistered(s, 3).Rows = nil }, "component x: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, p := loadable(t)
			MustRegister(w, Component[struct{ F func() }]{Name: "opaque", NoPersist: true, Clone: func(v struct{ F func() }) struct{ F func() } { return v }})
			state := stateOf(w)
			for i := range state.Storages {
				state.Storages[i].Entities = slices.Clone(state.Storages[i].Entities)
			}
			state.Registry = slices.Clone(state.Registry)
			p.Set(w.Create(), plain{9, 9})
			before, storages := w.Digests(nil), len(w.Storages())

			tt.spoil(state)
			err := w.Raw().Load(state)
			if !errors.Is(err, raw.ErrState) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("Load = %v, want %q in it", err, tt.text)
			}
			if after := w.Digests(nil); !reflect.DeepEqual(after, before) || len(w.Storages()) != storages {
				t.Errorf("Load left %+v, want %+v", after, before)
			}
			if err := w.History().Rewind(0); err != nil {
				t.Errorf("the history was discarded: %v", err)
			}
		})
	}
}

func TestLoad_WhileCheckpointHeld(t *testing.T) {
	w, _ := loadable(t)
	state := stateOf(w)
	cp := w.Checkpoint()
	if err := w.Raw().Load(state); err != raw.ErrCheckpointHeld {
		t.Errorf("Load = %v, want ErrCheckpointHeld", err)
	}
	if err := w.Raw().Attach(recorderFunc(nil), 0); err != raw.ErrCheckpointHeld {
		t.Errorf("Attach = %v, want ErrCheckpointHeld", err)
	}
	if err := w.Raw().Detach(nil); err != raw.ErrCheckpointHeld {
		t.Errorf("Detach = %v, want ErrCheckpointHeld", err)
	}
	w.Release(cp)
	if err := w.Raw().Load(state); err != nil {
		t.Error(err)
	}
}

func TestLoad_MissingStorages(t *testing.T) {
	w, p := loadable(t)
	r, err := RegisterResource(w, extra{V: 7})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Raw().Load(&raw.State{Tick: 5, Registry: []uint64{uint64(NewEntity(0, 4))}, Alive: 1, Free: 1}); err != nil {
		t.Fatal(err)
	}
	if p.Len() != 0 || w.Len() != 1 || w.Tick() != 5 || r.Get().V != 7 {
		t.Errorf("Len() = %d, %d alive at tick %d, resource %v", p.Len(), w.Len(), w.Tick(), r.Get())
	}
}

// A query that was created before Load must notice that the rows have other entities now. The
// number of rows is the same.
func TestLoad_InvalidatesQueryCaches(t *testing.T) {
	w, a, b, entities := members(100, Options{})
	q := NewQuery2(Read(a), Read(b))
	state := stateOf(w)
	state.Registry = slices.Clone(state.Registry)
	for i := range state.Storages {
		state.Storages[i].Entities = raw.As[uint64](slices.Clone(entities))
	}
	slices.Reverse(state.Storages[1].Entities[:70])
	for range 3 {
		if n := q.Count(); n != 100 {
			t.Errorf("Count() = %d, want 100", n)
		}
		for e, r := range q.All() {
			x, _ := a.Get(e)
			y, _ := b.Get(e)
			if *r.A != x || *r.B != y {
				t.Fatalf("%v has %v and %v, want %v and %v", e, *r.A, *r.B, x, y)
			}
		}
		if err := w.Raw().Load(state); err != nil {
			t.Fatal(err)
		}
		slices.Reverse(state.Storages[0].Entities)
	}
}

func TestLoad_DiscardsHistory(t *testing.T) {
	w, _ := loadable(t)
	w.Commit()
	if err := w.History().Rewind(1); err != nil {
		t.Fatal(err)
	}
	state := stateOf(w)
	if err := w.Raw().Load(state); err != nil {
		t.Fatal(err)
	}
	h := w.History()
	if h.Oldest() != 1 || h.Newest() != 1 || h.Bytes() != 0 {
		t.Errorf("history of ticks %d to %d, %d bytes, want 1 to 1, 0 bytes", h.Oldest(), h.Newest(), h.Bytes())
	}
	if err := h.Rewind(1); !errors.Is(err, ErrNotHeld) {
		t.Errorf("Rewind(1) = %v, want ErrNotHeld", err)
	}
}

func TestLoad_CallsOnRestore(t *testing.T) {
	from, _ := loadable(t)
	state := stateOf(from)
	w, p := loadable(t)
	p.Clear()
	w.Commit()
	calls := 0
	w.OnRestore(func() {
		calls++
		if err := w.check(); err != nil {
			t.Error(err)
		}
		if w.Digest() != from.Digest() || w.Tick() != from.Tick() || w.Raw().Converted() != nil {
			t.Errorf("at tick %d, %v converted: the hook saw another state", w.Tick(), w.Raw().Converted())
		}
	})
	bad := *state
	bad.Alive = -1
	if err := w.Raw().Load(&bad); err == nil || calls != 0 {
		t.Errorf("OnRestore was called %d times for a load that failed with %v", calls, err)
	}
	if err := w.Raw().Load(state); err != nil || calls != 1 {
		t.Errorf("OnRestore was called %d times for a load, want 1, error %v", calls, err)
	}
	r := recorderFunc(nil)
	if err := errors.Join(w.Raw().Attach(r, 0), w.Raw().Detach(r)); err != nil || calls != 1 {
		t.Errorf("OnRestore was called %d times, want 1, after a recorder was attached and detached; error %v", calls, err)
	}
}

func TestLoad_UnknownComponents(t *testing.T) {
	from, _ := loadable(t)
	state := stateOf(from)
	w := NewWorld(Options{History: 2})
	checkAtEnd(t, w)
	p := MustRegister[plain](w)
	if err := w.Raw().Load(state); err != nil {
		t.Fatal(err)
	}
	if got, want := w.Digest(), from.Digest(); got != want {
		t.Errorf("Digest() = %v, want %v", got, want)
	}
	if again := stateOf(w); !sameState(again, state) {
		t.Errorf("saved again: %+v, want %+v", again, state)
	}
	unknown := 0
	for _, s := range w.Storages() {
		if got, want := s.Raw().AppendRanges(nil, []raw.Range{{First: 0, N: s.Len()}}), s.Raw().AppendRows(nil, 0, s.Len()); !slices.Equal(got, want) {
			t.Errorf("%s: AppendRanges = %x, want %x", s.Name(), got, want)
		}
		if s.Raw().Unknown() {
			unknown++
		}
	}
	if unknown != 3 {
		t.Errorf("%d unknown, want 3", unknown)
	}

	// Components of unknown types take part in Destroy, Restore and the history.
	before := w.Digest()
	cp := w.Checkpoint()
	w.Destroy(w.Entities()[0])
	from.Destroy(from.Entities()[0])
	if got, want := w.Digest(), from.Digest(); got != want {
		t.Errorf("Digest() after Destroy = %v, want %v", got, want)
	}
	w.Clear()
	w.Restore(cp)
	if w.Digest() != before {
		t.Error("Restore did not restore unknown components")
	}
	w.Release(cp)
	w.Commit()
	w.Clear()
	w.Commit()
	if err := w.History().Rewind(2); err != nil {
		t.Fatal(err)
	}
	if w.Digest() != before {
		t.Error("Rewind did not restore unknown components")
	}
	if _, err := Register[label](w); !errors.Is(err, errName) || !strings.Contains(err.Error(), "loaded before it was registered") {
		t.Errorf("Register = %v, want errName", err)
	}
	p.Clear()
}

func sameState(a, b *raw.State) bool {
	byName := func(s *raw.State) []raw.StorageState {
		return slices.SortedFunc(slices.Values(s.Storages), func(a, b raw.StorageState) int { return strings.Compare(a.Name, b.Name) })
	}
	x, y := byName(a), byName(b)
	for i := range x {
		x[i].Layout, y[i].Layout = nil, nil
		x[i].Entities, y[i].Entities = append([]uint64{}, x[i].Entities...), append([]uint64{}, y[i].Entities...)
		x[i].Rows, y[i].Rows = append([]byte{}, x[i].Rows...), append([]byte{}, y[i].Rows...)
	}
	return a.Tick == b.Tick && a.Alive == b.Alive && a.Free == b.Free && slices.Equal(a.Registry, b.Registry) && reflect.DeepEqual(x, y)
}

// A world keeps loaded components with unknown names. The next load may give such a component
// another layout.
func TestLoad_UnknownComponentsReplaced(t *testing.T) {
	w := NewWorld(Options{})
	checkAtEnd(t, w)
	from, _ := loadable(t)
	states := []*raw.State{stateOf(from), stateOf(from), stateOf(from), stateOf(from)}
	states[1].Storages[0].Name, states[1].Storages[1].Name = "list", "plain"
	states[2].Storages[0].Name, states[2].Storages[3].Name = "word", "plain"
	for i, s := range states {
		if err := w.Raw().Load(s); err != nil {
			t.Fatalf("state %d: %v", i, err)
		}
		if again := stateOf(w); !sameState(again, s) {
			t.Errorf("state %d is saved again as %+v, want %+v", i, again, s)
		}
		if err := w.check(); err != nil {
			t.Fatal(err)
		}
	}
	w.Destroy(w.Entities()[0])
	w.Clear()
	if got := len(w.Storages()); got != 4 {
		t.Errorf("%d storages, want 4", got)
	}
}

func TestWorldClone_IndependentOfOriginal(t *testing.T) {
	w, p := loadable(t)
	c := w.Clone()
	checkAtEnd(t, c)
	if c.Digest() != w.Digest() || c.Tick() != w.Tick() {
		t.Fatal("the clone differs")
	}
	l := w.Storages()[1].(*Storage[list])
	e := w.Entities()[0]
	before := w.Digest()
	l.In(c).Mut(e).Items[0] = 99
	p.In(c).Set(e, plain{99, 99})
	c.Create()
	c.Commit()
	if w.Digest() != before {
		t.Error("changes of the clone changed the original")
	}
	after := c.Digest()
	l.Mut(e).Items[0] = 77
	w.Clear()
	if c.Digest() != after {
		t.Error("changes of the original changed the clone")
	}
	if err := c.History().Rewind(1); err != nil {
		t.Errorf("the clone has no history: %v", err)
	}
	if err := c.History().Rewind(1); !errors.Is(err, ErrNotHeld) {
		t.Errorf("the clone has the history of the original: %v", err)
	}
	if other := MustRegister[padded](w); other.In(c) != nil {
		t.Error("In found a storage that the clone does not have")
	}
	if r, _ := RegisterResource(w, extra{}); r.In(c) != nil {
		t.Error("In found a resource that the clone does not have")
	}
}
