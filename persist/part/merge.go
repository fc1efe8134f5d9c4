package part

import (
	"errors"
	"fmt"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/naming"
)

// ErrOutside reports a reference to an entity outside the part, if MergeOptions do not handle it.
var ErrOutside = errors.New("the entity is outside the part; MergeOptions.Outside can replace it")

// An Outside is a reference from a part to an entity outside the part. Its fields From and To are
// IDs of the original world.
type Outside struct {
	// The entity of the part that has the reference; 0 means that a resource has it.
	From      ecs.Entity
	Component string     // The component or resource with the reference.
	Field     string     // The field that has the reference, as in ecs.Reference.
	To        ecs.Entity // The entity outside the part.
	Alive     bool       // The entity was alive when the part was taken.
	Name      string     // The result of Options.Name for To.
}

// String returns o as text for people.
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

// Keep keeps the reference if its entity is alive in the target world, and clears it otherwise. Use
// Keep for a part that returns to its original world. In another world the same ID belongs to
// another entity.
func (o Outside) Keep() (ecs.Entity, error) { return o.To, nil }

// Clear makes the reference [ecs.None].
func (o Outside) Clear() (ecs.Entity, error) { return ecs.None, nil }

// Refuse returns an error that wraps [ErrOutside] if the entity was alive when the part was taken.
// A reference to a dead entity is cleared.
func (o Outside) Refuse() (ecs.Entity, error) {
	if o.Alive {
		return 0, ErrOutside
	}
	return 0, nil
}

// MergeOptions configure [Part.Merge].
type MergeOptions struct {
	// Outside handles a reference out of the part: [Outside.Keep], [Outside.Clear],
	// [Outside.Refuse], or a function of the program. The function may look for an entity by
	// Outside.Name, or distinguish components and fields. It is called once for each combination of
	// component, field and entity, and must not change the world. If the returned entity is not
	// alive, the reference becomes [ecs.None]. A map entry whose key would be ecs.None is left
	// out.
	//
	// The default is Outside.Refuse, so that no reference is lost without an error.
	Outside func(Outside) (ecs.Entity, error)

	// SkipMissing leaves out components that the world has no storage for. By default they are an
	// error.
	SkipMissing bool

	// Resources are the names of resources in the part that replace the world's resources. A
	// resource that the part lacks is an error. By default, the world keeps all its resources.
	Resources []string

	// Times is how many copies of the entities are created. The references of a copy stay within
	// the copy. The default 0 means one copy.
	Times int
}

// A Merged describes the result of a merge.
type Merged struct {
	// Entities are the new entities, in the order of [Part.Entities]. All entities of the first
	// copy come first, then all entities of the second copy, and so on.
	Entities []ecs.Entity

	// Cleared are the references out of the part that became [ecs.None].
	Cleared []Outside

	origins []ecs.Entity
	became  map[ecs.Entity]ecs.Entity
}

// Of returns the first copy of the entity that had the ID e in the original world, and whether such
// a copy exists.
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

// Merge creates in w a new entity for each entity of p, with the same components. References inside
// the part become references to the new entities. MergeOptions handle other references. The new
// entities reach hooks, groups, indexes, relations and a store like any other entity. The other
// entities of w and its tick stay the same.
//
// Merge costs O(part), independent of the size of w. It checks and prepares everything before it
// writes, so after an error w is unchanged. An error names the component or resource. An error
// about a reference has all data of its [Outside], and wraps [ErrOutside] or the error of
// MergeOptions.Outside.
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
	case m.refused != nil: // This error has the IDs of the original world.
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

// resolve returns the replacement for r, a reference to an entity outside the part. If the
// replacement is not alive, resolve returns 0 and reports r as cleared.
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

// describe returns r with the IDs of the original world.
func (m *merging) describe(r ecs.Reference) Outside {
	o := Outside{From: m.origin(r.From), Component: r.Storage.Name(), Field: r.Field, To: r.To}
	if said, ok := m.Part.outside.Get(r.To); ok {
		o.To, o.Alive, o.Name = ecs.NewEntity(said.Index, said.Generation), said.Alive, said.Name
	}
	return o
}
