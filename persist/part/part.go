package part

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/persist"
)

// A Part is some entities with their components, independent of the world they were taken from.
// [Of] and [Load] create it. It can be saved and merged any number of times, and is not safe for
// concurrent use.
type Part struct {
	world   *ecs.World // The saved world: see the package documentation.
	origins *ecs.Storage[origin]
	outside *ecs.Storage[outside]
	stored  func(resource string) bool // Reports whether the part has the resource.
}

// An origin is the ID of an entity of the part in the original world. It is not an ecs.Entity,
// because it does not refer to an entity of the file.
type origin struct{ Index, Generation uint32 }

func originOf(e ecs.Entity) origin { return origin{e.Index(), e.Generation()} }

func (o origin) entity() ecs.Entity { return ecs.NewEntity(o.Index, o.Generation) }

// An outside is the component of a stand-in entity. It identifies the entity outside the part that
// the stand-in represents.
type outside struct {
	Index, Generation uint32
	Alive             bool
	Name              string
}

// Names of the components origin and outside, which programs cannot use.
const (
	originName  = "part.origin"
	outsideName = "part.outside"
)

func reserved(s ecs.AnyStorage) bool { return s.Name() == originName || s.Name() == outsideName }

// Options configure [Of].
type Options struct {
	// Keep reports whether a component belongs in the part. The default nil means all components
	// that are saved.
	Keep func(ecs.AnyStorage) bool

	// Resources names the resources to include. By default, no resource is included.
	Resources []string

	// Name returns a name for an entity outside the part to which the part refers. The program that
	// merges the part can find a replacement by that name: see [Outside]. By default, the name is
	// "".
	Name func(ecs.Entity) string
}

// Of copies entities of w into a part, in the given order. It copies the components of these
// entities, except NoPersist components, and their references to other entities. w does not change,
// and the part shares no memory with w. An entity that is listed twice occurs once.
//
// Of costs O(entities taken) and O(components that w has registered), independent of the size of w.
//
// An error names the entity, component or resource. Reasons are a dead entity, and a resource that
// does not exist or is not saved. Another reason is a type in which not all references can be
// found, see [ecs.World.Copy].
func Of(w *ecs.World, entities []ecs.Entity, o Options) (*Part, error) {
	for _, name := range o.Resources {
		if s, ok := w.Storage(name); !ok || !s.Raw().IsResource() || !s.Raw().Persistent() {
			return nil, fmt.Errorf("part: no resource %s that is saved", naming.Shown(name))
		}
	}
	p, err := newPart(w, func(s ecs.AnyStorage) bool {
		return !s.Raw().IsResource() || slices.Contains(o.Resources, s.Name())
	})
	if err != nil {
		return nil, err
	}
	p.stored = func(name string) bool { return slices.Contains(o.Resources, name) }
	entities = distinct(entities)
	others := outsiders{first: len(entities)}
	_, err = p.world.Copy(w, entities, ecs.CopyOptions{
		Keep: func(s ecs.AnyStorage) bool {
			return s.Raw().Persistent() && !reserved(s) && (o.Keep == nil || o.Keep(s))
		},
		Resources: o.Resources,
		Outside:   others.standIn,
	})
	if err != nil {
		return nil, fmt.Errorf("part: %w", err)
	}
	for i, e := range p.world.Entities() {
		p.origins.Set(e, originOf(entities[i]))
	}
	for _, e := range others.list {
		said := outside{Index: e.Index(), Generation: e.Generation(), Alive: w.Alive(e)}
		if o.Name != nil {
			said.Name = o.Name(e)
		}
		p.outside.Set(p.world.Create(), said)
	}
	return p, nil
}

// distinct returns entities without repetitions.
func distinct(entities []ecs.Entity) []ecs.Entity {
	met := make(map[ecs.Entity]bool, len(entities))
	return slices.DeleteFunc(slices.Clone(entities), func(e ecs.Entity) bool {
		again := met[e]
		met[e] = true
		return again
	})
}

// outsiders are the entities outside a part to which the part refers. Each of them has a stand-in
// entity in the part. The indices of the stand-ins come after those of the part's own entities.
type outsiders struct {
	first int // Index of the first stand-in.
	list  []ecs.Entity
	known map[ecs.Entity]ecs.Entity
}

// standIn returns the stand-in for the entity that r refers to.
func (o *outsiders) standIn(r ecs.Reference) (ecs.Entity, error) {
	e, ok := o.known[r.To]
	if !ok {
		if o.known == nil {
			o.known = map[ecs.Entity]ecs.Entity{}
		}
		// The ID that the part's world will assign to the stand-in.
		e = ecs.NewEntity(uint32(o.first+len(o.list)), 1)
		o.known[r.To] = e
		o.list = append(o.list, r.To)
	}
	return e, nil
}

