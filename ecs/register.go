package ecs

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
)

var (
	// ErrSharedMemory reports a component type whose copies would share memory.
	ErrSharedMemory = errors.New("ecs: copies share memory")

	// ErrKind reports a kind of storage that does not fit the component.
	ErrKind = errors.New("ecs: bad kind of storage")

	// ErrName reports a component or resource name that is taken or unusable.
	ErrName = errors.New("ecs: bad name")
)

// A RegisterError says which type could not be registered, and why. It wraps
// [ErrSharedMemory], [ErrName], [ErrKind], [ErrVersion] or an error of package
// layout.
type RegisterError struct {
	Type string // The Go type.
	Hint string // What is wrong, and how to repair it.
	Err  error
}

func (e *RegisterError) Error() string {
	return fmt.Sprintf("%v: register %s: %s", e.Err, e.Type, e.Hint)
}

func (e *RegisterError) Unwrap() error { return e.Err }

// An Option changes how a component or resource is registered.
type Option func(*registration)

type registration struct {
	name      string
	clone     any
	noRewind  bool
	noPersist bool
	kind      Kind
	gap       any
	masked    bool

	version    uint32
	former     []string
	migrations []migration
}

// Named sets the name under which a component or resource is saved. The default
// is the name of its Go type, without the package. Once something was saved the
// name must stay.
func Named(name string) Option { return func(r *registration) { r.name = name } }

// CloneWith says how to copy a value of a type that holds slices, maps or
// pointers. Without it such a type is refused: the copy that a checkpoint keeps
// would share memory with the one being written.
func CloneWith[T any](clone func(T) T) Option { return func(r *registration) { r.clone = clone } }

// Stored chooses the kind of a storage; the default is [Sparse]. It does not
// matter for a resource.
func Stored(kind Kind) Option { return func(r *registration) { r.kind = kind } }

// Default says what [Storage.Values] has in the gaps of an [Indexed] storage.
// Without it that is the zero value.
func Default[T any](value T) Option { return func(r *registration) { r.gap = value } }

// NoRewind leaves a component or resource as it is when the world is put back.
// Components of entities that are not alive afterwards are removed. The digest
// leaves it out.
func NoRewind() Option { return func(r *registration) { r.noRewind = true } }

// NoPersist keeps a component or resource out of journals, snapshots and saves.
func NoPersist() Option { return func(r *registration) { r.noPersist = true } }

// Register makes T a component of w and returns its storage. Register all
// components before the world is used.
//
// Options: [Named], [Stored], [Default], [CloneWith], [NoRewind], [NoPersist],
// [Masked]; and for types that are no longer what was saved, [FormerName],
// [Version] and [Migrate].
//
// An error is a [*RegisterError]: a type whose copies would share memory, a type
// that cannot be encoded and is not [NoPersist], a name that is taken, migrations
// that do not lead to T.
func Register[T any](w *World, options ...Option) (*Storage[T], error) {
	spec, err := newSpec[T](w, options)
	if err != nil {
		return nil, err
	}
	s := newStorage(w, spec)
	w.adopt(s)
	return s, nil
}

// MustRegister is [Register] for programs whose types are known to be fit: it
// panics on an error.
func MustRegister[T any](w *World, options ...Option) *Storage[T] {
	s, err := Register[T](w, options...)
	if err != nil {
		panic(err)
	}
	return s
}

// RegisterResource gives w a resource of type T and returns it. The rules are
// those of [Register].
func RegisterResource[T any](w *World, value T, options ...Option) (*Resource[T], error) {
	spec, err := newSpec[T](w, options)
	if err != nil {
		return nil, err
	}
	r := newResource(w, spec, value)
	w.names[spec.name] = r
	w.resources = append(w.resources, r)
	return r, nil
}

// MustRegisterResource is [RegisterResource], panicking on an error.
func MustRegisterResource[T any](w *World, value T, options ...Option) *Resource[T] {
	r, err := RegisterResource(w, value, options...)
	if err != nil {
		panic(err)
	}
	return r
}

// adopt adds a storage to w.
func (w *World) adopt(s AnyStorage) {
	w.names[s.Name()] = s
	w.storages = append(w.storages, s)
	w.sets = append(w.sets, s.sparseSet())
	if x, ok := s.(exemptStorage); ok && s.about().noRewind {
		w.exempt = append(w.exempt, x)
	}
	w.settleObserved()
}

