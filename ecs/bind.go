package ecs

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/internal/naming"
)

// Bind fills a struct with the handles of a program, in one call:
//
//	type Game struct {
//		Positions *ecs.Storage[Position]
//		Heights   *ecs.Storage[Height] `ecs:"height,indexed"`
//		Score     *ecs.Resource[Score]
//		Hits      *ecs.Events[Hit]
//		Physics   Physics // A nested struct of handles, bound before Game.
//
//		Movers *ecs.Query2[Position, Velocity] `ecs:"write,read"`
//		Ships  *ecs.Bundle2[Position, Velocity]
//
//		children *ecs.Relation[ChildOf]
//	}
//
//	func (g *Game) Build(w *ecs.World) error {
//		g.children = ecs.NewRelation(…)
//		return nil
//	}
//
//	var game Game
//	err := ecs.Bind(w, &game)
//
// # Storages, resources, events and random numbers
//
// Bind fills each exported field that is a nil Storage, Resource, Events or Rand. It first looks
// for a registered handle of that type:
//
//   - If the tag has a name, Bind takes the handle of that name.
//   - Without a name, Bind takes the only handle of the type.
//   - If the world has several, Bind takes the one named after the type.
//
// If the world has no such handle, Bind registers one with the settings of the tag. A tag has a
// name, then after commas a [Kind], masked, norewind, nopersist: `ecs:",norewind"` has no name. A
// resource starts with its zero value. If a component or resource needs other settings, such as
// migrations, register it before Bind:
//
//	game.Health = ecs.MustRegister(w, ecs.Component[Health]{Version: 2, Migrations: …})
//
// Bind leaves fields that are not nil unchanged; their handles must belong to w.
//
// # Queries and bundles
//
// Bind then makes the exported bundles that are nil, and the exported queries that have a tag. The
// tag of a query has the access to each component: write or read, and write? or read? if the
// component is [Optional]. The world must have exactly one storage of each type, or one that is
// named after the type.
//
// # Build
//
// Bind then calls the method Build, if the struct has one. Build creates the other objects that
// need these handles: indexes, relations, groups, and queries with filters. They may be in
// unexported fields. If an embedded struct and the outer struct both have a Build, only that of the
// outer struct runs.
//
// # Clones
//
// To use a clone, bind an empty struct of the same type to the clone. Bind finds the handles, which
// are registered already. Build then creates the relations and hooks, which a clone lacks.
//
// # Errors
//
// An error names the field. Bind returns an error in these cases:
//
//   - The tag contradicts the registered handle.
//   - Two fields have the same handle.
//   - A field whose type is a pointer to a type of this package is nil after Build. The tag "-"
//     excludes a field.
//
// Bind checks fields, tags and names before it registers anything. After an error from a
// registration or from Build, some handles may be registered.
func Bind(w *World, game any) error {
	v := reflect.ValueOf(game)
	if w == nil || v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("ecs: Bind of a %T; give it a world and a pointer to a struct of handles", game)
	}
	b := binding{w: w, taken: map[AnyStorage]string{}, names: map[string]string{}, reasons: map[string]error{}}
	if err := b.run(v.Elem()); err != nil {
		return fmt.Errorf("ecs: bind %w", err)
	}
	return nil
}

// A handle is a pointer that Bind can fill, such as a *Storage. Bind calls its methods on a nil
// pointer, because the field is still nil.
type handle interface {
	of(s AnyStorage) any // Returns the handle of s, or nil if s has another type.
	is(s AnyStorage) bool
	usualName() string
	register(w *World, t bindTag) (any, error)
}

// A binding is the state of one call of Bind.
type binding struct {
	w        *World
	taken    map[AnyStorage]string // Path of the field that each handle is assigned to.
	names    map[string]string     // Path of the field that registers each name.
	register []func() error
	// Functions that make queries and bundles. They run after register and before build.
	assembles []func() error
	build     []func() error
	handles   []boundField
	// Maps the path of a field to the reason why Bind could not make its bundle.
	reasons map[string]error
}

// A boundField is a field that must not be nil when Bind returns.
type boundField struct {
	path string
	v    reflect.Value
}

// run inspects all fields, registers handles, makes queries and bundles, and calls Build methods.
// Then it looks for nil fields.
func (b *binding) run(v reflect.Value) error {
	if err := b.fields(cmp.Or(v.Type().Name(), "struct"), v, false); err != nil {
		return err
	}
	for _, f := range slices.Concat(b.register, b.assembles, b.build) {
		if err := f(); err != nil {
			return err
		}
	}
	for _, f := range b.handles {
		if !f.v.IsNil() {
			continue
		}
		if reason := b.reasons[f.path]; reason != nil {
			return fmt.Errorf("%s: %w; or create it in Build", f.path, reason)
		}
		return fmt.Errorf("%s: it is nil; %s, or exclude it by the tag `ecs:\"-\"`", f.path, f.advice())
	}
	return nil
}

