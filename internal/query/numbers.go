package query

import (
	"cmp"
	"slices"
	"time"

	"github.com/expr-lang/expr/ast"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/near"
)

// A field may have named numbers, or be a duration. If an expression compares such a field with a
// text, the text becomes the number with that name:
//
//	State == "Running"               State == 2
//	State in ["Idle", "Running"]     State in [0, 2]
//	Wait > "1.5s"                    Wait > 1500000000
//
// duration("1.5s") is a number of nanoseconds too.

// numbers replaces texts in a comparison by numbers. The operator "in" has its field on the left.
func (r *resolver) numbers(n *ast.BinaryNode) {
	if !isCondition[n.Operator] || r.err != nil {
		return
	}
	r.numbersOf(r.layoutOf(n.Left), &n.Right)
	if n.Operator != "in" {
		r.numbersOf(r.layoutOf(n.Right), &n.Left)
	}
}

// numbersOf replaces a text, or the texts in a list, by numbers of type t.
func (r *resolver) numbersOf(t *layout.Type, p *ast.Node) {
	if t = pointee(t); t == nil || !t.Named() {
		return
	}
	switch n := (*p).(type) {
	case *ast.ArrayNode:
		for i := range n.Nodes {
			r.numbersOf(t, &n.Nodes[i])
		}
	case *ast.StringNode:
		number, ok := t.NumberOf(n.Value)
		switch {
		case ok:
			*p = at(n, &ast.IntegerNode{Value: int(number)})
		case len(t.Constants) > 0:
			names := slices.DeleteFunc(slices.Clone(t.Constants), func(name string) bool { return name == "" })
			r.fail(n, "no %s is called %q%s", cmp.Or(t.Name, "number"), n.Value, near.Hint(n.Value, names))
		default:
			r.fail(n, "%q is not a duration; write it with a unit, as in 1.5s or 20ms", n.Value)
		}
	}
}

// duration replaces duration("1.5s") by a number.
func (r *resolver) duration(p *ast.Node, n *ast.BuiltinNode) {
	if n.Name != "duration" || r.err != nil || len(n.Arguments) != 1 {
		return
	}
	text, ok := n.Arguments[0].(*ast.StringNode)
	if !ok {
		r.fail(n, "duration takes a text in quotes, as in duration(\"1.5s\")")
		return
	}
	d, err := time.ParseDuration(text.Value)
	if err != nil {
		r.fail(text, "%q is not a duration; write it with a unit, as in 1.5s or 20ms", text.Value)
		return
	}
	*p = at(n, &ast.IntegerNode{Value: int(d)})
}