// newPart returns a part without entities. The part has the types of w for which keep() returns
// true.
func newPart(w *ecs.World, keep func(ecs.AnyStorage) bool) (*Part, error) {
	for _, name := range [2]string{originName, outsideName} {
		if s, ok := w.Storage(name); ok && !s.Raw().Unknown() {
			return nil, fmt.Errorf("part: the world has a component %s, a name that package part reserves; give the component another Component.Name", name)
		}
	}
	p := &Part{world: w.Blank(func(s ecs.AnyStorage) bool { return !reserved(s) && keep(s) })}
	// A save of a whole world does not have these two components. It may have another component
	// with the same fields, which could be mistaken for a renamed one. The empty list of former
	// names prevents that.
	var errs [2]error
	p.origins, errs[0] = ecs.Register(p.world, ecs.Component[origin]{Name: originName, FormerNames: []string{}})
	p.outside, errs[1] = ecs.Register(p.world, ecs.Component[outside]{Name: outsideName, FormerNames: []string{}})
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("part: %w", err)
	}
	return p, nil
}

// World returns the world that holds the part, for inspection before a merge. Changes to that world
// change the part.
func (p *Part) World() *ecs.World { return p.world }

// members returns the entities of the part, by their IDs in the part.
func (p *Part) members() []ecs.Entity {
	return slices.DeleteFunc(slices.Clone(p.world.Entities()), p.outside.Has)
}

// origin returns the ID that an entity of the part had in the original world. If p was loaded from
// a save of a whole world, origin returns e.
func (p *Part) origin(e ecs.Entity) ecs.Entity {
	if o, ok := p.origins.Get(e); ok {
		return o.entity()
	}
	return e
}

// Entities returns the entities of the part in their order, by their IDs in the original world.
func (p *Part) Entities() []ecs.Entity {
	list := p.members()
	for i, e := range list {
		list[i] = p.origin(e)
	}
	return list
}

// Save writes p to a file, as [persist.Save] does with a world.
func (p *Part) Save(ctx context.Context, file string, o ...persist.FileOptions) error {
	return persist.Save(ctx, file, p.world, o...)
}

// SaveTo writes p to out, as [persist.SaveTo] does with a world.
func (p *Part) SaveTo(ctx context.Context, out io.Writer, o ...persist.FileOptions) error {
	return persist.SaveTo(ctx, out, p.world, o...)
}

// Load reads a part from a file, for worlds with the types of w. It does not change w. Other types
// are converted by the rules of [persist.Load], and the errors are the same. Any save can be read:
// if it is not a part, all its entities are taken.
//
// It costs O(contents of the file) and O(components that w has registered).
func Load(ctx context.Context, file string, w *ecs.World, o ...persist.FileOptions) (*Part, error) {
	return load(file, w, func(into *ecs.World) error { return persist.Load(ctx, file, into, o...) })
}

// LoadFrom reads a part from a reader up to its end, as [Load] does from a file. See
// [persist.LoadFrom] for untrusted input.
func LoadFrom(ctx context.Context, in io.Reader, w *ecs.World) (*Part, error) {
	return load("stream", w, func(into *ecs.World) error { return persist.LoadFrom(ctx, in, into) })
}

// load returns a part with the world that fill() reads. The first argument names the source of the
// world in errors.
func load(file string, w *ecs.World, fill func(*ecs.World) error) (*Part, error) {
	p, err := newPart(w, func(s ecs.AnyStorage) bool { return !s.Raw().Unknown() })
	if err == nil {
		err = fill(p.world)
	}
	if err != nil {
		return nil, err
	}
	if fault := p.fault(); fault != "" {
		return nil, &persist.DamageError{File: file, Offset: -1, Reason: fault, Err: persist.ErrCorrupt}
	}
	missing := p.world.Raw().Converted()
	p.stored = func(name string) bool {
		s, ok := p.world.Storage(name)
		return ok && s.Raw().IsResource() && !slices.ContainsFunc(missing, func(c raw.Conversion) bool { return c.Stored == "" && c.Name == name })
	}
	return p, nil
}

// fault describes the error of a part that was read, or returns "". It is an error if a stand-in
// entity has a component of the program, because Merge would lose that component.
func (p *Part) fault() string {
	for _, s := range p.world.Storages() {
		if s.Name() == outsideName {
			continue
		}
		for _, e := range s.Entities() {
			if e != ecs.Vacant && p.outside.Has(e) {
				return fmt.Sprintf("%v stands for an entity outside the part, but has a component %s", e, naming.Shown(s.Name()))
			}
		}
	}
	return ""
}
