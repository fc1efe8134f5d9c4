package dump

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/near"
	"github.com/stet-ecs/stet/persist/inspect"
)

// This file parses arguments that name an entity, a component of an entity, or a field. For a dead
// entity, the error names the tick that destroyed it.

// entity parses an ENTITY of the command line: 12v3, or only the index 12. An index means the
// living entity with that index in the state of record seq. In this case, entity prints a note with
// the generation.
func (s *source) entity(text string, seq uint64) (ecs.Entity, error) {
	index, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		e, err := ecs.ParseEntity(text)
		if err != nil {
			return 0, fail(exitUsage, describe.Command("ls", s.path), "%q is not an entity; write %s", text, entityForms)
		}
		if e == ecs.None {
			return 0, s.missing(describe.Command("ls", s.path), "%v never existed: it stands for no entity", e)
		}
		return e, nil
	}
	// Peek also returns the entity that now has the index. So the generation of its argument is
	// arbitrary.
	p, err := s.Peek(s.ctx, ecs.NewEntity(uint32(index), 1), seq)
	if err != nil {
		return 0, err
	}
	if at := describe.State(p.Tick, p.Seq); p.Row < 0 {
		return 0, s.missing(describe.Command("ls", s.path), "index %d was never used: at %s, %s in use", index, at.Place(), indices(p.Indices))
	} else if p.Row < p.Living {
		s.printNote("index %d is %v at %s", index, p.Holder, at.Place())
		return p.Holder, nil
	}
	// Describe the last entity with this index.
	p.Entity = p.Holder
	return 0, s.notAlive(p)
}

// entityForms describes the forms of an ENTITY.
const entityForms = "INDEXvGENERATION, as in 12v3, or the index of one that is alive"

// notAlive returns the error for an entity that is not alive in p. The error also says whether the
// index is free, retired, or in use by another entity. Each row has a case and the text of the
// error:
//
//	the index was never used                       never existed
//	the generation is 0                            never existed
//	the generation is above that of the index      does not exist yet
//	a retained tick destroyed the entity           was destroyed in tick N
//	all other cases                                is not alive any more
//
// notAlive reads the journal back to the tick that destroyed the entity.
func (s *source) notAlive(p *inspect.EntityState) error {
	e, at := p.Entity, describe.State(p.Tick, p.Seq).Place()
	if p.Row < 0 || e.Generation() == 0 {
		return s.missing(describe.Command("ls", s.path), "%v never existed: at %s, %s in use", e, at, indices(p.Indices))
	}
	last := p.Holder // Last entity with the index, if the index is free.
	now, next := "is free", describe.Command("ls", s.path)
	switch {
	case p.Row < p.Living:
		now, next = fmt.Sprintf("is alive as %v", last), describe.Command("show", s.path, last.String())
	// The index is neither alive nor free. In the registry, retired indices come last, after the
	// free indices.
	case p.Row >= p.Free:
		now = "is retired: its generations are used up"
	}
	text := "does not exist yet" // Generations of an index only increase.
	if e.Generation() <= last.Generation() {
		text = "is not alive any more"
		d, err := s.deathOf(p.Seq, e)
		if err != nil {
			return err
		}
		if d != nil {
			text = fmt.Sprintf("was destroyed in tick %d (record %d)", d.Tick, d.Seq)
			next = describe.Command("show", s.path, e.String(), "--at", fmt.Sprintf("record:%d", d.Parent)) + "\n" + describe.Command("history", s.path, e.String())
		}
	}
	return s.missing(next, "%v %s; at %s, index %d %s", e, text, at, e.Index(), now)
}

// indices returns the start of a sentence about the first n indices: "indices 0 to 4 are".
func indices(n int) string {
	if n == 0 {
		return "no index is"
	}
	return fmt.Sprintf("indices 0 to %d are", n-1)
}

// deathOf finds the tick that destroyed e. It reads operations backward from record seq, and ends
// at the operation that created e. It returns nil if it finds no such tick.
//
// A clear of the world destroys all entities. So the first clear after the creation of e has
// destroyed e, unless a destroy of e is found.
func (s *source) deathOf(seq uint64, e ecs.Entity) (death *inspect.Commit, err error) {
	for entry := range s.Log().Ancestors(seq) {
		if err := s.ctx.Err(); err != nil {
			return nil, err
		}
		c, ops, _, err := s.commit(entry.ID.Seq, standing{})
		if err != nil {
			return nil, err
		}
		for _, op := range slices.Backward(ops) {
			switch {
			case op.Kind == raw.OpDestroy && op.Entity == e:
				return c, nil
			case op.Kind == raw.OpCreate && op.Entity == e:
				return death, nil
			case op.Kind == raw.OpClear && op.Component < 0:
				death = c // An older clear or destroy of e replaces this candidate.
			}
		}
	}
	return death, nil
}

