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

// How arguments name an entity, a component of it, or a field; and what is said of one that is not
// alive. That is asked often, of what somebody found in a log: so an error tells when it died and
// the command that shows its last state.

// entity reads an ENTITY of the command line. An index alone is the entity that is alive with
// it in the state that record seq leads to, and people are told which that is. Of an index that
// nobody has, the error is about who had it last.
func (s *source) entity(text string, seq uint64) (ecs.Entity, error) {
	index, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		e, err := ecs.ParseEntity(text)
		if err != nil {
			return 0, fail(exitUsage, try("ls", s.path), "%q is not an entity; write %s", text, entityForms)
		}
		return e, nil
	}
	p, err := s.peek(ecs.NewEntity(uint32(index), 1), seq) // Of any generation, it says who has the index.
	if err != nil {
		return 0, err
	}
	if at := (stateDoc{p.Tick, p.Seq}); p.Row < 0 {
		return 0, s.missing(try("ls", s.path), "index %d was never in use: at %s, %s in use", index, at.place(), indices(p.Indices))
	} else if p.Row < p.Living {
		s.note("index %d is %v at %s", index, p.Holder, at.place())
		return p.Holder, nil
	}
	// The state was asked for a made-up generation; what is to be told is about who had the index
	// last.
	p.Entity = p.Holder
	return 0, s.notAlive(p)
}

// entityForms is what an ENTITY can be.
const entityForms = "INDEXvGENERATION, as in 12v3, or the index of one that is alive"

// isEntity reports whether text is written like an ENTITY.
func isEntity(text string) bool {
	_, err := ecs.ParseEntity(text)
	if err != nil {
		_, err = strconv.ParseUint(text, 10, 32)
	}
	return err == nil
}

// notAlive says what is known of an entity that is not alive in p.
//
//	index never used, or generation 0      never existed
//	generation above that of the index     does not exist yet
//	destroyed by a tick that is kept       was destroyed in tick N; try the state before it
//	else                                   is not alive any more
//
// Behind that it says what became of the index. Looking for the tick reads the journal backward,
// perhaps all of it.
func (s *source) notAlive(p *inspect.EntityState) error {
	e, at := p.Entity, stateDoc{p.Tick, p.Seq}.place()
	if p.Row < 0 || e.Generation() == 0 {
		return s.missing(try("ls", s.path), "%v never existed: at %s, %s in use", e, at, indices(p.Indices))
	}
	last := p.Holder // Of a free index: who had it last.
	now, next := "is free", try("ls", s.path)
	switch {
	case p.Row < p.Living:
		now, next = fmt.Sprintf("is alive as %v", last), try("show", s.path, last.String())
	case p.Row >= p.Free: // Rows are alive, then free, then retired.
		now = "is retired: its generations are spent"
	}
	text := "does not exist yet" // Generations of an index only grow.
	if e.Generation() <= last.Generation() {
		text = "is not alive any more"
		d, err := s.deathOf(p.Seq, e)
		if err != nil {
			return err
		}
		if d != nil {
			text = fmt.Sprintf("was destroyed in tick %d (record %d)", d.Tick, d.Seq)
			next = try("show", s.path, e.String(), "--at", fmt.Sprintf("record:%d", d.Parent)) + "\n" + try("history", s.path, e.String())
		}
	}
	return s.missing(next, "%v %s; at %s, index %d %s", e, text, at, e.Index(), now)
}

// indices says which indices a state has, of n.
func indices(n int) string {
	if n == 0 {
		return "no index is"
	}
	return fmt.Sprintf("indices 0 to %d are", n-1)
}

// deathOf looks for the tick that destroyed e, back from record seq; nil if it finds none.
// It reads that part of the journal. A tick may have created and destroyed e, and cleared the
// world as well: its operations are read from the last to the first, and a clear only counts
// once it is known that e was there before it.
//
// The last tick that created e bounds the search: older ticks know nothing of it. A clear of the
// world destroys without an operation for each entity, so it is noted until a destroy or a create
// before it is found; at the end of the journal it stands.
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
				death = c // Unless something older did it.
			}
		}
	}
	return death, nil
}

// A subject is what somebody asks about an entity: ENTITY[.Component[.field]], as
// in 12v3.Position.X, 12v3.Bag.Items[0] or 12v3.Bag.Counts["gold"]; or about a resource:
// Resource[.field]. The three parts are read together with the state that is asked about, since a
// name may have dots in it: which component is meant depends on which there are.
type subject struct {
	entity    ecs.Entity // Vacant: it is about a resource, which is the component.
	component string     // "": all of them.
	number    int        // Of the component.
	field     string     // As it is written behind the component.
	steps     []pathStep // To the field; none: the whole component.
}

// isResource reports whether sub is about a resource.
func (sub subject) isResource() bool { return sub.entity == ecs.Vacant }

// holder names the entity that sub is about; "": it is about a resource.
func (sub subject) holder() string { return describe.Holder(sub.entity, sub.isResource()) }

// numbers returns the components that sub is about; none: all.
func (sub subject) numbers() []int {
	if sub.number == allComponents {
		return nil
	}
	return []int{sub.number}
}

// A pathStep leads into a value: to a field, or to an element or entry.
type pathStep struct {
	name string // Of the field, or what is between the brackets.
	item bool
}