// advice says how the program makes the handle of f.
func (f boundField) advice() string {
	none := reflect.Zero(f.v.Type()).Interface()
	_, fills := none.(handle)
	_, assembles := none.(assembled)
	const tag = "give it a tag with its accesses, such as `ecs:\"write,read\"`"
	name := f.v.Type().Elem().Name()
	switch query := strings.HasPrefix(name, "Query"); {
	case query && f.v.CanSet():
		return "create it in Build, " + tag
	case query:
		return "create it in Build, export it and " + tag
	case (fills || assembles) && !f.v.CanSet():
		return "create it in Build, or export it"
	case strings.HasPrefix(name, "EventReader["):
		return "create it in Build with Events.Reader"
	case strings.HasPrefix(name, "Index["):
		return "create it in Build with ecs.NewIndex"
	}
	return "create it in Build"
}

// fields inspects the fields of v. Nested structs come before the struct itself. If built is true,
// v is embedded in a struct that has a method Build. Bind then calls only the Build of the outer
// struct.
func (b *binding) fields(path string, v reflect.Value, built bool) error {
	before, method := len(b.handles), v.Addr().MethodByName("Build")
	own := reflect.TypeFor[World]().PkgPath()
	for i := range v.NumField() {
		f, at := v.Type().Field(i), path+"."+v.Type().Field(i).Name
		tag, tagged := f.Tag.Lookup("ecs")
		isHandle := f.Type.Kind() == reflect.Pointer && f.Type.Elem().PkgPath() == own
		var err error
		h, fills := reflect.Zero(f.Type).Interface().(handle)
		made, assembles := reflect.Zero(f.Type).Interface().(assembled)
		switch {
		case tag == "-":
		case f.Type.Kind() == reflect.Struct && f.Type.PkgPath() == own && !tagged:
			// Skip structs of this package, such as a Checkpoint: they have no handles.
		case f.Type.Kind() == reflect.Struct && !tagged:
			err = b.fields(at, v.Field(i), f.Anonymous && method.IsValid())
		case fills && v.Field(i).CanSet():
			b.handles = append(b.handles, boundField{at, v.Field(i)})
			err = b.field(at, v.Field(i), h, tag)
		case assembles && v.Field(i).CanSet():
			b.handles = append(b.handles, boundField{at, v.Field(i)})
			err = b.assemble(at, v.Field(i), made, tag, tagged)
		case tagged:
			err = fmt.Errorf("a tag is for an exported field that is a Storage, Resource, Events, Rand or query")
		case isHandle:
			b.handles = append(b.handles, boundField{at, v.Field(i)})
		}
		if err != nil {
			return inField(at, err)
		}
	}
	if method.IsValid() && !built && len(b.handles) > before && v.CanInterface() {
		build, ok := v.Addr().Interface().(interface{ Build(*World) error })
		if !ok {
			return fmt.Errorf("%s: its method Build is a %v; Bind calls a func(*ecs.World) error", path, method.Type())
		}
		b.build = append(b.build, func() error { return inField(path, build.Build(b.w)) })
	}
	return nil
}

