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

// The command tree draws entities as a tree. A field of a component contains the parent of each
// entity. treeField finds the field that --by names. Package inspect returns the entities in
// drawing order: each parent comes before its children.
//
// With --depth and --limit, some entities are left out. rails.prefix and nodeDoc.label make one
// line for each printed entity.

// treeDoc is what tree --json prints. The list of nodes is flat. The descendants of a node follow
// the node and have a greater depth.
type treeDoc struct {
	stateDoc
	// The field that contains the target: ChildOf.Parent.
	By string `json:"by"`
	// The ancestors of ENTITY, from the root to the target of ENTITY.
	Ancestors []string `json:"ancestors,omitempty"`
	// True if the targets above ENTITY form a cycle, so that ENTITY has no root. The target of the
	// first ancestor is then a later ancestor, or ENTITY.
	Cycle bool      `json:"cycle,omitempty"`
	Total int       `json:"total"` // Number of nodes within --depth.
	Nodes []nodeDoc `json:"nodes"` // At most --limit.
	// Missing with ENTITY, or if every entity has a root.
	Rootless *rootlessDoc `json:"rootless,omitempty"`
}

// A nodeDoc is an entity in a tree.
type nodeDoc struct {
	Depth  int    `json:"depth"`
	Entity string `json:"entity"`
	// The target: the entity in the field; missing if the field contains none.
	Target string `json:"target,omitempty"`
	// True if the target is not alive, so the entity is a root.
	TargetDead bool `json:"target_dead,omitempty"`
	Sources    int  `json:"sources"` // Number of entities with this target.
	Below      int  `json:"below"`   // Number of all descendants.
	// True if this is ENTITY again: the end of a cycle.
	Again bool `json:"again,omitempty"`
}

// A rootlessDoc counts the entities that have no root, because they are in a cycle or below one.
type rootlessDoc struct {
	Entities int    `json:"entities"` // Number of entities in cycles or below cycles.
	First    string `json:"first"`    // The rootless entity with the lowest index.
}

var treeCommand = command{
	use: "tree STORE [ENTITY]",
	doc: `Draw the entities below an entity, or below all roots

Draw an entity and its descendants as a tree. A component with a field that holds an
entity, such as ChildOf.Parent, names the parent of each entity. Children are drawn in
the order of their indices. The ancestors of ENTITY are printed first, from the root on.
Without ENTITY, all roots are drawn. A root is an entity without a parent that is alive;
it has children or the component.

--by names the component, and also the field if several fields of the component hold an
entity. It can be left out if only one component has such a field. Fields in slices,
maps and behind pointers are ignored.

If ENTITY is in a cycle, the drawing ends where the cycle returns to it. Without ENTITY,
entities in a cycle, or below one, have no root: they are counted at the end.`,
	example: `  ecsdump tree D --by ChildOf
  ecsdump tree D 12v3 --by ChildOf.Parent --depth 2 --at @latest~10
  ecsdump tree D 12v3 --limit 0 --ndjson`,
	complete: []completer{(*completion).entities},
	run: func(f flags) action {
		var d treeCmd
		f.StringVar(&d.by, "by", "", "COMPONENT or COMPONENT.FIELD that holds the parent")
		f.number(&d.depth, "depth", "", 0, "draw at most this many levels; 0: all")
		f.point(&d.at)
		f.limit(&d.limit, "entities")
		return withSource(func(s *source) error { return d.run(s) })
	},
}

// A treeCmd holds the flags of tree.
type treeCmd struct {
	by, at string
	depth  uint
	limit  limit
}