// allComponents is the number in a subject that names no component.
const allComponents = -1

// subject reads text, and what the state that record seq leads to has of the entity, or of the
// resources: the newest state of interest. A text that does not begin with an entity is read whole
// as that of a resource.
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
	if state, err = s.peek(sub.entity, seq); err == nil && narrowed {
		err = sub.narrow(s, rest, state.Components)
	}
	return sub, state, err
}

// narrow reads Component[.field], or that of a resource.
func (sub *subject) narrow(s *source, text string, components []inspect.EntityComponent) error {
	n, field := longest(text, components, sub.isResource())
	if n < 0 {
		return sub.unknown(s, text, components)
	}
	c := components[n]
	sub.component, sub.number, sub.field = c.Name, n, field
	var err error
	if sub.steps, err = parseSteps(sub.field); err != nil {
		return fail(exitUsage, try("schema", s.path), "%s%s: %w", sub.component, sub.field, err)
	}
	if err = checkSteps(c.Layout, sub.steps); err != nil {
		return s.missing(try("schema", s.path), "%s: %w", sub.component, err)
	}
	return nil
}

// longest returns which of the components, or of the resources, text begins with, and the field that
// follows it. Names may have dots and brackets in them, so the longest is meant; -1: there is none.
// What follows a name must be a dot or a bracket: Bag is not meant by Bagpipe.
func longest(text string, components []inspect.EntityComponent, resource bool) (number int, field string) {
	number = -1
	for n, c := range components {
		rest, ok := strings.CutPrefix(text, c.Name)
		if ok && c.Resource == resource && (rest == "" || rest[0] == '.' || rest[0] == '[') && (number < 0 || len(rest) < len(field)) {
			number, field = n, rest
		}
	}
	return number, field
}

// unknown is the failure of a text that begins with no name of what it is about. It also looks
// among what it is not about: a component named without an entity, or a resource named behind one,
// are the mistakes that are made most.
func (sub *subject) unknown(s *source, text string, components []inspect.EntityComponent) error {
	var known []string
	for _, c := range components {
		if c.Resource == sub.isResource() {
			known = append(known, c.Name)
		}
	}
	name, _, _ := strings.Cut(text, ".")
	other, field := longest(text, components, !sub.isResource())
	switch {
	case sub.isResource() && strings.ContainsAny(text[:min(1, len(text))], "0123456789"):
		_, err := s.entity(name, 0) // It says what is wrong with it.
		return err
	case other >= 0 && sub.isResource():
		name = components[other].Name
		return s.missing(try("ls", s.path, "--with", name), "%s is a component: say of which entity, as in 12v3.%s", name, name+field)
	case other >= 0:
		return s.isResource(components[other].Name)
	case sub.isResource():
		return s.missing(try("show", s.path, "--resources"), "%q is no entity (%s) and no resource%s", name, entityForms, near.Hint(name, known))
	}
	return s.noComponent(name, known)
}

// String returns sub as it is written.
func (sub subject) String() string {
	switch {
	case sub.isResource():
		return sub.component + sub.field
	case sub.component == "":
		return sub.entity.String()
	}
	return sub.entity.String() + "." + sub.component + sub.field
}

// of follows the steps of sub into a value of its component. It reports false where they
// lead to nothing, as a slice may be too short for an element. Pointers on the way are followed,
// without a step for them.
func (sub subject) of(v layout.Value) (layout.Value, bool) {
	if v.Kind() == 0 {
		return v, false
	}
	for _, s := range sub.steps {
		var ok bool
		if v, ok = s.into(followed(v)); !ok {
			return layout.Value{}, false
		}
	}
	return v, true
}

// followed returns what the pointer v points to; anything else, and nil, is returned as it is.
func followed(v layout.Value) layout.Value {
	for v.Kind() == layout.Pointer && v.Len() > 0 {
		v = v.Index(0)
	}
	return v
}

// into takes the step. A key of a map is named as it prints, and a text with or without quotes.
func (s pathStep) into(v layout.Value) (layout.Value, bool) {
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

// parseSteps reads .name, [3] and ["key"], one behind the other.
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

// nextStep cuts a step off text. Between brackets is a Go string in quotes, which may hold a
// bracket, or what there is up to the next bracket.
func nextStep(text string) (s pathStep, rest string, err error) {
	if name, ok := strings.CutPrefix(text, "."); ok {
		end := strings.IndexAny(name+".", ".[")
		if end == 0 {
			return s, "", fmt.Errorf("a name is missing behind a dot")
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
		return s, "", fmt.Errorf("%q is no element; write [0] or [\"key\"]", text)
	}
	return pathStep{name: key, item: true}, rest, nil
}

// checkSteps returns why no value of type t can be gone into by steps. It asks the type alone: an
// index beyond a slice, or a key that no map has, is no mistake, as another tick may have it.
func checkSteps(t *layout.Type, steps []pathStep) error {
	for _, s := range steps {
		for t.Kind == layout.Pointer {
			t = t.Elem
		}
		var err error
		if t, err = s.intoType(t); err != nil {
			return err
		}
	}
	return nil
}

// intoType returns the type of what the step leads to.
func (s pathStep) intoType(t *layout.Type) (*layout.Type, error) {
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
