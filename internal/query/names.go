package query

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser/lexer"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/near"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Names are resolved in the tree, between the parser and the checker of package expr. That package
// knows variables, fields and functions; here a component may have a dot in its name, or the name of
// a function, and is asked for by has(…) and component("…"). So each name that is one of ours is
// replaced by one that nobody can type, and the program reads that. The tree is walked from above: a
// chain of members may be a name as a whole, and let hides names for what is below it only.
//
// What becomes of an expression on the world, with Tag a tag, and 1 to 4 for the bytes of that value:
//
//	any(Position.X > 3 && Tag)           as it is written
//	ǅny(Position.X > 3 && Tag)           prepared: the parser takes it for a call
//	4a()                                 resolved: a call of aggregate a, whose argument is
//	1Position.X > 3 && 2Tag              an expression of its own: a value, and a presence
//	2Position && 1Position.X > 3 && 2Tag     guarded

// Names that no expression can contain, so that components may be called anything.
const (
	existsName  = "\x03exists"
	compareName = "\x03compare"
	narrowName  = "\x03narrow"

	// marker takes the place of the first letter of a name or number that the parser
	// would take for something else. Places in the text stay what they are, so that an error
	// points to what people wrote. It is a letter, for the parser to see a name, and one that
	// nobody types: a digraph in title case.
	marker = 'ǅ'
)

// variables are the names that are no components, by whether a condition on the
// world may contain them.
var variables = map[string]bool{"entity": false, "index": false, "generation": false, "tick": true, "alive": true}

// A resolver gives the names in an expression their meaning: it changes the tree in place, and
// collects what the program will read. That of the argument of an aggregate is one of its own.
type resolver struct {
	im         *inspect.Image
	x          *Expr
	locals     []string // Names that let declares.
	columns    []*column
	referred   []*column
	calls      map[*ast.CallNode]*column // That read one of these.
	aggregates []*aggregate
	wide       map[string]uint64 // Marked numbers beyond 2^63.
	err        error             // The first.
}

// prepare returns the text of x as the parser shall see it. The parser refuses two things that
// expressions here may have: integers from 1<<63 on, which a uint64 is compared with, and
// functions like count with one argument, which ask the entities of the world. Both become names,
// which the resolver gives their meaning.
func prepare(x *Expr) (string, *resolver) {
	r := &resolver{im: x.im, x: x, wide: map[string]uint64{}}
	tokens, err := lexer.Lex(file.NewSource(x.text))
	if err != nil {
		return x.text, r // The parser says what is wrong.
	}
	text := []rune(x.text)
	for _, t := range tokens {
		if t.Kind != lexer.Number {
			continue
		}
		// No two of them differ in the digit only that the marker hides: without leading zeros
		// those of 19 digits begin with 9, those of 20 with 1.
		if n, err := strconv.ParseUint(t.Value, 10, 64); err == nil && n > 1<<63-1 {
			text[t.From] = marker
			r.wide[string(marker)+t.Value[1:]] = n
		}
	}
	if x.isWorldly() {
		markAggregates(text, tokens)
	}
	return string(text), r
}

// unmarked returns what stands in the text for a marked name or number. The letter that the marker
// hides follows from the others, as no two aggregates differ in the first only.
func unmarked(name string) string {
	for _, a := range slices.Sorted(maps.Keys(aggregateKinds)) {
		if markedAs(a) == name {
			return a
		}
	}
	if a := "p" + strings.TrimPrefix(name, string(marker)); len(a) <= len("p100") {
		return a
	}
	return "number"
}

// markedAs returns how the parser sees an aggregate that is marked.
func markedAs(name string) string { return string(marker) + name[1:] }

// fail notes the first error.
func (r *resolver) fail(n ast.Node, format string, args ...any) {
	if r.err == nil {
		r.err = &file.Error{Location: n.Location(), Message: fmt.Sprintf(format, args...)}
	}
}