// A subject is what an argument of a command names:
//
//	12v3                                      an entity
//	12v3.Position                             a component of an entity
//	12v3.Bag.Items[0], 12v3.Bag.Counts["a"]   a field of a component
//	Score, Score.Points                       a resource, or a field of a resource
//
// Component names may contain dots. The longest known name wins.
type subject struct {
	entity    ecs.Entity // [ecs.Vacant] for a resource; component then names the resource.
	component string     // Name of the component or resource. "" stands for all components.
	number    int        // Number of the component.
	field     string     // The text after the component.
	steps     []pathStep // Path to the field; empty for the whole component.
}

// isResource reports whether sub names a resource and not an entity.
func (sub subject) isResource() bool { return sub.entity == ecs.Vacant }

// holder returns the entity of sub as text, or "" for a resource.
func (sub subject) holder() string { return describe.Holder(sub.entity, sub.isResource()) }

// numbers returns the number of the component that sub names, or nil for all components.
func (sub subject) numbers() []int {
	if sub.number == allComponents {
		return nil
	}
	return []int{sub.number}
}

// A pathStep leads from a value to one of its fields, elements or map entries.
type pathStep struct {
	name string // Name of the field, or the text between the brackets.
	item bool
}

// allComponents is the component number of a subject that is a whole entity.
const allComponents = -1

// subject parses a text that names an entity or a resource. It also returns the state of that
// entity, or of all resources, at record seq.
func (s *source) subject(text string, seq uint64) (sub subject, state *inspect.EntityState, err error) {
	first, rest, narrowed := strings.Cut(text, ".")
	sub = subject{entity: ecs.Vacant, number: allComponents}
	if isEntity(first) {
		if sub.entity, err = s.entity(first, seq); err != nil {
			return sub, nil, err
		}
	} else {
		rest, narrowed = text, true
	}
	if state, err = s.Peek(s.ctx, sub.entity, seq); err == nil && narrowed {
		err = sub.parseComponent(s, rest, state.Components)
	}
	return sub, state, err
}

// parseComponent parses Component[.field], or Resource[.field], and sets these fields of sub.
func (sub *subject) parseComponent(s *source, text string, components []inspect.EntityComponent) error {
	n, field := longestName(text, components, sub.isResource())
	if n < 0 {
		return sub.unknownName(s, text, components)
	}
	c := components[n]
	sub.component, sub.number, sub.field = c.Name, n, field
	var err error
	if sub.steps, err = parseSteps(sub.field); err != nil {
		return fail(exitUsage, describe.Command("schema", s.path), "%s%s: %w", sub.component, sub.field, err)
	}
	if err = checkSteps(c.Layout, sub.steps); err != nil {
		return s.missing(describe.Command("schema", s.path), "%s: %w", sub.component, err)
	}
	return nil
}

// longestName returns the number of the component or resource whose name is at the start of text.
// It also returns the rest of text. If several names match, the longest name wins. The rest must be
// empty or begin with a dot or a bracket: Bagpipe does not name Bag. If no name matches, the number
// is -1.
func longestName(text string, components []inspect.EntityComponent, resource bool) (number int, field string) {
	number = -1
	for n, c := range components {
		rest, ok := strings.CutPrefix(text, c.Name)
		if ok && c.Resource == resource && (rest == "" || rest[0] == '.' || rest[0] == '[') && (number < 0 || len(rest) < len(field)) {
			number, field = n, rest
		}
	}
	return number, field
}

// unknownName returns the error for a text without a known name. Two frequent mistakes have their
// own errors: a component without an entity, and a resource after an entity.
func (sub *subject) unknownName(s *source, text string, components []inspect.EntityComponent) error {
	var known []string
	for _, c := range components {
		if c.Resource == sub.isResource() {
			known = append(known, c.Name)
		}
	}
	name, _, _ := strings.Cut(text, ".")
	other, field := longestName(text, components, !sub.isResource())
	switch {
	case sub.isResource() && strings.ContainsAny(text[:min(1, len(text))], "0123456789"):
		// The text begins with a digit, so it is a wrong entity. The method entity returns the
		// error.
		_, err := s.entity(name, 0)
		return err
	case other >= 0 && sub.isResource():
		name = components[other].Name
		return s.missing(describe.Command("ls", s.path, "--with", name), "%s is a component: name the entity too, as in 12v3.%s", name, name+field)
	case other >= 0:
		return s.isResource(components[other].Name)
	case sub.isResource():
		return s.missing(describe.Command("show", s.path, "--resources"), "%q is neither an entity (%s) nor a resource%s", name, entityForms, near.Hint(name, known))
	}
	return s.noComponent(name, known)
}