func newSpec[T any](w *World, options []Option) (s typedSpec[T], err error) {
	var reg registration
	t := reflect.TypeFor[T]()
	for _, o := range options {
		o(&reg)
	}
	fail := func(err error, format string, args ...any) (typedSpec[T], error) {
		return s, &RegisterError{t.String(), fmt.Sprintf(format, args...), err}
	}
	if s.name = reg.name; s.name == "" {
		s.name = defaultName(t)
	}
	if s.name == "" {
		return fail(ErrName, "the type has no plain name; give one with Named")
	}
	if hint := w.nameFault(s.name, reg.former); hint != "" {
		return fail(ErrName, "%s", hint)
	}
	if reg.clone != nil {
		clone, ok := reg.clone.(func(T) T)
		if !ok {
			return fail(ErrSharedMemory, "CloneWith has a %T, want func(%v) %v", reg.clone, t, t)
		}
		s.clone = clone
	}
	if path := layout.Shared(t); path != "" && s.clone == nil {
		return fail(ErrSharedMemory, "field %s is shared by copies; say how to copy with CloneWith", path)
	}
	if s.kind = reg.kind; t.Size() == 0 && s.kind == Sparse {
		s.kind = Tag
	}
	if reg.gap != nil {
		gap, ok := reg.gap.(T)
		if !ok || s.kind != Indexed {
			return fail(ErrKind, "Default(%v) is for an Indexed storage of %T", reg.gap, reg.gap)
		}
		s.gap = &gap
	}
	if s.kind > Ordered || s.kind == Tag && t.Size() > 0 {
		return fail(ErrKind, "Stored(%v) does not fit a type of %d bytes", s.kind, t.Size())
	}
	s.tag, s.pointers, s.noRewind, s.noPersist = t.Size() == 0, layout.HasPointers(t), reg.noRewind, reg.noPersist
	s.masked = reg.masked || s.kind == Ordered
	codec, err := layout.NewCodec(t)
	switch {
	case err == nil:
		s.layout, s.codec = codec.Type(), typedRows[T]{codec}
	case !reg.noPersist:
		return fail(err, "it cannot be saved; change it or say NoPersist")
	}
	if s.evolution, err = newEvolution(&reg, s.layout); err != nil {
		return fail(ErrVersion, "%v", err)
	}
	return s, nil
}

// nameFault returns why a component cannot have that name and those former ones,
// or "".
func (w *World) nameFault(name string, former []string) string {
	if other, taken := w.names[name]; taken {
		if other.about().unknown {
			return fmt.Sprintf("a component %q was loaded before it was registered; register before loading", name)
		}
		return fmt.Sprintf("the name %q is taken; give another with Named", name)
	}
	for _, f := range former {
		if _, taken := w.names[f]; taken || f == name || f == "" {
			return fmt.Sprintf("the former name %q is that of a component", f)
		}
	}
	for _, other := range w.Storages() {
		for _, f := range other.about().past().former {
			if f == name || slices.Contains(former, f) {
				return fmt.Sprintf("the name %q is a former name of %s; give another with Named", f, other.Name())
			}
		}
	}
	return ""
}

// defaultName returns the name of t without its package, or "" if it has none
// that would stay the same when code moves.
func defaultName(t reflect.Type) string {
	if name := t.Name(); t.PkgPath() != "" && !strings.ContainsAny(name, "[]/") {
		return name
	}
	return ""
}

// typedRows is the rowCodec of a registered type.
type typedRows[T any] struct{ codec *layout.Codec }

func (c typedRows[T]) append(dst []byte, rows []T) []byte { return layout.Append(c.codec, dst, rows) }

func (c typedRows[T]) appendRanges(dst []byte, rows []T, ranges []raw.Range) []byte {
	if encoded, ok := layout.View(c.codec, rows); ok {
		width := c.codec.Type().Width()
		for _, r := range ranges {
			dst = append(dst, encoded[r.First*width:(r.First+r.N)*width]...)
		}
		return dst
	}
	for _, r := range ranges {
		dst = layout.Append(c.codec, dst, rows[r.First:r.First+r.N])
	}
	return dst
}

func (c typedRows[T]) decode(src []byte, rows []T) error { return layout.Decode(c.codec, src, rows) }

func (c typedRows[T]) adopt(src []byte, n int) ([]T, bool) { return layout.Adopt[T](c.codec, src, n) }

// A rawRow is the encoded row of a component that the program does not register.
// It is immutable, so it needs no clone.
type rawRow string

// rawRows is the rowCodec of an unknown component.
type rawRows struct{ layout *layout.Type }

func (rawRows) append(dst []byte, rows []rawRow) []byte {
	for _, r := range rows {
		dst = append(dst, r...)
	}
	return dst
}

func (c rawRows) appendRanges(dst []byte, rows []rawRow, ranges []raw.Range) []byte {
	for _, r := range ranges {
		dst = c.append(dst, rows[r.First:r.First+r.N])
	}
	return dst
}

func (rawRows) adopt([]byte, int) ([]rawRow, bool) { return nil, false }

func (c rawRows) decode(src []byte, rows []rawRow) error {
	if err := c.layout.Check(src, len(rows)); err != nil {
		return err
	}
	for i := range rows {
		row, rest, err := c.layout.Next(src)
		if err != nil {
			return err
		}
		rows[i], src = rawRow(row), rest
	}
	return nil
}
