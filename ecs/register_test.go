package ecs

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

func TestRegister_Errors(t *testing.T) {
	type local struct{ F func() }
	type nested struct {
		A int
		B struct{ Inner []local }
	}
	type generic[T any] struct{ V T }
	tests := []struct {
		name     string
		register func(w *World) error
		err      error
		text     string
	}{
		{"an interface", registering(Component[struct{ V any }]{Name: "i", NoPersist: true}), errSharedMemory, ".V: the content of an interface cannot be copied; set Component.Clone to a function that copies it"},
		{"a func inside", registering(Component[nested]{NoPersist: true}), errSharedMemory, "nested.B.Inner[].F: the content of a func cannot be copied; set Component.Clone to a function that copies it"},
		{"a func that is to be saved", registering[nested](), nil, "Inner[].F: func values cannot be stored: register ecs.nested: it cannot be saved; change the type, or set NoPersist and Component.Clone"},
		{"a type that contains itself", registering(Component[branching]{NoPersist: true}), errSharedMemory, "a type that contains itself can hold values that go round in circles; set Component.Clone"},
		{"a time", registering(Component[struct{ T time.Time }]{Name: "t"}), nil, "keep UnixNano"},
		{"a type without a name", registering[struct{ X int }](), errName, "give one as Component.Name"},
		{"a basic type", registering[int](), errName, "give one as Component.Name"},
		{"an instance of a generic type", registering[generic[int]](), errName, "give one as Component.Name"},
		{"a name with a NUL", registering(Component[plain]{Name: "a\x00"}), errName, `"a\x00" has characters that cannot be seen; give another name as Component.Name`},
		{"a name of two lines", registering(Component[plain]{Name: "a\nb"}), errName, `"a\nb" has characters that cannot be seen`},
		{"a name that colours", registering(Component[plain]{Name: "\x1b[31m"}), errName, `"\x1b[31m" has characters that cannot be seen`},
		{"a name of no UTF-8", registering(Component[plain]{Name: "\xff"}), errName, `"\xff" has characters that cannot be seen`},
		{"a name that ends in a space", registering(Component[plain]{Name: "a "}), errName, `"a " has characters that cannot be seen`},
		{"a name of a megabyte", registering(Component[plain]{Name: strings.Repeat("x", 1<<20)}), errName, "has 1 to 255 bytes, not 1048576"},
		{"the same type", registering[word](), errName, `the name "word" is taken; give another as Component.Name`},
		{"another type of the same name", registering(Component[plain]{Name: "word"}), errName, `the name "word" is taken`},
		{"what cannot be encoded", registering(Component[struct{ F func() }]{Name: "f", Clone: func(v struct{ F func() }) struct{ F func() } { return v }}), nil, "it cannot be saved; change the type or set NoPersist"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := NewWorld(Options{})
			MustRegister[word](w)
			err := tt.register(w)
			var typed *RegisterError
			if !errors.As(err, &typed) || tt.err != nil && !errors.Is(err, tt.err) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("Register = %v, want %v with %q", err, tt.err, tt.text)
			}
			if n := len(w.Storages()); n != 1 {
				t.Errorf("%d storages after an error, want 1", n)
			}
		})
	}
}

// registering returns a function that registers T as a component and as a resource. Both
// registrations must fail with the same error.
func registering[T any](c ...Component[T]) func(w *World) error {
	return func(w *World) error {
		_, err := Register(w, c...)
		var zero T
		_, err2 := RegisterResource(w, zero, c...)
		if (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
			return errors.New("as a resource: " + err2.Error())
		}
		return err
	}
}

func TestRegister_AllowedTypes(t *testing.T) {
	type named struct{ S [3]string }
	w := NewWorld(Options{})
	MustRegister[named](w)
	MustRegister(w, Component[list]{Clone: cloneList})
	MustRegister(w, Component[int]{Name: "count"})
	MustRegister(w, Component[struct{}]{Name: "nothing"})
	f := MustRegister(w, Component[struct{ F func() }]{Name: "f", NoPersist: true, Clone: func(v struct{ F func() }) struct{ F func() } { return v }})
	if f.Raw().Layout() != nil || f.Raw().Persistent() || f.Name() != "f" {
		t.Errorf("Layout() = %v, Persistent() = %v, Name() = %q", f.Raw().Layout(), f.Raw().Persistent(), f.Name())
	}
	e := w.Create()
	before := w.Digest()
	f.Set(e, struct{ F func() }{})
	if w.Digest() != before {
		t.Error("a component that cannot be encoded is in the digest")
	}
}

func TestMustRegister_Panics(t *testing.T) {
	for name, f := range map[string]func(w *World){
		"component": func(w *World) { MustRegister(w, Component[branching]{NoPersist: true}) },
		"resource":  func(w *World) { Must(RegisterResource(w, branching{}, Component[branching]{NoPersist: true})) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if err, _ := recover().(error); !errors.Is(err, errSharedMemory) {
					t.Errorf("panic with %v, want errSharedMemory", err)
				}
			}()
			f(NewWorld(Options{}))
		})
	}
}

