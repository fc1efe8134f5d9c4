package query

import (
	"cmp"
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/stet-ecs/stet/ecs/layout"
)

// A guarder adds guards to conditions. A guard checks a need: a component or pointer that the
// condition reads. The condition is false if the entity lacks the component, or if the pointer is
// nil:
//
//	Position.X > 3 || not (Health == 0)
//	has(Position) && Position.X > 3 || not (has(Health) && Health == 0)
//
// Each of the smallest conditions has its own guard. So the condition on Position does not need
// Health.
//
// Outside of conditions, an expression is nil if one of its needs is missing:
//
//	Position.X + 1
//	has(Position) ? Position.X + 1 : nil
type guarder struct{ *resolver }

// guard adds guards to the whole expression at p.
func (g guarder) guard(p *ast.Node) {
	if g.x.isCondition() {
		*p = g.condition(*p)
	} else {
		*p = g.value(*p)
	}
}

// A need is a component or pointer that a node reads. Without it, the node has no value.
type need struct {
	name    string // Needs with the same name are equal.
	node    ast.Node
	pointer bool
}

// condition returns the condition n with guards, so that it is false if a need of n is missing.
func (g guarder) condition(n ast.Node) ast.Node {
	n, needs := g.node(n)
	return and(n, needs)
}

// and returns a node that joins n with needs: need1 && (need2 && n), for any number of needs.
func and(n ast.Node, needs []need) ast.Node {
	for i := len(needs) - 1; i >= 0; i-- {
		n = at(n, &ast.BinaryNode{Operator: "&&", Left: needs[i].node, Right: n})
	}
	return n
}

// value returns an expression with the value of n, or nil if a need of n is missing.
func (g guarder) value(n ast.Node) ast.Node {
	n, needs := g.node(n)
	if len(needs) == 0 {
		return n
	}
	cond := and(needs[len(needs)-1].node, needs[:len(needs)-1])
	return at(n, &ast.ConditionalNode{Ternary: true, Cond: cond, Exp1: n, Exp2: at(n, &ast.NilNode{})})
}

// node adds guards to the conditions inside n. It returns the needs of n outside of these
// conditions.
func (g guarder) node(n ast.Node) (ast.Node, []need) {
	switch n := n.(type) {
	case nil:
		return nil, nil
	case *ast.IdentifierNode:
		return n, g.identifier(n)
	case *ast.CallNode:
		if g.calls[n] != nil {
			return n, g.referred(n)
		}
	case *ast.BinaryNode:
		return g.binary(n)
	// Put the guard inside of not. Then not (Health == 0) is true for an entity without Health.
	case *ast.UnaryNode:
		if n.Operator == "not" || n.Operator == "!" {
			n.Node = g.condition(n.Node)
			return n, nil
		}
	case *ast.ConditionalNode:
		n.Cond, n.Exp1, n.Exp2 = g.condition(n.Cond), g.value(n.Exp1), g.value(n.Exp2)
		return n, nil
	// In A?.B, the pointer A may be nil, so it is no need. The component of A is still a need.
	case *ast.ChainNode:
		_, needs := g.below(n)
		return n, slices.DeleteFunc(needs, func(n need) bool { return n.pointer })
	}
	out, needs := g.below(n)
	if m, ok := n.(*ast.MemberNode); ok && !m.Optional {
		// In A.B, the pointer A must not be nil.
		needs = g.ends(m.Node, needs)
	}
	return out, needs
}

// If n is the value of a component, identifier returns this component as a need.
func (g guarder) identifier(n *ast.IdentifierNode) []need {
	col := g.columnOf(n)
	if col == nil || n.Value == col.flag {
		return nil
	}
	return []need{{col.flag, at(n, &ast.IdentifierNode{Value: col.flag}), false}}
}

// ends adds n to needs if n is a pointer: package expr fails if it reads a field of a nil pointer.
// It returns the new list.
func (g guarder) ends(n ast.Node, needs []need) []need {
	if t := g.layoutOf(n); t == nil || t.Kind != layout.Pointer {
		return needs
	}
	there := at(n, &ast.BinaryNode{Operator: "!=", Left: n, Right: at(n, &ast.NilNode{})})
	return united(needs, []need{{n.String(), there, true}})
}

// notNil returns n, or a nil Node if n is the literal nil.
func notNil(n ast.Node) ast.Node {
	if isNil(n) {
		return nil
	}
	return n
}

func isNil(n ast.Node) bool {
	_, ok := n.(*ast.NilNode)
	return ok
}

// binary adds guards to a binary operator, as node does for other nodes. For && and ||, it guards
// each side separately.
func (g guarder) binary(n *ast.BinaryNode) (ast.Node, []need) {
	switch n.Operator {
	case "&&", "||", "and", "or":
		n.Left, n.Right = g.condition(n.Left), g.condition(n.Right)
		return n, nil
	// The operator ?? has a value even if its left side has no value.
	case "??":
		n.Left, n.Right = g.value(n.Left), g.value(n.Right)
		return n, nil
	}
	left, right := n.Left, n.Right
	_, needs := g.below(n)
	if !isCondition[n.Operator] {
		return n, needs
	}
	// A comparison with nil checks whether its other side exists. So the other side is no need. In
	// A.B != nil, only A is a need. In other comparisons, pointers on both sides are needs.
	if !isNil(left) && !isNil(right) {
		needs = g.ends(right, g.ends(left, needs))
		// The other side is a component of another entity.
	} else if call, ok := cmp.Or(notNil(left), right).(*ast.CallNode); ok {
		needs = slices.DeleteFunc(needs, func(n need) bool { return n.name == call.String() })
	}
	return and(n, needs), nil
}

// isCondition has the operators of conditions that contain no smaller condition.
var isCondition = map[string]bool{
	"==": true, "!=": true, "<": true, ">": true, "<=": true, ">=": true,
	"in": true, "contains": true, "startsWith": true, "endsWith": true, "matches": true,
}

// below adds guards to all children of n, and returns n and the needs of the children.
func (g guarder) below(n ast.Node) (ast.Node, []need) {
	var needs []need
	for _, child := range children(n) {
		guarded, more := g.node(*child)
		*child, needs = guarded, united(needs, more)
	}
	return n, needs
}

// united returns the union of two lists of needs, so that each need is checked once.
func united(needs, more []need) []need {
	for _, m := range more {
		if !slices.ContainsFunc(needs, func(n need) bool { return n.name == m.name }) {
			needs = append(needs, m)
		}
	}
	return needs
}
