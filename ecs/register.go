package ecs

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/naming"
)

// maxComponents is the maximum number of components and resources of a world. It is the limit of
// component numbers in stores.
const maxComponents = 1 << 16

// Errors that a [RegisterError] wraps, in addition to errors of package layout.
var (
	errSharedMemory = errors.New("ecs: copies share memory")
	errKind         = errors.New("ecs: bad kind of storage")
	errName         = errors.New("ecs: name cannot be used")
	errVersion      = errors.New("ecs: bad version")
	errMany         = errors.New("ecs: too many components")
)

// A RegisterError is the error of a type that cannot be registered.
type RegisterError struct {
	Type string // The name of the Go type.
	Hint string // What is wrong, and how to repair it.
	// The kind of error. If the type cannot be encoded, Err is the error of package layout.
	Err error
}

func (e *RegisterError) Error() string {
	return fmt.Sprintf("%v: register %s: %s", e.Err, e.Type, e.Hint)
}

func (e *RegisterError) Unwrap() error { return e.Err }

// A Component has the options of a component or resource of type T. Most types need no options.
type Component[T any] struct {
	// Name is the name under which values are saved. Do not change it after values were saved. It
	// has 1 to 255 bytes of UTF-8 with visible characters only, and no space at either end. The
	// default is the name of the Go type, without the package.
	Name string

	// Kind is the kind of the storage. Resources ignore it. The default is Sparse, or Tag for types
	// of size 0.
	Kind Kind

	// Default is the value of gaps in Storage.Values of an Indexed storage. If it is not set, gaps
	// have the zero value.
	Default T

	// Clone returns a deep copy of a value, for types that contain slices, maps or pointers.
	// Checkpoints keep such copies. The default is a copy function computed from T, which costs
	// about 100 ns for each slice, map and pointer.
	//
	// Some types have no default: recursive types, and NoPersist types that contain interfaces,
	// funcs or channels.
	//
	// A Clone must copy every field, and the copy must share no memory with the original. A debug
	// build panics if they share memory. If Clone panics, the row does not count as written.
	Clone func(T) T

	// Masked makes the storage maintain a Mask of its entity indices. Adding and removing a
	// component then costs a write of the mask.
	Masked bool

	// NoRewind excludes the component from restores, which keep its current value. A restore
	// removes the component of entities that are not alive afterwards. The digest does not include
	// NoRewind components.
	//
	// After a restore, the world may create the same Entity for another object. So an Entity in a
	// NoRewind component may become stale, and so may the entity that has the component: see
	// World.Restores.
	NoRewind bool

	// NoPersist excludes the component from journals, snapshots and saves.
	NoPersist bool

	// FormerNames are earlier names of the component in saved data, the latest first. A load looks
	// for values under Name, then under the former names. A former name must not be the name of
	// another component of the world.
	//
	// If FormerNames is nil, a load fails if the component was probably renamed. This is the case
	// if no values are stored under Name, but an unregistered component with the same fields is
	// stored. An empty list that is not nil declares that the component had no other names.
	FormerNames []string

	// Dropped has the names of stored fields that T no longer has, and whose values may be lost:
	// "Shield", "Pos.X", "Items[].Count", "Slots[2:]", "Stock[value].Worn". A load that would lose
	// other fields fails, and its error has the names to add here.
	Dropped []string

	// Version is the version of the component's values, and is saved with them. A load converts
	// values of an earlier version step by step with Migrations. A step without a migration
	// converts values by field names: see layout.NewConversion. A load of values with a later
	// version fails.
	Version    uint32
	Migrations []Migration
}

// optional returns the optional Component of a registration, or the zero Component.
func optional[T any](said []Component[T]) (c Component[T]) {
	if len(said) > 1 {
		panic("ecs: two Components for one registration; set all options in one Component")
	}
	for _, c = range said {
	}
	return c
}

// Register makes T a component of w, and returns its storage. Register all components before the
// program uses the world. The argument c has at most one [Component] with options:
//
//	positions, err := ecs.Register[Position](w)
//	heights, err := ecs.Register(w, ecs.Component[Height]{Kind: ecs.Indexed})
//
// An error is a [*RegisterError]. The possible reasons are:
//
//   - T cannot be encoded and is not NoPersist.
//   - T has no Clone and needs one.
//   - The name is taken.
//   - The migrations do not lead to T.
func Register[T any](w *World, c ...Component[T]) (*Storage[T], error) {
	spec, err := newSpec(w, optional(c))
	if err != nil {
		return nil, err
	}
	s := newStorage(w, spec)
	w.adopt(s)
	return s, nil
}

// MustRegister is [Register], but panics on an error. See [Must].
func MustRegister[T any](w *World, c ...Component[T]) *Storage[T] { return Must(Register(w, c...)) }

// RegisterResource adds a resource of type T to w, and returns it. The rules are those of
// [Register]. The world takes ownership of the slices, maps and pointers in value.
func RegisterResource[T any](w *World, value T, c ...Component[T]) (*Resource[T], error) {
	spec, err := newSpec(w, optional(c))
	if err != nil {
		return nil, err
	}
	r := newResource(w, spec, value)
	w.adopt(r)
	return r, nil
}

