package dump

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/near"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Tree draws who hangs on whom, by a field that holds an entity. Package inspect finds the nodes,
// in the order in which they are drawn; here is which field is meant, what is shown of the nodes,
// and the lines before them.
//
//	--by ──▶ hanging: the field     ──▶ Tree: nodes, each before its sources, and who is rootless
//	     ──▶ --depth, --limit       ──▶ rails.before, nodeDoc.label: a line each

// treeDoc is what tree --json prints. The nodes are flat, each before its sources: what is
// below one are those behind it whose depth is greater, up to the first whose is not.
type treeDoc struct {
	stateDoc
	By        string       `json:"by"`                  // The field that names the target: ChildOf.Parent.
	Ancestors []string     `json:"ancestors,omitempty"` // Of ENTITY, from the root to its target.
	Cycle     bool         `json:"cycle,omitempty"`     // There is no root: the first of them names one behind it, or ENTITY.
	Total     int          `json:"total"`               // Nodes that --depth leaves.
	Nodes     []nodeDoc    `json:"nodes"`               // As many as --limit allows.
	Rootless  *rootlessDoc `json:"rootless,omitempty"`  // Missing if there are none, and with ENTITY.
}

// A nodeDoc is an entity in a tree.
type nodeDoc struct {
	Depth      int    `json:"depth"`
	Entity     string `json:"entity"`
	Target     string `json:"target,omitempty"`      // Whom it names; missing: nobody.
	TargetDead bool   `json:"target_dead,omitempty"` // That one is not alive: the entity is a root.
	Sources    int    `json:"sources"`               // Who name it,
	Below      int    `json:"below"`                 // and all that are below it.
	Again      bool   `json:"again,omitempty"`       // It is ENTITY once more: a cycle, which is not followed further.
}

// A rootlessDoc says who is below no root.
type rootlessDoc struct {
	Entities int    `json:"entities"` // That are in a cycle, or below one.
	First    string `json:"first"`    // By index.
}

var treeCommand = command{
	use: "tree STORE [ENTITY]",
	doc: `Draw what hangs on an entity, or on all roots

Draw the entities below one, by a component that holds an entity: those whose
component names it, those that name these, and so on, in the order of their
indices. Before it stand those above, from the root on. Without ENTITY, all are drawn
that have others below them or have the component, and name nobody who is alive.

What is stored does not say which component is meant: --by names it, and the field
if several of its fields hold an entity, as in ChildOf.Parent. It can be left out if
one component alone has one such field. Fields in slices, maps and behind pointers
do not count.

Where a cycle comes back to ENTITY, it ends. Without ENTITY, entities that are in a
cycle, or below one, are below no root: they are counted at the end.`,
	example: `  ecsdump tree D --by ChildOf
  ecsdump tree D 12v3 --by ChildOf.Parent --depth 2 --at @latest~10
  ecsdump tree D 12v3 --limit 0 --ndjson`,
	complete: []completer{(*completion).entities},
	run: func(f flags) action {
		var d drawer
		f.StringVar(&d.by, "by", "", "COMPONENT or COMPONENT.FIELD that names who is above")
		f.number(&d.depth, "depth", "", 0, "draw at most this many levels below; 0: all")
		f.point(&d.at)
		f.limit(&d.limit, "entities")
		return reading(func(s *source) error { return d.run(s) })
	},
}

// A drawer says what to draw.
type drawer struct {
	by, at string
	depth  uint
	limit  limit
}

// run draws the tree. No state is loaded for it: it is read from the rows of one component.
//
// A peek at the entity, or without ENTITY at one that need not be there, has the components and the
// tick. Which field was taken is told people, if they did not name it.
func (d *drawer) run(s *source) error {
	seq, err := s.Resolve(d.at)
	if err != nil {
		return err
	}
	root := ecs.Entity(0)      // All.
	ask := ecs.NewEntity(0, 1) // Any entity, there or not, knows the components.
	if len(s.args) > 1 {
		if root, err = s.entity(s.args[1], seq); err != nil {
			return err
		}
		ask = root
	}
	p, err := s.peek(ask, seq)
	if err != nil {
		return err
	}
	if root != 0 && !p.Alive {
		return s.notAlive(p)
	}
	by, err := s.hanging(d.by, p.Components)
	if err != nil {
		return err
	}
	nodes, rootless, err := s.Tree(s.ctx, root, by.component, by.field, seq)
	if err != nil {
		return err
	}
	if d.by == "" {
		s.note("drawn by %s", by)
	}
	doc := &treeDoc{stateDoc: stateDoc{p.Tick, p.Seq}, By: by.String(), Nodes: []nodeDoc{}}
	if len(rootless) > 0 {
		doc.Rootless = &rootlessDoc{len(rootless), rootless[0].String()}
	}
	return d.draw(s, nodes, doc)
}

