package part

import (
	"errors"
	"fmt"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/naming"
)

// ErrOutside reports a reference to an entity that is not in the part, where nobody said
// what becomes of it.
var ErrOutside = errors.New("it is outside of the part; MergeOptions.Outside says what becomes of it")

// An Outside is a reference out of a part: who refers, and to whom, as they were called where
// the part was taken from.
type Outside struct {
	From      ecs.Entity // The entity of the part that refers; 0: a resource does.
	Component string     // By which component or resource,
	Field     string     // and where in it, as an ecs.Reference says.
	To        ecs.Entity // The entity that is referred to.
	Alive     bool       // It was alive when the part was taken.
	Name      string     // What Options.Name called it.
}

// String returns o for people.
func (o Outside) String() string {
	text := fmt.Sprintf("component %s of %v", naming.Shown(o.Component), o.From)
	if o.From == 0 {
		text = "resource " + naming.Shown(o.Component)
	}
	if o.Field != "" {
		text += ": " + o.Field
	}
	text += fmt.Sprintf(" refers to %v", o.To)
	if o.Name != "" {
		text += fmt.Sprintf(", %q", o.Name)
	}
	return text
}

// Keep leaves the reference, if that very entity is alive where the part is merged, and
// clears it otherwise: for a part that comes back to the world that it was taken from. In
// another world, that name is somebody else's.
func (o Outside) Keep() (ecs.Entity, error) { return o.To, nil }

// Clear makes the reference the zero entity.
func (o Outside) Clear() (ecs.Entity, error) { return 0, nil }

// Refuse makes the reference an error, which wraps [ErrOutside], if the entity was alive
// when the part was taken. A reference to one that was dead names nobody, and is cleared.
func (o Outside) Refuse() (ecs.Entity, error) {
	if o.Alive {
		return 0, ErrOutside
	}
	return 0, nil
}

// MergeOptions configure [Part.Merge].
type MergeOptions struct {
	// Outside says what becomes of a reference out of the part: [Outside.Keep],
	// [Outside.Clear], [Outside.Refuse], or a function of the program, which may look for
	// an entity of that name, or tell apart by component and field. It is asked once for each component, place in it and
	// entity, and must not change the world. An entity that is not alive there becomes the
	// zero entity; in the key of a map, the entry is left out.
	//
	// Default: Outside.Refuse, as what a part loses by being one is not to be lost by silence.
	Outside func(Outside) (ecs.Entity, error)

	// SkipMissing leaves out components that the world has no storage for. Default: they
	// are an error.
	SkipMissing bool

	// Resources names resources of the part that replace those of the world. One that the
	// part does not have is an error. Default: none.
	Resources []string

	// Times is how many times the entities are made, each time with references among their
	// own. Default 0: once.
	Times int
}

// A Merged is what became of a part in a world.
type Merged struct {
	// Entities are the new entities, in the order of [Part.Entities]; behind them those of
	// the second time, and so on.
	Entities []ecs.Entity

	// Cleared are the references out of the part that became the zero entity.
	Cleared []Outside

	origins []ecs.Entity
	became  map[ecs.Entity]ecs.Entity
}

// Of returns what the first time has become of an entity that was called e where the part was taken
// from, and whether there is one.
func (m *Merged) Of(e ecs.Entity) (ecs.Entity, bool) {
	if m.became == nil {
		m.became = make(map[ecs.Entity]ecs.Entity, len(m.origins))
		for i, e := range m.origins {
			if _, there := m.became[e]; !there {
				m.became[e] = m.Entities[i]
			}
		}
	}
	now, ok := m.became[e]
	return now, ok
}

// Merge gives w new entities with the components of those of p, and leaves all that w has
// as it is. References inside of the part name the new entities; MergeOptions say what becomes
// of others. The entities are created and get their components as by a program that does
// so: hooks, groups, indexes, relations and a store are told. The world's tick stays.
//
// It costs O(part), whatever w holds. All of it is checked and made ready before anything is
// written: after an error w is as it was. An error names the component or resource, or says
// all that an [Outside] does: it wraps [ErrOutside] or what MergeOptions.Outside returned.
func (p *Part) Merge(w *ecs.World, o MergeOptions) (*Merged, error) {
	for _, name := range o.Resources {
		if !p.stored(name) {
			return nil, fmt.Errorf("part: it has no resource %s", naming.Shown(name))
		}
	}
	m := &merging{Part: p, to: w, outside: o.Outside}
	if m.outside == nil {
		m.outside = Outside.Refuse
	}
	entities, err := w.Copy(p.world, p.members(), ecs.CopyOptions{
		Keep:        func(s ecs.AnyStorage) bool { return !reserved(s) },
		SkipMissing: o.SkipMissing,
		Resources:   o.Resources,
		Times:       o.Times,
		Outside:     m.resolve,
	})
	switch {
	case m.refused != nil: // It has the names that the program knows.
		return nil, m.refused
	case err != nil:
		return nil, fmt.Errorf("part: %w", err)
	}
	return &Merged{Entities: entities, Cleared: m.cleared, origins: p.Entities()}, nil
}

// A merging resolves references out of a part.
type merging struct {
	*Part
	to      *ecs.World
	outside func(Outside) (ecs.Entity, error)
	cleared []Outside
	refused error
}

// resolve returns what a reference out of the part becomes.
func (m *merging) resolve(r ecs.Reference) (ecs.Entity, error) {
	o := m.describe(r)
	e, err := m.outside(o)
	if err != nil {
		m.refused = fmt.Errorf("part: %v: %w", o, err)
		return 0, err
	}
	if !m.to.Alive(e) {
		m.cleared = append(m.cleared, o)
		return 0, nil
	}
	return e, nil
}

// describe returns r as it was where the part was taken from.
func (m *merging) describe(r ecs.Reference) Outside {
	o := Outside{From: m.origin(r.From), Component: r.Storage.Name(), Field: r.Field, To: r.To}
	if said, ok := m.Part.outside.Get(r.To); ok {
		o.To, o.Alive, o.Name = ecs.NewEntity(said.Index, said.Generation), said.Alive, said.Name
	}
	return o
}
