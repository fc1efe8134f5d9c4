package query

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/near"
)

// A component behind a field that holds an entity, or a pointer to one, is that of this entity:
//
//	Target.Of.Health.Current < 0
//
// becomes a call with the entity, whose result has the type of the component. Of an entity that is
// not alive, or lacks the component, or behind a nil pointer, it is nothing, as is a component that the entity at hand lacks;
// a tag is false. Whatever the entity at hand is, any other one may be asked: where all of the state
// does not lie in memory, they are looked up, see [Expr.Looking].
//
//	of(Target.Of).Current < 0                                                     resolved
//	has(Target) && of(Target.Of) != nil && of(Target.Of).Current < 0              guarded
//
// An aggregate that reads other entities asks all each time: nobody keeps who refers to whom.

// referName returns what the compiled program calls the function that reads referred component i.
func referName(i int) string { return "\x05" + string(rune('a'+i%26)) + strings.Repeat("'", i/26) }

// refer makes *p, a member of n.Node which is an entity, a call of such a function.
func (r *resolver) refer(p *ast.Node, n *ast.MemberNode, name string) {
	c := r.im.Find(name)
	switch {
	case c == nil:
		r.fail(n.Property, "no component %q: it is behind an entity%s", name, near.Hint(name, r.names()))
		return
	case c.Resource:
		r.fail(n.Property, "%s is a resource, no entity has it", name)
		return
	}
	col := newColumn(c) // Each place has one of its own: it keeps whom it was asked of last, see reading.
	r.referred = append(r.referred, col)
	call := ownCall(n, referName(len(r.referred)-1), n.Node).(*ast.CallNode)
	if r.calls == nil {
		r.calls = map[*ast.CallNode]*column{}
	}
	r.calls[call] = col
	*p = call
}

// isEntity reports whether t is an entity; nil is none.
func isEntity(t *layout.Type) bool { return t != nil && t.Kind == layout.Entity }

// other returns what e, alive or not, has of col, and whether it has it. A lookup knows indices only, so
// whether e is alive is asked before.
func (x *Expr) other(col *column, e ecs.Entity) (row []byte, has bool, err error) {
	switch {
	case !x.isAlive(e):
		return nil, false, nil
	case col.lookup != nil:
		return col.lookup(e)
	case col.component == nil:
		return nil, false, nil
	}
	n := col.component.Find(e)
	if n < 0 {
		return nil, false, nil
	}
	return col.component.Row(n), true, nil
}

// referredOf returns what the entity that text is has of col; nil, a pointer that leads to none, has nothing.
func (x *Expr) referredOf(col *column, text any) (any, error) {
	e := ecs.Vacant
	if text != nil {
		var err error
		if e, err = ecs.ParseEntity(text.(string)); err != nil {
			return nil, fmt.Errorf("%q is not an entity", text)
		}
	}
	row, has, err := x.other(col, e)
	switch {
	case err != nil:
		return nil, err
	case col.typ == nil:
		return has, nil
	case !has:
		return reflect.Zero(col.result()).Interface(), nil
	}
	v, err := col.layout.Value(row)
	if err != nil {
		return nil, err
	}
	to := reflect.New(goType(col.layout)) // Clones of x ask at the same time.
	setGo(to.Elem(), v)
	if col.layout.Kind == layout.Struct {
		return to.Interface(), nil
	}
	return to.Elem().Interface(), nil
}

// result returns the type of what is read of col of another entity, which may be nothing. A struct is
// a pointer, which can be nil and whose fields the checker knows; a scalar is of any type, for nil.
func (c *column) result() reflect.Type {
	switch {
	case c.typ == nil:
		return reflect.TypeFor[bool]()
	case c.layout.Kind == layout.Struct:
		return c.typ
	}
	return reflect.TypeFor[any]()
}

// signature returns the type of the function that reads c of another entity.
func (c *column) signature() reflect.Type {
	return reflect.FuncOf([]reflect.Type{reflect.TypeFor[string]()}, []reflect.Type{c.result()}, false)
}

// referred returns what call n needs: that there is an answer.
func (g guarder) referred(n *ast.CallNode) []need {
	_, needs := g.below(n)
	if g.calls[n].typ == nil {
		return needs
	}
	there := at(n, &ast.BinaryNode{Operator: "!=", Left: n, Right: at(n, &ast.NilNode{})})
	return united(needs, []need{{n.String(), there, false}})
}