// draw prints nodes, and what doc says beside them.
//
// Nodes before ENTITY have negative depths and are told as ancestors. If the first node of all
// names somebody alive there is no root above it: a cycle. Below the depth that is drawn, nodes say
// how many there are.
func (d *drawer) draw(s *source, nodes []inspect.TreeNode, doc *treeDoc) error {
	// Ancestors come first, from the root on.
	doc.Cycle = len(nodes) > 0 && nodes[0].Target != 0 && !nodes[0].TargetDead
	for ; len(nodes) > 0 && nodes[0].Depth < 0; nodes = nodes[1:] {
		doc.Ancestors = append(doc.Ancestors, nodes[0].Entity.String())
	}
	if d.depth > 0 {
		nodes = slices.DeleteFunc(nodes, func(n inspect.TreeNode) bool { return uint64(n.Depth) > uint64(d.depth) })
	}
	doc.Total = len(nodes)
	shown, more := d.limit.of(len(nodes))
	// The list is streamed; what stands before it is known by now.
	if s.json {
		return stream(s.app, doc, each(shown, func(i int) (nodeDoc, error) { return nodeOf(&nodes[i]), nil }))
	}
	doc.above(s.app)
	rails := rails{levels: railLevels(s.Width)}
	for i := range nodes[:shown] {
		n := &nodes[i]
		cut := d.depth > 0 && uint64(n.Depth) == uint64(d.depth)
		s.Line("%s", rails.before(n)+nodeOf(n).label(cut))
		if err := s.Broken(); err != nil {
			return err
		}
	}
	s.more(more, len(nodes), "entity", "entities")
	if len(nodes) == 0 && doc.Rootless == nil {
		s.Line("no entity has %s at %s", doc.By, doc.place())
	}
	doc.Rootless.print(s)
	return nil
}

// nodeOf describes n.
func nodeOf(n *inspect.TreeNode) nodeDoc {
	doc := nodeDoc{Depth: n.Depth, Entity: n.Entity.String(), TargetDead: n.TargetDead, Sources: n.Sources, Below: n.Below, Again: n.Again}
	if n.Target != 0 {
		doc.Target = n.Target.String()
	}
	return doc
}

// label returns d for people; cut: what is below it is not drawn.
func (d nodeDoc) label(cut bool) string {
	text := d.Entity
	switch {
	case d.Again:
		text += " again: a cycle"
	case d.TargetDead:
		text += fmt.Sprintf("  (its target %s is not alive)", d.Target)
	}
	if cut && d.Below > 0 {
		text += fmt.Sprintf("  (+%d below)", d.Below)
	}
	return text
}

// Of many ancestors, as many are printed of those next to the root and to the entity.
const (
	farAncestors  = 2
	nearAncestors = 10
)

// above prints who is above the entity.
func (d *treeDoc) above(a *app) {
	shown := d.Ancestors
	if left := len(shown) - farAncestors - nearAncestors; left > 1 {
		shown = slices.Concat(shown[:farAncestors], []string{fmt.Sprintf("… %d more …", left)}, shown[farAncestors+left:])
	}
	text := strings.Join(shown, " > ")
	switch {
	case d.Cycle && text == "":
		a.Line("below itself: a cycle")
	case d.Cycle:
		a.Line("below %s: a cycle, there is no root", text)
	case text != "":
		a.Line("below %s", text)
	}
}

// print tells that entities are below no root, if there are any.
func (d *rootlessDoc) print(s *source) {
	if d != nil {
		s.Line("%s in a cycle or below one, and below no root; the first is %s", term.Count(d.Entities, "entity is", "entities are"), d.First)
	}
}

// rails draw the lines that lead to entities, as one of a tree is drawn behind the other.
//
//	├── 1v1            below[0] is "│   " from here on: a source of the root follows
//	│   └── 2v1        below[1] is "    ": it was the last of its siblings
//	└── 3v1            below is cut to this level
//
// Level i of below is what stands under the branch drawn at depth i + 1.
type rails struct {
	below  []string // By level: what is drawn for those below.
	levels int      // That stand beside each other. Deeper ones begin at the margin again, behind how deep that is.
}

