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

// An expression can read the components of another entity. A component name after a field with an
// entity is the component of that entity:
//
//	Target.Of.Health.Current < 0                                                  the text
//	of(Target.Of).Current < 0                                                     resolved
//	has(Target) && of(Target.Of) != nil && of(Target.Of).Current < 0              guarded
//
// The call of(…) is nil if the entity is dead or lacks the component. For a tag, it is false.
//
// An aggregate with such an expression evaluates all entities at each tick.

// referName returns the internal name of the function that reads the column x.referred[i].
func referName(i int) string { return "\x05" + string(rune('a'+i%26)) + strings.Repeat("'", i/26) }

// refer replaces *p, a component of another entity, by a call.
func (r *resolver) refer(p *ast.Node, n *ast.MemberNode, name string) {
	c := r.im.Find(name)
	switch {
	case c == nil:
		r.fail(n.Property, "no component %q after an entity%s", name, near.Hint(name, r.names()))
		return
	case c.Resource:
		r.fail(n.Property, "%s is a resource, which no entity has", name)
		return
	}
	// Each reference has its own column, because reading.others caches one entity for each column.
	col := newColumn(c)
	r.referred = append(r.referred, col)
	call := ownCall(n, referName(len(r.referred)-1), n.Node).(*ast.CallNode)
	if r.calls == nil {
		r.calls = map[*ast.CallNode]*column{}
	}
	r.calls[call] = col
	*p = call
}

// isEntity reports whether t is the type Entity. t may be nil.
func isEntity(t *layout.Type) bool { return t != nil && t.Kind == layout.Entity }

// other returns the row of e in col, and whether e has a row there. A dead entity has no row.
func (x *Expr) other(col *column, e ecs.Entity) (row []byte, has bool, err error) {
	switch {
	case !x.isAlive(e):
		return nil, false, nil
	case col.lookup != nil:
		return col.lookup(e)
	}
	row, has = col.row(e)
	return row, has, nil
}

// referredOf returns the value of col for the entity with the name text. It returns nil for a nil
// text.
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
	// Allocate a new value, because clones of x may run concurrently.
	to := reflect.New(goType(col.layout))
	setGo(to.Elem(), v)
	if col.layout.Kind == layout.Struct {
		return to.Interface(), nil
	}
	return to.Elem().Interface(), nil
}

// result returns the Go type of component c of another entity. It must allow nil, because the other
// entity may lack the component. So it is a pointer for a struct, and any for a scalar.
func (c *column) result() reflect.Type {
	switch {
	case c.typ == nil:
		return reflect.TypeFor[bool]()
	case c.layout.Kind == layout.Struct:
		return c.typ
	}
	return reflect.TypeFor[any]()
}

// signature returns the type of the function that takes the name of an entity and returns component
// c.
func (c *column) signature() reflect.Type {
	return reflect.FuncOf([]reflect.Type{reflect.TypeFor[string]()}, []reflect.Type{c.result()}, false)
}

// referred returns the needs of call n: the needs of its argument, and that its result is not nil.
func (g guarder) referred(n *ast.CallNode) []need {
	_, needs := g.below(n)
	if g.calls[n].typ == nil {
		return needs
	}
	there := at(n, &ast.BinaryNode{Operator: "!=", Left: n, Right: at(n, &ast.NilNode{})})
	return united(needs, []need{{n.String(), there, false}})
}
