package dump

import (
	"fmt"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/near"
	"github.com/stet-ecs/stet/persist"
)

// component returns the component of that name, resources included.
func (s *source) component(im state, name string) (*persist.Component, error) {
	if c := im.Find(name); c != nil {
		return c, nil
	}
	return nil, s.noComponent(name, names(im))
}

// noComponent says that none of the known names is name.
func (s *source) noComponent(name string, known []string) error {
	text := fmt.Sprintf("%s: no component %q", s.path, name)
	if like := near.Names(name, known); len(like) > 0 {
		text += "; did you mean " + strings.Join(like, " or ") + "?"
	}
	return &failure{exitNotFound, fmt.Errorf("%s", text), command("schema", s.path)}
}

// parseEntity reads an ENTITY of the command line, for the store at path.
func parseEntity(path, text string) (ecs.Entity, error) {
	e, err := ecs.ParseEntity(text)
	if err != nil {
		err = fmt.Errorf("%q is not an entity; write INDEXvGENERATION, as in 12v3", text)
		return 0, &failure{exitUsage, err, command("ls", path)}
	}
	return e, nil
}

// components returns the components of those names, and no resources.
func (s *source) components(im state, names []string) ([]*persist.Component, error) {
	var found []*persist.Component
	for _, name := range names {
		c, err := s.component(im, name)
		if err != nil {
			return nil, err
		}
		if c.Resource {
			return nil, s.isResource(name)
		}
		found = append(found, c)
	}
	return found, nil
}

// isResource says that what should be a component is none.
func (s *source) isResource(name string) error {
	err := fmt.Errorf("%s: %s is a resource, no entity has it", s.path, name)
	return &failure{exitNotFound, err, command("show", s.path, "--resources")}
}

func names(im state) (names []string) {
	for _, c := range im.Components {
		names = append(names, c.Name)
	}
	return names
}

// kind returns what c is: component, tag or resource.
func kind(c *persist.Component) string {
	switch {
	case c.Resource:
		return "resource"
	case c.Layout.Width() == 0:
		return "tag"
	}
	return "component"
}