// Levels that stand beside each other: mostLevels at most, since a chain of entities would need the
// square of its length otherwise, and as many as leave room for the entity with its notes.
const (
	mostLevels = 32
	noteCells  = 40
	railCells  = 4
)

// railLevels returns how many levels stand beside each other in lines of that many cells; 0: any.
func railLevels(width int) int {
	if width == 0 {
		return mostLevels
	}
	return min(max((width-noteCells)/railCells, 4), mostLevels)
}

// before returns what stands before n. Nodes come each before its sources, so what is drawn for
// the levels above n was noted when these were drawn; what was deeper is over, and is cut.
func (r *rails) before(n *inspect.TreeNode) string {
	if n.Depth == 0 {
		return ""
	}
	rail, branch := "│   ", "├── "
	if n.Last {
		rail, branch = "    ", "└── "
	}
	r.below = append(r.below[:n.Depth-1], rail)
	// Levels before from stood on lines above; the number in brackets says how many.
	from := (n.Depth - 1) / r.levels * r.levels
	text := strings.Join(r.below[from:n.Depth-1], "") + branch
	if from > 0 {
		text = fmt.Sprintf("[%d] %s", from, text)
	}
	return text
}

// An entityField is a field of a component that holds one entity in each value.
type entityField struct {
	component, field string
	only             bool // The component has no other.
}

// String returns the field with its component.
func (f entityField) String() string { return f.component + describe.Dotted(f.field) }

// short returns what somebody would write for f.
func (f entityField) short() string {
	if f.only {
		return f.component
	}
	return f.String()
}

// hangingOn returns what trees can hang on.
func hangingOn(components []inspect.EntityComponent) (fields []entityField) {
	for i := range components {
		c := &components[i]
		if c.Resource {
			continue
		}
		paths := c.EntityFields()
		for _, path := range paths {
			fields = append(fields, entityField{c.Name, path, len(paths) == 1})
		}
	}
	return fields
}

// hanging returns what text, which --by says, names; without a text, the only field that a
// component has, if there is one such component. A component that has a single such field may be
// named alone.
func (s *source) hanging(text string, components []inspect.EntityComponent) (found entityField, err error) {
	all := hangingOn(components)
	words := describe.Listed(all, entityField.short)
	fits := slices.DeleteFunc(slices.Clone(all), func(f entityField) bool {
		return text == "" && !f.only || text != "" && text != f.short() && text != f.String()
	})
	switch {
	case len(all) == 0:
		return found, s.missing(try("schema", s.path), "no component has a field that is an entity")
	case len(fits) == 1:
		return fits[0], nil
	case len(fits) > 1 && text != "": // A dot may be part of a name: the longest is meant.
		return slices.MaxFunc(fits, func(a, b entityField) int { return len(a.component) - len(b.component) }), nil
	case text == "":
		return found, fail(exitUsage, try("tree", append(slices.Clone(s.args), "--by", words[0])...), "which component is meant? Give --by %s", alternatives(words))
	}
	return found, s.notHanging(text, components, all, words)
}

// notHanging says why text names none of all, which are written as words. A resource, a component
// with several such fields, and one with none are each told as what they are.
func (s *source) notHanging(text string, components []inspect.EntityComponent, all []entityField, words []string) error {
	for _, c := range components {
		if c.Name != text {
			continue
		}
		if c.Resource {
			return s.isResource(text)
		}
		own := slices.DeleteFunc(slices.Clone(all), func(f entityField) bool { return f.component != text })
		if len(own) > 0 {
			return fail(exitUsage, try("schema", s.path), "--by: %s has several fields that are entities: give %s", text, alternatives(describe.Listed(own, entityField.short)))
		}
		return s.missing(try("schema", s.path), "%s has no field that is an entity; there is %s", text, alternatives(words))
	}
	return s.missing(try("schema", s.path), "no component %q that names an entity%s", text, near.Hint(text, words))
}

// hanging offers what trees can hang on.
func (c *completion) hanging() error {
	state, err := c.peek(ecs.NewEntity(0, 1))
	if err != nil {
		return err
	}
	for _, f := range hangingOn(state.Components) {
		c.offer(f.short(), "names an entity")
	}
	return nil
}
