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

// The resolver replaces names in the tree, between the parser and the checker of package expr. A
// component may have a dot in its name, or the name of a function. So the resolver replaces each
// component by an internal name. The first byte of an internal name is 1 to 5. No expression can
// contain these bytes.
//
// For example, any(Position.X > 3 && Tag) changes in three steps. Tag is a tag. The internal names
// are written with digits instead of the bytes:
//
//   - prepare replaces the first letter of "any" by a marker, so that the parser reads a call.
//   - The resolver replaces the call by 4a(), a call of aggregate a. The argument is compiled as a
//     separate expression: 1Position.X > 3 && 2Tag. Position is a value and Tag is a flag.
//   - The guarder adds a guard to the argument: 2Position && 1Position.X > 3 && 2Tag.

// Names of internal functions. No expression can contain them.
const (
	existsName  = "\x03exists"
	compareName = "\x03compare"
	narrowName  = "\x03narrow"

	// marker replaces the first letter of a name or number that the parser would misread. It is a
	// letter that no keyboard has, so the parser reads a name. Positions in the text stay valid.
	marker = 'ǅ'
)

// variables has the names of variables. The value is true if an expression on the world may use the
// variable.
var variables = map[string]bool{"entity": false, "index": false, "generation": false, "tick": true, "alive": true}

// A resolver resolves the names in an expression, and collects the columns that the program reads.
// The argument of an aggregate has its own resolver.
type resolver struct {
	im       *inspect.Image
	x        *Expr
	locals   []string // Names that the surrounding let expressions declare.
	columns  []*column
	referred []*column
	// calls maps each call that reads a component of another entity to the column of that
	// component.
	calls      map[*ast.CallNode]*column
	aggregates []*aggregate
	// wide has the numbers from 2^63 on, by the names that prepare gives them.
	wide map[string]uint64
	err  error // The first error.
}

// prepare returns the text of x for the parser. The parser of package expr rejects two parts that
// are valid here:
//
//   - integers from 1<<63 on
//   - aggregates such as count, with one argument
//
// prepare replaces both by names. The resolver turns these names into numbers and aggregates.
func prepare(x *Expr) (string, *resolver) {
	r := &resolver{im: x.im, x: x, wide: map[string]uint64{}}
	tokens, err := lexer.Lex(file.NewSource(x.text))
	if err != nil {
		// Return the text unchanged, because the parser will report the same error.
		return x.text, r
	}
	text := []rune(x.text)
	for _, t := range tokens {
		if t.Kind != lexer.Number {
			continue
		}
		// For example, the marker replaces the 9 of 9223372036854775808. The other digits stay.
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

// unmarked returns the name of the aggregate that was marked. The first letter can be restored,
// because no two aggregates differ only in it. For a marked number, unmarked returns "number".
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

// markedAs returns the marked name of an aggregate.
func markedAs(name string) string { return string(marker) + name[1:] }

// fail records the first error.
func (r *resolver) fail(n ast.Node, format string, args ...any) {
	if r.err == nil {
		r.err = &file.Error{Location: n.Location(), Message: fmt.Sprintf(format, args...)}
	}
}

// node resolves *p and the nodes below it, up to the first error.
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
	// In "let NAME = Value; Expr", NAME hides a component of the same name in Expr.
	case *ast.VariableDeclaratorNode:
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

// identifier resolves a single name. The order is: a name that "let" declares, a variable of this
// package, a component. In an expression, component("NAME") always means the component.
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
		r.fail(n, "%s belongs to one entity; this is a condition on the world", n.Value)
	case isVariable:
	case r.im.Find(n.Value) != nil:
		r.component(p, n, n.Value)
	default:
		r.unknown(n, n.Value)
	}
}