// node resolves what is below *p, and *p itself, down to the first error. What needs the layout of
// an operand (numbers, presence, duration) comes behind the operands: layoutOf knows resolved names
// only.
func (r *resolver) node(p *ast.Node) {
	if *p == nil || r.err != nil {
		return
	}
	switch n := (*p).(type) {
	case *ast.IdentifierNode:
		r.identifier(p, n)
	case *ast.MemberNode:
		r.member(p, n)
	case *ast.CallNode:
		r.call(p, n)
	case *ast.BinaryNode:
		r.node(&n.Left)
		r.node(&n.Right)
		r.numbers(n)
		r.presence(p, n)
	case *ast.BuiltinNode:
		for _, child := range children(n) {
			r.node(child)
		}
		r.duration(p, n)
	case *ast.VariableDeclaratorNode: // let NAME = Value; Expr, in which NAME hides a component.
		r.node(&n.Value)
		r.locals = append(r.locals, n.Name)
		r.node(&n.Expr)
		r.locals = r.locals[:len(r.locals)-1]
	default:
		for _, child := range children(n) {
			r.node(child)
		}
	}
}

// identifier resolves a name that stands alone: what let declares comes before variables, and
// these before components. A component of such a name is reached by component("NAME").
func (r *resolver) identifier(p *ast.Node, n *ast.IdentifierNode) {
	if slices.Contains(r.locals, n.Value) {
		return
	}
	if number, ok := r.wide[n.Value]; ok {
		*p = at(n, &ast.ConstantNode{Value: number})
		return
	}
	worldly, isVariable := variables[n.Value]
	switch {
	case isVariable && !worldly && r.x.isWorldly():
		r.fail(n, "%s is of one entity; this is a condition on the world", n.Value)
	case isVariable:
	case r.im.Find(n.Value) != nil:
		r.component(p, n, n.Value)
	default:
		r.unknown(n, n.Value)
	}
}

// unknown says that there is no such name, and which ones are near.
func (r *resolver) unknown(n ast.Node, name string) {
	known := slices.Concat(r.names(), slices.Sorted(maps.Keys(variables)))
	text := fmt.Sprintf("no component and no variable %q", name)
	if strings.HasPrefix(name, "$") {
		text = fmt.Sprintf("%s has no meaning here; component(\"NAME\") is the one of that name", name)
	}
	r.fail(n, "%s%s", text, near.Hint(name, known))
}

// names returns the names of all components and resources, in the order of their numbers.
func (r *resolver) names() (names []string) {
	for _, c := range r.im.Components {
		names = append(names, c.Name)
	}
	return names
}

// component makes *p the value of a component or resource, or for a tag whether
// the entity has it. From here on the expression reads a variable of that name, which each
// evaluation sets.
func (r *resolver) component(p *ast.Node, n ast.Node, name string) {
	c := r.im.Find(name)
	switch {
	case c == nil:
		r.fail(n, "no component %q%s", name, near.Hint(name, r.names()))
		return
	case !c.Resource && r.x.isWorldly():
		r.fail(n, "%s is of one entity; a condition on the world asks any(…), all(…), none(…) or count(…) of them", name)
		return
	}
	col := r.column(c)
	if col.typ == nil {
		*p = at(n, &ast.IdentifierNode{Value: col.flag})
		return
	}
	*p = at(n, &ast.IdentifierNode{Value: col.key})
}

// column returns what x reads of c.
func (r *resolver) column(c *inspect.Component) *column {
	for _, col := range r.columns {
		if col.name == c.Name {
			return col
		}
	}
	col := newColumn(c)
	r.columns = append(r.columns, col)
	return col
}

// columnOf returns the component that n, which is resolved, is or tells the presence of; or nil.
func (r *resolver) columnOf(n ast.Node) *column {
	id, ok := n.(*ast.IdentifierNode)
	if !ok || slices.Contains(r.locals, id.Value) {
		return nil
	}
	for _, col := range r.columns {
		if id.Value == col.key || id.Value == col.flag {
			return col
		}
	}
	return nil
}

