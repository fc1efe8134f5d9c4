package query

import (
	"cmp"
	"slices"
	"time"

	"github.com/expr-lang/expr/ast"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/near"
)

// A field of which the layout says what its numbers are called, or that it is a duration, is
// a number to expressions. Text that it is compared with is the number of that name:
//
//	State == "Running"               State == 2
//	State in ["Idle", "Running"]     State in [0, 2]
//	Wait > "1.5s"                    Wait > 1500000000
//
// What duration("1.5s") gives is a number of nanoseconds as well.

// numbers makes numbers of the texts in a comparison. Of in, only the right side may have texts: the field
// is what is looked for.
func (r *resolver) numbers(n *ast.BinaryNode) {
	if !isCondition[n.Operator] || r.err != nil {
		return
	}
	r.numbersOf(r.layoutOf(n.Left), &n.Right)
	if n.Operator != "in" {
		r.numbersOf(r.layoutOf(n.Right), &n.Left)
	}
}

// numbersOf makes numbers of t of the text *p, or of the texts in it if it is a list.
func (r *resolver) numbersOf(t *layout.Type, p *ast.Node) {
	if t = behind(t); t == nil || !t.Named() {
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
			r.fail(n, "%q is no duration; write it with a unit, as in 1.5s or 20ms", n.Value)
		}
	}
}

// duration makes a number of duration("1.5s").
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
		r.fail(text, "%q is no duration; write it with a unit, as in 1.5s or 20ms", text.Value)
		return
	}
	*p = at(n, &ast.IntegerNode{Value: int(d)})
}