// inField adds the path of the field to err, unless err already has it.
func inField(path string, err error) error {
	if err == nil || strings.HasPrefix(err.Error(), path+".") || strings.HasPrefix(err.Error(), path+":") {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// field finds the handle for the field at path, or schedules its registration.
func (b *binding) field(path string, v reflect.Value, h handle, tag string) error {
	t, err := parseBindTag(tag)
	if err != nil {
		return err
	}
	s, err := b.find(v, h, t, "name one in the tag")
	if err != nil {
		return err
	}
	if s == nil {
		t.name = cmp.Or(t.name, h.usualName())
		if other, taken := b.names[t.name]; taken {
			return fmt.Errorf("%s also registers %s; give one of them another name", other, naming.Shown(t.name))
		}
		if t.name != "" {
			b.names[t.name] = path
		}
		b.register = append(b.register, func() error {
			made, err := h.register(b.w, t)
			if err == nil {
				v.Set(reflect.ValueOf(made))
			}
			return inField(path, err)
		})
		return nil
	}
	if other, taken := b.taken[s]; taken {
		return fmt.Errorf("%s is %s too", other, naming.Shown(s.Name()))
	}
	if b.taken[s] = path; v.IsNil() {
		v.Set(reflect.ValueOf(h.of(s)))
	}
	return t.check(s)
}

// find returns the registered handle for a field, or nil. advice says what to do if the world has
// several.
func (b *binding) find(v reflect.Value, h handle, t bindTag, advice string) (AnyStorage, error) {
	if !v.IsNil() {
		for _, s := range b.w.Storages() {
			if v.Interface().(handle).is(s) {
				return s, nil
			}
		}
		return nil, errors.New("it belongs to another world; bind an empty struct")
	}
	if s, there := b.w.names[t.name]; there {
		if h.of(s) == nil {
			return nil, fmt.Errorf("%s, which the world has, is of another type", naming.Shown(t.name))
		}
		return s, nil
	}
	var found []AnyStorage
	var names []string
	for _, s := range b.w.Storages() {
		if h.of(s) != nil {
			found, names = append(found, s), append(names, naming.Shown(s.Name()))
		}
	}
	switch k := slices.IndexFunc(found, func(s AnyStorage) bool { return s.Name() == h.usualName() }); {
	case len(found) == 0 || t.name != "":
		return nil, nil
	case len(found) == 1:
		return found[0], nil
	case k >= 0:
		return found[k], nil
	}
	return nil, fmt.Errorf("the world has %s of this type; %s", strings.Join(names, ", "), advice)
}

// bindWords are the settings that a tag may have.
const bindWords = "sparse, tag, indexed, hashed, ordered, masked, norewind, nopersist"

// A bindTag is the parsed tag of a field.
type bindTag struct {
	name                        string
	kind                        Kind
	kinded                      bool // The tag has the name of a kind.
	masked, noRewind, noPersist bool
}

func parseBindTag(tag string) (t bindTag, err error) {
	name, words, _ := strings.Cut(tag, ",")
	t.name = strings.TrimSpace(name)
	if !strings.Contains(tag, ",") && slices.Contains(strings.Split(bindWords, ", "), t.name) {
		return t, fmt.Errorf("its tag %q would be a name; for the setting, put a comma before it: %q", t.name, ","+t.name)
	}
	for word := range strings.SplitSeq(words, ",") {
		switch word = strings.TrimSpace(word); word {
		case "":
		case "masked":
			t.masked = true
		case "norewind":
			t.noRewind = true
		case "nopersist":
			t.noPersist = true
		default:
			for t.kind = Sparse; t.kind.String() != word; t.kind++ {
				if t.kind == Ordered {
					return t, fmt.Errorf("its tag has the unknown word %q; the words are %s", word, bindWords)
				}
			}
			t.kinded = true
		}
	}
	return t, nil
}

// check returns an error if the settings of s contradict t.
func (t bindTag) check(s AnyStorage) error {
	about := s.about()
	for _, wrong := range []struct {
		is   bool
		what string
	}{
		{t.kinded && s.Kind() != t.kind, t.kind.String()}, {t.masked && !about.masked, "masked"},
		{t.noRewind && !about.noRewind, "norewind"}, {t.noPersist && !about.noPersist, "nopersist"},
	} {
		if wrong.is {
			return fmt.Errorf("its tag says %s, but %s was registered otherwise", wrong.what, naming.Shown(s.Name()))
		}
	}
	return nil
}

// ofResource returns an error if t has settings that only a storage supports.
func (t bindTag) ofResource() error {
	if t.kinded || t.masked {
		return errors.New("its tag has a setting that only storages support")
	}
	return nil
}

// handleOf returns s if it is an S, or nil.
func handleOf[S AnyStorage](s AnyStorage) any {
	if as, ok := s.(S); ok {
		return as
	}
	return nil
}

func (*Storage[T]) of(s AnyStorage) any { return handleOf[*Storage[T]](s) }

func (s *Storage[T]) is(other AnyStorage) bool { return other == AnyStorage(s) }

func (*Storage[T]) usualName() string { return defaultName(reflect.TypeFor[T]()) }

func (*Storage[T]) register(w *World, t bindTag) (any, error) {
	return Register(w, Component[T]{Name: t.name, Kind: t.kind, Masked: t.masked, NoRewind: t.noRewind, NoPersist: t.noPersist})
}

func (*Resource[T]) of(s AnyStorage) any { return handleOf[*Resource[T]](s) }

func (r *Resource[T]) is(other AnyStorage) bool { return other == AnyStorage(r) }

func (*Resource[T]) usualName() string { return defaultName(reflect.TypeFor[T]()) }

func (*Resource[T]) register(w *World, t bindTag) (any, error) {
	if err := t.ofResource(); err != nil {
		return nil, err
	}
	var zero T
	return RegisterResource(w, zero, Component[T]{Name: t.name, NoRewind: t.noRewind, NoPersist: t.noPersist})
}

func (*Events[T]) of(s AnyStorage) any {
	if queue, ok := s.(*Resource[eventQueue[T]]); ok {
		return &Events[T]{queue}
	}
	return nil
}

func (e *Events[T]) is(other AnyStorage) bool { return other == AnyStorage(e.queue) }

func (*Events[T]) usualName() string { return defaultName(reflect.TypeFor[T]()) }

func (*Events[T]) register(w *World, t bindTag) (any, error) {
	if err := t.ofResource(); err != nil {
		return nil, err
	}
	return RegisterEvent(w, Component[T]{Name: t.name, NoRewind: t.noRewind, NoPersist: t.noPersist})
}

func (*Rand) of(s AnyStorage) any {
	if state, ok := s.(*Resource[randState]); ok {
		return &Rand{state: state}
	}
	return nil
}

func (r *Rand) is(other AnyStorage) bool { return other == AnyStorage(r.state) }

func (*Rand) usualName() string { return "Rand" }

func (*Rand) register(*World, bindTag) (any, error) {
	return nil, errors.New("the world has no such Rand; RegisterRand makes it, with its seeds")
}