// member resolves a.b: a component whose name has a dot, or a field, or a component of the entity
// that a holds. The outermost member of a chain comes first, so the longest name is taken that is
// one of a component: with components a and a.b, a.b.c is field c of the latter.
func (r *resolver) member(p *ast.Node, n *ast.MemberNode) {
	if name, ok := r.dotted(n); ok && r.im.Find(name) != nil {
		r.component(p, n, name)
		return
	}
	r.node(&n.Node)
	if _, isName := n.Property.(*ast.StringNode); !isName { // a[EXPR]: of a list or a map.
		r.node(&n.Property)
	}
	if r.err != nil {
		return
	}
	if name, isName := n.Property.(*ast.StringNode); isName && isEntity(behind(r.layoutOf(n.Node))) {
		r.refer(p, n, name.Value)
		return
	}
	r.field(n)
}

// dotted returns a chain of names as text: "a.b" may be field b of component a, or a component
// that is called so.
func (r *resolver) dotted(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return n.Value, !slices.Contains(r.locals, n.Value)
	case *ast.MemberNode:
		property, isName := n.Property.(*ast.StringNode)
		if !isName || n.Optional {
			return "", false
		}
		base, ok := r.dotted(n.Node)
		return base + "." + property.Value, ok && len(base) < maxName
	}
	return "", false
}

// maxName is longer than the name of any component, by which a chain of names
// that is none is recognized early.
const maxName = 1 << 10

// field checks that n names a field that there is, to say which are near. It stays silent where the
// layout is not known, as of what a function gives: the checker looks there.
func (r *resolver) field(n *ast.MemberNode) {
	t := behind(r.layoutOf(n.Node))
	name, isName := n.Property.(*ast.StringNode)
	if t == nil || !isName {
		return
	}
	switch t.Kind {
	case layout.Struct:
		if field, names := fieldOf(t, name.Value); field == nil {
			r.fail(n.Property, "no field %q%s", name.Value, near.Hint(name.Value, names))
		}
	case layout.Map: // m.key is m["key"], whatever the key.
	default:
		r.fail(n.Property, "no field %q: it is in no struct, but in %s", name.Value, article(t.Kind.String()))
	}
}

