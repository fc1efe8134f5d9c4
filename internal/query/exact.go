package query

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm/runtime"
)

// exactness replaces inexact operations. Package expr converts a uint64 to an int, and an int to a
// float before a comparison with a float. Comparisons of values that may be nil are replaced too:
//
//	ID > 3      compare(">", ID, 3)     exact, and false for nil
//	HP < Max    compare("<", HP, Max)   exact, if one is an int and one a float
//	ID + 1      narrow(ID) + 1          an error if ID does not fit in an int
//
// A comparison of an int or a float with a small constant is exact and stays as it is.
type exactness struct{}

// exactly visits all nodes of an expression with [exactness].
func exactly(p *ast.Node) { ast.Walk(p, exactness{}) }

// Visit implements ast.Visitor. It visits the operands of a node before the node.
func (exactness) Visit(p *ast.Node) {
	switch n := (*p).(type) {
	case *ast.BinaryNode:
		switch n.Operator {
		// These are the operators in the map outcomes.
		case "==", "!=", "<", ">", "<=", ">=":
			if !isNil(n.Left) && !isNil(n.Right) && (isDelicate(n.Left) || isDelicate(n.Right) || isMixed(n.Left, n.Right)) {
				*p = comparison(n)
			}
		case "+", "-", "*", "/", "%", "**", "^", "..":
			n.Left, n.Right = narrowed(n.Left), narrowed(n.Right)
		}
	case *ast.UnaryNode:
		if n.Operator == "-" {
			n.Node = narrowed(n.Node)
		}
	}
}

// isMixed reports whether package expr would compare a and b inexactly: an int and a float, without
// a small constant.
func isMixed(a, b ast.Node) bool {
	if isSmall(a) || isSmall(b) {
		return false
	}
	return isOf(a, reflect.Int) && isOf(b, reflect.Float64) || isOf(a, reflect.Float64) && isOf(b, reflect.Int)
}

// isSmall reports whether n is a constant between -2^53 and 2^53, which a float64 represents
// exactly.
func isSmall(n ast.Node) bool {
	const exact = 1 << 53
	switch n := n.(type) {
	case *ast.IntegerNode:
		return -exact < int64(n.Value) && int64(n.Value) < exact
	case *ast.FloatNode:
		return -exact < n.Value && n.Value < exact
	}
	return false
}

// isWide reports whether n is a uint64, or a pointer to a uint64.
func isWide(n ast.Node) bool { return isOf(n, reflect.Uint64) }

// isOf reports whether n has the kind k, or is a pointer to a value of kind k.
func isOf(n ast.Node, k reflect.Kind) bool {
	t := n.Type()
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t != nil && t.Kind() == k
}

// isDelicate reports whether n may be a uint64 or nil, so that a comparison needs compareCall. A
// chain such as A?.B, a conditional and the operator ?? may return nil, although their types do not
// say so.
func isDelicate(n ast.Node) bool {
	if isWide(n) {
		return true
	}
	switch n := n.(type) {
	case *ast.ChainNode, *ast.ConditionalNode:
		return true
	case *ast.BinaryNode:
		if n.Operator == "??" {
			return true
		}
	}
	t := n.Type()
	return t == nil || t.Kind() == reflect.Interface
}

// comparison returns n as a call of [compareCall].
func comparison(n *ast.BinaryNode) ast.Node {
	return ownCall(n, compareName, at(n, &ast.StringNode{Value: n.Operator}), n.Left, n.Right)
}

// narrowed converts n to int if it is a uint64.
func narrowed(n ast.Node) ast.Node {
	if !isWide(n) {
		return n
	}
	return ownCall(n, narrowName, n)
}

// ownCall returns a call of an internal function, whose name no expression can contain.
func ownCall(place ast.Node, name string, args ...ast.Node) ast.Node {
	return at(place, &ast.CallNode{Callee: at(place, &ast.IdentifierNode{Value: name}), Arguments: args})
}

// compareCall compares two values exactly, even 1<<63 with -1 or with a float. A comparison with
// nil is false.
func compareCall(args ...any) (any, error) {
	a, b := dereferenced(args[1]), dereferenced(args[2])
	if a == nil || b == nil {
		return false, nil
	}
	c, ok := ordered(a, b)
	switch {
	case !ok && args[0] == "==":
		return runtime.Equal(a, b), nil
	case !ok && args[0] == "!=":
		return !runtime.Equal(a, b), nil
	case !ok:
		return false, fmt.Errorf("%v and %v cannot be compared", Answer{a}, Answer{b})
	}
	return slices.Contains(outcomes[args[0].(string)], c), nil
}

// outcomes has the results of [ordered] for which a comparison is true.
var outcomes = map[string][]int{"==": {0}, "!=": {-1, 1, unordered}, "<": {-1}, ">": {1}, "<=": {-1, 0}, ">=": {0, 1}}

// narrowCall converts a uint64 to int. It returns an error if the number is too large.
func narrowCall(args ...any) (any, error) {
	switch n := dereferenced(args[0]).(type) {
	case uint64:
		if n > 1<<63-1 {
			return nil, fmt.Errorf("%d does not fit in an int; float(…) approximates it", n)
		}
		return int(n), nil
	case int:
		return n, nil
	}
	return nil, fmt.Errorf("%v is not a number", Answer{dereferenced(args[0])})
}