func TestRegister_SameNameOtherType(t *testing.T) {
	w := NewWorld(Options{})
	first := MustRegister[plain](w)
	{
		type plain struct{ Z string }
		if _, err := Register[plain](w); !errors.Is(err, errName) {
			t.Errorf("Register = %v, want errName", err)
		}
		second := MustRegister(w, Component[plain]{Name: "second"})
		e := w.Create()
		second.Set(e, plain{"z"})
		if first.Len() != 0 || second.Len() != 1 || second.Name() != "second" {
			t.Error("two types have the same storage")
		}
	}
}

func TestStorage_EntityNotAlive(t *testing.T) {
	w := NewWorld(Options{History: 1})
	checkAtEnd(t, w)
	p := MustRegister[plain](w)
	l := MustRegister(w, Component[list]{Clone: cloneList})
	alive := w.Create()
	p.Set(alive, plain{1, 1})
	l.Set(alive, list{[]int{1}})
	stale := w.Create()
	p.Set(stale, plain{2, 2})
	l.Set(stale, list{[]int{2}})
	w.Destroy(stale)
	before := w.Digest()
	bytes := w.History().Bytes()

	for _, e := range []Entity{0, stale, alive + 1<<32, NewEntity(0, 0), NewEntity(1, 0), NewEntity(2, 1), NewEntity(4095, 1), NewEntity(4096, 1),
		NewEntity(1<<20, 1), NewEntity(math.MaxUint32, 0), NewEntity(math.MaxUint32, math.MaxUint32), NewEntity(math.MaxUint32-1, 1)} {
		_, ok1 := p.Get(e)
		_, ok2 := l.Get(e)
		for verb, did := range map[string]bool{
			"Alive": w.Alive(e), "Destroy": w.Destroy(e), "Get": ok1 || ok2, "Has": p.Has(e) || l.Has(e),
			"Mut": p.Mut(e) != nil || l.Mut(e) != nil, "Remove": p.Remove(e) || l.Remove(e),
			"Set": p.Set(e, plain{}) || l.Set(e, list{}),
		} {
			if did {
				t.Errorf("%s(%v) had an effect", verb, e)
			}
		}
	}
	if w.Digest() != before || w.History().Bytes() != bytes {
		t.Error("entities that were never created changed the world")
	}
}

func TestParseEntity_RoundTripAndErrors(t *testing.T) {
	for _, e := range []Entity{0, NewEntity(12, 3), NewEntity(math.MaxUint32, math.MaxUint32)} {
		if got, err := ParseEntity(e.String()); got != e || err != nil {
			t.Errorf("ParseEntity(%q) = %v, %v", e.String(), got, err)
		}
	}
	if got := NewEntity(12, 3).String(); got != "12v3" {
		t.Errorf("String() = %q, want 12v3", got)
	}
	for _, s := range []string{"", "v", "12", "12v", "v3", "12v3v", "-1v3", "12v-3", "4294967296v1", "1v4294967296", " 1v1", "0x1v1", "1V1"} {
		if got, err := ParseEntity(s); err == nil {
			t.Errorf("ParseEntity(%q) = %v, want an error", s, got)
		}
	}
}

func TestRegister_TooManyComponents(t *testing.T) {
	w := NewWorld(Options{})
	spec, err := newSpec(w, Component[plain]{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxComponents - 1 {
		spec.name = fmt.Sprint("c", i)
		w.adopt(newStorage(w, spec))
	}
	Must(RegisterResource(w, plain{})) // This registration reaches the maximum.
	for _, err := range []error{
		func() error { _, err := Register[word](w); return err }(),
		func() error { _, err := RegisterResource(w, word{}); return err }(),
	} {
		if !errors.Is(err, errMany) || !strings.Contains(err.Error(), "at most 65536 components and resources") {
			t.Errorf("one component more: %v", err)
		}
	}
}

// Registration refuses a former name that belongs to another component, in clones too.
func TestRegister_FormerNameTaken(t *testing.T) {
	w := NewWorld(Options{})
	MustRegister(w, Component[plain]{FormerNames: []string{"old"}})
	Must(RegisterResource(w, word{}, Component[word]{FormerNames: []string{"older"}}))
	for _, w := range []*World{w, w.Clone()} {
		for _, c := range []Component[list]{{Name: "old"}, {Name: "older"}, {FormerNames: []string{"x", "old"}}, {FormerNames: []string{"older"}}} {
			if _, err := Register(w, c); !errors.Is(err, errName) || !strings.Contains(err.Error(), "is a former name of") {
				t.Errorf("Register(%+v) = %v", c, err)
			}
		}
	}
}