// article returns a noun with its article.
func article(noun string) string {
	if strings.ContainsRune("aeio", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// fieldOf returns the type of a field, or nil and the names of those there are.
func fieldOf(t *layout.Type, name string) (field *layout.Type, names []string) {
	for _, f := range t.Fields {
		if f.Name == name {
			return f.Type, nil
		}
		names = append(names, f.Name)
	}
	return nil, names
}

// layoutOf returns the layout of n, which is resolved, if n is a component or something in one; nil
// for what is computed. The checker knows Go types only, which lack the names of constants and
// what an entity is.
func (r *resolver) layoutOf(n ast.Node) *layout.Type {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		if col := r.columnOf(n); col != nil && col.typ != nil {
			return col.layout
		}
	case *ast.CallNode:
		if col := r.calls[n]; col != nil && col.typ != nil {
			return col.layout
		}
	case *ast.ChainNode:
		return r.layoutOf(n.Node)
	case *ast.MemberNode:
		return inside(r.layoutOf(n.Node), n.Property)
	}
	return nil
}

// inside returns the layout of a field or element of t.
func inside(t *layout.Type, property ast.Node) *layout.Type {
	if t = behind(t); t == nil {
		return nil
	}
	switch name, isName := property.(*ast.StringNode); {
	case t.Kind == layout.Struct && isName:
		field, _ := fieldOf(t, name.Value)
		return field
	case t.Kind == layout.Map, t.Kind == layout.Slice && !isName, t.Kind == layout.Array && !isName:
		return t.Elem
	}
	return nil
}

// call resolves the functions that are ours.
func (r *resolver) call(p *ast.Node, n *ast.CallNode) {
	callee, ok := n.Callee.(*ast.IdentifierNode)
	if !ok {
		r.fail(n, "fields cannot be called")
		return
	}
	switch name := callee.Value; { // Builtins of package expr are nodes of another type.
	case name == "has" || name == "component" || name == "resource":
		r.naming(p, n, name)
	// Nobody can type the marker, and text is only marked in expressions on the world.
	case strings.HasPrefix(name, string(marker)) && r.x.isWorldly():
		r.aggregate(p, n, name)
	case name == "exists":
		callee.Value = existsName
		for i := range n.Arguments {
			r.node(&n.Arguments[i])
		}
		r.literalEntity(n)
	default:
		known := append(slices.Clone(ownFunctions), builtinNames()...)
		r.fail(n, "no function %q%s", name, near.Hint(name, known))
	}
}

// ownFunctions are those that package expr does not have, for hints.
var ownFunctions = []string{"has", "component", "resource", "exists"}

// builtinNames returns the functions of package expr that expressions have.
func builtinNames() (names []string) {
	for _, b := range builtin.Builtins {
		if b.Name != disabled {
			names = append(names, b.Name)
		}
	}
	return names
}

// literalEntity checks the argument of exists, if it can be seen: then a wrong one is an error before
// anything runs.
func (r *resolver) literalEntity(n *ast.CallNode) {
	if len(n.Arguments) != 1 {
		r.fail(n, "exists takes one entity, as in exists(\"12v3\")")
		return
	}
	if s, ok := n.Arguments[0].(*ast.StringNode); ok {
		if _, err := ecs.ParseEntity(s.Value); err != nil {
			r.fail(s, "%q is not an entity; write INDEXvGENERATION, as in 12v3", s.Value)
		}
	}
}

// naming resolves has(C), component("C") and resource("C"). Only the first takes a name
// without quotes as well.
func (r *resolver) naming(p *ast.Node, n *ast.CallNode, function string) {
	if len(n.Arguments) != 1 {
		r.fail(n, "%s takes the name of a component", function)
		return
	}
	arg := &n.Arguments[0]
	if s, quoted := (*arg).(*ast.StringNode); !quoted && function != "has" {
		r.fail(n, "%s takes a name in quotes", function)
	} else if !quoted {
		r.node(arg)
	} else if c := r.im.Find(s.Value); c != nil && function == "resource" && !c.Resource {
		r.fail(s, "%s is a component, no resource", s.Value)
	} else {
		r.component(arg, s, s.Value)
	}
	// The argument is a component by now. Its value is what component(…) and resource(…) give;
	// has(…) is the variable beside it.
	switch col := r.columnOf(*arg); {
	case function != "has":
		*p = *arg
	case col == nil: // has(Position.X), or an error before.
		r.fail(*arg, "has takes the name of a component")
	default:
		*p = at(*arg, &ast.IdentifierNode{Value: col.flag})
	}
}

// presence makes C == nil and C != nil ask whether the entity has C. The value of C would not
// do: a condition on a component that the entity lacks is false, and so both would be.
func (r *resolver) presence(p *ast.Node, n *ast.BinaryNode) {
	if n.Operator != "==" && n.Operator != "!=" {
		return
	}
	of, other := n.Left, n.Right
	if _, ok := of.(*ast.NilNode); ok {
		of, other = other, of
	}
	col := r.columnOf(of)
	if _, ok := other.(*ast.NilNode); !ok || col == nil {
		return
	}
	*p = at(n, &ast.IdentifierNode{Value: col.flag})
	if n.Operator == "==" {
		*p = at(n, &ast.UnaryNode{Operator: "not", Node: *p})
	}
}

// at gives node the place of n.
func at(n, node ast.Node) ast.Node {
	node.SetLocation(n.Location())
	return node
}

// children returns the nodes below n, in the order of its fields, found by reflection so that no
// kind of node is forgotten. Package ast walks from below, which is too late for names that let
// declares and for chains that are one name.
func children(n ast.Node) (below []*ast.Node) {
	fields := reflect.ValueOf(n).Elem()
	for i := range fields.NumField() {
		if !fields.Field(i).CanInterface() {
			continue
		}
		switch field := fields.Field(i).Addr().Interface().(type) {
		case *ast.Node:
			below = append(below, field)
		case *[]ast.Node:
			for i := range *field {
				below = append(below, &(*field)[i])
			}
		}
	}
	return below
}
