package query

import (
	"cmp"
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/stet-ecs/stet/ecs/layout"
)

// A guarder puts before each condition what it needs, so that a component that the
// entity lacks, or a nil pointer inside one, makes it false:
//
//	Position.X > 3 || not (Health == 0)
//	has(Position) && Position.X > 3 || not (has(Health) && Health == 0)
//
// It does so at the smallest condition, so that what the others read does not
// matter, and the operators between them keep their meaning. What is no condition, as a sum or a call,
// hands its needs up to the one around it; if there is none, the whole is nil without them:
//
//	Position.X + 1
//	has(Position) ? Position.X + 1 : nil
//
// Needs are asked in the order in which they were found, from below: a component before the
// pointers in it.
type guarder struct{ *resolver }

// guard guards the whole of an expression.
func (g guarder) guard(p *ast.Node) {
	if g.x.isCondition() {
		*p = g.condition(*p)
	} else {
		*p = g.value(*p)
	}
}

// A need is what must not be nil for a node to have a value: a component, or a
// pointer inside one.
type need struct {
	name    string // Two needs of one name are the same.
	node    ast.Node
	pointer bool
}

// condition returns n, which is a condition, guarded.
func (g guarder) condition(n ast.Node) ast.Node {
	n, needs := g.node(n)
	return and(n, needs)
}

// and returns needs && n, the first need outermost.
func and(n ast.Node, needs []need) ast.Node {
	for i := len(needs) - 1; i >= 0; i-- {
		n = at(n, &ast.BinaryNode{Operator: "&&", Left: needs[i].node, Right: n})
	}
	return n
}

// value returns n, or nil where what it needs is missing. In a condition that is false; a sum
// leaves it out; a table shows that there is nothing.
func (g guarder) value(n ast.Node) ast.Node {
	n, needs := g.node(n)
	if len(needs) == 0 {
		return n
	}
	cond := and(needs[len(needs)-1].node, needs[:len(needs)-1])
	return at(n, &ast.ConditionalNode{Ternary: true, Cond: cond, Exp1: n, Exp2: at(n, &ast.NilNode{})})
}

// node guards the conditions in n and returns what n itself needs.
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
	case *ast.UnaryNode: // Guarded below the not: without Health, not (Health == 0) is true.
		if n.Operator == "not" || n.Operator == "!" {
			n.Node = g.condition(n.Node)
			return n, nil
		}
	case *ast.ConditionalNode:
		n.Cond, n.Exp1, n.Exp2 = g.condition(n.Cond), g.value(n.Exp1), g.value(n.Exp2)
		return n, nil
	case *ast.ChainNode: // With ?. in it, a pointer may be nil; the component may not.
		_, needs := g.below(n)
		return n, slices.DeleteFunc(needs, func(n need) bool { return n.pointer })
	}
	out, needs := g.below(n)
	if m, ok := n.(*ast.MemberNode); ok && !m.Optional {
		needs = g.ends(m.Node, needs) // It goes through what may be a pointer.
	}
	return out, needs
}

// identifier returns that a component must be there, if n is one.
func (g guarder) identifier(n *ast.IdentifierNode) []need {
	col := g.columnOf(n)
	if col == nil || n.Value == col.flag {
		return nil
	}
	return []need{{col.flag, at(n, &ast.IdentifierNode{Value: col.flag}), false}}
}

// ends adds to needs, if n is a pointer, that it is not nil: package expr fails where it goes
// through one that is.
func (g guarder) ends(n ast.Node, needs []need) []need {
	if t := g.layoutOf(n); t == nil || t.Kind != layout.Pointer {
		return needs
	}
	there := at(n, &ast.BinaryNode{Operator: "!=", Left: n, Right: at(n, &ast.NilNode{})})
	return united(needs, []need{{n.String(), there, true}})
}

// notNil returns n, or no node if n is nil in the expression.
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

// binary guards an operator. What && and || join is guarded on either side, so that the
// lack of one component does not decide about the other side.
func (g guarder) binary(n *ast.BinaryNode) (ast.Node, []need) {
	switch n.Operator {
	case "&&", "||", "and", "or":
		n.Left, n.Right = g.condition(n.Left), g.condition(n.Right)
		return n, nil
	case "??": // What the left side lacks is what the operator is for.
		n.Left, n.Right = g.value(n.Left), g.value(n.Right)
		return n, nil
	}
	left, right := n.Left, n.Right
	_, needs := g.below(n)
	if !isCondition[n.Operator] {
		return n, needs
	}
	// Compared with nil, a pointer may be nil, and so may a component of another entity. Those that
	// lead to it may not.
	if !isNil(left) && !isNil(right) {
		needs = g.ends(right, g.ends(left, needs))
	} else if call, ok := cmp.Or(notNil(left), right).(*ast.CallNode); ok { // Whether there is one is asked.
		needs = slices.DeleteFunc(needs, func(n need) bool { return n.name == call.String() })
	}
	return and(n, needs), nil
}

// isCondition has the operators that make the smallest conditions.
var isCondition = map[string]bool{
	"==": true, "!=": true, "<": true, ">": true, "<=": true, ">=": true,
	"in": true, "contains": true, "startsWith": true, "endsWith": true, "matches": true,
}

// below guards what is below n.
func (g guarder) below(n ast.Node) (ast.Node, []need) {
	var needs []need
	for _, child := range children(n) {
		guarded, more := g.node(*child)
		*child, needs = guarded, united(needs, more)
	}
	return n, needs
}

// united returns the needs of both, each once: a condition that reads three fields of a
// component asks once whether it is there.
func united(needs, more []need) []need {
	for _, m := range more {
		if !slices.ContainsFunc(needs, func(n need) bool { return n.name == m.name }) {
			needs = append(needs, m)
		}
	}
	return needs
}
