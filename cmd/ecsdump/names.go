package main

import (
	"fmt"
	"slices"
	"strings"

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
	if near := nearest(name, known); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return &failure{exitNotFound, fmt.Errorf("%s", text), command("schema", s.path)}
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
			err := fmt.Errorf("%s: %s is a resource, no entity has it", s.path, name)
			return nil, &failure{exitNotFound, err, command("show", s.path, "--resources")}
		}
		found = append(found, c)
	}
	return found, nil
}

func names(im state) (names []string) {
	for _, c := range im.Components {
		names = append(names, c.Name)
	}
	return names
}

// nearest returns the names, at most three, that somebody who wrote name may
// have meant, the best first.
func nearest(name string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var near []candidate
	lower := strings.ToLower(name)
	for _, n := range names {
		l := strings.ToLower(n)
		d := distance(lower, l)
		if d <= max(1, min(len(lower), len(l))/3) || len(lower) > 1 && strings.Contains(l, lower) {
			near = append(near, candidate{n, d})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return a.distance - b.distance })
	var best []string
	for _, c := range near[:min(len(near), 3)] {
		best = append(best, c.name)
	}
	return best
}

// distance returns how many bytes must be inserted, deleted or replaced to make
// a into b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1) // Distances of the beginning of a to those of b.
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
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