// String returns sub in the form of an argument.
func (sub subject) String() string {
	switch {
	case sub.isResource():
		return sub.component + sub.field
	case sub.component == "":
		return sub.entity.String()
	}
	return sub.entity.String() + "." + sub.component + sub.field
}

// valueIn returns the value at the path of sub in v, a value of the component. It returns false if
// the path leads nowhere, for example beyond the end of a slice.
func (sub subject) valueIn(v layout.Value) (layout.Value, bool) {
	if v.Kind() == 0 {
		return v, false
	}
	for _, s := range sub.steps {
		var ok bool
		if v, ok = s.step(deref(v)); !ok {
			return layout.Value{}, false
		}
	}
	return v, true
}

// deref follows the pointer v. It returns v if v is a nil pointer or no pointer.
func deref(v layout.Value) layout.Value {
	for v.Kind() == layout.Pointer && v.Len() > 0 {
		v = v.Index(0)
	}
	return v
}

// step returns the field, element or map entry of v that s names. A string key may omit its quotes.
func (s pathStep) step(v layout.Value) (layout.Value, bool) {
	switch {
	case !s.item:
		return v.Field(s.name)
	case v.Kind() == layout.Map:
		for i := range v.Len() {
			if key := v.Key(i); key.String() == s.name || key.Kind() == layout.String && key.Text() == s.name {
				return v.Index(i), true
			}
		}
	case v.Kind() == layout.Array || v.Kind() == layout.Slice:
		if i, err := strconv.Atoi(s.name); err == nil && i >= 0 && i < v.Len() {
			return v.Index(i), true
		}
	}
	return layout.Value{}, false
}

// parseSteps parses a sequence of .name, [3] and ["key"].
func parseSteps(text string) (steps []pathStep, err error) {
	for text != "" {
		var s pathStep
		if s, text, err = nextStep(text); err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// nextStep cuts the first step off text. Brackets contain a quoted Go string, or plain text without
// a closing bracket.
func nextStep(text string) (s pathStep, rest string, err error) {
	if name, ok := strings.CutPrefix(text, "."); ok {
		end := strings.IndexAny(name+".", ".[")
		if end == 0 {
			return s, "", fmt.Errorf("a name is missing after a dot")
		}
		return pathStep{name: name[:end]}, name[end:], nil
	}
	inside := strings.TrimPrefix(text, "[")
	key, err := strconv.QuotedPrefix(inside)
	if err != nil {
		key, _, _ = strings.Cut(inside, "]")
	}
	rest, ok := strings.CutPrefix(inside[len(key):], "]")
	if !ok || key == "" || inside == text {
		return s, "", fmt.Errorf("%q is not an element; write [0] or [\"key\"]", text)
	}
	return pathStep{name: key, item: true}, rest, nil
}

// checkSteps returns an error if the steps do not fit the type t. An index beyond a slice, or an
// unknown map key, is no error, because it may exist at another tick.
func checkSteps(t *layout.Type, steps []pathStep) error {
	for _, s := range steps {
		for t.Kind == layout.Pointer {
			t = t.Elem
		}
		var err error
		if t, err = s.stepType(t); err != nil {
			return err
		}
	}
	return nil
}

// stepType returns the type of the value after the step.
func (s pathStep) stepType(t *layout.Type) (*layout.Type, error) {
	if !s.item {
		var names []string
		for _, f := range t.Fields {
			if f.Name == s.name {
				return f.Type, nil
			}
			names = append(names, f.Name)
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("no field %q in %v", s.name, t.Kind)
		}
		return nil, fmt.Errorf("no field %q; there are %s", s.name, strings.Join(names, ", "))
	}
	switch t.Kind {
	case layout.Map:
		return t.Elem, nil
	case layout.Array, layout.Slice:
		i, err := strconv.Atoi(s.name)
		if err != nil || i < 0 || t.Kind == layout.Array && i >= t.Len {
			return nil, fmt.Errorf("no element [%s] in %v", s.name, t)
		}
		return t.Elem, nil
	}
	return nil, fmt.Errorf("no element [%s] in %v", s.name, t.Kind)
}