// Must returns v. It panics if err is not nil. It is for calls in programs whose registrations
// cannot fail, such as
//
//	score := ecs.Must(ecs.RegisterResource(world, Score{}))
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// adopt adds the storage or resource s to w.
func (w *World) adopt(s AnyStorage) {
	w.names[s.Name()] = s
	for _, f := range s.about().past().former {
		w.former[f] = s
	}
	set := s.sparseSet()
	if set == nil {
		w.resources = append(w.resources, s)
		if r, ok := s.(interface {
			isTicking() bool
			endTick()
		}); ok && r.isTicking() {
			w.ticking = append(w.ticking, r)
		}
		return
	}
	w.storages, w.sets = append(w.storages, s), append(w.sets, set)
	if s.about().noRewind {
		w.noRewind = append(w.noRewind, set.storage)
	}
	set.updateObserved()
}

func newSpec[T any](w *World, c Component[T]) (s typedSpec[T], err error) {
	said := Component[any]{Name: c.Name, Kind: c.Kind, Masked: c.Masked, NoRewind: c.NoRewind, NoPersist: c.NoPersist,
		FormerNames: c.FormerNames, Dropped: c.Dropped, Version: c.Version, Migrations: c.Migrations}
	if !reflect.ValueOf(&c.Default).Elem().IsZero() {
		said.Default, s.gap = c.Default, &c.Default
	}
	derived, noCopy := layout.DeepCopy[T]()
	if c.Clone != nil {
		noCopy = nil
	}
	codec, err := s.define(w, reflect.TypeFor[T](), said, noCopy)
	if err != nil {
		return s, err
	}
	if s.clone = checkedClone(c.Clone, s.name); s.clone == nil {
		s.clone = derived
	}
	if codec != nil {
		s.codec = typedRows[T]{codec}
	}
	return s, nil
}

// define sets s from the type t and the options c. noCopy is the reason why values cannot be
// copied, or nil. The codec is nil if values cannot be encoded.
func (s *spec) define(w *World, t reflect.Type, c Component[any], noCopy error) (*layout.Codec, error) {
	fail := func(err error, format string, args ...any) (*layout.Codec, error) {
		return nil, &RegisterError{t.String(), fmt.Sprintf(format, args...), err}
	}
	*s = spec{name: cmp.Or(c.Name, defaultName(t)), kind: c.Kind, masked: c.Masked || c.Kind == Ordered,
		tag: t.Size() == 0, pointers: layout.HasPointers(t), noRewind: c.NoRewind, noPersist: c.NoPersist}
	if s.name == "" && t.Kind() == reflect.Pointer {
		return fail(errName, "a component is a value: register %v and not a pointer to it, because Mut and queries return pointers; a component that is a pointer needs a Component.Name", t.Elem())
	}
	if len(w.storages)+len(w.resources) >= maxComponents {
		return fail(errMany, "a world has at most %d components and resources; combine several into one, with a field that tells them apart", maxComponents)
	}
	if s.name == "" {
		return fail(errName, "the type has no plain name; give one as Component.Name")
	}
	if err := naming.Check("the name of a component", s.name); err != nil {
		return fail(errName, "%v; give another name as Component.Name, and the saved name as a former name", err)
	}
	if hint := w.nameFault(s.name, c.FormerNames); hint != "" {
		return fail(errName, "%s", hint)
	}
	codec, noCodec := layout.NewCodec(t)
	switch {
	case noCodec != nil && !c.NoPersist && noCopy != nil:
		return fail(noCodec, "it cannot be saved; change the type, or set NoPersist and Component.Clone")
	case noCodec != nil && !c.NoPersist:
		return fail(noCodec, "it cannot be saved; change the type or set NoPersist")
	case noCopy != nil:
		return fail(errSharedMemory, "%s; set Component.Clone to a function that copies it", strings.TrimPrefix(noCopy.Error(), "layout: "))
	}
	if s.tag && s.kind == Sparse {
		s.kind = Tag
	}
	if c.Default != nil && s.kind != Indexed {
		return fail(errKind, "Default %v is for an Indexed storage", c.Default)
	}
	if s.kind > Ordered || s.kind == Tag && !s.tag {
		return fail(errKind, "Kind %v does not fit a type of %d bytes", s.kind, t.Size())
	}
	if noCodec != nil {
		codec = nil
	} else {
		s.layout = codec.Type()
	}
	var err error
	if s.evolution, err = newEvolution(evolution{c.Version, c.FormerNames, c.Dropped, c.Migrations}, s.layout); err != nil {
		return fail(errVersion, "%v", err)
	}
	return codec, nil
}

// nameFault returns the reason why a component cannot have the name or a former name, or "".
func (w *World) nameFault(name string, former []string) string {
	if other, taken := w.names[name]; taken {
		if other.about().unknown {
			return fmt.Sprintf("a component %q was loaded before it was registered; register before loading", name)
		}
		return fmt.Sprintf("the name %q is taken; give another as Component.Name", name)
	}
	for _, f := range former {
		if _, taken := w.names[f]; taken || f == name || f == "" {
			return fmt.Sprintf("the former name %q is that of a component", f)
		}
	}
	for _, f := range append([]string{name}, former...) {
		if other := w.former[f]; other != nil {
			return fmt.Sprintf("the name %q is a former name of %s; give another as Component.Name", f, naming.Shown(other.Name()))
		}
	}
	return ""
}

// defaultName returns the name of t without its package, or "" if t has no simple name.
func defaultName(t reflect.Type) string {
	if name := t.Name(); t.PkgPath() != "" && !strings.ContainsAny(name, "[]/") {
		return name
	}
	return ""
}