// run draws the tree, without loading a state. Without --by, it prints a note with the field that
// it uses.
func (d *treeCmd) run(s *source) error {
	seq, err := s.Resolve(d.at)
	if err != nil {
		return err
	}
	root := ecs.Entity(0) // 0 means all roots.
	// Peek at any entity: the result lists all components, even for a dead entity.
	ask := ecs.NewEntity(0, 1)
	if len(s.args) > 1 {
		if root, err = s.entity(s.args[1], seq); err != nil {
			return err
		}
		ask = root
	}
	p, err := s.Peek(s.ctx, ask, seq)
	if err != nil {
		return err
	}
	if root != 0 && !p.Alive {
		return s.notAlive(p)
	}
	by, err := s.treeField(d.by, p.Components)
	if err != nil {
		return err
	}
	nodes, rootless, err := s.Tree(s.ctx, root, by.component, by.field, seq)
	if err != nil {
		return err
	}
	if d.by == "" {
		s.printNote("drawn by %s", by)
	}
	doc := &treeDoc{stateDoc: describe.State(p.Tick, p.Seq), By: by.String(), Nodes: []nodeDoc{}}
	if len(rootless) > 0 {
		doc.Rootless = &rootlessDoc{len(rootless), rootless[0].String()}
	}
	return d.draw(s, nodes, doc)
}

// draw prints the tree. The first nodes are the ancestors of ENTITY, and have negative depths. They
// are printed on one line above the tree. If --depth cuts off descendants of a node, draw prints
// their number.
func (d *treeCmd) draw(s *source, nodes []inspect.TreeNode, doc *treeDoc) error {
	// If the first node has a living target, it is not a root. Then the ancestors form a cycle.
	doc.Cycle = len(nodes) > 0 && nodes[0].Target != 0 && !nodes[0].TargetDead
	for ; len(nodes) > 0 && nodes[0].Depth < 0; nodes = nodes[1:] {
		doc.Ancestors = append(doc.Ancestors, nodes[0].Entity.String())
	}
	if d.depth > 0 {
		nodes = slices.DeleteFunc(nodes, func(n inspect.TreeNode) bool { return uint64(n.Depth) > uint64(d.depth) })
	}
	doc.Total = len(nodes)
	shown, more := d.limit.of(len(nodes))
	// stream prints the members before the list, so set them first.
	if s.json {
		return stream(s.app, doc, each(shown, func(i int) (nodeDoc, error) { return nodeOf(&nodes[i]), nil }))
	}
	doc.printAncestors(s.app)
	rails := rails{levels: railLevels(s.Width)}
	for i := range nodes[:shown] {
		n := &nodes[i]
		cut := d.depth > 0 && uint64(n.Depth) == uint64(d.depth)
		s.Line("%s", rails.prefix(n)+nodeOf(n).label(cut))
		if err := s.Broken(); err != nil {
			return err
		}
	}
	s.printMore(more, len(nodes), "entity", "entities")
	if len(nodes) == 0 && doc.Rootless == nil {
		s.Line("no entity has %s at %s", doc.By, doc.Place())
	}
	doc.Rootless.print(s)
	return nil
}

// nodeOf returns the document of n.
func nodeOf(n *inspect.TreeNode) nodeDoc {
	doc := nodeDoc{Depth: n.Depth, Entity: n.Entity.String(), TargetDead: n.TargetDead, Sources: n.Sources, Below: n.Below, Again: n.Again}
	if n.Target != 0 {
		doc.Target = n.Target.String()
	}
	return doc
}

// label returns d as text. If the argument cut is true, the descendants of d are not drawn, and
// label adds their number.
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

// Of many ancestors, only the first farAncestors and the last nearAncestors are printed.
const (
	farAncestors  = 2
	nearAncestors = 10
)

// printAncestors prints the ancestors of the entity.
func (d *treeDoc) printAncestors(a *app) {
	shown := d.Ancestors
	if left := len(shown) - farAncestors - nearAncestors; left > 1 {
		shown = slices.Concat(shown[:farAncestors], []string{fmt.Sprintf("… %d more …", left)}, shown[farAncestors+left:])
	}
	text := strings.Join(shown, " > ")
	switch {
	case d.Cycle && text == "":
		a.Line("below itself: a cycle")
	case d.Cycle:
		a.Line("below %s: a cycle without a root", text)
	case text != "":
		a.Line("below %s", text)
	}
}