// unknown reports an unknown name and suggests similar names.
func (r *resolver) unknown(n ast.Node, name string) {
	known := slices.Concat(r.names(), slices.Sorted(maps.Keys(variables)))
	text := fmt.Sprintf("no component and no variable %q", name)
	if strings.HasPrefix(name, "$") {
		text = fmt.Sprintf("%s has no meaning here; component(\"NAME\") finds a component by its name", name)
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

// component replaces *p by a variable: the value of a component or resource, or the flag of a tag.
func (r *resolver) component(p *ast.Node, n ast.Node, name string) {
	c := r.im.Find(name)
	switch {
	case c == nil:
		r.fail(n, "no component %q%s", name, near.Hint(name, r.names()))
		return
	case !c.Resource && r.x.isWorldly():
		r.fail(n, "%s belongs to one entity; a condition on the world uses it in any(…), all(…), none(…) or count(…)", name)
		return
	}
	col := r.column(c)
	if col.typ == nil {
		*p = at(n, &ast.IdentifierNode{Value: col.flag})
		return
	}
	*p = at(n, &ast.IdentifierNode{Value: col.key})
}

// column returns the column of c, and adds it if necessary.
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

// If the resolved node n is the value or the flag of a column, columnOf returns this column.
// Otherwise it returns nil.
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

// member resolves A.B, which is one of:
//
//	a component with a dot in its name
//	a field of A
//	a component of the entity in A
//
// The longest component name wins, because the last dot of A.B.C is resolved first.
func (r *resolver) member(p *ast.Node, n *ast.MemberNode) {
	if name, ok := r.dotted(n); ok && r.im.Find(name) != nil {
		r.component(p, n, name)
		return
	}
	r.node(&n.Node)
	// In List[EXPR], EXPR is an expression too.
	if _, isName := n.Property.(*ast.StringNode); !isName {
		r.node(&n.Property)
	}
	if r.err != nil {
		return
	}
	if name, isName := n.Property.(*ast.StringNode); isName && isEntity(pointee(r.layoutOf(n.Node))) {
		r.refer(p, n, name.Value)
		return
	}
	r.field(n)
}

// dotted returns a chain of names as text, such as "Position.X". It returns false for other nodes.
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

// maxName is longer than any component name.
const maxName = 1 << 10

// field returns an error with similar names if the field does not exist. If the layout is unknown,
// the checker of package expr checks the field.
func (r *resolver) field(n *ast.MemberNode) {
	t := pointee(r.layoutOf(n.Node))
	name, isName := n.Property.(*ast.StringNode)
	if t == nil || !isName {
		return
	}
	switch t.Kind {
	case layout.Struct:
		if field, names := fieldOf(t, name.Value); field == nil {
			r.fail(n.Property, "no field %q%s", name.Value, near.Hint(name.Value, names))
		}
	// For a map, m.key means m["key"], and every key is valid.
	case layout.Map:
	default:
		r.fail(n.Property, "no field %q: %s has no fields", name.Value, article(t.Kind.String()))
	}
}

// article returns a noun with its article: "a list", "an entity".
func article(noun string) string {
	if strings.ContainsRune("aeio", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// fieldOf returns the type of a field. If the field does not exist, it returns nil and the names of
// all fields.
func fieldOf(t *layout.Type, name string) (field *layout.Type, names []string) {
	for _, f := range t.Fields {
		if f.Name == name {
			return f.Type, nil
		}
		names = append(names, f.Name)
	}
	return nil, names
}

// layoutOf returns the layout of the resolved node n: that of a component, a field or an element.
// It returns nil for computed values.
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
	if t = pointee(t); t == nil {
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

// call resolves the functions of this package.
func (r *resolver) call(p *ast.Node, n *ast.CallNode) {
	callee, ok := n.Callee.(*ast.IdentifierNode)
	if !ok {
		r.fail(n, "fields cannot be called")
		return
	}
	// The parser reads functions of package expr as *ast.BuiltinNode. Only other calls come here.
	switch name := callee.Value; {
	case name == "has" || name == "component" || name == "resource":
		r.naming(p, n, name)
	// prepare has marked the name of an aggregate.
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

// ownFunctions has the functions of this package, for suggestions.
var ownFunctions = []string{"has", "component", "resource", "exists"}

// builtinNames returns the functions of package expr that expressions may use.
func builtinNames() (names []string) {
	for _, b := range builtin.Builtins {
		if b.Name != disabled {
			names = append(names, b.Name)
		}
	}
	return names
}

// literalEntity checks a literal argument of exists.
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

// naming resolves has(C), component("C") and resource("C"). Only has also accepts a name without
// quotes.
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
		r.fail(s, "%s is a component, not a resource", s.Value)
	} else {
		r.component(arg, s, s.Value)
	}
	// component(…) and resource(…) return the value of the component, and has(…) returns its flag.
	switch col := r.columnOf(*arg); {
	case function != "has":
		*p = *arg
	// The argument is no component: for example, a field as in has(Position.X). If the resolver has
	// failed already, fail keeps the first error.
	case col == nil:
		r.fail(*arg, "has takes the name of a component")
	default:
		*p = at(*arg, &ast.IdentifierNode{Value: col.flag})
	}
}

// presence turns C == nil and C != nil into a test of the flag of C. Without this, the guarder
// would make both false for an entity without C.
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

// at sets the position of node to that of n, and returns node.
func at(n, node ast.Node) ast.Node {
	node.SetLocation(n.Location())
	return node
}

// children returns the child nodes of n. Unlike package ast, it lets the caller visit a node before
// its children.
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