// print prints the number of rootless entities, if d is not nil.
func (d *rootlessDoc) print(s *source) {
	if d != nil {
		s.Line("%s in a cycle or below one, and not drawn; the first is %s", term.Count(d.Entities, "entity is", "entities are"), d.First)
	}
}

// rails draws the lines that connect each entity with its parent in the tree, as in this example:
//
//	├── 1v1
//	│   └── 2v1
//	└── 3v1
//
// The slice below has one text for each level of the tree. The lines of deeper entities begin with
// these texts. In the example, the text of the first level is a vertical bar after 1v1, because 1v1
// has a later sibling. It is blank after 3v1.
type rails struct {
	below []string // By level: the start of the lines of deeper entities.
	// Number of levels in a line. An entity that is deeper is drawn at the margin again. Its line
	// begins with the number of omitted levels in brackets.
	levels int
}

// mostLevels is the largest number of levels in a line. On a narrow output, a line has fewer
// levels. Each level takes railCells columns, and the text of the entity gets noteCells columns.
const (
	mostLevels = 32
	noteCells  = 40
	railCells  = 4
)

// railLevels returns the number of levels in a line of the given width. Width 0 means unlimited.
func railLevels(width int) int {
	if width == 0 {
		return mostLevels
	}
	return min(max((width-noteCells)/railCells, 4), mostLevels)
}

// prefix returns the lines in front of n. It must be called for each parent before its children,
// because it also stores the text of n in the slice below.
func (r *rails) prefix(n *inspect.TreeNode) string {
	if n.Depth == 0 {
		return ""
	}
	rail, branch := "│   ", "├── "
	if n.Last {
		rail, branch = "    ", "└── "
	}
	r.below = append(r.below[:n.Depth-1], rail)
	// from is the number of omitted levels: 0, r.levels, 2*r.levels and so on.
	from := (n.Depth - 1) / r.levels * r.levels
	text := strings.Join(r.below[from:n.Depth-1], "") + branch
	if from > 0 {
		text = fmt.Sprintf("[%d] %s", from, text)
	}
	return text
}

// treeField returns the field that the value of --by names. Without --by, only components with a
// single entity field qualify. treeField returns the field if there is exactly one such component.
func (s *source) treeField(text string, components []inspect.EntityComponent) (found entityField, err error) {
	all := entityFields(components)
	words := describe.Listed(all, entityField.short)
	fits := slices.DeleteFunc(slices.Clone(all), func(f entityField) bool {
		return text == "" && !f.only || text != "" && text != f.short() && text != f.String()
	})
	switch {
	case len(all) == 0:
		return found, s.missing(describe.Command("schema", s.path), "no component has a field that holds an entity")
	case len(fits) == 1:
		return fits[0], nil
	// Component names may contain dots. The longest name wins.
	case len(fits) > 1 && text != "":
		return slices.MaxFunc(fits, func(a, b entityField) int { return len(a.component) - len(b.component) }), nil
	case text == "":
		return found, fail(exitUsage, describe.Command("tree", append(slices.Clone(s.args), "--by", words[0])...), "several components hold an entity: give --by %s", alternatives(words))
	}
	return found, s.noTreeField(text, components, all, words)
}

// noTreeField returns the error for a value of --by that names no field. The last argument has the
// valid values.
func (s *source) noTreeField(text string, components []inspect.EntityComponent, all []entityField, words []string) error {
	for _, c := range components {
		if c.Name != text {
			continue
		}
		if c.Resource {
			return s.isResource(text)
		}
		own := slices.DeleteFunc(slices.Clone(all), func(f entityField) bool { return f.component != text })
		if len(own) > 0 {
			return fail(exitUsage, describe.Command("schema", s.path), "--by: several fields of %s hold an entity: give %s", text, alternatives(describe.Listed(own, entityField.short)))
		}
		return s.missing(describe.Command("schema", s.path), "no field of %s holds an entity; use %s", text, alternatives(words))
	}
	return s.missing(describe.Command("schema", s.path), "no component %q with a field that holds an entity%s", text, near.Hint(text, words))
}
